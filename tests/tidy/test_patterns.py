"""Patterns follow the rules of `tests/tidy/pattern_rules.py`, and the rules find slow patterns."""

from __future__ import annotations

import re

import pytest

from tests.support.patterns import compiled
from tests.tidy.pattern_rules import faults

EXCEPTIONS = {
    "language.builtin.tokens._TOKEN": "where `plain` fails behind a run of letters, `word` takes the whole run",
}
"""Patterns that violate a rule, with the reason why they are linear."""


def test_every_pattern_keeps_the_rules() -> None:
    """Every pattern follows the rules; each exception has a reason, and is one."""
    broken = {found.name: faults(found.pattern, is_anchored=found.is_anchored) for found in compiled()}
    assert {name: found for name, found in broken.items() if (found != []) != (name in EXCEPTIONS)} == {}


@pytest.mark.parametrize(
    "slow",
    [
        r"[.!?;]+[\"')]*(?:\s+|$)",
        r",?\s+(?:and|but)\s",
        r"<(think)>.*?</\1>",
        r"a*a*b",
        r"(?:a+)+b",
        r"(?:a|b|ab)*+a+c",
        r"\s++$",
        r"(?m)^\s*#",
        r"[a-z]{2,}@",
        r"(?:x[a-z]{1,90}[a-z0-9]{1,90})y",
        r"(?:[ -]?\d{1,8}){0,6}(?!\d)",
    ],
)
def test_the_rules_find_slow_patterns(slow: str) -> None:
    """Patterns that take quadratic time or more violate a rule."""
    assert faults(re.compile(slow), is_anchored=False)


@pytest.mark.parametrize(
    "fast",
    [
        r"(?<!\s)\s++$",
        r"[.!?;](?<![.!?;]{2})[.!?;]*+(?:\s++|$)",
        r'"[^"\n]++"',
        r"\b\w++(?=:)",
        r"[a-z]+(?:-[a-z]+)*",
        r"(?m)^[^\S\n]*+#",
        r"a{1,30}b{1,30}c",
        r"(?:[ -]\d{1,8}){0,6}(?!\d)",
    ],
)
def test_the_rules_accept_linear_patterns(fast: str) -> None:
    """Patterns that take linear time violate none."""
    assert faults(re.compile(fast), is_anchored=False) == []
