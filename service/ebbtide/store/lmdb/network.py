"""The memories and entities of one agent, the links between them, and their scan counters, in one transaction.

Each write keeps scan counters consistent with nodes, and the reference to a first content with its node. Forgetting a
node removes its outgoing links; links that point to it stay. Deleting a node removes both.

Links are stored by source only. The sources of the links to a node come from the network in memory, or from a scan of
all links where there is no network.

Importance is not stored: it is computed from the links when an agent opens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ebbtide.records import Entity, Link, LinkColumns, Node, NodeFacts, NodeText, Pin, ScanColumns, ScanState
from ebbtide.store import layout
from ebbtide.store.lmdb.lives import LifeWriter
from ebbtide.store.lmdb.statements import CitingWriter
from ebbtide.store.lmdb.tables import MetaWriter, Part, TableReader, TableWriter
from ebbtide.store.lmdb.texts import MessageReader, TextReader, TextWriter

NodeIds = Sequence[int] | NDArray[np.int64]

MAX_COUNTED = 1 << 20
"""Most relation ids that are counted; more are sorted. An id of a damaged store may be any number."""

SourcesOf = Callable[[int], Iterable[int] | None]
"""Returns the sources of the stored links to a node, and possibly others; None where they are unknown."""

# --- links -------------------------------------------------------------------------------------------------


class LinkReader(Part):
    """The links of one agent."""

    def __init__(self, tables: TableReader, sources_of: SourcesOf = lambda _: None) -> None:
        super().__init__(tables)
        self._sources_of = sources_of
        self._names: dict[int, str] = {}

    def all(self, start: int = 0) -> Iterator[Link]:
        """Yield links by source, target and relation id, from source `start`."""
        for key, value in self._tables.items(layout.LINKS, layout.u64(start)):
            target, relation, strength, anchor = layout.from_link_value(value)
            yield Link(layout.from_u64(key), target, self.relation(relation), strength, anchor)

    def columns(self) -> LinkColumns:
        """Return every link, by source, target and relation id."""
        rows = self._rows()
        ids, relation = _numbered(rows["relation"].astype(np.int64))
        return LinkColumns(
            rows["source"].astype(np.int64),
            rows["target"].astype(np.int64),
            relation,
            rows["strength"].astype(np.float64),
            rows["anchor"].astype(np.int64),
            [self.relation(relation_id) for relation_id in ids.tolist()],
        )

    def count_at(self, node_id: int) -> int:
        """Return how many links start or end at a node."""
        cursor = self._tables.cursor(layout.LINKS)
        outgoing: int = cursor.count() if cursor.set_key(layout.u64(node_id)) else 0
        return outgoing + len(list(self._to(node_id)))

    def has(self, source: int, target: int, relation: int) -> bool:
        """Return whether a link is stored, by its relation id."""
        return _find(
            self._tables.cursor(layout.LINKS), layout.u64(source), layout.link_prefix(target, relation)
        )

    def relation(self, relation_id: int) -> str:
        """Return the name of a relation id."""
        name = self._names.get(relation_id)
        if name is None:
            name = self._names[relation_id] = (
                self._tables.load(layout.RELATIONS, layout.u32(relation_id)) or ""
            )
        return name

    def _to(self, node_id: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield (key, value) of the links that point to a node."""
        cursor, prefix = self._tables.cursor(layout.LINKS), layout.u64(node_id)
        for source in map(layout.u64, sorted(self._sources_to(node_id))):
            if cursor.set_range_dup(source, prefix):
                for value in cursor.iternext_dup():
                    if not value.startswith(prefix):
                        break
                    yield source, value

    def _sources_to(self, node_id: int) -> set[int]:
        """Return the sources of the links to a node, and possibly others."""
        sources = self._sources_of(node_id)
        if sources is not None:
            return set(sources)
        rows = self._rows()
        return set(rows["source"][rows["target"] == node_id].tolist())

    def _rows(self) -> NDArray[Any]:
        """Return every link as an array of LINK_ROW."""
        cursor = self._tables.cursor(layout.LINKS)
        sources = list(cursor.iternext_nodup(keys=True, values=False))
        found = cursor.getmulti(sources, dupdata=True, dupfixed_bytes=layout.LINK_SIZE, keyfixed=True)
        return np.frombuffer(found, dtype=layout.LINK_ROW)


