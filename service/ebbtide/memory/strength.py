"""Strengths: decay by scans, comparison by 12 significant digits, and target lengths.

Scalar and array forms of one rule are next to each other, and a property test checks that they are equal.
"""

from __future__ import annotations

from math import floor

import numpy as np

from ebbtide.memory.columns import Array

WHOLE = 1 - 1e-9
"""Importance from which a memory counts as fully supported (section 2: "≥ 1" means ≥ 1 - 1e-9)."""

DIGITS = 12
"""Significant digits by which path strengths are compared (section 6)."""

_LOWEST = -280
"""Decimal exponent below which a strength is ranked by its text; such products are almost zero."""

_POWERS_OF_TEN = np.array([10.0**k for k in range(DIGITS - _LOWEST)])
_ONE: int = 10**DIGITS
_BASE = 400

_DOUBT = 2e-3
"""Values closer than this to the middle between two 12-digit values are ranked by text, because scaling may move them
across it. A multiplication and a power of ten err by less than 4e-16 of 1e12.
"""


def target_length(original_length: int, importance: float) -> int:
    """Return the number of characters that a memory of this importance may keep (section 2)."""
    return floor(original_length * min(importance, 1.0) + 1e-9)


def target_lengths(original_lengths: Array, importances: Array) -> Array:
    """`target_length` for many."""
    kept: Array = np.floor(original_lengths * np.minimum(importances, 1.0) + 1e-9).astype(np.int64)
    return kept


def round_strength(value: float) -> float:
    """Round to 12 significant digits, so that two equal paths compare equal (section 6)."""
    return float(f"{value:.{DIGITS - 1}e}")


def rank_of(value: float) -> int:
    """Return a number that orders strengths as `round_strength` does, including ties; at least 1, below 2**53."""
    if value <= 0:
        return 1
    digits, _, exponent = f"{value:.{DIGITS - 1}e}".partition("e")
    return (int(exponent) + _BASE) * _ONE + int(digits.replace(".", ""))


def ranks_of(values: Array) -> Array:
    """`rank_of` for many."""
    positive = values > 0
    exponents = np.full(len(values), _LOWEST, dtype=np.int64)
    np.floor(np.log10(values, where=positive, out=np.zeros(len(values))), out=exponents, casting="unsafe")
    by_text = exponents <= _LOWEST
    exponents[by_text] = 0
    scaled = values * _POWERS_OF_TEN[DIGITS - 1 - exponents]
    # A logarithm close to a whole number may be rounded to its other side.
    step = (scaled >= _ONE).astype(np.int64) - (scaled < _ONE // 10)
    if step.any():
        exponents += np.where(by_text | ~positive, 0, step)
        scaled = values * _POWERS_OF_TEN[np.minimum(DIGITS - 1 - exponents, len(_POWERS_OF_TEN) - 1)]
    digits = np.rint(scaled)
    by_text |= np.abs(scaled - np.floor(scaled) - 0.5) < _DOUBT
    full = digits >= _ONE
    ranks: Array = np.where(full, _ONE // 10, digits).astype(np.int64) + (exponents + full + _BASE) * _ONE
    ranks[~positive] = 1
    for place in np.flatnonzero(by_text & positive):
        ranks[place] = rank_of(float(values[place]))
    return ranks


MAX_POWERS = 1 << 16
"""Ages whose factors are cached. Factors of greater ages are computed on demand."""


class DecayTable:
    """Caches `decay_rate ** age`, equal to the scalar power to the last bit."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._powers = np.array([rate**age for age in range(64)])

    def factors(self, ages: Array) -> Array:
        """Return the factor of each age in scans. Negative ages, which no valid store contains, count as 0."""
        if not len(ages):
            return np.zeros(0)
        ages = np.maximum(ages, 0)
        oldest = int(ages.max())
        if oldest >= MAX_POWERS:
            # One power per distinct age, so that a hostile file cannot force large tables.
            different, places = np.unique(ages, return_inverse=True)
            return np.array([self.rate**age for age in different.tolist()])[places]
        if oldest >= len(self._powers):
            # Not numpy's power, which may differ from the scalar one in the last bit.
            self._powers = np.array([self.rate**age for age in range(min(2 * oldest, MAX_POWERS))])
        found: Array = self._powers[ages]
        return found
