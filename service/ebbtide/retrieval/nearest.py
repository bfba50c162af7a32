"""Approximate nearest neighbours among very many vectors, without comparing all.

The index is HNSW (Y. Malkov and D. Yashunin, "Efficient and robust approximate nearest neighbor search", 2016) by
usearch, an extra. It is imported with the first index (16 MB, a third of a second) and runs on the caller's thread.
Vectors are centred by the mean at the time of building.

The results are candidates; the caller computes their exact scores. Building takes about a millisecond per vector and is
done in steps. At 256 numbers per vector on one core, finding 1000 of 100 000 takes 6 ms, comparing all 8 ms
without numkong (`half_precision.py`); with 30 000 comparing all is faster. An index pays off for several hundred
thousand vectors, or for longer ones. Memory: 0.8 KB per vector.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

CONNECTIVITY = 16
EXPANSION_ADD = 64
"""Links per vector, and candidates for them: 99 of the true first 100 are found. Twice as many would double the build
time.
"""

NEAREST = 1000
"""Passages returned for a query. Others count as if they were as far as the last one."""

DRIFT = 0.1
"""Distance that the mean may move before the index is rebuilt."""

STEP = 16
"""Vectors added between two checks of the clock: 10 to 20 ms."""


def is_available() -> bool:
    """Return whether usearch is installed."""
    try:
        return find_spec("usearch") is not None
    except ValueError:  # raised for a module that was removed
        return False


def identity(dimension: int) -> str:
    """Return what an image of an index is compatible with: another version of the library may not read it."""
    import usearch

    return (
        f"usearch {usearch.__version__} f16 cos {CONNECTIVITY} {EXPANSION_ADD} {dimension}, nothing dropped"
    )


class Nearest:
    """An index over the vectors of passages, centred by one mean."""

    def __init__(self, mean: NDArray[np.float64]) -> None:
        self._mean = mean.copy()
        self._index = _empty(len(mean))
        self._dropped_count = 0

    def __len__(self) -> int:
        return len(self._index)

    @property
    def nbytes(self) -> int:
        """Return the memory used."""
        return int(self._index.memory_usage)

    def is_stale(self, mean: NDArray[np.float64]) -> bool:
        """Return whether the index must be rebuilt: the mean has moved, or most vectors were dropped."""
        away = mean - self._mean
        return bool(away @ away > DRIFT**2) or self._dropped_count > max(len(self), STEP)

    def add(self, passages: Numbers, vectors: NDArray[np.float32]) -> None:
        """Add vectors of new passages."""
        self._index.add(passages, self._centred(vectors), threads=1)

    def drop(self, passages: Numbers) -> None:
        """Remove passages; unknown ones are ignored."""
        held = passages[self.holds(passages)]
        if len(held):
            self._index.remove(held, threads=1)
            self._dropped_count += len(held)

    def holds(self, passages: Numbers) -> NDArray[np.bool_]:
        """Return which of these passages are in the index."""
        if not len(passages):
            return np.zeros(0, dtype=np.bool_)
        return np.asarray(self._index.contains(passages), dtype=np.bool_)

    def near(self, query: NDArray[np.float32]) -> Numbers:
        """Return the passages nearest to a query, at most `NEAREST`."""
        found = self._index.search(self._centred(query), NEAREST, threads=1)
        return np.asarray(found.keys, dtype=np.int64)

    def complete(
        self,
        missing: Numbers,
        vectors_of: Callable[[Numbers], NDArray[np.float32]],
        is_time_up: Callable[[], bool],
    ) -> bool:
        """Add missing vectors until the time is up, at least one step. Return whether some are still missing."""
        for begin in range(0, len(missing), STEP):
            if begin and is_time_up():
                return True
            part = missing[begin : begin + STEP]
            self.add(part, vectors_of(part))
        return False

    def image(self) -> bytes | None:
        """Return the index as bytes for `from_image`, or None once a vector was dropped.

        usearch only marks a dropped vector: its numbers would stay in the image.
        """
        if self._dropped_count:
            return None
        return self._mean.tobytes() + bytes(self._index.save())

    @classmethod
    def from_image(cls, image: bytes, dimension: int) -> Nearest:
        """Return the index of an image, which must be complete and of the same `identity`."""
        mean_end = 8 * dimension
        made = cls(np.frombuffer(image[:mean_end], dtype=np.float64))
        made._index.load(memoryview(image)[mean_end:])
        made._index.expansion_add, made._index.expansion_search = EXPANSION_ADD, NEAREST
        return made

    def passages(self) -> Numbers:
        """Return the passages in the index."""
        return np.asarray(self._index.keys, dtype=np.int64)

    def _centred(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        return (vectors - self._mean).astype(np.float32)


def _empty(dimension: int) -> Any:
    from usearch.index import Index

    return Index(
        ndim=dimension,
        metric="cos",
        dtype="f16",
        connectivity=CONNECTIVITY,
        expansion_add=EXPANSION_ADD,
        expansion_search=NEAREST,
    )
