"""Time, read in one place so that a test can hand in its own.

`now_ms` is wall-clock time and only ever metadata; `monotonic_s` measures durations and deadlines. Nothing
in the memory model depends on either.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where the daemon reads the time."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, UTC."""

    def monotonic_s(self) -> float:
        """Seconds that never run backwards."""


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()
