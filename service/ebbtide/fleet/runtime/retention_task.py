"""The retention task removes expired texts while an agent is open (parameter `retention`).

It runs when the agent opens, when its parameters change, and every hour. Its steps are short jobs in the agent's
mailbox, between which requests and other agents go first. Texts that expire while an agent is closed are removed when
it opens next. The steps are in `archive/retention.py`.
"""

from __future__ import annotations

import asyncio

from ebbtide.errors import EbbtideError
from ebbtide.fleet.runtime.mailbox import Mailbox
from ebbtide.fleet.runtime.shared import SharedResources
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.telemetry import get_log

PAUSE_S = 3600.0
"""Pause between two sweeps: retention is given in days."""


class RetentionTask:
    """Removes the expired texts of one agent until it is cancelled."""

    def __init__(self, workspace: Workspace, mailbox: Mailbox, shared: SharedResources) -> None:
        self._workspace = workspace
        self._mailbox = mailbox
        self._shared = shared
        self._wake_up = asyncio.Event()
        self._log = get_log("sweeper").bind(agent_id=workspace.identity.agent_id)

    def notice(self) -> None:
        """Sweep again soon: parameters may have changed."""
        self._wake_up.set()

    async def run(self) -> None:
        """Sweep until cancelled."""
        while True:
            self._wake_up.clear()
            keeps_all = self._workspace.parameters.kept_days is None
            if not keeps_all:
                await self._sweep()
            try:
                async with asyncio.timeout(None if keeps_all else PAUSE_S):
                    await self._wake_up.wait()
            except TimeoutError:
                continue

    async def _sweep(self) -> None:
        try:
            while await self._mailbox.run_in_background(self._step):
                pass
        except EbbtideError as error:
            # For example a full disk. The texts stay due.
            self._log.warning("retention paused", why=error.reason)
        except Exception as error:
            self._log.error("retention failed", exc_info=error)

    def _step(self) -> bool:
        return self._workspace.sweep(
            self._shared.clock.now_ms(), self._shared.budget(self._mailbox.is_awaited)
        )
