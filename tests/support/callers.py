"""Callers: the operations over REST and over gRPC, so that one suite of cases runs over both.

A case is written as REST: method, path, body. The gRPC caller sends the same in protobuf and returns replies in
REST's form: a message as JSON, and the status of the error table, after a check that the gRPC code is the one in the
table. It knows the schema, but nothing of the daemon's own conversion (`rpc/convert.py`). It raises Unsayable for
values that protobuf cannot express, such as a text in place of a number.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import grpc
import grpc.aio
import httpx
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from grpc_status import rpc_status

from ebbtide.errors import REASONS
from ebbtide.rest.app import create_app
from ebbtide.rpc.server import GrpcServer
from ebbtide.v1 import memory_service_pb2
from ebbtide.verbs.catalogue import CATALOGUE
from ebbtide.verbs.service import Service
from tests.support.in_process import service_in
from tests.support.keys import bearer

SERVICE = memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"]

UNSAYABLE = {"WRONG_TYPE"}
"""Reasons of cases that protobuf may be unable to express: its fields have one type."""

FIRST_UNKNOWN = 30_000
"""Field numbers for names that the schema does not have."""


class Unsayable(Exception):
    """Protobuf cannot express this request."""


@contextlib.contextmanager
def unless_unsayable(reason: str) -> Iterator[None]:
    """Let a case pass that protobuf cannot express, if its reason allows that."""
    try:
        yield
    except Unsayable:
        assert reason in UNSAYABLE


class RestCaller:
    """The REST interface, without a socket."""

    transport = "rest"

    def __init__(self, service: Service) -> None:
        self.service = service
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(create_app(service)), base_url="http://127.0.0.1:8420"
        )

    def show(self, key: str) -> None:
        """Send an API key from now on."""
        self._client.headers.update(bearer(key))

    async def __call__(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        if body is not None:
            options["json"] = body
        return await self._client.request(method, path, **options)

    async def download(self, path: str) -> bytes:
        """Download a file. Its response must state the name and the length."""
        response = await self._client.get(path)
        assert response.status_code == 200, response.text
        assert int(response.headers["content-length"]) == len(response.content)
        assert response.headers["content-disposition"].startswith("attachment; filename=")
        return response.content

    async def upload(self, path: str, content: bytes, **params: bool) -> httpx.Response:
        """Send a file in pieces."""

        async def pieces() -> AsyncIterator[bytes]:
            for begin in range(0, len(content), 1 << 16):
                yield content[begin : begin + (1 << 16)]

        headers = {"content-type": "application/octet-stream"}
        return await self._client.post(path, content=pieces(), params=params, headers=headers)

    async def refused(self, method: str, path: str, body: Any = None, **options: Any) -> str:
        """Return the reason of a refusal; its body must have the form that all errors share."""
        return reason_of(await self(method, path, body, **options))


def reason_of(response: Any) -> str:
    """Return the reason of a refusal over any transport, in the form that all errors share."""
    error = response.json()["error"]
    assert set(error) - {"field_violations"} == {"code", "status", "message", "reason", "metadata"}
    assert error["code"] == response.status_code
    reason: str = error["reason"]
    return reason


ROUTES = {operation.route: operation.name for operation in CATALOGUE if operation.is_rpc}
"""Every operation: its route and its call."""

PATTERNS = [
    (re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route)), name) for route, name in ROUTES.items()
]


class Reply:
    """A response in REST's form."""

    def __init__(self, status_code: int, body: dict[str, Any], headers: dict[str, str]) -> None:
        self.status_code = status_code
        self.headers = headers
        self._body = body

    @property
    def text(self) -> str:
        return json.dumps(self._body)

    def json(self) -> Any:
        """Return the fields of the response."""
        return self._body


