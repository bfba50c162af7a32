"""Withdrawal: what a memory was made from goes from the archive, and the memories that ask for it.

A deleted memory leaves nothing behind: no link that once led to it, and none of the words it was made from. The
stretch of each message that it cites is overwritten with spaces of equal UTF-8 length, so that whatever cites the
rest of the message still finds it at its place, and the passages of that message are analysed anew. The rule
guarded here: **words stay only where another living memory has them as its source**; those that nobody cites stay too,
since nobody asked for them to go, until somebody names the message that holds them: then everything in it goes that no
living memory has as its source. A message that is not digested yet is left alone: memories may come from it.

Deliberately not here: that no byte of it is left on the disk. What LMDB no longer refers to it overwrites when it needs
the page, and a note in the store says so; who wants more than that forgets for good (`erasure.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from ebbtide.changes import Change
from ebbtide.fleet.archive.archive import Archive, passage_of, passages_of
from ebbtide.fleet.archive.retention import PassageUpdates, citing, is_digested, refresh_passages
from ebbtide.fleet.deletion.proofs import Proofs
from ebbtide.ids import NodeId
from ebbtide.records import Node, PassageEntry
from ebbtide.store.layout import text_key
from ebbtide.store.port import ReadTransaction, WriteTransaction

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RewrittenMessage:
    """A message as the archive has it from now on."""

    message: int
    passages: list[PassageEntry]


@dataclass(frozen=True, slots=True)
class UncitedText:
    """A message of which everything is to go that no living memory cites."""

    message: int


@dataclass(frozen=True, slots=True)
class Deleted:
    """What went with a memory, or of a message."""

    node_id: NodeId | None
    """None where a message was named."""
    links_removed: int
    bytes_withdrawn: int


@dataclass(frozen=True, slots=True)
class Undigested:
    """Why a message was left alone: its batch is not digested yet."""

    batch: int


Outcome = Deleted | Undigested | None
"""What became of one: None where it was not there."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """What became of the first of the memories and messages that were to be deleted."""

    change: Change
    outcomes: list[Outcome]
    rewritten: list[RewrittenMessage]
    passage_updates: PassageUpdates | None
    """Messages without their text, as their other memories tell them."""
    erased_messages: list[int]
    """Messages of which everything went that no living memory has."""
    proofs: tuple[bytes, ...]
    """Keyed hashes of the texts that went."""

    def update_archive(self, archive: Archive) -> None:
        """Let the archive follow."""
        for one in self.rewritten:
            archive.replace_text(one.message, one.passages)


def delete_memories(
    txn: WriteTransaction,
    wanted: Sequence[NodeId | UncitedText],
    archive: Archive | None = None,
    is_time_up: Callable[[], bool] = lambda: False,
) -> Deletion:
    """Delete the first of these memories and messages, as many as there is time for and one at least.

    `archive` knows which memories a message has: without it no message may be among them.
    """
    outcomes: list[Outcome] = []
    rewritten: list[RewrittenMessage] = []
    gone: list[NodeId] = []
    erased_messages: list[int] = []
    without_text: set[int] = set()
    proofs = Proofs(txn.make_proof_key())
    for one in wanted:
        if outcomes and is_time_up():
            break
        if isinstance(one, UncitedText):
            assert archive is not None, "who names a message brings the archive"
            messages, outcome = _withdraw_uncited(txn, one.message, archive, proofs)
            outcomes.append(outcome)
            rewritten += messages
            erased_messages += [one.message] if isinstance(outcome, Deleted) else []
            continue
        node_id, node = one, txn.node(one)
        if node is None:
            outcomes.append(None)
            continue
        without_text |= citing(txn, Change(deleted=[node_id]))
        prove_going(txn, node, proofs)
        messages, byte_count = blank_sources(txn, node)
        outcomes.append(Deleted(node_id, txn.link_count_at(node_id), byte_count))
        txn.apply(Change(deleted=[node_id]))
        rewritten += messages
        gone.append(node_id)
    if gone or rewritten:
        txn.note_leftovers()
    focus = tuple(node_id for node_id in txn.focus() if node_id not in gone)
    if focus != txn.focus():
        txn.apply(Change(focus=focus))
    change = Change(deleted=gone, focus=focus)
    passage_updates = refresh_passages(txn, without_text, change)
    return Deletion(change, outcomes, rewritten, passage_updates, erased_messages, tuple(proofs.found))


def prove_going(txn: WriteTransaction, node: Node, proofs: Proofs) -> None:
    """Hash what goes with a memory, before it goes: what it says and said, and the words that are withdrawn."""
    proofs.add_memory(txn, node)
    for message, spans in own_words(txn, node).items():
        record = txn.message(message)
        text = None if record is None else txn.message_text(record)
        if text is not None:
            proofs.add_stretches(text, spans)


def blank_sources(txn: WriteTransaction, node: Node) -> tuple[list[RewrittenMessage], int]:
    """Overwrite what a memory was made from; the messages as they are now, and how many bytes that took."""
    rewritten, byte_count = [], 0
    for message, spans in own_words(txn, node).items():
        one = blanked(txn, message, spans)
        if one is not None:
            rewritten.append(one)
            byte_count += sum(end - begin for begin, end in spans)
    return rewritten, byte_count


class BatchSources:
    """What memories that stay were made from, by batch and message: read once where a whole batch goes."""

    def __init__(self) -> None:
        self._batch: int | None = None
        self._cited: dict[int, list[Span]] = {}

    def cited(
        self, txn: ReadTransaction, node: Node, going: Collection[NodeId]
    ) -> Mapping[int, Sequence[Span]]:
        """Return the spans by message, in order, that memories of the node's batch cite and that do not go."""
        if node.batch != self._batch:
            cited: dict[int, list[Span]] = {}
            for mate in txn.batch_mates(node):
                for source in mate.sources if mate.id not in going else ():
                    cited.setdefault(source.message, []).append(
                        (source.offset, source.offset + source.length)
                    )
            self._batch, self._cited = node.batch, {one: sorted(spans) for one, spans in cited.items()}
        return self._cited


