"""Analysis: turn a text into search terms.

A term is a 32-bit hash of a normalised word. Collisions are rare (one in 40 000 words with 100 000 known terms), and
lists of terms are small and fast to compare. Texts and queries are analysed in the same way. An error code, a number or
a path is one term.

Latin words are stemmed (Porter 2, English) and stop words omitted. Chinese runs yield the segmenter's words and every
pair of adjacent characters, so that a two-character query matches however the text was segmented. Traditional
characters are folded to simplified ones for matching only.
"""

from __future__ import annotations

import re
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ebbtide.normalisation import nfkc, simplified

T = TypeVar("T")
Terms = NDArray[np.uint32]

_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_KANA = "\u3040-\u30ff\uac00-\ud7a3"
_PIECE = re.compile(
    rf"(?P<han>[{_HAN}]+)|(?P<kana>[{_KANA}]+)"
    r"|(?P<word>[^\W_]+(?:[''’.:/@#&+_\-][^\W_]+)*+)"
)
"""Runs of Han, of kana or hangul, and words including the signs that join their parts."""

_ASCII_PIECE = re.compile(r"[a-z0-9]+(?:['.:/@#&+_\-][a-z0-9]+)*+")
"""The same in a folded text of ASCII characters, where only words are left."""

_PARTS = re.compile(rf"[{_HAN}]+|[{_KANA}]+|[^\W_{_HAN}{_KANA}]+")
_POSSESSIVE = re.compile(r"['’]s?$")

_SAY_NOTHING = """
a an and are as at be been being but by can could did do does doing for from had has have having he her hers him his
how i if in into is it its me my no nor not of on or our ours she should so than that the their theirs them then there
these they this those to too us was we were what when where which who whom whose why will with would you your yours am
about just s t re ve ll d m don didn doesn isn wasn
"""
STOP_WORDS = frozenset(_SAY_NOTHING.split())
STOP_CHARACTERS = frozenset("的了是在和也就都而及与着或吗呢吧啊呀嘛我你他她它们这那有个")
"""Chinese characters without content, alone or in pairs of each other."""

WORDS_REMEMBERED, REMEMBERED_CHARS = 8192, 40
"""Words whose stem and term are cached, and their maximum length. Rarer words would only fill memory."""

MAX_CHARACTERS = 200_000
"""Characters of a text that are analysed."""


def normalised(text: str) -> str:
    """Return a text in its form for matching: compatibility forms, case and traditional characters folded."""
    if not text.isascii():
        text = nfkc(text).translate(simplified())
    return text.casefold()


def words_of(text: str) -> Iterator[str]:
    """Return the words of a text for matching, in order, with repetitions."""
    folded = normalised(text[:MAX_CHARACTERS])
    if folded.isascii():
        # Texts repeat their words, and finding them is nine tenths of the work.
        return chain.from_iterable(map(_words_in, _ASCII_PIECE.findall(folded)))
    return _mixed_words(folded)


def _mixed_words(folded: str) -> Iterator[str]:
    for piece in _PIECE.finditer(folded):
        if piece["word"] is None:
            yield from _chinese(piece[0]) if piece["han"] else _pairs(piece[0])
        else:
            yield from _words_in(piece[0])


class _Remembered(dict[str, T]):
    """The values of a function of a text, cached for short texts. A full cache starts again."""

    def __init__(self, compute: Callable[[str], T]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, text: str) -> T:
        value = self._compute(text)
        if len(text) <= REMEMBERED_CHARS:
            if len(self) >= WORDS_REMEMBERED:
                self.clear()
            self[text] = value
        return value


_words_in = _Remembered[tuple[str, ...]](
    lambda piece: tuple(_latin(piece) if piece.isascii() and piece.isalpha() else _joined(piece))
).__getitem__
"""Return the words of a run of letters, digits and the signs that join them."""


def whole_words_of(text: str) -> Iterator[str]:
    """Return the words of a text as `words_of` does, but of Chinese only the segmenter's words, without pairs."""
    return words_of(text) if text.isascii() else _whole_words(normalised(text[:MAX_CHARACTERS]))


def _whole_words(folded: str) -> Iterator[str]:
    for piece in _PIECE.finditer(folded):
        if piece["han"]:
            yield from (word for word in _cut(piece[0]) if not STOP_CHARACTERS.issuperset(word))
        else:
            yield from words_of(piece[0])


def _latin(word: str) -> Iterator[str]:
    if word not in STOP_WORDS:
        yield stem(word)


def _joined(word: str) -> Iterator[str]:
    """Yield a compound word itself if it is a code, and its parts."""
    word = _POSSESSIVE.sub("", word)
    parts = _PARTS.findall(word)
    if len(parts) > 1 and "'" not in word and "’" not in word:
        yield word
    for part in parts:
        if part.isascii() and part.isalpha():
            yield from _latin(part)
        elif part[0].isalnum() and not _is_han(part[0]):
            yield part
        else:
            yield from _chinese(part)


def _is_han(character: str) -> bool:
    return "\u3400" <= character <= "\u9fff" or character >= "\U00020000"


def _chinese(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
        return
    for word in _cut(run):
        # Words of two characters are pairs as well.
        if len(word) > 2:
            yield word
    yield from _pairs(run)
    # Many words have one character, and which these are depends on the segmentation of the neighbours.
    yield from (character for character in run if character not in STOP_CHARACTERS)


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for first, second in pairwise(run):
        if first not in STOP_CHARACTERS or second not in STOP_CHARACTERS:
            yield first + second


class _Segmenter:
    """The Chinese segmenter. Its dictionary takes 30 MB and is loaded with the first Chinese text."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jieba: Any = None

    def cut(self, run: str) -> Sequence[str]:
        with self._lock:
            if self._jieba is None:
                import rjieba

                self._jieba = rjieba.Jieba()
            words: Sequence[str] = self._jieba.cut_for_search(run)
        return words


_cut = _Segmenter().cut


def stem(word: str) -> str:
    """Return an English word without its endings."""
    with _stemming:
        stemmed: str = _stemmer().stemWord(word)
    return stemmed


@lru_cache(1)
def _stemmer() -> Any:
    # Loaded with the first English text.
    import snowballstemmer

    return snowballstemmer.stemmer("english")


_stemming = threading.Lock()


def term_of(word: str) -> int:
    """Return the term of a word."""
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))


known_term = _Remembered[int](term_of).__getitem__
"""`term_of` with a cache, for words of texts."""


def analysed(text: str) -> tuple[Terms, NDArray[np.uint8], int]:
    """Return the unique terms of a text in ascending order, their counts (at most 255), and the total number."""
    counts = Counter(map(known_term, words_of(text)))
    terms = np.array(sorted(counts), dtype=np.uint32)
    found = np.minimum([counts[term] for term in terms.tolist()], 255).astype(np.uint8)
    return terms, found, sum(counts.values())
