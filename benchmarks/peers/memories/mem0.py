"""mem0 without inference: each turn is stored unchanged, in the caller's process, with vectors in Qdrant on disk."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from benchmarks.peers.memories.embedder import DIMENSION, spoken, vectors_of

USER = "talk"
PROVIDER = "lmstudio"
"""A provider of mem0 whose embedder is replaced by `Embedding`: mem0 accepts only names that it knows."""


class Embedding:
    """The embedder, in the form that mem0 expects."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """Return the vector of a text."""
        return vectors_of([text])[0]

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        """Return the vectors of texts."""
        return vectors_of(texts)


class Memory:
    """One instance. All clients share it, one call at a time, because its stores accept one thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._memory: Any = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Open the stores."""
        self._folder.mkdir(parents=True, exist_ok=True)
        os.environ |= {
            "MEM0_TELEMETRY": "False",
            "MEM0_DIR": str(self._folder / "mem0"),
            "OPENAI_API_KEY": "none",
        }
        from mem0 import Memory as Mem0
        from mem0.utils.factory import EmbedderFactory

        EmbedderFactory.provider_to_class[PROVIDER] = f"{__name__}.Embedding"
        place = {"path": str(self._folder / "qdrant"), "on_disk": True, "embedding_model_dims": DIMENSION}
        self._memory = Mem0.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": place},
                "embedder": {"provider": PROVIDER, "config": {"embedding_dims": DIMENSION}},
                "history_db_path": str(self._folder / "history.db"),
            }
        )

    def client(self) -> _Client:
        """Return the instance."""
        return _Client(self._memory, self._lock)

    def settle(self) -> None:
        """Nothing is processed later."""

    def stop(self) -> None:
        """Close the stores."""
        if self._memory is not None:
            self._memory.vector_store.client.close()
            self._memory.close()


class _Client:
    def __init__(self, memory: Any, lock: threading.Lock) -> None:
        self._memory = memory
        self._lock = lock

    def add(self, turn: dict[str, Any]) -> None:
        with self._lock:
            self._memory.add(spoken(turn), user_id=USER, metadata={"turn": turn["id"]}, infer=False)

    def find(self, question: str, count: int) -> list[str]:
        with self._lock:
            found = self._memory.search(question, top_k=count, filters={"user_id": USER}, threshold=0.0)
        return [one["metadata"]["turn"] for one in found["results"]]
