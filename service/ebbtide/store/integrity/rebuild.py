"""Repair of a store: derived entries are written again, in one transaction.

Tables that follow from others are written again, or emptied where the agent fills them later. Entries that refer to
nothing are deleted. Ground state is never invented: a message without its text stays a finding.
"""

from __future__ import annotations

import msgspec

from ebbtide.records import NEVER_SCANNED, Life
from ebbtide.store import layout
from ebbtide.store.integrity.check import Finding, check_store
from ebbtide.store.integrity.derived import (
    are_passages_of,
    are_vectors_of,
    citations,
    life_fault,
    passages_fit,
    references,
)
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.transaction import WriteTransaction


def rebuild_store(store: LmdbStore) -> list[Finding]:
    """Write derived tables again, in one transaction. Return the findings that remain."""
    store.write(_rebuild)
    return check_store(store)


def _rebuild(txn: WriteTransaction) -> None:
    living = {node.id for node in txn.nodes.all()} | {entity.id for entity in txn.entities.all()}
    _drop_links(txn, living)
    for node_id, _ in list(txn.scans.all()):
        if node_id not in living:
            txn.scans.put(node_id, NEVER_SCANNED)
    for name in ("focus", "entity_focus"):
        known = dict.fromkeys(node_id for node_id in getattr(txn.meta, name) if node_id in living)
        txn.meta.set(**{name: tuple(known)})
    _drop_unfitting_passages(txn)
    _drop_unfitting_vectors(txn)
    _rebuild_references(txn)
    _rebuild_lives(txn)
    txn.citings.rebuild(txn.nodes.all())
    txn.concepts.clear()


def _rebuild_lives(txn: WriteTransaction) -> None:
    """Delete lives that do not fit, and let memories without one begin before the first pass."""
    nodes = {node.id: node for node in txn.nodes.all()}
    highest, current = txn.meta.next_node_id, txn.meta.finished_passes + 1
    for node_id in txn.lives.columns().node_id.tolist():
        life, node = txn.lives.get(node_id), nodes.get(node_id)
        is_memory = node_id < highest and txn.entities.get(node_id) is None
        if life is None or not is_memory or life_fault(life, node, current):
            txn.lives.put(node_id, None)
    for node in nodes.values():
        if txn.lives.get(node.id) is None:
            txn.lives.put(node.id, Life(0, node.original_length))


def _drop_links(txn: WriteTransaction, living: set[int]) -> None:
    """Delete the links of missing nodes."""
    for key in {key for key, _ in txn.tables.items(layout.LINKS)}:
        if layout.from_u64(key) not in living:
            txn.tables.delete(layout.LINKS, key)


def _drop_unfitting_passages(txn: WriteTransaction) -> None:
    """Delete wrong passages. The agent computes missing ones for its first query."""
    cited = citations(txn.nodes.all())
    for key, value in list(txn.tables.items(layout.PASSAGES)):
        number = layout.from_u64(key)
        record = txn.messages.get(number)
        if record is not None and record.is_withdrawn:
            fits = passages_fit(value, None) is not None and are_passages_of(value, cited.get(number, set()))
        else:
            text = None if record is None else txn.messages.text(record)
            fits = text is not None and passages_fit(value, len(text)) is not None
        if not fits:
            txn.tables.delete(layout.PASSAGES, key)
    txn.meta.set(texts_from=next((one.number for one in txn.messages.all() if not one.is_withdrawn), 1))


def _drop_unfitting_vectors(txn: WriteTransaction) -> None:
    """Delete wrong vectors. The agent computes missing ones in the background."""
    state, dropped = txn.meta.embedding, []
    for key, value in list(txn.tables.items(layout.VECTORS)):
        number = layout.from_u64(key)
        passages = txn.passages.get(number)
        count = None if passages is None else len(passages)
        if txn.messages.get(number) is None or not are_vectors_of(value, count, state.stamp):
            txn.tables.delete(layout.VECTORS, key)
            dropped.append(number)
    up_to = min(state.up_to, txn.meta.next_message_number - 1, *(number - 1 for number in dropped))
    if up_to != state.up_to:
        txn.meta.set(embedding=msgspec.structs.replace(state, up_to=up_to))


def _rebuild_references(txn: WriteTransaction) -> None:
    """Count the references to each text, and delete texts without references."""
    tables = txn.tables
    counts = references(txn.messages.all(), txn.nodes.all())
    tables.clear(layout.CHUNK_REFERENCES)
    keys = {tables.placed(layout.CHUNKS, key): key for key in counts}
    for place in [place for place, _ in tables.items(layout.CHUNKS)]:
        if place in keys and counts[keys[place]] > 1:
            tables.put(layout.CHUNK_REFERENCES, keys[place], layout.u32(counts[keys[place]]))
        elif place not in keys:
            tables.drop_placed(layout.CHUNKS, place)
