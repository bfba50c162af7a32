"""Details that code generators need and FastAPI does not add to the OpenAPI document.

FastAPI describes paths and schemas. `complete` adds the operation ids (the names of the RPCs), the security scheme,
headers, enumerations and the fields that a response always has. It removes what generators misread: titles, defaults
of null, and null in query parameters.

Each table below names a schema or an operation. A name that the document does not have raises KeyError.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ebbtide.access.requirements import Needs
from ebbtide.errors import REASONS
from ebbtide.events import EventKind
from ebbtide.records import BatchState
from ebbtide.retrieval.ranking_request import SIGNALS
from ebbtide.retrieval.tokenizers import TOKENIZERS
from ebbtide.verbs.catalogue import CATALOGUE
from ebbtide.verbs.limits import SETTING

Schema = dict[str, Any]

REF = "#/components/schemas/"

MEMORY_STATES = ("living", "archived", "pending")
ROLES = ("user", "assistant", "system", "tool")

ENUMS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("BatchInfo", "state"): tuple(BatchState),
    ("RecalledMemory", "state"): MEMORY_STATES,
    ("FoundMemory", "state"): MEMORY_STATES,
    ("SourceInfo", "role"): ROLES,
    ("MessageInfo", "role"): ROLES,
    ("CitedSource", "role"): ROLES,
    ("EventInfo", "kind"): tuple(EventKind),
    ("Readiness", "status"): ("ready", "degraded", "unavailable"),
    ("ErrorDetails", "status"): tuple(sorted({reason.grpc for reason in REASONS.values()})),
}
"""Values of text fields in responses, by schema and field."""

BODY_ENUMS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("recall", "tokenizer"): tuple(TOKENIZERS),
    ("recall", "without"): tuple(SIGNALS),
}
"""Allowed values of text fields in request bodies, or of the items of lists, by operation and field."""

QUERY_ENUMS: Mapping[tuple[str, str], tuple[str, ...]] = {("listBatches", "state"): tuple(BatchState)}
"""Allowed values of query parameters, by operation and parameter."""

OPEN_ENUMS: Mapping[tuple[str, str], tuple[str, ...]] = {("ErrorDetails", "reason"): tuple(sorted(REASONS))}
"""Known values of text fields that may have others."""

OMITTED = frozenset(
    {
        *(("Recalled", "memories"), ("Recalled", "explanation"), ("Recalled", "records")),
        *(("Found", "records"), ("NodePage", "details"), ("ErrorDetails", "field_violations")),
    }
)
"""Fields that a response may lack. It always has all others."""

PARAMETERS = "AgentParameters"
PARAMETERS_OF = {"openAgent": "AgentParametersInput", "updateAgent": "AgentParametersPatch"}
"""Schemas of the bodies that set parameters: all optional, and null too in a patch."""

_TEXT: Schema = {"type": "string"}

REQUEST_HEADERS: Mapping[str, Schema] = {
    "remember": {
        "name": "Idempotency-Key",
        "description": "Same as `idempotency_key`: a repeated request stores the batch once.",
        "schema": _TEXT,
    },
    "watchEvents": {
        "name": "Last-Event-ID",
        "description": "Number of the last event that the client received. Overrides `after`.",
        "schema": {**_TEXT, "pattern": "^[0-9]{1,19}$"},
    },
}
"""Request headers of single operations."""

_REQUEST_ID: Schema = {
    "description": "Id of the request in the daemon's log. The daemon creates one if it is missing or malformed.",
    "schema": _TEXT,
}
SHARED: Schema = {
    "parameters": {"RequestId": {"name": "X-Request-Id", "in": "header", "required": False, **_REQUEST_ID}},
    "headers": {
        "RequestId": _REQUEST_ID,
        "RetryAfter": {
            "description": "Seconds after which another attempt makes sense.",
            "schema": {"type": "integer"},
        },
    },
}
"""The parts of every operation: the header X-Request-Id both ways, and Retry-After of some errors."""

RESPONSE_HEADERS: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("remember", "202"): {"Location": "Path of the batch."},
    ("recall", "200"): {
        "X-Pending-Batches": "With text/plain: accepted batches not yet digested.",
        "X-Parked-Batches": "With text/plain: batches parked after failures.",
        "X-Unembedded-Messages": "With text/plain: messages found only by their words so far.",
    },
    ("backupAgent", "200"): {"Content-Disposition": "Suggested file name."},
    ("exportAgent", "200"): {"Content-Disposition": "Suggested file name."},
}
"""Response headers of single operations, by status."""

EXPORT_TYPE = "application/x-ndjson"


def complete(document: Schema) -> None:
    """Add the missing details to a document of FastAPI, in place."""
    document["servers"] = [{"url": "/"}]
    document["components"].update(SHARED)
    _require_bearer(document)
    schemas = document["components"]["schemas"]
    _split_parameters(document)
    for (name, field), values in ENUMS.items():
        _restrict(schemas[name]["properties"][field], values)
    for (name, field), values in OPEN_ENUMS.items():
        _suggest(schemas[name]["properties"][field], values)
    _require_what_responses_have(document)
    for schema in schemas.values():
        for field in schema.get("properties", {}).values():
            _describe_limits(field)
    by_id = {operation["operationId"]: operation for _, operation in operations(document)}
    for (name, field), values in BODY_ENUMS.items():
        _restrict(schemas[body_name(by_id[name])]["properties"][field], values)
    for operation in by_id.values():
        _describe_headers(operation)
        _describe_texts(operation)
        for parameter in operation["parameters"]:
            if "$ref" not in parameter:
                _drop_null(parameter.get("schema", {}))
                _describe_limits(parameter)
    for (name, field), values in QUERY_ENUMS.items():
        _restrict(next(p for p in by_id[name]["parameters"] if p.get("name") == field)["schema"], values)
    for part in (*schemas.values(), *by_id.values()):
        _tidy(part)


def operations(document: Schema) -> Iterator[tuple[str, Schema]]:
    """Every operation with its `METHOD /path`."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def body_name(operation: Schema) -> str:
    """Name of the schema of an operation's JSON body."""
    body: str = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    return body.removeprefix(REF)


