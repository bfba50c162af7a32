"""The ledger: what is true after each row of the table of versions and contradictions, in English and Chinese."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ebbtide.memory.slot_names import SLOTS, canonical, label, slot_of
from ebbtide.memory.statements import DAY_MS, Entry, Ledger, Version
from ebbtide.memory.values import compare, reports_change, tells_of_past
from ebbtide.records import Source
from ebbtide.statements import Assertion, Ruling

ANN, ANNE = 1, 2
LATER = 1000 * DAY_MS


def says(entry: int, slot: str, value: str, day: int | None = None, **fields: Any) -> Assertion:
    """Return an assertion about Ann on a day, in a message of its own; its statement is 1 000 + its entry."""
    told_at_ms = (entry if day is None else day) * DAY_MS
    fields = {"statement": 1000 + entry, "subject": ANN, "known_at_ms": entry * DAY_MS} | fields
    return Assertion(
        entry=entry,
        slot=slot,
        object=value,
        source=Source(entry, 0, 1),
        told_at_ms=told_at_ms,
        **fields,
    )


def rules(entry: int, kind: Any, target: int, **fields: Any) -> Ruling:
    """Return a ruling that arrives on the day of its entry number."""
    return Ruling(entry=entry, kind=kind, target=target, known_at_ms=entry * DAY_MS, **fields)


def values(
    ledger: Ledger, slot: str, day: int = 999, subject: int = ANN, known: int | None = None
) -> list[str]:
    """Return the values of a slot that are true on a day, the best first."""
    replay = ledger.known(None if known is None else known * DAY_MS)
    return [one.first.object for one in replay.in_force(subject, slot, day * DAY_MS, LATER)]


def states(ledger: Ledger, statement: int) -> dict[str, str]:
    """Return the state of each value in the history of a statement."""
    replay = ledger.known()
    return {one.first.object: replay.state(one, LATER) for one in replay.history(statement)}


@pytest.mark.parametrize(("first", "second"), [("Lisbon", "Porto"), ("里斯本", "波尔图")])
def test_a_change_ends_the_value_before(first: str, second: str) -> None:
    """A different value with a cue is true from its time on; the other one was true until then."""
    ledger = Ledger([says(1, "residence", first), says(5, "residence", second, reports_change=True)])
    assert values(ledger, "residence") == [second]
    assert values(ledger, "residence", day=4) == [first]
    assert values(ledger, "residence", day=5) == [second]
    assert values(ledger, "residence", day=0) == []
    assert states(ledger, 1001) == {first: "superseded", second: "current"}
    assert [one.retired_by for one in ledger.known().history(1001)] == [1005, 0]


def test_an_equal_value_is_evidence() -> None:
    """A statement that says the same is a further source of the first one and raises its confidence."""
    ledger = Ledger([says(1, "residence", "Lisbon", confidence=0.8)])
    again = says(2, "residence", "lisbon", confidence=0.6)
    assert ledger.evidence(again) == [1001]
    ledger.apply([again])
    (version,) = ledger.known().in_force(ANN, "residence", LATER, LATER)
    assert version.statement == 1001 and version.messages == {1, 2}
    assert version.confidence == pytest.approx(1 - 0.2 * 0.4)


@pytest.mark.parametrize(("wide", "narrow"), [("销售", "销售经理"), ("engineer", "software engineer")])
def test_a_narrower_value_ends_no_wider_one(wide: str, narrow: str) -> None:
    """Both are true, the narrower first, with a cue too."""
    for order in ((wide, narrow), (narrow, wide)):
        entries = [says(n, "occupation", each, reports_change=True) for n, each in enumerate(order, 1)]
        assert values(Ledger(entries), "occupation") == [narrow, wide]


def test_a_change_that_is_reported_late_was_true_before() -> None:
    """A value from an earlier time with a cue was true until the known one began."""
    late = says(6, "residence", "Lisbon", since_ms=2 * DAY_MS, reports_change=True)
    ledger = Ledger([says(5, "residence", "Porto", since_ms=5 * DAY_MS), late])
    assert values(ledger, "residence") == ["Porto"]
    assert values(ledger, "residence", day=3) == ["Lisbon"]
    assert values(ledger, "residence", day=3, known=5) == []


@pytest.mark.parametrize("slot", ["residence", "employer"])
def test_news_of_a_change_end_what_was_only_observed(slot: str) -> None:
    """A change that is said later ends an observation, though it began before; the history shows the order."""
    ledger = Ledger(
        [says(600, slot, "Lisbon"), says(601, slot, "Porto", reports_change=True, since_ms=DAY_MS * 400)]
    )
    assert values(ledger, slot) == ["Porto"]
    assert values(ledger, slot, day=600) == ["Porto"]
    assert values(ledger, slot, known=600) == ["Lisbon"]
    found = ledger.known().history(1600)
    assert [(one.first.object, one.since_ms, one.until_ms) for one in found] == [
        ("Lisbon", DAY_MS * 400, DAY_MS * 400),
        ("Porto", DAY_MS * 400, None),
    ]
    assert found[0].retired_by == 1601


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"since_ms": DAY_MS * 590}, {}),
        ({}, {"day": 599}),
        ({}, {"since_ms": DAY_MS * 100}),
    ],
    ids=["its beginning is stated", "it was said after the change", "the change is long ago"],
)
def test_a_change_that_is_no_news_is_history(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Such a change ends where the other statement begins, whatever the order of arrival."""
    fields = {"reports_change": True, "since_ms": DAY_MS * 400} | new
    ledger = Ledger([says(600, "residence", "Lisbon", **old), says(601, "residence", "Porto", **fields)])
    assert values(ledger, "residence") == ["Lisbon"]
    assert values(ledger, "residence", day=500) == ["Porto"]


