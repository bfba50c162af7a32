"""The gRPC schema is well-formed, compatible with its baseline, the source of the stubs, and equal to REST's."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from ebbtide.v1 import memory_service_pb2
from ebbtide.verbs.catalogue import CATALOGUE, Kind
from tests.support.callers import ROUTES, rest_in, words
from tests.support.process import Daemon
from tests.tidy.pages import PACKAGE, ROOT, marked_block, read

PROTO = ROOT / "proto"
BUF = str(Path(sys.executable).with_name("buf"))
SERVICE = memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"]

DOWNLOADS = {operation.name for operation in CATALOGUE if operation.kind is Kind.DOWNLOAD}

NO_CALLS = {operation.route for operation in CATALOGUE if not operation.is_rpc}
"""Routes that gRPC replaces by health v1, and the route that Prometheus scrapes."""

ONLY_IN_PROTO = {
    "OpenAgentResponse": {"created"},
    "UpdateAgentRequest": {"reset"},
    "RestoreAgentRequest": {"chunk"},
    "Message": {"content_parts"},
}
"""Fields that REST expresses differently: as 201 or 200, as null, as a file in the body, and as a list."""

NULL_AS_EMPTY = {"tool_calls"}
"""Lists that may be null over REST, as clients of OpenAI send them. Null and an empty list mean the same."""


def buf(*arguments: str, folder: Path = PROTO) -> subprocess.CompletedProcess[str]:
    """Run buf on the schema, or on a copy of it."""
    return subprocess.run(
        [BUF, *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


# --- by itself -----------------------------------------------------------------------------------------


def test_the_schema_is_clean_and_commented() -> None:
    """buf reports nothing: STANDARD names and places, a comment on every service, call, message, field, value."""
    done = buf("lint")
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
    done = buf("format", "--diff", "--exit-code")
    assert done.returncode == 0, done.stdout
    config = (PROTO / "buf.yaml").read_text()
    assert "STANDARD" in config
    assert "COMMENTS" in config


def test_clients_of_the_baseline_are_not_broken() -> None:
    """No field, message or call of the last release (until then: of the first schema) was changed or removed."""
    done = buf("breaking", "--against", "baseline.binpb")
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("recall.proto", "optional int32 depth = 4;", "optional int32 depth = 9;"),
        ("recall.proto", "string text = 1;", "bytes text = 1;"),
        ("memory_service.proto", "rpc Recall(RecallRequest) returns (RecallResponse);", ""),
        ("batches.proto", "BATCH_STATE_PARKED = 4;", "BATCH_STATE_LOST = 4;"),
    ],
)
def test_the_check_for_breaking_changes_can_fail(tmp_path: Path, file: str, old: str, new: str) -> None:
    """The check finds a renumbered field, a changed type, a removed call and a renamed value."""
    copy = shutil.copytree(PROTO, tmp_path / "proto")
    path = copy / "ebbtide" / "v1" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    done = buf("breaking", "--against", "baseline.binpb", folder=copy)
    assert done.returncode != 0
    assert file in done.stdout


def test_stubs_are_those_of_the_schema(tmp_path: Path) -> None:
    """Regenerated stubs equal those in the package byte for byte, and there are no others."""
    generator(PROTO).generate(tmp_path)
    made = {path.name: path.read_bytes() for path in (tmp_path / "ebbtide" / "v1").iterdir()}
    kept = {path.name: path.read_bytes() for path in (PACKAGE / "v1").iterdir() if path.is_file()}
    kept.pop("__init__.py")
    assert sorted(made) == sorted(kept)
    assert [name for name in made if made[name] != kept[name]] == [], "run: make proto"


def generator(folder: Path) -> Any:
    """Return the module that writes the stubs, from a copy of the schema."""
    spec = importlib.util.spec_from_file_location("generate", folder / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_templates_for_other_languages_are_readable(tmp_path: Path) -> None:
    """`buf generate` accepts the template; only the plugins, which the project does not ship, may be missing."""
    done = buf("generate", "-o", str(tmp_path))
    assert done.returncode == 0 or re.search(r"protoc-gen-(go|es)", done.stderr), done.stderr


# --- compared with REST ------------------------------------------------------------------------------


@pytest.fixture
async def document(tmp_path: Path) -> AsyncIterator[dict[str, Any]]:
    """The OpenAPI document as the daemon serves it."""
    async with rest_in(tmp_path / "data") as call:
        yield (await call("GET", "/openapi.json")).json()


def test_every_verb_is_a_call(document: dict[str, Any]) -> None:
    """Routes, calls of the schema and calls that the daemon serves are the same."""
    operations = {
        f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods
    }
    assert operations - NO_CALLS == ROUTES.keys()
    calls = {operation.name: operation.kind for operation in CATALOGUE if operation.is_rpc}
    assert calls.keys() == {method.name for method in SERVICE.methods}
    for method in SERVICE.methods:
        assert method.server_streaming == (calls[method.name] in (Kind.STREAM, Kind.DOWNLOAD))
        assert method.client_streaming == (calls[method.name] is Kind.UPLOAD)
    for method in SERVICE.methods:
        assert method.input_type.name == f"{method.name}Request"
        assert method.output_type.name == f"{method.name}Response"


def test_requests_have_the_same_fields(document: dict[str, Any]) -> None:
    """Path, query and body of a route, and the fields of its request, have the same names and kinds."""
    found: list[str] = []
    for route, name in ROUTES.items():
        message = SERVICE.methods_by_name[name].input_type
        method, _, path = route.partition(" ")
        operation = document["paths"][path][method.lower()]
        parameters = [p for p in operation["parameters"] if p.get("in") in ("path", "query")]
        fields = {p["name"]: next(iter(p.get("content", {"": p}).values()))["schema"] for p in parameters}
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        if name in ("OpenAgent", "UpdateAgent"):
            fields["parameters"] = body
        elif body:
            fields |= resolved(document, body)["properties"]
        found += differences(document, fields, message, name)
        if "{agent_id}" in path:
            assert message.fields[0].name == "agent_id"
    assert found == []


def test_answers_have_the_same_fields(document: dict[str, Any]) -> None:
    """The response body of a route and the response message have the same names and kinds, at every level."""
    found: list[str] = []
    for route, name in ROUTES.items():
        method, _, path = route.partition(" ")
        responses = document["paths"][path][method.lower()]["responses"]
        if name in DOWNLOADS:
            # A file: pieces of bytes, and nothing else.
            assert "application/json" not in responses["200"]["content"]
            assert [field.name for field in SERVICE.methods_by_name[name].output_type.fields] == ["chunk"]
            continue
        if name == "GetAttachment":
            # A file over REST, without a JSON form.
            assert [*responses["200"]["content"]] == ["application/octet-stream"]
            continue
        schema = next(
            next(iter(responses[code]["content"].values()))["schema"]
            for code in ("200", "201", "202")
            if code in responses
        )
        fields = resolved(document, schema)["properties"]
        found += differences(document, fields, SERVICE.methods_by_name[name].output_type, name)
    assert found == []


def test_the_comparison_can_fail(document: dict[str, Any]) -> None:
    """The comparison finds an extra field on either side, a different kind and a different list of values."""
    message = SERVICE.methods_by_name["Remember"].input_type
    schema = resolved(document, {"$ref": "#/components/schemas/RememberRequest"})["properties"]
    fields = {"agent_id": {"type": "string"}, **schema}
    assert list(differences(document, fields, message, "")) == []
    assert list(differences(document, {**fields, "extra": {"type": "string"}}, message, "")) != []
    assert list(differences(document, schema, message, "")) != []
    assert list(differences(document, {**fields, "agent_id": {"type": "integer"}}, message, "")) != []
    document["components"]["schemas"]["Message"]["properties"]["role"]["enum"].append("robot")
    assert list(differences(document, fields, message, "")) != []


def resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without references and null."""
    for option in schema.get("anyOf", []):
        if option != {"type": "null"}:
            return resolved(document, option)
    if "$ref" in schema:
        found: dict[str, Any] = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return resolved(document, found)
    return schema


