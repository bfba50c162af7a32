"""Exchanges: requests and responses between two workers, as frames on a socket.

A frame is its length in four bytes, then a message in msgpack. A connection carries one request at a time, so the flow
control of the socket applies to that request alone: a slow client slows down the owner of its agent. If either side
closes the connection, the other side cancels its work.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, cast

import msgspec

HIGH_BYTES = 256 << 10
"""Unread bytes of a connection above which the other side must wait."""

_LENGTH_BYTES = 4

Headers = list[tuple[bytes, bytes]]
Metadata = list[tuple[str, Any]]


class Taken(msgspec.Struct, frozen=True, tag="taken", array_like=True):
    """The first frame of a connection: the other worker has accepted it."""


class Hello(msgspec.Struct, frozen=True, tag="hello", array_like=True):
    """The first frame of each side between nodes of a cluster: a random number."""

    nonce: bytes


class Proof(msgspec.Struct, frozen=True, tag="proof", array_like=True):
    """The second one: that the side knows the secret of the cluster."""

    mac: bytes


class Seen(msgspec.Struct, frozen=True, tag="seen", array_like=True):
    """Before a head, between nodes: the version of the table of slots by which the sender chose the receiver."""

    version: int


class RestHead(msgspec.Struct, frozen=True, tag="rest", array_like=True):
    """The head of an HTTP request. Its body follows in parts."""

    method: str
    path: str
    raw_path: bytes
    query: bytes
    headers: Headers
    client: tuple[str, int] | None
    server: tuple[str, int] | None
    scheme: str
    http_version: str
    agent_id: str
    is_repeated: bool = False
    """Whether a process that had given the agent away has passed the request on."""


class RestStart(msgspec.Struct, frozen=True, tag="start", array_like=True):
    """The head of an HTTP response. Its body follows in parts."""

    status: int
    headers: Headers


class Part(msgspec.Struct, frozen=True, tag="part", array_like=True):
    """A part of a body."""

    data: bytes
    more: bool


class CallHead(msgspec.Struct, frozen=True, tag="call", array_like=True):
    """The head of a gRPC call, with its first message. The further messages of an upload follow."""

    method: str
    first: bytes
    is_upload: bool
    metadata: Metadata
    peer: str
    remaining_s: float | None
    agent_id: str
    is_repeated: bool = False


class CallMessage(msgspec.Struct, frozen=True, tag="message", array_like=True):
    """A message of a gRPC call, in either direction."""

    data: bytes


class CallEnd(msgspec.Struct, frozen=True, tag="end", array_like=True):
    """The end of the messages in one direction; for a response, with its status and trailing metadata."""

    code: str = "OK"
    details: str = ""
    trailing: Metadata = []


DIGEST_FILE = "DigestFile"
"""The name of a request for the digests of an agent's file, which only `ebbtide cluster check` makes."""

COPY_AGENT = "CopyAgent"
"""The name of a request to complete the copy of an agent that its owner is about to give to the receiver."""

LIST_DIRECTORIES = "ListDirectories"
"""The name of a request for the directories of the caller's agents that a node owns."""

SHOW_POSITION = "ShowPosition"
"""The name of a request for where the file of an agent ends on a node that does not own it."""


ROTATE_KEY = "RotateKey"
"""The name of a request to encrypt an agent with another key, which only `ebbtide cluster rotate-key` makes."""


class VerbHead(msgspec.Struct, frozen=True, tag="verb", array_like=True):
    """An operation for one agent, or for all agents of one worker."""

    name: str
    request: bytes
    caller: bytes
    agent_id: str = ""
    is_repeated: bool = False


class VerbResult(msgspec.Struct, frozen=True, tag="result", array_like=True):
    """The response to an operation, or its error (`errors.py`)."""

    body: bytes = b""
    error: bytes = b""


Head = RestHead | CallHead | VerbHead


def ends_request(head: Head, frame: Any) -> bool:
    """Return whether a frame is the last of a request. It is the head itself if no frame follows."""
    if isinstance(head, RestHead):
        return isinstance(frame, Part) and not frame.more
    return frame is head if isinstance(head, VerbHead) or not head.is_upload else isinstance(frame, CallEnd)


