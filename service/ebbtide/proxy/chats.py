"""Requests for a chat, of three protocols: what the user says, and the request with a block of memories.

Values that do not change keep their bytes and their order. A request that is not understood is no chat: it is passed on
unchanged. Nothing is decoded that is not needed, so a hostile request costs little more than its bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from msgspec import Raw

Api = Literal["chat", "responses", "ollama"]
Position = Literal["system", "before_user"]

MAX_COMMAS = 200_000
"""A request with more commas has too many values to be understood; those within texts count too."""

TEXT_TYPES = frozenset({"text", "input_text", "output_text"})

OPENING = "<memory>\nWhat is remembered from earlier conversations; it may be outdated.\n"
CLOSING = "\n</memory>"

_Fields = dict[str, Raw]


class _Message(msgspec.Struct):
    role: Raw = Raw(b"null")
    content: Raw = Raw(b"null")


class _Part(msgspec.Struct):
    type: Raw = Raw(b"null")
    text: Raw = Raw(b"null")


@dataclass(frozen=True, slots=True)
class Chat:
    """A request for a chat whose last message of the user has text."""

    api: Api
    fields: Mapping[str, Raw]
    messages: Sequence[Raw]
    """Empty if the input of Responses is one text."""
    text: str
    """The last message of the user."""
    opening: str
    """The first message of the user."""
    user_count: int
    user_at: int
    """Index of the last message of the user."""
    is_first_round: bool
    """Whether nothing follows the last message of the user: no tool was called yet."""
    conversation: str
    """The id of the conversation as the request names it; empty if it does not."""
    user: str
    """The user as the request names it; empty if it does not."""
    is_kept: bool
    """Whether the request allows that the turn is stored."""

    @property
    def turn_key(self) -> str:
        """The key of this turn within its conversation."""
        previous = _text_of(self.fields.get("previous_response_id"))
        return hashed(previous, str(self.user_count), self.text)

    def with_block(self, block: str, position: Position) -> bytes:
        """Return the body of the request with a block of memories."""
        fields = dict(self.fields)
        if self.api == "responses":
            given = _text_of(fields.get("instructions"))
            fields["instructions"] = _raw(f"{given}\n\n{block}" if given else block)
        elif position == "before_user":
            at = self.user_at
            fields["messages"] = _raw([*self.messages[:at], _system(block), *self.messages[at:]])
        else:
            fields["messages"] = _raw(_with_system(self.messages, block))
        return msgspec.json.encode(fields)


def read_chat(api: Api, body: bytes) -> Chat | None:
    """Return the chat that a body asks for; None if it is not understood, or its user says nothing."""
    if body.count(b",") > MAX_COMMAS:
        return None
    try:
        fields = msgspec.json.decode(body, type=_Fields)
        return _chat(api, fields)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None


def block_of(text: str) -> str:
    """Return the block for a text of memories, which cannot end it."""
    return OPENING + text.replace("</memory", "<\u200b/memory") + CLOSING


def hashed(*parts: str) -> str:
    """Return a hash of texts, each of them whole."""
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def _chat(api: Api, fields: _Fields) -> Chat | None:
    given = fields.get("input" if api == "responses" else "messages", Raw(b"null"))
    messages: list[Raw] = []
    texts: list[tuple[int, str]] = []
    if api == "responses" and bytes(given)[:1] == b'"':
        texts = [(0, _text_of(given))]
    elif bytes(given)[:1] == b"[":
        messages = msgspec.json.decode(given, type=list[Raw])
        texts = [(at, _content(one)) for at, one in enumerate(messages) if _is_of(one, "user")]
    if not texts or not texts[-1][1].strip():
        return None
    user_at, text = texts[-1]
    return Chat(
        api=api,
        fields=fields,
        messages=messages,
        text=text,
        opening=texts[0][1],
        user_count=len(texts),
        user_at=user_at,
        is_first_round=user_at >= len(messages) - 1,
        conversation=_conversation(fields),
        user=_text_of(fields.get("safety_identifier")) or _text_of(fields.get("user")),
        is_kept=bytes(fields.get("store", b"")) != b"false",
    )


def _conversation(fields: _Fields) -> str:
    given = fields.get("conversation")
    if bytes(given or b"")[:1] == b"{":
        given = msgspec.json.decode(given or b"", type=_Fields).get("id")
    if found := _text_of(given):
        return found
    metadata = fields.get("metadata")
    if bytes(metadata or b"")[:1] != b"{":
        return ""
    return _text_of(msgspec.json.decode(metadata or b"", type=_Fields).get("conversation_id"))


def _is_of(message: Raw, *roles: str) -> bool:
    if bytes(message)[:1] != b"{":
        return False
    return _text_of(msgspec.json.decode(message, type=_Message).role) in roles


def _content(message: Raw) -> str:
    """Return the text of a message: its content, or the parts of it that are text."""
    content = msgspec.json.decode(message, type=_Message).content
    if bytes(content)[:1] != b"[":
        return _text_of(content)
    parts = [
        msgspec.json.decode(part, type=_Part)
        for part in msgspec.json.decode(content, type=list[Raw])
        if bytes(part)[:1] == b"{"
    ]
    return "\n".join(_text_of(part.text) for part in parts if _text_of(part.type) in TEXT_TYPES)


def _text_of(value: Raw | bytes | None) -> str:
    """Return the text that a value is; empty for other values."""
    if value is None or bytes(value)[:1] != b'"':
        return ""
    return msgspec.json.decode(value, type=str)


def _with_system(messages: Sequence[Raw], block: str) -> list[Raw]:
    """Return the messages with the block at the end of a system message that is first, or in a new one."""
    first = messages[0]
    if not _is_of(first, "system", "developer"):
        return [_system(block), *messages]
    fields = msgspec.json.decode(first, type=_Fields)
    content = fields.get("content", Raw(b"null"))
    if bytes(content)[:1] == b'"':
        fields["content"] = _raw(f"{_text_of(content)}\n\n{block}")
    elif bytes(content)[:1] == b"[":
        parts = msgspec.json.decode(content, type=list[Raw])
        fields["content"] = _raw([*parts, _raw({"type": "text", "text": block})])
    else:
        return [_system(block), *messages]
    return [_raw(fields), *messages[1:]]


def _system(block: str) -> Raw:
    return _raw({"role": "system", "content": block})


def _raw(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value))
