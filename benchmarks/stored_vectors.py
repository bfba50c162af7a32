"""Vectors of texts, computed by the product's embedders in this process and kept on disk.

Training and evaluation need the same vectors many times, and the multilingual model takes a minute for a conversation
of 2 000 turns. Vectors are kept as halves, as the product stores them. Several processes may fill one folder.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lmdb
import numpy as np
from numpy.typing import NDArray

from ebbtide.language.builtin.scripts import has_word
from ebbtide.language.builtin.static_embedder import StaticEmbedder
from ebbtide.language.embedding import MULTILINGUAL_NAME
from ebbtide.language.multilingual import worker
from ebbtide.language.multilingual.embedder import KIND, clean, read_reply

Halves = NDArray[np.float16]
Embed = Callable[[str, bool], NDArray[np.float32] | None]

MAX_BYTES = 1 << 30
TEXTS_PER_COMMIT = 16


def _multilingual() -> tuple[str, Embed]:
    def embedded(text: str, is_query: bool) -> NDArray[np.float32] | None:
        return read_reply(worker.embed([clean(text)], is_query), 1)[0] if has_word(text) else None

    return f"{KIND}:{MULTILINGUAL_NAME}", embedded


def _builtin() -> tuple[str, Embed]:
    embedder = StaticEmbedder(ThreadPoolExecutor(1))

    def embedded(text: str, is_query: bool) -> NDArray[np.float32] | None:
        return asyncio.run(embedder.embed([text], is_query=is_query))[0]

    return embedder.model, embedded


EMBEDDERS: dict[str, Callable[[], tuple[str, Embed]]] = {"multilingual": _multilingual, "builtin": _builtin}
"""By the value of `embedding.model`: the name that is stored with vectors, and the function."""


class StoredVectors:
    """The vectors of one embedder, computed when first needed."""

    def __init__(self, folder: Path, embedder: str) -> None:
        """Keep vectors in `folder`. `embedder` is one of `EMBEDDERS`."""
        folder.mkdir(parents=True, exist_ok=True)
        self.model, self._embed = EMBEDDERS[embedder]()
        self._environment = lmdb.open(str(folder), map_size=MAX_BYTES, max_dbs=0)

    def of(self, texts: Sequence[str], *, is_query: bool = False) -> list[Halves | None]:
        """Return the vector of each text, or None if the model does not support it."""
        found: list[Halves | None] = []
        for begin in range(0, len(texts), TEXTS_PER_COMMIT):
            found += self._some(texts[begin : begin + TEXTS_PER_COMMIT], is_query)
        return found

    def _some(self, texts: Sequence[str], is_query: bool) -> list[Halves | None]:
        keys = [
            hashlib.blake2b(f"{self.model}/{is_query}/{text}".encode(), digest_size=16).digest()
            for text in texts
        ]
        with self._environment.begin() as txn:
            kept = [txn.get(key) for key in keys]
        made = {}
        for key, text, known in zip(keys, texts, kept, strict=True):
            if known is None:
                vector = self._embed(text, is_query)
                made[key] = b"" if vector is None else vector.astype(np.float16).tobytes()
        if made:
            with self._environment.begin(write=True) as txn:
                for key, content in made.items():
                    txn.put(key, content)
        contents = [made[key] if known is None else known for key, known in zip(keys, kept, strict=True)]
        return [np.frombuffer(content, dtype=np.float16) if content else None for content in contents]
