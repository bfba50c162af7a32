"""Routes: decode, call the verb, encode. No default, limit or check of its own stands here."""

from __future__ import annotations

from typing import Annotated, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from starlette.responses import PlainTextResponse, Response

from ebbtide import __version__
from ebbtide.errors import InvalidRequest
from ebbtide.metrics import CONTENT_TYPE
from ebbtide.parameters import AgentParameters
from ebbtide.rest.documents import body_of, stream_of
from ebbtide.rest.routing import ERRORS, VerbRoute, service_of
from ebbtide.rest.streams import ServerSentEvents, position
from ebbtide.verbs import (
    agents,
    audit,
    batches,
    events,
    forget,
    inspect,
    memories,
    metrics,
    recall,
    remember,
    search,
    service,
)
from ebbtide.verbs.forms import Answer, read_form

F = TypeVar("F", bound=BaseModel)

router = APIRouter(route_class=VerbRoute, responses=ERRORS)

PageSize = Annotated[int | None, Query(description="Most items on the page, 1-1000; default 100.")]
PageToken = Annotated[str, Query(description="next_page_token of the page before.")]


async def _form(request: Request, form: type[F], default: bytes = b"") -> F:
    body = await request.body() or default
    return await service_of(request).read_request(len(body), read_form, form, body)


async def _parameters(request: Request) -> dict[str, object]:
    body = await request.body()
    return await service_of(request).read_request(len(body), agents.read_parameters, body)


