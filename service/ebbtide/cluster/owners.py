"""Requests of an operator's command to the node that owns an agent, over the port of the cluster."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ebbtide.cluster.jetstream import Servers
from ebbtide.cluster.names import Names
from ebbtide.cluster.slots import slot_of
from ebbtide.cluster.status import read_nodes, read_table
from ebbtide.errors import Unavailable
from ebbtide.forwarding.errors import error_from
from ebbtide.forwarding.exchange import ROTATE_KEY, VerbHead
from ebbtide.forwarding.nodes import NodePeers, Place
from ebbtide.ids import AgentId
from ebbtide.settings import ClusterSettings
from ebbtide.store.directory.data_directory import directory_name

ATTEMPTS = 4
"""How often an owner is asked to rotate a key: agents move."""

PAUSE_S = 5.0
"""Pause between two attempts. All of them take longer than a lease."""


@dataclass(frozen=True, slots=True)
class FixedRouting:
    """Where agents and nodes are, for a process that is no node: one owner of every agent."""

    owner: str
    addresses: dict[str, Place]
    version: int = 0

    def owner_name(self, _: str) -> str:
        """Return the owner."""
        return self.owner

    def places(self) -> dict[str, Place]:
        """Return the places of the nodes, by name."""
        return self.addresses

    async def settle(self, _: str) -> None:
        """Do not wait."""

    async def catch_up(self, _: int) -> None:
        """Do not wait."""


class Owners:
    """The owners of the agents of one cluster. `secret` is that of the nodes."""

    def __init__(self, servers: Servers, names: Names, settings: ClusterSettings, secret: bytes) -> None:
        self._servers = servers
        self._names = names
        self._settings = settings
        self._secret = secret

    async def name(self, agent_id: AgentId) -> str:
        """Return the name of the node that owns an agent; empty if none does. May raise NoAnswer."""
        table, _ = await asyncio.to_thread(read_table, self._servers, self._names)
        return table.owners[slot_of(directory_name(agent_id), self._names.slot_count)]

    async def ask(self, owner: str, agent_id: AgentId, request: str, timeout_s: float) -> bytes:
        """Return the response of a node to a request for an agent. Raise its error, or AGENT_MOVING."""
        nodes = await asyncio.to_thread(read_nodes, self._servers, self._names, self._settings.lease_s, ())
        places = {node["name"]: Place(node["address"], "") for node in nodes}
        peers = NodePeers("", self._secret, FixedRouting(owner, places))
        try:
            async with asyncio.timeout(timeout_s):
                head = VerbHead(request, b"", b"", agent_id)
                result = await peers.request(peers.owner_of(agent_id), head)
        except TimeoutError:
            raise Unavailable("Its owner does not answer.", reason="AGENT_MOVING") from None
        finally:
            await peers.close()
        if result.error:
            raise error_from(result.error)
        return result.body

    async def rotate_key(self, agent_id: AgentId, timeout_s: float) -> str:
        """Let the owner of an agent encrypt it with another key. Return the fingerprint of the key.

        Raise the error of the owner. May raise NoAnswer. Repeatable: each call gives the agent another key.
        """
        for left in reversed(range(ATTEMPTS)):
            try:
                answer = await self.ask(await self.name(agent_id), agent_id, ROTATE_KEY, timeout_s)
                return answer.decode()
            except Unavailable:
                if not left:
                    raise
            await asyncio.sleep(PAUSE_S)
        raise AssertionError("the last attempt returns or raises")
