"""A bad field is refused with the same error over REST and gRPC, for every operation and field of the catalogue."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from ebbtide.verbs.catalogue import CATALOGUE, Kind, Operation
from tests.contract.test_verbs import settled
from tests.support.callers import GrpcCaller, RestCaller, Unsayable, grpc_in

LONG = "x" * 100_001
"""Longer than the default limit of any text."""

IDS = {"agent_id": "ann", "node_id": "n1", "batch_id": "b1", "name": "recall", "message": "m1", "index": 0}
IDS["ruling_id"] = "r1"

FREE = {
    "nodes",
    "start_nodes",
    "node_ids",
    "node_id",
    "replaces",
    "source",
    "target",
    "keep",
    "drop",
}
"""Fields whose texts are ids, which are looked up instead of validated; only their number is limited."""

MESSAGE = {"role": "user", "content": "I like tea."}
JSON = {"content-type": "application/json"}
FILE = {"mime": "image/png", "bytes": "aGVsbG8="}
BAD_ATTACHMENTS: list[list[dict[str, Any]]] = [
    [FILE] * 17,
    *([{**FILE, "mime": mime}] for mime in ("", "png", "image/", "image/png; x=1", "a" * 200 + "/b")),
    *([{**FILE, "sha256": hashed}] for hashed in ("", "12", "g" * 64, "0" * 64)),
    *([{**FILE, "bytes": content}] for content in ("", "A" * 1_398_108)),
    *([{**FILE, "caption": text}] for text in ("x" * 2001, LONG)),
    [{"bytes": "aGVsbG8="}],
    [{"mime": "image/png"}],
    *(
        [{**FILE, "regions": [region]}]
        for region in (
            *({}, {"caption": "x"}, {"page": 0}, {"box": [0.5]}, {"box": [0.5, 0.5, 2.0, 0.5]}),
            *({"end_ms": 5}, {"begin_ms": 5, "end_ms": 4}, {"page": 1, "caption": "x" * 2001}),
        )
    ),
    [{**FILE, "regions": [{"page": 1}] * 65}],
]
"""Attachments of which at least one is invalid."""

LIMITED = {
    "messages": [
        *([], [MESSAGE] * 1001),
        *([{**MESSAGE, name: value}] for name, value in (("content", LONG), ("id", LONG), ("speaker", LONG))),
        [{**MESSAGE, "role": 99}],
        *([{**MESSAGE, "timestamp": 10**15}], [{**MESSAGE, "metadata": {"a": {"b": 1}}}]),
        [{**MESSAGE, "metadata": {"a": "x" * 5000}}],
        *([{**MESSAGE, "attachments": found}] for found in BAD_ATTACHMENTS),
    ],
    "time_range": [{"begin": 5, "end": 5}],
    "metadata": [{"a": "x" * 5000}],
    "links": [
        *([{"target": "n1", "relation": name}] for name in ("", "a\nb", LONG)),
        *([{"target": "n1", "relation": "a", "strength": strength}] for strength in (-0.5, 0.0, 1.5)),
        *([{"relation": "a"}], [{"target": "n1"}], [{"target": "n1", "relation": "a"}] * 65),
    ],
    "vector": [[0.0], [1e300], [0.5] * 100_000],
    "parameters": [{"decay_rate": 2.0}, {"strategy": 99}, {"retention": "x"}],
    "page_token": ["?", "bm9kZXM6eA"],
    "topic": ["", LONG],
    "ops": [
        *(
            [],
            [{"op": "search"}] * 1001,
            [{"op": "nonsense"}],
            [{"key": "k"}],
            [{"op": "search", "limit": 0}],
        ),
        [{"op": "put", "namespace": [LONG], "key": "k", "value": {}}],
        [{"op": "get", "namespace": ["n"], "key": "k", "if_version": 1}],
        [{"op": "search", "filter": {"a": {"$in": [1]}}}],
    ],
    "records": [[{"namespace": []}], [{"namespace": ["n"]}] * 1001, [{"namespace": ["n"], "key": ""}]],
}
"""Invalid values by field, if its type does not determine them."""


def bad_values(operation: Operation, name: str, schema: dict[str, Any]) -> Iterator[Any]:
    """Return values of the right type that a field does not allow; some fields allow some of them."""
    options = schema.get("anyOf", [schema])
    kinds = {option.get("type") for option in options}
    # The same names for a list of ids, and for whether links are wanted.
    is_other = (operation.name, name) in {("ForgetMemories", "messages"), ("GetMap", "links")}
    if name in LIMITED and not is_other:
        yield from LIMITED[name]
    elif any("enum" in option for option in options) and "string" in kinds:
        is_text = operation.name == "SearchStatements" and name == "mode"
        yield "nonsense" if is_text or name in ("tokenizer", "kind", "modality", "scope", "action") else 99
    elif "integer" in kinds:
        yield from (-2, 2**31 - 1)
    elif "string" in kinds:
        yield from (LONG, "")
    elif "array" in kinds:
        yield from ([LONG], [""], ["x"] * 20_000)


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[tuple[RestCaller, GrpcCaller]]:
    """A daemon with an agent, and a caller over each transport."""
    async with grpc_in(tmp_path / "data") as call:
        await settled(call)
        yield RestCaller(call.service), call


async def outcome(call: Any, operation: Operation, fields: dict[str, Any]) -> Any:
    """Return the error of a request, or None if it is accepted."""
    path = operation.path.format(**IDS)
    if operation.has_body:
        response = await call(operation.method, path, fields)
    else:
        params = {"follow": False, **fields} if operation.name == "WatchEvents" else fields
        params = {name: value[:1000] if isinstance(value, str) else value for name, value in params.items()}
        if call.transport == "rest":
            params = {name: _as_option(value) for name, value in params.items()}
        if "agent_id" in params:
            params = {"agent_id": str(params["agent_id"])[:1000]}
        response = await call(operation.method, path, params=params)
    return response.json()["error"] if response.status_code == 400 else None


def _as_option(value: Any) -> str:
    """Return a value as an option of a query: an object as JSON, the items of a list separated by commas."""
    if isinstance(value, dict):
        return json.dumps(value)
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value).lower()
    return text[:1000]


def fields_of(operation: Operation) -> list[str]:
    """Return the fields of a request that are not in the path."""
    return [name for name in operation.request.model_fields if name not in (*operation.in_path, "reset")]


async def test_a_bad_field_has_one_error(both: tuple[RestCaller, GrpcCaller]) -> None:
    """Out of range, an unknown value, too long, too many: code, reason, message and violations are equal."""
    rest, rpc = both
    compared = 0
    for operation in CATALOGUE:
        if not operation.is_rpc or operation.kind is Kind.UPLOAD:
            continue
        schema = operation.request.model_json_schema()
        base = next(iter(operation.examples.values()), {})
        unlimited = set()
        for name in fields_of(operation):
            values = list(bad_values(operation, name, schema["properties"][name]))
            refused = False
            for value in values:
                fields = value if name == "parameters" else {**base, name: value}
                errors = [as_compared(await outcome(call, operation, fields)) for call in (rest, rpc)]
                if "looks like seconds" in str(errors[0]) and "looks like seconds" not in str(errors[1]):
                    refused = True  # a number of JSON has no unit, a Timestamp of gRPC has one
                    continue
                assert errors[0] == errors[1], (operation.name, name, str(value)[:60])
                refused = refused or errors[0] is not None
                compared += errors[0] is not None
            if values and not refused:
                unlimited.add(name)
        assert unlimited <= FREE, operation.name
    assert compared > 100


def as_compared(error: Any) -> Any:
    """Return an error without quotes: REST sends query values as texts, where protobuf has numbers."""
    return None if error is None else json.loads(json.dumps(error).replace("'", ""))


async def test_an_unknown_field_is_named(both: tuple[RestCaller, GrpcCaller]) -> None:
    """An unknown field is UNKNOWN_FIELD over both transports, with its name or number."""
    for operation in CATALOGUE:
        if operation.is_rpc and operation.has_body:
            base = next(iter(operation.examples.values()), {})
            for call in both:
                error = await outcome(call, operation, {**base, "surprise": 1})
                assert error["reason"] == "UNKNOWN_FIELD", operation.name
                assert error["field_violations"][0]["field"].endswith("surprise")
                assert error["field_violations"][0]["description"] == "no such field"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"query": "tea", "max_results": 1, "query": "a: \\"b\\": c"}', "query"),
        ('{"query": "tea", "qu\\u0065ry"\n: "coffee"}', "query"),
        ('{"query": "tea", "time_range": {"begin": 1, "end": 2, "begin": 1}}', "begin"),
        ('{"query": "tea", "metadata": {"a": ' + "9" * 50 + ', "a": 1}}', "a"),
    ],
)
async def test_a_field_that_is_given_twice_is_named(
    both: tuple[RestCaller, GrpcCaller], body: str, field: str
) -> None:
    """A JSON body in which an object has a field twice is refused by this field, at any depth and in any spelling."""
    response = await both[0]("POST", "/v1/agents/ann/recall", content=body, headers=JSON)
    error = response.json()["error"]
    assert (response.status_code, error["reason"]) == (400, "INVALID_VALUE")
    assert error["field_violations"] == [
        {"field": field, "description": "given more than once; give it once"}
    ]


@pytest.mark.parametrize(
    "body",
    [
        '{"query": "a \\"query\\": b, \\": : "}',
        '{"query": "\\": \\":", "keywords": ["\\": ", "x"], "metadata": {"query": "\\":"}}',
    ],
)
async def test_words_that_look_like_a_field_are_no_second_one(
    both: tuple[RestCaller, GrpcCaller], body: str
) -> None:
    """Quotes and colons in the texts of a body are no fields."""
    assert (await both[0]("POST", "/v1/agents/ann/recall", content=body, headers=JSON)).status_code == 200


async def test_a_value_of_the_wrong_type_names_its_field(both: tuple[RestCaller, GrpcCaller]) -> None:
    """REST names the field with a value of another type; protobuf cannot express most of these."""
    rest, rpc = both
    for operation in CATALOGUE:
        if not operation.is_rpc or operation.kind is Kind.UPLOAD:
            continue
        base = next(iter(operation.examples.values()), {})
        for name in fields_of(operation):
            # The arguments of a tool may have any type, and a text in a query may be any text.
            is_free = not operation.has_body and name in ("subject", "topic", "entity")
            if is_free or name in ("parameters", "agent_id", "arguments"):
                continue
            wrong: Any = 7 if name == "metadata" else {"a": {"b": [1]}} if operation.has_body else "x y"
            error = await outcome(rest, operation, {**base, name: wrong})
            assert error is not None, (operation.name, name)
            named = re.split(r"[.\[]", error["field_violations"][0]["field"])[0]
            assert named == name, (operation.name, error)
            if operation.has_body and name != "time_range":
                with pytest.raises(Unsayable):
                    await outcome(rpc, operation, {**base, name: wrong})


async def test_a_missing_field_has_one_error(both: tuple[RestCaller, GrpcCaller]) -> None:
    """A request without its fields, or a message without some of its own, has the same outcome over both."""
    refused = set()
    for operation in CATALOGUE:
        if operation.is_rpc and operation.has_body:
            errors = [await outcome(call, operation, {}) for call in both]
            assert errors[0] == errors[1], operation.name
            refused |= {operation.name} if errors[0] else set()
    assert {"Remember", "Search", "UpdateNode", "DeleteNodes", "ForgetMemories"} <= refused
    remember = next(one for one in CATALOGUE if one.name == "Remember")
    for message in ({}, {"role": "user"}, {"content": "I like tea."}):
        errors = [await outcome(call, remember, {"messages": [message]}) for call in both]
        assert errors[0] == errors[1]
        assert errors[0]["reason"] == "MISSING_FIELD"


async def test_a_value_is_written_as_in_json(both: tuple[RestCaller, GrpcCaller]) -> None:
    """A refused 0 is 0 over both, whether the field is an integer or not; null, true and false are those of JSON."""
    open_agent = next(one for one in CATALOGUE if one.name == "OpenAgent")
    for value in (0, 0.0, 2.0, 1.5):
        errors = [await outcome(call, open_agent, {"decay_rate": value}) for call in both]
        assert errors[0] == errors[1]
    rest, _ = both
    for fields, message in (
        ({"decay_rate": None}, "decay_rate: null is not allowed; allowed: a number, above 0, at most 1"),
        ({"decay_rate": 0}, "decay_rate: 0 is not allowed; allowed: above 0, at most 1"),
        ({"focus_limit": True}, "focus_limit: true is not allowed; allowed: an integer, 1-64"),
        ({"focus_limit": 2.0}, "focus_limit: 2.0 is not allowed; allowed: an integer"),
    ):
        assert (await outcome(rest, open_agent, fields))["message"] == message


CREATE = ("BatchRecords", "CreateNode", "CreateStatement", "Remember", "OpenAgent", "RestoreAgent")
"""Operations that create the agent that they name."""


async def test_unknown_ids_have_one_text(both: tuple[RestCaller, GrpcCaller]) -> None:
    """Every operation on an unknown agent, node or batch has the same message, with the next step."""
    texts: dict[str, set[str]] = {}
    for operation in CATALOGUE:
        if not operation.is_rpc or "agent_id" not in operation.in_path or operation.name in CREATE:
            continue
        agent = "ann" if len(operation.in_path) > 1 else "zoe"
        for number in ("77", "0", "x", "a%2Fb", "a%5Cb"):
            ids = {"agent_id": agent, "node_id": f"n{number}", "batch_id": f"b{number}", "name": "recall"}
            ids |= {"message": f"m{number}", "index": "0", "ruling_id": f"r{number}"}
            path = operation.path.format(**ids)
            body = next(iter(operation.examples.values()), {}) if operation.has_body else None
            for call in both:
                response = await call(operation.method, path, body)
                if operation.name in ("Recall", "Search", "CallTool"):
                    assert response.status_code == 200  # nothing is known of an unknown agent
                    continue
                error = response.json()["error"]
                assert error["code"] == 404, (operation.name, error)
                texts.setdefault(error["reason"], set()).add(error["message"])
    reasons = {"AGENT_NOT_FOUND", "NODE_NOT_FOUND", "BATCH_NOT_FOUND", "RULING_NOT_FOUND"}
    assert texts.keys() == reasons | {"ATTACHMENT_NOT_FOUND"}
    assert [len(found) for found in texts.values()] == [1] * len(texts), texts
    assert all("GET /v1/agents" in text for found in texts.values() for text in found)


async def test_a_missing_field_is_named(both: tuple[RestCaller, GrpcCaller]) -> None:
    """A request without any action names the missing field, over both transports."""
    for name, field in (("Search", "query"), ("UpdateNode", "content"), ("ForgetMemories", "the body")):
        operation = next(one for one in CATALOGUE if one.name == name)
        errors = [await outcome(call, operation, {}) for call in both]
        assert errors[0] == errors[1]
        assert (errors[0]["reason"], errors[0]["field_violations"][0]["field"]) == ("MISSING_FIELD", field)
