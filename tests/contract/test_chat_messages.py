"""Messages as clients of OpenAI's chat completions hold them, over every transport: stored, cited, refused by place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ebbtide.errors import InvalidRequest
from ebbtide.settings import LimitSettings
from ebbtide.verbs.remember import Message, RememberRequest, body_hash
from ebbtide.verbs.requests import validated
from ebbtide_client import Client
from ebbtide_client.models import CalledFunction, ContentPart, ToolCall
from ebbtide_client.models import Message as SentMessage
from tests.integration.test_cli import run
from tests.support.callers import Caller, grpc_in, rest_in
from tests.support.process import Daemon

AGENT = "/v1/agents/ann"
GOLDEN = Path(__file__).parents[1] / "golden" / "format_4.backup"
ARGUMENTS = '{"city":"Lisbon",\n "unit":"celsius"}'

CONVERSATION: list[dict[str, Any]] = [
    {"role": "developer", "content": "You are a travel planner."},
    {
        "role": "user",
        "name": "Ann",
        "content": [
            {"type": "text", "text": "I moved to Lisbon in May."},
            {
                "type": "image_url",
                "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"},
            },
            {"type": "text", "text": "Is it warm there?"},
        ],
    },
    {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "annotations": [],
        "audio": None,
        "function_call": None,
        "tool_calls": [
            {
                "id": "call_weather",
                "type": "function",
                "function": {"name": "get_weather", "arguments": ARGUMENTS},
            },
            {"id": "call_time", "type": "function", "function": {"name": "get_time", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "call_weather", "content": '{"temperature": 22, "sky": "clear"}'},
    {"role": "tool", "tool_call_id": "call_time", "content": [{"type": "text", "text": "14:05"}]},
    {
        "role": "assistant",
        "content": "The harbour of Lisbon has 22 degrees.",
        "refusal": None,
        "annotations": [],
        "tool_calls": [
            {"id": "call_note", "type": "custom", "custom": {"name": "note", "input": "Ann: warm socks"}}
        ],
    },
    {"role": "function", "name": "note", "content": "saved"},
]
"""A conversation in the shapes of the API: requests, and messages of responses with all their fields."""

STORED = [
    ("system", "", {}, "You are a travel planner."),
    ("user", "Ann", {}, "I moved to Lisbon in May.\n[image]\nIs it warm there?"),
    (
        "assistant",
        "",
        {"tool_call_id": "call_weather call_time"},
        f"get_weather({ARGUMENTS})\nget_time({{}})",
    ),
    ("tool", "", {"tool_call_id": "call_weather"}, '{"temperature": 22, "sky": "clear"}'),
    ("tool", "", {"tool_call_id": "call_time"}, "14:05"),
    (
        "assistant",
        "",
        {"tool_call_id": "call_note"},
        "The harbour of Lisbon has 22 degrees.\nnote(Ann: warm socks)",
    ),
    ("tool", "note", {}, "saved"),
]

NOT_IN_GRPC = ("annotations", "audio", "image_url")
"""Fields that are not stored. The schema of gRPC does not have them."""


def without_unsayable(value: Any) -> Any:
    """Return a value of REST as a client of gRPC sends it."""
    if isinstance(value, dict):
        return {name: without_unsayable(item) for name, item in value.items() if name not in NOT_IN_GRPC}
    return [without_unsayable(item) for item in value] if isinstance(value, list) else value


def listed(messages: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return what a list of messages says of each."""
    return [(one["role"], one["speaker"], one["metadata"], one["content"]) for one in messages]


async def flushed(call: Caller) -> None:
    """Wait until everything is digested."""
    assert (await call("POST", f"{AGENT}/flush", {})).json()["digested"]


async def recalled(call: Caller, query: str, **fields: Any) -> list[dict[str, Any]]:
    """Return the memories of a recall."""
    answer = await call("POST", f"{AGENT}/recall", {"query": query, "citations": True, **fields})
    return list(answer.json()["memories"])


