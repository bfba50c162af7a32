"""The mailbox runs jobs one at a time, in order, with a bounded queue; grouped jobs run as one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest

from ebbtide.errors import Deadline, Exhausted, Unavailable
from ebbtide.fleet.runtime import mailbox
from ebbtide.fleet.runtime.mailbox import (
    DISPATCH_TIME_S,
    MAX_GROUP_BYTES,
    MAX_GROUPED_JOBS,
    MAX_JOBS_PER_DISPATCH,
    MAX_OVERTAKEN_S,
    REST_RATIO,
    Mailbox,
)
from ebbtide.fleet.runtime.notifier import Notifier
from tests.support.waiting import eventually


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as made:
        yield made


async def has_begun(box: Mailbox) -> None:
    """Wait until the only job of the mailbox runs."""
    await eventually(lambda: box.waiting_count == 0 and not box.is_idle)


async def test_jobs_run_one_at_a_time_in_order(pool: ThreadPoolExecutor) -> None:
    """Jobs of one agent never overlap, whatever the number of threads."""
    box, order, running = Mailbox(pool, size=100), [], []

    def job(number: int) -> int:
        running.append(number)
        assert len(running) == 1
        order.append(number)
        running.pop()
        return number

    results = await asyncio.gather(*(box.run(lambda n=n: job(n)) for n in range(50)))  # type: ignore[misc]
    assert results == order == list(range(50))
    await box.close()


async def test_an_error_reaches_its_caller_and_the_next_job_runs(pool: ThreadPoolExecutor) -> None:
    """A failing job affects no other job."""
    box = Mailbox(pool, size=10)
    with pytest.raises(ZeroDivisionError):
        await box.run(lambda: 1 // 0)
    assert await box.run(lambda: 7) == 7
    await box.close()


async def test_a_job_that_raises_stop_iteration_blocks_no_caller(pool: ThreadPoolExecutor) -> None:
    """StopIteration, which no future accepts, becomes a RuntimeError: alone, with neighbours and in a group."""
    box, empty = Mailbox(pool, size=10), iter(())
    gate, blocker = await blocked(box)

    def many(_: Sequence[int]) -> Sequence[int]:
        return next(empty)

    asked = [box.run(lambda: next(empty)), box.run(lambda: 1), box.run(lambda: next(empty))]
    asked.append(box.run_together(many, 1, weight=1))
    tasks = [asyncio.create_task(one) for one in asked]
    await asyncio.sleep(0)
    gate.set()
    outcomes = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
    assert [type(one) for one in outcomes] == [RuntimeError, int, RuntimeError, RuntimeError]
    assert await box.run(lambda: 7) == 7
    await blocker
    await box.close()


async def test_a_full_mailbox_refuses(pool: ThreadPoolExecutor) -> None:
    """A job beyond the size is refused with AGENT_BUSY at once, and waiting jobs still run."""
    box, gate = Mailbox(pool, size=2), threading.Event()
    first = asyncio.create_task(box.run(gate.wait))
    await has_begun(box)
    waiting = [asyncio.create_task(box.run(lambda: 1)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Exhausted) as caught:
        await box.run(lambda: 2)
    assert caught.value.reason == "AGENT_BUSY"
    gate.set()
    assert await asyncio.gather(first, *waiting) == [True, 1, 1]
    await box.close()


async def test_a_job_that_does_not_start_in_time_fails(pool: ThreadPoolExecutor) -> None:
    """A job that does not start in time fails with REQUEST_TIMED_OUT and never runs; a started one completes."""
    box, gate, ran = Mailbox(pool, size=5), threading.Event(), []
    first = asyncio.create_task(box.run(gate.wait, timeout_s=0.3))
    await has_begun(box)
    with pytest.raises(Deadline) as caught:
        await box.run(lambda: ran.append(1), timeout_s=0.4)
    assert caught.value.reason == "REQUEST_TIMED_OUT"
    gate.set()
    assert await first is True
    await box.close()
    assert ran == []


async def test_a_cancelled_caller_removes_its_waiting_job(pool: ThreadPoolExecutor) -> None:
    """A job cancelled before its start does not run; a started one completes."""
    box, gate, runs, ran = Mailbox(pool, size=5), threading.Event(), threading.Event(), []

    def begun() -> None:
        runs.set()
        gate.wait()
        ran.append("begun")

    first = asyncio.create_task(box.run(begun))
    await asyncio.get_running_loop().run_in_executor(None, runs.wait)
    second = asyncio.create_task(box.run(lambda: ran.append("waiting")))
    await asyncio.sleep(0)
    for task in (first, second):
        task.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    gate.set()
    await box.close()
    assert ran == ["begun"]


async def test_a_closed_mailbox_completes_waiting_jobs(pool: ThreadPoolExecutor) -> None:
    """`close` returns after the last waiting job; later jobs get AGENT_CLOSING."""
    box = Mailbox(pool, size=5)
    waiting = [asyncio.create_task(box.run(lambda n=n: n)) for n in range(3)]  # type: ignore[misc]
    await asyncio.sleep(0)
    await box.close()
    assert await asyncio.gather(*waiting) == [0, 1, 2]
    with pytest.raises(Unavailable) as caught:
        await box.run(lambda: 1)
    assert caught.value.reason == "AGENT_CLOSING"


# --- background jobs -----------------------------------------------------------------------------------


async def test_requests_overtake_background_jobs(pool: ThreadPoolExecutor) -> None:
    """A job of a request runs before background jobs that waited longer; both keep their own order."""
    box, ran = Mailbox(pool, size=1), list[str]()
    gate, blocker = await blocked(box)
    tasks = [
        asyncio.create_task(box.run_in_background(partial(ran.append, name)))
        for name in ("background 1", "background 2")
    ]
    await asyncio.sleep(0)
    assert not box.is_awaited()
    tasks.append(asyncio.create_task(box.run(partial(ran.append, "request"))))
    await asyncio.sleep(0)
    assert box.is_awaited() and box.waiting_count == 1, "background jobs take no place of the queue"
    gate.set()
    await asyncio.gather(blocker, *tasks)
    assert ran == ["request", "background 1", "background 2"]
    assert box.is_idle
    await box.close()


async def test_background_jobs_run_under_a_permanent_load(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A background job that was overtaken for MAX_OVERTAKEN_S runs next, although requests wait."""
    monkeypatch.setattr(mailbox, "LINGER_S", 60.0)
    with ThreadPoolExecutor(1) as other:
        box, ran = Mailbox(pool, size=1000), list[str]()
        gate, blocker = await blocked(box)
        tasks = [asyncio.create_task(box.run_in_background(partial(ran.append, "b"))) for _ in range(2)]

        def request() -> None:
            ran.append("r")
            time.sleep(MAX_OVERTAKEN_S / 4)

        for number in range(20):
            # Jobs on different pools share no dispatch.
            tasks.append(asyncio.create_task(box.run(request, pool=other if number % 2 else pool)))
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(blocker, *tasks)
        first, second, rest = "".join(ran).split("b")
        assert 1 <= len(first) <= 6 and 1 <= len(second) <= 6 and rest
        await box.close()


