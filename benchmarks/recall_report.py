"""Results of the recall benchmark: averages, differences with their intervals, tables, JSON, markdown.

`Answered` is one question under one condition, saved line by line in a file: to judge a change, read the questions
that it affected, not only the average. Averages are over questions. The rule guarded here: conditions are compared
over the same questions only, and every difference comes with its interval.

The column `archived` shows how many of 100 memories came from the archive; `text` shows how much of the text of the
evidence found is still there. Other modules run the queries (`recall.py`) and define the measures
(`recall_measures.py`).
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import quantile
from benchmarks.recall_baselines import BASELINES
from benchmarks.recall_data import WHOLE, groups_of
from benchmarks.recall_measures import NAMES, Interval, paired_interval

OURS, PLAIN_BM25 = "product", "bm25"
HARM = {
    "later": ["later-no-forgetting"],
    "later-no-archive": ["later-no-forgetting-no-archive", "later"],
}
"""The cost of forgetting after many later batches, and how much of it the archive recovers."""

COMPARED = ("R@5", "R@10", "R@20", "MRR")
"""Measures whose differences are reported."""


@dataclass(frozen=True, slots=True)
class Answered:
    """One question under one condition."""

    set_name: str
    corpus_id: str
    qid: str
    category: str
    condition: str
    measures: Mapping[str, float]
    took_ms: float
    turn_ids: Sequence[str] = ()
    """The first turns found."""
    gold: Sequence[Sequence[str]] = ()
    states: Mapping[str, int] = field(default_factory=dict)
    """How many memories of the answer were living, archived, pending."""
    text_kept: float | None = None
    """The share of the evidence's text in the answer, if it contains any evidence."""

    @property
    def key(self) -> tuple[str, str]:
        """The identity of the question."""
        return self.corpus_id, self.qid


_ByQuestion = dict[tuple[str, str], Answered]


@dataclass(frozen=True, slots=True)
class Row:
    """Averages over one group of questions of a set, under one condition."""

    set_name: str
    group: str
    condition: str
    question_count: int
    means: Mapping[str, float]
    p50_ms: float
    p95_ms: float
    states: Mapping[str, int]
    text_kept: float | None
    """Over answers that have any evidence: how much of its text they tell."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How much better `condition` is than `against` over the questions both answered."""

    set_name: str
    condition: str
    against: str
    measure: str
    question_count: int
    interval: Interval


@dataclass(slots=True)
class Outcome:
    """A whole run."""

    rows: list[Row]
    differences: list[Difference]
    notes: list[str]
    """Skipped sets and conditions, and how tokens were counted."""
    failures: list[str]


def rows_of(answered: Iterable[Answered]) -> list[Row]:
    """Return averages by set, group and condition, in the order of the run; the whole set comes before its parts."""
    grouped: dict[tuple[str, str, str], list[Answered]] = {}
    for one in answered:
        for group in groups_of(one.set_name, one.category):
            grouped.setdefault((one.set_name, group, one.condition), []).append(one)
    sets = list(dict.fromkeys(name for name, _, _ in grouped))
    ordered = sorted(grouped, key=lambda key: (sets.index(key[0]), key[1] != WHOLE, key[1]))
    return [_row(key, grouped[key]) for key in ordered]


def _row(key: tuple[str, str, str], answered: Sequence[Answered]) -> Row:
    times = sorted(one.took_ms for one in answered)
    kept = [one.text_kept for one in answered if one.text_kept is not None]
    states: Counter[str] = Counter()
    for one in answered:
        states.update(one.states)
    return Row(
        *key,
        question_count=len(answered),
        means={name: statistics.fmean(one.measures[name] for one in answered) for name in NAMES},
        p50_ms=statistics.median(times),
        p95_ms=quantile(times, 0.95),
        states=dict(states),
        text_kept=statistics.fmean(kept) if kept else None,
    )


def differences_of(answered: Iterable[Answered]) -> list[Difference]:
    """Compare the product with plain BM25, and every other condition of the product with the product."""
    by_condition: dict[tuple[str, str], _ByQuestion] = {}
    for one in answered:
        if WHOLE in groups_of(one.set_name, one.category):
            by_condition.setdefault((one.set_name, one.condition), {})[one.key] = one
    found = []
    for set_name, condition in by_condition:
        for against in _held_against(condition):
            if (set_name, against) in by_condition:
                ours, theirs = by_condition[set_name, condition], by_condition[set_name, against]
                found += _compared(set_name, condition, against, ours, theirs)
    return found


def _held_against(condition: str) -> list[str]:
    if condition in BASELINES:
        return []
    if condition == OURS:
        return [PLAIN_BM25]
    return [OURS, *HARM.get(condition, ())]


