"""consolidate: work on an agent's statements that otherwise happens in the background, or a rehearsal of it."""

from __future__ import annotations

from pydantic import Field

from ebbtide.fleet.consolidation.consolidation import Outcome
from ebbtide.ids import node_text_id
from ebbtide.verbs.requests import AgentRequest, Response
from ebbtide.verbs.service import Service


class ConsolidateRequest(AgentRequest):
    """Whether to change something."""

    dry_run: bool = Field(False, description="Change nothing, and return what a run would change.")


class ConsolidationFinding(Response):
    """Something that a step found."""

    node_ids: list[str] = Field(description="Ids of the statements or entities concerned.")
    text: str = Field(description="Description of the finding.", examples=["contradict each other"])


class ConsolidationStep(Response):
    """Outcome of a step."""

    step: str = Field(
        description="staged, conflicts, causes, concepts, habits or tiers.", examples=["staged"]
    )
    looked: int = Field(description="Number of items that it looked at.")
    changed: int = Field(description="Number of items that it changed, or would change.")
    findings: list[ConsolidationFinding] = Field(description="Findings of the step; at most 100.")


class Consolidated(Response):
    """The outcome of a consolidation."""

    dry_run: bool = Field(description="Whether nothing was changed.")
    steps: list[ConsolidationStep] = Field(description="The steps, in order.")


async def consolidate(service: Service, request: ConsolidateRequest) -> Consolidated:
    """Consolidate the statements of an agent now: list conflicts, and mark new statements as consolidated.

    It runs in short steps, between which other requests go first. If the client disconnects, it continues in the
    background.
    """
    async with service.fleet.using(request.owner) as agent:
        return _response(await agent.consolidate(dry_run=request.dry_run), request.dry_run)


def _response(outcome: Outcome, dry_run: bool) -> Consolidated:
    steps = [
        ConsolidationStep(
            step=name,
            looked=outcome.looked[name],
            changed=outcome.changed[name],
            findings=[
                ConsolidationFinding(node_ids=list(map(node_text_id, one.nodes)), text=one.text)
                for one in outcome.findings.get(name, ())
            ],
        )
        for name in outcome.looked
    ]
    return Consolidated(dry_run=dry_run, steps=steps)
