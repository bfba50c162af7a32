"""Causal paths, compared with an enumeration of all paths that is written from the specification."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.changes import Change
from ebbtide.memory.causal_paths import MAX_CAUSES, MAX_PATHS, causal_paths
from ebbtide.memory.network import Network
from ebbtide.parameters import AgentParameters
from ebbtide.records import Entity, Link, Node

Ends = tuple[int, int, str, float]


def network(*links: Ends, count: int = 6, forgotten: Sequence[int] = ()) -> Network:
    """Return nodes 1 to `count` with these links. The last node is an entity."""
    made = Network(AgentParameters(decay_rate=0.9))
    made.apply(
        Change(
            nodes=[Node(n, "x" * 20, "p", (), 1, 20) for n in range(1, count)],
            entities={count: Entity(count, "Ann", "ann", 1)},
            links=[Link(*link, 0) for link in links],
            next_node_id=count + 1,
        )
    )
    made.apply(Change(forgotten=list(forgotten)))
    return made


def every_path(links: Sequence[Ends], start: int, depth: int) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield the nodes and the strength of each path that no further cause makes longer."""

    def causes(node: int) -> dict[int, float]:
        found: dict[int, float] = {}
        for source, target, relation, strength in links:
            for effect, cause, names in (
                (target, source, ("causes", "supports", "导致")),
                (source, target, ("caused_by", "based_on", "因为")),
            ):
                if effect == node and relation.removeprefix("inferred ") in names and cause != 6:
                    found[cause] = max(strength, found.get(cause, 0.0))
        return found

    def walk(nodes: tuple[int, ...], strength: float) -> Iterator[tuple[tuple[int, ...], float]]:
        further = {cause: each for cause, each in causes(nodes[-1]).items() if cause not in nodes}
        if len(nodes) > depth or not further:
            yield nodes, strength
            return
        for cause, each in further.items():
            yield from walk((*nodes, cause), strength * each)

    yield from ((nodes, strength) for nodes, strength in walk((start,), 1.0) if len(nodes) > 1)


RELATIONS = [
    "causes",
    "caused_by",
    "based_on",
    "supports",
    "inferred causes",
    "导致",
    "因为",
    "about",
    "related",
]


@settings(max_examples=150, deadline=None)
@given(
    links=st.lists(
        st.tuples(
            st.integers(1, 6),
            st.integers(1, 6),
            st.sampled_from(RELATIONS),
            st.sampled_from([0.25, 0.5, 1.0]),
        ).filter(lambda link: link[0] != link[1]),
        max_size=10,
        unique_by=lambda link: link[:3],
    ),
    depth=st.integers(1, 4),
)
def test_paths_equal_an_enumeration(links: list[Ends], depth: int) -> None:
    """On any network the paths are the strongest ones of all, in order of strength, and the answer repeats."""
    made = network(*links)
    found, is_cut = causal_paths(made, 1, depth)
    expected = dict(every_path(links, 1, depth))
    got = {(1, *(one.node_id for one in path.causes)): path.strength for path in found}
    assert got.items() <= expected.items()
    assert len(found) == min(len(expected), MAX_PATHS)
    strengths = [path.strength for path in found]
    assert strengths == sorted(expected.values(), reverse=True)[: len(found)]
    assert is_cut >= (len(expected) > MAX_PATHS)
    assert causal_paths(made, 1, depth) == (found, is_cut)


def test_an_inferred_link_is_marked() -> None:
    """A path through an inferred link is marked; between equal links the declared one counts."""
    links = (2, 1, "inferred causes", 0.5), (1, 2, "caused_by", 0.5), (3, 2, "inferred causes", 0.5)
    [path], _ = causal_paths(network(*links), 1, 4)
    assert [(one.node_id, one.relation, one.is_inferred) for one in path.causes] == [
        (2, "caused_by", False),
        (3, "causes", True),
    ]
    assert path.is_inferred
    assert path.strength == pytest.approx(0.25)


def test_a_forgotten_cause_ends_its_path() -> None:
    """A statement keeps the link to its forgotten cause; a forgotten node has no links of its own."""
    links = (1, 2, "caused_by", 0.5), (2, 3, "caused_by", 0.5)
    [path], _ = causal_paths(network(*links, forgotten=[2]), 1, 4)
    assert [one.node_id for one in path.causes] == [2]


def test_a_dense_network_is_bounded() -> None:
    """Of many causes the strongest are followed, and the answer says that others were left out."""
    count = MAX_CAUSES + 5
    links = [(cause, 1, "causes", 0.5 + cause / 100) for cause in range(2, count)]
    found, is_cut = causal_paths(network(*links, count=count), 1, 4)
    assert is_cut
    assert [path.causes[0].node_id for path in found] == list(range(count - 1, count - 1 - MAX_PATHS, -1))
