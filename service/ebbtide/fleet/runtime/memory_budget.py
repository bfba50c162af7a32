"""The memory budget keeps open agents within `max_resident_bytes`.

Agents grow while they are open, so the budget is enforced all the time, not only when an agent opens. Above the limit,
idle agents are closed, the least recently used first. Work is never refused: if all agents are busy, or a single agent
is too large, the limit is exceeded and that is logged. The most recently used agent stays open, because the next
request probably needs it and a large agent takes long to open.

Sizes are estimates: the sizes of an agent's arrays with a factor for heap fragmentation, and a fixed amount for
everything else. Pages of LMDB files are not counted, because the operating system reclaims them when it needs memory.
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
"""Memory of an open agent without memories: environment, tables, tasks, mailbox. Measured: 75 to 110 KiB."""

GAPS = 4 / 3
"""Heap bytes per array byte. Measured: 1.1 for agents that stay open, 1.4 for agents that open and close."""

RECHECK_S = 0.5
"""Pause before the next check when the limit is exceeded and no agent can be closed."""

LOG_INTERVAL_S = 600.0
"""An exceeded limit is logged at most this often."""

TRIM_FROM_BYTES = 32 << 20
"""Free heap memory is returned to the system when closed agents held this much."""


def least_recently_used(agents: Iterable[Agent]) -> Agent | None:
    """Return the idle agent that was used least recently; None if no agent is idle."""
    idle = (agent for agent in agents if agent.is_idle)
    return min(idle, key=_last_use_s, default=None)


def _last_use_s(agent: Agent) -> float:
    return inf if agent.users else agent.last_used_s


class MemoryBudget:
    """Counts bytes by agent and closes idle agents above the limit."""

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
        self._logged_s = -inf
        self._log = get_log("fleet")

    @property
    def is_exceeded(self) -> bool:
        """Whether open agents exceed the limit."""
        return self.held_bytes > self.most_bytes

    def note(self, agent: Agent) -> None:
        """Update the size of an agent. Call this when the size may have changed or the agent may have become idle."""
        if self._agents.get(agent.id) is not agent:
            return
        held = OPEN_AGENT_BYTES + round(GAPS * agent.measure())
        self.held_bytes += held - self._by_agent.get(agent.id, 0)
        self._by_agent[agent.id] = held
        if self.is_exceeded:
            self._recheck.set()

    def drop(self, agent_id: AgentId) -> None:
        """Stop counting an agent that is being closed."""
        held = self._by_agent.pop(agent_id, 0)
        self.held_bytes -= held
        self._closed_bytes += held

    def closed(self) -> None:
        """Note that a closed agent has released its memory."""
        if self._closed_bytes >= TRIM_FROM_BYTES:
            self._recheck.set()

    async def enforce_limit(self) -> None:
        """Close idle agents above the limit and return free memory to the system, until cancelled."""
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
        """Close idle agents until the limit is met or none is left to close."""
        while self.is_exceeded:
            idle = least_recently_used(self._agents.values())
            if idle is None or (keep_latest and idle is max(self._agents.values(), key=_last_use_s)):
                return
            agent_id = idle.id
            del idle  # release it now, or its memory stays in use until the next check
            try:
                await self._close(agent_id)
            except Exception as error:
                self._log.error("closing an agent failed", agent_id=agent_id, exc_info=error)

    def _log_excess(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if self.is_exceeded and now_s >= self._logged_s + LOG_INTERVAL_S:
            self._logged_s = now_s
            self._log.warning(
                "open agents exceed the memory limit",
                held_bytes=self.held_bytes,
                max_resident_bytes=self.most_bytes,
                open_agents=len(self._agents),
            )
