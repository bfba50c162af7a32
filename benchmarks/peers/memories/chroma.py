"""Chroma over HTTP, with vectors that its client computes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from benchmarks.peers.memories.embedder import spoken, vectors_of
from benchmarks.peers.memories.http import Server, free_port


class Memory:
    """A server on a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server: Server | None = None

    def start(self) -> None:
        """Start the server and load the embedder."""
        self._folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        command = [str(Path(sys.executable).with_name("chroma")), "run", "--port", str(port)]
        command += ["--host", "127.0.0.1", "--path", str(self._folder / "data")]
        environment = {**os.environ, "ANONYMIZED_TELEMETRY": "False"}
        self._server = Server(command, port, "/api/v2/heartbeat", self._folder / "log", environment)

    def client(self) -> _Client:
        """Return a client of its own."""
        assert self._server is not None
        return _Client(self._server.port)

    def settle(self) -> None:
        """Nothing is processed later."""

    def stop(self) -> None:
        """Stop the server."""
        if self._server is not None:
            self._server.stop()


class _Client:
    def __init__(self, port: int) -> None:
        import chromadb
        from chromadb.config import Settings

        client = chromadb.HttpClient(
            host="127.0.0.1", port=port, settings=Settings(anonymized_telemetry=False)
        )
        self._talk = client.get_or_create_collection("talk", embedding_function=None)

    def add(self, turn: dict[str, Any]) -> None:
        text = spoken(turn)
        self._talk.add(ids=[turn["id"]], documents=[text], embeddings=vectors_of([text]))

    def find(self, question: str, count: int) -> list[str]:
        found = self._talk.query(query_embeddings=vectors_of([question]), n_results=count)
        ids: list[str] = found["ids"][0]
        return ids
