"""The picture of the recall benchmark: how much is found within ten turns, by set, and by whom. Needs matplotlib.

Drawn from the document that `recall.py` writes as JSON, so that a picture can be made of a run that is over:
`python -m benchmarks.recall_picture run.json picture.png`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.recall_baselines import BASELINES
from benchmarks.recall_data import WHOLE
from benchmarks.recall_report import OURS

MEASURE = "R@10"
COLOURS = ("#00798c", "#d1495b", "#edae49", "#66a182", "#8d6a9f", "#2e4057", "#a39171", "#5fa8d3")
"""Ours first, then the baselines and other conditions as they come."""

GREY = "#8d8d8d"
"""Where there are more conditions than colours."""

BAR_INCHES, SET_INCHES, GAP = 0.33, 1.3, 0.25
"""Width of a bar; least width of a set, for its name; share of that width left empty between sets."""

Bars = dict[str, list[tuple[int, float]]]


def bars_of(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], Bars]:
    """Return the sets with their number of questions, and by condition (index of the set, per cent found).

    Baselines come first, then the product, then its other conditions. A condition lacks the sets that it was not run
    on.
    """
    whole = [row for row in rows if row["group"] == WHOLE]
    sets = list(dict.fromkeys(row["set_name"] for row in whole))
    counts = {row["set_name"]: row["question_count"] for row in whole}
    order = [*BASELINES, OURS]
    given = dict.fromkeys(row["condition"] for row in whole)
    conditions = [name for name in order if name in given] + [name for name in given if name not in order]
    bars: Bars = {name: [] for name in conditions}
    for row in whole:
        bars[row["condition"]].append((sets.index(row["set_name"]), 100 * row["means"][MEASURE]))
    return [f"{name}\n{counts[name]} questions" for name in sets], bars


def draw(document: Mapping[str, Any], path: Path) -> None:
    """Draw a run, without duplicates and without anything that was not measured."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    sets, bars = bars_of(document["rows"])
    inches = max(6.0, len(sets) * max(len(bars) * BAR_INCHES / (1 - GAP), SET_INCHES) + 1)
    canvas, panel = pyplot.subplots(figsize=(inches, 4.8), layout="constrained")
    _draw_bars(panel, bars)
    panel.set_xticks(range(len(sets)), sets, fontsize=9)
    panel.set_ylim(0, 105)
    panel.set_ylabel(f"{MEASURE}, per cent of the evidence")
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(alpha=0.25, axis="y")
    panel.set_axisbelow(True)
    if bars:
        panel.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(len(bars), 4))
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        canvas.savefig(path, dpi=160)
    finally:
        pyplot.close(canvas)


def _draw_bars(panel: Any, bars: Bars) -> None:
    width = (1 - GAP) / max(len(bars), 1)
    others = iter([*COLOURS[1:], *[GREY] * len(bars)])
    for place, (name, found) in enumerate(bars.items()):
        colour = COLOURS[0] if name == OURS else next(others)
        shift = (place - (len(bars) - 1) / 2) * width
        at, heights = [number + shift for number, _ in found], [height for _, height in found]
        label = "Ebbtide" if name == OURS else name
        drawn = panel.bar(at, heights, width * 0.92, color=colour, label=label)
        panel.bar_label(drawn, fmt="%.1f", fontsize=7, padding=1)


def main(arguments: Sequence[str]) -> int:
    """Draw the run in the first file into the second."""
    run, picture = map(Path, arguments)
    draw(json.loads(run.read_text(encoding="utf-8")), picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
