"""Find out which way of requesting JSON a server supports.

Servers with the same interface differ. Some accept a JSON schema, some reject bounds in it, some expect it elsewhere,
some support only "any JSON", some nothing. The formats are ordered best first. A format is given up when the server
rejects it (4xx) and a lesser one works; when it causes a server error twice before it ever worked, since one error may
be an accident; and when its first replies are not JSON. A format that has produced JSON once is kept: temporary
nonsense must not cost the server its best format. `FormatLadder` only counts; it sends no requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

W = TypeVar("W")

MAX_STRIKES = 2
"""Strikes that give up a format. A rejection counts two, a server error one."""

MAX_PROSE_REPLIES = 3
"""Consecutive replies without JSON before the next format is tried."""


class FormatLadder(Generic[W]):
    """Formats of a request, best first."""

    def __init__(self, ways: Sequence[W]) -> None:
        self._ways = list(ways)
        self._strikes = [0] * len(ways)
        self._prose = [0] * len(ways)
        self._has_worked = [False] * len(ways)
        self._has_given_json = [False] * len(ways)

    def candidates(self) -> list[W]:
        """Return the formats to try for one prompt, best first. The last one is never given up."""
        left = [way for way, strikes in zip(self._ways, self._strikes, strict=True) if strikes < MAX_STRIKES]
        return left or [self._ways[-1]]

    def has_worked(self, way: W) -> bool:
        """Return whether a format has worked. A later failure is then the server's."""
        return self._has_worked[self._ways.index(way)]

    def record_success(self, way: W, passed_over: Sequence[W], is_fault: bool) -> None:
        """Record that a format worked after better ones were rejected or caused a server error."""
        index = self._ways.index(way)
        self._has_worked[index] = True
        self._strikes[index] = 0
        for better in passed_over:
            self._strikes[self._ways.index(better)] += MAX_STRIKES - 1 if is_fault else MAX_STRIKES

    def read(self, way: W, *, is_json: bool) -> None:
        """Record whether a reply in this format was JSON."""
        index = self._ways.index(way)
        self._prose[index] = 0 if is_json else self._prose[index] + 1
        self._has_given_json[index] |= is_json
        if self._has_given_json[index]:
            # The format is right. Later prose comes from the model, and the caller retries.
            return
        is_last = index == len(self._ways) - 1
        if self._prose[index] >= MAX_PROSE_REPLIES and not is_last:
            self._prose[index] = 0
            self._strikes[index] = MAX_STRIKES
