"""Columns of numbers in large responses: arrays until they are encoded, which happens a part at a time.

A C function that converts a million numbers holds the interpreter lock, and with it the event loop, for tens of
milliseconds. Between parts other threads run. Numbers are not validated: the daemon computed them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Final, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray
from pydantic import WithJsonSchema

from ebbtide.verbs.requests import Response

NUMBERS_AT_ONCE: Final = 4096
"""Numbers that are converted in one call: about 0.2 ms."""

Integers = Annotated[Any, WithJsonSchema({"type": "array", "items": {"type": "integer"}})]
Floats = Annotated[Any, WithJsonSchema({"type": "array", "items": {"type": "number"}})]
"""Columns: arrays of numbers in the daemon, lists in responses."""


def parts(column: NDArray[Any] | Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Yield a column in parts that are lists. A list is one part."""
    if not isinstance(column, np.ndarray):
        yield column
        return
    for start in range(0, len(column), NUMBERS_AT_ONCE):
        yield column[start : start + NUMBERS_AT_ONCE].tolist()


def _encoded(column: Any) -> msgspec.Raw:
    """Return an array as a JSON list."""
    return msgspec.Raw(b"[" + b",".join(msgspec.json.encode(part)[1:-1] for part in parts(column)) + b"]")


class Columnar(Response):
    """A response with columns, in itself or in its parts."""

    def as_json(self) -> str:
        """Return the body of the REST response."""
        return msgspec.json.encode(self.model_dump(), enc_hook=_encoded).decode()

    @property
    def column_bytes(self) -> int:
        """Size of the columns in memory, which is about their size in JSON."""
        values = vars(self).values()
        return sum(
            one.column_bytes if isinstance(one, Columnar) else getattr(one, "nbytes", 0) for one in values
        )


T = TypeVar("T", bound=Columnar)


def table(kind: type[T], columns: Iterable[NDArray[Any]]) -> T:
    """Return a table with these columns, which are in the order of its fields."""
    return kind(**dict(zip(kind.model_fields, columns, strict=True)))
