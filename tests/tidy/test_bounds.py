"""Stored and imported numbers have the same bounds, and docs/export-format.md lists them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import inspect

from ebbtide import bounds
from ebbtide.settings import LimitSettings
from ebbtide.store.layout import ENTRIES, TABLES
from tests.tidy.generate_bounds import PAGE, render, unbounded


def numbers(kind: Any, name: str, seen: frozenset[Any] = frozenset()) -> Iterator[tuple[str, Any]]:
    """Return every number within a type, by the path of its field."""
    if isinstance(kind, inspect.StructType):
        if kind.cls not in seen:
            for field in kind.fields:
                yield from numbers(field.type, f"{name}.{field.name}", seen | {kind.cls})
    elif isinstance(kind, inspect.UnionType):
        for one in kind.types:
            yield from numbers(one, name, seen)
    elif isinstance(kind, inspect.VarTupleType | inspect.ListType):
        yield from numbers(kind.item_type, name, seen)
    elif isinstance(kind, inspect.TupleType):
        for one in kind.item_types:
            yield from numbers(one, name, seen)
    elif isinstance(kind, inspect.DictType):
        yield from numbers(kind.value_type, name, seen)
    elif isinstance(kind, inspect.IntType | inspect.FloatType):
        yield name, kind


@pytest.mark.parametrize(
    "kind",
    [
        one.kind
        for one in (*(table.value for table in TABLES), *(entry.codec for entry in ENTRIES.values()))
        if one.kind is not None
    ],
    ids=str,
)
def test_every_stored_number_has_a_bound_on_both_sides(kind: Any) -> None:
    """No record of a store may contain an unbounded number."""
    found = list(numbers(inspect.type_info(kind), getattr(kind, "__name__", str(kind))))
    without = [name for name, one in found if one.le is None or (one.ge is None and one.gt is None)]
    assert without == []


def test_every_number_of_an_export_has_a_bound() -> None:
    """No line of an export may contain an unbounded number."""
    assert unbounded() == []


def test_the_page_lists_the_bounds_of_the_code() -> None:
    """The table on the page equals the generator's output."""
    page = PAGE.read_text(encoding="utf-8")
    assert page == render(page), "run: python -m tests.tidy.generate_bounds"


def test_limits_of_requests_are_those_of_the_bounds() -> None:
    """The maxima of the settings that limit requests are those of the bounds."""

    def ceiling(name: str) -> int:
        found: int = next(one.le for one in LimitSettings.model_fields[name].metadata if hasattr(one, "le"))
        return found

    assert ceiling("max_message_chars") == bounds.MAX_MESSAGE_CHARS <= bounds.MAX_TEXT_CHARS
    assert ceiling("max_name_chars") == bounds.MAX_NAME_CHARS
    assert ceiling("max_keyword_chars") == bounds.MAX_NAME_CHARS
    assert ceiling("max_relation_chars") == bounds.MAX_RELATION_CHARS
    assert ceiling("max_metadata_bytes") == bounds.MAX_METADATA_BYTES <= bounds.MAX_METADATA_CHARS
    assert ceiling("max_messages") == bounds.MAX_MESSAGES
    assert ceiling("max_keywords") == bounds.MAX_KEYWORDS
