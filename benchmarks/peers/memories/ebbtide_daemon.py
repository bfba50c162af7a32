"""Ebbtide: a daemon over REST, with its defaults. A question requests memories with citations."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from benchmarks.peers.memories.http import Connection, Server, free_port

AGENT = "/v1/agents/talk"
QUEUE = 100_000


class Memory:
    """A daemon on a data directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server: Server | None = None

    def start(self) -> None:
        """Start the daemon."""
        self._folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        places = ["--data-dir", str(self._folder / "data"), "--rest-port", str(port), "--grpc-port", "0"]
        command = [str(Path(sys.executable).with_name("ebbtide")), "serve", *places]
        self._server = Server(command, port, "/readyz", self._folder / "log", os.environ)

    def client(self) -> _Client:
        """Return a connection."""
        assert self._server is not None
        return _Client(self._server.port)

    def settle(self) -> None:
        """Wait for digests, passes and vectors."""
        assert self._server is not None
        connection = Connection(self._server.port)
        asked = {"timeout_ms": 60_000, "passes": True, "vectors": True}
        for _ in range(60):
            state = connection.ask("POST", f"{AGENT}/flush", asked)
            if state["digested"] and state["passes_done"] and not state["unembedded_messages"]:
                return
        raise RuntimeError(f"not settled: {state}")

    def stop(self) -> None:
        """Stop the daemon."""
        if self._server is not None:
            self._server.stop()


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
