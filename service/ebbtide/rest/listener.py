"""The listener: takes connections off the port, counts them at once, and lets their TLS handshakes take only so long.

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
"""How long nothing is accepted after the system could not: it has no file descriptors or no memory left."""

ACCEPTED_AT_ONCE = 100
"""Most connections accepted before others get their turn."""


class Listener:
    """Accepts connections from construction on."""

    def __init__(
        self,
        listening: socket.socket,
        make: Callable[[], Connection],
        connections: Connections,
        context: Callable[[], ssl.SSLContext] | None,
        handshake_timeout_s: float,
    ) -> None:
        listening.setblocking(False)
        self._socket = listening
        self._make = make
        self._connections = connections
        self._context = context
        self._handshake_timeout_s = handshake_timeout_s
        self._beginning: set[asyncio.Task[None]] = set()
        self._accepting = in_background(self._accept())

    def close(self) -> None:
        """Accept no more, and end the handshakes under way. Idempotent."""
        for task in (self._accepting, *self._beginning):
            task.cancel()
        self._socket.close()

    async def wait_closed(self) -> None:
        """Wait until nothing is accepted any more."""
        await asyncio.gather(self._accepting, *self._beginning, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(self._socket)
                self._take(client, loop.time())
                # On a busy loop it takes long to come here again: take others that wait at the same time.
                with contextlib.suppress(BlockingIOError):
                    for _ in range(ACCEPTED_AT_ONCE):
                        client, _ = self._socket.accept()
                        self._take(client, loop.time())
            except OSError as error:
                get_log("rest").warning("no connection can be accepted", errno=error.errno)
                await asyncio.sleep(RETRY_S)

    def _take(self, client: socket.socket, now_s: float) -> None:
        """Begin with a connection, or turn it away when there are too many."""
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
                busy = Exhausted("too many connections", reason="SERVER_BUSY", retry_after_s=1.0)
                client.send(bare_response("503 Service Unavailable", busy))
                # A close with unread bytes is a reset, by which the response could be lost.
                client.recv(1 << 16)

    async def _begin(self, client: socket.socket, connection: Connection) -> None:
        """Make a connection of an accepted socket, its TLS handshake included."""
        try:
            client.setblocking(False)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                client,
                ssl=self._context() if self._context is not None else None,
                ssl_handshake_timeout=self._handshake_timeout_s if self._context is not None else None,
            )
        except OSError:
            # The peer speaks no TLS, shows no certificate, is too slow, or has gone away: nothing is to be done.
            pass
        finally:
            if connection.is_in_handshake:
                self._connections.discard(connection)
                client.close()
