"""Conversation files: every documented form is read, and refusals name the position."""

from __future__ import annotations

import json

import pytest

from ebbtide.cli.commands.remember import check
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.cli.files.conversation import Conversation, cut, read_conversation

ANN = {"role": "user", "content": "I moved to Lisbon in May.", "speaker": "Ann"}
A = '{"role": "user", "content": "a"}'
BOB = {"role": "assistant", "content": "By train?"}


def read(text: str, name: str = "file") -> Conversation:
    """Parse a conversation from a text."""
    return read_conversation(text.encode(), name)


def messages(conversation: Conversation) -> list[list[dict[str, object]]]:
    """Return the messages of each batch."""
    return [[placed.message for placed in batch.messages] for batch in conversation.batches]


def refused(text: str, name: str = "file") -> str:
    """Return the sentence that refuses a file, by the parser or by the daemon's models."""
    with pytest.raises(Failure) as caught:
        check(cut(read(text, name).batches, 40, None), name)
    assert caught.value.code == ExitCode.BAD_INPUT
    assert caught.value.message.endswith("Nothing was sent.")
    return caught.value.message


def test_a_list_of_messages_is_one_conversation() -> None:
    """A JSON array is read as messages in order."""
    assert messages(read(json.dumps([ANN, BOB]))) == [[ANN, BOB]]


def test_the_rest_form_keeps_its_fields() -> None:
    """An object with messages is the body of a request, with its conversation, metadata and key."""
    fields = {"conversation_id": "c1", "metadata": {"a": 1}, "idempotency_key": "k"}
    requests = cut(read(json.dumps({"messages": [ANN], "title": "May", **fields})).batches, 40, None)
    assert [request.body for request in requests] == [{"messages": [ANN], **fields}]


def test_batches_stay_as_they_were_cut() -> None:
    """An object with batches is sent batch by batch, whatever --batch-size says."""
    whole = {"batches": [[ANN, BOB], {"topic": "more", "messages": [BOB, ANN]}]}
    requests = cut(read(json.dumps(whole)).batches, 1, "c")
    assert [request.body for request in requests] == [
        {"messages": [ANN, BOB], "conversation_id": "c"},
        {"messages": [BOB, ANN], "conversation_id": "c"},
    ]


def test_json_lines_are_detected() -> None:
    """One message per line is detected without an option; blank lines are ignored."""
    text = f"{json.dumps(ANN)}\n\n{json.dumps(BOB)}\n"
    assert messages(read(text)) == [[ANN, BOB]]


def test_a_line_may_hold_a_batch() -> None:
    """A line with messages of its own is a batch of its own."""
    text = "\n".join(json.dumps({"messages": [message]}) for message in (ANN, BOB))
    assert messages(read(text)) == [[ANN], [BOB]]


CALL = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def test_chat_exports_are_understood() -> None:
    """Parts are joined, a name is the speaker, a developer is the system; calls of tools are sent as they are."""
    export = [
        {"role": "developer", "content": "Be brief."},
        {
            "role": "user",
            "name": "Ann",
            "content": [
                {"type": "text", "text": "Look at"},
                {"type": "image_url", "image_url": {"url": "x"}},
                {"type": "text", "text": "this."},
            ],
        },
        {"role": "assistant", "content": None, "tool_calls": [CALL], "refusal": None, "annotations": []},
        {"role": "tool", "tool_call_id": "1", "content": "{}"},
        {"role": "user", "content": []},
    ]
    conversation = read(json.dumps({"model": "m", "messages": export}))
    assert messages(conversation) == [
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Look at\n[image]\nthis.", "speaker": "Ann"},
            {"role": "assistant", "content": "", "tool_calls": [CALL], "metadata": {"tool_call_id": "1"}},
            {"role": "tool", "content": "{}", "metadata": {"tool_call_id": "1"}},
        ]
    ]
    assert conversation.skipped == 1


def test_iso_times_become_milliseconds() -> None:
    """A time may be in ISO 8601; without a zone it is UTC."""
    text = json.dumps([{**BOB, "timestamp": "1970-01-01T00:00:02"}])
    assert messages(read(text)) == [[{**BOB, "timestamp": 2000}]]


