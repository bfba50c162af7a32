"""Measurement: quantiles, interleaved rounds, and processes measured from outside.

Machines are noisy, and the noise comes in bursts. Tasks to compare therefore take turns within one round, in an order
that reverses from round to round, so that a burst hits all of them alike.
"""

from __future__ import annotations

import gc
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import lmdb

T = TypeVar("T")

MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Spread:
    """How samples are spread; p50 is the median."""

    count: int
    p50: float
    p95: float
    p99: float
    least: float
    most: float
    mean: float

    @classmethod
    def of(cls, samples: Iterable[float]) -> Spread:
        """Return the spread of at least one sample."""
        found = sorted(samples)
        return cls(
            len(found),
            statistics.median(found),
            quantile(found, 0.95),
            quantile(found, 0.99),
            found[0],
            found[-1],
            statistics.fmean(found),
        )


def quantile(ordered: list[float], share: float) -> float:
    """Return a quantile of ordered samples, interpolated between two of them if necessary."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """Return the result of a function and its duration in ms."""
    begun = time.perf_counter_ns()
    result = work()
    return result, (time.perf_counter_ns() - begun) / 1e6


def in_turns(rounds: int, tasks: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Return the figures of each task, one per round. Every other round runs in reverse order."""
    figures: dict[str, list[float]] = {name: [] for name in tasks}
    for number in range(rounds):
        for name in list(tasks) if number % 2 == 0 else reversed(list(tasks)):
            figures[name].append(tasks[name]())
    return figures


def settle_garbage() -> None:
    """Exclude all existing objects from later collections, which would otherwise slow down a measured task."""
    gc.collect()
    gc.freeze()


# --- the machine ---------------------------------------------------------------------------------------------


def machine(folder: Path) -> dict[str, object]:
    """Describe the machine of the measurements. The disk is the one under `folder`."""
    commits = bare_commits(folder / "commits", 30)
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count() or 1,
        "ram_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30), 1),
        "python": platform.python_version(),
        "os": f"{platform.system()} {platform.release()}",
        "file_system": file_system(folder),
        "commit_with_fsync_ms": round(statistics.median(commits), 3),
        "load_at_start": round(os.getloadavg()[0], 2),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def file_system(folder: Path) -> str:
    """Return the kind of file system of a folder. On `tmpfs`, figures about fsync are meaningless."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return "unknown"
    at = folder.resolve()
    over = [(len(place), kind) for _, place, kind, *_ in mounts if at.is_relative_to(place)]
    return max(over)[1] if over else "unknown"


def bare_commits(path: Path, count: int, value: bytes = bytes(300)) -> list[float]:
    """Return the durations in ms of bare LMDB commits with fsync, each of one small value."""
    with BareStore(path) as store:
        return [store.commit_ms(value) for _ in range(count)]


class BareStore:
    """An LMDB environment with one table and nothing else, each commit synced to disk."""

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self._environment = lmdb.open(str(path), map_size=1 << 30)
        self._number = 0

    def __enter__(self) -> BareStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._environment.close()

    def commit_ms(self, value: bytes) -> float:
        """Put one value and commit."""
        self._number += 1
        begun = time.perf_counter_ns()
        with self._environment.begin(write=True) as txn:
            txn.put(self._number.to_bytes(8, "big"), value)
        return (time.perf_counter_ns() - begun) / 1e6


@dataclass(frozen=True, slots=True)
class Resident:
    """Memory of a process in MB: all of it, and the part that is not backed by a file."""

    whole: float
    anonymous: float


def resident(process_id: int) -> Resident:
    """Return the resident memory of a process. It includes pages of LMDB files, which the system may reclaim."""
    lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    fields = {name: value for name, _, value in (line.partition(":") for line in lines)}
    return Resident(*(int(fields[name].split()[0]) * 1024 / MB for name in ("VmRSS", "RssAnon")))
