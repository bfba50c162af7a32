"""Measures of an answer: which evidence is among the first results, and within how many tokens.

An answer is a list of results, best first; a result has the turns it came from and its tokens. The rule guarded here:
a turn has the rank of its first appearance, and a repeated turn takes no second rank. Its tokens count each time,
since the reader of the answer reads them each time.

Pure: no files and no clock; the bootstrap uses a seeded random generator. Other modules produce the answers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

DEPTHS = (5, 10, 20)
"""Ranks down to which evidence is searched."""

CUT = 10
"""Rank at which nDCG and "all found" are taken."""

BUDGETS = (500, 1000, 2000, 4000)
"""Tokens of an answer within which evidence is searched."""

LONGEST_ANSWER = 50
"""Maximum of results in an answer, for the product and the baselines. Short turns need fewer than 4000 tokens, so the
last budgets then measure these 50.
"""

RESAMPLINGS = 2000
COVERED = 0.95
SEED = 1

Gold = Sequence[Collection[str]]


@dataclass(frozen=True, slots=True)
class Result:
    """One item of an answer: the turns it came from, and the tokens of what it says."""

    turn_ids: tuple[str, ...]
    token_count: int


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean difference and the interval in which 95 of 100 resamplings find it."""

    mean: float
    low: float
    high: float


NAMES = (
    *(f"R@{depth}" for depth in DEPTHS),
    f"all@{CUT}",
    "MRR",
    f"nDCG@{CUT}",
    *(f"in {budget}" for budget in BUDGETS),
)
"""The measures of a question, in the order they are shown."""


def measure(answer: Sequence[Result], gold: Gold) -> dict[str, float]:
    """Return every measure of one answer, each from 0 to 1, by its name."""
    ranked = ranked_turns(answer)
    firsts = {f"R@{depth}": share_found(ranked[:depth], gold) for depth in DEPTHS}
    return {
        **firsts,
        f"all@{CUT}": float(share_found(ranked[:CUT], gold) == 1.0),
        "MRR": reciprocal_rank(ranked, gold),
        f"nDCG@{CUT}": discounted_gain(ranked, gold, CUT),
        **{f"in {budget}": share_found(ranked_turns(within(answer, budget)), gold) for budget in BUDGETS},
    }


def ranked_turns(answer: Sequence[Result]) -> list[str]:
    """Return the turns of an answer in order of their first appearance."""
    return list(dict.fromkeys(turn_id for result in answer for turn_id in result.turn_ids))


def share_found(turn_ids: Collection[str], gold: Gold) -> float:
    """Return the share of gold groups with at least one turn found."""
    found = set(turn_ids)
    return sum(1 for group in gold if not found.isdisjoint(group)) / len(gold)


def reciprocal_rank(ranked: Sequence[str], gold: Gold) -> float:
    """Return one over the rank of the first gold turn; 0 if there is none."""
    wanted = frozenset().union(*gold)
    return next((1 / rank for rank, turn_id in enumerate(ranked, 1) if turn_id in wanted), 0.0)


def discounted_gain(ranked: Sequence[str], gold: Gold, depth: int) -> float:
    """nDCG: gold turns among the first `depth`, lower ranks counting less, as a share of the best order."""
    wanted = frozenset().union(*gold)
    gain = sum(_discount(rank) for rank, turn_id in enumerate(ranked[:depth], 1) if turn_id in wanted)
    return gain / sum(_discount(rank) for rank in range(1, min(len(wanted), depth) + 1))


def _discount(rank: int) -> float:
    return 1 / math.log2(rank + 1)


def within(answer: Sequence[Result], budget: int) -> Sequence[Result]:
    """Return the first results that together have at most this many tokens."""
    taken = 0
    for place, result in enumerate(answer):
        taken += result.token_count
        if taken > budget:
            return answer[:place]
    return answer


def paired_interval(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """Return how much better `ours` is than `theirs` over the same questions: paired bootstrap, 95 %."""
    if len(ours) != len(theirs) or not ours:
        raise ValueError(f"{len(ours)} questions cannot be paired with {len(theirs)}")
    differences = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    dice = np.random.default_rng(SEED)
    # One resampling at a time: all at once would take 2000 numbers a question.
    means = [
        float(differences[dice.integers(0, len(differences), len(differences))].mean())
        for _ in range(RESAMPLINGS)
    ]
    edge = (1 - COVERED) / 2
    low, high = np.quantile(means, [edge, 1 - edge])
    return Interval(float(differences.mean()), float(low), float(high))
