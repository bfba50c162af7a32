"""The batches of one agent in one transaction, from acceptance until their status expires.

A batch is in one place at a time, which its state names: the inbox, the parked batches, or the digested ones. The
inbox is ordered by position. A position is used once, so deferring a batch moves it to the tail. A batch and its
receipt are deleted together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice

import msgspec

from ebbtide.bounds import MAX_COUNT
from ebbtide.records import Batch, BatchState, Receipt
from ebbtide.store import layout
from ebbtide.store.lmdb.tables import MetaWriter, Part, TableWriter


class InboxReader(Part):
    """The batches of one agent."""

    def get(self, number: int) -> Batch | None:
        """Return the batch of this number, or None once its status has expired."""
        return self._tables.load(layout.BATCHES, layout.u64(number))

    def all(self, start: int = 0) -> Iterator[Batch]:
        """Yield batches of every state by number, from `start`."""
        return self._tables.load_all(layout.BATCHES, layout.u64(start))

    def head(self) -> Batch | None:
        """Return the batch to digest next, or None."""
        return next(self.waiting(), None)

    def waiting(self) -> Iterator[Batch]:
        """Yield the batches to digest, in order."""
        for number in self._tables.load_all(layout.INBOX):
            batch = self.get(number)
            assert batch is not None, "an inbox entry has its batch"
            yield batch

    def receipt(self, idempotency_key: str) -> Receipt | None:
        """Return the receipt of an idempotency key, or None."""
        return self._tables.load(layout.RECEIPTS, layout.text_key(idempotency_key))


class InboxWriter(InboxReader):
    """The batches of one agent, with changes."""

    _tables: TableWriter

    def __init__(self, tables: TableWriter, meta: MetaWriter) -> None:
        super().__init__(tables)
        self._meta = meta

    def accept(self, batch: Batch, receipt: Receipt | None) -> Batch:
        """Put a new batch at the tail of the inbox, with the receipt of its idempotency key."""
        self._meta.set(next_batch_number=batch.number + 1)
        if receipt is not None:
            self._tables.save(layout.RECEIPTS, layout.text_key(batch.idempotency_key), receipt)
        return self._enqueue(batch)

    def finish(self, batch: Batch) -> None:
        """Move a digested batch out of the inbox. Its status stays until `prune` deletes it."""
        self._tables.delete(layout.INBOX, layout.u64(batch.position))
        self._tables.save(
            layout.DIGESTED, layout.u64(self._meta.take(layout.MetaEntries.next_digested)), batch.number
        )
        self._save(msgspec.structs.replace(batch, state=BatchState.DIGESTED.value, position=0))

    def defer(self, batch: Batch) -> Batch:
        """Move a batch to the tail of the inbox."""
        self._tables.delete(layout.INBOX, layout.u64(batch.position))
        return self._enqueue(batch)

    def park(self, batch: Batch) -> None:
        """Move a batch out of the inbox until an operator retries it."""
        self._tables.delete(layout.INBOX, layout.u64(batch.position))
        self._tables.put(layout.PARKED, layout.u64(batch.number), b"")
        self._save(msgspec.structs.replace(batch, state=BatchState.PARKED.value, position=0))

    def unpark(self, batch: Batch) -> Batch:
        """Put a parked batch at the tail of the inbox."""
        self._tables.delete(layout.PARKED, layout.u64(batch.number))
        return self._enqueue(batch)

    def prune(self, *, keep: int, older_than_ms: int, most: int, least: int = 0) -> None:
        """Delete statuses and receipts of digested batches beyond `keep`, or digested before a time.

        At most `most` are deleted. The latest `least` do not expire by time.
        """
        # A batch is in the inbox, parked or digested.
        waiting, parked = self._tables.count(layout.INBOX), self._tables.count(layout.PARKED)
        count = self._tables.count(layout.BATCHES) - waiting - parked
        surplus = count - keep
        by_age = count - least
        for key, value in list(islice(self._tables.items(layout.DIGESTED), most)):
            batch = self.get(layout.from_u64(value))
            assert batch is not None, "a digested entry has its batch"
            if surplus <= 0 and (by_age <= 0 or batch.digested_at_ms >= older_than_ms):
                return
            surplus -= 1
            by_age -= 1
            self._tables.delete(layout.DIGESTED, key)
            self._tables.delete(layout.BATCHES, value)
            self._drop_receipt(batch)

    def erase(self, batches: Collection[Batch]) -> None:
        """Delete batches of any state with their statuses and receipts."""
        numbers = {batch.number for batch in batches if batch.state == BatchState.DIGESTED.value}
        if numbers:
            for key, value in list(self._tables.items(layout.DIGESTED)):
                if layout.from_u64(value) in numbers:
                    self._tables.delete(layout.DIGESTED, key)
        for batch in batches:
            if batch.state == BatchState.PARKED.value:
                self._tables.delete(layout.PARKED, layout.u64(batch.number))
            elif batch.state != BatchState.DIGESTED.value:
                self._tables.delete(layout.INBOX, layout.u64(batch.position))
            self._drop_receipt(batch)
            self._tables.delete(layout.BATCHES, layout.u64(batch.number))

    def note_extracted_by_rules(self, batch: Batch) -> None:
        """Record that rules extracted the statements of a batch in place of a model."""
        self._save(msgspec.structs.replace(batch, extracted_by_rules=True))

    def note_erasure(self, batch: Batch) -> None:
        """Record that a part of a batch was erased, and delete its receipt, which has a hash of the whole."""
        self._drop_receipt(batch)
        erased_count = min(batch.erased_count + 1, MAX_COUNT)
        self._save(
            msgspec.structs.replace(batch, idempotency_key="", last_error="", erased_count=erased_count)
        )

    def _enqueue(self, batch: Batch) -> Batch:
        position = self._meta.take(layout.MetaEntries.next_position)
        placed = msgspec.structs.replace(batch, position=position, state=BatchState.WAITING.value)
        self._tables.save(layout.INBOX, layout.u64(position), batch.number)
        self._save(placed)
        return placed

    def _save(self, batch: Batch) -> None:
        self._tables.save(layout.BATCHES, layout.u64(batch.number), batch)

    def _drop_receipt(self, batch: Batch) -> None:
        if batch.idempotency_key:
            self._tables.delete(layout.RECEIPTS, layout.text_key(batch.idempotency_key))
