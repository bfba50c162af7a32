"""Unicode normalisation of text from callers and models, in linear time.

Normalisation sorts each run of combining marks by class, which takes quadratic time in the length of the run. A run
of more than 30 marks is therefore divided first, as the Stream-Safe Text Format (Unicode UAX #15) does: by a
combining grapheme joiner, which is invisible and changes no word. No writing system needs more than a few marks.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

MAX_MARKS = 30
"""Consecutive combining marks that are normalised together (UAX #15)."""

_JOINER = "\u034f"
_FIRST_MARK, _LAST_MARK = 0x300, 0x1FFFF
"""Code points that are examined: no other character decomposes to a combining mark first."""


def nfkc(text: str) -> str:
    """Return the text in normalisation form KC; runs of more than `MAX_MARKS` combining marks are divided first."""
    return text if text.isascii() else unicodedata.normalize("NFKC", stream_safe(text))


def stream_safe(text: str) -> str:
    """Return the text with a joiner after every `MAX_MARKS` combining marks in a row."""
    return text if len(text) <= MAX_MARKS or text.isascii() else _full_run().sub(rf"\g<0>{_JOINER}", text)


@lru_cache(1)
def _full_run() -> re.Pattern[str]:
    """Return a pattern for the maximum number of consecutive marks, followed by another one."""
    points = [point for point in range(_FIRST_MARK, _LAST_MARK + 1) if _is_mark(chr(point))]
    marks = "".join(map(chr, points))
    return re.compile(f"[{marks}]{{{MAX_MARKS}}}(?=[{marks}])")


def _is_mark(character: str) -> bool:
    """Return whether normalisation reorders a character, or the first character of its decomposition."""
    if unicodedata.combining(character):
        return True
    if not unicodedata.decomposition(character):
        return False
    return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) != 0


_BIDI_CONTROLS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def is_hidden(character: str) -> bool:
    """Return whether a character is a control, a surrogate, a line break, or changes the direction of text."""
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in _BIDI_CONTROLS


FIRST, LAST = 0x3400, 0x9FFF
"""The ideographs of everyday texts. Rarer ones have no common simplified form."""


@lru_cache(1)
def simplified() -> dict[int, int]:
    """Return the OpenCC table from traditional to simplified characters, for `str.translate`.

    Building it takes 40 ms.
    """
    import opencc

    characters = [chr(point) for point in range(FIRST, LAST + 1)]
    converted = opencc.OpenCC("t2s").convert("\n".join(characters)).split("\n")
    pairs = zip(characters, converted, strict=True)
    return {ord(one): ord(other) for one, other in pairs if one != other and len(other) == 1}
