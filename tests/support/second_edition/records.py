"""The records of the memory model (1) and its parameters (7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

LinkKey = tuple[int, int, str]
"""Source, target and relation: at most one link per key (1)."""


@dataclass
class Parameters:
    """The parameters of section 7 that the model reads."""

    focus_limit: int = 5
    focus_policy: str = "both"
    decay_rate: float = 0.97
    link_initial_strength: float = 0.5
    link_break_threshold: float = 0.01
    delete_threshold: int = 5
    min_shrink: float = 0.25
    locale: str = "auto"
    speaker_prefix: str = "auto"
    max_owed_passes: int = 100
    entities_per_memory: int = 3
    entity_memories: int = 32
    entity_wait_max: int = 3
    strategy: str = "scan"
    max_nodes: int = 10000
    compression_batch_size: int = 100
    slot_sample_size: int = 16
    long_term_factor: float = 0.02
    max_search_results: int = 100
    digest_system: bool = False
    cue_memories: int = 32
    max_pinned: int = 100
    pin_on_request: bool = True
    remember_questions: bool = False


@dataclass
class Message:
    """A message of a batch (4)."""

    role: str
    content: str
    speaker: str = ""
    timestamp: int | None = None  # milliseconds since the epoch


@dataclass
class Segment:
    """A segment as the language model returns it (4.1, 4.2)."""

    content: str
    keywords: list[str] = field(default_factory=list)
    phrase: str = ""
    messages: list[int] = field(default_factory=lambda: [0])  # indexes into the batch
    kind: str = "statement"  # or "courtesy", "question" (a pure question)


@dataclass
class Rewrite:
    """One recorded rewrite of a memory (5.1)."""

    pass_number: int
    importance: float
    length_before: int
    length_after: int


@dataclass
class Shortened:
    """The model's answer for a memory to shorten (5, step 4)."""

    content: str
    phrase: str
    keywords: list[str]


@dataclass
class Memory:
    """A node of kind `episode` (1)."""

    content: str
    first_content: str
    keywords: list[str]
    original_length: int
    phrase: str = ""
    label: str = ""
    speaker: str = ""
    created_at: int = 0
    pinned: str = ""  # "", "by_hand" or "by_request"
    scan_count: int = 0
    last_scan_pass: int = 0  # 0 = never scanned
    rewrites: list[Rewrite] = field(default_factory=list)  # the latest 16


@dataclass
class Entity:
    """A node of kind `entity` (1)."""

    name: str
    key: str
    named_by: int  # the memory that gave the name
    scan_count: int = 0
    last_scan_pass: int = 0


@dataclass
class Link:
    """The stored half of a link (3): the strength written, and the scan count of the source at that moment."""

    strength_written: float
    scan_count_when_written: int


Shorten = Callable[[Memory, int], Shortened | None]
"""Shorten a memory to at most so many characters; None when the server does not answer."""

Relate = Callable[[int, int], str]
"""The language model's relation name of a new memory and another node; "" where it has none."""


class NotFoundError(Exception):
    """No living node has this id, or not one of the kind that the operation needs."""


class TooManyPinnedError(Exception):
    """The limit `max_pinned` is reached (4, by hand)."""
