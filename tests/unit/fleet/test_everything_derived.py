"""Everything derived goes with its source: the register is complete, and each entry of it is needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ebbtide.changes import Change
from ebbtide.fleet.deletion import executor
from ebbtide.fleet.deletion.executor import NOT_DERIVED, REGISTER
from ebbtide.fleet.deletion.removal import Memory, Removal, Removed, Tally, Text, Traces, Words
from ebbtide.ids import NodeId
from ebbtide.memory.statements import Ledger
from ebbtide.records import Entity, Link, Node, Source
from ebbtide.statements import Assertion, LedgerState, Ruling
from ebbtide.store import layout
from tests.property.homes import Home

SAID = "Zorblatt repairs xylorimbas in Quillhaven."
REASON = "Because of Quillhaven."
OTHER = "My cat Miso sleeps on the warm windowsill."
SECOND = 2
"""The number of the memory of OTHER."""


@pytest.fixture
def home() -> Iterator[Home]:
    """An agent of its own."""
    made = Home({})
    yield made
    assert made.faults() == []
    made.close()


def remembered(home: Home, *texts: str) -> list[int]:
    """Store messages without memories, and return their numbers."""
    numbers = [home.accept([text]).first_message for text in texts]
    for _ in texts:
        home.digest(home.task(), [], {})
    return numbers


def statement(
    home: Home, message: int, text: str, subject: NodeId, value: str, slot: str = "likes"
) -> NodeId:
    """Store a statement about an entity that cites a whole message, with both links."""
    workspace = home.workspace
    number, state = workspace.network.next_node_id, workspace.store.read(lambda txn: txn.meta.ledger)
    source = Source(message, 0, len(text.encode()))
    node = Node(number, text, text[:20], (value,), 10, len(text), kind="fact", sources=(source,), batch=1)
    assertion = Assertion(state.next_entry, number, subject, slot, value, source, 10, 10)
    links = [Link(number, subject, slot, 1.0, 0), Link(subject, number, slot, 1.0, 0)]
    workspace.commit(
        Change(
            nodes=[node],
            links=links,
            assertions=[assertion],
            next_node_id=number + 1,
            ledger=LedgerState(state.next_entry + 1),
        )
    )
    return number


def entity(home: Home, name: str) -> NodeId:
    """Create an entity."""
    number = home.workspace.network.next_node_id
    made = Entity(number, name, name.casefold(), 0)
    home.workspace.commit(Change(entities={number: made}, next_node_id=number + 1))
    return number


def ruled(home: Home, kind: Any, target: int, message: int, text: str) -> None:
    """Store a ruling with a reason."""
    state = home.store.read(lambda txn: txn.meta.ledger)
    sources = (Source(message, 0, len(text.encode())),)
    ruling = Ruling(state.next_entry, kind, target, 10, sources=sources)
    home.workspace.commit(Change(rulings=[ruling], ledger=LedgerState(state.next_entry + 1)))


def remove(home: Home, *items: Any, action: str = "forgotten", is_permanent: bool = True) -> list[Removed]:
    """Remove items to the end, and return the steps."""
    removal, steps = Removal(items, action, is_permanent=is_permanent), []
    while not removal.is_done:
        steps.append(home.workspace.remove(removal, lambda: False, 10, "-"))
        assert_ledger_follows(home)
    return steps


def assert_ledger_follows(home: Home) -> None:
    """Assert that the ledger in memory equals one read from the store."""
    stored = home.store.read(lambda txn: list(txn.statements.entries()))
    known, fresh = home.workspace.ledger, Ledger(stored)
    assert len(known) == len(stored)
    assert known.rulings() == fresh.rulings()
    assert sorted(known.all_assertions(), key=lambda one: one.entry) == sorted(
        fresh.all_assertions(), key=lambda one: one.entry
    )


def texts(home: Home) -> list[str]:
    """Return the texts of all messages, by number."""
    return [
        (home.store.read(lambda txn, one=record: txn.messages.text(one)) or "").strip()
        for record in home.store.read(lambda txn: list(txn.messages.all()))
    ]


def test_every_table_is_registered() -> None:
    """A new table is in the register, or among those with nothing derived: a deletion would leave its data."""
    registered = [table for one in REGISTER for table in one.tables]
    assert {one.name for one in (*registered, *NOT_DERIVED)} == {one.name for one in layout.TABLES}
    assert len(registered) + len(NOT_DERIVED) == len(layout.TABLES)


def filled(home: Home) -> list[Any]:
    """Derive one of each from texts about Quillhaven, and return what to remove."""
    home.remember([(SAID, [])], {})
    home.remember([(OTHER, [])], {})
    [first, second] = home.nodes()
    assert second == SECOND
    # The model named a link after a memory that is forgotten now.
    home.workspace.commit(Change(links=[Link(second, first, "Quillhaven", 0.5, 0)]))
    home.workspace.commit(Change(forgotten=[first], focus=(second,)))
    owner = entity(home, "Quillhaven")
    [about, reason] = remembered(home, SAID, REASON)
    number = statement(home, about, SAID, owner, "Quillhaven")
    ruled(home, "vote", number, reason, REASON)
    return [Memory(number), Words(1), Traces(entities=(owner,))]


def left_in(home: Home) -> list[str]:
    """Return what is left of them: tables with the word, entries, and batches without messages."""
    found = []
    for table in layout.TABLES:
        values = home.store.read(lambda txn, one=table: [value for _, value in txn.tables.items(one)])
        found += [table.name.decode() for value in values if "Quillhaven" in str(table.value.decode(value))]
    found += ["an entry" for _ in home.store.read(lambda txn: list(txn.statements.entries()))]
    lives = home.store.read(lambda txn: txn.lives.columns().node_id.tolist())
    found += [f"life {number}" for number in lives if number != SECOND]
    batches = home.store.read(lambda txn: [one.number for one in txn.inbox.all()])
    return found + [f"batch {number}" for number in batches if number != 2]


def test_nothing_derived_is_left(home: Home) -> None:
    """Words, statements, reasons, names of links and entities, and empty batches go with their messages."""
    items = filled(home)
    parts = ("nodes", "chunks", "assertions", "entities", "relations", "batch 1", "an entry", "life 1")
    assert {*parts} <= {*left_in(home)}
    remove(home, *items)
    home.workspace.compact()
    assert left_in(home) == []


NEEDED = [one for one in REGISTER if one.remove.__code__.co_names]
"""The entries of which something exists."""


@pytest.mark.parametrize("skipped", NEEDED, ids=lambda one: one.remove.__name__)
def test_each_entry_of_the_register_is_needed(monkeypatch: pytest.MonkeyPatch, skipped: Any) -> None:
    """Without one of them, something is left: so the test above would notice its loss."""
    home = Home({})
    items = filled(home)
    monkeypatch.setattr(executor, "REGISTER", [one for one in REGISTER if one is not skipped])
    removal = Removal(items, "forgotten", is_permanent=True)
    try:
        while not removal.is_done:
            home.workspace.remove(removal, lambda: False, 10, "-")
        home.workspace.compact()
        assert left_in(home) != []
    finally:
        home.close()


def test_the_reason_of_a_ruling_goes_with_its_statement(home: Home) -> None:
    """A reason is a message of its own: it is overwritten with the ruling, and other reasons stay."""
    owner = entity(home, "Zorblatt")
    [first, second, reason, other] = remembered(home, SAID, OTHER, REASON, "It is well known.")
    one, two = (
        statement(home, first, SAID, owner, "xylorimbas"),
        statement(home, second, OTHER, owner, "Miso"),
    )
    ruled(home, "vote", one, reason, REASON)
    ruled(home, "pin", two, other, "It is well known.")
    [step] = remove(home, Memory(one), action="deleted", is_permanent=False)
    assert texts(home) == ["", OTHER, "", "It is well known."]
    assert step.tally == Tally(nodes=1, links=2, bytes=len("".join((SAID + REASON).split())))
    assert [ruling.kind for ruling in home.workspace.ledger.rulings()] == ["pin"]


def test_a_ruling_goes_with_its_reason(home: Home) -> None:
    """A ruling whose only reason is deleted is undone, and the statement that it withdrew is current again."""
    owner = entity(home, "Zorblatt")
    [said, reason] = remembered(home, SAID, REASON)
    number = statement(home, said, SAID, owner, "xylorimbas")
    ruled(home, "retract", number, reason, REASON)
    [version] = home.workspace.ledger.known().history(number)
    assert version.withdrawn == "retracted"
    remove(home, Words(reason))
    [version] = home.workspace.ledger.known().history(number)
    assert version.withdrawn == ""


def test_an_entity_with_many_statements_goes_in_steps(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step is bounded and complete for any number of statements in one slot of one entity."""
    monkeypatch.setattr(executor, "MAX_TEXTS_PER_STEP", 10)
    owner = entity(home, "Zorblatt")
    lines = [f"Zorblatt likes xylorimba number {number}." for number in range(40)]
    numbers = [
        statement(home, message, line, owner, f"xylorimba {message}")
        for message, line in zip(remembered(home, *lines), lines, strict=True)
    ]
    assert home.workspace.ledger.about([owner]) == set(numbers)
    steps = remove(home, *map(Memory, numbers), Traces(entities=(owner,)))
    assert len(steps) >= 4 and max(step.tally.nodes for step in steps) <= 10
    assert sum(step.tally.messages for step in steps) == 40
    assert len(home.workspace.ledger) == 0 and owner not in home.workspace.network.entities


