"""Operations on all agents, in a daemon with workers: each worker answers for its own agents, and one merges.

The worker that received the request authenticates the caller, runs the operation, and sends it with the caller to the
other workers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from ebbtide.access.grants import CALLER, Caller, let_ask
from ebbtide.errors import EbbtideError, Internal
from ebbtide.fleet.runtime.agent_quota import agents_within
from ebbtide.fleet.runtime.fleet import OPENED
from ebbtide.forwarding.errors import error_from, error_to
from ebbtide.forwarding.exchange import (
    COPY_AGENT,
    DIGEST_FILE,
    LIST_DIRECTORIES,
    ROTATE_KEY,
    SHOW_POSITION,
    Exchange,
    VerbHead,
    VerbResult,
)
from ebbtide.forwarding.peers import Peers
from ebbtide.ids import AgentId, parse_agent_id
from ebbtide.metrics import merged_text
from ebbtide.store.directory.data_directory import directory_name
from ebbtide.telemetry import get_log
from ebbtide.verbs.agents import AgentPage
from ebbtide.verbs.catalogue import OPERATIONS, Kind, Operation
from ebbtide.verbs.paging import PageRequest, to_token
from ebbtide.verbs.requests import AgentRequest
from ebbtide.verbs.service import (
    MAX_LISTED,
    ModelInfo,
    Readiness,
    SchedulerInfo,
    Service,
    TaskTally,
)

TIMEOUT_S = 30.0
"""Timeout of the other workers' responses."""

PARTIAL_TIMEOUT_S = 2.0
"""The same for operations in PARTIAL."""

REPEATABLE = (Kind.CALL, Kind.REST_ONLY)
"""The kinds of operations whose request and response are one message each."""

_CALLER = msgspec.msgpack.Decoder(Caller)


async def perform(service: Service, operation: Operation, request: Any) -> Any:
    """Return the response of an operation. For the operations in MERGES, merge those of all workers."""
    merge = MERGES.get(operation.name)
    if service.cluster is not None and operation.name in OF_EACH_NODE:
        merge = None
    if service.peers is None or merge is None:
        return await _perform_at_owner(service, operation, request)
    head = _head(operation, request)
    own, *others = await asyncio.gather(
        operation.verb(service, request),
        *(_response_of(service.peers, worker, head, operation) for worker in service.peers.others),
    )
    responses = [own, *(other for other in others if other is not None)]
    return merge(request, responses)


async def _perform_at_owner(service: Service, operation: Operation, request: Any) -> Any:
    """Perform an operation here. In a cluster, pass it on if its agent moves away before it was opened here.

    The request arrived when this node owned the agent. Nothing was done yet, so it can be sent to the new owner.
    """
    peers = service.peers
    if peers is None or service.cluster is None or not isinstance(request, AgentRequest):
        return await operation.verb(service, request)
    opened = list[AgentId]()
    token = OPENED.set(opened)
    try:
        return await operation.verb(service, request)
    except EbbtideError as error:
        if opened or error.reason != "AGENT_MOVING" or operation.kind not in REPEATABLE:
            raise
    finally:
        OPENED.reset(token)
    owner = await peers.owner(request.agent_id)
    if owner == peers.own:
        return await operation.verb(service, request)
    return await perform_at(peers, owner, request.agent_id, operation, request)


async def perform_at(peers: Peers, worker: int, agent_id: str, operation: Operation, request: Any) -> Any:
    """Return the response of an operation for an agent of another worker."""
    return await _response_of(peers, worker, _head(operation, request, agent_id), operation)


def _head(operation: Operation, request: Any, agent_id: str = "") -> VerbHead:
    caller = msgspec.msgpack.encode(CALLER.get())
    return VerbHead(operation.name, request.model_dump_json().encode(), caller, agent_id)


async def _response_of(peers: Peers, worker: int, head: VerbHead, operation: Operation) -> Any:
    """Return the response of a worker.

    If it does not answer, raise WORKER_RESTARTING; for an operation in PARTIAL return None, or a degraded readiness.
    """
    is_partial = operation.name in PARTIAL
    try:
        async with asyncio.timeout(PARTIAL_TIMEOUT_S if is_partial else TIMEOUT_S):
            result = await peers.request(worker, head)
    except (EbbtideError, TimeoutError):
        if not is_partial:
            raise peers.unreachable() from None
        if operation.name == "GetReadiness":
            return Readiness(status="degraded", reasons=[f"worker {worker} does not answer"])
        return None
    if result.error:
        raise error_from(result.error)
    return result.body if operation.response is None else operation.response.model_validate_json(result.body)


def answer_others(service: Service, peers: Peers) -> None:
    """Answer the operations of other workers for the agents of this one."""

    async def answer(head: VerbHead, exchange: Exchange) -> bool:
        token = CALLER.set(CALLER.get())
        try:
            answer = BETWEEN_NODES.get(head.name, _answer)
            result = VerbResult(await answer(service, head))
        except EbbtideError as error:
            result = VerbResult(error=error_to(error))
        except Exception as error:
            get_log("forwarding").error("request failed", reason="INTERNAL", exc_info=error)
            result = VerbResult(error=error_to(Internal("unexpected")))
        finally:
            CALLER.reset(token)
        await exchange.write(result)
        return True

    peers.answer(VerbHead, answer)


async def _answer(service: Service, head: VerbHead) -> bytes:
    operation = OPERATIONS[head.name]
    let_ask(_CALLER.decode(head.caller))
    response = await operation.verb(service, operation.request.model_validate_json(head.request))
    return response if isinstance(response, bytes) else response.model_dump_json().encode()


