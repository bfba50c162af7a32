"""The REST server on a service in this process, and a raw socket for requests that no client library sends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlsplit

from ebbtide.rest.server import RestServer
from ebbtide.verbs.service import Service


@contextlib.asynccontextmanager
async def served(service: Service) -> AsyncIterator[str]:
    """Serve the service on a free loopback port for the length of a block. Yield the URL."""
    server = RestServer(service.settings.server.model_copy(update={"rest_port": 0}))
    serving = asyncio.create_task(server.serve(service))
    try:
        await server.started(serving)
        yield server.url
    finally:
        server.stop()
        await serving
        server.release()


class RawAnswer:
    """A response that was read from a raw socket."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


class Raw:
    """A raw HTTP/1.1 connection, which sends its input unchanged."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    @classmethod
    async def to(cls, url: str) -> Raw:
        """Connect."""
        place = urlsplit(url)
        return cls(*await asyncio.open_connection(place.hostname, place.port))

    async def send(self, *lines: str, body: bytes = b"") -> None:
        """Send a head of these lines, then the body."""
        self.writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        await self.writer.drain()

    async def answer(self, timeout_s: float = 10.0) -> RawAnswer:
        """Read the next response."""
        async with asyncio.timeout(timeout_s):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.split("\r\n")
            headers = {
                name.strip().lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines if line)
            }
            body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        return RawAnswer(int(first.split()[1]), headers, body)

    async def ends(self, timeout_s: float = 10.0) -> bytes:
        """Read until the server closes the connection."""
        async with asyncio.timeout(timeout_s):
            return await self._reader.read()

    def hang_up(self) -> None:
        """Reset the connection."""
        self.writer.transport.abort()


@contextlib.asynccontextmanager
async def raw(url: str) -> AsyncIterator[Raw]:
    """Open a raw connection for the length of a block."""
    connection = await Raw.to(url)
    try:
        yield connection
    finally:
        connection.writer.close()
        with contextlib.suppress(OSError):
            await connection.writer.wait_closed()
