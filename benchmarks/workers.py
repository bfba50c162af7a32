"""The effect of workers: requests per second, processor time per request and memory, by the number of workers.

`python -m benchmarks.workers` prints two tables, in about five minutes:

* Throughput. Daemons with each number of workers run on the same agents in turns, so that a busy machine affects all of
  them. 16 connections of one process send requests for eight agents. The embedder is the built-in one.
* Memory, with each embedder, after one query of each agent.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.load import WARM_UP_S, run_load
from benchmarks.processes import running
from tests.support.process import Daemon

AGENTS = [f"agent-{number}" for number in range(8)]
QUERY = {"query": "Whom did I meet about the third project at the harbour?", "max_results": 10}
BODIES = {"query": QUERY, "keyword": {"keywords": ["harbour"], "max_results": 10}}
EMBEDDERS = ("off", "builtin", "multilingual")
MEMORY_TURNS = 40
"""Turns of each agent in the measurement of memory, where the multilingual embedder reads all of them."""
TICKS = os.sysconf("SC_CLK_TCK")


# --- processes -----------------------------------------------------------------------------------------------


def descendants(pid: int) -> list[int]:
    """Return the processes that a process has started, directly and indirectly."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children[int(fields[1])].append(int(entry.name))
    found = [pid]
    for one in found:
        found += children[one]
    return found[1:]


def cpu_s(pids: Iterable[int]) -> float:
    """Return the processor time of processes so far."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(one[11]) + int(one[12]) for one in fields) / TICKS


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of processes in MB."""

    private: float
    """Pages that no other process uses."""
    shared: float
    """Resident pages that other processes use too."""
    proportional: float
    """The private pages, and a share of each shared page (PSS)."""

    @classmethod
    def of(cls, pids: Iterable[int]) -> Memory:
        """Return the sums over processes."""
        sizes: dict[str, int] = defaultdict(int)
        for pid in pids:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
                name, size = line.split()[:2]
                sizes[name] += int(size)
        private = sizes["Private_Clean:"] + sizes["Private_Dirty:"]
        return cls(*(kb * 1024 / 1e6 for kb in (private, sizes["Rss:"] - private, sizes["Pss:"])))


# --- throughput ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Round:
    """One measurement of throughput."""

    per_second: float
    cpu_ms: float


def settings_of(workers: int, embedder: str) -> dict[str, str | int]:
    """Return the settings of a daemon."""
    return {"SERVER__WORKERS": workers, "EMBEDDING__MODEL": embedder}


def fill(data_dir: Path, embedder: str, turns: int) -> None:
    """Create the agents."""
    with running(data_dir, settings_of(1, embedder)) as daemon:
        for agent in AGENTS:
            for first in range(0, turns, 20):
                texts = [
                    f"On day {turn} I walked to the harbour with person {turn % 53} about project {turn % 11}."
                    for turn in range(first, min(turns, first + 20))
                ]
                daemon.remember(agent, *texts)
        for agent in AGENTS:
            daemon.flush(agent, passes=False, vectors=True)


def recall_once(daemon: Daemon, body: Mapping[str, object]) -> None:
    """Send one request for each agent, so that all of them are open."""
    for agent in AGENTS:
        daemon.post(f"{agent}/recall", body).raise_for_status()


def throughput(data_dir: Path, workers: int, seconds: float) -> dict[str, Round]:
    """Return one measurement of each kind of request."""
    found = {}
    with running(data_dir, settings_of(workers, "builtin")) as daemon:
        for kind, body in BODIES.items():
            recall_once(daemon, body)
            pids = [daemon.process.pid, *descendants(daemon.process.pid)]
            before_s = cpu_s(pids)
            paths = ",".join(f"/v1/agents/{agent}/recall" for agent in AGENTS)
            loaded = run_load("http", daemon.url, paths, json.dumps(body).encode(), seconds)
            # The processor time includes the warm-up, the responses per second do not.
            used_s = (cpu_s(pids) - before_s) * seconds / (seconds + WARM_UP_S)
            found[kind] = Round(loaded.per_second, 1000 * used_s / (loaded.per_second * seconds))
    return found


def print_throughput(numbers: list[int], rounds: int, seconds: float, turns: int) -> None:
    """Measure and print the throughput with each number of workers."""
    measured: dict[tuple[str, int], list[Round]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder) / "data"
        fill(data_dir, "builtin", turns)
        for _ in range(rounds):
            for number in numbers:
                for kind, one in throughput(data_dir, number, seconds).items():
                    measured[kind, number].append(one)
    print("| request | workers | per second | ratio | processor time [ms] |")
    print("|---|---:|---:|---:|---:|")
    for (kind, number), found in sorted(measured.items()):
        base = [one.per_second for one in measured[kind, numbers[0]]]
        ratio = median(one.per_second / first for one, first in zip(found, base, strict=True))
        per_second, cpu_ms = median(one.per_second for one in found), median(one.cpu_ms for one in found)
        print(f"| {kind} | {number} | {per_second:.0f} | {ratio:.2f} | {cpu_ms:.2f} |", flush=True)


# --- memory --------------------------------------------------------------------------------------------------


def print_memory(numbers: list[int]) -> None:
    """Measure and print the memory with each embedder and each number of workers."""
    print()
    print("| embedder | workers | parent | a worker: private | shared | other processes | all processes |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for embedder in EMBEDDERS:
        with tempfile.TemporaryDirectory() as folder:
            data_dir = Path(folder) / "data"
            fill(data_dir, embedder, MEMORY_TURNS)
            for number in numbers:
                with running(data_dir, settings_of(number, embedder)) as daemon:
                    recall_once(daemon, QUERY)
                    print(memory_row(daemon, embedder, number), flush=True)


def memory_row(daemon: Daemon, embedder: str, number: int) -> str:
    """Return the row of a running daemon."""
    started = descendants(daemon.process.pid)
    workers = set(daemon.workers.values()) or {daemon.process.pid}
    parent = {daemon.process.pid} - workers
    others = set(started) - workers
    of_workers, of_others = Memory.of(workers), Memory.of(others).proportional
    of_parent = Memory.of(parent).proportional
    each = f"{of_workers.private / number:.0f} | {of_workers.shared / number:.0f}"
    whole = of_parent + of_workers.proportional + of_others
    return f"| {embedder} | {number} | {of_parent:.0f} | {each} | {of_others:.0f} | {whole:.0f} |"


def main() -> None:
    """Measure and print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", default="1,2,4", help="numbers of workers, separated by commas")
    parser.add_argument("--rounds", type=int, default=4, help="rounds of throughput; 0 for memory only")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--turns", type=int, default=300, help="turns of each agent, for throughput")
    options = parser.parse_args()
    numbers = [int(number) for number in options.workers.split(",")]
    if options.rounds:
        print_throughput(numbers, options.rounds, options.seconds, options.turns)
    print_memory(numbers)


if __name__ == "__main__":
    main()
