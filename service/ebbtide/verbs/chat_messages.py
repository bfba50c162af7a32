"""Read a message as clients of OpenAI's chat completions hold it: null or parts as content, calls of tools, names.

A message is stored as text. Parts of text are joined, and other parts are named: `[image]`. A call of a tool
becomes `name(arguments)`, with the arguments as they were sent. The field `name` is the speaker, `developer` is the
system, and `function` is a tool. The ids of calls become metadata.

The rule guarded here: **no text is lost, and none is invented.** What cannot be stored is refused with its place. Left
out are the contents of images, recordings and files, and the fields that `LEFT_OUT` lists. The command line reads files
with the same functions, so this module imports nothing that starts slowly.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

ROLES: Mapping[str, str] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
"""The stored role of each role that a message may have."""

READ = frozenset({"audio", "function_call", "name", "refusal", "tool_call_id", "tool_calls"})
"""Fields that only such clients send. They are read here."""

LEFT_OUT = frozenset({"annotations", "index", "status", "type", "weight"})
"""Fields that are allowed and not stored."""

TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
PART_NAMES = {
    "image_url": "image",
    "input_image": "image",
    "input_audio": "audio",
    "input_file": "file",
}
"""The names of parts without text, if they differ from their types."""

CALL_ID = "tool_call_id"
"""The metadata with the id of a call, for the call and for its output."""

MAX_PARTS = 1000
"""Most parts of one content."""

MAX_CALLS = 128
"""Most calls of tools in one message."""

MAX_ID_CHARS = 200
"""Most characters of the id of a call."""

MAX_TYPE_CHARS = 40

Json = dict[str, Any]


class BadMessage(Exception):
    """A message is invalid: one of the reasons of errors, the field within the message, and what is wrong."""

    def __init__(self, description: str, field: str = "", reason: str = "WRONG_TYPE") -> None:
        super().__init__(f"{field}: {description}" if field else description)
        self.description = description
        self.field = field
        self.reason = reason


def is_chat_message(item: Mapping[str, Any]) -> bool:
    """Return whether a message has a form that only such clients send."""
    role = item.get("role")
    return (
        isinstance(item.get("content", ""), list | None)
        or (isinstance(role, str) and ROLES.get(role, role) != role)
        or not READ.isdisjoint(item)
        or not LEFT_OUT.isdisjoint(item)
    )


def plain_message(item: Mapping[str, Any]) -> Json:
    """Return the message with a text as its content, and its calls of tools as one text under `tool_calls`.

    Values that are wrong in any message are returned as they are. Raise BadMessage for those that only such a message
    has.
    """
    plain = {name: value for name, value in item.items() if name not in READ and name not in LEFT_OUT}
    if isinstance(role := item.get("role"), str):
        plain["role"] = ROLES.get(role, role)
    calls, ids = _calls(item)
    content = item.get("content")
    if content is None or isinstance(content, str | list):
        plain.pop("content", None)
        texts = [one for one in (_said(content), *_beside(item)) if one is not None]
        if texts or calls:
            plain["content"] = "\n".join(filter(None, texts))
    if calls:
        plain["tool_calls"] = "\n".join(calls)
    _add_name(plain, item)
    ids += [_id(item[CALL_ID], CALL_ID)] if item.get(CALL_ID) is not None else []
    if ids and isinstance(plain.get("metadata") or {}, dict):
        plain["metadata"] = {CALL_ID: " ".join(ids), **(plain.get("metadata") or {})}
    return plain


def _add_name(plain: Json, item: Mapping[str, Any]) -> None:
    name = item.get("name")
    if name is None:
        return
    if plain.get("speaker") not in (None, _text(name, "name")):
        raise BadMessage(
            "differs from speaker, which means the same; send one of them", "name", "INVALID_VALUE"
        )
    if name:
        plain["speaker"] = name


def _said(content: str | list[Any] | None) -> str | None:
    """Return the text of a content."""
    if not isinstance(content, list):
        return content
    _refuse_long(content, "content", MAX_PARTS)
    if not content:
        raise BadMessage("an empty list; allowed: a text, or at least one part", "content", "INVALID_VALUE")
    return "\n".join(filter(None, (_part(part, f"content[{index}]") for index, part in enumerate(content))))


def _part(part: Any, place: str) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        raise BadMessage('not an object such as {"type": "text", "text": "…"}', place)
    kind = _text(part.get("type", "text"), f"{place}.type")
    if part.get("text") is not None:
        _text(part["text"], f"{place}.text")
    if kind in TEXT_PARTS or kind == "refusal":
        name = "refusal" if kind == "refusal" else "text"
        return _required(part, name, place)
    if not kind.isascii() or not kind.isidentifier() or len(kind) > MAX_TYPE_CHARS:
        allowed = "text, image_url, input_audio, file, or another word of letters, digits and _"
        raise BadMessage(f"no type of a part; allowed: {allowed}", f"{place}.type", "INVALID_VALUE")
    file = part.get("file")
    file_name = (file if isinstance(file, dict) else part).get("filename")
    name = PART_NAMES.get(kind, kind)
    return f"[{name}: {file_name}]" if isinstance(file_name, str) and file_name else f"[{name}]"


def _beside(item: Mapping[str, Any]) -> Iterator[str | None]:
    """Yield the texts of the assistant that are not in the content: a refusal, and the words of a recording."""
    if item.get("refusal") is not None:
        yield _text(item["refusal"], "refusal")
    audio = item.get("audio")
    if audio is None:
        return
    if not isinstance(audio, dict):
        raise BadMessage("not an object", "audio")
    transcript = audio.get("transcript")
    yield "[audio]" if transcript is None else _text(transcript, "audio.transcript")


def _calls(item: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the calls of a message as texts, and the ids of those that have one."""
    given = item.get("tool_calls")
    if not isinstance(given, list | None):
        raise BadMessage("not a list", "tool_calls")
    _refuse_long(given or [], "tool_calls", MAX_CALLS)
    calls, ids = [], []
    for index, call in enumerate(given or []):
        place = f"tool_calls[{index}]"
        if not isinstance(call, dict):
            raise BadMessage("not an object", place)
        calls.append(_call(call, place))
        if call.get("id") is not None:
            ids.append(_id(call["id"], f"{place}.id"))
    if item.get("function_call") is not None:
        calls.append(_called(item, "function_call", "arguments", ""))
    return calls, ids