def _json(answer: Answer, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(answer.as_json(), status_code=status, headers=headers, media_type="application/json")


# --- remember and recall -----------------------------------------------------------------------------
# First, since they are asked for most: routes are tried in their order.


@router.post(
    "/v1/agents/{agent_id}/remember",
    status_code=202,
    response_model=remember.Remembered,
    openapi_extra=body_of(remember.RememberCommand),
    tags=["memory"],
)
async def remember_batch(request: Request, agent_id: str) -> Response:
    """Store a batch durably and acknowledge it; memories come into being soon after."""
    given = await _form(request, remember.RememberCommand)
    command = _with_key(given, request.headers.get("idempotency-key"))
    done = await remember.remember(service_of(request), agent_id, command)
    location = f"/v1/agents/{quote(agent_id, safe='')}/batches/{done.batch_id}"
    return _json(done, 202, {"Location": location})


def _with_key(command: remember.RememberCommand, header: str | None) -> remember.RememberCommand:
    if header is None:
        return command
    if command.idempotency_key not in (None, header):
        raise InvalidRequest(
            "the Idempotency-Key header and the field idempotency_key differ",
            reason="IDEMPOTENCY_KEYS_DIFFER",
        )
    return command.model_copy(update={"idempotency_key": header})


@router.post(
    "/v1/agents/{agent_id}/recall",
    response_model=recall.Recalled,
    responses={200: {"content": {"text/plain": {}}}},
    openapi_extra=body_of(recall.RecallCommand, is_required=False),
    tags=["memory"],
)
async def recall_memories(request: Request, agent_id: str) -> Response:
    """Recall what is near the focus and matches; `Accept: text/plain` for the bare text."""
    command = await _form(request, recall.RecallCommand, b"{}")
    answer = await recall.recall(service_of(request), agent_id, command)
    if prefers_text(request.headers.get("accept", "")):
        headers = {
            "X-Pending-Batches": str(answer.pending_batches),
            "X-Parked-Batches": str(answer.parked_batches),
        }
        return Response(answer.text, headers=headers, media_type="text/plain; charset=utf-8")
    return _json(answer)


@router.post(
    "/v1/agents/{agent_id}/search",
    response_model=search.Found,
    openapi_extra=body_of(search.SearchCommand),
    tags=["memory"],
)
async def search_memories(request: Request, agent_id: str) -> Response:
    """Find memories that answer a question, best first, as a list."""
    command = await _form(request, search.SearchCommand)
    return _json(await search.search(service_of(request), agent_id, command))


def prefers_text(accept: str) -> bool:
    """Whether an Accept header names text/plain, and JSON not higher."""
    weights = {"text/plain": 0.0, "application/json": 0.0}
    for part in accept.lower().split(","):
        kind, *options = (piece.strip() for piece in part.split(";"))
        weight = 1.0
        for option in options:
            if option.startswith("q="):
                try:
                    weight = float(option[2:])
                except ValueError:
                    weight = 0.0
        if kind in weights:
            weights[kind] = max(weights[kind], weight)
    return weights["text/plain"] > weights["application/json"]


# --- agents ------------------------------------------------------------------------------------------


@router.get("/v1/agents", response_model=agents.AgentPage, tags=["agents"])
async def list_agents(request: Request, page_size: PageSize = None, page_token: PageToken = "") -> Response:
    """List agents, open or not, without opening any."""
    return _json(await agents.list_agents(service_of(request), page_size, page_token))


@router.put(
    "/v1/agents/{agent_id}",
    response_model=agents.AgentInfo,
    responses={201: {"model": agents.AgentInfo, "description": "It came into being now."}},
    openapi_extra=body_of(AgentParameters, is_required=False),
    tags=["agents"],
)
async def initialise(request: Request, agent_id: str) -> Response:
    """Bring an agent into being with parameters of its own, or find that it is as asked."""
    given = await _parameters(request)
    info, is_new = await agents.initialise(service_of(request), agent_id, given)
    return _json(info, 201 if is_new else 200)


@router.patch(
    "/v1/agents/{agent_id}",
    response_model=agents.AgentInfo,
    openapi_extra=body_of(AgentParameters, is_required=False),
    tags=["agents"],
)
async def update(request: Request, agent_id: str) -> Response:
    """Change parameters of an agent; null goes back to the daemon's default."""
    given = await _parameters(request)
    return _json(await agents.update(service_of(request), agent_id, given))


@router.get("/v1/agents/{agent_id}", response_model=agents.AgentInfo, tags=["agents"])
async def get_agent(request: Request, agent_id: str) -> Response:
    """Tell of an agent: parameters, counts, what it owes and what waits."""
    return _json(await agents.get_agent(service_of(request), agent_id))


@router.delete("/v1/agents/{agent_id}", response_model=agents.Erased, tags=["agents"])
async def erase(request: Request, agent_id: str) -> Response:
    """Erase an agent with everything it holds. Irreversible."""
    return _json(await agents.erase(service_of(request), agent_id))


@router.post("/v1/agents/{agent_id}/close", response_model=agents.Closed, tags=["agents"])
async def close(request: Request, agent_id: str) -> Response:
    """Put everything on disk and let the agent rest until the next verb."""
    return _json(await agents.close(service_of(request), agent_id))


# --- batches -----------------------------------------------------------------------------------------


@router.get("/v1/agents/{agent_id}/batches", response_model=batches.BatchPage, tags=["batches"])
async def list_batches(
    request: Request,
    agent_id: str,
    state: Annotated[str | None, Query(description="waiting, digesting, digested or parked.")] = None,
    page_size: PageSize = None,
    page_token: PageToken = "",
) -> Response:
    """List batches by number."""
    return _json(await batches.list_batches(service_of(request), agent_id, state, page_size, page_token))


@router.get("/v1/agents/{agent_id}/batches/{batch_id}", response_model=batches.BatchInfo, tags=["batches"])
async def get_batch(request: Request, agent_id: str, batch_id: str) -> Response:
    """Tell what became of a batch."""
    return _json(await batches.get_batch(service_of(request), agent_id, batch_id))


@router.post(
    "/v1/agents/{agent_id}/batches/{batch_id}/retry",
    response_model=batches.BatchInfo,
    tags=["batches"],
)
async def retry_batch(request: Request, agent_id: str, batch_id: str) -> Response:
    """Put a parked batch back into the inbox."""
    return _json(await batches.retry_batch(service_of(request), agent_id, batch_id))


@router.post(
    "/v1/agents/{agent_id}/flush",
    response_model=batches.Flushed,
    openapi_extra=body_of(batches.FlushCommand, is_required=False),
    tags=["batches"],
)
async def flush(request: Request, agent_id: str) -> Response:
    """Wait until what was accepted is digested, and owed passes are done if asked."""
    command = await _form(request, batches.FlushCommand, b"{}")
    return _json(await batches.flush(service_of(request), agent_id, command))


@router.post(
    "/v1/agents/{agent_id}/compress",
    response_model=batches.Compressing,
    openapi_extra=body_of(batches.CompressCommand, is_required=False),
    tags=["batches"],
)
async def compress(request: Request, agent_id: str) -> Response:
    """Owe the agent compression passes."""
    command = await _form(request, batches.CompressCommand, b"{}")
    return _json(await batches.compress(service_of(request), agent_id, command))


# --- inspect -----------------------------------------------------------------------------------------


@router.get("/v1/agents/{agent_id}/focus", response_model=inspect.FocusInfo, tags=["inspect"])
async def get_focus(request: Request, agent_id: str) -> Response:
    """Tell what is in focus, newest first."""
    return _json(await inspect.get_focus(service_of(request), agent_id))


@router.get("/v1/agents/{agent_id}/nodes", response_model=inspect.NodePage, tags=["inspect"])
async def list_nodes(
    request: Request, agent_id: str, page_size: PageSize = None, page_token: PageToken = ""
) -> Response:
    """List living memories by id."""
    return _json(await inspect.list_nodes(service_of(request), agent_id, page_size, page_token))


@router.get("/v1/agents/{agent_id}/nodes/{node_id}", response_model=inspect.NodeDetail, tags=["inspect"])
async def get_node(request: Request, agent_id: str, node_id: str) -> Response:
    """Tell of one memory with its links in and out, and what it is linked to but forgot."""
    return _json(await inspect.get_node(service_of(request), agent_id, node_id))


@router.patch(
    "/v1/agents/{agent_id}/nodes/{node_id}",
    response_model=inspect.NodeDetail,
    openapi_extra=body_of(memories.UpdateNodeCommand),
    tags=["memory"],
)
async def update_node(request: Request, agent_id: str, node_id: str) -> Response:
    """Correct a memory: what it says, what it is found by."""
    command = await _form(request, memories.UpdateNodeCommand)
    return _json(await memories.update_node(service_of(request), agent_id, node_id, command))


@router.post(
    "/v1/agents/{agent_id}/nodes/delete",
    response_model=memories.DeletedNodes,
    openapi_extra=body_of(memories.DeleteNodesCommand),
    tags=["memory"],
)
async def delete_nodes(request: Request, agent_id: str) -> Response:
    """Delete many memories, and tell what became of each. Irreversible."""
    command = await _form(request, memories.DeleteNodesCommand)
    return _json(await memories.delete_nodes(service_of(request), agent_id, command))


@router.delete("/v1/agents/{agent_id}/nodes/{node_id}", response_model=memories.DeletedNode, tags=["memory"])
async def delete_node(request: Request, agent_id: str, node_id: str) -> Response:
    """Delete one memory with its links and what it was made from. Irreversible."""
    return _json(await memories.delete_node(service_of(request), agent_id, node_id))


@router.post(
    "/v1/agents/{agent_id}/forget",
    response_model=forget.Forgotten,
    openapi_extra=body_of(forget.ForgetCommand),
    tags=["memory"],
)
async def forget_memories(request: Request, agent_id: str) -> Response:
    """Forget a selection for good: memories, what they were made from, and the bytes on disk. Irreversible."""
    command = await _form(request, forget.ForgetCommand)
    return _json(await forget.forget(service_of(request), agent_id, command))


@router.get("/v1/agents/{agent_id}/audit", response_model=audit.AuditPage, tags=["inspect"])
async def list_audit(
    request: Request, agent_id: str, page_size: PageSize = None, page_token: PageToken = ""
) -> Response:
    """List the records of an agent's audit log: who, what, when, how many."""
    return _json(await audit.list_audit(service_of(request), agent_id, page_size, page_token))


@router.post(
    "/v1/agents/{agent_id}/audit/verify",
    response_model=audit.AuditVerified,
    openapi_extra=body_of(audit.VerifyAuditCommand, is_required=False),
    tags=["inspect"],
)
async def verify_audit(request: Request, agent_id: str) -> Response:
    """Whether an agent's audit log is whole, and whether texts were erased here."""
    command = await _form(request, audit.VerifyAuditCommand, b"{}")
    return _json(await audit.verify_audit(service_of(request), agent_id, command))


@router.get("/v1/agents/{agent_id}/links", response_model=inspect.LinkPage, tags=["inspect"])
async def list_links(
    request: Request, agent_id: str, page_size: PageSize = None, page_token: PageToken = ""
) -> Response:
    """List live links by source."""
    return _json(await inspect.list_links(service_of(request), agent_id, page_size, page_token))


# --- events ------------------------------------------------------------------------------------------


@router.get(
    "/v1/agents/{agent_id}/events",
    response_model=events.EventInfo,
    response_class=Response,
    openapi_extra=stream_of(events.EventInfo),
    tags=["events"],
)
async def watch_events(
    request: Request,
    agent_id: str,
    after: Annotated[
        int | None,
        Query(description="Number of the last event that was seen; -1: only what is to come."),
    ] = None,
    follow: Annotated[bool | None, Query(description="false: end with what is there.")] = None,
) -> Response:
    """Watch what happens to an agent's memory, as text/event-stream; `Last-Event-ID` goes before `after`."""
    begin = position(after, request.headers.get("last-event-id"))
    return ServerSentEvents(await events.watch_events(service_of(request), agent_id, begin, follow))


# --- the daemon --------------------------------------------------------------------------------------


class Health(Answer):
    """The process is alive."""

    status: str = "ok"
    version: str = __version__


@router.get("/healthz", response_model=Health, tags=["service"])
async def healthz() -> Response:
    """Whether the process is alive; says nothing about its work."""
    return _json(Health())


@router.get("/readyz", response_model=service.Readiness, tags=["service"])
async def readyz(request: Request) -> Response:
    """Whether requests are accepted: 200 when ready or degraded, 503 when nothing can be accepted."""
    readiness = await service.get_readiness(service_of(request))
    return _json(readiness, 503 if readiness.status == "unavailable" else 200)


@router.get("/metrics", response_class=PlainTextResponse, tags=["service"])
async def get_metrics(request: Request) -> Response:
    """Everything that is counted, in the text format of Prometheus."""
    return Response(await metrics.get_metrics(service_of(request)), media_type=CONTENT_TYPE)


@router.get("/v1/model", response_model=service.ModelInfo, tags=["service"])
async def get_model(request: Request) -> Response:
    """Which language model is in force, whether it answers, how its replies parse."""
    return _json(await service.get_model(service_of(request)))


@router.get("/v1/scheduler", response_model=service.SchedulerInfo, tags=["service"])
async def get_scheduler(request: Request) -> Response:
    """Who compresses now and who waits for a turn."""
    return _json(await service.get_scheduler(service_of(request)))
