"""A pass under way, as jobs hand it on: whom to visit next, which texts it waits for, how these went.

Values only. What a visit does is in `memory/compression.py`; the jobs are in `passes.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ebbtide.language.port import Processed
from ebbtide.memory.compression import Shortening
from ebbtide.records import Source

SCANS_PER_COMMIT = 20_000
"""Most visits of a pass in one commit; mostly its time ends it sooner, and the mailbox is looked at."""

MOST_JUDGED = 5000
"""Most nodes judged together, about 10 ms: the time is looked at in between."""

FEWEST_VISITS = 64
"""Visits judged together at first; four times as many as long as none needs a text or is forgotten."""

SEEN_AHEAD = 256
"""Most visits looked at ahead for texts that will be needed soon."""


@dataclass(frozen=True, slots=True)
class ShorteningTask:
    """What a language model needs to shorten a node, and what must still hold when it has."""

    shortening: Shortening
    text: str
    prefix: str
    content: str
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True)
class Shortened:
    """How a shortening went: `processed` is None when no server answered and the content stays."""

    task: ShorteningTask
    processed: Processed | None
    model: str


@dataclass(frozen=True, slots=True)
class PassStep:
    """Where compression stands after a step: nothing owed, more to visit, or a text to shorten.

    The first of `tasks` is what the pass waits for; those behind it will be needed soon, as things stand.
    """

    is_idle: bool
    tasks: tuple[ShorteningTask, ...] = ()


@dataclass(slots=True)
class Visits:
    """The order of a pass, and how far it has come."""

    order: NDArray[np.int64]
    begin: int = 0
    size: int = field(default_factory=lambda: FEWEST_VISITS)
    """How many are judged together next."""

    @property
    def left(self) -> int:
        """Nodes still to be visited."""
        return len(self.order) - self.begin

    def next(self, count: int) -> NDArray[np.int64]:
        """The next nodes to visit, at most `count`."""
        return self.order[self.begin : self.begin + count]

    def advance(self, visited: int, *, undisturbed: bool) -> None:
        """So many are done: judge more together as long as none needs a text or is forgotten."""
        self.begin += visited
        self.size = min(self.size * 4, MOST_JUDGED) if undisturbed else FEWEST_VISITS
