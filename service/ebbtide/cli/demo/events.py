"""What happens in the demo, one value each: the story yields them, a screen or JSON lines show them.

Every text in them was answered by a verb.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory as it is now. `name` says which one is followed; empty for all others."""

    id: str
    content: str
    phrase: str
    keywords: list[str]
    importance: float
    original_length: int
    name: str = ""

    @property
    def length(self) -> int:
        """Characters left."""
        return len(self.content)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    kind: ClassVar[str] = ""
    """What JSON lines call it; empty for what only a screen shows."""

    def as_json(self) -> dict[str, Any]:
        """The event for machines."""
        return {"event": self.kind, **asdict(self)}


@dataclass(frozen=True, slots=True)
class Remembered(Event):
    """A conversation became memories, and the focus moved."""

    kind: ClassVar[str] = "remembered"
    number: int
    topic: dict[str, str]
    batch_id: str
    message_count: int
    memories: list[Memory]
    focus: list[str]


@dataclass(frozen=True, slots=True)
class Recalled(Event):
    """A question was asked and answered."""

    kind: ClassVar[str] = "recalled"
    question: dict[str, str]
    keywords: list[str]
    depth: int
    text: str


@dataclass(frozen=True, slots=True)
class TimePassed(Event):
    """One more batch of everyday talk. `kept` is the share of the followed memories that is left."""

    batch: int
    message: str
    followed: list[Memory]
    kept: float


@dataclass(frozen=True, slots=True)
class Faded(Event):
    """A followed memory became shorter."""

    kind: ClassVar[str] = "faded"
    batch: int
    memory: Memory
    length: int
    length_before: int


@dataclass(frozen=True, slots=True)
class Forgotten(Event):
    """A followed memory is gone. `pointed_at_by` still have a link to it."""

    kind: ClassVar[str] = "forgotten"
    batch: int
    id: str
    name: str
    first_content: str
    last_content: str
    pointed_at_by: list[str]


@dataclass(frozen=True, slots=True)
class OnceKnown(Event):
    """A recall told that something was known here once."""

    kind: ClassVar[str] = "once_known"
    batch: int
    forgotten: str
    first_content: str
    teller: Memory
    relation: str
    strength: float
    keywords: list[str]
    depth: int
    text: str
    sentences: list[str]


@dataclass(frozen=True, slots=True)
class Done(Event):
    """What was seen in all."""

    kind: ClassVar[str] = "done"
    batch_count: int
    pass_count: int
    memories_made: int
    memories_forgotten: int
    memories_left: int
