"""A mailbox: the short jobs of one agent, one at a time, in order.

A job is a plain function. It runs on the daemon's thread pool, so that neither an fsync nor a long computation blocks
the event loop. The queue is bounded; when it is full, new jobs are refused (AGENT_BUSY). A job that has not started is
dropped when its caller disconnects or its deadline passes. A job that has started always completes. Nothing is
awaited inside a job.

Background work does not keep requests waiting: its jobs have a queue of their own, and jobs of requests overtake them.
The next request often follows at once, so a background job starts only LINGER_S after the last one. A job that was
overtaken for REST_RATIO times as long as the last one ran, or for MAX_OVERTAKEN_S, runs next. So background work gets a
ninth of the time of an agent under a permanent load. A background job that still waits for a thread of its pool when a
request arrives returns to the head of its queue; one that was overtaken for long does so after MAX_OVERTAKEN_S.

`run_together` groups jobs that are cheaper together: neighbours in the queue with the same group function run as one,
for example to share one commit and its fsync. They keep their order, and each caller gets its own outcome.

Handing a job to a thread and back takes 70 µs, a fifth of a recall in a small memory. Several waiting jobs are
therefore dispatched together and run one after the other for at most DISPATCH_TIME_S. Each outcome is delivered as soon
as it is known. Jobs that did not start in time return to the head of the queue.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, TypeVar

from ebbtide.errors import Deadline, Exhausted, Unavailable
from ebbtide.telemetry import in_background, is_traced, span

A = TypeVar("A")
T = TypeVar("T")

MAX_GROUPED_JOBS = 64
"""Most jobs in a group. With this many, the shared fsync is a small part of the work."""

MAX_GROUP_BYTES = 256 << 10
"""Most bytes in a group: a few milliseconds of work, so that the next job does not wait long."""

DISPATCH_TIME_S = 0.002
"""No further job of a dispatch starts after this time, so that other agents get the thread."""

MAX_JOBS_PER_DISPATCH = 16
"""Most jobs in a dispatch: about as many short ones as fit into DISPATCH_TIME_S."""

MAX_OVERTAKEN_S = 0.03
"""A background job that requests have overtaken for this long runs next."""

REST_RATIO = 8
"""A background job that requests have overtaken for this many times as long as the last one ran, runs next."""

LINGER_S = 0.005
"""Shortest time between the end of a request's job and the start of a background job."""

Outcome = Any
"""The result of a job, or the exception that it raised."""


class _Job:
    """One submitted job: a function without arguments, or an item for a group function."""

    __slots__ = (
        "_unclaimed",
        "context",
        "future",
        "group_fn",
        "item",
        "pool",
        "started_s",
        "submitted_s",
        "weight",
    )

    def __init__(
        self,
        pool: Executor,
        item: Any,
        group_fn: Callable[[Sequence[Any]], Sequence[Any]] | None = None,
        weight: int = 0,
    ) -> None:
        self.pool = pool
        self.item = item
        self.group_fn = group_fn
        self.weight = weight
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._unclaimed = [True]
        self.context = contextvars.copy_context()
        """The caller's context, so that log lines and spans of the job belong to its request."""
        self.submitted_s = self.started_s = 0.0

    def _claim(self) -> bool:
        """Return True to exactly one caller, on any thread: the one that may start the job or time it out."""
        try:
            self._unclaimed.pop()
        except IndexError:
            return False
        return True

    def start(self) -> bool:
        """Return whether to run the job now: it was neither started nor dropped."""
        if self.future.done() or not self._claim():
            return False
        self.started_s = time.monotonic()
        return True

    def finish(self, outcome: Outcome) -> None:
        """Deliver the outcome, unless the caller was cancelled."""
        if self.future.done():
            return
        if isinstance(outcome, StopIteration):
            # A future does not accept StopIteration.
            error = RuntimeError("a job raised StopIteration")
            error.__cause__ = outcome
            outcome = error
        if isinstance(outcome, BaseException):
            self.future.set_exception(outcome)
            # Retrieve it, so that asyncio does not warn if the caller was cancelled.
            self.future.exception()
        else:
            self.future.set_result(outcome)

    def time_out(self, timeout_s: float) -> None:
        """Fail the job if it has not started."""
        if self._claim():
            message = f"the request waited {timeout_s:g} s for the agent and was not run; retry it"
            self.finish(Deadline(message, reason="REQUEST_TIMED_OUT"))


