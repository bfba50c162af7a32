"""Measure the acceptance bars of structured memory: `make eval-knowledge`, or `python -m benchmarks.knowledge --quick`.

Each module of this folder measures one subject and returns rows; `MEASURES` lists them. The exit status is 1 if a bar
is missed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from benchmarks.knowledge import (
    communities,
    cost,
    creating,
    erasure,
    extraction,
    forms,
    ledger,
    lying,
    memdaily,
    merges,
    relevance,
    times,
    updates,
    wordings,
)
from benchmarks.knowledge.table import Row, as_table
from ebbtide.telemetry import configure_log

MEASURES: dict[str, Callable[[bool], list[Row]]] = {
    "times": times.rows,
    "forms": forms.rows,
    "updates": updates.rows,
    "lying": lying.rows,
    "merges": merges.rows,
    "communities": communities.rows,
    "relevance": relevance.rows,
    "wordings": wordings.rows,
    "creating": creating.rows,
    "erasure": erasure.rows,
    "cost": cost.rows,
    "ledger": ledger.rows,
    "extraction": extraction.rows,
    "memdaily": memdaily.rows,
}
"""From the name of a subject to its rows; the argument is whether to measure quickly."""


def main(arguments: list[str] | None = None) -> int:
    """Print a table for each subject that the arguments name, or for all, as soon as it is measured."""
    parser = argparse.ArgumentParser(prog="benchmarks.knowledge", description="Measure structured memory.")
    parser.add_argument("subject", nargs="*", help=f"any of {', '.join(MEASURES)}; default: all")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and smaller sizes")
    given = parser.parse_args(arguments)
    if unknown := set(given.subject) - set(MEASURES):
        parser.error(f"unknown subject: {', '.join(sorted(unknown))}")
    configure_log("error", "json")
    rows: list[Row] = []
    for name in given.subject or MEASURES:
        measured = MEASURES[name](given.quick)
        rows += measured
        print(f"## {name}\n\n{as_table(measured)}\n", flush=True)
    return 0 if all(row.is_met is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
