"""A mailbox: the short jobs of one agent, one at a time, in order.

A job is a plain function; it runs on the daemon's thread pool, so that neither a commit's fsync nor a large
traversal stalls the event loop. The box is bounded: beyond its size a job is refused (AGENT_BUSY). A caller
that gives up, or whose deadline passes, before its job has begun takes the job with it; a job that has begun
is never cut off. Nothing is awaited inside a job, so nothing slow ever holds the agent's turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar

from ebbtide.errors import Deadline, Exhausted, Unavailable
from ebbtide.telemetry import in_background

T = TypeVar("T")


class _Job:
    __slots__ = ("begun", "fn", "future")

    def __init__(self, fn: Callable[[], Any], future: asyncio.Future[Any]) -> None:
        self.fn = fn
        self.future = future
        self.begun = False


class Mailbox:
    """A bounded queue of jobs with one worker."""

    def __init__(self, pool: Executor, *, size: int) -> None:
        self._pool = pool
        self._size = size
        self._waiting: deque[_Job] = deque()
        self._arrived = asyncio.Event()
        self._closed = False
        self._busy = False
        self._worker = in_background(self._work())

    @property
    def waiting_count(self) -> int:
        """Jobs that have not begun."""
        return len(self._waiting)

    @property
    def is_idle(self) -> bool:
        """Whether no job waits or runs."""
        return not self._waiting and not self._busy

    async def run(self, fn: Callable[[], T], *, timeout_s: float | None = None) -> T:
        """Run `fn` when its turn comes and return what it returns.

        Raises AGENT_BUSY when the box is full, REQUEST_TIMED_OUT when the turn does not come in time,
        AGENT_CLOSING when the agent is being closed.
        """
        if self._closed:
            raise Unavailable(
                "the agent was closed meanwhile; ask again", reason="AGENT_CLOSING", retry_after_s=1.0
            )
        if len(self._waiting) >= self._size:
            raise Exhausted(
                f"{self._size} requests wait for this agent already",
                reason="AGENT_BUSY",
                retry_after_s=1.0,
            )
        job = _Job(fn, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        self._arrived.set()
        result: T = await self._outcome(job, timeout_s)
        return result

    async def _outcome(self, job: _Job, timeout_s: float | None) -> Any:
        try:
            async with asyncio.timeout(timeout_s) as limit:
                return await asyncio.shield(job.future)
        except TimeoutError:
            if not limit.expired():
                raise
            if job.begun:
                return await job.future
            raise Deadline(
                f"the agent's turn did not come within {timeout_s:g} s", reason="REQUEST_TIMED_OUT"
            ) from None
        finally:
            if not job.begun and not job.future.done():
                job.future.cancel()

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while self._waiting:
                job = self._waiting.popleft()
                if job.future.done():
                    continue
                job.begun = self._busy = True
                try:
                    outcome = await loop.run_in_executor(self._pool, job.fn)
                except BaseException as error:
                    if not job.future.done():
                        job.future.set_exception(error)
                        # The one who asked may be gone; that is no reason for a warning.
                        job.future.exception()
                else:
                    if not job.future.done():
                        job.future.set_result(outcome)
                finally:
                    self._busy = False
            if self._closed:
                return
            self._arrived.clear()
            await self._arrived.wait()

    async def close(self) -> None:
        """Take no more jobs, finish those that wait, end the worker. Idempotent."""
        self._closed = True
        self._arrived.set()
        await self._worker