def name_operations(document: Schema) -> None:
    """Replace FastAPI's operation ids with the names of the RPCs, in camel case."""
    ids = {operation.route: operation.id for operation in CATALOGUE}
    for route, operation in operations(document):
        operation["operationId"] = ids[route]


def _require_bearer(document: Schema) -> None:
    """Declare API keys, which every operation takes but those that need none. A daemon may run without keys."""
    document["components"]["securitySchemes"] = {
        "apiKey": {"type": "http", "scheme": "bearer", "description": "An API key, where keys are enabled."}
    }
    document["security"] = [{"apiKey": []}, {}]
    open_to_all = {operation.route for operation in CATALOGUE if operation.requires.needs is Needs.NOTHING}
    for route, operation in operations(document):
        if route in open_to_all:
            operation["security"] = []


def _split_parameters(document: Schema) -> None:
    """Give the two bodies that set parameters schemas of their own."""
    schemas = document["components"]["schemas"]
    properties: Schema = schemas[PARAMETERS]["properties"]
    text = schemas[PARAMETERS].get("description", "")
    bare = {name: {k: v for k, v in field.items() if k != "default"} for name, field in properties.items()}
    patch = {name: _nullable(field) for name, field in bare.items()}
    for name, fields, note in (
        (PARAMETERS_OF["openAgent"], bare, "A missing parameter has the daemon's default."),
        (PARAMETERS_OF["updateAgent"], patch, "null restores the daemon's default."),
    ):
        schemas[name] = {
            "type": "object",
            "description": f"{text} {note}".strip(),
            "properties": fields,
            "additionalProperties": False,
        }
    for _, operation in operations(document):
        name = PARAMETERS_OF.get(operation["operationId"], "")
        if name:
            operation["requestBody"]["content"]["application/json"]["schema"] = {"$ref": REF + name}


def _nullable(field: Schema) -> Schema:
    outer = {key: value for key, value in field.items() if key in ("description", "examples")}
    inner = {key: value for key, value in field.items() if key not in outer}
    return {"anyOf": [inner, {"type": "null"}], **outer}


