"""Draw the recall latency over the nodes that it reaches, and over the size of the memory. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import REFERENCE_US_PER_NODE, Figure

OURS, HEAPQ, REFERENCE = "#00798c", "#d1495b", "#8d8d8d"
REFERENCE_LABEL = "LevelGraph on LevelDB (1 ms a node)"


def draw(figures: Sequence[Figure], path: Path) -> None:
    """Draw the recalls of P1, P2 and P13, without those that were not measured."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    canvas, panels = pyplot.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
    _by_reach(panels[0], figures)
    _by_size(panels[1], [figure for figure in figures if "nodes in memory" in figure.beside])
    for panel in panels:
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25, which="both")
        if panel.get_legend_handles_labels()[0]:
            panel.legend(frameon=False, loc="upper left")
    canvas.suptitle("Associative recall")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        canvas.savefig(path, dpi=160)
    finally:
        pyplot.close(canvas)


def _by_reach(panel: Any, figures: Sequence[Figure]) -> None:
    """Draw every measured query: time by nodes reached."""
    styles = {"heapq": (HEAPQ, "heapq over dictionaries"), "ours": (OURS, "Ebbtide")}
    furthest = 1.0
    for name, (colour, label) in styles.items():
        points = [point for figure in figures for point in figure.points.get(name, ())]
        if points:
            reached, took_ms = zip(*points, strict=True)
            furthest = max(furthest, *reached)
            panel.scatter(reached, took_ms, s=9, alpha=0.5, color=colour, label=label, linewidths=0)
    span = (1.0, furthest) if furthest == 1 else (min(100.0, furthest), furthest)
    panel.plot(
        span,
        [reached * REFERENCE_US_PER_NODE / 1000 for reached in span],
        color=REFERENCE,
        linestyle="--",
        label=REFERENCE_LABEL,
    )
    panel.set_xlabel("nodes reached")
    panel.set_ylabel("ms for a recall")


def _by_size(panel: Any, figures: Sequence[Figure]) -> None:
    """Draw P13: two hops, by number of memories."""
    sizes = [figure.beside["nodes in memory"] for figure in figures]
    if sizes:
        for share, style in (("p95", "-"), ("p50", ":")):
            times = [getattr(figure.ours, share) for figure in figures]
            panel.plot(sizes, times, style, marker="o", color=OURS, label=f"Ebbtide, two hops, {share}")
        for figure, size in zip(figures, sizes, strict=True):
            reached = f"{figure.beside['nodes reached']:,.0f} reached".replace(",", " ")
            panel.annotate(
                reached,
                (size, figure.ours.p50),
                (0, -14),
                textcoords="offset points",
                ha="center",
                fontsize=8,
            )
        reference = [figure.beside["nodes reached"] * REFERENCE_US_PER_NODE / 1000 for figure in figures]
        panel.plot(sizes, reference, "--", color=REFERENCE, label=REFERENCE_LABEL)
    panel.margins(0.12, 0.15)
    panel.set_xlabel("memories of the agent")
    panel.set_ylabel("ms for a recall")
