"""The listener: accepts connections, counts them at once, and limits the time of their TLS handshakes.

An event loop's own server shows a connection only after its handshake. Half a handshake would then be a connection
that is not counted, so connections are accepted here.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable

from ebbtide.errors import Exhausted
from ebbtide.rest.connections import Connection, Connections, bare_response
from ebbtide.telemetry import get_log, in_background

RETRY_S = 0.5
"""Pause after a failed accept: the system has no file descriptors or memory left."""

ACCEPTED_AT_ONCE = 100
"""Most connections accepted in a row."""


class Listener:
    """Accepts connections from its construction on."""

    def __init__(
        self,
        listening: socket.socket,
        make: Callable[[], Connection],
        connections: Connections,
        context: Callable[[], ssl.SSLContext] | None,
        handshake_timeout_s: float,
        *,
        is_shared: bool = False,
    ) -> None:
        """Listen. Workers that share a socket accept one connection at a time, so that each gets some of a burst."""
        listening.setblocking(False)
        self._socket = listening
        self._make = make
        self._connections = connections
        self._context = context
        self._handshake_timeout_s = handshake_timeout_s
        self._more_at_once = 0 if is_shared else ACCEPTED_AT_ONCE
        self._beginning: set[asyncio.Task[None]] = set()
        self._accepting = in_background(self._accept())

    def close(self) -> None:
        """Accept no more, and end running handshakes. Idempotent."""
        for task in (self._accepting, *self._beginning):
            task.cancel()
        self._socket.close()

    async def wait_closed(self) -> None:
        """Wait until it has stopped."""
        await asyncio.gather(self._accepting, *self._beginning, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(self._socket)
                self._take(client, loop.time())
                # A busy loop takes long to return here, so accept the other waiting connections too.
                with contextlib.suppress(BlockingIOError):
                    for _ in range(self._more_at_once):
                        client, _ = self._socket.accept()
                        self._take(client, loop.time())
            except OSError as error:
                get_log("rest").warning("no connection can be accepted", errno=error.errno)
                await asyncio.sleep(RETRY_S)

    def _take(self, client: socket.socket, now_s: float) -> None:
        """Start a connection, or refuse it if there are too many."""
        connection = self._make()
        if not self._connections.admit(connection, now_s):
            self._turn_away(client)
            return
        task = in_background(self._begin(client, connection))
        connection.drop = task.cancel
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    def _turn_away(self, client: socket.socket) -> None:
        with contextlib.closing(client), contextlib.suppress(OSError):
            client.setblocking(False)
            if self._context is None:
                busy = Exhausted(
                    "Too many connections. Retry later.", reason="SERVER_BUSY", retry_after_s=1.0
                )
                client.send(bare_response("503 Service Unavailable", busy))
                # Closing with unread bytes resets the connection, which could lose the response.
                client.recv(1 << 16)

    async def _begin(self, client: socket.socket, connection: Connection) -> None:
        """Create a connection from an accepted socket, including its TLS handshake."""
        try:
            client.setblocking(False)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                client,
                ssl=self._context() if self._context is not None else None,
                ssl_handshake_timeout=self._handshake_timeout_s if self._context is not None else None,
            )
        except OSError:
            # The peer does not speak TLS, sends no certificate, is too slow, or has disconnected.
            pass
        finally:
            if connection.is_in_handshake:
                self._connections.discard(connection)
                client.close()