class LinkWriter(LinkReader):
    """The links of one agent, with changes."""

    _tables: TableWriter

    def __init__(self, tables: TableWriter, meta: MetaWriter, sources_of: SourcesOf = lambda _: None) -> None:
        super().__init__(tables, sources_of)
        self._meta = meta
        self._ids: dict[str, int] = {}
        self._written: list[Sequence[Link]] = []
        """The links of this transaction, which the network in memory does not have yet."""

    def put(self, links: Sequence[Link]) -> None:
        """Write links, or the new strengths of stored ones. The last of equal links counts."""
        cursor, values = self._tables.cursor(layout.LINKS), {}
        self._written.append(links)
        for link in links:
            relation = self._relation_id(link.relation)
            source, prefix = layout.u64(link.source), layout.link_prefix(link.target, relation)
            self._delete(cursor, source, prefix)
            value = layout.link_value(link.target, relation, link.strength, link.anchor)
            values[source, prefix] = (source, value)
        self._tables.put_all(layout.LINKS, values.values())

    def remove(self, link: Link) -> None:
        """Delete a link."""
        relation = self._relation_id(link.relation)
        prefix = layout.link_prefix(link.target, relation)
        self._delete(self._tables.cursor(layout.LINKS), layout.u64(link.source), prefix)

    def remove_from(self, node_id: int) -> None:
        """Delete the outgoing links of a node."""
        self._tables.delete(layout.LINKS, layout.u64(node_id))

    def remove_to(self, node_id: int) -> None:
        """Delete the links that point to a node."""
        for key, value in list(self._to(node_id)):
            self._tables.delete(layout.LINKS, key, value)

    def _sources_to(self, node_id: int) -> set[int]:
        written = {link.source for links in self._written for link in links if link.target == node_id}
        return super()._sources_to(node_id) | written

    def drop_unused_relations(self) -> None:
        """Delete the names of relations without links: they may contain what was erased."""
        used = set(self.columns().names)
        for key, name in list(self._tables.items(layout.RELATIONS)):
            if name.decode() not in used:
                self._tables.delete(layout.RELATIONS, key)
                self._tables.delete(layout.RELATION_IDS, layout.text_key(name.decode()))

    def _delete(self, cursor: Any, source: bytes, prefix: bytes) -> None:
        """Delete the stored value of a link, if there is one."""
        if _find(cursor, source, prefix):
            self._tables.drop_at(layout.LINKS, cursor)

    def _relation_id(self, name: str) -> int:
        relation_id = self._ids.get(name)
        if relation_id is None:
            key = layout.text_key(name)
            relation_id = self._tables.load(layout.RELATION_IDS, key)
            if relation_id is None:
                relation_id = self._meta.take(layout.MetaEntries.next_relation_id)
                self._tables.save(layout.RELATION_IDS, key, relation_id)
                self._tables.save(layout.RELATIONS, layout.u32(relation_id), name)
            self._ids[name] = relation_id
        return relation_id


