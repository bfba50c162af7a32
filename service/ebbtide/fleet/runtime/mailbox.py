"""A mailbox: the short jobs of one agent, one at a time, in order.

A job is a plain function; it runs on the daemon's thread pool, so that neither a commit's fsync nor a large
traversal stalls the event loop. The box is bounded: beyond its size a job is refused (AGENT_BUSY). A caller
that gives up, or whose deadline passes, before its job has begun takes the job with it; a job that has begun
is never cut off. Nothing is awaited inside a job, so nothing slow ever holds the agent's turn.

Some jobs are cheaper together: what several callers bring can be stored in one commit, which costs one fsync
for all of them. `run_together` says so. Those that stand next to each other begin as one, in their order, up to
a bound; whatever stands between two of them keeps its place, and each still gets an outcome of its own.

The way to a thread and back takes 70 µs, a fifth of what a recall in a small memory takes. So jobs that wait side by
side go there in one trip, one after the other, until TRIP_S is over; each outcome is told as soon as it is there, and
what there was no time for keeps its place at the head. Until its own beginning each may still be given up.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, TypeVar

from ebbtide.errors import Deadline, Exhausted, Unavailable
from ebbtide.telemetry import in_background, is_traced, span

A = TypeVar("A")
T = TypeVar("T")

MAX_GROUPED_JOBS = 64
"""Most jobs that run as one: with so many, the fsync they share is a small part of their work."""

MAX_GROUP_BYTES = 256 << 10
"""Most bytes that jobs which run as one may bring: a few milliseconds' work, so that the next one waits no longer."""

DISPATCH_TIME_S = 0.002
"""After so long no further job begins in the same trip: nobody else's thread is kept longer."""

MAX_JOBS_PER_DISPATCH = 16
"""Most jobs that are taken along: that many short ones fit into the time."""

Outcome = Any
"""What a job returned, or the exception that it raised."""


class _Job:
    """What a caller wants done: `group_fn` over the things that such jobs bring; alone, a function of nothing."""

    __slots__ = ("_unclaimed", "context", "future", "group_fn", "item", "started_s", "submitted_s", "weight")

    def __init__(
        self, group_fn: Callable[[Sequence[Any]], Sequence[Any]] | None, item: Any, weight: int
    ) -> None:
        self.group_fn = group_fn
        self.item = item
        self.weight = weight
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._unclaimed = [True]
        self.context = contextvars.copy_context()
        """Of whoever asks: what is logged and traced in the job is told under its request."""
        self.submitted_s = self.started_s = 0.0

    def claim(self) -> bool:
        """Whether it is for whoever asks this to begin it, or to give it up: one of them only, on whatever thread."""
        try:
            self._unclaimed.pop()
        except IndexError:
            return False
        return True

    def begin(self) -> bool:
        """Whether to do it now: nobody has given it up."""
        if self.future.done() or not self.claim():
            return False
        self.started_s = time.monotonic()
        return True

    def end(self, outcome: Outcome) -> None:
        """Hand the outcome to the one who asked, who may be gone."""
        if self.future.done():
            return
        if isinstance(outcome, StopIteration):
            # No future takes it.
            error = RuntimeError("a job raised StopIteration")
            error.__cause__ = outcome
            outcome = error
        if isinstance(outcome, BaseException):
            self.future.set_exception(outcome)
            # Nobody may be there to take it; that is no reason for a warning.
            self.future.exception()
        else:
            self.future.set_result(outcome)

    def time_out(self, timeout_s: float) -> None:
        """Its turn did not come in time. What has begun is waited for."""
        if self.claim():
            message = f"the agent's turn did not come within {timeout_s:g} s"
            self.end(Deadline(message, reason="REQUEST_TIMED_OUT"))


