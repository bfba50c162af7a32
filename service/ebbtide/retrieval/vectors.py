"""Vectors of passages, and their similarity to a query.

`Vectors` holds those of one agent and one embedding model: a growing half-precision matrix, with arrays from passage to
row and back. Similarity is the cosine after the mean of all vectors was subtracted from the vectors and the query (J.
Mu and P. Viswanath, "All-but-the-Top", 2018, first step), because what all texts have in common hides their
differences. For the same reason, vectors of a multilingual model lose their component along its language axis.

Up to `exact_up_to` vectors all are compared. Beyond that an index can be built in steps (`build_some`); until it is
complete, all are still compared. The index selects candidates, and the scores are computed in the same way. Vectors of
two models are never mixed, and a dropped vector is absent from the next result on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebbtide.bounds import LENGTH_TOLERANCE
from ebbtide.retrieval.half_precision import MANY_ROWS, SingleArray, products, to_single
from ebbtide.retrieval.language_axis import axis_and_mean_of, without_axis
from ebbtide.retrieval.lexical import Scores
from ebbtide.retrieval.nearest import Nearest, identity, is_available
from ebbtide.retrieval.windows import WindowLengths, window_squares

Numbers = NDArray[np.int64]

EXACT_NUMBERS = 25_600_000
"""Numbers in all vectors up to which every vector is compared: 100 000 vectors of 256, 25 000 of 1024.

