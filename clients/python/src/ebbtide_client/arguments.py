"""Check the types of arguments: a method called with a wrong one raises a TypeError that says what it takes.

The daemon checks values. Here only types are checked, before anything is sent, from the annotations of the function.
"""

from __future__ import annotations

import inspect
import os
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

P = ParamSpec("P")
R = TypeVar("R")


def checked(build: Callable[P, R]) -> Callable[P, R]:
    """Return the function with a check of its arguments. Iterables become lists where a list is taken."""
    signature = inspect.signature(build)
    hints = cache(lambda: get_type_hints(build))

    @wraps(build)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = signature.bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            bound.arguments[name] = _accept(build.__name__, name, hints()[name], value)
        return build(*bound.args, **bound.kwargs)

    return call


class _Refused(Exception):
    """A value is not of a type."""


def _accept(function: str, name: str, kind: Any, value: Any) -> Any:
    try:
        return _fit(kind, value)
    except _Refused:
        raise TypeError(f"{function}() takes {name} as {_describe(kind)}, not {_shown(value)}") from None


def _fit(kind: Any, value: Any) -> Any:
    origin = get_origin(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        return _fit_any(get_args(kind), value)
    if origin is tuple:
        items = get_args(kind)
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
            raise _Refused
        if len(value) != len(items):
            raise _Refused
        return tuple(_fit(item, one) for item, one in zip(items, value, strict=True))
    if origin is Sequence:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise _Refused
        return [_fit(get_args(kind)[0], one) for one in value]
    if origin is Literal:
        kind = type(get_args(kind)[0])
    kind = get_origin(kind) or kind
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return value
    # In Python a bool is an int.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise _Refused
    return value


def _fit_any(kinds: Iterable[Any], value: Any) -> Any:
    for kind in kinds:
        try:
            return _fit(kind, value)
        except _Refused:
            continue
    raise _Refused


NAMES: Mapping[Any, str] = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "True or False",
    type(None): "None",
    os.PathLike: "a path",
}
DESCRIBED = {"Writable": "a file open for writing bytes", "Readable": "a file open for reading bytes"}
PLURALS: Mapping[Any, str] = {str: "strings", int: "integers", float: "numbers"}


def _describe(kind: Any) -> str:
    origin, items = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        described = [_describe(item) for item in items]
        return " or ".join([", ".join(described[:-1]), described[-1]] if len(described) > 1 else described)
    if origin is tuple:
        return f"a pair ({', '.join(_describe(item) for item in items)})"
    if origin is Sequence:
        return f"a list of {PLURALS.get(items[0]) or 'these'}"
    if origin is Literal:
        return " or ".join(map(repr, items))
    kind = origin or kind
    if kind is Mapping:
        return "a dict"
    if kind in NAMES:
        return NAMES[kind]
    return DESCRIBED.get(kind.__name__) or f"a {kind.__name__}"


def _shown(value: Any) -> str:
    if isinstance(value, str | bytes):
        return "a string" if isinstance(value, str) else "bytes"
    if isinstance(value, list | tuple) and value:
        kinds = sorted({type(item).__name__ for item in value})
        return f"a {type(value).__name__} of {' and '.join(kinds)}"
    return "None" if value is None else f"{type(value).__name__}"
