"""The words signal equals BM25, recomputed with dictionaries."""

from __future__ import annotations

from collections import Counter
from math import log1p
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.retrieval import lexical
from ebbtide.retrieval.analysis import term_of
from ebbtide.retrieval.lexical import K1, B, WordScores
from ebbtide.retrieval.passages import IndexedPassage, PassageIndex, entries_of

WORDS = ["tea", "boat", "harbour", "north", "cat"]


def plainly(said: list[list[str]], query: list[str], neighbours: float) -> list[float]:
    """Return the BM25 scores of the texts, with the neighbouring texts as a second field, in plain Python."""
    adjacent = [
        (said[i - 1] if i else []) + (said[i + 1] if i + 1 < len(said) else []) for i in range(len(said))
    ]
    total = [0.0] * len(said)
    for texts, weight in ((said, 1.0), (adjacent, neighbours)):
        average = max(sum(map(len, texts)) / len(texts), 1.0)
        for word in set(query):
            holding = sum(word in text for text in said)
            if not holding:
                continue
            idf = log1p((len(said) - holding + 0.5) / (holding + 0.5))
            for place, text in enumerate(texts):
                count = Counter(text)[word]
                norm = K1 * (1 - B + B * len(text) / average)
                total[place] += weight * idf * count * (K1 + 1) / (count + norm)
    return total


@pytest.mark.parametrize("common_share", [0, 2, lexical.COMMON_SHARE])
@settings(max_examples=100, deadline=None)
@given(
    said=st.lists(st.lists(st.sampled_from(WORDS), max_size=8), min_size=4, max_size=20),
    query=st.lists(st.sampled_from([*WORDS, "never"]), max_size=4),
    neighbours=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_scores_are_those_of_the_formula(
    common_share: int, said: list, query: list, neighbours: float
) -> None:
    """For any texts and query, both fields score as in plain Python, whichever terms are common."""
    index = PassageIndex()
    for number, words in enumerate(said):
        # Two speakers without a name of letters: nothing is added to what they say.
        entries = entries_of(" ".join(words), "")
        index.add(IndexedPassage(number, entry, 0, ("!", "?")[number % 2], "s1") for entry in entries)
    scores = WordScores(index)
    terms = {term_of(word): 1.0 for word in query}
    expected = pytest.approx(plainly(said, query, neighbours), rel=1e-9, abs=1e-12)
    with patch.object(lexical, "COMMON_SHARE", common_share):
        assert scores.scores(terms, neighbours).tolist() == expected
        again = scores.scores(terms, neighbours).tolist()
    assert again == expected, "a second look finds nothing left behind"


def test_a_weight_counts_and_an_unknown_word_does_not() -> None:
    """Twice the weight gives twice the score; an unknown word scores 0."""
    index = PassageIndex()
    index.add(IndexedPassage(0, entry, 0, "", "") for entry in entries_of("tea for two", ""))
    scores = WordScores(index)
    once = scores.scores({term_of("tea"): 1.0}, 0.5)
    assert once[0] > 0
    assert scores.scores({term_of("tea"): 2.0, term_of("never"): 9.0}, 0.5).tolist() == [2 * once[0]]
