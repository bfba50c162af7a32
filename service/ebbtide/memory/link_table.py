"""The links of one agent as arrays: a sorted, indexed part, and a short unsorted part for new links.

A link is a row. Rows below `sorted_count` are sorted by source, so that the links of a node are one slice (compressed
sparse rows). Later rows are in order of arrival, with a dictionary of the rows of each node. When there are many, they
are merged into the sorted part. The index by target, needed for importance, is built on first
use; recall does not need it.

Nodes are identified by slot (see `network.py`), relations by number. `now` is a link's current strength; code that
changes scan counts, the focus or pins must update it. `held` is whether the link counts 1.0 at present. A removed link
has a negative strength until the next merge.
"""

from __future__ import annotations

from copy import copy, deepcopy

import numpy as np

from ebbtide.memory.columns import Array, Columns

MIN_UNSORTED = 1024
"""Below this many new links no merge takes place, because searching them costs almost nothing."""

MAX_UNSORTED = 32_768
"""From this many new links on they are always merged, because each hop of a recall searches them."""

BYTES_PER_NEW_ROW = 150
"""Memory of a new link in the dictionaries, approximately."""

RADIX = 1 << 16


class LinkTable:
    """Rows of (source, target, relation, written, anchor, now, held)."""

    def __init__(self) -> None:
        self.rows = Columns(
            source=np.int32,
            target=np.int32,
            relation=np.int32,
            written=np.float64,
            anchor=np.int32,
            now=np.float64,
            held=np.bool_,
        )
        self.removed_count = 0
        """Rows that were removed since the last merge."""
        self.sorted_count = 0
        self._first = np.zeros(1, dtype=np.int64)
        """By slot, the index of its first sorted link; one entry more than there were slots at the merge."""
        self._new_rows: dict[str, dict[int, list[int]]] = {"source": {}, "target": {}}
        """The rows of new links, by end and slot."""
        self._by_target: Array | None = None
        self._first_by_target = np.zeros(1, dtype=np.int64)

    def copy(self) -> LinkTable:
        """Return a table with the same links, which can be changed by itself."""
        copied = copy(self)  # the indexes are replaced, never changed
        copied.rows = deepcopy(self.rows)
        copied._new_rows = {
            end: {slot: list(rows) for slot, rows in rows_of.items()}
            for end, rows_of in self._new_rows.items()
        }
        return copied

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        index = 0 if self._by_target is None else self._by_target.nbytes + self._first_by_target.nbytes
        index += BYTES_PER_NEW_ROW * (self.rows.count - self.sorted_count)
        return self.rows.nbytes + self._first.nbytes + index

    @property
    def wants_merge(self) -> bool:
        """Whether searching the new links costs more than merging them."""
        unsorted = self.rows.count - self.sorted_count
        return unsorted > min(MAX_UNSORTED, max(MIN_UNSORTED, self.sorted_count // 8))

    # --- rows by node ------------------------------------------------------------------------------

    def of_source(self, slot: int) -> Array:
        """Return the rows of the links of one node."""
        return self._rows_of(slot, "source", self._first, None)

    def of_target(self, slot: int) -> Array:
        """Return the rows of the links that point at one node."""
        self._index_targets()
        return self._rows_of(slot, "target", self._first_by_target, self._by_target)

    def _rows_of(self, slot: int, end: str, first: Array, order: Array | None) -> Array:
        new = self._new_rows[end].get(slot, [])
        begin, stop = first[slot : slot + 2].tolist() if 0 <= slot < len(first) - 1 else (0, 0)
        if begin == stop:
            return np.array(new, dtype=np.int64)
        rows = np.arange(begin, stop) if order is None else order[begin:stop].astype(np.int64)
        return np.concatenate([rows, new], dtype=np.int64) if new else rows

    def of_sources(self, slots: Array, is_member: Array) -> Array | None:
        """Return the rows of the links of many nodes; None if scanning all rows costs no more.

        `is_member` contains the same nodes as `slots`, by slot.
        """
        return self._rows_of_many(slots, is_member, "source", self._first, None)

    def counts_of(self, slots: Array) -> Array:
        """Return the number of links of each node, without new ones."""
        counts = np.zeros(len(slots), dtype=np.int64)
        known = slots < len(self._first) - 1
        counts[known] = self._first[slots[known] + 1] - self._first[slots[known]]
        return counts

    def of_targets(self, slots: Array, is_member: Array) -> Array:
        """Return the rows of the links that point at any of these nodes."""
        self._index_targets()
        rows = self._rows_of_many(slots, is_member, "target", self._first_by_target, self._by_target)
        return np.flatnonzero(is_member[self.rows["target"]]) if rows is None else rows

    def _rows_of_many(
        self, slots: Array, is_member: Array, end: str, first: Array, order: Array | None
    ) -> Array | None:
        known = slots if len(self._first) > len(is_member) else slots[slots < len(first) - 1]
        begins = first[known]
        counts = first[known + 1] - begins
        total = int(counts.sum())
        if 2 * total > self.rows.count:
            return None
        ends = np.cumsum(counts)
        rows: Array = np.arange(total) + np.repeat(begins - ends + counts, counts)
        if order is not None:
            rows = order[rows].astype(np.int64)
        if self.rows.count > self.sorted_count:
            new = np.flatnonzero(is_member[self.rows[end][self.sorted_count :]])
            if len(new):
                rows = np.concatenate([rows, new + self.sorted_count])
        return rows

    def _index_targets(self) -> None:
        if self._by_target is None:
            targets = self.rows["target"][: self.sorted_count]
            self._by_target = _order_of(targets).astype(np.int32)
            self._first_by_target = _starts(targets, len(self._first) - 1)

    def present(self, rows: Array) -> Array:
        """Return these rows without removed ones."""
        return rows[self.rows["written"][rows] >= 0] if self.removed_count else rows

    # --- changes -----------------------------------------------------------------------------------

    def append(self, sources: Array, targets: Array, relations: Array) -> Array:
        """Add links without a strength. Return their rows."""
        first = self.rows.append(len(sources), source=sources, target=targets, relation=relations)
        for end, slots in (("source", sources), ("target", targets)):
            rows_of = self._new_rows[end]
            for row, slot in enumerate(slots.tolist(), start=first):
                rows_of.setdefault(slot, []).append(row)
        return np.arange(first, self.rows.count)

    def remove(self, rows: Array) -> None:
        """Remove links. Their rows stay until the next merge."""
        self.rows["written"][rows] = self.rows["now"][rows] = -1.0
        self.rows["held"][rows] = False
        self.removed_count += len(rows)

    def load(self, slot_count: int, **values: Array) -> None:
        """Replace the whole table. Links may be in any order; none is held unless `held` is given."""
        values.setdefault("held", np.zeros(len(values["source"]), dtype=np.bool_))
        sources = values["source"]
        if len(sources) and np.any(sources[1:] < sources[:-1]):
            order = _order_of(sources)
            values = {name: column[order] for name, column in values.items()}
        self.rows.replace(**values)
        self.sorted_count = self.rows.count
        self._new_rows = {"source": {}, "target": {}}
        self.removed_count = 0
        self._first = _starts(self.rows["source"], slot_count)
        self._by_target = None

    def merge(self, keep: Array | None, slot_of: Array | None, slot_count: int) -> None:
        """Merge the new links into the sorted part. `keep` selects rows; `slot_of` maps old slots to new ones."""
        names = ("source", "target", "relation", "written", "anchor", "now", "held")
        values = {name: self.rows[name] if keep is None else self.rows[name][keep] for name in names}
        if slot_of is not None:
            values["source"] = slot_of[values["source"]]
            values["target"] = slot_of[values["target"]]
        self.load(slot_count, **values)


def _starts(slots: Array, slot_count: int) -> Array:
    """Return the index of each slot's first row when rows are sorted by slot."""
    starts = np.zeros(slot_count + 1, dtype=np.int64)
    np.cumsum(np.bincount(slots, minlength=slot_count), out=starts[1:])
    return starts


def _order_of(slots: Array) -> Array:
    """Return the stable order of rows by slot: a radix sort with two digits,
    four times as fast as a comparison sort.
    """
    low = np.argsort((slots % RADIX).astype(np.uint16), kind="stable")
    if not len(slots) or int(slots.max()) < RADIX:
        return low
    high = np.argsort((slots // RADIX).astype(np.uint16)[low], kind="stable")
    return low[high]
