"""Parallel arrays that grow at the end: one row a node, a link or a piece of text, one array a field.

Kept apart from what the rows mean. A view is good until the next `append`, `keep` or `replace`: whoever holds
one across a change writes into an array that nobody reads any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

SMALLEST = 16
"""Rows of the first allocation: most agents are small, and a thousand of them may be open."""

GROWTH = 1.25
"""By how much an allocation grows; more would cost memory at a million rows, less would copy too often."""


class Columns:
    """Named arrays of equal length."""

    __slots__ = ("_arrays", "count")

    def __init__(self, **types: type[np.generic]) -> None:
        self._arrays: dict[str, Array] = {name: np.zeros(0, dtype) for name, dtype in types.items()}
        self.count = 0

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name][: self.count]

    @property
    def capacity(self) -> int:
        """Rows there is room for."""
        return len(next(iter(self._arrays.values())))

    @property
    def nbytes(self) -> int:
        """Bytes held, room to grow included."""
        return sum(array.nbytes for array in self._arrays.values())

    def append(self, row_count: int, **values: Any) -> int:
        """Add rows; fields not named are zero. Returns the place of the first new row."""
        first, self.count = self.count, self.count + row_count
        self._make_room(self.count)
        for name, array in self._arrays.items():
            array[first : self.count] = values.get(name, 0)
        return first

    def _make_room(self, needed: int) -> None:
        for name, array in self._arrays.items():
            if len(array) < needed:
                roomy = np.zeros(max(SMALLEST, needed, int(needed * GROWTH)), array.dtype)
                roomy[: len(array)] = array
                self._arrays[name] = roomy

    def replace(self, **values: Array) -> None:
        """Put whole arrays in place of the old ones: every field, all of one length."""
        assert values.keys() == self._arrays.keys(), "a row has all its fields"
        self.count = len(next(iter(values.values())))
        self._arrays = {
            name: np.ascontiguousarray(values[name], dtype=array.dtype)
            for name, array in self._arrays.items()
        }

    def keep(self, rows: Array) -> None:
        """Keep these rows only, in the order given."""
        self.replace(**{name: array[: self.count][rows] for name, array in self._arrays.items()})


MANY = 4096
"""Look-ups from which on a table of all ids is made for them: searching costs 100 ns each, a table 2 ns."""


def places_in(ids: Array, wanted: Array) -> tuple[Array, Array]:
    """Where each wanted id stands among ascending ids, and whether it does."""
    if not len(ids) or not len(wanted):
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=np.bool_)
    places = np.clip(wanted - ids[0], 0, len(ids) - 1)
    known = ids[places] == wanted
    if known.all():
        return places, known  # as long as nothing was dropped in between, ids count up
    span = int(ids[-1] - ids[0]) + 1
    if len(wanted) > MANY and span < 8 * len(ids):
        table = np.full(span, -1, dtype=np.int64)
        table[ids - ids[0]] = np.arange(len(ids))
        places = np.where(
            (wanted < ids[0]) | (wanted > ids[-1]), -1, table[np.clip(wanted - ids[0], 0, span - 1)]
        )
        return np.maximum(places, 0), places >= 0
    places = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return places, ids[places] == wanted


@dataclass(slots=True)
class Scratch:
    """Arrays by slot that are all zero between two uses; made when first needed."""

    label: Array
    worth: Array
    best: Array
    top: Array
    rank: Array
    member: Array

    @classmethod
    def of(cls, slot_count: int) -> Scratch:
        """Zeros for that many slots."""
        return cls(
            label=np.zeros(slot_count, dtype=np.int64),
            worth=np.zeros(slot_count),
            best=np.zeros(slot_count, dtype=np.int64),
            top=np.zeros(slot_count),
            rank=np.zeros(slot_count, dtype=np.int32),
            member=np.zeros(slot_count, dtype=np.bool_),
        )
