"""Every reason can occur over each transport that can express it (or at start), in the one form of errors."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ebbtide.errors import QUIET_MESSAGE, REASONS
from ebbtide.ids import AgentId
from ebbtide.store import layout
from ebbtide.store.chain import AuditEntry, AuditRecord
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from tests.contract.test_verbs import AGENT, HELLO, settled
from tests.support.callers import CALLERS, CallerIn, rest_in
from tests.support.forwarded import ALL_CALLERS, FORWARDED_IN_FULL
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]
HAN = [chr(code) for code in range(0x4E00, 0x9FFF)]


@pytest.fixture(params=[*CALLERS, *FORWARDED_IN_FULL])
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return ALL_CALLERS[request.param]


async def test_unknown_paths_and_methods_have_the_same_body(tmp_path: Path) -> None:
    """Both are ROUTE_NOT_FOUND and METHOD_NOT_ALLOWED, with Allow; FastAPI's own error form never appears."""
    async with rest_in(tmp_path) as call:
        for path in (
            "/v1",
            "/v1/agents/",
            "/v1/agents/ann/memories",
            "/docs/files/none.js",
            "/v1/agents/a/b/c/d",
        ):
            assert await call.refused("GET", path) == "ROUTE_NOT_FOUND", path
        response = await call("PATCH", "/v1/agents")
        assert response.json()["error"]["reason"] == "METHOD_NOT_ALLOWED"
        assert response.headers["allow"] == "GET, HEAD"
        # For a path with several routes, every method is listed.
        response = await call("POST", "/v1/agents/ann")
        assert response.headers["allow"] == "DELETE, GET, HEAD, PATCH, PUT"


async def test_bodies_other_than_utf_8_json_are_an_unsupported_media_type(tmp_path: Path) -> None:
    """A form, another charset, a compressed body and a missing type are UNSUPPORTED_MEDIA_TYPE, 415."""
    async with rest_in(tmp_path) as call:
        for headers in (
            {"Content-Type": "text/plain"},
            {"Content-Type": "application/x-www-form-urlencoded"},
            {"Content-Type": "application/json; charset=gbk"},
            {"Content-Type": "application/json", "Content-Encoding": "gzip"},
            {},
        ):
            response = await call("POST", f"{AGENT}/remember", content=json.dumps(HELLO), headers=headers)
            assert (response.status_code, response.json()["error"]["reason"]) == (
                415,
                "UNSUPPORTED_MEDIA_TYPE",
            )


async def test_a_body_over_the_limit_is_refused(tmp_path: Path) -> None:
    """BODY_TOO_LARGE, 413, with and without a declared length."""
    async with rest_in(tmp_path, limits={"max_body_bytes": 2048}) as call:

        async def pieces() -> Any:
            for _ in range(4):
                yield b" " * 1024

        for content in (b" " * 2049, pieces()):
            response = await call(
                "POST", f"{AGENT}/remember", content=content, headers={"Content-Type": "application/json"}
            )
            assert (response.status_code, response.json()["error"]["reason"]) == (413, "BODY_TOO_LARGE")


async def test_a_web_page_cannot_drive_the_daemon(tmp_path: Path) -> None:
    """A foreign Origin is ORIGIN_NOT_ALLOWED, a foreign Host MISDIRECTED_REQUEST; listed ones are accepted."""
    allowed = {"cors_origins": ["http://app.example"], "allowed_hosts": ["memory.example"]}
    async with rest_in(tmp_path, server=allowed) as call:
        for origin in ("http://evil.example", "null", "http://127.0.0.1:9", "http://[::1", ""):
            assert await call.refused("GET", "/healthz", headers={"Origin": origin}) == "ORIGIN_NOT_ALLOWED"
        for host in (
            "evil.example",
            "evil.example:8420",
            "127.0.0.1.evil.example",
            "",
            "10.0.0.1",
            "[::1]evil",
            "localhost:abc",
            "localhost:1:2",
            "evil@localhost",
        ):
            assert await call.refused("GET", "/healthz", headers={"Host": host}) == "MISDIRECTED_REQUEST"
        two = [("Host", "localhost"), ("Host", "evil.example")]
        assert await call.refused("GET", "/healthz", headers=two) == "MISDIRECTED_REQUEST"
        for headers in (
            {"Origin": "http://app.example"},
            {"Origin": "http://127.0.0.1:8420"},
            {"Host": "memory.example:80"},
            {"Host": "localhost:1"},
            {"Host": "[::1]:8420"},
            {"Host": "127.0.0.1"},
        ):
            assert (await call("GET", "/healthz", headers=headers)).status_code == 200, headers


