"""The archive is needed if a query contains a code, few memories are found, or none stands out."""

from __future__ import annotations

import numpy as np
import pytest

from ebbtide.retrieval.fallback import CLEAR, MIN_RESULTS, concentration, why_needed
from ebbtide.retrieval.query import parse_query

CLEAR_TOP = [1.5, 1.0, 0.6, *[0.4] * 9]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [([], 0.0), ([0.0] * 4, 0.0), ([1.0] * 10, 0.3), ([1.0] * 40, 0.3), ([2.0], 1.0), ([3, 2, 1, 0, 0], 1.0)],
)
def test_concentration_is_the_share_of_the_best_three(scores: list[float], expected: float) -> None:
    """The concentration is 0.3 for equal scores, 1 if nothing follows the third, and 0 without scores."""
    assert concentration(np.array(scores, dtype=float)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("query", "scores", "why"),
    [
        ("Where is Ann?", CLEAR_TOP, ""),
        ("What was ERR-4711?", CLEAR_TOP, "code in the query"),
        ("谁的工单号是 20240117？", CLEAR_TOP, "code in the query"),
        ("What is in /etc/fstab and why?", CLEAR_TOP, "code in the query"),
        ("Where is Ann?", CLEAR_TOP[: MIN_RESULTS - 1], "few results"),
        ("Where is Ann?", [], "few results"),
        ("Where is Ann?", [1.0] * 12, "no clear top"),
    ],
)
def test_each_reason_is_reported(query: str, scores: list[float], why: str) -> None:
    """The reason is the first sign; there is none with a clear top among enough results."""
    question = parse_query(query, speakers=[], reference_ms=0)
    assert concentration(np.array(CLEAR_TOP)) >= CLEAR
    assert why_needed(question, np.array(scores)) == why
