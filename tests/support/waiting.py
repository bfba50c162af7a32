"""Wait until a condition holds, and measure time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


async def eventually(holds: Callable[[], object], timeout_s: float = 30.0) -> None:
    """Wait until a condition holds."""
    deadline_s = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline_s, "it did not come true in time"
        await asyncio.sleep(0.005)


def wait_until(holds: Callable[[], object], timeout_s: float = 30.0, pause_s: float = 0.02) -> None:
    """Wait until a condition holds, without an event loop."""
    deadline_s = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline_s, "it did not come true in time"
        time.sleep(pause_s)


class Stopwatch:
    """The seconds since the stopwatch was created."""

    def __init__(self) -> None:
        self._begun_s = time.monotonic()

    @property
    def s(self) -> float:
        return time.monotonic() - self._begun_s
