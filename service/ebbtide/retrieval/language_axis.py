"""The language axis of an embedding model: the direction in which its vectors of two languages differ.

A multilingual model places the texts of a language together, so that a question finds texts of its own language first.
Without their component along the axis, vectors of both languages compare by meaning. The file of an axis contains the
difference of the mean vectors of English and Chinese conversations, of length 1 (`benchmarks/language_axis.py`).
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources

import numpy as np

from ebbtide.retrieval.half_precision import SingleArray
from ebbtide.retrieval.profiles import profile_of


@lru_cache(4)
def _axis(file: str) -> SingleArray:
    text = resources.files(__package__).joinpath(file).read_text(encoding="utf-8")
    axis = np.array(json.loads(text), dtype=np.float32)
    unit: SingleArray = axis / np.linalg.norm(axis)
    return unit


def axis_of(model: str, dimension: int) -> SingleArray | None:
    """Return the language axis of a model with vectors of this dimension, or None if it has none."""
    file = profile_of(model).language_axis
    if not file:
        return None
    axis = _axis(file)
    return axis if len(axis) == dimension else None


def without_axis(vectors: SingleArray, axis: SingleArray | None) -> SingleArray:
    """Return vectors without their component along an axis: one vector, or one in each row."""
    if axis is None:
        return vectors
    left: SingleArray = vectors - (vectors @ axis)[..., None] * axis
    return left
