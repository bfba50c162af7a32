"""The REST server's life inside the daemon: bound before anything else, stopped when the daemon says so."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import uvicorn

from ebbtide.access.renewal import Renewal
from ebbtide.rest.app import create_app
from ebbtide.rest.connections import Connection, Connections
from ebbtide.rest.listener import Listener
from ebbtide.settings import ServerSettings
from ebbtide.telemetry import in_background
from ebbtide.verbs.service import Service

BACKLOG = 512

SEND_BUFFER_BYTES = 256 << 10
"""What the kernel buffers of a response; enough for 5 MB a second over a connection of 50 ms."""

IDLE_S = 75
"""How long a connection stays open between two requests."""


class _Uvicorn(uvicorn.Server):
    """uvicorn with a listener of ours, which leaves signals to the daemon: the stock one re-raises SIGTERM."""

    def __init__(self, config: uvicorn.Config, listen: Callable[[_Uvicorn], Listener]) -> None:
        super().__init__(config)
        self._listen = listen

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections."""
        # uvicorn only closes it and waits for that.
        listener: Any = self._listen(self)
        self.servers = [listener]
        self.started = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class RestServer:
    """Holds the port from construction on, so that a taken one is found before anything is opened."""

    def __init__(
        self, settings: ServerSettings, renewal: Renewal | None = None, max_connections: int | None = None
    ) -> None:
        self._settings = settings
        self._max_connections = max_connections or settings.max_connections
        self._renewal = renewal
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        self._socket = socket.create_server(
            (settings.host, settings.rest_port), family=family, backlog=BACKLOG
        )
        # Head and body of an answer go out one after the other: the second would wait 40 ms for the first to be
        # acknowledged. uvloop sees to that by itself; asyncio does not, for a socket that is handed to it.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # What the kernel takes of responses that are not read is memory too; by itself it takes up to 4 MiB of each.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        self._uvicorn: _Uvicorn | None = None
        self._connections: Connections | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        host = f"[{self._settings.host}]" if ":" in self._settings.host else self._settings.host
        scheme = "http" if self._renewal is None else "https"
        return f"{scheme}://{host}:{self._socket.getsockname()[1]}"

    async def serve(self, service: Service) -> None:
        """Serve until stopped; requests in flight get the grace time."""
        renewal = self._renewal
        self._connections = connections = Connections(self._settings, service.metrics, self._max_connections)
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
            timeout_graceful_shutdown=max(1, round(self._settings.shutdown_grace_s)),
            timeout_keep_alive=IDLE_S,
        )
        config.load()

        def listen(server: _Uvicorn) -> Listener:
            make = partial(Connection, connections, config, server.server_state, {})
            context = None if renewal is None else lambda: renewal.current.context
            return Listener(self._socket, make, connections, context, self._settings.header_timeout_ms / 1000)

        self._uvicorn = _Uvicorn(config, listen)
        sweeping = in_background(self._connections.sweep())
        try:
            await self._uvicorn.serve()
        finally:
            sweeping.cancel()

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
        if self._connections is not None:
            self._connections.stop()

    def release(self) -> None:
        """Let go of the port. Idempotent."""
        self._socket.close()