@pytest.mark.parametrize("transport", ["rest", "grpc"])
async def test_a_conversation_with_tools_is_stored_and_cited_as_it_was_sent(
    tmp_path: Path, transport: str
) -> None:
    """Over REST and gRPC every text is stored, found and cited exactly; text of tools becomes no memory by default."""
    caller, sent = (
        (rest_in, CONVERSATION)
        if transport == "rest"
        else (grpc_in, [without_unsayable(one) for one in CONVERSATION])
    )
    async with caller(tmp_path, embedding={"model": "off"}) as call:
        body = {"messages": sent, "conversation_id": "c1", "idempotency_key": "k"}
        for _ in range(2):
            assert (await call("POST", f"{AGENT}/remember", body)).json()["batch_id"] == "b1"
        await flushed(call)
        assert listed((await call("GET", f"{AGENT}/messages")).json()["messages"]) == STORED
        for query in ("celsius", "temperature sky", "socks", "saved", "14:05"):
            sources = [
                one for found in await recalled(call, query, kinds=["episode"]) for one in found["sources"]
            ]
            for one in sources:
                text = STORED[one["message_index"]][3]
                assert one["quote"] == text.encode()[one["offset"] :][: one["length"]].decode()
            assert any(query.split()[0] in one["quote"] for one in sources)
        by_tools = await recalled(call, "temperature", speakers=["tool"])
        assert {one["sources"][0]["message_index"] for one in by_tools} <= {3, 4}
        nodes = (await call("GET", f"{AGENT}/nodes")).json()["nodes"]
        said = "\n".join(one["content"] for one in nodes)
        assert "Lisbon in May" in said
        assert "harbour" in said
        assert not any(word in said for word in ("celsius", "temperature", "socks", "saved", "planner"))


async def test_text_of_tools_is_digested_on_request(tmp_path: Path) -> None:
    """With digest_tools, calls and output of tools become memories."""
    async with rest_in(tmp_path, embedding={"model": "off"}) as call:
        await call("PUT", AGENT, {"digest_tools": True, "speaker_prefix": "always"})
        call_of = {"name": "get_weather", "arguments": '{"city": "Porto"}'}
        batch = [
            {"role": "assistant", "content": None, "tool_calls": [{"function": call_of}]},
            {"role": "tool", "content": "The river Douro rose by two metres."},
        ]
        await call("POST", f"{AGENT}/remember", {"messages": batch})
        await flushed(call)
        text = (await call("POST", f"{AGENT}/recall", {"query": "Douro river"})).json()["text"]
        assert "tool: The river Douro rose by two metres." in text
        nodes = (await call("GET", f"{AGENT}/nodes")).json()["nodes"]
        assert any("Porto" in one["content"] for one in nodes)


def test_the_clients_and_the_command_line_send_the_same_messages(daemon: Daemon) -> None:
    """The Python client takes dicts and its own types, the command line a file; the stored text is the same."""
    call = ToolCall(id="1", function=CalledFunction(name="get_weather", arguments=ARGUMENTS))
    with Client(daemon.url) as client:
        client.remember("dicts", CONVERSATION)
        typed = SentMessage(role="assistant", content=[ContentPart(text="Look.")], tool_calls=[call])
        client.remember("typed", typed)
        assert listed([vars_of(one) for one in client.every_message("dicts")]) == STORED
        (one,) = client.every_message("typed")
        assert one.content == f"Look.\nget_weather({ARGUMENTS})"
        done = run("remember", "-", "--agent", "file", url=daemon.url, text=json.dumps(CONVERSATION))
        assert done.returncode == 0, done.stderr
        assert listed([vars_of(one) for one in client.every_message("file")]) == STORED


def vars_of(message: Any) -> dict[str, Any]:
    """Return the fields that `listed` reads."""
    return {name: getattr(message, name) for name in ("role", "speaker", "metadata", "content")}


def test_the_older_and_rarer_fields_are_read() -> None:
    """A refusal and the words of a recording are content; the older field function_call is a call."""
    message = Message.model_validate(
        {
            "role": "assistant",
            "refusal": "I cannot book that.",
            "function_call": {"name": "note", "arguments": "{}"},
            "audio": {"id": "a", "transcript": "Sorry."},
        }
    )
    assert (message.content, message.tool_calls) == ("I cannot book that.\nSorry.", "note({})")


