"""The network in one transaction: nodes, links from both ends, the names of relations, counters of scans.

Whatever writes here keeps every index in step with what it indexes: backlinks with links, counters with nodes, the
reference to a first content with the node that was made from it. A forgotten node takes its own links along, and
those that point at it dangle; a deleted one takes both.

Importance is not here: it is derived from the links when an agent opens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from ebbtide.changes import Change
from ebbtide.records import Link, LinkColumns, Node, NodeText, ScanColumns, ScanState
from ebbtide.store import layout
from ebbtide.store.lmdb import scan_blocks
from ebbtide.store.lmdb.tables import Tables
from ebbtide.store.lmdb.texts import TextReading, TextWriting


class NetworkReading(TextReading):
    """The network of one agent, and what its nodes were made from."""

    def __init__(self, txn: Any, tables: Tables) -> None:
        super().__init__(txn, tables)
        self._names: dict[int, str] = {}

    # --- nodes -------------------------------------------------------------------------------------

    def node(self, node_id: int) -> Node | None:
        """The node of this id, None when it is gone or never was."""
        value = self.get(layout.NODES, layout.u64(node_id))
        return None if value is None else layout.decode(value, type=Node)

    def nodes(self, start: int = 0) -> Iterator[Node]:
        """Nodes from id `start` on, by id."""
        decoder = msgspec.msgpack.Decoder(Node)
        for _, value in self.items(layout.NODES, layout.u64(start)):
            yield decoder.decode(value)

    def node_texts(self) -> Iterator[NodeText]:
        """What every node says, by id: a node without the rest of its record."""
        decoder = msgspec.msgpack.Decoder(NodeText)
        for _, value in self.items(layout.NODES):
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
                mate = layout.decode(self._opened(layout.NODES, key, value), type=Node)
                if mate.batch != node.batch:
                    break
                yield mate

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

    # --- links -------------------------------------------------------------------------------------

    def links(self, start: int = 0) -> Iterator[Link]:
        """Links whose source is `start` or later, by source, target, relation id."""
        for key, value in self.items(layout.LINKS, layout.u64(start)):
            target, relation, strength, anchor = layout.from_link_value(value)
            yield Link(layout.from_u64(key), target, self.relation(relation), strength, anchor)

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

    def link_count_at(self, node_id: int) -> int:
        """How many links start or end at a node."""
        found, key = 0, layout.u64(node_id)
        for table in (layout.LINKS, layout.BACKLINKS):
            cursor = self._txn.cursor(db=self._tables[table])
            found += cursor.count() if cursor.set_key(key) else 0
        return found

    def relation(self, relation_id: int) -> str:
        """The name behind an interned relation."""
        name = self._names.get(relation_id)
        if name is None:
            value = self.get(layout.RELATIONS, layout.u32(relation_id))
            name = "" if value is None else value.decode()
            self._names[relation_id] = name
        return name

    # --- scans -------------------------------------------------------------------------------------

    def scans(self) -> Iterator[tuple[int, ScanState]]:
        """(node id, scan state) of every node that was scanned."""
        columns = self.scan_columns()
        everything = (columns.node_id.tolist(), columns.count.tolist(), columns.last_pass.tolist())
        for node_id, count, last_pass in zip(*everything, strict=True):
            yield node_id, ScanState(count, last_pass)

    def scan_columns(self) -> ScanColumns:
        """The scan states of every node that was scanned, by id."""
        return scan_blocks.columns(self.items(layout.SCANS))


class NetworkWriting(NetworkReading, TextWriting):
    """The network of one agent, changed."""

    def __init__(self, txn: Any, tables: Tables) -> None:
        super().__init__(txn, tables)
        self._relation_ids: dict[str, int] = {}

    def _change_network(self, change: Change) -> None:
        for node in change.nodes:
            self._put_node(node)
        for node_id in change.forgotten:
            self._forget(node_id)
        for node_id in change.deleted:
            self._drop_links_to(node_id)
            self._forget(node_id)
        for link in change.unnamed:
            self._drop_link(link)
        for link in change.links:
            self._put_link(link)
        scan_blocks.reset(self, [*change.forgotten, *change.deleted])
        scan_blocks.count(self, change.scanned, change.scanned_in)

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

    def _drop_link(self, link: Link) -> None:
        relation = self._relation_id(link.relation)
        key, prefix = layout.u64(link.source), layout.link_prefix(link.target, relation)
        cursor = self._txn.cursor(db=self._tables[layout.LINKS])
        if cursor.set_range_dup(key, prefix) and bytes(cursor.value()).startswith(prefix):
            cursor.delete()
        backlink = layout.backlink_value(link.source, relation)
        self.delete(layout.BACKLINKS, layout.u64(link.target), backlink)

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

    def drop_unused_relations(self) -> None:
        """Let go of the names of relations that no link has: they may tell of what was erased."""
        used = set(self.link_columns().names)
        for key, value in list(self.items(layout.RELATIONS)):
            name = bytes(value).decode()
            if name not in used:
                self.delete(layout.RELATIONS, key)
                self.delete(layout.RELATION_IDS, layout.text_key(name))

    def put_scans(self, scans: Mapping[int, ScanState]) -> None:
        """Write scan states as they stand."""
        for node_id, scan in scans.items():
            scan_blocks.put(self, node_id, scan)
