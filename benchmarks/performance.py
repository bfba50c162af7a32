"""How fast is Ebbtide, compared with what? `make bench`, or `python -m benchmarks.performance --quick`.

Every figure comes with a baseline measured in the same run and with its target. Output: a table on the terminal, a
JSON document, and a picture. The whole run takes a quarter of an hour on two otherwise idle cores. `--quick` takes a
minute, at the smallest scale, and only shows that everything can be measured.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from threadpoolctl import threadpool_limits

from benchmarks import (
    rows_digest,
    rows_entities,
    rows_footprint,
    rows_isolation,
    rows_mcp,
    rows_pass,
    rows_questions,
    rows_recall,
    rows_remember,
    rows_serving,
)
from benchmarks.measuring import machine
from benchmarks.picture import draw
from benchmarks.plan import Plan
from benchmarks.report import Figure, as_document, as_markdown, show, write_json
from benchmarks.synthetic import SCALES
from ebbtide.telemetry import configure_log

RESULTS = Path(__file__).with_name("results")

ROWS: dict[str, Callable[[Plan], list[Figure]]] = {
    "P1": rows_recall.recall_two_hops,
    "P2": rows_recall.recall_four_hops,
    "P3": rows_questions.questions,
    "P4": rows_remember.acknowledgement,
    "P5": rows_digest.digest,
    "P6": rows_pass.full_pass,
    "P7": rows_serving.over_rest,
    "P8": rows_serving.over_grpc,
    "P9": rows_footprint.opening,
    "P10": rows_footprint.memory,
    "P11": rows_footprint.disk,
    "P12": rows_isolation.isolation,
    "P13": rows_recall.growth,
    "P14": rows_entities.recall_with_entities,
    "P15": rows_mcp.recall_over_mcp,
    "P16": rows_isolation.long_reads,
}
"""By the numbers under which the targets are known."""


def measure(plan: Plan, rows: Sequence[str], tell: Callable[[str], None]) -> tuple[list[Figure], list[str]]:
    """Return the figures of these rows, and the failures. A row that fails does not affect the others."""
    figures: list[Figure] = []
    failures: list[str] = []
    for row in rows:
        begun_s = time.monotonic()
        try:
            figures += ROWS[row](plan)
        except Exception as error:
            failures.append(f"{row}: {type(error).__name__}: {error}")
        gc.unfreeze()
        gc.collect()
        tell(f"{row} took {time.monotonic() - begun_s:.0f} s")
    return figures, failures


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, show and write. Return 1 if a row could not be measured."""
    asked = parse(arguments)
    configure_log("error", "json")
    # As in the daemon: one thread for numpy's products.
    threadpool_limits(1, user_api="blas")
    # Also on this path, end every process and remove temporary files.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    console, progress = Console(width=asked.width), Console(stderr=True)

    def tell(what: str) -> None:
        progress.print(f"… {what}", style="dim", highlight=False)

    kept: Path = asked.folder
    kept.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="run-", dir=kept))
    begun_s = time.monotonic()
    try:
        plan = Plan(kept, work, tuple(asked.scales), asked.quick, asked.seed, tell)
        about = machine(plan.fresh("machine"))
        figures, failures = measure(plan, asked.only, tell)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    about["took_s"] = round(time.monotonic() - begun_s)
    show(figures, about, console)
    for failure in failures:
        console.print(f"not measured: {failure}", style="bold red", markup=False)
    told = {"quick": asked.quick, "scales": asked.scales, "rows": asked.only, "seed": asked.seed}
    write_json(as_document(figures, about, {**told, "failures": failures}), asked.json)
    if any(figure.points for figure in figures):
        draw(figures, asked.plot)
        console.print(f"Drawn: {asked.plot}", markup=False, highlight=False, soft_wrap=True)
    if asked.markdown is not None:
        asked.markdown.write_text(as_markdown(figures, about), encoding="utf-8")
    console.print(f"Written: {asked.json}", markup=False, highlight=False, soft_wrap=True)
    return 1 if failures else 0


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="the smallest scale, few repeats; for trying out"
    )
    parser.add_argument("--scales", nargs="+", choices=list(SCALES), help="default: S M L; S when quick")
    parser.add_argument("--xl", action="store_true", help="a million memories as well; needs 8 GB")
    parser.add_argument("--only", type=_rows, default=list(ROWS), help="rows, such as P1,P2")
    parser.add_argument("--json", type=Path, help="where the figures go")
    parser.add_argument("--markdown", type=Path, help="where the table goes as documentation shows it")
    parser.add_argument("--plot", type=Path, help="where the picture goes")
    parser.add_argument("--seed", type=int, default=1, help="of the synthetic memories")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(tempfile.gettempdir()) / "ebbtide-benchmarks",
        help="where synthetic memories are kept; on the disk that is to be measured",
    )
    parser.add_argument("--width", type=int, default=None if sys.stdout.isatty() else 160)
    asked = parser.parse_args(arguments)
    wanted = set(asked.scales or ("S" if asked.quick else ("S", "M", "L"))) | ({"XL"} if asked.xl else set())
    asked.scales = [name for name in SCALES if name in wanted]
    name = "quick" if asked.quick else "performance"
    asked.json = asked.json or RESULTS / f"{name}.json"
    asked.plot = asked.plot or RESULTS / f"{name}.png"
    return asked


def _rows(text: str) -> list[str]:
    rows = text.upper().split(",")
    if unknown := [row for row in rows if row not in ROWS]:
        raise argparse.ArgumentTypeError(f"no such row: {', '.join(unknown)}; there are {', '.join(ROWS)}")
    return rows


if __name__ == "__main__":
    sys.exit(main())
