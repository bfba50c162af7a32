"""A shape of personal data, with what must be true of a text that has it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

Place = tuple[int, int]
"""Where something begins and ends."""

Accept = Callable[[re.Match[str]], Place | None]

_SEPARATOR = re.compile(r"[^0-9A-Za-z]++")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A shape, and what must be true of what has it: `accept` names the place meant, or None.

    An empty place means that nothing stands there, and nothing before its end either.
    """

    kind: str
    shape: re.Pattern[str]
    accept: Accept
    needles: tuple[str, ...] = ()
    """One of these stands in every text that has the shape, once the text is in lower case."""


def whole(match: re.Match[str]) -> Place:
    """All of a match."""
    return match.span()


def told(match: re.Match[str]) -> Place:
    """What the shape calls `told`."""
    return match.span("told")


def before(match: re.Match[str], most: int) -> str:
    """What stands just before a match."""
    return match.string[max(0, match.start() - most) : match.start()]


def bare(text: str) -> str:
    """Letters and digits, without what separates them."""
    return _SEPARATOR.sub("", text)
