"""A model server that attacks its clients: endless replies, bombs, redirects, slow drips and nonsense.

Each attack is a function that writes raw bytes to a connection, after it read the request. A server stops with its
test, whatever the client does.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import threading
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field

import zstandard

Write = Callable[[bytes], Awaitable[None]]
Attack = Callable[[Write], Awaitable[None]]

MIB = 1 << 20
CONTENT = "The kettle of the harbour master is violet."


@dataclass(frozen=True)
class Seen:
    """One request as the server saw it."""

    method: str
    path: str
    headers: dict[str, str]


@dataclass
class HostileServer:
    """A server that runs one attack at a time and records its requests."""

    attack: Attack
    requests: list[Seen] = field(default_factory=list)
    port: int = 0
    sent_bytes: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def write(piece: bytes) -> None:
            writer.write(piece)
            self.sent_bytes += len(piece)
            await writer.drain()

        # A client that disconnects is the expected outcome.
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, path, _ = head[0].split(" ")
                pairs = (line.partition(":") for line in head[1:] if line)
                headers = {name.lower(): value.strip() for name, _, value in pairs}
                await reader.readexactly(int(headers.get("content-length", 0)))
                self.requests.append(Seen(method, path, headers))
                await self.attack(write)
                if self.attack in ENDING:
                    break
        writer.close()

    @contextlib.contextmanager
    def running_beside(self) -> Iterator[HostileServer]:
        """Serve on a thread of its own."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, daemon=True)
        thread.start()

        async def start() -> asyncio.Server:
            return await asyncio.start_server(self._connected, "127.0.0.1", 0)

        async def stop() -> None:
            server.close()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        server = asyncio.run_coroutine_threadsafe(start(), loop).result(10)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(stop(), loop).result(10)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(10)
            loop.close()

    @contextlib.asynccontextmanager
    async def running_here(self) -> AsyncIterator[HostileServer]:
        """Serve on a thread, for tests with an event loop, so that server and client do not share a loop."""
        with self.running_beside():
            yield self


# --- attacks -------------------------------------------------------------------------------------------------


def head(*lines: str, status: str = "200 OK") -> bytes:
    """Return the beginning of a reply."""
    return "\r\n".join([f"HTTP/1.1 {status}", "content-type: application/json", *lines, "", ""]).encode()


def whole(body: bytes, *lines: str, status: str = "200 OK") -> Attack:
    """Return a reply that is well-formed HTTP."""

    async def attack(write: Write) -> None:
        await write(head(f"content-length: {len(body)}", *lines, status=status) + body)

    return attack


def packed(make: Callable[[], bytes], encoding: str) -> Attack:
    """Return a reply with a compressed body, which is made when it is sent: it takes a second."""

    async def attack(write: Write) -> None:
        await whole(make(), f"content-encoding: {encoding}")(write)

    return attack


