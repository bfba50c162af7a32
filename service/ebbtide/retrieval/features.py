"""Features: one row of numbers per top candidate of a query, for the decision trees.

The features compare the signals, and describe how much of the query a passage and its neighbours contain, how rare
those words are, the speaker, the time, the position in the conversation, and simple marks of the text: a question, a
number, a name, a time. Most are relative to the best candidate, so that small and large stores look alike. Features
contain no words, so a trained model reveals nothing about memories and works for every language. Unknown values are 0,
for vectors NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ebbtide.retrieval.analysis import term_of, words_of
from ebbtide.retrieval.forms import first_form
from ebbtide.retrieval.lexical import K1, B, rarity
from ebbtide.retrieval.marks import (
    ASKS,
    ENDS_WITH_QUESTION,
    HAS_AMOUNT,
    HAS_NAME,
    HAS_NUMBER,
    HAS_TIME,
    exclamations_in,
    first_persons_in,
    have,
    names_in,
)
from ebbtide.retrieval.passages import PassageIndex

if TYPE_CHECKING:
    from ebbtide.retrieval.ranking_request import RankingRequest

Numbers = NDArray[np.float64]
Columns = dict[str, Any]

MAX_REORDERED = 100
"""Candidates that may be reordered. Later ones rarely contain the answer."""

FIRST, NEAREST, NEAR = 20, 5, 30
"""Candidates whose conversations are counted; candidates whose distance counts; maximum distance in passages."""

KINDS = ("who", "when", "where", "how many", "what", "why")
"""The things that a query may ask for."""

FEATURES = (
    "fused", "fused place", "unnamed", "unnamed place", "words", "words place", "naming", "named",
    "own", "own place", "own of all", "own telling", "says", "beside says", "either says", "beside adds",
    "says telling", "either telling", "says here", "rarest", "second", "count", "alone", "density", "asked",
    "length", "speaker", "speaker of the first", "date", "days away", "conversation", "conversation's best",
    "conversation among candidates", "conversation among the first", "near the first", "previous", "next",
    "second previous", "second next", "around", "previous words", "next words", "peak", "has previous",
    "has next", "asks", "asks last", "numbers", "names", "exclaims", "amounts", "times", "first person",
    "previous asks", "fits", "semantic", "semantic place", "semantic below best", "window", "window place",
    "window below best", "previous semantic", "next semantic", "conversation semantic", "like the best",
    "like the first", *(f"asks for {kind}" for kind in KINDS),
)  # fmt: skip
"""The columns of a row."""

_FITTING = {
    "when": HAS_TIME | HAS_AMOUNT,
    "how many": HAS_AMOUNT,
    "who": HAS_NAME,
    "where": HAS_NAME,
}
"""The marks of a text that may contain the thing that a query asks for."""

LIKE_BEST, LIKE_FIRST = 3, 10
"""Candidates that the others are compared with: the most similar of the best, and the mean of the first."""


@dataclass(frozen=True, slots=True)
class Fused:
    """The signals by passage, and the results in their order."""

    index: PassageIndex
    request: RankingRequest
    given: dict[str, Numbers]
    total: Numbers
    found: NDArray[np.bool_]
    order: NDArray[np.int64]

    @property
    def first(self) -> NDArray[np.int64]:
        """Return the candidates that may be reordered."""
        return self.order[:MAX_REORDERED]

    def marks(self, passages: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the marks of passages; 0 for passage -1, and if texts are not available."""
        return self.index.marks(passages, self.request.texts)


def features(fused: Fused) -> Numbers:
    """Return a row for each candidate, with the columns of `FEATURES`."""
    neighbours = _Beside.of(fused)
    columns: Columns = {}
    for group in (_scores, _said, _who_and_when, _company, _around, _text_marks, _meant, _meant_around):
        columns |= group(fused, neighbours)
    columns |= {f"asks for {kind}": float(fused.request.asks_for == kind) for kind in KINDS}
    rows = np.empty((len(FEATURES), len(fused.first)))
    for row, name in zip(rows, FEATURES, strict=True):
        row[:] = columns[name]
    return rows.T


@dataclass(frozen=True, slots=True)
class _Beside:
    """The passages before and after each candidate, and the next but one; -1 for none."""

    previous: NDArray[np.int64]
    next: NDArray[np.int64]
    second_previous: NDArray[np.int64]
    second_next: NDArray[np.int64]

    @classmethod
    def of(cls, fused: Fused) -> _Beside:
        def step(places: NDArray[np.int64], side: str) -> NDArray[np.int64]:
            found: NDArray[np.int64] = np.where(places >= 0, fused.index.neighbours(side)[places], -1)
            return found

        previous, following = step(fused.first, "previous"), step(fused.first, "next")
        return cls(previous, following, step(previous, "previous"), step(following, "next"))


def _at(values: NDArray[Any], places: NDArray[np.int64]) -> Numbers:
    found: Numbers = np.where(places >= 0, values[places], 0.0)
    return found


def _share(values: Numbers) -> Numbers:
    """Return values as shares of the largest one."""
    return values / max(float(values.max(initial=0.0)), 1e-9)


