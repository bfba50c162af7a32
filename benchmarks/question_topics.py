"""Train the topics of questions: `python -m benchmarks.question_topics --out FILE`.

A softmax regression over the vectors of the examples in `knowledge/data/topic_questions.txt`, with the multilingual
embedder. It first prints the accuracy of five-fold cross-validation. `retrieval/question_topics.py` describes the use.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.stored_vectors import StoredVectors
from benchmarks.train_fusion import VECTORS

EXAMPLES = Path(__file__).parent / "knowledge" / "data" / "topic_questions.txt"
FOLDS = 5
STEPS = 400
RATE = 0.05
DECAY = 1e-3
"""Weight of the squared weights in the loss."""

SCALE = 10.0
"""Vectors have length 1, so their numbers are scaled for the regression."""

DIGITS = 2

Matrix = NDArray[np.float64]


def read_examples() -> list[tuple[str, str]]:
    """Return (topic, question)."""
    lines = EXAMPLES.read_text(encoding="utf-8").splitlines()
    parts = [line.partition(": ") for line in lines if line and not line.startswith("#")]
    return [(topic, question) for topic, _, questions in parts for question in questions.split(" | ")]


def fitted(vectors: Matrix, topics: NDArray[np.int64], count: int) -> Matrix:
    """Return the weights of a softmax regression, the constants in the last row. Rare topics weigh more."""
    inputs = np.hstack([vectors * SCALE, np.ones((len(vectors), 1))])
    expected = np.eye(count)[topics]
    rarity = 1 / np.sqrt(np.bincount(topics, minlength=count)[topics])
    rarity /= rarity.mean()
    weights = np.zeros((inputs.shape[1], count))
    mean, spread = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, STEPS + 1):  # Adam
        error = (_softmax(inputs @ weights) - expected) * rarity[:, None]
        gradient = inputs.T @ error / len(inputs) + DECAY * weights
        mean = 0.9 * mean + 0.1 * gradient
        spread = 0.99 * spread + 0.01 * gradient**2
        weights -= RATE * (mean / (1 - 0.9**step)) / (np.sqrt(spread / (1 - 0.99**step)) + 1e-8)
    weights[:-1] *= SCALE
    return weights


def _softmax(scores: Matrix) -> Matrix:
    shares: Matrix = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def _centred(vectors: Matrix, mean: Matrix) -> Matrix:
    centred: Matrix = vectors - mean
    return centred / np.linalg.norm(centred, axis=1, keepdims=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, and write the file of weights."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--vectors", type=Path, default=VECTORS, help="the folder that keeps vectors")
    parser.add_argument("--out", type=Path, required=True, help="file for the weights")
    given = parser.parse_args(arguments)
    examples = read_examples()
    names = sorted({topic for topic, _ in examples})
    topics = np.array([names.index(topic) for topic, _ in examples])
    stored = StoredVectors(given.vectors, "multilingual")
    known = [
        one for one in stored.of([question for _, question in examples], is_query=True) if one is not None
    ]
    vectors = np.array(known, dtype=np.float64)
    mean = vectors.mean(axis=0)
    centred = _centred(vectors, mean)
    folds = np.random.default_rng(0).integers(0, FOLDS, len(examples))
    right = 0
    for fold in range(FOLDS):
        weights = fitted(centred[folds != fold], topics[folds != fold], len(names))
        right += int(
            ((centred[folds == fold] @ weights[:-1] + weights[-1]).argmax(1) == topics[folds == fold]).sum()
        )
    print(f"cross-validated: {right} of {len(examples)} in {len(names)} topics")
    weights = fitted(centred, topics, len(names))
    content = {
        "topics": names,
        "mean": np.round(mean, DIGITS + 3).tolist(),
        "weights": np.round(weights[:-1].T, DIGITS).tolist(),
        "constants": np.round(weights[-1], DIGITS).tolist(),
    }
    given.out.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
