"""Rows of `benchmarks/web.py` without a browser: what the view costs the daemon, and a fresh clone.

Jobs run in this process, as the fastest of several rounds: other work of the machine only makes them slower.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import venv
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from benchmarks.lives import kept_lives
from benchmarks.measuring import settle_garbage, timed
from benchmarks.plan import AGENT, Plan
from benchmarks.rows_isolation import BUSY, LEAST_MS, QUIET, TIMES, spells_while
from benchmarks.stores import copied, install, open_store
from benchmarks.synthetic import SCALES
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.parameters import AgentParameters
from ebbtide.verbs.history import GetHistoryRequest, get_history
from ebbtide.verbs.memory_map import GetMapRequest, get_map
from tests.support.process import ROOT

LIVES: Final = 100_000
"""The agent has as many events: the most that are kept by default."""

MAP_PAGE: Final = 100_000
HISTORY_PAGE: Final = 200_000
"""The sizes of pages that the view requests."""

MAP_MS: Final = 10
HISTORY_MS: Final = 80
STEP_MS: Final = 20
CLONE_S: Final = 20

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `is_met` is None for what was not measured."""

    name: str
    value: str
    target: str
    is_met: bool | None


def row(name: str, value: float, bound: float, unit: str, *, digits: int = 0) -> Row:
    """Return the row of a value that has an upper bound."""
    return Row(name, f"{value:.{digits}f} {unit}", f"≤ {bound:g} {unit}", value <= bound)


@dataclass(slots=True)
class _Reading:
    """A service and its fleet, with one open agent whose jobs run in this thread and are timed."""

    workspace: Workspace
    jobs_ms: list[float] = field(default_factory=list)

    @property
    def fleet(self) -> _Reading:
        return self

    @asynccontextmanager
    async def using(self, _: str) -> AsyncIterator[_Reading]:
        yield self

    async def run(self, job: Callable[[], T]) -> T:
        found, took_ms = timed(job)
        self.jobs_ms.append(took_ms)
        return found


Read = Callable[[Any], Coroutine[Any, Any, Any]]


def _jobs(store: Path, rounds: int, read: Read) -> list[list[float]]:
    """Return the times of the jobs of a read in each round, without a first one that warms up."""
    workspace = Workspace(open_store(store), AgentParameters())
    settle_garbage()
    found = []
    for _ in range(rounds + 1):
        reading = _Reading(workspace)
        asyncio.run(read(reading))
        found.append(reading.jobs_ms)
    workspace.close()
    return found[1:]


def map_job(plan: Plan) -> Row:
    """Return the time of the one job of a map without links."""
    scale = SCALES["M"]
    request = GetMapRequest(agent_id=AGENT, page_size=MAP_PAGE)
    rounds = _jobs(copied(plan.store(scale), plan.work), plan.times(20, 5), lambda one: get_map(one, request))
    return row(
        f"map of {scale.node_count:,} memories: its job", min(map(sum, rounds)), MAP_MS, "ms", digits=1
    )


def history_jobs(plan: Plan) -> list[Row]:
    """Return the time of all jobs of a history, and of the longest one."""
    request = GetHistoryRequest(agent_id=AGENT, page_size=HISTORY_PAGE)
    store = copied(kept_lives(plan.kept, LIVES), plan.work)
    rounds = _jobs(store, plan.times(10, 5), lambda one: get_history(one, request))
    return [
        row(
            f"history of {LIVES:,} events: its {len(rounds[0])} jobs", min(map(sum, rounds)), HISTORY_MS, "ms"
        ),
        row("the longest of these jobs", min(map(max, rounds)), STEP_MS, "ms", digits=1),
    ]


def recall_meanwhile(plan: Plan) -> Row:
    """Return the latency of recalls of one agent while the view of another one is read, without a pause."""
    data_dir = plan.fresh("view")
    install(kept_lives(plan.kept, LIVES), data_dir, BUSY)
    install(plan.store(plan.scale_for("M")), data_dir, QUIET)
    reads = {
        "maps": ("GET", f"/v1/agents/{BUSY}/map?page_size={MAP_PAGE}"),
        "histories": ("GET", f"/v1/agents/{BUSY}/history?page_size={HISTORY_PAGE}"),
    }
    took, _ = spells_while(plan, data_dir, reads)
    bound = max(TIMES * took["quiet"].p99, LEAST_MS)
    return row("recall of another agent meanwhile, p99", took["busy"].p99, round(bound, 1), "ms", digits=1)


def build_in_a_clone(folder: Path) -> Row:
    """Return how much longer `make serve` takes in a fresh clone with the view: the time of its build.

    Nothing is in a cache, and Node is installed as well unless the PATH has it.
    """
    clone, own = folder / "clone", folder / "venv"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    venv.create(own, with_pip=True)
    environment = {**os.environ, "npm_config_cache": str(folder / "npm"), "PIP_NO_CACHE_DIR": "1"}
    command = [str(own / "bin" / "python"), "build_view.py"]
    done, took_ms = timed(
        lambda: subprocess.run(
            command, cwd=clone, env=environment, capture_output=True, text=True, check=False
        )
    )
    name = "the view in a fresh clone"
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["it failed"])[-1]
        return Row(name, f"not measured: {reason}", f"≤ {CLONE_S} s", None)
    return row(name, took_ms / 1000, CLONE_S, "s")
