"""Read the memories of mem0: a list, or one under `results`, as `get_all` and exports have it.

Each memory becomes a message with the same words. Its other fields become metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ebbtide.cli.files.conversation import Placed, bad_input
from ebbtide.cli.files.foreign.chats import (
    MAX_NAME_CHARS,
    Chat,
    Json,
    Notes,
    add_metadata,
    add_name,
    text_of,
    whole_ms,
)
from ebbtide.cli.files.foreign.sources import Source
from ebbtide.cli.files.foreign.whole import parsed, text_of_file
from ebbtide.cli.files.messages import ROLES, BadMessage

FORM = "mem0"

CONVERSATIONS = ("run_id", "session_id", "user_id", "agent_id")
"""Fields that may name the conversation, the first of them first. The API of mem0 calls `run_id` also `session_id`."""

KEPT = (
    *("user_id", "agent_id", "run_id", "session_id", "app_id"),
    *("categories", "structured_attributes", "created_at", "hash"),
)
"""Fields that become metadata, in addition to those of `metadata`."""


def read_mem0(source: Source, notes: Notes) -> Iterator[Chat]:
    """Yield the memories of a file by conversation, oldest first."""
    whole, name = parsed(text_of_file(source), source.name), source.name
    items = whole.get("results", whole.get("memories")) if isinstance(whole, dict) else whole
    if not isinstance(items, list):
        raise bad_input(f"{name}: expected a list of memories, or one under `results`.")
    if isinstance(whole, dict) and whole.get("relations"):
        notes.skip("relations", "the graph of mem0 is not imported, only its memories")
    if isinstance(whole, dict) and whole.get("next"):
        notes.skip("next", "the file is one page of several; import the others too")
    users = {str(one["user_id"]) for one in items if isinstance(one, dict) and one.get("user_id")}
    by_conversation: dict[str, list[Placed]] = {}
    for index, item in enumerate(items):
        place = f"memory {index + 1}"
        try:
            message = _mem0_message(item, place, notes)
        except BadMessage as fault:
            notes.skip(place, str(fault))
            continue
        if len(users) > 1 and "speaker" not in message:
            add_name(message, "speaker", item.get("user_id"))
        conversation = next((item[one] for one in CONVERSATIONS if item.get(one)), "mem0")
        by_conversation.setdefault(str(conversation)[:MAX_NAME_CHARS], []).append(Placed(message, place))
    for conversation, placed in by_conversation.items():
        # Oldest first, so that the newest memories end up in focus.
        placed.sort(key=lambda one: one.message.get("timestamp", 0))
        yield Chat(conversation, placed, place=placed[0].place)


def _mem0_message(item: Any, place: str, notes: Notes) -> Json:
    if not isinstance(item, dict):
        raise BadMessage("a memory is an object")
    content = text_of(item.get("memory", item.get("text")), "memory")
    role = ROLES.get(str(item.get("role") or "user"), "user")
    role = "user" if role == "tool" else role
    message: Json = {"role": role, "content": content}
    moment = item.get("updated_at") or item.get("created_at")
    if moment is not None:
        message["timestamp"] = whole_ms(moment)
    add_name(message, "id", item.get("id"))
    add_name(message, "speaker", item.get("actor_id"))
    metadata = {name: item[name] for name in KEPT if item.get(name)}
    if isinstance(item.get("metadata"), dict):
        metadata |= item["metadata"]
    add_metadata(message, {**metadata, "imported_from": FORM}, place, notes)
    return message