async def test_requests_during_an_erasure_are_refused(tmp_path: Path, caller_in: CallerIn) -> None:
    """Requests during an erasure get AGENT_BEING_ERASED, and nothing is created meanwhile."""
    async with caller_in(tmp_path) as call:
        await settled(call)
        fleet, begun, gate = call.service.fleet, threading.Event(), threading.Event()
        erase = fleet.data.erase

        def slowly(agent_id: AgentId, entry: AuditEntry) -> AuditRecord:
            begun.set()
            gate.wait()
            return erase(agent_id, entry)

        fleet.data.erase = slowly  # type: ignore[method-assign]
        erasing = asyncio.create_task(call("DELETE", AGENT))
        await eventually(begun.is_set)
        assert await call.refused("POST", f"{AGENT}/remember", HELLO) == "AGENT_BEING_ERASED"
        assert await call.refused("DELETE", AGENT) == "AGENT_BEING_ERASED"
        gate.set()
        assert (await erasing).status_code == 200
        assert await call.refused("GET", AGENT) == "AGENT_NOT_FOUND"


async def test_kinds_of_unreadable_data_have_their_reasons(tmp_path: Path, caller_in: CallerIn) -> None:
    """FORMAT_TOO_NEW, AGENT_ID_MISMATCH and STORE_CORRUPTED have no details, and other agents still work."""
    async with caller_in(tmp_path / "data") as call:
        for name in ("ann", "bea", "cid", "dan"):
            await call("POST", f"/v1/agents/{name}/remember", HELLO)
            await call("POST", f"/v1/agents/{name}/flush", {"passes": True})
            await call("POST", f"/v1/agents/{name}/close")
        agents = tmp_path / "data" / "agents"
        saved = {name: shutil.copytree(agents / name, tmp_path / name) for name in ("ann", "bea", "cid")}
        meta = agents / "ann" / "meta.json"
        present = f'"format_version": {layout.FORMAT_VERSION}'
        meta.write_text(meta.read_text().replace(present, '"format_version": 99'))
        shutil.copy(agents / "dan" / "data.mdb", agents / "bea" / "data.mdb")
        store = LmdbStore.open(agents / "cid", map_bytes=1 << 20, max_map_bytes=1 << 24)
        store.write(lambda txn: txn.tables.put(layout.NODES, layout.u64(1), b"\xc1"))  # type: ignore[attr-defined]
        store.close()
        assert await call.refused("POST", "/v1/agents/ann/recall", {}) == "FORMAT_TOO_NEW"
        assert await call.refused("POST", "/v1/agents/bea/recall", {}) == "AGENT_ID_MISMATCH"
        response = await call("POST", "/v1/agents/cid/recall", {})
        assert response.status_code == 500
        assert response.json()["error"]["reason"] == "STORE_CORRUPTED"
        assert response.json()["error"]["message"] == QUIET_MESSAGE
        assert (await call("POST", "/v1/agents/dan/recall", {})).status_code == 200
        assert len((await call("GET", "/v1/agents")).json()["agents"]) == 4
        for name, copy in saved.items():
            shutil.copytree(copy, agents / name, dirs_exist_ok=True)


@pytest.mark.parametrize("has_meta", [False, True])
async def test_a_copied_directory_is_no_agent(tmp_path: Path, caller_in: CallerIn, has_meta: bool) -> None:
    """A copied agent directory is AGENT_ID_MISMATCH.

    Nothing is written to the copy or the original. The list and a start ignore the copy, and it can be replaced.
    """
    async with caller_in(tmp_path / "data") as call:
        await settled(call)  # with its vectors, because a start would resume unfinished work and write
        content = await call.download("/v1/agents/ann/backup")
    agents = tmp_path / "data" / "agents"
    shutil.copytree(agents / "ann", agents / "bea")
    if not has_meta:
        (agents / "bea" / "meta.json").unlink()
    assert list((tmp_path / "data" / "work").iterdir()) == []
    (tmp_path / "data" / "work" / "bea").touch()
    before = held_in(agents)
    async with caller_in(tmp_path / "data") as call:
        assert [one["agent_id"] for one in (await call("GET", "/v1/agents")).json()["agents"]] == ["ann"]
        for method, path, body in (
            ("POST", "/recall", {}),
            ("POST", "/remember", HELLO),
            ("GET", "/audit", None),
            ("PUT", "", {}),
        ):
            assert await call.refused(method, f"/v1/agents/bea{path}", body) == "AGENT_ID_MISMATCH"
        assert held_in(agents) == before
        assert (await call("POST", "/v1/agents/ann/recall", {})).status_code == 200
        done = await call.upload("/v1/agents/bea/restore", content, rename=True, replace=True)
        assert done.json()["replaced"], done.json()
        assert (await call("POST", "/v1/agents/bea/recall", {})).status_code == 200
        assert len((await call("GET", "/v1/agents")).json()["agents"]) == 2


def held_in(agents: Path) -> dict[str, bytes]:
    """Return every file of the agents, except those that list readers or mark an open store."""
    without = {"lock.mdb", "in-use"}
    files = (path for path in agents.rglob("*") if path.is_file() and path.name not in without)
    return {str(path): path.read_bytes() for path in files}


