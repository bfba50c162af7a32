"""Does opening and closing agents leak anything? `python -m benchmarks.churn --agents 5000`.

Creates thousands of agents, stores a few words in each and closes it again, eight at a time, in one process without
servers. After a warm-up, descriptors, threads, tasks, objects and memory must not grow. Then some of the agents are
opened again and kept open, which must cost no more than the first time.

Memory is measured after a garbage collection and after the heap returned its free pages, so the comparison covers
only what is in use. Exits with 1 if anything grew.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import resident
from ebbtide.daemon import EMBEDDING_THREADS, LANGUAGE_THREADS, opened
from ebbtide.heap import trim_heap
from ebbtide.ids import AgentId
from ebbtide.settings import load_settings
from ebbtide.telemetry import configure_log
from ebbtide.verbs.agents import close_agent
from ebbtide.verbs.batches import FlushRequest, flush
from ebbtide.verbs.remember import Message, RememberRequest, remember
from ebbtide.verbs.requests import AgentRequest
from ebbtide.verbs.service import Service

POOLS = ("job", "query", "background", "language", "embedding", "offload")
AT_ONCE = 8
OPEN_AT_MOST = 500
WARM_UP_SHARE = 0.2
TEXTS = ("The kettle is blue.", "外婆住在青岛。")

GROWTH_MIB = 8.0
"""Largest allowed growth of memory after the warm-up. Python frees small objects by the MiB, so up to 6 MiB are
noise; a leak of a hundred agents exceeds this limit. Objects are counted separately, to within 2 %.
"""

OPEN_AGENT_KIB = 256.0
"""Most memory that a reopened agent may use. With LMDB's zeroed pages in memory (heap.py) it would be 2000."""


@dataclass(frozen=True, slots=True)
class Look:
    """The resources that the process uses."""

    agents: int
    open: int
    seconds: float
    resident_mib: float
    descriptors: int
    threads: int
    tasks: int
    objects: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The measurements and the faults found in them."""

    looks: list[Look]
    """Measurements during the short lives; then with many agents open again, and with these closed."""
    reopened_kib: float
    faults: list[str]


def thread_count(service: Service) -> int:
    """Return the number of threads, counting every pool as full: a pool may start its last thread late or never."""
    names = [thread.name.rpartition("_")[0] for thread in threading.enumerate()]
    pooled = sum(name in POOLS for name in names)
    # Requests and background jobs have as many threads each; there is one for queries and one for offloaded work.
    most = 2 * service.settings.fleet.job_threads + LANGUAGE_THREADS + EMBEDDING_THREADS + 2
    return len(names) - pooled + max(pooled, most)


class Churn:
    """One run on a service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._begun_s = time.monotonic()

    def look(self, agents: int) -> Look:
        """Measure the resources of the process after it returned its free memory."""
        gc.collect()
        trim_heap()
        return Look(
            agents,
            len(self.service.fleet.open_agents),
            round(time.monotonic() - self._begun_s, 1),
            round(resident(os.getpid()).anonymous, 2),
            len(os.listdir("/proc/self/fd")),
            thread_count(self.service),
            len(asyncio.all_tasks()),
            len(gc.get_objects()),
        )

    async def live(self, number: int) -> None:
        """Create an agent, use it and close it."""
        agent = f"agent-{number}"
        message = Message(role="user", content=TEXTS[number % len(TEXTS)])
        await remember(self.service, RememberRequest(agent_id=agent, messages=[message]))
        done = await flush(
            self.service, FlushRequest(agent_id=agent, passes=True, vectors=True, timeout_ms=60_000)
        )
        assert done.digested and done.passes_done and not done.unembedded_messages, agent
        await close_agent(self.service, AgentRequest(agent_id=agent))

    async def open_and_close(self, numbers: Iterable[int]) -> None:
        """Create and close agents, this many at a time."""
        waiting = iter(numbers)

        async def work() -> None:
            for number in waiting:
                await self.live(number)

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))

    async def reopen(self, count: int) -> None:
        """Open agents and keep them open."""
        for number in range(count):
            async with self.service.fleet.using(AgentId(f"agent-{number}")):
                pass

    async def close_all(self) -> None:
        """Close what is open."""
        for agent in self.service.fleet.open_agents:
            await close_agent(self.service, AgentRequest(agent_id=agent.id))


def faults_of(looks: Sequence[Look], reopened_kib: float) -> list[str]:
    """Return the resources that grew after the warm-up, and the cost of reopening if it is too high."""
    first, before_reopening, last = looks[0], looks[-3], looks[-1]
    faults = [
        f"{name} grew from {before} to {after}"
        for name in ("open", "descriptors", "threads", "tasks")
        if (before := getattr(first, name)) < (after := getattr(last, name))
    ]
    if last.objects > first.objects * 1.02:
        faults.append(f"objects grew from {first.objects} to {last.objects}")
    # Not the last look: hundreds of agents at once leave gaps that the next ones fill.
    grown_mib = before_reopening.resident_mib - first.resident_mib
    if grown_mib > GROWTH_MIB:
        faults.append(f"memory grew by {grown_mib:.1f} MiB from {first.resident_mib} MiB")
    if reopened_kib > OPEN_AGENT_KIB:
        faults.append(f"an agent opened again holds {reopened_kib} KiB")
    return faults


async def churn(data_dir: Path, agents: int) -> Outcome:
    """Run it, with looks after the warm-up, on the way, with agents open again, and at the end."""
    settings = load_settings({"store": {"data_dir": data_dir}, "fleet": {"max_open_agents": OPEN_AT_MOST}})
    warm_up = int(agents * WARM_UP_SHARE)
    stations = [warm_up + (agents - warm_up) * part // 4 for part in range(5)]
    looks, done = [], 0
    async with opened(settings) as service:
        run = Churn(service)
        for station in stations:
            await run.open_and_close(range(done, station))
            done = station
            looks.append(run.look(done))
        # Twice, with no look in between, since a look empties the heap: what was closed has left it full.
        reopened = min(OPEN_AT_MOST, agents)
        await run.reopen(reopened)
        await run.close_all()
        await run.reopen(reopened)
        looks.append(run.look(agents))
        await run.close_all()
        looks.append(run.look(agents))
    kib = round((looks[-2].resident_mib - looks[-1].resident_mib) * 1024 / reopened, 1)
    return Outcome(looks, kib, faults_of(looks, kib))


def show(outcome: Outcome, console: Console) -> None:
    """Print a table on the terminal."""
    table = Table(title="Opening and closing agents", title_justify="left")
    for name in asdict(outcome.looks[0]):
        table.add_column(name.replace("_mib", " MiB"), justify="right")
    for look in outcome.looks:
        table.add_row(*(str(value) for value in asdict(look).values()))
    console.print(table)
    console.print(f"an agent opened again holds {outcome.reopened_kib} KiB")
    for fault in outcome.faults:
        console.print(f"[red]{fault}[/]")


def place_for_data() -> Path | None:
    """Return a file system in memory if there is one, so that the disk is not measured."""
    shared = Path("/dev/shm")
    return shared if os.access(shared, os.W_OK) else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--agents", type=int, default=5000)
    parser.add_argument("--json", action="store_true", help="print what was seen as JSON")
    chosen = parser.parse_args(arguments)
    configure_log("error", "json")
    with tempfile.TemporaryDirectory(prefix="ebbtide-churn-", dir=place_for_data()) as place:
        outcome = asyncio.run(churn(Path(place) / "data", chosen.agents))
    if chosen.json:
        print(json.dumps(asdict(outcome)))
    else:
        show(outcome, Console())
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
