"""Plain text as a conversation.

A transcript, whose lines read `Name: text`, becomes messages with speakers; lines without a name go on with what
was said before. `user:` and `assistant:` (用户 and 助手) name a role, not a person. Any other text becomes one
message a paragraph.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

Turn = tuple[int, str, dict[str, Any] | None]
"""A line: its number, its text, and the message it begins, if it begins one."""

_SPOKEN = re.compile(r"\s*([^\W\d_][^:：\n]{0,39}?)\s*[:：](?!//)\s*(\S.*)")
MOST_NAME_WORDS = 4

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
    """The messages in a text, each with the number of the line it begins on."""
    lines = text.splitlines()
    spoken = [_spoken(line) for line in lines]
    if not _is_transcript(lines, spoken):
        return list(_joined(_paragraphs(lines)))
    return list(_joined(_turns(lines, spoken)))


def _turns(lines: list[str], spoken: list[tuple[str, str] | None]) -> Iterator[Turn]:
    """Each line of a transcript, with its number and the message it begins, if it begins one."""
    for number, (line, parts) in enumerate(zip(lines, spoken, strict=True), start=1):
        if parts is not None:
            yield number, parts[1], _message(parts[0])
        elif line.strip():
            yield number, line.strip(), None


def _joined(turns: Iterable[Turn]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The messages, each with all of its lines; joined once, for one message may have a million of them."""
    begin, message, lines = 0, None, list[str]()
    for number, line, begun in turns:
        if begun is not None:
            if message is not None:
                yield begin, {**message, "content": "\n".join(lines)}
            begin, message, lines = number, begun, []
        lines.append(line)
    if message is not None:
        yield begin, {**message, "content": "\n".join(lines)}


def _paragraphs(lines: list[str]) -> Iterator[Turn]:
    """Each line of a text that is not blank; the first one after a blank one begins a message."""
    is_new = True
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, line.strip(), {"role": "user"} if is_new else None
        is_new = not line.strip()


def _spoken(line: str) -> tuple[str, str] | None:
    """(name, text) of a line that reads `Name: text`."""
    found = _SPOKEN.fullmatch(line)
    if found is None or len(found[1].split()) > MOST_NAME_WORDS:
        return None
    return found[1], found[2].strip()


def _is_transcript(lines: list[str], spoken: list[tuple[str, str] | None]) -> bool:
    """Whether the first line names a speaker, and names are the rule: half of the lines, or one comes back."""
    filled = [parts for line, parts in zip(lines, spoken, strict=True) if line.strip()]
    if not filled or filled[0] is None:
        return False
    names = Counter(parts[0] for parts in filled if parts is not None)
    return names.total() * 2 >= len(filled) or max(names.values()) > 1


def _message(name: str) -> dict[str, Any]:
    role = ROLES.get(name.casefold())
    return {"role": "user", "speaker": name} if role is None else {"role": role}