Measured on one core with 256 numbers, all compared and by the index: 8 and 23 ms with 30 000 vectors, 11 and some 20 ms
with 100 000, windows included. Building an index of 100 000 takes 75 s.
"""

CENTRED_FROM = 30
"""Vectors from which on the mean represents what texts have in common. Of fewer, the usual mean of the model's vectors
is subtracted, if it is known.
"""

ROWS_HASHED = 4096
"""Rows hashed at a time."""

_LEAST_SQUARE = 1e-6
"""A centred vector with a smaller squared length has no direction."""


class Vectors:
    """Vectors of length 1 of the passages of one agent, by passage, under one embedding model."""

    def __init__(self, model: str, dimension: int, *, exact_up_to: int | None = None) -> None:
        assert dimension > 0
        self.model, self.dimension = model, dimension
        self._axis, usual_mean = axis_and_mean_of(model, dimension)
        self._usual_mean = np.zeros(dimension) if usual_mean is None else usual_mean.astype(np.float64)
        self._exact_up_to = EXACT_NUMBERS // dimension if exact_up_to is None else exact_up_to
        self._count = 0
        self._matrix = np.zeros((0, dimension), dtype=np.float16)
        self._squares = np.zeros(0, dtype=np.float64)
        self._passages = np.zeros(0, dtype=np.int64)
        self._rows = np.zeros(0, dtype=np.int64)
        """By passage; -1 where it has no vector."""
        # Halves are multiples of 2^-24, so their sum in doubles is exact, whatever the order of changes.
        self._sum = np.zeros(dimension, dtype=np.float64)
        self._windows = WindowLengths()
        self._all_windows: _AllWindows | None = None
        self._all_lengths: _Lengths | None = None
        self._in_order: bool | None = None
        self._lowest: int | None = None
        self._last_products: tuple[bytes, Scores] | None = None
        self._index: Nearest | None = None
        self._last_near: tuple[bytes, Numbers] | None = None

    def __len__(self) -> int:
        """Passages with a vector."""
        return self._count

    @property
    def nbytes(self) -> int:
        """Return the memory used."""
        kept: list[NDArray[Any]] = [self._matrix, self._squares, self._passages, self._rows, self._sum]
        if self._last_products is not None:
            kept.append(self._last_products[1])
        if self._all_lengths is not None:
            kept += [self._all_lengths.mean_products, self._all_lengths.inverses]
        if self._all_windows is not None:
            kept += self._all_windows.arrays
        return (
            sum(array.nbytes for array in kept)
            + self._windows.nbytes
            + (self._index.nbytes if self._index else 0)
        )

    def of(self, passage: int) -> SingleArray | None:
        """Return the vector of a passage, without its component along the language axis, or None."""
        row = int(self._rows_of(np.array([passage]))[0])
        return to_single(self._matrix[row]) if row >= 0 else None

    def put(self, passages: Numbers, vectors: NDArray[np.float16 | np.float32]) -> None:
        """Store the vectors of passages, replacing existing ones. Of a repeated passage the last vector counts.

        Raise ValueError, and change nothing, if a vector is not of length 1.
        """
        assert vectors.shape == (len(passages), self.dimension) and passages.min(initial=0) >= 0
        with np.errstate(over="ignore"):
            half_array = vectors.astype(np.float16)
        singles = half_array.astype(np.float32)
        squares = np.einsum("ij,ij->i", singles, singles).astype(np.float64)
        if not np.all(np.abs(squares - 1) <= LENGTH_TOLERANCE):
            raise ValueError("a vector is not of length 1")
        if not len(passages):
            return
        if self._axis is not None:
            half_array = without_axis(singles, self._axis).astype(np.float16)
            singles = half_array.astype(np.float32)
            squares = np.einsum("ij,ij->i", singles, singles).astype(np.float64)
        passages, last = np.unique(passages[::-1], return_index=True)
        last = len(squares) - 1 - last
        self.drop(passages)
        begin, end = self._count, self._count + len(passages)
        self._make_room(end, int(passages.max()) + 1)
        self._matrix[begin:end], self._squares[begin:end] = half_array[last], squares[last]
        self._passages[begin:end] = passages
        self._rows[passages] = np.arange(begin, end)
        self._count = end
        self._sum += half_array[last].sum(axis=0, dtype=np.float64)
        self._changed(slice(begin, end))

    def drop(self, passages: Iterable[int]) -> None:
        """Remove the vectors of passages immediately; passages without one are ignored."""
        dropped = passages if isinstance(passages, np.ndarray) else np.fromiter(passages, dtype=np.int64)
        rows = np.unique(self._rows_of(dropped))
        rows = rows[rows >= 0]
        if not len(rows):
            return
        self._sum -= self._matrix[rows].sum(axis=0, dtype=np.float64)
        self._rows[self._passages[rows]] = -1
        if self._index is not None:
            self._index.drop(self._passages[rows])
        # The last rows move into the gaps, so that the rows stay contiguous.
        left = self._count - len(rows)
        gaps = rows[rows < left]
        movers = np.setdiff1d(np.arange(left, self._count), rows, assume_unique=True)
        for column in (self._matrix, self._squares, self._passages):
            column[gaps] = column[movers]
        self._rows[self._passages[gaps]] = gaps
        self._count = left
        self._changed(gaps)

    def scores(self, query: SingleArray, passage_count: int) -> Scores | None:
        """Return the similarity of the first passages to a query: the centred cosine, by passage.

        Passages without a vector get the smallest score. Return None if there is nothing to compare.
        """
        query, mean = self._prepared(query), self._mean()
        direction = self._direction(query, mean)
        if direction is None or not self._any_among(passage_count):
            return None
        rows = self._candidates(query, passage_count)
        lengths = self._lengths(rows, mean)
        dots = self._query_products(rows, query) - lengths.mean_products
        dots -= mean @ direction
        return self._spread(rows, _cosines(dots, lengths.inverses, direction), passage_count)

    def window_scores(
        self, query: SingleArray, passage_count: int, previous: Numbers, following: Numbers
    ) -> Scores | None:
        """Return the same for the window of each passage: the passage and its neighbours (-1: none).

        The vector of a window is the sum of its centred vectors.
        """
        query, mean = self._prepared(query), self._mean()
        direction = self._direction(query, mean)
        if direction is None or not self._any_among(passage_count):
            return None
        rows = self._candidates(query, passage_count)
        if rows is not None:
            neighbours = (self._neighbour_rows(rows, side) for side in (previous, following))
            rows = _real(rows, *neighbours)  # the window of a neighbour is near as well
            windows = self._windows_of(rows, previous, following, mean)
        else:
            if self._all_windows is None or not self._all_windows.are_of(previous, following):
                made = self._windows_of(None, previous, following, mean)
                self._all_windows = _AllWindows(previous, following, made)
            windows = self._all_windows.windows
        dots = windows.summed(self._query_products(windows.members, query))
        dots -= windows.mean_products
        dots -= windows.sizes * (mean @ direction)
        return self._spread(rows, _cosines(dots, windows.inverses, direction), passage_count)

    def likeness(self, passages: Numbers, others: Numbers) -> NDArray[np.float64]:
        """Return the similarity of passages to others, as a matrix of centred cosines; 0 without a vector.

        Few vectors are centred with their own mean if the usual one is unknown. Otherwise all of them would look alike.
        """
        if not self._count:
            return np.zeros((len(passages), len(others)))
        cosines: NDArray[np.float64] = (self._unit(passages) @ self._unit(others).T).astype(np.float64)
        return cosines

    def _unit(self, passages: Numbers) -> SingleArray:
        """Return the centred vectors of passages with length 1, or 0 without a vector."""
        rows = self._rows_of(passages)
        mean = self._mean()
        mean = mean if mean.any() else self._sum / self._count
        centred = to_single(self._matrix[np.maximum(rows, 0)])
        centred -= mean.astype(np.float32)
        lengths = np.maximum(np.sqrt(np.einsum("ij,ij->i", centred, centred)), _LEAST_SQUARE)
        centred *= ((rows >= 0) / lengths).astype(np.float32)[:, None]
        return centred

    def digest(self) -> Any:
        """Return a hash object of the content, by passage."""
        held = hashlib.blake2b(self.model.encode(), digest_size=16)
        rows = self._rows[self._rows >= 0]
        held.update(self._passages[rows].tobytes())
        for begin in range(0, len(rows), ROWS_HASHED):
            held.update(self._matrix[rows[begin : begin + ROWS_HASHED]].tobytes())
        return held

    @property
    def wants_index(self) -> bool:
        """Return whether there are too many vectors to compare all, and usearch is installed."""
        return self._count > self._exact_up_to and is_available()

    @property
    def is_indexed(self) -> bool:
        """Return whether queries use the index: it is complete and not stale."""
        index = self._index
        return index is not None and len(index) == self._count and not index.is_stale(self._mean())

    def build_some(self, is_time_up: Callable[[], bool]) -> bool:
        """Build the index until the time is up, at least one step. Return whether more is to do.

        There is nothing to do up to `exact_up_to` vectors, or without usearch.
        """
        if not self.wants_index:
            self._index = None
            return False
        if self._index is None or self._index.is_stale(self._mean()):
            self._index, self._last_near = Nearest(self._mean()), None
        passages = self._passages[: self._count]
        missing = np.sort(passages[~self._index.holds(passages)])
        return self._index.complete(
            missing, lambda some: to_single(self._matrix[self._rows[some]]), is_time_up
        )

    @property
    def index_identity(self) -> str:
        """Return what an image of the index is compatible with, besides its content."""
        return f"{self.model}\n{identity(self.dimension) if is_available() else 'none'}"

    def index_image(self) -> bytes | None:
        """Return the index as bytes, complete or not, or None without one or if it dropped a vector."""
        return self._index.image() if self._index is not None else None

    def take_index(self, image: bytes) -> bool:
        """Use an index from its image. Return whether it was accepted.

        The caller ensures that the image is complete and of the same identity and content. An unreadable image, or one
        with passages that have no vector, is rejected.
        """
        if not self.wants_index:
            return False
        try:
            index = Nearest.from_image(image, self.dimension)
        except (RuntimeError, ValueError):
            return False
        if (self._rows_of(index.passages()) < 0).any():
            return False
        self._index, self._last_near = index, None
        return True

    def _mean(self) -> NDArray[np.float64]:
        return self._sum / self._count if self._count >= CENTRED_FROM else self._usual_mean

    def _prepared(self, query: SingleArray) -> SingleArray:
        """Return a query without the language axis, for many vectors rounded as these are: it halves the time."""
        query = without_axis(query, self._axis)
        return query if self._count < MANY_ROWS else query.astype(np.float16).astype(np.float32)

    def _direction(self, query: SingleArray, mean: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the centred query, or None if it has no direction."""
        assert query.shape == (self.dimension,)
        direction: NDArray[np.float64] = query - mean
        return direction if direction @ direction > _LEAST_SQUARE else None

    def _candidates(self, query: SingleArray, passage_count: int) -> Numbers | None:
        """Return the rows to compare: those that the index finds, or None for all."""
        if self._index is None or not self.is_indexed:
            return None
        key = query.tobytes()
        if self._last_near is None or self._last_near[0] != key:
            self._last_near = key, self._index.near(query)
        found = self._last_near[1]
        return _real(self._rows_of(found)) if (found < passage_count).any() else None

    def _query_products(self, rows: Numbers | None, query: SingleArray) -> Scores:
        """Return the products of rows with the query. Those of all rows are cached for the scores of windows."""
        if rows is not None:
            return products(self._matrix[rows], query)
        key = query.tobytes()
        if self._last_products is None or self._last_products[0] != key:
            self._last_products = key, products(self._matrix[: self._count], query)
        return self._last_products[1]

    def _lengths(self, rows: Numbers | None, mean: NDArray[np.float64]) -> _Lengths:
        """Return products with the mean and lengths of rows. Those of all rows are cached until a vector changes."""
        if rows is None and self._all_lengths is not None:
            return self._all_lengths
        chosen = slice(self._count) if rows is None else rows
        mean_products = products(self._matrix[chosen], mean.astype(np.float32)).astype(np.float64)
        squares = self._squares[chosen] - 2 * mean_products + mean @ mean
        found = _Lengths(mean_products, _inverses(squares))
        if rows is None:
            self._all_lengths = found
        return found

    def _windows_of(
        self, rows: Numbers | None, previous: Numbers, following: Numbers, mean: NDArray[np.float64]
    ) -> _Windows:
        """Return the windows of rows, or of all rows, with everything that does not depend on a query."""
        chosen = np.arange(self._count) if rows is None else rows
        before, after = (self._neighbour_rows(chosen, side) for side in (previous, following))
        sizes = 1.0 + (before >= 0) + (after >= 0)
        members: Numbers | None = None
        own: Numbers | slice = slice(None)
        if rows is None:
            squares = self._windows.squares(self._matrix[: self._count], before, after)
        else:
            members = _real(rows, before, after)
            squares = window_squares(self._matrix, rows, before, after)
            own, before, after = (_places(members, some) for some in (rows, before, after))
        mean_products = _summed(self._lengths(members, mean).mean_products, own, before, after)
        squares = squares - 2 * sizes * mean_products + sizes**2 * (mean @ mean)
        return _Windows(members, own, before, after, sizes, mean_products, _inverses(squares))

    def _any_among(self, passage_count: int) -> bool:
        """Return whether any of the first passages has a vector."""
        if self._lowest is None:
            self._lowest = int(self._passages[: self._count].min(initial=len(self._rows)))
        return self._count > 0 and self._lowest < passage_count

    def _spread(self, rows: Numbers | None, cosines: Scores, passage_count: int) -> Scores:
        """Return the scores of rows by passage."""
        if rows is None and self._count == passage_count and self._are_in_order():
            return cosines
        passages = self._passages[: self._count] if rows is None else self._passages[rows]
        if int(passages.max()) >= passage_count:
            is_included = passages < passage_count
            passages, cosines = passages[is_included], cosines[is_included]
        scores = np.full(passage_count, cosines.min())
        scores[passages] = cosines
        return scores

    def _are_in_order(self) -> bool:
        """Return whether every row belongs to the passage with its number."""
        if self._in_order is None:
            self._in_order = bool(np.array_equal(self._passages[: self._count], np.arange(self._count)))
        return self._in_order

    def _neighbour_rows(self, rows: Numbers, neighbours: Numbers) -> Numbers:
        """Return the row of the neighbouring passage of each row, or -1. `neighbours` is indexed by passage."""
        passages = self._passages[rows]
        found = np.full(len(rows), -1)
        known = np.flatnonzero(passages < len(neighbours))
        found[known] = neighbours[passages[known]]
        return self._rows_of(found)

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
        self._last_products = self._last_near = None
        self._all_windows = self._all_lengths = self._in_order = self._lowest = None
        self._windows.forget(rows, self._count)


