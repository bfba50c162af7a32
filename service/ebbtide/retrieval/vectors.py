"""Vectors: what passages mean, as directions, and how near each is to a question.

`Vectors` holds those of one agent under one embedding model: rows of one growing matrix in half precision, with
arrays from passage to row and back. Nearness is the cosine after the mean of all vectors held was taken from
every vector and from the question (J. Mu and P. Viswanath, "All-but-the-Top", 2018, first step): what all texts
have in common says nothing about which one is meant, and hides what does.

The rule guarded here: vectors of two models never meet, and what was dropped is gone from the next answer on.
Where vectors are kept, and what makes them of texts, is for others to know.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebbtide.retrieval.halves import Singles, products, widened
from ebbtide.retrieval.lexical import Scores
from ebbtide.retrieval.windows import WindowLengths

Numbers = NDArray[np.int64]

EXACT_UP_TO = 20_000
"""Vectors up to which every one is compared."""

CENTRED_FROM = 30
"""Vectors from which on their mean says what texts have in common, rather than what these few are about."""

LENGTH_TOLERANCE = 0.05
"""How far the square of a length may be from 1; half precision stays within a thousandth."""

_LEAST_SQUARE = 1e-6
"""A centred vector whose squared length is less than this has no direction."""


class Vectors:
    """Vectors of the passages of one agent under one embedding model: passage number → vector of length 1."""

    def __init__(self, model: str, dimension: int, *, exact_up_to: int = EXACT_UP_TO) -> None:
        assert dimension > 0
        self.model, self.dimension, self._exact_up_to = model, dimension, exact_up_to
        self._count = 0
        self._matrix = np.zeros((0, dimension), dtype=np.float16)
        self._squares = np.zeros(0, dtype=np.float64)
        self._passages = np.zeros(0, dtype=np.int64)
        self._rows = np.zeros(0, dtype=np.int64)
        """By passage; -1 where it has no vector."""
        # Halves are multiples of 2^-24, and their sum in doubles is exact: no order of puts and drops shows in it.
        self._sum = np.zeros(dimension, dtype=np.float64)
        self._windows = WindowLengths()
        self._last_asked: tuple[bytes, Scores] | None = None
        self._last_common: Scores | None = None

    def __len__(self) -> int:
        """Passages with a vector."""
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        arrays = (self._matrix, self._squares, self._passages, self._rows, self._sum)
        kept = (self._last_asked[1] if self._last_asked else None, self._last_common)
        return sum(array.nbytes for array in (*arrays, *kept) if array is not None) + self._windows.nbytes

    def of(self, passage: int) -> Singles | None:
        """The vector of a passage, as precise as it is held; none if it has none."""
        row = int(self._rows_of(np.array([passage]))[0])
        return widened(self._matrix[row]) if row >= 0 else None

    def put(self, passages: Numbers, vectors: NDArray[np.float16 | np.float32]) -> None:
        """Holds the vectors of passages, instead of those they had; of a passage given twice, the later one.

        ValueError, and nothing changed, for a vector that is not of length 1.
        """
        assert vectors.shape == (len(passages), self.dimension) and passages.min(initial=0) >= 0
        with np.errstate(over="ignore"):
            halves = vectors.astype(np.float16)
        singles = halves.astype(np.float32)
        squares = np.einsum("ij,ij->i", singles, singles).astype(np.float64)
        if not np.all(np.abs(squares - 1) <= LENGTH_TOLERANCE):
            raise ValueError("a vector is not of length 1")
        if not len(passages):
            return
        passages, last = np.unique(passages[::-1], return_index=True)
        last = len(squares) - 1 - last
        self.drop(passages)
        begin, end = self._count, self._count + len(passages)
        self._make_room(end, int(passages.max()) + 1)
        self._matrix[begin:end], self._squares[begin:end] = halves[last], squares[last]
        self._passages[begin:end] = passages
        self._rows[passages] = np.arange(begin, end)
        self._count = end
        self._sum += halves[last].sum(axis=0, dtype=np.float64)
        self._changed(slice(begin, end))

    def drop(self, passages: Iterable[int]) -> None:
        """Forgets the vectors of passages, at once; those without one are passed over."""
        asked = passages if isinstance(passages, np.ndarray) else np.fromiter(passages, dtype=np.int64)
        rows = np.unique(self._rows_of(asked))
        rows = rows[rows >= 0]
        if not len(rows):
            return
        self._sum -= self._matrix[rows].sum(axis=0, dtype=np.float64)
        self._rows[self._passages[rows]] = -1
        # The last rows move into the gaps, so that what is held stays in one piece.
        left = self._count - len(rows)
        gaps = rows[rows < left]
        movers = np.setdiff1d(np.arange(left, self._count), rows, assume_unique=True)
        for column in (self._matrix, self._squares, self._passages):
            column[gaps] = column[movers]
        self._rows[self._passages[gaps]] = gaps
        self._count = left
        self._changed(gaps)

    def scores(self, query: Singles, passage_count: int) -> Scores | None:
        """How near each of the first passages is to a question: the centred cosine, by passage number.

        Passages without a vector get the smallest score given. None where there is nothing to compare.
        """
        mean = self._mean()
        towards = self._towards(query, mean)
        if towards is None or not self._any_among(passage_count):
            return None
        asked, common = self._asked(query), self._common(mean)
        away = asked - common - mean @ towards
        squares = self._squares[: self._count] - 2 * common + mean @ mean
        return self._spread(_cosines(away, squares, towards), passage_count)

    def window_scores(
        self, query: Singles, passage_count: int, previous: Numbers, following: Numbers
    ) -> Scores | None:
        """The same for the window of each passage with a vector: itself and those right beside it (-1: none).

        The vector of a window is the sum of the centred vectors in it; what has no vector adds nothing.
        """
        mean = self._mean()
        towards = self._towards(query, mean)
        if towards is None or not self._any_among(passage_count):
            return None
        before, after = (self._rows_beside(beside) for beside in (previous, following))
        lengths = self._windows.squares(self._matrix[: self._count], before, after)
        asked, common = (_over(each, before, after) for each in (self._asked(query), self._common(mean)))
        sizes = 1.0 + (before >= 0) + (after >= 0)
        away = asked - common - sizes * (mean @ towards)
        squares = lengths - 2 * sizes * common + sizes**2 * (mean @ mean)
        return self._spread(_cosines(away, squares, towards), passage_count)

    def _mean(self) -> NDArray[np.float64]:
        return self._sum / self._count if self._count >= CENTRED_FROM else np.zeros(self.dimension)

    def _towards(self, query: Singles, mean: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """The question, centred; none if it points nowhere."""
        assert query.shape == (self.dimension,)
        towards: NDArray[np.float64] = query - mean
        return towards if towards @ towards > _LEAST_SQUARE else None

    def _asked(self, query: Singles) -> Scores:
        """Every row times the question; kept, since passages and windows are asked for together."""
        key = query.tobytes()
        if self._last_asked is None or self._last_asked[0] != key:
            self._last_asked = key, products(self._matrix[: self._count], query)
        return self._last_asked[1]

    def _common(self, mean: NDArray[np.float64]) -> Scores:
        """Every row times the mean; kept until a vector comes or goes."""
        if self._last_common is None:
            self._last_common = products(self._matrix[: self._count], mean.astype(np.float32))
        return self._last_common

    def _any_among(self, passage_count: int) -> bool:
        """Whether any of the first passages has a vector."""
        return bool((self._rows[:passage_count] >= 0).any())

    def _spread(self, cosines: Scores, passage_count: int) -> Scores:
        """What rows score, by passage."""
        passages = self._passages[: self._count]
        if int(passages.max()) >= passage_count:
            asked_about = passages < passage_count
            passages, cosines = passages[asked_about], cosines[asked_about]
        scores = np.full(passage_count, cosines.min())
        scores[passages] = cosines
        return scores

    def _rows_beside(self, beside: Numbers) -> Numbers:
        """By row, the row of the passage on one side; what nobody knows the place of stands alone."""
        passages = self._passages[: self._count]
        neighbours = np.full(self._count, -1)
        placed = np.flatnonzero(passages < len(beside))
        neighbours[placed] = beside[passages[placed]]
        return self._rows_of(neighbours)

    def _rows_of(self, passages: Numbers) -> Numbers:
        """The row of each passage; -1 where it has none."""
        known = (passages >= 0) & (passages < len(self._rows))
        rows = np.full(len(passages), -1)
        rows[known] = self._rows[passages[known]]
        return rows

    def _make_room(self, row_count: int, passage_count: int) -> None:
        """Room for so many rows and passage numbers, doubled where there is none, so that growing is cheap."""
        if row_count > len(self._matrix):
            room = max(row_count, 2 * len(self._matrix), 64)
            self._matrix = _grown(self._matrix, room, 0)
            self._squares = _grown(self._squares, room, 0)
            self._passages = _grown(self._passages, room, 0)
        if passage_count > len(self._rows):
            self._rows = _grown(self._rows, max(passage_count, 2 * len(self._rows), 64), -1)

    def _changed(self, rows: Numbers | slice) -> None:
        self._last_asked = self._last_common = None
        self._windows.forget(rows, self._count)


def _cosines(away: Scores, squares: Scores, towards: NDArray[np.float64]) -> Scores:
    """From products with the question and squared lengths, all centred; 0 for what has no direction."""
    lengths = np.sqrt(np.maximum(squares, _LEAST_SQUARE) * (towards @ towards))
    return np.where(squares > _LEAST_SQUARE, away / lengths, 0.0)


def _over(known: Scores, before: Numbers, after: Numbers) -> Scores:
    """By row, the sum over its window."""
    ending_in_nothing = np.append(known.astype(np.float64), 0.0)  # that is where -1 leads to
    total: Scores = ending_in_nothing[:-1] + ending_in_nothing[before] + ending_in_nothing[after]
    return total


def _grown(held: NDArray[Any], length: int, filler: int) -> NDArray[Any]:
    grown = np.full((length, *held.shape[1:]), filler, dtype=held.dtype)
    grown[: len(held)] = held
    return grown
