"""The computations of consolidation, on arbitrary input: the same in any number of steps, and as a plain loop says."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.memory.causes import cause_between
from ebbtide.memory.communities import MIN_OVERLAP, Propagation, matched
from ebbtide.memory.habits import Happening, habit_of
from ebbtide.memory.merge_proposals import Named, NameSearch, difference, proposed, same_statements
from ebbtide.memory.statements import DAY_MS
from ebbtide.records import Source
from ebbtide.statements import Assertion

NODES = 24
links = st.lists(
    st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1), st.sampled_from([0.1, 0.5, 1.0])),
    max_size=60,
)


@given(links=links, seed=st.integers(0, 3), pauses=st.lists(st.booleans(), min_size=1, max_size=7))
def test_communities_are_connected_parts_of_a_partition(
    links: list[tuple[int, int, float]], seed: int, pauses: list[bool]
) -> None:
    """Each node is in one group, a group never spans two components, and pauses change nothing."""
    columns = [np.array([link[place] for link in links]) for place in range(3)]
    whole, stepped = (Propagation(NODES, *columns, seed=seed) for _ in range(2))
    assert whole.advance(lambda: False)
    count = 0

    def is_time_up() -> bool:
        nonlocal count
        count += 1
        return pauses[count % len(pauses)]

    while not stepped.advance(is_time_up):
        pass
    groups = [group.tolist() for group in whole.groups(1)]
    assert groups == [group.tolist() for group in stepped.groups(1)]
    assert sorted(node for group in groups for node in group) == list(range(NODES))
    component = list(range(NODES))
    for _ in range(NODES):
        for one, other, _ in links:
            component[one] = component[other] = min(component[one], component[other])
    assert all(len({component[node] for node in group}) == 1 for group in groups)


sets = st.frozensets(st.integers(0, 12), min_size=1)


@given(known=st.dictionaries(st.integers(50, 60), sets, max_size=5), groups=st.lists(sets, max_size=5))
def test_a_continued_community_overlaps_enough(
    known: dict[int, frozenset[int]], groups: list[frozenset[int]]
) -> None:
    """No community is continued twice, each continuation overlaps enough, and none is missed."""
    found = matched(known, groups)
    taken = [concept for concept in found if concept is not None]
    assert len(taken) == len(set(taken))
    for concept, group in zip(found, groups, strict=True):
        overlaps = {one: len(members & group) / len(members | group) for one, members in known.items()}
        if concept is not None:
            assert overlaps[concept] >= MIN_OVERLAP
        else:
            assert all(one in taken for one, overlap in overlaps.items() if overlap >= MIN_OVERLAP)


WORDS = [
    "Anna",
    "Berlin",
    "from",
    "to",
    "not",
    "2",
    "3",
    "mother",
    "'s",
    "new",
    "Mr",
    "北",
    "京",
    "不",
    "叔叔",
    "的",
]
names = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


@given(names=st.lists(names, max_size=8), new=st.frozensets(st.integers(1, 8)))
def test_a_search_for_names_equals_a_loop_over_all_pairs(names: list[str], new: frozenset[int]) -> None:
    """The index finds each pair with a new name that the rule proposes, and the rule is symmetric."""
    entities = [Named(number, name) for number, name in enumerate(names, 1)]
    expected = set()
    for one, other in combinations(entities, 2):
        assert difference(one, other) == difference(other, one)
        if {one.entity, other.entity} & new and proposed(one, other):
            expected.add((one.entity, other.entity))
    search = NameSearch(entities, new)
    while not search.advance(lambda: True):
        pass
    found = {(one.first, one.second) for one in search.found}
    assert found <= expected
    names_by_entity = {one.entity: one for one in search._names}  # only words that can be names are searched
    assert found == {pair for pair in expected if names_by_entity.keys() >= {*pair}}


CLAUSES = ["I moved", "我搬家了", "so", "因为", "because", ", ", "。", " ", "not", "所以"]


@given(
    pieces=st.lists(st.sampled_from(CLAUSES), min_size=2, max_size=7),
    first=st.integers(0, 6),
    second=st.integers(0, 6),
)
def test_a_cause_has_one_direction(pieces: list[str], first: int, second: int) -> None:
    """The order in which two quotes are given turns the direction, and changes nothing else."""
    first, second = first % len(pieces), second % len(pieces)
    text = "".join(pieces)

    def place(index: int) -> tuple[int, int]:
        return len("".join(pieces[:index]).encode()), len(pieces[index].encode())

    found = cause_between(text, place(first), place(second))
    opposite = {"causes": "caused_by", "caused_by": "causes", None: None}[found]
    if first != second:
        assert cause_between(text, place(second), place(first)) == opposite
    else:
        assert found is None


@given(days=st.lists(st.integers(0, 120), max_size=12))
def test_a_weekly_habit_is_concentrated(days: list[int]) -> None:
    """A habit needs four days over 21; a weekday of a habit is within a day and a half of most of its days."""
    habit = habit_of(Happening(day * DAY_MS) for day in days)
    if habit is None:
        return
    assert len(set(days)) >= 4
    assert max(days) - min(days) >= 21
    if habit.weekday is not None:
        distances = [min((day + 3 - habit.weekday) % 7, (habit.weekday - day - 3) % 7) for day in set(days)]
        assert sum(distance <= 1 for distance in distances) > len(distances) / 2


assertions = st.lists(
    st.tuples(
        st.integers(1, 3),
        st.sampled_from(["Tea", "tea", "coffee"]),
        st.integers(0, 5),
        st.sampled_from(["fact", "event"]),
    ),
    max_size=8,
)


@given(rows=assertions, merged=st.booleans())
def test_same_statements_equal_a_plain_loop(rows: list[tuple[int, str, int, Any]], merged: bool) -> None:
    """Facts that say the same are in one group; events only if their days are within one of the first."""
    said = [
        Assertion(entry, 100 + entry, subject, "likes", value, Source(entry, 0, 1), day * DAY_MS, 0, kind)
        for entry, (subject, value, day, kind) in enumerate(rows, 1)
    ]
    roots = {2: 1} if merged else {}
    expected = set()
    for subject in {roots.get(one.subject, one.subject) for one in said}:
        for value in ("tea", "coffee"):
            same = [
                one
                for one in said
                if roots.get(one.subject, one.subject) == subject and one.object.lower() == value
            ]
            groups = [[one for one in same if one.kind == "fact"]]
            events = sorted((one for one in same if one.kind == "event"), key=lambda one: one.told_at_ms)
            while events:
                limit = events[0].told_at_ms + DAY_MS
                groups.append([one for one in events if one.told_at_ms <= limit])
                events = [one for one in events if one.told_at_ms > limit]
            expected |= {frozenset(one.statement for one in group) for group in groups if len(group) > 1}
    found = same_statements(said, lambda entity: roots.get(entity, entity))
    assert {frozenset(group) for group in found} == expected
