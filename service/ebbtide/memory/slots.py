"""Slots: where nodes stand in parallel arrays, and arrays by slot to work in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebbtide.memory.columns import Array

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
