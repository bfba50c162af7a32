"""Compare Ebbtide with other memories: `make bench-peers`, or `python -m benchmarks.peers --quick`.

Every memory is installed in a virtual environment of its own, stores the same turns one by one, and answers the same
questions. The share of evidence among the first ten results is measured in the same run, so that speed is not bought
with recall. A memory that cannot be installed or fails is listed with the reason. Memories that need an embedder get
the same one (`memories/embedder.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measuring import MB, machine
from benchmarks.recall_data import (
    APART,
    Corpus,
    MissingSet,
    default_folder,
    read_set,
    spread_out,
    together,
)
from benchmarks.report import write_json
from tests.support.process import ROOT

RESULTS = Path(__file__).parents[1] / "results"
INSTALL_TIMEOUT_S = 1800
RUN_TIMEOUT_S = 3600
COUNT = 10
"""Results per question."""

EMBEDDER = "wordllama>=0.4,<0.5"


@dataclass(frozen=True, slots=True)
class Peer:
    """A memory: its module in `memories`, what pip installs, and the distribution whose version is shown."""

    name: str
    module: str
    requirements: tuple[str, ...] = ()
    distribution: str = ""


PEERS = (
    Peer("Ebbtide", "ebbtide_daemon", (str(ROOT),), "ebbtide"),
    Peer("chroma over HTTP", "chroma", ("chromadb", EMBEDDER), "chromadb"),
    Peer("mcp-memory-service", "mcp_memory_service", ("mcp-memory-service", EMBEDDER), "mcp-memory-service"),
    Peer("mem0 (infer off)", "mem0", ("mem0ai", EMBEDDER), "mem0ai"),
    Peer(
        "LangGraph SqliteStore",
        "langgraph",
        ("langgraph-checkpoint-sqlite", EMBEDDER),
        "langgraph-checkpoint-sqlite",
    ),
    Peer("SQLite FTS5", "fts5"),
    Peer("tantivy + vector product", "tantivy_numpy", ("tantivy", "numpy", EMBEDDER), "tantivy"),
)

ROWS: Mapping[str, tuple[str, int]] = {
    "R@10 [%]": ("recall", 1),
    "question p50, 1 client [ms]": ("p50_ms", 1),
    "question p95, 1 client [ms]": ("p95_ms", 1),
    "questions/s, 1 client": ("per_s_1", 0),
    "questions/s, 8 clients": ("per_s_8", 0),
    "question right after a write, p50 [ms]": ("after_write_p50_ms", 1),
    "first question after a burst [ms]": ("first_after_burst_ms", 0),
    "acknowledgement, first quarter of a burst [ms]": ("ack_first_ms", 1),
    "acknowledgement, last quarter [ms]": ("ack_last_ms", 1),
    "start until ready [s]": ("ready_s", 2),
    "first answer after a restart [s]": ("first_answer_s", 2),
    "bytes a turn": ("bytes_per_turn", 0),
    "installed [MB]": ("installed_mb", 0),
}
"""The rows of the table: the figure, and its decimals."""


class NotMeasured(Exception):
    """A memory could not be installed or measured. The message is the reason."""


def interpreter() -> str:
    """Return a Python whose SQLite can load extensions, which some memories need, or else the running one."""
    show = "import ensurepip, sqlite3, sys; sqlite3.Connection.enable_load_extension"
    show += "; sys.exit(sys.version_info < (3, 11))"
    names = ("python3.13", "python3.12", "python3.11", "python3")
    system = [path for path in map(shutil.which, names) if path]
    for command in (sys.executable, *system, "/usr/bin/python3"):
        with contextlib.suppress(OSError):
            if not subprocess.run([command, "-c", show], check=False, capture_output=True).returncode:
                return command
    return sys.executable


def installed(peer: Peer, folder: Path, *, reinstall: bool) -> tuple[Path, str]:
    """Return the interpreter of a memory's virtual environment and its version. Raise NotMeasured on failure."""
    environment = folder / "environments" / peer.module
    python = environment / "bin" / "python"
    if reinstall or not (environment / "complete").exists():
        shutil.rmtree(environment, ignore_errors=True)
        _run([interpreter(), "-m", "venv", str(environment)], INSTALL_TIMEOUT_S, "no virtual environment")
        (environment / "empty").write_text(str(size_of(environment)))
        if peer.requirements:
            install = [str(python), "-m", "pip", "install", "--quiet", "--no-cache-dir", *peer.requirements]
            _run(install, INSTALL_TIMEOUT_S, "not installed")
        (environment / "complete").touch()
    if not peer.distribution:
        return python, _run(
            [str(python), "-c", "import sqlite3; print(sqlite3.sqlite_version)"], 60, "no version"
        )
    show = f"import importlib.metadata; print(importlib.metadata.version({peer.distribution!r}))"
    return python, _run([str(python), "-c", show], 60, "no version")


def added_mb(python: Path) -> float:
    """Return the size of the packages that were installed into a virtual environment."""
    environment = python.parents[1]
    return (size_of(environment) - int((environment / "empty").read_text())) / MB