class GrpcCaller:
    """The gRPC interface, over a socket."""

    transport = "grpc"

    def __init__(self, service: Service, channel: grpc.aio.Channel) -> None:
        self.service = service
        self.channel = channel
        self._unknown: dict[str, str] = {}
        self._shown: tuple[tuple[str, str], ...] = ()

    def show(self, key: str) -> None:
        """Send an API key from now on."""
        self._shown = (*bearer(key).items(),)

    async def __call__(self, method: str, path: str, body: Any = None, **options: Any) -> Reply:
        name, request = self._request(method, path, body, **options)
        if name in ("BackupAgent", "ExportAgent"):
            try:
                await self._pieces(name, request)
            except grpc.aio.AioRpcError as error:
                return self._refusal(error)
            return Reply(200, {}, {})
        answer_kind = GetMessageClass(SERVICE.methods_by_name[name].output_type)
        if SERVICE.methods_by_name[name].server_streaming:
            return await self._streamed(name, request, answer_kind)
        call = self.channel.unary_unary(
            f"/{SERVICE.full_name}/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer_kind.FromString,
        )(request, metadata=self._shown)
        try:
            fields = as_json(await call)
        except grpc.aio.AioRpcError as error:
            return self._refusal(error)
        status = {
            "Remember": 202,
            "CreateNode": 201,
            "OpenAgent": 201 if fields.pop("created", False) else 200,
        }.get(name, 200)
        return Reply(status, fields, headers_of(await call.trailing_metadata()))

    async def _streamed(self, name: str, request: Message, answer_kind: Any) -> Reply:
        """Read a stream to its end: its messages as the items of a list."""
        call = self.channel.unary_stream(
            f"/{SERVICE.full_name}/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer_kind.FromString,
        )(request, metadata=self._shown)
        try:
            items = [as_json(message) async for message in call]
        except grpc.aio.AioRpcError as error:
            return self._refusal(error)
        return Reply(200, {"items": items}, headers_of(await call.trailing_metadata()))

    async def _pieces(self, name: str, request: Message) -> bytes:
        answer_kind = GetMessageClass(SERVICE.methods_by_name[name].output_type)
        call = self.channel.unary_stream(
            f"/{SERVICE.full_name}/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer_kind.FromString,
        )(request, metadata=self._shown)
        return b"".join([message.chunk async for message in call])

    async def download(self, path: str) -> bytes:
        """Download a file."""
        return await self._pieces(*self._request("GET", path))

    async def upload(self, path: str, content: bytes, **params: bool) -> Reply:
        """Upload a file in pieces; the first one contains the parameters."""
        name, first = self._request("POST", path, params)
        method = SERVICE.methods_by_name[name]
        kind, answer_kind = GetMessageClass(method.input_type), GetMessageClass(method.output_type)

        async def messages() -> AsyncIterator[Message]:
            yield first
            for begin in range(0, len(content), 1 << 16):
                yield kind(chunk=content[begin : begin + (1 << 16)])

        call = self.channel.stream_unary(
            f"/{SERVICE.full_name}/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer_kind.FromString,
        )(messages(), metadata=self._shown)
        try:
            return Reply(200, as_json(await call), {})
        except grpc.aio.AioRpcError as error:
            return self._refusal(error)

    async def refused(self, method: str, path: str, body: Any = None, **options: Any) -> str:
        """Return the reason of a refusal."""
        return reason_of(await self(method, path, body, **options))

    # --- requests ----------------------------------------------------------------------------------

    def _request(
        self, method: str, path: str, body: Any = None, *, params: Any = None
    ) -> tuple[str, Message]:
        path, _, query = path.partition("?")
        matched = [(match, name) for p, name in PATTERNS if (match := p.fullmatch(f"{method} {path}"))]
        ((place, name),) = matched
        request = GetMessageClass(SERVICE.methods_by_name[name].input_type)()
        try:
            fields = {key: unquote(text, errors="strict") for key, text in place.groupdict().items()}
        except UnicodeDecodeError as error:
            raise Unsayable(str(error)) from None
        fields |= {**dict(parse_qsl(query)), **(params or {})}
        for field in request.DESCRIPTOR.fields:
            if field.is_repeated and isinstance(fields.get(field.name), str):
                fields[field.name] = fields[field.name].split(",")
        if isinstance(fields.get("index"), str):
            if not fields["index"].isdigit():
                raise Unsayable(fields["index"])
            fields["index"] = int(fields["index"])
        if method == "GET" and isinstance(fields.get("metadata"), str):
            fields["metadata"] = json.loads(fields["metadata"])
        if name in ("OpenAgent", "UpdateAgent"):
            fields |= _parameters(name, body or {})
        else:
            fields |= body or {}
        self._unknown = {}
        self._put(request, fields, "")
        return name, request

    def _put(self, message: Message, fields: dict[str, Any], path: str) -> None:
        for name, value in fields.items():
            field = message.DESCRIPTOR.fields_by_name.get(name)
            if isinstance(value, list) and field is not None and not field.is_repeated:
                field = message.DESCRIPTOR.fields_by_name.get(f"{name}_parts", field)
            if field is None:
                number = FIRST_UNKNOWN + len(self._unknown)
                self._unknown[f"{path}{number}"] = f"{path}{name}"
                message.MergeFromString(_varint(number << 3) + b"\x01")
            elif value is not None:
                self._set(message, field, value, f"{path}{name}")

    def _set(self, message: Message, field: Any, value: Any, path: str) -> None:
        place = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            for key, text in _only(dict, value).items():
                place[key] = _only(str, text)
        elif field.is_repeated:
            for index, item in enumerate(_only(list, value)):
                if field.message_type is not None:
                    self._put(place.add(), _only(dict, item), f"{path}[{index}].")
                else:
                    place.append(_only(_KINDS.get(field.cpp_type, (int,)), item))
        elif isinstance(place, Timestamp):
            place.FromMilliseconds(0)
            place.seconds, rest_ms = divmod(_only(int, value), 1000)
            place.nanos = rest_ms * 1_000_000
        elif isinstance(place, Struct):
            place.update(_only(dict, value))
            place.SetInParent()
        elif isinstance(place, Value):
            ParseDict(value, place)
        elif field.message_type is not None:
            place.SetInParent()
            self._put(place, _only(dict, value), f"{path}.")
        elif field.type == field.TYPE_BYTES:
            setattr(message, field.name, _unpacked_bytes(_only(str, value)))
        elif field.enum_type is not None:
            number = value if isinstance(value, int) else words(field.enum_type).get(_only(str, value), 999)
            setattr(message, field.name, number)
        else:
            setattr(message, field.name, _only(_KINDS.get(field.cpp_type, (int,)), value))

    # --- responses ---------------------------------------------------------------------------------

    def _refusal(self, error: grpc.aio.AioRpcError) -> Reply:
        status = rpc_status.from_call(error)  # type: ignore[arg-type]
        assert status is not None, error
        details = [_unpacked(detail) for detail in status.details]
        (info,) = (detail for detail in details if isinstance(detail, ErrorInfo))
        assert info.domain == "ebbtide"
        known = REASONS[info.reason]
        assert error.code().name == known.grpc
        assert (status.code, status.message) == (error.code().value[0], error.details())
        body: dict[str, Any] = {
            "code": known.http,
            "status": error.code().name,
            "message": self._named(status.message),
            "reason": info.reason,
            "metadata": dict(info.metadata),
        }
        headers = headers_of(error.trailing_metadata())
        for detail in details:
            if isinstance(detail, BadRequest):
                body["field_violations"] = [
                    {"field": self._named(v.field), "description": v.description}
                    for v in detail.field_violations
                ]
            if isinstance(detail, RetryInfo):
                headers["retry-after"] = str(detail.retry_delay.seconds)
        return Reply(known.http, {"error": body}, headers)

    def _named(self, text: str) -> str:
        for number, name in self._unknown.items():
            text = text.replace(number, name)
        return text


