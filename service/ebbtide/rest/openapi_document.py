"""The OpenAPI document of the catalogue, built by FastAPI, with links between operations.

Only a request for the document imports this module: importing FastAPI takes as long as all other parts of the REST
interface together.
"""

from __future__ import annotations

from typing import Any

from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ebbtide import __version__
from ebbtide.rest import openapi
from ebbtide.rest.moving import BINARY
from ebbtide.rest.problems import ErrorBody
from ebbtide.rest.routes import SPECIAL, Special, is_body_required
from ebbtide.verbs.catalogue import CATALOGUE, Kind, Operation
from ebbtide.verbs.moving import BACKUP_TYPE, EXPORT_TYPE

REF = "#/components/schemas/{model}"

AGENT = "/v1/agents/{agent_id}"
_OF_AGENT = {"agent_id": "$request.path.agent_id"}
_BATCH = {**_OF_AGENT, "batch_id": "$response.body#/batch_id"}
_NODE = {**_OF_AGENT, "node_id": "$response.body#/nodes/0/id"}

LINKS: dict[tuple[str, str, str], list[tuple[str, str, dict[str, str]]]] = {
    (AGENT, "put", "201"): [(f"{AGENT}/remember", "post", _OF_AGENT), (AGENT, "delete", _OF_AGENT)],
    (f"{AGENT}/remember", "post", "202"): [
        (f"{AGENT}/batches/{{batch_id}}", "get", _BATCH),
        (f"{AGENT}/batches/{{batch_id}}/retry", "post", _BATCH),
        (f"{AGENT}/flush", "post", _OF_AGENT),
        (f"{AGENT}/recall", "post", _OF_AGENT),
        (f"{AGENT}/search", "post", _OF_AGENT),
    ],
    (f"{AGENT}/flush", "post", "200"): [
        (f"{AGENT}/nodes", "get", _OF_AGENT),
        (f"{AGENT}/links", "get", _OF_AGENT),
        (f"{AGENT}/compress", "post", _OF_AGENT),
    ],
    (f"{AGENT}/nodes", "get", "200"): [
        (f"{AGENT}/nodes/{{node_id}}", method, _NODE) for method in ("get", "patch", "delete")
    ],
}
"""The links of a response: from (path, method, status) to (path, method, sources of its parameters)."""

ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorBody, "description": "The request, the agent or a limit does not allow it."},
    "5XX": {
        "model": ErrorBody,
        "description": "Temporarily unavailable, or an internal error.",
    },
}


def openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document of the daemon."""
    document = get_openapi(
        title="Ebbtide",
        version=__version__,
        description="A memory daemon for AI agents that forgets gracefully and knows what it forgot.",
        routes=[_route(operation) for operation in CATALOGUE],
    )
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    _, added = models_json_schema(
        [
            *((one.body_model, "validation") for one in CATALOGUE if one.has_body),
            *((one.response, "serialization") for one in CATALOGUE if one.response is not None),
            (ErrorBody, "serialization"),
        ],
        ref_template=REF,
    )
    for name, schema in added["$defs"].items():
        schemas.setdefault(name, schema)
    for one in CATALOGUE:
        if one.has_body:
            _without_path(schemas[one.body_model.__name__], one)
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
    openapi.name_operations(document)
    _add_links(document["paths"])
    openapi.complete(document)
    return document


def _route(operation: Operation) -> APIRoute:
    """Return the route of an operation for FastAPI to describe. It is never called."""
    special = SPECIAL.get(operation.name, Special())
    is_json = operation.response is not None and operation.kind is not Kind.STREAM
    return APIRoute(
        operation.path,
        _endpoint,
        methods=[operation.method],
        name=operation.verb_name,
        operation_id=operation.id,
        description=_first_paragraph(operation.verb),
        tags=[operation.tag],
        status_code=operation.status if isinstance(operation.status, int) else 200,
        response_model=operation.response,
        response_description=_first_paragraph(operation.response) or "The response.",
        response_class=JSONResponse if is_json else Response,
        responses={**ERRORS, **special.responses},
        openapi_extra=_request_of(operation),
    )


def _first_paragraph(documented: object) -> str:
    return (getattr(documented, "__doc__", None) or "").partition("\n\n")[0]


async def _endpoint(_: Request) -> Response:
    raise AssertionError("the routes of the document are never called")


def _request_of(operation: Operation) -> dict[str, Any]:
    """Return the parameters and the body of a request, which FastAPI cannot derive."""
    _, schemas = models_json_schema(
        [(operation.request, "validation")], ref_template="#/components/schemas/{model}"
    )
    properties = schemas["$defs"][operation.request.__name__].get("properties", {})
    places = {**dict.fromkeys(operation.in_path, "path"), **dict.fromkeys(operation.in_query, "query")}
    extra: dict[str, Any] = {}
    if places:
        extra["parameters"] = [
            _parameter(name, place, dict(properties[name])) for name, place in places.items()
        ]
    if operation.kind is Kind.UPLOAD:
        extra["requestBody"] = {"required": True, "content": {BACKUP_TYPE: BINARY, EXPORT_TYPE: BINARY}}
    if operation.has_body:
        extra |= body_of(operation, is_required=is_body_required(operation))
    if operation.kind is Kind.STREAM:
        assert operation.response is not None
        extra |= stream_of(operation.response)
    return extra


def _parameter(name: str, place: str, schema: dict[str, Any]) -> dict[str, Any]:
    description = schema.pop("description", "")
    examples = schema.pop("examples", None)
    options = [option for option in schema.pop("anyOf", []) if option != {"type": "null"}]
    # An option of a query cannot be null.
    schema |= options[0] if len(options) == 1 else {"anyOf": options} if options else {}
    is_json = schema.get("type") == "object"
    return {
        "name": name,
        "in": place,
        "required": place == "path",
        **({"content": {"application/json": {"schema": schema}}} if is_json else {"schema": schema}),
        **({"style": "form", "explode": False} if schema.get("type") == "array" else {}),
        **({"description": description} if description else {}),
        **({"example": examples[0]} if examples else {}),
    }


def body_of(operation: Operation, *, is_required: bool) -> dict[str, Any]:
    """Return the `openapi_extra` of a route with a body."""
    examples = {name: {"value": body} for name, body in operation.examples.items()}
    content = {"schema": {"$ref": REF.format(model=operation.body_model.__name__)}, "examples": examples}
    return {"requestBody": {"required": is_required, "content": {"application/json": content}}}


def stream_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the `openapi_extra` of a route with an event stream: each event's data is one of these."""
    content = {"text/event-stream": {"schema": {"$ref": REF.format(model=model.__name__)}}}
    return {"responses": {"200": {"content": content}}}


def _without_path(schema: dict[str, Any], operation: Operation) -> None:
    """Take the fields of the path out of the schema of a body."""
    for name in operation.in_path:
        schema["properties"].pop(name, None)
        if name in schema.get("required", ()):
            schema["required"].remove(name)
    if not schema.get("required", True):
        del schema["required"]


def _add_links(paths: dict[str, Any]) -> None:
    for (path, method, status), targets in LINKS.items():
        links = paths[path][method]["responses"][status].setdefault("links", {})
        for target, its_method, parameters in targets:
            operation = paths[target][its_method]["operationId"]
            links[operation] = {"operationId": operation, "parameters": parameters}
