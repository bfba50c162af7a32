"""Chroma over HTTP, with vectors that its client computes."""

from __future__ import annotations

from typing import Any

from benchmarks.peers.memories.embedder import spoken, vectors_of
from benchmarks.peers.memories.http import ServedMemory, free_port


class Memory(ServedMemory):
    """A server on a folder."""

    def start(self) -> None:
        """Start the server."""
        port = free_port()
        place = ["--host", "127.0.0.1", "--port", str(port), "--path", str(self.folder / "data")]
        self.serve(port, "/api/v2/heartbeat", "chroma", "run", *place, ANONYMIZED_TELEMETRY="False")

    def client(self) -> _Client:
        """Return a client with a connection of its own."""
        return _Client(self.port)


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
