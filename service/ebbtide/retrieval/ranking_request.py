"""The input of a ranking."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ebbtide.retrieval.lexical import Scores

if TYPE_CHECKING:
    # Importing it compiles the rules for queries, which a daemon needs only for its first one.
    from ebbtide.retrieval.query import AsksFor, Recency

SIGNALS = (
    "words",
    "neighbours",
    "semantic",
    "window",
    "speaker",
    "dates",
    "conversation",
    "graph",
    "naming",
    "pagerank",
    "weight",
    "learned",
)
"""Names under which signals are reported and switched off."""


@dataclass(frozen=True, slots=True)
class RankingRequest:
    """One query as the signals need it. Arrays have one entry per passage; None means unknown."""

    terms: Mapping[int, float]
    parts: Sequence[Mapping[int, float]] = ()
    """The terms of each part of a query that asks for several things."""
    whole_words: Mapping[int, float] = field(default_factory=dict)
    """The words of the query that show whether a passage is relevant; of Chinese without character pairs."""
    is_chinese: bool = False
    """Whether the query contains Chinese characters."""
    speakers: Collection[int] = ()
    """Numbers of the speakers that the query names."""
    dates: Sequence[tuple[int, int]] = ()
    """Times that the query refers to, as [begin, end) in ms."""
    semantic: Scores | None = None
    window: Scores | None = None
    embedding_model: str = ""
    """The model of the vectors behind `semantic` and `window`; empty without them."""
    graph: Scores | None = None
    names: Callable[[int], Iterable[tuple[int, int]]] | None = None
    """Returns the passages that a passage names, each with the number of passages that mention the name."""
    linked: Callable[[NDArray[np.int64], Scores], Scores] | None = None
    """Returns how close each passage is to the top passages by links, from their numbers and scores."""
    asks_for: AsksFor = ""
    """The thing that the query asks for, such as "when"; empty if unknown."""
    recency: Recency = ""
    """Whether the query expects the newest of several messages."""
    topics: Sequence[frozenset[int]] | None = None
    """For each topic of daily life that the query names, the terms by which it is stated; None for a query that is not
    about the user, and in a small memory, where nothing is hidden.
    """
    on_record: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The passages of statements that are true and answer the query by their topic."""
    off_record: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The passages of statements on this topic that are not true: withdrawn, over, or planned."""
    withdrawn: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Those of statements that were corrected or retracted."""
    is_dated: bool = False
    """Whether the query names a past time, and those on record were true then."""
    addresses_assistant: bool = False
    """Whether the query is about what the assistant said."""
    alike: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]] | None = None
    """Returns how much passages resemble others, as a matrix with values up to 1."""
    texts: Callable[[int], str] | None = None
    """Returns the text of a passage."""
    worths: Callable[[NDArray[np.int64]], Scores] | None = None
    """Returns the value of passages independent of the query, from 0 to 1."""
    allowed: NDArray[np.bool_] | None = None
    """Passages that pass the filters."""
    without: Collection[str] = ()
    """Signals switched off by the caller."""
    why_off: Mapping[str, str] = field(default_factory=dict)
    """Why a signal is unknown, by name."""
