"""The links of a store as arrays."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide.records import Identity, Link
from ebbtide.store import layout
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.transaction import WriteTransaction


@pytest.mark.parametrize("highest", [5, 2**32 - 1])
def test_columns_name_the_relations_of_all_links(tmp_path: Path, highest: int) -> None:
    """The arrays contain the same links as the records, also if a relation id is as high as it can be."""
    links = [Link(1, 2, "knows", 1.0, 0), Link(1, 3, "likes", 0.5, 2), Link(4, 1, "knows", 0.25, 1)]

    def write(txn: WriteTransaction) -> None:
        txn.links.put(links)
        value = layout.link_value(9, highest, 0.75, 3)
        txn.tables.cursor(layout.LINKS).put(layout.u64(4), value)

    store = LmdbStore.create(
        tmp_path, Identity("ann", 0, 7, layout.FORMAT_VERSION), map_bytes=1 << 20, max_map_bytes=1 << 24
    )
    store.write(write)
    columns = store.read(lambda txn: txn.links.columns())
    rows = (columns.source, columns.target, columns.relation, columns.strength, columns.anchor)
    found = [Link(s, t, columns.names[r], w, a) for s, t, r, w, a in zip(*map(list, rows), strict=True)]
    assert found == [*links, Link(4, 9, "", 0.75, 3)] == store.read(lambda txn: list(txn.links.all()))
    store.close()


def test_a_store_without_links_has_empty_columns(tmp_path: Path) -> None:
    """A store without links yields empty arrays and no names."""
    identity = Identity("ann", 0, 7, layout.FORMAT_VERSION)
    store = LmdbStore.create(tmp_path, identity, map_bytes=1 << 20, max_map_bytes=1 << 24)
    columns = store.read(lambda txn: txn.links.columns())
    assert len(columns.source) == len(columns.relation) == 0
    assert columns.names == []
    store.close()
