"""The topics that a question asks for, by its vector.

People ask for a matter in endless words: "What keeps a roof over my head?". A softmax regression over the vector of the
question gives the share of each topic. The topics are slots, kinds of statements, and `other` for what no statement is
usually about. It was trained on examples in English and Chinese (`benchmarks/question_topics.py`), and serves only the
embedding model whose vectors it was trained on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

import numpy as np

from ebbtide.retrieval.half_precision import SingleArray
from ebbtide.retrieval.profiles import profile_of


class _Regression(NamedTuple):
    topics: list[str]
    mean: SingleArray
    weights: SingleArray
    """A row for each topic."""
    constants: SingleArray


@lru_cache(2)
def _read(file: str) -> _Regression:
    known = json.loads(resources.files(__package__).joinpath(file).read_text(encoding="utf-8"))
    arrays = (np.array(known[name], dtype=np.float32) for name in ("mean", "weights", "constants"))
    return _Regression(known["topics"], *arrays)


def question_topics(vector: SingleArray | None, model: str) -> Mapping[str, float]:
    """Return the share of each topic in a question; empty without a vector of a model that has a regression."""
    file = profile_of(model).question_topics
    if vector is None or not file:
        return {}
    topics, mean, weights, constants = _read(file)
    if len(vector) != len(mean):
        return {}
    centred = vector - mean
    length = float(np.linalg.norm(centred))
    scores = weights @ (centred / length) + constants if length else constants
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    return dict(zip(topics, shares.tolist(), strict=True))
