"""Read the conversations of ChatGPT's data export, `conversations.json`.

A conversation is a tree of messages, since a message that is edited begins a new branch. The branch that ChatGPT shows
is imported: from `current_node` up to the root. The words of the user and the assistant are imported, those of voice
chats too. Code that runs in tools, calls and output of tools, reasoning, pictures and hidden messages are counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ebbtide.cli.files.foreign.chats import (
    Chat,
    Json,
    Notes,
    add_name,
    add_time,
    conversation_name,
    date,
    from_seconds,
    messages_of,
    placed_name,
    text_of,
    time_of,
    titled,
)
from ebbtide.cli.files.foreign.elements import elements
from ebbtide.cli.files.foreign.sources import Source
from ebbtide.cli.files.messages import BadMessage

FORM = "chatgpt"

SPOKEN = frozenset({"text", "multimodal_text"})
LEFT_OUT = {
    "code": "code",
    "execution_output": "messages of tools",
    "thoughts": "reasoning",
    "reasoning_recap": "reasoning",
    "user_editable_context": "custom instructions",
    "model_editable_context": "custom instructions",
    "tether_browsing_display": "messages of tools",
    "tether_quote": "messages of tools",
    "system_error": "errors",
    "app_pairing_content": "messages of tools",
}
"""Types of content without words of the conversation, and the name under which they are counted."""

_REFERENCE = re.compile("\ue200[^\ue200\ue201]*+\ue201|【[0-9:]++†[^【】]*+】")
"""A reference to a source in an answer: a number between characters without a meaning of their own, or 【4†source】."""


def read_chatgpt(source: Source, notes: Notes) -> Iterator[Chat]:
    """Yield the conversations of a file."""
    for index, item in enumerate(elements(source.file, source.name, "conversation")):
        place = f"{source.stem}[{index}]"
        if not isinstance(item, dict) or not isinstance(item.get("mapping"), dict):
            notes.skip(place, "not a conversation: it has no mapping of messages")
            continue
        name = conversation_name(item.get("conversation_id")) or conversation_name(item.get("id"))
        if name is None:
            notes.skip(place, "a conversation without an id")
            continue
        path = _path(item, place, notes)
        items = [(f"{place}.mapping.{placed_name(one)}", item["mapping"][one].get("message")) for one in path]
        messages = list(messages_of(items, _message, notes))
        date(messages, time_of(item.get("create_time"), from_seconds, f"{place}.create_time", notes))
        yield Chat(name, messages, titled(FORM, item.get("title")), place)


def _path(item: Json, place: str, notes: Notes) -> list[str]:
    """Return the nodes of the branch that is shown, from its root on. Count what other branches say."""
    mapping: Json = item["mapping"]
    node = item.get("current_node")
    if not isinstance(node, str) or node not in mapping:
        node = _newest(mapping)
        if node is not None:
            notes.skip(
                f"{place}.current_node", "no such message; the branch of the newest message is imported"
            )
    path: list[str] = []
    seen: set[str] = set()
    while node is not None:
        where = f"{place}.mapping.{placed_name(node)}"
        if not isinstance(node, str) or not isinstance(mapping.get(node), dict):
            notes.skip(where, "no such message; earlier ones are left out")
            break
        if node in seen:
            notes.skip(where, "its parents form a circle; earlier ones are left out")
            break
        seen.add(node)
        path.append(node)
        node = mapping[node].get("parent")
    for other, value in mapping.items():
        if other not in seen and _is_said(value):
            notes.leave_out("messages on branches that were edited away")
    return path[::-1]


def _newest(mapping: Json) -> str | None:
    def moment(node: str) -> float:
        message = mapping[node].get("message") if isinstance(mapping[node], dict) else None
        try:
            return from_seconds(message.get("create_time")) if isinstance(message, dict) else -1
        except BadMessage:
            return 0

    return max(mapping, key=moment, default=None)


def _is_said(node: Any) -> bool:
    """Whether a node has words of the user or the assistant."""
    try:
        return isinstance(node, dict) and _message(node.get("message"), "", Notes()) is not None
    except BadMessage:
        return False


def _message(given: Any, place: str, notes: Notes) -> Json | None:
    """Return the message of a node, or None if it has none. Raise BadMessage if it is odd."""
    if given is None:
        return None
    if not isinstance(given, dict):
        raise BadMessage("not a message")
    author, content = given.get("author"), given.get("content")
    if not isinstance(author, dict) or not isinstance(content, dict):
        raise BadMessage("a message without author or content")
    role, kind, metadata = author.get("role"), content.get("content_type"), given.get("metadata")
    if reason := _left_out(role, kind, given.get("recipient"), metadata):
        notes.leave_out(reason)
        return None
    if role not in ("user", "assistant"):
        raise BadMessage(f"the role {role!r:.40} is unknown")
    if not isinstance(kind, str) or kind not in SPOKEN:
        raise BadMessage(f"the content type {kind!r:.40} is unknown")
    text = _text(content.get("parts"), place, notes)
    if not text:
        notes.leave_out("messages without text")
        return None
    message: Json = {"role": role, "content": text_of(text, "content")}
    add_name(message, "id", given.get("id"))
    add_time(message, given.get("create_time"), from_seconds, f"{place}.create_time", notes)
    return message


def _left_out(role: Any, kind: Any, recipient: Any, metadata: Any) -> str | None:
    if role in ("system", "tool"):
        return "messages of the system" if role == "system" else "messages of tools"
    if isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation"):
        return "hidden messages"
    if recipient not in ("all", None):
        return "messages to tools"
    return LEFT_OUT.get(kind) if isinstance(kind, str) else None


def _text(parts: Any, place: str, notes: Notes) -> str:
    if not isinstance(parts, list):
        raise BadMessage("content.parts: not a list")
    texts = []
    for index, part in enumerate(parts):
        if isinstance(part, dict):
            said = part.get("text") if part.get("content_type") == "audio_transcription" else None
            if not isinstance(said, str):
                notes.leave_out("pictures, recordings and files")
                continue
            part = said
        if not isinstance(part, str):
            notes.skip(f"{place}.content.parts[{index}]", "neither a text nor an object")
        elif part.strip():
            texts.append(_REFERENCE.sub("", part))
    return "\n".join(texts).strip()
