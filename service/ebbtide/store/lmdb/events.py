"""The event log in one transaction: what happened to this agent, by sequence number, the latest of it.

The events of a commit are one value under the number of the first, written in the transaction of the change that they
tell of: what is not told did not happen, and what did not happen is not told. Numbers are given once and never again;
the oldest records go as new ones come. Where another store takes the place of an agent's, its numbers begin beyond all
that may have been given to the agent before (`succession.py`). Deliberately not here: what is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ebbtide.bounds import MAX_NUMBER
from ebbtide.events import Event, EventRecord, EventRun, unpacked
from ebbtide.store import layout
from ebbtide.store.lmdb.tables import TableReading, TableWriting

MOST_DROPPED = 64
"""Most records dropped along with a new one, so that no commit grows without bound."""


class EventReading(TableReading):
    """The event log of one agent."""

    def next_event(self) -> int:
        """The number the next event will get."""
        return self._number(b"next_event", 1)

    def first_event(self) -> int:
        """The number of the oldest event that is kept; of the next one where none is."""
        for key, _ in self.items(layout.EVENTS):
            return layout.from_u64(key)
        return self.next_event()

    def events(self, start: int) -> Iterator[Event]:
        """Events from number `start` on, in order; of those that are kept."""
        for key, value in self._records(start):
            yield from unpacked(layout.decode(value, type=EventRecord), layout.from_u64(key), start)

    def _records(self, start: int) -> Iterator[tuple[bytes, bytes]]:
        """Records from the one that holds number `start` on."""
        cursor = self._txn.cursor(db=self._tables[layout.EVENTS])
        key = layout.u64(max(0, start))
        found = cursor.set_range(key)
        if found and bytes(cursor.key()) == key:
            return iter(cursor.iternext())
        # The record before may reach up to it.
        has_one_before = cursor.prev() if found else cursor.last()
        if not has_one_before and not cursor.first():
            return iter(())
        return iter(cursor.iternext())


class EventWriting(EventReading, TableWriting):
    """The event log of one agent, written to."""

    def put_events(self, at_ms: int, runs: Sequence[EventRun], keep: int) -> None:
        """Tell what happened, and drop whole records beyond the latest `keep` events."""
        if not runs:
            return
        record = EventRecord(at_ms, list(runs))
        first = self.next_event()
        self.put(layout.EVENTS, layout.u64(first), layout.encode(record))
        following = first + record.count
        self._set_number(b"next_event", following)
        self._drop_events_before(following - keep)

    def begin_events_beyond(self, number: int) -> None:
        """Begin the log anew: nothing is kept, and numbers go on with the second one after `number`.

        The one between is never given, so that whoever was told `number` does not take what comes for what follows.
        """
        assert 0 <= number < MAX_NUMBER, number
        self.clear(layout.EVENTS)
        self._set_number(b"next_event", number + 2)

    def _drop_events_before(self, number: int) -> None:
        """Drop records all of whose events are older; a few, since each commit drops some."""
        if number <= 1:
            return
        cursor = self._txn.cursor(db=self._tables[layout.EVENTS])
        dropped: list[bytes] = []
        before: bytes | None = None
        for key in cursor.iternext(keys=True, values=False):
            if layout.from_u64(key) > number:
                break
            if before is not None:
                dropped.append(before)
            if len(dropped) == MOST_DROPPED:
                break
            before = bytes(key)
        for key in dropped:
            self.delete(layout.EVENTS, key)
