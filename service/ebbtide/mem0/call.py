"""A call of a client of mem0: its request, and what was read of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ebbtide.access.grants import CALLER
from ebbtide.verbs.calling import call_operation
from ebbtide.verbs.service import Service

PATIENCE_MS = 500
"""How long a search waits for what was added just before."""

FLUSH_MS = 2_000
"""How long a listing, and a change of a message that is not digested, wait for the digest."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request of a client."""

    service: Service
    parts: Sequence[str]
    """The variable parts of the path."""
    query: Sequence[tuple[str, str]]
    body: bytes
    address: str
    """The URL without its query."""

    async def perform(self, agent_id: str | None, name: str, /, **fields: Any) -> Any:
        """Perform an operation, if the caller may. Return its response."""
        return await call_operation(self.service, agent_id, name, **fields)

    async def read(self, reader: Callable[..., Any], *arguments: Any) -> Any:
        """Read the body, in a worker process if it is large."""
        return await self.service.read_request(len(self.body), reader, self.body, *arguments)


@dataclass(frozen=True, slots=True)
class Plan:
    """A call that was read: the agents that it is for, and how to perform it."""

    agents: frozenset[str]
    perform: Callable[[], Awaitable[Any]]


def planned(perform: Callable[..., Awaitable[Any]], *arguments: Any, agents: Sequence[str] = ()) -> Plan:
    """Return a call that was read, performed with these arguments."""
    return Plan(frozenset(agents), partial(perform, *arguments))


def bound_agent() -> str:
    """Return the agent of a request that names none: the one that the key is bound to, or none."""
    reach = CALLER.get().grant.reach
    is_one = not reach.is_everywhere and not reach.prefixes and len(reach.agents) == 1
    return next(iter(reach.agents)) if is_one else ""
