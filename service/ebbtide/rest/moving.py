"""Backups and exports as responses: files instead of JSON, streamed."""

from __future__ import annotations

import re
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ebbtide.verbs.moving import Leaving

_FILE = re.compile(r"/v1/agents/[^/]++/(backup|export)")
BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}


def is_file(scope: Scope) -> bool:
    """Return whether the response to a request is a file."""
    return scope["type"] == "http" and _FILE.fullmatch(scope["path"]) is not None


class FileResponse(Response):
    """A file; it is closed in any case."""

    def __init__(self, leaving: Leaving) -> None:
        super().__init__(media_type=leaving.media_type)
        self._leaving = leaving
        self.headers["content-length"] = str(leaving.size)
        self.headers["content-disposition"] = f'attachment; filename="{leaving.name}"'

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file piece by piece."""
        with self._leaving as leaving:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )

            async def take(piece: bytes) -> None:
                await send({"type": "http.response.body", "body": piece, "more_body": True})

            await leaving.hand_over(take)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
