"""Requests generated from the gRPC schema: none causes an internal error, and each error states its reason.

Covers every call of the service, with messages drawn from its descriptors: any field set or unset, extreme numbers,
any text, unknown fields, and bytes that are no message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_status import rpc_status
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.errors import REASONS
from tests.fuzz.conftest import FUZZING
from tests.support.callers import SERVICE
from tests.support.process import Daemon, running_daemon

QUIET = {"EMBEDDING__MODEL": "off"}
CALL_TIMEOUT_S = 60.0
OUR_FAULTS = {"UNKNOWN", "INTERNAL", "DATA_LOSS"}
NAMES = st.sampled_from(["", "a", "记忆", "ann", "x" * 129, "a/b", "n1", "b1", "m1", "\u202eanna", "\x00"])
TEXTS = st.one_of(NAMES, st.text(max_size=40), st.sampled_from(["长" * 2000, "𝔘nicode 🦊", "\n\r\t{}[]"]))
WIDE = [0, 1, -1, 2, 100, 2**31 - 1, -(2**31)]
NUMBERS: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.CPPTYPE_INT32: st.one_of(st.sampled_from(WIDE), st.integers(0, 5)),
    FieldDescriptor.CPPTYPE_UINT32: st.sampled_from([0, 1, 2**32 - 1]),
    FieldDescriptor.CPPTYPE_INT64: st.sampled_from([*WIDE, 2**63 - 1, -(2**63)]),
    FieldDescriptor.CPPTYPE_UINT64: st.sampled_from([0, 1, 2**64 - 1]),
    FieldDescriptor.CPPTYPE_DOUBLE: st.floats(width=64),
    FieldDescriptor.CPPTYPE_FLOAT: st.floats(width=32),
    FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
    FieldDescriptor.CPPTYPE_ENUM: st.sampled_from([0, 1, 2, 3, 99, -1]),
    FieldDescriptor.CPPTYPE_STRING: TEXTS,
}
"""Values of a field, by its kind."""

METHODS = [
    method for method in SERVICE.methods if not method.server_streaming and not method.client_streaming
]


@st.composite
def messages(draw: Any, kind: Descriptor, depth: int = 0) -> Message:
    """Draw a message of a kind, with each of its fields set or unset."""
    made: Message = GetMessageClass(kind)()
    for field in kind.fields:
        if field.name == "agent_id" and draw(st.integers(0, 3)):
            made.agent_id = draw(st.sampled_from(["ann", "记忆"]))  # type: ignore[attr-defined]
        elif draw(st.booleans()):
            _fill(draw, made, field, depth)
    if depth == 0 and draw(st.integers(0, 9)) == 0:
        made.MergeFromString(bytes.fromhex("c8bb0e01"))  # an unknown field
    return made


def _fill(draw: Any, made: Message, field: FieldDescriptor, depth: int) -> None:
    place = getattr(made, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return
    if field.is_repeated:
        for _ in range(draw(st.sampled_from([1, 2, 5]))):
            if field.message_type is None:
                place.append(draw(_value(field)))
            elif depth < 4:
                place.add().CopyFrom(draw(messages(field.message_type, depth + 1)))
    elif field.message_type is None:
        setattr(made, field.name, draw(_value(field)))
    elif depth < 4:
        place.SetInParent()
        place.CopyFrom(draw(messages(field.message_type, depth + 1)))


def _value(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return st.binary(max_size=20)
    return NUMBERS[field.cpp_type]


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon for all calls of this file; afterwards its stores and its log are checked."""
    with running_daemon(tmp_path_factory.mktemp("fuzz") / "data", QUIET) as daemon:
        yield daemon
        assert '"level": "error"' not in daemon.log
        assert daemon.stop() == 0


@pytest.fixture(scope="module")
def channel(fuzzed: Daemon) -> Iterator[grpc.Channel]:
    """A connection to it."""
    with grpc.insecure_channel(fuzzed.grpc_target) as made:
        yield made


def judged(channel: grpc.Channel, name: str, body: bytes) -> str:
    """Return the code of a call, after a check of its error."""
    call: Any = channel.unary_unary(f"/{SERVICE.full_name}/{name}")
    try:
        call(body, timeout=CALL_TIMEOUT_S)
    except grpc.RpcError as error:
        told: Any = error
        code: str = told.code().name
        assert code not in OUR_FAULTS, told.details()
        status = rpc_status.from_call(told)
        assert status is not None, "every error says why"
        info = ErrorInfo()
        assert any(detail.Unpack(info) for detail in status.details)
        assert REASONS[info.reason].grpc == code
        return code
    return "OK"


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@FUZZING
@given(data=st.data())
def test_any_message_is_answered_or_refused_with_a_reason(
    channel: grpc.Channel, method: Any, data: st.DataObject
) -> None:
    """No message makes a call end in UNKNOWN, INTERNAL or DATA_LOSS."""
    request = data.draw(messages(method.input_type))
    for field in ("timeout_ms", "patience_ms"):
        # Waiting for an event that never comes is correct, but takes time.
        if field in method.input_type.fields_by_name and getattr(request, field) > 50:
            setattr(request, field, 50)
    judged(channel, method.name, request.SerializeToString())


@FUZZING
@given(method=st.sampled_from(METHODS), body=st.binary(max_size=60))
def test_bytes_that_are_no_message_are_refused(channel: grpc.Channel, method: Any, body: bytes) -> None:
    """Bytes that are no message are refused as an error of the client."""
    judged(channel, method.name, body)


@FUZZING
@given(data=st.data())
def test_messages_cut_short_are_refused_or_read(channel: grpc.Channel, data: st.DataObject) -> None:
    """A truncated message is a shorter one, or refused."""
    method = SERVICE.methods_by_name["Remember"]
    whole = data.draw(messages(method.input_type)).SerializeToString()
    judged(channel, method.name, whole[: data.draw(st.integers(0, len(whole)))])
