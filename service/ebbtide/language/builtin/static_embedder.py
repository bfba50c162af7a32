"""The built-in embedder: the mean of static subword vectors (wordllama, English).

The model is English. A text that reads as Chinese, or whose letters are mostly not Latin, gets no vector. Texts are
embedded one by one without padding, so a vector does not depend on the other texts of a call. The weights are part of
an optional package, which is loaded with the first text; nothing is downloaded.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebbtide.language.builtin.scripts import has_word, is_dense
from ebbtide.language.embedding import BUILTIN_NAME, has_builtin
from ebbtide.language.port import ModelState, ModelUnavailable

Vector = NDArray[np.float32]

DIMENSION = 256

MAX_CHARS = 4000
"""Characters that are embedded. Further ones hardly change the mean, but cost as much."""

BATCH_CHARS = 20_000
"""Characters embedded in one batch, about ten milliseconds of work. Other tasks run between batches."""

_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_LETTER = re.compile(r"[^\W\d_]")


class StaticEmbedder:
    """Embed English texts on the daemon's threads."""

    def __init__(self, pool: Executor, yield_to_requests: Callable[[], None] = lambda: None) -> None:
        """Run on `pool`. `yield_to_requests` is called between two texts and may sleep."""
        self.model = f"builtin:{BUILTIN_NAME}"
        self.dimension: int | None = DIMENSION
        self._pool = pool
        self._yield_to_requests = yield_to_requests
        self._loading = threading.Lock()
        self._loaded: tuple[Any, Vector] | None = None
        self._failure = ""

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[Vector | None]:
        """Return the mean vector of the subwords of each text, or None if it is not English."""
        found: list[Vector | None] = []
        for some in _batches(texts):
            work = partial(self._embed, some, is_query=is_query)
            found += await asyncio.get_running_loop().run_in_executor(self._pool, work)
        return found

    async def state(self) -> ModelState:
        """Return whether the extra is installed and has loaded without error so far."""
        detail = self._failure or ("" if has_builtin() else _missing())
        return ModelState("builtin", BUILTIN_NAME, not detail, detail)

    async def close(self) -> None:
        """Do nothing: the daemon owns the pool."""

    def _embed(self, texts: Sequence[str], *, is_query: bool) -> list[Vector | None]:
        # Texts in other languages need no model.
        if not any(map(reads_as_english, texts)):
            return [None] * len(texts)
        tokenizer, table = self._load()
        found: list[Vector | None] = []
        for text in texts:
            if not is_query:
                self._yield_to_requests()
            found.append(_mean(text[:MAX_CHARS], tokenizer, table) if reads_as_english(text) else None)
        return found

    def _load(self) -> tuple[Any, Vector]:
        """Return the tokenizer and the vectors, loaded once. A failure is not retried."""
        with self._loading:
            if self._loaded is None and not self._failure:
                try:
                    self._loaded = load_wordllama()
                except ModuleNotFoundError as error:
                    self._failure = _missing() if error.name == "wordllama" else _broken(error)
                except Exception as error:  # A third-party package may raise anything.
                    self._failure = _broken(error)
            if self._loaded is None:
                raise ModelUnavailable(self._failure)
            return self._loaded


def reads_as_english(text: str) -> bool:
    """Return whether the English model may be used on a text: most of its letters are Latin."""
    text = text[:MAX_CHARS]
    if text.isascii():
        return has_word(text)
    if is_dense(text) or not has_word(text):
        return False
    return 2 * len(_LATIN.findall(text)) >= len(_LETTER.findall(text))


def load_wordllama() -> tuple[Any, Vector]:
    """Load the tokenizer and the vectors from the package."""
    with _preserved_logging():
        import wordllama

        # Without this folder the package would look for its tokenizer on the network.
        folder = Path(wordllama.__file__).parent
        model = wordllama.WordLlama.load(dim=DIMENSION, cache_dir=folder, disable_download=True)
    # The tokenizer would cache the last 10 000 texts, 42 MB, although texts rarely repeat.
    resize_cache = getattr(model.tokenizer.model, "_resize_cache", None)
    if resize_cache is not None:
        resize_cache(0)
    return model.tokenizer, np.asarray(model.embedding, dtype=np.float32)


def _mean(text: str, tokenizer: Any, table: Vector) -> Vector | None:
    # The tokenizer rejects lone surrogates; they become question marks.
    whole = text.encode("utf-8", "replace").decode("utf-8")
    pieces = tokenizer.encode(whole, add_special_tokens=False).ids
    if not pieces:
        return None
    total = table[pieces].sum(axis=0, dtype=np.float64)
    length = float(np.linalg.norm(total))
    return (total / length).astype(np.float32) if length > 0 else None


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the texts in batches."""
    first, chars = 0, 0
    for index, text in enumerate(texts):
        chars += min(len(text), MAX_CHARS) + 100
        if chars >= BATCH_CHARS:
            yield texts[first : index + 1]
            first, chars = index + 1, 0
    if first < len(texts):
        yield texts[first:]


@contextmanager
def _preserved_logging() -> Iterator[None]:
    """Restore the process's logging configuration, which the package changes on import."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        for handler in [h for h in root.handlers if h not in handlers]:
            root.removeHandler(handler)
        root.setLevel(level)


def _missing() -> str:
    return "The built-in embedder is not installed. Install it with: pip install 'ebbtide[embeddings]'"


def _broken(error: Exception) -> str:
    return f"the built-in embedder cannot be loaded ({type(error).__name__})"
