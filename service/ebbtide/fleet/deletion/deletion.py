"""Deletion of memories, together with the text that they were made from.

A deleted memory leaves no link at either end and none of its source text. The cited part of each message is overwritten
with spaces of equal UTF-8 length, so that other citations stay valid, and the passages of the message are analysed
again. The rule guarded here: **text stays only if another living memory cites it.** Text that no memory cites stays
until the message itself is deleted; then everything that no living memory cites is overwritten. A message that is not
digested yet is left alone, because memories may still come from it.

Freed bytes stay in the file until LMDB reuses the page; the store notes that. To remove them at once, use `forget`
(`erasure.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from ebbtide.changes import Change
from ebbtide.fleet.archive.archive import Archive, passage_of, passages_of
from ebbtide.fleet.archive.reading import living_nodes, message_with_text, text_of
from ebbtide.fleet.archive.retention import PassageUpdates, citing, is_digested, refresh_passages
from ebbtide.fleet.deletion.proofs import Proofs
from ebbtide.fleet.state.agent_state import Amendment
from ebbtide.ids import NodeId
from ebbtide.records import Node, PassageEntry
from ebbtide.store.layout import text_key
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class UncitedText:
    """A message to delete: everything that no living memory cites."""

    message: int


@dataclass(frozen=True, slots=True)
class Deleted:
    """The items removed with a memory, or from a message."""

    node_id: NodeId | None
    """None for a message."""
    links_removed: int
    bytes_withdrawn: int


@dataclass(frozen=True, slots=True)
class Undigested:
    """The message was left alone because its batch is not digested."""

    batch: int


Outcome = Deleted | Undigested | None
"""The outcome of one deletion; None if the target did not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion(Amendment):
    """The result of deleting the first of the requested memories and messages."""

    outcomes: list[Outcome]
    proofs: tuple[bytes, ...]
    """Keyed hashes of the removed texts."""


def delete_memories(
    txn: WriteTransaction,
    targets: Sequence[NodeId | UncitedText],
    archive: Archive | None = None,
    is_time_up: Callable[[], bool] = lambda: False,
) -> Deletion:
    """Delete the first of these memories and messages: at least one, and more while there is time.

    `archive` maps messages to memories and is required for messages.
    """
    outcomes: list[Outcome] = []
    rewritten: PassageUpdates = {}
    deleted_ids: list[NodeId] = []
    erased_messages: list[int] = []
    without_text: set[int] = set()
    proofs = Proofs(txn.audit.make_proof_key())
    for one in targets:
        if outcomes and is_time_up():
            break
        if isinstance(one, UncitedText):
            assert archive is not None, "deleting a message requires the archive"
            messages, outcome = _withdraw_uncited(txn, one.message, archive, proofs)
            outcomes.append(outcome)
            rewritten |= messages
            erased_messages += [one.message] if isinstance(outcome, Deleted) else []
            continue
        node_id, node = one, txn.nodes.get(one)
        if node is None:
            outcomes.append(None)
            continue
        without_text |= citing(txn, Change(deleted=[node_id]))
        prove_going(txn, node, proofs)
        messages, byte_count = blank_sources(txn, node)
        outcomes.append(Deleted(node_id, txn.links.count_at(node_id), byte_count))
        txn.apply(Change(deleted=[node_id]))
        rewritten |= messages
        deleted_ids.append(node_id)
    if deleted_ids or rewritten:
        txn.meta.set(leftovers=True)
    focus = tuple(node_id for node_id in txn.meta.focus if node_id not in deleted_ids)
    if focus != txn.meta.focus:
        txn.apply(Change(focus=focus))
    change = Change(deleted=deleted_ids, focus=focus)
    return Deletion(
        change=change,
        rewritten=rewritten,
        passage_updates=refresh_passages(txn, without_text, change),
        erased_messages=erased_messages,
        outcomes=outcomes,
        proofs=tuple(proofs.found),
    )


def prove_going(txn: WriteTransaction, node: Node, proofs: Proofs) -> None:
    """Hash the texts that a deletion removes, before they are removed."""
    proofs.add_memory(txn, node)
    for message, spans in own_words(txn, node).items():
        proofs.add_stretches(text_of(txn, message), spans)


