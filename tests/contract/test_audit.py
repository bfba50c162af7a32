"""The audit log over every transport: actor, action, time and amount of each change, in a verifiable chain."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ebbtide.errors import NotFound, Unavailable
from ebbtide.ids import AgentId
from ebbtide.store import layout
from ebbtide.store.chain import AuditEntry, line_of
from ebbtide.store.directory.data_directory import DataDirectory
from ebbtide.store.integrity.check import check_store
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.verbs import batches, memories
from ebbtide.verbs.inspect import NodeRequest
from ebbtide.verbs.moving import RestoreAgentRequest, restore_agent
from tests.support.actors import acting
from tests.support.callers import CALLERS, MOSTLY_REST, Caller, CallerIn, rest_in
from tests.support.erased_log import records_of
from tests.support.in_process import service_in, settle, tell

AGENT = "/v1/agents/ann"
MAP = {"map_bytes": 1 << 20, "max_map_bytes": 1 << 28}
SAID = "My sister Clara is a carpenter."


@pytest.fixture(params=MOSTLY_REST)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return partial(CALLERS[request.param], embedding={"model": "off"})


async def told(call: Caller, *contents: str) -> None:
    messages = [{"role": "user", "content": one} for one in contents]
    assert (await call("POST", f"{AGENT}/remember", {"messages": messages})).status_code == 202
    await call("POST", f"{AGENT}/flush", {"timeout_ms": 20_000, "passes": True})


async def records(call: Caller) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await call("GET", f"{AGENT}/audit")).json()["records"]
    return found


async def verified(call: Caller, *texts: str) -> dict[str, Any]:
    answer = await call("POST", f"{AGENT}/audit/verify", {"texts": list(texts)})
    assert answer.status_code == 200, answer.json()
    found: dict[str, Any] = answer.json()
    return found


async def test_every_change_is_recorded(tmp_path: Path, caller_in: CallerIn) -> None:
    """Each change leaves one record with its kind and counts; reading leaves none; no record contains content."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"segment_max_chars": 80})
        await told(call, SAID, "The harbour smells of tar.", "Project Heron is late.")
        await call("PATCH", AGENT, {"decay_rate": 0.9})
        await call("PATCH", f"{AGENT}/nodes/n2", {"content": "The harbour smells of oranges."})
        await call("DELETE", f"{AGENT}/nodes/n2")
        await call("POST", f"{AGENT}/nodes/delete", {"node_ids": ["n2", "n77"]})
        await call("POST", f"{AGENT}/compress", {"passes": 2})
        await call("POST", f"{AGENT}/forget", {"topic": "Clara"})
        await call("POST", f"{AGENT}/recall", {"keywords": ["tar"]})
        found = await records(call)
        actions = ["created", "parameters_changed", "corrected", "deleted", "passes_owed", "forgotten"]
        assert [one["action"] for one in found] == actions
        assert [one["number"] for one in found] == [1, 2, 3, 4, 5, 6]
        assert {one["actor"] for one in found} == {"-"} and all(one["at"] > 0 for one in found)
        details = [one["details"] for one in found]
        assert details[0] == {"parameters": {"segment_max_chars": 80}} and details[1] == {"decay_rate": 0.9}
        assert details[2] == {"node": "n2", "fields": ["content"]} and details[3]["ids"] == ["n2"]
        assert details[4] == {"passes": 2} and (details[5]["by"], details[5]["nodes"]) == (["topic"], 1)
        assert not any(word in str(found) for word in ("Clara", "harbour", "oranges", "Heron"))
        before = "0" * 64
        for one in found:
            assert hashlib.sha256(one["line"].encode()).hexdigest() == one["record_hash"]
            assert json.loads(one["line"])["previous"] == one["previous_hash"] == before
            before = one["record_hash"]
        whole = await verified(call)
        assert whole["intact"] and (whole["records"], whole["record_hash"]) == (6, before)


