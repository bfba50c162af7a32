"""Read the data of other memories as messages: the JSON of mem0, and the JSON lines of the MCP memory server.

Supported formats:

    [memory, ...] or {"results": [memory, ...]}        mem0: {"id", "memory", "metadata", "created_at", "user_id", ...}
    {"type": "entity" | "relation", ...} per line      MCP: {"name", "entityType", "observations"}, {"from", "to", ...}
    {"entities": [...], "relations": [...]}            the same as one document

Each memory, observation and relation becomes a message with the same words. Its other fields become metadata. An
invalid entry is skipped and reported with its place in the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ebbtide.cli.failures import program
from ebbtide.cli.files.conversation import Request, bad_input
from ebbtide.cli.files.messages import ROLES, BadMessage, is_unicode, time_ms
from ebbtide.han import contains_han

FORMATS = ("ebbtide", "mem0", "mcp-memory")

BATCH_SIZE = 40
MAX_CHARS = 100_000
MAX_NAME_CHARS = 200
MAX_METADATA_BYTES = 4096

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Skipped:
    """An entry, or a part of one, that is not imported: its place in the file, and the reason."""

    place: str
    why: str


@dataclass(slots=True)
class Foreign:
    """The requests read from a file, and the entries that were skipped."""

    requests: list[Request] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def detected(head: bytes, name: str) -> str:
    """Return the format of a file from its first bytes. Raise a Failure if it is unknown."""
    text = head.decode("utf-8-sig", errors="replace").lstrip()
    if head.startswith(b"manifest.json\0"):
        raise bad_input(f"{name} is a backup: use `{program()} restore`.")
    first = text.split("\n", 1)[0]
    try:
        line = json.loads(first)
    except (ValueError, RecursionError):
        line = None
    if isinstance(line, dict):
        if line.get("format") == "ebbtide-export":
            return "ebbtide"
        if line.get("type") in ("entity", "relation") or "entities" in line:
            return "mcp-memory"
    if text.startswith("{") and '"entities"' in text:
        return "mcp-memory"
    if (text.startswith("[") or '"results"' in text) and '"memory"' in text:
        return "mem0"
    raise bad_input(f"{name}: unknown format; pass it with --format.")


def read_foreign(raw: bytes, name: str, form: str) -> Foreign:
    """Return the content of a file in the format `form`."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise bad_input(f"{name}, line {line}: byte 0x{raw[error.start]:02x} is not UTF-8 text.") from None
    found = Foreign()
    try:
        if form == "mem0":
            _read_mem0(text, name, found)
        else:
            _read_mcp(text, name, found)
    except RecursionError:
        # Writing reaches its limit of nesting sooner than parsing.
        raise bad_input(f"{name}: nested too deeply.") from None
    return found


# --- mem0 ------------------------------------------------------------------------------------------------------


def _read_mem0(text: str, name: str, found: Foreign) -> None:
    whole = _parsed(text, name)
    items = whole.get("results", whole.get("memories")) if isinstance(whole, dict) else whole
    if not isinstance(items, list):
        raise bad_input(f"{name}: expected a list of memories, or one under `results`.")
    if isinstance(whole, dict) and whole.get("relations"):
        found.skipped.append(Skipped("relations", "the graph of mem0 is not imported, only its memories"))
    by_conversation: dict[str, list[tuple[Json, str]]] = {}
    for index, item in enumerate(items):
        place = f"memory {index + 1}"
        try:
            message = _mem0_message(item, place, found)
        except BadMessage as fault:
            found.skipped.append(Skipped(place, str(fault)))
            continue
        conversation = next((item[one] for one in ("run_id", "user_id", "agent_id") if item.get(one)), "mem0")
        by_conversation.setdefault(str(conversation)[:MAX_NAME_CHARS], []).append((message, place))
    for conversation, placed in by_conversation.items():
        # Oldest first, so that the newest memories end up in focus.
        placed.sort(key=lambda one: one[0].get("timestamp", 0))
        found.requests.extend(_requests(placed, conversation))


def _mem0_message(item: Any, place: str, found: Foreign) -> Json:
    if not isinstance(item, dict):
        raise BadMessage("a memory is an object")
    content = _text(item.get("memory", item.get("text")), "memory")
    role = ROLES.get(str(item.get("role") or "user"), "user")
    role = "user" if role == "tool" else role
    message: Json = {"role": role, "content": content}
    moment = item.get("updated_at") or item.get("created_at")
    if moment is not None:
        message["timestamp"] = _whole_ms(moment)
    _name(message, "id", item.get("id"))
    _name(message, "speaker", item.get("actor_id"))
    names = ("user_id", "agent_id", "run_id", "app_id", "categories", "created_at", "hash")
    metadata = {name: item[name] for name in names if item.get(name)}
    if isinstance(item.get("metadata"), dict):
        metadata |= item["metadata"]
    _add_metadata(message, {**metadata, "imported_from": "mem0"}, place, found)
    return message


def _whole_ms(moment: Any) -> int:
    """Return a time in ms since the epoch, by which memories are sorted. Raise BadMessage for any other value."""
    found = time_ms(moment)
    if isinstance(found, bool) or not isinstance(found, int):
        raise BadMessage(
            f"timestamp: {moment!r:.40} is neither whole ms since the epoch nor an ISO 8601 time"
        )
    return found


# --- MCP -------------------------------------------------------------------------------------------------------


