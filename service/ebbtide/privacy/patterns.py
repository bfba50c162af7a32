"""Patterns: every shape of personal data, in the order of how much each says, and how a text is read for them.

Written for texts in which white space says little: `\\b` does not stand between a Chinese character and a digit, so
every pattern says itself what may not stand beside it. A pattern is tried only where it can begin, and repeats within
bounds or without giving back, so that a text takes time in proportion to its length, whoever wrote it.

Not promised: names, postal addresses, dates of birth; a number that is spelt in words or split over two messages; a
secret that looks like an ordinary word.
"""

from __future__ import annotations

from collections.abc import Iterator

from ebbtide.privacy.addresses import ADDRESSES
from ebbtide.privacy.numbers import ACCOUNTS, NUMBERS, PHONES, number_begins
from ebbtide.privacy.secrets import ASSIGNED, KEYS
from ebbtide.privacy.shape import Pattern, Place

KINDS = ("secret", "email", "iban", "national_id", "card", "ip", "phone")
"""What is told apart."""

PATTERNS = (*KEYS, *ADDRESSES, *ACCOUNTS, *NUMBERS, *PHONES, *ASSIGNED)
"""Every pattern. Where two overlap, the one that holds the other whole is meant, else the earlier one here: a check
says more than a word before a number."""

_AT_NUMBERS = frozenset((*NUMBERS, *PHONES))


def all_places(text: str) -> Iterator[tuple[str, list[Place]]]:
    """(kind, where it stands) for each pattern that is met."""
    lowered = text.lower()
    begins = number_begins(text)
    for pattern in PATTERNS:
        if pattern.needles and not any(needle in lowered for needle in pattern.needles):
            continue
        found = list(_tried_at(pattern, text, begins) if pattern in _AT_NUMBERS else _searched(pattern, text))
        if found:
            yield pattern.kind, found


def _tried_at(pattern: Pattern, text: str, begins: list[int]) -> Iterator[Place]:
    position, tried, accept = 0, pattern.shape.match, pattern.accept
    for begin in begins:
        if begin >= position and (match := tried(text, begin)) is not None:
            place = accept(match)
            if place is not None:
                position = place[1]
                yield place


def _searched(pattern: Pattern, text: str) -> Iterator[Place]:
    position = 0
    while (match := pattern.shape.search(text, position)) is not None:
        place = pattern.accept(match)
        if place is not None and place[0] < place[1]:
            yield place
        # What was refused may hide another one that begins inside.
        position = match.start() + 1 if place is None else max(place[1], match.start() + 1)
