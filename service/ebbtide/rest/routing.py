"""What every route has in common: who may take it, the options it knows, the span of its verb, how it fails."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.routing import request_response

from ebbtide.access.grants import CALLER
from ebbtide.access.operations import BY_ROUTE, UNLISTED
from ebbtide.errors import FieldViolation, InvalidRequest
from ebbtide.rest.problems import ErrorBody
from ebbtide.telemetry import verb_span
from ebbtide.verbs.service import Service

ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorBody, "description": "The request, the agent or a bound does not allow it."},
    "5XX": {"model": ErrorBody, "description": "Not now, or a fault of ours."},
}


def service_of(request: Request) -> Service:
    """What every verb works with."""
    found: Service = request.app.state.service
    return found


def _refuse(request: Request) -> None:
    """Refuse who may not, and query options that the route does not have."""
    operation = BY_ROUTE.get(f"{request.method} {request.scope['route'].path}", UNLISTED)
    service_of(request).entrance.permit(CALLER.get(), operation, request.path_params.get("agent_id"))
    _refuse_unknown_options(request)


def _refuse_unknown_options(request: Request) -> None:
    if not request.scope["query_string"]:
        return
    known = {field.alias for field in request.scope["route"].dependant.query_params}
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        allowed = ", ".join(sorted(known)) or "none"
        raise InvalidRequest(
            f"no such query option; allowed: {allowed}",
            reason="UNKNOWN_FIELD",
            violations=[FieldViolation("query", f"allowed options: {allowed}")],
        )


class VerbRoute(APIRoute):
    """A route to a verb: taken by who may, with options that it has; its work is the span of the verb."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        if _is_plain(self):
            # What FastAPI keeps open around a route is for dependencies, of which a plain one has none.
            self.app = request_response(self.get_route_handler())

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request, within a span."""
        handle = self._handle_plainly if _is_plain(self) else super().get_route_handler()

        async def handled(request: Request) -> Response:
            with verb_span(self.name):
                # Here and not as a dependency of the route: FastAPI solves one in more time than this takes.
                _refuse(request)
                return await handle(request)

        return handled

    async def _handle_plainly(self, request: Request) -> Response:
        answer: Response = await self.endpoint(request, **request.path_params)
        return answer


def _is_plain(route: APIRoute) -> bool:
    """Whether a route takes the request and texts of its path, and nothing that FastAPI would have to work out."""
    wanted = route.dependant
    return (
        wanted.request_param_name == "request"
        and all(field.field_info.annotation is str for field in wanted.path_params)
        and not (wanted.dependencies or wanted.query_params or wanted.header_params or wanted.cookie_params)
        and not (wanted.body_params or wanted.response_param_name or wanted.background_tasks_param_name)
    )
