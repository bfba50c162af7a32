"""Measure how memories last and fade: `make bench-memory`, or `python -m benchmarks.memory_curves --quick`.

Agents with default parameters live through long talk, one to three messages a batch. The benchmark reports:

* reach: the share of living memories that their own first keyword finds;
* the share of memories that live, and the share of forgotten ones that are reported as once known;
* survival of facts that are said once, that come back, and that are discussed for a while;
* survival of an allergy, said once and pinned;
* associative recall of the evidence of LoCoMo's questions, through a daemon.

It judges no goal. The expected figures are in `docs/recall-quality.md`.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import memory_association
from benchmarks.measuring import machine
from benchmarks.memory_life import live, one_life
from benchmarks.memory_observers import (
    GONE,
    SHORT,
    WHOLE,
    Allergy,
    Living,
    Reach,
    Survival,
    asked_for_forgotten,
)
from benchmarks.memory_talk import COURSES, LANGUAGES, Language, facts, talk
from benchmarks.recall_data import MissingSet, default_folder, read_set
from benchmarks.report import Progress, write_json
from ebbtide.telemetry import configure_log

RESULTS = Path(__file__).with_name("results")
SEED = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """The length of the lives, and the ages at which an agent is queried."""

    lags: tuple[int, ...] = (5, 20, 100, 500)
    ages: tuple[int, ...] = (50, 150, 300, 600)
    allergy_ages: tuple[int, ...] = (100, 150, 200, 300, 400, 500, 600, 700)
    pinned_ages: tuple[int, ...] = (500, 1000, 1300, 1500)
    fact_at: int = 100
    facts_each: int | None = None
    counted_each: int = 250
    batch_count: int | None = None
    """The longest life; None for the whole talk."""
    is_quick: bool = False


QUICK = Plan(
    lags=(5, 20),
    ages=(5, 25),
    allergy_ages=(5, 25),
    pinned_ages=(25,),
    fact_at=5,
    facts_each=1,
    counted_each=20,
    batch_count=40,
    is_quick=True,
)


@dataclass(slots=True)
class Outcome:
    """The figures of a run, as plain rows."""

    reach: list[dict[str, Any]] = field(default_factory=list)
    living: list[dict[str, Any]] = field(default_factory=list)
    forgotten: list[dict[str, Any]] = field(default_factory=list)
    survival: list[dict[str, Any]] = field(default_factory=list)
    allergy: list[dict[str, Any]] = field(default_factory=list)
    association: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


async def measure_talk(
    language: Language, plan: Plan, given: argparse.Namespace, work: Path, outcome: Outcome
) -> None:
    """Let an agent live through the whole talk: reach, living memories, traces, and a pinned allergy."""
    name, batches = talk(language, given.data, is_own=plan.is_quick, seed=SEED)
    batches = batches[: plan.batch_count]
    outcome.notes.append(f"{language}: {len(batches)} batches of {name}")
    reach, living = Reach(plan.lags), Living(plan.counted_each)
    allergy = Allergy(language, plan.pinned_ages, is_pinned=True, said=plan.fact_at)
    async with one_life(work / f"talk-{language}") as life:
        await live(life, batches, [reach, living, allergy])
        outcome.forgotten.append({"language": language, **await asked_for_forgotten(life, reach.first)})
    outcome.reach += [{"language": language, "lag": lag, **counts} for lag, counts in reach.counts.items()]
    outcome.living += [
        {"language": language, "batches": age, "made": made, "living": count}
        for age, made, count in living.rows
    ]
    outcome.allergy += _answers(language, allergy, "pinned")


async def measure_facts(
    language: Language, plan: Plan, given: argparse.Namespace, work: Path, outcome: Outcome
) -> None:
    """Let an agent live through talk with facts in it, and an allergy said once."""
    _, batches = talk(language, given.data, is_own=plan.is_quick, seed=SEED)
    survival = Survival(facts(language, plan.facts_each), plan.ages, plan.fact_at)
    allergy = Allergy(language, plan.allergy_ages, is_pinned=False, said=plan.fact_at)
    count = max(survival.batch_count, plan.fact_at + max(plan.allergy_ages) + 1)
    if len(batches) < count:
        outcome.notes.append(f"{language}: the talk is shorter than {count} batches and repeats")
        batches *= -(-count // len(batches))
    async with one_life(work / f"facts-{language}") as life:
        await live(life, batches[:count], [survival, allergy])
    for course in COURSES:
        for age in plan.ages:
            states = survival.counts(course, age)
            shown = {state: states[state] for state in (WHOLE, SHORT, GONE)}
            outcome.survival.append({"language": language, "course": course, "age": age, **shown})
    outcome.allergy += _answers(language, allergy, "said once")


def _answers(language: Language, allergy: Allergy, how: str) -> list[dict[str, Any]]:
    return [
        {"language": language, "how": how, "age": age, "answer": answer}
        for age, answer in allergy.answers.items()
    ]


def measure_association(
    plan: Plan, given: argparse.Namespace, work: Path, outcome: Outcome, progress: Progress
) -> None:
    """Recall the evidence of LoCoMo's questions by their words; of the tiny set in a quick run."""
    corpora = read_set("tiny" if plan.is_quick else "locomo", given.data, given.limit)
    if isinstance(corpora, MissingSet):
        outcome.notes.append(str(corpora))
        return
    outcome.association = memory_association.measure(corpora, work, progress)


