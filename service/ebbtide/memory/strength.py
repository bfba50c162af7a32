"""What strengths are worth: decay by scans, the 12 digits by which paths are compared, lengths kept.

Scalar and array forms of one rule stand side by side here, and a property test holds them equal.
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
"""Decimal exponent below which a strength is ranked by its text: products that small are next to nothing."""

_POWERS_OF_TEN = np.array([10.0**k for k in range(DIGITS - _LOWEST)])
_ONE: int = 10**DIGITS
_BASE = 400

_DOUBT = 2e-3
"""Nearer than this to the middle of two 12-digit values, scaling may have moved a strength across it: one
multiplication and one power of ten of a double err by less than 4e-16 of 1e12."""


def target_length(original_length: int, importance: float) -> int:
    """Characters a memory of this importance may keep (section 2)."""
    return floor(original_length * min(importance, 1.0) + 1e-9)


def target_lengths(original_lengths: Array, importances: Array) -> Array:
    """`target_length` for many."""
    kept: Array = np.floor(original_lengths * np.minimum(importances, 1.0) + 1e-9).astype(np.int64)
    return kept


def round_strength(value: float) -> float:
    """Rounded to 12 significant digits: two paths of equal worth must compare equal (section 6)."""
    return float(f"{value:.{DIGITS - 1}e}")


def rank_of(value: float) -> int:
    """A number that orders strengths as `round_strength` does, ties included; at least 1, below 2**53."""
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
    # A logarithm next to a whole number may fall on its other side.
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
"""Ages of which the factor is kept; the factors of greater ages are calculated when they are needed."""


class DecayTable:
    """`decay_rate ** age` for every age seen so far, to the bit what the scalar power gives."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._powers = np.array([rate**age for age in range(64)])

    def factors(self, ages: Array) -> Array:
        """The factor of each age, in scans; an age below 0, which no store in order has, counts as 0."""
        if not len(ages):
            return np.zeros(0)
        ages = np.maximum(ages, 0)
        oldest = int(ages.max())
        if oldest >= MAX_POWERS:
            # As many powers as there are different ages: the ages of a file decide nothing else.
            different, places = np.unique(ages, return_inverse=True)
            return np.array([self.rate**age for age in different.tolist()])[places]
        if oldest >= len(self._powers):
            # Not numpy's own power: it may differ from the scalar one in the last bit.
            self._powers = np.array([self.rate**age for age in range(min(2 * oldest, MAX_POWERS))])
        found: Array = self._powers[ages]
        return found
