"""batches: the state of accepted batches, retrying parked ones, waiting for digestion, adding compression passes."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Annotated, Literal

from pydantic import Field

from ebbtide.actor import actor
from ebbtide.errors import no_batch
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.fleet.runtime.extraction_task import FULL
from ebbtide.ids import batch_text_id, node_text_id, parse_batch_id
from ebbtide.records import AgentCounts, Batch, BatchState
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.limits import Between, OneOf
from ebbtide.verbs.paging import AgentPageRequest, number_from_token, to_token
from ebbtide.verbs.reading import ReadableAgent, ReadingService
from ebbtide.verbs.requests import AgentRequest, Response
from ebbtide.verbs.service import Service

DEFAULT_TIMEOUT_MS = 30_000

ExtractionStatus = Literal["none", "waiting", "done", "by_rules"]


class BatchInfo(Response):
    """The current state of a batch."""

    batch_id: str = Field(description="Id of the batch.", examples=["b1"])
    state: str = Field(description="waiting, digesting, digested or parked.", examples=["digested"])
    accepted_at: int = Field(description="Time of acceptance, ms since the epoch.")
    digested_at: int | None = Field(description="Time of digestion, ms since the epoch.")
    not_before: int | None = Field(
        description="Earliest time of the next try after a failure, ms since the epoch."
    )
    message_count: int = Field(description="Number of its messages.")
    conversation_id: str = Field(description="The conversation that the caller gave; empty without one.")
    attempts: int = Field(description="Failed tries so far.")
    last_error: str = Field(description="Why the last try failed.")
    node_ids: list[str] = Field(description="The memories made from it.", examples=[["n1", "n2"]])
    pii: dict[str, int] = Field(
        description="Personal data found in it, by kind, tagged or redacted by the agent's `pii` policy.",
        examples=[{"email": 2}],
    )
    dropped_recalled: int = Field(
        description="Lines left out because a recall had just returned them.", examples=[0]
    )
    collapsed: int = Field(description="Messages left out because they repeat an earlier one.", examples=[0])
    extraction: ExtractionStatus = Field(
        description="State of the extraction of its statements: none (extraction is off), waiting, done, or by_rules"
        " (done by rules, because the replies of the model were unusable).",
        examples=["done"],
    )


class BatchPage(Response):
    """A page of batches."""

    batches: list[BatchInfo] = Field(description="The batches of this page, in the order of their ids.")
    next_page_token: str = Field(description="Empty on the last page.")


class ListBatchesRequest(AgentPageRequest):
    """Which batches to list."""

    state: Annotated[str, OneOf(tuple(state.value for state in BatchState))] | None = Field(
        None, description="Only batches in this state: waiting, digesting, digested or parked."
    )


class BatchRequest(AgentRequest):
    """A request that names a batch."""

    batch_id: str = Field(description="The batch, as Remember returned it.", examples=["b1"])


async def list_batches(service: ReadingService, request: ListBatchesRequest) -> BatchPage:
    """List batches by number."""
    state, size = request.state, request.size
    start = number_from_token(request.page_token, "batches")
    async with service.fleet.using(request.owner) as agent:

        def read(txn: ReadTransaction) -> list[BatchInfo]:
            extracted_up_to = txn.meta.ledger.extracted_up_to
            infos = (_info(agent, batch, extracted_up_to) for batch in txn.inbox.all(start))
            return list(islice((i for i in infos if state in (None, i.state)), size + 1))

        found = await agent.run(lambda: agent.workspace.store.read(read))
    token = to_token(found[size].batch_id[1:], "batches") if len(found) > size else ""
    return BatchPage(batches=found[:size], next_page_token=token)


async def get_batch(service: Service, request: BatchRequest) -> BatchInfo:
    """Return the state of a batch. BATCH_NOT_FOUND if its status is no longer kept."""
    async with service.fleet.using(request.owner) as agent:
        number = parse_batch_id(request.batch_id)
        return await agent.run(lambda: agent.workspace.store.read(partial(_read_info, agent, number)))


async def retry_batch(service: Service, request: BatchRequest) -> BatchInfo:
    """Return a parked batch to the inbox and reset its attempts. BATCH_NOT_PARKED otherwise."""
    async with service.fleet.using(request.owner) as agent:
        number = parse_batch_id(request.batch_id)
        return _info(agent, _found(await agent.retry(number)), 0)


def _read_info(agent: Agent, number: int, txn: ReadTransaction) -> BatchInfo:
    return _info(agent, _found(txn.inbox.get(number)), txn.meta.ledger.extracted_up_to)


def _found(batch: Batch | None) -> Batch:
    if batch is None:
        raise no_batch()
    return batch


def _extraction(agent: ReadableAgent, batch: Batch, extracted_up_to: int) -> ExtractionStatus:
    last = batch.first_message + batch.message_count - 1
    if batch.state == BatchState.DIGESTED.value and last <= extracted_up_to:
        return "by_rules" if batch.extracted_by_rules else "done"
    return "waiting" if agent.workspace.extraction.is_on else "none"


def _info(agent: ReadableAgent, batch: Batch, extracted_up_to: int) -> BatchInfo:
    is_current = batch.number == agent.digest.current_batch and batch.state == BatchState.WAITING.value
    return BatchInfo(
        batch_id=batch_text_id(batch.number),
        state=BatchState.DIGESTING.value if is_current else batch.state,
        accepted_at=batch.accepted_at_ms,
        digested_at=batch.digested_at_ms or None,
        not_before=batch.not_before_ms or None,
        message_count=batch.message_count,
        conversation_id=batch.conversation_id,
        attempts=batch.attempts,
        last_error=batch.last_error,
        node_ids=[node_text_id(node_id) for node_id in batch.node_ids],
        pii=batch.personal,
        dropped_recalled=batch.dropped_recalled,
        collapsed=batch.collapsed,
        extraction=_extraction(agent, batch, extracted_up_to),
    )


class FlushRequest(AgentRequest):
    """How long to wait, and for what."""

    timeout_ms: Annotated[int, Between(0, "max_timeout_ms")] = Field(
        DEFAULT_TIMEOUT_MS, description="Longest wait, 0-600000."
    )
    passes: bool = Field(False, description="Also wait until no compression pass is owed.")
    vectors: bool = Field(False, description="Also wait until every message has its vectors.")
    extraction: bool = Field(
        False, description="Also wait until statements are extracted from every message, if extraction is on."
    )


class Flushed(Response):
    """The state after waiting, also if the timeout expired."""

    digested: bool = Field(description="Whether every batch accepted before the request is digested.")
    passes_done: bool = Field(description="Whether no compression pass is owed.")
    pending_batches: int = Field(description="Accepted batches not yet digested.")
    owed_passes: int = Field(description="Compression passes owed, including the running one.")
    parked_batches: int = Field(description="Batches parked after repeated failures.")
    unembedded_messages: int = Field(description="Messages without vectors; 0 without an embedder.")
    unextracted_messages: int = Field(
        description="Messages from which statements are not extracted yet; 0 if extraction is off."
    )
    extraction_paused: str = Field(
        description="Why extraction pauses: max_statements at the limit of the agent, or a failure in words; "
        "empty while it does not."
    )


async def flush(service: Service, request: FlushRequest) -> Flushed:
    """Wait until accepted batches are digested; with `passes`, `vectors` and `extraction` for those too.

    Parked batches are counted, not waited for.
    """
    deadline_s = service.clock.monotonic_s() + request.timeout_ms / 1000
    async with service.fleet.using(request.owner) as agent:
        last = await agent.last_accepted()
        while True:
            progressed = agent.digest.progressed.next_notification()
            digested, counts, behind, unread = await _standing(agent, last)
            passes_done = counts.owed_passes == 0
            is_waited_for = (
                (request.passes and not passes_done)
                or (request.vectors and behind > 0)
                # At the limit of statements, waiting cannot help.
                or (request.extraction and unread > 0 and agent.extraction.held_up_by != FULL)
            )
            left_s = deadline_s - service.clock.monotonic_s()
            is_over = left_s <= 0 or not service.is_accepting
            if is_over or (digested and not is_waited_for):
                return Flushed(
                    digested=digested,
                    passes_done=passes_done,
                    pending_batches=counts.pending_batches,
                    owed_passes=counts.owed_passes,
                    parked_batches=counts.parked_batches,
                    unembedded_messages=behind,
                    unextracted_messages=unread,
                    extraction_paused=agent.extraction.held_up_by if unread else "",
                )
            await progressed.wait(left_s)


async def _standing(agent: Agent, last: int) -> tuple[bool, AgentCounts, int, int]:
    def read(txn: ReadTransaction) -> tuple[bool, AgentCounts, int, int]:
        waiting = any(batch.number <= last for batch in txn.inbox.waiting())
        unread = agent.workspace.extraction.left_count(txn)
        return not waiting, txn.counts(), agent.unembedded_count(txn), unread

    return await agent.run(lambda: agent.workspace.store.read(read))


class CompressRequest(AgentRequest):
    """How many passes to add."""

    passes: Annotated[int, Between(1, None)] = Field(
        1, description="Compression passes to add to those owed; at least 1."
    )


class Compressing(Response):
    """The passes owed now."""

    owed_passes: int = Field(description="Compression passes owed, including the running one.")


async def compress(service: Service, request: CompressRequest) -> Compressing:
    """Add compression passes to those the agent owes. TOO_MANY_PASSES beyond its limit."""
    async with service.fleet.using(request.owner) as agent:
        counts = await agent.owe_passes(request.passes, actor())
    return Compressing(owed_passes=counts.owed_passes)
