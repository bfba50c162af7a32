"""Write the table of bounds in docs/export-format.md: `python -m tests.tidy.generate_bounds`.

There is one row for each bound, with its fields. A test compares the page with the output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from ebbtide.store.transfer.export_lines import AnyLine
from tests.tidy.pages import DOCS

PAGE = DOCS / "export-format.md"
BLOCK = re.compile(r"(<!-- generated: bounds -->\n).*?(<!-- end -->)", re.DOTALL)

POWERS = {1 << power: f"2^{power}" for power in range(28, 64)}


def table() -> str:
    """Return the table of bounds."""
    fields: dict[str, list[str]] = {}
    for line in inspect.multi_type_info(AnyLine.__args__):
        assert isinstance(line, inspect.StructType)
        for name, bound in _bounds(line, str(line.tag)):
            fields.setdefault(bound, []).append(f"`{name}`")
    rows = [f"| {bound} | {', '.join(names)} |" for bound, names in fields.items()]
    return "\n".join(["| allowed | fields |", "|---|---|", *rows]) + "\n"


def render(page: str) -> str:
    """Return the page with its table regenerated."""
    return BLOCK.sub(lambda found: f"{found[1]}{table()}{found[2]}", page)


def _bounds(struct: inspect.StructType, name: str) -> Iterator[tuple[str, str]]:
    for field in struct.fields:
        yield from _of_type(field.type, f"{name}.{field.encode_name}")


def _of_type(kind: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield (field, bound) of a type and the types within it."""
    if isinstance(kind, inspect.UnionType):
        for one in kind.types:
            yield from _of_type(one, name)
    elif isinstance(kind, inspect.StructType):
        yield from _bounds(kind, name)
    elif isinstance(kind, inspect.VarTupleType):
        if kind.max_length is not None:
            yield name, f"at most {kind.max_length} items"
        yield from _of_type(kind.item_type, f"{name}[]")
    elif isinstance(kind, inspect.TupleType):
        for place, one in enumerate(kind.item_types):
            yield from _of_type(one, f"{name}[{place}]")
    elif isinstance(kind, inspect.LiteralType):
        yield name, ", ".join(f'`"{value}"`' for value in kind.values)
    elif isinstance(kind, inspect.IntType | inspect.FloatType):
        yield name, _range(kind)
    elif isinstance(kind, inspect.StrType | inspect.BytesType):
        yield from _length(kind, name)


def _range(kind: inspect.IntType | inspect.FloatType) -> str:
    low = f"more than {_number(kind.gt)}" if kind.gt is not None else _number(kind.ge)
    what = "" if isinstance(kind, inspect.IntType) else " (decimal)"
    return f"{low} to {_number(kind.le)}{what}"


def _length(kind: inspect.StrType | inspect.BytesType, name: str) -> Iterator[tuple[str, str]]:
    unit = "characters" if isinstance(kind, inspect.StrType) else "bytes"
    if kind.max_length is not None:
        least = "at most" if kind.min_length is None else f"{kind.min_length} to"
        yield name, f"{least} {_number(kind.max_length)} {unit}"
    elif isinstance(kind, inspect.StrType) and kind.pattern is not None:
        yield name, "digits of a number from 0 to 2^63 - 1"


def _number(value: Any) -> str:
    if value is None:
        return "any"
    if value in POWERS:
        return POWERS[value]
    if value + 1 in POWERS:
        return f"{POWERS[value + 1]} - 1"
    return f"{int(value):,}".replace(",", " ") if value == int(value) else str(value)


def unbounded() -> list[str]:
    """Return the numbers of a line without a bound on one side."""
    found = msgspec.inspect.multi_type_info(AnyLine.__args__)
    return [
        name
        for line in found
        if isinstance(line, inspect.StructType)
        for name, bound in _bounds(line, str(line.tag))
        if bound.startswith("any") or bound.endswith("to any")
    ]


def main() -> None:
    """Write the page."""
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
