"""Summarise a text as one phrase: the most important words in their order, without closing punctuation.

A phrase has at most 20 characters of Chinese or 8 words.
"""

from __future__ import annotations

from ebbtide.language.builtin.candidates import READ_MAX
from ebbtide.language.builtin.scripts import cluster_cut, is_dense
from ebbtide.language.builtin.shortening import longest_beginning
from ebbtide.language.builtin.trimming import plain, without_end_mark

_DENSE_MAX = 20
_WORDS_MAX = 8
# Eight English words rarely need more. The limit matters for one endless word.
_CHARS_MAX = 80


def phrase(text: str) -> str:
    """Return a summary of at most 20 characters of Chinese or 8 words."""
    body = without_end_mark(plain(text[:READ_MAX]))
    dense = is_dense(body)

    def fits(said: str) -> bool:
        said = without_end_mark(said)
        return len(said) <= (_DENSE_MAX if dense else _CHARS_MAX) and (dense or len(said.split()) <= _WORDS_MAX)

    said = longest_beginning(body, fits) or body[: cluster_cut(body, 0, min(_DENSE_MAX, len(body)))]
    return without_end_mark(said) or said
