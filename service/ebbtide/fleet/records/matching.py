"""Filters on the values of records, and patterns of namespaces.

A filter is a JSON object. A record matches if its value has each of these fields with an equal value; objects in the
filter are compared field by field, lists item by item. A field that is missing equals null. 1 and 1.0 are equal; 1 and
true are not. An object of operators compares in another way: `{"age": {"$gte": 18, "$lt": 65}}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any, Literal

ANY_LABEL = "*"
"""Matches one label of a namespace."""


def matches(found: object, wanted: object) -> bool:
    """Return whether a value matches a filter."""
    if isinstance(wanted, dict):
        if is_of_operators(wanted):
            return all(OPERATORS[name](found, operand) for name, operand in wanted.items())
        return isinstance(found, dict) and all(matches(found.get(name), one) for name, one in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(matches, found, wanted))
    return are_equal(found, wanted)


def are_equal(one: object, other: object) -> bool:
    """Return whether two JSON values are equal."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(are_equal(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(are_equal, one, other))
    return one == other


def is_number(value: object) -> bool:
    """Return whether a JSON value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[object, object], bool]:
    return lambda found, operand: is_number(found) and compare(found, operand)


OPERATORS: Mapping[str, Callable[[object, object], bool]] = {
    "$eq": are_equal,
    "$ne": lambda found, operand: not are_equal(found, operand),
    "$gt": _ordered(gt),
    "$gte": _ordered(ge),
    "$lt": _ordered(lt),
    "$lte": _ordered(le),
}
"""The operators of a filter. Those of an order compare numbers only."""

OF_ORDER = ("$gt", "$gte", "$lt", "$lte")


def is_of_operators(wanted: Mapping[str, object]) -> bool:
    """Return whether an object in a filter consists of operators."""
    return any(name.startswith("$") for name in wanted)


@dataclass(frozen=True, slots=True)
class Pattern:
    """The first or the last labels of a namespace."""

    type: Literal["prefix", "suffix"]
    path: tuple[str, ...]

    def matches(self, namespace: Sequence[str]) -> bool:
        """Return whether a namespace begins or ends like this."""
        size = len(self.path)
        if size > len(namespace):
            return False
        part = namespace[:size] if self.type == "prefix" else namespace[len(namespace) - size :]
        return all(wanted in (ANY_LABEL, label) for wanted, label in zip(self.path, part, strict=True))
