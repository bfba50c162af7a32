"""The language axis: vectors of a multilingual model compare by meaning, not by language."""

from __future__ import annotations

import numpy as np
import pytest

from ebbtide.retrieval.language_axis import axis_and_mean_of, without_axis
from ebbtide.retrieval.profiles import PROFILES
from ebbtide.retrieval.vectors import Vectors

MULTILINGUAL = "multilingual:e5-small-q4"
DIMENSION = 384


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def meanings(count: int) -> np.ndarray:
    """Return vectors that have no component along the axis."""
    drawn = np.random.default_rng(5).normal(size=(count, DIMENSION)).astype(np.float32)
    return unit(without_axis(drawn, axis_and_mean_of(MULTILINGUAL, DIMENSION)[0]))


@pytest.mark.parametrize("model", [name for name, profile in PROFILES.items() if profile.language_axis])
def test_the_axis_of_a_profile_is_a_unit_vector(model: str) -> None:
    """Promise: the file of each axis can be read, and its vector has length 1. The usual mean is without it."""
    axis, mean = axis_and_mean_of(model, DIMENSION)
    assert axis is not None and np.linalg.norm(axis) == pytest.approx(1, abs=1e-6)
    assert mean is not None and float(mean @ axis) == pytest.approx(0, abs=1e-6)


def test_models_without_an_axis_are_not_changed() -> None:
    """Promise: vectors of other models, and of other dimensions, stay as they are."""
    vectors = unit(np.random.default_rng(1).normal(size=(3, DIMENSION)))
    for model, dimension in (("some model", DIMENSION), (MULTILINGUAL, 16)):
        assert axis_and_mean_of(model, dimension) == (None, None)
    assert without_axis(vectors, None) is vectors


@pytest.mark.parametrize("window", [False, True])
def test_a_question_finds_a_text_of_another_language_by_its_meaning(window: bool) -> None:
    """Promise: with a strong language component, the text of the same meaning ranks first in any language."""
    axis, _ = axis_and_mean_of(MULTILINGUAL, DIMENSION)
    assert axis is not None
    drawn = meanings(60)
    languages = np.where(np.arange(60) % 3 == 0, 1.0, -1.0)[:, None]
    vectors = Vectors(MULTILINGUAL, DIMENSION)
    vectors.put(np.arange(60), unit(drawn + 2 * languages * axis))
    alone = np.full(60, -1)
    for sought in (6, 7):
        query = unit(drawn[sought] - 2 * languages[sought] * axis)  # in the other language
        scores = vectors.window_scores(query, 60, alone, alone) if window else vectors.scores(query, 60)
        assert scores is not None and int(scores.argmax()) == sought
