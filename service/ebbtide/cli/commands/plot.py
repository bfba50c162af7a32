"""The forgetting curve as a picture: the only module that imports matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ebbtide.cli.commands.simulation import CHARACTERS, DECAY_RATES, Curve
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure

DASHES = {0.0: ":", 0.02: "-", 0.05: "--"}
COLOURS = {0.95: "#d1495b", 0.97: "#00798c", 0.99: "#5c4b8a"}
SUFFIXES = (".png", ".svg", ".pdf")


def check_drawable(path: Path) -> None:
    """Raise a Failure if the curves cannot be drawn: the type of the file is unknown, or matplotlib is missing."""
    if path.suffix.lower() not in SUFFIXES:
        raise Failure(f"--out: {path.name} ends in none of {', '.join(SUFFIXES)}.", ExitCode.USAGE)
    if not path.parent.is_dir():
        raise Failure(f"--out: there is no directory {path.parent}.", ExitCode.USAGE)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise Failure(
            "Drawing needs matplotlib, which is not installed.",
            ExitCode.MISSING_EXTRA,
            hint="pip install 'ebbtide[plot]', or leave --out away for the table alone.",
        ) from None


def draw(curves: list[Curve], path: Path, max_passes: int) -> None:
    """Draw the share of the content that is left after each pass, with one panel per decay rate."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(
        1, len(DECAY_RATES), figsize=(12, 4.2), sharey=True, layout="constrained"
    )
    for rate, panel in zip(DECAY_RATES, panels, strict=True):
        own = [curve for curve in curves if curve.case.decay_rate == rate]
        _panel(panel, rate, own, max_passes)
    panels[0].set_ylabel(f"share of {CHARACTERS} characters kept")
    panels[-1].legend(title="long_term_factor", frameon=False, loc="lower left")
    figure.suptitle("How a memory fades: content kept, by compression passes since creation")
    try:
        figure.savefig(path, dpi=160, metadata=_metadata(path))
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error.strerror}.", ExitCode.USAGE) from None
    finally:
        pyplot.close(figure)


def _panel(panel: Any, rate: float, curves: list[Curve], max_passes: int) -> None:
    ends = [curve.gone for curve in curves]
    for curve in curves:
        factor = curve.case.long_term_factor
        panel.step(
            range(len(curve.kept)),
            curve.kept,
            where="post",
            linestyle=DASHES[factor],
            color=COLOURS[rate],
            linewidth=1.8,
            label=f"{factor:g}" + (" (default)" if factor == 0.02 else ""),
        )
    known = [end for end in ends if end is not None]
    right = max_passes if len(known) < len(ends) else max(known) * 1.05
    panel.set_xlim(0, right)
    panel.set_ylim(0, 1.04)
    panel.set_title(f"decay_rate {rate:g}" + (" (default)" if rate == 0.97 else ""))
    panel.set_xlabel("passes")
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(alpha=0.25)


def _metadata(path: Path) -> dict[str, Any]:
    # The same data draw the same file.
    return {"Date": None} if path.suffix.lower() == ".svg" else {}
