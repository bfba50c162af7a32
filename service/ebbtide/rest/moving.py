"""Routes by which an agent leaves and comes back: files instead of JSON, streamed both ways."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ebbtide.rest.routing import ERRORS, VerbRoute, service_of
from ebbtide.verbs import moving
from ebbtide.verbs.moving import BACKUP_TYPE, EXPORT_TYPE, Leaving

router = APIRouter(route_class=VerbRoute, responses=ERRORS, tags=["moving"])

_FILE = re.compile(r"/v1/agents/[^/]++/(backup|export)")
_BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}


def is_file(scope: Scope) -> bool:
    """Whether a request is answered with a file."""
    return scope["type"] == "http" and _FILE.fullmatch(scope["path"]) is not None


class FileAnswer(Response):
    """A file on its way out; let go of whatever happens."""

    def __init__(self, leaving: Leaving) -> None:
        super().__init__(media_type=leaving.media_type)
        self._leaving = leaving
        self.headers["content-length"] = str(leaving.size)
        self.headers["content-disposition"] = f'attachment; filename="{leaving.name}"'

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, piece by piece."""
        with self._leaving as leaving:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )

            async def take(piece: bytes) -> None:
                await send({"type": "http.response.body", "body": piece, "more_body": True})

            await leaving.hand_over(take)
            await send({"type": "http.response.body", "body": b"", "more_body": False})


@router.get(
    "/v1/agents/{agent_id}/backup",
    response_class=Response,
    responses={200: {"content": {BACKUP_TYPE: _BINARY}, "description": "The backup."}},
)
async def backup(request: Request, agent_id: str) -> Response:
    """Back an agent up as one file, also while it is at work."""
    return FileAnswer(await moving.backup(service_of(request), agent_id))


@router.get(
    "/v1/agents/{agent_id}/export",
    response_class=Response,
    responses={200: {"content": {EXPORT_TYPE: _BINARY}, "description": "The export."}},
)
async def export(request: Request, agent_id: str) -> Response:
    """Export an agent as JSON lines, also while it is at work."""
    return FileAnswer(await moving.export(service_of(request), agent_id))


@router.post(
    "/v1/agents/{agent_id}/restore",
    response_model=moving.Restored,
    openapi_extra={
        "requestBody": {"required": True, "content": {BACKUP_TYPE: _BINARY, EXPORT_TYPE: _BINARY}}
    },
)
async def restore(
    request: Request,
    agent_id: str,
    replace: Annotated[bool, Query(description="Let it take the place of an agent of this id.")] = False,
    rename: Annotated[bool, Query(description="Take the backup of an agent with another id.")] = False,
) -> Response:
    """Bring an agent back from a backup or an export, sent as the body."""
    pieces = aiter(request.stream())
    try:
        done = await moving.restore(service_of(request), agent_id, pieces, replace=replace, rename=rename)
    except ClientDisconnect:
        # It broke off; there is nobody to be told.
        return Response(status_code=400)
    return Response(done.as_json(), media_type="application/json")
