"""Read the models from JSON.

Reading is lenient in one direction only. Fields that a newer daemon adds are ignored, and so are new values of an
enumeration. A missing field, or one of another type, makes the response unexpected.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


class Misfit(Exception):
    """A JSON value does not have the form of its model."""


def read(kind: type[T], value: object) -> T:
    """Return the model in a JSON value. Raise Misfit if the value does not fit."""
    return cast(T, _read(kind, value, kind.__name__))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(kind: Any, value: Any, path: str) -> Any:
    if kind is Any:
        return value
    if is_dataclass(kind):
        return _read_model(cast(Any, kind), value, path)
    origin = get_origin(kind)
    if origin is Sequence and isinstance(value, list):
        return tuple(_read(get_args(kind)[0], item, f"{path}[]") for item in value)
    if origin is Mapping and isinstance(value, dict):
        return {key: _read(get_args(kind)[1], item, f"{path}.{key}") for key, item in value.items()}
    if origin in (Union, types.UnionType):
        others = [option for option in get_args(kind) if option is not type(None)]
        return None if value is None else _read(others[0], value, path)
    if origin is Literal:
        kind = type(get_args(kind)[0])
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    # In Python a bool is an int.
    if isinstance(kind, type) and isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    raise Misfit(f"{path} is of another type")


def _read_model(kind: Any, value: Any, path: str) -> Any:
    if not isinstance(value, dict):
        raise Misfit(f"{path} is not an object")
    hints, found = _hints(kind), {}
    for field in fields(kind):
        if field.name in value:
            found[field.name] = _read(hints[field.name], value[field.name], f"{path}.{field.name}")
        elif _is_required(field):
            raise Misfit(f"{path}.{field.name} is missing")
        elif get_origin(hints[field.name]) is Sequence:
            found[field.name] = ()
    return kind(**found)


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING
