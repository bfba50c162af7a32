"""Times that texts state: the share that is read exactly, and the time it takes.

The labels are `data/times.jsonl`. A question is read as a search reads it, a statement with its reading, event or plan.
"""

from __future__ import annotations

from statistics import quantiles
from time import perf_counter
from typing import cast

from benchmarks.knowledge.sets import PARTS, Interval, TimeCase, read_times
from benchmarks.knowledge.table import Row
from ebbtide.retrieval.time_rules import Reading
from ebbtide.retrieval.times import stated_time

BAR = 0.96
MOST_MS = 1.0


def answer(case: TimeCase) -> Interval | None:
    """Return the interval that Ebbtide reads in a case."""
    found = stated_time(case.text, case.reference, cast(Reading, case.reading))
    return None if found is None else (found.since_ms, found.until_ms)


def rows(is_quick: bool) -> list[Row]:
    """Return the rows of times."""
    cases = read_times()
    is_right = {case.id: case.accepts(answer(case)) for case in cases}
    shares = []
    for part in PARTS:
        for lang in ("en", "zh"):
            right = [is_right[case.id] for case in cases if (case.part, case.lang) == (part, lang)]
            shares.append(f"{part} {lang} {sum(right)} of {len(right)}")
    share = sum(is_right.values()) / len(cases)
    taken = sorted(_milliseconds(case, 1 if is_quick else 5) for case in cases)
    p95 = quantiles(taken, n=20)[-1]
    return [
        Row("time words", f"≥ {BAR:.0%}", f"{share:.1%} ({', '.join(shares)})", share >= BAR),
        Row(
            "reading a time, p95",
            f"≤ {MOST_MS:.0f} ms",
            f"{p95:.2f} ms (longest {taken[-1]:.2f})",
            p95 <= MOST_MS,
        ),
    ]


def _milliseconds(case: TimeCase, repetitions: int) -> float:
    """Return the shortest time of reading a case."""
    best = float("inf")
    for _ in range(repetitions):
        begun = perf_counter()
        answer(case)
        best = min(best, perf_counter() - begun)
    return best * 1000
