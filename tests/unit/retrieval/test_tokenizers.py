"""Tokenizers: each counts what its name says, and the estimate is not too low."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.retrieval.tokenizers import TOKENIZERS, count_tokens

COUNTED_BY_CL100K = {
    "What did Caroline say about the pottery class last week?": 11,
    "DEEPEST = 8": 7,
    "  ollama:": 5,
    "| 0.95 | 0 | 55 | 85 |": 15,
    "小明昨天去了北京，买了一本关于机器学习的书。": 24,
    "def count(text: str) -> int:\n    return len(text)\n": 14,
    "🙂🙂": 4,
}
"""Texts of each kind, the shortest ones that are hard to guess among them, with what cl100k makes of them."""


@pytest.mark.parametrize(("text", "tokens"), COUNTED_BY_CL100K.items())
def test_the_estimate_is_not_below_a_real_tokenizer(text: str, tokens: int) -> None:
    """English, Chinese and code count at least what cl100k counts, and not three times as much."""
    assert tokens <= count_tokens(text, "estimate") <= 3 * tokens


@pytest.mark.parametrize(
    ("tokenizer", "counts"),
    [("characters", (11, 5, 0)), ("words", (2, 4, 0)), ("utf8_bytes", (11, 15, 0)), ("estimate", (5, 11, 0))],
)
def test_each_counts_what_its_name_says(tokenizer: str, counts: tuple[int, int, int]) -> None:
    """English, Chinese and nothing at all, by every tokenizer."""
    texts = ("hello world", "去北京。去", "")
    assert tuple(count_tokens(text, tokenizer) for text in texts) == counts


def test_words_are_those_of_a_reader() -> None:
    """Contractions are one word, numbers are words, and Latin words in Chinese are separate."""
    assert count_tokens("Don't call O’Brien at 5", "words") == 5
    assert count_tokens("我用Python写", "words") == 4


@pytest.mark.parametrize("tokenizer", ["", "Estimate", "cl100k"])
def test_unknown_names_are_refused_with_the_known_ones(tokenizer: str) -> None:
    """The error for an unknown tokenizer lists the known ones."""
    with pytest.raises(ValueError, match="estimate, characters, words, utf8_bytes"):
        count_tokens("text", tokenizer)


@settings(max_examples=60, deadline=None)
@given(st.text(), st.text())
def test_longer_texts_do_not_count_less(text: str, more: str) -> None:
    """Every tokenizer takes any text, counts from 0, and never counts a text below one of its lines."""
    for tokenizer in TOKENIZERS:
        parts = count_tokens(text, tokenizer), count_tokens(more, tokenizer)
        assert 0 <= max(parts) <= count_tokens(f"{text}\n---\n{more}", tokenizer)


@pytest.mark.parametrize("piece", ["a", "A", " ", "\n", "'", "a'", "字", "🙂", "1"])
def test_counting_is_linear(piece: str) -> None:
    """A hundred thousand characters of any kind are counted at once."""
    started = process_time()
    for tokenizer in TOKENIZERS:
        count_tokens(piece * 100_000, tokenizer)
    assert process_time() - started < 10
