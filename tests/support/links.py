"""TCP connections that a test can cut: each link forwards a port of its own to another one.

A silent cut stops the bytes and keeps the connections, as a network without packets does; TCP delivers the bytes after
the cut. A hard cut closes the connections and refuses new ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading

HOST = "127.0.0.1"
CHUNK_BYTES = 1 << 16


class Links:
    """Links on an event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="links", daemon=True)
        self._thread.start()
        self._links: list[Link] = []

    def add(self, target_port: int) -> Link:
        """Return a new link to a port of this machine."""
        link = Link(target_port, self._loop)
        asyncio.run_coroutine_threadsafe(link.listen(), self._loop).result(10)
        self._links.append(link)
        return link

    def close(self) -> None:
        """Close every link. Idempotent."""
        if self._loop.is_closed():
            return
        for link in self._links:
            asyncio.run_coroutine_threadsafe(link.end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Link:
    """One port that is forwarded to another one."""

    def __init__(self, target_port: int, loop: asyncio.AbstractEventLoop) -> None:
        self._target_port = target_port
        self._loop = loop
        self._flows = asyncio.Event()
        self._flows.set()
        self._is_refusing = False
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def listen(self) -> None:
        """Accept connections."""
        self._server = await asyncio.start_server(self._accept, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self, *, is_silent: bool) -> None:
        """Cut the link."""
        self._call(self._cut, is_silent)

    def heal(self) -> None:
        """Let everything through again."""
        self._call(self._heal)

    async def end(self) -> None:
        """Stop listening, and end every connection."""
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _call(self, function: object, *arguments: object) -> None:
        async def called() -> None:
            assert callable(function)
            function(*arguments)

        asyncio.run_coroutine_threadsafe(called(), self._loop).result(10)

    def _cut(self, is_silent: bool) -> None:
        self._flows.clear()
        if not is_silent:
            self._is_refusing = True
            for task in self._tasks:
                task.cancel()

    def _heal(self) -> None:
        self._is_refusing = False
        self._flows.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_refusing:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await self._forward(reader, writer)
        writer.transport.abort()
        self._tasks.discard(task)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._flows.wait()
        far_reader, far_writer = await asyncio.open_connection(HOST, self._target_port)
        pumps = [
            asyncio.ensure_future(self._pump(reader, far_writer)),
            asyncio.ensure_future(self._pump(far_reader, writer)),
        ]
        try:
            # Either end of the connection ends both.
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            far_writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK_BYTES):
            await self._flows.wait()
            writer.write(data)
            await writer.drain()
