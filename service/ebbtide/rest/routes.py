"""Routes, built from the catalogue of operations by one handler: path, query and body → request → verb → response.

`SPECIAL` lists the operations that read headers or whose response is not JSON. Files and event streams have modules of
their own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any
from urllib.parse import quote

from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from ebbtide.access.grants import CALLER
from ebbtide.errors import FieldViolation, InvalidRequest
from ebbtide.metrics import CONTENT_TYPE
from ebbtide.rest.measured_route import MeasuredRoute
from ebbtide.rest.moving import BINARY, FileResponse, attached_file
from ebbtide.rest.streams import ServerSentEvents, position
from ebbtide.telemetry import verb_span
from ebbtide.verbs.agents import AgentInfo
from ebbtide.verbs.catalogue import CATALOGUE, Kind, Operation
from ebbtide.verbs.merging import perform
from ebbtide.verbs.moving import BACKUP_TYPE, EXPORT_TYPE
from ebbtide.verbs.recall import Recalled
from ebbtide.verbs.remember import Remembered, RememberRequest
from ebbtide.verbs.requests import echo, read_request, validated
from ebbtide.verbs.service import Service
from ebbtide.verbs.statements import CreatedStatement

Handler = Callable[[Request], Awaitable[Response]]
JSON = "application/json"


def service_of(request: Request) -> Service:
    """Return what every verb works with."""
    found: Service = request.app.state.service
    return found


# --- what single operations do besides -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Special:
    """The headers that an operation reads, and the form of its response."""

    with_headers: Callable[[Request, Any], Any] | None = None
    """From the request of the verb to one with what the headers say."""
    respond: Callable[[Request, Any], Response] | None = None
    """From the response of the verb to that over HTTP."""
    responses: Mapping[int | str, dict[str, Any]] = field(default_factory=dict)
    """Other responses, for the OpenAPI document."""


def _with_idempotency_key(request: Request, given: RememberRequest) -> RememberRequest:
    headers = request.headers.getlist("idempotency-key")
    if not headers:
        return given
    if len(headers) > 1 or not headers[0]:
        fault = f"given {len(headers)} times" if len(headers) > 1 else "empty"
        description = f"{fault}; send one key, or leave the header out"
        raise InvalidRequest(
            f"Idempotency-Key: {description}", violations=[FieldViolation("Idempotency-Key", description)]
        )
    header = headers[0]
    if given.idempotency_key not in (None, header):
        raise InvalidRequest(
            "the Idempotency-Key header and the field idempotency_key differ",
            reason="IDEMPOTENCY_KEYS_DIFFER",
        )
    fields = {**dict(given), "idempotency_key": header}
    return validated(RememberRequest, fields, service_of(request).settings.limits)


def _accepted(request: Request, done: Remembered) -> Response:
    location = f"/v1/agents/{quote(request.path_params['agent_id'], safe='')}/batches/{done.batch_id}"
    return Response(done.as_json(), 202, {"Location": location}, JSON)


def _recalled(request: Request, answer: Recalled) -> Response:
    if not prefers_text(request.headers.get("accept", "")):
        return Response(answer.as_json(), media_type=JSON)
    headers = {
        "X-Pending-Batches": str(answer.pending_batches),
        "X-Parked-Batches": str(answer.parked_batches),
        "X-Unembedded-Messages": str(answer.unembedded_messages),
    }
    return Response(answer.text, headers=headers, media_type="text/plain; charset=utf-8")


def prefers_text(accept: str) -> bool:
    """Return whether an Accept header ranks text/plain above JSON."""
    weights = {"text/plain": 0.0, "application/json": 0.0}
    for part in accept.lower().split(","):
        kind, *options = (piece.strip() for piece in part.split(";"))
        weight = 1.0
        for option in options:
            if option.startswith("q="):
                try:
                    weight = float(option[2:])
                except ValueError:
                    weight = 0.0
        if kind in weights:
            weights[kind] = max(weights[kind], weight)
    return weights["text/plain"] > weights["application/json"]


def _from_position(request: Request, given: Any) -> Any:
    after = position(given.after, request.headers.get("last-event-id"))
    return given.model_copy(update={"after": after})


SPECIAL: Mapping[str, Special] = {
    "Remember": Special(with_headers=_with_idempotency_key, respond=_accepted),
    "Recall": Special(respond=_recalled, responses={200: {"content": {"text/plain": {}}}}),
    "OpenAgent": Special(
        responses={
            200: {"description": "The agent exists with the same parameters."},
            201: {"model": AgentInfo, "description": "The agent was created."},
        }
    ),
    "CreateStatement": Special(
        responses={
            200: {"description": "An earlier statement already said this; it is returned."},
            201: {"model": CreatedStatement, "description": "The statement was stored."},
        }
    ),
    "WatchEvents": Special(
        with_headers=_from_position,
        respond=lambda _, stream: ServerSentEvents(stream),
        responses={200: {"description": "A stream of events; each has one of these as its data."}},
    ),
    "BackupAgent": Special(
        respond=lambda _, file: FileResponse(file),
        responses={200: {"content": {BACKUP_TYPE: BINARY}, "description": "The backup."}},
    ),
    "ExportAgent": Special(
        respond=lambda _, file: FileResponse(file),
        responses={200: {"content": {EXPORT_TYPE: BINARY}, "description": "The export."}},
    ),
    "GetAttachment": Special(
        respond=lambda request, found: attached_file(found, **request.path_params),
        responses={
            200: {"content": {BACKUP_TYPE: BINARY}, "description": "The attachment, as its media type."}
        },
    ),
    "GetMetrics": Special(
        respond=lambda _, text: Response(text, media_type=CONTENT_TYPE),
        responses={
            200: {
                "content": {"text/plain": {"schema": {"type": "string"}}},
                "description": "The metrics in the text format of Prometheus.",
            }
        },
    ),
}


# --- the handler -----------------------------------------------------------------------------------------


def _handler(operation: Operation, special: Special) -> Handler:
    """The handler of an operation: authorise, read the request, call the verb, respond."""
    model, verb, requires = operation.request, operation.verb, operation.requires
    name, has_body, status = operation.verb_name, operation.has_body, operation.status
    # At the first request, because both build the schema of the request.
    if_empty = cache(lambda: b"" if is_body_required(operation) else b"{}")
    readers = cache(lambda: _readers(operation))
    with_headers, respond = special.with_headers, special.respond

    async def read(request: Request, service: Service) -> Any:
        fields = {**request.path_params, **_query(request, readers)}
        limits = service.settings.limits
        if not has_body:
            return validated(model, fields, limits)
        # The HTTP checks have read the whole body, so it arrives as one message.
        body = (await request.receive())["body"] or if_empty()
        return await service.read_request(len(body), read_request, model, body, fields, limits)

    async def handle(request: Request) -> Response:
        with verb_span(name):
            service = service_of(request)
            service.authentication.permit(CALLER.get(), requires, request.path_params.get("agent_id"))
            given = await read(request, service)
            if with_headers is not None:
                given = with_headers(request, given)
            answer = await perform(service, operation, given)
            if respond is not None:
                return respond(request, answer)
            code = status if isinstance(status, int) else status(answer)
            body = await service.offload(answer.column_bytes, answer.as_json)
            return Response(body, status_code=code, media_type=JSON)

    async def handle_upload(request: Request) -> Response:
        with verb_span(name):
            service = service_of(request)
            service.authentication.permit(CALLER.get(), requires, request.path_params.get("agent_id"))
            given = await read(request, service)
            try:
                answer = await verb(service, given, aiter(request.stream()))
            except ClientDisconnect:
                # The client has disconnected; nothing can be sent.
                return Response(status_code=400)
            return Response(answer.as_json(), media_type=JSON)

    return handle_upload if operation.kind is Kind.UPLOAD else handle


def is_body_required(operation: Operation) -> bool:
    """Return whether a request without a body is invalid, for every path."""
    try:
        operation.request.model_validate(dict.fromkeys(operation.in_path, "n1"))
    except ValueError:
        return True
    return False


# --- the query -------------------------------------------------------------------------------------------

Reader = Callable[[str], Any]
"""From the text of a query option to the value of its field. The model refuses a text that fits no value."""


def _query(request: Request, readers_of: Callable[[], Mapping[str, Reader]]) -> dict[str, Any]:
    if not request.scope["query_string"]:
        return {}
    options = request.query_params.multi_items()
    given, readers = dict(options), readers_of()
    unknown = next((name for name in given if name not in readers), None)
    if unknown is not None:
        allowed = ", ".join(sorted(readers)) or "none"
        option = echo(unknown)
        raise InvalidRequest(
            f"There is no query option {option}; allowed: {allowed}",
            reason="UNKNOWN_FIELD",
            violations=[FieldViolation("query string", f"{option} is not an option; allowed: {allowed}")],
        )
    if len(given) < len(options):
        names = [name for name, _ in options]
        name = next(name for name in given if names.count(name) > 1)
        description = f"given {names.count(name)} times; allowed: once"
        raise InvalidRequest(f"{name}: {description}", violations=[FieldViolation(name, description)])
    return {name: readers[name](text) for name, text in given.items()}


def _readers(operation: Operation) -> dict[str, Reader]:
    if not operation.in_query:
        return {}
    properties = operation.request.model_json_schema()["properties"]
    return {name: _reader(properties[name]) for name in operation.in_query}


def _reader(schema: Mapping[str, Any]) -> Reader:
    kinds = {option.get("type", "") for option in schema.get("anyOf", [schema])}
    if "array" in kinds:
        return lambda text: text.split(",")
    if "boolean" in kinds:
        return _as_bool
    if "object" in kinds:
        return _as_object
    for name, kind in (("integer", int), ("number", float)):
        if name in kinds:
            return partial(_as_number, kind)
    return str


def _as_number(kind: type[int] | type[float], text: str) -> float | str:
    try:
        return kind(text) if len(text) < 20 else text
    except ValueError:
        return text


def _as_object(text: str) -> Any:
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        return text


def _as_bool(text: str) -> bool | str:
    return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)


# --- routes ----------------------------------------------------------------------------------------------


class VerbRoute(MeasuredRoute):
    """The route of an operation."""

    def __init__(self, operation: Operation) -> None:
        handler = _handler(operation, SPECIAL.get(operation.name, Special()))
        super().__init__(operation.path, handler, name=operation.verb_name)
        # Starlette would add HEAD to GET.
        self.methods = {operation.method}


@cache
def routes() -> tuple[BaseRoute, ...]:
    """Return the routes of every operation. They hold no service, so all applications of a process share them."""
    return tuple(VerbRoute(operation) for operation in CATALOGUE)
