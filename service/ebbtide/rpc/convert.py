"""Conversion between messages and the fields of requests and responses, by the schema.

Fields have the same names in messages and models. Four types differ: times (Timestamp ↔ ms), enums (number ↔ text),
free objects (Struct ↔ object) and free values (Value ↔ value). A list `x_parts` is `x`, which
is a text or a list over REST. An unset field is left out, so the model's default applies. An unknown enum number stays
a number, which the model refuses. Fields that are not in the schema are refused, as over REST.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.unknown_fields import UnknownFieldSet
from pydantic import BaseModel

from ebbtide.errors import FieldViolation, InvalidRequest
from ebbtide.verbs.columns import parts
from ebbtide.verbs.limits import Milliseconds
from ebbtide.verbs.requests import refuse

M = TypeVar("M", bound=Message)

Field = Any
Enum = Any
"""Descriptors. The stubs of protobuf have two types for each."""

NANOS_PER_MS = 1_000_000
NANOS_PER_S = 1_000_000_000
MAX_LIST_ITEMS = 100_000
"""Most items of a list. No setting can raise a limit above it."""

PARTS = "_parts"
"""The end of the name of a list that REST takes under the name before it."""

MAX_EXACT_INTEGER = 1 << 53
"""Integers up to this one are exact in a Struct, whose numbers are doubles."""


# --- requests ----------------------------------------------------------------------------------------------


def parse(kind: type[M], body: bytes) -> M:
    """Return the message in the bytes of a request. Raise INVALID_JSON for invalid bytes or invalid UTF-8."""
    try:
        return kind.FromString(body)
    except DecodeError:
        raise InvalidRequest(
            f"the request: not a {kind.DESCRIPTOR.name} in protobuf", reason="INVALID_JSON"
        ) from None


def fields_of(message: Message, path: str = "") -> dict[str, Any]:
    """Return the fields of a message by name. Raise UNKNOWN_FIELD for a field that is not in the schema."""
    _refuse_unknown(message, path)
    shape = _shape(message.DESCRIPTOR)
    found = dict(shape.implied)
    for field, value in message.ListFields():
        name, is_repeated, read = shape.fields[field]
        if is_repeated:
            _refuse_long(f"{path}{name}", len(value))
            if name in found:
                refuse(f"{path}{field.name}", f"with {name}", f"{name} or {field.name}, not both")
            found[name] = (
                [read(item, f"{path}{name}[{i}]") for i, item in enumerate(value)] if read else [*value]
            )
        elif value or field.enum_type is None:
            # An enum that is set to its zero, UNSPECIFIED, counts as unset.
            found[name] = read(value, f"{path}{name}") if read else value
    return found


Reader = Callable[[Any, str], Any]
"""From the value of a field and its path to the value in JSON."""


class _Shape(NamedTuple):
    """How to read the fields of a kind of message. Computed once for each kind."""

    implied: Mapping[str, Any]
    """Texts without presence, which are empty if unset. For all other fields the model has the same defaults."""
    fields: Mapping[Field, tuple[str, bool, Reader | None]]
    """The name of each field, whether it is a list, and the conversion of its value; None for no conversion."""


@cache
def _shape(kind: Descriptor) -> _Shape:
    implied = [
        field
        for field in kind.fields
        if field.cpp_type == field.CPPTYPE_STRING and not field.is_repeated and not field.has_presence
    ]
    return _Shape(
        {field.name: "" for field in implied},
        {
            field: (_name(field), field.is_repeated and not _is_map(field), _reader(field))
            for field in kind.fields
        },
    )


def _name(field: Field) -> str:
    return str(field.name).removesuffix(PARTS) if field.is_repeated else str(field.name)


def _is_map(field: Field) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _reader(field: Field) -> Reader | None:
    if _is_map(field):
        return _entries
    if field.enum_type is not None:
        return lambda value, _: word_of(field.enum_type, value)
    if field.message_type is None:
        return None
    name = field.message_type.full_name
    if name == Timestamp.DESCRIPTOR.full_name:
        return _milliseconds
    if name == Struct.DESCRIPTOR.full_name:
        return _object
    if name == Value.DESCRIPTOR.full_name:
        return _json
    return lambda value, place: fields_of(value, f"{place}.")


def _entries(value: Any, place: str) -> dict[str, Any]:
    """Return the entries of a map of plain values."""
    _refuse_long(place, len(value))
    return dict(value)


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


def word_of(enum: Enum, number: int) -> str | int:
    """Return the text of an enum value over REST: its name without the prefix of the enum. Keep unknown numbers."""
    value = enum.values_by_number.get(number)
    return number if value is None else value.name.removeprefix(_prefix(enum)).lower().replace("_plus_", "+")


def name_of(word: str) -> str:
    """Return the name of an enum value without the prefix of the enum."""
    return word.upper().replace("+", "_PLUS_")


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
    # An integer 1 arrives as 1.0; over REST it stays 1.
    return int(number) if number.is_integer() and abs(number) <= MAX_EXACT_INTEGER else number


# --- responses -----------------------------------------------------------------------------------------------


def to_message(kind: type[M], response: BaseModel) -> M:
    """Return the message with the fields of a response."""
    message = kind()
    _fill(message, response.model_dump())
    return message


def _fill(message: Message, fields: Mapping[str, Any]) -> None:
    writers = _writers(message.DESCRIPTOR)
    for name, value in fields.items():
        if value is not None:
            writers[name](message, value)


def _extend(name: str, message: Message, values: Any) -> None:
    """Set a list of plain values, a column of numbers in parts."""
    field = getattr(message, name)
    for part in parts(values):
        field.extend(part)


Writer = Callable[[Any, Any], None]
"""Sets one field of a message to a value in JSON."""


@cache
def _writers(kind: Descriptor) -> Mapping[str, Writer]:
    return {field.name: _writer(field) for field in kind.fields}


def _writer(field: Field) -> Writer:
    name, nested = field.name, field.message_type
    if field.is_repeated:
        if nested is None:
            return partial(_extend, name)
        return _map_writer(name, nested) if nested.GetOptions().map_entry else _list_writer(name, nested)
    if field.enum_type is not None:
        prefix, numbers = _prefix(field.enum_type), field.enum_type.values_by_name
        return lambda message, value: setattr(message, name, numbers[prefix + name_of(value)].number)
    if nested is None:
        return lambda message, value: setattr(message, name, value)
    is_struct = nested.full_name == Struct.DESCRIPTOR.full_name
    is_time = nested.full_name == Timestamp.DESCRIPTOR.full_name
    fill: Writer = _fill_struct if is_struct else _fill_timestamp if is_time else _fill

    def write(message: Message, value: Any) -> None:
        place = getattr(message, name)
        fill(place, value)
        place.SetInParent()

    return write


def _map_writer(name: str, entry: Descriptor) -> Writer:
    if entry.fields_by_name["value"].message_type is None:
        return lambda message, value: getattr(message, name).update(value)

    def write(message: Message, value: Mapping[str, Any]) -> None:
        place = getattr(message, name)
        for key, item in value.items():
            _fill(place[key], item)

    return write


def _list_writer(name: str, nested: Descriptor) -> Writer:
    fill: Writer = _fill_struct if nested.full_name == Struct.DESCRIPTOR.full_name else _fill

    def write(message: Message, value: Any) -> None:
        place = getattr(message, name)
        for item in value:
            fill(place.add(), item)

    return write


def _fill_struct(struct: Struct, value: Mapping[str, Any]) -> None:
    struct.update(value)


def _fill_timestamp(time: Timestamp, time_ms: int) -> None:
    time.seconds, rest_ms = divmod(time_ms, 1000)
    time.nanos = rest_ms * NANOS_PER_MS