def _compared(
    set_name: str, condition: str, against: str, ours: _ByQuestion, theirs: _ByQuestion
) -> list[Difference]:
    both = [key for key in ours if key in theirs]
    if not both:
        return []
    found = []
    for name in COMPARED:
        interval = paired_interval(
            [ours[key].measures[name] for key in both], [theirs[key].measures[name] for key in both]
        )
        found.append(Difference(set_name, condition, against, name, len(both), interval))
    return found


def show(outcome: Outcome, console: Console) -> None:
    """Print a table per set, the differences, and below them skipped sets and failures."""
    for set_name in dict.fromkeys(row.set_name for row in outcome.rows):
        rows = _shown(outcome.rows, set_name)
        table = Table(title=f"Recall: {set_name} (shares in %)", title_justify="left")
        for name in _HEAD[:2]:
            table.add_column(name, no_wrap=True)
        for name in _HEAD[2:]:
            table.add_column(name, justify="right", no_wrap=True)
        for before, row in zip([None, *rows], rows, strict=False):
            if before is not None and before.group != row.group:
                table.add_section()
            table.add_row(*_cells(row))
        console.print(table)
    if outcome.differences:
        table = Table(title="Differences in points, 95 % paired bootstrap", title_justify="left")
        for name in ("set", "what", "against", *COMPARED):
            table.add_column(name, no_wrap=True)
        for cells in _difference_lines(outcome.differences):
            table.add_row(*cells)
        console.print(table)
    for note in outcome.notes:
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    for failure in outcome.failures:
        console.print(f"not measured: {failure}", style="bold red", markup=False, soft_wrap=True)


_HEAD = ("questions", "condition", "n", *NAMES, "p50 ms", "p95 ms", "archived", "text")


def _shown(rows: Iterable[Row], set_name: str) -> list[Row]:
    """Return the rows of a table. Single categories show only the product and the baselines."""
    always = {*BASELINES, OURS}
    return [
        row for row in rows if row.set_name == set_name and (row.group == WHOLE or row.condition in always)
    ]


def _cells(row: Row) -> tuple[str, ...]:
    told_count = sum(row.states.values())
    shares = (f"{row.means[name]:.3f}" if name == "MRR" else f"{100 * row.means[name]:.1f}" for name in NAMES)
    return (
        row.group,
        row.condition,
        str(row.question_count),
        *shares,
        f"{row.p50_ms:.1f}",
        f"{row.p95_ms:.1f}",
        f"{100 * row.states.get('archived', 0) / told_count:.0f}" if told_count else "",
        "" if row.text_kept is None else f"{100 * row.text_kept:.0f}",
    )


def _difference_lines(differences: Sequence[Difference]) -> list[tuple[str, ...]]:
    """Return a line for each set and condition, with the difference of every compared measure."""
    lines: dict[tuple[str, str, str], dict[str, str]] = {}
    for one in differences:
        told = one.interval
        points = f"{100 * told.mean:+.1f} ({100 * told.low:+.1f} to {100 * told.high:+.1f})"
        lines.setdefault((one.set_name, one.condition, one.against), {})[one.measure] = points
    return [(*key, *(told.get(name, "") for name in COMPARED)) for key, told in lines.items()]


def as_markdown(outcome: Outcome, machine: Mapping[str, object]) -> str:
    """Return the tables in the form of the documentation."""
    lines = []
    for set_name in dict.fromkeys(row.set_name for row in outcome.rows):
        lines += [f"### {set_name}", "", _line(_HEAD), _line(["---", "---", *["---:"] * (len(_HEAD) - 2)])]
        lines += [_line(_cells(row)) for row in _shown(outcome.rows, set_name)]
        lines.append("")
    if outcome.differences:
        head = ("set", "what", "against", *COMPARED)
        lines += ["### Differences in points, 95 % paired bootstrap", "", _line(head)]
        lines += [_line(["---"] * len(head)), *map(_line, _difference_lines(outcome.differences)), ""]
    lines += [*(f"{note}  " for note in outcome.notes), ""]
    told = ", ".join(f"{name} {value}" for name, value in machine.items())
    return "\n".join([*lines, f"Measured on: {told}.", ""])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def as_document(
    outcome: Outcome, machine: Mapping[str, object], arguments: Mapping[str, object]
) -> dict[str, Any]:
    """Everything but the single questions, for JSON."""
    return {
        "machine": dict(machine),
        "arguments": dict(arguments),
        "rows": [asdict(row) for row in outcome.rows],
        "differences": [asdict(one) for one in outcome.differences],
        "notes": outcome.notes,
        "failures": outcome.failures,
    }


def write_questions(answered: Iterable[Answered], path: Path) -> None:
    """Write every question under every condition, one JSON object a line, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("w", encoding="utf-8") as lines:
        for one in answered:
            lines.write(json.dumps(asdict(one), ensure_ascii=False) + "\n")
    fresh.replace(path)
