"""The REST server's life inside the daemon: bound before anything else, stopped when the daemon says so."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn

from ebbtide.rest.app import create_app
from ebbtide.settings import ServerSettings
from ebbtide.verbs.service import Service

BACKLOG = 512


class _Uvicorn(uvicorn.Server):
    """uvicorn that leaves signals to the daemon: the stock one re-raises SIGTERM when it is through."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class RestServer:
    """Holds the port from construction on, so that a taken one is found before anything is opened."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        self._socket = socket.create_server(
            (settings.host, settings.rest_port), family=family, backlog=BACKLOG
        )
        self._uvicorn: _Uvicorn | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        host = f"[{self._settings.host}]" if ":" in self._settings.host else self._settings.host
        return f"http://{host}:{self._socket.getsockname()[1]}"

    async def serve(self, service: Service) -> None:
        """Serve until stopped; requests in flight get the grace time."""
        config = uvicorn.Config(
            create_app(service),
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            lifespan="off",
            loop="none",
            timeout_graceful_shutdown=max(1, round(self._settings.shutdown_grace_s)),
            timeout_keep_alive=75,
        )
        self._uvicorn = _Uvicorn(config)
        await self._uvicorn.serve(sockets=[self._socket])

    async def started(self, serving: asyncio.Task[None]) -> None:
        """Wait until connections are taken, or serving has failed."""
        # uvicorn tells of its start by a flag only.
        while not serving.done() and not (self._uvicorn and self._uvicorn.started):  # noqa: ASYNC110
            await asyncio.sleep(0.005)

    def stop(self) -> None:
        """Take no more connections; finish what is in flight."""
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True

    def release(self) -> None:
        """Let go of the port. Idempotent."""
        self._socket.close()
