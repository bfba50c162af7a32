"""search: what answers a question, as a list: for a program that wants results, not wording.

The same pipeline as a recall with a query (`verbs/recall.py`), with the same filters, limits and patience. Nothing is
worded and nothing packed into a budget; near copies are told once here too.

A caller who embeds by itself may send a `vector` instead of a text, or beside one: then that is what the question
means. With a text, words answer where vectors cannot; with a vector alone that is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import isfinite
from typing import Any

import numpy as np
from pydantic import Field

from ebbtide.fleet.recall.recollected import Hit, Wanted
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import parse_agent_id
from ebbtide.language.embedding import MAX_DIMENSIONS
from ebbtide.retrieval.ranking import SIGNALS
from ebbtide.settings import LimitSettings
from ebbtide.verbs.forms import Answer, Form, Several, check_count, check_text, refuse
from ebbtide.verbs.recall import (
    RecallCommand,
    RecalledMemory,
    TimeRange,
    check_command,
    memory_info,
    note_told,
    wait_for_digest,
    wanted_by,
    with_meaning,
)
from ebbtide.verbs.service import Service

LARGEST_NUMBER = 1e18
"""In a vector: its length must be measurable."""


class SearchCommand(Form):
    """What to look for, and what narrows it."""

    text: str | None = Field(
        None, description="A question, or words, in plain language.", examples=["Where did Ann move?"]
    )
    vector: Several[float] = Field(
        default_factory=list,
        description="What to look for, as the embedding model in force would have it; instead of a text or beside it.",
        examples=[[]],
    )
    kinds: Several[str] = Field(default_factory=list, description="Only memories of these kinds.")
    speakers: Several[str] = Field(default_factory=list, description="Only what these speakers said.")
    sources: Several[str] = Field(
        default_factory=list, description="Only what was said in these conversations."
    )
    time_range: TimeRange | None = Field(None, description="Only what was said in this time.")
    metadata: dict[str, Any] | None = Field(
        None, description="Only what was remembered with each of these values.", examples=[None]
    )
    max_results: int | None = Field(
        None, description="Most memories; 0 means 10000; default: the agent's.", examples=[10]
    )
    include_archive: bool = Field(
        True, description="Whether what was forgotten, shortened or not yet digested takes part."
    )
    patience_ms: int | None = Field(
        None, description="Longest wait for batches accepted before, 0-30000; default: the daemon's."
    )

    def check(self, limits: LimitSettings) -> None:
        """Refuse what is outside the limits."""
        _as_question(self, limits)


class FoundMemory(RecalledMemory):
    """A memory that was found."""

    score: float = Field(description="What the signals give it together; comparable within one answer only.")


class Found(Answer):
    """What was found, best first."""

    memories: list[FoundMemory]
    pending_batches: int = Field(description="Accepted batches not yet digested.", examples=[0])
    parked_batches: int = Field(description="Batches parked after failures.", examples=[0])


async def search(service: Service, agent_id: str, command: SearchCommand) -> Found:
    """Find memories, best first. Reads only.

    Raises AGENT_NOT_FOUND, and InvalidRequest for values outside their limits.
    """
    owner = parse_agent_id(agent_id)
    asked = _as_question(command, service.settings.limits)
    async with service.fleet.using(owner) as agent:
        await wait_for_digest(service, agent, command.patience_ms)
        wanted = await _wanted(service, await _by_text(agent, asked, command), command)
        return await agent.query(partial(_found, agent.workspace, wanted, service.clock.now_ms()))


async def _by_text(agent: Agent, asked: RecallCommand, command: SearchCommand) -> Wanted:
    wanted = await wanted_by(agent, asked)
    return replace(wanted, query=wanted.query if command.text else "")


async def _wanted(service: Service, wanted: Wanted, command: SearchCommand) -> Wanted:
    if not command.vector:
        return await with_meaning(service, wanted)
    embedder = service.fleet.shared.embedder
    model = "" if embedder is None else embedder.model
    vector = np.array(command.vector, dtype=np.float64)
    unit = (vector / np.linalg.norm(vector)).astype(np.float32)
    wanted = replace(wanted, vector=unit, embedding_model=model)
    if command.text is not None:
        return wanted
    # Nothing but the vector is asked by: no other signal may outvote it.
    return replace(wanted, needs_vectors=True, without=frozenset(SIGNALS) - {"semantic"})


def _check_vector(vector: Sequence[float]) -> None:
    check_count("vector", len(vector), MAX_DIMENSIONS)
    for index, number in enumerate(vector):
        if not isfinite(number) or abs(number) > LARGEST_NUMBER:
            refuse(f"vector[{index}]", number, f"a number from -{LARGEST_NUMBER:g} to {LARGEST_NUMBER:g}")
    if vector and not any(vector):
        refuse("vector", 0, "a vector that points somewhere")


def _as_question(command: SearchCommand, limits: LimitSettings) -> RecallCommand:
    """The recall that finds the same; refused when it is outside the limits."""
    if command.text is None and not command.vector:
        refuse("text", None, "a question or words, or a vector", "MISSING_FIELD")
    if command.text is not None:
        check_text("text", command.text, limits.max_query_chars)
        if not command.text.strip():
            refuse("text", command.text, "a question or words")
    _check_vector(command.vector)
    own = ("text", "vector")
    fields = {name: getattr(command, name) for name in SearchCommand.model_fields if name not in own}
    asked = RecallCommand(query=command.text or "a vector", **fields)
    check_command(asked, limits)
    return asked


def _found(workspace: Workspace, wanted: Wanted, now_ms: int) -> Found:
    found, counts = workspace.recollect(wanted, now_ms, len)
    note_told(workspace, (one.content for one in found.memories))
    return Found(
        memories=[_memory(one) for one in found.memories],
        pending_batches=counts.pending_batches,
        parked_batches=counts.parked_batches,
    )


def _memory(one: Hit) -> FoundMemory:
    return FoundMemory(**memory_info(one).model_dump(), score=round(one.score, 6))
