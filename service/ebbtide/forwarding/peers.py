"""Connections to the peers of a process: the other workers of a daemon, or the other nodes of a cluster (`nodes.py`).

The parent creates an inbox for each worker: a pair of connected sockets that every worker inherits. A worker connects
by sending one end of a new socket pair to the inbox of the other worker. So the sockets need no name in the file
system, no other process can connect, and a connection to a worker that is being restarted waits for its successor.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from functools import lru_cache
from typing import Any

import msgspec

from ebbtide.errors import EbbtideError, Unavailable
from ebbtide.forwarding.exchange import (
    ConnectionLost,
    Exchange,
    Head,
    Seen,
    Taken,
    VerbHead,
    VerbResult,
    ends_request,
    ends_response,
)
from ebbtide.ids import MAX_AGENT_ID_LENGTH
from ebbtide.shard import Shard
from ebbtide.telemetry import get_log, in_background

TAKEN_WITHIN_S = 5.0
"""Longest wait for a worker that is being restarted."""

RETRY_AFTER_S = 1.0

FINISH_S = 2.0
"""How long a process that stops waits for the requests that it answers, or passes on, for others."""

MAX_IDLE = 64
"""Most idle connections to one worker."""

Answer = Callable[[Any, Exchange], Awaitable[bool]]
"""Answers one forwarded request. Returns whether the connection can be reused."""


class Inbox:
    """The socket pair on which one worker receives connections. Created before the workers, which inherit it."""

    def __init__(self) -> None:
        self.receiving, self.sending = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (self.receiving, self.sending):
            end.setblocking(False)

    def close(self) -> None:
        """Close both ends. Idempotent."""
        self.receiving.close()
        self.sending.close()


class Peers(ABC):
    """The processes that serve other agents, by index, as one of them uses them."""

    own: int
    """The index of this process."""

    def __init__(self) -> None:
        self._idle: dict[int, list[Exchange]] = {}
        self._open: set[Exchange] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._answering = 0
        """The number of requests of others that are being answered or passed on."""
        self._has_answered = asyncio.Event()
        """Set while there are none."""
        self._has_answered.set()
        self._answers: dict[type[Any], Answer] = {}

    @abstractmethod
    def owner_of(self, agent_id: str) -> int:
        """Return the index of the process that owns an agent, or the own one if the id is invalid."""

    async def owner(self, agent_id: str) -> int:
        """Return the same, once an agent that is moving has moved."""
        return self.owner_of(agent_id)

    @abstractmethod
    async def catch_up(self, version: int) -> None:
        """Wait a moment until this process knows who owns which agent as well as the one that forwards a request."""

    @property
    @abstractmethod
    def others(self) -> list[int]:
        """The indices of the other processes that answer for agents."""

    @abstractmethod
    def unreachable(self) -> EbbtideError:
        """Return the error for a request to a process that does not answer."""

    @abstractmethod
    async def _connected(self, peer: int) -> Exchange:
        """Return a new connection to a process. Raise the error of `unreachable`."""

    @abstractmethod
    def _stop_listening(self) -> None:
        """Accept no more connections."""

    # --- requests to others ------------------------------------------------------------------------

    async def connect(self, peer: int) -> Exchange:
        """Return an idle or a new connection to a process. Raise the error of `unreachable`."""
        idle = self._idle.get(peer, [])
        while idle:
            exchange = idle.pop()
            if exchange.is_idle:
                return exchange
            exchange.abort()
        return await self._connected(peer)

    def give_back(self, peer: int, exchange: Exchange) -> None:
        """Keep a connection for reuse. Both sides have sent and read everything."""
        idle = self._idle.setdefault(peer, [])
        if len(idle) < MAX_IDLE and exchange.is_idle:
            idle.append(exchange)
        else:
            exchange.close()

    async def request(self, peer: int, head: VerbHead) -> VerbResult:
        """Return the result of an operation from a process. Raise the error of `unreachable`."""
        exchange = await self.connect(peer)
        try:
            await exchange.write(head)
            result = await exchange.read()
        except ConnectionLost:
            raise self.unreachable() from None
        except BaseException:
            exchange.abort()
            raise
        assert isinstance(result, VerbResult)
        self.give_back(peer, exchange)
        return result

    # --- requests from others ----------------------------------------------------------------------

    def answer(self, kind: type[Head], answer: Answer) -> None:
        """Use `answer` for forwarded requests of a kind."""
        self._answers[kind] = answer

    async def _serve(self, exchange: Exchange) -> None:
        """Answer the requests of one connection."""
        self._open.add(exchange)
        try:
            await exchange.write(Taken())
            is_reusable = True
            while is_reusable:
                head: Any = await exchange.read()
                if isinstance(head, Seen):
                    await self.catch_up(head.version)
                    continue
                with self._counted():
                    is_reusable = await self._answer(head, exchange)
        except ConnectionLost:
            pass
        except Exception as error:
            get_log("forwarding").error("forwarded request failed", exc_info=error)
        finally:
            self._open.discard(exchange)
            exchange.close()

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """Count a request of another process for the block."""
        self._answering += 1
        self._has_answered.clear()
        try:
            yield
        finally:
            self._answering -= 1
            if not self._answering:
                self._has_answered.set()

    async def _answer(self, head: Head, exchange: Exchange) -> bool:
        """Answer one request, or pass it on. Return whether both sides are complete."""
        owner = self.own if head.is_repeated else await self.owner(head.agent_id)
        if owner == self.own:
            return await self._answers[type(head)](head, exchange)
        return await self._repeat(head, exchange, owner)

    async def _repeat(self, head: Head, exchange: Exchange, owner: int) -> bool:
        """Pass a request on to the process that owns its agent now. Return whether both sides are complete."""
        try:
            further = await self.connect(owner)
        except EbbtideError:
            # The process that has the client's connection responds.
            return False
        head = msgspec.structs.replace(head, is_repeated=True)
        up = asyncio.create_task(_copy_request(head, exchange, further))
        down = asyncio.create_task(_copy_response(further, exchange))
        lost = asyncio.create_task(exchange.lost.wait())
        try:
            await asyncio.wait({down, lost}, return_when=asyncio.FIRST_COMPLETED)
            return _has_succeeded(up) and _has_succeeded(down)
        finally:
            if _has_succeeded(up) and _has_succeeded(down):
                self.give_back(owner, further)
            else:
                further.abort()
            for task in (up, down, lost):
                task.cancel()
            await asyncio.gather(up, down, lost, return_exceptions=True)

    async def close(self) -> None:
        """Close every connection. Requests of others have a moment to end. Idempotent."""
        self._stop_listening()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FINISH_S):
                await self._has_answered.wait()
        for exchange in (*self._open, *(one for idle in self._idle.values() for one in idle)):
            exchange.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)


async def _copy_request(head: Head, source: Exchange, target: Exchange) -> None:
    frame: Any = head
    await target.write(frame)
    while not ends_request(head, frame):
        frame = await source.read()
        await target.write(frame)


async def _copy_response(source: Exchange, target: Exchange) -> None:
    frame: Any = None
    while not ends_response(frame):
        frame = await source.read()
        await target.write(frame)


def _has_succeeded(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


class WorkerPeers(Peers):
    """The workers of a daemon, as one of them uses them."""

    def __init__(self, shard: Shard, inboxes: list[Inbox], directory_of: Callable[[str], str]) -> None:
        """`shard` is that of this worker. `directory_of` returns the name of an agent's directory."""
        super().__init__()
        self.shard = shard
        self.own = shard.index
        self._inboxes = inboxes
        self._owner_of: Callable[[str], int] = lru_cache(4096)(
            lambda agent_id: shard.owner_of(directory_of(agent_id))
        )

    def owner_of(self, agent_id: str) -> int:
        """Return the index of the worker that owns an agent, or of this worker if the id is invalid."""
        if not 0 < len(agent_id) <= MAX_AGENT_ID_LENGTH:
            return self.own
        try:
            return self._owner_of(agent_id)
        except UnicodeEncodeError:
            return self.own

    async def catch_up(self, version: int) -> None:
        """Return: a worker knows the owners from its start."""

    @property
    def others(self) -> list[int]:
        """The indices of the other workers."""
        return [index for index in range(self.shard.count) if index != self.own]

    def unreachable(self) -> EbbtideError:
        """Return WORKER_RESTARTING."""
        return Unavailable(
            "The process that serves this agent is being restarted. Retry later.",
            reason="WORKER_RESTARTING",
            retry_after_s=RETRY_AFTER_S,
        )

    async def _connected(self, peer: int) -> Exchange:
        own_end, its_end = socket.socketpair()
        own_end.setblocking(False)
        try:
            socket.send_fds(self._inboxes[peer].sending, [b"+"], [its_end.fileno()])
        except OSError:
            own_end.close()
            raise self.unreachable() from None
        finally:
            its_end.close()
        _, exchange = await asyncio.get_running_loop().create_unix_connection(Exchange, sock=own_end)
        try:
            async with asyncio.timeout(TAKEN_WITHIN_S):
                await exchange.read()
        except (TimeoutError, ConnectionLost):
            exchange.abort()
            raise self.unreachable() from None
        except BaseException:
            exchange.abort()
            raise
        return exchange

    def listen(self) -> None:
        """Accept connections from the other workers."""
        asyncio.get_running_loop().add_reader(self._inboxes[self.own].receiving, self._receive)

    def _stop_listening(self) -> None:
        asyncio.get_running_loop().remove_reader(self._inboxes[self.own].receiving)

    def _receive(self) -> None:
        while True:
            try:
                _, descriptors, _, _ = socket.recv_fds(self._inboxes[self.own].receiving, 16, 1)
            except BlockingIOError:
                return
            except OSError as error:
                get_log("forwarding").warning("no connection can be received", errno=error.errno)
                return
            for descriptor in descriptors:
                task = in_background(self._accept(socket.socket(fileno=descriptor)))
                self._serving.add(task)
                task.add_done_callback(self._serving.discard)

    async def _accept(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        _, exchange = await asyncio.get_running_loop().create_unix_connection(Exchange, sock=connection)
        await self._serve(exchange)
