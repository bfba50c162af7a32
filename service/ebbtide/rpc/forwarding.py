"""Forwarding over gRPC: a worker passes a call on to the worker that owns its agent.

The worker that accepts a connection reads only the field `agent_id` of a call's first message. The owner does the
rest: authentication, validation, the log line and the metrics. It uses the handler of its own calls, with a context
that reads and writes frames. If the client cancels or the deadline passes, the owner's work is cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, cast

import grpc
import grpc.aio
from google.protobuf.descriptor import MethodDescriptor

from ebbtide.errors import EbbtideError, stopping
from ebbtide.forwarding.exchange import CallEnd, CallHead, CallMessage, ConnectionLost, Exchange, Metadata
from ebbtide.forwarding.peers import Peers
from ebbtide.rpc.servicer import EOF, SERVICE, Servicer
from ebbtide.rpc.stalls import Context, Stalls
from ebbtide.verbs.catalogue import OPERATIONS, Kind, Operation
from ebbtide.verbs.requests import AgentRequest
from ebbtide.verbs.service import Service

MAX_FIELDS = 4000
"""Most fields of a message that are searched for the agent's id. A message with more is decoded."""


class ForwardingServicer(Servicer):
    """Passes calls on to the owners of their agents, and answers those that other workers pass on."""

    def __init__(self, service: Service, stalls: Stalls, peers: Peers) -> None:
        super().__init__(service, stalls)
        self._peers = peers
        # The worker that has the client's connection enforces the deadlines.
        own = Servicer(service, _NoStalls())
        self._handlers = {method.name: _behaviour(own.handler(method)) for method in SERVICE.methods}
        peers.answer(CallHead, self.answer_forwarded)

    def handler(self, method: MethodDescriptor) -> grpc.RpcMethodHandler[Any, Any]:
        """Return the handler of a call, which passes it on if another worker owns its agent."""
        own = super().handler(method)
        operation = OPERATIONS[method.name]
        if not issubclass(operation.request, AgentRequest):
            return own
        behaviour = _behaviour(own)

        async def handle(_: object, context: Context) -> Any:
            first = await self._read(context)
            agent_id = await self._agent_of(operation, first or b"")
            worker = await self._peers.owner(agent_id)
            if worker == self._peers.own:
                return await behaviour(None, _Resumed(context, EOF if first is None else first))
            return await self._forward(operation, context, first or b"", agent_id, worker)

        if operation.kind in (Kind.DOWNLOAD, Kind.STREAM):
            return grpc.stream_stream_rpc_method_handler(handle)
        return grpc.stream_unary_rpc_method_handler(handle)

    async def _agent_of(self, operation: Operation, message: bytes) -> str:
        """Return the id of the agent in a message; empty if there is none."""
        try:
            agent_id = agent_id_in(message)
            if agent_id is None:
                agent_id, _ = await self._parsed(operation, message)
            return agent_id or ""
        except (EbbtideError, ValueError):
            # The handler of this worker reports the error.
            return ""

    async def _forward(
        self, operation: Operation, context: Context, first: bytes, agent_id: str, worker: int
    ) -> bytes:
        """Pass a call on to a worker, and its response to the client."""
        if self.is_stopping:
            return await self._fail(operation, context, stopping())
        self._begin(context)
        is_upload = operation.kind is Kind.UPLOAD
        try:
            exchange = await self._peers.connect(worker)
        except EbbtideError as error:
            return await self._fail(operation, context, error)
        metadata: Metadata = [(name, value) for name, value in context.invocation_metadata() or ()]
        head = CallHead(
            operation.name, first, is_upload, metadata, context.peer(), context.time_remaining(), agent_id
        )
        uploading: asyncio.Task[None] | None = None
        body, end = b"", None
        try:
            await exchange.write(head)
            if is_upload:
                uploading = asyncio.create_task(self._pass_on(context, exchange))
            while not isinstance(end, CallEnd):
                end = await exchange.read()
                if isinstance(end, CallMessage) and operation.kind in (Kind.DOWNLOAD, Kind.STREAM):
                    with self.stalls.sending(context, len(end.data)):
                        await context.write(end.data)
                elif isinstance(end, CallMessage):
                    body = end.data
        except ConnectionLost:
            return await self._fail(operation, context, self._peers.unreachable())
        finally:
            is_uploaded = uploading is None or uploading.done()
            if uploading is not None:
                uploading.cancel()
            if isinstance(end, CallEnd) and is_uploaded:
                self._peers.give_back(worker, exchange)
            else:
                exchange.abort()
        self.stalls.finishing(context, len(body))
        if end.code != "OK":
            await context.abort(grpc.StatusCode[end.code], end.details, tuple(end.trailing))
        context.set_trailing_metadata(tuple(end.trailing))
        return body

    async def _pass_on(self, context: Context, exchange: Exchange) -> None:
        """Pass on the messages of an upload."""
        with contextlib.suppress(ConnectionLost):
            while (message := await self._read(context)) is not None:
                await exchange.write(CallMessage(message))
            await exchange.write(CallEnd())

    async def _fail(self, operation: Operation, context: Context, error: EbbtideError) -> bytes:
        """End a call with an error, after the checks of every call."""

        async def refuse() -> bytes:
            raise error

        return await self.answer(operation.name, context, refuse)

    async def answer_forwarded(self, head: Any, exchange: Exchange) -> bool:
        """Answer a call that another worker passed on. Return whether both sides are complete."""
        context = _Forwarded(head, exchange)
        work = asyncio.create_task(self._handlers[head.method](None, context))
        lost = asyncio.create_task(exchange.lost.wait())
        await asyncio.wait({work, lost}, return_when=asyncio.FIRST_COMPLETED)
        lost.cancel()
        work.cancel()
        done: Any = (await asyncio.gather(work, return_exceptions=True))[0]
        context.finish()
        if exchange.lost.is_set():
            return False
        if not isinstance(done, BaseException):
            if done is not None:
                await exchange.write(CallMessage(done))
            await exchange.write(CallEnd(trailing=context.trailing))
        elif not isinstance(done, grpc.aio.AbortError):
            return False
        while not context.is_received:
            # The call has ended early. The other worker sends the remaining messages, or closes the connection.
            context.is_received = isinstance(await exchange.read(), CallEnd)
        return True