@pytest.mark.parametrize("slot", ["residence", "employer"])
@pytest.mark.parametrize(
    ("told", "until"), [(300, 400), (500, 400), (700, None)], ids=["before", "after the change", "later"]
)
def test_a_message_that_is_imported_late_meets_the_change(slot: str, told: int, until: int | None) -> None:
    """A change ends the statements that were said before it, as in order of arrival, and none that were said later."""
    change = says(601, slot, "Porto", day=600, reports_change=True, since_ms=DAY_MS * 400)
    ledger = Ledger([change, says(602, slot, "Lisbon", day=told)])
    late = next(one for one in ledger.known().history(1602) if one.statement == 1602)
    assert late.until_ms == (None if until is None else DAY_MS * until)
    assert late.retired_by == (0 if until is None else 1601)
    assert ("Lisbon" in values(ledger, slot, day=350)) == (told == 300)
    assert "Porto" in values(ledger, slot)


def test_news_that_end_before_an_observation_leave_it() -> None:
    """A change that a later stated one ends does not reach the observations after that."""
    ledger = Ledger(
        [
            says(600, "residence", "Rome", since_ms=DAY_MS * 500),
            says(601, "residence", "Lisbon"),
            says(602, "residence", "Porto", reports_change=True, since_ms=DAY_MS * 400),
        ]
    )
    assert values(ledger, "residence", day=450) == ["Porto"]
    assert sorted(values(ledger, "residence")) == ["Lisbon", "Rome"]


def test_without_a_cue_a_few_values_are_true_together() -> None:
    """In a slot of few values both are true, the newer first."""
    ledger = Ledger([says(1, "employer", "Acme"), says(2, "employer", "Globex")])
    assert values(ledger, "employer") == ["Globex", "Acme"]
    assert ledger.known().conflicts(LATER, LATER) == []


def test_without_a_cue_one_value_is_contested() -> None:
    """In a slot of one value both are true and contested, until a ruling or a cue decides."""
    entries: list[Entry] = [says(1, "birthday", "May 7"), says(2, "birthday", "May 8")]
    ledger = Ledger(entries)
    (conflict,) = ledger.known().conflicts(LATER, LATER)
    assert {conflict.first.statement, conflict.second.statement} == {1001, 1002}
    assert states(ledger, 1001) == {"May 7": "contested", "May 8": "contested"}
    ledger.apply([rules(3, "settle", 1001, other=1002)])
    assert values(ledger, "birthday") == ["May 7"]
    assert ledger.known().conflicts(LATER, LATER) == []
    assert states(ledger, 1001) == {"May 7": "current", "May 8": "superseded"}
    ledger.apply([rules(4, "undo", 3)])
    assert len(ledger.known().conflicts(LATER, LATER)) == 1


