"""recall: what the agent remembers near its focus, as text.

The story: check limits → wait up to `patience_ms` for batches being digested or next in line, so that with a
fast model a recall sees everything said before it → job *recall*: one read transaction, strongest paths outward
from the focus (`memory/association.py`) → wording (`memory/wording.py`) → text.

It never stands behind a model: it does not wait at all while no model server answers, while what is left is
put off after failures, or when this agent's digests take longer than the patience. The reply says how many
accepted batches were not yet digested.
"""

from __future__ import annotations

from functools import partial

from pydantic import Field

from ebbtide.fleet.agent import Agent
from ebbtide.fleet.workspace import Workspace
from ebbtide.memory.wording import word_answer
from ebbtide.settings import LimitSettings
from ebbtide.verbs.forms import Answer, Form, Several, check_count, check_text, refuse
from ebbtide.verbs.service import Service
from ebbtide.vocabulary import Cue, parse_agent_id

MOST_PATIENCE_MS = 30_000


class RecallCommand(Form):
    """A cue."""

    keywords: Several[str] = Field(
        default_factory=list,
        description="A memory matches when any of them occurs in it; none matches everything in reach.",
        examples=[["Lisbon"]],
    )
    relations: Several[str] = Field(
        default_factory=list,
        description="Follow only links of these names; focus nodes are then no results.",
        examples=[[]],
    )
    depth: int | None = Field(
        None, description="Hops from the focus, 0-8; default: the agent's.", examples=[2]
    )
    max_results: int | None = Field(
        None, description="Most memories in the answer; 0 means 10000; default: the agent's."
    )
    patience_ms: int | None = Field(
        None, description="Longest wait for batches accepted before, 0-30000; default: the daemon's."
    )


class Recalled(Answer):
    """What came back."""

    text: str = Field(
        description="Memories for a language model to read; empty when there is nothing.",
        examples=["[Memory] Ann: I moved to Lisbon in May."],
    )
    pending_batches: int = Field(description="Accepted batches not yet digested.", examples=[0])
    parked_batches: int = Field(description="Batches parked after failures.", examples=[0])


async def recall(service: Service, agent_id: str, command: RecallCommand) -> Recalled:
    """Recall what matches a cue. Reads only: no focus, strength or scan count changes.

    Raises AGENT_NOT_FOUND, and InvalidRequest for values outside their limits.
    """
    owner = parse_agent_id(agent_id)
    check_command(command, service.settings.limits)
    patience_ms = command.patience_ms
    if patience_ms is None:
        patience_ms = service.settings.fleet.recall_patience_ms
    async with service.fleet.using(owner) as agent:
        await agent.caught_up(patience_ms / 1000, lambda: not service.is_accepting)
        return await agent.run(partial(_recalled, agent.workspace, _cue(agent, command)))


def _recalled(workspace: Workspace, cue: Cue) -> Recalled:
    """The job: ten thousand memories are worded here too, where nobody but this agent waits for it."""
    answer, counts = workspace.recall(cue)
    contents = (content for _, content in answer.memories)
    text = word_answer(contents, answer.once_known, workspace.parameters.locale)
    return Recalled(text=text, pending_batches=counts.pending_batches, parked_batches=counts.parked_batches)


def _cue(agent: Agent, command: RecallCommand) -> Cue:
    parameters = agent.workspace.parameters
    depth, most = command.depth, command.max_results
    return Cue(
        keywords=command.keywords,
        relations=command.relations,
        depth=parameters.default_search_depth if depth is None else depth,
        max_results=parameters.limit_results(most),
    )


def check_command(command: RecallCommand, limits: LimitSettings) -> None:
    """Refuse what is outside the limits."""
    check_count("keywords", len(command.keywords), limits.max_keywords)
    for index, keyword in enumerate(command.keywords):
        if not keyword.strip():
            refuse(f"keywords[{index}]", keyword, "a word; leave keywords out to match everything")
        check_text(f"keywords[{index}]", keyword, limits.max_keyword_chars)
    check_count("relations", len(command.relations), limits.max_relations)
    for index, relation in enumerate(command.relations):
        check_text(f"relations[{index}]", relation, limits.max_relation_chars)
    depth = command.depth
    if depth is not None and not 0 <= depth <= limits.max_depth:
        refuse("depth", depth, f"0-{limits.max_depth}", "INVALID_DEPTH")
    most = command.max_results
    if most is not None and not 0 <= most <= 10_000:
        refuse("max_results", most, "0-10000")
    patience_ms = command.patience_ms
    if patience_ms is not None and not 0 <= patience_ms <= MOST_PATIENCE_MS:
        refuse("patience_ms", patience_ms, f"0-{MOST_PATIENCE_MS}")