def differences(document: dict[str, Any], fields: dict[str, Any], message: Any, path: str) -> Iterator[str]:
    """Return the differences between JSON fields and the fields of a message."""
    known = {field.name: field for field in message.fields}
    more = ONLY_IN_PROTO.get(message.name, set())
    for name in sorted(fields.keys() ^ (known.keys() - more)):
        yield f"{path}.{name}: {'not in proto' if name in fields else 'not in REST'}"
    for name in fields.keys() & known.keys():
        yield from _difference(document, fields[name], known[name], f"{path}.{name}")


def _difference(document: dict[str, Any], schema: dict[str, Any], field: Any, path: str) -> Iterator[str]:
    is_nullable = {"type": "null"} in schema.get("anyOf", [])
    if is_nullable and not field.has_presence and path.rpartition(".")[2] not in NULL_AS_EMPTY:
        yield f"{path}: can be null, but is not optional"
    json = resolved(document, schema)
    kind = json.get("type")
    if kind == "array":
        if not field.is_repeated:
            yield f"{path}: a list, but not repeated"
        json = resolved(document, json["items"])
        kind = json.get("type")
    elif kind == "object" and "properties" not in json and isinstance(json.get("additionalProperties"), dict):
        field = field.message_type.fields_by_name["value"]
        json = resolved(document, json["additionalProperties"])
        kind = json.get("type")
    if "properties" in json:
        yield from differences(document, json["properties"], field.message_type, path)
    elif "enum" in json or "const" in json:
        # Lists of values that grow, such as the signals, are strings in protobuf.
        is_text = field.cpp_type == field.CPPTYPE_STRING
        allowed = {*json.get("enum", [json.get("const")])}
        # Requests and responses share the roles. Those of clients of OpenAI are only in requests of Remember.
        said = allowed if is_text else {*words(field.enum_type)}
        if said - allowed - {"tool", "developer", "function"} or allowed - said:
            yield f"{path}: other words"
    elif kind not in _kinds(field):
        yield f"{path}: {kind} in JSON"


