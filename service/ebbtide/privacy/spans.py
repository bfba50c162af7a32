"""Find personal data in a text, and replace it.

Redaction leaves no trace of the data: no digit at its edge, and not its length. Spans are in characters, ascending, and
do not overlap.
"""

from __future__ import annotations

import hashlib
import hmac
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ebbtide.privacy.folding import folded
from ebbtide.privacy.patterns import find_all

KEYED_DIGITS = 16
"""Hexadecimal digits of a keyed hash: 64 bits, so that two conversations do not collide."""


@dataclass(frozen=True, slots=True)
class Span:
    """Personal data in a text: its kind and its position in characters."""

    kind: str
    begin: int
    length: int

    @property
    def end(self) -> int:
        """Return the position after the last character."""
        return self.begin + self.length


def find(text: str) -> list[Span]:
    """Return the personal data in a text from left to right. Of two overlapping matches the larger, else the more
    certain, is returned.
    """
    plain = folded(text)
    found: list[Span] = []
    for kind, matches in find_all(plain.text):
        new = []
        for match in matches:
            begin, end = plain.original(*match)
            new.append(Span(kind, begin, end - begin))
        found = _merged(found, new)
    return found


def _merged(found: Sequence[Span], new: Sequence[Span]) -> list[Span]:
    """Return both, ascending. A new span replaces the overlapped spans if it contains them, else it is dropped."""
    begins = [span.begin for span in found]
    added, replaced = [], set[int]()
    for span in new:
        first = bisect_right(begins, span.begin) - 1
        first += first < 0 or found[first].end <= span.begin
        last = first
        while last < len(found) and found[last].begin < span.end:
            last += 1
        overlapped = found[first:last]
        if all(span.begin <= other.begin and other.end <= span.end for other in overlapped):
            if any(other.length == span.length for other in overlapped):
                continue
            added.append(span)
            replaced.update(range(first, last))
    remaining = (span for index, span in enumerate(found) if index not in replaced)
    return sorted([*remaining, *added], key=lambda span: span.begin)


def redacted(text: str, spans: Sequence[Span] | None = None) -> str:
    """Return the text with personal data replaced by its kind: `[email]`."""
    return _replaced(text, find(text) if spans is None else spans, lambda span: f"[{span.kind}]")


def keyed(text: str, key: bytes) -> str:
    """Return an id with personal data replaced by its kind and a keyed hash.

    Equal ids stay equal and different ids stay different, so messages of one conversation stay together and a repeated
    request is recognised, without storing the data.
    """

    def replacement(span: Span) -> str:
        data = folded(text[span.begin : span.end]).text.casefold()
        return f"[{span.kind}:{hmac.new(key, data.encode(), hashlib.sha256).hexdigest()[:KEYED_DIGITS]}]"

    return _replaced(text, find(text), replacement)


def _replaced(text: str, spans: Sequence[Span], replacement: Callable[[Span], str]) -> str:
    parts, position = [], 0
    for span in spans:
        parts += [text[position : span.begin], replacement(span)]
        position = span.end
    return "".join([*parts, text[position:]])