def _call(call: Json, place: str) -> str:
    kind = call.get("type") or "function"
    if not isinstance(kind, str) or kind not in ("function", "custom"):
        raise BadMessage("no type of a call; allowed: function, custom", f"{place}.type", "INVALID_VALUE")
    other = "function" if kind == "custom" else "custom"
    if call.get(other) is not None:
        raise BadMessage(f"a call of the type {kind} has no {other}", f"{place}.{other}", "INVALID_VALUE")
    return _called(call, kind, "arguments" if kind == "function" else "input", f"{place}.")


def _called(holder: Mapping[str, Any], field: str, argument: str, before: str) -> str:
    """Return a call as text. Arguments that are an object, as Ollama has them, are written as JSON."""
    called, place = holder.get(field), f"{before}{field}"
    if called is None:
        raise BadMessage("required", place, "MISSING_FIELD")
    if not isinstance(called, dict):
        raise BadMessage("not an object", place)
    name = _required(called, "name", place)
    if not name.strip():
        raise BadMessage("empty; allowed: the name of a tool", f"{place}.name", "INVALID_VALUE")
    arguments = called.get(argument)
    if isinstance(arguments, dict):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return f"{name}({'' if arguments is None else _text(arguments, f'{place}.{argument}')})"


def _refuse_long(items: list[Any], place: str, most: int) -> None:
    if len(items) > most:
        raise BadMessage(f"{len(items)} items; allowed: at most {most}", place, "TOO_MANY_ITEMS")


def _id(value: Any, place: str) -> str:
    if len(_text(value, place)) > MAX_ID_CHARS:
        description = f"{len(value)} characters; allowed: at most {MAX_ID_CHARS}"
        raise BadMessage(description, place, "TEXT_TOO_LONG")
    return str(value)


def _required(holder: Json, name: str, place: str) -> str:
    if holder.get(name) is None:
        raise BadMessage("required", f"{place}.{name}", "MISSING_FIELD")
    return _text(holder[name], f"{place}.{name}")


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise BadMessage("not a string", place)
    return value