class Mailbox:
    """A bounded queue of jobs with one worker."""

    def __init__(self, pool: Executor, *, size: int) -> None:
        self._pool = pool
        self._size = size
        self._waiting: deque[_Job] = deque()
        self._arrived = asyncio.Event()
        self._closed = False
        self._busy = False
        self._dispatched_count = 0
        """Jobs that were taken along on the trip under way."""
        self._worker = in_background(self._work())

    @property
    def waiting_count(self) -> int:
        """Jobs that have not begun."""
        return len(self._waiting) + self._dispatched_count

    @property
    def is_idle(self) -> bool:
        """Whether no job waits or runs."""
        return not self._waiting and not self._busy

    async def run(self, fn: Callable[[], T], *, timeout_s: float | None = None) -> T:
        """Run `fn` when its turn comes and return what it returns.

        Raises AGENT_BUSY when the box is full, REQUEST_TIMED_OUT when the turn does not come in time,
        AGENT_CLOSING when the agent is being closed.
        """
        result: T = await self._submit(None, fn, 0, timeout_s)
        return result

    async def run_together(
        self,
        group_fn: Callable[[Sequence[A]], Sequence[T | Exception]],
        item: A,
        *,
        weight: int,
        timeout_s: float | None = None,
    ) -> T:
        """Run `group_fn` over this thing and those of its neighbours that ask for the same `group_fn`.

        It is called with the things in the order they came in, this one alone if it has no such neighbours,
        and answers with an outcome for each: a result, or the exception that this caller gets. What it raises,
        every one of them gets. `weight` is the work it makes, in bytes. Raises what `run` raises.
        """
        result: T = await self._submit(group_fn, item, weight, timeout_s)
        return result

    async def _submit(self, group_fn: Any, item: Any, weight: int, timeout_s: float | None) -> Any:
        if not is_traced():
            return await self._outcome(_Job(group_fn, item, weight), timeout_s)
        with span("job") as job_span:
            job = _Job(group_fn, item, weight)
            job.submitted_s = time.monotonic()
            try:
                return await self._outcome(job, timeout_s)
            finally:
                if job.started_s:
                    job_span.set("queue_wait_ms", round((job.started_s - job.submitted_s) * 1000, 3))

    async def _outcome(self, job: _Job, timeout_s: float | None) -> Any:
        self._put(job)
        if timeout_s is None:
            return await job.future
        timer = asyncio.get_running_loop().call_later(timeout_s, job.time_out, timeout_s)
        try:
            return await job.future
        finally:
            timer.cancel()

    def _put(self, job: _Job) -> None:
        if self._closed:
            raise Unavailable(
                "the agent was closed meanwhile; ask again", reason="AGENT_CLOSING", retry_after_s=1.0
            )
        if self.waiting_count >= self._size:
            raise Exhausted(
                f"{self._size} requests wait for this agent already",
                reason="AGENT_BUSY",
                retry_after_s=1.0,
            )
        self._waiting.append(job)
        self._arrived.set()

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        outcomes: Sequence[Outcome]
        while True:
            while jobs := self._begin():
                do = partial(_run_in_turn, loop) if jobs[0].group_fn is None else _run_grouped
                try:
                    outcomes = await loop.run_in_executor(self._pool, do, jobs)
                except BaseException as error:
                    outcomes = [error] * len(jobs)
                self._busy, self._dispatched_count = False, 0
                # What was taken along and has not begun keeps its place.
                self._waiting.extendleft(reversed(jobs[len(outcomes) :]))
                for job, outcome in zip(jobs, outcomes, strict=False):
                    job.end(outcome)
            if self._closed:
                return
            self._arrived.clear()
            await self._arrived.wait()

    def _begin(self) -> list[_Job]:
        """Take the job at the head, and what goes along with it; nothing when none waits."""
        jobs: list[_Job] = []
        weight = 0
        while self._waiting:
            job = self._waiting[0]
            if not job.future.done():
                if jobs and not _may_join(job, jobs, weight):
                    break
                if job.group_fn is None or job.begin():
                    jobs.append(job)
                    weight += job.weight
                    self._busy = True
            self._waiting.popleft()
        self._dispatched_count = len(jobs) - 1 if jobs and jobs[0].group_fn is None else 0
        return jobs

    async def close(self) -> None:
        """Take no more jobs, finish those that wait, end the worker. Idempotent."""
        self._closed = True
        self._arrived.set()
        await self._worker


def _may_join(job: _Job, jobs: Sequence[_Job], weight: int) -> bool:
    """Whether a job may go to its thread with those before it: as one with them, or behind them."""
    if jobs[0].group_fn is None:
        return job.group_fn is None and len(jobs) < MAX_JOBS_PER_DISPATCH
    return (
        job.group_fn is not None
        and job.group_fn == jobs[0].group_fn
        and len(jobs) < MAX_GROUPED_JOBS
        and weight + job.weight <= MAX_GROUP_BYTES
    )


# --- on the pool -------------------------------------------------------------------------------------------


def _run_in_turn(loop: asyncio.AbstractEventLoop, jobs: Sequence[_Job]) -> Sequence[Outcome]:
    """Do one job after another; the outcomes of those there was time for, all but the last told already."""
    deadline_s = time.monotonic() + DISPATCH_TIME_S
    outcomes: list[Outcome] = []
    for job in jobs:
        outcome: Outcome = None
        if job.begin():
            try:
                outcome = job.context.run(job.item)
            except BaseException as error:
                outcome = error
        outcomes.append(outcome)
        if len(outcomes) == len(jobs) or time.monotonic() >= deadline_s:
            break
        loop.call_soon_threadsafe(job.end, outcome)
    return outcomes


def _run_grouped(jobs: Sequence[_Job]) -> Sequence[Outcome]:
    """Do what the jobs want as one."""
    group_fn = jobs[0].group_fn
    assert group_fn is not None, "jobs that run as one say how"
    try:
        outcomes = jobs[0].context.run(group_fn, [job.item for job in jobs])
        assert len(outcomes) == len(jobs), "an outcome for each"
    except BaseException as error:
        return [error] * len(jobs)
    return outcomes
