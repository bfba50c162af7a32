"""search: what answers a query, as a list: for a program that needs results instead of text.

The pipeline is that of a recall with a query (`verbs/recall.py`), with the same filters, limits and patience, but no
text is written and no budget filled. Near copies are returned once.

A caller that computes embeddings itself may send a `vector` instead of a query, or with one: the vector is then what
the query means. With a query, words still count where vectors cannot; a vector alone needs vectors to compare it with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import isfinite
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, PrivateAttr, WithJsonSchema, model_validator

from ebbtide.fleet.recall.query import Query
from ebbtide.fleet.recall.recollected import Hit
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import message_number
from ebbtide.language.embedding import MAX_DIMENSIONS
from ebbtide.retrieval.ranking_request import SIGNALS
from ebbtide.verbs.limits import MaxItems, Several, Time
from ebbtide.verbs.own_words import own_words
from ebbtide.verbs.recall import (
    RECORDS,
    UNEMBEDDED,
    QueryRequest,
    RecalledMemory,
    RecalledRecord,
    answered,
    caught_up,
    memory_info,
    note_returned,
    query_of,
    record_infos,
    unless_unknown,
    with_meaning,
)
from ebbtide.verbs.requests import Response, invalid, violation
from ebbtide.verbs.service import Service

MAX_VECTOR_NUMBER = 1e18
"""Limit for the numbers of a vector, so that its length can be computed."""


def _measurable(number: float) -> float:
    if not isfinite(number) or abs(number) > MAX_VECTOR_NUMBER:
        raise invalid(number, f"-{MAX_VECTOR_NUMBER:g} to {MAX_VECTOR_NUMBER:g}")
    return number


def _has_direction(vector: list[float]) -> list[float]:
    if vector and not any(vector):
        raise violation("INVALID_VALUE", "all numbers are 0; allowed: at least one other number")
    return vector


_NUMBER = {"type": "number", "minimum": -MAX_VECTOR_NUMBER, "maximum": MAX_VECTOR_NUMBER}

Vector = Annotated[
    list[Annotated[float, AfterValidator(_measurable), WithJsonSchema(_NUMBER)]],
    Several,
    MaxItems(MAX_DIMENSIONS),
    AfterValidator(_has_direction),
]
"""A vector of the embedding model; empty for none."""


class SearchRequest(QueryRequest):
    """What to look for, and what narrows the results."""

    vector: Vector = Field(
        default_factory=list,
        description="The query as a vector of the current embedding model, instead of `query` or with it.",
        examples=[[]],
    )

    created_after: Time | None = Field(
        None,
        description="Only memories of messages accepted at or after this time: ms since the epoch, or ISO 8601.",
    )
    own_words: bool = Field(
        False,
        description="Return each memory of a found passage by itself, with its own words; words without a memory with "
        "the id of their message.",
    )

    @model_validator(mode="after")
    def _looks_for_something(self) -> Self:
        if self.query is None and not self.vector:
            raise violation("MISSING_FIELD", "required; give query, vector or both", "query")
        if self.own_words and self.with_records:
            description = "not allowed with the kind record; leave out this field, or record"
            raise violation("INVALID_VALUE", description, "own_words")
        return self


class FoundMemory(RecalledMemory):
    """A found memory."""

    score: float = Field(
        description="The combined score of the signals; comparable within one response only."
    )


class Found(Response):
    """The found memories, best first."""

    memories: list[FoundMemory] = Field(description="The memories, best first.")
    pending_batches: int = Field(description="Accepted batches not yet digested.", examples=[0])
    parked_batches: int = Field(description="Batches parked after repeated failures.", examples=[0])
    unembedded_messages: int = UNEMBEDDED
    records: list[RecalledRecord] = RECORDS

    _has_records: bool = PrivateAttr(False)
    """Whether records were requested."""

    def as_json(self) -> str:
        """Return the body, without `records` if they were not requested."""
        return self.model_dump_json(exclude=None if self._has_records else {"records"})


async def search(service: Service, request: SearchRequest) -> Found:
    """Return the memories that answer a query, best first. Reads only.

    For an agent that does not exist the list is empty.
    """

    def nothing() -> Found:
        return Found(memories=[], pending_batches=0, parked_batches=0, unembedded_messages=0)

    found = await unless_unknown(_search(service, request), nothing)
    found._has_records = request.with_records
    return found


async def _search(service: Service, request: SearchRequest) -> Found:
    async with service.fleet.using(request.owner) as agent:
        await caught_up(service, agent, request, is_query=True)
        query = await query_of(agent, request, created_after=request.created_after)
        query = (
            _with_vector(service, query, request) if request.vector else await with_meaning(service, query)
        )
        now_ms = service.clock.now_ms()
        found = await answered(service, agent, query, now_ms, partial(_found, agent.workspace, query, now_ms))
    if request.own_words:
        memories = await _each_by_itself(service, request, found.memories)
        return found.model_copy(update={"memories": memories[: query.max_results]})
    return found


async def _each_by_itself(
    service: Service, request: SearchRequest, passages: Sequence[FoundMemory]
) -> list[FoundMemory]:
    """Return the memories of passages. Statements within the words of a memory come after all memories."""
    words = await own_words(service, request.agent_id, request.query or "", passages)
    names = [(one, name) for one in words for name in list(one.texts)[:1]]
    names += [(one, name) for one in words for name in list(one.texts)[1:]]
    memories: dict[str, FoundMemory] = {}
    for one, name in names:
        fields = {
            "id": name,
            "kind": one.kinds[name],
            "content": one.texts[name],
            "state": one.state,
            "node_ids": [name] if message_number(name) is None else [],
        }
        memories.setdefault(name, passages[one.passage].model_copy(update=fields))
    return list(memories.values())


def unit_vector(numbers: Sequence[float]) -> NDArray[np.float32]:
    """Return a caller's vector with length 1."""
    vector = np.array(numbers, dtype=np.float64)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def _with_vector(service: Service, query: Query, request: SearchRequest) -> Query:
    embedder = service.fleet.shared.embedder
    model = "" if embedder is None else embedder.model
    query = replace(query, vector=unit_vector(request.vector), embedding_model=model, is_vector_given=True)
    if request.query is not None:
        return query
    # The vector is the whole query: no other signal may outvote it.
    return replace(query, needs_vectors=True, without=frozenset(SIGNALS) - {"semantic"})


def _found(workspace: Workspace, query: Query, now_ms: int) -> Found:
    found, counts = workspace.answer(query, now_ms, len)
    note_returned(workspace, (text for one in found.memories for text in (one.content, one.said)))
    note_returned(workspace, (one.content for one in found.records))
    return Found(
        memories=[_memory(one) for one in found.memories],
        pending_batches=counts.pending_batches,
        parked_batches=counts.parked_batches,
        unembedded_messages=found.unembedded_count,
        records=record_infos(found),
    )


def _memory(one: Hit) -> FoundMemory:
    return FoundMemory(**memory_info(one).model_dump(), score=round(one.score, 6))
