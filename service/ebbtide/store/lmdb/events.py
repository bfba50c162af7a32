"""The event log of one agent in one transaction: the latest changes by sequence number.

The events of a commit are one value under the number of the first event, written in the transaction of the change.
Each number is used once, and new records displace the oldest. After an agent is replaced, numbers continue beyond
every number that its predecessor may have used (`directory/replacement.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ebbtide.bounds import MAX_NUMBER
from ebbtide.events import Event, EventKind, EventRecord, EventRun, PackedRecord, decode_packed, unpacked
from ebbtide.records import Life
from ebbtide.store.layout import EVENTS, from_u64, u64
from ebbtide.store.lmdb.tables import MetaReader, MetaWriter, TableReader, TableWriter

MAX_DROPPED = 64
"""Records dropped in one commit at most, so the size of a commit is bounded."""


class EventReader:
    """The event log of one agent."""

    def __init__(self, tables: TableReader, meta: MetaReader) -> None:
        self._tables = tables
        self._meta = meta

    def first_number(self) -> int:
        """Return the number of the oldest stored event, or of the next one where none is stored."""
        for key, _ in self._tables.items(EVENTS):
            return from_u64(key)
        return self._meta.next_event

    def since(self, start: int) -> Iterator[Event]:
        """Yield stored events in order, from number `start`."""
        for first, value in self._values(start):
            yield from unpacked(EVENTS.value.decode(value), first, start)

    def packed(self, start: int = 0) -> Iterator[tuple[int, PackedRecord]]:
        """Yield (number of the first event, events) of each commit in order, from that with event `start`."""
        for first, value in self._values(start):
            yield first, decode_packed(value)

    def _values(self, start: int) -> Iterator[tuple[int, bytes]]:
        cursor, key = self._tables.cursor(EVENTS), u64(max(0, start))
        found = cursor.set_range(key)
        if not found or cursor.key() != key:
            # The record before may contain it.
            has_one_before = cursor.prev() if found else cursor.last()
            if not has_one_before and not cursor.first():
                return
        for first, value in cursor.iternext():
            yield from_u64(first), value

    def lives(self) -> dict[int, Life]:
        """Return the lives that stored events tell, without those of deleted memories."""
        found: dict[int, Life] = {}
        finished = self.passes_before(0)
        for _, record in self.packed():
            for run in record.runs:
                columns = run.columns
                if run.kind == EventKind.NODE_CREATED.value:
                    node, _, length = columns
                    found |= {one: Life(finished, size) for one, size in zip(node, length, strict=True)}
                elif run.kind == EventKind.NODE_FORGOTTEN.value:
                    for one, number in zip(*columns, strict=True):
                        if one in found:
                            found[one] = found[one]._replace(forgotten_in=number)
                elif run.kind == EventKind.MEMORY_ERASED.value:
                    for one in columns[0]:
                        found.pop(one, None)
                elif run.kind == EventKind.PASS_COMPLETED.value:
                    finished = columns[0][-1]
        return found

    def passes_before(self, number: int) -> int:
        """Return the number of passes that were completed before the first stored event from `number` on."""
        for first, record in self.packed(number):
            for run in record.runs:
                following = first + run.count
                if run.kind == EventKind.PASS_COMPLETED.value and following > number:
                    return run.columns[0][max(0, number - first)] - 1
                first = following
        return self._meta.finished_passes


class EventWriter(EventReader):
    """The event log of one agent, with changes."""

    _tables: TableWriter
    _meta: MetaWriter

    def put(self, at_ms: int, runs: Sequence[EventRun], keep: int) -> None:
        """Store the events of a commit, and drop whole records beyond the latest `keep` events."""
        if not runs:
            return
        record = EventRecord(at_ms, list(runs))
        first = self._meta.next_event
        self._tables.save(EVENTS, u64(first), record)
        following = first + record.count
        self._meta.set(next_event=following)
        self._drop_before(following - keep)

    def restart_beyond(self, number: int) -> None:
        """Delete every event, and continue with the second number after `number`.

        The number between is never used, so a client that has seen `number` notices the gap.
        """
        assert 0 <= number < MAX_NUMBER, number
        self._tables.clear(EVENTS)
        self._meta.set(next_event=number + 2)

    def _drop_before(self, number: int) -> None:
        """Drop records that only have older events: a few, since each commit drops some."""
        if number <= 1:
            return
        dropped: list[bytes] = []
        before: bytes | None = None
        for key in self._tables.cursor(EVENTS).iternext(keys=True, values=False):
            if from_u64(key) > number:
                break
            if before is not None:
                dropped.append(before)
            if len(dropped) == MAX_DROPPED:
                break
            before = key
        for key in dropped:
            self._tables.delete(EVENTS, key)
