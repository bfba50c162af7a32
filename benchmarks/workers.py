"""The effect of workers: requests per second, processor time per request and memory, by the number of workers.

`python -m benchmarks.workers` runs a daemon with each number of workers on the same agents, in turns, so that a busy
machine affects all of them. 16 connections of one process send requests for eight agents.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.load import run_load
from benchmarks.processes import running
from tests.support.process import Daemon

AGENTS = [f"agent-{number}" for number in range(8)]
BODIES = {
    "query": {"query": "Whom did I meet about the third project at the harbour?", "max_results": 10},
    "keyword": {"keywords": ["harbour"], "max_results": 10},
}
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Round:
    """One measurement."""

    per_second: float
    cpu_ms: float
    shared_out_mb: float
    """Proportional memory (PSS) of all processes of the daemon."""


def processes_of(daemon: Daemon) -> list[int]:
    """Return the processes that serve: the daemon, or its parent and workers."""
    return [daemon.process.pid, *daemon.workers.values()]


def cpu_s(pids: list[int]) -> float:
    """Return the processor time of processes so far."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(one[11]) + int(one[12]) for one in fields) / TICKS


def memory_mb(pids: list[int]) -> float:
    """Return the proportional memory of processes."""
    lines = [
        line
        for pid in pids
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        if line.startswith("Pss:")
    ]
    return sum(int(line.split()[1]) for line in lines) / 1024


def fill(data_dir: Path, turns: int) -> None:
    """Create the agents."""
    with running(data_dir) as daemon:
        for agent in AGENTS:
            for first in range(0, turns, 20):
                texts = [
                    f"On day {turn} I walked to the harbour with person {turn % 53} about project {turn % 11}."
                    for turn in range(first, min(turns, first + 20))
                ]
                daemon.remember(agent, *texts)
        for agent in AGENTS:
            daemon.flush(agent, passes=False, vectors=True, timeout_ms=60_000)


def measure(data_dir: Path, workers: int, seconds: float) -> dict[str, Round]:
    """Return one measurement of each kind of request."""
    found = {}
    with running(data_dir, {"SERVER__WORKERS": workers}) as daemon:
        for kind, body in BODIES.items():
            content = json.dumps(body).encode()
            for agent in AGENTS:
                daemon.post(f"{agent}/recall", body).raise_for_status()
            pids = processes_of(daemon)
            before_s = cpu_s(pids)
            paths = ",".join(f"/v1/agents/{agent}/recall" for agent in AGENTS)
            loaded = run_load("http", daemon.url, paths, content, seconds)
            # The warm-up of the load counts for the processor time only.
            used_s = (cpu_s(pids) - before_s) * seconds / (seconds + 0.3)
            found[kind] = Round(
                loaded.per_second, 1000 * used_s / (loaded.per_second * seconds), memory_mb(pids)
            )
    return found


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", default="1,2", help="numbers of workers, separated by commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--turns", type=int, default=300, help="turns of each agent")
    options = parser.parse_args()
    numbers = [int(number) for number in options.workers.split(",")]
    rounds: dict[tuple[str, int], list[Round]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder) / "data"
        fill(data_dir, options.turns)
        for _ in range(options.rounds):
            for number in numbers:
                for kind, one in measure(data_dir, number, options.seconds).items():
                    rounds[kind, number].append(one)
    print("| request | workers | per second | ratio | processor time [ms] | memory, all processes [MB] |")
    print("|---|---:|---:|---:|---:|---:|")
    for (kind, number), measured in sorted(rounds.items()):
        base = [one.per_second for one in rounds[kind, numbers[0]]]
        ratio = median(one.per_second / first for one, first in zip(measured, base, strict=True))
        print(
            f"| {kind} | {number} | {median(one.per_second for one in measured):.0f} | {ratio:.2f} "
            f"| {median(one.cpu_ms for one in measured):.2f} "
            f"| {median(one.shared_out_mb for one in measured):.0f} |"
        )


if __name__ == "__main__":
    main()
