"""Time, read in one place so that tests can replace it.

`now_ms` is wall-clock time and is used only as metadata. `monotonic_s` measures durations and deadlines. Nothing in the
memory model depends on either.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """A source of time."""

    def now_ms(self) -> int:
        """Return milliseconds since the epoch, UTC."""

    def monotonic_s(self) -> float:
        """Return seconds that never run backwards."""


class SystemClock:
    """The system's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()
