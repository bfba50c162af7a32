"""The lives of one agent's memories and statements in one transaction: when each was made, and which pass forgot it.

The event log has the same, but drops its oldest events first, and a restored agent has none. These numbers stay as long
as the agent, unless the memory is deleted. Each value has the lives of 64 ids; a block of zeros is not stored.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ebbtide.records import Life, LifeColumns, Node
from ebbtide.store import layout
from ebbtide.store.layout import LIVES, LIVES_PER_BLOCK, from_u64, u64
from ebbtide.store.lmdb.tables import MetaWriter, Part, TableWriter


class LifeReader(Part):
    """The lives of one agent's memories."""

    def get(self, node_id: int) -> Life | None:
        """Return the life of a memory, also a forgotten one; None if it was deleted or never existed."""
        return layout.life_in(self._block(node_id), node_id)

    def columns(self, start: int = 0, end: int | None = None) -> LifeColumns:
        """Return the lives of the ids from `start` on, and before `end`."""
        first_ids, blocks = [], []
        for key, value in self._tables.items(LIVES, u64(start // LIVES_PER_BLOCK)):
            first_ids.append(from_u64(key) * LIVES_PER_BLOCK)
            if end is not None and first_ids[-1] >= end:
                first_ids.pop()
                break
            blocks.append(value.ljust(layout.LIFE_BLOCK_BYTES, b"\0"))
        lives = np.frombuffer(b"".join(blocks), dtype=layout.LIFE_ROW)
        ids = (np.array(first_ids, dtype=np.int64)[:, None] + np.arange(LIVES_PER_BLOCK)).ravel()
        is_wanted = (lives["first_pass"] > 0) & (ids >= start)
        if end is not None:
            is_wanted &= ids < end
        lives = lives[is_wanted]
        return LifeColumns(
            ids[is_wanted],
            lives["first_pass"].astype(np.int64) - 1,
            lives["length"].astype(np.int64),
            lives["forgotten_in"].astype(np.int64),
        )

    def _block(self, node_id: int) -> bytes:
        return self._tables.get(LIVES, u64(node_id // LIVES_PER_BLOCK)) or b""


class LifeWriter(LifeReader):
    """The lives of one agent's memories, with changes."""

    _tables: TableWriter

    def __init__(self, tables: TableWriter, meta: MetaWriter) -> None:
        super().__init__(tables)
        self._meta = meta

    def put(self, node_id: int, life: Life | None) -> None:
        """Write the life of a memory; None deletes it."""
        before = self._block(node_id)
        after = layout.with_life(before, node_id, life)
        key = u64(node_id // LIVES_PER_BLOCK)
        if after and after != before:
            self._tables.put(LIVES, key, after)
        elif before and not after:
            self._tables.delete(LIVES, key)

    def follow(self, node: Node) -> None:
        """Begin the life of a memory that is written for the first time; a correction changes its length."""
        life = self.get(node.id)
        if life is None or life.length != node.original_length:
            after = self._meta.finished_passes if life is None else life.after
            self.put(node.id, Life(after, node.original_length))

    def end(self, node_id: int) -> None:
        """End the life of a memory in the current pass."""
        life = self.get(node_id)
        if life is not None:
            self.put(node_id, life._replace(forgotten_in=self._meta.finished_passes + 1))

    def remove(self, node_ids: Iterable[int]) -> None:
        """Delete the lives of these memories."""
        for node_id in node_ids:
            self.put(node_id, None)
