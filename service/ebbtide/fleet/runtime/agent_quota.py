"""Allowances: how many agents may exist within somebody's reach, looked at when one more is to come into being.

Counting takes a look at every agent's directory, so it is done only for who has an allowance, only when an agent is
new, and beside the event loop. Agents that are coming into being at that moment count too, those that came first: two
requests at once get no further than one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ebbtide.errors import Exhausted
from ebbtide.ids import AgentId
from ebbtide.store.directory.agent_meta import AgentMeta
from ebbtide.store.directory.data_directory import DataDirectory, directory_name


@dataclass(frozen=True, slots=True)
class AgentQuota:
    """At most so many agents of those that are covered."""

    covers: Callable[[str], bool]
    most: int


def agents_within(
    data: DataDirectory, covers: Callable[[str], bool], after: str = ""
) -> Iterator[tuple[str, AgentMeta]]:
    """Directories of agents whose ids are covered, in order, and what is told of them.

    An agent that is not covered is not even read where its directory is named like it.
    """
    for directory in data.directories(after):
        if not directory.startswith("~") and not covers(directory):
            continue
        meta = data.meta(directory)
        # A copy made by hand under another name is nobody's.
        is_own = meta is not None and directory_name(AgentId(meta.agent_id)) == directory
        if meta is not None and is_own and covers(meta.agent_id):
            yield directory, meta


class PendingCreations:
    """Agents that are coming into being, in the order they came."""

    def __init__(self) -> None:
        self._arriving: dict[AgentId, None] = {}

    @contextmanager
    def arriving(self, agent_id: AgentId) -> Iterator[list[AgentId]]:
        """Count an agent among them for the length of a block; those that came before it."""
        before = list(self._arriving)
        self._arriving[agent_id] = None
        try:
            yield before
        finally:
            del self._arriving[agent_id]


def check_agent_quota(agent_quota: AgentQuota, data: DataDirectory, arriving: Iterable[AgentId]) -> None:
    """QUOTA_REACHED when there are as many agents as there may be. Blocks."""
    present = {directory for directory, _ in agents_within(data, agent_quota.covers)}
    present |= {directory_name(agent_id) for agent_id in arriving if agent_quota.covers(agent_id)}
    if len(present) >= agent_quota.most:
        raise Exhausted(
            f"the key has {len(present)} agents and may have {agent_quota.most}; nothing was stored",
            reason="QUOTA_REACHED",
            metadata={"quota": "agents", "limit": str(agent_quota.most), "held": str(len(present))},
        )