def ends_response(frame: Any) -> bool:
    """Return whether a frame is the last of a response."""
    return isinstance(frame, CallEnd | VerbResult) or (isinstance(frame, Part) and not frame.more)


Frame = (
    Taken
    | Hello
    | Proof
    | Seen
    | RestHead
    | RestStart
    | Part
    | CallHead
    | CallMessage
    | CallEnd
    | VerbHead
    | VerbResult
)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Frame).decode


class ConnectionLost(Exception):
    """The other worker closed the connection or ended."""


class Exchange(asyncio.Protocol):
    """One connection between two workers. One task reads at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._frames: deque[tuple[Frame, int]] = deque()
        self._unread_bytes = 0
        self._is_paused = False
        self._reader: asyncio.Future[None] | None = None
        self._writers: set[asyncio.Future[None]] = set()
        self._is_full = False
        self.max_frame_bytes = 0
        """The largest frame that is read, 0: any. A larger one closes the connection."""
        self.seen = 0
        """The version of the table of slots that was last written to the other side."""
        self.lost = asyncio.Event()
        """Set once the connection is closed by either side."""

    # --- the protocol ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        # uvloop's transport is not a subclass of asyncio.Transport.
        self._transport = transport = cast(asyncio.Transport, transport)
        transport.set_write_buffer_limits(high=HIGH_BYTES)

    def data_received(self, data: bytes) -> None:
        """Split received bytes into frames."""
        buffer = self._buffer
        buffer += data
        start, end = 0, len(buffer)
        while end - start >= _LENGTH_BYTES:
            size = int.from_bytes(buffer[start : start + _LENGTH_BYTES])
            if self.max_frame_bytes and size > self.max_frame_bytes:
                self.abort()
                return
            if end - start < _LENGTH_BYTES + size:
                break
            begin = start + _LENGTH_BYTES
            try:
                frame: Frame = _decode(bytes(buffer[begin : begin + size]))
            except msgspec.DecodeError:
                self.abort()
                return
            self._frames.append((frame, size))
            self._unread_bytes += size
            start = begin + size
        if start:
            del buffer[:start]
            self._wake()
        if self._unread_bytes > HIGH_BYTES and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake the reader and the writers, which raise ConnectionLost."""
        self.lost.set()
        self._wake()
        self.resume_writing()

    def pause_writing(self) -> None:
        """Make writers wait."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Let writers continue."""
        self._is_full = False
        for writer in self._writers:
            if not writer.done():
                writer.set_result(None)

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    # --- frames ------------------------------------------------------------------------------------

    async def read(self) -> Frame:
        """Return the next frame. Raise ConnectionLost after the last one. A cancelled read loses no frame."""
        while not self._frames:
            if self.lost.is_set():
                raise ConnectionLost
            self._reader = self._loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        frame, size = self._frames.popleft()
        self._unread_bytes -= size
        if self._is_paused and self._unread_bytes <= HIGH_BYTES // 2 and self._transport is not None:
            self._is_paused = False
            if not self.lost.is_set():
                self._transport.resume_reading()
        return frame

    async def write(self, frame: Frame) -> None:
        """Write a frame, and wait until the other side has read enough. Raise ConnectionLost."""
        if self.lost.is_set() or self._transport is None:
            raise ConnectionLost
        data = _encode(frame)
        self._transport.write(len(data).to_bytes(_LENGTH_BYTES) + data)
        if self._is_full:
            writer: asyncio.Future[None] = self._loop.create_future()
            self._writers.add(writer)
            try:
                await writer
            finally:
                self._writers.discard(writer)
            if self.lost.is_set():
                raise ConnectionLost

    @property
    def peer_address(self) -> str:
        """Where the connection comes from, for the log."""
        found = None if self._transport is None else self._transport.get_extra_info("peername")
        return f"{found[0]}:{found[1]}" if isinstance(found, tuple) else ""

    @property
    def is_idle(self) -> bool:
        """Whether the connection is open and has no unread frame."""
        return not (self.lost.is_set() or self._frames or self._buffer)

    def close(self) -> None:
        """Close the connection after the written frames are sent. Idempotent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection without sending the rest. Idempotent."""
        if self._transport is not None:
            self._transport.abort()