def _kinds(field: Any) -> set[str]:
    if field.message_type is not None:
        name = field.message_type.full_name
        return (
            {"integer"}
            if name == "google.protobuf.Timestamp"
            else {"object"}
            if name == "google.protobuf.Struct"
            else {"object", "string", None}
            if name == "google.protobuf.Value"
            else set()
        )
    if field.enum_type is not None:
        return {"string"}
    by_kind = {
        field.CPPTYPE_STRING: "string",
        field.CPPTYPE_BOOL: "boolean",
        field.CPPTYPE_DOUBLE: "number",
        field.CPPTYPE_FLOAT: "number",
        field.CPPTYPE_INT32: "integer",
        field.CPPTYPE_INT64: "integer",
    }
    return {by_kind[field.cpp_type]}


def test_unset_fields_have_the_defaults_of_the_model() -> None:
    """The server leaves unset flags and lists out of a request, so the model's defaults must be those of protobuf."""
    compared = 0
    for operation in CATALOGUE:
        if not operation.is_rpc:
            continue
        for field in SERVICE.methods_by_name[operation.name].input_type.fields:
            is_left_out = field.is_repeated or not field.has_presence
            if is_left_out and field.enum_type is None and field.name in operation.request.model_fields:
                model_field = operation.request.model_fields[field.name]
                is_text = field.cpp_type == field.CPPTYPE_STRING and not field.is_repeated
                assert is_text or not model_field.is_required(), (operation.name, field.name)
                if not model_field.is_required():
                    is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
                    default: Any = {} if is_map else [] if field.is_repeated else field.default_value
                    assert model_field.get_default(call_default_factory=True) == default
                compared += 1
    assert compared > 50


# --- on its page -----------------------------------------------------------------------------------------


def test_the_first_call_runs_as_printed(daemon: Daemon) -> None:
    """The example on the page prints the remembered message."""
    script = marked_block(read("docs/grpc.md"), "first call").replace("127.0.0.1:8421", daemon.grpc_target)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\[Memory\] \[\d{4}-\d\d-\d\d\] Ann: I moved to Lisbon in May\.\n", done.stdout)
