"""Folding: a text as patterns read it, with the way back to the text as it stands.

Full-width and otherwise dressed-up letters, digits and signs become plain ones (NFKC), digits of every script become
0-9, dashes become `-`, and characters that are not seen go. What ends a phrase in Chinese is left alone: a password
ends there. Character by character, so that every place has its place in the original.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

_KEPT = frozenset("！，；？、。…“”‘’「」")
"""Ends of phrases, and quotation marks: they stay what they are."""

_DASHES = frozenset("‐‑‒–—―−﹣－")
_UNSEEN = frozenset("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff")


@dataclass(frozen=True, slots=True)
class Folded:
    """A text as patterns read it."""

    text: str
    begins: list[int] | None = None
    """For each character, and for the end, where it stands in the original; None where nothing has moved."""

    def original(self, begin: int, end: int) -> tuple[int, int]:
        """A place in the original, from one here; a character that became several belongs to it whole."""
        if self.begins is None or begin >= end:
            return begin, end
        return self.begins[begin], self.begins[end - 1] + 1


@lru_cache(maxsize=1 << 16)
def _plain(character: str) -> str:
    if character in _UNSEEN:
        return ""
    if character in _KEPT:
        return character
    if character in _DASHES:
        return "-"
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    narrow = unicodedata.normalize("NFKC", character)
    # What does not become plain characters cannot be part of any pattern: it stays one character.
    return narrow if narrow.isascii() else character


def folded(text: str) -> Folded:
    """The text as patterns read it."""
    if text.isascii():
        return Folded(text)
    table = {ord(c): _plain(c) for c in set(text) if not c.isascii()}
    plain = text.translate(table)
    if all(len(became) == 1 for became in table.values()):
        return Folded(plain)
    lengths = (len(table.get(ord(c), c)) for c in text)
    ends = list(accumulate(lengths))
    begins = [0] * (len(plain) + 1)
    begin = 0
    for index, end in enumerate(ends):
        begins[begin:end] = [index] * (end - begin)
        begin = end
    begins[len(plain)] = len(text)
    return Folded(plain, begins)
