"""Figures, and how they are shown: a table on the terminal, JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import Spread

REFERENCE = (
    "The reference stack of this kind of memory (LevelGraph 4 on LevelDB, Node): 1 ms a node reached "
    "(depth 2, 491 nodes: 0.49 s); loading 210 000 triples 11.7 s; 5 KB on disk a node."
)
REFERENCE_US_PER_NODE = 1000.0


@dataclass(frozen=True, slots=True)
class Claim:
    """What is to be reached, what came out; `is_met` is None where the scale is not the one it is meant for."""

    wanted: str
    reached: str
    is_met: bool | None


@dataclass(slots=True)
class Figure:
    """One thing measured, beside its baselines of the same run."""

    row: str
    what: str
    unit: str
    ours: Spread
    baselines: dict[str, Spread] = field(default_factory=dict)
    ratio: str = ""
    claims: list[Claim] = field(default_factory=list)
    beside: dict[str, float] = field(default_factory=dict)
    """Further numbers, by name."""
    note: str = ""
    points: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """By name, what is drawn: (nodes reached, ms)."""


def at_most(value: float, bound: float, unit: str, *, counts: bool = True, what: str = "") -> Claim:
    """The claim that a value stays within a bound."""
    label = f"{what} " if what else ""
    wanted, reached = f"{label}≤ {bound:g} {unit}".strip(), f"{label}{value:.3g} {unit}".strip()
    return Claim(wanted, reached, value <= bound if counts else None)


def at_least(value: float, bound: float, unit: str, *, counts: bool = True, what: str = "") -> Claim:
    """The claim that a value reaches a bound."""
    label = f"{what} " if what else ""
    wanted, reached = f"{label}≥ {bound:g} {unit}".strip(), f"{label}{value:.3g} {unit}".strip()
    return Claim(wanted, reached, value >= bound if counts else None)


def show(figures: Sequence[Figure], machine: Mapping[str, object], console: Console) -> None:
    """The table, and below it what it was measured on."""
    table = Table(title="Ebbtide: performance", show_lines=True, title_justify="left")
    for name in ("row", "what"):
        table.add_column(name)
    for name in ("p50", "p95", "p99"):
        table.add_column(name, justify="right")
    for name in ("baseline: p50", "ratio", "to reach", "reached"):
        table.add_column(name)
    for figure in figures:
        table.add_row(
            figure.row,
            f"{figure.what} [{figure.unit}]".replace("[", r"\["),
            *(_number(value) for value in (figure.ours.p50, figure.ours.p95, figure.ours.p99)),
            "\n".join(f"{name}: {_number(spread.p50)}" for name, spread in figure.baselines.items()),
            figure.ratio,
            "\n".join(claim.wanted for claim in figure.claims),
            "\n".join(_verdict(claim) for claim in figure.claims),
        )
    console.print(table)
    for figure in figures:
        extra = ", ".join(f"{name} {_number(value)}" for name, value in figure.beside.items())
        if extra or figure.note:
            told = "; ".join(part for part in (extra, figure.note) if part)
            console.print(f"{figure.row} {figure.what}: {told}", markup=False, highlight=False)
    console.print(REFERENCE, markup=False, highlight=False)
    told = ", ".join(f"{name} {value}" for name, value in machine.items())
    console.print(f"Measured on: {told}", markup=False, highlight=False)


def _verdict(claim: Claim) -> str:
    if claim.is_met is None:
        return f"{claim.reached} (another scale)"
    return f"[green]{claim.reached}[/]" if claim.is_met else f"[bold red]{claim.reached} NOT MET[/]"


def _number(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}"


def as_document(
    figures: Sequence[Figure], machine: Mapping[str, object], arguments: Mapping[str, object]
) -> dict[str, Any]:
    """Everything measured, for JSON."""
    return {
        "machine": dict(machine),
        "arguments": dict(arguments),
        "reference": REFERENCE,
        "figures": [asdict(figure) for figure in figures],
    }


def write_json(document: Mapping[str, Any], path: Path) -> None:
    """Write the document, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    fresh.replace(path)


Progress = Callable[[str], None]
"""Told what is being done, for whoever waits."""
