"""Read one message of a file: as a request contains it, or as clients of OpenAI, LangChain and chat exports write it.

`verbs/chat_messages.py` reads the forms of OpenAI, as the daemon does; the contents of images are not sent. ISO 8601
times become milliseconds. A message with an empty list of parts is skipped.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ebbtide.verbs.chat_messages import LEFT_OUT, READ, ROLES, BadMessage, plain_message

__all__ = ["ROLES", "BadMessage", "is_unicode", "read_message", "time_ms"]

FIELDS = ("role", "content", "timestamp", "id", "speaker", "metadata", "attachments")
CALLS = ("tool_calls", "function_call")
"""Fields that the daemon writes as text."""


def read_message(item: Any) -> dict[str, Any] | None:
    """Return the message as a request contains it; None if it is skipped. Raise BadMessage if it is invalid."""
    if not isinstance(item, dict):
        raise BadMessage("a message is an object with role and content")
    if "role" not in item and isinstance(item.get("data"), dict):
        item = _of_langchain(item, item["data"])
    unknown = [name for name in item if name not in FIELDS and name not in READ and name not in LEFT_OUT]
    if unknown:
        raise BadMessage(f"no such field {unknown[0]!r:.80}; a message has {', '.join(FIELDS)}")
    _check_role(item)
    calls = {name: item[name] for name in CALLS if item.get(name)}
    if item.get("content") == [] and not calls:
        return None
    message = {name: value for name, value in plain_message(item).items() if value is not None}
    _check_unicode(message)
    if message.pop("tool_calls", None) is not None:
        message |= calls
    content = message.get("content")
    if content is None:
        raise BadMessage("required", "content")
    if not isinstance(content, str):
        raise BadMessage(f"expected a text, got {content!r:.40}", "content")
    if "timestamp" in message:
        message["timestamp"] = time_ms(message["timestamp"])
    return message


LANGCHAIN_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}


def _of_langchain(item: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return the message as OpenAI has it. `messages_to_dict` of LangChain writes `{"type": "human", "data": {…}}`."""
    kind = str(item.get("type")).removesuffix("MessageChunk").lower()
    role = data.get("role") if kind == "chat" else LANGCHAIN_ROLES.get(kind)
    if role is None:
        raise BadMessage(
            f"{item.get('type')!r:.40} is unknown; allowed: {', '.join(LANGCHAIN_ROLES)}", "type"
        )
    calls = data.get("tool_calls")
    if isinstance(calls, list):
        calls = [
            {"id": one.get("id"), "function": {"name": one.get("name"), "arguments": one.get("args")}}
            for one in calls
            if isinstance(one, dict)
        ]
    kept = {
        name: data[name] for name in ("content", "id", "name", "tool_call_id") if data.get(name) is not None
    }
    return {"role": role, **kept, **({"tool_calls": calls} if calls else {})}


def _check_role(item: dict[str, Any]) -> None:
    role = item.get("role")
    if role is None:
        raise BadMessage(f"required; allowed: {', '.join(ROLES)}", "role")
    if not isinstance(role, str) or role not in ROLES:
        raise BadMessage(f"{role!r:.40} is not allowed; allowed: {', '.join(ROLES)}", "role")


def _check_unicode(message: dict[str, Any]) -> None:
    for name, value in message.items():
        if isinstance(value, str) and not is_unicode(value):
            raise BadMessage("contains a lone surrogate; text must be valid Unicode", name)


def is_unicode(text: str) -> bool:
    """Return whether a text can be written as UTF-8. A lone surrogate such as `\\ud800` cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def time_ms(value: Any) -> Any:
    """Return an ISO 8601 time in ms since the epoch, and any value that is not a string unchanged."""
    if not isinstance(value, str):
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise BadMessage(
            f"{value!r:.40} is neither ms since the epoch nor an ISO 8601 time", "timestamp"
        ) from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)