TEXT = {"type": "text", "text": "x"}
FUNCTION = {"name": "f", "arguments": "{}"}

BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"content": None}, "MISSING_FIELD", "content"),
    ({"content": None, "tool_calls": []}, "MISSING_FIELD", "content"),
    ({"content": []}, "INVALID_VALUE", "content"),
    ({"content": [TEXT] * 1001}, "TOO_MANY_ITEMS", "content"),
    ({"content": "x", "tool_call_id": "x" * 201}, "TEXT_TOO_LONG", "tool_call_id"),
    ({"tool_calls": [{"id": "x" * 201, "function": FUNCTION}]}, "TEXT_TOO_LONG", "tool_calls[0].id"),
    ({"content": [TEXT, 5]}, "WRONG_TYPE", "content[1]"),
    ({"content": [TEXT, {"type": 5}]}, "WRONG_TYPE", "content[1].type"),
    ({"content": [{"type": "a b"}]}, "INVALID_VALUE", "content[0].type"),
    ({"content": [{"type": "x" * 41}]}, "INVALID_VALUE", "content[0].type"),
    ({"content": [{"type": "text"}]}, "MISSING_FIELD", "content[0].text"),
    ({"content": [{"type": "text", "text": ["x"]}]}, "WRONG_TYPE", "content[0].text"),
    ({"content": {"type": "text"}}, "WRONG_TYPE", "content"),
    ({"tool_calls": {}}, "WRONG_TYPE", "tool_calls"),
    ({"tool_calls": [5]}, "WRONG_TYPE", "tool_calls[0]"),
    ({"tool_calls": [{"function": FUNCTION}] * 129}, "TOO_MANY_ITEMS", "tool_calls"),
    ({"tool_calls": [{}]}, "MISSING_FIELD", "tool_calls[0].function"),
    ({"tool_calls": [{"type": "shell"}]}, "INVALID_VALUE", "tool_calls[0].type"),
    ({"tool_calls": [{"function": FUNCTION, "custom": {}}]}, "INVALID_VALUE", "tool_calls[0].custom"),
    ({"tool_calls": [{"function": {}}]}, "MISSING_FIELD", "tool_calls[0].function.name"),
    ({"tool_calls": [{"function": {"name": " "}}]}, "INVALID_VALUE", "tool_calls[0].function.name"),
    (
        {"tool_calls": [{"function": {"name": "f", "arguments": 1}}]},
        "WRONG_TYPE",
        "tool_calls[0].function.arguments",
    ),
    ({"tool_calls": [{"id": 1, "function": FUNCTION}]}, "WRONG_TYPE", "tool_calls[0].id"),
    ({"function_call": "f"}, "WRONG_TYPE", "function_call"),
    ({"content": "x", "name": 5}, "WRONG_TYPE", "name"),
    ({"content": "x", "name": "A", "speaker": "B"}, "INVALID_VALUE", "name"),
    ({"content": "x", "tool_call_id": 1}, "WRONG_TYPE", "tool_call_id"),
    ({"content": "x", "audio": 1}, "WRONG_TYPE", "audio"),
    ({"content": "x", "refusal": 1}, "WRONG_TYPE", "refusal"),
    ({"content": "x", "function_calls": []}, "UNKNOWN_FIELD", "function_calls"),
    ({"content": "x" * 60, "refusal": "y" * 40}, "TEXT_TOO_LONG", "content"),
    (
        {"content": "x" * 50, "tool_calls": [{"function": {"name": "f", "arguments": "y" * 50}}]},
        "TEXT_TOO_LONG",
        "content",
    ),
]


@pytest.mark.parametrize(("fields", "reason", "place"), BAD)
def test_bad_messages_are_refused_by_place(fields: dict[str, Any], reason: str, place: str) -> None:
    """The error names the field within the list. The limit on characters counts what would be stored."""
    body = {
        "agent_id": "ann",
        "messages": [{"role": "user", "content": "x"}, {"role": "assistant", **fields}],
    }
    with pytest.raises(InvalidRequest) as caught:
        validated(RememberRequest, body, LimitSettings(max_message_chars=100))
    assert (caught.value.reason, caught.value.violations[0].field) == (reason, f"messages[1].{place}")


