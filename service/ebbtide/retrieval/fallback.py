"""Decide whether the archive must supplement the living memories.

Three signs count, in this order: the query contains something that only matches verbatim (an error code, a long number,
a path), which shortening may have removed; few memories were found; or none of them stands out.
"""

from __future__ import annotations

import numpy as np

from ebbtide.retrieval.lexical import Scores
from ebbtide.retrieval.query import ParsedQuery

MIN_RESULTS = 10
"""Fewer living memories are few."""

TOP, LOOKED_AT = 3, 10
"""Results that form the top, and results whose scores are compared."""

CLEAR = 0.6
"""The concentration from which on the top is clear."""


def concentration(scores: Scores) -> float:
    """Return how clear the top of a ranking is: the share of the best three in the squared scores of the best ten.

    The result is 0.3 if all are equal, and 1 if nothing follows the third. Scores are squared because a result with
    half the score is no competitor.
    """
    squares = np.maximum(np.sort(scores)[::-1][:LOOKED_AT], 0.0) ** 2
    mass = float(squares.sum())
    return float(squares[:TOP].sum()) / mass if mass > 0 else 0.0


def why_needed(question: ParsedQuery, scores: Scores) -> str:
    """Return why the archive is needed besides living memories with these scores, or an empty string."""
    if question.has_code:
        return "code in the query"
    if len(scores) < MIN_RESULTS:
        return "few results"
    return "" if concentration(scores) >= CLEAR else "no clear top"
