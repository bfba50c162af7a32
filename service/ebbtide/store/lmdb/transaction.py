"""One LMDB transaction on an agent's store, composed of one object for each part of it.

`txn.nodes`, `txn.links`, `txn.messages`, `txn.inbox` … read and write their own tables, and keep what is derived from
them consistent. The transaction itself has the operations that concern several parts. No rule of the memory model is
here: a `Change` is computed elsewhere.

A transaction is valid on one thread, for the length of the function that gets it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ebbtide.changes import Change
from ebbtide.records import AgentCounts, Batch, Identity, MessageRecord, PassageEntry, Receipt
from ebbtide.store.layout import ENTITIES, INBOX, LINKS, MESSAGES, NODES, PARKED
from ebbtide.store.lmdb.audit import AuditReader, AuditWriter
from ebbtide.store.lmdb.concepts import ConceptReader, ConceptWriter
from ebbtide.store.lmdb.events import EventReader, EventWriter
from ebbtide.store.lmdb.inbox import InboxReader, InboxWriter
from ebbtide.store.lmdb.lives import LifeReader, LifeWriter
from ebbtide.store.lmdb.network import (
    EntityReader,
    EntityWriter,
    LinkReader,
    LinkWriter,
    NodeReader,
    NodeWriter,
    ScanReader,
    ScanWriter,
    SourcesOf,
)
from ebbtide.store.lmdb.records import RecordReader, RecordWriter
from ebbtide.store.lmdb.statements import CitingReader, CitingWriter, StatementReader, StatementWriter
from ebbtide.store.lmdb.tables import Handles, MetaReader, MetaWriter, TableReader, TableWriter
from ebbtide.store.lmdb.texts import (
    MessageReader,
    MessageWriter,
    PassageReader,
    PassageWriter,
    TextReader,
    TextWriter,
    VectorReader,
    VectorWriter,
)

if TYPE_CHECKING:
    from ebbtide.store.encryption.seal import Seal
    from ebbtide.store.journal import Operation


IN_META = (
    *("focus", "entity_focus", "entity_memories", "next_node_id"),
    *("owed_passes", "uncounted_tokens", "finished_passes", "pass_state", "ledger"),
)
"""The fields of a change that are entries of META."""


class ReadTransaction:
    """A consistent view of one agent's store."""

    tables: TableReader
    meta: MetaReader
    texts: TextReader
    passages: PassageReader
    vectors: VectorReader
    messages: MessageReader
    links: LinkReader
    scans: ScanReader
    citings: CitingReader
    lives: LifeReader
    nodes: NodeReader
    entities: EntityReader
    statements: StatementReader
    concepts: ConceptReader
    records: RecordReader
    inbox: InboxReader
    audit: AuditReader
    events: EventReader

    def __init__(
        self,
        txn: Any,
        handles: Handles,
        seal: Seal | None = None,
        sources_of: SourcesOf = lambda _: None,
    ) -> None:
        self.tables = tables = TableReader(txn, handles, seal)
        self.meta = meta = MetaReader(tables)
        self.texts = texts = TextReader(tables)
        self.passages = PassageReader(tables)
        self.vectors = VectorReader(tables)
        self.messages = messages = MessageReader(tables, texts)
        self.links = LinkReader(tables, sources_of)
        self.scans = ScanReader(tables)
        self.citings = CitingReader(tables)
        self.lives = LifeReader(tables)
        self.nodes = NodeReader(tables, texts, messages)
        self.entities = EntityReader(tables)
        self.statements = StatementReader(tables)
        self.concepts = ConceptReader(tables)
        self.records = RecordReader(tables)
        self.inbox = InboxReader(tables)
        self.audit = AuditReader(tables)
        self.events = EventReader(tables, meta)

    def counts(self) -> AgentCounts:
        """Return how much the agent has stored."""
        count = self.tables.count
        return AgentCounts(
            node_count=count(NODES),
            link_count=count(LINKS),
            message_count=count(MESSAGES),
            pending_batches=count(INBOX),
            parked_batches=count(PARKED),
            owed_passes=self.meta.owed_passes,
            entity_count=count(ENTITIES),
        )


