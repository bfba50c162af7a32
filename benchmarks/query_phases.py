"""The processor time of a query by phase: `python -m benchmarks.query_phases`.

An agent remembers the public conversations of LoCoMo, one turn per batch, and then answers their questions: over REST,
and in this process with a clock around each phase. The time of a phase excludes that of the phases that it calls.
`--scale L` queries a synthetic memory of that scale instead, without REST. The measure is processor time, so other work
on the machine disturbs it little. Of several rounds the fastest counts.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measuring import Spread, settle_garbage
from benchmarks.processes import connected, running
from benchmarks.recall_daemon import batches_of, settle
from benchmarks.recall_data import APART, Corpus, MissingSet, default_folder, read_set, spread_out, together
from benchmarks.rows_questions import _questions
from benchmarks.stores import copied, kept_store, open_store
from benchmarks.synthetic import SCALES
from ebbtide.fleet.archive.archive import Archive
from ebbtide.fleet.recall import recollection
from ebbtide.fleet.recall.query import Query
from ebbtide.fleet.recall.recollection import QueryRunner
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.parameters import AgentParameters
from ebbtide.retrieval import learned, ranking
from ebbtide.retrieval.lexical import WordScores
from ebbtide.retrieval.trees import Trees
from ebbtide.retrieval.vectors import Vectors
from ebbtide.telemetry import configure_log
from ebbtide.verbs import recall as recall_verb

PHASES: tuple[tuple[str, Any, str], ...] = (
    ("question: words, names, dates", QueryRunner, "_understood"),
    ("question: words, names, dates", recollection, "weighted_terms"),
    ("index: words", WordScores, "scores"),
    ("index: vectors", Vectors, "scores"),
    ("index: vectors", Vectors, "window_scores"),
    ("filters", recollection, "allowed_passages"),
    ("links and focus", QueryRunner, "_graph"),
    ("links and focus", QueryRunner, "_linked"),
    ("fusion", ranking, "fuse"),
    ("learned order: features", learned, "features"),
    ("learned order: trees", Trees, "sums"),
    ("learned order: preferences", learned, "in_preferred_order"),
    ("relevance floor", recollection, "are_relevant"),
    ("memories of passages", QueryRunner, "_recollection"),
    ("packing", QueryRunner, "_first"),
    ("response", recall_verb, "_recollected"),
    ("response", recall_verb.Recalled, "as_json"),
)
"""The phases of a query, each with the functions that it consists of."""

OTHER = "transaction, everything else"
REST = "REST, event loop, threads"
AGENT = "a"
MODEL = "drawn"
DIMENSION = 256
NOW_MS = 1_800_000_000_000
WARM_UPS = 5


class PhaseClock:
    """Exclusive processor time by phase, in ns."""

    def __init__(self) -> None:
        self.by_phase: dict[str, int] = defaultdict(int)
        self._stack: list[str] = []
        self._since = 0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Attribute the time of a block to a phase."""
        self._turn()
        self._stack.append(name)
        try:
            yield
        finally:
            self._turn()
            self._stack.pop()

    def _turn(self) -> None:
        now = time.thread_time_ns()
        if self._stack:
            self.by_phase[self._stack[-1]] += now - self._since
        self._since = now

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose time counts for a phase."""

        def wrapped(*arguments: Any, **named: Any) -> Any:
            with self.phase(name):
                return function(*arguments, **named)

        return wrapped


def phases_of(workspace: Workspace, queries: Sequence[Query], rounds: int) -> dict[str, Spread]:
    """Return the time of each phase in ms over all queries, the fastest round of each query."""
    clock = PhaseClock()
    request = recall_verb.RecallRequest.model_construct(citations=queries[0].cites)
    rows: list[list[dict[str, int]]] = []
    with _clocked(clock):
        for number in range(rounds + 1):
            taken = []
            for query in queries if number else queries[:WARM_UPS]:
                clock.by_phase.clear()
                with clock.phase(OTHER):
                    recall_verb._recollected(workspace, query, request, NOW_MS).as_json()
                taken.append(dict(clock.by_phase))
            rows.append(taken)
    fastest = [min(row, key=lambda one: sum(one.values())) for row in zip(*rows[1:], strict=True)]
    names = [*dict.fromkeys(name for name, _, _ in PHASES), OTHER]
    found = {name: Spread.of([one.get(name, 0) / 1e6 for one in fastest]) for name in names}
    found["engine and response"] = Spread.of([sum(one.values()) / 1e6 for one in fastest])
    return found


@contextmanager
def _clocked(clock: PhaseClock) -> Iterator[None]:
    patches = [
        mock.patch.object(owner, name, clock.timed(phase, getattr(owner, name)))
        for phase, owner, name in PHASES
    ]
    try:
        for patch in patches:
            patch.start()
        yield
    finally:
        mock.patch.stopall()


# --- a conversation ------------------------------------------------------------------------------------------


def talk() -> Corpus:
    """Return all LoCoMo conversations as one corpus."""
    corpora = read_set("locomo", default_folder())
    if isinstance(corpora, MissingSet):
        raise SystemExit(str(corpora))
    return together(corpora)


def questions_of(corpus: Corpus, count: int) -> list[str]:
    """Return questions of all conversations that their messages answer."""
    answered = [one for one in corpus.questions if one.category not in APART["locomo"]]
    return [one.text for one in spread_out(answered, count)]


def remembered(corpus: Corpus, folder: Path, embedder: str) -> Path:
    """Return a data directory with an agent that heard a corpus turn by turn. It is kept for the next run."""
    place = folder / f"talk-{embedder}-{len(corpus.turns)}"
    if not (place / "complete").exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        with running(place / "data", {"EMBEDDING__MODEL": embedder}) as daemon, connected(daemon) as client:
            client.told("PUT", f"/v1/agents/{AGENT}", {"max_queue_size": len(corpus.turns)})
            for batch in batches_of(corpus):
                for message in batch["messages"]:
                    said = {**batch, "messages": [message]}
                    client.told("POST", f"/v1/agents/{AGENT}/remember", said)
            settle(client, AGENT)
        (place / "complete").touch()
    return place / "data"


def over_rest(data_dir: Path, embedder: str, questions: Sequence[str], results: int, rounds: int) -> float:
    """Return the processor time of the daemon per question in ms. A multilingual embedder adds that of its worker."""
    with running(data_dir, {"EMBEDDING__MODEL": embedder}) as daemon, connected(daemon) as client:
        process_id = daemon.process.pid

        def asked() -> float:
            before = _used_ms(process_id)
            for question in questions:
                body = {"query": question, "max_results": results, "citations": True}
                client.ask("POST", f"/v1/agents/{AGENT}/recall", body)
            return (_used_ms(process_id) - before) / len(questions)

        asked()
        return min(asked() for _ in range(rounds))


def _used_ms(process_id: int) -> float:
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def measure_talk(folder: Path, embedder: str, count: int, results: int, rounds: int) -> dict[str, Spread]:
    """Return the phases of the questions about a conversation, with those of the daemon around them."""
    corpus = talk()
    questions = questions_of(corpus, count)
    data_dir = remembered(corpus, folder, embedder)
    whole_ms = over_rest(data_dir, embedder, questions, results, rounds)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        (agent,) = (data_dir / "agents").iterdir()
        store = open_store(shutil.copytree(agent, Path(work) / "agent"))
        try:
            workspace = Workspace(store, AgentParameters())
            queries = [Query(one, results, cites=True, min_relevance=0.2) for one in questions]
            found = phases_of(workspace, queries, rounds)
        finally:
            store.close()
    found[REST] = Spread.of([whole_ms - found["engine and response"].mean])
    return found


def measure_scale(folder: Path, name: str, count: int, results: int, rounds: int) -> dict[str, Spread]:
    """Return the phases of questions to a synthetic memory with vectors of random directions."""
    kept = kept_store(SCALES[name], 1, folder)
    dice = np.random.default_rng([1, 3])
    with tempfile.TemporaryDirectory(dir=folder) as work:
        store = open_store(copied(kept, Path(work)))
        try:
            workspace = Workspace(store, AgentParameters(focus_policy="nodes"))
            texts = store.read(lambda txn: [node.content for node in txn.nodes.texts()])
            questions = _questions(texts, count, dice)
            drawn = dice.standard_normal((len(texts), DIMENSION), dtype=np.float32)
            drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)

            def give_vectors(archive: Archive) -> None:
                archive.vectors = Vectors(MODEL, DIMENSION)
                archive.vectors.put(np.arange(len(archive.index)), drawn[: len(archive.index)])

            store.read(lambda txn: give_vectors(workspace.archive(txn)))
            settle_garbage()
            queries = [
                Query(one, results, cites=True, vector=drawn[place], embedding_model=MODEL)
                for place, one in enumerate(questions)
            ]
            return phases_of(workspace, queries, rounds)
        finally:
            store.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--results", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--embedder", default="off")
    parser.add_argument("--scale", choices=list(SCALES))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "ebbtide-benchmarks")
    asked = parser.parse_args(arguments)
    configure_log("error", "json")
    # As in the daemon.
    threadpool_limits(1, user_api="blas")
    asked.folder.mkdir(parents=True, exist_ok=True)
    if asked.scale:
        found = measure_scale(asked.folder, asked.scale, asked.questions, asked.results, asked.rounds)
    else:
        found = measure_talk(asked.folder, asked.embedder, asked.questions, asked.results, asked.rounds)
    print("| phase | mean [ms] | p50 | p95 |\n|---|---:|---:|---:|")
    for name, spread in found.items():
        print(f"| {name} | {spread.mean:.2f} | {spread.p50:.2f} | {spread.p95:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
