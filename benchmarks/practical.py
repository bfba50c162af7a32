"""Measure recall on everyday conversations: `make eval-practical`, or `python -m benchmarks.practical --quick`.

Four people talk to an assistant for ten weeks each (`practical/*.jsonl`). A real daemon stores every pair of messages
as a batch, forgets what a person asks it to forget, and then answers the questions. Only the start of a response
counts: its first 5 memories, cut at 400 tokens. No language model judges them; `judge` contains the rules.

A column is an agent parameter `extraction` and a way to store and ask (`practical_ways.py`). Only the misses of the
personas in `DEV` may be read while rules are changed; the others give only a score.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import machine
from benchmarks.practical_data import FOLDER, TINY, Persona, PracticalQuestion, read_persona
from benchmarks.practical_ways import MAX_MEMORIES, SEPARATOR, WAYS, Memory, Requests
from benchmarks.processes import connected, running
from benchmarks.report import write_json
from ebbtide.telemetry import configure_log

RESULTS = Path(__file__).with_name("results")

EMBEDDERS = {"auto": "auto", "wordllama": "builtin", "off": "off"}
"""The daemon's setting `embedding.model` for each value of `--embedder`."""

EXTRACTIONS = ("off", "rules")

DEV = ("chenyu", "priya")
"""Every second persona, by name."""

MAX_TOKENS = 400
MAX_UNANSWERABLE_TOKENS = 50
"""A response to an unanswerable question must be shorter: 200 characters of English, 50 of Chinese."""

RIGHT = "right"
NO_EVIDENCE = "no evidence"
PART = "part of the evidence"
NO_ANSWER = "evidence without the answer"
STALE_FIRST = "stale before current"
TOO_LONG = "too long"
NOT_FORGOTTEN = "not forgotten"
VERDICTS = (RIGHT, NO_EVIDENCE, PART, NO_ANSWER, STALE_FIRST, TOO_LONG, NOT_FORGOTTEN)

TOTAL = "total"


@dataclass(frozen=True, slots=True)
class Judged:
    """A question with the verdict on its response."""

    column: str
    persona: str
    qid: str
    kind: str
    question: str
    verdict: str
    text: str
    turn_ids: list[str]


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text: one for each character beyond Latin scripts, one for four other characters."""
    wide = sum(character > "\u2e7f" for character in text)
    return wide + -(-(len(text) - wide) // 4)


def first_memories(memories: Sequence[Memory]) -> list[Memory]:
    """Return the memories that count. The first one always does."""
    taken: list[Memory] = []
    tokens = 0
    for memory in memories[:MAX_MEMORIES]:
        tokens += count_tokens(memory.text)
        if taken and tokens > MAX_TOKENS:
            break
        taken.append(memory)
    return taken


def judge(question: PracticalQuestion, memories: Sequence[Memory]) -> str:
    """Return the verdict on the memories that count."""
    text = SEPARATOR.join(memory.text for memory in memories).casefold()
    if question.must_not_contain:
        leaks = any(phrase.casefold() in text for phrase in question.must_not_contain)
        return NOT_FORGOTTEN if leaks else RIGHT
    if not question.gold:
        return RIGHT if count_tokens(text) < MAX_UNANSWERABLE_TOKENS else TOO_LONG
    ranks: dict[str, int] = {}
    for rank, memory in enumerate(memories):
        for turn_id in memory.turn_ids:
            ranks.setdefault(turn_id, rank)
    found = [
        min(ranks[one] for one in group & ranks.keys()) for group in question.gold if group & ranks.keys()
    ]
    if len(found) < len(question.gold):
        return PART if found else NO_EVIDENCE
    if any(ranks.get(one, len(memories)) < min(found) for one in question.must_not_first):
        return STALE_FIRST
    is_answered = all(any(one.casefold() in text for one in group) for group in question.must_contain)
    return RIGHT if is_answered else NO_ANSWER


def judged_questions(column: str, way: Requests, persona: Persona) -> Iterator[Judged]:
    """Store a persona's messages as an agent of its own, then ask and judge its questions."""
    way.remember(persona)
    for question in persona.questions:
        memories = first_memories(way.ask(question.text, persona))
        yield Judged(
            column=column,
            persona=persona.name,
            qid=question.qid,
            kind=question.kind,
            question=question.text,
            verdict=judge(question, memories),
            text=SEPARATOR.join(memory.text for memory in memories),
            turn_ids=list(dict.fromkeys(one for memory in memories for one in memory.turn_ids)),
        )
    way.client.told("POST", f"/v1/agents/{way.agent}/close")


def rows_of(judged: Sequence[Judged]) -> list[dict[str, Any]]:
    """Count the verdicts by column, kind and persona, with totals for all kinds and all personas."""
    columns = list(dict.fromkeys(one.column for one in judged))
    kinds = [*dict.fromkeys(one.kind for one in judged), TOTAL]
    personas = [*dict.fromkeys(one.persona for one in judged), TOTAL]
    counts: dict[tuple[str, str, str], Counter[str]] = {
        (column, kind, name): Counter() for column in columns for kind in kinds for name in personas
    }
    for one in judged:
        for kind in (one.kind, TOTAL):
            for name in (one.persona, TOTAL):
                counts[one.column, kind, name][one.verdict] += 1
    return [
        {
            "column": column,
            "kind": kind,
            "persona": name,
            "questions": found.total(),
            "right": found[RIGHT],
            "verdicts": {verdict: found[verdict] for verdict in VERDICTS if found[verdict]},
        }
        for (column, kind, name), found in counts.items()
    ]


