"""Turns of one agent at consolidation, and when it needs one.

The scheduler gives the turns: an agent consolidates in a slice in which it owes no compression pass. Between two steps
the slice ends when its time is up or when the agent has other jobs. After a failure it pauses for ten minutes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ebbtide.errors import EbbtideError
from ebbtide.fleet.consolidation.consolidation import NOTHING, Outcome, Run
from ebbtide.fleet.runtime.mailbox import Mailbox
from ebbtide.fleet.runtime.shared import Budget, SharedResources
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.telemetry import get_log

T = TypeVar("T")


VectorsOf = Callable[[Sequence[str]], Awaitable[NDArray[np.float32] | None]]
"""Returns a vector for each text, zeros where there is none; None without a model."""


class RunStep(Protocol):
    """Runs one short job of a request."""

    def __call__(self, job: Callable[[], T]) -> Awaitable[T]: ...


class Consolidator:
    """Runs the consolidation of one agent."""

    def __init__(
        self,
        workspace: Workspace,
        mailbox: Mailbox,
        shared: SharedResources,
        request_turn: Callable[[], None],
        vectors_of: VectorsOf,
    ) -> None:
        self._workspace = workspace
        self._mailbox = mailbox
        self._shared = shared
        self._request_turn = request_turn
        self._vectors_of = vectors_of
        self._timer: asyncio.TimerHandle | None = None
        self._log = get_log("consolidation").bind(agent_id=workspace.identity.agent_id)

    def schedule(self) -> None:
        """Request a turn when a run is due. Call this when that may have changed."""
        self.stop()
        now_ms = self._shared.clock.now_ms()
        due_ms = self._workspace.consolidation.due_at_ms(now_ms)
        if due_ms is not None:
            pause_s = (due_ms - now_ms) / 1000
            if pause_s <= 0:
                self._request_turn()
            else:
                self._timer = asyncio.get_running_loop().call_later(pause_s, self._request_turn)

    def stop(self) -> None:
        """Request no further turn. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def run_slice(self) -> bool:
        """Consolidate until the run is done, time is up or another job waits. Return whether more is due."""
        clock = self._shared.clock
        if not self._is_due():
            return False
        deadline_s = clock.monotonic_s() + self._shared.slice_s
        try:
            while await self._mailbox.run_in_background(partial(self._next_part, self._budget())):
                await self._embed(self._workspace.consolidation.current)
                if not self._mailbox.is_idle or clock.monotonic_s() >= deadline_s:
                    return True
        except EbbtideError as error:
            # For example a full disk. The run continues from its last commit.
            self._pause("consolidation paused", reason=error.reason)
        except Exception as error:
            self._pause("consolidation failed", exc_info=error)
        self.schedule()
        return False

    def _pause(self, event: str, **details: object) -> None:
        self._log.error(event, **details)
        self._workspace.consolidation.failed(self._shared.clock.now_ms())

    async def rehearse(self, run_step: RunStep) -> Outcome:
        """Return what a run would look at and change, without a change."""
        rehearse, clock = self._workspace.consolidation.rehearse, self._shared.clock
        done: Run | Outcome | None = None
        while not isinstance(done, Outcome):
            await self._embed(done)
            done = await run_step(partial(rehearse, done, clock.now_ms(), self._budget()))
        return done

    async def run_now(self, run_step: RunStep) -> Outcome:
        """Run to the end, and return what was looked at and changed. If the caller disconnects, a turn continues it."""
        consolidation = self._workspace.consolidation
        try:
            number = await run_step(consolidation.begin)
            if not number:
                return NOTHING
            while not await run_step(partial(self._continue, number, self._budget())):
                await self._embed(consolidation.current)
            return consolidation.outcome()
        finally:
            self.schedule()

    async def _embed(self, run: Run | None) -> None:
        """Compute the vectors that the next part of a run can use, if they arrive in time. No job waits for them."""
        if run is not None and run.texts:
            texts, run.texts = run.texts, ()
            run.vectors = await self._vectors_of(texts)

    def _continue(self, number: int, budget: Budget) -> bool:
        """Run a part of a run. Return whether the run has ended."""
        consolidation = self._workspace.consolidation
        return consolidation.is_done(number) or not self._part(budget)

    def _next_part(self, budget: Budget) -> bool:
        """Run a part if one is due. Return whether more is."""
        return self._is_due() and self._part(budget)

    def _is_due(self) -> bool:
        now_ms = self._shared.clock.now_ms()
        due_ms = self._workspace.consolidation.due_at_ms(now_ms)
        return due_ms is not None and due_ms <= now_ms

    def _part(self, budget: Budget) -> bool:
        """Run a part. Return whether the run continues."""
        consolidation, began_s = self._workspace.consolidation, time.thread_time()
        step = consolidation.advance(self._shared.clock.now_ms(), budget)
        if step:
            took_s = time.thread_time() - began_s
            self._shared.metrics.consolidation_seconds.labels(step).observe(took_s)
        return consolidation.is_running

    def _budget(self) -> Budget:
        return self._shared.budget(self._mailbox.is_awaited)
