"""What a store derives, made anew: the remedy for what the checker calls repairable.

Tables that follow from others are written again, or emptied where the agent itself fills them later, and entries that
refer to nothing are dropped, all in one transaction. What is ground state it never invents: a message whose text is
gone stays a finding.
"""

from __future__ import annotations

import msgspec

from ebbtide.records import NEVER_SCANNED, MessageRecord
from ebbtide.store import layout
from ebbtide.store.integrity.check import Finding, check_store
from ebbtide.store.integrity.derived import are_vectors_of, citing, passages_fit, references, told_by
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.transaction import LmdbWriting


def rebuild_store(store: LmdbStore) -> list[Finding]:
    """Make derived tables anew, in one transaction; what does not hold together afterwards."""
    store.write(lambda txn: _Rebuild(txn).run())  # type: ignore[arg-type]
    return check_store(store)


class _Rebuild:
    """Derived tables made anew in one transaction."""

    def __init__(self, txn: LmdbWriting) -> None:
        self._txn = txn

    def run(self) -> None:
        """Rebuild what is derived."""
        txn = self._txn
        living = {node.id for node in txn.nodes()}
        self._drop_orphan_links(living)
        self._rebuild_backlinks()
        txn.put_scans({node_id: NEVER_SCANNED for node_id, _ in list(txn.scans()) if node_id not in living})
        focus = tuple(dict.fromkeys(node_id for node_id in txn.focus() if node_id in living))
        txn.put(layout.META, b"focus", layout.encode(focus))
        self._drop_unfitting_passages()
        self._drop_unfitting_vectors()
        self._rebuild_references()

    def _drop_unfitting_passages(self) -> None:
        """Those that are missing are made anew when the agent is asked."""
        cited = citing(self._txn.nodes())
        for key, value in list(self._txn.items(layout.PASSAGES)):
            number = layout.from_u64(key)
            record = self._txn.message(number)
            if record is not None and record.is_withdrawn:
                fits = passages_fit(value, None) is not None and told_by(value) == cited.get(number, set())
            else:
                text = None if record is None else self._txn.message_text(record)
                fits = text is not None and passages_fit(value, len(text)) is not None
            if not fits:
                self._txn.delete(layout.PASSAGES, key)
        self._txn.set_texts_from(next((r.number for r in self._txn.messages() if not r.is_withdrawn), 1))

    def _drop_unfitting_vectors(self) -> None:
        """Those that are missing are made anew in the background."""
        state, dropped = self._txn.embedding_state(), []
        for key, value in list(self._txn.items(layout.VECTORS)):
            number = layout.from_u64(key)
            passages = self._txn.passages_of(number)
            count = None if passages is None else len(passages)
            if self._txn.message(number) is None or not are_vectors_of(value, count, state.stamp):
                self._txn.delete(layout.VECTORS, key)
                dropped.append(number)
        latest = self._txn.next_message_number() - 1
        up_to = min(state.up_to, latest, *(number - 1 for number in dropped))
        if up_to != state.up_to:
            self._txn.set_embedding_state(msgspec.structs.replace(state, up_to=up_to))

    def _drop_orphan_links(self, living: set[int]) -> None:
        for key in {bytes(key) for key, _ in self._txn.items(layout.LINKS)}:
            if layout.from_u64(key) not in living:
                self._txn.delete(layout.LINKS, key)

    def _rebuild_backlinks(self) -> None:
        txn = self._txn
        txn.clear(layout.BACKLINKS)
        for key, value in list(txn.items(layout.LINKS)):
            target, relation, _, _ = layout.from_link_value(value)
            source = layout.from_u64(key)
            txn.put(layout.BACKLINKS, layout.u64(target), layout.backlink_value(source, relation))

    def _rebuild_references(self) -> None:
        txn = self._txn
        records = [layout.decode(value, type=MessageRecord) for _, value in txn.items(layout.MESSAGES)]
        counts = references(records, txn.nodes())
        txn.clear(layout.CHUNK_REFERENCES)
        keys = {txn.placed(layout.CHUNKS, key): key for key in counts}
        for place in [bytes(place) for place, _ in txn.items(layout.CHUNKS)]:
            if place in keys:
                txn.put(layout.CHUNK_REFERENCES, keys[place], layout.u32(counts[keys[place]]))
            else:
                txn.drop_placed(layout.CHUNKS, place)
