"""mcp-memory-service: its storage on sqlite-vec, in the process of its caller.

Its own embedders download weights or need a server. It falls back to hashes of the texts, which find nothing; the
vectors of the other memories replace them, padded with zeros.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.memories.embedder import spoken, vectors_of


class Embedding:
    """The embedder, in the form that the storage expects."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension

    def encode(self, texts: Sequence[str], **_: Any) -> Any:
        """Return the vectors of texts as an array."""
        import numpy as np

        vectors = np.array(vectors_of(texts), dtype=np.float32)
        return np.pad(vectors, ((0, 0), (0, self._dimension - vectors.shape[1])))


class Memory:
    """One storage on an event loop of its own. All clients share it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._storage: Any = None

    def start(self) -> None:
        """Open the storage."""
        self._folder.mkdir(parents=True, exist_ok=True)
        os.environ |= {
            "MCP_MEMORY_ALLOW_HASH_EMBEDDINGS": "1",
            "MCP_MEMORY_BASE_DIR": str(self._folder / "base"),
            "HF_HUB_OFFLINE": "1",
        }
        from mcp_memory_service.storage.sqlite_vec import SqliteVecMemoryStorage

        self._thread.start()
        self._storage = SqliteVecMemoryStorage(str(self._folder / "talk.db"))
        self.run(self._storage.initialize())
        self._storage.embedding_model = Embedding(self._storage.embedding_dimension)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the storage's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def client(self) -> _Client:
        """Return the storage."""
        return _Client(self, self._storage)

    def settle(self) -> None:
        """Nothing is processed later."""

    def stop(self) -> None:
        """Close the storage."""
        if self._storage is not None:
            self.run(self._storage.close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()


class _Client:
    def __init__(self, memory: Memory, storage: Any) -> None:
        self._memory = memory
        self._storage = storage

    def add(self, turn: dict[str, Any]) -> None:
        from mcp_memory_service.models.memory import Memory as Stored

        text = spoken(turn)
        key = hashlib.sha256(text.encode()).hexdigest()
        stored = Stored(content=text, content_hash=key, metadata={"turn": turn["id"]})
        self._memory.run(self._storage.store(stored, skip_semantic_dedup=True))

    def find(self, question: str, count: int) -> list[str]:
        found = self._memory.run(self._storage.retrieve(question, n_results=count))
        return [one.memory.metadata["turn"] for one in found]
