"""Lengths of window sums: a vector plus its neighbours. Cached, and recomputed only where something changed.

Products with a query add up over a window, so window vectors are not stored. Their lengths do not add up: they need
products of neighbours, which take longer than the whole query. So they are cached by row, with the rows that they were
computed from.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ebbtide.retrieval.half_precision import STRIDE, HalfArray, to_single

Rows = NDArray[np.int64]


class WindowLengths:
    """The squared length of the sum of each row with its previous and next row."""

    def __init__(self) -> None:
        self._squares = np.zeros(0)
        self._before = np.zeros(0, dtype=np.int64)
        self._after = np.zeros(0, dtype=np.int64)
        self._rewritten = np.zeros(0, dtype=np.bool_)

    @property
    def nbytes(self) -> int:
        """Return the memory used."""
        return self._squares.nbytes + self._before.nbytes + self._after.nbytes + self._rewritten.nbytes

    def forget(self, rows: Rows | slice, row_count: int) -> None:
        """Invalidate rows with new vectors, and set the number of rows."""
        known = min(row_count, len(self._squares))
        self._squares, self._before = self._squares[:known], self._before[:known]
        self._after, self._rewritten = self._after[:known], self._rewritten[:known]
        if isinstance(rows, slice):
            self._rewritten[rows] = True
        else:
            self._rewritten[rows[rows < known]] = True

    def squares(self, matrix: HalfArray, before: Rows, after: Rows) -> NDArray[np.float64]:
        """Return the squared lengths by row, given the previous and next row of each (-1: none)."""
        known, count = len(self._squares), len(matrix)
        rewritten = np.ones(count + 1, dtype=np.bool_)
        rewritten[:known] = self._rewritten
        rewritten[-1] = False  # index -1
        stale = rewritten[:count] | rewritten[before] | rewritten[after]
        stale[:known] |= (before[:known] != self._before) | (after[:known] != self._after)
        squares = np.zeros(count)
        squares[:known] = self._squares
        rows = np.flatnonzero(stale)
        squares[rows] = window_squares(matrix, rows, before[rows], after[rows])
        self._squares, self._before, self._after = squares, before.copy(), after.copy()
        self._rewritten = np.zeros(count, dtype=np.bool_)
        return squares


def window_squares(matrix: HalfArray, rows: Rows, before: Rows, after: Rows) -> NDArray[np.float64]:
    """Return the squared length of the sum of each of these rows with its previous and next row."""
    squares = np.empty(len(rows))
    for begin in range(0, len(rows), STRIDE):
        part = slice(begin, begin + STRIDE)
        sums = to_single(matrix[rows[part]])
        for neighbours in (before[part], after[part]):
            real = np.flatnonzero(neighbours >= 0)
            sums[real] += to_single(matrix[neighbours[real]])
        squares[part] = np.einsum("ij,ij->i", sums, sums)
    return squares
