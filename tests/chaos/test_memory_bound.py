"""Open agents stay within `fleet.max_resident_bytes`: which are closed, and that no client notices."""

from __future__ import annotations

import asyncio
import gc
import re
import weakref
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ebbtide.fleet.runtime.memory_budget import OPEN_AGENT_BYTES
from ebbtide.ids import AgentId
from ebbtide.language.port import Processed
from ebbtide.telemetry import configure_log
from ebbtide.verbs.service import Service
from tests.support.in_process import ask, service_in, settle, tell
from tests.support.process import running_daemon
from tests.support.scripted_model import ScriptedModel
from tests.support.tier import IS_ALL
from tests.support.waiting import eventually

pytestmark = pytest.mark.chaos

MIB = 1 << 20


def is_open(service: Service, agent: str) -> bool:
    """Return whether the agent is open."""
    return agent in {agent.id for agent in service.fleet.open_agents}


def is_within(service: Service) -> bool:
    """Whether open agents hold no more than they may."""
    return not service.fleet.memory_budget.is_exceeded


async def test_many_agents_stay_within_the_bound(tmp_path: Path) -> None:
    """Open agents stay within the bound for any number of used agents, and recalls are equal after a close."""
    agents = [f"agent{number}" for number in range(60)]
    async with service_in(tmp_path, fleet={"max_resident_bytes": 2 * MIB}) as service:
        recalled = {}
        for agent in agents:
            await tell(service, agent, f"The kettle of {agent} is blue.", f"{agent} 住在青岛。")
            await settle(service, agent)
            recalled[agent] = (await ask(service, agent, "kettle", agent)).text
            await eventually(lambda: is_within(service))
            assert len(service.fleet.open_agents) <= 2 * MIB // OPEN_AGENT_BYTES
        assert len({*recalled.values()}) == len(agents)
        assert len(service.fleet.open_agents) > 10, "no more are closed than must be"
        assert not is_open(service, agents[0])
        for agent in agents:
            assert (await ask(service, agent, "kettle", agent)).text == recalled[agent]
        await eventually(lambda: is_within(service))
        # All of them at once: served as well, and soon within the bound again.
        await asyncio.gather(*(ask(service, agent, "kettle") for agent in agents))
        await eventually(lambda: is_within(service))


async def test_growing_agents_close_idle_ones(tmp_path: Path) -> None:
    """The least recently used idle agent is closed when another grows by a digest, without any opening."""
    async with service_in(tmp_path) as service:
        for agent in ("first", "second", "third", "growing"):
            await tell(service, agent, "The kettle is blue.")
            await settle(service, agent)
        await ask(service, "first", "kettle")
        # One that still embeds its memories is not closed.
        await eventually(lambda: all(agent.is_idle for agent in service.fleet.open_agents))
        memory_budget = service.fleet.memory_budget
        assert memory_budget.held_bytes > 4 * OPEN_AGENT_BYTES
        memory_budget.most_bytes = memory_budget.held_bytes + 5000
        others = [agent for agent in service.fleet.open_agents if agent.id != "growing"]
        by_use = [agent.id for agent in sorted(others, key=lambda one: one.last_used_s)]
        await tell(
            service, "growing", *(f"Cup {number} is red and spoon {number} green." for number in range(60))
        )
        await settle(service, "growing", timeout_ms=60_000)
        await eventually(lambda: is_within(service) and len(service.fleet.open_agents) < 4)
        remaining = [agent for agent in by_use if is_open(service, agent)]
        assert remaining and remaining == by_use[-len(remaining) :], "those used longest ago are closed"
        assert is_open(service, "growing")


async def test_agent_larger_than_the_bound_works(tmp_path: Path) -> None:
    """An agent larger than the bound is served, stays open between requests, and is closed for others."""
    configure_log("warning", "json")
    async with service_in(tmp_path, fleet={"max_resident_bytes": MIB}) as service:
        with capture_logs() as lines:
            for start in range(0, 2400, 400):
                texts = [
                    f"Cup {n} is red, cup {n} stands in cupboard {n}." for n in range(start, start + 400)
                ]
                await tell(service, "large", *texts)
            await settle(service, "large", timeout_ms=60_000)
            assert service.fleet.memory_budget.held_bytes > MIB
            found = (await ask(service, "large", depth=3)).text
            assert "cup 2399" in found
            [large] = service.fleet.open_agents
            await tell(service, "small", "The kettle is blue.")
            await settle(service, "small")
            await eventually(lambda: is_within(service))
            assert not is_open(service, "large")
            assert (await ask(service, "large", depth=3)).text == found
            assert [agent.id for agent in service.fleet.open_agents] == ["large"]
            assert service.fleet.open_agents[0] is not large
            # The bound counts open agents: a single one stays open, request after request.
            [large] = service.fleet.open_agents
            for _ in range(5):
                await ask(service, "large", "cup 7")
            assert service.fleet.open_agents == [large]
        told = [line for line in lines if line["event"].startswith("open agents exceed")]
        assert [line["log_level"] for line in told] == ["warning"], "told, but not each time"


