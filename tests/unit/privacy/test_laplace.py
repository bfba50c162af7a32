"""The noise of published counts has the discrete Laplace distribution, exactly."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction

import pytest

from ebbtide.privacy.laplace import discrete_laplace

SAMPLES = 40_000


def sampled(epsilon: Fraction) -> Counter[int]:
    """Return how often each value comes up, with a source of random integers that is always the same."""
    below = random.Random(7).randrange
    return Counter(discrete_laplace(epsilon, below) for _ in range(SAMPLES))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(5, 2)])
def test_the_frequencies_are_those_of_the_distribution(epsilon: Fraction) -> None:
    """P(x) = (1 - e^-ε) / (1 + e^-ε) · e^(-ε|x|): each frequency is within five standard deviations."""
    counts, decay = sampled(epsilon), math.exp(-epsilon)
    for value in range(-5, 6):
        expected = (1 - decay) / (1 + decay) * decay ** abs(value)
        deviation = math.sqrt(expected * (1 - expected) * SAMPLES)
        assert abs(counts[value] - expected * SAMPLES) <= 5 * deviation


def test_neighbouring_counts_are_hard_to_tell_apart() -> None:
    """The probability of a result changes by at most the factor e^ε with one record more."""
    epsilon = Fraction(1, 2)
    counts = sampled(epsilon)
    for value in range(-4, 4):
        ratio = counts[value] / counts[value + 1]
        assert math.exp(-epsilon) * 0.85 <= ratio <= math.exp(epsilon) * 1.15


def test_the_sum_of_noise_is_zero_on_average() -> None:
    """Noise has no direction."""
    counts = sampled(Fraction(1))
    mean = sum(value * count for value, count in counts.items()) / SAMPLES
    assert abs(mean) < 0.04


def test_the_default_source_is_the_systems() -> None:
    """Without a source, samples differ: they come from the operating system."""
    assert len({discrete_laplace(Fraction(1, 100)) for _ in range(50)}) > 10
