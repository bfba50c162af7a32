"""Supervision of a serving daemon: stop signals with their guardian, and the watchdog of the event loop.

Only `serve` uses it, because signals and timers belong to a whole process.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ebbtide.process.stop_guard import StopGuard
from ebbtide.process.watchdog import BEAT_S, Watchdog, stacks_of_threads
from ebbtide.telemetry import get_log


class Supervision:
    """One thread that supervises the event loop and the guardian until the process ends."""

    def __init__(self, grace_s: float, log_format: str) -> None:
        self._watchdog = Watchdog()
        self._guard = StopGuard(grace_s, log_format)
        self.beat = self._watchdog.beat

    @asynccontextmanager
    async def until_stopped(self) -> AsyncIterator[asyncio.Event]:
        """Handle stop signals and watch the event loop within the block. The first signal sets the event."""
        stop = asyncio.Event()
        self._guard.install(asyncio.get_running_loop(), stop.set)
        self._watchdog.begin()
        threading.Thread(target=self._run, name="supervision", daemon=True).start()
        try:
            yield stop
        finally:
            self._guard.stopping()
            self._watchdog.end()

    def _run(self) -> None:
        while True:
            try:
                self._guard.answer(BEAT_S, stacks_of_threads)
                self._watchdog.look()
                self._guard.keep_guardian()
            except Exception as error:
                get_log("daemon").error("supervision failed", exc_info=error)
                time.sleep(10 * BEAT_S)
