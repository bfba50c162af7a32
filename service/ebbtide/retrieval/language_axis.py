"""The language axis of an embedding model and the usual mean of its vectors.

The language axis is the direction in which the vectors of two languages differ.

A multilingual model places the texts of a language together, so that a question finds texts of its own language first.
Without their component along the axis, vectors of both languages compare by meaning, and both languages have the same
mean. The file of a model contains the axis, which is the difference of the mean vectors of English and Chinese
conversations, of length 1, and the common mean without it (`benchmarks/language_axis.py`).
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources

import numpy as np

from ebbtide.retrieval.half_precision import SingleArray
from ebbtide.retrieval.profiles import profile_of


@lru_cache(4)
def _read(file: str) -> tuple[SingleArray, SingleArray]:
    known = json.loads(resources.files(__package__).joinpath(file).read_text(encoding="utf-8"))
    axis, mean = (np.array(known[name], dtype=np.float32) for name in ("axis", "mean"))
    axis /= np.linalg.norm(axis)
    return axis, without_axis(mean, axis)


def axis_and_mean_of(model: str, dimension: int) -> tuple[SingleArray | None, SingleArray | None]:
    """Return the language axis and the usual mean of a model with vectors of this dimension, or None if unknown."""
    file = profile_of(model).language_axis
    axis, mean = _read(file) if file else (None, None)
    return (axis, mean) if axis is not None and len(axis) == dimension else (None, None)


def without_axis(vectors: SingleArray, axis: SingleArray | None) -> SingleArray:
    """Return vectors without their component along an axis: one vector, or one in each row."""
    if axis is None:
        return vectors
    left: SingleArray = vectors - (vectors @ axis)[..., None] * axis
    return left
