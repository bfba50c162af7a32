"""The paths of the memory proxy, and errors in the shapes that its clients read. Imported by every daemon, so small."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response

from ebbtide.errors import QUIET_MESSAGE, Corrupted, EbbtideError, Internal

KEY_HEADER = "x-ebbtide-key"
MEMORY_HEADER = "x-ebbtide-memory"
CONVERSATION_HEADER = "x-ebbtide-conversation"

KEY_PREFIX = "ebb_"

NO_KEY = (
    "An API key of Ebbtide is required. Send it as Authorization: Bearer ebb_…, or as X-Ebbtide-Key: ebb_… if "
    "Authorization has the key of the model server."
)

_PATH = re.compile(r"(?:/v1/agents/[^/]++|/proxy)/(?:openai/v1|(ollama))(?:/|\Z)")


def api_of(path: str) -> str:
    """Return the API that a path of the proxy belongs to, openai or ollama; empty for other paths."""
    found = _PATH.match(path)
    return "" if found is None else (found[1] or "openai")


def authorizations(headers: Headers) -> Sequence[str]:
    """Return the credentials for Ebbtide: of `X-Ebbtide-Key`, else of `Authorization`, if that has a key of Ebbtide."""
    keys = headers.getlist(KEY_HEADER)
    if keys:
        return [f"Bearer {key}" for key in keys]
    return [one for one in headers.getlist("authorization") if KEY_PREFIX in one]


def failure(api: str, status: int, message: str, kind: str, code: str) -> Response:
    """Return an error in the shape of OpenAI or of Ollama."""
    error = message if api == "ollama" else {"message": message, "type": kind, "code": code, "param": None}
    return Response(msgspec.json.encode({"error": error}), status, media_type="application/json")


def as_failure(api: str, error: EbbtideError) -> Response:
    """Return the response for an error of Ebbtide, in such a shape."""
    is_quiet = isinstance(error, (Corrupted, Internal))
    message = QUIET_MESSAGE if is_quiet else error.message
    if error.reason == "MISSING_KEY":
        message = NO_KEY
    return failure(api, error.http, message, "ebbtide_error", error.reason)
