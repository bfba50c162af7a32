"""Connections: their number, the deadlines for waiting clients, and the memory in use for them.

A connection waits for its client during the TLS handshake, before and within the head of a request, and while a
response is not read. Each wait has a deadline. The number of connections and the bytes buffered for them are limited.
At a limit, the connections that have waited longest are closed, so silent clients make room for others. A connection
whose request is running is never closed for another one.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import heapq
import socket
import struct
import sys
import termios
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ebbtide.errors import EbbtideError, InvalidRequest
from ebbtide.metrics import Metrics
from ebbtide.rest.problems import RESOURCE_POLICY, problem
from ebbtide.settings import ServerSettings
from ebbtide.telemetry import get_log

PIECE_BYTES = 32 << 10
"""Bytes written to a connection at once; the next piece waits until the client has read most of this one."""

MAX_HEAD_BYTES = 64 << 10
MAX_HEADERS = 128
"""Limits on the request line with headers, and on the number of headers: small ones take 30 times their size."""

MAX_PIPELINED = 16
"""Most pipelined requests that wait on one connection."""

CHECK_INTERVAL_S = 0.25
"""How often connections are checked against their deadlines."""

FAREWELL_S = 0.5
"""How long a stop waits for the TLS close of a connection that has sent everything: some clients send none."""

STALLED_AT_STOP_S = 1.5
"""How long a stop waits for a client that does not read its response."""

SETTLED_S = 1.0
"""A connection that has waited for less than this is not closed to make room."""

CLOSED_AT_ONCE = 50
"""At the limit one in this many connections is closed at once, to avoid a search for each new one."""

AT_ONCE = struct.pack("ii", 1, 0)
"""The value of SO_LINGER by which a close is a reset."""

_EXTENSION = "ebbtide.connection"

HELD = "ebbtide.held"
"""The key in a scope for the `Holder` of a request without a connection."""


class Holder(Protocol):
    """Counts the buffered bytes of a request."""

    held_bytes: int

    def hold(self, size: int) -> bool:
        """Add buffered bytes. Return whether all of them are within the limit."""

    def release(self, size: int) -> None:
        """Subtract buffered bytes."""


class Connections:
    """All connections of one REST server."""

    def __init__(self, settings: ServerSettings, metrics: Metrics, max_connections: int) -> None:
        self._header_timeout_s = settings.header_timeout_ms / 1000
        self._stopping_s: float | None = None
        self._send_timeout_s = settings.send_timeout_ms / 1000
        self._max_connections = max_connections
        self._max_bytes = settings.max_buffered_bytes
        self._metrics = metrics
        self._open: set[Connection] = set()
        self._held_bytes = 0
        self._closed: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def held_bytes(self) -> int:
        """Bytes of requests and responses buffered for connections."""
        return self._held_bytes

    def stop(self) -> None:
        """Shorten the deadlines of waiting clients to those of a stop."""
        self._stopping_s = asyncio.get_running_loop().time()

    def admit(self, connection: Connection, now_s: float) -> bool:
        """Add a connection. Return whether there is room, or others could be closed for it."""
        if len(self._open) >= self._max_connections:
            self._close_longest_waiting(now_s)
        if len(self._open) >= self._max_connections:
            self.count("connections")
            return False
        self._open.add(connection)
        return True

    def discard(self, connection: Connection) -> None:
        """Remove a connection and its buffered bytes. Idempotent."""
        self._open.discard(connection)
        self.release(connection, connection.held_bytes)

    def hold(self, connection: Connection, size: int) -> bool:
        """Add buffered bytes. Return whether they are within the limit, after closing others for them."""
        if connection not in self._open:
            return True
        connection.held_bytes += size
        self._held_bytes += size
        if self._held_bytes > self._max_bytes:
            self._free(connection)
        return self._held_bytes <= self._max_bytes

    def release(self, connection: Connection, size: int) -> None:
        """Subtract buffered bytes."""
        size = min(size, connection.held_bytes)
        connection.held_bytes -= size
        self._held_bytes -= size

    def count(self, cause: str) -> None:
        """Record a closed or refused connection, in the metrics at once and in the log soon."""
        self._closed[cause] += 1
        self._metrics.connection_closed("rest", cause)

    async def sweep(self) -> None:
        """Close overdue connections, forever."""
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            self.close_overdue(asyncio.get_running_loop().time())

    def close_overdue(self, now_s: float) -> None:
        """Close the connections that have waited for their clients beyond a deadline."""
        for connection in list(self._open):
            if self._stopping_s is None:
                since_s, (timeout_s, cause) = connection.moved_s, self._deadline(connection, now_s)
            else:
                since_s = max(connection.moved_s, self._stopping_s)
                timeout_s, cause = self._deadline_at_stop(connection, now_s), "stop"
            if timeout_s is not None and now_s - since_s >= timeout_s:
                self._close(connection, cause)
        if self._closed:
            get_log("rest").warning("connections were closed", **dict(self._closed))
            self._closed.clear()

    def _deadline(self, connection: Connection, now_s: float) -> tuple[float | None, str]:
        if connection.look_at_output(now_s) or connection.is_closing:
            return self._send_timeout_s, "send"
        if connection.is_busy:
            return None, ""
        if connection.is_sending_rest:
            return self._send_timeout_s, "header"
        return (self._header_timeout_s if connection.is_in_head else None), "header"

    def _deadline_at_stop(self, connection: Connection, now_s: float) -> float | None:
        if connection.look_at_output(now_s):
            return min(STALLED_AT_STOP_S, self._send_timeout_s)
        if connection.is_closing:
            return FAREWELL_S
        return None

    def _close(self, connection: Connection, cause: str) -> None:
        self.count(cause)
        self.discard(connection)
        connection.abort()

    def _close_longest_waiting(self, now_s: float) -> None:
        """Close a few of the connections that have waited longest."""
        waiting = [
            one for one in self._open if one.is_waiting_for_client and now_s - one.moved_s >= SETTLED_S
        ]
        number = self._max_connections // CLOSED_AT_ONCE + 1
        for connection in heapq.nsmallest(number, waiting, key=lambda one: one.moved_s):
            self._close(connection, "connections")

    def _free(self, keep: Connection) -> None:
        """Close the connections with buffered bytes that have waited longest, until the rest is within the limit."""
        holding = [
            one for one in self._open if one.held_bytes and one is not keep and one.is_waiting_for_client
        ]
        for connection in sorted(holding, key=lambda one: one.moved_s):
            if self._held_bytes <= self._max_bytes:
                return
            self._close(connection, "bytes")


class Connection(HttpToolsProtocol):
    """HTTP on one connection, with limits on the request head, and the usual error body for invalid HTTP."""

    def __init__(self, connections: Connections, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._table = connections
        self.drop: Callable[[], object] = lambda: None
        """Ends the connection during its handshake, when there is no transport."""
        self._head_bytes = 0
        self._is_message_complete = True
        self._running: RequestResponseCycle | None = None
        self._takes_no_more = False
        self._is_lost = False
        self._unsent_bytes = 0
        self._descriptor = -1
        self.is_in_head = True
        self.held_bytes = 0
        self.moved_s = self.loop.time()
        """When this connection last made progress."""

    # --- what the table asks -----------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """Whether a request is running: its head has arrived, its response is not complete."""
        return self._running is not None

    @property
    def is_closing(self) -> bool:
        """Whether it is closed by this side or lost."""
        return self.transport is not None and self.transport.is_closing()

    @property
    def is_in_handshake(self) -> bool:
        """Whether its TLS handshake is running."""
        return self.transport is None

    @property
    def is_sending_rest(self) -> bool:
        """Whether its client still sends the body of a request that has its response already."""
        return not self.is_busy and not self._is_message_complete and not self.is_in_head

    @property
    def is_waiting_for_client(self) -> bool:
        """Whether it waits for the client to send or read."""
        if not self.is_busy:
            return True
        return self.flow.write_paused or (self._running is not None and self._running.more_body)

    def look_at_output(self, now_s: float) -> int:
        """Return the bytes that the client has not read. A falling number is progress."""
        if self.transport is None:
            return 0
        unsent_bytes = self.transport.get_write_buffer_size()
        if not self.is_closing:
            unsent_bytes += _unsent_by_kernel(self._descriptor)
        if unsent_bytes < self._unsent_bytes or (unsent_bytes and not self._unsent_bytes):
            self.moved_s = now_s
        self._unsent_bytes = unsent_bytes
        return unsent_bytes

    def abort(self) -> None:
        """Close it at once with a reset, so that the kernel drops unsent bytes too."""
        if self.transport is None:
            self.drop()
            return
        if not self.is_closing:
            with contextlib.suppress(OSError):
                self.transport.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE
                )
        self.transport.abort()

    def hold(self, size: int) -> bool:
        """Add buffered bytes. Return whether all of them are within the limit."""
        return self._table.hold(self, size)

    def release(self, size: int) -> None:
        """Subtract buffered bytes."""
        self._table.release(self, size)

    # --- its life ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start, after the TLS handshake if there is one."""
        transport.set_write_buffer_limits(high=PIECE_BYTES)
        super().connection_made(transport)
        self._descriptor = transport.get_extra_info("socket").fileno()
        self.moved_s = self.loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection."""
        self._is_lost = True
        self._table.discard(self)
        super().connection_lost(exc)
        # uvicorn reports the latest request; with others queued, it is not the running one.
        if self._running is not None:
            self._running.disconnected = True
            self._running.message_event.set()

    # --- what arrives ------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Process received bytes."""
        if self._takes_no_more or self._is_lost:
            return
        if not self.is_in_head:
            self.moved_s = self.loop.time()
            # Also if the parser sees no request yet: the connection is no longer idle.
            self.is_in_head = self._is_message_complete and not self.is_busy
        super().data_received(data)
        if self.is_in_head and not self.transport.is_closing():
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self.send_400_response("The head of the request is too large.")

    def on_message_begin(self) -> None:
        """Start the head of a request."""
        self.is_in_head = True
        self._is_message_complete = False
        super().on_message_begin()
        self.scope["extensions"] = {_EXTENSION: {"connection": self}}

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header. Too many end the parsing with an error."""
        if len(self.headers) >= MAX_HEADERS:
            raise ValueError("too many headers")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start a request, or queue it behind the running one."""
        self.is_in_head = False
        self._head_bytes = 0
        self.moved_s = self.loop.time()
        if len(self.pipeline) >= MAX_PIPELINED:
            # Queued requests are answered; for the rest the client needs another connection.
            self._takes_no_more = True
            self.pipeline[0][0].keep_alive = False
            raise ValueError("too many requests at once")
        super().on_headers_complete()
        if self._running is None:
            self._running = self.cycle

    def on_message_complete(self) -> None:
        """Record that the latest request is complete."""
        self._is_message_complete = True
        super().on_message_complete()

    # --- what is sent ------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        """Record that the client must read before more is sent."""
        self.moved_s = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Record that the client has read."""
        self.moved_s = self.loop.time()
        super().resume_writing()

    def on_response_complete(self) -> None:
        """Wait for the next request, or start a queued one."""
        self.moved_s = self.loop.time()
        self._running = self.pipeline[-1][0] if self.pipeline else None
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Respond to invalid HTTP and close. Queued requests come first; the last of them closes."""
        if self._takes_no_more:
            return
        error = InvalidRequest(msg, reason="MALFORMED_REQUEST")
        self.transport.write(bare_response("400 Bad Request", error))
        self.transport.close()


def connection_of(scope: Scope) -> Holder | None:
    """Return what counts the buffered bytes of a request: its connection, or that of a forwarded request.

    None without either, as in a test of the application alone.
    """
    found: Holder | None = scope.get("extensions", {}).get(_EXTENSION, {}).get("connection")
    return found or scope.get(HELD)


def _unsent_by_kernel(descriptor: int) -> int:
    """Return the bytes in the kernel that the client's kernel has not received; 0 if unknown."""
    try:
        return int.from_bytes(fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(4)), sys.byteorder)
    except OSError:
        return 0


def bare_response(status: str, error: EbbtideError) -> bytes:
    """Return the bytes of a response outside the application, after which the connection is closed."""
    response = problem(error)
    body = bytes(response.body)
    retry = response.headers.get("retry-after")
    lines = [
        f"HTTP/1.1 {status}",
        "content-type: application/json",
        f"{RESOURCE_POLICY[0].lower()}: {RESOURCE_POLICY[1]}",
        *([f"retry-after: {retry}"] if retry else []),
        f"content-length: {len(body)}",
        "connection: close",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body
