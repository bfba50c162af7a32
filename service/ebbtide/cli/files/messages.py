"""Read one message of a file: as a request contains it, or as chat exports write it.

The field `name` of an export is the speaker. Parts of a content are joined, ISO 8601 times become milliseconds, and the
role `developer` becomes `system`. Messages without text (tool calls, images) and the output of tools are skipped.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
NOT_TALK = frozenset({"tool", "function"})

FIELDS = ("role", "content", "timestamp", "id", "speaker", "metadata", "attachments")
EXPORT_FIELDS = frozenset(
    {
        "annotations",
        "audio",
        "function_call",
        "name",
        "refusal",
        "status",
        "tool_call_id",
        "tool_calls",
        "type",
        "weight",
    }
)
"""Fields of chat exports that are allowed but not stored, except `name`."""

TEXT_PARTS = frozenset({"text", "input_text", "output_text"})


class BadMessage(Exception):
    """A message is invalid."""


def read_message(item: Any) -> dict[str, Any] | None:
    """Return the message as a request contains it; None if it is skipped. Raise BadMessage if it is invalid."""
    if not isinstance(item, dict):
        raise BadMessage("a message is an object with role and content")
    unknown = [name for name in item if name not in FIELDS and name not in EXPORT_FIELDS]
    if unknown:
        raise BadMessage(f"no such field {unknown[0]!r:.80}; a message has {', '.join(FIELDS)}")
    role = _role(item)
    content = _content(item)
    if role is None or content is None:
        return None
    message: dict[str, Any] = {"role": role, "content": content}
    speaker = item.get("speaker", item.get("name"))
    if speaker is not None:
        message["speaker"] = speaker
    if item.get("timestamp") is not None:
        message["timestamp"] = time_ms(item["timestamp"])
    if item.get("id") is not None:
        message["id"] = item["id"]
    if item.get("metadata") is not None:
        message["metadata"] = item["metadata"]
    if item.get("attachments") is not None:
        message["attachments"] = item["attachments"]
    _check_unicode(message)
    return message


def _check_unicode(message: dict[str, Any]) -> None:
    for name, value in message.items():
        if isinstance(value, str) and not is_unicode(value):
            raise BadMessage(f"{name}: contains a lone surrogate; text must be valid Unicode")


def is_unicode(text: str) -> bool:
    """Return whether a text can be written as UTF-8. A lone surrogate such as `\\ud800` cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _role(item: dict[str, Any]) -> str | None:
    role = item.get("role")
    if role is None:
        raise BadMessage("role: required; allowed: user, assistant, system")
    if isinstance(role, str) and role in NOT_TALK:
        return None
    if not isinstance(role, str) or role not in ROLES:
        raise BadMessage(f"role: {role!r:.40} is not allowed; allowed: user, assistant, system")
    return ROLES[role]


def _content(item: dict[str, Any]) -> str | None:
    content = item.get("content")
    if isinstance(content, list):
        texts = [_part(part, index) for index, part in enumerate(content)]
        kept = [text for text in texts if text]
        return "\n".join(kept) if kept else None
    if content is None:
        if item.get("tool_calls") or item.get("function_call") or item.get("refusal"):
            return None
        raise BadMessage("content: required")
    if not isinstance(content, str):
        raise BadMessage(f"content: expected a text, got {content!r:.40}")
    return content


def _part(part: Any, index: int) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        raise BadMessage(f"content[{index}]: expected a part such as {{'type': 'text', 'text': …}}")
    if str(part.get("type", "text")) not in TEXT_PARTS:
        return ""
    text = part.get("text")
    if not isinstance(text, str):
        raise BadMessage(f"content[{index}].text: expected a text, got {text!r:.40}")
    return text


def time_ms(value: Any) -> Any:
    """Return an ISO 8601 time in ms since the epoch, and any value that is not a string unchanged."""
    if not isinstance(value, str):
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise BadMessage(
            f"timestamp: {value!r:.40} is neither ms since the epoch nor an ISO 8601 time"
        ) from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)
