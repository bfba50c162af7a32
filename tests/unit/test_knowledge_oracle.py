"""The oracle of statements on examples that were worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from ebbtide.memory.slot_names import slot_of
from ebbtide.memory.values import compare
from ebbtide.records import Source
from ebbtide.statements import Assertion, Ruling
from tests.support.knowledge.oracle import DAY_MS, Oracle, Rules, confidence, priority

ANN, ANNA = 1, 2
RULES = Rules(
    compare=lambda first, second, slot: compare(first, second),
    cardinality=lambda slot: slot_of(slot).cardinality,
    is_lasting=lambda slot: slot_of(slot).is_lasting,
)
NOW = 99


def at(day: int) -> int:
    return 19_000 * DAY_MS + day * DAY_MS


class Told:
    """An oracle that gets one entry a day; statement and entry have the number of the day."""

    def __init__(self) -> None:
        self.oracle = Oracle(RULES)
        self.day = 0

    def say(self, value: str, slot: str = "residence", *, since: int | None = None, **fields: Any) -> int:
        self.day += 1
        given: dict[str, Any] = {
            "entry": self.day,
            "statement": self.day,
            "subject": ANN,
            "slot": slot,
            "object": value,
            "source": Source(self.day, 0, 1),
            "told_at_ms": at(self.day),
            "known_at_ms": at(self.day),
            "since_ms": None if since is None else at(since),
        }
        self.oracle.add([Assertion(**{**given, **fields})])
        return self.day

    def rule(self, kind: Any, target: int, other: int = 0, **fields: Any) -> int:
        self.day += 1
        self.oracle.add([Ruling(self.day, kind, target, at(self.day), other=other, **fields)])
        return self.day

    def values(
        self, as_of: int = NOW, known_at: int = NOW, slot: str = "residence", subject: int = ANN
    ) -> list[str]:
        found = self.oracle.in_force(subject, slot, at(as_of), at(known_at))
        return [each.first.object for each in found]

    def conflicts(self, as_of: int = NOW, known_at: int = NOW) -> set[frozenset[int]]:
        return self.oracle.conflicts(at(as_of), at(known_at))


@pytest.mark.parametrize(("old", "new"), [("Lisbon", "Porto"), ("里斯本", "波尔图")])
def test_a_change_ends_the_old_value_when_it_starts(old: str, new: str) -> None:
    """A change ends the old value when it starts."""
    told = Told()
    told.say(old)
    told.say("tea", "likes")
    told.say(new, reports_change=True)
    assert told.values() == [new]
    assert told.values(as_of=2) == [old]
    assert told.values(as_of=3) == [new]
    assert told.values(known_at=2) == [old]
    assert told.values(as_of=0) == []
    assert not told.conflicts()
    assert [(each.state, each.since, each.until) for each in told.oracle.history(1, at(NOW))] == [
        ("superseded", at(1), at(3)),
        ("current", at(3), None),
    ]


@pytest.mark.parametrize(("old", "new"), [("Lisbon", "Porto"), ("里斯本", "波尔图")])
def test_a_different_value_without_a_change_is_contested(old: str, new: str) -> None:
    """A different value without a change is contested."""
    told = Told()
    told.say(old)
    told.say(new)
    assert told.values() == [old, new]
    assert told.conflicts() == {frozenset({1, 2})}
    assert not told.conflicts(as_of=1)
    assert not told.conflicts(known_at=1)


def test_a_change_that_is_reported_late_ends_when_the_later_value_starts() -> None:
    """A change that is reported late ends when the later value starts."""
    told = Told()
    told.say("Porto", since=20)
    told.say("里斯本", since=10, reports_change=True)
    assert told.values(as_of=15) == ["里斯本"]
    assert told.values(as_of=20) == ["Porto"]
    assert told.values(as_of=15, known_at=1) == []


def test_news_of_a_change_end_what_was_only_observed() -> None:
    """News of a change end what was only observed, unless it was observed later or the change is a year old."""
    told = Told()
    told.say("Lisbon", told_at_ms=at(50))
    told.say("Porto", told_at_ms=at(51), since=20, reports_change=True)
    assert told.values() == told.values(as_of=50) == ["Porto"]
    assert [(each.state, each.since, each.until) for each in told.oracle.history(1, at(NOW))] == [
        ("superseded", at(20), at(20)),
        ("current", at(20), None),
    ]
    for fields in ({"told_at_ms": at(49), "since": 20}, {"told_at_ms": at(51), "since": -400}):
        told = Told()
        told.say("Lisbon", told_at_ms=at(50))
        told.say("Porto", reports_change=True, **fields)
        assert (told.values(as_of=30), told.values()) == (["Porto"], ["Lisbon"])


@pytest.mark.parametrize("fields", [{"modality": "reported"}, {"trust": 0.4}])
def test_hearsay_retires_nothing(fields: dict[str, Any]) -> None:
    """Hearsay retires nothing."""
    told = Told()
    told.say("Lisbon")
    told.say("Porto", reports_change=True, **fields)
    assert told.values() == ["Lisbon", "Porto"]
    assert told.conflicts() == {frozenset({1, 2})}


def test_a_plan_retires_and_contests_nothing() -> None:
    """A plan retires and contests nothing."""
    told = Told()
    told.say("Lisbon")
    told.say("波尔图", reports_change=True, modality="planned")
    assert told.values() == ["Lisbon", "波尔图"]
    assert not told.conflicts()


def test_the_same_value_is_evidence_and_a_narrower_one_stays() -> None:
    """The same value is evidence and a narrower one stays."""
    told = Told()
    told.say("上海", confidence=0.8)
    told.say("上海", confidence=0.5)
    told.say("上海浦东", reports_change=True)
    assert told.values() == ["上海", "上海浦东"]
    assert not told.conflicts()
    [first, _] = told.oracle.in_force(ANN, "residence", at(NOW), at(NOW))
    assert [each.entry for each in first.said] == [1, 2]
    assert confidence(first) == pytest.approx(0.9)
    told.oracle.erase([1])
    [first, _] = told.oracle.in_force(ANN, "residence", at(NOW), at(NOW))
    assert (first.statement, first.since, confidence(first)) == (2, at(2), 0.5)


def test_confidence_has_a_bound_and_counts_messages() -> None:
    """Confidence has a bound and counts messages."""
    told = Told()
    told.say("上海", confidence=0.9)
    told.say("上海", confidence=0.95, source=Source(1, 5, 1))
    told.say("上海", confidence=0.95)
    [version] = told.oracle.in_force(ANN, "residence", at(NOW), at(NOW))
    assert confidence(version) == 0.99
    told = Told()
    told.say("上海", confidence=1.0)
    told.say("上海", confidence=0.9)
    assert confidence(told.oracle.in_force(ANN, "residence", at(NOW), at(NOW))[0]) == 1.0


def test_a_known_value_that_replaces_another_one_ends_it() -> None:
    """A contested pair is settled; a value of a slot with few values ends when it was replaced."""
    told = Told()
    told.say("Lisbon")
    told.say("Porto")
    told.say("Porto", replaces=1, modality="reported")
    assert told.conflicts() == {frozenset({1, 2})}
    told.say("Porto", replaces=1)
    assert told.values() == told.values(as_of=2) == ["Porto"]
    assert told.values(as_of=1) == ["Lisbon"]
    assert not told.conflicts()
    told = Told()
    told.say("Acme", "employer")
    told.say("Beta", "employer")
    told.say("Beta", "employer", replaces=1)
    assert told.values(as_of=2, slot="employer") == ["Acme", "Beta"]
    assert told.values(slot="employer") == ["Beta"]


def test_few_and_many() -> None:
    """Few and many."""
    told = Told()
    told.say("Acme", "employer")
    told.say("华为", "employer")
    assert told.values(slot="employer") == ["Acme", "华为"]
    told.say("Beta", "employer", reports_change=True)
    assert told.values(slot="employer") == ["Beta"]
    told.say("tea", "likes")
    told.say("咖啡", "likes", reports_change=True)
    assert told.values(slot="likes") == ["tea", "咖啡"]
    assert not told.conflicts()


def test_a_negation() -> None:
    """A negation contradicts, or ends the same value if it reports a change, also where many values are true."""
    for has_cue, value, conflicts in (
        (False, "tea", {frozenset({1, 2})}),
        (True, "green tea", {frozenset({1, 2})}),
        (True, "tea", set[frozenset[int]]()),
    ):
        told = Told()
        told.say("tea", "likes")
        told.say(value, "likes", negated=True, reports_change=has_cue)
        assert told.conflicts() == conflicts
    assert [one.first.negated for one in told.oracle.in_force(ANN, "likes", at(NOW), at(NOW))] == [True]
    told = Told()
    told.say("Lisbon")
    told.say("Lisbon", negated=True, reports_change=True)
    told.say("Porto")
    [first, second] = told.oracle.in_force(ANN, "residence", at(NOW), at(NOW))
    assert (first.first.negated, second.first.object) == (True, "Porto")
    assert not told.conflicts()
    assert told.values(as_of=1) == ["Lisbon"]


def test_an_age_always_changes() -> None:
    """An age always changes."""
    told = Told()
    told.say("31", "age")
    told.say("32", "age")
    assert told.values(slot="age") == ["32"]


def test_corrections_and_retractions_can_be_undone() -> None:
    """Corrections and retractions can be undone."""
    told = Told()
    told.say("Lisbon")
    told.say("Porto", reports_change=True)
    retraction = told.rule("retract", 2)
    assert told.values() == ["Lisbon"]
    assert told.values(known_at=2) == ["Porto"]
    assert [each.state for each in told.oracle.history(1, at(NOW))] == ["current", "retracted"]
    told.say("Porto", statement=2)
    assert told.conflicts() == {frozenset({1, 2})}
    told.oracle.erase([told.day])
    undo = told.rule("undo", retraction)
    assert told.values() == ["Porto"]
    told.rule("undo", undo)
    assert told.values() == ["Lisbon"]
    correction = told.rule("correct", 1, 8)
    assert told.values() == []
    assert [each.state for each in told.oracle.history(1, at(NOW))] == ["corrected", "retracted"]
    told.oracle.erase([correction])
    assert told.values() == ["Lisbon"]


def test_an_undone_correction_was_never_made() -> None:
    """The corrected statement is current again, and the one that the correction made was never true."""
    told = Told()
    told.say("Lisbon")
    correction = told.rule("correct", 1, 3)
    told.say("Porto")
    assert told.values() == ["Porto"]
    undo = told.rule("undo", correction)
    assert told.values() == ["Lisbon"]
    assert [each.state for each in told.oracle.history(1, at(NOW))] == ["current", "retracted"]
    told.rule("undo", undo)
    assert told.values() == ["Porto"]


def test_what_an_erased_statement_retired_is_in_force_again() -> None:
    """A statement that an erased one ended is current again."""
    told = Told()
    told.say("Lisbon")
    told.say("Porto", reports_change=True)
    told.oracle.erase([2])
    assert told.values() == told.values(known_at=2) == ["Lisbon"]


def test_a_conflict_is_settled_for_good_or_until_undone() -> None:
    """A conflict is settled for good or until undone."""
    told = Told()
    told.say("Lisbon")
    told.say("Porto")
    settled = told.rule("settle", 2, 1)
    assert told.values() == ["Porto"]
    assert told.values(as_of=1) == ["Lisbon"]
    assert not told.conflicts()
    told.rule("undo", settled)
    assert told.conflicts() == {frozenset({1, 2})}
    told.rule("settle", 1, 2)
    assert told.values() == ["Lisbon"]
    told.say("Porto")
    assert told.conflicts() == {frozenset({1, 6})}


def test_a_conflict_settles_itself_after_two_further_messages_for_one_side() -> None:
    """A conflict settles itself after two further messages for one side."""
    told = Told()
    told.say("Lisbon")
    told.say("Porto")
    told.say("Porto", source=Source(2, 5, 1))
    told.say("Porto")
    told.say("Porto", modality="reported")
    assert told.conflicts() == {frozenset({1, 2})}
    told.say("Porto")
    assert told.values() == ["Porto"]
    assert told.values(as_of=1) == ["Lisbon"]
    assert told.values(known_at=5) == ["Lisbon", "Porto"]


def test_a_conflict_in_which_both_sides_are_said_again_stays() -> None:
    """A conflict in which both sides are said again stays."""
    told = Told()
    told.say("里斯本")
    told.say("波尔图")
    told.say("里斯本")
    told.say("波尔图")
    told.say("波尔图")
    told.say("波尔图")
    assert told.conflicts() == {frozenset({1, 2})}


def test_a_named_statement_is_replaced_in_any_slot() -> None:
    """A named statement is replaced in any slot."""
    told = Told()
    told.say("tea", "likes")
    told.say("咖啡", "likes", replaces=1)
    assert told.values(slot="likes") == ["咖啡"]
    assert told.values(slot="likes", as_of=1) == ["tea"]


def test_a_late_change_meets_the_state_of_its_time() -> None:
    """A late change meets the state of its time."""
    told = Told()
    told.say("Lisbon", since=0)
    told.say("Porto", since=20, reports_change=True)
    told.say("Madrid", since=10, reports_change=True)
    assert [told.values(as_of=day) for day in (9, 10, 19, 20)] == [
        ["Lisbon"],
        ["Madrid"],
        ["Madrid"],
        ["Porto"],
    ]


def test_objects_that_are_one_entity_are_one_value() -> None:
    """Objects that are one entity are one value."""
    told = Told()
    told.say("Tom", "partner", object_entity=3)
    told.say("Thomas", "partner", object_entity=4)
    merge = told.rule("merge", 3, 4)
    assert told.values(slot="partner") == ["Tom"]
    told.rule("undo", merge)
    assert told.values(slot="partner") == ["Tom", "Thomas"]


def test_merged_entities_are_read_as_one() -> None:
    """Merged entities are read as one."""
    told = Told()
    told.say("Lisbon")
    told.say("Porto", subject=ANNA, reports_change=True)
    merge = told.rule("merge", ANN, ANNA)
    assert told.values() == told.values(subject=ANNA) == ["Porto"]
    assert told.oracle.groups(at(NOW)) == {frozenset({ANN, ANNA})}
    told.rule("merge", ANNA, 3)
    told.rule("undo", merge)
    assert told.values() == ["Lisbon"]
    assert told.oracle.groups(at(NOW)) == {frozenset({ANNA, 3})}


def test_kept_nodes_are_lasting_open_tasks_or_pinned() -> None:
    """Kept nodes are lasting open tasks or pinned."""
    told = Told()
    told.say("Lisbon")
    told.say("Porto", reports_change=True)
    told.say("tea", "likes")
    told.say("call Clara", "todo", kind="task", until_ms=at(20))
    assert told.oracle.kept(at(10), at(NOW)) == {2, 4}
    assert told.oracle.kept(at(NOW), at(NOW)) == {2}
    told.rule("pin", 3)
    assert told.oracle.kept(at(NOW), at(NOW)) == {2, 3}
    told.rule("unpin", 3)
    assert told.oracle.kept(at(NOW), at(NOW)) == {2}


def test_events_are_the_same_within_a_day() -> None:
    """Events are the same within a day."""
    told = Told()
    told.say("ran a marathon", "did", kind="event", since=1)
    told.say("ran a marathon", "did", kind="event", since=2)
    told.say("ran a marathon", "did", kind="event", since=3)
    found = told.oracle.in_force(ANN, "did", at(NOW), at(NOW))
    assert [[each.entry for each in version.said] for version in found] == [[1, 2], [3]]


def test_words_that_end_a_statement_end_it() -> None:
    """Words that end a statement end it."""
    told = Told()
    told.say("Lisbon", since=1, until_ms=at(5))
    told.say("Porto", since=6)
    assert told.values(as_of=5) == []
    assert told.values(as_of=4) == ["Lisbon"]
    assert not told.conflicts()


def test_the_priority_of_the_specification() -> None:
    """The priority of the specification."""
    assert priority(trust=1, days=0, messages=1, supports=0, contradicts=0) == pytest.approx(0.825)
    assert priority(trust=0.4, days=90, messages=2, supports=0, contradicts=1) == pytest.approx(0.4378638)
