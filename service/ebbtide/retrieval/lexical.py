"""The words signal: BM25 over passages, with the words of the neighbouring passages as a second field.

BM25 follows S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework" (2009), with the idf of Lucene, which
is never negative. The passages directly before and after in the same conversation count at half the weight, because an
answer often contains none of the words of its question. The second field is computed from the first one and is not
stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebbtide.han import contains_han
from ebbtide.retrieval.analysis import term_of, words_of
from ebbtide.retrieval.forms import first_form
from ebbtide.retrieval.passages import PassageIndex

Scores = NDArray[Any]

K1, B = 0.9, 0.4
"""Saturation and length normalisation. Passages are short and of similar length."""


SINGLE_WEIGHT = 0.3
"""Weight of single Chinese characters in a query that also has longer words."""


def weights_of(texts: Iterable[str], words_in: Callable[[str], Iterable[str]] = words_of) -> dict[int, float]:
    """Return the terms of the texts of a query with their weights."""
    words = dict.fromkeys(first_form(word) for text in texts for word in words_in(text))
    # A single Chinese character matters little next to longer words, but fully if it is alone.
    singles = {word for word in words if len(word) == 1 and contains_han(word)}
    low = SINGLE_WEIGHT if len(singles) < len(words) else 1.0
    return {term_of(word): low if word in singles else 1.0 for word in words}


def rarity(saying_count: int, passage_count: int) -> float:
    """Return the idf of a term that occurs in this many passages."""
    return float(np.log1p((passage_count - saying_count + 0.5) / (saying_count + 0.5)))


COMMON_SHARE = 6
"""A term in more than one of so many passages is common: computing its scores for all passages is faster."""


@dataclass(frozen=True, slots=True)
class _Field:
    """The length normalisation of one field: 1 - b + b * length / average."""

    lengths: Scores
    """By passage, and one number more for the neighbour -1 of a passage without a neighbour."""

    @classmethod
    def of(cls, word_counts: NDArray[np.int64]) -> _Field:
        average = max(float(word_counts.mean()), 1.0) if len(word_counts) else 1.0
        return cls(np.append(K1 * (1 - B + B * word_counts / average), 1.0))

    def worth(self, counts: Scores, passages: NDArray[Any] | slice = slice(-1)) -> Scores:
        worth: Scores = counts * (K1 + 1)
        worth /= counts + self.lengths[passages]
        return worth


class WordScores:
    """Scores the passages of an index in its current state. Create a new one when it has grown."""

    def __init__(self, index: PassageIndex) -> None:
        self._index = index
        words = index.column("word_count")
        self._previous, self._next = index.neighbours("previous"), index.neighbours("next")
        padded = np.append(words, 0)
        neighbours = padded[self._previous] + padded[self._next]
        self._own = _Field.of(words)
        self._neighbour_field = _Field.of(neighbours)
        self._counts = np.zeros(len(words) + 1)

    def scores(self, terms: Mapping[int, float], neighbours: float) -> Scores:
        """Return the score of every passage for weighted terms. `neighbours` is the weight of the second field."""
        total = np.zeros(len(self._counts))
        for term, weight in terms.items():
            passages, counts = self._index.postings(term)
            if not len(passages):
                continue
            idf = weight * rarity(len(passages), len(self._index))
            if COMMON_SHARE * len(passages) > len(self._index):
                total[:-1] += idf * self._of_common(passages, counts, neighbours)
                continue
            # numpy would convert shorter integers for every operation.
            places, occurrences = passages.astype(np.intp), counts.astype(np.float64)
            total[places] += idf * self._own.worth(occurrences, places)
            if neighbours:
                self._add_neighbours(total, places, occurrences, idf * neighbours)
        return total[:-1]

    def _of_common(
        self, passages: NDArray[np.int32], occurrences: NDArray[np.uint8], neighbours: float
    ) -> Scores:
        """Return the scores of all passages for a common term."""
        counts = self._counts
        counts[passages] = occurrences
        scores = self._own.worth(counts[:-1])
        if neighbours:
            nearby = self._neighbour_field.worth(counts[self._previous] + counts[self._next])
            nearby *= neighbours
            scores += nearby
        counts[passages] = 0.0
        return scores

    def _add_neighbours(
        self, total: Scores, passages: NDArray[np.intp], occurrences: Scores, weight: float
    ) -> None:
        counts, sides = self._counts, [self._next[passages], self._previous[passages]]
        for side in sides:
            # No passage has two neighbours on the same side, so no index but -1 occurs twice.
            counts[side] += occurrences
        counts[-1] = 0.0
        for side in sides:
            total[side] += weight * self._neighbour_field.worth(counts[side], side)
            # A passage between two that contain the term is reached from both sides, and counts once.
            counts[side] = 0.0
