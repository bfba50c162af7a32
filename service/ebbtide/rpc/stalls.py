"""Deadlines for calls that wait for their clients, and a limit on the bytes buffered for them.

A client may send half a request, or not read its response: in HTTP/2 it can close the window of one call and still
answer every ping. gRPC has no deadline for this, and frees the buffers of such a call only with its connection. So the
connection is closed: its socket is found among those of this process by the client's address.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

from ebbtide.metrics import Metrics
from ebbtide.settings import ServerSettings
from ebbtide.telemetry import get_log

CHECK_INTERVAL_S = 0.25
"""How often waiting calls are checked against their deadlines."""

ARRIVAL_S = 60.0
"""Longest time until the message of a request has arrived."""

SLOW_S = 1.0
MAX_SLOW_REQUESTS = 64
"""Most requests that may take longer than SLOW_S to arrive. Beyond that the oldest is dropped."""

STALLED_AT_STOP_S = 1.5
"""How long a stop waits for a client that does not read its response."""

COPIES = 2
"""Copies of a response in memory while it is sent: the bytes, and those within gRPC."""

Context = Any
"""grpc.aio.ServicerContext, whose types are wrong in the stubs."""

Endpoint = tuple[str, int]
"""Address and port of a client."""


class Wait:
    """One call that waits for its client."""

    __slots__ = ("context", "is_arriving", "is_over", "since_s", "size")

    def __init__(self, context: Context, size: int, since_s: float, *, is_arriving: bool) -> None:
        self.context = context
        self.size = size
        self.since_s = since_s
        self.is_arriving = is_arriving
        self.is_over = False


class Stalls:
    """The waiting calls of one gRPC server, and the task that closes the connections of overdue ones."""

    def __init__(self, settings: ServerSettings, metrics: Metrics, port: int) -> None:
        self._send_timeout_s = settings.send_timeout_ms / 1000
        self._max_bytes = settings.max_buffered_bytes
        self._metrics = metrics
        self._port = port
        self._now_s: Callable[[], float] = asyncio.get_running_loop().time
        # In the order in which they began to wait.
        self._arriving: dict[Wait, None] = {}
        self._sending: dict[Wait, None] = {}
        self._held_bytes = 0
        self._to_close: set[Endpoint] = set()
        self._is_needed = asyncio.Event()
        self._stopping_s: float | None = None

    @property
    def held_bytes(self) -> int:
        """Bytes of responses buffered for clients."""
        return self._held_bytes

    @contextlib.contextmanager
    def arriving(self, context: Context) -> Iterator[None]:
        """Limit the time of the block, which waits for the message of a request."""
        wait = Wait(context, 0, self._now_s(), is_arriving=True)
        self._arriving[wait] = None
        if len(self._arriving) > MAX_SLOW_REQUESTS:
            oldest = next(iter(self._arriving))
            if wait.since_s - oldest.since_s > SLOW_S:
                self._drop(oldest, "bytes")
        try:
            yield
        finally:
            self._end(wait)

    @contextlib.contextmanager
    def sending(self, context: Context, size: int) -> Iterator[None]:
        """Limit the time of the block, which waits until the client has read a part of its response."""
        wait = self._send(context, size)
        try:
            yield
        finally:
            self._end(wait)

    def finishing(self, context: Context, size: int) -> None:
        """Limit the time until the client has read the rest of its response and the call ends."""
        wait = self._send(context, size)
        context.add_done_callback(lambda _: self._end(wait))

    def stop(self) -> None:
        """Shorten the wait for clients that do not read."""
        self._stopping_s = self._now_s()

    async def sweep(self) -> None:
        """Close the connections of overdue calls, forever."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CHECK_INTERVAL_S):
                    await self._is_needed.wait()
            self._is_needed.clear()
            self._drop_overdue()
            if self._to_close:
                endpoints, self._to_close = self._to_close, set()
                closed = await asyncio.to_thread(close_connections, endpoints, self._port)
                get_log("rpc").warning("connections were closed", count=closed)

    def _send(self, context: Context, size: int) -> Wait:
        wait = Wait(context, COPIES * size, self._now_s(), is_arriving=False)
        self._sending[wait] = None
        self._held_bytes += wait.size
        while self._held_bytes > self._max_bytes:
            oldest = next((one for one in self._sending if one.size), wait)
            if oldest is wait:
                break
            self._drop(oldest, "bytes")
        return wait

    def _end(self, wait: Wait) -> None:
        if not wait.is_over:
            wait.is_over = True
            del (self._arriving if wait.is_arriving else self._sending)[wait]
            self._held_bytes -= wait.size

    def _drop_overdue(self) -> None:
        now_s, timeout_s, begun_s = self._now_s(), self._send_timeout_s, 0.0
        cause = "send"
        if self._stopping_s is not None:
            timeout_s, begun_s, cause = min(STALLED_AT_STOP_S, timeout_s), self._stopping_s, "stop"
        for wait in list(self._sending):
            if now_s - max(wait.since_s, begun_s) < timeout_s:
                break
            self._drop(wait, cause)
        for wait in list(self._arriving):
            if now_s - wait.since_s < ARRIVAL_S:
                break
            self._drop(wait, "header")

    def _drop(self, wait: Wait, cause: str) -> None:
        self._end(wait)
        self._to_close.add(endpoint_of(wait.context.peer()))
        self._metrics.connection_closed("grpc", cause)
        self._is_needed.set()


def endpoint_of(peer: str) -> Endpoint:
    """Return the address and port of a caller; gRPC writes `ipv4:127.0.0.1:5` or `ipv6:%5B::1%5D:5`."""
    _, _, endpoint = unquote(peer).partition(":")
    address, _, port = endpoint.rpartition(":")
    return address.strip("[]"), int(port) if port.isdigit() else 0


def close_connections(endpoints: set[Endpoint], port: int) -> int:
    """Close the connections from these addresses to this port. Return how many there were. Blocks."""
    closed = 0
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError), _socket_of(int(name)) as connection:
            if connection.family not in (socket.AF_INET, socket.AF_INET6):
                continue
            address, its_port = connection.getpeername()[:2]
            # A dual-stack socket reports an IPv4 address within an IPv6 one.
            endpoint = (address.removeprefix("::ffff:").partition("%")[0], its_port)
            if endpoint in endpoints and connection.getsockname()[1] == port:
                # With a reset, so that the kernel drops unsent bytes too.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.shutdown(socket.SHUT_RDWR)
                closed += 1
    return closed


def _socket_of(descriptor: int) -> socket.socket:
    """Return a second descriptor of a socket, which stays valid if the first is closed meanwhile."""
    duplicate = os.dup(descriptor)
    try:
        return socket.socket(fileno=duplicate)
    except BaseException:
        os.close(duplicate)
        raise
