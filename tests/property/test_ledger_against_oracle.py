"""The ledger compared with the oracle: after every commit of any history, both say the same at every time.

The oracle was written from the specification without knowledge of the ledger, and replays everything for each question.
The ledger is fed step by step. `LEDGER_HISTORIES` sets the number of histories of the seeded run.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.memory import versions
from ebbtide.memory.statements import Ledger
from ebbtide.statements import Assertion, Ruling
from tests.support.knowledge.comparison import RULES, assert_same, by_first, live, of_ledger, of_oracle
from tests.support.knowledge.histories import SLOTS, Author, Step, histories, history, times
from tests.support.knowledge.oracle import Oracle
from tests.support.tier import IS_ALL, amount

RUNS = 17 if IS_ALL else 8
"""The seeded histories are shared among so many tests, which can run in parallel. The oracle needs seconds for some."""


@given(histories())
def test_the_ledger_says_what_the_oracle_says(steps: list[Step]) -> None:
    """After every step of a history, with examples that Hypothesis shrinks."""
    live(steps, is_every_step=True)


@pytest.mark.parametrize("run", range(RUNS))
def test_the_ledger_says_what_the_oracle_says_in_seeded_histories(
    run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each step of some histories, and the last step of others. The seed of a failure is in its message.

    In half of the runs, every slot is searched as one with many versions is.
    """
    if run % 2:
        monkeypatch.setattr(versions, "MANY", 2)
    for seed in range(run, amount("LEDGER_HISTORIES", 16, 400), RUNS):
        try:
            live(history(Random(seed), 40 if seed % 5 == 1 else 14), is_every_step=seed % 5 == 0)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


@given(st.integers(0, 2**32), st.randoms(use_true_random=False))
def test_the_order_of_feeding_changes_nothing(seed: int, random: Random) -> None:
    """Entries that are read in any order, as from a backup, give the same ledger."""
    entries = [each for step in history(Random(seed)) for each in step.added]
    shuffled = random.sample(entries, len(entries))
    assert_same(Oracle(RULES, entries), Ledger(shuffled), sorted(SLOTS))


def long_history(random: Random, count: int) -> list[Assertion | Ruling]:
    """Return so many entries about one slot of entities that are merged on the way, with new values every time."""
    author = Author(random)
    author.slots, author.entities = [random.choice(("residence", "employer", "likes", "did"))], [1, 2]
    entries: list[Assertion | Ruling] = []
    for _ in range(count):
        author.day += 1
        each = author.ruling() if author.is_now(0.03) else author.assertion()
        if isinstance(each, Assertion) and author.is_now(0.7):
            each = msgspec.structs.replace(each, object=f"{each.object} {random.randrange(count)}")
        author.left[each.entry] = each
        entries.append(each)
    middle = author.next_entry()
    return [*entries, Ruling(middle, "merge", 1, author.at(author.day), other=2)]


@pytest.mark.parametrize("seed", range(4))
def test_a_slot_with_many_values_says_what_the_oracle_says(seed: int) -> None:
    """After hundreds of values of one slot, a merge of two entities, and erasures among the oldest entries."""
    random = Random(seed)
    entries = long_history(random, amount("LEDGER_VALUES", 150, 500))
    oracle, ledger = Oracle(RULES, entries), Ledger(entries)
    slot = next(each.slot for each in entries if isinstance(each, Assertion))
    for erased in ([], [each.entry for each in random.sample(entries[:100], 20)]):
        oracle.erase(erased)
        ledger.remove(erased)
        true_at, (*_, now) = times(oracle.entries)
        for entity in (1, 2):
            expected = oracle.versions(entity, slot, now) + oracle.taken_back(entity, slot, now)
            found = ledger.known().versions(entity, slot)
            assert by_first([of_ledger(one) for one in found]) == by_first(
                [of_oracle(one) for one in expected]
            )
        for as_of in random.sample(true_at, 5):
            assert ledger.known().kept(as_of) == oracle.kept(as_of, now)


@pytest.mark.parametrize("seed", range(3 if IS_ALL else 1))
def test_thousands_of_values_follow_each_commit_as_if_replayed(seed: int) -> None:
    """A ledger that follows each commit, an erasure in the middle and merges equals one that is read from the store."""
    random = Random(seed)
    entries = long_history(random, 2000)
    slot = next(each.slot for each in entries if isinstance(each, Assertion))
    ledger, left = Ledger(), {each.entry: each for each in entries}
    for number, each in enumerate(entries):
        ledger.apply([each])
        ledger.known().versions(1, slot)
        if number == 1500:
            erased = random.sample(range(1, 1400), 300)
            ledger.remove(erased)
            for entry in erased:
                left.pop(entry)
    again = Ledger(left.values())
    for entity in (1, 2):
        assert list(map(of_ledger, ledger.known().versions(entity, slot))) == list(
            map(of_ledger, again.known().versions(entity, slot))
        )
    assert ledger.statements == again.statements
    assert list(ledger.all_assertions()) == [one for one in left.values() if isinstance(one, Assertion)]


def test_the_histories_reach_every_outcome() -> None:
    """Among the seeded histories, each outcome of the table and each effect of a ruling is common."""
    met: Counter[str] = Counter()
    for seed in range(100):
        oracle = Oracle(RULES)
        for step in history(Random(seed)):
            oracle.add(step.added)
            oracle.erase(step.erased)
        true_at, (*_, now) = times(oracle.entries)
        met["merged"] += bool(oracle.groups(now))
        met["contested"] += any(oracle.conflicts(at, now) for at in true_at)
        met["kept"] += any(oracle.kept(at, now) for at in true_at)
        for each in oracle.all_in_force(true_at[-1], now):
            met["evidence"] += len(each.said) > 1
            met["replacing again"] += any(
                old.replaced_by is not None
                and old.replaced_by.statement == each.statement
                and any(one.replaces in old.statements for one in each.said[1:])
                for old in oracle.history(each.statement, now)
            )
            met["narrower"] += len(oracle.in_force(each.first.subject, each.first.slot, true_at[-1], now)) > 1
        for statement in {each.statement for each in oracle.assertions(now)}:
            for each in oracle.history(statement, now):
                met[each.state] += 1
    outcomes = ("merged", "contested", "kept", "evidence", "narrower", "replacing again")
    for each in (*outcomes, "current", "superseded", "corrected", "retracted"):
        assert met[each] >= 5, (each, met)
