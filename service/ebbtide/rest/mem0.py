"""The mem0-compatible API, below `/mem0`: what `MemoryClient(host=".../mem0")` of mem0ai sends.

The HTTP checks have authenticated the caller. The calls are imported with the first request.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any
from urllib.parse import unquote_to_bytes

from pydantic_core import to_json
from starlette.datastructures import URL, QueryParams
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Mount
from starlette.types import Receive, Scope, Send

from ebbtide.errors import EbbtideError, NotFound
from ebbtide.rest.forwarding import pass_on, replayed
from ebbtide.rest.mem0_paths import PREFIX, failure
from ebbtide.rest.problems import OUTCOME
from ebbtide.telemetry import verb_span
from ebbtide.verbs.requests import shown, unnamed
from ebbtide.verbs.service import Service

CALLS = "ebbtide.mem0.calls"

MAX_PATH_CHARS = 120
"""Most characters of a path that an error shows."""


class Mem0Mount(Mount):
    """All paths of the API, under one name in the metrics."""

    def __init__(self) -> None:
        super().__init__(PREFIX, app=_Endpoint(), name="mem0")

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether a request is for the API, and what to add to its scope: the route, for the metrics."""
        match, found = super().matches(scope)
        return match, found if match is Match.NONE else {**found, "route": self}


class _Endpoint:
    def __init__(self) -> None:
        self._calls: Any = None
        """The module of the calls, once it is imported as a whole."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of a client of mem0."""
        service: Service = scope["app"].state.service
        # The HTTP checks have read the whole body, so it arrives as one message.
        body: bytes = (await receive()).get("body", b"")
        calls = self._calls or await asyncio.to_thread(import_module, CALLS)
        self._calls = calls
        method, segments = scope["method"], _segments(scope)
        query = QueryParams(scope["query_string"]).multi_items()
        address = str(URL(scope=scope).replace(query=""))
        try:
            plan = await calls.plan(service, method, segments, query, body, address)
            if plan is None:
                path = shown(str(unnamed("/".join(("", *segments, "")))), MAX_PATH_CHARS)
                text = f"{method} {path} of mem0's API is not served here."
                scope[OUTCOME] = "NotFound"
                await failure(501, text, "NOT_SERVED")(scope, receive, send)
                return
            peers = service.peers
            owners = {} if peers is None else {await peers.owner(one): one for one in plan.agents}
            if peers is not None and len(owners) == 1 and peers.own not in owners:
                ((owner, agent_id),) = owners.items()
                await pass_on(peers, owner, agent_id, scope, replayed(body, receive), send)
                return
            with verb_span("mem0"):
                answer = await plan.perform()
        except EbbtideError as error:
            raise calls.for_client(error) from error
        # Metadata may have numbers of any size.
        await Response(to_json(answer), media_type="application/json")(scope, receive, send)


def _segments(scope: Scope) -> list[str]:
    """Return the parts of the path after the prefix, decoded one by one: an id may contain an escaped slash."""
    raw: bytes = scope["raw_path"].partition(b"?")[0]
    parts = raw.removeprefix(PREFIX.encode()).strip(b"/").split(b"/")
    try:
        return [unquote_to_bytes(part).decode() for part in parts]
    except UnicodeDecodeError:
        # No id and no name is like this.
        raise NotFound("The path is not UTF-8.", reason="NODE_NOT_FOUND") from None


def mem0_routes() -> list[BaseRoute]:
    """Return the routes of the API."""
    return [Mem0Mount()]
