"""Profiles of embedding models: the weights of the signals, trees, language axis, and weights of relevance.

Vectors of a better model deserve more weight, and trees trained with the vectors of one model misjudge those of
another. A model without a profile of its own gets the default one, which suits the English embedder. Relevance cannot
be estimated with the vectors of such a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each signal relative to the words."""

    neighbours: float = 0.5
    semantic: float = 0.1
    window: float = 0.1
    speaker: float = 0.3
    dates: float = 0.3
    conversation: float = 0.2
    graph: float = 0.05
    naming: float = 1.0
    pagerank: float = 0.02
    weight: float = 0.02


@dataclass(frozen=True, slots=True)
class Profile:
    """Weights, trees and language axis for the vectors of an embedding model."""

    weights: Weights = field(default_factory=Weights)
    trees: str = "learned.json"
    """File of the trees, in this package."""
    language_axis: str = ""
    """File of the language axis and the usual mean of the vectors, in this package; empty for none."""
    question_topics: str = ""
    """File of the regression from the vector of a question to its topics, in this package; empty for none."""
    relevance: Mapping[str, float] | None = None
    """Weight of each column of `relevance.EVIDENCE`; None if relevance cannot be estimated."""


DATES = 2.0
"""Weight of a time that the query names. The conversations ask too few such questions to fit it."""

WORDS_ONLY = {
    "own words": 3.31,
    "words": 5.92,
    "known words": 1.73,
    "speaker": 5.97,
    "chinese": 1.94,
    "size": -0.67,
    "constant": -0.97,
    "dates": DATES,
}
ENGLISH_VECTORS = {
    "own words": 3.02,
    "words": 3.44,
    "known words": 0.78,
    "speaker": 4.78,
    "size": -0.82,
    "semantic": 7.51,
    "window": 4.11,
    "constant": -1.12,
    "dates": DATES,
}
MULTILINGUAL_VECTORS = {
    "own words": 1.81,
    "words": 3.79,
    "known words": 0.89,
    "speaker": 3.47,
    "chinese": 0.02,
    "size": -0.97,
    "other script": 1.17,
    "semantic": 17.79,
    "window": 4.35,
    "constant": -2.3,
    "dates": DATES,
}
"""Weights of relevance, fitted by `benchmarks/relevance.py`.

The constant of `WORDS_ONLY` is raised by 0.35, so that the default floor rejects less: words alone miss paraphrases.
That of `MULTILINGUAL_VECTORS` is lowered by 0.11, which rejects more in small memories and loses little elsewhere.
"""

DEFAULT_PROFILE = Profile()

PROFILES = {
    "": Profile(relevance=WORDS_ONLY),
    "builtin:wordllama-256": Profile(relevance=ENGLISH_VECTORS),
    "multilingual:e5-small-q4": Profile(
        Weights(semantic=0.8, window=0.3),
        "learned_multilingual.json",
        "language_axis_multilingual.json",
        "question_topics_multilingual.json",
        MULTILINGUAL_VECTORS,
    ),
}
"""By the name stored with vectors; the empty name is for queries without vectors."""


def profile_of(embedding_model: str) -> Profile:
    """Return the profile for the vectors of a model, or without vectors for an empty name."""
    return PROFILES.get(embedding_model, DEFAULT_PROFILE)
