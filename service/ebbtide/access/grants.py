"""Grants: what a caller may do, and the error for what it may not. Pure rules; nothing is looked up here.

A grant is scopes and a reach. The order of the checks is fixed: the scope first, then the agent, and nothing of an
agent is looked at before: whether it exists is not told to who may not ask.

Who asks travels with a request in `CALLER`, as its id for the log does; work in the background has no caller.
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
    """Which agents something is bound to: some by name, some by how their ids begin, or all."""

    agents: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    is_everywhere: bool = False

    def covers(self, agent_id: str) -> bool:
        """Whether an agent of this id, existing or not, is within reach."""
        return self.is_everywhere or agent_id in self.agents or agent_id.startswith(self.prefixes)


@dataclass(frozen=True, slots=True)
class Grant:
    """What a caller may do."""

    scopes: frozenset[str]
    reach: Reach

    def refuse_beyond(self, required: Requirement, agent_id: str | None) -> None:
        """SCOPE_MISSING or KEY_NOT_FOR_AGENT for what is not granted."""
        if required.needs in (Needs.NOTHING, Needs.KEY):
            return
        if self.scopes.isdisjoint(required.scopes):
            wanted = " or ".join(required.scopes)
            raise Forbidden(
                f"this needs the scope {wanted}, which the key does not have",
                reason="SCOPE_MISSING",
                metadata={"scope": wanted},
            )
        if required.needs is Needs.SCOPE or self.reach.is_everywhere:
            return
        if required.needs is Needs.EVERY_AGENT:
            raise Forbidden("this tells of every agent; the key is bound to some", reason="KEY_NOT_FOR_AGENT")
        if agent_id is None or not self.reach.covers(agent_id):
            raise Forbidden("the key is bound to other agents", reason="KEY_NOT_FOR_AGENT")


def granting(scopes: Iterable[str], reach: Reach) -> Grant:
    """A grant of scopes over a reach."""
    return Grant(frozenset(scopes), reach)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the id of a key, and what it grants."""

    key_id: str
    """Empty where nobody has to show a key."""
    grant: Grant
    max_agents: int = 0
    """Most agents within its reach for it to bring in another one; 0: no limit."""


ANYONE = Caller("", granting(SCOPES, Reach(is_everywhere=True)))
"""Who asks where keys are not asked for."""

CALLER: ContextVar[Caller] = ContextVar("ebbtide_caller", default=ANYONE)
"""Who asks, within a request."""


def let_ask(caller: Caller) -> None:
    """Note who asks, for the rest of a request and for the audit log."""
    CALLER.set(caller)
    if caller.key_id:
        set_actor(caller.key_id)