def _parameters(name: str, body: dict[str, Any]) -> dict[str, Any]:
    given = body
    if name == "OpenAgent":
        return {"parameters": given}
    kept = {key: value for key, value in given.items() if value is not None}
    return {"parameters": kept, "reset": [key for key, value in given.items() if value is None]}


_KINDS: dict[int, tuple[type, ...]] = {
    FieldDescriptor.CPPTYPE_STRING: (str,),
    FieldDescriptor.CPPTYPE_BOOL: (bool,),
    FieldDescriptor.CPPTYPE_DOUBLE: (int, float),
}
"""Python types of a field's value by its kind; kinds that are not listed contain an integer."""


def _only(kind: type | tuple[type, ...], value: Any) -> Any:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if type(value) not in kinds:
        raise Unsayable(f"{value!r} where {kinds} belongs")
    return value


def _unpacked_bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise Unsayable(str(error)) from None


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _unpacked(detail: Any) -> Message:
    kinds = {kind.DESCRIPTOR.full_name: kind for kind in (ErrorInfo, BadRequest, RetryInfo)}
    message = kinds[detail.TypeName()]()
    assert detail.Unpack(message)
    return message


def headers_of(metadata: Any) -> dict[str, str]:
    """Return the trailing metadata that is text."""
    return {key: value for key, value in metadata or () if isinstance(value, str)}