def blank_sources(txn: WriteTransaction, node: Node) -> tuple[PassageUpdates, int]:
    """Overwrite the sources of a memory. Return the overwritten messages and the number of bytes."""
    rewritten: PassageUpdates = {}
    byte_count = 0
    for message, spans in own_words(txn, node).items():
        passages = blanked(txn, message, spans)
        if passages is not None:
            rewritten[message] = passages
            byte_count += sum(end - begin for begin, end in spans)
    return rewritten, byte_count


class KeptSources:
    """The spans of messages that the memories cite that stay. Read once for each message of a selection."""

    def __init__(self, deleting: Collection[NodeId] = frozenset()) -> None:
        self._deleting = deleting
        self._cited: dict[int, list[Span]] = {}

    def cited(self, txn: ReadTransaction, node: Node, message: int) -> list[Span]:
        """Return the sorted spans of a message that others than a node cite, apart from those being deleted."""
        if node.id not in self._deleting:
            return _cited(_others(txn, message, {node.id}), message)
        if message not in self._cited:
            self._cited[message] = _cited(_others(txn, message, self._deleting), message)
        return self._cited[message]


def _others(txn: ReadTransaction, message: int, without: Collection[NodeId]) -> list[Node]:
    return living_nodes(txn, (one for one in txn.citings.of(message) if one not in without))


def own_words(txn: ReadTransaction, node: Node, kept: KeptSources | None = None) -> dict[int, list[Span]]:
    """Return, by message, the spans that only this memory cites, and others that `kept` says are being deleted."""
    sources = KeptSources() if kept is None else kept
    messages = dict.fromkeys(source.message for source in node.sources)
    found = {one: list(outside(_cited([node], one), sources.cited(txn, node, one))) for one in messages}
    return {message: spans for message, spans in found.items() if spans}


def _withdraw_uncited(
    txn: WriteTransaction, message: int, archive: Archive, proofs: Proofs
) -> tuple[PassageUpdates, Outcome]:
    """Overwrite what no living memory cites in a message. Return the overwritten message and the outcome."""
    found = message_with_text(txn, message)
    if found is None:
        return {}, None
    record, text = found
    if not is_digested(txn, record, {}):
        return {}, Undigested(record.batch)
    living = living_nodes(txn, archive.memories_of(message))
    raw = text.encode()
    uncited = outside([(0, len(raw))], _cited(living, message))
    counted = {(begin, end): text_bytes(raw[begin:end].decode()) for begin, end in uncited}
    spans = [span for span, byte_count in counted.items() if byte_count]
    proofs.add_stretches(text, spans)
    passages = blanked(txn, message, spans) if spans else None
    return ({}, None) if passages is None else ({message: passages}, Deleted(None, 0, sum(counted.values())))


def without(text: str, spans: Iterable[Span]) -> str:
    """Return a text with spaces in place of some byte spans."""
    raw = bytearray(text.encode())
    for begin, end in spans:
        raw[begin:end] = b" " * (end - begin)
    return raw.decode()


def text_bytes(text: str) -> int:
    """Return the number of bytes of a text that are not white space."""
    return sum(len(word.encode()) for word in text.split())


def _cited(nodes: Iterable[Node], message: int) -> list[Span]:
    return sorted(
        (source.offset, source.offset + source.length)
        for node in nodes
        for source in node.sources
        if source.message == message
    )


def outside(spans: Iterable[Span], others: Sequence[Span]) -> Iterator[Span]:
    """Yield the parts of spans that none of the others covers. Both must be sorted."""
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


def blanked(txn: WriteTransaction, message: int, spans: Sequence[Span]) -> list[PassageEntry] | None:
    """Overwrite byte spans of a message with spaces. Return its new passages; None if its text was deleted."""
    found = message_with_text(txn, message)
    if found is None:
        return None
    record, old = found
    text = without(old, spans)
    raw = text.encode()
    kept = txn.passages.get(message) or passages_of(old, record.speaker)
    passages = list(_moved(kept, old, raw, record.speaker))
    # A message without words loses its metadata too.
    metadata_key = record.metadata_key if text.strip() else b""
    personal = tuple(one for one in record.personal if raw[one.offset : one.offset + one.length].strip())
    now = msgspec.structs.replace(
        record, text_key=text_key(text), metadata_key=metadata_key, personal=personal
    )
    txn.messages.put(now, text, passages)
    txn.statements.note_blank(message, spans)
    return passages


def _moved(kept: Iterable[PassageEntry], old: str, raw: bytes, speaker: str) -> Iterator[PassageEntry]:
    """Yield the passages of a message at the same bytes as before; their character counts may differ."""
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