def test_the_speaker_settles_a_conflict_by_repetition() -> None:
    """Two further messages that say one value settle it, unless one says the other value."""
    entries: list[Entry] = [says(1, "birthday", "May 7"), says(2, "birthday", "May 8")]
    twice: list[Entry] = [says(3, "birthday", "May 7"), says(4, "birthday", "May 7")]
    assert values(Ledger([*entries, *twice]), "birthday") == ["May 7"]
    assert len(values(Ledger([*entries, *twice[:1]]), "birthday")) == 2
    disputed = [
        *entries,
        says(3, "birthday", "May 8"),
        says(4, "birthday", "May 7"),
        says(5, "birthday", "May 7"),
    ]
    assert len(values(Ledger(disputed), "birthday")) == 2
    reported = [says(n, "birthday", "May 7", modality="reported", trust=0.4) for n in (3, 4)]
    assert len(values(Ledger([*entries, *reported]), "birthday")) == 2


def test_a_change_that_says_a_value_again_settles_a_conflict() -> None:
    """ "I moved to Porto" ends Lisbon, also if Porto was contested; a value that was said later stays contested."""
    entries: list[Entry] = [says(1, "residence", "Lisbon"), says(2, "residence", "Porto")]
    moved = says(3, "residence", "Porto", reports_change=True)
    assert values(Ledger([*entries, moved]), "residence") == ["Porto"]
    later = says(9, "residence", "Faro")
    late = says(10, "residence", "Porto", day=3, reports_change=True)
    assert set(values(Ledger([*entries, later, late]), "residence")) == {"Porto", "Faro"}


def test_a_value_that_is_said_after_a_denial_without_a_value_ends_it() -> None:
    """A person without an employer who says where they work has one; a value from before stays contested."""
    none = says(5, "employer", "", negated=True)
    works = says(6, "employer", "Globex")
    arrives_late = says(7, "employer", "", day=5, negated=True)
    for entries in ([none, works], [works, arrives_late]):
        assert values(Ledger(entries), "employer") == ["Globex"]
        [denial] = [one for one in Ledger(entries).known().history(works.statement) if one.first.negated]
        assert (denial.since_ms, denial.until_ms) == (5 * DAY_MS, 6 * DAY_MS)
    before = says(6, "employer", "Globex", since_ms=2 * DAY_MS)
    assert len(values(Ledger([none, before]), "employer")) == 2
    reported = says(6, "employer", "Globex", modality="reported", trust=0.4)
    assert len(values(Ledger([none, reported]), "employer")) == 2


def test_the_opposite_is_contested_or_a_change() -> None:
    """A denial without a cue is contested; with one it ends the value, from then on."""
    likes = says(1, "likes", "jazz")
    denied = Ledger([likes, says(2, "likes", "jazz", negated=True)])
    assert set(states(denied, 1001).values()) == {"contested"}
    ended = Ledger([likes, says(2, "likes", "jazz", negated=True, reports_change=True)])
    assert states(ended, 1001) == {"jazz": "current"}
    assert [one.retired_by for one in ended.known().history(1001)] == [1002, 0]
    assert not ended.known().in_force(ANN, "likes", DAY_MS, LATER)[0].first.negated
    home = says(1, "residence", "Lisbon")
    assert len(values(Ledger([home, says(2, "residence", "Lisbon", negated=True)]), "residence")) == 2
    left = Ledger([home, says(2, "residence", "Lisbon", negated=True, reports_change=True)])
    assert [one.first.negated for one in left.known().in_force(ANN, "residence", LATER, LATER)] == [True]
    other = Ledger([home, says(2, "residence", "Porto", negated=True)])
    assert set(states(other, 1001).values()) == {"current"}


