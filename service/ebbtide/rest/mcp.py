"""MCP over streamable HTTP: `POST /mcp` and `POST /v1/agents/{agent_id}/mcp`.

The HTTP checks have authenticated the caller. The MCP SDK is imported with the first request, on a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from starlette.datastructures import Headers, QueryParams
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from ebbtide.access.grants import CALLER
from ebbtide.errors import FieldViolation, InvalidRequest, NotFound
from ebbtide.mcp.calls import Session
from ebbtide.mcp.sets import SETS
from ebbtide.rest.agent_of_request import agent_of, scope_for
from ebbtide.rest.forwarding import pass_on
from ebbtide.rest.measured_route import MeasuredRoute
from ebbtide.verbs.catalogue import ANY_SCOPE
from ebbtide.verbs.requests import echo
from ebbtide.verbs.service import Service

TOOLS_HEADER = "x-ebbtide-tools"
LANGUAGES = ("en", "zh")


class McpRoute(MeasuredRoute):
    """A route to the MCP server."""

    def __init__(self, path: str) -> None:
        super().__init__(path, _Endpoint(), name="mcp")
        # A stateless server has no stream to open and no session to delete; clients accept 405 for both.
        self.methods = {"POST"}


class _Endpoint:
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an MCP request."""
        service: Service = scope["app"].state.service
        # The SDK compares values of headers with the body. Space around a value is no part of it.
        scope = {**scope, "headers": [(name, value.strip(b" \t")) for name, value in scope["headers"]]}
        agent_id = agent_of(scope, CALLER.get(), service.settings.mcp.agent)
        service.authentication.permit(CALLER.get(), ANY_SCOPE, agent_id)
        peers = service.peers
        if peers is not None and (owner := await peers.owner(agent_id)) != peers.own:
            owned = scope_for(scope, agent_id, "/mcp", b"/mcp")
            await pass_on(peers, owner, agent_id, owned, receive, send)
            return
        options = QueryParams(scope["query_string"])
        headers = Headers(scope=scope)
        name = _choice("tools", options.get("tools") or headers.get(TOOLS_HEADER) or SETS[0], SETS)
        language: Any = _choice("lang", options.get("lang") or LANGUAGES[0], LANGUAGES)
        server = await _server()
        session = Session(service, agent_id, language)
        await server.answer(name, session, service.settings.limits.max_body_bytes, scope, receive, send)


def _choice(name: str, given: str, allowed: Sequence[str]) -> Any:
    if given in allowed:
        return given
    description = f"{echo(given)} is not allowed; allowed: {', '.join(allowed)}"
    raise InvalidRequest(f"{name}: {description}", violations=[FieldViolation(name, description)])


async def _server() -> Any:
    """Return the module of the server, imported on a thread: other requests are served meanwhile."""
    try:
        return await asyncio.to_thread(import_module, "ebbtide.mcp.server")
    except ModuleNotFoundError as error:
        raise NotFound(
            "The MCP server is not installed. Install ebbtide with the extra mcp: pip install 'ebbtide[mcp]'.",
            reason="MCP_NOT_INSTALLED",
        ) from error


def mcp_routes() -> list[BaseRoute]:
    """Return the routes to the MCP server."""
    return [McpRoute("/mcp"), McpRoute("/v1/agents/{agent_id}/mcp")]
