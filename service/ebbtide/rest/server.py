"""The REST server's life inside the daemon: bound before anything else, stopped when the daemon says so."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ebbtide.access.renewal import Renewal
from ebbtide.errors import InvalidRequest
from ebbtide.rest.app import create_app
from ebbtide.rest.problems import RESOURCE_POLICY, problem
from ebbtide.settings import ServerSettings
from ebbtide.telemetry import in_background
from ebbtide.verbs.service import Service

BACKLOG = 512

FAREWELL_S = 0.5
"""How long a connection that was closed may take to say farewell in TLS, once everything is sent: some never do."""

MOST_HEAD_BYTES = 256 << 10
"""Largest request line and headers; a client that sends more is cut off."""


class _Uvicorn(uvicorn.Server):
    """uvicorn that leaves signals to the daemon: the stock one re-raises SIGTERM when it is through."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Protocol(HttpToolsProtocol):
    """HTTP with a bound on a request's head, and our own body for what is no HTTP at all."""

    _head_bytes = 0
    _is_in_head = True

    def on_message_begin(self) -> None:
        self._is_in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._head_bytes = 0
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_in_head and not self.transport.is_closing():
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES:
                self.send_400_response("the head of the request is too large")

    def send_400_response(self, msg: str) -> None:
        error = InvalidRequest(f"this is no request: {msg}", reason="MALFORMED_REQUEST")
        body = bytes(problem(error).body)
        head = (
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
            f"{RESOURCE_POLICY[0].lower()}: {RESOURCE_POLICY[1]}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


class RestServer:
    """Holds the port from construction on, so that a taken one is found before anything is opened."""

    def __init__(self, settings: ServerSettings, renewal: Renewal | None = None) -> None:
        self._settings = settings
        self._renewal = renewal
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        self._socket = socket.create_server(
            (settings.host, settings.rest_port), family=family, backlog=BACKLOG
        )
        # Head and body of an answer go out one after the other: the second would wait 40 ms for the first to be
        # acknowledged. uvloop sees to that by itself; asyncio does not, for a socket that is handed to it.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._uvicorn: _Uvicorn | None = None
        self._parting: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        host = f"[{self._settings.host}]" if ":" in self._settings.host else self._settings.host
        scheme = "http" if self._renewal is None else "https"
        return f"{scheme}://{host}:{self._socket.getsockname()[1]}"

    async def serve(self, service: Service) -> None:
        """Serve until stopped; requests in flight get the grace time."""
        config = uvicorn.Config(
            create_app(service),
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            # By default uvicorn believes whoever calls from this machine where it comes from.
            proxy_headers=False,
            lifespan="off",
            loop="none",
            http=_Protocol,
            timeout_graceful_shutdown=max(1, round(self._settings.shutdown_grace_s)),
            timeout_keep_alive=75,
        )
        config.load()
        if self._renewal is not None:
            config.ssl = self._renewal.context
        self._uvicorn = _Uvicorn(config)
        try:
            await self._uvicorn.serve(sockets=[self._socket])
        finally:
            if self._parting is not None:
                self._parting.cancel()

    async def _part(self, server: _Uvicorn) -> None:
        """Break off connections that were closed, sent everything, and linger: a stop does not wait for their peers."""
        lingering: dict[Any, float] = {}
        while True:
            await asyncio.sleep(FAREWELL_S / 2)
            now_s = asyncio.get_running_loop().time()
            found: dict[Any, float] = {}
            for connection in list(server.server_state.connections):
                transport = connection.transport
                if transport.is_closing() and not transport.get_write_buffer_size():
                    found[connection] = lingering.get(connection, now_s)
                    if now_s - found[connection] >= FAREWELL_S:
                        transport.abort()
            lingering = found

    async def started(self, serving: asyncio.Task[None]) -> None:
        """Wait until connections are taken, or serving has failed."""
        # uvicorn tells of its start by a flag only.
        while not serving.done() and not (self._uvicorn and self._uvicorn.started):  # noqa: ASYNC110
            await asyncio.sleep(0.005)

    def stop(self) -> None:
        """Take no more connections; finish what is in flight."""
        if self._uvicorn is None:
            return
        self._uvicorn.should_exit = True
        if self._renewal is not None and self._parting is None:
            # Only TLS has a farewell to wait for.
            self._parting = in_background(self._part(self._uvicorn))

    def release(self) -> None:
        """Let go of the port. Idempotent."""
        self._socket.close()
