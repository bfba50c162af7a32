"""Malformed requests: they get the usual error body within a bounded time, and affect no other request."""

from __future__ import annotations

import json
import socket

import pytest

from tests.support.process import Daemon


def answer_to(daemon: Daemon, raw: bytes) -> bytes:
    """Return the response to raw bytes, until the daemon closes the connection or stops sending."""
    host, port = daemon.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        try:
            connection.sendall(raw)
        except ConnectionError:
            return b""
        return b"".join(iter(lambda: _received(connection), b""))


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except ConnectionError:
        return b""


def test_malformed_http_gets_the_usual_error_body(daemon: Daemon) -> None:
    """MALFORMED_REQUEST as JSON closes the connection; the next request is served."""
    for raw in (
        b"HELLO\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x00\x01\x02\r\n\r\n",
        b"BREW /pot HTTP/1.1\r\n\r\n",
    ):
        head, _, body = answer_to(daemon, raw).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400")
        error = json.loads(body)["error"]
        assert error["reason"] == "MALFORMED_REQUEST"
        assert error["message"].count("HTTP request") == 1
    assert daemon.client.get("/healthz").status_code == 200


@pytest.mark.parametrize("many", [True, False])
def test_an_endless_head_is_cut_off(daemon: Daemon, many: bool) -> None:
    """A head larger than the limit is refused, in one header or in many; memory does not grow with it."""
    line = b"x" * (1 << 20)
    head = (
        b"".join(b"X%d: %s\r\n" % (n, line[:200]) for n in range(20_000))
        if many
        else b"X: " + line * 4 + b"\r\n"
    )
    answer = answer_to(
        daemon, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + head + b"\r\n"
    )
    assert b"200 OK" not in answer
    assert daemon.client.get("/healthz").status_code == 200


def test_escaped_paths_name_no_agent_twice(daemon: Daemon) -> None:
    """Escapes in the route, escaped slashes and invalid UTF-8 are refused before any agent is created."""
    body = json.dumps({"messages": [{"role": "user", "content": "hello there, old friend"}]}).encode()
    for path in (
        b"/v1/agents/%ff/remember",
        b"/v1/%61gents/%ff/remember",
        b"/v1%2fagents/x/remember",
        b"/v1/agents%2fx%2fremember",
        b"/v1/agents//remember",
        b"/v1/agents/../remember",
        b"/v1/agents/%2e%2e/remember",
    ):
        head = (
            b"POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
        )
        length = b"Content-Length: %d\r\n\r\n" % len(body)
        answer = answer_to(daemon, head % path + length + body)
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["reason"] == "INVALID_AGENT_ID", path
    assert daemon.client.get("/v1/agents").json()["agents"] == []