@pytest.mark.parametrize(
    ("old", "new", "fields", "expected"),
    [
        ("dog", "a dog", {"negated": True}, "superseded"),
        ("狗", "一只狗", {"negated": True}, "superseded"),
        ("dog", "cat", {"negated": True}, "current"),
        ("dog named Rex", "dog", {"negated": True}, "contested"),
        ("dog", "dog named Rex", {}, "current"),
        ("dog", "cat", {}, "current"),
        ("dog", "dog", {"negated": True, "modality": "reported"}, "contested"),
        ("dog", "dog", {"negated": True, "since_ms": -DAY_MS * 900}, "current"),
    ],
)
def test_where_many_values_are_true_only_their_denial_is_a_change(
    old: str, new: str, fields: dict[str, Any], expected: str
) -> None:
    """News that deny the same value end it. Other values stay, and so does what began after an old story."""
    found = Ledger([says(1, "pet", old), says(2, "pet", new, reports_change=True, **fields)]).known()
    version = found.version_of(1001)
    assert version is not None and found.state(version, LATER) == expected


def test_a_denied_value_may_be_true_again() -> None:
    """A message from before the denial meets it, and a value that is said again later is contested."""
    gone = says(2, "pet", "dog", day=20, negated=True, reports_change=True)
    late = Ledger([gone, says(3, "pet", "dog", day=10)]).known()
    version = late.version_of(1003)
    assert version is not None and (version.until_ms, version.retired_by) == (20 * DAY_MS, 1002)
    again = Ledger([says(1, "pet", "dog", day=10), gone, says(3, "pet", "dog", day=30)])
    assert [one.first.entry for one in again.known().in_force(ANN, "pet", 15 * DAY_MS, LATER)] == [1]
    assert len(again.known().conflicts(LATER, LATER)) == 1


@pytest.mark.parametrize("fields", [{"modality": "reported"}, {"trust": 0.4}, {"modality": "planned"}])
def test_a_report_or_a_plan_ends_nothing(fields: dict[str, Any]) -> None:
    """The words of others or of the assistant, and plans, leave the known value true."""
    new = says(2, "residence", "Porto", reports_change=True, **fields)
    assert "Lisbon" in values(Ledger([says(1, "residence", "Lisbon"), new]), "residence")
    named = says(2, "likes", "rock", replaces=1001, **fields)
    both = ["jazz", "rock"] if fields.get("modality") == "planned" else ["rock", "jazz"]
    assert values(Ledger([says(1, "likes", "jazz"), named]), "likes") == both


def test_a_named_statement_is_replaced_in_any_slot() -> None:
    """`replaces` ends the statement that it names, where many values may be true too."""
    entries = [says(1, "pet", "Rex"), says(2, "pet", "Tom"), says(3, "pet", "Bella", replaces=1001)]
    assert values(Ledger(entries), "pet") == ["Bella", "Tom"]


def test_an_age_ends_the_age_before() -> None:
    """A new age needs no cue."""
    assert values(Ledger([says(1, "age", "34"), says(300, "age", "三十五岁")]), "age") == ["三十五岁"]


def test_withdrawn_statements_were_never_true() -> None:
    """A retracted or corrected statement is only in the history; the statements that it ended are true again."""
    entries: list[Entry] = [
        says(1, "residence", "Lisbon"),
        says(2, "residence", "Porto", reports_change=True),
        rules(3, "retract", 1002),
    ]
    ledger = Ledger(entries)
    assert values(ledger, "residence") == ["Lisbon"]
    assert values(ledger, "residence", known=2) == ["Porto"]
    assert states(ledger, 1001) == {"Lisbon": "current", "Porto": "retracted"}
    corrected = says(4, "residence", "Braga", statement=1004)
    ledger.apply([corrected, rules(5, "correct", 1001, other=1004)])
    assert values(ledger, "residence") == ["Braga"]
    assert states(ledger, 1001)["Lisbon"] == "corrected"