@dataclass(frozen=True, slots=True)
class _Lengths:
    """Values of rows from which cosines with any query are computed."""

    mean_products: Scores
    inverses: Scores
    """1 / length of the centred vectors, or 0 for vectors without direction."""


@dataclass(frozen=True, slots=True)
class _Windows:
    """The windows of rows, with everything that does not depend on a query."""

    members: Numbers | None
    """The rows whose products are needed, None for all; the next three columns are indices into these."""
    rows: Numbers | slice
    before: Numbers
    after: Numbers
    sizes: Scores
    mean_products: Scores
    inverses: Scores
    """1 / length of the centred sums, or 0 for sums without direction."""

    def summed(self, products: Scores) -> Scores:
        """Return the products of the members summed over each window."""
        return _summed(products, self.rows, self.before, self.after)


@dataclass(frozen=True, slots=True)
class _AllWindows:
    """The windows of all rows for the neighbours of an index, until either changes."""

    previous: Numbers
    following: Numbers
    windows: _Windows

    def are_of(self, previous: Numbers, following: Numbers) -> bool:
        """Return whether these are the same neighbours."""
        return self.previous is previous and self.following is following

    @property
    def arrays(self) -> list[Scores]:
        """Return the arrays that use memory of their own."""
        windows = self.windows
        return [windows.before, windows.after, windows.sizes, windows.mean_products, windows.inverses]


