"""Messages without text: their passages are built from their memories.

A text expires by retention (`deletion/expiry.py`), or with the digest of its batch if the agent stores no texts. The
passages of its message are rebuilt when one of its memories is shortened, corrected, forgotten or deleted.
"""

from __future__ import annotations

from collections.abc import Iterable

from ebbtide.changes import Change
from ebbtide.fleet.archive.archive import passages_from_memories, spans_of
from ebbtide.fleet.archive.reading import living_nodes, message_with_text
from ebbtide.records import BatchState, MessageRecord, PassageEntry
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction

PassageUpdates = dict[int, list[PassageEntry]]
"""New passages of messages without text, by message number."""


def remove_texts(txn: WriteTransaction, messages: Iterable[int]) -> PassageUpdates:
    """Remove the texts of messages. From then on, they are found by their memories."""
    updates: PassageUpdates = {}
    for number in messages:
        found = message_with_text(txn, number)
        if found is None:
            continue
        record, text = found
        nodes = living_nodes(txn, txn.citings.of(number))
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


def refresh_passages(txn: WriteTransaction, messages: Iterable[int]) -> PassageUpdates | None:
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
        nodes = living_nodes(txn, txn.citings.of(number))
        updates[number] = passages_from_memories(
            record, ((entry.begin, entry.length) for entry in kept), nodes
        )
        txn.passages.put(number, updates[number])
    return updates if is_complete else None


def is_digested(txn: ReadTransaction, record: MessageRecord, known: dict[int, bool]) -> bool:
    """Whether the batch of a message is digested. The status of an old batch may be pruned."""
    if record.batch not in known:
        batch = txn.inbox.get(record.batch)
        known[record.batch] = batch is None or batch.state == BatchState.DIGESTED.value
    return known[record.batch]
