"""Concurrent callers of one agent: neighbouring requests share one commit, and each gets its own outcome."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NoReturn

import pytest

from ebbtide.errors import Conflict, Unavailable
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.verbs.remember import Remembered
from ebbtide.verbs.service import Service
from tests.support import looking
from tests.support.in_process import ask, service_in, settle, tell
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

FOR_EVER = 3600.0


def commits_of(agent: Agent) -> int:
    """Return the number of commits of the agent's store, as LMDB counts them."""
    count: int = agent.workspace.store._environment.info()["last_txnid"]  # type: ignore[attr-defined]
    return count


@contextlib.asynccontextmanager
async def taken(agent: Agent) -> AsyncIterator[None]:
    """Occupy the agent's mailbox during the block, so that further requests queue."""
    gate = threading.Event()
    blocker = asyncio.create_task(agent.run(lambda: gate.wait(20)))
    await eventually(lambda: not agent.mailbox.is_idle and agent.mailbox.waiting_count == 0)
    try:
        yield
    finally:
        gate.set()
        await blocker


async def busy_agent(service: Service, model: ScriptedModel) -> Agent:
    """Run a daemon whose agent's digest hangs in the model, so that only the test's requests reach its store."""
    model.always["segment"] = FOR_EVER
    await tell(service, "ann", "Fact number 0.")
    agent = looking.opened_agent(service, "ann")
    await eventually(lambda: model.running == 1 and agent.mailbox.is_idle)
    return agent


async def queued(agent: Agent, *requests: asyncio.Task[Remembered]) -> None:
    """Wait until all requests are in the mailbox."""
    await eventually(lambda: agent.mailbox.waiting_count == len(requests))


async def test_concurrent_batches_share_one_commit(tmp_path: Path) -> None:
    """Each request is acknowledged with a batch of its own, in order, in one commit for all."""
    model = ScriptedModel()
    async with service_in(tmp_path / "data", model) as service:
        agent = await busy_agent(service, model)
        before = commits_of(agent)
        async with taken(agent):
            requests = [asyncio.create_task(tell(service, "ann", f"Fact number {n}.")) for n in range(1, 9)]
            await queued(agent, *requests)
        answers = await asyncio.gather(*requests)
        assert commits_of(agent) - before == 1
        assert [a.batch_id for a in answers] == [f"b{n}" for n in range(2, 10)]
        assert [a.pending_batches for a in answers] == list(range(2, 10))
    async with service_in(tmp_path / "data", ScriptedModel()) as service:
        await settle(service, "ann")
        found = [node.content for node in await looking.nodes(service, "ann")]
        assert found == [f"Fact number {n}." for n in range(9)]


async def test_one_caller_alone_has_its_own_commit(tmp_path: Path) -> None:
    """Sequential requests are committed one by one, without waiting for others."""
    model = ScriptedModel()
    async with service_in(tmp_path / "data", model) as service:
        agent = await busy_agent(service, model)
        before = commits_of(agent)
        for number in range(1, 4):
            await tell(service, "ann", f"Fact number {number}.")
        assert commits_of(agent) - before == 3


async def test_recall_between_two_batches_sees_what_came_before_it(tmp_path: Path) -> None:
    """A recall queued between two batches sees the first and not the second."""
    model = ScriptedModel()
    async with service_in(tmp_path / "data", model) as service:
        agent = await busy_agent(service, model)
        async with taken(agent):
            first = asyncio.create_task(tell(service, "ann", "Fact number 1."))
            await queued(agent, first)
            found = asyncio.create_task(ask(service, "ann", patience_ms=0))
            await eventually(lambda: agent.mailbox.waiting_count == 2)
            second = asyncio.create_task(tell(service, "ann", "Fact number 2."))
            await eventually(lambda: agent.mailbox.waiting_count == 3)
        assert (await first).pending_batches == 2
        assert (await found).pending_batches == 2
        assert (await second).pending_batches == 3


async def test_errors_in_a_group_reach_their_own_callers(tmp_path: Path) -> None:
    """A key reused for another body is refused, a replay succeeds, and the neighbours are stored."""
    model = ScriptedModel()
    async with service_in(tmp_path / "data", model) as service:
        agent = await busy_agent(service, model)
        async with taken(agent):
            requests = [
                asyncio.create_task(tell(service, "ann", "Fact number 1.", idempotency_key="once")),
                asyncio.create_task(tell(service, "ann", "Fact number 1.", idempotency_key="once")),
                asyncio.create_task(tell(service, "ann", "Another body.", idempotency_key="once")),
                asyncio.create_task(tell(service, "ann", "Fact number 2.")),
            ]
            await queued(agent, *requests)
        first, replay, reused, last = await asyncio.gather(*requests, return_exceptions=True)
        assert isinstance(reused, Conflict)
        assert reused.reason == "IDEMPOTENCY_KEY_REUSED"
        assert [a.batch_id for a in (first, replay, last) if isinstance(a, Remembered)] == ["b2", "b2", "b3"]
        assert (await looking.info(service, "ann")).pending_batches == 3


async def test_cancelled_request_removes_only_its_own_batch(tmp_path: Path) -> None:
    """A cancelled request in a group is not stored; the others are."""
    model = ScriptedModel()
    async with service_in(tmp_path / "data", model) as service:
        agent = await busy_agent(service, model)
        async with taken(agent):
            requests = [asyncio.create_task(tell(service, "ann", f"Fact number {n}.")) for n in range(1, 4)]
            await queued(agent, *requests)
            requests[1].cancel()
            await asyncio.gather(requests[1], return_exceptions=True)
        assert [(await requests[i]).batch_id for i in (0, 2)] == ["b2", "b3"]
        assert [b.batch_id for b in await looking.batches(service, "ann")] == ["b1", "b2", "b3"]


async def test_failed_commit_is_reported_to_all_its_callers(tmp_path: Path) -> None:
    """If a commit fails, every caller in it gets the error, nothing is stored, and the next request succeeds."""
    model = ScriptedModel()
    async with service_in(tmp_path / "data", model) as service:
        agent = await busy_agent(service, model)
        async with taken(agent):
            # Removed during the job: an error of the whole commit.
            agent.workspace.store.close()
            requests = [asyncio.create_task(tell(service, "ann", f"Fact number {n}.")) for n in range(1, 4)]
            await queued(agent, *requests)
        outcomes = await asyncio.gather(*requests, return_exceptions=True)
        assert {getattr(outcome, "reason", "") for outcome in outcomes} == {"AGENT_CLOSING"}
        with pytest.raises(Unavailable):
            await tell(service, "ann", "Fact number 4.")
    async with service_in(tmp_path / "data", ScriptedModel()) as service:
        assert [b.batch_id for b in await looking.batches(service, "ann")] == ["b1"]


async def test_stored_batch_is_acknowledged_despite_later_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure after a batch is stored neither fails the request nor leaves the batch undigested."""
    async with service_in(tmp_path / "data", ScriptedModel()) as service:
        await tell(service, "ann", "Fact number 0.")
        await settle(service, "ann")
        agent = looking.opened_agent(service, "ann")
        await eventually(lambda: agent.is_idle)

        def fail() -> NoReturn:
            monkeypatch.undo()
            raise Unavailable("no disk", reason="STORE_UNAVAILABLE")

        monkeypatch.setattr(agent.workspace, "counts", fail)
        assert (await tell(service, "ann", "Fact number 1.")).batch_id == "b2"
        assert (await settle(service, "ann")).digested
        await eventually(lambda: agent.is_idle)
