"""The OpenAPI document, with request bodies and examples, and `/docs`, served from files on this machine."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles

from ebbtide import __version__
from ebbtide.rest import openapi
from ebbtide.rest.problems import ErrorBody
from ebbtide.verbs.catalogue import CATALOGUE, Operation
from ebbtide.verbs.service import LARGE_BYTES

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

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; font-src 'self'; frame-ancestors 'none'"
)


def body_of(operation: Operation, *, is_required: bool) -> dict[str, Any]:
    """Return the `openapi_extra` of a route with a body."""
    examples = {name: {"value": body} for name, body in operation.examples.items()}
    content = {"schema": {"$ref": REF.format(model=operation.body_model.__name__)}, "examples": examples}
    return {"requestBody": {"required": is_required, "content": {"application/json": content}}}


def stream_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the `openapi_extra` of a route with an event stream: each event's data is one of these."""
    content = {"text/event-stream": {"schema": {"$ref": REF.format(model=model.__name__)}}}
    return {"responses": {"200": {"content": content}}}


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """The whole document; made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title="Ebbtide",
            version=__version__,
            description="A memory daemon for AI agents that forgets gracefully and knows what it forgot.",
            routes=app.routes,
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
        app.openapi_schema = document
    return app.openapi_schema


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


PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Ebbtide</title>
<link rel="stylesheet" href="/docs/files/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/files/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""

START = """SwaggerUIBundle({url: "/openapi.json", dom_id: "#swagger-ui", deepLinking: true});
"""


def add_documents(app: FastAPI) -> None:
    """Serve `/docs` and `/openapi.json` without loading anything from elsewhere."""

    @cache
    def encoded() -> bytes:
        return msgspec.json.encode(openapi_document(app))

    async def document(request: Request) -> Response:
        # Making it takes 0.2 s, the first time.
        body = await request.app.state.service.offload(LARGE_BYTES, encoded)
        return Response(body, media_type="application/json")

    async def page(_: Request) -> Response:
        return HTMLResponse(PAGE, headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY})

    async def start(_: Request) -> Response:
        return Response(START, media_type="text/javascript")

    app.add_route("/openapi.json", document, include_in_schema=False)
    app.add_route("/docs", page, include_in_schema=False)
    app.add_route("/docs/start.js", start, include_in_schema=False)
    page_files = str(files("fastapi_swagger") / "resources")
    app.mount("/docs/files", StaticFiles(directory=page_files))
