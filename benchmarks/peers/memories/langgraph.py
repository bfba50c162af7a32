"""LangGraph's SqliteStore with vectors, in the process of its caller."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from benchmarks.peers.memories.embedder import DIMENSION, spoken, vectors_of

NAMESPACE = ("talk",)


class Memory:
    """A store in a file. All clients share it, because it has one connection and a lock."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "talk.db"
        self._opened = contextlib.ExitStack()
        self._store: Any = None

    def start(self) -> None:
        """Open the store."""
        from langgraph.store.sqlite import SqliteStore

        index: Any = {"dims": DIMENSION, "embed": vectors_of, "fields": ["text"]}
        self._store = self._opened.enter_context(SqliteStore.from_conn_string(str(self._file), index=index))
        self._store.setup()

    def client(self) -> _Client:
        """Return the store."""
        return _Client(self._store)

    def settle(self) -> None:
        """Nothing is processed later."""

    def stop(self) -> None:
        """Close the store."""
        self._opened.close()


class _Client:
    def __init__(self, store: Any) -> None:
        self._store = store

    def add(self, turn: dict[str, Any]) -> None:
        self._store.put(NAMESPACE, turn["id"], {"text": spoken(turn)})

    def find(self, question: str, count: int) -> list[str]:
        return [item.key for item in self._store.search(NAMESPACE, query=question, limit=count)]