def test_an_undone_correction_was_never_made() -> None:
    """The corrected statement is true again, its correction was never true, and later assertions of the value stay."""
    entries: list[Entry] = [
        says(1, "residence", "Lisbon"),
        rules(2, "correct", 1001, other=1003),
        says(3, "residence", "Porto", statement=1003),
        rules(4, "correct", 1003, other=1005),
        says(5, "residence", "Braga", statement=1005),
    ]
    ledger = Ledger(entries)
    ledger.apply([rules(6, "undo", 4)])
    assert values(ledger, "residence") == ["Porto"]
    ledger.apply([rules(7, "undo", 6), rules(8, "undo", 2)])
    assert values(ledger, "residence") == ["Lisbon"]
    assert states(ledger, 1001) == {"Lisbon": "current", "Porto": "retracted", "Braga": "retracted"}
    assert values(ledger, "residence", known=5) == ["Braga"]
    ledger.apply([rules(9, "undo", 8), says(10, "residence", "Braga", statement=1005), rules(11, "undo", 2)])
    assert sorted(values(ledger, "residence")) == ["Braga", "Lisbon"]


def test_a_merge_joins_two_entities_and_can_be_undone() -> None:
    """Statements about merged entities are replayed together, and apart again after the merge is undone."""
    entries: list[Entry] = [
        says(1, "residence", "Lisbon"),
        says(2, "residence", "Porto", subject=ANNE, reports_change=True),
    ]
    ledger = Ledger(entries)
    ledger.apply([rules(3, "merge", ANN, other=ANNE)])
    assert values(ledger, "residence") == values(ledger, "residence", subject=ANNE) == ["Porto"]
    assert values(ledger, "residence", known=2) == ["Lisbon"]
    assert ledger.known().all_merged_with([ANNE, 99]) == {ANN, ANNE, 99}
    ledger.apply([rules(4, "undo", 3)])
    assert ledger.known().all_merged_with([ANNE, 99]) == {ANNE, 99}
    assert (values(ledger, "residence"), values(ledger, "residence", subject=ANNE)) == (["Lisbon"], ["Porto"])


def test_statements_in_lasting_slots_open_tasks_and_pins_are_kept() -> None:
    """Only what is true now in a lasting slot, an open task, or a pinned statement is kept."""
    entries: list[Entry] = [
        says(1, "residence", "Lisbon"),
        says(2, "residence", "Porto", reports_change=True),
        says(3, "likes", "jazz"),
        says(4, "likes", "tea"),
        rules(5, "pin", 1004),
        says(6, "reminder", "Call Bo", kind="task"),
        says(7, "reminder", "Buy milk", kind="task", until_ms=8 * DAY_MS),
        says(8, "allergy", "nuts"),
    ]
    ledger = Ledger(entries)
    assert ledger.known().kept(LATER) == {1002, 1004, 1006, 1008}
    ledger.apply([rules(9, "unpin", 1004)])
    assert 1004 not in ledger.known().kept(LATER)


def test_the_priority_is_that_of_the_formula() -> None:
    """Trust, age, number of messages and votes, with the weights of the knowledge model."""
    ledger = Ledger([says(1, "likes", "tea", trust=0.8), rules(2, "vote", 1001, value=1, author="ann")])
    (version,) = ledger.known().in_force(ANN, "likes", LATER, LATER)
    expected = 0.35 * 0.8 + 0.30 * 2.718281828459045 ** (-999 / 90) + 0.25 * 0.5 + 0.10 * 2 / 3
    assert ledger.known().priority(version, LATER) == pytest.approx(expected)
    ledger.apply([rules(3, "vote", 1001, value=-1, author="ann")])
    assert ledger.known().votes(1001) == (0, 1)


def described(version: Version) -> tuple[Any, ...]:
    """Return what two equal versions have in common."""
    rivals = sorted(one.first.entry for one in version.rivals)
    entries = tuple(one.entry for one in version.assertions)
    return entries, version.since_ms, version.until_ms, version.retired_by, version.withdrawn, rivals


def everything(ledger: Ledger, known: int | None = None) -> dict[Any, Any]:
    """Return all versions of all slots."""
    replay = ledger.known(None if known is None else known * DAY_MS)
    return {
        (subject, slot): [described(one) for one in replay.versions(subject, slot)]
        for subject in (1, 2, 3)
        for slot in ("residence", "employer", "likes")
    }