def words(enum: Any) -> dict[str, int]:
    """Return REST's names for the values of an enum."""
    prefix = enum.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return {
        v.name.removeprefix(prefix).lower().replace("_plus_", "+"): v.number for v in enum.values if v.number
    }


def as_json(message: Message) -> dict[str, Any]:
    """Convert a message to REST's form: every field, null if it is unset."""
    return {field.name: _value(message, field) for field in message.DESCRIPTOR.fields}


def _value(message: Message, field: Any) -> Any:
    value = getattr(message, field.name)
    if field.has_presence and not message.HasField(field.name):
        return None
    if field.is_repeated and field.message_type is not None and field.message_type.GetOptions().map_entry:
        return {key: as_json(item) if isinstance(item, Message) else item for key, item in value.items()}
    if field.is_repeated:
        return [as_json(item) if field.message_type is not None else item for item in value]
    if isinstance(value, Timestamp):
        return value.ToMilliseconds()
    if isinstance(value, Struct):
        return MessageToDict(value)
    if field.message_type is not None:
        return as_json(value)
    if field.type == field.TYPE_BYTES:
        return base64.b64encode(value).decode()
    if field.enum_type is not None:
        return {number: word for word, number in words(field.enum_type).items()}[value]
    return value


@contextlib.asynccontextmanager
async def grpc_served(service: Service) -> AsyncIterator[GrpcServer]:
    """Serve gRPC for a service of this process, on a free port, for the length of a block."""
    settings = service.settings
    free = settings.model_copy(update={"server": settings.server.model_copy(update={"grpc_port": 0})})
    server = GrpcServer(free)
    serving = asyncio.create_task(server.serve(service))
    try:
        await server.started(serving)
        yield server
    finally:
        server.stop()
        await serving
        await server.release()


@contextlib.asynccontextmanager
async def rest_in(path: Path, model: Any = None, **sections: dict[str, Any]) -> AsyncIterator[RestCaller]:
    """Run a daemon without servers, called over REST."""
    async with service_in(path, model, **sections) as service:
        yield RestCaller(service)


@contextlib.asynccontextmanager
async def grpc_in(path: Path, model: Any = None, **sections: dict[str, Any]) -> AsyncIterator[GrpcCaller]:
    """Run a daemon with its gRPC server, called over gRPC."""
    async with (
        service_in(path, model, **sections) as service,
        grpc_served(service) as server,
        grpc.aio.insecure_channel(server.target) as channel,
    ):
        yield GrpcCaller(service, channel)


Caller = RestCaller | GrpcCaller
CallerIn = Callable[..., contextlib.AbstractAsyncContextManager[Any]]

CALLERS: dict[str, CallerIn] = {"rest": rest_in, "grpc": grpc_in}
"""Every transport."""

MOSTLY_REST = ["rest", pytest.param("grpc", marks=pytest.mark.full)]
"""The transports for tests of what an operation does, which is the same over both: gRPC only in `make test-all`."""
