"""A pattern of personal data: a regular expression and a function that accepts or rejects a match."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

Bounds = tuple[int, int]
"""Begin and end of a part of a text."""

Accept = Callable[[re.Match[str]], Bounds | None]

_SEPARATOR = re.compile(r"[^0-9A-Za-z]++")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern: `accept` returns the bounds of the data in a match, or None.

    Empty bounds mean that nothing was found before their end, so that the search continues there.
    """

    kind: str
    regex: re.Pattern[str]
    accept: Accept
    literals: tuple[str, ...] = ()
    """Strings of which every match contains one, in lower case."""


def whole(match: re.Match[str]) -> Bounds:
    """Return the bounds of the whole match."""
    return match.span()


def value_group(match: re.Match[str]) -> Bounds:
    """Return the bounds of the group `value`."""
    return match.span("value")


def before(match: re.Match[str], max_chars: int) -> str:
    """Return the text directly before a match."""
    return match.string[max(0, match.start() - max_chars) : match.start()]


def alphanumerics(text: str) -> str:
    """Return the letters and digits of a text without the separators."""
    return _SEPARATOR.sub("", text)
