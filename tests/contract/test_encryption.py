"""Encryption from the caller's view, over both transports: with a wrong key there are only refusals."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest
import zstandard
from structlog.testing import capture_logs

from ebbtide.errors import Precondition
from ebbtide.ids import AgentId
from ebbtide.rest.app import create_app
from ebbtide.retrieval import vectors
from ebbtide.store.codec import COMPRESSED
from ebbtide.store.directory.index_file import INDEX_FILE
from ebbtide.telemetry import configure_log
from tests.contract.test_questions import FLUSH
from tests.support.callers import CALLERS, MOSTLY_REST, CallerIn
from tests.support.encrypted import digest
from tests.support.fake_ollama import FakeOllama, vector_of
from tests.support.forwarded import ALL_CALLERS, FORWARDED_IN_FULL
from tests.support.in_process import service_in
from tests.support.keys import KEYS_ON, bearer, new_key
from tests.support.waiting import eventually

AGENT = "/v1/agents/ann"
SAID = "My grandmother Wilhelmina keeps bees. 外婆住在团岛。"
HELLO = {"messages": [{"role": "user", "content": SAID}], "metadata": {"room": "Zeppelinsaal"}}
KEY, OTHER = "6d" * 32, "6f" * 32
ENCRYPTED = {"encryption": {"master_key": KEY}}


@pytest.fixture(params=[*MOSTLY_REST, *FORWARDED_IN_FULL])
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """Yield a daemon and a caller over each transport."""
    return ALL_CALLERS[request.param]


async def test_an_encrypted_agent_answers_like_any_other(tmp_path: Path, caller_in: CallerIn) -> None:
    """Remember, digest, recall, search, inspect, close and open give the same responses, and no text is on disk."""
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


async def said_to(call: Any, agent: str = AGENT) -> str:
    """Send a message to an agent and return the recalled text."""
    await call("POST", f"{agent}/remember", HELLO)
    await call("POST", f"{agent}/flush", {"passes": True})
    return await recalled(call, agent)


async def recalled(call: Any, agent: str = AGENT) -> str:
    """Return the recalled text of an agent."""
    text: str = (await call("POST", f"{agent}/recall", {"keywords": ["Wilhelmina"]})).json()["text"]
    return text


def key_count(data_dir: Path, agent: str = "ann") -> int:
    """Return the number of keys of an agent."""
    path = data_dir / "keys" / agent
    return len(json.loads(path.read_bytes())["keys"]) if path.exists() else 0


@pytest.mark.parametrize("form", ["backup", "export"])
@pytest.mark.parametrize("there", ["nobody", "a sealed one"])
async def test_restored_plain_agents_are_encrypted(
    tmp_path: Path, caller_in: CallerIn, form: str, there: str
) -> None:
    """A restored plain agent is encrypted if the daemon encrypts agents; the keys of a replaced agent are deleted."""
    async with caller_in(tmp_path / "plain") as call:
        before = await said_to(call)
        content = await call.download(f"{AGENT}/{form}")
    assert "Wilhelmina" in before
    data_dir = tmp_path / "data"
    async with caller_in(data_dir, **ENCRYPTED) as call:
        if there != "nobody":
            await call("POST", f"{AGENT}/remember", HELLO)
        was = (data_dir / "keys" / "ann").read_bytes() if there != "nobody" else b""
        done = await call.upload(f"{AGENT}/restore", content, replace=True)
        assert done.status_code == 200, done.json()
        assert key_count(data_dir) == 1 and (data_dir / "keys" / "ann").read_bytes() != was
        assert await recalled(call) == before
        await eventually(lambda: not list((data_dir / "transfers").iterdir()))
        assert json.loads((data_dir / "agents" / "ann" / "meta.json").read_bytes())["encrypted"]
        files = [path.read_bytes() for path in data_dir.rglob("*") if path.is_file()]
        for text in ("Wilhelmina", "bees", "外婆", "Zeppelinsaal"):
            assert not any(text.encode() in held for held in files), text
        packed = COMPRESSED.encode(SAID.encode())
        assert not any(zstandard.FRAME_HEADER in held or packed[:12] in held for held in files)
    async with caller_in(data_dir, **ENCRYPTED) as call:
        assert await recalled(call) == before


async def test_an_encrypted_backup_comes_back_under_another_id(tmp_path: Path, caller_in: CallerIn) -> None:
    """The restored agent has the same memory under a new key, which remains when the original agent is deleted."""
    async with caller_in(tmp_path, **ENCRYPTED) as call:
        before = await said_to(call)
        content = await call.download(f"{AGENT}/backup")
        was = (tmp_path / "keys" / "ann").read_bytes()
        refused = await call.upload("/v1/agents/bea/restore", content)
        assert refused.json()["error"]["reason"] == "BACKUP_OF_ANOTHER_AGENT"
        assert key_count(tmp_path, "bea") == 0
        done = await call.upload("/v1/agents/bea/restore", content, rename=True)
        assert done.status_code == 200, done.json()
        assert await recalled(call, "/v1/agents/bea") == before == await recalled(call)
        assert (tmp_path / "keys" / "ann").read_bytes() == was and key_count(tmp_path, "bea") == 1
        prints = [
            json.loads((tmp_path / "agents" / name / "meta.json").read_bytes())["key_fingerprint"]
            for name in ("ann", "bea")
        ]
        assert prints[0] != prints[1]
        assert (await call("DELETE", AGENT)).status_code == 200
        await call("POST", "/v1/agents/bea/close")
        assert await recalled(call, "/v1/agents/bea") == before
        again = await call.upload("/v1/agents/cid/restore", content, rename=True)
        assert again.json()["error"]["reason"] == "DATA_KEY_MISSING"
        await eventually(lambda: key_count(tmp_path, "cid") == 0)


async def test_a_new_id_gives_no_access_to_an_encrypted_backup(tmp_path: Path) -> None:
    """KEY_NOT_FOR_AGENT if the API key does not reach the original agent, whether or not its data key exists."""
    scopes = ("read", "write", "admin")
    everyone = bearer(new_key(tmp_path, *scopes))
    only = bearer(new_key(tmp_path, *scopes, agents=("bea",)))
    async with service_in(tmp_path, **ENCRYPTED, access=KEYS_ON) as service:
        rest = httpx.AsyncClient(
            transport=httpx.ASGITransport(create_app(service)), base_url="http://127.0.0.1:8420"
        )
        assert (await rest.post(f"{AGENT}/remember", json=HELLO, headers=everyone)).status_code == 202
        content = (await rest.get(f"{AGENT}/backup", headers=everyone)).content
        for _ in range(2):
            refused = await rest.post(
                "/v1/agents/bea/restore?rename=true",
                content=content,
                headers={**only, "content-type": "application/octet-stream"},
            )
            assert refused.json()["error"]["reason"] == "KEY_NOT_FOR_AGENT", refused.text
            await rest.delete(AGENT, headers=everyone)
        assert key_count(tmp_path, "bea") == 0 and not service.fleet.data.has_meta(AgentId("bea"))


async def test_a_restore_that_is_refused_leaves_no_key(tmp_path: Path, caller_in: CallerIn) -> None:
    """A damaged export, or one that came too late, neither leaves a key nor removes one."""
    async with caller_in(tmp_path / "plain") as call:
        await said_to(call)
        content = await call.download(f"{AGENT}/export")
    async with caller_in(tmp_path / "data", **ENCRYPTED) as call:
        for place in (AGENT, "/v1/agents/bea"):
            done = await call.upload(f"{place}/restore", content[:-200], rename=True)
            assert done.status_code == 400, done.json()
        await eventually(lambda: not list((tmp_path / "data" / "transfers").iterdir()))
        assert key_count(tmp_path / "data") == key_count(tmp_path / "data", "bea") == 0
        before = await said_to(call)
        was = (tmp_path / "data" / "keys" / "ann").read_bytes()
        done = await call.upload(f"{AGENT}/restore", content[:-200], replace=True)
        assert done.status_code == 400, done.json()
        await eventually(lambda: not list((tmp_path / "data" / "transfers").iterdir()))
        assert (tmp_path / "data" / "keys" / "ann").read_bytes() != b"" and key_count(tmp_path / "data") == 1
        assert (
            json.loads(was)["keys"] == json.loads((tmp_path / "data" / "keys" / "ann").read_bytes())["keys"]
        )
        await call("POST", f"{AGENT}/close")
        assert await recalled(call) == before


async def test_an_agent_without_its_key_does_not_affect_others(tmp_path: Path, caller_in: CallerIn) -> None:
    """MASTER_KEY_REFUSED and DATA_KEY_MISSING change nothing; the agent can still be deleted."""
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
    """MASTER_KEY_REFUSED before any file is opened or created; the directory is released, and the right key works."""
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


async def test_the_master_key_may_be_in_a_file(tmp_path: Path) -> None:
    """`master_key_file` gives the same key as `master_key`; an unreadable file is refused by name."""
    async with service_in(tmp_path / "data", **ENCRYPTED) as service:
        await service.fleet.on_pool(lambda: None)
    (tmp_path / "key").write_text(f"{KEY}\n")
    async with service_in(tmp_path / "data", encryption={"master_key_file": str(tmp_path / "key")}):
        pass
    with pytest.raises(Precondition, match="cannot be read: No such file"):
        async with service_in(tmp_path / "data", encryption={"master_key_file": str(tmp_path / "none")}):
            pass


@pytest.mark.parametrize("sections", [{}, ENCRYPTED], ids=["plain", "encrypted"])
async def test_an_encrypted_agent_has_no_vector_index_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sections: dict[str, Any]
) -> None:
    """A plain agent keeps an index file over a restart, which derives from texts; an encrypted one has none."""
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
    """Return the number of index files."""
    return len(list(data_dir.rglob(f"{INDEX_FILE}*")))


async def eventually_embedded(call: Any) -> None:
    """Wait until every message has its vector."""
    stands = (await call("POST", f"{AGENT}/flush", FLUSH)).json()
    assert stands.get("unembedded_messages") == 0, stands


async def test_a_world_readable_master_key_causes_a_warning(tmp_path: Path) -> None:
    """The daemon starts and warns once in its log, with the name of the file; a protected file causes no warning."""
    configure_log("warning", "json")
    file = tmp_path / "key"
    file.write_text(KEY)
    for mode, count in ((0o600, 0), (0o640, 0), (0o644, 1)):
        file.chmod(mode)
        with capture_logs() as lines:
            async with service_in(tmp_path / "data", encryption={"master_key_file": str(file)}):
                pass
        told = [line for line in lines if "may read the file of the master key" in line["event"]]
        assert [(line["log_level"], line["file"]) for line in told] == [("warning", str(file))] * count
