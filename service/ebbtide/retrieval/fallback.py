"""When living memories do not answer a question by themselves, so that what was said takes part too.

Three signs, looked at in this order: the query holds something that only stands word for word (an error code, a long
number, a path), and a memory may have been shortened around it; few living memories are found; or none of those found
stands out. Deliberately not here: what is done about it (`fleet/recall/recollection.py`).
"""

from __future__ import annotations

import numpy as np

from ebbtide.retrieval.lexical import Scores
from ebbtide.retrieval.query import ParsedQuery

MIN_RESULTS = 10
"""Fewer living memories than this are few."""

TOP, LOOKED_AT = 3, 10
"""Results that make the top, of those whose scores are looked at."""

CLEAR = 0.6
"""The concentration from which on there is a clear top."""


def concentration(scores: Scores) -> float:
    """How clear the top of a ranking is: the share of the squares of the best ten scores that the best three hold.

    0.3 where all are alike, 1 where nothing comes after the third. Squares, since a score of half the best is no
    rival to it: sums would call hardly any top clear.
    """
    squares = np.maximum(np.sort(scores)[::-1][:LOOKED_AT], 0.0) ** 2
    mass = float(squares.sum())
    return float(squares[:TOP].sum()) / mass if mass > 0 else 0.0


def why_needed(question: ParsedQuery, scores: Scores) -> str:
    """Why the archive is needed beside living memories with these scores; empty where it is not."""
    if question.has_code:
        return "code in the query"
    if len(scores) < MIN_RESULTS:
        return "few results"
    return "" if concentration(scores) >= CLEAR else "no clear top"
