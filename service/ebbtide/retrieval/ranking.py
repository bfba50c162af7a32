"""Ranking: the signals become one order.

Scores are fused, not ranks: each signal is brought to [0, 1] by its smallest and largest score and weighed, and
what a signal does not know counts nothing (M. Bruch et al., "An Analysis of Fusion Functions for Hybrid
Retrieval", 2023, find the weighted sum better than reciprocal ranks; so did the experiments behind these
weights). Who and when a question names are boosts: they lift what is found, and find nothing by themselves.

Every signal may be missing. Then the others go on with the weights they have, and the ranking says what was off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log

import numpy as np
from numpy.typing import NDArray

from ebbtide.retrieval import learned
from ebbtide.retrieval.features import MAX_REORDERED, Fused
from ebbtide.retrieval.lexical import Scores, WordScores
from ebbtide.retrieval.passages import PassageIndex
from ebbtide.retrieval.ranking_request import RankingRequest

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
"""Names under which signals are told of and switched off."""


LIFTING = ("speaker", "graph")
"""Signals that find nothing by themselves: what somebody said, or is near the focus, is so whatever is asked. So do
links from what was found first (`pagerank`). What a passage is worth by itself (`weight`) is looked at for those only
that the others have put first."""

MEANING = ("semantic", "window")
NEAR = 0.5
"""All texts have some meaning in common. These signals find what comes so near, from the farthest to the nearest."""

SEEDS = 10
"""Passages whose names, and whose links, are followed."""

PART_SAY = 0.5
"""How much the best part of several questions in one counts beside all of them together."""

CROWDING = 0.3
"""How much a name says less when many say it, by the logarithm of how many."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What each signal is worth beside the words, whose weight is 1."""

    neighbours: float = 0.5
    semantic: float = 0.1
    window: float = 0.1
    speaker: float = 0.3
    dates: float = 0.3
    conversation: float = 0.2
    graph: float = 0.05
    naming: float = 1.0
    pagerank: float = 0.02
    weight: float = 0.02


DEFAULT_WEIGHTS = Weights()


@dataclass(frozen=True, slots=True)
class Ranking:
    """Passages in order, with the score of each; what each signal gave, by name; which were off, and why."""

    passages: NDArray[np.int64]
    scores: Scores
    signals: dict[str, Scores]
    off: dict[str, str] = field(default_factory=dict)


def rank(
    index: PassageIndex,
    words: WordScores,
    asked: RankingRequest,
    most: int,
    weights: Weights = DEFAULT_WEIGHTS,
) -> Ranking:
    """The best passages for a question, at most `most`, best first; of equal ones the newer first."""
    fused, off = fuse(index, words, asked, weights, max(most, MAX_REORDERED))
    order, given, total = fused.order, fused.given, fused.total
    if "words" not in given:
        off.setdefault("learned", "not available")
    elif "learned" not in off and len(order):
        # Each place keeps its score: what stands there changes, not how good the best is.
        kept = total[order]
        order = np.concatenate([learned.reordered(fused, learned.model()), order[MAX_REORDERED:]])
        given["learned"] = np.zeros(len(index))
        given["learned"][order] = kept - total[order]
        total = total + given["learned"]
    order = order[:most]
    return Ranking(order, total[order], {name: scores[order] for name, scores in given.items()}, off)


def fuse(
    index: PassageIndex,
    words: WordScores,
    asked: RankingRequest,
    weights: Weights = DEFAULT_WEIGHTS,
    most: int | None = None,
) -> tuple[Fused, dict[str, str]]:
    """What every signal but the learnt one gives together, at most so many in order; which were off, and why."""
    given, off = _signals(index, words, asked, weights)
    total = np.zeros(len(index))
    found = np.zeros(len(index), dtype=np.bool_)
    for name, scores in given.items():
        total += scores
        if name in MEANING:
            # Who asks by a vector alone wants the nearest, however far.
            found |= scores > (NEAR if asked.terms else 0.0) * scores.max(initial=0.0)
        elif name not in LIFTING:
            found |= scores > 0
    if "conversation" not in asked.without:
        given["conversation"] = weights.conversation * _conversation(index, total * found)
        total += given["conversation"]
    if asked.names is not None and "naming" not in asked.without:
        given["naming"] = _named(_ordered(total, found, SEEDS), total, asked.names, weights.naming)
        total += given["naming"]
        found |= given["naming"] > 0
    if asked.linked is None:
        off.setdefault("pagerank", "not available")
    elif "pagerank" not in off:
        seeds = _ordered(total, found, SEEDS)
        given["pagerank"] = weights.pagerank * brought_to_one(asked.linked(seeds, total[seeds]))
        total += given["pagerank"]
    if asked.allowed is not None:
        found &= asked.allowed
    order = _ordered(total, found, most)
    if asked.worths is None:
        off.setdefault("weight", "not available")
    elif "weight" not in off and len(order):
        given["weight"] = np.zeros(len(index))
        given["weight"][order] = weights.weight * asked.worths(order)
        total = total + given["weight"]
        order = _sorted(total, order)
    return Fused(index, asked, given, total, found, order), off


