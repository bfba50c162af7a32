"""The scheduler gives agents turns at compression (memory model, section 5.3).

Agents that owe compression passes wait in one ring. The agent at the front gets one slice of limited time. If it owes
more, it goes to the back. An agent with a hundred thousand memories therefore cannot keep one with ten from
compressing. At most `compression_concurrency` slices use the language model, the scarce resource, at a time.

`Ring` is the policy: pure, without time and tasks. A property test checks that between two turns of an agent every
other waiting agent gets exactly one. `Scheduler` is the mechanism: it takes turns from the ring and runs slices.
`slice.py` runs a slice and decides when it ends early.

An idle agent owes nothing, forgets nothing and is not in the ring.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from functools import partial

from ebbtide.telemetry import get_log, in_background


class Ring:
    """The keys that wait for a turn, in order, and the keys that have one. Each key occurs at most once."""

    def __init__(self) -> None:
        self._waiting: deque[Hashable] = deque()
        self._running: set[Hashable] = set()
        self._again: set[Hashable] = set()
        self._last: set[Hashable] = set()

    def join(self, key: Hashable) -> None:
        """Wait for a turn. A key that has its turn now gets another one."""
        if key in self._running:
            self._again.add(key)
            self._last.discard(key)
        elif key not in self._waiting:
            self._waiting.append(key)

    def leave(self, key: Hashable) -> None:
        """Stop waiting. A turn in progress is the last one."""
        self._again.discard(key)
        if key in self._running:
            self._last.add(key)
        if key in self._waiting:
            self._waiting.remove(key)

    def take(self) -> Hashable | None:
        """Start the turn of the first waiting key; None if no key waits."""
        if not self._waiting:
            return None
        key = self._waiting.popleft()
        self._running.add(key)
        return key

    def put_back(self, key: Hashable, *, owes_more: bool) -> None:
        """End a turn. The key waits again if it owes more or joined during its turn."""
        self._running.discard(key)
        again, is_last = key in self._again, key in self._last
        self._again.discard(key)
        self._last.discard(key)
        if again or (owes_more and not is_last):
            self._waiting.append(key)

    @property
    def waiting(self) -> tuple[Hashable, ...]:
        """The waiting keys, next first."""
        return tuple(self._waiting)

    @property
    def running(self) -> tuple[Hashable, ...]:
        """The keys that have a turn now."""
        return tuple(self._running)


RunSlice = Callable[[Hashable], Awaitable[bool]]
"""Runs one slice for a key and returns whether it owes more."""


@dataclass(slots=True)
class SchedulerTally:
    """Counters of the scheduler."""

    slices: int = 0
    failed_slices: int = 0


class Scheduler:
    """Runs a limited number of slices at a time, in the order of the ring."""

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
        """Start giving turns."""
        self._loop = in_background(self._give_turns())

    def enqueue(self, key: Hashable) -> None:
        """Queue an agent that owes passes."""
        self.ring.join(key)
        self._wake_up.set()

    async def remove(self, key: Hashable) -> None:
        """Remove an agent. A slice in progress is cancelled and has ended on return."""
        self.ring.leave(key)
        task = self._slices.get(key)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self.ring.leave(key)

    async def stop(self) -> None:
        """Stop giving turns and cancel the slices in progress. Idempotent."""
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
        # Not at the end of the coroutine: a task that is cancelled before its first step never runs it.
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
