"""Backup, export and restore over REST and gRPC preserve the agent and lose nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from ebbtide.access.grants import ANYONE, CALLER, Caller
from ebbtide.ids import AgentId
from ebbtide.verbs import transfers
from tests.support.callers import MOSTLY_REST, CallerIn, reason_of, rest_in
from tests.support.forwarded import ALL_CALLERS, FORWARDED_IN_FULL
from tests.support.in_process import tell
from tests.support.keys import KEYS_ON, id_of, new_key
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

ANN, BEA = "/v1/agents/ann", "/v1/agents/bea"
FORMS = ("backup", "export")

SAID = (
    "I moved to Lisbon in May. My cat Miso came along by train.",
    "林月五月搬到了青岛，住在海边。她的外婆做得一手好菜。",
    "Clara builds wooden boats in Porto. On Friday she sails to Lisbon.",
    "The harbour smells of tar and oranges in the morning.",
)
CUES: tuple[dict[str, Any], ...] = (
    {},
    {"keywords": ["Lisbon", "青岛"], "depth": 3},
    {"relations": ["next"]},
    {"query": "Where did Ann move?"},
    {"query": "谁住在海边？"},
    {"query": "boats", "token_budget": 40, "explain": True},
)


@pytest.fixture(params=[*MOSTLY_REST, *FORWARDED_IN_FULL])
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return ALL_CALLERS[request.param]


async def told(call: Any, agent: str = ANN) -> None:
    """Remember some messages with all their possible fields; digest, scan and embed them."""
    for number, text in enumerate(SAID):
        messages = [
            {"role": "user", "content": text, "speaker": "Ann", "timestamp": 1_683_554_400_000 + number}
        ]
        body = {
            "messages": messages,
            "conversation_id": f"c{number}",
            "metadata": {"topic": "旅行", "n": 1.0},
            "idempotency_key": f"k{number}",
        }
        assert (await call("POST", f"{agent}/remember", body)).status_code == 202
    await call("POST", f"{agent}/compress", {"passes": 3})
    await flushed(call, agent)


async def flushed(call: Any, agent: str) -> None:
    """Wait until every batch is digested, owed passes are done, and vectors exist."""
    done = await call("POST", f"{agent}/flush", {"passes": True, "vectors": True, "timeout_ms": 60_000})
    assert done.json()["digested"]


async def looks(call: Any, agent: str) -> list[Any]:
    """Return all responses of an agent that a backup must preserve."""
    found = [(await call("POST", f"{agent}/recall", cue)).json() for cue in CUES]
    for what in ("", "/nodes", "/links", "/focus", "/batches", "/nodes/n1"):
        found.append((await call("GET", agent + what)).json())
    return found


@pytest.mark.parametrize("form", FORMS)
async def test_a_restored_agent_answers_the_same(tmp_path: Path, caller_in: CallerIn, form: str) -> None:
    """Recalls, with and without a query, and all inspections of a restored agent are equal byte for byte."""
    async with caller_in(tmp_path / "here") as call:
        await call("PUT", ANN, {"focus_limit": 2, "decay_rate": 0.8})
        await told(call)
        await call("DELETE", f"{ANN}/nodes/n2")
        await flushed(call, ANN)
        before = await looks(call, ANN)
        content = await call.download(f"{ANN}/{form}")
        assert await looks(call, ANN) == before
    async with caller_in(tmp_path / "there") as call:
        done = (await call.upload(f"{ANN}/restore", content)).json()
        assert done.get("agent_id") == "ann" and not done["replaced"], done
        assert done["counts"] == before[len(CUES)]["counts"]
        assert await looks(call, ANN) == before
        again = await call("POST", f"{ANN}/remember", {"messages": [{"role": "user", "content": "x"}]})
        assert again.json()["batch_id"] == "b5"


@pytest.mark.parametrize("form", FORMS)
async def test_the_inbox_is_restored_and_digested(tmp_path: Path, caller_in: CallerIn, form: str) -> None:
    """Accepted batches that were not digested are digested after the restore, without a request."""
    stuck = ScriptedModel()
    stuck.always["segment"] = 60.0
    async with caller_in(tmp_path / "here", stuck) as call:
        for text in SAID:
            body = {"messages": [{"role": "user", "content": text}], "idempotency_key": text[:5]}
            await call("POST", f"{ANN}/remember", body)
        content = await call.download(f"{ANN}/{form}")
    async with caller_in(tmp_path / "there") as call:
        assert (await call.upload(f"{ANN}/restore", content)).json()["pending_batches"] == len(SAID)
        fleet = call.service.fleet
        await eventually(lambda: any(agent.counts.node_count > 0 for agent in fleet.open_agents))
        await flushed(call, ANN)
        answer = (await call("POST", f"{ANN}/recall", {"keywords": ["Lisbon"]})).json()
        assert "Miso" in answer["text"] and answer["pending_batches"] == 0
        body = {"messages": [{"role": "user", "content": SAID[0]}], "idempotency_key": SAID[0][:5]}
        assert (await call("POST", f"{ANN}/remember", body)).json()["batch_id"] == "b1"


async def test_an_agent_is_replaced_only_on_request(tmp_path: Path, caller_in: CallerIn) -> None:
    """AGENT_EXISTS without `replace`; with it the agent has the state of its backup, also if it was open."""
    async with caller_in(tmp_path) as call:
        await told(call)
        before = await looks(call, ANN)
        content = await call.download(f"{ANN}/backup")
        await call("POST", f"{ANN}/remember", {"messages": [{"role": "user", "content": "Later."}]})
        await flushed(call, ANN)
        later = await looks(call, ANN)
        assert reason_of(await call.upload(f"{ANN}/restore", content)) == "AGENT_EXISTS"
        assert await looks(call, ANN) == later
        assert (await call.upload(f"{ANN}/restore", content, replace=True)).json()["replaced"]
        assert await looks(call, ANN) == before
        assert not list((tmp_path / "transfers").iterdir())
        assert [path.name for path in (tmp_path / "agents").iterdir()] == ["ann"]


@pytest.mark.parametrize("form", FORMS)
async def test_another_id_is_used_only_on_request(tmp_path: Path, caller_in: CallerIn, form: str) -> None:
    """BACKUP_OF_ANOTHER_AGENT without `rename`; with it there are two equal agents that share nothing."""
    async with caller_in(tmp_path) as call:
        await told(call)
        content = await call.download(f"{ANN}/{form}")
        assert reason_of(await call.upload(f"{BEA}/restore", content)) == "BACKUP_OF_ANOTHER_AGENT"
        assert await call.refused("GET", BEA) == "AGENT_NOT_FOUND"
        assert (await call.upload(f"{BEA}/restore", content, rename=True)).status_code == 200
        for cue in CUES:
            answers = [(await call("POST", f"{one}/recall", cue)).json() for one in (ANN, BEA)]
            assert answers[0] == answers[1]
        await call("DELETE", ANN)
        assert (await call("POST", f"{BEA}/recall", {})).json()["text"]


async def test_a_damaged_file_changes_nothing(tmp_path: Path, caller_in: CallerIn) -> None:
    """A truncated file, a wrong byte and any other file are BACKUP_UNREADABLE; the old agent stays."""
    async with caller_in(tmp_path) as call:
        await told(call)
        before = await looks(call, ANN)
        packed, lines = await call.download(f"{ANN}/backup"), await call.download(f"{ANN}/export")
        flipped = bytearray(packed)
        flipped[len(packed) // 2] ^= 1
        for content in (
            b"", b"{", b"PK\3\4", packed[:-1], packed[: len(packed) // 2], packed + b"\0", bytes(flipped),
            lines[:-1].rpartition(b"\n")[0], lines.replace(b"Lisbon", b"Madrid", 1), lines + b"{}\n",
        ):  # fmt: skip
            answer = await call.upload(f"{ANN}/restore", content, replace=True)
            assert (answer.status_code, reason_of(answer)) == (400, "BACKUP_UNREADABLE"), content[:40]
        for version, reason in ((b"4", "FORMAT_TOO_NEW"), (b"1", "FORMAT_TOO_OLD")):
            other = lines.replace(b'"version":3', b'"version":' + version, 1)
            assert reason_of(await call.upload(f"{ANN}/restore", other, replace=True)) == reason
        assert await looks(call, ANN) == before
        await eventually(lambda: not list((tmp_path / "transfers").iterdir()))


async def test_an_upload_has_a_bound_of_its_own(tmp_path: Path, caller_in: CallerIn) -> None:
    """A backup larger than a body's limit is accepted; one beyond `max_upload_bytes` is BODY_TOO_LARGE."""
    limits = {"max_body_bytes": 70_000, "max_upload_bytes": 4_000_000}
    async with caller_in(tmp_path, limits=limits) as call:
        long = [{"role": "user", "content": " ".join(f"{n * 7919:x}" for n in range(5000))}]
        for _ in range(5):
            await call("POST", f"{ANN}/remember", {"messages": long})
        await flushed(call, ANN)
        content = await call.download(f"{ANN}/export")
        assert len(content) > 70_000
        assert (await call.upload(f"{ANN}/restore", content, replace=True)).status_code == 200
        answer = await call.upload(f"{BEA}/restore", bytes(4_000_001))
        assert (answer.status_code, reason_of(answer)) == (413, "BODY_TOO_LARGE")


