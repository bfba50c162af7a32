"""Backups and exports as responses: files instead of JSON, streamed."""

from __future__ import annotations

import mimetypes
import re
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ebbtide.verbs.attachments import AttachmentContent
from ebbtide.verbs.moving import Leaving

_FILE = re.compile(r"/v1/agents/[^/]++/(backup|export|messages/[^/]++/attachments/[^/]++)")
BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}


def is_file(scope: Scope) -> bool:
    """Return whether the response to a request is a file."""
    return scope["type"] == "http" and _FILE.fullmatch(scope["path"]) is not None


def attached_file(found: AttachmentContent, message: str, index: str, **_: str) -> Response:
    """Return an attachment as a file to store. A browser neither shows it nor runs anything in it."""
    suffix = mimetypes.guess_extension(found.mime) or ""
    headers = {
        "Content-Disposition": f'attachment; filename="{message}-{index}{suffix}"',
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
        "ETag": f'"{found.sha256}"',
    }
    return Response(found.bytes, headers=headers, media_type=found.mime)


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
