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

F = TypeVar("F")

MAX_STRIKES = 2
"""Strikes that give up a format. A rejection counts two, a server error one."""

MAX_PROSE_REPLIES = 3
"""Consecutive replies without JSON before the next format is tried."""


class FormatLadder(Generic[F]):
    """Formats of a request, best first."""

    def __init__(self, formats: Sequence[F]) -> None:
        self._formats = list(formats)
        self._strikes = [0] * len(formats)
        self._prose = [0] * len(formats)
        self._has_worked = [False] * len(formats)
        self._has_given_json = [False] * len(formats)

    def candidates(self) -> list[F]:
        """Return the formats to try for one prompt, best first. The last one is never given up."""
        left = [
            json_format
            for json_format, strikes in zip(self._formats, self._strikes, strict=True)
            if strikes < MAX_STRIKES
        ]
        return left or [self._formats[-1]]

    def has_worked(self, json_format: F) -> bool:
        """Return whether a format has worked. A later failure is then the server's."""
        return self._has_worked[self._formats.index(json_format)]

    def record_success(self, json_format: F, failed: Sequence[F], is_fault: bool) -> None:
        """Record that a format worked after better ones were rejected or caused a server error."""
        index = self._formats.index(json_format)
        self._has_worked[index] = True
        self._strikes[index] = 0
        for better in failed:
            self._strikes[self._formats.index(better)] += MAX_STRIKES - 1 if is_fault else MAX_STRIKES

    def read(self, json_format: F, *, is_json: bool) -> None:
        """Record whether a reply in this format was JSON."""
        index = self._formats.index(json_format)
        self._prose[index] = 0 if is_json else self._prose[index] + 1
        self._has_given_json[index] |= is_json
        if self._has_given_json[index]:
            # The format is right. Later prose comes from the model, and the caller retries.
            return
        is_last = index == len(self._formats) - 1
        if self._prose[index] >= MAX_PROSE_REPLIES and not is_last:
            self._prose[index] = 0
            self._strikes[index] = MAX_STRIKES
