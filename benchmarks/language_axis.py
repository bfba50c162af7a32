"""Compute the axis and the mean of the multilingual embedder: `python -m benchmarks.language_axis --out FILE`.

The axis is the difference of the mean vectors of the English and the Chinese conversations of this project. The usual
mean is their average, half of it without the names of the speakers. `retrieval/language_axis.py` describes their use.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.recall_data import read_own
from benchmarks.stored_vectors import StoredVectors
from benchmarks.train_fusion import VECTORS

LANGUAGES = {"friends_en": -1.0, "friends_zh": 1.0}
"""The sets of conversations, and the sign of each mean."""

UNNAMED = 8
"""Every which turn is embedded without its speaker as well."""

DIGITS = 5


def axis_and_mean(stored: StoredVectors) -> dict[str, NDArray[np.float64]]:
    """Return the axis, a vector of length 1, and the usual mean without its component along the axis."""
    difference, means = np.zeros(1), []
    for name, sign in LANGUAGES.items():
        turns = [turn for corpus in read_own(name) for turn in corpus.turns]
        spoken, plain = (
            _mean(stored, texts)
            for texts in ([turn.spoken for turn in turns], [turn.text for turn in turns[::UNNAMED]])
        )
        difference = difference + sign * spoken
        means += [spoken, plain]
    axis, mean = difference / np.linalg.norm(difference), np.mean(means, axis=0)
    return {"axis": axis, "mean": mean - mean @ axis * axis}


def _mean(stored: StoredVectors, texts: Sequence[str]) -> NDArray[np.float64]:
    known = [vector for vector in stored.of(texts) if vector is not None]
    mean: NDArray[np.float64] = np.mean(np.array(known, dtype=np.float64), axis=0)
    return mean


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute both vectors and write them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--vectors", type=Path, default=VECTORS, help="the folder that keeps vectors")
    parser.add_argument("--out", type=Path, required=True, help="file for the vectors")
    given = parser.parse_args(arguments)
    found = axis_and_mean(StoredVectors(given.vectors, "multilingual"))
    numbers = {name: [round(number, DIGITS) for number in vector.tolist()] for name, vector in found.items()}
    given.out.write_text(json.dumps(numbers, separators=(",", ":")) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