async def test_the_log_comes_in_pages(tmp_path: Path, caller_in: CallerIn) -> None:
    """The pages together are the log, from either end; an invalid page is refused."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT)
        for value in (0.5, 0.6, 0.7, 0.8):
            await call("PATCH", AGENT, {"decay_rate": value})
        found, token = [], ""
        while True:
            page = (await call("GET", f"{AGENT}/audit", params={"page_size": 2, "page_token": token})).json()
            found += page["records"]
            token = page["next_page_token"]
            if not token:
                break
        assert found == await records(call) and len(found) == 5
        newest, newer = [], {"newest_first": True, "page_size": 2}
        while True:
            page = (await call("GET", f"{AGENT}/audit", params={**newer, "page_token": token})).json()
            newest += page["records"]
            token = page["next_page_token"]
            if not token:
                break
            # A new record moves no other one to the next page.
            await call("PATCH", AGENT, {"decay_rate": 0.9 - len(newest) / 100})
        assert newest == found[::-1]
        token = (await call("GET", f"{AGENT}/audit", params=newer)).json()["next_page_token"]
        assert await call.refused("GET", f"{AGENT}/audit", params={"page_token": token}) == "INVALID_PAGE"
        assert await call.refused("GET", f"{AGENT}/audit", params={"page_size": 0}) == "INVALID_PAGE"
        assert await call.refused("GET", f"{AGENT}/audit", params={"page_token": "x"}) == "INVALID_PAGE"
        assert await call.refused("GET", "/v1/agents/bob/audit") == "AGENT_NOT_FOUND"


async def test_the_erasure_of_a_text_can_be_proved(tmp_path: Path, caller_in: CallerIn) -> None:
    """The response names the record that proves the erasure of a text, also after a restart; no other text has one."""
    async with caller_in(tmp_path) as call:
        await told(call, SAID, "The harbour smells of tar.")
        await call("POST", f"{AGENT}/forget", {"messages": ["m1"]})
    async with caller_in(tmp_path) as call:
        found = await verified(call, SAID, f"  {SAID}\n", "The harbour smells of tar.", "")
        assert [one["erased"] for one in found["texts"]] == [True, True, False, False]
        assert found["texts"][0]["record"] == 2
        many = {"texts": ["x"] * 101}
        assert await call.refused("POST", f"{AGENT}/audit/verify", many) == "TOO_MANY_ITEMS"
        long = {"texts": ["x" * 100_001]}
        assert await call.refused("POST", f"{AGENT}/audit/verify", long) == "TEXT_TOO_LONG"
        assert await call.refused("POST", "/v1/agents/bob/audit/verify", {}) == "AGENT_NOT_FOUND"


async def test_a_changed_record_is_named(tmp_path: Path, caller_in: CallerIn) -> None:
    """A changed record breaks the chain at its position, and the checker finds it too."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT)
        for value in (0.5, 0.6, 0.7):
            await call("PATCH", AGENT, {"decay_rate": value})
    store = LmdbStore.open(tmp_path / "agents" / "ann", **MAP)

    def tamper(txn: Any) -> bytes:
        before = bytes(txn.tables.get(layout.AUDIT, layout.u64(3)))
        assert b"0.6" in before
        txn.tables.put(layout.AUDIT, layout.u64(3), before.replace(b"0.6", b"0.9"))
        return before

    before = store.write(tamper)
    assert [(one.table, one.key) for one in check_store(store)] == [("audit", "3")]
    store.close()
    context = caller_in(tmp_path)
    call = await context.__aenter__()
    found = await verified(call)
    assert (found["intact"], found["broken_record"], found["records"]) == (False, 3, 2) and found["problem"]
    await call("POST", f"{AGENT}/close")
    store = LmdbStore.open(tmp_path / "agents" / "ann", **MAP)
    store.write(lambda txn: txn.tables.put(layout.AUDIT, layout.u64(3), before))  # type: ignore[attr-defined]
    store.close()
    assert (await verified(call))["intact"]
    await context.__aexit__(None, None, None)


