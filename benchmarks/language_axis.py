"""Compute the language axis of the multilingual embedder: `python -m benchmarks.language_axis --out FILE`.

The axis is the difference of the mean vectors of the English and the Chinese conversations of this project.
`retrieval/language_axis.py` describes its use.
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

DIGITS = 5


def axis(stored: StoredVectors) -> NDArray[np.float64]:
    """Return the axis: a vector of length 1."""
    difference = np.zeros(1)
    for name, sign in LANGUAGES.items():
        texts = [turn.spoken for corpus in read_own(name) for turn in corpus.turns]
        known = [vector for vector in stored.of(texts) if vector is not None]
        difference = difference + sign * np.mean(np.array(known, dtype=np.float64), axis=0)
    unit: NDArray[np.float64] = difference / np.linalg.norm(difference)
    return unit


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute the axis and write it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--vectors", type=Path, default=VECTORS, help="the folder that keeps vectors")
    parser.add_argument("--out", type=Path, required=True, help="file for the axis")
    given = parser.parse_args(arguments)
    numbers = [
        round(number, DIGITS) for number in axis(StoredVectors(given.vectors, "multilingual")).tolist()
    ]
    given.out.write_text(json.dumps(numbers, separators=(",", ":")) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
