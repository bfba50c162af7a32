"""One LMDB transaction read as an agent's ground state, and written to as one.

The write side keeps every index in step with what it indexes: backlinks with links, scan counters with nodes,
reference counts with chunks. Everything derived that lives on disk is derived here, so that one transaction
is one consistent state. No rule of the memory model stands here; a `Change` arrives ready made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import zstandard

from ebbtide.store import layout, scan_blocks
from ebbtide.store.port import Identity
from ebbtide.vocabulary import (
    AgentCounts,
    Batch,
    BatchState,
    Change,
    EmbeddedMessage,
    EmbeddingState,
    Link,
    LinkColumns,
    MessageRecord,
    Node,
    NodeText,
    PassageEntry,
    PassState,
    Receipt,
    ScanColumns,
    ScanState,
)

Tables = Mapping[bytes, Any]
"""Table name to LMDB database handle."""


class LmdbReading:
    """A consistent view of one agent's ground state."""

    def __init__(self, txn: Any, tables: Tables) -> None:
        self._txn = txn
        self._tables = tables
        self._names: dict[int, str] = {}
        self._relation_ids: dict[str, int] = {}

    # --- one value ---------------------------------------------------------------------------------

    def get(self, table: bytes, key: bytes) -> bytes | None:
        """The value under a key of one table."""
        value: bytes | None = self._txn.get(key, db=self._tables[table])
        return value

    def _number(self, name: bytes, default: int = 0) -> int:
        value = self.get(layout.META, name)
        return default if value is None else layout.from_u64(value)

    def _entries(self, table: bytes) -> int:
        count: int = self._txn.stat(self._tables[table])["entries"]
        return count

    def items(self, table: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Every (key, value) of one table in order, from the key `start` on."""
        cursor = self._txn.cursor(db=self._tables[table])
        if start and not cursor.set_range(start):
            return iter(())
        items: Iterator[tuple[bytes, bytes]] = cursor.iternext()
        return items

    # --- the agent ---------------------------------------------------------------------------------

    def identity(self) -> Identity | None:
        """Who this store belongs to; None while it is being created."""
        value = self.get(layout.META, b"identity")
        return None if value is None else layout.decode(value, type=Identity)

    def overrides(self) -> dict[str, object]:
        """The parameters that were set for this agent, apart from the daemon's defaults."""
        value = self.get(layout.META, b"overrides")
        return {} if value is None else layout.decode(value, type=dict[str, object])

    def decay_rate(self) -> float | None:
        """The rate at which the links on disk decay since they were written; None before the first open."""
        value = self.get(layout.META, b"decay_rate")
        return None if value is None else layout.decode(value, type=float)

    def counts(self) -> AgentCounts:
        """How much the agent holds."""
        return AgentCounts(
            node_count=self._entries(layout.NODES),
            link_count=self._entries(layout.LINKS),
            message_count=self._entries(layout.MESSAGES),
            pending_batches=self._entries(layout.INBOX),
            parked_batches=self._entries(layout.PARKED),
            owed_passes=self.owed_passes(),
        )

    def focus(self) -> tuple[int, ...]:
        """Node ids in focus, newest first."""
        value = self.get(layout.META, b"focus")
        return () if value is None else layout.decode(value, type=tuple[int, ...])

    def next_node_id(self) -> int:
        """The id the next node will get."""
        return self._number(b"next_node_id", 1)

    def owed_passes(self) -> int:
        """Compression passes the agent owes, the one under way included."""
        return self._number(b"owed_passes")

    def finished_passes(self) -> int:
        """Number of the latest pass that is through."""
        return self._number(b"finished_passes")

    def pass_state(self) -> PassState | None:
        """The pass under way."""
        value = self.get(layout.META, b"pass_state")
        return None if value is None else layout.decode(value, type=PassState)

    # --- the network -------------------------------------------------------------------------------

    def node(self, node_id: int) -> Node | None:
        """The node of this id, None when it is gone or never was."""
        value = self.get(layout.NODES, layout.u64(node_id))
        return None if value is None else layout.decode(value, type=Node)

    def nodes(self, start: int = 0) -> Iterator[Node]:
        """Nodes from id `start` on, by id."""
        decoder = msgspec.msgpack.Decoder(Node)
        for _, value in self.items(layout.NODES, layout.u64(start)):
            yield decoder.decode(value)

    def batch_mates(self, node: Node) -> Iterator[Node]:
        """The other living nodes that the batch of a node became: their ids follow each other."""
        for forward in (False, True):
            cursor = self._txn.cursor(db=self._tables[layout.NODES])
            if not cursor.set_key(layout.u64(node.id)):
                return
            for key, value in cursor.iternext() if forward else cursor.iterprev():
                if layout.from_u64(key) == node.id:
                    continue
                mate = layout.decode(value, type=Node)
                if mate.batch != node.batch:
                    break
                yield mate

    def link_count_at(self, node_id: int) -> int:
        """How many links start or end at a node."""
        found, key = 0, layout.u64(node_id)
        for table in (layout.LINKS, layout.BACKLINKS):
            cursor = self._txn.cursor(db=self._tables[table])
            found += cursor.count() if cursor.set_key(key) else 0
        return found

    def node_texts(self) -> Iterator[NodeText]:
        """What every node says, by id: a node without the rest of its record."""
        decoder = msgspec.msgpack.Decoder(NodeText)
        for _, value in self.items(layout.NODES):
            yield decoder.decode(value)

    def links(self, start: int = 0) -> Iterator[Link]:
        """Links whose source is `start` or later, by source, target, relation id."""
        for key, value in self.items(layout.LINKS, layout.u64(start)):
            target, relation, strength, anchor = layout.from_link_value(value)
            yield Link(layout.from_u64(key), target, self.relation(relation), strength, anchor)

    def relation(self, relation_id: int) -> str:
        """The name behind an interned relation."""
        name = self._names.get(relation_id)
        if name is None:
            value = self.get(layout.RELATIONS, layout.u32(relation_id))
            name = "" if value is None else value.decode()
            self._names[relation_id] = name
        return name

    def scans(self) -> Iterator[tuple[int, ScanState]]:
        """(node id, scan state) of every node that was scanned."""
        columns = self.scan_columns()
        everything = (columns.node_id.tolist(), columns.count.tolist(), columns.last_pass.tolist())
        for node_id, count, last_pass in zip(*everything, strict=True):
            yield node_id, ScanState(count, last_pass)

    def scan_columns(self) -> ScanColumns:
        """The scan states of every node that was scanned, by id."""
        return scan_blocks.columns(self.items(layout.SCANS))

    def link_columns(self) -> LinkColumns:
        """Every link, by source, target, relation id."""
        cursor = self._txn.cursor(db=self._tables[layout.LINKS])
        sources = list(cursor.iternext_nodup(keys=True, values=False))
        found = cursor.getmulti(sources, dupdata=True, dupfixed_bytes=layout.LINK_SIZE, keyfixed=True)
        rows = layout.from_link_rows(found)
        ids, relation = np.unique(rows["relation"], return_inverse=True)
        return LinkColumns(
            rows["source"].astype(np.int64),
            rows["target"].astype(np.int64),
            relation,
            rows["strength"].astype(np.float64),
            rows["anchor"].astype(np.int64),
            [self.relation(relation_id) for relation_id in ids.tolist()],
        )

    def first_content(self, node: Node) -> str | None:
        """What the node said when it was made; None when that text is no longer kept."""
        if node.first_key:
            text = self.chunk(node.first_key)
            return None if text is None else node.prefix + text
        if len(node.sources) != 1:
            return None
        source = node.sources[0]
        record = self.message(source.message)
        text = None if record is None else self.message_text(record)
        if text is None:
            return None
        slice_bytes = text.encode()[source.offset : source.offset + source.length]
        return node.prefix + slice_bytes.decode()

    # --- what was said -----------------------------------------------------------------------------

    def message(self, number: int) -> MessageRecord | None:
        """The message of this number."""
        value = self.get(layout.MESSAGES, layout.u64(number))
        return None if value is None else layout.decode(value, type=MessageRecord)

    def message_text(self, record: MessageRecord) -> str | None:
        """The text of a message; None when it is no longer kept."""
        return None if record.is_withdrawn else self.chunk(record.text_key)

    def messages(self, start: int = 0) -> Iterator[MessageRecord]:
        """Messages from number `start` on, by number."""
        decoder = msgspec.msgpack.Decoder(MessageRecord)
        for _, value in self.items(layout.MESSAGES, layout.u64(start)):
            yield decoder.decode(value)

    def holds_withdrawn(self) -> bool:
        """Whether the text of any message was ever withdrawn."""
        return self.get(layout.META, b"withdrawn") is not None

    def texts_from(self) -> int:
        """Every message before this one has lost its text."""
        return self._number(b"texts_from", 1)

    def metadata(self, record: MessageRecord) -> dict[str, object]:
        """What a message was remembered with; of one stored before messages had any, its batch's while it is kept."""
        if record.metadata_key is None:
            batch = self.batch(record.batch)
            text = "" if batch is None else batch.metadata
        else:
            text = (self.chunk(record.metadata_key) if record.metadata_key else None) or ""
        return msgspec.json.decode(text, type=dict[str, object]) if text else {}

    def passages_of(self, message: int) -> list[PassageEntry] | None:
        """The passages of a message; None where it was stored without."""
        value = self.get(layout.PASSAGES, layout.u64(message))
        return None if value is None else layout.decode(value, type=list[PassageEntry])

    def passages(self) -> Iterator[tuple[MessageRecord, list[PassageEntry] | None]]:
        """Every message, by number, with its passages; None where it was stored without."""
        records, entries = msgspec.msgpack.Decoder(MessageRecord), msgspec.msgpack.Decoder(list[PassageEntry])
        kept = self.items(layout.PASSAGES)
        key, value = next(kept, (b"", b""))
        for number, record in self.items(layout.MESSAGES):
            while key and key < number:
                key, value = next(kept, (b"", b""))
            yield records.decode(record), entries.decode(value) if key == number else None

    def embedding_state(self) -> EmbeddingState:
        """Which model the agent's vectors are from, and how far they go."""
        value = self.get(layout.META, b"embedding")
        return EmbeddingState() if value is None else layout.decode(value, type=EmbeddingState)

    def embedded(self, message: int) -> EmbeddedMessage | None:
        """The vectors of a message; None where it has none yet."""
        value = self.get(layout.VECTORS, layout.u64(message))
        return None if value is None else layout.decode(value, type=EmbeddedMessage)

    def embedded_messages(self) -> Iterator[tuple[int, EmbeddedMessage]]:
        """(number, vectors) of the messages that have some, of whatever model, by number."""
        decoder = msgspec.msgpack.Decoder(EmbeddedMessage)
        for key, value in self.items(layout.VECTORS):
            yield layout.from_u64(key), decoder.decode(value)

    def chunk(self, key: bytes) -> str | None:
        """The text under a chunk's key."""
        value = self.get(layout.CHUNKS, key)
        return None if value is None else zstandard.ZstdDecompressor().decompress(value).decode()

    def next_message_number(self) -> int:
        """The number the next message will get."""
        return self._number(b"next_message_number", 1)

    def next_batch_number(self) -> int:
        """The number the next batch will get."""
        return self._number(b"next_batch_number", 1)

    # --- batches -----------------------------------------------------------------------------------

    def batch(self, number: int) -> Batch | None:
        """The batch of this number, as long as its status is kept."""
        value = self.get(layout.BATCHES, layout.u64(number))
        return None if value is None else layout.decode(value, type=Batch)

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """Batches from number `start` on, by number."""
        for _, value in self.items(layout.BATCHES, layout.u64(start)):
            yield layout.decode(value, type=Batch)

    def head(self) -> Batch | None:
        """The batch to be digested next."""
        return next(self.waiting(), None)

    def waiting(self) -> Iterator[Batch]:
        """Batches that wait to be digested, in order."""
        for _, value in self.items(layout.INBOX):
            batch = self.batch(layout.from_u64(value))
            assert batch is not None, "an inbox entry has its batch"
            yield batch

    def receipt(self, idempotency_key: str) -> Receipt | None:
        """What an idempotency key was used for."""
        value = self.get(layout.RECEIPTS, layout.text_key(idempotency_key))
        return None if value is None else layout.decode(value, type=Receipt)


class LmdbWriting(LmdbReading):
    """A change of one agent's ground state."""

    def put(self, table: bytes, key: bytes, value: bytes) -> None:
        """Write one entry of one table."""
        self._txn.put(key, value, db=self._tables[table])

    def clear(self, table: bytes) -> None:
        """Empty one table."""
        self._txn.drop(self._tables[table], delete=False)

    def delete(self, table: bytes, key: bytes, value: bytes = b"") -> None:
        """Delete the entry under a key; in a sorted table only the one of this value, if one is given."""
        self._txn.delete(key, value, db=self._tables[table])

    def _set_number(self, name: bytes, number: int) -> None:
        self.put(layout.META, name, layout.u64(number))

    # --- the agent ---------------------------------------------------------------------------------

    def create(self, identity: Identity) -> None:
        """Write who a new store belongs to."""
        self.put(layout.META, b"identity", layout.encode(identity))

    def set_overrides(self, overrides: Mapping[str, object], decay_rate: float) -> None:
        """Keep the agent's own parameters, and the decay rate in force from now on."""
        self.put(layout.META, b"overrides", layout.encode(dict(overrides)))
        self.put(layout.META, b"decay_rate", layout.encode(decay_rate))

    # --- the network -------------------------------------------------------------------------------

    def apply(self, change: Change) -> None:
        """Write a change with all its index entries."""
        for node in change.nodes:
            self._put_node(node)
        for node_id in change.forgotten:
            self._forget(node_id)
        for node_id in change.deleted:
            self._drop_links_to(node_id)
            self._forget(node_id)
        for link in change.links:
            self._put_link(link)
        scan_blocks.reset(self, [*change.forgotten, *change.deleted])
        scan_blocks.count(self, change.scanned, change.scanned_in)
        if change.focus is not None:
            self.put(layout.META, b"focus", layout.encode(change.focus))
        if change.next_node_id is not None:
            self._set_number(b"next_node_id", change.next_node_id)
        if change.owed_passes is not None:
            self._set_number(b"owed_passes", change.owed_passes)
        if change.finished_passes is not None:
            self._set_number(b"finished_passes", change.finished_passes)
        if change.pass_ended:
            self.delete(layout.META, b"pass_state")
        elif change.pass_state is not None:
            self.put(layout.META, b"pass_state", layout.encode(change.pass_state))

    def _put_node(self, node: Node) -> None:
        # A chunk of a node's own was counted once, by put_chunk; a rewrite keeps the same first content.
        self.put(layout.NODES, layout.u64(node.id), layout.encode(node))

    def _forget(self, node_id: int) -> None:
        node = self.node(node_id)
        assert node is not None, "only a living node is forgotten"
        key = layout.u64(node_id)
        cursor = self._txn.cursor(db=self._tables[layout.LINKS])
        targets = [bytes(v) for v in cursor.iternext_dup()] if cursor.set_key(key) else []
        for value in targets:
            target, relation, _, _ = layout.from_link_value(value)
            self.delete(layout.BACKLINKS, layout.u64(target), layout.backlink_value(node_id, relation))
        if targets:
            self.delete(layout.LINKS, key)
        self.delete(layout.NODES, key)
        if node.first_key:
            self.drop_chunk(node.first_key)

    def _drop_links_to(self, node_id: int) -> None:
        key, links = layout.u64(node_id), self._txn.cursor(db=self._tables[layout.LINKS])
        cursor = self._txn.cursor(db=self._tables[layout.BACKLINKS])
        sources = [bytes(v) for v in cursor.iternext_dup()] if cursor.set_key(key) else []
        for source, relation in map(layout.from_backlink_value, sources):
            if links.set_range_dup(layout.u64(source), layout.link_prefix(node_id, relation)):
                links.delete()
        if sources:
            self.delete(layout.BACKLINKS, key)

    def _put_link(self, link: Link) -> None:
        relation = self._relation_id(link.relation)
        key = layout.u64(link.source)
        prefix = layout.link_prefix(link.target, relation)
        cursor = self._txn.cursor(db=self._tables[layout.LINKS])
        known = cursor.set_range_dup(key, prefix) and bytes(cursor.value()).startswith(prefix)
        if known:
            cursor.delete()
        self.put(layout.LINKS, key, layout.link_value(link.target, relation, link.strength, link.anchor))
        if not known:
            self.put(
                layout.BACKLINKS,
                layout.u64(link.target),
                layout.backlink_value(link.source, relation),
            )

    def _relation_id(self, name: str) -> int:
        relation_id = self._relation_ids.get(name)
        if relation_id is None:
            relation_id = self._relation_ids[name] = self._intern(name)
        return relation_id

    def _intern(self, name: str) -> int:
        key = layout.text_key(name)
        value = self.get(layout.RELATION_IDS, key)
        if value is not None:
            return layout.from_u32(value)
        relation_id = self._number(b"next_relation_id", 1)
        self._set_number(b"next_relation_id", relation_id + 1)
        self.put(layout.RELATION_IDS, key, layout.u32(relation_id))
        self.put(layout.RELATIONS, layout.u32(relation_id), name.encode())
        return relation_id

    def put_scans(self, scans: Mapping[int, ScanState]) -> None:
        """Write scan states as they stand."""
        for node_id, scan in scans.items():
            scan_blocks.put(self, node_id, scan)

    # --- what was said -----------------------------------------------------------------------------

    def put_chunk(self, text: str) -> bytes:
        """Keep a text, or count one more reference to it; its key."""
        key = layout.text_key(text)
        references = self.get(layout.CHUNK_REFERENCES, key)
        if references is None:
            self.put(layout.CHUNKS, key, zstandard.ZstdCompressor().compress(text.encode()))
        count = 1 if references is None else layout.from_u32(references) + 1
        self.put(layout.CHUNK_REFERENCES, key, layout.u32(count))
        return key

    def withdraw(self, record: MessageRecord, passages: list[PassageEntry]) -> None:
        """Take the text of a message out of the archive for good; the record stays, found by these passages."""
        assert not record.is_withdrawn
        self.drop_chunk(record.text_key)
        gone = msgspec.structs.replace(record, text_key=b"")
        self.put(layout.MESSAGES, layout.u64(record.number), layout.encode(gone))
        self.put_passages(record.number, passages)
        self.put(layout.META, b"withdrawn", b"1")

    def put_passages(self, message: int, passages: list[PassageEntry]) -> None:
        """Write the passages of a message anew; the vectors of those before go, and are to be made again."""
        self.put(layout.PASSAGES, layout.u64(message), layout.encode(passages))
        self.delete(layout.VECTORS, layout.u64(message))
        state = self.embedding_state()
        if state.up_to >= message:
            self.set_embedding_state(msgspec.structs.replace(state, up_to=message - 1))

    def set_texts_from(self, message: int) -> None:
        """Note that every message before this one has lost its text."""
        self._set_number(b"texts_from", message)

    def drop_chunk(self, key: bytes) -> None:
        """Count one reference to a text less; without any it is gone."""
        references = self.get(layout.CHUNK_REFERENCES, key)
        assert references is not None, "a chunk in use is counted"
        count = layout.from_u32(references) - 1
        if count:
            self.put(layout.CHUNK_REFERENCES, key, layout.u32(count))
        else:
            self.delete(layout.CHUNK_REFERENCES, key)
            self.delete(layout.CHUNKS, key)

    def set_embedding_state(self, state: EmbeddingState) -> None:
        """Keep which model vectors are from, and how far they go."""
        self.put(layout.META, b"embedding", layout.encode(state))

    def put_embedded(self, message: int, embedded: EmbeddedMessage) -> None:
        """Keep the vectors of a message."""
        self.put(layout.VECTORS, layout.u64(message), layout.encode(embedded))

    def put_message(self, record: MessageRecord, text: str, passages: list[PassageEntry]) -> None:
        """Keep a message, or let it say something else from now on: the text it had is let go."""
        before = self.message(record.number)
        assert self.put_chunk(text) == record.text_key
        if before is not None:
            if not before.is_withdrawn:
                self.drop_chunk(before.text_key)
            if before.metadata_key and before.metadata_key != record.metadata_key:
                self.drop_chunk(before.metadata_key)
        self.put_passages(record.number, passages)
        self.put(layout.MESSAGES, layout.u64(record.number), layout.encode(record))
        self._set_number(b"next_message_number", max(record.number + 1, self.next_message_number()))

    # --- batches -----------------------------------------------------------------------------------

    def accept(
        self,
        batch: Batch,
        records: list[MessageRecord],
        texts: list[str],
        receipt: Receipt | None,
        passages: Sequence[list[PassageEntry]] = (),
        metadata: Mapping[bytes, str] = MappingProxyType({}),
    ) -> Batch:
        """Keep a batch with its messages and their passages, and put it at the tail of the inbox."""
        for record, entries in zip(records, passages, strict=False):
            self.put(layout.PASSAGES, layout.u64(record.number), layout.encode(entries))
        for record, text in zip(records, texts, strict=True):
            key = self.put_chunk(text)
            assert key == record.text_key
            if record.metadata_key:
                self.put_chunk(metadata[record.metadata_key])
            self.put(layout.MESSAGES, layout.u64(record.number), layout.encode(record))
        self._set_number(b"next_message_number", batch.first_message + batch.message_count)
        self._set_number(b"next_batch_number", batch.number + 1)
        if receipt is not None:
            key = layout.text_key(batch.idempotency_key)
            self.put(layout.RECEIPTS, key, layout.encode(receipt))
        return self._enqueue(batch)

    def _enqueue(self, batch: Batch) -> Batch:
        position = self._number(b"next_position", 1)
        self._set_number(b"next_position", position + 1)
        placed = msgspec.structs.replace(batch, position=position, state=BatchState.WAITING.value)
        self.put(layout.INBOX, layout.u64(position), layout.u64(batch.number))
        self._put_batch(placed)
        return placed

    def _put_batch(self, batch: Batch) -> None:
        self.put(layout.BATCHES, layout.u64(batch.number), layout.encode(batch))

    def finish_batch(self, batch: Batch) -> None:
        """Take a digested batch out of the inbox; its status stays for a while."""
        self.delete(layout.INBOX, layout.u64(batch.position))
        sequence = self._number(b"next_digested", 1)
        self._set_number(b"next_digested", sequence + 1)
        self.put(layout.DIGESTED, layout.u64(sequence), layout.u64(batch.number))
        self._put_batch(msgspec.structs.replace(batch, state=BatchState.DIGESTED.value, position=0))

    def defer_batch(self, batch: Batch) -> Batch:
        """Move a batch to the tail of the inbox."""
        self.delete(layout.INBOX, layout.u64(batch.position))
        return self._enqueue(batch)

    def park_batch(self, batch: Batch) -> None:
        """Take a batch out of the inbox and keep it, to be retried by hand."""
        self.delete(layout.INBOX, layout.u64(batch.position))
        self.put(layout.PARKED, layout.u64(batch.number), b"")
        self._put_batch(msgspec.structs.replace(batch, state=BatchState.PARKED.value, position=0))

    def unpark_batch(self, batch: Batch) -> Batch:
        """Put a parked batch at the tail of the inbox."""
        self.delete(layout.PARKED, layout.u64(batch.number))
        return self._enqueue(batch)

    def prune(self, *, keep: int, older_than_ms: int, most: int) -> None:
        """Drop statuses and receipts of digested batches beyond `keep`, or digested before a time."""
        surplus = self._entries(layout.DIGESTED) - keep
        for key, value in list(_first(self.items(layout.DIGESTED), most)):
            batch = self.batch(layout.from_u64(value))
            assert batch is not None, "a digested entry has its batch"
            if surplus <= 0 and batch.digested_at_ms >= older_than_ms:
                return
            surplus -= 1
            self.delete(layout.DIGESTED, key)
            self.delete(layout.BATCHES, value)
            if batch.idempotency_key:
                self.delete(layout.RECEIPTS, layout.text_key(batch.idempotency_key))


def _first(items: Iterator[tuple[bytes, bytes]], most: int) -> Iterator[tuple[bytes, bytes]]:
    for _, item in zip(range(most), items, strict=False):
        yield item