def _ordered(total: Scores, found: NDArray[np.bool_], most: int | None) -> NDArray[np.int64]:
    """The best that were found, best first, at most so many; of equal ones the newer first."""
    places = np.flatnonzero(found)
    if most is not None and most < len(places):
        scores = total[places]
        # All that reach the last score wanted: sorting everything that was found takes longer than finding it.
        last = len(places) - most
        places = places[scores >= np.partition(scores, last)[last]]
    return _sorted(total, places)[:most]


def _sorted(total: Scores, places: NDArray[np.int64]) -> NDArray[np.int64]:
    order: NDArray[np.int64] = places[np.lexsort((-places, -total[places]))]
    return order


def _named(
    seeds: NDArray[np.int64],
    total: Scores,
    names: Callable[[int], Iterable[tuple[int, int]]],
    weight: float,
) -> Scores:
    """What passages gain because one that was found names them: the second hop of a question.

    It is worth what the naming one is worth, less the more passages say the same name, and half of its own.
    """
    gained = np.zeros(len(total))
    for seed in seeds.tolist():
        for passage, saying in names(seed):
            reached = weight * total[seed] / (1 + CROWDING * log(max(saying, 1))) + total[passage] / 2
            gained[passage] = max(gained[passage], reached - total[passage])
    return gained


def _signals(
    index: PassageIndex, words: WordScores, asked: RankingRequest, weights: Weights
) -> tuple[dict[str, Scores], dict[str, str]]:
    given: dict[str, Scores] = {}
    off = {name: "switched off" for name in SIGNALS if name in asked.without}
    if "words" not in off and asked.terms:
        neighbours = 0.0 if "neighbours" in off else weights.neighbours
        given["words"] = _said(words, asked, neighbours)
    others = {
        "semantic": (asked.semantic, weights.semantic),
        "window": (asked.window, weights.window),
        "graph": (asked.graph, weights.graph),
    }
    for name, (scores, weight) in others.items():
        if name in off:
            continue
        if scores is None:
            off[name] = asked.why_off.get(name, "not available")
        elif len(scores):
            given[name] = weight * brought_to_one(scores)
    if "speaker" not in off and asked.speakers:
        given["speaker"] = weights.speaker * np.isin(index.column("speaker"), list(asked.speakers))
    if "dates" not in off and asked.dates:
        given["dates"] = weights.dates * _within(index.column("time_ms"), asked.dates)
    return given, off


def _said(words: WordScores, asked: RankingRequest, neighbours: float) -> Scores:
    """What passages say of the question, as a share of the best: half of it of the part they say most of."""

    def share(terms: Mapping[int, float]) -> Scores:
        said = words.scores(terms, neighbours)
        # What says none of the words has 0: that is the smallest score, also where everybody says some.
        return said / max(float(said.max(initial=0.0)), 1e-12)

    whole = share(asked.terms)
    if not asked.parts:
        return whole
    of_a_part: Scores = np.maximum.reduce([share(part) for part in asked.parts])
    return (1 - PART_SAY) * whole + PART_SAY * of_a_part


def brought_to_one(scores: Scores) -> Scores:
    """Scores as shares of the way from the smallest to the largest."""
    if not len(scores):
        return scores
    least, most = float(scores.min()), float(scores.max())
    if most <= least:
        return np.zeros(len(scores))
    shares: Scores = (scores - least) / (most - least)
    return shares


def _within(times_ms: NDArray[np.int64], ranges: Sequence[tuple[int, int]]) -> Scores:
    inside = np.zeros(len(times_ms))
    for begin, end in ranges:
        inside[(times_ms >= begin) & (times_ms < end)] = 1.0
    return inside


def _conversation(index: PassageIndex, scores: Scores) -> Scores:
    """How much of what was found each conversation holds: its squared scores, as a share of the most."""
    conversations = index.column("conversation")
    if not len(conversations):
        return scores
    mass = np.bincount(conversations, weights=scores**2)
    prior: Scores = brought_to_one(mass)[conversations]
    return prior
