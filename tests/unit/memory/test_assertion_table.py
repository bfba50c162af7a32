"""The rows of assertions: nothing is lost when rows are added, replaced and removed."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import numpy as np
import pytest

from ebbtide.memory import statements
from ebbtide.memory.assertion_table import AssertionTable, Brief
from ebbtide.memory.statements import REPLAYED_BYTES, Ledger
from ebbtide.records import Source
from ebbtide.statements import Assertion
from tests.support.knowledge.histories import Author

FEW_REPLAYED = 512
"""Assertions whose replays are kept, for tests that fill the room."""


def full(entry: int, **fields: Any) -> Assertion:
    """Return an assertion in which every field differs from its default."""
    given: dict[str, Any] = {
        "kind": "task",
        "object_entity": 9,
        "negated": True,
        "modality": "planned",
        "reports_change": True,
        "replaces": 7,
        "since_ms": -5,
        "until_ms": 0,
        "granularity": "day",
        "time_words": "在五月",
        "confidence": 0.3,
        "trust": 0.2,
        "importance": 0.1,
        "author": "tool:x",
        "attributes": {"a": "b"},
        "valence": -0.5,
        "arousal": 0.0,
        "scope": "team",
    }
    return Assertion(
        entry, 100 + entry, 3, "todo", "给小明打电话", Source(entry, 4, 20), 10, 11, **given | fields
    )


def test_messages_that_state_something_are_found_in_their_order() -> None:
    """Of some messages those from which assertions are, also after one is removed."""
    table = AssertionTable()
    assert table.messages_among([3, 1]) == []
    table.put([full(1), full(2), full(3)])
    assert table.messages_among([5, 3, 4, 1]) == [3, 1]
    assert table.messages_among([]) == []
    table.remove([3])
    assert table.messages_among({1: 0.5, 3: 0.4}) == [1]


def test_every_field_comes_back() -> None:
    """An assertion with all fields, one with few, and one with an empty object are as they were."""
    plain = Assertion(2, 102, 3, "likes", "tea", Source(2, 0, 3), 10, 11)
    empty = Assertion(3, 103, 4, "likes", "", Source(3, 0, 3), 10, 11)
    table = AssertionTable()
    table.put([full(1), plain, empty])
    assert list(table.all()) == [full(1), plain, empty]
    assert table.get(2) == plain
    assert table.get(4) is None


def in_brief(one: Assertion) -> Brief:
    """Return the fields of an assertion that say what it is about."""
    return Brief(one.statement, one.subject, one.slot, one.object, one.object_entity, one.kind, one.modality)


Manner = tuple[str, str, str]


def by_manner(table: AssertionTable, entities: Iterable[int]) -> dict[Manner, list[tuple[int, str]]]:
    """Return the statements of a table about some entities with their objects, by slot, kind and modality."""
    found: dict[Manner, list[tuple[int, str]]] = {}
    for one in table.alike_about(entities, lambda _: True):
        stated = found.setdefault((one.slot, one.kind, one.modality), [])
        stated += zip(one.statements.tolist(), table.objects_in(one.rows), strict=True)
    return {manner: sorted(stated) for manner, stated in found.items()}


def manners_of(assertions: Iterable[Assertion]) -> dict[Manner, list[tuple[int, str]]]:
    """Return the same from assertions."""
    found: dict[Manner, list[tuple[int, str]]] = {}
    for one in assertions:
        found.setdefault((one.slot, one.kind, one.modality), []).append((one.statement, one.object))
    return {manner: sorted(stated) for manner, stated in found.items()}


def words_in(value: str) -> frozenset[str]:
    """Return the words of a value, in place of the slots that it names."""
    return frozenset(value.split())


def naming(table: AssertionTable, entities: Iterable[int], word: str) -> list[int]:
    """Return the statements about some entities whose objects have a word."""
    found: list[int] = []
    for one in table.alike_about(entities, lambda _: True):
        found += one.statements[table.naming(one.rows, {word, "nothing"}, words_in)].tolist()
    return sorted(found)


def test_an_object_is_read_once() -> None:
    """The names in an object are kept with its row, also when other rows are removed."""
    table, read = AssertionTable(), list[str]()

    def slots_in(value: str) -> frozenset[str]:
        read.append(value)
        return words_in(value)

    objects = ["tea", "tall tea", "coffee", "tea set"]
    table.put([Assertion(n, n, 1, "built", one, Source(n, 0, 3), 10, 11) for n, one in enumerate(objects, 1)])
    assert table.naming(np.array([0, 2]), {"tea"}, slots_in).tolist() == [True, False]
    assert table.naming(np.array([2]), {"coffee"}, slots_in).tolist() == [True]
    table.remove([2])
    assert table.naming(np.array([0, 1, 2]), {"tea"}, slots_in).tolist() == [True, False, True]
    assert read == ["tea", "coffee", "tea set"]


@pytest.mark.parametrize("seed", range(20))
def test_the_rows_equal_a_dictionary(seed: int) -> None:
    """After any additions in any order, replacements and removals, every question has the answer of a dictionary."""
    random, table, kept = Random(seed), AssertionTable(), dict[int, Assertion]()
    author = Author(random)
    for _ in range(60):
        if kept and random.random() < 0.2:
            numbers = random.sample(range(1, author.entry + 5), min(author.entry, 4))
            expected = [kept.pop(number) for number in sorted(numbers) if number in kept]
            assert table.remove(numbers) == expected
        elif kept and random.random() < 0.1:
            number = random.choice(sorted(kept))
            assert table.put([full(number)]) == [kept[number]]
            kept[number] = full(number)
        else:
            some = [author.assertion() for _ in range(random.randint(1, 5))]
            for each in some:
                author.left[each.entry] = kept[each.entry] = each
            table.put(random.sample(some, len(some)))
        before = random.choice((None, random.randint(1, author.entry + 2)))
        rows = sorted(kept.values(), key=lambda one: one.entry)
        known = [one for one in rows if before is None or one.entry < before]
        assert list(table.all()) == rows
        after = random.randint(0, author.entry)
        assert list(table.all(after)) == [one for one in rows if one.entry > after]
        assert table.statements().tolist() == sorted({one.statement for one in rows})
        assert table.subjects() == sorted({one.subject for one in rows})
        statement = random.choice(rows).statement if rows else 1
        assert table.of_statement(statement) == [one for one in rows if one.statement == statement]
        statements = random.sample(range(1, author.entry + 2000), 50) + [one.statement for one in rows]
        assert table.slots_of_statements(statements) == [table.slot_of_statement(one) for one in statements]
        names = random.sample(["residence", "likes", "nothing"], 2)
        assert list(table.brief_in(names)) == [in_brief(one) for one in rows if one.slot in names]
        entities = random.sample((1, 2, 3, 4), random.choice((1, 2, 3)))
        about = [one for one in known if one.subject in entities]
        by_slot = table.by_slot(entities, before)
        assert by_slot == {slot: [one for one in about if one.slot == slot] for slot in by_slot}
        assert set(by_slot) == {one.slot for one in about}
        for slot in ("residence", "nothing"):
            assert table.of_slot(entities, slot, before) == [one for one in about if one.slot == slot]
        about = [one for one in rows if one.subject in entities]
        wanted = [one for one in about if one.slot == "residence"]
        assert table.about(entities, "residence".__eq__) == wanted
        assert list(table.brief_about(entities, "residence".__eq__)) == list(map(in_brief, wanted))
        named = {one.object_entity for one in wanted if one.object_entity}
        assert table.object_entities(entities, "residence".__eq__) == named
        assert table.object_entities([], "residence".__eq__) == set()
        assert by_manner(table, entities) == manners_of(about)
        if random.random() < 0.5:
            assert naming(table, entities, "tea") == sorted(
                one.statement for one in about if "tea" in words_in(one.object)
            )
        assert table.statements_about(entities) == sorted({one.statement for one in about})
        assert table.messages_by("user".__eq__) == sorted(
            {one.source.message for one in rows if one.author == "user"}
        )
        later = [one.entry for one in rows if one.known_at_ms > 10**9]
        assert table.first_known_after(10**9) == (later[0] if later else None)


def test_the_size_in_memory_follows_the_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay that is kept counts, and a bounded number of assertions is kept in replays."""
    monkeypatch.setattr(statements, "MAX_REPLAYED", FEW_REPLAYED)
    count = 2 * FEW_REPLAYED
    ledger = Ledger(
        Assertion(n, n, n, "likes", f"tea {n}", Source(n, 0, 3), 10, 11) for n in range(1, count + 1)
    )
    bare = ledger.resident_bytes
    assert bare < count * 130
    ledger.known().versions(1, "likes")
    assert ledger.resident_bytes >= bare + REPLAYED_BYTES
    for n in range(1, count + 1):
        ledger.known().versions(n, "likes")
    assert ledger.resident_bytes < bare + count * REPLAYED_BYTES


def test_a_large_slot_stays_among_many_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions that alternate between a slot with many values and others do not replay it again."""
    monkeypatch.setattr(statements, "MAX_REPLAYED", FEW_REPLAYED)
    ledger = Ledger(
        Assertion(n, n, 1 if n % 2 else n, "likes", f"tea {n}", Source(n, 0, 3), 10, 11)
        for n in range(1, 4 * FEW_REPLAYED + 1)
    )
    large = ledger.known().versions(1, "likes")
    assert len(large) == 2 * FEW_REPLAYED
    for n in range(2, 4 * FEW_REPLAYED + 1, 2):
        ledger.known().versions(n, "likes")
    assert ledger.known().versions(1, "likes") is large
