"""The footprint: how much memory open agents hold together, and that it stays within `max_resident_bytes`.

Agents grow while they are open, so this is seen to all the time, not at openings only. Beyond the bound idle
agents are closed, the least recently used first. Work is never refused for it: where everybody is at work, or
one agent alone is too large, the bound is passed, and that is logged. The agent that was used last stays,
however large: the next question is likely for it, and opening it again would take longer the larger it is.

What is counted is an estimate: what an agent's arrays hold, by their own count, with the gaps that they leave in
the heap, and a fixed sum for all else that comes with being open. Pages of LMDB's files are not in it: they
belong to the operating system, which takes them back when it needs them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Executor
from math import inf

from ebbtide.fleet.runtime.agent import Agent
from ebbtide.heap import trim_heap
from ebbtide.ids import AgentId
from ebbtide.telemetry import get_log

OPEN_AGENT_BYTES = 96 << 10
"""An open agent without a memory: its environment, tables, tasks, mailbox. Measured: 75 to 110 KiB."""

GAPS = 4 / 3
"""Bytes of the heap for each byte of an array. Measured: 1.1 for agents that stay, 1.4 for those that come and go."""

RECHECK_S = 0.5
"""Pause before the next look when agents hold too much and none can be closed."""

LOG_INTERVAL_S = 600.0
"""A bound that is passed is logged at most this often."""

TRIM_FROM_BYTES = 32 << 20
"""When closed agents held that much since the last time, the heap gives back what is free."""


def least_recently_used(agents: Iterable[Agent]) -> Agent | None:
    """The idle agent that nobody has used for longest."""
    idle = (agent for agent in agents if agent.is_idle)
    return min(idle, key=_last_use_s, default=None)


def _last_use_s(agent: Agent) -> float:
    return inf if agent.users else agent.last_used_s


class MemoryBudget:
    """Bytes by agent and their sum; closes agents of the fleet by the fleet's own `close`."""

    def __init__(
        self,
        agents: Mapping[AgentId, Agent],
        close: Callable[[AgentId], Awaitable[object]],
        pool: Executor,
        most_bytes: int,
    ) -> None:
        self.most_bytes = most_bytes
        self.held_bytes = 0
        self._agents = agents
        self._close = close
        self._pool = pool
        self._by_agent: dict[AgentId, int] = {}
        self._closed_bytes = 0
        self._recheck = asyncio.Event()
        self._told_s = -inf
        self._log = get_log("fleet")

    @property
    def is_exceeded(self) -> bool:
        """Whether agents hold more than they may."""
        return self.held_bytes > self.most_bytes

    def note(self, agent: Agent) -> None:
        """Take down what an agent holds by now; wherever that may have changed, or it may have become idle."""
        if self._agents.get(agent.id) is not agent:
            return
        held = OPEN_AGENT_BYTES + round(GAPS * agent.measure())
        self.held_bytes += held - self._by_agent.get(agent.id, 0)
        self._by_agent[agent.id] = held
        if self.is_exceeded:
            self._recheck.set()

    def drop(self, agent_id: AgentId) -> None:
        """Count an agent no longer, since it is being closed."""
        held = self._by_agent.pop(agent_id, 0)
        self.held_bytes -= held
        self._closed_bytes += held

    def closed(self) -> None:
        """An agent is closed; what it held is free now."""
        if self._closed_bytes >= TRIM_FROM_BYTES:
            self._recheck.set()

    async def enforce_limit(self) -> None:
        """Close idle agents whenever agents hold too much, and give back what closed ones held; for ever."""
        while True:
            await self._recheck.wait()
            self._recheck.clear()
            await self.close_idle(keep_latest=True)
            self._log_excess()
            if self._closed_bytes >= TRIM_FROM_BYTES:
                self._closed_bytes = 0
                await asyncio.get_running_loop().run_in_executor(self._pool, trim_heap)
            if self.is_exceeded and len(self._agents) > 1:
                await asyncio.sleep(RECHECK_S)
                self._recheck.set()

    async def close_idle(self, *, keep_latest: bool = False) -> None:
        """Close idle agents until all that is held is within the bound, or none is left to close."""
        while self.is_exceeded:
            idle = least_recently_used(self._agents.values())
            if idle is None or (keep_latest and idle is max(self._agents.values(), key=_last_use_s)):
                return
            agent_id = idle.id
            del idle  # or its memory would be held until the next look
            try:
                await self._close(agent_id)
            except Exception as error:
                self._log.error("agent not closed in order", agent_id=agent_id, exc_info=error)

    def _log_excess(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if self.is_exceeded and now_s >= self._told_s + LOG_INTERVAL_S:
            self._told_s = now_s
            self._log.warning(
                "open agents hold more memory than they may",
                held_bytes=self.held_bytes,
                max_resident_bytes=self.most_bytes,
                open_agents=len(self._agents),
            )
