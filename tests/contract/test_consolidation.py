"""Consolidation: on request, as a rehearsal, in the background, and its events, over every transport."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from ebbtide.clock import SystemClock
from ebbtide.errors import Exhausted
from ebbtide.fleet.consolidation import consolidation, steps
from ebbtide.ids import AgentId
from tests.contract.test_events import told
from tests.contract.test_statements import AGENT, done, says
from tests.support.callers import CALLERS, Caller, CallerIn, rest_in
from tests.support.waiting import eventually

STATEMENT_EVENTS = {
    *("StatementClosed", "ConflictFound", "ConflictSettled", "FactPromoted", "FactDemoted"),
    *("EntitiesMerged", "EntitiesSeparated", "Consolidated"),
}


@pytest.fixture(params=CALLERS)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return CALLERS[request.param]


async def news(call: Any, after: int) -> tuple[list[tuple[Any, ...]], int]:
    """Return the events about statements after a number, and the last number."""
    events = await told(call, after=after)
    found = [
        (one["kind"], one["node_id"], one["target_id"]) for one in events if one["kind"] in STATEMENT_EVENTS
    ]
    return found, events[-1]["sequence"] if events else after


async def test_every_change_of_a_statement_is_an_event_once(tmp_path: Path, caller_in: CallerIn) -> None:
    """Statements, rulings, their undoing and deletions report what they close, contest, settle and merge."""
    async with caller_in(tmp_path) as call:
        lisbon = (await says(call, "residence", "Lisbon"))["id"]
        porto = (await says(call, "residence", "Porto", content="I moved to Porto."))["id"]
        found, last = await news(call, 0)
        assert found == [("StatementClosed", lisbon, porto)]
        ruling = (await done(call, "POST", f"statements/{porto}/retract", {"reason": "a joke"}))["ruling_id"]
        found, last = await news(call, last)
        assert found == [("StatementClosed", porto, None), ("FactPromoted", lisbon, None)]
        await done(call, "DELETE", f"rulings/{ruling}")
        found, last = await news(call, last)
        assert found == [("StatementClosed", lisbon, porto), ("FactPromoted", porto, None)]

        one = (await says(call, "birthday", "1990-05-07"))["id"]
        two = (await says(call, "birthday", "1991-05-07"))["id"]
        found, last = await news(call, last)
        assert found == [("ConflictFound", one, two)]
        body = {"keep": two, "drop": one}
        ruling = (await done(call, "POST", "conflicts/resolve", body))["ruling_id"]
        found, last = await news(call, last)
        assert found == [("StatementClosed", one, two), ("ConflictSettled", two, one)]
        await done(call, "DELETE", f"rulings/{ruling}")
        found, last = await news(call, last)
        assert found == [("ConflictFound", one, two), ("FactPromoted", one, None)]
        await done(call, "DELETE", f"nodes/{two}")
        found, last = await news(call, last)
        assert found == [("ConflictSettled", one, two)]

        await says(call, "residence", "Rome", subject="Bob")
        rome = (await says(call, "residence", "Oslo", subject="Robert"))["subject_id"]
        ruling = (await done(call, "POST", "merges", {"entity": "Bob", "other": "Robert"}))["ruling_id"]
        found, last = await news(call, last)
        assert [kind for kind, *_ in found] == ["EntitiesMerged", "ConflictFound"]
        assert found[0][2] == rome
        await done(call, "DELETE", f"rulings/{ruling}")
        found, last = await news(call, last)
        assert [kind for kind, *_ in found] == ["EntitiesSeparated", "ConflictSettled"]
        wrong = (await says(call, "employer", "Acme"))["id"]
        right = (await done(call, "PATCH", f"statements/{wrong}", {"object": "Initech"}))["id"]
        assert ("StatementClosed", wrong, right) in (await news(call, last))[0]
        body = {"subject": "user", "memory_type": "fact", "topic": "employer", "object": "Initrode"}
        _, last = await news(call, last)
        await call("POST", f"{AGENT}/tools/create_memory", {"arguments": {**body, "replaces": right}})
        assert [one[:2] for one in (await news(call, last))[0]] == [("StatementClosed", right)]


async def test_erasure_reports_what_is_true_again(tmp_path: Path, caller_in: CallerIn) -> None:
    """A statement that an erased one had ended is true again, and is reported as such, without any content."""
    async with caller_in(tmp_path) as call:
        lisbon = (await says(call, "residence", "Lisbon"))["id"]
        await says(call, "residence", "Porto", content="I moved to Porto.")
        _, last = await news(call, 0)
        await done(call, "POST", "forget", {"topic": "Porto"})
        found, _ = await news(call, last)
        assert found == [("FactPromoted", lisbon, None)]
        assert "Porto" not in json.dumps(await told(call))


async def test_a_run_consolidates_new_statements_and_lists_conflicts(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """Statements are staged until a run; the response and the events have the numbers of each step."""
    async with caller_in(tmp_path) as call:
        one = await says(call, "birthday", "1990-05-07")
        two = await says(call, "birthday", "1991-05-07")
        await says(call, "过敏", "花生")
        assert one["status"] == "staged"
        _, last = await news(call, 0)
        rehearsed = await done(call, "POST", "consolidate", {"dry_run": True})
        assert await told(call, after=last) == []
        ran = await done(call, "POST", "consolidate", {})
        assert rehearsed["steps"] == ran["steps"] and rehearsed["dry_run"] is True
        steps = {one["step"]: one for one in ran["steps"]}
        assert (steps["staged"]["looked"], steps["staged"]["changed"]) == (3, 3)
        [conflict] = steps["conflicts"]["findings"]
        assert sorted(conflict["node_ids"]) == sorted([one["id"], two["id"]])
        events = await told(call, after=last)
        assert [
            (event["step"], event["looked"], event["changed"])
            for event in events
            if event["kind"] == "Consolidated"
        ] == [(name, step["looked"], step.get("changed", 0)) for name, step in steps.items()]
        found = (await done(call, "GET", "statements"))["statements"]
        assert {each["status"] for each in found} == {"consolidated"}
        later = await says(call, "pet", "a dog called Rex")
        assert later["status"] == "staged"
        again = await says(call, "过敏", "花生")
        assert again["status"] == "consolidated"


def digest_of(path: Path) -> str:
    """Return the hash of a store's file."""
    return hashlib.sha256((path / "data.mdb").read_bytes()).hexdigest()


