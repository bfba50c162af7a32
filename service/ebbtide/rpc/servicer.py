"""The servicer: every call of the catalogue, with one conversion and one error path.

Bytes → message → fields → request → verb → response → message, or an error as a status. If the client cancels a call or
its deadline passes, gRPC cancels its task; jobs that have not started are dropped (`fleet/runtime/mailbox.py`). A call
that arrives after its deadline is refused. Requests are parsed here, because gRPC would report invalid bytes as an
internal error.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NoReturn, TypeVar

import grpc
import grpc.aio
import structlog
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from ebbtide.access.grants import CALLER, let_ask
from ebbtide.access.requirements import Requirement
from ebbtide.errors import (
    REASONS,
    Corrupted,
    Deadline,
    EbbtideError,
    Internal,
    InvalidRequest,
    NotFound,
    stopping,
)
from ebbtide.rpc.convert import fields_of, parse, to_message
from ebbtide.rpc.problems import DETAILS_KEY, status_of
from ebbtide.rpc.stalls import Context, Stalls, endpoint_of
from ebbtide.settings import LimitSettings
from ebbtide.telemetry import get_log, request_id_from, span, verb_span
from ebbtide.v1 import memory_service_pb2
from ebbtide.verbs.catalogue import CATALOGUE, OPERATIONS, Kind, Operation
from ebbtide.verbs.merging import perform
from ebbtide.verbs.requests import Request, Response, validated
from ebbtide.verbs.service import Service

SERVICE = memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"]

REQUEST_ID_KEY = "x-request-id"
AUTHORIZATION_KEY = "authorization"

VERBS = {operation.name: operation.verb_name for operation in CATALOGUE if operation.is_rpc}
"""The names of verbs in metrics, over both transports."""

LARGE_MESSAGE_BYTES = 16 << 10
"""Messages of this size or more are converted in a worker process, because every two bytes may be a nested message."""

ITEM_BYTES = 512
"""The cost of converting one item of a list, as the size of a request that costs the same to parse."""

Handlers = Sequence["grpc.GenericRpcHandler[Any, Any]"]

EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined] # The stubs do not know it.

Metadata = Mapping[str, Sequence[str]]
"""The text values in a call's metadata, by name."""

T = TypeVar("T")


