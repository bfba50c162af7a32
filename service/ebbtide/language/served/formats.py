"""Which way of asking for JSON a server understands: found out by asking, then remembered.

Servers that claim the same interface differ. Some take a JSON schema, some choke on bounds in it, some want it
in another place, some know only "any JSON", some nothing. The ways stand in a ladder, best first. A way the
server refuses (4xx) is given up once a lesser one has worked; one that ends in a fault of the server's (some
answer 500 to what they do not know) only when that happens twice before it has ever worked, because a fault may
be a mere accident; and one whose first few replies are none of them JSON. A way that has given JSON once keeps
its place: a model that talks nonsense for a while must not cost the server its best way for good.

Deliberately not here: requests. `FormatLadder` only counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

W = TypeVar("W")

MAX_STRIKES = 2
"""Strikes that give a way up: a refusal counts two, a fault of the server one."""

MAX_PROSE_REPLIES = 3
"""Replies in a row without JSON before the next way is tried."""


class FormatLadder(Generic[W]):
    """Ways of asking, best first."""

    def __init__(self, ways: Sequence[W]) -> None:
        self._ways = list(ways)
        self._strikes = [0] * len(ways)
        self._prose = [0] * len(ways)
        self._has_worked = [False] * len(ways)
        self._has_given_json = [False] * len(ways)

    def candidates(self) -> list[W]:
        """The ways to try for one question, best first; the last one is never given up."""
        left = [way for way, strikes in zip(self._ways, self._strikes, strict=True) if strikes < MAX_STRIKES]
        return left or [self._ways[-1]]

    def has_worked(self, way: W) -> bool:
        """Whether this way has worked: then a failure is the server's, not the way's."""
        return self._has_worked[self._ways.index(way)]

    def record_success(self, way: W, passed_over: Sequence[W], is_fault: bool) -> None:
        """This way has worked, after better ones were refused or ended in a fault of the server's."""
        index = self._ways.index(way)
        self._has_worked[index] = True
        self._strikes[index] = 0
        for better in passed_over:
            self._strikes[self._ways.index(better)] += MAX_STRIKES - 1 if is_fault else MAX_STRIKES

    def read(self, way: W, *, is_json: bool) -> None:
        """Whether the reply to a question put this way was JSON at all."""
        index = self._ways.index(way)
        self._prose[index] = 0 if is_json else self._prose[index] + 1
        self._has_given_json[index] |= is_json
        if self._has_given_json[index]:
            # The way is right; what comes now is the model's mood, and asking again is the caller's business.
            return
        is_last = index == len(self._ways) - 1
        if self._prose[index] >= MAX_PROSE_REPLIES and not is_last:
            self._prose[index] = 0
            self._strikes[index] = MAX_STRIKES