def test_a_transcript_has_speakers() -> None:
    """`Name: text` sets the speaker; a line without a name continues the message; 用户 is a role."""
    text = "Ann: I moved to Lisbon.\nIn May.\n\n林月：大潮是几号？\n助手: 二号。\n"
    assert messages(read(text)) == [
        [
            {"role": "user", "speaker": "Ann", "content": "I moved to Lisbon.\nIn May."},
            {"role": "user", "speaker": "林月", "content": "大潮是几号？"},
            {"role": "assistant", "content": "二号。"},
        ]
    ]


@pytest.mark.parametrize(
    "text",
    [
        "I moved to Lisbon.\nIn May.\n\nThe flat is small.",
        "See https://example.org for it.\n\nNote: nothing else.\n\nThe end.",
        "10:30 we met.\n\nAt noon we left.",
    ],
)
def test_other_text_is_paragraphs(text: str) -> None:
    """Text that is no transcript becomes one user message per paragraph, word for word."""
    expected = [{"role": "user", "content": part} for part in text.split("\n\n")]
    assert messages(read(text)) == [expected]


def test_a_bracket_does_not_make_it_json() -> None:
    """Plain text may begin with a bracket."""
    assert messages(read("[10:32] hello there")) == [[{"role": "user", "content": "[10:32] hello there"}]]


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("", "f.json", ".json is empty."),
        ("[]", "f.json", ".json contains no message with text."),
        ('[\n{"role": "user"', "f.json", ".json, line 2, column 16: not JSON"),
        (f'{A}\n{{"role": "user"}}', "f", ", line 2: content: required."),
        (f"{A}\n{{oops}}", "f", ", line 2, column 2: not JSON"),
        (f'[\n{A},\n\n{{"role": "cat", "content": "b"}}]', "f", ", line 4, message 2: role: 'cat' is not"),
        ('{"messages": [{"role": "user", "mood": 1}]}', "f", ", messages[0]: no such field 'mood'"),
        ('{"batches": [[], 3]}', "f", ", batches[1]: expected messages, found a number."),
        ('{"title": "x"}', "f", ": the object has neither `messages` nor `batches`."),
        (f'[{A[:-1]}, "timestamp": "soon"}}]', "f", ", line 1, message 1: timestamp: 'soon' is neither"),
        (f'[{A[:-1]}, "timestamp": 1e30}}]', "f", ", line 1, message 1: timestamp: "),
        (f'{A}\n{A[:-1]}, "id": 7}}', "f", ", line 2: id: 7 is not allowed; allowed: a string"),
        ('[{"role": "user", "content": "\\ud800"}]', "f", ", line 1, message 1: content: contains a lone"),
        (f'{{"messages": [{A}], "metadata": {{"a": NaN}}}}', "f", ": NaN is not a number in JSON."),
        (f'{{"messages": [{A}], "metadata": {{"a": {"9" * 5000}}}}}', "f", ": a number has too many"),
        ("[" * 100_000, "f.json", ".json: nested too deeply."),
    ],
)
def test_refusals_name_the_place(text: str, name: str, expected: str) -> None:
    """An unreadable file is refused with line or path, field and value."""
    assert refused(text, name).startswith("f" + expected)


def test_long_messages_are_refused_by_the_daemons_limits() -> None:
    """Messages that the daemon would refuse are refused before anything is sent, with the line in the file."""
    assert refused("short\n\n" + "x" * 100_001).startswith(
        "file, line 3: content: 100001 characters; allowed: at most 100000."
    )


def test_other_encodings_are_refused() -> None:
    """Bytes that are not UTF-8 are refused with their line; a byte order mark is accepted."""
    with pytest.raises(Failure, match="line 2: byte 0xff is not UTF-8"):
        read_conversation(b"Ann: hi\n\xff", "f")
    assert messages(read_conversation("\ufeffAnn: hi".encode(), "f")) == [
        [{"role": "user", "speaker": "Ann", "content": "hi"}]
    ]


def test_long_conversations_are_cut() -> None:
    """A conversation is split into batches of --batch-size, and its key is numbered so that each stays unique."""
    text = json.dumps({"messages": [BOB] * 5, "idempotency_key": "k"})
    requests = cut(read(text).batches, 2, None)
    assert [len(request.places) for request in requests] == [2, 2, 1]
    assert [request.body["idempotency_key"] for request in requests] == ["k/1", "k/2", "k/3"]
