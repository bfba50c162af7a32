"""Which worker owns an agent: the same in every process, and evenly spread."""

from __future__ import annotations

from collections import Counter

import pytest

from ebbtide.shard import WHOLE, Shard


def test_the_owner_of_a_directory_is_fixed() -> None:
    """The assignment is the same in every process and every version, so that workers agree on it."""
    assert [Shard(0, 4).owner_of(name) for name in ("ann", "bob", "agent-1", "~mzxw6")] == [1, 2, 2, 1]


@pytest.mark.parametrize("count", [2, 3, 8])
def test_agents_are_spread_evenly(count: int) -> None:
    """Numbered ids, which are the most regular ones, fill every worker to within a tenth."""
    owners = Counter(Shard(0, count).owner_of(f"agent-{number}") for number in range(10_000))
    assert set(owners) == set(range(count))
    assert max(owners.values()) < 1.1 * 10_000 / count


def test_one_process_owns_everything() -> None:
    """A daemon without workers owns every agent."""
    assert all(WHOLE.owns(name) for name in ("ann", "~abc"))
