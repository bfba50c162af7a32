"""Unicode normalisation of text from callers and models, in linear time.

Normalisation sorts each run of combining marks by class, which takes quadratic time in the length of the run. A run
of more than 30 marks is therefore divided first, as the Stream-Safe Text Format (Unicode UAX #15) does: by a
combining grapheme joiner, which is invisible and changes no word. No writing system needs more than a few marks.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from importlib import resources

MAX_MARKS = 30
"""Consecutive combining marks that are normalised together (UAX #15)."""

_JOINER = "\u034f"
_FIRST_MARK, _LAST_MARK = 0x300, 0x1FFFF
"""Code points that are examined: no other character decomposes to a combining mark first."""

_POSSIBLE_RUN = re.compile(rf"[\u0300-\u30ff\ua66f-\uabff\ud800-\U0001ffff]{{{MAX_MARKS + 1}}}")
"""A run without ideographs and Hangul syllables. Few texts have one, and the exact pattern takes 0.2 s to build."""


def nfkc(text: str) -> str:
    """Return the text in normalisation form KC; runs of more than `MAX_MARKS` combining marks are divided first."""
    return text if text.isascii() else unicodedata.normalize("NFKC", stream_safe(text))


def stream_safe(text: str) -> str:
    """Return the text with a joiner after every `MAX_MARKS` combining marks in a row."""
    if len(text) <= MAX_MARKS or text.isascii() or _POSSIBLE_RUN.search(text) is None:
        return text
    return _full_run().sub(rf"\g<0>{_JOINER}", text)


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


_ZERO_WIDTH = "\u00ad\u061c\u180e\u200b\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff"
"""Characters without width, except the joiners that Persian, Indian and emoji spellings need."""


def is_invisible(character: str) -> bool:
    """Return whether a character is hidden or has no width, so that two names would look alike."""
    return is_hidden(character) or character in _ZERO_WIDTH


def on_one_line(text: str) -> str:
    """Return a text as it is shown on one line: single spaces for white space, and no hidden characters."""
    if not text.isprintable():
        text = "".join(one for one in text if one.isspace() or not is_hidden(one))
    return " ".join(text.split())


@lru_cache(1)
def simplified() -> dict[int, int]:
    """Return the OpenCC table from traditional to simplified characters, for `str.translate`.

    The file has a line for each pair (`python -m tests.tidy.generate_simplified`).
    """
    lines = resources.files(__package__).joinpath("simplified.txt").read_text(encoding="utf-8").splitlines()
    return {ord(line[0]): ord(line[1]) for line in lines if not line.startswith("#")}