@pytest.mark.alone
async def test_short_background_jobs_get_a_ninth_of_the_time(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a background job, requests overtake the next for REST_RATIO times as long as it ran, not for longer."""
    monkeypatch.setattr(mailbox, "LINGER_S", 60.0)
    monkeypatch.setattr(mailbox, "MAX_OVERTAKEN_S", 60.0)
    box, ran = Mailbox(pool, size=1000), list[str]()
    await box.run_in_background(partial(time.sleep, 0.002))
    gate, blocker = await blocked(box)
    waiting = asyncio.create_task(box.run_in_background(partial(ran.append, "background")))
    await asyncio.sleep(0)
    gate.set()
    await blocker
    began_s, requests = time.monotonic(), 0
    while not waiting.done() and time.monotonic() < began_s + 30:
        await box.run(partial(time.sleep, 0.001))
        requests += 1
    assert ran == ["background"] and requests >= REST_RATIO
    await waiting
    await box.close()


async def test_a_request_does_not_wait_for_a_background_job_without_thread(
    pool: ThreadPoolExecutor,
) -> None:
    """A background job that waits for a thread of its pool lets a request of its agent run, and runs after it."""
    with ThreadPoolExecutor(1) as occupied:
        gate, ran = threading.Event(), list[str]()
        occupied.submit(gate.wait, 30)
        box = Mailbox(pool, size=5, background_pool=occupied)
        waiting = asyncio.create_task(box.run_in_background(partial(ran.append, "background")))
        await asyncio.sleep(0.01)
        assert not box.is_idle
        try:
            await asyncio.wait_for(box.run(partial(ran.append, "request")), 20)
        finally:
            gate.set()
        await waiting
        assert ran == ["request", "background"]
        await box.close()


async def test_a_request_does_not_wait_for_a_due_job_without_thread(pool: ThreadPoolExecutor) -> None:
    """A background job that was overtaken for long and gets no thread lets further requests run before it."""
    with ThreadPoolExecutor(1) as occupied:
        gate, ran = threading.Event(), list[str]()
        box = Mailbox(pool, size=5, background_pool=occupied)
        slow = asyncio.create_task(box.run(partial(time.sleep, 2 * mailbox.MAX_OVERTAKEN_S)))
        waiting = asyncio.create_task(box.run_in_background(partial(ran.append, "background")))
        await asyncio.sleep(0.01)
        occupied.submit(gate.wait, 30)
        overtaking = [asyncio.create_task(box.run(partial(ran.append, f"request {n}"))) for n in (1, 2)]
        try:
            await asyncio.wait_for(asyncio.gather(slow, *overtaking), 20)
            assert not waiting.done()
        finally:
            gate.set()
        await waiting
        assert ran == ["request 1", "request 2", "background"]
        await box.close()


async def test_background_jobs_wait_for_the_next_request(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A background job does not start at once after a request: a request that follows runs first. Then it runs."""
    monkeypatch.setattr(mailbox, "LINGER_S", 0.2)
    box, ran = Mailbox(pool, size=10), list[str]()
    await box.run(partial(ran.append, "request 1"))
    waiting = asyncio.create_task(box.run_in_background(partial(ran.append, "background")))
    await asyncio.sleep(0.01)
    await box.run(partial(ran.append, "request 2"))
    await waiting
    assert ran == ["request 1", "request 2", "background"]
    await box.close()


async def test_closing_does_not_wait_for_the_next_request(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing runs a background job that waits for further requests, at once."""
    monkeypatch.setattr(mailbox, "LINGER_S", 600.0)
    box = Mailbox(pool, size=10)
    await box.run(lambda: None)
    waiting = asyncio.create_task(box.run_in_background(lambda: "ran"))
    await asyncio.sleep(0)
    await asyncio.wait_for(box.close(), 60)
    assert await waiting == "ran"


async def test_background_jobs_run_on_their_own_threads(pool: ThreadPoolExecutor) -> None:
    """A background job runs on the background pool; closing waits for it, and then refuses further ones."""
    with ThreadPoolExecutor(1, "quiet") as quiet:
        box = Mailbox(pool, size=5, background_pool=quiet)
        gate, blocker = await blocked(box)
        waiting = asyncio.create_task(box.run_in_background(lambda: threading.current_thread().name))
        await asyncio.sleep(0)
        closing = asyncio.create_task(box.close())
        gate.set()
        assert (await waiting).startswith("quiet")
        await closing
        await blocker
        with pytest.raises(Unavailable):
            await box.run_in_background(lambda: None)


# --- jobs that run as one ------------------------------------------------------------------------------


class Post:
    """Records the groups that run in a mailbox that is blocked until `open` is called."""

    def __init__(self, pool: ThreadPoolExecutor, size: int = 1000) -> None:
        self.box = Mailbox(pool, size=size)
        self.ran: list[list[object]] = []
        self._gate = threading.Event()
        self._blocker = asyncio.create_task(self.box.run(self._gate.wait))

    def store(self, things: Sequence[object]) -> list[object]:
        """Store the items of a group; an exception is the outcome of its item."""
        self.ran.append(list(things))
        return [thing if isinstance(thing, Exception) else f"{thing} stored" for thing in things]

    def put(self, thing: object, *, weight: int = 1, timeout_s: float | None = None) -> asyncio.Task[object]:
        """Submit an item that is stored together with its neighbours."""
        return asyncio.create_task(
            self.box.run_together(self.store, thing, weight=weight, timeout_s=timeout_s)
        )

    def put_alone(self, thing: object) -> asyncio.Task[None]:
        """Submit a job of another kind."""
        return asyncio.create_task(self.box.run(lambda: self.ran.append([thing])))

    async def open(self) -> None:
        """Unblock the mailbox and wait for the waiting jobs."""
        await asyncio.sleep(0)
        self._gate.set()
        await self.box.close()
        await self._blocker


async def test_neighbours_run_as_one_in_their_order(pool: ThreadPoolExecutor) -> None:
    """Neighbouring jobs of the same kind are one call, and each caller gets its own outcome."""
    post = Post(pool)
    tasks = [post.put(n) for n in range(5)]
    await post.open()
    assert post.ran == [[0, 1, 2, 3, 4]]
    assert await asyncio.gather(*tasks) == [f"{n} stored" for n in range(5)]


async def test_a_single_job_starts_at_once(pool: ThreadPoolExecutor) -> None:
    """A single job starts at once."""
    box, ran = Mailbox(pool, size=5), []

    def store(things: Sequence[int]) -> Sequence[int]:
        ran.append(list(things))
        return things

    for n in range(3):
        assert await box.run_together(store, n, weight=1, timeout_s=30) == n
    assert ran == [[0], [1], [2]]
    await box.close()


async def test_other_jobs_keep_their_order(pool: ThreadPoolExecutor) -> None:
    """Grouping changes the order of no jobs."""
    post = Post(pool)

    def erase(things: Sequence[object]) -> Sequence[object]:
        post.ran.append(["erased", *things])
        return things

    waiting = [post.put(1), post.put(2), post.put_alone("looked"), post.put(3), post.put(4)]
    waiting.append(asyncio.create_task(post.box.run_together(erase, 5, weight=1)))
    waiting.append(post.put(6))
    await post.open()
    assert post.ran == [[1, 2], ["looked"], [3, 4], ["erased", 5], [6]]
    await asyncio.gather(*waiting)


async def test_an_error_as_outcome_reaches_its_own_caller(pool: ThreadPoolExecutor) -> None:
    """An error as outcome reaches its own caller only."""
    post = Post(pool)
    tasks = [post.put("a"), post.put(Exhausted("no", reason="QUEUE_FULL")), post.put("b")]
    await post.open()
    first, refused, second = await asyncio.gather(*tasks, return_exceptions=True)
    assert (first, second) == ("a stored", "b stored")
    assert isinstance(refused, Exhausted)


@pytest.mark.parametrize("outcomes", [None, []])
async def test_a_failure_of_a_group_reaches_all_its_callers(
    pool: ThreadPoolExecutor, outcomes: object
) -> None:
    """An exception or a missing outcome reaches every caller of the group and no other; the mailbox continues."""
    box, gate = Mailbox(pool, size=10), threading.Event()

    def broken(things: Sequence[int]) -> list[int]:
        if outcomes is None:
            raise ZeroDivisionError
        return []

    blocker = asyncio.create_task(box.run(gate.wait))
    await has_begun(box)
    tasks = [asyncio.create_task(box.run_together(broken, n, weight=1)) for n in range(3)]
    after = asyncio.create_task(box.run(lambda: 7))
    await asyncio.sleep(0)
    gate.set()
    expected = ZeroDivisionError if outcomes is None else AssertionError
    assert {type(e) for e in await asyncio.gather(*tasks, return_exceptions=True)} == {expected}
    assert await after == 7
    await blocker
    await box.close()


async def test_a_cancelled_caller_leaves_its_group(pool: ThreadPoolExecutor) -> None:
    """A caller that cancels or times out is left out, and its neighbours still run as a group."""
    post = Post(pool)
    first, gone, late, last = post.put(1), post.put(2), post.put(3, timeout_s=0.01), post.put(4)
    await asyncio.sleep(0)
    gone.cancel()
    with pytest.raises(Deadline):
        await late
    await post.open()
    assert post.ran == [[1, 4]]
    assert await asyncio.gather(first, last) == ["1 stored", "4 stored"]


async def test_a_caller_that_leaves_a_running_group_affects_no_other(pool: ThreadPoolExecutor) -> None:
    """A group that has started completes for the remaining callers."""
    box, begun, gate = Mailbox(pool, size=5), threading.Event(), threading.Event()
    blocking = threading.Event()
    blocker = asyncio.create_task(box.run(blocking.wait))

    def slow(things: Sequence[int]) -> Sequence[int]:
        begun.set()
        gate.wait()
        return things

    await has_begun(box)
    tasks = [asyncio.create_task(box.run_together(slow, n, weight=1, timeout_s=0.4)) for n in range(3)]
    await asyncio.sleep(0)
    blocking.set()
    await asyncio.get_running_loop().run_in_executor(None, begun.wait)
    tasks[1].cancel()
    await asyncio.sleep(0.5)
    gate.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert (outcomes[0], outcomes[2]) == (0, 2)
    assert isinstance(outcomes[1], asyncio.CancelledError)
    await blocker
    await box.close()


async def test_no_more_run_as_one_than_the_bounds_allow(pool: ThreadPoolExecutor) -> None:
    """Groups exceed neither the limit of jobs nor that of bytes; a larger item runs alone."""
    post = Post(pool)
    many = [post.put(n) for n in range(MAX_GROUPED_JOBS + 1)]
    await post.open()
    assert [len(group) for group in post.ran] == [MAX_GROUPED_JOBS, 1]
    await asyncio.gather(*many)
    post = Post(pool)
    half, heavy = MAX_GROUP_BYTES // 2, MAX_GROUP_BYTES * 3
    tasks = [post.put(i, weight=weight) for i, weight in enumerate((half, half, 1, heavy, 1, half))]
    await post.open()
    assert post.ran == [[0, 1], [2], [3], [4, 5]]
    await asyncio.gather(*tasks)


async def test_each_of_those_that_run_as_one_counts_in_a_full_box(pool: ThreadPoolExecutor) -> None:
    """The size of the mailbox counts callers: grouping makes no room for more."""
    post = Post(pool, size=3)
    await has_begun(post.box)
    tasks = [post.put(n) for n in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(Exhausted) as caught:
        await post.put(4)
    assert caught.value.reason == "AGENT_BUSY"
    assert post.box.waiting_count == 3
    await post.open()
    await asyncio.gather(*tasks)


# --- jobs that go to their thread in one trip ----------------------------------------------------------


class CountingPool(ThreadPoolExecutor):
    """A pool with one thread that counts submissions."""

    def __init__(self) -> None:
        super().__init__(1)
        self.trips = 0

    def submit(self, *args: Any, **options: Any) -> Future[Any]:
        """Count and submit."""
        self.trips += 1
        return super().submit(*args, **options)


@pytest.fixture
def counting() -> Iterator[CountingPool]:
    with CountingPool() as made:
        yield made


async def blocked(box: Mailbox) -> tuple[threading.Event, asyncio.Task[bool]]:
    """Block the mailbox until the event is set."""
    gate = threading.Event()
    blocker = asyncio.create_task(box.run(gate.wait))
    await has_begun(box)
    return gate, blocker


async def test_neighbouring_short_jobs_share_a_dispatch(counting: CountingPool) -> None:
    """They keep their order, their callers' contexts and their own outcomes; a failure affects no neighbour."""
    box, who = Mailbox(counting, size=100), ContextVar[int]("who")
    gate, blocker = await blocked(box)

    async def ask(number: int) -> int:
        who.set(number)
        return await box.run(lambda: who.get() // (number != 3))

    asked = [asyncio.create_task(ask(number)) for number in range(MAX_JOBS_PER_DISPATCH + 2)]
    await asyncio.sleep(0)
    gate.set()
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(outcomes.pop(3), ZeroDivisionError)
    assert outcomes == [number for number in range(MAX_JOBS_PER_DISPATCH + 2) if number != 3]
    # One dispatch for the blocker, and more than two only on a thread so slow that the time was over.
    assert 3 <= counting.trips < MAX_JOBS_PER_DISPATCH
    await blocker
    await box.close()


async def test_dispatched_jobs_wait_behind_a_long_job(counting: CountingPool) -> None:
    """A dispatched job that has not started still waits: its caller may cancel or time out, and then it never runs."""
    box, begun, ran = Mailbox(counting, size=100), threading.Event(), []
    gate, blocker = await blocked(box)
    long_gate = threading.Event()

    def long() -> None:
        begun.set()
        long_gate.wait()
        time.sleep(DISPATCH_TIME_S * 2)

    longer = asyncio.create_task(box.run(long))
    gone = asyncio.create_task(box.run(lambda: ran.append("gone")))
    late = asyncio.create_task(box.run(lambda: ran.append("late"), timeout_s=0.5))
    last = asyncio.create_task(box.run(lambda: ran.append("last"), timeout_s=60))
    await asyncio.sleep(0)
    gate.set()
    await asyncio.get_running_loop().run_in_executor(None, begun.wait)
    assert box.waiting_count == 3
    gone.cancel()
    with pytest.raises(Deadline):
        await late
    assert not longer.done(), "its time is up when it is, not when the long one is through"
    long_gate.set()
    await asyncio.gather(blocker, longer, last)
    assert ran == ["last"]
    assert gone.cancelled()
    await box.close()


async def test_an_outcome_is_delivered_before_the_dispatch_ends(counting: CountingPool) -> None:
    """An outcome does not wait for later jobs of the same dispatch."""
    box, second = Mailbox(counting, size=10), threading.Event()
    gate, blocker = await blocked(box)
    first = asyncio.create_task(box.run(lambda: 1))
    waiting = asyncio.create_task(box.run(second.wait))
    await asyncio.sleep(0)
    gate.set()
    assert await asyncio.wait_for(first, 10) == 1
    assert not waiting.done()
    second.set()
    assert await asyncio.gather(blocker, waiting) == [True, True]
    await box.close()


async def test_dispatched_jobs_count_as_waiting(counting: CountingPool) -> None:
    """Dispatched jobs count as waiting until they start."""
    box, begun, gate = Mailbox(counting, size=2), threading.Event(), threading.Event()

    def long() -> None:
        begun.set()
        gate.wait()

    blocking, blocker = await blocked(box)
    asked = [asyncio.create_task(box.run(job)) for job in (long, lambda: None)]
    await asyncio.sleep(0)
    blocking.set()
    await asyncio.get_running_loop().run_in_executor(None, begun.wait)
    asked.append(asyncio.create_task(box.run(lambda: None)))
    await asyncio.sleep(0)
    with pytest.raises(Exhausted):
        await box.run(lambda: None)
    gate.set()
    await asyncio.gather(blocker, *asked)
    await box.close()


async def test_a_notifier_wakes_every_waiter() -> None:
    """A notification taken before it occurs is not missed, and a wait ends at its timeout."""
    notifier = Notifier()
    notification = notifier.next_notification()
    notifier.notify()
    await notification.wait(0.01)
    waiting = [asyncio.create_task(notifier.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    notifier.notify()
    await asyncio.gather(*waiting)
    await notifier.wait(0.001)
