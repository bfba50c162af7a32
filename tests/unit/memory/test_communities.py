"""Communities: groups of linked nodes, the same in any number of steps, with the words that they share."""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time

import numpy as np
import pytest

from ebbtide.memory.communities import Propagation, best_words, matched, shared_words

Links = list[tuple[int, int, float]]


def cliques(sizes: list[int], bridges: Links = []) -> tuple[int, Links]:  # noqa: B006
    """Return complete graphs of these sizes side by side, and bridges between them."""
    links: Links = []
    begin = 0
    for size in sizes:
        members = range(begin, begin + size)
        links += [(one, other, 1.0) for one in members for other in members if one < other]
        begin += size
    return begin, links + bridges


def groups_of(
    count: int, links: Links, *, least: int = 5, seed: int = 0, is_time_up: Callable[[], bool] = lambda: False
) -> list[list[int]]:
    """Return the communities of a graph."""
    columns = zip(*links, strict=True) if links else ((), (), ())
    sources, targets, strengths = (np.array(list(column)) for column in columns)
    propagation = Propagation(count, sources, targets, strengths, seed=seed)
    while not propagation.advance(is_time_up):
        pass
    return [group.tolist() for group in propagation.groups(least)]


@pytest.mark.parametrize("seed", range(5))
def test_cliques_with_weak_bridges_are_communities(seed: int) -> None:
    """Complete groups stay apart although a link leads from one to the next; a pair joins the group that is nearest."""
    count, links = cliques([6, 8, 2, 5], [(0, 6, 0.3), (7, 14, 0.4), (15, 16, 0.3)])
    assert groups_of(count, links, seed=seed) == [list(range(6)), list(range(6, 16)), list(range(16, 21))]


def test_a_node_linked_with_everything_does_not_join_everything() -> None:
    """Two groups that share only a hub stay two groups."""
    count, links = cliques([8, 8])
    hub = count
    links += [(hub, node, 1.0) for node in range(count)]
    found = groups_of(count + 1, links)
    assert [{*group} - {hub} for group in found] == [{*range(8)}, {*range(8, 16)}]


def test_the_result_does_not_depend_on_the_steps() -> None:
    """A propagation that stops after every piece of work gives the groups of one that never stops."""
    random = np.random.default_rng(1)
    links = [
        (int(one), int(other), float(strength))
        for one, other, strength in zip(
            random.integers(0, 300, 900), random.integers(0, 300, 900), random.random(900), strict=True
        )
    ]
    whole = groups_of(300, links, least=1, seed=7)
    assert groups_of(300, links, least=1, seed=7, is_time_up=lambda: True) == whole
    assert sorted(node for group in whole for node in group) == list(range(300))


def test_the_empty_graph_and_loops_have_no_communities() -> None:
    """Nothing, nodes without links, and a node that is linked with itself form no group."""
    assert groups_of(0, []) == []
    assert groups_of(9, []) == []
    assert groups_of(3, [(0, 0, 1.0), (1, 1, 0.5)], least=2) == []


@pytest.mark.alone
def test_a_step_is_short() -> None:
    """With 20 000 nodes and 200 000 links, no step takes long after its time is up."""
    random = np.random.default_rng(2)
    sources, targets = random.integers(0, 20_000, (2, 200_000))
    propagation = Propagation(20_000, sources, targets, random.random(200_000))
    longest_s, is_done = 0.0, False
    while not is_done:
        began_s = thread_time()
        is_done = propagation.advance(lambda began_s=began_s: thread_time() - began_s >= 0.01)  # type: ignore[misc]
        longest_s = max(longest_s, thread_time() - began_s)
    assert longest_s < 0.1


def test_shared_words_ignore_case_and_plural() -> None:
    """A word counts once a member, in any form, and only if two members have it."""
    members = [["Mountains", "tea"], ["mountain", "mountains", "snow"], ["Mountain"], ["snow"]]
    assert shared_words(members) == {"Mountains": 3, "snow": 2}
    assert shared_words([["tea"], ["coffee"], [""], [" "]]) == {}
    assert shared_words([["爬山"], ["爬山", "雪"]]) == {"爬山": 2}


def test_the_best_words_are_shared_by_few_communities() -> None:
    """A word of every community comes after one of few, and at most three are returned."""
    shared = {"likes": 6, "climbing": 5, "rope": 4, "snow": 2}
    groups_with = {"likes": 10, "climbing": 1, "rope": 1, "snow": 2}
    assert best_words(shared, groups_with, 10) == ["climbing", "rope", "snow"]
    assert best_words({}, groups_with, 10) == []


def test_a_community_is_the_same_while_four_fifths_agree() -> None:
    """A group of nearly the same members continues a community; at less, it is a new one."""
    known = {70: frozenset(range(10)), 71: frozenset(range(20, 30))}
    eight_of_ten = frozenset(range(8))
    seven_of_ten = frozenset(range(20, 27))
    assert matched(known, [seven_of_ten, eight_of_ten]) == [None, 70]
    assert matched(known, []) == []
    assert matched({}, [eight_of_ten]) == [None]


@pytest.mark.parametrize("seed", range(5))
def test_a_small_group_joins_the_one_it_is_linked_with(seed: int) -> None:
    """The statements about a person are one group, with the places and firms that only this person is linked with."""
    person, places = 0, {1: 5, 2: 6}
    links = [(person, statement, 0.5) for statement in range(1, 5)] + [
        (*pair, 0.5) for pair in places.items()
    ]
    assert groups_of(7, links, seed=seed) == [list(range(7))]