async def test_agents_in_use_or_at_work_are_never_closed(tmp_path: Path) -> None:
    """Without an idle agent the bound is exceeded and requests are served; later the bound holds again."""
    model = ScriptedModel()
    go_on = asyncio.Event()

    async def wait() -> Processed:
        await go_on.wait()
        return await ScriptedModel().process("The spoon is green.")

    async with service_in(tmp_path, model) as service:
        for agent in ("used", "working", "idle"):
            await tell(service, agent, "The kettle is blue.")
            await settle(service, agent)
        model.always["process"] = wait
        await tell(service, "working", "The spoon is green.")
        service.fleet.memory_budget.most_bytes = 2 * OPEN_AGENT_BYTES - 1
        async with service.fleet.using(AgentId("used")) as used:
            await ask(service, "idle", "kettle", patience_ms=0)
            await eventually(lambda: not is_open(service, "idle"))
            assert not is_within(service)
            assert (await ask(service, "working", "kettle", patience_ms=0)).text
            await tell(service, "new", "The cup is red.")
            assert service.fleet.open_agents[0] is used
            assert {agent.id for agent in service.fleet.open_agents} == {"used", "working", "new"}
        await ask(service, "working", "kettle", patience_ms=0)
        # Now another agent than the one last used is idle.
        await eventually(lambda: not is_open(service, "used"))
        go_on.set()
        assert (await settle(service, "working")).digested


async def test_closed_agent_leaves_memory_at_once(tmp_path: Path) -> None:
    """A closed agent leaves memory without a garbage collection, which a large daemon runs rarely."""
    parts: dict[str, weakref.ref[object]] = {}
    async with service_in(tmp_path, memory={"extraction": "rules"}) as service:
        await tell(service, "used", "The kettle is blue. I live in Lisbon.", "我住在青岛。")
        await settle(service, "used")
        assert "kettle" in (await ask(service, "used", "kettle")).text
        assert "Lisbon" in (await ask(service, "used", query="Where do I live?")).text
        gc.disable()
        try:
            async with service.fleet.using(AgentId("used")) as agent:
                await agent.consolidate(dry_run=False)
                workspace = agent.workspace
                parts = {
                    "agent": weakref.ref(agent),
                    "workspace": weakref.ref(workspace),
                    "store": weakref.ref(workspace.store),
                    "network": weakref.ref(workspace.network),
                    "ledger": weakref.ref(workspace.ledger),
                    "archive": weakref.ref(workspace.open_archive),
                }
            del agent, workspace
            await eventually(lambda: all(agent.is_idle for agent in service.fleet.open_agents))
            await service.fleet.close(AgentId("used"))
            await eventually(lambda: not [name for name, part in parts.items() if part() is not None])
        finally:
            gc.enable()


def anonymous_bytes(process_id: int) -> int:
    """Return the anonymous memory of a process."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{process_id}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_process_memory_stays_near_the_bound(tmp_path: Path) -> None:
    """The memory of the process for many agents stays near the bound, not near their sum."""
    bound, agents = (4 * MIB, 120) if IS_ALL else (2 * MIB, 60)
    with running_daemon(tmp_path / "data", {"FLEET__MAX_RESIDENT_BYTES": bound}) as daemon:
        daemon.remember("first", "The kettle is blue.", "外婆住在青岛。")
        daemon.flush("first", vectors=True)
        # The first recall creates shared state that belongs to no agent.
        daemon.recall("first", "kettle")
        before = anonymous_bytes(daemon.process.pid)
        for number in range(agents):
            daemon.remember(f"agent{number}", "The kettle is blue.")
        for number in range(agents):
            assert "kettle" in daemon.recall(f"agent{number}", "kettle")
        grown = anonymous_bytes(daemon.process.pid) - before
        print(f"grown by {grown / MIB:.1f} MiB, bound {bound / MIB:.0f} MiB")
        assert agents * OPEN_AGENT_BYTES > 2 * bound
        # The margin allows for gaps in the heap, which hundreds of openings leave.
        assert grown < bound + 5 * MIB