def _numbered(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct values, ascending, and the index of each value among them."""
    if values.max(initial=0) >= MAX_COUNTED:
        return np.unique(values, return_inverse=True)
    # Sorting a million values takes a tenth of a second, counting them a hundredth.
    is_used = np.bincount(values) > 0
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[values]


def _find(cursor: Any, source: bytes, prefix: bytes) -> bool:
    """Move a cursor to the first link of a source whose value begins with a prefix. Return whether there is one."""
    found: bool = cursor.set_range_dup(source, prefix) and cursor.value().startswith(prefix)
    return found


# --- scan counters -----------------------------------------------------------------------------------------


class ScanReader(Part):
    """The scan counters of nodes: each value has those of 1024 ids, and a block of zeros is not stored."""

    def all(self) -> Iterator[tuple[int, ScanState]]:
        """Yield (node id, scan state) of every scanned or kept node."""
        columns = self.columns()
        rows = (columns.node_id, columns.count, columns.last_pass, columns.is_kept)
        for node_id, count, last_pass, is_kept in zip(*(row.tolist() for row in rows), strict=True):
            yield node_id, ScanState(count, last_pass, is_kept)

    def columns(self) -> ScanColumns:
        """Return the scan states of every scanned or kept node, by id."""
        ids, rows = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=layout.SCAN_ROW)]
        for key, value in self._tables.items(layout.SCANS):
            block = layout.from_scan_block(value)
            scanned = np.flatnonzero(block["count"])
            ids.append(scanned + layout.from_u64(key) * layout.SCANS_PER_BLOCK)
            rows.append(block[scanned])
        states = np.concatenate(rows)
        counts = states["count"].astype(np.int64)
        is_kept = counts >= layout.KEPT_BIT
        return ScanColumns(
            np.concatenate(ids),
            counts - is_kept * layout.KEPT_BIT,
            states["last_pass"].astype(np.int64),
            is_kept,
        )


class ScanWriter(ScanReader):
    """The scan counters of nodes, with changes."""

    _tables: TableWriter

    def count(self, node_ids: NodeIds, pass_number: int) -> None:
        """Count one more scan of these nodes, in this pass."""
        for block, places in self._blocks(node_ids):
            block["count"][places] += 1
            block["last_pass"][places] = pass_number

    def keep(self, kept: Mapping[int, bool]) -> None:
        """Note whether passes skip these statements."""
        for is_kept in (True, False):
            ids = [node_id for node_id, value in kept.items() if value == is_kept]
            for block, places in self._blocks(ids):
                counts = block["count"][places] % layout.KEPT_BIT
                block["count"][places] = counts + is_kept * layout.KEPT_BIT

    def reset(self, node_ids: NodeIds) -> None:
        """Delete the counters of these nodes."""
        for block, places in self._blocks(node_ids):
            block[places] = (0, 0)

    def put(self, node_id: int, scan: ScanState) -> None:
        """Write the counters of one node."""
        for block, places in self._blocks([node_id]):
            block[places] = (scan.count + scan.is_kept * layout.KEPT_BIT, scan.last_pass)

    def _blocks(self, node_ids: NodeIds) -> Iterator[tuple[Any, Any]]:
        """Yield each block that has some of the ids, with their places in it. Write it back afterwards."""
        ids = np.asarray(node_ids, dtype=np.int64)
        numbers = ids // layout.SCANS_PER_BLOCK
        for number in np.unique(numbers).tolist():
            key = layout.u64(number)
            block = layout.from_scan_block(self._tables.get(layout.SCANS, key) or b"")
            yield block, ids[numbers == number] % layout.SCANS_PER_BLOCK
            if block["count"].any():
                self._tables.put(layout.SCANS, key, layout.scan_block(block))
            else:
                self._tables.delete(layout.SCANS, key)


# --- nodes -------------------------------------------------------------------------------------------------


class NodeReader:
    """The nodes of one agent."""

    def __init__(self, tables: TableReader, texts: TextReader, messages: MessageReader) -> None:
        self._tables = tables
        self._texts = texts
        self._messages = messages

    def get(self, node_id: int) -> Node | None:
        """Return the node of this id, or None."""
        return self._tables.load(layout.NODES, layout.u64(node_id))

    def all(self, start: int = 0) -> Iterator[Node]:
        """Yield nodes by id, from `start`."""
        return self._tables.load_all(layout.NODES, layout.u64(start))

    def facts(self) -> Iterator[NodeFacts]:
        """Return what a network needs of every node, by id."""
        return map(msgspec.msgpack.Decoder(NodeFacts).decode, self._records())

    def texts(self) -> Iterator[NodeText]:
        """Return the text of every node, by id."""
        return map(msgspec.msgpack.Decoder(NodeText).decode, self._records())

    def _records(self) -> Iterator[bytes]:
        return (value for _, value in self._tables.items(layout.NODES))

    def contents(self, node: Node) -> Iterator[str]:
        """Yield the current content of a node, with and without its label, and the first one, as far as they exist."""
        yield node.content
        if node.label:
            yield node.label + node.content
        yield self.first_content(node) or ""

    def first_content(self, node: Node) -> str | None:
        """Return the content of a node when it was created, or None if that text was deleted."""
        if node.first_key:
            return self._texts.get(node.first_key)
        if len(node.sources) != 1:
            return None
        source = node.sources[0]
        record = self._messages.get(source.message)
        text = None if record is None else self._messages.text(record)
        if text is None:
            return None
        return text.encode()[source.offset : source.offset + source.length].decode()


class NodeWriter(NodeReader):
    """The nodes of one agent, with changes."""

    _tables: TableWriter
    _texts: TextWriter

    def __init__(
        self,
        tables: TableWriter,
        texts: TextWriter,
        messages: MessageReader,
        links: LinkWriter,
        citings: CitingWriter,
        lives: LifeWriter,
    ) -> None:
        super().__init__(tables, texts, messages)
        self._links = links
        self._citings = citings
        self._lives = lives

    def put(self, node: Node) -> None:
        """Write a node. `TextWriter.put` has counted its first content; a rewrite keeps that reference."""
        self._citings.change(self.get(node.id), node)
        self._lives.follow(node)
        self._tables.save(layout.NODES, layout.u64(node.id), node)

    def forget(self, node_id: int) -> Node:
        """Remove a node with its outgoing links and its first content, end its life, and return it."""
        node = self.get(node_id)
        assert node is not None, "only a living node is forgotten"
        self._links.remove_from(node_id)
        self._tables.delete(layout.NODES, layout.u64(node_id))
        self._citings.change(node, None)
        self._lives.end(node_id)
        if node.first_key:
            self._texts.drop(node.first_key)
        return node

    def pin(self, node_id: int, pin: Pin) -> None:
        """Set whether a living memory is pinned, and by whom."""
        node = self.get(node_id)
        assert node is not None, "only a living memory is pinned"
        self.put(msgspec.structs.replace(node, pinned=pin.value))


# --- entities ----------------------------------------------------------------------------------------------


class EntityReader(Part):
    """The entities of one agent."""

    def get(self, entity_id: int) -> Entity | None:
        """Return the entity of this id, or None."""
        return self._tables.load(layout.ENTITIES, layout.u64(entity_id))

    def all(self, start: int = 0) -> Iterator[Entity]:
        """Yield entities by id, from `start`."""
        return self._tables.load_all(layout.ENTITIES, layout.u64(start))


class EntityWriter(EntityReader):
    """The entities of one agent, with changes."""

    _tables: TableWriter

    def __init__(self, tables: TableWriter, links: LinkWriter) -> None:
        super().__init__(tables)
        self._links = links

    def put(self, entity: Entity) -> None:
        """Write an entity. Its key never changes."""
        self._tables.save(layout.ENTITIES, layout.u64(entity.id), entity)

    def delete(self, entity_id: int) -> None:
        """Delete an entity with its links at both ends."""
        assert self._tables.has(layout.ENTITIES, layout.u64(entity_id)), "only a living entity is deleted"
        self._links.remove_to(entity_id)
        self._links.remove_from(entity_id)
        self._tables.delete(layout.ENTITIES, layout.u64(entity_id))