def test_a_deletion_reads_no_entry_of_other_statements(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger in memory follows a deletion; the stored entries are not read again."""
    owner = entity(home, "Zorblatt")
    messages = remembered(home, SAID, OTHER)
    one = statement(home, messages[0], SAID, owner, "xylorimbas")
    statement(home, messages[1], OTHER, owner, "Miso")
    assert home.workspace.ledger.statement_count == 2
    reads: list[int] = []
    monkeypatch.setattr(
        "ebbtide.store.lmdb.statements.StatementReader.entries", lambda *_: reads.append(1) or []
    )
    home.workspace.remove(Removal([Memory(one)], "deleted"), lambda: False, 10, "-")
    assert home.workspace.ledger.statement_count == 1 and reads == []


def test_retention_keeps_statements(home: Home) -> None:
    """An expired text leaves its statements, with their assertions."""
    owner = entity(home, "Zorblatt")
    [said] = remembered(home, SAID)
    number = statement(home, said, SAID, owner, "xylorimbas")
    remove(home, Text(said), action="", is_permanent=False)
    assert texts(home) == [""] and number in home.nodes()
    assert len(home.workspace.ledger) == 1


@pytest.mark.parametrize("is_named_elsewhere", [True, False])
def test_the_entries_of_a_forgotten_statement_go_with_their_message(
    home: Home, is_named_elsewhere: bool
) -> None:
    """A ruling with another source keeps that, unless the entity that it is about is deleted."""
    owner = entity(home, "Zorblatt")
    [said, reason, other, plain] = remembered(home, SAID, REASON, OTHER, "Zorblatt sings.")
    number = statement(home, said, SAID, owner, "xylorimbas")
    if is_named_elsewhere:
        statement(home, plain, "Zorblatt sings.", owner, "songs")
    ruled(home, "vote", owner, reason, REASON)
    sources = (Source(reason, 0, len(REASON)), Source(other, 0, len(OTHER)))
    entry = home.store.read(lambda txn: txn.meta.ledger.next_entry)
    ruling = Ruling(entry, "distinct", owner, 10, other=owner, sources=sources)
    home.workspace.commit(Change(forgotten=[number], rulings=[ruling], ledger=LedgerState(entry + 1)))
    remove(home, Words(said), Words(reason))
    left = home.workspace.ledger.rulings()
    assert [one.sources for one in left] == ([sources[1:]] if is_named_elsewhere else [])
    assert texts(home) == ["", "", OTHER if is_named_elsewhere else "", "Zorblatt sings."]
