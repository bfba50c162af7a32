"""`ebbtide curve`: simulate how memories fade, as a table and optionally a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from ebbtide.cli.console import out, progress, say, write_json
from ebbtide.cli.options import Json

if TYPE_CHECKING:
    from ebbtide.cli.commands.simulation import Curve

MAX_PASSES = 700
"""Default number of simulated passes. With the default parameters, a memory is forgotten after 276."""


def curve(
    path: Annotated[
        Path | None,
        typer.Option("--out", help="Draw the curves into this file: .png, .svg or .pdf."),
    ] = None,
    passes: Annotated[
        int, typer.Option("--passes", min=10, max=5000, help="Number of passes to simulate.")
    ] = MAX_PASSES,
    as_json: Json = False,
) -> None:
    """Simulate the forgetting curve for several decay rates and long-term factors."""
    from ebbtide.cli.commands.plot import check_drawable, draw
    from ebbtide.cli.commands.simulation import cases, simulate

    if path is not None:
        check_drawable(path)
    curves = []
    with progress("simulating") as bar:
        task = bar.add_task("simulating", total=len(cases()))
        for case in cases():
            curves.append(simulate(case, passes))
            bar.advance(task)
    if path is not None:
        draw(curves, path, passes)
    if as_json:
        write_json(_as_json(curves, passes, path))
        return
    out().print(_table(curves, passes))
    if path is not None:
        say(f"Drawn into {path}.")


def _as_json(curves: list[Curve], passes: int, path: Path | None) -> dict[str, Any]:
    return {
        "passes": passes,
        "out": None if path is None else str(path),
        "curves": [
            {
                "decay_rate": curve.case.decay_rate,
                "long_term_factor": curve.case.long_term_factor,
                "first_cut": curve.first_cut,
                "gone": curve.gone,
                "kept": [round(share, 6) for share in curve.kept],
            }
            for curve in curves
        ],
    }


def _table(curves: list[Curve], passes: int) -> Table:
    from ebbtide.cli.commands.simulation import CHARACTERS, SEGMENTS

    table = Table(
        title=f"Passes until {CHARACTERS} characters are first cut / gone, {SEGMENTS} memories a batch",
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        header_style="bold",
        padding=(0, 3, 0, 0),
    )
    for name in ("decay_rate", "long_term_factor", "first cut", "gone"):
        table.add_column(name, justify="right")
    for curve in curves:
        cells = (_passes(curve.first_cut, passes), _passes(curve.gone, passes))
        table.add_row(f"{curve.case.decay_rate:g}", f"{curve.case.long_term_factor:g}", *cells)
    return table


def _passes(count: int | None, most: int) -> str:
    return f"> {most}" if count is None else str(count)
