"""The learned signal: the first candidates of a question in an order that was learnt from judged questions.

Trees see what the other signals gave (`features.py`) and were grown on public sets (`benchmarks/train_fusion.py`,
docs/adr/0014-learned-order.md). They change the order of the first candidates only, and each place keeps its score:
what a score says of an answer as a whole stays as it was. The order of the other signals has a say as well, so
that questions unlike those learnt from lose little.

The file beside this one is read at the first question, in a few milliseconds. It names its features, so trees that
were grown for others than the code computes are refused, not misread.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from ebbtide.retrieval.features import FEATURES, Fused, features
from ebbtide.retrieval.trees import Trees

FILE = "learned.json"
VERSION = 1
"""Of the form of the file."""

SPREAD_OVER = 50
"""Candidates over which the other signals' scores are taken as spread."""

OWN_SAY = 0.5
"""How much the other signals' order counts beside the trees."""


@dataclass(frozen=True, slots=True)
class Model:
    """Trees, and how far their sums usually spread."""

    trees: Trees
    spread: float


def model_of(text: str) -> Model:
    """The model that a file holds; ValueError for one of another form, or made for other features."""
    kept = json.loads(text)
    if kept["version"] != VERSION:
        raise ValueError(f"{FILE} has version {kept['version']}, not {VERSION}")
    if tuple(kept["features"]) != FEATURES:
        raise ValueError(f"{FILE} was made for other features")
    return Model(Trees.of(kept), float(kept["spread"]))


@lru_cache(1)
def model() -> Model:
    """The model that comes with the package."""
    return model_of(resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8"))


def reordered(fused: Fused, model: Model) -> NDArray[np.int64]:
    """The first candidates in the learnt order, of equal ones the newer first."""
    worth = weighed(model.trees.sums(features(fused)), fused.total[fused.first], model.spread)
    order: NDArray[np.int64] = fused.first[np.lexsort((-fused.first, -worth))]
    return order


def weighed(sums: NDArray[np.float64], scores: NDArray[np.float64], spread: float) -> NDArray[np.float64]:
    """What trees and the other signals say together."""
    own = scores / max(float(scores[:SPREAD_OVER].std()), 1e-9)
    together: NDArray[np.float64] = sums / spread + OWN_SAY * own
    return together
