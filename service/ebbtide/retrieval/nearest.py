"""The nearest of very many vectors, without comparing all: a graph walked towards the question.

HNSW (Y. Malkov and D. Yashunin, "Efficient and robust approximate nearest neighbor search", 2016) by usearch, an
extra. It is imported when the first index is made, 16 MB and a third of a second, and runs on one thread, the
caller's. Vectors go in centred by the mean at that time, since nearness is asked about centred ones.

What is found is a choice of candidates, no more: whoever asks works out their scores anew. Building takes about a
millisecond a vector, so it is done in steps by whoever has the time. At 256 numbers a vector, one core: to find 1000
takes 6 ms where 100 000 are held, and comparing all of those 8 ms (`halves.py`); with 30 000 held, comparing all is
faster. An index pays for several hundred thousand vectors, or for longer ones. Memory: 0.8 KB a vector.
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
"""Links of a vector, and candidates for them: 99 of the true first hundred are found, and twice as many candidates
would double the time to build."""

NEAREST = 1000
"""Passages chosen for a question. Those beyond count as if they were as far as the last of them."""

DRIFT = 0.1
"""How far the mean may move from that at the beginning until the index is built anew."""

STEP = 16
"""Vectors added between two looks at the clock: 10 to 20 ms."""


def is_available() -> bool:
    """Whether usearch is installed."""
    try:
        return find_spec("usearch") is not None
    except ValueError:  # what Python says of a module that was taken away
        return False


def identity(dimension: int) -> str:
    """What an image of an index fits to: another version of the library may read it otherwise, or not at all."""
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
        """Bytes held."""
        return int(self._index.memory_usage)

    def is_stale(self, mean: NDArray[np.float64]) -> bool:
        """Whether it is to be made anew: the mean went elsewhere, or most of what was added is gone again."""
        away = mean - self._mean
        return bool(away @ away > DRIFT**2) or self._dropped_count > max(len(self), STEP)

    def add(self, passages: Numbers, vectors: NDArray[np.float32]) -> None:
        """Takes in vectors of passages that it does not hold."""
        self._index.add(passages, self._centred(vectors), threads=1)

    def drop(self, passages: Numbers) -> None:
        """Forgets passages, whether it held them or not."""
        held = passages[self.holds(passages)]
        if len(held):
            self._index.remove(held, threads=1)
            self._dropped_count += len(held)

    def holds(self, passages: Numbers) -> NDArray[np.bool_]:
        """Which of these passages it holds."""
        if not len(passages):
            return np.zeros(0, dtype=np.bool_)
        return np.asarray(self._index.contains(passages), dtype=np.bool_)

    def near(self, query: NDArray[np.float32]) -> Numbers:
        """The passages nearest to a question, at most `NEAREST`."""
        found = self._index.search(self._centred(query), NEAREST, threads=1)
        return np.asarray(found.keys, dtype=np.int64)

    def complete(
        self,
        missing: Numbers,
        vectors_of: Callable[[Numbers], NDArray[np.float32]],
        is_time_up: Callable[[], bool],
    ) -> bool:
        """Adds what is missing, at least one step of it, until the time is up; whether some is still missing."""
        for begin in range(0, len(missing), STEP):
            if begin and is_time_up():
                return True
            part = missing[begin : begin + STEP]
            self.add(part, vectors_of(part))
        return False

    def image(self) -> bytes | None:
        """Return all of it as bytes for `from_image`, or None once a vector was dropped.

        usearch only marks a dropped vector: its numbers stay in the graph, and would stay in the image.
        """
        if self._dropped_count:
            return None
        return self._mean.tobytes() + bytes(self._index.save())

    @classmethod
    def from_image(cls, image: bytes, dimension: int) -> Nearest:
        """The index an image was made of. The image must be whole and of the same `identity`."""
        mean_end = 8 * dimension
        made = cls(np.frombuffer(image[:mean_end], dtype=np.float64))
        made._index.load(memoryview(image)[mean_end:])
        made._index.expansion_add, made._index.expansion_search = EXPANSION_ADD, NEAREST
        return made

    def passages(self) -> Numbers:
        """The passages it holds."""
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