class WriteTransaction(ReadTransaction):
    """A change of one agent's store: whole or absent."""

    tables: TableWriter
    meta: MetaWriter
    texts: TextWriter
    passages: PassageWriter
    vectors: VectorWriter
    messages: MessageWriter
    links: LinkWriter
    scans: ScanWriter
    citings: CitingWriter
    lives: LifeWriter
    nodes: NodeWriter
    entities: EntityWriter
    statements: StatementWriter
    concepts: ConceptWriter
    records: RecordWriter
    inbox: InboxWriter
    audit: AuditWriter
    events: EventWriter

    def __init__(
        self,
        txn: Any,
        handles: Handles,
        seal: Seal | None = None,
        sources_of: SourcesOf = lambda _: None,
        noted: list[Operation] | None = None,
    ) -> None:
        self.tables = tables = TableWriter(txn, handles, seal, noted)
        self.meta = meta = MetaWriter(tables)
        self.texts = texts = TextWriter(tables)
        self.passages = passages = PassageWriter(tables, meta)
        self.vectors = VectorWriter(tables)
        self.messages = messages = MessageWriter(tables, texts, passages, meta)
        self.links = links = LinkWriter(tables, meta, sources_of)
        self.scans = ScanWriter(tables)
        self.citings = citings = CitingWriter(tables)
        self.lives = lives = LifeWriter(tables, meta)
        self.nodes = NodeWriter(tables, texts, messages, links, citings, lives)
        self.entities = EntityWriter(tables, links)
        self.statements = StatementWriter(tables)
        self.concepts = ConceptWriter(tables)
        self.records = RecordWriter(tables)
        self.inbox = InboxWriter(tables, meta)
        self.audit = AuditWriter(tables, meta)
        self.events = EventWriter(tables, meta)

    def create(self, identity: Identity, sealed_with: str = "") -> None:
        """Write the identity of a store, and the fingerprint of the key that encrypts it, if there is one."""
        self.meta.set(identity=identity, has_lives=True)
        if sealed_with:
            self.meta.set(sealed_with=sealed_with)

    def apply(self, change: Change) -> None:
        """Write a change with all its index entries."""
        for node in change.nodes:
            self.nodes.put(node)
        for entity in change.entities.values():
            known = self.entities.get(entity.id)
            if known is not None and known.name != entity.name:
                self.concepts.note_lost([entity.id])
            self.entities.put(entity)
        for node_id in change.forgotten:
            self.messages.note_faded(self.nodes.forget(node_id))
        for node_id in change.deleted:
            self.links.remove_to(node_id)
            self.nodes.forget(node_id)
        self.lives.remove(change.deleted)
        for node_id in change.deleted_entities:
            self.entities.delete(node_id)
        self.concepts.note_lost([*change.deleted, *change.deleted_entities])
        for link in change.removed_links:
            self.links.remove(link)
        self.links.put(change.links)
        for number in change.removed_entries:
            assertion = self.statements.assertion(number)
            self.concepts.note_lost([] if assertion is None else [assertion.statement])
            self.statements.remove(number)
        for assertion in change.assertions:
            self.statements.put(assertion)
        for ruling in change.rulings:
            self.statements.put(ruling)
        for concept in change.concepts:
            self.concepts.put(concept)
        for node_id in change.deleted_concepts:
            self.concepts.delete(node_id)
        for node_id, pin in change.pins.items():
            self.nodes.pin(node_id, pin)
        self.scans.reset([*change.forgotten, *change.deleted, *change.deleted_entities])
        self.scans.count(change.scanned, change.scanned_in)
        self.scans.keep(change.kept)
        for name in IN_META:
            value = getattr(change, name)
            if value is not None:
                self.meta.set(**{name: value})
        if change.pass_ended:
            self.meta.set(pass_state=None)

    def finish(self) -> None:
        """Write what follows from the whole transaction. Called before the commit."""
        self.concepts.drop_lost(())
        self.citings.finish()

    def accept(
        self,
        batch: Batch,
        records: list[MessageRecord],
        texts: list[str],
        receipt: Receipt | None,
        passages: Sequence[list[PassageEntry]] = (),
        metadata: Mapping[bytes, str] = MappingProxyType({}),
        contents: Mapping[bytes, bytes] = MappingProxyType({}),
    ) -> Batch:
        """Store a batch with its messages and their passages, and put it at the tail of the inbox.

        `metadata` and `contents`, those of attachments, are by key.
        """
        self.messages.accept(records, texts, passages, metadata, contents)
        self.meta.set(next_message_number=batch.first_message + batch.message_count)
        return self.inbox.accept(batch, receipt)
