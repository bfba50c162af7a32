"""A model server of a script: it records requests as bytes, and answers with the bytes of the test."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True)
class Sent:
    """A request as the server received it."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """An answer: parts of its body, and what goes wrong."""

    parts: tuple[bytes, ...] = (b"{}",)
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    hangs: bool = False
    """Send nothing until the client closes the connection."""
    breaks_before: bool = False
    """Close the connection instead of a head."""
    breaks_after: bool = False
    """Close the connection after the parts, without an end."""
    waits: asyncio.Event | None = None
    """Wait for this before the last part."""


class ScriptedUpstream:
    """The server. `replies` are used in order, then `always`."""

    def __init__(self) -> None:
        self.requests: list[Sent] = []
        self.replies: deque[Reply] = deque()
        self.always = Reply()
        self.hung_up = asyncio.Event()
        """Set when a client leaves during an answer."""
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Serve on a free loopback port for the length of a block."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip().split("\r\n")
        method, target, _ = first.split()
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.requests.append(Sent(method, target, headers, body))
        reply = self.replies.popleft() if self.replies else self.always
        if reply.breaks_before:
            return False
        if reply.hangs:
            return await self._left(reader)
        given = {**reply.headers, "transfer-encoding": "chunked"}
        lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{k}: {v}" for k, v in given.items()), "", ""]
        writer.write("\r\n".join(lines).encode("latin-1"))
        if method == "HEAD":
            await writer.drain()
            return True
        for number, part in enumerate(reply.parts, 1):
            if reply.waits is not None and number == len(reply.parts):
                leaving = asyncio.ensure_future(self._left(reader))
                waiting = asyncio.ensure_future(reply.waits.wait())
                await asyncio.wait([leaving, waiting], return_when=asyncio.FIRST_COMPLETED)
                leaving.cancel()
                waiting.cancel()
            writer.write(b"%x\r\n%s\r\n" % (len(part), part))
            await writer.drain()
        if reply.breaks_after:
            writer.transport.abort()
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    async def _left(self, reader: asyncio.StreamReader) -> bool:
        with contextlib.suppress(ConnectionError):
            await reader.read(1)
        self.hung_up.set()
        return False


def events(*items: Any) -> tuple[bytes, ...]:
    """Return items as server-sent events, with a comment and the end of a stream of chat completions."""
    lines = [f"data: {json.dumps(item, ensure_ascii=False)}\n\n".encode() for item in items]
    return (b": comment\n\n", *lines, b"data: [DONE]\n\n")


def completion(text: str, finish: str = "stop", **message: Any) -> Reply:
    """Return a chat completion."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, **message},
        "finish_reason": finish,
    }
    body = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return Reply((json.dumps(body, ensure_ascii=False).encode(),))


def streamed(*texts: str, finish: str = "stop") -> Reply:
    """Return a chat completion as a stream."""
    common = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [
        {**common, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
        for text in texts
    ]
    chunks.append({**common, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return Reply(events(*chunks), headers={"content-type": "text/event-stream; charset=utf-8"})
