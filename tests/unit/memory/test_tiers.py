"""Tiers: how firmly an agent knows a statement."""

from __future__ import annotations

import pytest

from ebbtide.memory.statements import DAY_MS
from ebbtide.memory.tiers import tier_of


@pytest.mark.parametrize(
    ("days", "conversations", "messages", "confidence", "was_found", "expected"),
    [
        (0, 1, 1, 0.8, False, "short"),
        (6.9, 5, 5, 0.99, False, "short"),
        (7, 1, 1, 0.8, False, "middle"),
        (7, 1, 1, 0.8, True, "short"),
        (10, 1, 1, 0.8, True, "middle"),
        (7, 2, 2, 0.8, False, "long"),
        (400, 1, 2, 0.99, False, "middle"),
        (400, 2, 1, 0.99, False, "middle"),
        (400, 2, 2, 0.79, False, "middle"),
    ],
)
def test_tiers_follow_from_age_and_support(
    days: float, conversations: int, messages: int, confidence: float, was_found: bool, expected: str
) -> None:
    """Young is short; old and said twice in two conversations with confidence is long; the rest is between."""
    age_ms = round(days * DAY_MS)
    assert tier_of(age_ms, conversations, messages, confidence, was_found=was_found) == expected
