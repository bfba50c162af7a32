"""The comparison of the ledger with the oracle, for tests and for `make eval-knowledge`.

The oracle was written from the specification without knowledge of the ledger, and replays everything for each question.
The ledger is fed step by step.
"""

from __future__ import annotations

from typing import Any

import pytest

from ebbtide.memory.slot_names import slot_of
from ebbtide.memory.statements import Ledger
from ebbtide.memory.statements import Version as LedgerVersion
from ebbtide.memory.values import compare
from ebbtide.statements import Assertion
from tests.support.knowledge.histories import ENTITIES, Step, times
from tests.support.knowledge.oracle import DAY_MS, Oracle, Rules, Version, confidence

RULES = Rules(
    compare=lambda first, second, slot: compare(first, second),
    cardinality=lambda slot: slot_of(slot).cardinality,
    is_lasting=lambda slot: slot_of(slot).is_lasting,
)


def of_oracle(version: Version) -> Any:
    """Return all that a version says, as the ledger's version says it."""
    return (
        [one.entry for one in version.said],
        version.since,
        version.until,
        version.replaced_by.statement if version.replaced_by else 0,
        version.state if version.state in ("corrected", "retracted") else "",
        {one.statement for one in version.rivals},
        round(confidence(version), 9),
    )


def of_ledger(version: LedgerVersion) -> Any:
    """Return all that a version says."""
    return (
        [one.entry for one in version.assertions],
        version.since_ms,
        version.until_ms,
        version.retired_by,
        version.withdrawn,
        {one.statement for one in version.rivals},
        round(version.confidence, 9),
    )


def by_first(versions: list[Any]) -> list[Any]:
    """Return versions in order of their first entry."""
    return sorted(versions, key=lambda version: version[0][0])


def assert_same(oracle: Oracle, ledger: Ledger, slots: list[str]) -> None:
    """Assert that the oracle and the ledger say the same at each time at which something changes."""
    true_at, known_at = times(oracle.entries)
    later = true_at[-1] + 30 * DAY_MS
    statements = sorted({each.statement for each in oracle.entries if isinstance(each, Assertion)})
    for known in known_at:
        replay = ledger.known(known)
        assert {replay.merged_with(entity) for entity in ENTITIES} == {
            oracle.group(entity, known) for entity in ENTITIES
        }
        for statement in statements:
            if any(one.statement == statement for one in oracle.assertions(known)):
                histories = oracle.history(statement, known), replay.history(statement)
                assert by_first([of_ledger(one) for one in histories[1]]) == by_first(
                    [of_oracle(one) for one in histories[0]]
                )
                for other in histories[1]:
                    expected = next(one for one in histories[0] if one.first == other.first)
                    assert replay.priority(other, later) == pytest.approx(
                        oracle.priority(expected, later, known)
                    )
        for as_of in true_at:
            for entity in ENTITIES:
                expected_slots = oracle.profile(entity, as_of, known)
                found = {name: list(versions) for name, versions in replay.profile(entity, as_of, later)}
                assert {name: {one.statement for one in versions} for name, versions in found.items()} == {
                    name: {one.statement for one in versions} for name, versions in expected_slots.items()
                }
                for slot in slots:
                    expected_ones = [of_oracle(one) for one in oracle.in_force(entity, slot, as_of, known)]
                    versions = replay.in_force(entity, slot, as_of, later)
                    assert by_first([of_ledger(one) for one in versions]) == by_first(expected_ones)
                    shown = found.get(slot, [])
                    assert shown[: len(versions)] == versions
                    plans = expected_slots.get(slot, [])[len(versions) :]
                    assert [of_ledger(one) for one in shown[len(versions) :]] == [
                        of_oracle(one) for one in plans
                    ]
            conflicts = replay.conflicts(as_of, later)
            expected_pairs = oracle.conflicts(as_of, known)
            assert {
                frozenset({one.first.statement, one.second.statement}) for one in conflicts
            } == expected_pairs
            for conflict in conflicts:
                assert replay.priority(conflict.first, later) >= replay.priority(conflict.second, later)
            assert replay.kept(as_of) == oracle.kept(as_of, known)


def live(steps: list[Step], is_every_step: bool) -> None:
    """Feed a history to the ledger and the oracle, and compare them after each step or after the last."""
    oracle, ledger = Oracle(RULES), Ledger()
    slots = sorted({each.slot for step in steps for each in step.added if isinstance(each, Assertion)})
    for step in steps:
        oracle.add(step.added)
        oracle.erase(step.erased)
        ledger.apply(step.added)
        ledger.remove(step.erased)
        if is_every_step:
            assert_same(oracle, ledger, slots)
    assert_same(oracle, ledger, slots)
