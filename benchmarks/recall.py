"""Does recall find the evidence? `make bench-recall`, or `python -m benchmarks.recall --quick`.

Uses public sets of conversations and questions whose evidence is known turn by turn. Compares the product, started as
a real daemon, with four baselines of the same run. On the sets of `ABLATED` it also switches off each signal in turn,
and compares forgetting, the archive and 150 unrelated batches afterwards. It skips a set that is not available and
says so. `--quick` runs the tiny set of this project, in a minute.

This module judges no goal: it reports figures with their intervals, and saves every question in a file.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from rich.console import Console

from benchmarks import recall_baselines as baselines
from benchmarks.measuring import machine, timed
from benchmarks.processes import connected, running
from benchmarks.recall_daemon import CONDITIONS, Told, questioned, results_of, text_kept
from benchmarks.recall_data import PUBLIC, SETS, Corpus, MissingSet, Question, default_folder, read_set
from benchmarks.recall_measures import Result, measure, ranked_turns
from benchmarks.recall_picture import draw
from benchmarks.recall_report import (
    Answered,
    Outcome,
    as_document,
    as_markdown,
    differences_of,
    rows_of,
    show,
    write_questions,
)
from benchmarks.report import Progress, write_json
from ebbtide.language.tokens import estimate
from ebbtide.telemetry import configure_log

RESULTS = Path(__file__).with_name("results")

NAMES = [*baselines.BASELINES, *CONDITIONS]
ALWAYS = [*baselines.BASELINES, "product"]
ABLATED = ("locomo", "tiny")
"""Sets on which all conditions are measured; the others get `ALWAYS` unless conditions are named."""

LATER_BATCHES, QUICK_LATER_BATCHES = 150, 5
LONGEST_FAILURE = 300
KEPT_TURNS = 20
"""Turns of an answer that are written to the file of questions."""


def count_tokens(corpus: Corpus) -> Callable[[str], int]:
    """Return the token counter of a corpus: characters of Chinese, else a real vocabulary if one is installed."""
    if corpus.is_chinese:
        return len
    try:
        tokenizer = baselines.embedder().tokenizer
    except baselines.Unavailable:
        return cache(estimate)
    # Answers repeat the same turns. Without a cache, counting their tokens would take most of the run.
    return cache(lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids))


def how_counted() -> str:
    """Return the sentence that describes how tokens were counted."""
    try:
        baselines.embedder()
    except baselines.Unavailable:
        return "Tokens: characters in Chinese; elsewhere guessed from letters, rather too many than too few."
    return "Tokens: characters in Chinese; elsewhere by the vocabulary of wordllama (32 000 pieces)."


def ask_baselines(
    corpora: Sequence[Corpus], names: Sequence[str], notes: list[str], tell: Progress
) -> Iterator[Answered]:
    """Query the baselines with all questions. Note once if a baseline cannot answer."""
    for name in (name for name in names if name in baselines.BASELINES):
        for corpus in corpora:
            tell(f"{corpus.set_name} {corpus.corpus_id}: {name}")
            try:
                ask = baselines.baseline(name, corpus)
            except baselines.Unavailable as why:
                note = f"{corpus.set_name}: {name} is skipped: {why}"
                notes += [] if note in notes else [note]
                continue
            counted = count_tokens(corpus)
            for question in corpus.questions:
                places, took_ms = timed(lambda ask=ask, text=question.text: ask(text))  # type: ignore[misc]
                results = baselines.results_of(places, corpus, counted)
                yield _answered(name, corpus, question, results, took_ms)


def ask_product(
    corpora: Sequence[Corpus], names: Sequence[str], later_count: int, work: Path, tell: Progress
) -> Iterator[Answered]:
    """Query the product with all questions, through its own daemons."""
    wanted = [name for name in names if name in CONDITIONS]
    if not wanted:
        return
    counted = {corpus.corpus_id: count_tokens(corpus) for corpus in corpora}
    with running(work / corpora[0].set_name) as daemon, connected(daemon) as client:
        for name, corpus, question, told in questioned(client, corpora, wanted, later_count, tell):
            results = results_of(told, counted[corpus.corpus_id])
            yield _answered(name, corpus, question, results, told.took_ms, told)


def _answered(
    condition: str,
    corpus: Corpus,
    question: Question,
    results: Sequence[Result],
    took_ms: float,
    told: Told | None = None,
) -> Answered:
    return Answered(
        set_name=corpus.set_name,
        corpus_id=corpus.corpus_id,
        qid=question.qid,
        category=question.category,
        condition=condition,
        measures=measure(results, question.gold),
        took_ms=took_ms,
        turn_ids=ranked_turns(results)[:KEPT_TURNS],
        gold=[sorted(group) for group in question.gold],
        states=told.states if told else {},
        text_kept=text_kept(told, corpus, question) if told else None,
    )


def run(asked: argparse.Namespace, work: Path, tell: Progress) -> tuple[list[Answered], Outcome]:
    """Run every available set. A set or a daemon that fails does not affect the others."""
    answered: list[Answered] = []
    notes, failures = [how_counted()], []
    for set_name in asked.sets:
        corpora = read_set(set_name, asked.data, asked.limit)
        if isinstance(corpora, MissingSet):
            notes.append(str(corpora))
            continue
        names = asked.conditions or (NAMES if set_name in ABLATED else ALWAYS)
        answered += ask_baselines(corpora, names, notes, tell)
        try:
            # Add answers one by one, so that a failure does not lose the earlier ones.
            answered.extend(ask_product(corpora, names, asked.later, work, tell))
        except Exception as error:
            # If a daemon did not start, the message is its whole log; the cause is at its end.
            told = str(error)[-LONGEST_FAILURE:]
            failures.append(f"{set_name} through the product: {type(error).__name__}: {told}")
    return answered, Outcome(rows_of(answered), differences_of(answered), notes, failures)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, show and write. Return 1 if a measurement failed, 0 if a set is only unavailable."""
    asked = parse(arguments)
    configure_log("error", "json")
    # Also on this path, end the daemon and remove temporary files.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    console, progress = Console(width=asked.width), Console(stderr=True)

    def tell(what: str) -> None:
        progress.print(f"… {what}", style="dim", highlight=False)

    work = Path(tempfile.mkdtemp(prefix="ebbtide-recall-"))
    begun_s = time.monotonic()
    try:
        about = machine(work)
        answered, outcome = run(asked, work, tell)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    about["took_s"] = round(time.monotonic() - begun_s)
    show(outcome, console)
    told = {
        "quick": asked.quick,
        "sets": asked.sets,
        "limit": asked.limit,
        "conditions": asked.conditions,
        "later": asked.later,
    }
    document = as_document(outcome, about, told)
    write_json(document, asked.json)
    if asked.plot is not None:
        draw(document, asked.plot)
    write_questions(answered, asked.questions)
    if asked.markdown is not None:
        asked.markdown.write_text(as_markdown(outcome, about), encoding="utf-8")
    console.print(f"Written: {asked.json}, {asked.questions}", markup=False, highlight=False, soft_wrap=True)
    return 1 if outcome.failures else 0


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the tiny set of this project; for trying out")
    parser.add_argument(
        "--sets", type=_names(list(SETS)), help=f"such as locomo,memdaily; of {', '.join(SETS)}"
    )
    parser.add_argument(
        "--conditions",
        type=_names(NAMES),
        help=f"such as bm25,product; of {', '.join(NAMES)}. Default: all of them on "
        f"{' and '.join(ABLATED)}, {', '.join(ALWAYS)} on the others",
    )
    parser.add_argument("--data", type=Path, default=default_folder(), help="the folder of the public sets")
    parser.add_argument("--limit", type=_count, help="most questions of a corpus, taken evenly")
    parser.add_argument(
        "--later", type=_count, help=f"unrelated batches remembered afterwards; default: {LATER_BATCHES}"
    )
    parser.add_argument("--json", type=Path, help="where the figures go")
    parser.add_argument("--questions", type=Path, help="where every single question goes, one a line")
    parser.add_argument("--markdown", type=Path, help="where the tables go as documentation shows them")
    parser.add_argument("--plot", type=Path, help="where the picture goes")
    parser.add_argument("--width", type=int, default=None if sys.stdout.isatty() else 190)
    asked = parser.parse_args(arguments)
    asked.sets = asked.sets or (["tiny"] if asked.quick else PUBLIC)
    asked.later = asked.later or (QUICK_LATER_BATCHES if asked.quick else LATER_BATCHES)
    name = "recall-quick" if asked.quick else "recall"
    asked.json = asked.json or RESULTS / f"{name}.json"
    asked.questions = asked.questions or RESULTS / f"{name}-questions.jsonl"
    return asked


def _names(known: Sequence[str]) -> Callable[[str], list[str]]:
    def read(text: str) -> list[str]:
        names = text.split(",")
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
        return names

    return read


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return count


if __name__ == "__main__":
    sys.exit(main())
