"""The REST server: it binds its port before anything else is opened, and stops when the daemon does."""

from __future__ import annotations

import asyncio
import contextlib
import logging
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
"""The kernel's buffer for responses; enough for 5 MB per second at a latency of 50 ms."""

IDLE_S = 75
"""How long an idle connection stays open."""


class _Uvicorn(uvicorn.Server):
    """uvicorn with our listener. It leaves signals to the daemon: the original re-raises SIGTERM."""

    def __init__(self, config: uvicorn.Config, listen: Callable[[_Uvicorn], Listener]) -> None:
        super().__init__(config)
        self._listen = listen

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections."""
        # uvicorn only closes it and waits for that.
        listener: Any = self._listen(self)
        self.servers = [listener]
        self.started = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def bind(settings: ServerSettings) -> socket.socket:
    """Return a listening socket at the configured address."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    bound = socket.create_server((settings.host, settings.rest_port), family=family, backlog=BACKLOG)
    # Head and body of an answer go out one after the other: the second would wait 40 ms for the first to be
    # acknowledged. uvloop sees to that by itself; asyncio does not, for a socket that is handed to it.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # Unread responses use kernel memory too, by default up to 4 MiB each.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    return bound


def url_of(settings: ServerSettings, bound: socket.socket, *, is_secure: bool) -> str:
    """Return the address of a listening socket."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{'https' if is_secure else 'http'}://{host}:{bound.getsockname()[1]}"


class RestServer:
    """Binds the port on construction, so that a port in use is found before anything is opened."""

    def __init__(
        self,
        settings: ServerSettings,
        renewal: Renewal | None = None,
        max_connections: int | None = None,
        bound: socket.socket | None = None,
    ) -> None:
        """Bind the port, or use the socket `bound`, which workers inherit."""
        self._settings = settings
        self._max_connections = max_connections or settings.max_connections
        self._renewal = renewal
        self._is_shared = bound is not None
        self._socket = bound or bind(settings)
        self._uvicorn: _Uvicorn | None = None
        self._connections: Connections | None = None

    @property
    def url(self) -> str:
        """The address that it listens on."""
        return url_of(self._settings, self._socket, is_secure=self._renewal is not None)

    async def serve(self, service: Service) -> None:
        """Serve until stopped; running requests get the grace period."""
        renewal = self._renewal
        self._connections = connections = Connections(self._settings, service.metrics, self._max_connections)
        config = uvicorn.Config(
            create_app(service),
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            # By default uvicorn trusts forwarding headers of clients on this machine.
            proxy_headers=False,
            lifespan="off",
            ws="none",
            loop="none",
            timeout_graceful_shutdown=max(1, round(self._settings.shutdown_grace_s)),
            timeout_keep_alive=IDLE_S,
        )
        config.load()
        logging.getLogger("uvicorn.error").addFilter(_is_not_cut_off)

        def listen(server: _Uvicorn) -> Listener:
            make = partial(Connection, connections, config, server.server_state, {})
            context = None if renewal is None else lambda: renewal.current.context
            timeout_s = self._settings.header_timeout_ms / 1000
            return Listener(self._socket, make, connections, context, timeout_s, is_shared=self._is_shared)

        self._uvicorn = _Uvicorn(config, listen)
        sweeping = in_background(self._connections.sweep())
        try:
            await self._uvicorn.serve()
        finally:
            sweeping.cancel()

    async def started(self, serving: asyncio.Task[None]) -> None:
        """Wait until connections are accepted, or serving has failed."""
        # uvicorn reports its start by a flag only.
        while not serving.done() and not (self._uvicorn and self._uvicorn.started):  # noqa: ASYNC110
            await asyncio.sleep(0.005)

    def stop(self) -> None:
        """Accept no more connections; finish the running requests."""
        if self._uvicorn is None:
            return
        self._uvicorn.should_exit = True
        if self._connections is not None:
            self._connections.stop()

    def release(self) -> None:
        """Release the port. Idempotent."""
        self._socket.close()


def _is_not_cut_off(record: logging.LogRecord) -> bool:
    """Drop the error about a response that ends early: `forwarding.py` logs why."""
    return record.msg != "ASGI callable returned without completing response."
