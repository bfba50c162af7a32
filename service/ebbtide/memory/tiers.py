"""Tiers: how firmly an agent knows a statement. A tier is a computed label, and never stored."""

from __future__ import annotations

from typing import Final, Literal

from ebbtide.memory.statements import DAY_MS

Tier = Literal["short", "middle", "long"]

SHORT_DAYS: Final = 7
FOUND_DAYS: Final = 3
"""Days that a statement stays in the short tier longer if a search has found it."""
LONG_CONVERSATIONS: Final = 2
LONG_MESSAGES: Final = 2
LONG_CONFIDENCE: Final = 0.8


def is_short(age_ms: int, *, was_found: bool = False) -> bool:
    """Return whether a statement of an age is in the short tier."""
    return age_ms < (SHORT_DAYS + FOUND_DAYS * was_found) * DAY_MS


def tier_of(
    age_ms: int, conversations: int, messages: int, confidence: float, *, was_found: bool = False
) -> Tier:
    """Return the tier of a statement of an age, supported by messages of conversations.

    A young statement is in the short tier, however many messages support it.
    """
    if is_short(age_ms, was_found=was_found):
        return "short"
    is_firm = (
        conversations >= LONG_CONVERSATIONS and messages >= LONG_MESSAGES and confidence >= LONG_CONFIDENCE
    )
    return "long" if is_firm else "middle"