class Mailbox:
    """A bounded queue of jobs with one worker."""

    def __init__(self, pool: Executor, *, size: int, background_pool: Executor | None = None) -> None:
        """Run jobs on `pool`, and background jobs on `background_pool` if there is one."""
        self._pool = pool
        self._background_pool = background_pool or pool
        self._size = size
        self._waiting: deque[_Job] = deque()
        self._background: deque[_Job] = deque()
        self._due_at_s = math.inf
        """When the first background job runs before any request."""
        self._overtaken_s = MAX_OVERTAKEN_S
        """How long requests may overtake the next background job."""
        self._returnable: Future[Any] | None = None
        """The current dispatch, if it is of a background job that yields to a request until it starts."""
        self._requested_at_s = -math.inf
        """When the last dispatch of requests ended."""
        self._is_request = False
        """Whether the current dispatch is of requests."""
        self._is_due = False
        """Whether the current dispatch is of a background job that was overtaken for long enough."""
        self._arrived = asyncio.Event()
        self._closed = False
        self._busy = False
        self._dispatched_count = 0
        """Jobs of the current dispatch behind its first one."""
        self._worker = in_background(self._work())

    @property
    def waiting_count(self) -> int:
        """Number of jobs of requests that have not started."""
        return len(self._waiting) + self._dispatched_count

    @property
    def is_idle(self) -> bool:
        """Whether no job waits or runs."""
        return not self._waiting and not self._background and not self._busy

    def is_awaited(self) -> bool:
        """Whether a job of a request waits for the current one. For any thread."""
        return bool(self._waiting)

    async def run(
        self, fn: Callable[[], T], *, timeout_s: float | None = None, pool: Executor | None = None
    ) -> T:
        """Run `fn` in turn, on `pool` if given, and return its result.

        Raise AGENT_BUSY when the queue is full, REQUEST_TIMED_OUT when the job does not start in time, and
        AGENT_CLOSING when the agent is being closed.
        """
        result: T = await self._submit(_Job(pool or self._pool, fn), self._waiting, timeout_s)
        return result

    async def run_in_background(self, fn: Callable[[], T]) -> T:
        """Run `fn` when no request waits or has just ended, or when it was overtaken for long. Raise AGENT_CLOSING."""
        result: T = await self._submit(_Job(self._background_pool, fn), self._background, None)
        return result

    async def run_together(
        self,
        group_fn: Callable[[Sequence[A]], Sequence[T | Exception]],
        item: A,
        *,
        weight: int,
        timeout_s: float | None = None,
    ) -> T:
        """Run `group_fn` over this item and those of neighbouring jobs with the same `group_fn`.

        `group_fn` gets the items in order and returns an outcome for each: a result, or the exception that this
        caller gets. If it raises, every caller gets that exception. `weight` is the size of the work in bytes. Raise
        what `run` raises.
        """
        job = _Job(self._pool, item, group_fn, weight)
        result: T = await self._submit(job, self._waiting, timeout_s)
        return result

    async def _submit(self, job: _Job, queue: deque[_Job], timeout_s: float | None) -> Any:
        if not is_traced():
            return await self._outcome(job, queue, timeout_s)
        with span("job") as job_span:
            job.context = contextvars.copy_context()
            job.submitted_s = time.monotonic()
            try:
                return await self._outcome(job, queue, timeout_s)
            finally:
                if job.started_s:
                    job_span.set("queue_wait_ms", round((job.started_s - job.submitted_s) * 1000, 3))

    async def _outcome(self, job: _Job, queue: deque[_Job], timeout_s: float | None) -> Any:
        self._put(job, queue)
        if timeout_s is None:
            return await job.future
        timer = asyncio.get_running_loop().call_later(timeout_s, job.time_out, timeout_s)
        try:
            return await job.future
        finally:
            timer.cancel()

    def _put(self, job: _Job, queue: deque[_Job]) -> None:
        if self._closed:
            raise Unavailable(
                "the agent was closed meanwhile; retry the request", reason="AGENT_CLOSING", retry_after_s=1.0
            )
        if queue is self._waiting and self.waiting_count >= self._size:
            raise Exhausted(
                f"{self._size} requests are waiting for this agent already",
                reason="AGENT_BUSY",
                retry_after_s=1.0,
            )
        queue.append(job)
        self._arrived.set()
        if queue is self._waiting and self._returnable is not None:
            # It has no effect once the job has started.
            self._returnable.cancel()

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        outcomes: Sequence[Outcome]
        while True:
            while jobs := self._take():
                do = partial(_run_in_turn, loop) if jobs[0].group_fn is None else _run_grouped
                dispatch: Future[Sequence[Outcome]] | None = None
                timer: asyncio.TimerHandle | None = None
                began_s = loop.time()
                try:
                    dispatch = jobs[0].pool.submit(do, jobs)
                    if self._is_due:
                        timer = loop.call_later(MAX_OVERTAKEN_S, self._let_overtake, dispatch)
                    elif not self._is_request:
                        self._returnable = dispatch
                    outcomes = await asyncio.wrap_future(dispatch)
                except BaseException as error:
                    was_returned = dispatch is not None and dispatch.cancelled()
                    outcomes = [] if was_returned else [error] * len(jobs)
                finally:
                    if timer is not None:
                        timer.cancel()
                self._busy, self._dispatched_count, self._returnable = False, 0, None
                if self._is_request:
                    self._requested_at_s = loop.time()
                elif outcomes:
                    self._overtaken_s = min(REST_RATIO * (loop.time() - began_s), MAX_OVERTAKEN_S)
                # Jobs that did not start keep their place.
                queue = self._waiting if self._is_request else self._background
                queue.extendleft(reversed(jobs[len(outcomes) :]))
                for job, outcome in zip(jobs, outcomes, strict=False):
                    job.finish(outcome)
            if self._closed:
                return
            self._arrived.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._linger_s() if self._background else None):
                    await self._arrived.wait()

    def _let_overtake(self, dispatch: Future[Any]) -> None:
        """Let requests overtake a due background job again that got no thread in time."""
        self._returnable = dispatch
        if self._waiting:
            # It has no effect once the job has started.
            dispatch.cancel()

    def _linger_s(self) -> float:
        """Return how long background jobs still wait for another request."""
        if self._closed:
            return 0.0
        return max(0.0, self._requested_at_s + LINGER_S - asyncio.get_running_loop().time())

    def _take(self) -> list[_Job]:
        """Take the next job and those that may be dispatched with it; an empty list if none waits."""
        is_due = asyncio.get_running_loop().time() >= self._due_at_s
        for queue in (self._background, self._waiting) if is_due else (self._waiting, self._background):
            if queue is self._background and not is_due and self._linger_s() > 0:
                continue
            jobs = self._take_from(queue)
            if jobs:
                self._busy, self._is_request = True, queue is self._waiting
                self._is_due = is_due and not self._is_request
                if queue is self._background or not self._background:
                    self._due_at_s = math.inf
                elif self._due_at_s == math.inf:
                    self._due_at_s = asyncio.get_running_loop().time() + self._overtaken_s
                return jobs
        return []

    def _take_from(self, queue: deque[_Job]) -> list[_Job]:
        jobs: list[_Job] = []
        weight = 0
        most = 1 if queue is self._background else MAX_GROUPED_JOBS
        while queue and len(jobs) < most:
            job = queue[0]
            if not job.future.done():
                if jobs and not _may_join(job, jobs, weight):
                    break
                if job.group_fn is None or job.start():
                    jobs.append(job)
                    weight += job.weight
            queue.popleft()
        self._dispatched_count = len(jobs) - 1 if jobs and jobs[0].group_fn is None else 0
        return jobs

    async def close(self) -> None:
        """Refuse new jobs, finish the waiting ones and end the worker. Idempotent."""
        self._closed = True
        self._arrived.set()
        await self._worker


