"""Correction: the owner changes what a memory says.

A corrected memory becomes its own source. The new content is stored as a message of its own, with the speaker and the
time of the memory's first message but without the caller's message id, and the old sources are blanked. Queries find
the memory by its new words only, and shortening starts from the new text. Links, strengths and scan counts stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from ebbtide.changes import Change
from ebbtide.errors import NotFound
from ebbtide.fleet.archive.archive import Archive, passages_of
from ebbtide.fleet.archive.retention import PassageUpdates, citing, refresh_passages
from ebbtide.fleet.deletion.deletion import RewrittenMessage, blank_sources, prove_going
from ebbtide.fleet.deletion.proofs import Proofs
from ebbtide.ids import NodeId, node_text_id
from ebbtide.records import MessageRecord, Node, PassageEntry, PersonalSpan, Source
from ebbtide.store.layout import text_key
from ebbtide.store.port import ReadTransaction, WriteTransaction


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
    """Personal data in the content, without the speaker's label."""


@dataclass(frozen=True, slots=True)
class OwnSource:
    """The message that a corrected memory became, and its old messages after blanking."""

    record: MessageRecord
    passages: list[PassageEntry]
    metadata: str
    rewritten: list[RewrittenMessage]


@dataclass(frozen=True, slots=True)
class Corrected:
    """A corrected memory."""

    node: Node
    own: OwnSource | None
    passage_updates: PassageUpdates | None
    """New passages of messages without text."""
    proofs: tuple[bytes, ...]
    """Keyed hashes of the previous texts, if the content changed."""

    @property
    def change(self) -> Change:
        """The change to apply to the network."""
        return Change(nodes=[self.node])

    @property
    def erased_messages(self) -> Sequence[int]:
        """Empty: a correction erases no message."""
        return ()

    def update_archive(self, archive: Archive) -> None:
        """Apply the correction to the archive."""
        if self.own is not None:
            for one in self.own.rewritten:
                archive.replace_text(one.message, one.passages)
            record, metadata = self.own.record, self.own.metadata
            archive.add_messages(
                [record], [self.own.passages], {record.metadata_key or b"": metadata or "{}"}
            )
            archive.replace_sources(self.node)


def kept_prefix(node: Node, content: str) -> str:
    """Return the speaker's label if the new content still starts with it."""
    return node.prefix if content.startswith(node.prefix) else ""


def living(txn: ReadTransaction, node_id: NodeId) -> Node:
    """Return the living memory with this id. Raise NODE_NOT_FOUND if there is none."""
    node = txn.node(node_id)
    if node is None:
        raise NotFound(f"there is no node {node_text_id(node_id)}", reason="NODE_NOT_FOUND")
    return node


def correct(txn: WriteTransaction, wanted: Correction) -> Corrected:
    """Apply a correction."""
    before = living(txn, wanted.node_id)
    node = before
    if wanted.content is not None:
        prefix = kept_prefix(before, wanted.content)
        node = msgspec.structs.replace(node, content=wanted.content, phrase=wanted.phrase, prefix=prefix)
    if wanted.keywords is not None:
        node = msgspec.structs.replace(node, keywords=wanted.keywords)
    own, proofs = None, Proofs(txn.make_proof_key())
    if wanted.content is not None:
        prove_going(txn, before, proofs)
    if wanted.content is not None or wanted.metadata is not None:
        node, own = _with_own_source(txn, before, node, wanted)
    change = Change(nodes=[node])
    without_text = citing(txn, change)
    txn.apply(change)
    txn.note_leftovers()
    return Corrected(node, own, refresh_passages(txn, without_text, change), tuple(proofs.found))


def _with_own_source(
    txn: WriteTransaction, before: Node, node: Node, wanted: Correction
) -> tuple[Node, OwnSource]:
    told = wanted.content or txn.first_content(before) or before.content
    text, first = told.removeprefix(node.prefix), _first_record(txn, before)
    metadata = wanted.metadata
    if metadata is None:
        held = txn.metadata(first)
        metadata = msgspec.json.encode(held).decode() if held else ""
    rewritten, _ = blank_sources(txn, before)
    record = msgspec.structs.replace(
        first,
        number=txn.next_message_number(),
        # No caller sent this message; the id stays with the original.
        caller_id="",
        text_key=text_key(text),
        personal=wanted.personal,
        metadata_key=txn.put_chunk(metadata) if metadata else b"",
    )
    passages = passages_of(text, record.speaker)
    txn.put_message(record, text, passages)
    first_key = txn.put_chunk(text)
    if before.first_key:
        txn.drop_chunk(before.first_key)
    node = msgspec.structs.replace(
        node,
        sources=(Source(record.number, 0, len(text.encode())),),
        first_key=first_key,
        original_length=len(node.prefix) + len(text),
    )
    return node, OwnSource(record, passages, metadata, rewritten)


def _first_record(txn: ReadTransaction, node: Node) -> MessageRecord:
    for source in node.sources:
        record = txn.message(source.message)
        if record is not None:
            return record
    return MessageRecord(0, node.batch, 0, "user", "", "", None, node.created_at_ms, "", b"")
