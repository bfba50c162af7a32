"""A server in a process of its own, and JSON requests to it on connections that stay open."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0


def free_port() -> int:
    """Return a port of the loopback interface that is free now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class Server:
    """A process that serves HTTP on a port."""

    def __init__(
        self, command: Sequence[str], port: int, ready: str, log: Path, environment: Mapping[str, str]
    ) -> None:
        """Start it, and wait until `ready` answers with status 200."""
        self.port = port
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=dict(environment)
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._is_ready(ready):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"the server did not start: {log.read_text()[-2000:]}")
            time.sleep(0.01)

    def _is_ready(self, path: str) -> bool:
        try:
            Connection(self.port).ask("GET", path)
        except (OSError, RuntimeError, http.client.HTTPException):
            return False
        return True

    def stop(self) -> None:
        """Ask the process to end, and wait for it."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


class ServedMemory:
    """A memory whose server runs on a folder. A subclass starts it and returns clients."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._server: Server | None = None

    @property
    def port(self) -> int:
        """The port of the running server."""
        assert self._server is not None
        return self._server.port

    def serve(self, port: int, ready: str, program: str, *arguments: str, **environment: str) -> None:
        """Start a program of this environment, and wait until the path `ready` answers with status 200."""
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [str(Path(sys.executable).with_name(program)), *arguments]
        log = self.folder.with_suffix(".log")  # outside, because the size of the folder is measured
        self._server = Server(command, port, ready, log, {**os.environ, **environment})

    def settle(self) -> None:
        """Nothing is processed later."""

    def stop(self) -> None:
        """Stop the server."""
        if self._server is not None:
            self._server.stop()


class Connection:
    """One HTTP connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._connection.connect()
        assert self._connection.sock is not None
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the decoded response. Raise RuntimeError unless the status is a success."""
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        self._connection.request(method, path, content, {"content-type": "application/json"})
        response = self._connection.getresponse()
        answer = response.read()
        if response.status >= 300:
            raise RuntimeError(f"{method} {path}: {response.status} {answer[:300]!r}")
        try:
            return json.loads(answer)
        except ValueError:
            return None
