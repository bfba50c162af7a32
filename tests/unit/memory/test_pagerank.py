"""Personalised PageRank, compared with the matrix that defines it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.changes import Change
from ebbtide.memory import pagerank
from ebbtide.memory.network import Network
from ebbtide.memory.pagerank import MAX_ROUNDS, MIN_MASS_PER_LINK, RESTART, closeness
from ebbtide.parameters import AgentParameters
from ebbtide.records import Link, Node

Ends = tuple[int, int, float]


def network(*links: Ends, count: int = 6) -> Network:
    """Return nodes 1 to `count` with these links."""
    made = Network(AgentParameters(decay_rate=0.9))
    made.apply(
        Change(
            nodes=[Node(n, "x" * 20, "p", (), 1, 20) for n in range(1, count + 1)],
            links=[Link(source, target, "", strength, 0) for source, target, strength in links],
            next_node_id=count + 1,
        )
    )
    return made


def told(made: Network, start: Sequence[int], shares: Sequence[float] | None = None) -> dict[int, float]:
    found = closeness(made, np.array(start), np.array(shares or [1.0] * len(start)))
    return {
        n: worth for n, worth in zip(found.node_ids.tolist(), found.worths.tolist(), strict=True) if worth > 0
    }


def by_matrix(links: Sequence[Ends], count: int, start: Sequence[int]) -> np.ndarray:
    """Return how often the walk arrives at each node from another one, summed until nothing is left."""
    steps = np.zeros((count, count))
    for source, target, strength in links:
        steps[source - 1, target - 1] = strength
    outgoing = steps.sum(axis=1, keepdims=True)
    steps = np.divide(steps, outgoing, out=np.zeros_like(steps), where=outgoing > 0)
    ends = np.where(outgoing[:, 0] > 0, RESTART, 1.0)
    at = np.zeros(count)
    np.add.at(at, np.array(start) - 1, 1 / len(start))
    met = ends * at - RESTART * at
    for _ in range(500):
        at = (1 - RESTART) * at @ steps
        met += ends * at
    return met


@settings(max_examples=80, deadline=None)
@given(
    links=st.lists(
        st.tuples(st.integers(1, 6), st.integers(1, 6), st.sampled_from([0.25, 0.5, 1.0])),
        max_size=16,
        unique_by=lambda link: link[:2],
    ),
    start=st.lists(st.integers(1, 6), min_size=1, max_size=3),
)
def test_closeness_equals_the_matrix(links: list[Ends], start: list[int]) -> None:
    """With enough rounds, closeness on any network is the stationary walk minus the start."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(pagerank, "MIN_MASS_PER_LINK", 1e-12)
        changed.setattr(pagerank, "MAX_ROUNDS", 400)
        found = told(network(*links), start)
    expected = by_matrix(links, 6, start)
    assert [found.get(n, 0.0) for n in range(1, 7)] == pytest.approx(expected.tolist(), abs=1e-6)


def test_many_ways_are_closer_than_one() -> None:
    """Node 4 is reached over 2 and over 3, node 5 over 2 alone: 4 is closer, though no path to it is stronger."""
    both_ways = [(1, 2, 1.0), (1, 3, 1.0), (2, 4, 0.5), (3, 4, 1.0), (2, 5, 0.5)]
    found = told(network(*both_ways), [1])
    assert found[4] > 2 * found[5] > 0
    assert 1 not in found, "nobody comes back to it, so it is close to nothing but itself"


def test_the_walk_follows_links_in_proportion_to_strength() -> None:
    """Of two links, the stronger one is followed in proportion to its strength."""
    found = told(network((1, 2, 0.75), (1, 3, 0.25)), [1])
    assert found[2] == pytest.approx(3 * found[3])


def test_forgotten_nodes_and_broken_links_are_not_followed() -> None:
    """Links to forgotten nodes and broken links are not followed; a forgotten node is no start."""
    made = network((1, 2, 1.0), (1, 3, 1.0), (3, 4, 0.001))
    made.apply(Change(forgotten=[2]))
    assert set(told(made, [1, 2])) == {3}
    assert told(made, [2]) == {} and told(made, []) == {}
    assert told(made, [99, 1]) == told(made, [1])
    assert not made.scratch().member.any()


def test_shares_weight_the_starts() -> None:
    """A start with three times the share counts three times as much; shares need not sum to 1."""
    made = network((1, 3, 1.0), (2, 4, 1.0))
    found = told(made, [1, 2], [30.0, 10.0])
    assert found[3] == pytest.approx(3 * found[4])
    assert told(made, [1, 2], [0.0, 0.0]) == {}


def test_a_round_follows_a_bounded_number_of_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk over 3000 nodes with 30 links each follows no more links than its bound."""
    count, dice = 3000, np.random.default_rng(3)
    made = network(
        *[
            (source, int(target), 1.0)
            for source in range(1, count + 1)
            for target in dice.choice(count, 30, replace=False) + 1
            if target != source
        ],
        count=count,
    )
    made._tidy()
    followed: list[int] = []
    live_links = pagerank._live_links

    def counted(network: Network, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        found = live_links(network, slots)
        followed.append(len(found[0]))
        return found

    monkeypatch.setattr(pagerank, "_live_links", counted)
    found = closeness(made, np.array([1, 2, 3]), np.ones(3))
    assert made.links.sorted_count == made.links.rows.count
    assert 0 < max(followed) <= 1 / MIN_MASS_PER_LINK and len(followed) <= MAX_ROUNDS
    assert sum(followed) < made.links.rows.count
    assert 0 < found.worths.sum() <= 1
