"""Agent quotas: how many agents may exist within the reach of a key. Checked when an agent is created.

Counting reads every agent's directory. It is therefore done only for keys that have a quota, only for new agents, and
outside the event loop. Agents that are being created count too, in the order of their requests, so that concurrent
requests cannot exceed the quota.

In a cluster the agents of the other nodes that answer count too. Nodes that create agents of one key at the same time
may exceed its quota by one each.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ebbtide.errors import Exhausted
from ebbtide.ids import AgentId
from ebbtide.store.directory.agent_meta import AgentMeta
from ebbtide.store.directory.data_directory import DataDirectory, directory_name


@dataclass(frozen=True, slots=True)
class AgentQuota:
    """At most `most` agents among those whose ids `covers` accepts."""

    covers: Callable[[str], bool]
    most: int
    elsewhere: Callable[[int], Awaitable[set[str]]] | None = None
    """Returns the directories of the caller's agents on other nodes, at most a number for each; None without others."""


def agents_within(
    data: DataDirectory, covers: Callable[[str], bool], after: str = ""
) -> Iterator[tuple[str, AgentMeta]]:
    """Yield the directories and metadata of the covered agents, in order.

    The metadata of an agent is not read if its directory name alone shows that it is not covered.
    """
    for directory in data.directories(after):
        if not directory.startswith("~") and not covers(directory):
            continue
        meta = data.meta(directory)
        # Ignore a copy that was made by hand under another name.
        is_own = meta is not None and directory_name(AgentId(meta.agent_id)) == directory
        if meta is not None and is_own and covers(meta.agent_id):
            yield directory, meta


class PendingCreations:
    """Agents that are being created, in the order of their requests."""

    def __init__(self) -> None:
        self._pending: dict[AgentId, None] = {}

    @contextmanager
    def creating(self, agent_id: AgentId) -> Iterator[list[AgentId]]:
        """Count an agent as pending within the block; yield those that were pending before it."""
        before = list(self._pending)
        self._pending[agent_id] = None
        try:
            yield before
        finally:
            del self._pending[agent_id]


def check_agent_quota(
    quota: AgentQuota, data: DataDirectory, pending: Iterable[AgentId], elsewhere: Iterable[str] = ()
) -> None:
    """Raise QUOTA_REACHED if no further agent may be created. Blocks.

    `elsewhere` are directories of agents of other nodes, of which this one may have copies.
    """
    present = {directory for directory, _ in agents_within(data, quota.covers)} | {*elsewhere}
    present |= {directory_name(agent_id) for agent_id in pending if quota.covers(agent_id)}
    if len(present) >= quota.most:
        raise Exhausted(
            f"the key has {len(present)} agents and its limit is {quota.most}; nothing was stored",
            reason="QUOTA_REACHED",
            metadata={"quota": "agents", "limit": str(quota.most), "held": str(len(present))},
        )
