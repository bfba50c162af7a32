"""A lightweight HTTP client, so that a benchmark never measures its client.

`KeepAlive` sends one request after the other on one connection. The load with many concurrent connections is in
load.py, in a process of its own.
"""

from __future__ import annotations

import json
import socket
import time
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 120.0
HEAD_END = b"\r\n\r\n"


def request_bytes(
    method: str, host: str, path: str, body: bytes = b"", key: str = "", accept: str = ""
) -> bytes:
    """Return the bytes of an HTTP/1.1 request, with an API key and an Accept header if there are any."""
    head = f"{method} {path} HTTP/1.1\r\nhost: {host}\r\n"
    if accept:
        head += f"accept: {accept}\r\n"
    if key:
        head += f"authorization: Bearer {key}\r\n"
    if body:
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def answer_size(head: bytes) -> tuple[int, int]:
    """Return the status and the body length from the head of a response."""
    lines = head.lower().split(b"\r\n")
    lengths = (line.partition(b":")[2] for line in lines if line.startswith(b"content-length:"))
    return int(lines[0].split()[1]), int(next(lengths, b"0"))


class KeepAlive:
    """One connection, one request at a time."""

    def __init__(self, url: str, key: str = "", accept: str = "") -> None:
        place = urlsplit(url)
        assert place.hostname is not None and place.port is not None, "a URL of a daemon names a port"
        self._host, self._key, self._accept = place.netloc, key, accept
        self._socket = socket.create_connection((place.hostname, place.port), TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> KeepAlive:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, method: str, path: str, body: Any = None) -> tuple[bytes, float]:
        """Return the body of the response and its latency in ms. Raise RuntimeError unless the status is a success."""
        encoded = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        request = request_bytes(method, self._host, path, encoded, self._key, self._accept)
        begun = time.perf_counter_ns()
        self._socket.sendall(request)
        status, answer = self._read()
        took_ms = (time.perf_counter_ns() - begun) / 1e6
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {answer[:300]!r}")
        return answer, took_ms

    def ms(self, method: str, path: str, body: Any = None) -> float:
        """Return the latency of a response in ms."""
        return self.ask(method, path, body)[1]

    def told(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Return the decoded response."""
        answer: dict[str, Any] = json.loads(self.ask(method, path, body)[0])
        return answer

    def _read(self) -> tuple[int, bytes]:
        received = b""
        while HEAD_END not in received:
            received += self._receive()
        head, _, body = received.partition(HEAD_END)
        status, length = answer_size(head)
        while len(body) < length:
            body += self._receive()
        return status, body

    def _receive(self) -> bytes:
        part = self._socket.recv(1 << 16)
        if not part:
            raise RuntimeError("the connection was closed")
        return part
