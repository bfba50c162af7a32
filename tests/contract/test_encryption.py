"""Encryption as a caller meets it, over both transports: nothing but refusals where a key is wrong."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ebbtide.errors import Precondition
from ebbtide.retrieval import vectors
from ebbtide.store.index_file import INDEX_FILE
from tests.contract.test_questions import FLUSH
from tests.support.callers import CALLERS, CallerIn
from tests.support.encrypted import digest
from tests.support.fake_ollama import FakeOllama, vector_of
from tests.support.in_process import service_in
from tests.support.waiting import eventually

AGENT = "/v1/agents/ann"
SAID = "My grandmother Wilhelmina keeps bees. 外婆住在团岛。"
HELLO = {"messages": [{"role": "user", "content": SAID}], "metadata": {"room": "Zeppelinsaal"}}
KEY, OTHER = "6d" * 32, "6f" * 32
ENCRYPTED = {"encryption": {"master_key": KEY}}


@pytest.fixture(params=CALLERS)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """Each transport in turn."""
    return CALLERS[request.param]


async def test_an_encrypted_agent_answers_like_any_other(tmp_path: Path, caller_in: CallerIn) -> None:
    """Remember, digest, recall, search, inspect, close, open again: the same answers, and no text on disk."""
    answers = []
    for name, sections in (("plain", {}), ("encrypted", ENCRYPTED)):
        async with caller_in(tmp_path / name, **sections) as call:
            body = {**HELLO, "idempotency_key": "Xanthippe"}
            first = (await call("POST", f"{AGENT}/remember", body)).json()
            again = (await call("POST", f"{AGENT}/remember", body)).json()
            assert first["batch_id"] == again["batch_id"]
            await call("POST", f"{AGENT}/flush", {"passes": True})
            await call("POST", f"{AGENT}/close")
            recalled = (await call("POST", f"{AGENT}/recall", {"keywords": ["Wilhelmina"]})).json()
            asked = (await call("POST", f"{AGENT}/recall", {"query": "Who keeps bees?"})).json()
            answers.append((recalled["text"], asked["text"]))
    assert "Wilhelmina" in answers[0][0]
    assert "bees" in answers[0][1]
    assert answers[0] == answers[1]
    for text in ("Wilhelmina", "bees", "外婆", "Zeppelinsaal", "Xanthippe"):
        found = {
            name: any(
                text.encode() in path.read_bytes() for path in (tmp_path / name).rglob("*") if path.is_file()
            )
            for name in ("plain", "encrypted")
        }
        assert found == {"plain": True, "encrypted": False}, text


async def test_an_agent_without_its_key_is_refused_and_others_go_on(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """MASTER_KEY_REFUSED and DATA_KEY_MISSING, nothing changed; the agent can still be deleted."""
    data_dir = tmp_path / "data"
    async with caller_in(data_dir, **ENCRYPTED) as call:
        for name in ("ann", "bea", "cid"):
            await call("POST", f"/v1/agents/{name}/remember", HELLO)
            await call("POST", f"/v1/agents/{name}/flush", {"passes": True})
            await call("POST", f"/v1/agents/{name}/close")
        keys = data_dir / "keys"
        saved = (keys / "ann").read_bytes()
        shutil.copy(keys / "cid", keys / "ann")
        (keys / "bea").unlink()
        before = digest(data_dir / "agents" / "ann"), digest(data_dir / "agents" / "bea")
        for verb in ("recall", "remember"):
            body = HELLO if verb == "remember" else {}
            assert await call.refused("POST", f"{AGENT}/{verb}", body) == "MASTER_KEY_REFUSED"
            assert await call.refused("POST", f"/v1/agents/bea/{verb}", body) == "DATA_KEY_MISSING"
        assert (digest(data_dir / "agents" / "ann"), digest(data_dir / "agents" / "bea")) == before
        assert (await call("POST", "/v1/agents/cid/recall", {})).status_code == 200
        assert (await call("DELETE", "/v1/agents/bea")).status_code == 200
        (keys / "ann").write_bytes(saved)
        assert (await call("POST", f"{AGENT}/recall", {})).status_code == 200


@pytest.mark.parametrize("key", ["", OTHER, "no key"], ids=["without", "another", "none"])
async def test_a_daemon_with_another_master_key_does_not_start(tmp_path: Path, key: str) -> None:
    """MASTER_KEY_REFUSED before anything is opened or made; the directory is let go, and works with the right key."""
    async with service_in(tmp_path / "data", **ENCRYPTED):
        pass
    before = digest(tmp_path / "data" / "keys")
    with pytest.raises(Precondition) as caught:
        async with service_in(tmp_path / "data", encryption={"master_key": key}):
            pass
    assert caught.value.reason == "MASTER_KEY_REFUSED"
    assert not key or key not in caught.value.message
    assert digest(tmp_path / "data" / "keys") == before
    async with service_in(tmp_path / "data", **ENCRYPTED):
        pass


async def test_the_key_may_stand_in_a_file(tmp_path: Path) -> None:
    """`master_key_file` is the same key as `master_key`; one that cannot be read is refused by name."""
    async with service_in(tmp_path / "data", **ENCRYPTED) as service:
        await service.fleet.on_pool(lambda: None)
    (tmp_path / "key").write_text(f"{KEY}\n")
    async with service_in(tmp_path / "data", encryption={"master_key_file": str(tmp_path / "key")}):
        pass
    with pytest.raises(Precondition, match="cannot be read: No such file"):
        async with service_in(tmp_path / "data", encryption={"master_key_file": str(tmp_path / "none")}):
            pass


@pytest.mark.parametrize("sections", [{}, ENCRYPTED], ids=["plain", "encrypted"])
async def test_no_index_over_vectors_is_left_beside_an_encrypted_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sections: dict[str, Any]
) -> None:
    """The file that a plain agent keeps over a restart is made of texts; an encrypted one goes without."""
    monkeypatch.setattr(vectors, "EXACT_NUMBERS", 8 * 50)
    said = {"messages": [{"role": "user", "content": f"note {n} about {n % 7}"} for n in range(120)]}
    async with FakeOllama(("bge-m3",)).running_here() as server:
        embedding = {"model": "ollama", "base_url": server.url, "name": "bge-m3"}
        async with CALLERS["rest"](tmp_path, embedding=embedding, **sections) as call:
            await call("POST", f"{AGENT}/remember", said)
            await eventually_embedded(call)
            vector = vector_of("note 77 about 0", server.vector_size)
            await call("POST", f"{AGENT}/search", {"vector": vector})
            (agent,) = call.service.fleet.open_agents
            archive = agent.workspace.open_archive
            await eventually(lambda: archive.loaded is not None and archive.loaded.vectors.is_indexed)
    assert index_count(tmp_path) == (0 if sections else 1)


def index_count(data_dir: Path) -> int:
    """How many files of an index there are."""
    return len(list(data_dir.rglob(f"{INDEX_FILE}*")))


async def eventually_embedded(call: Any) -> None:
    """Wait until everything has its vectors."""
    stands = (await call("POST", f"{AGENT}/flush", FLUSH)).json()
    assert stands.get("unembedded_messages") == 0, stands
