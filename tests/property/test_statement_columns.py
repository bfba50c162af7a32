"""Fields of versions as columns: after every commit of any history, they say what the versions say."""

from __future__ import annotations

from random import Random

import pytest

from ebbtide.memory.statements import Ledger, Version
from ebbtide.settings import DEFAULT_SEARCH
from ebbtide.verbs.statement_scores import columns_of, recencies, states
from ebbtide.verbs.statements import CURRENT, recency
from tests.support.knowledge.histories import ENTITIES, SLOTS, history, times
from tests.support.knowledge.oracle import DAY_MS


def test_columns_say_what_the_versions_say() -> None:
    """State, recency and importance of versions of any slots in any order, while a replay is kept and follows."""
    assert sum(map(compared, range(12))) > 1000


def compared(seed: int) -> int:
    """Compare after each commit of a history. Return the number of compared versions."""
    random, ledger = Random(seed), Ledger()
    steps = history(random, 30)
    true_at, _ = times([each for step in steps for each in step.added])
    seen = 0
    for step in steps:
        ledger.apply(step.added)
        ledger.remove(step.erased)
        replay = ledger.known()
        versions: list[Version] = [
            version
            for entity in sorted(ENTITIES)
            if replay.root(entity) == entity
            for slot in sorted(SLOTS)
            for version in replay.versions(entity, slot)
        ]
        if not versions:
            continue
        random.shuffle(versions)
        columns, now_ms = columns_of(versions), true_at[-1] + 30 * DAY_MS
        assert columns.importance.tolist() == [one.first.importance for one in versions]
        assert recencies(columns, DEFAULT_SEARCH, now_ms).tolist() == pytest.approx(
            [recency(one, DEFAULT_SEARCH, now_ms) for one in versions]
        )
        for as_of_ms in random.sample(true_at, min(5, len(true_at))):
            is_true, is_plan = states(columns, as_of_ms)
            expected = [replay.state_alone(one, as_of_ms) for one in versions]
            assert is_true.tolist() == [one in CURRENT for one in expected]
            assert is_plan.tolist() == [one == "planned" for one in expected]
        seen += len(versions)
    return seen