async def test_a_rehearsal_and_an_agent_without_statements_change_no_byte(tmp_path: Path) -> None:
    """The file of a store is the same before and after a rehearsal, and after a run without statements."""
    async with rest_in(tmp_path) as call:
        await says(call, "birthday", "1990-05-07")
        await says(call, "birthday", "1991-05-07")
        await call("PUT", "/v1/agents/bob")
        for agent, body in (("ann", {"dry_run": True}), ("bob", {}), ("bob", {"dry_run": True})):
            async with call.service.fleet.using(AgentId(agent)) as opened:
                path = opened.workspace.store.path
            before = digest_of(path)
            response = await call("POST", f"/v1/agents/{agent}/consolidate", body)
            assert response.status_code == 200
            assert digest_of(path) == before
            if agent == "bob":
                assert all(step["looked"] == step["changed"] == 0 for step in response.json()["steps"])


async def is_consolidated(call: Caller) -> bool:
    """Return whether every statement is consolidated."""
    found = (await done(call, "GET", "statements"))["statements"]
    return {one["status"] for one in found} == {"consolidated"}


async def test_many_new_statements_start_a_run_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run starts by itself as soon as enough statements are staged."""
    monkeypatch.setattr(consolidation, "MAX_STAGED", 3)
    async with rest_in(tmp_path) as call:
        for value in ("chess", "go"):
            await says(call, "hobby", value)
        assert not await is_consolidated(call)
        await says(call, "hobby", "running")
        async with call.service.fleet.using(AgentId("ann")) as agent:
            await eventually(lambda: agent.workspace.consolidation.is_done(1))
        assert await is_consolidated(call)


@pytest.mark.parametrize(("interval_h", "is_due"), [(6, True), (8, False), (0, False)])
async def test_the_time_starts_a_run_when_an_agent_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interval_h: int, is_due: bool
) -> None:
    """A run is due some hours after the first statement, never with 0, and is made up for at the next opening."""
    hours, now_ms = [0], SystemClock.now_ms
    monkeypatch.setattr(SystemClock, "now_ms", lambda clock: now_ms(clock) + hours[0] * 3_600_000)
    async with rest_in(tmp_path) as call:
        await says(call, "hobby", "chess")
        await call("PATCH", AGENT, {"consolidation_interval_h": interval_h})
        for hours[0] in (5, 7):
            assert not await is_consolidated(call)
            await call("POST", f"{AGENT}/close")
        async with call.service.fleet.using(AgentId("ann")) as agent:
            if is_due:
                await eventually(lambda: agent.workspace.consolidation.is_done(1))
            assert await is_consolidated(call) is is_due


async def test_a_run_that_fails_is_tried_again_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failure the agent waits for ten minutes, and a run on request still works."""
    monkeypatch.setattr(consolidation, "MAX_STAGED", 2)
    real = steps.Conflicts.part
    failures = []

    def failing(*arguments: Any) -> Any:
        failures.append(arguments)
        if len(failures) == 1:
            raise Exhausted("full", reason="STORE_FULL")
        return real(*arguments)

    monkeypatch.setattr(steps.Conflicts, "part", failing)
    async with rest_in(tmp_path) as call:
        for value in ("chess", "go", "running"):
            await says(call, "hobby", value)
        async with call.service.fleet.using(AgentId("ann")) as agent:
            await eventually(lambda: failures)
            now_ms = SystemClock().now_ms()
            due = agent.workspace.consolidation.due_at_ms
            await eventually(lambda: (due(now_ms) or 0) > now_ms + 500_000)
        assert not await is_consolidated(call)
        await done(call, "POST", "consolidate", {})
        assert await is_consolidated(call) and len(failures) == 2
