"""The events of the demo. `Story` yields them; a screen or JSON lines show them.

Every text in an event comes from the daemon or from the demo's data.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory in its current state. `name` is set for a memory that the demo follows."""

    id: str
    content: str
    phrase: str
    keywords: list[str]
    importance: float
    original_length: int
    name: str = ""

    @property
    def length(self) -> int:
        """The number of characters left."""
        return len(self.content)


@dataclass(frozen=True, slots=True)
class Event:
    """Base class of the events."""

    kind: ClassVar[str] = ""
    """The name of the event in JSON lines. An event without one is shown on a screen only."""

    def as_json(self) -> dict[str, Any]:
        """Return the event as a JSON object."""
        return {"event": self.kind, **asdict(self)}


@dataclass(frozen=True, slots=True)
class Remembered(Event):
    """A conversation became memories, and the focus moved."""

    kind: ClassVar[str] = "remembered"
    number: int
    topic: str
    batch_id: str
    message_count: int
    memories: list[Memory]
    focus: list[str]


@dataclass(frozen=True, slots=True)
class Recalled(Event):
    """A recall and its result."""

    kind: ClassVar[str] = "recalled"
    question: str
    keywords: list[str]
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
    """A followed memory was forgotten. `pointed_at_by` lists the memories that still link to it."""

    kind: ClassVar[str] = "forgotten"
    batch: int
    id: str
    name: str
    first_content: str
    last_content: str
    pointed_at_by: list[str]


@dataclass(frozen=True, slots=True)
class Returned(Event):
    """A message mentioned a name again, and a followed memory of that name gained support."""

    kind: ClassVar[str] = "returned"
    batch: int
    message: str
    memory: Memory
    importance_before: float
    keywords: list[str]
    text: str


@dataclass(frozen=True, slots=True)
class OnceKnown(Event):
    """A recall of a forgotten memory reported that something was known."""

    kind: ClassVar[str] = "once_known"
    batch: int
    first_content: str
    keywords: list[str]
    text: str
    sentences: list[str]


@dataclass(frozen=True, slots=True)
class Kept(Event):
    """A recall returned a pinned memory."""

    kind: ClassVar[str] = "kept"
    batch: int
    memory: Memory
    keywords: list[str]
    text: str


@dataclass(frozen=True, slots=True)
class Done(Event):
    """Totals at the end of the demo."""

    kind: ClassVar[str] = "done"
    batch_count: int
    pass_count: int
    memories_made: int
    memories_forgotten: int
    memories_left: int
