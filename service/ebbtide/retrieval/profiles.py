"""The weights of the signals and the trees of the learned signal, chosen by the embedding model.

Vectors of a better model deserve more weight, and trees trained with the vectors of one model misjudge those of
another. A model without a profile of its own gets the default one, which suits the English embedder.
"""

from __future__ import annotations

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
    """Weights and trees for the vectors of an embedding model."""

    weights: Weights = field(default_factory=Weights)
    trees: str = "learned.json"
    """File of the trees, in this package."""
    language_axis: str = ""
    """File of the language axis, in this package; empty for none."""


DEFAULT_PROFILE = Profile()

PROFILES = {
    "multilingual:e5-small-q4": Profile(
        Weights(semantic=0.8, window=0.3), "learned_multilingual.json", "language_axis_multilingual.json"
    ),
}
"""By the name stored with vectors."""


def profile_of(embedding_model: str) -> Profile:
    """Return the profile for the vectors of a model, or without vectors for an empty name."""
    return PROFILES.get(embedding_model, DEFAULT_PROFILE)
