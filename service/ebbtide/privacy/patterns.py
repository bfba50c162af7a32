"""All patterns of personal data, in order of certainty, and the search for them in a text.

Many texts have no white space between words: `\\b` does not match between a Chinese character and a digit, so every
pattern states what may not surround it. A pattern is tried only where it can begin. Its repetitions are bounded or
possessive, so the search takes time proportional to the length of the text.

Not recognised: names, postal addresses, dates of birth, numbers spelt in words or split over two messages, and
secrets that look like ordinary words.
"""

from __future__ import annotations

from collections.abc import Iterator

from ebbtide.privacy.addresses import ADDRESSES
from ebbtide.privacy.numbers import ACCOUNTS, NUMBERS, PHONES, number_begins
from ebbtide.privacy.secrets import ASSIGNED, KEYS
from ebbtide.privacy.shape import Bounds, Pattern

KINDS = ("secret", "email", "iban", "national_id", "card", "ip", "phone")
"""The kinds of personal data."""

PATTERNS = (*KEYS, *ADDRESSES, *ACCOUNTS, *NUMBERS, *PHONES, *ASSIGNED)
"""Every pattern. Of two overlapping matches, one that contains the other wins, otherwise the earlier pattern: a check
digit is stronger evidence than a word before a number."""

_AT_NUMBERS = frozenset((*NUMBERS, *PHONES))


def find_all(text: str) -> Iterator[tuple[str, list[Bounds]]]:
    """Yield the kind and the bounds of the matches of each pattern that matches."""
    lowered = text.lower()
    begins = number_begins(text)
    for pattern in PATTERNS:
        if pattern.literals and not any(literal in lowered for literal in pattern.literals):
            continue
        found = list(_match_at(pattern, text, begins) if pattern in _AT_NUMBERS else _search(pattern, text))
        if found:
            yield pattern.kind, found


def _match_at(pattern: Pattern, text: str, begins: list[int]) -> Iterator[Bounds]:
    position = 0
    for begin in begins:
        if begin >= position and (match := pattern.regex.match(text, begin)) is not None:
            bounds = pattern.accept(match)
            if bounds is not None:
                position = bounds[1]
                yield bounds


def _search(pattern: Pattern, text: str) -> Iterator[Bounds]:
    position = 0
    while (match := pattern.regex.search(text, position)) is not None:
        bounds = pattern.accept(match)
        if bounds is not None and bounds[0] < bounds[1]:
            yield bounds
        # A rejected match may contain another one that begins inside it.
        position = match.start() + 1 if bounds is None else max(bounds[1], match.start() + 1)
