"""The scheduler: whose turn it is to compress (memory model, section 5.3).

Agents that owe compression passes stand in one ring. Each turn gives the agent at the front at most one slice
of time, then it goes to the back if it owes more, and the next one follows. So an agent with a hundred thousand
memories cannot keep one with ten from forgetting, and the small model, the scarce resource of the whole
daemon, is asked by `compression_concurrency` slices at a time.

**Policy** is `Ring`: pure, no time, no tasks; that between two turns of an agent every other waiting agent gets
exactly one is a property test. **Mechanism** is `Scheduler`: it takes turns from the ring and runs slices. What
happens inside a slice, and why one ends early, is `slice.py`.

An idle agent owes nothing and forgets nothing: it is not in the ring.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from functools import partial

from ebbtide.telemetry import get_log, in_background


class Ring:
    """Who waits for a turn, in order, and who has one. Each key is in it at most once."""

    def __init__(self) -> None:
        self._waiting: deque[Hashable] = deque()
        self._running: set[Hashable] = set()
        self._again: set[Hashable] = set()
        self._last: set[Hashable] = set()

    def join(self, key: Hashable) -> None:
        """Wait for a turn; one that has its turn now will have another."""
        if key in self._running:
            self._again.add(key)
            self._last.discard(key)
        elif key not in self._waiting:
            self._waiting.append(key)

    def leave(self, key: Hashable) -> None:
        """Wait no longer; a turn in progress is the last one."""
        self._again.discard(key)
        if key in self._running:
            self._last.add(key)
        if key in self._waiting:
            self._waiting.remove(key)

    def take(self) -> Hashable | None:
        """Give the one at the front its turn."""
        if not self._waiting:
            return None
        key = self._waiting.popleft()
        self._running.add(key)
        return key

    def put_back(self, key: Hashable, *, owes_more: bool) -> None:
        """End a turn: to the back of the ring when more is owed, or was asked for meanwhile."""
        self._running.discard(key)
        again, is_last = key in self._again, key in self._last
        self._again.discard(key)
        self._last.discard(key)
        if again or (owes_more and not is_last):
            self._waiting.append(key)

    @property
    def waiting(self) -> tuple[Hashable, ...]:
        """Who waits, next first."""
        return tuple(self._waiting)

    @property
    def running(self) -> tuple[Hashable, ...]:
        """Who has a turn now."""
        return tuple(self._running)


RunSlice = Callable[[Hashable], Awaitable[bool]]
"""Runs one slice for a key; whether it owes more afterwards."""


@dataclass(slots=True)
class SchedulerTally:
    """What the scheduler has done so far."""

    slices: int = 0
    failed_slices: int = 0


class Scheduler:
    """Runs slices, so many at a time, in the order of the ring."""

    def __init__(self, run_slice: RunSlice, *, concurrency: int) -> None:
        self.ring = Ring()
        self.tally = SchedulerTally()
        self._run_slice = run_slice
        self._concurrency = concurrency
        self._wake_up = asyncio.Event()
        self._slices: dict[Hashable, asyncio.Task[bool]] = {}
        self._loop: asyncio.Task[None] | None = None
        self._log = get_log("scheduler")

    def start(self) -> None:
        """Begin to give turns."""
        self._loop = in_background(self._give_turns())

    def enqueue(self, key: Hashable) -> None:
        """This agent owes passes."""
        self.ring.join(key)
        self._wake_up.set()

    async def remove(self, key: Hashable) -> None:
        """No more turns for this agent; a slice in progress is cut off and has ended on return."""
        self.ring.leave(key)
        task = self._slices.get(key)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self.ring.leave(key)

    async def stop(self) -> None:
        """Give no more turns and cut off the slices in progress. Idempotent."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)
            self._loop = None
        for key in list(self._slices):
            await self.remove(key)

    async def _give_turns(self) -> None:
        while True:
            while len(self._slices) < self._concurrency:
                key = self.ring.take()
                if key is None:
                    break
                self._begin(key)
            self._wake_up.clear()
            await self._wake_up.wait()

    def _begin(self, key: Hashable) -> None:
        task = in_background(self._turn(key))
        self._slices[key] = task
        # Not at the end of the coroutine: a task cancelled before its first step never runs one.
        task.add_done_callback(partial(self._ended, key))

    async def _turn(self, key: Hashable) -> bool:
        self.tally.slices += 1
        return await self._run_slice(key)

    def _ended(self, key: Hashable, task: asyncio.Task[bool]) -> None:
        owes_more = False
        if not task.cancelled():
            error = task.exception()
            if error is None:
                owes_more = task.result()
            else:
                self.tally.failed_slices += 1
                self._log.error("slice failed", exc_info=error)
        del self._slices[key]
        self.ring.put_back(key, owes_more=owes_more)
        self._wake_up.set()
