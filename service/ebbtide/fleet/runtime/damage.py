"""Damage: agents whose data failed its own checks when they were opened or asked, until it is known to be well.

Nobody looks for it: an agent is met when somebody asks for it, and is forgotten here when it opens well, when it is
erased, or when another takes its place. So there are never more of them than directories of agents.
"""

from __future__ import annotations

from ebbtide.errors import Corrupted, NotFound
from ebbtide.ids import AgentId


class Damage:
    """What openings and requests have met."""

    def __init__(self) -> None:
        self.reasons: dict[AgentId, str] = {}
        """The reason by agent."""

    def note(self, agent_id: AgentId, error: BaseException | None) -> None:
        """An opening, or a request, ended like this; what says nothing about the data changes nothing."""
        if isinstance(error, Corrupted):
            self.reasons[agent_id] = error.reason
        elif error is None or isinstance(error, NotFound):
            self.mended(agent_id)

    def mended(self, agent_id: AgentId) -> None:
        """What was there is there no more."""
        self.reasons.pop(agent_id, None)
