"""Withdrawal: what a memory was made from goes from the archive, and the memories that ask for it.

A deleted memory leaves nothing behind: no link that once led to it, and none of the words it was made from. The
stretch of each message that it cites is overwritten with spaces of equal UTF-8 length, so that whatever cites the
rest of the message still finds it at its place, and the passages of that message are analysed anew. The rule
guarded here: **words stay only where another living memory has them as its source**; those that nobody cites stay too,
since nobody asked for them to go.

Deliberately not here: proof that no byte of it is left on the disk. What LMDB no longer refers to it overwrites when
it needs the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from ebbtide.fleet.archive import Archive, passage_of, passages_of
from ebbtide.fleet.retention import Retold, citing, retell
from ebbtide.store.layout import text_key
from ebbtide.store.port import WriteTransaction
from ebbtide.vocabulary import Change, Node, NodeId, PassageEntry

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A message as the archive has it from now on."""

    message: int
    passages: list[PassageEntry]


@dataclass(frozen=True, slots=True)
class Deleted:
    """What went with a memory."""

    node_id: NodeId
    links_removed: int
    bytes_withdrawn: int


@dataclass(frozen=True, slots=True)
class Deletion:
    """What became of the first of the memories that were to be deleted: None for one that was not there."""

    change: Change
    outcomes: list[Deleted | None]
    rewritten: list[Rewritten]
    retold: Retold | None
    """Messages without their text, as their other memories tell them."""

    def shelve(self, archive: Archive) -> None:
        """Let the archive follow."""
        for one in self.rewritten:
            archive.rewritten(one.message, one.passages)


def delete(
    txn: WriteTransaction, node_ids: Sequence[NodeId], is_time_up: Callable[[], bool] = lambda: False
) -> Deletion:
    """Delete the first of these memories, as many as there is time for and one at least."""
    outcomes: list[Deleted | None] = []
    rewritten: list[Rewritten] = []
    gone: list[NodeId] = []
    without_text: set[int] = set()
    for node_id in node_ids:
        if outcomes and is_time_up():
            break
        node = txn.node(node_id)
        if node is None:
            outcomes.append(None)
            continue
        without_text |= citing(txn, Change(deleted=[node_id]))
        messages, byte_count = withdraw(txn, node)
        outcomes.append(Deleted(node_id, txn.link_count_at(node_id), byte_count))
        txn.apply(Change(deleted=[node_id]))
        rewritten += messages
        gone.append(node_id)
    focus = tuple(node_id for node_id in txn.focus() if node_id not in gone)
    if focus != txn.focus():
        txn.apply(Change(focus=focus))
    change = Change(deleted=gone, focus=focus)
    return Deletion(change, outcomes, rewritten, retell(txn, without_text, change))


def withdraw(txn: WriteTransaction, node: Node) -> tuple[list[Rewritten], int]:
    """Overwrite what a memory was made from; the messages as they are now, and how many bytes that took."""
    mates = list(txn.batch_mates(node))
    rewritten, byte_count = [], 0
    for message in dict.fromkeys(source.message for source in node.sources):
        spans = list(outside(_cited([node], message), _cited(mates, message)))
        one = _blanked(txn, message, spans) if spans else None
        if one is not None:
            rewritten.append(one)
            byte_count += sum(end - begin for begin, end in spans)
    return rewritten, byte_count


def _cited(nodes: Iterable[Node], message: int) -> list[Span]:
    return sorted(
        (source.offset, source.offset + source.length)
        for node in nodes
        for source in node.sources
        if source.message == message
    )


def outside(spans: Iterable[Span], others: Sequence[Span]) -> Iterator[Span]:
    """What of some spans lies in none of the others; both in order."""
    for begin, end in spans:
        place = begin
        for other_begin, other_end in others:
            if other_begin >= end:
                break
            if other_begin > place:
                yield place, other_begin
            place = max(place, other_end)
        if place < end:
            yield place, end


def _blanked(txn: WriteTransaction, message: int, spans: Sequence[Span]) -> Rewritten | None:
    """Put spaces in place of spans of a message, in bytes; None where its text is no longer kept."""
    record = txn.message(message)
    old = None if record is None else txn.message_text(record)
    if record is None or old is None:
        return None
    raw = bytearray(old.encode())
    for begin, end in spans:
        raw[begin:end] = b" " * (end - begin)
    kept = txn.passages_of(message) or passages_of(old, record.speaker)
    passages = list(_moved(kept, old, bytes(raw), record.speaker))
    text = raw.decode()
    # With its last words goes what it was remembered with.
    metadata_key = record.metadata_key if text.strip() else b""
    now = msgspec.structs.replace(record, text_key=text_key(text), metadata_key=metadata_key)
    txn.put_message(now, text, passages)
    return Rewritten(message, passages)


def _moved(kept: Iterable[PassageEntry], old: str, raw: bytes, speaker: str) -> Iterator[PassageEntry]:
    """The passages of a message between the same bytes as before: spaces may be more characters than the words were."""
    place = begin = 0
    for entry in kept:
        stretch = old[entry.begin : entry.begin + entry.length]
        end = place + len(stretch.encode())
        now = raw[place:end].decode()
        if now == stretch:
            yield msgspec.structs.replace(entry, begin=begin)
        else:
            yield passage_of(now, speaker, begin)
        place, begin = end, begin + len(now)
