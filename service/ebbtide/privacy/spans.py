"""Spans: where personal data stands in a text, and the text without it.

The rule guarded here: what is redacted leaves nothing behind, neither a digit at its edge nor its length. Spans are in
characters, ascending, and never overlap.
"""

from __future__ import annotations

import hashlib
import hmac
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ebbtide.privacy.folding import folded
from ebbtide.privacy.patterns import all_places

KEYED_DIGITS = 16
"""Of the keyed form: 64 bits, so that two conversations are not taken for one."""


@dataclass(frozen=True, slots=True)
class Span:
    """Where something personal stands, in characters."""

    kind: str
    begin: int
    length: int

    @property
    def end(self) -> int:
        """Where it is over."""
        return self.begin + self.length


def find(text: str) -> list[Span]:
    """What is personal in a text, from left to right; where two meet, the larger or more certain one counts."""
    read = folded(text)
    found: list[Span] = []
    for kind, places in all_places(read.text):
        fresh = []
        for place in places:
            begin, end = read.original(*place)
            fresh.append(Span(kind, begin, end - begin))
        found = _merged(found, fresh)
    return found


def _merged(found: Sequence[Span], fresh: Sequence[Span]) -> list[Span]:
    """Both, ascending: a fresh one that touches others takes their place where it holds them whole, else it goes."""
    begins = [span.begin for span in found]
    kept, replaced = [], set[int]()
    for span in fresh:
        first = bisect_right(begins, span.begin) - 1
        first += first < 0 or found[first].end <= span.begin
        last = first
        while last < len(found) and found[last].begin < span.end:
            last += 1
        touched = found[first:last]
        if all(span.begin <= one.begin and one.end <= span.end for one in touched):
            if any(one.length == span.length for one in touched):
                continue
            kept.append(span)
            replaced.update(range(first, last))
    left = (span for index, span in enumerate(found) if index not in replaced)
    return sorted([*left, *kept], key=lambda span: span.begin)


def redacted(text: str, spans: Sequence[Span] | None = None) -> str:
    """The text with what is personal replaced by its kind: `[email]`."""
    return _replaced(text, find(text) if spans is None else spans, lambda span: f"[{span.kind}]")


def keyed(text: str, key: bytes) -> str:
    """An id with what is personal replaced by its kind and a keyed hash: the same one again, and no other.

    So messages of one conversation stay together, and a request sent twice is known, though nobody can read whose.
    """

    def form(span: Span) -> str:
        said = folded(text[span.begin : span.end]).text.casefold()
        return f"[{span.kind}:{hmac.new(key, said.encode(), hashlib.sha256).hexdigest()[:KEYED_DIGITS]}]"

    return _replaced(text, find(text), form)


def _replaced(text: str, spans: Sequence[Span], form: Callable[[Span], str]) -> str:
    parts, position = [], 0
    for span in spans:
        parts += [text[position : span.begin], form(span)]
        position = span.end
    return "".join([*parts, text[position:]])
