"""Merge proposals: similarity proposes, words exclude, and nothing is merged that may be a person."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ebbtide.changes import Change
from ebbtide.fleet.consolidation.merges import READ_AT_ONCE, MergeSearch
from ebbtide.memory.merge_proposals import (
    MIN_VECTORS,
    Named,
    NameSearch,
    described,
    difference,
    is_one_by_name,
    may_merge,
    proposed,
    same_statements,
)
from ebbtide.memory.network import Network
from ebbtide.memory.statements import DAY_MS, Ledger
from ebbtide.parameters import AgentParameters
from ebbtide.records import Entity, Source
from ebbtide.statements import Assertion


def named(name: str, entity: int = 1, **fields: Any) -> Named:
    """Return an entity."""
    return Named(entity, name, **fields)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("moved to Berlin", "moved from Berlin", "direction"),
        ("London to Paris", "Paris to London", "direction"),
        ("Corolla 2019", "Corolla 2021", "digits"),
        ("Corolla", "Corolla 2021", "digits"),
        ("Henry V", "Henry VI", "digits"),
        ("Hall B", "Hall C", "digits"),
        ("J. Novak", "Jan Novak", ""),
        ("not allergic", "allergic", "negation"),
        ("reliable", "unreliable", "negation"),
        ("Anna", "Anna's mother", "owner"),
        ("Porto", "University of Porto", "owner"),
        ("Mr Novak", "Mrs Novak", "kin"),
        ("aunt May", "uncle May", "kin"),
        ("Dr Novak", "Novak", ""),
        ("小明", "小明的叔叔", "owner"),
        ("小明", "小明叔叔", "kin"),
        ("王经理", "王总", "kin"),
        ("北京", "南京", "direction"),
        ("三号楼", "五号楼", "digits"),
        ("吃肉", "不吃肉", "negation"),
        ("大杯", "小杯", "direction"),
        ("北京", "北京市", ""),
    ],
)
def test_what_excludes_that_two_names_are_one(first: str, second: str, expected: str) -> None:
    """Names that differ in one of these are never proposed, however similar they are, in either order."""
    for one, other in ((first, second), (second, first)):
        assert difference(named(one), named(other)) == expected
        assert (proposed(named(one), named(other), 1.0) is None) == bool(expected)


def test_kind_and_kin_exclude() -> None:
    """Equal names of a city and a person, or of two relatives, are two; a friend may be a colleague."""
    jordan = named("Jordan", kind="place"), named("Jordan", kind="person")
    assert difference(*jordan) == "kind"
    sam = named("Sam", kin="brother"), named("Sam", kin="colleague")
    assert difference(*sam) == "kin"
    assert not is_one_by_name(*sam)
    roles = named("Sam", kin="friend"), named("Sam", kin="同事")
    assert difference(*roles) == ""
    assert not is_one_by_name(*roles)
    assert proposed(*roles) == "spelling"
    assert is_one_by_name(named("Sam", kin="sister"), named("sam", kin="姐姐"))
    assert is_one_by_name(named("Sam"), named("Sam", kin="brother"))
    assert not is_one_by_name(named("Sam"), named("Tom"))
    assert not is_one_by_name(named("思琪", kin="表妹"), named("思琪", kin="表姐"))
    assert is_one_by_name(named("思琪", kin="表妹"), named("思琪", kin="cousin"))


def test_why_names_are_proposed() -> None:
    """Names are proposed by spelling, since one contains the other, or since their vectors are similar."""
    assert proposed(named("台湾"), named("臺灣")) == "spelling"
    assert proposed(named("Clara"), named("Clara Svensson")) == "contains"
    assert proposed(named("art"), named("Bart Simpson")) is None
    assert proposed(named("colour printer"), named("color printer")) is None
    assert proposed(named("colour printer"), named("color printer"), 0.84) is None
    assert proposed(named("colour printer"), named("color printer"), 0.85) == "similar"


def test_a_longer_chinese_given_name_is_another_person() -> None:
    """李明 and 李明华 are two people; 小雨 may be 张小雨; and places have longer forms."""
    assert difference(named("李明", kind="person"), named("李明华", kind="person")) == "name"
    assert proposed(named("小雨", kind="person"), named("张小雨", kind="person")) == "contains"
    assert proposed(named("广州", kind="place"), named("广州市", kind="place")) == "contains"


def test_what_is_merged_without_a_request() -> None:
    """Only things of a known kind: above 0.95, or above 0.85 with the same kind and a shared neighbour."""
    shared = {"kind": "organisation", "neighbours": frozenset({9})}
    one, other = named("Lidl", **shared), named("Lidl supermarket", **shared)
    stranger = named("Lidl supermarket", kind="organisation", neighbours=frozenset({8}))
    assert may_merge(one, other, 0.85)
    assert not may_merge(one, other, 0.84)
    assert not may_merge(one, stranger, 0.94)
    assert may_merge(one, stranger, 0.95)
    for kind in ("person", ""):
        assert not may_merge(named("Lidl", kind=kind), named("Lidl", kind=kind), 1.0)
    assert not may_merge(named("Corolla 1", **shared), named("Corolla 2", **shared), 1.0)


NAMES = [
    "Clara",
    "Clara Svensson",
    "New York",
    "York",
    "New York City",
    "Porto",
    "北京",
    "北京市",
    "臺灣",
    "台湾",
]


def test_a_search_finds_what_comparing_all_pairs_finds() -> None:
    """In steps of any length, the search proposes exactly the pairs that words propose."""
    names = [named(name, number) for number, name in enumerate(NAMES, 1)]
    expected = {
        (one.entity, other.entity): why
        for one in names
        for other in names
        if one.entity < other.entity and (why := proposed(one, other))
    }
    assert len(expected) == 4
    search = NameSearch(names)
    while not search.advance(lambda: True):
        pass
    assert {(one.first, one.second): one.why for one in search.found} == expected


def test_a_search_returns_only_pairs_with_a_new_name() -> None:
    """Two names that are not new are not proposed again."""
    names = [named(name, number) for number, name in enumerate(NAMES, 1)]
    search = NameSearch(names, new={8})
    assert search.advance(lambda: False)
    assert [(one.first, one.second) for one in search.found] == [(7, 8)]


def test_a_search_compares_vectors_after_their_mean() -> None:
    """Vectors that all point the same way propose nothing; two that stand out together are proposed."""
    count = 2 * MIN_VECTORS
    random = np.random.default_rng(3)
    vectors = random.normal(size=(count, 8)).astype(np.float32) + 50
    vectors[1] = vectors[0] + 0.01
    vectors[2] = 0
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = [named(3 * letters[row % 26] + letters[row // 26] * 3, row + 1) for row in range(count)]
    search = NameSearch(names, vectors=vectors)
    assert search.advance(lambda: False)
    found = {(one.first, one.second) for one in search.found}
    assert (1, 2) in found
    assert len(found) < count
    assert not any(3 in pair for pair in found)
    few = NameSearch(names[: MIN_VECTORS - 1], vectors=vectors[: MIN_VECTORS - 1])
    assert few.advance(lambda: False)
    assert few.found == []


def says(entry: int, value: str, day: int = 0, **fields: Any) -> Assertion:
    """Return an assertion about entity 1, of a statement of its own."""
    fields = {"subject": 1, "slot": "likes", "statement": 100 + entry} | fields
    told_at_ms = day * DAY_MS
    return Assertion(
        entry=entry, object=value, source=Source(entry, 0, 1), told_at_ms=told_at_ms, known_at_ms=0, **fields
    )


def test_statements_say_the_same_by_subject_slot_and_value() -> None:
    """Spelling, unit and merged entities do not matter; another subject, slot, value or a denial does."""
    said = [
        says(1, "Tea"),
        says(2, "tea."),
        says(3, "tea", subject=2),
        says(4, "tea", slot="hobby"),
        says(5, "tea", negated=True),
        says(6, "coffee"),
        says(7, "1.80 m", slot="height"),
        says(8, "180cm", slot="height"),
        says(9, "Bo", object_entity=7),
        says(10, "Robert", object_entity=8),
        says(11, "tea", statement=101),
    ]
    roots = {2: 1, 8: 7}
    assert same_statements(said, lambda entity: entity) == [(101, 102), (107, 108)]
    assert same_statements(said, lambda entity: roots.get(entity, entity)) == [
        (101, 102, 103),
        (107, 108),
        (109, 110),
    ]


def test_events_are_the_same_on_adjacent_days() -> None:
    """The same event on the next day is one; two days later, it is another."""
    said = [says(day, "dentist", day, kind="event") for day in (1, 2, 3, 9)]
    assert same_statements(said, lambda entity: entity) == [(101, 102)]


def test_statements_describe_names() -> None:
    """The slot says what a name is and how a person is related; contradictory slots say nothing."""
    said = [
        says(1, "Clara", slot="sister", object_entity=5),
        says(2, "Porto", slot="residence", object_entity=6),
        says(3, "Porto", slot="employer", object_entity=6),
        says(4, "Bo", slot="boss", object_entity=7, negated=True),
    ]
    assert described(said, {5: "Clara", 6: "Porto", 7: "Bo"}) == [
        Named(5, "Clara", "person", "sister", frozenset({1})),
        Named(6, "Porto", "", "", frozenset({1})),
        Named(7, "Bo"),
    ]


def test_names_are_read_in_parts() -> None:
    """A search looks at the time after some hundred assertions, and finds the same names as in one part."""
    network, ledger = Network(AgentParameters()), Ledger()
    names = [f"Bob {number}" for number in range(900)]
    network.apply(Change(entities={n: Entity(n, name, name.casefold()) for n, name in enumerate(names, 1)}))
    ledger.apply(
        Assertion(n, 1000 + n, n, "likes", "tea", Source(1, 0, 1), 0, 0) for n in range(1, len(names) + 1)
    )
    in_parts, at_once = (MergeSearch(network, ledger) for _ in range(2))
    parts = 1
    while not in_parts.prepare(lambda: True):
        parts += 1
    assert parts == 1 + -(-len(names) // READ_AT_ONCE) and at_once.prepare(lambda: False)
    assert in_parts.texts == at_once.texts == names
    assert [ledger.begun_count(*entries) for entries in ((0, 900), (400, 500), (900, 1000))] == [900, 100, 0]