def _inverses(squares: Scores) -> Scores:
    """Return 1 / length from squared lengths; 0 for vectors without direction."""
    inverses: Scores = 1 / np.sqrt(np.maximum(squares, _LEAST_SQUARE))
    inverses[squares <= _LEAST_SQUARE] = 0.0
    return inverses


def _cosines(dots: Scores, inverses: Scores, direction: NDArray[np.float64]) -> Scores:
    """Return cosines from centred products, in the same array."""
    dots *= inverses
    dots *= 1 / np.sqrt(direction @ direction)
    return dots


def _summed(known: Scores, rows: Numbers | slice, before: Numbers, after: Numbers) -> Scores:
    """Return values of rows summed over windows."""
    padded = np.append(known, np.float64(0.0))  # for index -1
    total: Scores = padded[:-1][rows] + padded[before]
    total += padded[after]
    return total


def _real(*some: Numbers) -> Numbers:
    """Return all given rows, each once, in order."""
    rows = np.unique(np.concatenate(some))
    return rows[rows >= 0]


def _places(members: Numbers, rows: Numbers) -> Numbers:
    """Return the positions of rows among members; -1 stays."""
    return np.where(rows >= 0, np.searchsorted(members, rows), -1)


def _grown(held: NDArray[Any], length: int, filler: int) -> NDArray[Any]:
    grown = np.full((length, *held.shape[1:]), filler, dtype=held.dtype)
    grown[: len(held)] = held
    return grown
