"""Long work of a request is done in steps that are background work: they rest for others, never for themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide import priority
from ebbtide.verbs.forget import ForgetRequest, forget_memories
from tests.support.in_process import service_in, settle, tell
from tests.support.looking import opened_agent

pytestmark = pytest.mark.timeout(60)


async def test_forgetting_does_not_wait_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With rests of half a minute, forgetting twenty memories would outlast the patience of this test."""
    monkeypatch.setattr(priority, "LONGEST_REST_S", 30.0)
    async with service_in(tmp_path) as service:
        await tell(
            service, "ann", *(f"The walnut number {number} fell into the grass." for number in range(20))
        )
        await settle(service, "ann")
        done = await forget_memories(service, ForgetRequest(agent_id="ann", topic="walnut"))
        assert done.counts.messages == 20


async def test_a_step_rests_while_a_request_runs_elsewhere(tmp_path: Path) -> None:
    """Whether a step counts as a request is seen by who gives way beside it: nobody has to."""
    async with service_in(tmp_path) as service:
        await tell(service, "ann", "The walnut fell.")
        await settle(service, "ann")
        agent, courteous = opened_agent(service, "ann"), service.fleet.needs.priority
        assert await agent.run(lambda: courteous.is_anybody_running)
        assert not await agent.run_step(lambda: courteous.is_anybody_running)
