"""SQLite FTS5: BM25 over the turns in one table, with a commit per turn."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

from benchmarks.peers.memories.embedder import spoken

_WORD = re.compile(r"\w+")


class Memory:
    """A database file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "talk.db"

    def start(self) -> None:
        """Create the table if it does not exist."""
        with sqlite3.connect(self._file) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(
                "CREATE VIRTUAL TABLE IF NOT EXISTS talk USING fts5(id UNINDEXED, text, tokenize = 'porter')"
            )

    def client(self) -> _Client:
        """Return a connection."""
        return _Client(self._file)

    def settle(self) -> None:
        """Nothing is processed later."""

    def stop(self) -> None:
        """Nothing runs."""


class _Client:
    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(file, check_same_thread=False, timeout=60)

    def add(self, turn: dict[str, Any]) -> None:
        with self._connection:
            self._connection.execute("INSERT INTO talk VALUES (?, ?)", (turn["id"], spoken(turn)))

    def find(self, question: str, count: int) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in _WORD.findall(question))
        rows = self._connection.execute(
            "SELECT id FROM talk WHERE talk MATCH ? ORDER BY rank LIMIT ?", (words, count)
        )
        return [row[0] for row in rows]