async def test_personal_data_in_calls_is_redacted_and_tagged(tmp_path: Path) -> None:
    """The policy on personal data covers calls; the places of tags fit the stored text."""
    call_of = {"name": "mail", "arguments": '{"to": "ann@example.com"}'}
    message = {"role": "assistant", "content": "Ärger", "tool_calls": [{"function": call_of}]}
    async with rest_in(tmp_path, embedding={"model": "off"}) as call:
        for policy, stored in (("tag", "ann@example.com"), ("redact", "[email]")):
            path = f"/v1/agents/{policy}"
            await call("PUT", path, {"pii": policy})
            answer = (await call("POST", f"{path}/remember", {"messages": [message]})).json()
            assert answer["pii"] == {"email": 1}
            (one,) = (await call("GET", f"{path}/messages")).json()["messages"]
            assert one["content"] == f'Ärger\nmail({{"to": "{stored}"}})'
            for found in one["pii"]:
                place = slice(found["offset"], found["offset"] + found["length"])
                assert one["content"].encode()[place] == b"ann@example.com"
            assert len(one["pii"]) == (policy == "tag")


async def test_an_export_keeps_what_comes_from_tools(tmp_path: Path) -> None:
    """After an import, messages of tools are episodes, and the words of statements are not, as before."""
    async with rest_in(tmp_path, embedding={"model": "off"}) as call:
        await call("POST", f"{AGENT}/remember", {"messages": CONVERSATION})
        statement = {"subject": "Ann", "topic": "residence", "object": "Lisbon", "content": "Ann temperature"}
        await call("POST", f"{AGENT}/statements", statement)
        await flushed(call)
        before = await recalled(call, "temperature", kinds=["episode"])
        exported = await call.download(f"{AGENT}/export")
        await call("DELETE", AGENT)
        assert (await call.upload(f"{AGENT}/restore", exported)).status_code == 200
        assert await recalled(call, "temperature", kinds=["episode"]) == before
        assert [one["kind"] for one in before if "temperature" in one["content"]] == ["episode"]
        assert exported.count(b'"tools_from"') == 5


async def test_a_store_of_an_earlier_version_answers_the_same(tmp_path: Path) -> None:
    """`format_4.backup` is older than messages of tools: the words of its statement are still no episode."""
    async with rest_in(tmp_path, embedding={"model": "off"}) as call:
        assert (await call.upload(f"{AGENT}/restore", GOLDEN.read_bytes())).status_code == 200
        roles = [one["role"] for one in (await call("GET", f"{AGENT}/messages")).json()["messages"]]
        assert roles == ["system", "user", "assistant", "tool"]
        words = "Ann lives in Lisbon near the river."
        by_filter = {
            name: [one["sources"][0]["quote"] for one in await recalled(call, "Lisbon", **fields)]
            for name, fields in {
                "all": {},
                "episode": {"kinds": ["episode"]},
                "fact": {"kinds": ["fact"]},
                "tool": {"speakers": ["tool"]},
            }.items()
        }
        spoken = ["I moved to Lisbon in May.", "You are a gardener.", "How is Lisbon?"]
        assert by_filter == {
            "all": [spoken[0], words, *spoken[1:]],
            "episode": spoken,
            "fact": [words],
            "tool": [words],
        }


def test_the_hash_of_a_request_is_that_of_earlier_versions() -> None:
    """A retry after an upgrade is the same request: fields that a message does not have do not change its hash."""
    said = Message(role="user", content="I moved to Lisbon.", speaker="Ann", timestamp=5)
    asked = Message(role="assistant", content="When?", metadata={"a": 1})
    request = RememberRequest(agent_id="ann", messages=[said, asked], conversation_id="c1")
    expected = "8fe092866a3f187cabc9629618d15177a3d7100ace04ff1d4cadffabf5b0125b"
    assert body_hash(request).hex() == expected
