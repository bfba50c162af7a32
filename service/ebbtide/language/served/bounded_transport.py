"""HTTP connections with a bound on the bytes of a response.

httpx limits neither the number of interim responses (1xx) nor the size of chunks, and a connection with data always
ready can block the event loop. Here every response has a bound on its bytes, including headers and framing, and bytes
are read in small pieces between which the event loop runs.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Iterable
from functools import cache
from typing import Any, Final

import httpcore
import httpx

READ_BYTES: Final = 8 << 10
"""Bytes of one read. Even as interim responses or one-byte chunks they take only about 10 ms."""

RECEIVE_BYTES: Final = 64 << 10
"""The receive buffer of a socket.

The event loop reads ahead of the client: uvloop fills up to 32 buffers of 256 kB in one turn if the socket has that
much data. These 8 MB would stay in memory until the garbage collector finds the closed connection.
"""


@cache
def _public_trust() -> ssl.SSLContext:
    """Return the context of every connection, made once: the public authorities take 30 ms to load."""
    return httpx.create_ssl_context(trust_env=False)


class BoundedTransport(httpx.AsyncBaseTransport):
    """Connections that fail if a response exceeds `max_bytes`. Errors are those of httpcore."""

    def __init__(self, *, max_bytes: int, connections: int) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=_public_trust(),
            max_connections=connections,
            max_keepalive_connections=connections,
            network_backend=_Backend(max_bytes),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return the response with its body as a stream."""
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        response = await self._pool.handle_async_request(
            httpcore.Request(
                request.method,
                url,
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=_Body(response.stream),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Backend(httpcore.AsyncNetworkBackend):
    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._plain = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        options = [*(socket_options or ()), (socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)]
        stream = await self._plain.connect_tcp(host, port, timeout, local_address, options)
        return _BoundedStream(stream, self._max_bytes)

    async def sleep(self, seconds: float) -> None:
        await self._plain.sleep(seconds)


class _BoundedStream(httpcore.AsyncNetworkStream):
    """A connection with a bound on the bytes read after each write."""

    def __init__(self, stream: httpcore.AsyncNetworkStream, max_bytes: int) -> None:
        self._stream = stream
        self._max_bytes = self._left = max_bytes

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._left <= 0:
            raise httpcore.RemoteProtocolError("the response is too long")
        piece = await self._stream.read(min(max_bytes, READ_BYTES), timeout)
        self._left -= len(piece)
        return piece

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._left = self._max_bytes
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        stream = await self._stream.start_tls(ssl_context, server_hostname, timeout)
        return _BoundedStream(stream, self._max_bytes)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
