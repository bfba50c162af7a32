"""Echoes: what recalls have just told, as fingerprints, so that it is recognised when it comes back.

Agents paste what a recall tells into a prompt, and later hand the whole transcript over to be remembered. Stored again,
a memory would become the memory of having been told it, again and again. So what an answer tells is noted, line by
line, and a message comes in without those lines.

The rule guarded here: nobody loses what they say themselves. A line with the mark of an answer in front is an echo,
however short. One without it counts only from a least length on, and a user's message that is such a line and nothing
else is kept: people repeat themselves, and repetition is how they insist.

Fingerprints are the 64 bits that Python hashes a text to, under a key of this process; before that the line is put
into lower case, forms and white space are made alike. They are held in memory, a bounded number for each agent, the
oldest going first; closing the agent forgets them, and so does taking something out of its memory: what is gone may be
told again. Noted by jobs, one at a time; looked at from any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from itertools import islice
from typing import TypeVar

from ebbtide.han import contains_han
from ebbtide.retrieval.normalisation import nfkc

V = TypeVar("V")

MAX_FINGERPRINTS = 4096
"""Lines remembered as told: some forty answers of a hundred memories."""

FINGERPRINT_BYTES = 200
"""What a fingerprint takes in memory, with its place and the line it was last made of."""

LEAST_CHARS = 24
LEAST_HAN_CHARS = 12
"""Lines without a mark that are shorter are something that anyone may say."""

SEPARATOR = "---"

_BULLET = re.compile(r"^(?:[-*•>]\s++|\d{1,3}[.)]\s++|<[a-z][^<>]{0,40}>)++")
_CLOSING = re.compile(r"</[a-z][^<>]{0,40}>$")
_BULLETS = frozenset("-*•><")
MARKS = ("[memory] ", "[记忆] ")
"""What an answer puts in front of a memory, in lower case."""


class _Line(Enum):
    OWN = 0
    TOLD = 1
    MARKED = 2


class RecallFilter:
    """What recalls of one agent have told of late."""

    def __init__(self) -> None:
        self._known: dict[int, None] = {}
        self._made: dict[int, int] = {}
        """The fingerprint by the hash of a line as it was told: the same memories are told over and over."""

    def note(self, texts: Iterable[str]) -> None:
        """Note what an answer tells."""
        for text in islice(texts, MAX_FINGERPRINTS):
            for line in text.split("\n"):
                fingerprint = self._fingerprint(line)
                if fingerprint is not None:
                    self._known.pop(fingerprint, None)
                    self._known[fingerprint] = None
        self._known, self._made = _latest(self._known), _latest(self._made)

    def _fingerprint(self, line: str) -> int | None:
        """Of a line that was told; None where it says nothing."""
        known = self._made.get(hash(line))
        if known is not None:
            return known
        said = _said(line)[0]
        if not said:
            return None
        return self._made.setdefault(hash(line), hash(said))

    @property
    def are_known(self) -> bool:
        """Whether anything was told of late."""
        return bool(self._known)

    @property
    def resident_bytes(self) -> int:
        """Bytes of memory that it holds."""
        return len(self._known) * FINGERPRINT_BYTES

    def clear(self) -> None:
        """Forget what was told: some of it is not in the memory any more."""
        self._known = {}
        self._made = {}

    def without(self, text: str, role: str) -> tuple[str, int]:
        """A message without the lines that are echoes, and how many they were; empty where nothing is left."""
        if not self._known:
            return text, 0
        lines = text.split("\n")
        kinds = [self._kind(line) for line in lines]
        count = sum(kind is not _Line.OWN for kind in kinds)
        if count == 0 or (role == "user" and _is_said_alone(lines, kinds)):
            return text, 0
        kept = [line for index, line in enumerate(lines) if not _goes(index, lines, kinds)]
        left = "\n".join(kept).strip("\r\n")
        return (left if left.strip() else ""), count

    def _kind(self, line: str) -> _Line:
        said, is_marked = _said(line)
        if not said or hash(said) not in self._known:
            return _Line.OWN
        if is_marked:
            return _Line.MARKED
        least = LEAST_HAN_CHARS if contains_han(said) else LEAST_CHARS
        return _Line.TOLD if len(said) >= least else _Line.OWN


def _latest(known: dict[int, V]) -> dict[int, V]:
    """Return the newest entries, as many as are kept. Copies them: deleting the oldest one by one is quadratic."""
    surplus = len(known) - MAX_FINGERPRINTS
    return known if surplus <= 0 else dict(islice(known.items(), surplus, None))


def _is_said_alone(lines: list[str], kinds: list[_Line]) -> bool:
    spoken = [kind for line, kind in zip(lines, kinds, strict=True) if line.strip()]
    return spoken == [_Line.TOLD]


def _goes(index: int, lines: list[str], kinds: list[_Line]) -> bool:
    """Whether a line is left out: an echo, or what separates it from the next."""
    if lines[index].strip() != SEPARATOR:
        return kinds[index] is not _Line.OWN
    beside = kinds[max(0, index - 1) : index + 2]
    return any(kind is not _Line.OWN for kind in beside)


def _said(line: str) -> tuple[str, bool]:
    """What a line says, made alike, and whether it bears the mark of an answer. Every line told comes through here."""
    said = " ".join(nfkc(line).casefold().split())
    if not said.startswith(MARKS) and (said[:1] in _BULLETS or said[:1].isdigit()):
        said = _BULLET.sub("", said)
    if said.endswith(">"):
        said = _CLOSING.sub("", said).rstrip()
    for mark in MARKS:
        if said.startswith(mark):
            return said[len(mark) :], True
    return ("" if said == SEPARATOR else said), False
