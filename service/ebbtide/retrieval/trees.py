"""Evaluate a forest of small decision trees for many rows at once.

Trees are stored as arrays of their inner nodes. A child is a node if it is 0 or more, otherwise the leaf -1 - child.
All rows descend all trees together, one level at a time. A value up to the threshold goes left; for a missing one (NaN)
the node decides. Training needs a separate library (`benchmarks/train_fusion.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Trees:
    """A forest as arrays. `roots` are the first nodes of its trees; no tree is a single leaf."""

    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    leaves: NDArray[np.float64]

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Trees:
        """Return the trees of a file. Raise ValueError if a node or leaf does not exist."""
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
            # A child comes after its parent, so that every path ends.
            if len(children) != len(nodes) or ((children >= 0) & (children <= nodes)).any():
                raise ValueError("a tree has a cycle")
            if (children >= len(nodes)).any() or (-1 - children >= len(made.leaves)).any():
                raise ValueError("a tree refers to a missing node or leaf")
        return made

    def sums(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum over all trees for each row."""
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