def _places(values: Numbers) -> Numbers:
    """Return how many values are larger than each."""
    larger: Numbers = np.searchsorted(np.sort(-values), -values).astype(np.float64)
    return larger


def _scores(fused: Fused, neighbours: _Beside) -> Columns:
    first, total = fused.first, fused.total
    naming = fused.given.get("naming", np.zeros(len(total)))
    words = fused.given["words"][first]
    unnamed = total[first] - naming[first]
    return {
        "fused": total[first] / max(float(total[first[0]]), 1e-9),
        "fused place": np.arange(len(first), dtype=np.float64),
        "unnamed": _share(unnamed),
        "unnamed place": _places(unnamed),
        "words": words,
        "words place": _places(words),
        "naming": naming[first],
        "named": float(np.count_nonzero(naming)),
    }


def _said(fused: Fused, neighbours: _Beside) -> Columns:
    """Compute how much of the query, weighted by rarity, a passage and its neighbours contain."""
    index, first, terms = fused.index, fused.first, list(fused.request.terms)
    own, near, how_rare = _occurrences(index, first, neighbours, terms)
    names = _names_of(index, fused.request)
    is_content = np.array([term not in names for term in terms])
    how_rare_content = how_rare * is_content
    says = own > 0
    either, times_said = says | near, says.sum(axis=1)
    whole, content = max(float(how_rare.sum()), 1e-9), max(float(how_rare_content.sum()), 1e-9)
    lengths = index.column("word_count")
    average = max(float(lengths.mean()), 1.0)
    length = lengths[first] / average
    gained = how_rare[:, None] * own * (K1 + 1) / (own + K1 * (1 - B + B * length))
    alone, score = (gained * is_content[:, None]).sum(axis=0), gained.sum(axis=0)
    said = np.sort(says * how_rare[:, None], axis=0)
    rare_here = np.maximum(np.log((len(first) + 1) / (times_said + 0.5)), 0.0)
    known = max(int(np.count_nonzero(how_rare)), 1)
    return {
        "own": _share(score),
        "own place": _places(score),
        "own of all": score / ((K1 + 1) * whole),
        "own telling": _share(alone),
        "says": how_rare @ says / whole,
        "beside says": how_rare @ near / whole,
        "either says": how_rare @ either / whole,
        "beside adds": how_rare @ (either & ~says) / whole,
        "says telling": how_rare_content @ says / content,
        "either telling": how_rare_content @ either / content,
        "says here": rare_here @ says / max(float(rare_here.sum()), 1e-9),
        "rarest": said[-1] / max(float(how_rare.max()), 1e-9),
        "second": said[-2] if len(terms) > 1 else 0.0,
        "count": says.sum(axis=0) / known,
        "alone": (says & (times_said == 1)[:, None]).sum(axis=0),
        "density": own.sum(axis=0) / np.maximum(lengths[first], 1),
        "asked": float(known),
        "length": length,
    }


def _occurrences(
    index: PassageIndex, first: NDArray[np.int64], neighbours: _Beside, terms: list[int]
) -> tuple[Numbers, NDArray[np.bool_], Numbers]:
    """Return the counts of each term in the candidates, whether a neighbour contains it, and its idf."""
    size = len(first)
    places = np.concatenate([first, neighbours.previous, neighbours.next])
    found = np.zeros((len(terms), len(places)))
    how_rare = np.zeros(len(terms))
    # The entry behind the last passage belongs to passage -1, that is, to none.
    counted = np.zeros(len(index) + 1)
    for row, (place, term) in zip(found, enumerate(terms), strict=True):
        passages, counts = index.postings(term)
        if not len(passages):
            continue
        how_rare[place] = rarity(len(passages), len(index))
        counted[passages] = counts
        row[:] = counted[places]
        counted[passages] = 0.0
    near = (found[:, size : 2 * size] + found[:, 2 * size :]) > 0
    return found[:, :size], near, how_rare


def _names_of(index: PassageIndex, request: RankingRequest) -> set[int]:
    """Return the terms of the names of the speakers that a query names."""
    names = (index.speakers[number] for number in request.speakers)
    return {term_of(first_form(word)) for name in names for word in words_of(name)}


def _who_and_when(fused: Fused, neighbours: _Beside) -> Columns:
    index, first, request = fused.index, fused.first, fused.request
    speakers, times = index.column("speaker"), index.column("time_ms")[first]
    is_named = np.zeros(len(first), dtype=np.bool_)
    for speaker in request.speakers:
        is_named |= speakers[first] == speaker
    far = np.full(len(first), np.inf)
    for begin, end in request.dates:
        far = np.minimum(far, np.maximum(0, np.maximum(begin - times, times - end + 1)))
    return {
        "speaker": np.where(is_named, 1.0, -1.0 if request.speakers else 0.0),
        "speaker of the first": speakers[first] == speakers[first[0]],
        "date": (far == 0) if request.dates else -1.0,
        "days away": np.log1p(far / 86_400_000) if request.dates else -1.0,
    }


