"""What the signals of a ranking need to know about a query."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ebbtide.retrieval.lexical import Scores


@dataclass(frozen=True, slots=True)
class RankingRequest:
    """One query as the signals need it. Arrays have one entry per passage; None means unknown."""

    terms: Mapping[int, float]
    parts: Sequence[Mapping[int, float]] = ()
    """The terms of each part of a question that asks for several things; none where it asks for one."""
    speakers: Collection[int] = ()
    """Numbers of the speakers that the question names."""
    dates: Sequence[tuple[int, int]] = ()
    """Times the question speaks of, as [begin, end) in ms."""
    semantic: Scores | None = None
    window: Scores | None = None
    graph: Scores | None = None
    names: Callable[[int], Iterable[tuple[int, int]]] | None = None
    """From a passage to those it names, each with how many passages say that name."""
    linked: Callable[[NDArray[np.int64], Scores], Scores] | None = None
    """From the passages found first, with their scores, to how close each passage is to them by links."""
    asks_for: str = ""
    """What kind of thing the question is after, such as "when"; empty where that is not known."""
    texts: Callable[[int], str] | None = None
    """From a passage to its text."""
    worths: Callable[[NDArray[np.int64]], Scores] | None = None
    """What passages are worth whatever is asked, from 0 to 1."""
    allowed: NDArray[np.bool_] | None = None
    """Passages that filters let through."""
    without: Collection[str] = ()
    """Signals switched off by the caller."""
    why_off: Mapping[str, str] = field(default_factory=dict)
    """Why a signal is not known, by name."""