def _read_mcp(text: str, name: str, found: Foreign) -> None:
    about: dict[str, list[tuple[Json, str]]] = {}
    for item, place in _mcp_items(text, name, found):
        try:
            if item.get("type") == "entity":
                entity = _text(item.get("name"), "name")
                about.setdefault(entity, []).extend(_of_entity(item, entity, place, found))
            elif item.get("type") == "relation":
                source = _text(item.get("from"), "from")
                about.setdefault(source, []).append((_of_relation(item, source, place, found), place))
            else:
                raise BadMessage("its type is neither entity nor relation")
        except BadMessage as fault:
            found.skipped.append(Skipped(place, str(fault)))
    for placed in about.values():
        # The observations of one entity form one batch, so that their memories are neighbours.
        found.requests.extend(_requests(placed, "mcp-memory"))


def _mcp_items(text: str, name: str, found: Foreign) -> Iterator[tuple[Json, str]]:
    lines = [(line, number) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    first = _line(lines[0][0]) if lines else None
    if lines and (first is None or "entities" in first):
        whole = _parsed(text, name)
        for kind, key in (("entity", "entities"), ("relation", "relations")):
            items = whole.get(key, []) if isinstance(whole, dict) else []
            for index, item in enumerate(items if isinstance(items, list) else []):
                place = f"{key}[{index}]"
                if isinstance(item, dict):
                    yield {**item, "type": kind}, place
                else:
                    found.skipped.append(Skipped(place, "not an object"))
        return
    for line, number in lines:
        item = _line(line)
        if item is None:
            found.skipped.append(Skipped(f"line {number}", "not a JSON object"))
        else:
            yield item, f"line {number}"


def _line(text: str) -> Json | None:
    try:
        item = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return item if isinstance(item, dict) else None


def _of_entity(item: Json, entity: str, place: str, found: Foreign) -> list[tuple[Json, str]]:
    kind = item.get("entityType")
    metadata: Json = {"entity": entity, "imported_from": "mcp-memory"}
    messages = []
    if isinstance(kind, str) and kind.strip():
        metadata["entity_type"] = kind
        is_han = contains_han(entity + kind)
        sentence = f"{entity}：{kind}" if is_han else f"{entity}: {kind}"
        messages.append((_spoken(sentence, metadata, place, found), place))
    observations = item.get("observations", [])
    if not isinstance(observations, list):
        found.skipped.append(Skipped(place, "observations: not a list"))
        observations = []
    for index, observation in enumerate(observations):
        where = f"{place}, observation {index + 1}"
        try:
            content = _text(observation, "observation")
            colon = "：" if contains_han(content) else ": "
            messages.append((_spoken(f"{entity}{colon}{content}", metadata, where, found), where))
        except BadMessage as fault:
            found.skipped.append(Skipped(where, str(fault)))
    if not messages:
        messages.append((_spoken(entity, metadata, place, found), place))
    return messages


def _of_relation(item: Json, source: str, place: str, found: Foreign) -> Json:
    target, relation = _text(item.get("to"), "to"), _text(item.get("relationType"), "relationType")
    words = relation.replace("_", " ").replace("-", " ")
    sentence = f"{source}{words}{target}" if contains_han(words) else f"{source} {words} {target}"
    metadata = {"from": source, "to": target, "relation": relation, "imported_from": "mcp-memory"}
    return _spoken(sentence, metadata, place, found)


def _spoken(content: str, metadata: Json, place: str, found: Foreign) -> Json:
    message: Json = {"role": "user", "content": _text(content, "content")}
    _add_metadata(message, metadata, place, found)
    return message


# --- both ------------------------------------------------------------------------------------------------------


def _parsed(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise bad_input(
            f"{name}, line {error.lineno}, column {error.colno}: not JSON ({error.msg.lower()})."
        ) from None
    except (ValueError, RecursionError):
        raise bad_input(f"{name}: nested too deeply, or a number has too many digits.") from None


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadMessage(f"{what}: no text")
    if len(value) > MAX_CHARS:
        raise BadMessage(f"{what}: {len(value):,} characters; allowed: at most {MAX_CHARS:,}")
    if not is_unicode(value):
        raise BadMessage(f"{what}: contains a lone surrogate; text must be valid Unicode")
    return value


def _name(message: Json, name: str, value: Any) -> None:
    if isinstance(value, str | int) and value != "" and is_unicode(str(value)):
        message[name] = str(value)[:MAX_NAME_CHARS]


def _add_metadata(message: Json, metadata: Json, place: str, found: Foreign) -> None:
    """Add the metadata to a message, with nested values as JSON.

    If it is too large or cannot be written as JSON, report that instead. The message is imported without it.
    """
    flat = {
        str(name)[:MAX_NAME_CHARS]: value
        if isinstance(value, str | int | float)
        else json.dumps(value, ensure_ascii=False)
        for name, value in metadata.items()
        if value is not None and name
    }
    try:
        written = json.dumps(flat, ensure_ascii=False, allow_nan=False)
    except ValueError:
        written = "\ud800"
    if not is_unicode(written):
        found.skipped.append(Skipped(place, "metadata left out: it cannot be written as JSON"))
    elif len(written.encode()) > MAX_METADATA_BYTES:
        found.skipped.append(Skipped(place, f"metadata left out: more than {MAX_METADATA_BYTES} bytes"))
    else:
        message["metadata"] = flat


def _requests(placed: list[tuple[Json, str]], conversation: str) -> Iterator[Request]:
    for begin in range(0, len(placed), BATCH_SIZE):
        part = placed[begin : begin + BATCH_SIZE]
        body: Json = {"messages": [message for message, _ in part], "conversation_id": conversation}
        written = json.dumps([body, begin], ensure_ascii=False, sort_keys=True)
        digest = hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()
        body["idempotency_key"] = f"import/{digest[:40]}"
        yield Request(body, [place for _, place in part])
