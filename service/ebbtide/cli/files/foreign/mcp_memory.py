"""Read the JSON lines of the MCP memory server, or the same as one document.

    {"type": "entity" | "relation", ...} per line      {"name", "entityType", "observations"}, {"from", "to", ...}
    {"entities": [...], "relations": [...]}            the same as one document

Each observation and relation becomes a message with the same words. Names and types become metadata.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from ebbtide.cli.files.conversation import Placed
from ebbtide.cli.files.foreign.chats import Chat, Json, Notes, add_metadata, text_of
from ebbtide.cli.files.foreign.sources import Source
from ebbtide.cli.files.foreign.whole import parsed, text_of_file
from ebbtide.cli.files.messages import BadMessage
from ebbtide.han import contains_han

FORM = "mcp-memory"


def read_mcp_memory(source: Source, notes: Notes) -> Iterator[Chat]:
    """Yield the entities of a file, each with its observations and the relations that start from it."""
    text, name = text_of_file(source), source.name
    about: dict[str, list[Placed]] = {}
    for item, place in _mcp_items(text, name, notes):
        try:
            if item.get("type") == "entity":
                entity = text_of(item.get("name"), "name")
                about.setdefault(entity, []).extend(_of_entity(item, entity, place, notes))
            elif item.get("type") == "relation":
                begin = text_of(item.get("from"), "from")
                about.setdefault(begin, []).append(Placed(_of_relation(item, begin, place, notes), place))
            else:
                raise BadMessage("its type is neither entity nor relation")
        except BadMessage as fault:
            notes.skip(place, str(fault))
    for placed in about.values():
        # The observations of one entity form one batch, so that their memories are neighbours.
        if placed:
            yield Chat(FORM, placed, place=placed[0].place)


def _mcp_items(text: str, name: str, notes: Notes) -> Iterator[tuple[Json, str]]:
    lines = [(line, number) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    first = _line(lines[0][0]) if lines else None
    if lines and (first is None or "entities" in first):
        whole = parsed(text, name)
        for kind, key in (("entity", "entities"), ("relation", "relations")):
            items = whole.get(key, []) if isinstance(whole, dict) else []
            for index, item in enumerate(items if isinstance(items, list) else []):
                place = f"{key}[{index}]"
                if isinstance(item, dict):
                    yield {**item, "type": kind}, place
                else:
                    notes.skip(place, "not an object")
        return
    for line, number in lines:
        item = _line(line)
        if item is None:
            notes.skip(f"line {number}", "not a JSON object")
        else:
            yield item, f"line {number}"


def _line(text: str) -> Json | None:
    try:
        item = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return item if isinstance(item, dict) else None


def _of_entity(item: Json, entity: str, place: str, notes: Notes) -> list[Placed]:
    kind = item.get("entityType")
    metadata: Json = {"entity": entity, "imported_from": FORM}
    messages = []
    if isinstance(kind, str) and kind.strip():
        metadata["entity_type"] = kind
        is_han = contains_han(entity + kind)
        sentence = f"{entity}：{kind}" if is_han else f"{entity}: {kind}"
        messages.append(Placed(_spoken(sentence, metadata, place, notes), place))
    observations = item.get("observations", [])
    if not isinstance(observations, list):
        notes.skip(place, "observations: not a list")
        observations = []
    for index, observation in enumerate(observations):
        where = f"{place}, observation {index + 1}"
        try:
            content = text_of(observation, "observation")
            colon = "：" if contains_han(content) else ": "
            messages.append(Placed(_spoken(f"{entity}{colon}{content}", metadata, where, notes), where))
        except BadMessage as fault:
            notes.skip(where, str(fault))
    if not messages:
        messages.append(Placed(_spoken(entity, metadata, place, notes), place))
    return messages


def _of_relation(item: Json, source: str, place: str, notes: Notes) -> Json:
    target, relation = text_of(item.get("to"), "to"), text_of(item.get("relationType"), "relationType")
    words = relation.replace("_", " ").replace("-", " ")
    sentence = f"{source}{words}{target}" if contains_han(words) else f"{source} {words} {target}"
    metadata = {"from": source, "to": target, "relation": relation, "imported_from": FORM}
    return _spoken(sentence, metadata, place, notes)


def _spoken(content: str, metadata: Json, place: str, notes: Notes) -> Json:
    message: Json = {"role": "user", "content": text_of(content, "content")}
    add_metadata(message, metadata, place, notes)
    return message
