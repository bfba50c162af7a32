"""Fold a text into plain characters for matching, and map positions back to the original.

Full-width and other compatibility characters become plain ones (NFKC), digits of every script become 0-9, dashes
become `-`, and invisible characters are removed. Chinese punctuation stays, because a password ends there. The folding
works character by character, so every position maps back.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

_PRESERVED = frozenset("！，；？、。…“”‘’「」")
"""Punctuation that is not folded."""

_DASHES = frozenset("‐‑‒–—―−﹣－")
_INVISIBLE = frozenset("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff")


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded text."""

    text: str
    begins: list[int] | None = None
    """The original position of each character and of the end, or None where no position changed."""

    def original(self, begin: int, end: int) -> tuple[int, int]:
        """Map bounds to the original. A character that was folded into several is included whole."""
        if self.begins is None or begin >= end:
            return begin, end
        return self.begins[begin], self.begins[end - 1] + 1


@lru_cache(maxsize=1 << 16)
def _plain(character: str) -> str:
    if character in _INVISIBLE:
        return ""
    if character in _PRESERVED:
        return character
    if character in _DASHES:
        return "-"
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    narrow = unicodedata.normalize("NFKC", character)
    # A character that does not become ASCII matches no pattern, so it stays one character.
    return narrow if narrow.isascii() else character


def folded(text: str) -> Folded:
    """Return the folded text."""
    if text.isascii():
        return Folded(text)
    table = {ord(c): _plain(c) for c in set(text) if not c.isascii()}
    plain = text.translate(table)
    if all(len(plain_char) == 1 for plain_char in table.values()):
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
