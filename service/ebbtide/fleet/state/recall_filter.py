"""The recall filter recognises text of recent recalls when it comes back in a message.

Agents paste recalled memories into a prompt and later submit the whole transcript to `remember`. Stored again, a memory
would grow with every recall. The filter therefore notes each line of an answer, and removes those lines from incoming
messages.

The rule guarded here: what a user says is never lost. A line with the mark of an answer is removed whatever its length.
A line without it is removed only from a minimum length. A user's message that consists of one such line is kept,
because people repeat themselves for emphasis.

Fingerprints are Python's 64-bit hashes, keyed per process, of the normalised lower-case line. Each agent has a bounded
number; the oldest are dropped first. Closing the agent or removing memories clears them, so that a client can store a
removed text again. Jobs add fingerprints one at a time; any thread may read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import Enum
from itertools import islice
from typing import TypeVar

from ebbtide.han import contains_han
from ebbtide.normalisation import nfkc

V = TypeVar("V")

MAX_FINGERPRINTS = 4096
"""Lines remembered: about forty answers of a hundred memories."""

FINGERPRINT_BYTES = 200
"""Memory per fingerprint, including its dictionary entry and the original line."""

MIN_CHARS = 24
MIN_HAN_CHARS = 12
"""Unmarked lines shorter than this are too common to filter."""

SEPARATOR = "---"

_BULLET = re.compile(r"^(?:[-*•>]\s++|\d{1,3}[.)]\s++|[nm]\d{1,16}:\s++|<[a-z][^<>]{0,40}>)++")
"""The marks that clients put before a line: bullets, numbers, ids of memories, tags."""
_CLOSING = re.compile(r"</[a-z][^<>]{0,40}>$")
_BULLETS = frozenset("-*•><nm")
MARKS = ("[memory] ", "[记忆] ")
"""Marks of a memory in an answer, in lower case."""
_DATE = re.compile(r"^\[\d{4}-\d{2}-\d{2}\] ")


class _Line(Enum):
    OWN = 0
    RECALLED = 1
    MARKED = 2


class RecallFilter:
    """Fingerprints of what recalls of one agent returned recently."""

    def __init__(self, now_ms: Callable[[], int] = lambda: 0) -> None:
        self._now_ms = now_ms
        self._known: dict[int, int] = {}
        """When each line was first returned, by its fingerprint."""
        self._by_line_hash: dict[int, int] = {}
        """Fingerprint by hash of the original line: recalls often return the same memories."""

    def note(self, texts: Iterable[str]) -> None:
        """Note the texts of an answer."""
        now_ms = self._now_ms()
        for text in islice(texts, MAX_FINGERPRINTS):
            for line in text.split("\n"):
                fingerprint = self._fingerprint(line)
                if fingerprint is not None:
                    self._known[fingerprint] = self._known.pop(fingerprint, now_ms)
        _drop_oldest(self._known)
        _drop_oldest(self._by_line_hash)

    def _fingerprint(self, line: str) -> int | None:
        """Return the fingerprint of a recalled line; None if it has no content."""
        known = self._by_line_hash.get(hash(line))
        if known is not None:
            return known
        text = _normalised(line)[0]
        if not text:
            return None
        return self._by_line_hash.setdefault(hash(line), hash(text))

    @property
    def are_known(self) -> bool:
        """Whether the filter contains any lines."""
        return bool(self._known)

    @property
    def resident_bytes(self) -> int:
        """Size in memory."""
        return len(self._known) * FINGERPRINT_BYTES

    def clear(self) -> None:
        """Clear the filter, because memories were removed."""
        self._known = {}
        self._by_line_hash = {}

    def without(self, text: str, role: str) -> tuple[str, int]:
        """Return a message without recalled lines and the number of lines removed; the text may be empty."""
        if not self._known:
            return text, 0
        lines = text.split("\n")
        kinds = [self._kind(line) for line in lines]
        count = sum(kind is not _Line.OWN for kind in kinds)
        if count == 0 or (role == "user" and _is_said_alone(lines, kinds)):
            return text, 0
        kept = [line for index, line in enumerate(lines) if not _is_removed(index, lines, kinds)]
        left = "\n".join(kept).strip("\r\n")
        return (left if left.strip() else ""), count

    def is_echo(self, line: str, before_ms: int) -> bool:
        """Whether a line of a message has the mark of an answer, or was returned before the message was accepted."""
        text, is_marked = _normalised(line)
        if is_marked:
            return True
        noted_ms = self._known.get(hash(text)) if text else None
        return noted_ms is not None and noted_ms < before_ms and self._kind(line) is not _Line.OWN

    def _kind(self, line: str) -> _Line:
        text, is_marked = _normalised(line)
        if not text or hash(text) not in self._known:
            return _Line.OWN
        if is_marked:
            return _Line.MARKED
        least = MIN_HAN_CHARS if contains_han(text) else MIN_CHARS
        return _Line.RECALLED if len(text) >= least else _Line.OWN


def _drop_oldest(known: dict[int, V]) -> None:
    """Remove the oldest entries beyond the limit."""
    for key in list(islice(known, max(0, len(known) - MAX_FINGERPRINTS))):
        del known[key]


def _is_said_alone(lines: list[str], kinds: list[_Line]) -> bool:
    spoken = [kind for line, kind in zip(lines, kinds, strict=True) if line.strip()]
    return spoken == [_Line.RECALLED]


def _is_removed(index: int, lines: list[str], kinds: list[_Line]) -> bool:
    """Whether a line is removed: it was recalled, or it separates a recalled line from the next."""
    if lines[index].strip() != SEPARATOR:
        return kinds[index] is not _Line.OWN
    neighbours = kinds[max(0, index - 1) : index + 2]
    return any(kind is not _Line.OWN for kind in neighbours)


def _normalised(line: str) -> tuple[str, bool]:
    """Return the normalised text of a line and whether it has the mark of an answer."""
    text = " ".join(nfkc(line).casefold().split())
    if not text.startswith(MARKS) and (text[:1] in _BULLETS or text[:1].isdigit()):
        text = _BULLET.sub("", text)
    if text.endswith(">"):
        text = _CLOSING.sub("", text).rstrip()
    for mark in MARKS:
        if text.startswith(mark):
            return _DATE.sub("", text[len(mark) :]), True
    return ("" if text == SEPARATOR else text), False
