"""Routes of the log of erased agents, which lies beside all agents. Decode, call the verb, encode."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ebbtide.rest.documents import body_of
from ebbtide.rest.routes import PageSize, PageToken
from ebbtide.rest.routing import ERRORS, VerbRoute, service_of
from ebbtide.verbs import erased
from ebbtide.verbs.audit import AuditVerified
from ebbtide.verbs.forms import Answer, read_form

router = APIRouter(route_class=VerbRoute, responses=ERRORS, tags=["inspect"])


def _json(answer: Answer) -> Response:
    return Response(answer.as_json(), media_type="application/json")


@router.get("/v1/erased-agents", response_model=erased.ErasedAgentPage)
async def list_erased_agents(
    request: Request,
    agent_id: Annotated[str | None, Query(description="Only records of this one.")] = None,
    page_size: PageSize = None,
    page_token: PageToken = "",
) -> Response:
    """List the records of agents that were erased: who, by whom, when, how much."""
    return _json(await erased.list_erased_agents(service_of(request), agent_id, page_size, page_token))


@router.post(
    "/v1/erased-agents/verify",
    response_model=AuditVerified,
    openapi_extra=body_of(erased.VerifyErasedAgentsCommand, is_required=False),
)
async def verify_erased_agents(request: Request) -> Response:
    """Whether the log of erased agents is whole, and whether texts were among what they held."""
    service, body = service_of(request), await request.body() or b"{}"
    command = await service.read_request(len(body), read_form, erased.VerifyErasedAgentsCommand, body)
    return _json(await erased.verify_erased_agents(service, command))
