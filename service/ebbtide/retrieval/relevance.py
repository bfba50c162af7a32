"""Relevance: the estimated probability that a passage answers a query.

A ranking always has a first passage, even if nothing in the memory is relevant. The estimate is a logistic regression
over the evidence: the share of the query's words that a passage and its neighbours contain, weighted by rarity, how
many of the words the memory knows at all, the similarity in meaning, and whether the query names the speaker or the
time. In a larger memory more matches are coincidences, so its size counts as well. The weights were fitted on judged
conversations of this project (`benchmarks/relevance.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebbtide.retrieval.lexical import Scores, rarity
from ebbtide.retrieval.marks import HAS_HAN, have
from ebbtide.retrieval.passages import PassageIndex
from ebbtide.retrieval.ranking_request import RankingRequest
from ebbtide.retrieval.vectors import CENTRED_FROM

CANDIDATES = 50
"""Passages at the top of a ranking whose relevance is estimated."""

EVIDENCE = (
    "own words", "words", "known words", "speaker", "dates", "chinese", "size", "other script", "semantic",
    "window", "constant",
)  # fmt: skip
"""The columns of the evidence for a passage."""

WHOLE = 20.0
"""Rarity of the words that are as much evidence as one passage can give. Without it, no passage would contain enough
of a long query."""

FEW = -0.5
"""Value of "other script" in a memory too small for a mean of its own. Chosen by hand, because the small judged
conversations have no such questions with evidence.
"""

UNFITTED = 3
"""Passages added to the size of the memory. The weights were fitted on memories of 8 messages or more, and without this
a memory of one to five would pass most questions. Not added for passages in another script than the query's: only
their meaning can match. Chosen by hand.
"""

UNSTATED = 0.5
"""The floor of a query about the user for what the memory states nothing of. Not for passages in another script than
the query's: their words are others. Chosen by hand.
"""

HARDLY_ANY = 0.2
"""Share of the words of a query, weighted by rarity, below which the memory hardly knows any."""

UNSEEN = 100
"""Passages added when rarity is computed, so that words of a small memory count about the same."""


def relevance(
    index: PassageIndex, request: RankingRequest, passages: NDArray[np.int64], weights: Mapping[str, float]
) -> Scores:
    """Return the estimated probability that each of these passages answers the query."""
    by_column = np.array([weights.get(name, 0.0) for name in EVIDENCE])
    probabilities: Scores = 1 / (1 + np.exp(-(evidence(index, request, passages) @ by_column)))
    return probabilities


def are_enough(
    index: PassageIndex,
    request: RankingRequest,
    passages: NDArray[np.int64],
    relevances: Scores,
    floor: float,
) -> NDArray[np.bool_]:
    """Return which of these passages reach the floor, which is higher if the memory states nothing of the kind."""
    floors = np.full(len(passages), floor)
    if floor < UNSTATED and _is_unstated(index, request):
        floors[_has_han(index, request, passages) == request.is_chinese] = UNSTATED
    enough: NDArray[np.bool_] = relevances >= floors
    return enough


def _is_unstated(index: PassageIndex, request: RankingRequest) -> bool:
    """Return whether no passage has a word of a topic that a query about the user names.

    A query about the user without a topic is unstated if the memory knows hardly any of its words.
    """
    if request.topics is None:
        return False
    if request.topics:
        return not all(any(len(index.postings(term)[0]) for term in stated) for stated in request.topics)
    whole = known = 0.0
    for term, weight in request.whole_words.items():
        count = len(index.postings(term)[0])
        worth = weight * rarity(count, len(index) + UNSEEN)
        whole += worth
        known += worth if count else 0.0
    return known < HARDLY_ANY * whole


def _has_han(index: PassageIndex, request: RankingRequest, passages: NDArray[np.int64]) -> NDArray[np.bool_]:
    return have(index.marks(passages, request.texts), HAS_HAN)


def evidence(index: PassageIndex, request: RankingRequest, passages: NDArray[np.int64]) -> Scores:
    """Return a row for each passage, with the columns of `EVIDENCE`."""
    columns = dict.fromkeys(EVIDENCE, np.zeros(len(passages)))
    columns |= _words(index, request, passages)
    columns |= _meaning(index, request, passages)
    speakers = index.column("speaker")[passages]
    for speaker in request.speakers:
        columns["speaker"] = np.maximum(columns["speaker"], speakers == speaker)
    times_ms = index.column("time_ms")[passages]
    for begin_ms, end_ms in request.dates:
        columns["dates"] = np.maximum(columns["dates"], (times_ms >= begin_ms) & (times_ms < end_ms))
    columns["chinese"] = np.full(len(passages), float(request.is_chinese))
    columns["size"] = np.log(len(index) + UNFITTED * (columns["other script"] == 0))
    columns["constant"] = np.ones(len(passages))
    return np.stack([columns[name] for name in EVIDENCE], axis=1)


def _words(
    index: PassageIndex, request: RankingRequest, passages: NDArray[np.int64]
) -> dict[str, NDArray[np.float64]]:
    """Compute how much of the query each passage contains, alone and with its neighbours, and how much is known."""
    own, either = np.zeros(len(passages)), np.zeros(len(passages))
    neighbours = [index.neighbours(side)[passages] for side in ("previous", "next")]
    places = np.stack([passages, *neighbours]).astype(np.int32)
    whole = known = 0.0
    for term, weight in request.whole_words.items():
        saying = index.postings(term)[0]
        worth = weight * rarity(len(saying), len(index) + UNSEEN)
        whole += worth
        if not len(saying):
            continue
        known += worth
        say = are_among(places, saying)
        own += worth * say[0]
        either += worth * say.any(axis=0)
    enough = min(whole, WHOLE) or 1.0
    return {
        "own words": np.minimum(own / enough, 1.0),
        "words": np.minimum(either / enough, 1.0),
        "known words": np.full(len(passages), min(known / enough, 1.0)),
    }


def are_among(places: NDArray[np.integer[Any]], ascending: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which of these passages are among others, which are in ascending order and at least one."""
    found: NDArray[np.bool_] = ascending.take(ascending.searchsorted(places), mode="clip") == places
    return found


def _meaning(
    index: PassageIndex, request: RankingRequest, passages: NDArray[np.int64]
) -> dict[str, NDArray[np.float64]]:
    """Compute the similarity in meaning, if there are vectors.

    In a memory of one language, centring takes a query in another language away from all passages. "other script" makes
    up for this. With the usual mean it is the other way round.
    """
    if request.semantic is None and request.window is None:
        return {}
    scores = {"semantic": request.semantic, "window": request.window}
    columns = {name: some[passages] for name, some in scores.items() if some is not None}
    if request.texts is not None:
        is_other = _has_han(index, request, passages) != request.is_chinese
        columns["other script"] = is_other * (1.0 if len(index) >= CENTRED_FROM else FEW)
    return columns
