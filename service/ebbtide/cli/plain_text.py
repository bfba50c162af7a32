"""Read plain text as a conversation.

In a transcript, a line `Name: text` begins a message with a speaker, and a line without a name continues the previous
message. `user:` and `assistant:` (用户 and 助手) are roles, not speakers. In any other text, each paragraph becomes a
message of the user.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

_SPOKEN = re.compile(r"([^\W\d_][^:：\n]{0,79})[:：](?!//)\s*+(\S.*+)")
MAX_NAME_WORDS, MAX_NAME_CHARS = 4, 40

ROLES = {
    "user": "user",
    "human": "user",
    "用户": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "助手": "assistant",
    "system": "system",
    "系统": "system",
}


def read_text(text: str) -> list[tuple[int, dict[str, Any]]]:
    """Return the messages of a text, each with the number of its first line."""
    lines = text.splitlines()
    spoken = [_spoken(line) for line in lines]
    if not _is_transcript(lines, spoken):
        return _paragraphs(lines)
    messages: list[tuple[int, str, list[str]]] = []
    for number, (line, parts) in enumerate(zip(lines, spoken, strict=True), start=1):
        if parts is not None:
            messages.append((number, parts[0], [parts[1]]))
        elif line.strip():
            messages[-1][2].append(line.strip())
    return [(number, _message(name, "\n".join(content))) for number, name, content in messages]


def _paragraphs(lines: list[str]) -> list[tuple[int, dict[str, Any]]]:
    paragraphs: list[tuple[int, list[str]]] = []
    is_new = True
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            is_new = True
        elif is_new:
            paragraphs.append((number, [line.strip()]))
            is_new = False
        else:
            paragraphs[-1][1].append(line.strip())
    return [(number, {"role": "user", "content": "\n".join(content)}) for number, content in paragraphs]


def _spoken(line: str) -> tuple[str, str] | None:
    """Return (name, text) of a line `Name: text`, or None for any other line."""
    found = _SPOKEN.fullmatch(line.strip())
    name = "" if found is None else found[1].rstrip()
    if found is None or len(name) > MAX_NAME_CHARS or len(name.split()) > MAX_NAME_WORDS:
        return None
    return name, found[2]


def _is_transcript(lines: list[str], spoken: list[tuple[str, str] | None]) -> bool:
    """Return whether the text is a transcript.

    Its first line has a speaker, and either half of the lines have one or a speaker occurs twice.
    """
    filled = [parts for line, parts in zip(lines, spoken, strict=True) if line.strip()]
    if not filled or filled[0] is None:
        return False
    names = Counter(parts[0] for parts in filled if parts is not None)
    return names.total() * 2 >= len(filled) or max(names.values()) > 1


def _message(name: str, content: str) -> dict[str, Any]:
    role = ROLES.get(name.casefold())
    if role is not None:
        return {"role": role, "content": content}
    return {"role": "user", "speaker": name, "content": content}
