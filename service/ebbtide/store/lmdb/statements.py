"""The assertions and rulings of one agent, and the nodes that cite each message, in one transaction.

Assertions and rulings share one sequence of entry numbers. Only a deletion changes or removes an entry.

The nodes that cite a message are derived from the sources of nodes. `NodeWriter` notes each change here, and the blocks
are written at the end of the transaction: a document of one message may have thousands of memories.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge

from ebbtide.records import Node
from ebbtide.statements import Assertion, Ruling
from ebbtide.store import layout
from ebbtide.store.lmdb.tables import Part, TableReader, TableWriter


class StatementReader(Part):
    """The assertions and rulings of one agent, by entry number."""

    def assertion(self, entry: int) -> Assertion | None:
        """Return the assertion of this entry number, or None."""
        return self._tables.load(layout.ASSERTIONS, layout.u64(entry))

    def ruling(self, entry: int) -> Ruling | None:
        """Return the ruling of this entry number, or None."""
        return self._tables.load(layout.RULINGS, layout.u64(entry))

    def assertions(self, start: int = 0) -> Iterator[Assertion]:
        """Yield assertions in order of arrival, from entry `start`."""
        return self._tables.load_all(layout.ASSERTIONS, layout.u64(start))

    def rulings(self, start: int = 0) -> Iterator[Ruling]:
        """Yield rulings in order of arrival, from entry `start`."""
        return self._tables.load_all(layout.RULINGS, layout.u64(start))

    def entries(self, start: int = 0) -> Iterator[Assertion | Ruling]:
        """Yield assertions and rulings in order of arrival, from entry `start`."""
        found: tuple[Iterator[Assertion | Ruling], ...] = (self.assertions(start), self.rulings(start))
        return merge(*found, key=lambda one: one.entry)


class StatementWriter(StatementReader):
    """The assertions and rulings of one agent, with changes."""

    _tables: TableWriter

    def put(self, entry: Assertion | Ruling) -> None:
        """Write an assertion or a ruling."""
        if isinstance(entry, Assertion):
            self._tables.save(layout.ASSERTIONS, layout.u64(entry.entry), entry)
        else:
            self._tables.save(layout.RULINGS, layout.u64(entry.entry), entry)

    def remove(self, entry: int) -> None:
        """Delete the assertion or ruling of this entry number."""
        for table in (layout.ASSERTIONS, layout.RULINGS):
            self._tables.delete(table, layout.u64(entry))


Block = dict[int, tuple[int, ...]]
"""The ascending ids of the nodes that cite each message of a block."""


class CitingReader(Part):
    """The nodes that cite each message."""

    def of(self, message: int) -> tuple[int, ...]:
        """Return the ascending ids of the nodes whose sources name a message."""
        number, place = divmod(message, layout.MESSAGES_PER_BLOCK)
        return self._block(number).get(place, ())

    def all(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield (message, ids of the nodes that cite it) by message, as stored."""
        for key, value in self._tables.items(layout.CITINGS):
            block = layout.CITINGS.value.decode(value)
            for place, ids in block.items():
                yield layout.from_u64(key) * layout.MESSAGES_PER_BLOCK + place, ids

    def _block(self, number: int) -> Block:
        return self._tables.load(layout.CITINGS, layout.u64(number)) or {}


class CitingWriter(CitingReader):
    """The nodes that cite each message, with changes. `finish` writes them."""

    _tables: TableWriter

    def __init__(self, tables: TableReader) -> None:
        super().__init__(tables)
        self._changed: dict[int, dict[int, set[int]]] = {}
        """The changed blocks by number."""

    def change(self, before: Node | None, after: Node | None) -> None:
        """Note that a node was written or removed."""
        if before is not None:
            self._note(before, _cited(before) - _cited(after), is_cited=False)
        if after is not None:
            self._note(after, _cited(after) - _cited(before), is_cited=True)

    def _note(self, node: Node, messages: set[int], *, is_cited: bool) -> None:
        for message in messages:
            number, place = divmod(message, layout.MESSAGES_PER_BLOCK)
            ids = self._writable(number).setdefault(place, set())
            (ids.add if is_cited else ids.discard)(node.id)

    def finish(self) -> None:
        """Write the changed blocks."""
        for number, places in self._changed.items():
            self._write(number, places)
        self._changed.clear()

    def rebuild(self, nodes: Iterable[Node]) -> None:
        """Write the table again, from all nodes."""
        self._changed.clear()
        self._tables.clear(layout.CITINGS)
        for node in nodes:
            self.change(None, node)
        self.finish()

    def _writable(self, number: int) -> dict[int, set[int]]:
        block = self._changed.get(number)
        if block is None:
            stored = super()._block(number)
            block = self._changed[number] = {place: set(ids) for place, ids in stored.items()}
        return block

    def _block(self, number: int) -> Block:
        block = self._changed.get(number)
        return super()._block(number) if block is None else _sorted(block)

    def _write(self, number: int, places: dict[int, set[int]]) -> None:
        block = _sorted(places)
        if block:
            self._tables.save(layout.CITINGS, layout.u64(number), block)
        else:
            self._tables.delete(layout.CITINGS, layout.u64(number))


def _cited(node: Node | None) -> set[int]:
    return set() if node is None else {source.message for source in node.sources}


def _sorted(places: dict[int, set[int]]) -> Block:
    return {place: tuple(sorted(ids)) for place, ids in sorted(places.items()) if ids}