def history(rng: random.Random) -> list[Entry]:
    """Return a random history of statements and rulings."""
    entries: list[Entry] = []
    for number in range(1, rng.randrange(2, 22)):
        targets = [one for one in entries if isinstance(one, Assertion)]
        rulings = [one for one in entries if isinstance(one, Ruling)]
        if targets and rng.random() < 0.35:
            kind = rng.choice(["retract", "correct", "merge", "settle", "undo", "pin", "vote"])
            target = rng.choice(targets).statement
            other = rng.choice(targets).statement
            if kind == "merge":
                target, other = rng.sample((1, 2, 3), 2)
            if kind == "undo" and rulings:
                target = rng.choice(rulings).entry
            entries.append(rules(number, kind, target, other=other))
            continue
        since = rng.choice([None, rng.randrange(30)])
        entries.append(
            says(
                number,
                rng.choice(["residence", "employer", "likes"]),
                rng.choice(["Lisbon", "Porto", "Lisbon West", "里斯本"]),
                subject=rng.randrange(1, 4),
                negated=rng.random() < 0.2,
                reports_change=rng.random() < 0.5,
                modality=rng.choice(["asserted", "asserted", "reported", "planned"]),
                trust=rng.choice([1.0, 0.4]),
                since_ms=None if since is None else since * DAY_MS,
                replaces=rng.choice(targets).statement if targets and rng.random() < 0.1 else 0,
            )
        )
    return entries


@pytest.mark.parametrize("seed", range(150))
def test_order_of_arrival_alone_decides(seed: int) -> None:
    """Entries that are applied one by one, removed, or cut off at a time give what a replay of those left gives."""
    rng = random.Random(seed)
    entries = history(rng)
    whole, stepwise = Ledger(entries), Ledger()
    for entry in entries:
        stepwise.apply([entry])
        everything(stepwise)
    assert everything(stepwise) == everything(whole)
    known = rng.randrange(len(entries) + 1)
    assert everything(whole, known) == everything(Ledger(entries[:known]))
    erased = {one.entry for one in entries if rng.random() < 0.3}
    stepwise.remove(erased)
    left = [one for one in entries if one.entry not in erased]
    assert everything(stepwise) == everything(Ledger(left))
    assert len(stepwise) == len(left)


def test_every_known_slot_is_its_own_canonical_name() -> None:
    """The table is consistent: each name leads to its slot, and slots of one or few values are lasting."""
    assert len(SLOTS) >= 45
    assert all(canonical(name) == name for name in SLOTS)
    assert all(slot.is_lasting for slot in SLOTS.values() if slot.cardinality != "many")
    assert len({canonical(word) for word in ("叔叔", "舅舅", "伯伯", "阿姨", "姑姑")}) == 5
    assert canonical("My favourite colour") == canonical("favorite colour") == "favourite:colour"
    assert slot_of(canonical("最喜欢的颜色")).cardinality == "one"
    assert canonical("最喜欢的地方") == "favourite:place"
    assert canonical("favorite TV show") == "favourite:tv show", "other things keep their words"
    assert canonical("Lives in") == canonical("住在") == "residence"
    assert canonical("moved to") == canonical("搬到") == "residence"
    assert canonical("started working at") == canonical("入职") == "employer"
    assert canonical("joined") == "joined", "people also join clubs"
    assert slot_of(canonical("Shoe size")).cardinality == "many"


@pytest.mark.parametrize(
    "topic",
    [
        "favorite color",
        "favourite:color",
        "Favorite:Color",
        "最喜欢的颜色",
        "我最喜欢的颜色",
        "favourite:颜色",
    ],
)
def test_a_favourite_thing_has_one_name_in_all_languages(topic: str) -> None:
    """British, American and Chinese words for a favourite lead to one slot, with a name in each language."""
    assert canonical(topic) == "favourite:colour"
    assert label(canonical(topic), "zh") == "最喜欢的颜色"