async def test_a_missing_agent_is_not_created(tmp_path: Path, caller_in: CallerIn) -> None:
    """A backup or an export of a missing agent does not create it."""
    async with caller_in(tmp_path) as call:
        for form in FORMS:
            assert await call.refused("GET", f"{ANN}/{form}") == "AGENT_NOT_FOUND"
        assert (await call("GET", "/v1/agents")).json()["agents"] == []


async def test_transfers_are_bounded(
    tmp_path: Path, caller_in: CallerIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TOO_MANY_TRANSFERS when all places are in use, with Retry-After; then transfers succeed again."""
    monkeypatch.setattr(transfers, "MAX_TRANSFERS", 1)
    async with caller_in(tmp_path) as call:
        await told(call)
        with call.service.transfers.place():
            response = await call("GET", f"{ANN}/backup")
            assert (response.status_code, reason_of(response)) == (429, "TOO_MANY_TRANSFERS")
            assert response.headers["retry-after"] == "5"
        assert await call.download(f"{ANN}/backup")


async def test_one_key_gets_half_of_the_places(tmp_path: Path, caller_in: CallerIn) -> None:
    """One key gets at most half of the transfers; the error says so, and another key is admitted."""
    first, second = new_key(tmp_path, "admin"), new_key(tmp_path, "admin")
    async with caller_in(tmp_path, access=KEYS_ON) as call:
        await tell(call.service, "ann", *SAID)

        async def answered(key: str) -> Any:
            call.show(key)
            return await call("GET", f"{ANN}/backup")

        with contextlib.ExitStack() as held:
            for _ in range(2):
                CALLER.set(Caller(id_of(first), ANYONE.grant))
                held.enter_context(call.service.transfers.place())
            CALLER.set(ANYONE)
            refused = await answered(first)
            assert (refused.status_code, reason_of(refused)) == (429, "TOO_MANY_TRANSFERS")
            assert refused.json()["error"]["metadata"]["limit"] == "key"
            assert (await answered(second)).status_code == 200
        assert (await answered(first)).status_code == 200


async def test_requests_during_a_restore_are_refused(tmp_path: Path, caller_in: CallerIn) -> None:
    """During a restore, requests get AGENT_BEING_RESTORED and neither open the old agent nor create one."""
    async with caller_in(tmp_path) as call:
        await told(call)
        content = await call.download(f"{ANN}/backup")
        data, begun, gate = call.service.fleet.data, threading.Event(), threading.Event()
        install = data.install

        def slowly(agent_id: AgentId, staged: Path, entry: Any) -> None:
            begun.set()
            gate.wait()
            install(agent_id, staged, entry)

        data.install = slowly
        restoring = asyncio.create_task(call.upload(f"{ANN}/restore", content, replace=True))
        await eventually(begun.is_set)
        assert await call.refused("GET", ANN) == "AGENT_BEING_RESTORED"
        assert await call.refused("DELETE", ANN) == "AGENT_BEING_RESTORED"
        gate.set()
        assert (await restoring).json()["replaced"]
        assert (await call("GET", ANN)).status_code == 200


async def test_a_backup_during_writes_contains_every_acknowledged_batch(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """During a stream of batches that grow the map, a backup contains every batch acknowledged before it began."""
    async with caller_in(tmp_path / "here", store={"initial_map_bytes": 1 << 18}) as call:
        acknowledged, stop = 0, asyncio.Event()

        async def write() -> None:
            nonlocal acknowledged
            while not stop.is_set():
                text = f"Number {acknowledged}. " + " ".join(f"{acknowledged * n:x}" for n in range(60))
                body = {"messages": [{"role": "user", "content": text}]}
                assert (await call("POST", f"{ANN}/remember", body)).status_code == 202
                acknowledged += 1

        writing = asyncio.create_task(write())
        kept: list[tuple[int, bytes]] = []
        for goal in (5, 40, 80):
            await eventually(lambda goal=goal: acknowledged >= goal or writing.done())  # type: ignore[misc]
            before = acknowledged
            kept.append((before, await call.download(f"{ANN}/backup")))
        stop.set()
        await writing
        assert acknowledged > kept[-1][0]
    async with caller_in(tmp_path / "there") as call:
        for before, content in kept:
            done = await call.upload(f"{ANN}/restore", content, replace=True)
            assert done.json()["counts"]["messages"] >= before
            await flushed(call, ANN)


async def test_a_web_page_cannot_send_a_backup(tmp_path: Path) -> None:
    """A form's content type is UNSUPPORTED_MEDIA_TYPE, and a foreign Origin is refused as for every route."""
    async with rest_in(tmp_path) as call:
        for kind in (
            "text/plain",
            "multipart/form-data",
            "application/x-www-form-urlencoded",
            "application/json",
        ):
            response = await call("POST", f"{ANN}/restore", content=b"x", headers={"content-type": kind})
            assert (response.status_code, reason_of(response)) == (415, "UNSUPPORTED_MEDIA_TYPE")
        assert reason_of(await call("POST", f"{ANN}/restore", content=b"x")) == "UNSUPPORTED_MEDIA_TYPE"
        headers = {"content-type": "application/octet-stream", "origin": "http://evil.example"}
        assert await call.refused("POST", f"{ANN}/restore", headers=headers) == "ORIGIN_NOT_ALLOWED"


async def test_an_export_is_lines_that_anyone_can_read(tmp_path: Path, caller_in: CallerIn) -> None:
    """Each line of an export is a JSON object with its type, and contains texts verbatim."""
    async with caller_in(tmp_path) as call:
        await told(call)
        lines = [json.loads(line) for line in (await call.download(f"{ANN}/export")).splitlines()]
    kinds = [line["type"] for line in lines]
    assert (kinds[0], kinds[1], kinds[-1]) == ("header", "agent", "end")
    assert [line["content"] for line in lines if line["type"] == "message"] == list(SAID)
    assert {"relation", "batch", "node", "link", "index"} <= set(kinds)
    assert lines[-1]["lines"] == len(lines) - 1
