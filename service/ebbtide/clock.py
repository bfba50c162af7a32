"""Time, read in one place so that tests can replace it.

`now_ms` is wall-clock time and is used only as metadata. `monotonic_s` measures durations and deadlines. Nothing in the
memory model depends on either. A time zone turns times into local ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
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


def offset_of(time_zone: str) -> Callable[[int], int]:
    """Return a function from a time in ms to how far local clocks of a zone are ahead of UTC, in ms."""
    return partial(_offset_ms, time_zone)


def _offset_ms(time_zone: str, time_ms: int) -> int:
    if time_zone == "UTC":
        return 0
    from datetime import UTC, datetime, timedelta
    from zoneinfo import ZoneInfo

    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)
        offset = moment.astimezone(ZoneInfo(time_zone)).utcoffset()
    except OverflowError:  # outside the years 1 to 9999
        return 0
    return (offset or timedelta()) // timedelta(milliseconds=1)