def test_a_favourite_that_is_stored_under_an_older_name_is_read_under_the_new_one() -> None:
    """A later value ends one that was stored under an older name of its slot."""
    blue = says(1, "favourite:color", "blue")
    ledger = Ledger([blue, says(2, "favourite:colour", "green", reports_change=True)])
    assert values(ledger, "favourite:colour") == ["green"]
    assert states(ledger, 1001) == {"blue": "superseded", "green": "current"}
    ledger.remove([1])
    assert values(ledger, "favourite:colour") == ["green"]
    ledger.apply([blue])
    assert states(ledger, 1001) == {"blue": "superseded", "green": "current"}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("May 7", "7th of May", "same"),
        ("4月16号", "4月16日", "same"),
        ("May 7", "5月7日", "same"),
        ("May 7", "May 1990", "refines"),
        ("May 7", "May 8", "different"),
        ("1990", "1991", "different"),
        ("1.72 m", "172cm", "same"),
        ("一百二十斤", "60 kg", "same"),
        ("thirty", "30 years old", "same"),
        ("3", "34", "different"),
        ("廣州", "广州", "same"),
        ("the nurse", "Nurse", "same"),
        ("Porto", "Port", "different"),
        ("里斯本", "葡萄牙里斯本", "refines"),
    ],
)
def test_values_are_compared_after_normalisation(first: str, second: str, expected: str) -> None:
    """Width, case, script, articles, dates, numerals and units make no difference."""
    assert compare(first, second) == compare(second, first) == expected


@pytest.mark.parametrize(
    ("quote", "expected"),
    [
        ("I moved to Porto", True),
        ("I no longer work there", True),
        ("I quit smoking", True),
        ("我现在住在波尔图", True),
        ("我换了工作", True),
        ("I joined Globex in May", True),
        ("I started working at Globex", True),
        ("我五月入职华为", True),
        ("I turned 34 today", True),
        ("I turned thirty", True),
        ("我今天满34岁了", True),
        ("I got a new job at Globex", True),
        ("I started at Globex last week", True),
        ("I was promoted to team lead", True),
        ("I divorced Tom and married Ben", True),
        ("We got married in June", True),
        ("We split up", True),
        ("I went vegan", True),
        ("my new number is 555", True),
        ("I was laid off from Initech", True),
        ("I have a new phone number: 555-0202", True),
        ("I've got a new boss", True),
        ("My new favourite colour is green", True),
        ("我的电话更新为123", True),
        ("我的邮箱换为a@x.cn", True),
        ("我跳槽到了腾讯", True),
        ("我离婚了", True),
        ("我们结婚了", True),
        ("我开始吃素了", True),
        ("我离开永辉去了盒马", True),
        ("我升为组长了", True),
        ("我的新号码是123", True),
        ("I'm married to Ben", False),
        ("I have been married for ten years", False),
        ("I started early today", False),
        ("I went vegan for a week", False),
        ("I have a job at Globex", False),
        ("I have a new work phone", False),
        ("我以前住在罗马，2020年离开", False),
        ("我是新来的", False),
        ("I turned up late", False),
        ("I live in Lisbon", False),
        ("I am left-handed", False),
        ("every now and then I run", False),
        ("我吃了苹果", False),
        ("我住在里斯本", False),
    ],
)
def test_cues_of_a_change(quote: str, expected: bool) -> None:
    """Only words of a change are a cue."""
    assert reports_change(quote) is expected


@pytest.mark.parametrize(
    ("quote", "expected"),
    [
        ("I gave up coffee", True),
        ("I've given up dairy", True),
        ("we got rid of the car", True),
        ("我不养狗了", True),
        ("我不喝咖啡了，太贵", True),
        ("我没车了", True),
        ("我戒酒了", True),
        ("I don't like jazz", False),
        ("我不了解爵士乐", False),
        ("我不喜欢爵士", False),
        ("我没养狗", False),
    ],
)
def test_cues_of_a_denial(quote: str, expected: bool) -> None:
    """Some words report a change only where something is denied."""
    assert reports_change(quote, negated=True) is expected
    assert not reports_change(quote)


@pytest.mark.parametrize(
    ("quote", "expected"),
    [
        ("In 2019 I lived in Rome", True),
        ("I used to work at Acme", True),
        ("我以前住在罗马", True),
        ("I have lived in Rome since 2019", False),
        ("I used to live in Rome, now I live in Lisbon", False),
        ("I lived in Rome and moved to Lisbon", False),
        ("我以前住在罗马，现在住在里斯本", False),
        ("I live in Lisbon", False),
    ],
)
def test_words_about_the_past(quote: str, expected: bool) -> None:
    """Words that say what was true are about the past, unless they report another change."""
    assert tells_of_past(quote) is expected
