"""Functions that the workers of the multilingual embedder call in tests: most texts get a vector, some do harm."""

from __future__ import annotations

import os
import signal
import time
import zlib
from collections.abc import Sequence

import numpy as np

from ebbtide.language.multilingual import worker
from ebbtide.language.multilingual.embedder import DIMENSION
from ebbtide.language.port import ModelUnavailable
from tests.support import worker_tasks


def vector_of(text: str) -> np.ndarray:
    """Return a vector that depends on the text only."""
    return np.random.default_rng(zlib.crc32(text.encode())).normal(size=DIMENSION).astype(np.float32)


def scripted(texts: Sequence[str], is_query: bool) -> tuple[int, bytes]:
    """Return a vector for each text. Words in a text crash the process, hang it, or spoil the reply."""
    whole = " ".join(texts)
    if "crash" in whole:
        worker_tasks.crash(whole, signal.SIGSEGV)
    if "die" in whole:
        worker_tasks.crash(whole, signal.SIGKILL)
    if "hang" in whole:
        time.sleep(60)
    if "fail" in whole:
        raise RuntimeError(whole)
    if "missing" in whole:
        raise ModelUnavailable("the library is missing")
    matrix = np.stack([vector_of(f"{is_query} {text}") for text in texts])
    if "nan" in whole:
        matrix[-1, 7] = np.nan
    if "infinite" in whole:
        matrix[-1, 7] = np.inf
    if "zero" in whole:
        matrix[-1] = 0
    if "narrow" in whole:
        matrix = matrix[:, :3]
    if "short" in whole:
        return DIMENSION, matrix[1:].tobytes()
    return matrix.shape[1], matrix.tobytes()


def slow(texts: Sequence[str], is_query: bool) -> tuple[int, bytes]:
    """Return a vector for each text after 50 ms for each."""
    time.sleep(0.05 * len(texts))
    return scripted(texts, is_query)


def process_id(texts: Sequence[str], is_query: bool) -> tuple[int, bytes]:
    """Return vectors that contain the id of the worker's process."""
    matrix = np.zeros((len(texts), DIMENSION), dtype=np.float32)
    matrix[:, 0], matrix[:, 1] = os.getpid(), 1
    return DIMENSION, matrix.tobytes()


def with_other_weights(texts: Sequence[str], is_query: bool) -> tuple[int, bytes]:
    """Embed with the real library, as if its weights were others than expected."""
    worker.WEIGHTS_SHA256 = "0" * 64  # type: ignore[misc]
    return worker.embed(texts, is_query)
