"""Shorten a text with its own words, in their order.

Chinese and English have rules of their own. A text in another language, or in several, is reduced to whole clauses,
then to a name.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from itertools import pairwise

from ebbtide.language.builtin import words_chinese, words_english
from ebbtide.language.builtin.candidates import READ_MAX, candidates
from ebbtide.language.builtin.chinese_shortening import shorten_chinese
from ebbtide.language.builtin.english_notes import shortest
from ebbtide.language.builtin.english_shortening import shortened
from ebbtide.language.builtin.english_tags import normal
from ebbtide.language.builtin.scripts import HAN, HANGUL, KANA, cluster_cut, has_word, is_dense
from ebbtide.language.builtin.sentences import sentence_spans
from ebbtide.language.builtin.tokens import Token, tokenize
from ebbtide.language.builtin.trimming import trim, trim_end, without_end_mark

_FOREIGN = re.compile(f"[{HAN}{KANA}{HANGUL}]")
_COMMA = re.compile(r"[,;:]\s|[，；：、]")


def shorten(text: str, target: int, first: str = "") -> str:
    """Return `text` in at most `target` characters, or longer if only a cut within a word would be shorter.

    `first` is the first content of the memory: what to keep is ranked on it. The words are taken from `text`.
    """
    if target <= 0:
        return ""
    if len(text) <= target:
        return text
    if is_dense(text):
        return shorten_chinese(text.strip(), target, first.strip())
    body, source = text.strip(), first.strip()

    def fits(said: str) -> bool:
        return len(said) <= target

    if is_english(source or body):
        said = shortened(body, source or body, fits) or shortest(body, fits)
    else:
        said = whole_clauses(body, fits)
    return said or _cut_hard(body or text, target)


def is_english(text: str) -> bool:
    """Return whether a text has letters, but none of Chinese, Japanese or Korean."""
    return _FOREIGN.search(text) is None and has_word(text)


def whole_clauses(text: str, fits: Callable[[str], bool]) -> str:
    """Return the first clauses of a text that fit together, otherwise the first clause that fits, or ""."""
    pieces: list[tuple[int, int]] = []
    for start, end in sentence_spans(text):
        cuts = [start, *(match.end() for match in _COMMA.finditer(text, start, end)), end]
        pieces += [(a, b) for a, b in pairwise(cuts) if has_word(text[a:b])]
    count = bisect_left(pieces, True, key=lambda piece: not fits(text[: piece[1]]))
    if count:
        return trim_end(text[: pieces[count - 1][1]])
    said = (trim(text[begin:end]) for begin, end in pieces)
    return next((clause for clause in said if clause and fits(clause)), "")


def _cut_hard(body: str, target: int) -> str:
    """Cut a text without a clause that fits: to its best noun, else behind the last word that fits."""
    fitting = [c for c in candidates(body) if len(c.text) <= target and has_word(c.text) and c.kind != "weak"]
    if fitting:
        return max(fitting, key=lambda c: (c.weight, -c.start)).text
    names = [(c.start, c.end) for c in candidates(body) if c.kind != "weak"]
    words = [token for token in tokenize(body[:READ_MAX]) if 1 < len(token.text) <= target]
    part = next(
        (token for token in words if any(a <= token.start and token.end <= b for a, b in names)), None
    )
    if part is not None and not _says_nothing(part):
        return part.text
    tokens = [token for token in tokenize(body[: target + 1]) if token.end <= target]
    whole = list(tokens)
    while len(tokens) > 1 and normal(tokens[-1].text) in words_english.NO_END:
        tokens.pop()
    tokens = whole if len(tokens) == 1 and _says_nothing(tokens[0]) else tokens
    end = tokens[-1].end if tokens else cluster_cut(body, 0, min(target, len(body)))
    piece = body[:end]
    return without_end_mark(piece) or trim(piece) or piece


def _says_nothing(token: Token) -> bool:
    word = normal(token.text)
    if token.text.isdigit() or word in words_english.EMPTY_WORDS or word in words_chinese.PRONOUNS:
        return True
    return token.text.islower() and (
        word in words_english.VERBS or word in words_english.ADJECTIVES or word in words_english.ADVERBS
    )
