"""Frames between workers: whole, in order, and no more in memory than the flow control allows."""

from __future__ import annotations

import asyncio
import socket

import pytest

from ebbtide.forwarding.exchange import (
    HIGH_BYTES,
    CallEnd,
    CallHead,
    CallMessage,
    ConnectionLost,
    Exchange,
    Frame,
    Part,
    RestHead,
    RestStart,
    Taken,
    VerbHead,
    VerbResult,
)

FRAMES: list[Frame] = [
    Taken(),
    RestHead(
        "GET",
        "/v1/agents/记忆",
        b"/v1/agents/%E8",
        b"a=1",
        [(b"host", b"x")],
        None,
        ("h", 1),
        "http",
        "1.1",
        "记忆",
    ),
    RestStart(200, [(b"a", b"b")]),
    Part(b"\x00" * 10, True),
    CallHead(
        "Recall", b"\x0a\x01a", False, [("a", "text"), ("b-bin", b"\xff")], "ipv4:127.0.0.1:5", 1.5, "a", True
    ),
    CallMessage(b""),
    CallEnd("NOT_FOUND", "no", [("x", "y")]),
    VerbHead("ListAgents", b"{}", b"\x80"),
    VerbHead("Recall", b"{}", b"\x80", "a", True),
    VerbResult(b"{}"),
]


async def pair() -> tuple[Exchange, Exchange]:
    """Return both ends of a connection."""
    ends = []
    for end in socket.socketpair():
        end.setblocking(False)
        _, exchange = await asyncio.get_running_loop().create_unix_connection(Exchange, sock=end)
        ends.append(exchange)
    return ends[0], ends[1]


async def test_every_kind_of_frame_arrives_as_it_was_sent() -> None:
    """Texts, bytes and missing values are the same at the other end, in order."""
    here, there = await pair()
    for frame in FRAMES:
        await here.write(frame)
    assert [await there.read() for _ in FRAMES] == FRAMES
    here.close()
    there.close()


async def test_a_frame_that_arrives_byte_by_byte_is_whole() -> None:
    """The borders of what a socket delivers are not those of frames."""
    here, _ = await pair()
    sent = bytearray()

    class _Written(asyncio.Transport):
        def write(self, data: bytes) -> None:  # type: ignore[override]
            sent.extend(data)

        def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
            pass

    writing = Exchange()
    writing.connection_made(_Written())
    for frame in FRAMES:
        await writing.write(frame)
    for byte in sent:
        here.data_received(bytes([byte]))
    assert [await here.read() for _ in FRAMES] == FRAMES
    here.close()


async def test_a_slow_reader_stops_the_writer() -> None:
    """A writer waits once both sides have their share in memory, and continues when the other side reads."""
    here, there = await pair()
    written = 0

    async def write() -> None:
        nonlocal written
        for _ in range(400):
            await here.write(Part(b"x" * 32_768, True))
            written += 1

    writing = asyncio.create_task(write())
    await asyncio.sleep(0.1)
    stopped_at = written
    assert 0 < stopped_at * 32_768 < 4 * HIGH_BYTES + (1 << 20)
    for _ in range(400):
        await there.read()
    await writing
    assert written == 400
    here.close()
    there.close()


async def test_a_closed_connection_ends_reads_and_writes() -> None:
    """Frames sent before the end can be read; then the error is ConnectionLost."""
    here, there = await pair()
    await here.write(Part(b"last", False))
    here.close()
    assert await there.read() == Part(b"last", False)
    with pytest.raises(ConnectionLost):
        await there.read()
    with pytest.raises(ConnectionLost):
        await there.write(Part(b"", False))


async def test_a_cancelled_read_loses_no_frame() -> None:
    """A read that is cancelled takes nothing."""
    here, there = await pair()
    reading = asyncio.create_task(there.read())
    await asyncio.sleep(0)
    reading.cancel()
    await here.write(Part(b"one", False))
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert await there.read() == Part(b"one", False)
    here.close()
    there.close()