def show(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print the right answers by kind and persona for each column, then those of the columns side by side."""
    columns = list(dict.fromkeys(row["column"] for row in rows))
    for column in columns:
        _show_column(column, [row for row in rows if row["column"] == column], console)
    table = Table(title="Practical set: right, by column", title_justify="left")
    table.add_column("", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for kind in dict.fromkeys(row["kind"] for row in rows):
        table.add_row(kind, *(_share(rows, column, kind, None) for column in columns))
    table.add_row("dev", *(_share(rows, column, TOTAL, is_dev=True) for column in columns))
    table.add_row("held out", *(_share(rows, column, TOTAL, is_dev=False) for column in columns))
    console.print(table)


def _share(rows: Sequence[Mapping[str, Any]], column: str, kind: str, is_dev: bool | None) -> str:
    """Return the right answers of a kind: of all personas, of those in `DEV`, or of the others."""
    some = [
        row
        for row in rows
        if (row["column"], row["kind"]) == (column, kind)
        and row["persona"] != TOTAL
        and (is_dev is None or (row["persona"] in DEV) == is_dev)
    ]
    right, count = sum(row["right"] for row in some), sum(row["questions"] for row in some)
    return f"{right} of {count}, {100 * right / count:.1f} %" if count else "–"


def _show_column(column: str, rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print the right answers by kind and persona, and the other verdicts by kind."""
    personas = list(dict.fromkeys(row["persona"] for row in rows))
    table = Table(title=f"Practical set, {column}: questions answered right", title_justify="left")
    table.add_column("kind", no_wrap=True)
    for name in personas:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("%", justify="right")
    table.add_column("other verdicts")
    for kind in dict.fromkeys(row["kind"] for row in rows):
        cells = {row["persona"]: row for row in rows if row["kind"] == kind}
        whole = cells[TOTAL]
        others = ", ".join(f"{name} {count}" for name, count in whole["verdicts"].items() if name != RIGHT)
        table.add_row(
            kind,
            *(f"{cells[name]['right']} of {cells[name]['questions']}" for name in personas),
            f"{100 * whole['right'] / whole['questions']:.0f}",
            others,
        )
    console.print(table)


def run(arguments: argparse.Namespace, work: Path, progress: Console) -> list[Judged]:
    """Start a daemon and measure the chosen personas in each column."""
    options = {"mode": arguments.mode, "archive": arguments.archive}
    settings = {"EMBEDDING__MODEL": EMBEDDERS[arguments.embedder]}
    judged: list[Judged] = []
    with running(work / "data", settings) as daemon, connected(daemon) as client:
        for extraction, through in product(arguments.extraction, arguments.through):
            column = f"{extraction}, {through}"
            for persona in map(read_persona, arguments.files):
                progress.print(
                    f"… {column}, {persona.name}: {len(persona.turns)} turns", style="dim", highlight=False
                )
                agent = f"{persona.name}-{extraction}-{through}"
                parameters = {"extraction": extraction}
                way = WAYS[through](client, agent, parameters, options, arguments.citations)
                judged += judged_questions(column, way, persona)
    return judged


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and write the JSON file."""
    given = parse(arguments)
    configure_log("error", "json")
    # On SIGTERM too, the daemon ends and the directory is deleted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    console = Console(width=given.width)
    work = Path(tempfile.mkdtemp(prefix="ebbtide-practical-"))
    begin_s = time.monotonic()
    try:
        about = machine(work)
        judged = run(given, work, Console(stderr=True))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    about["took_s"] = round(time.monotonic() - begin_s)
    rows = rows_of(judged)
    show(rows, console)
    options = {name: getattr(given, name) for name in ("embedder", "mode", "archive", "citations", "quick")}
    questions = [asdict(one) for one in judged]
    document = {"machine": about, "arguments": options, "rows": rows, "questions": questions}
    write_json(document, given.json)
    console.print(f"Written: {given.json}", markup=False, highlight=False, soft_wrap=True)
    return 0


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    personas = {path.stem: path for path in sorted(FOLDER.glob("*.jsonl"))}
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="measure one tiny persona, to try the command out"
    )
    parser.add_argument("--persona", choices=personas, action="append", help="measure this one; repeatable")
    parser.add_argument(
        "--extraction",
        choices=EXTRACTIONS,
        action="append",
        help="the agents' parameter; repeatable; default: off",
    )
    parser.add_argument(
        "--through", choices=WAYS, action="append", help="requests or tools; repeatable; default: requests"
    )
    parser.add_argument("--embedder", choices=EMBEDDERS, default="auto", help="default: auto, as the daemon")
    parser.add_argument(
        "--mode", choices=["auto", "hybrid"], default="auto", help="recall mode; default: auto"
    )
    parser.add_argument(
        "--archive", choices=["always", "when_needed", "never"], default="always", help="default: always"
    )
    parser.add_argument(
        "--citations", action="store_true", help="judge the text with citations, which have dates"
    )
    parser.add_argument("--json", type=Path, help="file for all results, with every question")
    parser.add_argument("--width", type=int, default=None if sys.stdout.isatty() else 160)
    given = parser.parse_args(arguments)
    given.extraction, given.through = given.extraction or ["off"], given.through or ["requests"]
    chosen = given.persona or list(personas)
    given.files = [TINY] if given.quick else [personas[name] for name in chosen]
    given.json = given.json or RESULTS / f"{'practical-quick' if given.quick else 'practical'}.json"
    return given


if __name__ == "__main__":
    sys.exit(main())
