"""The embedder of the memories that need one: wordllama with 256 numbers, whose weights are in its package.

It is the fastest embedder known to us, so it favours the memories that are measured. It downloads nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DIMENSION = 256

_lock = threading.Lock()
_model: Any = None


def vectors_of(texts: Sequence[str]) -> list[list[float]]:
    """Return a vector of length 1 for each text."""
    global _model
    with _lock:
        if _model is None:
            import wordllama

            # Without this folder the package would look for its tokenizer on the network.
            folder = Path(wordllama.__file__).parent
            _model = wordllama.WordLlama.load(dim=DIMENSION, cache_dir=folder, disable_download=True)
        found: list[list[float]] = _model.embed(list(texts), norm=True).tolist()
    return found


def spoken(turn: dict[str, Any]) -> str:
    """Return a turn as it is stored: with its speaker, which every memory then finds better."""
    return f"{turn['speaker']}: {turn['text']}" if turn["speaker"] else str(turn["text"])
