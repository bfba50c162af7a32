"""Correction: a memory says something else because its owner said so.

A corrected memory becomes its own source: what it says now is kept in the archive as a message of its own, by the
speaker and at the time of the first message it came from but without an id of the caller's, and what it was made from
is withdrawn. So a question finds
it by its new words and never by the old ones, and shortening begins from the new text. Its links, its strength and its
scans stay as they were: it is the same memory.
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
    """What is to be different about a memory; None where it stays."""

    node_id: NodeId
    content: str | None = None
    phrase: str = ""
    keywords: tuple[str, ...] | None = None
    metadata: str | None = None
    """As JSON; empty for none from now on."""
    personal: tuple[PersonalSpan, ...] = ()
    """What is personal in the content, without the speaker's label."""


@dataclass(frozen=True, slots=True)
class OwnSource:
    """The message that a corrected memory became, and the messages it was made from as they are now."""

    record: MessageRecord
    passages: list[PassageEntry]
    metadata: str
    rewritten: list[RewrittenMessage]


@dataclass(frozen=True, slots=True)
class Corrected:
    """A memory as it is from now on."""

    node: Node
    own: OwnSource | None
    passage_updates: PassageUpdates | None
    """Messages without their text, as memories tell them now."""
    proofs: tuple[bytes, ...]
    """Keyed hashes of what it said before, where it says something else now."""

    @property
    def change(self) -> Change:
        """How the network follows."""
        return Change(nodes=[self.node])

    @property
    def erased_messages(self) -> Sequence[int]:
        """None: what was said otherwise is no memory less."""
        return ()

    def update_archive(self, archive: Archive) -> None:
        """Let the archive follow."""
        if self.own is not None:
            for one in self.own.rewritten:
                archive.replace_text(one.message, one.passages)
            record, metadata = self.own.record, self.own.metadata
            archive.add_messages(
                [record], [self.own.passages], {record.metadata_key or b"": metadata or "{}"}
            )
            archive.replace_sources(self.node)


def kept_prefix(node: Node, content: str) -> str:
    """The speaker's label of a memory, as far as its new content keeps it."""
    return node.prefix if content.startswith(node.prefix) else ""


def living(txn: ReadTransaction, node_id: NodeId) -> Node:
    """The memory of this id; NODE_NOT_FOUND where it does not live."""
    node = txn.node(node_id)
    if node is None:
        raise NotFound(f"there is no node {node_text_id(node_id)}", reason="NODE_NOT_FOUND")
    return node


def correct(txn: WriteTransaction, wanted: Correction) -> Corrected:
    """Put a correction in force."""
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
        # Nobody sent it: the caller's id stays with the message that it was given to.
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
