"""Read an agent file of Letta, `.af`, in its current layout.

    {"agents": [{"id", "name", "block_ids", "messages": [...]}], "blocks": [{"id", "label", "value"}], ...}

Each agent becomes a conversation with its name: its memory blocks, then the words of the user and the assistant. Agents
that answer with the tool `send_message` have their words in its argument, and thoughts in the text of the message.
Every export numbers ids from 0, so they are not imported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ebbtide.cli.files.conversation import Placed, bad_input
from ebbtide.cli.files.foreign.chats import (
    Chat,
    Json,
    Notes,
    add_time,
    conversation_name,
    messages_of,
    placed_name,
    text_of,
    titled,
    whole_ms,
)
from ebbtide.cli.files.foreign.sources import Source
from ebbtide.cli.files.foreign.whole import parsed, text_of_file
from ebbtide.cli.files.messages import BadMessage
from ebbtide.han import contains_han

FORM = "letta"

EVENTS = frozenset({"heartbeat", "login", "system_alert", "function_response", "summary"})
"""Types of messages that Letta writes in the name of the user."""


def read_letta(source: Source, notes: Notes) -> Iterator[Chat]:
    """Yield the agents of a file."""
    whole = parsed(text_of_file(source), source.name)
    if not isinstance(whole, dict) or not isinstance(whole.get("agents"), list):
        if isinstance(whole, dict) and ("core_memory" in whole or "agent_type" in whole):
            raise bad_input(
                f"{source.name} has an older layout of agent files; import it into a current Letta and export it again."
            )
        raise bad_input(f"{source.name}: expected an agent file with a list of agents.")
    blocks = whole.get("blocks")
    by_id: dict[str, tuple[Json, str]] = {}
    for index, block in enumerate(blocks if isinstance(blocks, list) else ()):
        if isinstance(block, dict) and isinstance(block.get("id"), str):
            by_id[block["id"]] = (block, f"blocks[{index}]")
        else:
            notes.skip(f"blocks[{index}]", "not a block with an id")
    for index, agent in enumerate(whole["agents"]):
        place = f"agents[{index}]"
        name = conversation_name(agent.get("name")) if isinstance(agent, dict) else None
        if name is None:
            notes.skip(place, "not an agent with a name")
            continue
        placed = [*_blocks(agent, by_id, place, notes), *_messages(agent, place, notes)]
        yield Chat(name, placed, titled(FORM, name), place)
    for field in ("files", "sources", "tools", "mcp_servers", "groups"):
        for _ in whole[field] if isinstance(whole.get(field), list) else ():
            notes.leave_out(field.replace("mcp_", "MCP "))


def _blocks(agent: Json, by_id: dict[str, tuple[Json, str]], place: str, notes: Notes) -> Iterator[Placed]:
    """Yield the memory blocks of an agent as messages: `human: Ann lives in Lisbon.`"""
    ids = agent.get("block_ids")
    for index, block_id in enumerate(ids if isinstance(ids, list) else ()):
        found = by_id.get(block_id) if isinstance(block_id, str) else None
        if found is None:
            notes.skip(f"{place}.block_ids[{index}]", "no such block")
            continue
        block, where = found
        try:
            value = text_of(block.get("value"), "value")
            label = str(block.get("label") or "block")
            colon = "：" if contains_han(value) else ": "
            content = text_of(f"{label}{colon}{value}", "value")
        except BadMessage as fault:
            if block.get("value"):
                notes.skip(where, str(fault))
            else:
                notes.leave_out("empty blocks")
            continue
        # A persona describes the agent itself.
        yield Placed({"role": "assistant" if label == "persona" else "user", "content": content}, where)


def _messages(agent: Json, place: str, notes: Notes) -> Iterator[Placed]:
    given = agent.get("messages")
    items = enumerate(given if isinstance(given, list) else ())
    return messages_of(((f"{place}.messages[{index}]", item) for index, item in items), _message, notes)


def _message(item: Any, place: str, notes: Notes) -> Json | None:
    """Return a message, or None if it has no words. Raise BadMessage if it is odd."""
    if not isinstance(item, dict):
        raise BadMessage("not a message")
    role = item.get("role")
    if role in ("system", "tool", "approval"):
        notes.leave_out("messages of the system" if role == "system" else "messages of tools")
        return None
    if role not in ("user", "assistant"):
        raise BadMessage(f"the role {role!r:.40} is unknown")
    text = _text(item.get("content"), place, notes)
    if role == "user":
        text = _of_user(text, notes)
    else:
        text = _of_assistant(text, item.get("tool_calls"), f"{place}.tool_calls", notes)
    if not text:
        notes.leave_out("messages without text")
        return None
    message: Json = {"role": role, "content": text_of(text, "content")}
    add_time(message, item.get("created_at"), whole_ms, f"{place}.created_at", notes)
    return message


def _text(content: Any, place: str, notes: Notes) -> str:
    if isinstance(content, str):
        return content.strip()
    texts = []
    for index, part in enumerate(content if isinstance(content, list) else ()):
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"].strip())
        elif isinstance(part, dict) and isinstance(part.get("type"), str):
            notes.leave_out(f"parts of the type {placed_name(part['type'])}")
        else:
            notes.skip(f"{place}.content[{index}]", "not a part with a type")
    return "\n".join(filter(None, texts))


def _of_user(text: str, notes: Notes) -> str:
    """Return what the user said: Letta may wrap it as `{"type": "user_message", "message": …}`."""
    if not text.startswith("{"):
        return text
    try:
        wrapped = json.loads(text)
    except (ValueError, RecursionError):
        return text
    kind = wrapped.get("type")
    if kind == "user_message" and isinstance(wrapped.get("message"), str):
        return str(wrapped["message"]).strip()
    if isinstance(kind, str) and kind in EVENTS:
        notes.leave_out("messages of the system")
        return ""
    return text


def _of_assistant(text: str, calls: Any, place: str, notes: Notes) -> str:
    """Return what the assistant said. If it called `send_message`, its text is what it thought."""
    sent = []
    for index, call in enumerate(calls if isinstance(calls, list) else ()):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            notes.skip(f"{place}[{index}]", "not a call of a function")
        elif function.get("name") != "send_message":
            notes.leave_out("calls of tools")
        else:
            said = _argument(function.get("arguments"))
            if said is None:
                notes.skip(f"{place}[{index}]", "send_message without a message")
            else:
                sent.append(said.strip())
    if not sent:
        return text
    if text:
        notes.leave_out("thoughts")
    return "\n".join(filter(None, sent))


def _argument(arguments: Any) -> str | None:
    try:
        given = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return None
    message = given.get("message") if isinstance(given, dict) else None
    return message if isinstance(message, str) else None
