"""Combine the signals into one ranking.

Scores are fused, not ranks: each signal is scaled to [0, 1] and weighted; an unknown score counts 0 (S. Bruch et al.,
"An Analysis of Fusion Functions for Hybrid Retrieval", 2023, and our own experiments find this better than reciprocal
ranks). Speakers and dates only boost results that other signals find. Every signal may be missing: the others keep
their weights, and the ranking reports which were off.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log

import numpy as np
from numpy.typing import NDArray

from ebbtide.retrieval import learned
from ebbtide.retrieval.features import MAX_REORDERED, Fused
from ebbtide.retrieval.lexical import Scores, WordScores
from ebbtide.retrieval.passages import PassageIndex
from ebbtide.retrieval.profiles import Weights, profile_of
from ebbtide.retrieval.ranking_request import SIGNALS, RankingRequest

LIFTING = ("speaker", "graph")
"""Signals that only boost results: a speaker, or nearness to the focus, does not depend on the query. The same holds
for links from top results (`pagerank`). The value of a passage itself (`weight`) is only used for top results.
"""

MEANING = ("semantic", "window")
NEAR = 0.5
"""All texts have some similarity. These signals find passages in the upper part of the range."""

NEAR_NEWEST = 0.2
"""The same for a query that expects the newest of several messages: it may use other words than the earlier ones."""

FEW_PASSAGES = 30
"""Of so few, such a query finds all."""

BLOCK = 64
"""Passages of which only the best score is compared before results are sorted."""

SEEDS = 10
"""Top passages whose names and links are followed."""

PART_SAY = 0.5
"""Weight of the best part of a query with several parts, relative to the whole query."""

CROWDING = 0.3
"""How much less a name counts if many passages mention it, by the logarithm of their number."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Passages in order with their scores, the scores of each signal, and the signals that were off with the reason."""

    passages: NDArray[np.int64]
    scores: Scores
    signals: dict[str, Scores]
    off: dict[str, str] = field(default_factory=dict)


def rank(
    index: PassageIndex,
    words: WordScores,
    request: RankingRequest,
    most: int,
) -> Ranking:
    """Return the best passages for a query, at most `most`, best first; of equal ones the newer first."""
    fused, off = fuse(index, words, request, max(most, MAX_REORDERED))
    order, given, total = fused.order, fused.given, fused.total
    if "words" not in given:
        off.setdefault("learned", "not available")
    elif "learned" not in off and len(order):
        # Each position keeps its score; only the passages change places.
        kept = total[order]
        model = learned.model(profile_of(request.embedding_model).trees)
        order = np.concatenate([learned.reordered(fused, model, most), order[MAX_REORDERED:]])
        given["learned"] = np.zeros(len(index))
        given["learned"][order] = kept - total[order]
        total[order] = kept
    order = order[:most]
    return Ranking(order, total[order], {name: scores[order] for name, scores in given.items()}, off)


def fuse(
    index: PassageIndex,
    words: WordScores,
    request: RankingRequest,
    most: int | None = None,
) -> tuple[Fused, dict[str, str]]:
    """Return the fused score of all signals but the learned one, and the signals that were off with the reason."""
    weights = profile_of(request.embedding_model).weights
    given, off = _signals(index, words, request, weights)
    total = np.zeros(len(index))
    found = np.zeros(len(index), dtype=np.bool_)
    # A query by vector alone returns the nearest, however far.
    expects_newest = request.recency in ("explicit", "implied")
    near = 0.0 if not request.terms else NEAR_NEWEST if expects_newest else NEAR
    is_open = expects_newest and len(index) <= FEW_PASSAGES
    for name, scores in given.items():
        total += scores
        if is_open and name in MEANING:
            found[:] = True
        elif name not in LIFTING:
            found |= scores > (near * scores.max(initial=0.0) if name in MEANING else 0)
    found[request.on_record] = True
    if "conversation" not in request.without:
        given["conversation"] = weights.conversation * _conversation(index, total * found)
        total += given["conversation"]
    seeds = _ordered(total, found, SEEDS)
    if request.names is not None and "naming" not in request.without:
        gained = _named(seeds, total, request.names, weights.naming)
        named = np.array(list(gained), dtype=np.int64)
        given["naming"] = np.zeros(len(index))
        given["naming"][named] = list(gained.values())
        total[named] += given["naming"][named]
        found[named] = True
        seeds = _sorted(total, np.union1d(seeds, named))[:SEEDS]
    if request.linked is None:
        off.setdefault("pagerank", "not available")
    elif "pagerank" not in off:
        given["pagerank"] = brought_to_one(request.linked(seeds, total[seeds]), weights.pagerank)
        total += given["pagerank"]
    if request.allowed is not None:
        found &= request.allowed
    order = _ordered(total, found, most)
    if request.worths is None:
        off.setdefault("weight", "not available")
    elif "weight" not in off and len(order):
        given["weight"] = np.zeros(len(index))
        given["weight"][order] = weights.weight * request.worths(order)
        total[order] += given["weight"][order]
        order = _sorted(total, order)
    return Fused(index, request, given, total, found, order), off


