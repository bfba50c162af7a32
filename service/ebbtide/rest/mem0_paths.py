"""The paths of the mem0-compatible API, its keys and its errors. Imported by every daemon, so small."""

from __future__ import annotations

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response

from ebbtide.errors import QUIET_MESSAGE, Corrupted, EbbtideError, Internal

PREFIX = "/mem0"

STATUS = {"QUOTA_REACHED": 413}
"""Where mem0's clients expect another status for a reason."""

SCHEME = "token "


def is_mem0(path: str) -> bool:
    """Return whether a path belongs to the API."""
    return path.startswith(f"{PREFIX}/")


def authorizations(headers: Headers) -> list[str]:
    """Return the values of `Authorization`; mem0's clients write `Token` for `Bearer`."""
    given = headers.getlist("authorization")
    return [f"Bearer {one[len(SCHEME) :]}" if one.lower().startswith(SCHEME) else one for one in given]


def failure(status: int, message: str, reason: str) -> Response:
    """Return an error in the shape that mem0's clients read."""
    body = {"detail": message, "error": message, "reason": reason}
    return Response(msgspec.json.encode(body), status, media_type="application/json")


def as_failure(error: EbbtideError) -> Response:
    """Return the response for an error of Ebbtide."""
    message = QUIET_MESSAGE if isinstance(error, (Corrupted, Internal)) else error.message
    return failure(STATUS.get(error.reason, error.http), message, error.reason)
