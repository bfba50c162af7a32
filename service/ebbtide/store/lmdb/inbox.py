"""Batches in one transaction: where each one stands, from its acceptance until nobody asks for it any more.

A batch is in one place at a time: in the inbox, parked, or among the digested; its status says which, and changes with
it. The order of the inbox is that of positions, which are given once and never again, so that putting a batch off
moves it to the tail. A batch and its receipt go together, once its digest is long past.

What the messages of a batch say is not here, and neither is why one is parked or put off.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice

import msgspec

from ebbtide.bounds import MAX_COUNT
from ebbtide.records import Batch, BatchState, Receipt
from ebbtide.store import layout
from ebbtide.store.lmdb.tables import TableReading, TableWriting


class InboxReading(TableReading):
    """The batches of one agent."""

    def batch(self, number: int) -> Batch | None:
        """The batch of this number, as long as its status is kept."""
        value = self.get(layout.BATCHES, layout.u64(number))
        return None if value is None else layout.decode(value, type=Batch)

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """Batches from number `start` on, by number."""
        for _, value in self.items(layout.BATCHES, layout.u64(start)):
            yield layout.decode(value, type=Batch)

    def head(self) -> Batch | None:
        """The batch to be digested next."""
        return next(self.waiting(), None)

    def waiting(self) -> Iterator[Batch]:
        """Batches that wait to be digested, in order."""
        for _, value in self.items(layout.INBOX):
            batch = self.batch(layout.from_u64(value))
            assert batch is not None, "an inbox entry has its batch"
            yield batch

    def receipt(self, idempotency_key: str) -> Receipt | None:
        """What an idempotency key was used for."""
        value = self.get(layout.RECEIPTS, layout.text_key(idempotency_key))
        return None if value is None else layout.decode(value, type=Receipt)

    def next_batch_number(self) -> int:
        """The number the next batch will get."""
        return self._number(b"next_batch_number", 1)


class InboxWriting(InboxReading, TableWriting):
    """The batches of one agent, moved from place to place."""

    def _take_in(self, batch: Batch, receipt: Receipt | None) -> Batch:
        """Put a new batch at the tail of the inbox, with the receipt of its idempotency key."""
        self._set_number(b"next_batch_number", batch.number + 1)
        if receipt is not None:
            key = layout.text_key(batch.idempotency_key)
            self.put(layout.RECEIPTS, key, layout.encode(receipt))
        return self._enqueue(batch)

    def finish_batch(self, batch: Batch) -> None:
        """Take a digested batch out of the inbox; its status stays for a while."""
        self.delete(layout.INBOX, layout.u64(batch.position))
        sequence = self._number(b"next_digested", 1)
        self._set_number(b"next_digested", sequence + 1)
        self.put(layout.DIGESTED, layout.u64(sequence), layout.u64(batch.number))
        self._put_batch(msgspec.structs.replace(batch, state=BatchState.DIGESTED.value, position=0))

    def defer_batch(self, batch: Batch) -> Batch:
        """Move a batch to the tail of the inbox."""
        self.delete(layout.INBOX, layout.u64(batch.position))
        return self._enqueue(batch)

    def park_batch(self, batch: Batch) -> None:
        """Take a batch out of the inbox and keep it, to be retried by hand."""
        self.delete(layout.INBOX, layout.u64(batch.position))
        self.put(layout.PARKED, layout.u64(batch.number), b"")
        self._put_batch(msgspec.structs.replace(batch, state=BatchState.PARKED.value, position=0))

    def unpark_batch(self, batch: Batch) -> Batch:
        """Put a parked batch at the tail of the inbox."""
        self.delete(layout.PARKED, layout.u64(batch.number))
        return self._enqueue(batch)

    def _enqueue(self, batch: Batch) -> Batch:
        position = self._number(b"next_position", 1)
        self._set_number(b"next_position", position + 1)
        placed = msgspec.structs.replace(batch, position=position, state=BatchState.WAITING.value)
        self.put(layout.INBOX, layout.u64(position), layout.u64(batch.number))
        self._put_batch(placed)
        return placed

    def _put_batch(self, batch: Batch) -> None:
        self.put(layout.BATCHES, layout.u64(batch.number), layout.encode(batch))

    def prune(self, *, keep: int, older_than_ms: int, most: int, least: int = 0) -> None:
        """Drop statuses and receipts of digested batches beyond `keep`, or digested before a time.

        The latest `least` do not go by time.
        """
        count = self._entries(layout.DIGESTED)
        surplus = count - keep
        by_age = count - least
        for key, value in list(islice(self.items(layout.DIGESTED), most)):
            batch = self.batch(layout.from_u64(value))
            assert batch is not None, "a digested entry has its batch"
            if surplus <= 0 and (by_age <= 0 or batch.digested_at_ms >= older_than_ms):
                return
            surplus -= 1
            by_age -= 1
            self.delete(layout.DIGESTED, key)
            self.delete(layout.BATCHES, value)
            self._drop_receipt(batch)

    def erase_batches(self, batches: Collection[Batch]) -> None:
        """Take batches out of wherever they stand, with their statuses and receipts."""
        numbers = {batch.number for batch in batches if batch.state == BatchState.DIGESTED.value}
        if numbers:
            for key, value in list(self.items(layout.DIGESTED)):
                if layout.from_u64(value) in numbers:
                    self.delete(layout.DIGESTED, key)
        for batch in batches:
            if batch.state == BatchState.PARKED.value:
                self.delete(layout.PARKED, layout.u64(batch.number))
            elif batch.state != BatchState.DIGESTED.value:
                self.delete(layout.INBOX, layout.u64(batch.position))
            self._drop_receipt(batch)
            self.delete(layout.BATCHES, layout.u64(batch.number))

    def note_erasure(self, batch: Batch) -> None:
        """Something of what a batch says is erased: its receipt, which holds a hash of all of it, goes too."""
        self._drop_receipt(batch)
        erased_count = min(batch.erased_count + 1, MAX_COUNT)
        self._put_batch(
            msgspec.structs.replace(batch, idempotency_key="", last_error="", erased_count=erased_count)
        )

    def _drop_receipt(self, batch: Batch) -> None:
        if batch.idempotency_key:
            self.delete(layout.RECEIPTS, layout.text_key(batch.idempotency_key))
