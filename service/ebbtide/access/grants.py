"""Grants: what a caller may do, and the error for what it may not. Pure rules; nothing is looked up here.

A grant is a set of scopes and a reach. The scope is checked first, then the agent. Both are checked before the agent is
looked up, so an error does not reveal whether it exists.

`CALLER` carries the caller through a request. Work in the background has no caller.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass

from ebbtide.access.requirements import SCOPES, Needs, Requirement
from ebbtide.actor import set_actor
from ebbtide.errors import Forbidden


@dataclass(frozen=True, slots=True)
class Reach:
    """The agents that a grant covers: by id, by prefix of the id, or all."""

    agents: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    is_everywhere: bool = False

    def covers(self, agent_id: str) -> bool:
        """Return whether an agent with this id is within reach, whether it exists or not."""
        return self.is_everywhere or agent_id in self.agents or agent_id.startswith(self.prefixes)


@dataclass(frozen=True, slots=True)
class Grant:
    """The rights of a caller."""

    scopes: frozenset[str]
    reach: Reach

    def refuse_beyond(self, required: Requirement, agent_id: str | None) -> None:
        """Raise SCOPE_MISSING or KEY_NOT_FOR_AGENT unless the grant allows this."""
        if required.needs in (Needs.NOTHING, Needs.KEY):
            return
        if self.scopes.isdisjoint(required.scopes):
            required_scopes = " or ".join(required.scopes)
            raise Forbidden(
                f"The API key lacks the required scope: {required_scopes}. Use a key with it.",
                reason="SCOPE_MISSING",
                metadata={"scope": required_scopes},
            )
        if required.needs is Needs.SCOPE or self.reach.is_everywhere:
            return
        if required.needs is Needs.EVERY_AGENT:
            raise Forbidden(
                "This request covers all agents, but the API key is limited to some. Use a key for all agents.",
                reason="KEY_NOT_FOR_AGENT",
            )
        if agent_id is None or not self.reach.covers(agent_id):
            raise Forbidden(
                "The API key is bound to other agents. Use a key for this agent.", reason="KEY_NOT_FOR_AGENT"
            )


def granting(scopes: Iterable[str], reach: Reach) -> Grant:
    """Return a grant of scopes over a reach."""
    return Grant(frozenset(scopes), reach)


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller: the id of its key, and what the key grants."""

    key_id: str
    """Empty if keys are not required."""
    grant: Grant
    max_agents: int = 0
    """Most agents within its reach; beyond that it cannot create another. 0: no limit."""


ANYONE = Caller("", granting(SCOPES, Reach(is_everywhere=True)))
"""The caller if keys are not required."""

CALLER: ContextVar[Caller] = ContextVar("ebbtide_caller", default=ANYONE)
"""The caller of the current request."""


def let_ask(caller: Caller) -> None:
    """Set the caller for the rest of the request, and for the audit log."""
    CALLER.set(caller)
    if caller.key_id:
        set_actor(caller.key_id)
