"""The mailbox: one job at a time, in order, bounded, never cut off, gone with its caller."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from ebbtide.errors import Deadline, Exhausted, Unavailable
from ebbtide.fleet.mailbox import Mailbox
from ebbtide.fleet.pulse import Pulse


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as made:
        yield made


async def test_jobs_run_one_at_a_time_in_order(pool: ThreadPoolExecutor) -> None:
    """However many threads there are, jobs of one agent never overlap."""
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


async def test_an_error_reaches_who_asked_and_the_next_job_runs(pool: ThreadPoolExecutor) -> None:
    """A job that raises harms nobody else."""
    box = Mailbox(pool, size=10)
    with pytest.raises(ZeroDivisionError):
        await box.run(lambda: 1 // 0)
    assert await box.run(lambda: 7) == 7
    await box.close()


async def test_a_full_box_refuses(pool: ThreadPoolExecutor) -> None:
    """Beyond its size a job is AGENT_BUSY at once, and what waits still runs."""
    box, gate = Mailbox(pool, size=2), threading.Event()
    first = asyncio.create_task(box.run(gate.wait))
    await asyncio.sleep(0.02)
    waiting = [asyncio.create_task(box.run(lambda: 1)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Exhausted) as caught:
        await box.run(lambda: 2)
    assert caught.value.reason == "AGENT_BUSY"
    gate.set()
    assert await asyncio.gather(first, *waiting) == [True, 1, 1]
    await box.close()


async def test_a_turn_that_does_not_come_in_time_is_given_up(pool: ThreadPoolExecutor) -> None:
    """REQUEST_TIMED_OUT, and the job never runs; one that has begun is waited for."""
    box, gate, ran = Mailbox(pool, size=5), threading.Event(), []
    first = asyncio.create_task(box.run(gate.wait, timeout_s=0.01))
    await asyncio.sleep(0.005)
    with pytest.raises(Deadline) as caught:
        await box.run(lambda: ran.append(1), timeout_s=0.02)
    assert caught.value.reason == "REQUEST_TIMED_OUT"
    gate.set()
    assert await first is True
    await box.close()
    assert ran == []


async def test_a_caller_that_goes_away_takes_its_waiting_job_along(pool: ThreadPoolExecutor) -> None:
    """Cancelled before it has begun, a job does not run; a begun one finishes."""
    box, gate, ran = Mailbox(pool, size=5), threading.Event(), []

    def begun() -> None:
        gate.wait()
        ran.append("begun")

    first = asyncio.create_task(box.run(begun))
    await asyncio.sleep(0.02)
    second = asyncio.create_task(box.run(lambda: ran.append("waiting")))
    await asyncio.sleep(0)
    for task in (first, second):
        task.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    gate.set()
    await box.close()
    assert ran == ["begun"]


async def test_a_closed_box_finishes_what_waits_and_takes_no_more(pool: ThreadPoolExecutor) -> None:
    """close ends after the last waiting job; later ones are AGENT_CLOSING."""
    box = Mailbox(pool, size=5)
    waiting = [asyncio.create_task(box.run(lambda n=n: n)) for n in range(3)]  # type: ignore[misc]
    await asyncio.sleep(0)
    await box.close()
    assert await asyncio.gather(*waiting) == [0, 1, 2]
    with pytest.raises(Unavailable) as caught:
        await box.run(lambda: 1)
    assert caught.value.reason == "AGENT_CLOSING"


async def test_a_pulse_wakes_everyone_and_misses_nobody() -> None:
    """Whoever took the next beat before it came is woken, whoever waits too long goes on."""
    pulse = Pulse()
    beat = pulse.next_beat()
    pulse.beat()
    await beat.wait(0.01)
    waiting = [asyncio.create_task(pulse.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    pulse.beat()
    await asyncio.gather(*waiting)
    await pulse.wait(0.001)
