"""The effects of entries on statements: a reader of events alone knows what is closed, contested and merged."""

from __future__ import annotations

from random import Random

import pytest

from ebbtide.memory.statement_effects import effects_of
from ebbtide.memory.statements import Ledger
from ebbtide.records import Source
from ebbtide.statements import Assertion, Ruling
from tests.property.test_ledger_against_oracle import RULES
from tests.support.knowledge.histories import ENTITIES, FIRST_DAY_MS, history
from tests.support.knowledge.oracle import DAY_MS, Oracle
from tests.support.tier import amount

NOW_MS = FIRST_DAY_MS + 400 * DAY_MS


class Reader:
    """Knows an agent's statements from events alone."""

    def __init__(self) -> None:
        self.closed: set[int] = set()
        self.contested: set[frozenset[int]] = set()
        self.one: list[frozenset[int]] = []

    def read(self, ledger: Ledger, added: list[Assertion | Ruling], removed: list[int]) -> None:
        found = effects_of(ledger, added, removed, NOW_MS)
        new, settled = ({frozenset(pair) for pair in pairs} for pairs in (found.found, found.settled))
        assert not new & self.contested and settled <= self.contested
        self.contested = (self.contested | new) - settled
        assert {one for one, _ in found.closed}.isdisjoint(self.closed)
        self.closed |= {one for one, _ in found.closed}
        self.closed -= set(found.promoted)


def closed_in(oracle: Oracle) -> dict[int, bool]:
    """Return whether each statement is superseded, corrected or retracted, from the plain oracle."""
    found: dict[int, bool] = {}
    for statement in {one.statement for one in oracle.entries if isinstance(one, Assertion)}:
        versions = oracle.history(statement, NOW_MS)
        versions.sort(key=lambda one: (one.since, one.first.entry))
        last = [one for one in versions if statement in one.statements][-1]
        found[statement] = bool(last.replaced_by) or last.state in ("corrected", "retracted")
    return found


def contested_in(oracle: Oracle) -> set[frozenset[int]]:
    """Return the pairs of open statements that contradict each other, from the plain oracle."""
    pairs = set()
    for statement in {one.statement for one in oracle.entries if isinstance(one, Assertion)}:
        for version in oracle.history(statement, NOW_MS):
            for rival in version.against:
                if not any(
                    one.replaced_by or one.state in ("corrected", "retracted") for one in (version, rival)
                ):
                    pairs.add(frozenset((version.statement, rival.statement)))
    return pairs


def read_along(seed: int) -> None:
    """Compare a reader of events with the oracle after every step of a history."""
    reader, ledger, oracle = Reader(), Ledger(), Oracle(RULES)
    for step in history(Random(seed), 20):
        reader.read(ledger, list(step.added), list(step.erased))
        ledger.apply(step.added)
        ledger.remove(step.erased)
        oracle.add(step.added)
        oracle.erase(step.erased)
        expected = closed_in(oracle)
        assert {one for one in expected if one in reader.closed} == {
            one for one, is_closed in expected.items() if is_closed
        }, seed
        reader.closed &= expected.keys()
        assert reader.contested == contested_in(oracle), seed


@pytest.mark.parametrize("run", range(4))
def test_a_reader_of_events_knows_what_is_closed_and_contested(run: int) -> None:
    """After every step of a history, also with merges, undo and erasure, the events so far give the oracle's state."""
    for seed in range(run, amount("LEDGER_HISTORIES", 48, 2000), 4):
        read_along(seed)


def test_a_statement_that_is_closed_is_not_promoted() -> None:
    """In this history, a statement is closed by its last version while an older one becomes the first of a pair."""
    read_along(1513)


def test_merges_and_their_undoing_are_reported_once() -> None:
    """For any history, merged and separated pairs follow the groups of entities."""
    for seed in range(100):
        ledger = Ledger()
        for step in history(Random(seed), 20):
            found = effects_of(ledger, step.added, step.erased, NOW_MS)
            before = ledger.known()
            groups = {one: before.merged_with(one) for one in ENTITIES}
            ledger.apply(step.added)
            ledger.remove(step.erased)
            after = ledger.known()
            for pair in found.merged:
                assert pair[1] not in groups[pair[0]] and pair[1] in after.merged_with(pair[0])
            for pair in found.separated:
                assert pair[1] in groups[pair[0]] and pair[1] not in after.merged_with(pair[0])
            if not (found.merged or found.separated):
                assert {one: after.merged_with(one) for one in ENTITIES} == groups


def test_a_statement_is_promoted_once() -> None:
    """A statement that comes before several others at once is promoted once; each of these is demoted once."""
    ledger = Ledger(
        Assertion(
            entry=number,
            statement=number,
            subject=9,
            slot="birthday",
            object=value,
            source=Source(number, 0, 4),
            told_at_ms=FIRST_DAY_MS,
            known_at_ms=FIRST_DAY_MS,
        )
        for number, value in enumerate(("7 May", "8 May", "9 May"), start=1)
    )
    vote = Ruling(4, "vote", 3, NOW_MS, value=1, author="ann")
    found = effects_of(ledger, [vote], [], NOW_MS)
    assert (found.promoted, found.demoted) == ([3], [1, 2])
