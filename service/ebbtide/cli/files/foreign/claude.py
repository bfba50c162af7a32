"""Read the conversations of Claude's data export, `conversations.json`.

The text of the user and the assistant is imported. Thinking, tools and attachments are counted.
"""

from __future__ import annotations

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
    messages_of,
    text_of,
    time_of,
    titled,
    whole_ms,
)
from ebbtide.cli.files.foreign.elements import elements
from ebbtide.cli.files.foreign.sources import Source
from ebbtide.cli.files.messages import BadMessage

FORM = "claude"

ROLES = {"human": "user", "assistant": "assistant"}
LEFT_OUT = {
    "thinking": "thinking",
    "redacted_thinking": "thinking",
    "tool_use": "uses of tools",
    "tool_result": "results of tools",
    "token_budget": "notes of the system",
}
"""Types of blocks without words of the conversation, and the name under which they are counted."""


def read_claude(source: Source, notes: Notes) -> Iterator[Chat]:
    """Yield the conversations of a file."""
    for index, item in enumerate(elements(source.file, source.name, "conversation")):
        place = f"{source.stem}[{index}]"
        if not isinstance(item, dict) or not isinstance(item.get("chat_messages"), list):
            notes.skip(place, "not a conversation: it has no list of chat_messages")
            continue
        name = conversation_name(item.get("uuid"))
        if name is None:
            notes.skip(place, "a conversation without an id")
            continue
        items = ((f"{place}.chat_messages[{n}]", given) for n, given in enumerate(item["chat_messages"]))
        messages = list(messages_of(items, _message, notes))
        date(messages, time_of(item.get("created_at"), whole_ms, f"{place}.created_at", notes))
        yield Chat(name, messages, titled(FORM, item.get("name")), place)


def _message(given: Any, place: str, notes: Notes) -> Json | None:
    """Return a message, or None if it has no text. Raise BadMessage if it is odd."""
    if not isinstance(given, dict):
        raise BadMessage("not a message")
    sender = given.get("sender")
    role = ROLES.get(sender) if isinstance(sender, str) else None
    if role is None:
        raise BadMessage(f"the sender {sender!r:.40} is unknown")
    for field in ("attachments", "files"):
        attached = given.get(field)
        for _ in attached if isinstance(attached, list) else ():
            notes.leave_out("attachments")
    text = _text(given.get("content"), place, notes)
    if not text and isinstance(given.get("text"), str) and not _has_tools(given.get("content")):
        # Older exports have no blocks. Next to blocks of tools, it names parts that an old client cannot show.
        text = given["text"].strip()
    if not text:
        notes.leave_out("messages without text")
        return None
    message: Json = {"role": role, "content": text_of(text, "content")}
    add_name(message, "id", given.get("uuid"))
    add_time(message, given.get("created_at"), whole_ms, f"{place}.created_at", notes)
    return message


def _text(content: Any, place: str, notes: Notes) -> str:
    """Return the texts of the blocks of a message. Count or note the other blocks."""
    texts = []
    for index, block in enumerate(content if isinstance(content, list) else ()):
        where = f"{place}.content[{index}]"
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(kind, str):
            notes.skip(where, "not a block with a type")
        elif kind in LEFT_OUT:
            notes.leave_out(LEFT_OUT[kind])
        elif kind == "text" and isinstance(block.get("text"), str):
            texts.append(block["text"].strip())
        elif kind == "text":
            notes.skip(where, "a block without text")
        else:
            notes.skip(where, f"the type {kind!r:.40} is unknown")
    return "\n".join(filter(None, texts))


def _has_tools(content: Any) -> bool:
    blocks = content if isinstance(content, list) else ()
    return any(isinstance(block, dict) and block.get("type") in (*LEFT_OUT,) for block in blocks)
