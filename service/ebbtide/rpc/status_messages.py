"""The messages of `google.rpc` that an error consists of, with the same fields and numbers, and so the same bytes.

The package googleapis-common-protos has them too, among 1.5 MB of messages of Google's services. Its names cannot be
used twice in a process, so these messages are in a pool of their own.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

_PACKAGE = "ebbtide.status"

_FIELDS = {
    "Status": ("code int32", "message string", "details Any"),
    "Any": ("type_url string", "value bytes"),
    "ErrorInfo": ("reason string", "domain string", "metadata Entry"),
    "Entry": ("key string", "value string"),
    "RetryInfo": ("retry_delay Duration",),
    "Duration": ("seconds int64",),
    "BadRequest": ("field_violations FieldViolation",),
    "FieldViolation": ("field string", "description string"),
}
"""Name and type of the fields of each message, in the order of their numbers."""

_REPEATED = {"details", "metadata", "field_violations"}


def _pool() -> DescriptorPool:
    file = FileDescriptorProto(name="ebbtide/status.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for number, (field, kind) in enumerate(map(str.split, fields), start=1):
            added = message.field.add(name=field, number=number)
            added.label = added.LABEL_REPEATED if field in _REPEATED else added.LABEL_OPTIONAL
            if kind in _FIELDS:
                added.type, added.type_name = added.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
            else:
                added.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return pool


_POOL = _pool()


def _class_of(name: str) -> Any:
    return GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


Status, ErrorInfo, RetryInfo, BadRequest = map(_class_of, ("Status", "ErrorInfo", "RetryInfo", "BadRequest"))


def add_detail(status: Any, detail: Message) -> None:
    """Add a detail to a status."""
    name = f"type.googleapis.com/google.rpc.{detail.DESCRIPTOR.name}"
    status.details.add(type_url=name, value=detail.SerializeToString())
