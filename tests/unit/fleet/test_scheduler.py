"""The scheduler's mechanism: turns begin, end, fail and are cancelled without affecting others."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

import pytest

from ebbtide.fleet.runtime.scheduler import Scheduler


class Slices:
    """Slices under the control of a test."""

    def __init__(self) -> None:
        self.ran: list[Hashable] = []
        self.running = 0
        self.most_running = 0
        self.gate = asyncio.Event()
        self.fail: set[Hashable] = set()

    async def run(self, key: Hashable) -> bool:
        self.ran.append(key)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            if key in self.fail:
                raise ZeroDivisionError
            await self.gate.wait()
        finally:
            self.running -= 1
        return False


@pytest.fixture
async def slices() -> Slices:
    return Slices()


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_turn_cut_off_before_it_began_is_given_to_the_next(slices: Slices) -> None:
    """An agent that is closed between the start of its turn and its first step does not block the ring."""
    scheduler = Scheduler(slices.run, concurrency=1)
    scheduler.start()
    await settled()
    scheduler.enqueue("a")
    await asyncio.sleep(0)  # the turn has started, its task has not run yet
    await scheduler.remove("a")
    slices.gate.set()
    scheduler.enqueue("b")
    await settled()
    assert slices.ran[-1] == "b"
    assert scheduler.ring.running == ()
    await scheduler.stop()


async def test_a_failing_slice_does_not_block_others(slices: Slices) -> None:
    """A failing slice is counted, and the next agent gets its turn."""
    slices.fail.add("a")
    slices.gate.set()
    scheduler = Scheduler(slices.run, concurrency=1)
    scheduler.start()
    for key in "ab":
        scheduler.enqueue(key)
    await settled()
    assert slices.ran == ["a", "b"]
    assert (scheduler.tally.slices, scheduler.tally.failed_slices) == (2, 1)
    await scheduler.stop()


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_no_more_slices_at_a_time_than_allowed(slices: Slices, concurrency: int) -> None:
    """`compression_concurrency` bounds the slices that run at a time."""
    scheduler = Scheduler(slices.run, concurrency=concurrency)
    scheduler.start()
    for key in range(6):
        scheduler.enqueue(key)
    await settled()
    assert slices.running == concurrency
    slices.gate.set()
    await settled()
    assert sorted(map(int, map(str, slices.ran))) == list(range(6))
    assert slices.most_running == concurrency
    await scheduler.stop()


async def test_withdrawing_and_stopping_end_what_runs(slices: Slices) -> None:
    """After `remove` and after `stop` no slice of the agent, or of any agent, runs; both are idempotent."""
    scheduler = Scheduler(slices.run, concurrency=2)
    scheduler.start()
    for key in "abc":
        scheduler.enqueue(key)
    await settled()
    await scheduler.remove("a")
    await settled()
    assert scheduler.ring.running == ("b", "c") or set(scheduler.ring.running) == {"b", "c"}
    await scheduler.stop()
    await scheduler.stop()
    assert slices.running == 0
    assert scheduler.ring.running == ()
