"""The selector of retention: messages whose texts have expired (parameter `retention`).

A text is removed for good, and only after its batch was digested: its terms leave the index, and its chunk leaves the
store unless something else refers to it. The message record (speaker, time, conversation) stays, and so do its
memories, of which the passages of the message are built from then on. `runtime/retention_task.py` decides when steps
run.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from ebbtide.fleet.archive.retention import is_digested
from ebbtide.fleet.deletion.removal import Removal, Text
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.transaction import ReadTransaction

DAY_MS = 86_400_000

MAX_READ_PER_STEP = 4000
"""Most messages read in one step, about 10 ms."""


def before_ms(kept_days: int, now_ms: int) -> int | None:
    """Return the time before which accepted texts expire; None if every digested text does."""
    return now_ms - kept_days * DAY_MS if kept_days else None


@dataclass(slots=True)
class Expiry:
    """The search for expired texts. After a failure, start a new one; the store knows what is left."""

    retention: str
    """The parameter value for which the search was started. Another value starts a new one."""
    before_ms: int | None
    evidence: Collection[int] = frozenset()
    """Messages whose texts stay, since a statement that is true cites them."""
    is_done: bool = False
    removal: Removal = field(default_factory=lambda: Removal([]))
    """The texts found last."""
    _begin: int = 0
    _first_left: int | None = None
    """The first message examined whose text stays: its batch is not digested, or it is evidence."""

    def find(self, store: LmdbStore) -> None:
        """Find the next expired texts."""
        self.removal = Removal(store.read(self._find_due))
        if self.is_done:
            self._note_progress(store)

    def _find_due(self, txn: ReadTransaction) -> list[Text]:
        begin = max(self._begin, txn.meta.texts_from)
        batches: dict[int, bool] = {}
        due: list[Text] = []
        is_done = True
        for looked_at, record in enumerate(txn.messages.all(begin)):
            if looked_at == MAX_READ_PER_STEP:
                is_done = False
                break
            if self.before_ms is not None and record.accepted_at_ms >= self.before_ms:
                break
            self._begin = record.number + 1
            if record.is_withdrawn:
                continue
            if record.number not in self.evidence and is_digested(txn, record, batches):
                due.append(Text(record.number))
            elif self._first_left is None:
                self._first_left = record.number
        self.is_done = is_done and not due
        return due

    def _note_progress(self, store: LmdbStore) -> None:
        """Store where the next search begins."""
        left = self._begin if self._first_left is None else self._first_left
        if left > store.read(lambda txn: txn.meta.texts_from):
            store.write(lambda txn: txn.meta.set(texts_from=left))
