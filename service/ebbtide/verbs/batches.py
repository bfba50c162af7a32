"""batches: what became of what was accepted; retrying what was parked; waiting; owing passes."""

from __future__ import annotations

from itertools import islice

from pydantic import Field

from ebbtide.actor import actor
from ebbtide.errors import NotFound
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.ids import batch_text_id, node_text_id, parse_agent_id, parse_batch_id
from ebbtide.records import AgentCounts, Batch, BatchState
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.forms import Answer, Form, refuse
from ebbtide.verbs.paging import check_page_size, number_from_token, to_token
from ebbtide.verbs.service import Service

DEFAULT_TIMEOUT_MS = 30_000


class BatchInfo(Answer):
    """A batch at this moment."""

    batch_id: str = Field(examples=["b1"])
    state: str = Field(description="waiting, digesting, digested or parked.", examples=["digested"])
    accepted_at: int = Field(description="ms since the epoch.")
    digested_at: int | None = Field(description="ms since the epoch.")
    not_before: int | None = Field(description="When it is tried again, after a failed round.")
    message_count: int
    conversation_id: str
    attempts: int = Field(description="Failed rounds so far.")
    last_error: str = Field(description="Why the last round failed.")
    node_ids: list[str] = Field(description="The memories it became.", examples=[["n1", "n2"]])
    pii: dict[str, int] = Field(
        description="Personal data found in it, by kind: tagged or redacted, as the agent's `pii` said.",
        examples=[{"email": 2}],
    )
    dropped_recalled: int = Field(description="Lines left out: a recall had just told them.", examples=[0])
    collapsed: int = Field(description="Messages left out: they repeated an earlier one.", examples=[0])


class BatchPage(Answer):
    """A page of batches."""

    batches: list[BatchInfo]
    next_page_token: str = Field(description="Empty on the last page.")


async def list_batches(
    service: Service, agent_id: str, state: str | None, page_size: int | None, page_token: str
) -> BatchPage:
    """List batches by number, of one state if one is named."""
    owner = parse_agent_id(agent_id)
    states = [s.value for s in BatchState]
    if state is not None and state not in states:
        refuse("state", state, ", ".join(states))
    size = check_page_size(page_size, service.settings.limits)
    start = number_from_token(page_token, "batches")
    async with service.fleet.using(owner) as agent:
        current_batch = agent.digest.current_batch

        def read(txn: ReadTransaction) -> list[BatchInfo]:
            infos = (_info(batch, current_batch) for batch in txn.inbox.all(start))
            return list(islice((i for i in infos if state in (None, i.state)), size + 1))

        found = await agent.run(lambda: agent.workspace.store.read(read))
    token = to_token(found[size].batch_id[1:], "batches") if len(found) > size else ""
    return BatchPage(batches=found[:size], next_page_token=token)


async def get_batch(service: Service, agent_id: str, batch_id: str) -> BatchInfo:
    """Tell what became of a batch. BATCH_NOT_FOUND when its status is no longer kept."""
    async with service.fleet.using(parse_agent_id(agent_id)) as agent:
        number = parse_batch_id(batch_id)
        batch = await agent.run(lambda: agent.workspace.store.read(lambda txn: txn.inbox.get(number)))
        return _info(_found(batch, number), agent.digest.current_batch)


async def retry_batch(service: Service, agent_id: str, batch_id: str) -> BatchInfo:
    """Put a parked batch back into the inbox, its attempts forgotten. BATCH_NOT_PARKED otherwise."""
    async with service.fleet.using(parse_agent_id(agent_id)) as agent:
        number = parse_batch_id(batch_id)
        return _info(_found(await agent.retry(number), number), agent.digest.current_batch)


def _found(batch: Batch | None, number: int) -> Batch:
    if batch is None:
        raise NotFound(
            f"there is no batch {batch_text_id(number)}, or its status is no longer kept",
            reason="BATCH_NOT_FOUND",
        )
    return batch


def _info(batch: Batch, current_batch: int | None) -> BatchInfo:
    is_current = batch.number == current_batch and batch.state == BatchState.WAITING.value
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
    )


class FlushCommand(Form):
    """How long to wait, and for what."""

    timeout_ms: int = Field(DEFAULT_TIMEOUT_MS, description="Longest wait, 0-600000.")
    passes: bool = Field(False, description="Wait for owed compression passes too.")
    vectors: bool = Field(False, description="Wait until every message has its vectors, too.")


class Flushed(Answer):
    """Where things stand, also when the time ran out."""

    digested: bool = Field(description="Whether all that was accepted before is digested.")
    passes_done: bool = Field(description="Whether no compression pass is owed.")
    pending_batches: int
    owed_passes: int
    parked_batches: int
    unembedded_messages: int = Field(description="Messages that have no vectors yet; 0 without an embedder.")


async def flush(service: Service, agent_id: str, command: FlushCommand) -> Flushed:
    """Wait until what was accepted is digested; with `passes` until none is owed, with `vectors` until all is embedded.

    Parked batches are not waited for; they are counted.
    """
    owner = parse_agent_id(agent_id)
    most = service.settings.limits.max_timeout_ms
    if not 0 <= command.timeout_ms <= most:
        refuse("timeout_ms", command.timeout_ms, f"0-{most}")
    deadline_s = service.clock.monotonic_s() + command.timeout_ms / 1000
    async with service.fleet.using(owner) as agent:
        last = await agent.last_accepted()
        while True:
            progressed = agent.digest.progressed.next_notification()
            digested, counts, behind = await _standing(agent, last)
            passes_done = counts.owed_passes == 0
            is_waited_for = (command.passes and not passes_done) or (command.vectors and behind > 0)
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
                )
            await progressed.wait(left_s)


async def _standing(agent: Agent, last: int) -> tuple[bool, AgentCounts, int]:
    def read(txn: ReadTransaction) -> tuple[bool, AgentCounts, int]:
        waiting = any(batch.number <= last for batch in txn.inbox.waiting())
        return not waiting, txn.counts(), agent.unembedded_count(txn)

    return await agent.run(lambda: agent.workspace.store.read(read))


class CompressCommand(Form):
    """How many passes to owe."""

    passes: int = Field(1, description="Compression passes to owe more; at least 1.")


class Compressing(Answer):
    """What is owed now."""

    owed_passes: int


async def compress(service: Service, agent_id: str, command: CompressCommand) -> Compressing:
    """Owe the agent compression passes, beyond those its batches bring. TOO_MANY_PASSES beyond its limit."""
    owner = parse_agent_id(agent_id)
    if command.passes < 1:
        refuse("passes", command.passes, "at least 1")
    async with service.fleet.using(owner) as agent:
        counts = await agent.owe_passes(command.passes, actor())
    return Compressing(owed_passes=counts.owed_passes)