def _company(fused: Fused, neighbours: _Beside) -> Columns:
    """Compute how well the conversation of a candidate scored, and how near the best ones are."""
    first = fused.first
    conversations = fused.index.column("conversation")
    of_first = conversations[first]
    # The best of a conversation with a candidate is a candidate itself.
    best = np.zeros(int(of_first.max()) + 1)
    np.maximum.at(best, of_first, fused.total[first])
    among = np.bincount(of_first, minlength=len(best))
    among_first = np.bincount(of_first[:FIRST], minlength=len(best))
    nearest = first[:NEAREST]
    away = np.abs(first[:, None] - nearest[None, :]).astype(np.float64)
    is_other = (of_first[:, None] != conversations[nearest][None, :]) | (away == 0)
    away[is_other] = NEAR
    prior = fused.given.get("conversation", np.zeros(len(fused.total)))
    return {
        "conversation": prior[first],
        "conversation's best": best[of_first] / max(float(fused.total[first[0]]), 1e-9),
        "conversation among candidates": among[of_first] / len(first),
        "conversation among the first": among_first[of_first],
        "near the first": np.minimum(away.min(axis=1), NEAR),
    }


def _around(fused: Fused, neighbours: _Beside) -> Columns:
    """Compute how well the neighbours of a candidate scored."""
    first, words = fused.first, fused.given["words"]
    largest = max(float(fused.total[first[0]]), 1e-9)

    def score(places: NDArray[np.int64]) -> Numbers:
        return np.where((places >= 0) & fused.found[places], fused.total[places] / largest, 0.0)

    own, previous, following = score(first), score(neighbours.previous), score(neighbours.next)
    second_previous, second_following = score(neighbours.second_previous), score(neighbours.second_next)
    return {
        "previous": previous,
        "next": following,
        "second previous": second_previous,
        "second next": second_following,
        "around": previous + following + second_previous + second_following,
        "previous words": _at(words, neighbours.previous),
        "next words": _at(words, neighbours.next),
        "peak": (own >= previous) & (own >= following),
        "has previous": neighbours.previous >= 0,
        "has next": neighbours.next >= 0,
    }


def _text_marks(fused: Fused, neighbours: _Beside) -> Columns:
    """Compute marks of a passage's text; zeros if texts are not available."""
    marks = fused.marks(fused.first)
    return {
        "asks": have(marks, ASKS),
        "asks last": have(marks, ENDS_WITH_QUESTION),
        "numbers": have(marks, HAS_NUMBER),
        "names": names_in(marks),
        "exclaims": exclamations_in(marks),
        "amounts": have(marks, HAS_AMOUNT),
        "times": have(marks, HAS_TIME),
        "first person": first_persons_in(marks),
        "previous asks": have(fused.marks(neighbours.previous), ENDS_WITH_QUESTION),
        "fits": have(marks, _FITTING.get(fused.request.asks_for, 0)),
    }


def _meant(fused: Fused, neighbours: _Beside) -> Columns:
    """Compute the similarity in meaning, if there are vectors."""
    columns: Columns = {}
    for name, scores in (("semantic", fused.request.semantic), ("window", fused.request.window)):
        is_off = scores is None or name in fused.request.without
        near = np.full(len(fused.first), np.nan) if scores is None or is_off else scores[fused.first]
        spread = _spread(scores)
        columns[name] = near / spread
        columns[f"{name} place"] = near if is_off else _places(near)
        columns[f"{name} below best"] = (near - near.max(initial=-np.inf)) / spread
    return columns


def _spread(scores: Numbers | None) -> float:
    """Return the standard deviation of scores."""
    if scores is None:
        return 1.0
    centred = scores - scores.mean()
    return max(float(np.sqrt(centred @ centred / len(centred))), 1e-9)


def _meant_around(fused: Fused, neighbours: _Beside) -> Columns:
    """Compute how near in meaning the neighbours and the conversation are, and how similar the best candidates."""
    names = ("previous semantic", "next semantic", "conversation semantic", "like the best", "like the first")
    first, scores, alike = fused.first, fused.request.semantic, fused.request.alike
    if scores is None or alike is None or "semantic" in fused.request.without:
        return dict.fromkeys(names, np.nan)
    near, spread = scores[first], _spread(scores)
    previous, following = (
        np.where(places >= 0, scores[places], np.nan) for places in (neighbours.previous, neighbours.next)
    )
    of_first = fused.index.column("conversation")[first]
    best = np.full(int(of_first.max(initial=0)) + 1, -np.inf)
    np.maximum.at(best, of_first, near)
    likeness = alike(first, first[:LIKE_FIRST])
    np.fill_diagonal(likeness, 0.0)
    columns = (
        previous / spread,
        following / spread,
        (best[of_first] - near.max(initial=-np.inf)) / spread,
        likeness[:, :LIKE_BEST].max(axis=1, initial=0.0),
        likeness.sum(axis=1) / max(likeness.shape[1] - 1, 1),
    )
    return dict(zip(names, columns, strict=True))
