"""The ring is fair and contains each key once; the scheduler never loses a turn.

`Walk` drives a `Ring` with any number of concurrent turns and checks the order at every moment. The second half runs a
real `Scheduler` on an event loop, with slices that end when the test says so.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ebbtide.fleet.runtime.scheduler import Ring, Scheduler
from tests.property import histories

keys = st.sampled_from("abcdef")


class Walk(RuleBasedStateMachine):
    """In any order of join, leave, take and put_back no key is lost, duplicated or overtaken."""

    def __init__(self) -> None:
        super().__init__()
        self.ring = Ring()
        self.owed: set[str] = set()
        """Keys that must be in the ring or return to it after their turn."""
        self.left: set[str] = set()
        """Keys that left during their current turn."""
        self.ahead: dict[str, set[str]] = {}
        """For each waiting key, the keys that were ahead of it and have had no turn since."""

    def came(self, key: str) -> None:
        self.owed.add(key)
        self.ahead.setdefault(key, set(self.ring.waiting) - {key})

    def gone(self, key: str) -> None:
        self.ahead.pop(key, None)
        for others in self.ahead.values():
            others.discard(key)

    @rule(key=keys)
    def join(self, key: str) -> None:
        running = key in self.ring.running
        self.ring.join(key)
        self.owed.add(key)
        if not running:
            self.came(key)

    @rule(key=keys)
    def leave(self, key: str) -> None:
        self.ring.leave(key)
        self.left |= {key} & set(self.ring.running)
        self.owed.discard(key)
        self.gone(key)

    @rule()
    def take(self) -> None:
        waiting = self.ring.waiting
        key = self.ring.take()
        assert key == (waiting[0] if waiting else None)
        if key is not None:
            assert self.ahead[key] == set(), "nobody who waited longer is passed over"
            self.gone(key)
            self.owed.discard(key)

    @precondition(lambda self: self.ring.running)
    @rule(place=st.integers(0, 5), owes_more=st.booleans())
    def put_back(self, place: int, owes_more: bool) -> None:
        """End a turn; a key that left meanwhile owes no more (the other case is tested below)."""
        running = sorted(self.ring.running)
        key = running[place % len(running)]
        asked_again = key in self.owed
        owes_more = owes_more and (asked_again or key not in self.left)
        self.left.discard(key)
        self.ring.put_back(key, owes_more=owes_more)
        assert key not in self.ring.running
        assert (key in self.ring.waiting) == (owes_more or asked_again)
        if key in self.ring.waiting:
            assert self.ring.waiting[-1] == key, "to the back"
            self.came(key)

    @invariant()
    def nobody_is_lost_or_doubled(self) -> None:
        waiting, running = self.ring.waiting, self.ring.running
        assert max(Counter(waiting).values(), default=1) == 1
        assert not set(waiting) & set(running)
        assert self.owed <= set(waiting) | set(running)
        assert set(waiting) <= self.owed


TestWalk = Walk.TestCase
TestWalk.settings = histories.examples(200, steps=40)


@given(
    steady=st.lists(keys, min_size=1, unique=True),
    visitors=st.lists(st.tuples(st.sampled_from("uvw"), st.booleans()), max_size=40),
    turns=st.integers(1, 40),
)
def test_between_two_turns_every_other_agent_has_one(
    steady: list[str], visitors: list[tuple[str, bool]], turns: int
) -> None:
    """Between two turns of an agent every other agent that waited throughout gets exactly one."""
    ring = Ring()
    for key in steady:
        ring.join(key)
    order: list[str] = []
    coming = iter(visitors)
    for _ in range(turns):
        key = ring.take()
        order.append(key)
        visitor, joins = next(coming, ("u", False))
        if joins:
            ring.join(visitor)
        else:
            ring.leave(visitor)
        ring.put_back(key, owes_more=key in steady)
    for key in steady:
        own = [place for place, name in enumerate(order) if name == key]
        for start, end in pairwise(own):
            between = Counter(order[start + 1 : end])
            assert all(between[other] == 1 for other in steady if other != key)


@given(joins=st.booleans(), owes_more=st.booleans())
def test_a_key_that_left_gets_no_further_turn(joins: bool, owes_more: bool) -> None:
    """A key that leaves during its turn gets no further one unless it joins again, whatever the turn returns."""
    ring = Ring()
    ring.join("a")
    ring.take()
    ring.leave("a")
    if joins:
        ring.join("a")
    ring.put_back("a", owes_more=owes_more)
    assert ring.waiting == (("a",) if joins else ())


class Slices:
    """Slices controlled by the test, with a record of what ran, and what ran concurrently."""

    def __init__(self) -> None:
        self.ends: dict[str, asyncio.Future[bool]] = {}
        self.begun: Counter[str] = Counter()
        self.most_at_once = 0

    async def run(self, key: str) -> bool:
        assert key not in self.ends, "one slice of an agent at a time"
        self.begun[key] += 1
        self.ends[key] = asyncio.get_running_loop().create_future()
        self.most_at_once = max(self.most_at_once, len(self.ends))
        try:
            return await self.ends[key]
        finally:
            del self.ends[key]

    def end(self, key: str, outcome: str) -> None:
        future = self.ends.get(key)
        if future is None or future.done():
            return
        if outcome == "failed":
            future.set_exception(RuntimeError("a fault of ours"))
        else:
            future.set_result(outcome == "more")


async def settle() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


actions = st.one_of(
    st.tuples(st.sampled_from(["ask", "withdraw", "withdraw and go on"]), keys),
    st.tuples(st.sampled_from(["more", "done", "failed"]), keys),
    st.tuples(st.just("pause"), keys),
)


@histories.examples(250)
@given(concurrency=st.integers(1, 3), story=st.lists(actions, max_size=30))
@example(concurrency=1, story=[("ask", "a"), ("withdraw", "a")])
@example(concurrency=1, story=[("ask", "a"), ("pause", "a"), ("withdraw and go on", "a"), ("ask", "b")])
def test_the_scheduler_serves_every_queued_agent(concurrency: int, story: list[tuple[str, str]]) -> None:
    """After any sequence of enqueuing, removing and failing slices the scheduler still serves every queued agent."""

    async def play() -> None:
        slices = Slices()
        scheduler = Scheduler(slices.run, concurrency=concurrency)
        scheduler.start()
        going: list[asyncio.Task[None]] = []
        for what, key in story:
            if what == "ask":
                scheduler.enqueue(key)
            elif what == "withdraw":
                await scheduler.remove(key)
                assert key not in slices.ends, "a slice in progress has ended"
                assert key not in (*scheduler.ring.waiting, *scheduler.ring.running)
            elif what == "withdraw and go on":
                going.append(asyncio.create_task(scheduler.remove(key)))
                await asyncio.sleep(0)
            elif what == "pause":
                await asyncio.sleep(0)
            else:
                slices.end(key, what)
        await asyncio.gather(*going)
        await settle()
        scheduler.enqueue("last")
        for _ in range(20):
            await settle()
            for key in list(slices.ends):
                slices.end(key, "done")
        await settle()
        assert slices.begun["last"] == 1, "whoever asks is served"
        assert scheduler.ring.waiting == () and scheduler.ring.running == ()
        assert slices.most_at_once <= concurrency
        await scheduler.stop()

    asyncio.run(asyncio.wait_for(play(), 10))
