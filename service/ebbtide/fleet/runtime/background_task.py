"""Background work of one agent that repeats until it is cancelled and pauses after failures."""

from __future__ import annotations

import asyncio
from typing import Any

from ebbtide.errors import EbbtideError
from ebbtide.language.port import ModelUnavailable
from ebbtide.language.served.retry import RetryPolicy
from ebbtide.telemetry import get_log


class BackgroundTask:
    """Repeats `_once`, which a subclass implements."""

    NO_MODEL = ""
    """Why the task pauses when its model is unavailable."""

    def __init__(self, part: str, agent_id: str, patience: RetryPolicy) -> None:
        self._part = part
        self._patience = patience
        self._failures = 0
        self._arrived = asyncio.Event()
        self._log: Any = get_log(part).bind(agent_id=agent_id)
        self.held_up_by = ""
        """The failure after which the task pauses; empty while it runs."""

    @property
    def is_held_up(self) -> bool:
        """Whether the task pauses after a failure."""
        return self.held_up_by != ""

    def notice(self) -> None:
        """Look for work soon."""
        self._arrived.set()

    async def run(self) -> None:
        """Repeat until cancelled."""
        while True:
            try:
                await self._once()
                self._reset_failures()
            except ModelUnavailable as error:
                await self._pause(error.retry_after_s, self.NO_MODEL, str(error))
            except EbbtideError as error:
                # For example a full disk. The work stays to be done.
                await self._pause(error.retry_after_s, "the store refused", error.reason)
            except Exception as error:
                # A bug must not end the task: waiting work would wait for ever.
                self._log.error(f"{self._part} failed", exc_info=error)
                await self._pause(None, "an internal error", type(error).__name__)

    async def _once(self) -> None:
        raise NotImplementedError

    def _reset_failures(self) -> None:
        self._failures = 0
        self.held_up_by = ""

    async def _pause(self, pause_s: float | None, why: str, detail: str) -> None:
        self._failures += 1
        self.held_up_by = why
        pause_s = pause_s or self._patience.pause_s(self._failures)
        self._log.warning(f"{self._part} paused", why=why, detail=detail, pause_s=pause_s)
        self._on_pause(why, detail)
        await asyncio.sleep(pause_s)

    def _on_pause(self, why: str, detail: str) -> None:
        """Called before each pause."""
