"""Correction: the owner changes what a memory says.

A corrected memory becomes its own source. The new content is stored as a message of its own, with the speaker and the
time of the memory's first message but without the caller's message id, and the old sources are blanked. Queries find
the memory by its new words only, and shortening starts from the new text. Links, strengths and scan counts stay.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ebbtide.changes import Change
from ebbtide.errors import no_node
from ebbtide.fleet.archive.archive import Archive, passages_from_memories, passages_of, spans_of
from ebbtide.fleet.archive.retention import PassageUpdates, citing, refresh_passages
from ebbtide.fleet.deletion.deletion import blank_sources, prove_going
from ebbtide.fleet.deletion.proofs import Proofs
from ebbtide.fleet.state.agent_state import Amendment
from ebbtide.ids import NodeId
from ebbtide.records import MessageRecord, Node, PassageEntry, PersonalSpan, Source
from ebbtide.store.layout import text_key
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction


@dataclass(frozen=True, slots=True)
class Correction:
    """The changes to a memory; None leaves a field as it is."""

    node_id: NodeId
    content: str | None = None
    phrase: str = ""
    keywords: tuple[str, ...] | None = None
    metadata: str | None = None
    """JSON; an empty string removes it."""
    personal: tuple[PersonalSpan, ...] = ()
    """Personal data in the content."""


@dataclass(frozen=True, slots=True)
class OwnSource:
    """The message that a corrected memory became, and its old messages after blanking."""

    record: MessageRecord
    passages: list[PassageEntry]
    metadata: str
    rewritten: PassageUpdates


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected(Amendment):
    """A corrected memory."""

    node: Node
    own: OwnSource | None
    proofs: tuple[bytes, ...]
    """Keyed hashes of the previous texts, if the content changed."""

    def update_archive(self, archive: Archive) -> None:
        """Apply the correction to the archive."""
        Amendment.update_archive(self, archive)
        if self.own is not None:
            record, metadata = self.own.record, self.own.metadata
            archive.add_messages(
                [record], [self.own.passages], {record.metadata_key or b"": metadata or "{}"}
            )
            archive.replace_sources(self.node)


def living(txn: ReadTransaction, node_id: NodeId) -> Node:
    """Return the living memory with this id. Raise NODE_NOT_FOUND if there is none."""
    node = txn.nodes.get(node_id)
    if node is None:
        raise no_node()
    return node


def correct(txn: WriteTransaction, correction: Correction) -> Corrected:
    """Apply a correction."""
    before = living(txn, correction.node_id)
    node = before
    if correction.content is not None:
        node = msgspec.structs.replace(node, content=correction.content, phrase=correction.phrase)
    if correction.keywords is not None:
        node = msgspec.structs.replace(node, keywords=correction.keywords)
    own, proofs = None, Proofs(txn.audit.make_proof_key())
    if correction.content is not None:
        prove_going(txn, before, proofs)
    if correction.content is not None or correction.metadata is not None:
        node, own = _with_own_source(txn, before, node, correction)
    change = Change(nodes=[node])
    without_text = citing(txn, change)
    txn.apply(change)
    txn.meta.set(leftovers=True)
    return Corrected(
        change=change,
        rewritten={} if own is None else own.rewritten,
        passage_updates=refresh_passages(txn, without_text, change),
        node=node,
        own=own,
        proofs=tuple(proofs.found),
    )


def _with_own_source(
    txn: WriteTransaction, before: Node, node: Node, correction: Correction
) -> tuple[Node, OwnSource]:
    first_content = correction.content or txn.nodes.first_content(before)
    text = first_content or before.content
    first = _first_record(txn, before)
    metadata = correction.metadata
    if metadata is None:
        stored = txn.messages.metadata(first)
        metadata = msgspec.json.encode(stored).decode() if stored else ""
    rewritten, _ = blank_sources(txn, before)
    record = msgspec.structs.replace(
        first,
        number=txn.meta.next_message_number,
        # No caller sent this message; the id stays with the original.
        caller_id="",
        text_key=text_key(text),
        personal=correction.personal,
        attachments=(),
        metadata_key=txn.texts.put(metadata) if metadata else b"",
    )
    passages = passages_of(text, record.speaker)
    txn.messages.put(record, text, passages)
    node = msgspec.structs.replace(node, sources=(Source(record.number, 0, len(text.encode())),))
    if first_content is None:
        # The first content was removed from the archive; the present one does not take its place.
        passages = passages_from_memories(record, spans_of(text), [node])
        txn.messages.withdraw(record, passages)
        record = msgspec.structs.replace(record, text_key=b"", personal=())
        return node, OwnSource(record, passages, metadata, rewritten)
    first_key = txn.texts.put(text)
    if before.first_key:
        txn.texts.drop(before.first_key)
    node = msgspec.structs.replace(node, first_key=first_key, original_length=len(text))
    return node, OwnSource(record, passages, metadata, rewritten)


def _first_record(txn: ReadTransaction, node: Node) -> MessageRecord:
    for source in node.sources:
        record = txn.messages.get(source.message)
        if record is not None:
            return record
    return MessageRecord(0, node.batch, 0, "user", "", "", None, node.created_at_ms, "", b"")
