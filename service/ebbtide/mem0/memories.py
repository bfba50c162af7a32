"""Memories as mem0's clients see them: their ids, and their fields.

An id is `<node or message>.<agent>`, the agent in base64url: the paths of mem0 name no user, and its clients take an id
as it is. The id of an event is that of a batch in the same form.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ebbtide.errors import EbbtideError, NotFound
from ebbtide.ids import parse_agent_id
from ebbtide.verbs.inspect import NodeDetail, NodeInfo, SourceInfo
from ebbtide.verbs.messages import MessageInfo
from ebbtide.verbs.own_words import whole_text

AGENT_PREFIX = "agent:"
"""The agent of a request that names only an `agent_id` is `agent:<id>`; the agent of a `user_id` has its name."""

STORED_AS = {"agent_id": "mem0_agent_id", "app_id": "mem0_app_id"}
"""The metadata in which ids are stored that are not the agent's."""

UPDATED_AT = "mem0_updated_at"
"""The metadata in which the time of the last update is stored."""

HIDDEN = frozenset({*STORED_AS.values(), UPDATED_AT})
"""Metadata of this API's own, which clients see as other fields."""


class Place(NamedTuple):
    """The place that an id names: an agent, and the id of a node, a message or a batch there."""

    agent_id: str
    own_id: str


def to_id(agent_id: str, own_id: str) -> str:
    """Return the id of a memory or an event for mem0's clients."""
    return f"{own_id}.{base64.urlsafe_b64encode(agent_id.encode()).decode().rstrip('=')}"


def from_id(text: str) -> Place:
    """Return what an id names. NODE_NOT_FOUND if it cannot be read: a client asks for ids that never existed, too."""
    own_id, _, encoded = text.partition(".")
    try:
        padded = encoded + "=" * (-len(encoded) % 4)
        agent_id = parse_agent_id(base64.b64decode(padded, altchars=b"-_", validate=True).decode())
    except (binascii.Error, ValueError, EbbtideError):
        raise no_memory() from None
    if to_id(agent_id, own_id) != text:
        raise no_memory()
    return Place(agent_id, own_id)


def no_memory(why: str = "No memory has this id.") -> NotFound:
    """Return the error for an id that no memory has."""
    return NotFound(why, reason="NODE_NOT_FOUND")


def entity_of(agent_id: str) -> tuple[str, str]:
    """Return the type and the name of an agent: `user` and its id, or `agent` and what follows the prefix."""
    name = agent_id.removeprefix(AGENT_PREFIX)
    return ("user", agent_id) if name in ("", agent_id) else ("agent", name)


def iso(time_ms: int) -> str:
    """Return a time as ISO 8601 in UTC."""
    time = datetime.fromtimestamp(time_ms // 1000, UTC).replace(microsecond=time_ms % 1000 * 1000)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def of_node(agent_id: str, node: NodeInfo) -> dict[str, Any]:
    """Return a living memory."""
    text = whole_text(node) if isinstance(node, NodeDetail) else node.content
    return _memory(agent_id, node.id, text, said_at(node), node.sources)


def of_message(agent_id: str, message: MessageInfo) -> dict[str, Any]:
    """Return a message that is not digested yet, or of which no memory lives."""
    time_ms = message.accepted_at if message.timestamp is None else message.timestamp
    return _fields(
        agent_id, message.id, message.content or "", time_ms, message.conversation_id, message.metadata
    )


def said_at(node: NodeInfo) -> int:
    """Return when a memory was said, else when it was made."""
    times = (source.timestamp for source in node.sources if source.timestamp is not None)
    return next(times, node.created_at or 0)


def _memory(
    agent_id: str, own_id: str, text: str, time_ms: int, sources: Sequence[SourceInfo]
) -> dict[str, Any]:
    run_id = next((one.conversation_id for one in sources if one.conversation_id), "")
    metadata = next((one.metadata for one in sources if one.metadata), {})
    return _fields(agent_id, own_id, text, time_ms, run_id, metadata)


def _fields(
    agent_id: str, own_id: str, text: str, time_ms: int, run_id: str, metadata: Mapping[str, Any]
) -> dict[str, Any]:
    kind, name = entity_of(agent_id)
    time = iso(time_ms)
    return {
        "id": to_id(agent_id, own_id),
        "memory": text.strip(),
        "user_id": name if kind == "user" else None,
        "agent_id": name if kind == "agent" else metadata.get(STORED_AS["agent_id"]),
        "app_id": metadata.get(STORED_AS["app_id"]),
        "run_id": run_id or None,
        # The documentation of mem0 names it so where memories are listed.
        "session_id": run_id or None,
        "metadata": {name: value for name, value in metadata.items() if name not in HIDDEN},
        "categories": [],
        "created_at": time,
        "updated_at": metadata.get(UPDATED_AT, time),
    }