async def test_an_erased_agent_is_recorded_outside_its_directory(tmp_path: Path, caller_in: CallerIn) -> None:
    """The response names the record. Only that record remains of the agent, and it proves the erased texts."""
    async with caller_in(tmp_path) as call:
        await told(call, SAID, "我外婆住在青岛。")
        answer = (await call("DELETE", AGENT)).json()
        assert answer["erased"] and answer["record_number"] == 1
        await told(call, "Begun anew.")
        assert [one["action"] for one in await records(call)] == ["created"]
    check_last_traces(tmp_path, answer["record_hash"])


def check_last_traces(root: Path, record_hash: str) -> None:
    """Check that the record exists and that no file contains a word of the agent."""
    data = DataDirectory(root, initial_map_bytes=1 << 20, max_map_bytes=1 << 28)
    [record] = records_of(data.erased)
    assert record.hash.hex() == record_hash and '"agent_id":"ann"' in record.text
    assert data.erased.held(1, [SAID]) == [True] and data.erased.held(1, ["我外婆住在青岛。"]) == [True]
    assert data.erased.held(1, ["Begun anew."]) == [False]
    for path in (one for one in root.rglob("*") if one.is_file()):
        content = path.read_bytes()
        assert b"Clara" not in content and "青岛".encode() not in content, path


async def test_a_replaced_agent_is_recorded(tmp_path: Path, caller_in: CallerIn) -> None:
    """A restore over an agent is recorded in its new log, with the end of the replaced log.

    The log of erased agents records it as an erasure, with proofs of the old texts.
    """
    async with caller_in(tmp_path) as call:
        await told(call, SAID)
        content = await call.download(f"{AGENT}/backup")
        lines = await call.download(f"{AGENT}/export")
        for number, (form, sent) in enumerate((("backup", content), ("export", lines)), 1):
            await told(call, f"Secret number {number}.")
            await call("PATCH", AGENT, {"decay_rate": 0.9 - number / 10})
            *_, last = await records(call)
            assert (await call.upload(f"{AGENT}/restore", sent, replace=True)).status_code == 200
            *_, fresh = await records(call)
            assert (fresh["action"], fresh["actor"]) == ("restored", "-") and fresh["at"] > 0
            assert fresh["details"] == {
                "form": form,
                "replaced_records": last["number"],
                "replaced_record": last["record_hash"],
            }
            assert (await verified(call))["intact"]
            log = call.service.fleet.data.erased
            found = line_of(list(records_of(log))[-1])
            assert found is not None and (found.number, found.action, found.agent_id) == (
                number,
                "replaced",
                "ann",
            )
            assert (found.details["records"], found.details["last_record"]) == (
                last["number"],
                last["record_hash"],
            )
            assert log.held(number, [f"Secret number {number}."]) == [True] and log.held(number, [SAID]) == [
                True
            ]
            assert found.at == fresh["at"]
        assert [one["action"] for one in await records(call)] == ["restored"], "an export brings no log along"
        assert [path.name for path in (tmp_path / "agents").iterdir()] == ["ann"]


async def test_a_restored_or_imported_agent_records_its_origin(tmp_path: Path, caller_in: CallerIn) -> None:
    """The latest record of an agent is its restore after an erasure, or its import as a new agent."""
    async with caller_in(tmp_path) as call:
        await told(call, SAID)
        content, lines = await call.download(f"{AGENT}/backup"), await call.download(f"{AGENT}/export")
        await call("DELETE", AGENT)
        assert (await call.upload(f"{AGENT}/restore", content)).status_code == 200
        found = await records(call)
        assert [one["action"] for one in found] == ["created", "restored"]
        assert found[-1]["details"] == {"form": "backup"}
        await call.upload("/v1/agents/bea/restore", lines, rename=True)
        page = (await call("GET", "/v1/agents/bea/audit")).json()["records"]
        assert [(one["action"], one["details"]) for one in page] == [
            ("renamed", {"from": "ann"}),
            ("restored", {"form": "export"}),
        ]
        assert (await call("POST", "/v1/agents/bea/audit/verify", {})).json()["intact"]
        assert len(list(records_of(call.service.fleet.data.erased))) == 1