async def test_a_busy_agent_refuses_and_times_out(tmp_path: Path, caller_in: CallerIn) -> None:
    """Requests that do not fit the mailbox are AGENT_BUSY; one whose turn does not come is REQUEST_TIMED_OUT."""
    sections = {"fleet": {"mailbox_size": 2}, "server": {"request_timeout_ms": 100}}
    async with caller_in(tmp_path, **sections) as call:
        await settled(call)
        gate = threading.Event()
        agent = call.service.fleet.open_agents[0]
        ring = call.service.fleet.scheduler.ring
        await eventually(lambda: agent.mailbox.is_idle and not ring.running and not ring.waiting)
        blocked = asyncio.create_task(agent.mailbox.run(lambda: gate.wait(20)))
        await eventually(lambda: agent.mailbox.waiting_count == 0 and not agent.mailbox.is_idle)
        waiting = [asyncio.create_task(call("GET", AGENT)) for _ in range(2)]
        await eventually(lambda: agent.mailbox.waiting_count == 2)
        try:
            response = await call("GET", AGENT)
            assert (response.status_code, response.json()["error"]["reason"]) == (429, "AGENT_BUSY")
            assert response.headers["retry-after"] == "1"
            for late in await asyncio.gather(*waiting):
                assert (late.status_code, late.json()["error"]["reason"]) == (504, "REQUEST_TIMED_OUT")
        finally:
            gate.set()
        await blocked
        # Requests that timed out keep their place until their turn.
        await eventually(lambda: agent.mailbox.is_idle)
        assert (await call("GET", AGENT)).status_code == 200


async def test_no_room_for_another_agent(
    tmp_path: Path, caller_in: CallerIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TOO_MANY_AGENTS is returned while every open agent is busy. It ends when one is idle."""
    monkeypatch.setattr("ebbtide.fleet.runtime.fleet.ROOM_TIMEOUT_S", 0.05)
    model = ScriptedModel()
    model.always["segment"] = 60.0
    async with caller_in(tmp_path, model, fleet={"max_open_agents": 1}) as call:
        await call("POST", f"{AGENT}/remember", HELLO)
        response = await call("PUT", "/v1/agents/bea")
        assert (response.status_code, response.json()["error"]["reason"]) == (429, "TOO_MANY_AGENTS")
        assert response.headers["retry-after"] == "1"
        await call("POST", f"{AGENT}/close")
        assert (await call("PUT", "/v1/agents/bea")).status_code == 201


async def test_a_full_store_refuses_clearly(tmp_path: Path, caller_in: CallerIn) -> None:
    """A full store returns STORE_FULL with status 507 and stores nothing. Recalls still work."""
    full = {"initial_map_bytes": 1 << 18, "max_map_bytes": 1 << 18}
    async with caller_in(tmp_path, store=full, embedding={"model": "off"}) as call:
        await settled(call)
        dice = Random(1)
        big = {"messages": [{"role": "user", "content": "".join(dice.choices(HAN, k=99_000))}]}
        before = (await call("GET", AGENT)).json()
        response = await call("POST", f"{AGENT}/remember", big)
        assert (response.status_code, response.json()["error"]["reason"]) == (507, "STORE_FULL")
        assert (await call("GET", AGENT)).json() == before
        assert (await call("POST", f"{AGENT}/recall", {})).json()["text"]


async def test_files_that_cannot_be_reached_are_unavailable(tmp_path: Path, caller_in: CallerIn) -> None:
    """STORE_UNAVAILABLE, 503, while the operating system refuses access; afterwards requests succeed again."""
    async with caller_in(tmp_path) as call:
        (tmp_path / "agents").rename(tmp_path / "away")
        response = await call("POST", f"{AGENT}/remember", HELLO)
        assert (response.status_code, response.json()["error"]["reason"]) == (503, "STORE_UNAVAILABLE")
        (tmp_path / "away").rename(tmp_path / "agents")
        assert (await call("POST", f"{AGENT}/remember", HELLO)).status_code == 202


async def test_a_stopping_daemon_and_a_closing_agent_say_so(tmp_path: Path, caller_in: CallerIn) -> None:
    """SHUTTING_DOWN and AGENT_CLOSING are 503, so that clients retry."""
    async with caller_in(tmp_path) as call:
        await settled(call)
        agent = call.service.fleet.open_agents[0]
        await agent.mailbox.close()
        response = await call("GET", AGENT)
        assert (response.status_code, response.json()["error"]["reason"]) == (503, "AGENT_CLOSING")
        await call.service.fleet.stop()
        response = await call("GET", AGENT)
        assert (response.status_code, response.json()["error"]["reason"]) == (503, "SHUTTING_DOWN")


async def test_an_internal_error_reveals_no_details(
    tmp_path: Path, caller_in: CallerIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """INTERNAL has a fixed message; neither response nor log contains the exception's message."""

    async def fail(*_: Any) -> None:
        raise ValueError("the secret of the lighthouse\nforged line")

    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {})
        monkeypatch.setattr("ebbtide.verbs.agents._info", fail)
        response = await call("GET", AGENT)
        assert (response.status_code, response.json()["error"]["reason"]) == (500, "INTERNAL")
        assert response.json()["error"]["message"] == QUIET_MESSAGE
        assert response.headers["x-request-id"]
    assert "lighthouse" not in response.text + capsys.readouterr().err


def test_every_reason_is_produced_by_a_test() -> None:
    """The table has no reason that no test produces."""
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert [reason for reason in REASONS if f'"{reason}"' not in tests] == []