def own_words(
    txn: ReadTransaction,
    node: Node,
    going: Collection[NodeId] = frozenset(),
    batch_sources: BatchSources | None = None,
) -> dict[int, list[Span]]:
    """By message, what a memory was made from and no other living memory was, but for those that go as well.

    `batch_sources` may be kept from one memory that goes to the next.
    """
    # The memory itself is not among those that stay: of one that does not go it must be left out each time.
    shared = batch_sources if batch_sources is not None and node.id in going else BatchSources()
    cited = shared.cited(txn, node, going)
    messages = dict.fromkeys(source.message for source in node.sources)
    found = {one: list(outside(_cited([node], one), cited.get(one, ()))) for one in messages}
    return {message: spans for message, spans in found.items() if spans}


def _withdraw_uncited(
    txn: WriteTransaction, message: int, archive: Archive, proofs: Proofs
) -> tuple[list[RewrittenMessage], Outcome]:
    """Overwrite what no living memory cites of a message; the message as it is now, and what became of it."""
    record = txn.message(message)
    text = None if record is None else txn.message_text(record)
    if record is None or text is None:
        return [], None
    if not is_digested(txn, record, {}):
        return [], Undigested(record.batch)
    living = [node for node in map(txn.node, archive.memories_of(message)) if node is not None]
    raw = text.encode()
    uncited = outside([(0, len(raw))], _cited(living, message))
    counted = {(begin, end): text_bytes(raw[begin:end].decode()) for begin, end in uncited}
    spans = [span for span, byte_count in counted.items() if byte_count]
    proofs.add_stretches(text, spans)
    one = blanked(txn, message, spans) if spans else None
    return ([], None) if one is None else ([one], Deleted(None, 0, sum(counted.values())))


def without(text: str, spans: Iterable[Span]) -> str:
    """A text with spaces in place of some spans of it, in bytes."""
    raw = bytearray(text.encode())
    for begin, end in spans:
        raw[begin:end] = b" " * (end - begin)
    return raw.decode()


def text_bytes(text: str) -> int:
    """Bytes of a text that hold anything but white space."""
    return sum(len(word.encode()) for word in text.split())


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


def blanked(txn: WriteTransaction, message: int, spans: Sequence[Span]) -> RewrittenMessage | None:
    """Put spaces in place of spans of a message, in bytes; None where its text is no longer kept."""
    record = txn.message(message)
    old = None if record is None else txn.message_text(record)
    if record is None or old is None:
        return None
    text = without(old, spans)
    raw = text.encode()
    kept = txn.passages_of(message) or passages_of(old, record.speaker)
    passages = list(_moved(kept, old, raw, record.speaker))
    # With its last words goes what it was remembered with.
    metadata_key = record.metadata_key if text.strip() else b""
    personal = tuple(one for one in record.personal if raw[one.offset : one.offset + one.length].strip())
    now = msgspec.structs.replace(
        record, text_key=text_key(text), metadata_key=metadata_key, personal=personal
    )
    txn.put_message(now, text, passages)
    return RewrittenMessage(message, passages)


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
