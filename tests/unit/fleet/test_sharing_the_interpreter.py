"""Which jobs run at the same time: one query, short jobs of other agents, and background work that yields."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ebbtide.clock import SystemClock
from ebbtide.fleet.runtime.agent import SHORT_RECALL_S, Agent
from ebbtide.fleet.runtime.shared import AWAITED_STEP_S, STEP_BUDGET_S, Budget
from ebbtide.priority import RequestPriority
from ebbtide.verbs.service import Service
from tests.support.in_process import ask, service_in, settle, tell
from tests.support.looking import opened_agent

pytestmark = pytest.mark.timeout(60)


class Clock(SystemClock):
    """A clock that the test sets."""

    now_s = 0.0

    def monotonic_s(self) -> float:
        return self.now_s


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """A service with one job thread and three agents that have answered a query."""
    async with service_in(tmp_path, fleet={"job_threads": 1}) as service:
        for name in ("ann", "bob", "cid"):
            await tell(service, name, "The kettle is blue.")
            await settle(service, name)
            await ask(service, name, query="Which colour has the kettle?")
        yield service


async def running_query(agent: Agent, gate: threading.Event) -> asyncio.Task[bool]:
    """Start a query that runs until the gate opens."""
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def job() -> bool:
        loop.call_soon_threadsafe(begun.set)
        return gate.wait(30)

    query = asyncio.create_task(agent.query(job))
    await begun.wait()
    return query


async def test_short_jobs_run_before_a_query_that_waits(service: Service) -> None:
    """While a query runs, other queries wait for it, and short requests of other agents do not."""
    gate = threading.Event()
    long = await running_query(opened_agent(service, "ann"), gate)
    waiting = asyncio.create_task(ask(service, "bob", query="Which colour has the kettle?"))
    assert "blue" in (await ask(service, "cid", "kettle", patience_ms=0)).text
    await tell(service, "cid", "The cup is red.")
    assert not waiting.done()
    gate.set()
    assert await long
    assert "blue" in (await waiting).text


async def test_a_query_that_loads_its_archive_delays_no_other(service: Service) -> None:
    """The first query of an agent loads its archive, which may take long; meanwhile other queries run."""
    gate, agent = threading.Event(), opened_agent(service, "ann")
    agent.workspace.open_archive.discard()
    first = await running_query(agent, gate)
    assert "blue" in (await ask(service, "bob", query="Which colour has the kettle?")).text
    gate.set()
    assert await first


async def test_failed_and_cancelled_queries_let_the_next_one_run(service: Service) -> None:
    """A query that fails, and one whose caller disconnects while it waits or runs, block no other query."""
    ann, bob = opened_agent(service, "ann"), opened_agent(service, "bob")
    with pytest.raises(ZeroDivisionError):
        await ann.query(lambda: 1 // 0)
    gate, ran = threading.Event(), list[str]()
    running = await running_query(ann, gate)
    waiting = asyncio.create_task(bob.query(lambda: ran.append("dropped")))
    await asyncio.sleep(0.05)
    running.cancel()
    waiting.cancel()
    await asyncio.gather(running, waiting, return_exceptions=True)
    gate.set()
    assert "blue" in (await ask(service, "cid", query="Which colour has the kettle?")).text
    assert ran == []
    assert not service.fleet.shared.priority.is_request_running


async def test_waiting_background_jobs_occupy_no_thread_of_requests(service: Service) -> None:
    """Background jobs that pause or wait for the disk delay no request of another agent."""
    gate, ann = threading.Event(), opened_agent(service, "ann")
    blocked = [
        asyncio.create_task(opened_agent(service, name).mailbox.run_in_background(gate.wait))
        for name in ("ann", "bob")
    ]
    try:
        await asyncio.sleep(0)
        assert not ann.mailbox.is_idle
        assert "blue" in (await ask(service, "cid", query="Which colour has the kettle?")).text
        await tell(service, "cid", "The cup is red.")
    finally:
        gate.set()
    assert all(await asyncio.gather(*blocked))


async def test_a_long_recall_delays_no_short_one(service: Service) -> None:
    """A recall that is not small, and one of an agent whose last recall was long, leave the thread of short recalls."""
    gate, ann = threading.Event(), opened_agent(service, "ann")
    begun = threading.Event()

    def job() -> bool:
        begun.set()
        return gate.wait(30)

    def compute() -> None:
        end_s = time.thread_time() + 2 * SHORT_RECALL_S
        while time.thread_time() < end_s:
            pass

    await ann.recall(compute, is_small=True)
    for is_small in (False, True):
        long = asyncio.create_task(ann.recall(job, is_small=is_small))
        try:
            await asyncio.to_thread(begun.wait, 30)
            assert "blue" in (await ask(service, "cid", "kettle", patience_ms=0)).text
        finally:
            gate.set()
        assert await long
        gate.clear()
        begun.clear()


async def test_a_request_counts_while_it_waits(service: Service) -> None:
    """Background work yields to a request from its arrival, not only while its job runs, and a step is no request."""
    priority, gate, ann = service.fleet.shared.priority, threading.Event(), opened_agent(service, "ann")
    step = asyncio.create_task(ann.run_step(lambda: gate.wait(30)))
    await asyncio.sleep(0)
    assert not priority.is_request_running
    request = asyncio.create_task(ann.run(lambda: priority.is_request_running))
    await asyncio.sleep(0)
    assert priority.is_request_running
    gate.set()
    assert await step and await request
    assert not priority.is_request_running


def test_a_step_ends_soon_when_a_request_waits_for_its_agent() -> None:
    """A step takes its full time, but only AWAITED_STEP_S once a request waits. The first check never ends it."""
    clock, is_awaited = Clock(), False
    budget = Budget(clock, RequestPriority(), lambda: is_awaited)
    assert not budget()
    clock.now_s += AWAITED_STEP_S * 2
    assert not budget()
    is_awaited = True
    assert budget()
    is_awaited = False
    clock.now_s += STEP_BUDGET_S
    assert budget()
    is_awaited = True
    assert not Budget(clock, RequestPriority(), lambda: is_awaited)()
