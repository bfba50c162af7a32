"""The retention task removes expired texts (parameter `retention`) and expired records while an agent is open.

It runs when the agent opens, when its parameters change, and every hour. Its steps are short jobs in the agent's
mailbox, between which requests and other agents go first. Texts that expire while an agent is closed are removed when
it opens next. The steps are in `deletion/expiry.py`.
"""

from __future__ import annotations

import asyncio
import contextlib

from ebbtide.fleet.runtime.background_task import BackgroundTask
from ebbtide.fleet.runtime.mailbox import Mailbox
from ebbtide.fleet.runtime.shared import SharedResources
from ebbtide.fleet.runtime.workspace import Workspace

PAUSE_S = 3600.0
"""Pause between two sweeps: retention is given in days."""


class RetentionTask(BackgroundTask):
    """Removes the expired texts and records of one agent until it is cancelled."""

    def __init__(self, workspace: Workspace, mailbox: Mailbox, shared: SharedResources) -> None:
        super().__init__("retention", workspace.identity.agent_id, shared.model_client.patience)
        self._workspace = workspace
        self._mailbox = mailbox
        self._shared = shared

    async def _once(self) -> None:
        self._arrived.clear()
        workspace = self._workspace
        keeps_all = workspace.parameters.kept_days is None and not workspace.records.may_expire
        while not keeps_all and await self._mailbox.run_in_background(self._step):
            pass
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if keeps_all else PAUSE_S):
                await self._arrived.wait()

    def _step(self) -> bool:
        return self._workspace.sweep(
            self._shared.clock.now_ms(), self._shared.budget(self._mailbox.is_awaited)
        )
