"""The rows that the modules of this folder measure, and their table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """An acceptance bar, and what was measured."""

    what: str
    bar: str
    measured: str
    is_met: bool | None
    """None if it was not measured."""


def as_table(rows: Iterable[Row]) -> str:
    """Return rows as a Markdown table."""
    lines = ["| what | bar | measured | met |", "|---|---|---|---|"]
    words = {True: "yes", False: "**no**", None: "–"}
    lines += [f"| {row.what} | {row.bar} | {row.measured} | {words[row.is_met]} |" for row in rows]
    return "\n".join(lines)