async def test_the_key_that_replaces_an_agent_is_recorded(tmp_path: Path) -> None:
    """Both logs name the key that restored the agent."""
    async with (
        service_in(tmp_path, embedding={"model": "off"}) as service,
        rest_in(tmp_path / "other") as call,
    ):
        await told(call, SAID)
        content = await call.download(f"{AGENT}/backup")
        await tell(service, "ann", SAID)

        async def pieces() -> AsyncIterator[bytes]:
            yield content

        with acting("key7"):
            await restore_agent(service, RestoreAgentRequest(agent_id="ann", replace=True), pieces())
        [replaced] = records_of(service.fleet.data.erased)
        async with service.fleet.using(AgentId("ann")) as agent:
            store = agent.workspace.store
            *_, fresh = await agent.run(lambda: store.read(lambda txn: list(txn.audit.records())))
    assert [json.loads(one.text)["actor"] for one in (replaced, fresh)] == ["key7"] * 2


async def test_an_interrupted_erasure_is_recorded_once(tmp_path: Path) -> None:
    """A start finishes an interrupted erasure, with one record, whether or not the first one was written."""
    for when in ("before the record", "after the record"):
        root = tmp_path / when.replace(" ", "-")
        async with rest_in(root) as call:
            await told(call, SAID)
        data = DataDirectory(root, initial_map_bytes=1 << 20, max_map_bytes=1 << 28)
        data.acquire()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                data._replacement,
                "_finish_deletion",
                (lambda doomed: None) if when == "before the record" else partial(tells_and_dies, data),
            )
            with pytest.raises((AssertionError, KeyboardInterrupt)):
                data.erase(AgentId("ann"), AuditEntry(5, "key1", "agent_erased", {}))
        data.release()
        assert [one.name for one in (root / "agents").iterdir()] == [".erasing-ann"]
        data.acquire()
        [record] = records_of(data.erased)
        assert (
            '"actor":"key1"' in record.text
            and '"at":5' in record.text
            and data.erased.held(1, [SAID]) == [True]
        )
        assert list((root / "agents").iterdir()) == []
        data.release()


def tells_and_dies(data: DataDirectory, doomed: Path) -> None:
    data._replacement._log(doomed, "ann")
    raise KeyboardInterrupt


async def test_a_failed_erasure_can_be_repeated(tmp_path: Path) -> None:
    """An interrupted erasure hides the agent. A repetition finishes it, with one record of the first caller."""
    async with service_in(tmp_path, embedding={"model": "off"}) as service:
        await tell(service, "ann", SAID)
        await settle(service, "ann")
        # The proofs of the record cannot be written there.
        (tmp_path / "audit" / "1.proofs").mkdir(parents=True)
        with acting("key7"), pytest.raises(Unavailable):
            await service.fleet.delete_agent(AgentId("ann"))
        (tmp_path / "audit" / "1.proofs").rmdir()
        assert [path.name for path in service.fleet.data.agents.iterdir()] == [".erasing-ann"]
        with pytest.raises(NotFound):
            async with service.fleet.using(AgentId("ann")):
                pass
        record = await service.fleet.delete_agent(AgentId("ann"))
        assert json.loads(record.text)["actor"] == "key7" and service.fleet.data.erased.held(1, [SAID]) == [
            True
        ]
        assert list(service.fleet.data.agents.iterdir()) == []
        assert len(list(records_of(service.fleet.data.erased))) == 1
        with pytest.raises(NotFound):
            await service.fleet.delete_agent(AgentId("ann"))


async def test_the_caller_is_named_where_one_is_known(tmp_path: Path) -> None:
    """A record names the caller that the access layer identified, also when the agent is created."""
    async with service_in(tmp_path, embedding={"model": "off"}) as service:
        with acting("key7"):
            await tell(service, "ann", SAID)
            await settle(service, "ann")
            await batches.compress(service, batches.CompressRequest(agent_id="ann", passes=1))
            await memories.delete_node(service, NodeRequest(agent_id="ann", node_id="n1"))
        async with service.fleet.using(AgentId("ann")) as agent:
            store = agent.workspace.store
            found = await agent.run(lambda: store.read(lambda txn: list(txn.audit.records())))
    assert [json.loads(one.text)["actor"] for one in found] == ["key7"] * 3
