"""Does opening and closing agents leave anything behind? `python -m benchmarks.churn --agents 5000`.

Thousands of agents are made, told a few words and closed again, eight at a time, in one process without servers.
After a warm-up nothing may grow: descriptors, threads, tasks, objects and memory. Then some of them are opened
again and kept open: that must cost no more than it did the first time.

Memory is looked at after a collection and after the heap has given back what is free, so that what is compared
is what is held. Ends with 1 when something grew.
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
from ebbtide.heap import give_back
from ebbtide.ids import AgentId
from ebbtide.settings import load_settings
from ebbtide.telemetry import configure_log
from ebbtide.verbs.agents import close_agent
from ebbtide.verbs.batches import FlushRequest, flush
from ebbtide.verbs.remember import Message, RememberRequest, remember
from ebbtide.verbs.requests import AgentRequest
from ebbtide.verbs.service import Service

POOLS = ("job", "language", "embedding", "desk")
AT_ONCE = 8
OPEN_AT_MOST = 500
WARM_UP_SHARE = 0.2
TEXTS = ("The kettle is blue.", "外婆住在青岛。")

GROWTH_MIB = 8.0
"""Most that memory may grow after the warm-up. Python gives small objects back by the MiB, so up to 6 are noise;
a hundred agents that are not let go hold more. Objects are counted beside it, to 2 %."""

OPEN_AGENT_KIB = 256.0
"""Most that an agent opened again may hold; with LMDB's zeroes in memory (heap.py) it would be 2000."""


@dataclass(frozen=True, slots=True)
class Look:
    """What the process holds."""

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
    """What was seen, and what is wrong with it."""

    looks: list[Look]
    """While agents lived short lives; then with many open again, and with these closed."""
    reopened_kib: float
    faults: list[str]


def thread_count(service: Service) -> int:
    """Threads, those of the daemon's pools as if all were made: a pool makes its last one at any time, or never."""
    names = [thread.name.rpartition("_")[0] for thread in threading.enumerate()]
    pooled = sum(name in POOLS for name in names)
    most = service.settings.fleet.job_threads + LANGUAGE_THREADS + EMBEDDING_THREADS + 1
    return len(names) - pooled + max(pooled, most)


class Churn:
    """One run on a service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._begun_s = time.monotonic()

    def look(self, agents: int) -> Look:
        """What the process holds once what is free was given back."""
        gc.collect()
        give_back()
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
        """The short life of one agent."""
        agent = f"agent-{number}"
        message = Message(role="user", content=TEXTS[number % len(TEXTS)])
        await remember(self.service, RememberRequest(agent_id=agent, messages=[message]))
        done = await flush(
            self.service, FlushRequest(agent_id=agent, passes=True, vectors=True, timeout_ms=60_000)
        )
        assert done.digested and done.passes_done and not done.unembedded_messages, agent
        await close_agent(self.service, AgentRequest(agent_id=agent))

    async def open_and_close(self, numbers: Iterable[int]) -> None:
        """Short lives, so many at a time."""
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
    """What grew after the warm-up, and what reopening cost too much."""
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
    """A table on the terminal."""
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
    """A disk in memory where there is one: what is measured is not the disk."""
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
