"""The built-in embedder: one vector for each piece of a word, and their mean for a text (wordllama, English).

The rules guarded here: an English model is never used silently on another language, so a text that reads as
Chinese, or whose letters are mostly not Latin, gets no vector; and a text has the same vector whatever stands
beside it in a call, which is why texts are taken one by one and not padded to each other.

The weights lie inside the package of an optional extra; it is loaded at the first text, and nothing is ever
downloaded. Deliberately not here: a difference between questions and texts, which this model does not make.
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
"""What a text says after this many characters hardly moves a mean any more, but costs as much as what went before."""

BATCH_CHARS = 20_000
"""Characters embedded in one go: about ten milliseconds of work, after which others have their turn."""

_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_LETTER = re.compile(r"[^\W\d_]")


class StaticEmbedder:
    """Embeds English on the daemon's own threads."""

    def __init__(self, pool: Executor, yield_to_requests: Callable[[], None] = lambda: None) -> None:
        """Work on `pool`; `yield_to_requests` is called between two texts, and may rest."""
        self.model = f"builtin:{BUILTIN_NAME}"
        self.dimension: int | None = DIMENSION
        self._pool = pool
        self._yield_to_requests = yield_to_requests
        self._loading = threading.Lock()
        self._loaded: tuple[Any, Vector] | None = None
        self._failure = ""

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[Vector | None]:
        """Answer the mean of what the pieces of each text mean; None where it is not English."""
        found: list[Vector | None] = []
        for some in _batches(texts):
            work = partial(self._embed, some, is_query=is_query)
            found += await asyncio.get_running_loop().run_in_executor(self._pool, work)
        return found

    async def state(self) -> ModelState:
        """Tell whether the extra is installed and could be loaded so far."""
        detail = self._failure or ("" if has_builtin() else _missing())
        return ModelState("builtin", BUILTIN_NAME, not detail, detail)

    async def close(self) -> None:
        """Nothing to let go of: the pool is the daemon's."""

    def _embed(self, texts: Sequence[str], *, is_query: bool) -> list[Vector | None]:
        # What it has nothing to say about it says without being loaded.
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
        """Tokenizer and vectors, loaded once. What fails once is not tried again: it would fail each time."""
        with self._loading:
            if self._loaded is None and not self._failure:
                try:
                    self._loaded = load_wordllama()
                except ModuleNotFoundError as error:
                    self._failure = _missing() if error.name == "wordllama" else _broken(error)
                except Exception as error:  # Whatever a foreign package does when it is loaded.
                    self._failure = _broken(error)
            if self._loaded is None:
                raise ModelUnavailable(self._failure)
            return self._loaded


def reads_as_english(text: str) -> bool:
    """Tell whether an English model may be used on a text: its letters, if it has any, are mostly Latin."""
    text = text[:MAX_CHARS]
    if text.isascii():
        return has_word(text)
    if is_dense(text) or not has_word(text):
        return False
    return 2 * len(_LATIN.findall(text)) >= len(_LETTER.findall(text))


def load_wordllama() -> tuple[Any, Vector]:
    """Load the tokenizer and the vectors that come with the package."""
    with _preserved_logging():
        import wordllama

        # Without its own folder named here, the package would look for its tokenizer on the net.
        folder = Path(wordllama.__file__).parent
        model = wordllama.WordLlama.load(dim=DIMENSION, cache_dir=folder, disable_download=True)
    # The tokenizer keeps the last 10 000 texts, whole: 42 MB for nothing, as hardly a text comes twice.
    resize_cache = getattr(model.tokenizer.model, "_resize_cache", None)
    if resize_cache is not None:
        resize_cache(0)
    return model.tokenizer, np.asarray(model.embedding, dtype=np.float32)


def _mean(text: str, tokenizer: Any, table: Vector) -> Vector | None:
    # Half of a surrogate pair is no text to the tokenizer; it comes as a question mark.
    whole = text.encode("utf-8", "replace").decode("utf-8")
    pieces = tokenizer.encode(whole, add_special_tokens=False).ids
    if not pieces:
        return None
    total = table[pieces].sum(axis=0, dtype=np.float64)
    length = float(np.linalg.norm(total))
    return (total / length).astype(np.float32) if length > 0 else None


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """The texts in groups that are embedded in one go each."""
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
    """The package turns on the log of the whole process when it is imported; that is undone."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        for handler in [h for h in root.handlers if h not in handlers]:
            root.removeHandler(handler)
        root.setLevel(level)


def _missing() -> str:
    return "the built-in embedder is not installed; install it with: pip install 'ebbtide[embeddings]'"


def _broken(error: Exception) -> str:
    return f"the built-in embedder cannot be loaded ({type(error).__name__})"