async def _digest_file(service: Service, head: VerbHead) -> bytes:
    async with service.fleet.using(parse_agent_id(head.agent_id)) as agent:
        return msgspec.msgpack.encode(await agent.mailbox.run_in_background(agent.workspace.store.digests))


async def _copy_agent(service: Service, head: VerbHead) -> bytes:
    await service.fleet.copy(parse_agent_id(head.agent_id))
    return b""


async def _show_position(service: Service, head: VerbHead) -> bytes:
    agent_id, data = parse_agent_id(head.agent_id), service.fleet.data
    return msgspec.msgpack.encode(await service.fleet.on_pool(lambda: data.position(agent_id)))


async def _rotate_key(service: Service, head: VerbHead) -> bytes:
    owner = parse_agent_id(head.agent_id)
    with service.transfers.place() as transfer:
        return (await service.fleet.rotate_key(owner, transfer.rest)).encode()


async def _list_directories(service: Service, head: VerbHead) -> bytes:
    let_ask(_CALLER.decode(head.caller))
    covers, most = CALLER.get().grant.reach.covers, msgspec.msgpack.decode(head.request, type=int)
    data = service.fleet.data

    def owned() -> list[str]:
        names = (name for name, _ in agents_within(data, covers) if data.owns_directory(name))
        return list(islice(names, most))

    return msgspec.msgpack.encode(await service.fleet.on_pool(owned))


async def directories_elsewhere(peers: Peers, most: int) -> set[str]:
    """Return the directories of the caller's agents on the other nodes that answer, at most a number for each."""
    head = VerbHead(LIST_DIRECTORIES, msgspec.msgpack.encode(most), msgspec.msgpack.encode(CALLER.get()))

    async def of(node: int) -> list[str]:
        try:
            async with asyncio.timeout(PARTIAL_TIMEOUT_S):
                result = await peers.request(node, head)
        except (EbbtideError, TimeoutError):
            return []
        return [] if result.error else msgspec.msgpack.decode(result.body, type=list[str])

    return {name for names in await asyncio.gather(*map(of, peers.others)) for name in names}


BETWEEN_NODES = {
    COPY_AGENT: _copy_agent,
    DIGEST_FILE: _digest_file,
    LIST_DIRECTORIES: _list_directories,
    ROTATE_KEY: _rotate_key,
    SHOW_POSITION: _show_position,
}
"""Requests that only nodes of a cluster, and its command, make."""


# --- the merges --------------------------------------------------------------------------------------------


def _merged_agents(request: PageRequest, pages: Sequence[AgentPage]) -> AgentPage:
    """Return the first agents of all pages, in the order of their directories."""
    agents = sorted(
        (agent for page in pages for agent in page.agents),
        key=lambda agent: directory_name(AgentId(agent.agent_id)),
    )
    listed = agents[: request.size]
    has_more = len(agents) > len(listed) or any(page.next_page_token for page in pages)
    last = directory_name(AgentId(listed[-1].agent_id)) if listed else ""
    return AgentPage(agents=listed, next_page_token=to_token(last, "agents") if has_more and last else "")


def _merged_scheduler(_: Any, infos: Sequence[SchedulerInfo]) -> SchedulerInfo:
    def total(name: str) -> int:
        return sum(getattr(info, name) for info in infos)

    return SchedulerInfo(
        concurrency=total("concurrency"),
        time_slice_ms=infos[0].time_slice_ms,
        running=[agent for info in infos for agent in info.running],
        waiting=[agent for info in infos for agent in info.waiting][:MAX_LISTED],
        waiting_count=total("waiting_count"),
        slices=total("slices"),
        failed_slices=total("failed_slices"),
        open_agents=total("open_agents"),
        max_open_agents=total("max_open_agents"),
    )


def _merged_model(_: Any, infos: Sequence[ModelInfo]) -> ModelInfo:
    first = infos[0]
    tasks = {}
    for task in first.tasks:
        tallies = [info.tasks[task] for info in infos]
        calls, parsed, bad, unavailable = (
            sum(getattr(tally, name) for tally in tallies)
            for name in ("calls", "parsed", "bad_replies", "unavailable")
        )
        rate = parsed / (parsed + bad) if parsed + bad else None
        tasks[task] = TaskTally(
            calls=calls, parsed=parsed, bad_replies=bad, unavailable=unavailable, parse_rate=rate
        )
    embedder = next((info.embedder for info in infos if not info.embedder.available), first.embedder)
    return first.model_copy(
        update={
            "available": all(info.available for info in infos),
            "detail": next((info.detail for info in infos if info.detail), ""),
            "tasks": tasks,
            "embedder": embedder,
        }
    )


def _merged_readiness(_: Any, found: Sequence[Readiness]) -> Readiness:
    """Return the state of the worker that received the request, degraded if another one is not ready."""
    status = found[0].status
    if status != "unavailable" and any(one.status != "ready" for one in found):
        status = "degraded"
    return Readiness(status=status, reasons=list(dict.fromkeys(why for one in found for why in one.reasons)))


Merge = Callable[[Any, Sequence[Any]], Any]

MERGES: Mapping[str, Merge] = {
    "ListAgents": _merged_agents,
    "GetScheduler": _merged_scheduler,
    "GetModel": _merged_model,
    "GetReadiness": _merged_readiness,
    "GetMetrics": lambda _, texts: merged_text(texts),
}
"""How to merge the responses of all workers, by operation."""

OF_EACH_NODE = frozenset({"GetReadiness", "GetMetrics"})
"""Operations that are not merged in a cluster: a load balancer and Prometheus send them to each node."""

PARTIAL = frozenset({"GetModel", "GetReadiness", "GetMetrics"})
"""Operations whose merged response is useful even if a worker is missing."""