class Servicer:
    """Every call of the service."""

    def __init__(self, service: Service, stalls: Stalls) -> None:
        self._service = service
        self.stalls = stalls
        self._log = get_log("rpc")
        self._running = 0
        self.idle = asyncio.Event()
        """Set while no call is running."""
        self.idle.set()
        self.is_stopping = False
        """Whether to refuse further calls."""

    def handlers(self) -> Handlers:
        """Return the handlers of all calls."""
        calls = {method.name: self.handler(method) for method in SERVICE.methods}
        return [grpc.method_handlers_generic_handler(SERVICE.full_name, calls)]

    def fallback(self) -> Handlers:
        """Return the handler of unknown calls. Add it last."""
        return [_Fallback(self)]

    def handler(self, method: MethodDescriptor) -> grpc.RpcMethodHandler[Any, Any]:
        """Return the handler of a call."""
        operation = OPERATIONS[method.name]
        if operation.kind is Kind.UPLOAD:
            return self._upload(operation, method)
        if operation.kind is Kind.CALL:
            return self._call(operation, method)
        return self._stream(operation, method)

    def _call(self, operation: Operation, method: MethodDescriptor) -> grpc.RpcMethodHandler[Any, Any]:
        response_kind = GetMessageClass(method.output_type)

        async def handle(_: object, context: Context) -> bytes:
            body = await self._read(context) or b""

            async def work() -> bytes:
                request = await self._request(operation, body)
                response = await perform(self._service, operation, request)
                return await self._service.offload(
                    _conversion_cost(response),
                    lambda: to_message(response_kind, response).SerializeToString(),
                )

            return await self.answer(operation.name, context, work)

        # A stream looks the same to clients. For a unary handler, gRPC would wait without a deadline until the
        # whole message has arrived.
        return grpc.stream_unary_rpc_method_handler(handle)

    def _stream(self, operation: Operation, method: MethodDescriptor) -> grpc.RpcMethodHandler[Any, Any]:
        response_kind = GetMessageClass(method.output_type)

        async def handle(_: object, context: Context) -> None:
            body = await self._read(context) or b""

            async def send_piece(piece: bytes) -> None:
                await self._write(context, response_kind(chunk=piece))

            async def work() -> None:
                request = await self._request(operation, body)
                response = await operation.verb(self._service, request)
                if operation.kind is Kind.DOWNLOAD:
                    with response as file:
                        await file.hand_over(send_piece)
                    return
                try:
                    async for page in response.pages():
                        for item in page:
                            await self._write(context, to_message(response_kind, item))
                finally:
                    response.close()

            await self.answer(operation.name, context, work)

        return grpc.stream_stream_rpc_method_handler(handle)

    def _upload(self, operation: Operation, method: MethodDescriptor) -> grpc.RpcMethodHandler[Any, Any]:
        request_kind, response_kind = GetMessageClass(method.input_type), GetMessageClass(method.output_type)

        async def handle(_: object, context: Context) -> bytes:
            async def received() -> AsyncGenerator[dict[str, Any], None]:
                while (body := await self._read(context)) is not None:
                    yield fields_of(parse(request_kind, body))

            messages = received()

            async def work() -> bytes:
                fields = await anext(messages, None)
                if fields is None:
                    raise InvalidRequest("agent_id: required in the first message", reason="MISSING_FIELD")
                first_piece = fields.pop("chunk", b"")
                self._permit(operation.requires, fields["agent_id"])
                request = validated(operation.request, fields, self._service.settings.limits)

                async def pieces() -> AsyncIterator[bytes]:
                    if first_piece:
                        yield first_piece
                    async for message in messages:
                        yield message.get("chunk", b"")

                response = await operation.verb(self._service, request, pieces())
                return to_message(response_kind, response).SerializeToString()

            try:
                return await self.answer(operation.name, context, work)
            finally:
                # An upload that is refused early is not read to its end.
                await messages.aclose()

        return grpc.stream_unary_rpc_method_handler(handle)

    async def _read(self, context: Context) -> bytes | None:
        """Return the next message of a request; None after the last."""
        with self.stalls.arriving(context):
            body = await context.read()
        return None if body is EOF else body

    async def _write(self, context: Context, message: Message) -> None:
        """Send one message of a stream, and wait until the client has read enough."""
        body = message.SerializeToString()
        with self.stalls.sending(context, len(body)):
            await context.write(body)

    def _permit(self, requires: Requirement, agent_id: str | None) -> None:
        """Refuse a caller that lacks the permission for an operation on an agent."""
        self._service.authentication.permit(CALLER.get(), requires, agent_id)

    async def _request(self, operation: Operation, body: bytes) -> Request:
        """Return the request in a message. A missing right is reported before invalid fields."""
        agent_id, request = await self._parsed(operation, body)
        self._permit(operation.requires, agent_id)
        if isinstance(request, InvalidRequest):
            raise request
        return request

    async def _parsed(self, operation: Operation, body: bytes) -> tuple[str | None, Request | InvalidRequest]:
        """Return what `read_message` returns, in a worker process if the message is large."""
        service = self._service
        return await service.read_request(
            len(body),
            read_message,
            operation.name,
            body,
            service.settings.limits,
            large_bytes=LARGE_MESSAGE_BYTES,
        )

    async def answer(self, method: str, context: Context, work: Callable[[], Awaitable[T]]) -> T:
        """Run the work of one call, and log its outcome. Errors become statuses."""
        self._begin(context)
        metadata = metadata_of(context)
        request_id = _request_id(metadata)
        structlog.contextvars.bind_contextvars(request_id=request_id)
        context.set_trailing_metadata(((REQUEST_ID_KEY, request_id),))
        begun_s = time.monotonic()
        code, outcome = "CANCELLED", "cancelled"
        try:
            if self.is_stopping:
                raise stopping()
            _refuse_late(context)
            parent = metadata.get("traceparent", [""])[0]
            with span("rpc.request", parent=parent, request_id=request_id) as current:
                current.set("rpc.method", method)
                self.admit(context, metadata)
                with verb_span(VERBS.get(method, "none")):
                    result = await work()
            code, outcome = "OK", "ok"
            self.stalls.finishing(context, len(result) if isinstance(result, bytes) else 0)
            return result
        except EbbtideError as error:
            code, outcome = error.grpc, REASONS[error.reason].family
            if isinstance(error, (Corrupted, Internal)):
                self._log.error("request failed", reason=error.reason, exc_info=error)
            await self.refuse(context, error, request_id)
        except grpc.aio.InternalError:
            # The connection is closed, so no status can be sent.
            raise
        except Exception as error:
            code, outcome = "INTERNAL", "Internal"
            self._log.error("request failed", reason="INTERNAL", exc_info=error)
            await self.refuse(context, Internal("unexpected"), request_id)
        finally:
            took_s = time.monotonic() - begun_s
            self._service.metrics.request("grpc", VERBS.get(method, "none"), outcome, took_s)
            self._log.info("request", method=method, code=code, took_ms=round(took_s * 1000, 1))

    def _begin(self, context: Context) -> None:
        """Count a running call until it is done."""
        self._running += 1
        self.idle.clear()
        context.add_done_callback(self._on_done)

    def _on_done(self, _: Context) -> None:
        self._running -= 1
        if not self._running:
            self.idle.set()

    def admit(self, context: Context, metadata: Metadata) -> None:
        """Authenticate the caller. Raise MISSING_KEY, INVALID_KEY, RATE_LIMITED or RATE_LIMITED_TRIES."""
        authorizations = metadata.get(AUTHORIZATION_KEY, ())
        caller = self._service.authentication.admit(authorizations, _address(context.peer()))
        let_ask(caller)
        if caller.key_id:
            structlog.contextvars.bind_contextvars(key=caller.key_id)

    async def refuse(self, context: Context, error: EbbtideError, request_id: str = "") -> NoReturn:
        """End a call with an error."""
        status = status_of(error)
        metadata = (
            (REQUEST_ID_KEY, request_id or _request_id(metadata_of(context))),
            (DETAILS_KEY, status.SerializeToString()),
        )
        self.stalls.finishing(context, 0)
        await context.abort(grpc.StatusCode[error.grpc], status.message, metadata)
        raise AssertionError("abort does not return")


