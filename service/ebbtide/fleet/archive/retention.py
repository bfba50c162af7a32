"""Retention: texts of messages are removed from the archive when they expire (parameter `retention`).

A text is removed for good, and only after its batch was digested: its terms leave the index, and its chunk leaves the
store unless something else refers to it. The message record (speaker, time, conversation) stays, and so do its
memories. From then on the passages of the message are built from its memories, and rebuilt when one of them is
shortened or forgotten.

The rule guarded here: each step is one transaction, and the remaining work can be read from the store. A kill at any
moment loses nothing and restores nothing. `retention_task.py` decides when steps run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from ebbtide.changes import Change
from ebbtide.fleet.archive.archive import passages_from_memories, spans_of
from ebbtide.fleet.archive.reading import living_nodes, message_with_text
from ebbtide.ids import NodeId
from ebbtide.records import BatchState, MessageRecord, Node, PassageEntry
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction

DAY_MS = 86_400_000

MAX_READ_PER_STEP = 4000
"""Most messages or nodes read in one step, about 10 ms."""

MAX_TEXTS_PER_STEP = 200
"""Most texts removed in one step."""

PassageUpdates = dict[int, list[PassageEntry]]
"""New passages of messages without text, by message number."""


def before_ms(kept_days: int, now_ms: int) -> int | None:
    """Return the time before which accepted texts expire; None if every digested text does."""
    return now_ms - kept_days * DAY_MS if kept_days else None


def remove_texts(txn: WriteTransaction, messages: Iterable[int], nodes: Sequence[Node]) -> PassageUpdates:
    """Remove the texts of messages. `nodes` are all living memories made from these messages."""
    updates: PassageUpdates = {}
    for number in messages:
        found = message_with_text(txn, number)
        if found is None:
            continue
        record, text = found
        updates[number] = passages_from_memories(record, spans_of(text), nodes)
        txn.messages.withdraw(record, updates[number])
    if updates:
        txn.meta.set(leftovers=True)
    return updates


def citing(txn: ReadTransaction, change: Change) -> set[int]:
    """Return the messages without text whose memories a change affects. Call this before the change is written."""
    if not txn.meta.withdrawn:
        return set()
    ids = [*change.forgotten, *change.deleted, *(node.id for node in change.nodes)]
    before = living_nodes(txn, ids)
    cited = {source.message for node in (*before, *change.nodes) for source in node.sources}
    records = (txn.messages.get(number) for number in cited)
    return {record.number for record in records if record is not None and record.is_withdrawn}


def refresh_passages(txn: WriteTransaction, messages: Iterable[int], change: Change) -> PassageUpdates | None:
    """Rebuild the passages of messages without text after a change was written.

    Return None if stored passages are missing; they are rebuilt when the archive is loaded.
    """
    updates: PassageUpdates = {}
    is_complete = True
    for number in messages:
        record, kept = txn.messages.get(number), txn.passages.get(number)
        if record is None or kept is None:
            is_complete = False
            continue
        ids = {node_id for entry in kept for node_id in entry.told_by} | {node.id for node in change.nodes}
        nodes = living_nodes(txn, sorted(ids))
        updates[number] = passages_from_memories(
            record, ((entry.begin, entry.length) for entry in kept), nodes
        )
        txn.passages.put(number, updates[number])
    return updates if is_complete else None


@dataclass(slots=True)
class Sweep:
    """Removes all expired texts in steps: find the texts, find their memories, remove the texts."""

    retention: str
    """The parameter value for which the sweep was started. Another value starts a new sweep."""
    before_ms: int | None
    evidence: Collection[int] = frozenset()
    """Messages whose texts stay, since a statement that is true cites them."""
    is_done: bool = False
    _begin: int = 0
    _first_left: int | None = None
    """The first message examined whose text stays: its batch is not digested, or it is evidence."""
    _due: list[int] = field(default_factory=list)
    _memories: dict[int, list[NodeId]] = field(default_factory=dict)
    _next_node: int | None = 0
    """Where the search for memories continues; None when it is complete."""

    @property
    def removes_texts_next(self) -> bool:
        """Whether the next step removes texts."""
        return bool(self._due) and self._next_node is None

    def step(self, store: LmdbStore, is_time_up: Callable[[], bool]) -> PassageUpdates:
        """Run one step. Return the new passages of messages without text. After a failure, start a new sweep."""
        if not self._due:
            store.read(self._find_due)
            if self.is_done:
                self._note_progress(store)
            return {}
        if self._next_node is not None:
            store.read(self._find_memories)
            return {}
        updates, self._due = store.write(lambda txn: self._withdraw(txn, is_time_up))
        return updates

    def _find_due(self, txn: ReadTransaction) -> None:
        begin = max(self._begin, txn.meta.texts_from)
        batches: dict[int, bool] = {}
        self.is_done = True
        for looked_at, record in enumerate(txn.messages.all(begin)):
            if looked_at == MAX_READ_PER_STEP:
                self.is_done = False
                break
            if self.before_ms is not None and record.accepted_at_ms >= self.before_ms:
                break
            self._begin = record.number + 1
            if record.is_withdrawn:
                continue
            if record.number not in self.evidence and is_digested(txn, record, batches):
                self._due.append(record.number)
            elif self._first_left is None:
                self._first_left = record.number
        self._memories, self._next_node = {number: [] for number in self._due}, 0
        if self._due:
            self.is_done = False

    def _find_memories(self, txn: ReadTransaction) -> None:
        assert self._next_node is not None
        start, self._next_node = self._next_node, None
        for looked_at, node in enumerate(txn.nodes.all(start)):
            if looked_at == MAX_READ_PER_STEP:
                self._next_node = node.id
                return
            for message in {source.message for source in node.sources}:
                if message in self._memories:
                    self._memories[message].append(node.id)

    def _withdraw(
        self, txn: WriteTransaction, is_time_up: Callable[[], bool]
    ) -> tuple[PassageUpdates, list[int]]:
        updates: PassageUpdates = {}
        left = list(self._due)
        while left and len(updates) < MAX_TEXTS_PER_STEP and not (updates and is_time_up()):
            number = left.pop(0)
            updates |= remove_texts(txn, [number], living_nodes(txn, self._memories[number]))
        return updates, left

    def _note_progress(self, store: LmdbStore) -> None:
        """Store where the next sweep begins."""
        left = self._begin if self._first_left is None else self._first_left
        if left > store.read(lambda txn: txn.meta.texts_from):
            store.write(lambda txn: txn.meta.set(texts_from=left))


def is_digested(txn: ReadTransaction, record: MessageRecord, known: dict[int, bool]) -> bool:
    """Whether the batch of a message is digested. The status of an old batch may be pruned."""
    if record.batch not in known:
        batch = txn.inbox.get(record.batch)
        known[record.batch] = batch is None or batch.state == BatchState.DIGESTED.value
    return known[record.batch]
