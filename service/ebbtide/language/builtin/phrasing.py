"""Summarise a text as one phrase: the most important words in their order, without closing punctuation.

A phrase has at most 20 characters of Chinese or 8 words.
"""

from __future__ import annotations

from collections.abc import Callable

from ebbtide.language.builtin.candidates import READ_MAX
from ebbtide.language.builtin.chinese_shortening import shorten_chinese, without_small_talk
from ebbtide.language.builtin.english_shortening import shortened
from ebbtide.language.builtin.scripts import cluster_cut, is_dense
from ebbtide.language.builtin.shortening import is_english, whole_clauses
from ebbtide.language.builtin.tokens import tokenize
from ebbtide.language.builtin.trimming import plain, without_end_mark

_DENSE_MAX = 20
_WORDS_MAX = 8
# Eight English words rarely need more. The limit matters for one endless word.
_CHARS_MAX = 80


def phrase(text: str) -> str:
    """Return a summary of at most 20 characters of Chinese or 8 words."""
    body = without_end_mark(plain(text[:READ_MAX]))
    if is_dense(body):
        body = without_small_talk(body)
        said = without_end_mark(shorten_chinese(body, _DENSE_MAX))
        return said or _first_words(body, lambda said: len(said) <= _DENSE_MAX)

    def fits(said: str) -> bool:
        said = without_end_mark(said)
        return len(said) <= _CHARS_MAX and len(said.split()) <= _WORDS_MAX

    if fits(body):
        return body
    said = shortened(body, body, fits) if is_english(body) else whole_clauses(body, fits)
    return without_end_mark(said) or _first_words(body, fits)


def _first_words(text: str, fits: Callable[[str], bool]) -> str:
    """Return the first words of a text without a short statement."""
    end = 0
    for token in tokenize(text[:200]):
        if not fits(text[: token.end]):
            break
        end = token.end
    said = without_end_mark(text[: end or cluster_cut(text, 0, min(_DENSE_MAX, len(text)))])
    return said or text[:end] or text[:_DENSE_MAX]