def size_of(folder: Path) -> int:
    """Return the size of the files of a folder on disk, in bytes."""
    files = (one for one in folder.rglob("*") if one.is_file() and not one.is_symlink())
    return sum(one.stat().st_blocks * 512 for one in files)


def _run(command: Sequence[str], timeout_s: float, what: str) -> str:
    """Return the output of a command. Raise NotMeasured with its last error lines on failure."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""}
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=timeout_s, cwd=ROOT, env=environment
        )
    except subprocess.TimeoutExpired:
        raise NotMeasured(f"{what}: no end after {timeout_s:.0f} s") from None
    if done.returncode:
        lines = [line for line in done.stderr.strip().splitlines() if line.strip()]
        raise NotMeasured(f"{what}: {lines[-1] if lines else done.returncode}")
    return done.stdout.strip()


def measured(peer: Peer, python: Path, work: dict[str, Any], folder: Path) -> dict[str, float]:
    """Return the figures of a memory. Raise NotMeasured on failure."""
    stored = folder / peer.module
    file = folder / f"{peer.module}.json"
    file.write_text(json.dumps({**work, "module": peer.module, "folder": str(stored)}), encoding="utf-8")
    figures: dict[str, float] = {}
    for phase in ("fill", "again"):
        command = [str(python), "-m", "benchmarks.peers.driver", str(file), phase, str(time.time())]
        figures |= json.loads(_run(command, RUN_TIMEOUT_S, f"failed while it ran ({phase})").splitlines()[-1])
        if phase == "fill":
            figures["bytes_per_turn"] = size_of(stored) / len(work["turns"])
    return {**figures, "installed_mb": added_mb(python)}


def work_of(corpus: Corpus, question_count: int) -> dict[str, Any]:
    """Return the turns and questions in the form of `driver.py`."""
    answered = [one for one in corpus.questions if one.category not in APART["locomo"]]
    turns = [
        {
            "id": turn.turn_id,
            "session": turn.session_id,
            "speaker": turn.speaker,
            "text": turn.text,
            "time_ms": turn.timestamp_ms,
        }
        for turn in corpus.turns
    ]
    questions = [
        {"text": one.text, "gold": [sorted(group) for group in one.gold]}
        for one in spread_out(answered, question_count)
    ]
    return {"turns": turns, "questions": questions, "count": COUNT}


def as_table(figures: Mapping[str, Mapping[str, float]], versions: Mapping[str, str]) -> str:
    """Return the table in Markdown. Behind each figure is its ratio to Ebbtide's."""
    names = list(figures)
    lines = [
        "| | " + " | ".join(f"{name} {versions[name]}" for name in names) + " |",
        "|---|" + "---:|" * len(names),
    ]
    for row, (figure, decimals) in ROWS.items():
        own = figures.get("Ebbtide", {}).get(figure)
        cells = []
        for name in names:
            value = figures[name][figure]
            ratio = f" ({value / own:.2g} ×)" if own and name != "Ebbtide" else ""
            cells.append(f"{value:,.{decimals}f}".replace(",", " ") + ratio)
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Install, measure, and print the table. Return 1 if Ebbtide itself could not be measured."""
    options = parse(arguments)
    corpus = _corpus(options.quick)
    work = work_of(corpus, 20 if options.quick else options.questions)
    options.folder.mkdir(parents=True, exist_ok=True)
    figures: dict[str, dict[str, float]] = {}
    versions: dict[str, str] = {}
    skipped: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="run-", dir=options.folder) as run:
        about = machine(Path(run) / "machine")
        for peer in PEERS:
            if options.only and peer.module not in options.only:
                continue
            print(f"… {peer.name}", file=sys.stderr, flush=True)
            try:
                # This checkout may have changed since it was installed.
                python, versions[peer.name] = installed(
                    peer, options.folder, reinstall=peer.module == "ebbtide_daemon"
                )
                figures[peer.name] = measured(peer, python, work, Path(run))
            except NotMeasured as reason:
                skipped[peer.name] = str(reason)
    print(
        f"{len(work['turns'])} turns, one by one; {len(work['questions'])} questions; {about['cores']} cores\n"
    )
    print(as_table(figures, versions))
    for name, reason in skipped.items():
        print(f"\n{name} was skipped: {reason}")
    document = {"machine": about, "versions": versions, "figures": figures, "skipped": skipped}
    write_json(document, RESULTS / "peers.json")
    return 0 if "Ebbtide" in figures or options.only else 1


def _corpus(is_quick: bool) -> Corpus:
    corpora = read_set("tiny" if is_quick else "locomo", default_folder())
    if isinstance(corpora, MissingSet):
        raise SystemExit(str(corpora))
    return together(corpora)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few turns, to check that every memory runs")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--only", nargs="+", choices=[peer.module for peer in PEERS], help="some memories")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(tempfile.gettempdir()) / "ebbtide-benchmarks" / "peers",
        help="where the virtual environments are kept; on the disk that is to be measured",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
