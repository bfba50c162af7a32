"""Trees: the sum of many small decision trees, for many rows of numbers at once.

Trees are kept as arrays of their inner nodes, one after the other; a child is a node when it is 0 or more, else the
leaf with the number -1 - child. All rows go down all trees together, a level at a time. A number up to the
threshold goes left; where one is missing (NaN), the tree says which way.

Deliberately not here: how trees grow. That needs a library of its own, which nothing that runs ever loads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Trees:
    """A forest as arrays; `roots` are the nodes at which its trees begin, and none is a bare leaf."""

    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    leaves: NDArray[np.float64]

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Trees:
        """The trees that a file holds; ValueError where a node or a leaf is named that is not there."""
        made = cls(
            roots=np.array(kept["roots"], dtype=np.int64),
            feature=np.array(kept["feature"], dtype=np.int64),
            threshold=np.array(kept["threshold"], dtype=np.float64),
            left=np.array(kept["left"], dtype=np.int64),
            right=np.array(kept["right"], dtype=np.int64),
            missing_left=np.array(kept["missing_left"], dtype=np.bool_),
            leaves=np.array(kept["leaves"], dtype=np.float64),
        )
        nodes = np.arange(len(made.feature))
        for children in (made.left, made.right):
            # A child stands behind its parent, so that every way down ends.
            if len(children) != len(nodes) or ((children >= 0) & (children <= nodes)).any():
                raise ValueError("a tree runs in circles")
            if (children >= len(nodes)).any() or (-1 - children >= len(made.leaves)).any():
                raise ValueError("a tree leads out of its file")
        return made

    def sums(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of what every tree says, for each row."""
        at = np.repeat(self.roots[:, None], len(rows), axis=1)
        row = np.broadcast_to(np.arange(len(rows)), at.shape)
        inner = at >= 0
        while inner.any():
            node = at[inner]
            value = rows[row[inner], self.feature[node]]
            goes_left = np.where(np.isnan(value), self.missing_left[node], value <= self.threshold[node])
            at[inner] = np.where(goes_left, self.left[node], self.right[node])
            inner = at >= 0
        sums: NDArray[np.float64] = self.leaves[-1 - at].sum(axis=0)
        return sums
