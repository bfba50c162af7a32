"""Noise for counts that are published: the discrete Laplace distribution, sampled exactly.

A floating-point Laplace sample has gaps that reveal the count (Mironov, 2012). This one uses integers only: Canonne,
Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020), algorithms 1 and 2.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from fractions import Fraction

Below = Callable[[int], int]
"""A source of random integers: at least 0, and below its argument."""


def discrete_laplace(epsilon: Fraction, below: Below = secrets.randbelow) -> int:
    """Return an integer x with probability proportional to e^(-epsilon * |x|). `epsilon` must be positive."""
    numerator, denominator = epsilon.numerator, epsilon.denominator
    while True:
        remainder = below(denominator)
        if not _happens(remainder, denominator, below):
            continue
        quotient = 0
        while _happens(1, 1, below):
            quotient += 1
        size = (remainder + denominator * quotient) // numerator
        is_negative = below(2) == 1
        if size or not is_negative:
            return -size if is_negative else size


def _happens(numerator: int, denominator: int, below: Below) -> bool:
    """Return True with probability e^(-numerator / denominator), a fraction from 0 to 1."""
    count = 1
    while below(denominator * count) < numerator:
        count += 1
    return count % 2 == 1
