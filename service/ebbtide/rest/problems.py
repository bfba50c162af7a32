"""Problems: every error as one body, from one table.

    {"error": {"code", "status", "message", "reason", "metadata", "field_violations"?}}

The access line logs expected errors at level info. Corrupted and Internal are logged here at level error, once, and
their details are not returned.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, MutableMapping
from typing import Any

import msgspec
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from ebbtide.errors import (
    QUIET_MESSAGE,
    REASONS,
    Corrupted,
    EbbtideError,
    Internal,
    InvalidRequest,
    NotFound,
    Unauthenticated,
)
from ebbtide.rest import mem0_paths
from ebbtide.rest.proxy_paths import api_of, as_failure
from ebbtide.telemetry import get_log
from ebbtide.verbs import requests


class ViolationBody(requests.Response):
    """A field that was refused."""

    field: str = Field(description="Path of the field, such as messages[0].content.")
    description: str = Field(description="The fault of the field, and the allowed values.")


class ErrorDetails(requests.Response):
    """An error."""

    code: int = Field(description="The HTTP status.", examples=[400])
    status: str = Field(description="The gRPC code.", examples=["INVALID_ARGUMENT"])
    message: str = Field(
        description="The error for people: the field, its value and what is allowed. The wording may change.",
        examples=["depth: 9 is not allowed; allowed: 0-8"],
    )
    reason: str = Field(
        description="The reason code, for programs; see docs/errors.md.", examples=["INVALID_DEPTH"]
    )
    metadata: dict[str, str] = Field(
        description="Details of some errors, such as the limit that was reached."
    )
    field_violations: list[ViolationBody] | None = Field(
        None, description="The invalid fields, at most ten; only if fields are invalid."
    )


class ErrorBody(requests.Response):
    """The body of every error."""

    error: ErrorDetails = Field(description="The error.")


RESOURCE_POLICY = ("Cross-Origin-Resource-Policy", "same-origin")
"""A header of every response: browsers do not let pages of other origins embed it."""

OUTCOME = "ebbtide.outcome"


def note_outcome(scope: MutableMapping[str, Any], error: EbbtideError) -> None:
    """Store the family of the error with the request, for the metrics."""
    scope[OUTCOME] = REASONS[error.reason].family


def outcome_of(scope: Mapping[str, Any], status: int) -> str:
    """Return the outcome of a request: ok, a family of errors, or cancelled."""
    if status == 0:
        return "cancelled"
    return str(scope.get(OUTCOME, "ok" if status < 400 else "Internal"))


def problem(error: EbbtideError, scope: Mapping[str, Any] | None = None) -> Response:
    """Return the response for an error; for paths of the proxy and of mem0 in the shape that their clients read."""
    path = "" if scope is None else scope["path"]
    if mem0_paths.is_mem0(path):
        response = mem0_paths.as_failure(error)
    else:
        api = api_of(path)
        response = as_failure(api, error) if api else _problem(error)
    if error.retry_after_s is not None:
        response.headers["Retry-After"] = str(max(1, math.ceil(error.retry_after_s)))
    if isinstance(error, Unauthenticated):
        response.headers["WWW-Authenticate"] = 'Bearer realm="ebbtide"'
    return response


def _problem(error: EbbtideError) -> Response:
    is_quiet = isinstance(error, (Corrupted, Internal))
    body: dict[str, Any] = {
        "code": error.http,
        "status": error.grpc,
        "message": QUIET_MESSAGE if is_quiet else error.message,
        "reason": error.reason,
        "metadata": error.metadata,
    }
    if error.violations:
        body["field_violations"] = [
            {"field": v.field, "description": v.description} for v in error.violations
        ]
    return Response(
        msgspec.json.encode({"error": body}),
        status_code=error.http,
        media_type="application/json",
    )


async def on_ebbtide_error(request: Request, error: Exception) -> Response:
    """Respond to an EbbtideError."""
    assert isinstance(error, EbbtideError)
    note_outcome(request.scope, error)
    if isinstance(error, (Corrupted, Internal)):
        get_log("rest").error("request failed", reason=error.reason, exc_info=error)
    return problem(error, request.scope)


async def on_http_exception(request: Request, error: Exception) -> Response:
    """Respond to an error of the router."""
    assert isinstance(error, HTTPException)
    refused: EbbtideError = InvalidRequest("The request cannot be read.", reason="INVALID_VALUE")
    if error.status_code == 405:
        refusal = NotFound(
            "This path does not support this method. See the Allow header.", reason="METHOD_NOT_ALLOWED"
        )
        note_outcome(request.scope, refusal)
        response = problem(refusal, request.scope)
        # The router reports the methods of one route; a path may have several.
        response.headers["Allow"] = ", ".join(sorted(_methods_at(request)))
        return response
    if error.status_code == 404:
        refused = NotFound("This path does not exist. See /docs for the paths.", reason="ROUTE_NOT_FOUND")
        if api := api_of(request.scope["path"]):
            text = f"The memory proxy has no model server for {api}. Name one in the setting proxy.upstreams."
            refused = NotFound(text, reason="ROUTE_NOT_FOUND")
    note_outcome(request.scope, refused)
    return problem(refused, request.scope)


_WITHOUT_HEAD = re.compile(r"/v1/agents/[^/]++/(?:backup|export|events)")
"""Paths that do not support HEAD: GET would create a file or a stream."""


def supports_head(path: str) -> bool:
    """Return whether a path that supports GET supports HEAD too."""
    return _WITHOUT_HEAD.fullmatch(path) is None


def _methods_at(request: Request) -> set[str]:
    """Return the methods that the path of a request supports."""
    found = (route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE)
    methods = {method for route in found for method in getattr(route, "methods", None) or ()}
    return methods | {"HEAD"} if "GET" in methods and supports_head(request.scope["path"]) else methods


async def on_fault(request: Request, error: Exception) -> Response:
    """Respond to an unexpected exception."""
    get_log("rest").error("request failed", reason="INTERNAL", exc_info=error)
    return problem(Internal("unexpected"), request.scope)
