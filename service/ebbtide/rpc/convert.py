"""Conversion between messages and the fields of requests and responses, by the schema.

Fields have the same names on both sides, so nothing is listed here. JSON and protobuf differ in three types, with one
place each: times (ms ↔ Timestamp), enums (text ↔ number), free objects (object ↔ Struct). An unset field is left out,
so the model's default applies. A number that no enum value has stays a number, and the model refuses it. Fields that
the schema does not have are refused, as over REST.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, TypeVar

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.unknown_fields import UnknownFieldSet
from pydantic import BaseModel

from ebbtide.errors import FieldViolation, InvalidRequest
from ebbtide.verbs.limits import Milliseconds
from ebbtide.verbs.requests import refuse

M = TypeVar("M", bound=Message)

Field = Any
Enum = Any
"""Descriptors; the stubs of protobuf have two types for each."""

NANOS_PER_MS = 1_000_000
NANOS_PER_S = 1_000_000_000
MAX_LIST_ITEMS = 100_000
"""Most items of a list; no limit on a list can be set higher."""

MAX_EXACT_INTEGER = 1 << 53
"""Integers up to this one are exact in a Struct, which only has doubles."""


# --- requests ----------------------------------------------------------------------------------------------


def decoded(kind: type[M], body: bytes) -> M:
    """Return the message in the bytes of a request. INVALID_JSON for invalid bytes, or text that is not UTF-8."""
    try:
        return kind.FromString(body)
    except DecodeError:
        raise InvalidRequest(
            f"the request: not a {kind.DESCRIPTOR.name} in protobuf", reason="INVALID_JSON"
        ) from None


def given(message: Message, path: str = "") -> dict[str, Any]:
    """Return the fields of a message by name. UNKNOWN_FIELD for a field that the schema does not have."""
    _refuse_unknown(message, path)
    shape = _shape(message.DESCRIPTOR)
    found: dict[str, Any] = {**shape.implied, **{name: [] for name in shape.repeated}}
    for field, value in message.ListFields():
        place = f"{path}{field.name}"
        if field.is_repeated:
            _refuse_long(place, len(value))
            found[field.name] = [_taken(field, item, f"{place}[{i}]") for i, item in enumerate(value)]
        elif not _is_unspecified(field, value):
            found[field.name] = _taken(field, value, place)
    return found


class _Shape(NamedTuple):
    """The fields that are present though unset: most of a request's fields are."""

    implied: Mapping[str, Any]
    repeated: tuple[str, ...]


@cache
def _shape(kind: Descriptor) -> _Shape:
    alone = [field for field in kind.fields if not field.is_repeated and not field.has_presence]
    return _Shape(
        {field.name: field.default_value for field in alone if field.enum_type is None},
        tuple(field.name for field in kind.fields if field.is_repeated),
    )


def _refuse_long(place: str, count: int) -> None:
    if count > MAX_LIST_ITEMS:
        description = f"{count} items; allowed: at most {MAX_LIST_ITEMS}"
        raise InvalidRequest(
            f"{place}: {description}",
            reason="TOO_MANY_ITEMS",
            violations=[FieldViolation(place, description)],
        )


def _refuse_unknown(message: Message, path: str) -> None:
    unknown = UnknownFieldSet(message)
    if not len(unknown):
        return
    fields = sorted({f"{path}{unknown[i].field_number}" for i in range(len(unknown))})
    raise InvalidRequest(
        f"{fields[0]}: no such field in {message.DESCRIPTOR.name}; the client's schema is newer, or another",
        reason="UNKNOWN_FIELD",
        violations=[FieldViolation(field, "no such field") for field in fields[:10]],
    )


def _is_unspecified(field: Field, value: Any) -> bool:
    return field.enum_type is not None and value == 0


def _taken(field: Field, value: Any, place: str) -> Any:
    if field.enum_type is not None:
        return word_of(field.enum_type, value)
    if isinstance(value, Timestamp):
        return _milliseconds(value, place)
    if isinstance(value, Struct):
        return _object(value, place)
    if isinstance(value, Message):
        return given(value, f"{place}.")
    return value


def word_of(enum: Enum, number: int) -> str | int:
    """Return the word that REST has for an enum value: its name without the enum's. An unknown number stays."""
    value = enum.values_by_number.get(number)
    return number if value is None else value.name.removeprefix(_prefix(enum)).lower()


def _prefix(enum: Enum) -> str:
    return str(enum.values_by_number[0].name).removesuffix("UNSPECIFIED")


def _milliseconds(time: Timestamp, place: str) -> int:
    if not 0 <= time.nanos < NANOS_PER_S:
        refuse(f"{place}.nanos", time.nanos, "0-999999999")
    return Milliseconds(time.seconds * 1000 + time.nanos // NANOS_PER_MS)


def _object(struct: Struct, place: str) -> dict[str, Any]:
    return {name: _json(value, f"{place}.{name}") for name, value in struct.fields.items()}


def _json(value: Value, place: str) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _object(value.struct_value, place)
    if kind == "list_value":
        return [_json(item, f"{place}[{i}]") for i, item in enumerate(value.list_value.values)]
    if kind == "number_value":
        return _number(value.number_value, place)
    return None if kind in (None, "null_value") else getattr(value, kind)


def _number(number: float, place: str) -> int | float:
    if not math.isfinite(number):
        refuse(place, number, "finite numbers")
    # A caller's 1 arrives as 1.0; over REST it stays 1.
    return int(number) if number.is_integer() and abs(number) <= MAX_EXACT_INTEGER else number


# --- answers -----------------------------------------------------------------------------------------------


def answered(kind: type[M], response: BaseModel) -> M:
    """Return the message with the fields of a response."""
    message = kind()
    _fill(message, response.model_dump())
    return message


def _fill(message: Message, fields: Mapping[str, Any]) -> None:
    by_name = message.DESCRIPTOR.fields_by_name
    for name, value in fields.items():
        if value is not None:
            _put(message, by_name[name], value)


def _put(message: Message, field: Field, value: Any) -> None:
    place = getattr(message, field.name)
    if isinstance(value, dict) and field.is_repeated:
        for key, item in value.items():
            if isinstance(item, dict):
                _fill(place[key], item)
            else:
                place[key] = item
    elif field.is_repeated:
        for item in value:
            if field.message_type is not None:
                _fill(place.add(), item)
            else:
                place.append(item)
    elif isinstance(place, Struct):
        place.update(value)
        place.SetInParent()
    elif isinstance(place, Timestamp):
        place.seconds, rest_ms = divmod(value, 1000)
        place.nanos = rest_ms * NANOS_PER_MS
        place.SetInParent()
    elif field.message_type is not None:
        _fill(place, value)
        place.SetInParent()
    elif field.enum_type is not None:
        name = _prefix(field.enum_type) + value.upper()
        setattr(message, field.name, field.enum_type.values_by_name[name].number)
    else:
        setattr(message, field.name, value)
