"""Operations performed inside the daemon for a caller of another protocol: MCP, mem0, and the memory proxy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from ebbtide.access.grants import CALLER
from ebbtide.errors import EbbtideError, NotFound
from ebbtide.telemetry import verb_span
from ebbtide.verbs.batches import BatchRequest, get_batch
from ebbtide.verbs.catalogue import OPERATIONS
from ebbtide.verbs.inspect import NodeRequest, get_node
from ebbtide.verbs.merging import perform, perform_at
from ebbtide.verbs.remember import Remembered
from ebbtide.verbs.requests import Request, validated
from ebbtide.verbs.service import Service

PASS_EVERY_TOKENS = 2_000
"""The parameter `pass_every_tokens` of an agent that is created here: every call of `Remember` is a small batch."""


async def call_operation(service: Service, agent_id: str | None, name: str, /, **fields: Any) -> Any:
    """Perform an operation, for an agent unless it is None, if the caller may. Return its response."""
    operation = OPERATIONS[name]
    given = fields if agent_id is None else {"agent_id": agent_id, **fields}

    def read() -> Request:
        return validated(operation.request, given, service.settings.limits)

    return await call_with(service, agent_id, name, read)


async def call_with(service: Service, agent_id: str | None, name: str, read: Callable[[], Request]) -> Any:
    """Perform an operation with a request that is read once the caller is permitted. Return its response."""
    operation = OPERATIONS[name]
    with verb_span(operation.verb_name):
        service.authentication.permit(CALLER.get(), operation.requires, agent_id)
        request, peers = read(), service.peers
        if peers is not None and agent_id is not None:
            owner = await peers.owner(agent_id)
            if owner != peers.own:
                return await perform_at(peers, owner, agent_id, operation, request)
        return await perform(service, operation, request)


async def ensure_agent(service: Service, agent_id: str) -> None:
    """Create the agent if it does not exist, so that it does not owe a pass for every small batch."""
    if service.settings.memory.pass_every_tokens:
        return
    try:
        await call_operation(
            service, agent_id, "OpenAgent", parameters={"pass_every_tokens": PASS_EVERY_TOKENS}
        )
    except EbbtideError as error:
        if error.reason != "PARAMETERS_DIFFER":
            raise


async def remember_once(
    service: Service, agent_id: str, send: Callable[[str], Awaitable[Remembered]]
) -> Remembered:
    """Return the result of `send`, which remembers under an idempotency key.

    `send` takes what the key depends on besides the request: at first nothing, and then the batch of an earlier equal
    request if none of its memories is left. Deleted text may be said again.
    """
    begun_ms, earlier = service.clock.now_ms(), ""
    done = await send(earlier)
    while done.batch_id != earlier and await is_gone(service, agent_id, done.batch_id, begun_ms):
        earlier = done.batch_id
        done = await send(earlier)
    return done


async def is_gone(service: Service, agent_id: str, batch_id: str, begun_ms: int) -> bool:
    """Whether a batch is of an earlier request and none of its memories is left.

    The caller need not be allowed to read: it learns only that its text is stored again.
    """
    agent = {"agent_id": agent_id}
    try:
        batch = await get_batch(service, BatchRequest(**agent, batch_id=batch_id))
    except NotFound:
        return True
    if batch.accepted_at >= begun_ms or batch.state != "digested":
        return False
    for node_id in batch.node_ids:
        with suppress(NotFound):
            await get_node(service, NodeRequest(**agent, node_id=node_id))
            return False
    return True
