"""Ebbtide: a daemon over REST, with its defaults. A question requests memories with citations."""

from __future__ import annotations

from typing import Any

from benchmarks.peers.memories.http import Connection, ServedMemory, free_port

AGENT = "/v1/agents/talk"
QUEUE = 100_000


class Memory(ServedMemory):
    """A daemon on a data directory."""

    def start(self) -> None:
        """Start the daemon."""
        port = free_port()
        places = ["--data-dir", str(self.folder / "data"), "--rest-port", str(port), "--grpc-port", "0"]
        self.serve(port, "/readyz", "ebbtide", "serve", *places)

    def client(self) -> _Client:
        """Return a client with a connection of its own."""
        return _Client(self.port)

    def settle(self) -> None:
        """Wait for digests, passes and vectors."""
        connection = Connection(self.port)
        body = {"timeout_ms": 60_000, "passes": True, "vectors": True}
        for _ in range(60):
            state = connection.ask("POST", f"{AGENT}/flush", body)
            if state["digested"] and state["passes_done"] and not state["unembedded_messages"]:
                return
        raise RuntimeError(f"not settled: {state}")


class _Client:
    def __init__(self, port: int) -> None:
        self._connection = Connection(port)
        self._connection.ask("PUT", AGENT, {"max_queue_size": QUEUE})

    def add(self, turn: dict[str, Any]) -> None:
        message = {"role": "user", "content": turn["text"], "id": turn["id"], "speaker": turn["speaker"]}
        if turn["time_ms"] is not None:
            message["timestamp"] = turn["time_ms"]
        body = {"messages": [message], "conversation_id": turn["session"]}
        self._connection.ask("POST", f"{AGENT}/remember", body)

    def find(self, question: str, count: int) -> list[str]:
        body = {"query": question, "max_results": count, "citations": True}
        memories = self._connection.ask("POST", f"{AGENT}/recall", body)["memories"]
        return [source["message_id"] for memory in memories for source in memory["sources"]]
