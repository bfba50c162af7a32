"""Long work of a request runs in steps that count as background work: they yield to others, never to themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide import priority
from ebbtide.fleet.runtime import shared
from ebbtide.verbs.forget import ForgetRequest, forget_memories
from tests.support.in_process import service_in, settle, tell
from tests.support.looking import opened_agent

pytestmark = pytest.mark.timeout(60)


async def test_forgetting_does_not_wait_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If its steps yielded to itself, with pauses of half a minute, forgetting twenty memories would time out."""
    monkeypatch.setattr(priority, "MIN_PAUSE_S", 30.0)
    monkeypatch.setattr(shared, "MAX_STEP_PAUSE_S", 30.0)
    async with service_in(tmp_path) as service:
        await tell(
            service, "ann", *(f"The walnut number {number} fell into the grass." for number in range(20))
        )
        await settle(service, "ann")
        done = await forget_memories(service, ForgetRequest(agent_id="ann", topic="walnut"))
        assert done.counts.messages == 20


async def test_a_step_rests_while_a_request_runs_elsewhere(tmp_path: Path) -> None:
    """A step does not count as a running request: background work next to it does not pause."""
    async with service_in(tmp_path) as service:
        await tell(service, "ann", "The walnut fell.")
        await settle(service, "ann")
        agent, courteous = opened_agent(service, "ann"), service.fleet.shared.priority
        assert await agent.run(lambda: courteous.is_request_running)
        assert not await agent.run_step(lambda: courteous.is_request_running)