def _behaviour(handler: grpc.RpcMethodHandler[Any, Any]) -> Callable[..., Any]:
    """Return the function of a handler."""
    found: Any = handler.stream_unary or handler.stream_stream
    return cast(Callable[..., Any], found)


class _Resumed:
    """The context of a call whose first message was already read."""

    def __init__(self, context: Context, first: Any) -> None:
        self._context = context
        self._unread = [first]

    async def read(self) -> Any:
        """Return the next message."""
        return self._unread.pop() if self._unread else await self._context.read()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


class _Forwarded:
    """The context of a forwarded call: the part of `grpc.aio.ServicerContext` that handlers use."""

    def __init__(self, head: CallHead, exchange: Exchange) -> None:
        self._head = head
        self._exchange = exchange
        self._unread = [head.first]
        self._deadline_s = None if head.remaining_s is None else time.monotonic() + head.remaining_s
        self._callbacks: list[Callable[[Any], object]] = []
        self.is_received = not head.is_upload
        self.trailing: Metadata = []

    async def read(self) -> Any:
        """Return the next message, or EOF after the last."""
        if self._unread:
            return self._unread.pop()
        if not self.is_received:
            try:
                frame = await self._exchange.read()
            except ConnectionLost:
                raise asyncio.CancelledError from None
            if isinstance(frame, CallMessage):
                return frame.data
            self.is_received = True
        return EOF

    async def write(self, message: bytes) -> None:
        """Send a message of a stream."""
        try:
            await self._exchange.write(CallMessage(message))
        except ConnectionLost:
            raise asyncio.CancelledError from None

    async def abort(self, code: grpc.StatusCode, details: str, trailing: Any) -> NoReturn:
        """End the call with an error."""
        with contextlib.suppress(ConnectionLost):
            await self._exchange.write(CallEnd(code.name, details, list(trailing)))
        raise grpc.aio.AbortError("Locally aborted.")

    def set_trailing_metadata(self, trailing: Any) -> None:
        """Set the metadata that follows the response."""
        self.trailing = list(trailing)

    def invocation_metadata(self) -> Metadata:
        """Return the metadata of the request."""
        return [(name, value) for name, value in self._head.metadata]

    def time_remaining(self) -> float | None:
        """Return the time until the deadline, or None without one."""
        return None if self._deadline_s is None else self._deadline_s - time.monotonic()

    def peer(self) -> str:
        """Return the address of the client."""
        return self._head.peer

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Call a function when the call ends."""
        self._callbacks.append(callback)

    def finish(self) -> None:
        """Call the functions that wait for the end of the call."""
        for callback in self._callbacks:
            callback(self)


class _NoStalls(Stalls):
    """No deadlines, for forwarded calls."""

    def __init__(self) -> None:
        pass

    @contextlib.contextmanager
    def arriving(self, context: Context) -> Iterator[None]:
        """Do nothing."""
        yield

    @contextlib.contextmanager
    def sending(self, context: Context, size: int) -> Iterator[None]:
        """Do nothing."""
        yield

    def finishing(self, context: Context, size: int) -> None:
        """Do nothing."""


def agent_id_in(message: bytes) -> str | None:
    """Return field 1 of a message, `agent_id`; empty without one, None if the message has too many fields.

    The last occurrence counts, as in protobuf. Return an empty text or raise ValueError for a damaged message.
    """
    at, end, found = 0, len(message), b""
    for _ in range(MAX_FIELDS):
        if at >= end:
            return found.decode()
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == 2:
            size, at = _varint(message, at)
            if tag >> 3 == 1:
                found = message[at : at + size]
            at += size
        elif kind == 0:
            _, at = _varint(message, at)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            return ""
    return None


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return the number at a position and the position after it. Raise ValueError if there is none."""
    value = shift = 0
    while shift < 70 and at < len(message):
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("not a varint")
