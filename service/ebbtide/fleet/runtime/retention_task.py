"""The sweeper: withdraws texts whose time is over while an agent is open (parameter `retention`).

It looks when the agent opens, when its parameters change, and every hour. Steps are short jobs in the agent's
mailbox, between which requests and other agents go first. What is due while an agent is closed goes when it is
opened next. Deliberately not here: what a step does (`retention.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ebbtide.clock import Clock
from ebbtide.errors import EbbtideError
from ebbtide.fleet.runtime.mailbox import Mailbox
from ebbtide.fleet.runtime.slice import JOB_BUDGET_S, Budget
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.telemetry import get_log

PAUSE_S = 3600.0
"""How long after one look the next follows: retention is told in days."""


class RetentionTask:
    """Sweeps one agent until it is cancelled."""

    def __init__(
        self, workspace: Workspace, mailbox: Mailbox, clock: Clock, yield_to_requests: Callable[[], None]
    ) -> None:
        self._workspace = workspace
        self._mailbox = mailbox
        self._clock = clock
        self._yield_to_requests = yield_to_requests
        self._noticed = asyncio.Event()
        self._log = get_log("sweeper").bind(agent_id=workspace.identity.agent_id)

    def notice(self) -> None:
        """Parameters may have changed."""
        self._noticed.set()

    async def run(self) -> None:
        """Sweep for ever."""
        while True:
            self._noticed.clear()
            keeps_all = self._workspace.parameters.kept_days is None
            if not keeps_all:
                await self._sweep()
            try:
                async with asyncio.timeout(None if keeps_all else PAUSE_S):
                    await self._noticed.wait()
            except TimeoutError:
                continue

    async def _sweep(self) -> None:
        try:
            while await self._mailbox.run(self._step):
                pass
        except EbbtideError as error:
            # A full disk, for instance. What is due stays due.
            self._log.warning("sweep waits", why=error.reason)
        except Exception as error:
            self._log.error("sweep failed", exc_info=error)

    def _step(self) -> bool:
        budget = Budget(self._clock, JOB_BUDGET_S, self._yield_to_requests)
        return self._workspace.sweep(self._clock.now_ms(), budget)
