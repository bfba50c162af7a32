"""Check names and types of arguments: a method called with a wrong one raises a TypeError that says what it takes.

The daemon checks values. Here only types are checked, before anything is sent, from the annotations of the function.
"""

from __future__ import annotations

import inspect
import os
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

MAX_SHOWN_CHARS = 40
"""Longest part of a caller's text in an error."""

P = ParamSpec("P")
R = TypeVar("R")


def checked(build: Callable[P, R]) -> Callable[P, R]:
    """Return the function with a check of its arguments. Iterables become lists where a list is taken."""
    signature = inspect.signature(build)
    hints = cache(lambda: get_type_hints(build))
    called = build.__qualname__.removesuffix(".__init__")

    @wraps(build)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{called}(): {error}. {_parameters(signature)}") from None
        for name, value in bound.arguments.items():
            if name != "self":
                bound.arguments[name] = _accept(called, name, hints()[name], value)
        return build(*bound.args, **bound.kwargs)

    return call


def _parameters(signature: inspect.Signature) -> str:
    kinds = {name: one.kind for name, one in signature.parameters.items() if name != "self"}
    named = [name for name, kind in kinds.items() if kind is inspect.Parameter.KEYWORD_ONLY]
    parts = [", ".join(name for name in kinds if name not in named)]
    parts += [f"by name {', '.join(named)}"] if named else []
    return f"It takes {'; '.join(filter(None, parts)) or 'no arguments'}."


class _Refused(Exception):
    """A value is not of a type."""


def _accept(function: str, name: str, kind: Any, value: Any) -> Any:
    try:
        return _fit(kind, value)
    except _Refused:
        text = f"{function}() takes {name} as {_describe(kind)}, not {_shown(value)}"
        raise TypeError(text + _suggestion(function, name, kind, value)) from None


def _suggestion(function: str, name: str, kind: Any, value: Any) -> str:
    """Return what to pass instead of a string where a list of strings is taken; else nothing."""
    if not (isinstance(value, str) and get_origin(kind) is Sequence and get_args(kind)[0] is str):
        return ""
    text = repr(value if len(value) <= MAX_SHOWN_CHARS else f"{value[:MAX_SHOWN_CHARS]}…")
    if (function, name) == ("recall", "keywords"):
        return f". Pass query={text} to ask a question, or keywords=[{text}] to find words"
    return f". Pass {name}=[{text}]"


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
    return DESCRIBED.get(kind.__name__) or f"{'an' if kind.__name__[0] in 'AEIOS' else 'a'} {kind.__name__}"


def _shown(value: Any) -> str:
    if isinstance(value, str | bytes):
        return "a string" if isinstance(value, str) else "bytes"
    if isinstance(value, list | tuple) and value:
        kinds = sorted({type(item).__name__ for item in value})
        return f"a {type(value).__name__} of {' and '.join(kinds)}"
    return "None" if value is None else f"{type(value).__name__}"
