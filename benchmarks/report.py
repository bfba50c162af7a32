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
    """A target and the measured value; `is_met` is None at a scale that the target does not apply to."""

    wanted: str
    reached: float
    bound: float
    is_met: bool | None


@dataclass(slots=True)
class Figure:
    """One measurement, with its baselines of the same run."""

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
    """The points to draw, by name: (nodes reached, ms)."""
    is_rate: bool = False
    """Whether more is better. The upper quantiles then describe only the best rounds."""


def at_most(value: float, bound: float, unit: str, *, counts: bool = True, what: str = "") -> Claim:
    """Return the claim that a value stays within a bound."""
    return Claim(f"{what} ≤ {bound:g} {unit}".strip(), value, bound, value <= bound if counts else None)


def at_least(value: float, bound: float, unit: str, *, counts: bool = True, what: str = "") -> Claim:
    """Return the claim that a value reaches a bound."""
    return Claim(f"{what} ≥ {bound:g} {unit}".strip(), value, bound, value >= bound if counts else None)


def show(
    figures: Sequence[Figure],
    machine: Mapping[str, object],
    console: Console,
    *,
    title: str = "Ebbtide: performance",
    reference: str = REFERENCE,
) -> None:
    """Print the table, and below it the machine of the measurements."""
    table = Table(title=title, show_lines=True, title_justify="left")
    for name in ("row", "what"):
        table.add_column(name)
    for name in ("p50", "p95", "p99"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("baselines, p50", "ratio", "to reach"):
        table.add_column(name)
    table.add_column("reached", no_wrap=True)
    for figure in figures:
        ours = figure.ours
        tail = ["", ""] if figure.is_rate else [_number(ours.p95), _number(ours.p99)]
        table.add_row(
            figure.row,
            f"{figure.what} [{figure.unit}]".replace("[", r"\["),
            _number(ours.p50),
            *tail,
            "\n".join(f"{name}: {_number(spread.p50)}" for name, spread in figure.baselines.items()),
            figure.ratio,
            "\n".join(claim.wanted for claim in figure.claims),
            "\n".join(map(_verdict, figure.claims)),
        )
    console.print(table)
    console.print("✓ reached, ✗ not reached, · at another scale than it is meant for", style="dim")
    for figure in figures:
        extra = ", ".join(f"{name} {_number(value)}" for name, value in figure.beside.items())
        if extra or figure.note:
            told = "; ".join(part for part in (extra, figure.note) if part)
            console.print(f"{figure.row} {figure.what}: {told}", markup=False, highlight=False)
    if reference:
        console.print(reference, markup=False, highlight=False)
    told = ", ".join(f"{name} {value}" for name, value in machine.items())
    console.print(f"Measured on: {told}", markup=False, highlight=False)


def _verdict(claim: Claim) -> str:
    value = _number(claim.reached)
    if claim.is_met is None:
        return f"[dim]· {value}[/]"
    return f"[green]✓ {value}[/]" if claim.is_met else f"[bold red]✗ {value}[/]"


def _number(value: float) -> str:
    if abs(value) >= 999.5:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}"


def as_markdown(figures: Sequence[Figure], machine: Mapping[str, object]) -> str:
    """Return the table in the form of the documentation."""
    lines = [
        "| row | what | p50 | p95 | baselines of the same run, p50 | ratio | to reach | reached |",
        "|---|---|---:|---:|---|---|---|---|",
    ]
    for figure in figures:
        baselines = "<br>".join(f"{name}: {_number(spread.p50)}" for name, spread in figure.baselines.items())
        wanted = "<br>".join(claim.wanted for claim in figure.claims)
        reached = "<br>".join(f"{_mark(claim)} {_number(claim.reached)}" for claim in figure.claims)
        tail = "" if figure.is_rate else _number(figure.ours.p95)
        cells = (
            figure.row,
            f"{figure.what} [{figure.unit}]",
            _number(figure.ours.p50),
            tail,
            baselines,
            figure.ratio,
            wanted,
            reached,
        )
        lines.append(f"| {' | '.join(cells)} |")
    told = ", ".join(f"{name} {value}" for name, value in machine.items())
    return "\n".join([*lines, "", f"Measured on: {told}.", ""])


def _mark(claim: Claim) -> str:
    return {True: "✓", False: "✗", None: "·"}[claim.is_met]


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
    fresh.write_text(json.dumps(document, ensure_ascii=False) + "\n", encoding="utf-8")
    fresh.replace(path)


Progress = Callable[[str], None]
"""A callback that receives a message about the progress of the run."""
