"""The words signal: BM25 over passages, with the words of the neighbouring passages as a second field.

BM25 follows S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework" (2009), with the idf of Lucene, which
is never negative. The passages directly before and after in the same conversation count at half the weight, because an
answer often contains none of the words of its question. The second field is computed from the first one and is not
stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebbtide.retrieval.passages import PassageIndex

Scores = NDArray[Any]

K1, B = 0.9, 0.4
"""Saturation and length normalisation. Passages are short and of similar length."""


def rarity(saying_count: int, passage_count: int) -> float:
    """Return the idf of a term that occurs in this many passages."""
    return float(np.log1p((passage_count - saying_count + 0.5) / (saying_count + 0.5)))


@dataclass(frozen=True, slots=True)
class _Field:
    """The length normalisation of one field: 1 - b + b * length / average."""

    lengths: Scores

    @classmethod
    def of(cls, word_counts: NDArray[np.int64]) -> _Field:
        average = max(float(word_counts.mean()), 1.0) if len(word_counts) else 1.0
        return cls(K1 * (1 - B + B * word_counts / average))

    def worth(self, counts: NDArray[np.float64], passages: NDArray[Any]) -> Scores:
        worth: Scores = counts * (K1 + 1) / (counts + self.lengths[passages])
        return worth


class WordScores:
    """Scores the passages of an index in its current state. Create a new one when it has grown."""

    def __init__(self, index: PassageIndex) -> None:
        self._index = index
        words = index.column("word_count")
        previous, following = index.neighbours("previous"), index.neighbours("next")
        neighbours = np.where(previous >= 0, words[previous], 0) + np.where(
            following >= 0, words[following], 0
        )
        self._own = _Field.of(words)
        self._neighbour_field = _Field.of(neighbours)
        self._scratch = np.zeros(len(words))

    def scores(self, terms: Mapping[int, float], neighbours: float) -> Scores:
        """Return the score of every passage for weighted terms. `neighbours` is the weight of the second field."""
        total = np.zeros(len(self._scratch))
        for term, weight in terms.items():
            passages, counts = self._index.postings(term)
            if not len(passages):
                continue
            idf = weight * rarity(len(passages), len(self._scratch))
            occurrences = counts.astype(np.float64)
            total[passages] += idf * self._own.worth(occurrences, passages)
            if neighbours:
                self._add_neighbours(total, passages, occurrences, idf * neighbours)
        return total

    def _add_neighbours(
        self, total: Scores, passages: NDArray[np.int32], occurrences: Scores, weight: float
    ) -> None:
        scratch, touched = self._scratch, []
        for side in ("next", "previous"):
            neighbours = self._index.neighbours(side)[passages]
            real = neighbours >= 0
            # No passage has two neighbours on the same side, so no index occurs twice.
            scratch[neighbours[real]] += occurrences[real]
            touched.append(neighbours[real])
        for places in touched:
            total[places] += weight * self._neighbour_field.worth(scratch[places], places)
            # A passage between two that contain the term is reached from both sides, and counts once.
            scratch[places] = 0.0
