"""An agent whose memories are about to be shortened: long texts, and parameters that forget quickly."""

from __future__ import annotations

from typing import Any

from ebbtide.verbs.agents import OpenAgentRequest, open_agent
from ebbtide.verbs.service import Service
from tests.support.in_process import settle, tell

KETTLE = (
    "The blue kettle whistles on the old stove every morning, and the neighbours across the yard "
    "set their clocks by it, they say."
)
HARBOUR = (
    "The harbour at Lisbon smells of tar and oranges in the summer, and the boats come home late "
    "when the wind turns to the north."
)
GARDEN = (
    "The garden behind the red house grows pumpkins as large as wheels, and the children carve "
    "faces into them when October ends."
)
QUICKLY = {
    "focus_policy": "nodes",
    "decay_rate": 0.5,
    "focus_limit": 1,
    "link_initial_strength": 0.0,
    "long_term_factor": 0.0,
}
"""One pass after the focus has moved, all but the last two nodes of a first batch have importance 0.5, then 0.25 …"""


async def fading(service: Service, agent: str, *texts: str, **parameters: Any) -> None:
    """Create an agent whose memories of `texts` are due to be shortened in its owed pass."""
    await open_agent(service, OpenAgentRequest(agent_id=agent, parameters={**QUICKLY, **parameters}))
    await tell(service, agent, *texts, "A ladder stands beside it.", "A lantern is in focus.")
    await settle(service, agent)
    await tell(service, agent, "The postman looks elsewhere now.")