def _restrict(field: Schema, values: tuple[str, ...]) -> None:
    (field["items"] if field.get("type") == "array" else field)["enum"] = list(values)


def _suggest(field: Schema, values: tuple[str, ...]) -> None:
    del field["type"]
    field["anyOf"] = [{"type": "string", "enum": list(values)}, {"type": "string"}]


def _require_what_responses_have(document: Schema) -> None:
    """Mark every field of a response as required. Its default, if it has one, is no default of a reader."""
    schemas = document["components"]["schemas"]
    reached: set[str] = set()
    waiting = [operation["responses"] for _, operation in operations(document)]
    while waiting:
        for name in references(waiting.pop()):
            if name not in reached:
                reached.add(name)
                waiting.append(schemas[name])
    for name in reached:
        fields = schemas[name].get("properties", {})
        schemas[name]["required"] = [field for field in fields if (name, field) not in OMITTED]


def references(part: Any) -> Iterator[str]:
    """Names of the schemas to which a part of a document refers directly."""
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"].removeprefix(REF)
        part = list(part.values())
    if isinstance(part, list):
        for value in part:
            yield from references(value)


def _describe_headers(operation: Schema) -> None:
    name = operation["operationId"]
    parameters = operation.setdefault("parameters", [])
    if name in REQUEST_HEADERS:
        parameters.append({"in": "header", "required": False, **REQUEST_HEADERS[name]})
    parameters.append({"$ref": "#/components/parameters/RequestId"})
    for status, response in operation["responses"].items():
        received = RESPONSE_HEADERS.get((name, status), {})
        response["headers"] = {
            **{header: {"description": text, "schema": _TEXT} for header, text in received.items()},
            "X-Request-Id": {"$ref": "#/components/headers/RequestId"},
        }
        if status in ("4XX", "5XX"):
            response["headers"]["Retry-After"] = {"$ref": "#/components/headers/RetryAfter"}


def _describe_texts(operation: Schema) -> None:
    """Give plain text and JSON lines the schema of a text."""
    contents = [operation.get("requestBody", {}).get("content", {})]
    contents += [response.get("content", {}) for response in operation["responses"].values()]
    for content in contents:
        for kind in content.keys() & {"text/plain", EXPORT_TYPE}:
            content[kind]["schema"] = _TEXT
    if operation["operationId"] == "getReadiness":
        operation["responses"]["503"] = {
            **operation["responses"]["200"],
            "description": "Unavailable: no request is accepted.",
        }


def _describe_limits(field: Schema) -> None:
    """Name the settings that change the limits of a field in its description."""
    names = sorted(set(_settings_in(field)))
    if names:
        settings = " and ".join(f"`limits.{name}`" for name in names)
        sets = "sets the limit" if len(names) == 1 else "set the limits"
        field["description"] = f"{field['description']} {settings} {sets}."


def _settings_in(part: Any) -> Iterator[str]:
    """Remove the names of settings from a part of the document, and yield them."""
    if isinstance(part, dict):
        if SETTING in part:
            yield part.pop(SETTING)
        part = list(part.values())
    if isinstance(part, list):
        for value in part:
            yield from _settings_in(value)


def _drop_null(schema: Schema) -> None:
    """Remove null from the schema of a parameter: an address cannot express it."""
    options = [option for option in schema.get("anyOf", []) if option != {"type": "null"}]
    if len(options) == 1:
        del schema["anyOf"]
        schema.update(options[0])


def _tidy(part: Any) -> None:
    """Remove titles and defaults of null from the schemas in a part of a document."""
    if isinstance(part, list):
        for value in part:
            _tidy(value)
    if not isinstance(part, dict):
        return
    if isinstance(part.get("title"), str):
        del part["title"]
    if part.get("default", "") is None:
        del part["default"]
    for key, value in part.items():
        if key == "properties":
            # Its keys are names of fields: one may be called `title`.
            for field in value.values():
                _tidy(field)
        elif key not in ("examples", "example", "default", "enum"):
            _tidy(value)