def _ordered(total: Scores, found: NDArray[np.bool_], most: int | None) -> NDArray[np.int64]:
    """Return the best results, best first, at most `most`; of equal ones the newer first."""
    if most is None:
        places = np.flatnonzero(found)
    elif len(total) < 2 * most * BLOCK:
        places = _at_least_last(total, np.flatnonzero(found), most)
    else:
        # `most` blocks have a result with at least the score `least`, so all of the first ones have.
        # A product takes a fraction of the time of a choice. Scores of results are positive.
        scores = total * found
        best = np.maximum.reduceat(scores, np.arange(0, len(scores), BLOCK))
        least = np.partition(best, len(best) - most)[len(best) - most]
        places = np.flatnonzero(scores >= least if least > 0 else found)
        places = _at_least_last(total, places, most)
    return _sorted(total, places)[:most]


def _at_least_last(total: Scores, places: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return the results with at least the score of the last of the best `most`. Sorting all would take longer."""
    if most >= len(places):
        return places
    scores = total[places]
    last = len(places) - most
    kept: NDArray[np.int64] = places[scores >= np.partition(scores, last)[last]]
    return kept


def _sorted(total: Scores, places: NDArray[np.int64]) -> NDArray[np.int64]:
    order: NDArray[np.int64] = places[np.lexsort((-places, -total[places]))]
    return order


def _named(
    seeds: NDArray[np.int64],
    total: Scores,
    names: Callable[[int], Iterable[tuple[int, int]]],
    weight: float,
) -> dict[int, float]:
    """Return what passages gain because a top passage names them: the second hop of a query.

    The gain depends on the naming passage, less if many passages mention the name, plus half of the passage's own
    score.
    """
    gained: dict[int, float] = {}
    for seed in seeds.tolist():
        for passage, saying in names(seed):
            reached = weight * total[seed] / (1 + CROWDING * log(max(saying, 1))) + total[passage] / 2
            gain = float(reached - total[passage])
            if gain > gained.get(passage, 0.0):
                gained[passage] = gain
    return gained


def _signals(
    index: PassageIndex, words: WordScores, request: RankingRequest, weights: Weights
) -> tuple[dict[str, Scores], dict[str, str]]:
    given: dict[str, Scores] = {}
    off = {name: "switched off" for name in SIGNALS if name in request.without}
    if "words" not in off and request.terms:
        neighbours = 0.0 if "neighbours" in off else weights.neighbours
        given["words"] = _said(words, request, neighbours)
    others = {
        "semantic": (request.semantic, weights.semantic),
        "window": (request.window, weights.window),
        "graph": (request.graph, weights.graph),
    }
    for name, (scores, weight) in others.items():
        if name in off:
            continue
        if scores is None:
            off[name] = request.why_off.get(name, "not available")
        elif len(scores):
            alone = name in MEANING and len(scores) == 1
            given[name] = np.full(1, weight) if alone else brought_to_one(scores, weight)
    if "speaker" not in off and request.speakers:
        given["speaker"] = weights.speaker * _said_by(index, request.speakers)
    if "dates" not in off and request.dates:
        given["dates"] = weights.dates * _within(index.column("time_ms"), request.dates)
    return given, off


def _said_by(index: PassageIndex, speakers: Collection[int]) -> NDArray[np.bool_]:
    """Return which passages one of these speakers said."""
    is_named = np.zeros(len(index.speakers), dtype=np.bool_)
    is_named[list(speakers)] = True
    said: NDArray[np.bool_] = is_named[index.column("speaker")]
    return said


def _said(words: WordScores, request: RankingRequest, neighbours: float) -> Scores:
    """Return the words score as a share of the best. With several parts, half of it is that of the best part."""

    def share(terms: Mapping[int, float]) -> Scores:
        said = words.scores(terms, neighbours)
        # A passage without any of the words has score 0, so 0 is the smallest even if every passage has some.
        return said / max(float(said.max(initial=0.0)), 1e-12)

    whole = share(request.terms)
    if not request.parts:
        return whole
    of_a_part: Scores = np.maximum.reduce([share(part) for part in request.parts])
    return (1 - PART_SAY) * whole + PART_SAY * of_a_part


def brought_to_one(scores: Scores, weight: float = 1.0) -> Scores:
    """Scale scores linearly, so that the smallest becomes 0 and the largest becomes the weight."""
    if not len(scores):
        return scores
    least, most = float(scores.min()), float(scores.max())
    if most <= least:
        return np.zeros(len(scores))
    scaled: Scores = scores - least if least else scores.copy()
    scaled *= weight / (most - least)
    return scaled


def _within(times_ms: NDArray[np.int64], ranges: Sequence[tuple[int, int]]) -> Scores:
    inside = np.zeros(len(times_ms))
    for begin, end in ranges:
        inside[(times_ms >= begin) & (times_ms < end)] = 1.0
    return inside


def _conversation(index: PassageIndex, scores: Scores) -> Scores:
    """Return the share of each conversation in the squared scores, relative to the largest."""
    conversations = index.column("conversation")
    if not len(conversations):
        return scores
    if conversations[0] == conversations[-1] and not np.ptp(conversations):
        return np.zeros(len(scores))  # no conversation has more than another
    mass = np.bincount(conversations, weights=scores * scores)
    prior: Scores = brought_to_one(mass)[conversations]
    return prior
