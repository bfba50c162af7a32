"""The OpenAPI document is fit for code generators: complete, unambiguous, and accepted by two of them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ebbtide.errors import REASONS
from ebbtide.events import EventKind
from ebbtide.settings import LimitSettings
from ebbtide.verbs.catalogue import CATALOGUE
from tests.support.node import PACKAGE, SAMPLE, TSC, require_tools, run_node, skip_locally
from tests.support.openapi import openapi_document
from tests.tidy.pages import ROOT


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The document of a daemon."""
    return openapi_document()


@pytest.fixture(scope="module")
def operations(document: dict[str, Any]) -> dict[str, Any]:
    """Return every operation by its id."""
    return {one["operationId"]: one for methods in document["paths"].values() for one in methods.values()}


@pytest.fixture(scope="module")
def schemas(document: dict[str, Any]) -> dict[str, Any]:
    """Return every schema by its name."""
    found: dict[str, Any] = document["components"]["schemas"]
    return found


def parts(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object within a part of the document, except examples."""
    if isinstance(value, dict):
        yield value
        for key, inner in value.items():
            if key not in ("examples", "example"):
                yield from parts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from parts(inner)


def body_of(operation: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an operation's JSON body."""
    reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    found: dict[str, Any] = schemas[reference.rpartition("/")[2]]
    return found


# --- the document ------------------------------------------------------------------------------------


def test_operation_ids_are_the_names_of_the_rpcs(operations: dict[str, Any]) -> None:
    """Each RPC with a route has its name in camel case as operation id; the other ids follow the same form."""
    proto = (ROOT / "proto" / "ebbtide" / "v1" / "memory_service.proto").read_text()
    calls = set(re.findall(r"rpc (\w+)\(", proto))
    assert {name[0].lower() + name[1:] for name in calls} <= set(operations)
    assert all(re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", name) for name in operations)


def test_no_null_defaults_and_no_titles(document: dict[str, Any]) -> None:
    """No schema has a title or a default of null; a field named `title` is allowed."""
    for part in parts({"paths": document["paths"], "components": document["components"]}):
        assert not isinstance(part.get("title"), str)
        assert "default" not in part or part["default"] is not None


def test_query_parameters_are_never_null(operations: dict[str, Any]) -> None:
    """A query parameter has one type, because a URL cannot express null."""
    for operation in operations.values():
        for parameter in operation["parameters"]:
            options = parameter.get("schema", {}).get("anyOf", [])
            # A time is a number of milliseconds or a text; any other parameter has one type.
            assert options == [] or {one.get("format") for one in options} == {None, "date-time"}
            assert {"type": "null"} not in options


def test_every_response_has_a_schema(operations: dict[str, Any]) -> None:
    """JSON, plain text, JSON lines and binary content all have a schema of the right kind."""
    text = {"type": "string"}
    for operation in operations.values():
        for response in operation["responses"].values():
            for kind, content in response["content"].items():
                assert content["schema"], (operation["operationId"], kind)
                if kind in ("text/plain", "application/x-ndjson"):
                    assert content["schema"] == text
                if kind == "application/octet-stream":
                    assert content["schema"] == {**text, "format": "binary"}
    body = operations["restoreAgent"]["requestBody"]["content"]
    assert body["application/octet-stream"]["schema"] == {**text, "format": "binary"}
    assert body["application/x-ndjson"]["schema"] == text
    assert operations["getReadiness"]["responses"]["503"]["content"]["application/json"]["schema"]


def test_every_status_of_a_creation_is_documented(operations: dict[str, Any]) -> None:
    """An operation that answers 201 for a new item and 200 for a known one documents both."""
    both = {one.name for one in CATALOGUE if not isinstance(one.status, int)} - {"GetReadiness"}
    assert "CreateStatement" in both
    for name in both:
        assert {"200", "201"} <= operations[name[0].lower() + name[1:]]["responses"].keys()


def test_enumerations_have_every_value(schemas: dict[str, Any], operations: dict[str, Any]) -> None:
    """States, kinds, statuses, tokenizers and signals are enumerated; a reason may also be an unknown one."""
    assert schemas["BatchInfo"]["properties"]["state"]["enum"] == [
        "waiting",
        "digesting",
        "digested",
        "parked",
    ]
    assert schemas["EventInfo"]["properties"]["kind"]["enum"] == list(EventKind)
    error = schemas["ErrorDetails"]["properties"]
    assert set(error["status"]["enum"]) == {reason.grpc for reason in REASONS.values()}
    known, other = error["reason"]["anyOf"]
    assert set(known["enum"]) == set(REASONS) and other == {"type": "string"}
    recall = body_of(operations["recall"], schemas)["properties"]
    assert "estimate" in recall["tokenizer"]["enum"] and recall["tokenizer"]["default"] == "estimate"
    assert len(recall["without"]["items"]["enum"]) > 3
    state = next(p for p in operations["listBatches"]["parameters"] if p.get("name") == "state")
    assert "parked" in state["schema"]["enum"]


def test_api_keys_are_declared(document: dict[str, Any], operations: dict[str, Any]) -> None:
    """The document names the bearer scheme and a server; health needs no key, every other route may."""
    assert document["servers"] == [{"url": "/"}]
    scheme = document["components"]["securitySchemes"]["apiKey"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    assert document["security"] == [{"apiKey": []}, {}]
    open_to_all = {name for name, one in operations.items() if one.get("security") == []}
    assert open_to_all == {"getHealth", "getReadiness"}


def test_headers_are_declared(operations: dict[str, Any]) -> None:
    """Requests and responses name their headers."""
    sent = {
        name: [p["name"] for p in one["parameters"] if p.get("in") == "header"]
        for name, one in operations.items()
    }
    assert sent["remember"] == ["Idempotency-Key"] and sent["watchEvents"] == ["Last-Event-ID"]
    for operation in operations.values():
        assert {"$ref": "#/components/parameters/RequestId"} in operation["parameters"]
        for status, response in operation["responses"].items():
            assert "X-Request-Id" in response["headers"]
            assert ("Retry-After" in response["headers"]) == (status in ("4XX", "5XX"))
    assert "Location" in operations["remember"]["responses"]["202"]["headers"]


def test_null_is_declared_where_a_patch_takes_it(schemas: dict[str, Any], operations: dict[str, Any]) -> None:
    """Every parameter may be null in PATCH and none in PUT; a response has all of them."""
    patch = body_of(operations["updateAgent"], schemas)
    put = body_of(operations["openAgent"], schemas)
    assert (
        patch["properties"].keys()
        == put["properties"].keys()
        == schemas["AgentParameters"]["properties"].keys()
    )
    assert all({"type": "null"} in field["anyOf"] for field in patch["properties"].values())
    assert not any("anyOf" in field or "default" in field for field in put["properties"].values())
    assert "required" not in patch and "required" not in put
    assert schemas["AgentParameters"]["required"] == list(schemas["AgentParameters"]["properties"])


def test_responses_require_what_they_always_have(schemas: dict[str, Any]) -> None:
    """A field is optional in a response only if the daemon may omit it."""
    assert schemas["Health"]["required"] == ["status", "version"]
    assert set(schemas["Recalled"]["properties"]) - set(schemas["Recalled"]["required"]) == {
        "memories",
        "explanation",
        "records",
    }
    assert set(schemas["Found"]["properties"]) - set(schemas["Found"]["required"]) == {"records"}


def test_everything_is_described(
    document: dict[str, Any], operations: dict[str, Any], schemas: dict[str, Any]
) -> None:
    """Every schema, property, parameter and response has a description of its own."""
    for name, schema in schemas.items():
        assert schema["description"], name
        for field, part in schema.get("properties", {}).items():
            assert part.get("description", "").strip(), (name, field)
    for name, operation in operations.items():
        assert operation["description"], name
        for parameter in operation["parameters"]:
            assert "$ref" in parameter or parameter["description"], (name, parameter)
        for status, response in operation["responses"].items():
            assert response["description"] not in ("", "Successful Response"), (name, status)


KEYWORDS = {"string": "maxLength", "integer": "minimum", "array": "maxItems", "number": "maximum"}
"""The keyword that a bounded value of each type declares."""

UNBOUNDED = {
    "kinds",
    "without",
    "nodes",
    "start_nodes",
    "node_ids",
    "messages",
    "node_id",
    "batch_id",
    "page_token",
    "replaces",
    "source",
    "target",
    "keep",
    "drop",
}
"""Fields with ids, which are looked up, tokens, or lists of a few words."""


def test_requests_declare_their_bounds(operations: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Texts, numbers and lists of requests have the default limits, and the description names the setting."""
    fields = [
        (name, field, schema)
        for name, operation in operations.items()
        if "application/json" in operation.get("requestBody", {}).get("content", {})
        for field, schema in body_of(operation, schemas)["properties"].items()
    ]
    fields += [("Message", field, schema) for field, schema in schemas["Message"]["properties"].items()]
    for name, field, schema in fields:
        for part in parts(schema):
            keyword = KEYWORDS.get(part.get("type", ""))
            if keyword is None or {"enum", "const", "format"} & part.keys() or field in UNBOUNDED:
                continue
            assert {keyword, "exclusiveMinimum", "pattern"} & part.keys() or name in (
                "openAgent",
                "updateAgent",
            ), (
                name,
                field,
            )
    recall = body_of(operations["recall"], schemas)["properties"]
    assert recall["query"]["anyOf"][0]["maxLength"] == LimitSettings().max_query_chars
    assert (recall["depth"]["anyOf"][0]["minimum"], recall["depth"]["anyOf"][0]["maximum"]) == (0, 8)
    assert "`limits.max_query_chars`" in recall["query"]["description"]
    assert recall["keywords"]["maxItems"] == LimitSettings().max_keywords
    messages = body_of(operations["remember"], schemas)["properties"]["messages"]
    assert (messages["minItems"], messages["maxItems"]) == (1, LimitSettings().max_messages)


def test_no_internal_keys_are_left(document: dict[str, Any]) -> None:
    """The document has no extension keys: the settings of limits are in the descriptions."""
    assert not [key for part in parts(document) for key in part if key.startswith("x-")]


# --- generators --------------------------------------------------------------------------------------


def test_typescript_compiles_a_program_on_the_document(document: dict[str, Any], tmp_path: Path) -> None:
    """openapi-typescript generates types on which a sample compiles, strict and with exact optional fields."""
    require_tools()
    for file in (PACKAGE / "package.json", PACKAGE / "generate.mjs", *SAMPLE.iterdir()):
        shutil.copy(file, tmp_path)
    (tmp_path / "node_modules").symlink_to(PACKAGE / "node_modules")
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    run_node(tmp_path, "generate.mjs", "openapi.json", "schema.d.ts")
    run_node(tmp_path, TSC, "--project", ".")


def test_a_python_client_is_generated_and_imported(document: dict[str, Any], tmp_path: Path) -> None:
    """openapi-python-client reads the document without a warning, and every generated module can be imported."""
    if find_spec("openapi_python_client") is None:
        skip_locally("openapi-python-client is not installed")
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    # The tool does not support JSON lines. Its own formatter is skipped to save time.
    (tmp_path / "config.yaml").write_text(
        "content_type_overrides: {application/x-ndjson: application/octet-stream}\npost_hooks: []\n"
    )
    command = [
        sys.executable,
        "-m",
        "openapi_python_client",
        "generate",
        "--fail-on-warning",
        "--meta",
        "none",
    ]
    options = ["--path", "openapi.json", "--output-path", "made", "--config", "config.yaml"]
    done = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    check = (
        "import importlib, inspect, pkgutil, made\n"
        "names = [m.name for m in pkgutil.walk_packages(made.__path__, 'made.')]\n"
        "for name in names: importlib.import_module(name)\n"
        "from made.api.memory import recall, remember, search\n"
        "assert 'idempotency_key' in inspect.signature(remember.sync).parameters\n"
        "assert len(names) > 100\n"
    )
    imported = subprocess.run(
        [sys.executable, "-c", check], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert imported.returncode == 0, imported.stderr