def endless(*lines: str, piece: bytes = b" " * MIB, before: bytes = b"", limit: int = 10 << 30) -> Attack:
    """Send ten gigabytes, as fast as the client reads."""

    async def attack(write: Write) -> None:
        await write((head(*lines) if lines else b"") + before)
        for _ in range(limit // len(piece)):
            await write(piece)

    return attack


def drip(first: bytes, piece: bytes, pause_s: float = 0.05) -> Attack:
    """Send a few bytes at a time, forever."""

    async def attack(write: Write) -> None:
        await write(first)
        while True:
            await write(piece)
            await asyncio.sleep(pause_s)

    return attack


def cut(body: bytes) -> Attack:
    """Close the connection in the middle of a reply."""

    async def attack(write: Write) -> None:
        await write(body)

    ENDING.add(attack)
    return attack


ENDING: set[Attack] = set()
"""Attacks that end with the connection."""


def _tiny_chunks() -> Attack:
    """Send a million chunks of one byte: 6 MB that are a million events of HTTP."""
    return endless("transfer-encoding: chunked", piece=b"1\r\nx\r\n" * 100_000, limit=1 << 30)


def chat(content: str) -> bytes:
    """Return a reply to a chat that either kind of server could give."""
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return json.dumps({"message": message, "done": True, "choices": [choice]}).encode()


def _bombs() -> dict[str, Attack]:
    zeros = bytes(64 * MIB)
    return {
        "a gzip bomb": packed(lambda: gzip.compress(zeros), "gzip"),
        "a deflate bomb": packed(lambda: zlib.compress(zeros, wbits=-15), "deflate"),
        "a zstd bomb": packed(lambda: zstandard.compress(zeros), "zstd"),
        "a bomb of two encodings": packed(lambda: gzip.compress(gzip.compress(zeros)), "gzip, gzip"),
        "an encoding of no name": whole(b"{}", "content-encoding: br"),
    }


def _redirects() -> dict[str, Attack]:
    places = {
        "to itself": "/api/chat",
        "to another host": "http://127.0.0.2:9/steal",
        "to a file": "file:///etc/passwd",
        "to a private address": "http://10.0.0.1/",
        "to no address": "http://[::broken/",
        "to a megabyte": "http://127.0.0.1/" + "x" * 60_000,
    }
    return {
        f"a redirect {name}": whole(b"", f"location: {place}", status=status)
        for name, place in places.items()
        for status in ("307 Elsewhere",)
    }


def fast_attacks() -> dict[str, Attack]:
    """Return the attacks that a client ends at once."""
    cookies = [f"set-cookie: c{number}={'x' * 3000}; Path=/; Max-Age=99999999" for number in range(20)]
    return {
        "ten gigabytes in chunks": endless(
            "transfer-encoding: chunked", piece=b"100000\r\n" + b" " * MIB + b"\r\n"
        ),
        "ten gigabytes until the end": endless("connection: close"),
        "ten gigabytes that say so": endless("content-length: 10737418240"),
        "a header without end": endless(piece=b"x" * MIB, before=b"HTTP/1.1 200 OK\r\nx-filler: "),
        "headers without end": endless(piece=b"x-filler: y\r\n" * 10_000, before=b"HTTP/1.1 200 OK\r\n"),
        "a status line without end": endless(piece=b"9" * MIB, before=b"HTTP/1.1 2"),
        "a chunk header without end": endless("transfer-encoding: chunked", piece=b"0" * MIB),
        "a chunk extension without end": endless(
            "transfer-encoding: chunked", piece=b"y" * MIB, before=b"1;x="
        ),
        "trailers without end": endless(
            "transfer-encoding: chunked", piece=b"x: y\r\n" * 10_000, before=b"0\r\n"
        ),
        "chunks of one byte": _tiny_chunks(),
        "no HTTP": endless(piece=b"<html>" * 1000, limit=MIB),
        "closed in the middle": cut(head("content-length: 1000") + b'{"message": {'),
        "closed in a chunk": cut(head("transfer-encoding: chunked") + b"ff\r\n{"),
        "closed before a word": cut(b""),
        "two lengths": cut(head("content-length: 2", "content-length: 3") + b"{}"),
        "a negative length": cut(head("content-length: -1") + b"{}"),
        "a length and chunks": cut(head("content-length: 2", "transfer-encoding: chunked") + b"{}"),
        "half a million lists": whole(b"[" * 500_000 + b"]" * 500_000),
        "half a million lists in a reply": whole(b'{"message":' + b"[" * 500_000),
        "many lists": whole(b'{"message":[' + b"[]," * 340_000 + b"[]]}"),
        "many keys": whole(
            b"{" + b",".join(b'"%d":0' % number for number in range(100_000)) + b',"message":{}}'
        ),
        "a number of 100000 digits": whole(b'{"message":' + b"9" * 100_000 + b"}"),
        "a fraction of 100000 digits": whole(b'{"message":0.' + b"9" * 100_000 + b"}"),
        "numbers that are none": whole(b'{"message":NaN,"choices":Infinity,"eval_count":-1e9999}'),
        "UTF-16": whole(chat("{}").decode().encode("utf-16")),
        "another charset": whole(b'{"message":"\xff\xfe\xfa"}', "content-encoding: identity"),
        "cookies": whole(b"{}", *cookies),
        "403 and a login page": whole(b"<html>Sign in", status="403 Forbidden"),
        "101": whole(b"", "upgrade: websocket", "connection: upgrade", status="101 Switching Protocols"),
        "a date without end": whole(b"{}", "retry-after: " + "Mon, " * 12_000, status="503 Busy"),
        **_bombs(),
        **_redirects(),
    }


def replies(said: str = CONTENT, size: int = 450_000) -> dict[str, str]:
    """Return outputs of a model that are expensive to parse."""
    many = json.dumps({"segments": [{"messages": [0], "text": "kettle"}] * (size // 45)})
    other = json.dumps(
        {"segments": [{"messages": [0], "text": f"k{number}"} for number in range(size // 42)]}
    )
    return {
        "segments without end": many,
        "other segments without end": other,
        "segments beside the text": json.dumps(
            {"segments": [{"messages": [0], "text": t} for t in [said, *map(str, range(size // 50))]]}
        ),
        "numbers without end": json.dumps({"segments": [{"messages": [0] * (size // 3), "text": "kettle"}]}),
        "one long segment": json.dumps({"segments": [{"messages": [0], "text": "x" * size}]}),
        "keywords without end": json.dumps(
            {"phrase": "x", "keywords": [f"k{number}" for number in range(size // 10)], "names": {}}
        ),
        "controls without end": json.dumps(
            {"phrase": "\u0001" * (size // 6), "keywords": [], "segments": []}
        ),
        "braces without end": "{" * size,
        "brackets without end": '{"segments":' + "[" * size,
        "words without end": "so " * (size // 3),
        "ends of thoughts": "</think>" * (size // 8),
        "lone surrogates": '{"segments": [{"messages": [0], "text": "\\ud800\\udfff\\ud800"}]}',
    }


def slow_attacks() -> dict[str, Attack]:
    """Return the attacks that only a deadline ends."""
    return {
        "a byte at a time": drip(head("content-length: 100000"), b" "),
        "a header at a time": drip(b"HTTP/1.1 200 OK\r\n", b"x: y\r\n"),
        "a chunk at a time": drip(head("transfer-encoding: chunked"), b"1\r\n \r\n"),
        "100 and again": drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        "100 as fast as can be": endless(piece=b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
        "103 as fast as can be": endless(piece=b"HTTP/1.1 103 Hints\r\nlink: x\r\n\r\n" * 1000),
        "silence": drip(b"", b"", 0.5),
    }
