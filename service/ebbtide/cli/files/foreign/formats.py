"""The formats of `ebbtide import`, how they are recognised, and the reader of each.

ebbtide                       an export of Ebbtide, restored by `commands/import_file.py`
chatgpt claude                the conversations of a data export
letta                         an agent file, `.af`
langchain                     `messages_to_dict`
mem0 mcp-memory               other memories
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from ebbtide.cli.failures import program
from ebbtide.cli.files.conversation import bad_input
from ebbtide.cli.files.foreign.chatgpt import read_chatgpt
from ebbtide.cli.files.foreign.chats import Chat, Notes
from ebbtide.cli.files.foreign.claude import read_claude
from ebbtide.cli.files.foreign.elements import elements
from ebbtide.cli.files.foreign.langchain import read_langchain
from ebbtide.cli.files.foreign.letta import read_letta
from ebbtide.cli.files.foreign.mcp_memory import read_mcp_memory
from ebbtide.cli.files.foreign.mem0 import read_mem0
from ebbtide.cli.files.foreign.sources import Source

READERS: Mapping[str, Callable[[Source, Notes], Iterator[Chat]]] = {
    "chatgpt": read_chatgpt,
    "claude": read_claude,
    "letta": read_letta,
    "langchain": read_langchain,
    "mem0": read_mem0,
    "mcp-memory": read_mcp_memory,
}

FORMATS = ("ebbtide", *READERS)

EMPTY = ""
"""The format of a list without elements: a part of an export may be one."""

HEAD_BYTES = 64 << 10
LOOKED_AT = 20
"""Elements of a list that are read to recognise its format."""


def detected(source: Source) -> str:
    """Return the format of a file, or EMPTY. Raise a Failure if it is unknown. The file is at its start afterwards."""
    head = source.file.read(HEAD_BYTES)
    source.file.seek(0)
    if head.startswith(b"manifest.json\0"):
        raise bad_input(f"{source.name} is a backup: use `{program()} restore`.")
    text = head.decode("utf-8-sig", errors="replace").lstrip()
    form = _of_list(source) if text.startswith("[") else _of_object(text, source.name)
    source.file.seek(0)
    if form is None:
        raise bad_input(f"{source.name}: unknown format; pass it with --format.")
    return form


def _of_list(source: Source) -> str | None:
    form: str | None = EMPTY
    for item in islice(elements(source.file, source.name), LOOKED_AT):
        form = _of_item(item)
        if form is not None:
            break
    return form


def _of_item(item: Any) -> str | None:
    if not isinstance(item, dict):
        return None
    if isinstance(item.get("data"), dict) and "type" in item:
        return "langchain"
    fields = {"mapping": "chatgpt", "chat_messages": "claude", "memory": "mem0"}
    return next((form for name, form in fields.items() if name in item), None)


def _of_object(text: str, name: str) -> str | None:
    line = _line(text.split("\n", 1)[0])
    if line.get("format") == "ebbtide-export":
        return "ebbtide"
    if line.get("type") in ("entity", "relation") or "entities" in line:
        return "mcp-memory"
    if text.startswith("{") and '"entities"' in text:
        return "mcp-memory"
    is_agent_file = text.lstrip("{ \t\r\n").startswith('"agents"') or '"core_memory"' in text
    if text.startswith("{") and (name.endswith(".af") or is_agent_file):
        return "letta"
    if ('"results"' in text or '"memories"' in text) and '"memory"' in text:
        return "mem0"
    return None


def _line(text: str) -> dict[str, Any]:
    try:
        item = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return item if isinstance(item, dict) else {}


def read_chats(source: Source, form: str, notes: Notes) -> Iterator[Chat]:
    """Yield the conversations of a file in the format `form`. Raise a Failure where it cannot be read."""
    try:
        yield from READERS[form](source, notes)
    except RecursionError:
        # Writing reaches its limit of nesting sooner than parsing.
        raise bad_input(f"{source.name}: nested too deeply.") from None