def run(given: argparse.Namespace, work: Path, progress: Progress) -> Outcome:
    """Measure the chosen parts."""
    plan, outcome = QUICK if given.quick else Plan(), Outcome()
    for language in LANGUAGES:
        if "talk" in given.parts:
            progress(f"{language}: talk")
            asyncio.run(measure_talk(language, plan, given, work, outcome))
        if "facts" in given.parts:
            progress(f"{language}: facts")
            asyncio.run(measure_facts(language, plan, given, work, outcome))
    if "association" in given.parts:
        measure_association(plan, given, work, outcome, progress)
    return outcome


# --- showing ---------------------------------------------------------------------------------------------------


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"


def _reach_cells(row: dict[str, Any]) -> list[str]:
    count = {name: row.get(name, 0) for name in ("living", "asked", "asked as when new")}
    return [
        row["language"],
        str(row["lag"]),
        str(count["living"]),
        _share(count["living"], row.get("made", 0)),
        _share(count["living"] - count["asked"], count["living"]),
        _share(row.get("found", 0), count["asked"]),
        _share(row.get("found first", 0), count["asked"]),
        _share(row.get("found as when new", 0), count["asked as when new"]),
    ]


def _forgotten_cells(row: dict[str, Any]) -> list[str]:
    names = ("forgotten", "asked", "others live", "none lives", "reported")
    return [row["language"], *(str(row.get(name, 0)) for name in names)]


def _survival_cells(outcome: Outcome) -> list[list[str]]:
    cells: dict[tuple[str, str], list[str]] = {}
    for row in outcome.survival:
        states = "/".join(str(row[state]) for state in (WHOLE, SHORT, GONE))
        cells.setdefault((row["language"], row["course"]), []).append(states)
    return [[*key, *states] for key, states in cells.items()]


def tables(outcome: Outcome) -> list[tuple[str, list[str], list[list[str]]]]:
    """Return the title, the head and the rows of each table. Tables without rows are left out."""
    ages = [str(age) for age in dict.fromkeys(row["age"] for row in outcome.survival)]
    depths = [f"R@{depth}" for depth in memory_association.DEPTHS]
    found = [
        (
            "Reach: living memories found by their first keyword (%)",
            [
                "talk",
                "batches later",
                "living",
                "of all",
                "no keyword",
                "found",
                "in first 10",
                "keyword when new",
            ],
            [_reach_cells(row) for row in outcome.reach],
        ),
        (
            "Living memories",
            ["talk", "batches", "made", "living", "%"],
            [
                [
                    row["language"],
                    *(str(row[name]) for name in ("batches", "made", "living")),
                    _share(row["living"], row["made"]),
                ]
                for row in outcome.living
            ],
        ),
        (
            "Forgotten memories, asked for by the first keyword that they had when new",
            [
                "talk",
                "forgotten",
                "keywords",
                "other memories match",
                "nothing matches",
                "of these: once knew",
            ],
            [_forgotten_cells(row) for row in outcome.forgotten],
        ),
        (
            "Facts: whole/short/gone after batches",
            ["talk", "course", *ages],
            _survival_cells(outcome),
        ),
        (
            "An allergy, asked for by one word",
            ["talk", "", "batches later", "answer"],
            [[row["language"], row["how"], str(row["age"]), row["answer"] or "-"] for row in outcome.allergy],
        ),
        (
            "Associative recall: evidence of questions found (%)",
            ["questions", "n", "asked by their", *depths],
            [
                [row["group"], str(row["questions"]), row["cue"]]
                + [f"{100 * row[depth]:.1f}" for depth in depths]
                for row in outcome.association
            ],
        ),
    ]
    return [table for table in found if table[2]]


def show(outcome: Outcome, console: Console) -> None:
    """Print the tables and the notes."""
    for title, head, rows in tables(outcome):
        table = Table(title=title, title_justify="left")
        for name in head:
            table.add_column(name, overflow="fold")
        for row in rows:
            table.add_row(*row)
        console.print(table)
    for note in outcome.notes:
        console.print(note, markup=False, highlight=False, soft_wrap=True)


# --- the command -----------------------------------------------------------------------------------------------

PARTS = ("talk", "facts", "association")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables and write the JSON file."""
    given = parse(arguments)
    configure_log("error", "json")
    # On SIGTERM too, the daemon ends and the directory is deleted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    console, errors = Console(width=given.width), Console(stderr=True)
    work = Path(tempfile.mkdtemp(prefix="ebbtide-memory-"))
    begin_s = time.monotonic()
    try:
        about = machine(work)
        outcome = run(given, work, lambda what: errors.print(f"… {what}", style="dim", highlight=False))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    about["took_s"] = round(time.monotonic() - begin_s)
    show(outcome, console)
    rows = {name: getattr(outcome, name) for name in Outcome.__slots__}
    write_json({"machine": about, "quick": given.quick, "parts": given.parts, **rows}, given.json)
    console.print(f"Written: {given.json}", markup=False, highlight=False, soft_wrap=True)
    return 0


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short lives in the project's own talk")
    parser.add_argument("--parts", choices=PARTS, action="append", help="measure this part; repeatable")
    parser.add_argument("--data", type=Path, default=default_folder(), help="the folder of the public sets")
    parser.add_argument("--limit", type=int, help="most questions of a conversation, taken evenly")
    parser.add_argument("--json", type=Path, help="file for all figures")
    parser.add_argument("--width", type=int, default=None if sys.stdout.isatty() else 160)
    given = parser.parse_args(arguments)
    given.parts = given.parts or list(PARTS)
    given.json = given.json or RESULTS / f"{'memory-quick' if given.quick else 'memory'}.json"
    return given


if __name__ == "__main__":
    sys.exit(main())
