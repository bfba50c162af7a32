"""The table of lives: written with every change, completed for older stores, checked, rebuilt and exported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ebbtide.fleet.deletion.removal import Correction, Memory, Removal
from ebbtide.ids import AgentId
from ebbtide.records import Life
from ebbtide.store import layout
from ebbtide.store.integrity.check import check_store
from ebbtide.store.integrity.rebuild import rebuild_store
from tests.property.homes import Home
from tests.support.moving import directory, received, sent, staged_store


@pytest.fixture
def home() -> Iterator[Home]:
    """An agent with living, forgotten, corrected and deleted memories, in several blocks of lives."""
    made = Home({"decay_rate": 0.3, "focus_limit": 2, "max_owed_passes": 5})
    for number in range(40):
        segments = [(f"Memory {number} {part} about boats and tar.", [f"w{number}"]) for part in range(2)]
        made.remember(segments, {})
        while made.counters()[1]:
            made.compress(lambda text, target: text[:target] or None)
    living = sorted(made.nodes())
    for item, action in (
        (Memory(living[0]), "deleted"),
        (Correction(living[-1], content="Other words, much longer than those before them."), "corrected"),
    ):
        made.workspace.remove(Removal([item], action), lambda: False, 10, "-")
    yield made
    made.close()


def lives_of(home: Home) -> dict[int, Life]:
    """Return every life by the id of its memory."""

    def read(txn: Any) -> dict[int, Life]:
        columns = txn.lives.columns()
        assert [*columns.node_id] == sorted(columns.node_id)
        rows = zip(columns.after, columns.length, columns.forgotten_in, strict=True)
        found = {int(one): Life(*map(int, row)) for one, row in zip(columns.node_id, rows, strict=True)}
        assert {one: txn.lives.get(one) for one in found} == found
        assert found.keys() == {one for one in range(txn.meta.next_node_id) if txn.lives.get(one)}
        return found

    return home.store.read(read)


def events_of(home: Home) -> list[Any]:
    return home.store.read(lambda txn: list(txn.events.since(0)))


def test_lives_are_those_of_the_events(home: Home) -> None:
    """Births, lengths and passes are those of the events. A deleted memory has no life."""
    finished, expected, gone = 0, dict[int, Life](), set[int]()
    for event in events_of(home):
        numbers = event.numbers
        if event.kind == "NodeCreated":
            expected[numbers["node"]] = Life(finished, numbers["length"])
        elif event.kind == "NodeForgotten":
            assert numbers["pass_number"] == finished + 1
            expected[numbers["node"]] = expected[numbers["node"]]._replace(forgotten_in=finished + 1)
        elif event.kind == "NodeCorrected":
            length = home.nodes()[numbers["node"]].original_length
            expected[numbers["node"]] = expected[numbers["node"]]._replace(length=length)
        elif event.kind == "MemoryErased" and numbers["node"]:
            del expected[numbers["node"]]
            gone.add(numbers["node"])
        elif event.kind == "PassCompleted":
            finished = numbers["pass_number"]
    found = lives_of(home)
    assert found == expected
    assert len(gone) == 1 and gone.isdisjoint(found)
    assert max(found) > layout.LIVES_PER_BLOCK
    assert {one for one, life in found.items() if not life.forgotten_in} == home.nodes().keys()
    assert sum(life.forgotten_in > 0 for life in found.values()) > 20
    assert home.faults() == []


def test_columns_of_a_range_are_those_of_its_ids(home: Home) -> None:
    """A range may begin and end within a block."""
    every = sorted(lives_of(home))
    for start, end in ((0, 5), (3, 64), (60, 70), (64, 65), (70, None), (500, 600)):
        found = home.store.read(lambda txn, start=start, end=end: txn.lives.columns(start, end))
        assert found.node_id.tolist() == [one for one in every if start <= one and (end is None or one < end)]


def test_an_older_store_gets_the_lives_of_its_events(home: Home) -> None:
    """When it is opened, the table is written from the events; without events, living memories begin at pass 0."""
    expected = lives_of(home)

    def remove(txn: Any) -> None:
        txn.tables.clear(layout.LIVES)
        txn.meta.set(has_lives=False)

    home.store.write(remove)
    assert check_store(home.store.store) == []
    home.reopen()
    assert lives_of(home) == expected
    home.store.write(remove)
    home.store.write(lambda txn: txn.tables.clear(layout.EVENTS))
    home.reopen()
    living = home.nodes().values()
    assert lives_of(home) == {node.id: Life(0, node.original_length) for node in living}
    assert home.faults() == []


WRONG = {
    "a living memory without a life": lambda node, gone: (node, None),
    "an end of a living memory": lambda node, gone: (node, Life(0, 30, 1)),
    "another length": lambda node, gone: (node, Life(0, 31)),
    "a life without an end": lambda node, gone: (gone, Life(0, 30)),
    "an end before the birth": lambda node, gone: (gone, Life(3, 30, 3)),
    "a birth that is still to come": lambda node, gone: (gone, Life(5000, 30, 5001)),
    "an end that is still to come": lambda node, gone: (gone, Life(0, 30, 5000)),
    "a memory that never existed": lambda node, gone: (100_000, Life(0, 30, 1)),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_life_that_does_not_fit_is_found_and_repaired(home: Home, what: str) -> None:
    """The checker finds it, and a rebuild leaves a store without findings."""
    lives = lives_of(home)
    node_id, life = WRONG[what](min(home.nodes()), min(lives.keys() - home.nodes().keys()))
    home.store.write(lambda txn: txn.lives.put(node_id, life))
    found = check_store(home.store.store)
    assert [(one.table, one.key, one.is_repairable) for one in found] == [("lives", f"n{node_id}", True)]
    assert rebuild_store(home.store.store) == []


def test_lives_are_exported(home: Home) -> None:
    """An import of an export has the same lives, also of forgotten memories."""
    with directory() as data:
        content = sent(data, home.store.store, "export")
        assert content.count(b'{"type":"forgotten"') > 20
        with staged_store(received(data, content, AgentId("ann"))) as store:
            assert check_store(store) == []
            stored = home.store.read(lambda txn: list(txn.tables.items(layout.LIVES)))
            assert store.read(lambda txn: list(txn.tables.items(layout.LIVES))) == stored


def test_a_forgotten_memory_that_comes_twice_is_refused(home: Home) -> None:
    """An export with two lives of one memory is refused with the number of the line."""
    with directory() as data:
        lines = sent(data, home.store.store, "export").splitlines(keepends=True)
        place = next(number for number, line in enumerate(lines) if b'"forgotten"' in line[:20])
        lines.insert(place, lines[place])
        lines[-1] = b'{"type":"end","lines":%d}\n' % (len(lines) - 1)
        with pytest.raises(Exception, match=f"line {place + 2}: duplicate number"):
            received(data, b"".join(lines), AgentId("ann"))