def _may_join(job: _Job, jobs: Sequence[_Job], weight: int) -> bool:
    """Whether a job may be dispatched with those before it, in a group or one after the other."""
    if jobs[0].group_fn is None:
        return job.group_fn is None and job.pool is jobs[0].pool and len(jobs) < MAX_JOBS_PER_DISPATCH
    return (
        job.group_fn is not None
        and job.group_fn == jobs[0].group_fn
        and len(jobs) < MAX_GROUPED_JOBS
        and weight + job.weight <= MAX_GROUP_BYTES
    )


# --- on the pool -------------------------------------------------------------------------------------------


def _run_in_turn(loop: asyncio.AbstractEventLoop, jobs: Sequence[_Job]) -> Sequence[Outcome]:
    """Run jobs one after the other while there is time. Deliver each outcome but the last; return them all."""
    deadline_s = time.monotonic() + DISPATCH_TIME_S
    outcomes: list[Outcome] = []
    for job in jobs:
        outcome: Outcome = None
        if job.start():
            try:
                outcome = job.context.run(job.item)
            except BaseException as error:
                outcome = error
        outcomes.append(outcome)
        if len(outcomes) == len(jobs) or time.monotonic() >= deadline_s:
            break
        loop.call_soon_threadsafe(job.finish, outcome)
    return outcomes


def _run_grouped(jobs: Sequence[_Job]) -> Sequence[Outcome]:
    """Run jobs as one group."""
    group_fn = jobs[0].group_fn
    assert group_fn is not None, "grouped jobs have a group function"
    try:
        outcomes = jobs[0].context.run(group_fn, [job.item for job in jobs])
        assert len(outcomes) == len(jobs), "a group function returns an outcome for each job"
    except BaseException as error:
        return [error] * len(jobs)
    return outcomes