class _Fallback(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    def __init__(self, servicer: Servicer) -> None:
        self._servicer = servicer

    def service(self, _: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:
        """Return a handler that refuses any kind of call without reading a message."""

        async def refuse() -> bytes:
            raise NotFound(
                "This call does not exist. See the calls of ebbtide.v1.MemoryService.",
                reason="ROUTE_NOT_FOUND",
            )

        async def handle(_: Any, context: Context) -> None:
            await self._servicer.answer("", context, refuse)

        return grpc.stream_stream_rpc_method_handler(handle)


def read_message(
    name: str, body: bytes, limits: LimitSettings
) -> tuple[str | None, Request | InvalidRequest]:
    """Return the agent id in a message, and its request or the error of its validation.

    Raise INVALID_JSON, UNKNOWN_FIELD or TOO_MANY_ITEMS for a message that cannot be parsed.
    """
    fields = fields_of(parse(_request_kind(name), body))
    agent_id = fields.get("agent_id")
    try:
        return agent_id, validated(OPERATIONS[name].request, fields, limits)
    except InvalidRequest as error:
        return agent_id, error


@cache
def _request_kind(name: str) -> type[Message]:
    return GetMessageClass(SERVICE.methods_by_name[name].input_type)


def _conversion_cost(response: Response) -> int:
    """Estimate the cost of converting a response: lists are converted field by field, texts at once."""
    items = sum(len(value) for value in vars(response).values() if isinstance(value, list))
    return response.column_bytes + ITEM_BYTES * items


def _request_id(metadata: Metadata) -> str:
    return request_id_from(metadata.get(REQUEST_ID_KEY, [None])[0])


@lru_cache(1024)
def _address(peer: str) -> str:
    """Return the address of a caller."""
    return endpoint_of(peer)[0]


def metadata_of(context: Context) -> Metadata:
    """Return the text values in a call's metadata by name. gRPC builds the metadata again at each access."""
    found: dict[str, list[str]] = {}
    for name, value in context.invocation_metadata() or ():
        if isinstance(value, str):
            found.setdefault(name, []).append(value)
    return found


def _refuse_late(context: Context) -> None:
    left_s = context.time_remaining()
    if left_s is not None and left_s <= 0:
        raise Deadline("The deadline of the call has passed.", reason="REQUEST_TIMED_OUT")
