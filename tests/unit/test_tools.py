"""Arguments of tools as language models send them: accepted and reported, or refused with what is allowed."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
import pytest

from ebbtide.clock import offset_of
from ebbtide.errors import InvalidRequest
from ebbtide.tools.reading import MAX_CHARS, Reading, read_arguments
from ebbtide.tools.refusals import in_chinese
from ebbtide.tools.schema import TOOLS, prompt
from ebbtide.verbs.tools import EXECUTIONS, period

NOW_MS = 1_780_000_000_000
"""A day in May 2026."""


def read(tool: str, sent: Any) -> Reading:
    """Read the arguments of a tool at a fixed time."""
    return read_arguments(TOOLS[tool], sent, lambda words: period(words, NOW_MS))


QUERY = {"query": "Where?"}
DIET = {"subject": "I", "topic": "diet", "object": "vegan"}
SAID = {"role": "user", "content": "I play chess"}


@pytest.mark.parametrize(
    ("tool", "sent", "expected"),
    [
        ("recall", QUERY, {"query": "Where?", "max_results": 10}),
        ("recall", json.dumps(QUERY), {"query": "Where?"}),
        ("recall", json.dumps(json.dumps(QUERY)), {"query": "Where?"}),
        ("recall", f"```json\n{json.dumps(QUERY)}\n```", {"query": "Where?"}),
        ("recall", {"name": "recall", "arguments": QUERY}, {"query": "Where?"}),
        ("recall", {"arguments": json.dumps(QUERY)}, {"query": "Where?"}),
        ("recall", [QUERY], {"query": "Where?"}),
        ("recall", {"问题": "在哪里？"}, {"query": "在哪里？"}),
        ("recall", {"Query": "Where?", "maxResults": "5"}, {"query": "Where?", "max_results": 5}),
        ("recall", {**QUERY, "limit": 500}, {"max_results": 50}),
        ("recall", {**QUERY, "limit": -3}, {"max_results": 1}),
        ("recall", {**QUERY, "limit": "many"}, {"max_results": 10}),
        ("recall", {**QUERY, "limit": "None", "speakers": ""}, {"max_results": 10, "speakers": None}),
        ("recall", {**QUERY, "speaker": "Ann"}, {"speakers": ["Ann"]}),
        ("recall", {**QUERY, "speakers": '["Ann", "Bo"]'}, {"speakers": ["Ann", "Bo"]}),
        ("recall", {**QUERY, "time_range": "2026-05-01"}, {"time_range": (1777593600000, 1777680000000)}),
        ("recall", {**QUERY, "when": "once upon a time"}, {"time_range": None}),
        ("remember", {"content": "Hi.", "role": "用户"}, {"content": "Hi.", "role": "user"}),
        ("remember", {"text": "Hi.", "role": "HUMAN"}, {"content": "Hi.", "role": "user"}),
        ("remember", {"messages": [{"content": "A."}, "B."]}, {"content": "A.\nB."}),
        ("remember", {"messages": json.dumps([SAID])}, {"content": "I play chess", "role": "user"}),
        ("remember", {"content": json.dumps(SAID)}, {"content": "I play chess", "role": "user"}),
        (
            "remember",
            {"messages": [{**SAID, "role": "AI"}]},
            {"content": "I play chess", "role": "assistant"},
        ),
        (
            "remember",
            json.dumps({"messages": json.dumps([SAID, SAID])}),
            {"content": "I play chess\nI play chess"},
        ),
        ("create_memory", {"arguments": {"arguments": DIET}}, DIET),
        ("create_memory", {"arguments": json.dumps({"input": json.dumps(DIET)})}, DIET),
        ("create_memory", {"memories": [DIET]}, DIET),
        ("create_memory", {"fact": json.dumps(DIET)}, DIET),
        ("remember", {"content": "Hi.", "time": "2026-05-01T12:00:00Z"}, {"time": 1777636800000}),
        ("forget", {"topic": "Heron", "dry_run": "是"}, {"topic": "Heron", "dry_run": True}),
        ("forget", {"id": "n1", "dry_run": "false"}, {"memories": ["n1"], "dry_run": False}),
    ],
)
def test_a_form_is_accepted_and_its_changes_are_reported(
    tool: str, sent: Any, expected: dict[str, Any]
) -> None:
    """A form that models send has the arguments that it means; a changed one says what was changed."""
    reading = read(tool, sent)
    assert {name: reading.arguments[name] for name in expected} == expected
    is_exact = sent == QUERY or (tool == "recall" and sent == {**QUERY, "time_range": "2026-05-01"})
    is_absent = isinstance(sent, dict) and sent.get("limit") == "None"
    assert bool(reading.noticed) or is_exact or is_absent or "T12" in str(sent)


@pytest.mark.parametrize(
    ("tool", "sent", "reason"),
    [
        ("recall", {}, "MISSING_FIELD"),
        ("recall", None, "MISSING_FIELD"),
        ("recall", {"query": " "}, "MISSING_FIELD"),
        ("recall", "{query: Where?}", "INVALID_JSON"),
        ("recall", 7, "WRONG_TYPE"),
        ("recall", {"query": True}, "WRONG_TYPE"),
        ("recall", {"query": "x" * 2_001}, "TEXT_TOO_LONG"),
        ("recall", "x" * (MAX_CHARS + 1), "TEXT_TOO_LONG"),
        ("recall", "[" * 60_000, "INVALID_JSON"),
        ("recall", {"query": [[[[[[[[["x"]]]]]]]]]}, "INVALID_VALUE"),
        ("recall", {str(i): i for i in range(2_000)}, "TOO_MANY_ITEMS"),
        ("recall", {**QUERY, "speakers": ["x"] * 51}, "TOO_MANY_ITEMS"),
        ("remember", {"content": "Hi.", "role": "king"}, "INVALID_VALUE"),
        ("create_memory", {"memories": [DIET, DIET]}, "TOO_MANY_ITEMS"),
        ("create_memory", {"memories": ["vegan"]}, "MISSING_FIELD"),
        ("forget", {"topic": "Heron"}, "MISSING_FIELD"),
        ("forget", {"topic": "Heron", "dry_run": "perhaps"}, "INVALID_VALUE"),
        ("forget", {"topic": "Heron", "dry_run": True, "except": "Ann"}, "UNKNOWN_FIELD"),
    ],
)
def test_a_refusal_says_what_is_allowed(tool: str, sent: Any, reason: str) -> None:
    """A form that cannot be read is refused with its reason, what is allowed, and an example that is accepted."""
    with pytest.raises(InvalidRequest) as refused:
        read(tool, sent)
    assert refused.value.reason == reason
    assert refused.value.metadata["allowed"]
    assert read(tool, refused.value.metadata["example"])
    fault, _, example = in_chinese(refused.value).partition("。例：")
    assert example == refused.value.metadata["example"]
    names = {one.name for one in TOOLS[tool].parameters} | {"begin", "end", "true", "false", "arguments"}
    choices = {choice for one in TOOLS[tool].parameters for choice in one.choices}
    names |= set(sent) if isinstance(sent, dict) else set()
    assert set(re.findall("[a-z_]+", fault)) <= names | choices, fault


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        *((word, True) for word in ("no longer", "Not", "never", " not anymore ", "yes", "true", "1", 1)),
        *((word, True) for word in ("不", "不再", "没有", "从不", "是")),
        *((word, False) for word in ("no", "false", "0", 0, "否")),
        *((word, None) for word in ("", "none", None)),
    ],
)
def test_words_of_denial_negate_a_fact(sent: Any, expected: bool | None) -> None:
    """A word of denial as `negated` never stores the opposite of what the model said."""
    assert read("create_memory", {**DIET, "negated": sent}).arguments["negated"] is expected


@pytest.mark.parametrize("sent", ["perhaps", "大概", 2, {"value": True}])
def test_a_fact_is_refused_if_its_denial_cannot_be_read(sent: Any) -> None:
    """The fact would mean the opposite, so an unreadable `negated` is not dropped."""
    with pytest.raises(InvalidRequest) as refused:
        read("create_memory", {**DIET, "negated": sent})
    assert [one.field for one in refused.value.violations] == ["arguments.negated"]
    assert refused.value.metadata["allowed"] == "true or false"
    with pytest.raises(InvalidRequest):
        read("forget", {"topic": "Heron", "dry_run": "not"})


@pytest.mark.parametrize("text", ['["a", 1]', '{"a": 1}', '[{"content": "A."}]', "[not JSON]", "[]"])
def test_other_json_is_kept_as_it_was_said(text: str) -> None:
    """Only messages with a role are read from JSON; all other text is the words of the speaker."""
    assert read("remember", {"content": text}).arguments["content"] == text


def test_a_refusal_names_the_wrapper() -> None:
    """Several facts in one call are refused by the name of the field in which they are."""
    with pytest.raises(InvalidRequest) as refused:
        read("create_memory", {"memories": [DIET, DIET]})
    assert [one.field for one in refused.value.violations] == ["arguments.memories"]
    assert refused.value.metadata["allowed"] == "one call for each"


def test_an_unknown_field_is_reported_without_personal_data() -> None:
    """The name of an unknown field may contain an e-mail address; a report does not."""
    noticed = read("recall", {**QUERY, "ann@example.com": 1}).noticed
    assert noticed
    assert "ann@example.com" not in noticed[0]


def test_every_tool_can_be_called_and_its_prompts_name_it() -> None:
    """Only tools that can be performed are offered, and the instructions in both languages name them."""
    assert TOOLS.keys() == EXECUTIONS.keys()
    for name in TOOLS:
        assert name in prompt("en", "assistant")
        assert name in prompt("zh", "assistant")


def test_a_refusal_names_the_argument() -> None:
    """The violation names the argument within the field `arguments`, or the field itself."""
    for sent, place in (({"max_results": 3}, "arguments.query"), ("{bad", "arguments")):
        with pytest.raises(InvalidRequest) as caught:
            read_arguments(TOOLS["recall"], sent, lambda _: None)
        assert [one.field for one in caught.value.violations] == [place]


def test_times_in_words_are_read_in_the_time_zone() -> None:
    """A day in words is a local one, an open end stays open, and a time with its own zone is taken as it is."""
    shanghai = offset_of("Asia/Shanghai")
    in_utc, local = period("2026-05-01", NOW_MS), period("2026-05-01", NOW_MS, shanghai)
    assert in_utc == (1777593600000, 1777680000000)
    assert local == (1777593600000 - 8 * 3_600_000, 1777680000000 - 8 * 3_600_000)
    assert period("since 2026-05-01", NOW_MS) == (1777593600000, None)
    assert period("2026-05-01T12:00:00Z", NOW_MS, shanghai) == (1777636800000, 1777636800001)
    assert period("2026-05-01 20:00", NOW_MS, shanghai) == (1777636800000, 1777636860000)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("form", "path"),
    [("openai", ("function", "parameters")), ("anthropic", ("input_schema",)), ("mcp", ("inputSchema",))],
)
def test_each_schema_is_valid_and_accepts_good_calls_only(form: Any, path: Any, language: Any) -> None:
    """A client that validates a call by the declaration accepts the example, each choice, and no other word."""
    for tool in TOOLS.values():
        schema = tool.rendered(form, language)
        for key in path:
            schema = schema[key]
        validator = jsonschema_rs.Draft202012Validator(schema)  # refuses an invalid schema
        validator.validate(tool.example)
        for parameter in tool.parameters:
            if parameter.choices:
                is_list = parameter.kind == "texts"
                good: Any = list(parameter.choices) if is_list else next(iter(parameter.choices))
                assert validator.is_valid({**tool.example, parameter.name: good})
                other: Any = ["nothing"] if is_list else "nothing"
                assert not validator.is_valid({**tool.example, parameter.name: other})
