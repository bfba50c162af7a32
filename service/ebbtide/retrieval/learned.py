"""The learned signal: reorder the top candidates with decision trees trained on judged queries.

The trees use the features of `features.py` and were trained on public sets (`benchmarks/train_fusion.py`,
docs/adr/0014-learned-ranking.md). They only change the order of the top candidates; each position keeps its score. The
order of the other signals counts as well, so that unusual queries lose little.

The model file is read with the first query, in a few milliseconds. It names its features, so a file for other features
is rejected.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from ebbtide.retrieval.features import FEATURES, Fused, features
from ebbtide.retrieval.preferences import in_preferred_order
from ebbtide.retrieval.trees import Trees

FILE = "learned.json"
VERSION = 1
"""Version of the file format."""

SPREAD_OVER = 50
"""Candidates over which the spread of the other signals' scores is measured."""

OWN_SAY = 0.25
"""Weight of the other signals' order relative to the trees."""


@dataclass(frozen=True, slots=True)
class Model:
    """The trees, and the usual spread of their sums."""

    trees: Trees
    spread: float


def model_of(text: str) -> Model:
    """Return the model in a file. Raise ValueError for another format or other features."""
    kept = json.loads(text)
    if kept["version"] != VERSION:
        raise ValueError(f"{FILE} has version {kept['version']}, not {VERSION}")
    if tuple(kept["features"]) != FEATURES:
        raise ValueError(f"{FILE} was made for other features")
    return Model(Trees.of(kept), float(kept["spread"]))


@lru_cache(4)
def model(file: str = FILE) -> Model:
    """Return the model in a file of the package."""
    return model_of(resources.files(__package__).joinpath(file).read_text(encoding="utf-8"))


def reordered(fused: Fused, model: Model, most: int) -> NDArray[np.int64]:
    """Return the top candidates in the learned order with the preferences of the question, at least `most` in order."""
    worths = weighed(model.trees.sums(features(fused)), fused.total[fused.first], model.spread)
    return in_preferred_order(fused, worths, most)


def weighed(sums: NDArray[np.float64], scores: NDArray[np.float64], spread: float) -> NDArray[np.float64]:
    """Combine the trees' sums with the scores of the other signals."""
    own = scores / max(float(scores[:SPREAD_OVER].std()), 1e-9)
    together: NDArray[np.float64] = sums / spread + OWN_SAY * own
    return together
