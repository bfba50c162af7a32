"""Logs of many agents on three log servers: `python -m benchmarks.subjects [--agents 10000 100000 1000000]`.

The servers get one record of 1 KB for each agent, under the subject that a cluster gives it: R3, files, each record
synced. At each number of agents a line says how long that took, how much memory and disk the servers use, how long a
start of a node needs to list the agents of a third of the slots, in which time a server that was killed, and one that
was stopped, is current again, how long an append and a read of a last record take then, and how many records of one log
are overwritten a second.

A million agents need 10 GB of disk below the folder of temporary files, and about half an hour on two busy cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg

from benchmarks.measuring import MB, Resident, Spread, file_system, resident, timed
from ebbtide.cluster.jetstream import EXPECTED, WRONG_LAST_SEQUENCE, Servers
from ebbtide.cluster.log import RECORD_BYTES, AgentLog, Kind, Record, hash_of
from ebbtide.cluster.names import Names
from ebbtide.cluster.ownership import answered
from ebbtide.cluster.status import agents_in
from ebbtide.ids import AgentId
from ebbtide.store.chain import NONE_BEFORE
from ebbtide.store.directory.data_directory import directory_name
from ebbtide.store.journal import Delta, TreeDelta
from tests.support.log_servers import LogServer, LogServers
from tests.support.waiting import wait_until

NAME = "ebbtide"
SIZES = (10_000, 100_000, 1_000_000)
SLOTS = 1024
STREAMS = 4
IN_FLIGHT = 1000
SILENCE_S = 5.0
"""Without a response for so long, what has none is sent again."""
SAMPLES = 200
TO_ERASE = 257
CURRENT_TIMEOUT_S = 1200.0
DISK_BYTES_PER_AGENT = 10_000
"""Of all servers together: the records, and the log of the elections until it is compacted."""


@dataclass(frozen=True, slots=True)
class Step:
    """The measurements with one number of agents. Times are in seconds, or as their names say."""

    agents: int
    added: int
    load_s: float
    memory: list[Resident]
    """Of each server, after the records were added."""
    memory_after_restart: Resident
    disk_bytes: list[int]
    append_ms: Spread
    """Of a second record, after the last one was read."""
    last_ms: Spread
    listed: int
    """Agents in the slots of one of three nodes."""
    list_s: float
    killed_s: float
    """From the start of a killed server until it is current."""
    stopped_s: float
    erased_per_s: float


def agent_id(number: int) -> AgentId:
    """Return the id of an agent."""
    return AgentId(f"agent-{number}")


def subject_of(names: Names, number: int) -> str:
    """Return the subject of the log of an agent."""
    return names.subject_of(directory_name(agent_id(number)))


def first_record(number: int) -> Record:
    """Return the first record of an agent's log."""
    body = bytes(RECORD_BYTES)
    return Record(Kind.DELTA, hash_of(NONE_BEFORE, Kind.DELTA, body), "bench", agent_id(number), body)


class Loader:
    """Appends the first records of logs, many at a time. A record without a response is sent again."""

    def __init__(self, client: Client, names: Names) -> None:
        self._client = client
        self._names = names
        self._inbox = client.new_inbox()
        self._waiting: set[int] = set()
        self._place = asyncio.Semaphore(IN_FLIGHT)

    async def load(self, numbers: Iterable[int]) -> None:
        """Append the first record of each of these agents."""
        subscription = await self._client.subscribe(f"{self._inbox}.*", cb=self._responded)
        for number in numbers:
            await self._free_place()
            self._waiting.add(number)
            await self._send(number)
        while self._waiting:
            # All places are free when nothing is waiting.
            await self._free_place()
        await subscription.unsubscribe()

    async def _free_place(self) -> None:
        while True:
            try:
                await asyncio.wait_for(self._place.acquire(), SILENCE_S)
                return
            except TimeoutError:
                for number in list(self._waiting):
                    await self._send(number)

    async def _send(self, number: int) -> None:
        data = msgspec.msgpack.encode(first_record(number)[:5])
        subject = subject_of(self._names, number)
        await self._client.publish(subject, data, f"{self._inbox}.{number}", {EXPECTED: "0"})

    async def _responded(self, message: Msg) -> None:
        error = json.loads(message.data).get("error", {}) if message.data else {"err_code": 0}
        number = int(message.subject.rpartition(".")[2])
        # A refusal says that a record which was sent twice is stored.
        if error.get("err_code", WRONG_LAST_SEQUENCE) == WRONG_LAST_SEQUENCE and number in self._waiting:
            self._waiting.remove(number)
            self._place.release()


async def add(urls: Sequence[str], names: Names, numbers: Iterable[int]) -> None:
    """Append the first record of each of these agents."""
    client = Client()
    await client.connect(list(urls))
    try:
        await Loader(client, names).load(numbers)
    finally:
        await client.close()


def bytes_below(folder: Path) -> int:
    """Return the bytes of the files below a folder. A file may disappear meanwhile."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_blocks * 512
        except FileNotFoundError:
            continue
    return total


def restarted_s(server: LogServer, end: Callable[[], None]) -> float:
    """End a server, start it, and return the seconds from its start until it is current."""
    end()
    begun = time.monotonic()
    server.start()
    wait_until(lambda: server.is_healthy, CURRENT_TIMEOUT_S, 0.05)
    return time.monotonic() - begun


def sampled(servers: Servers, names: Names, agents: int) -> tuple[Spread, Spread]:
    """Return the times of an append and of a read of the last record, in ms, of random agents."""
    appends, reads = list[float](), list[float]()
    for _ in range(SAMPLES):
        number = random.randrange(agents)
        subject = subject_of(names, number)
        last, read_ms = timed(partial(answered, partial(servers.last, subject)))
        assert last is not None, subject
        log = AgentLog(servers, subject, agent_id(number), "bench")
        delta = Delta({"nodes": TreeDelta(put=[(b"key", random.randbytes(RECORD_BYTES))])}).encoded()
        _, append_ms = timed(partial(log.append, delta, last.head))
        appends.append(append_ms)
        reads.append(read_ms)
    return Spread.of(appends), Spread.of(reads)


def erased_per_s(servers: Servers, names: Names, agent: AgentId) -> float:
    """Append records to the log of a new agent, and return how many of them are overwritten a second."""
    log = AgentLog(servers, names.subject_of(directory_name(agent)), agent, "bench")
    for number in range(TO_ERASE):
        delta = Delta(
            {"nodes": TreeDelta(put=[(number.to_bytes(8), random.randbytes(RECORD_BYTES))])}
        ).encoded()
        log.append(delta, log.head)
    _, took_ms = timed(lambda: log.erase_before(log.head.number))
    return (TO_ERASE - 1) / took_ms * 1000


def measure(home: Path, sizes: Sequence[int]) -> Iterator[Step]:
    """Measure with growing numbers of agents, until the disk has no room for more."""
    random.seed(1)
    with closing(LogServers(home)) as log_servers:
        log_servers.start()
        with closing(Servers(log_servers.urls)) as servers:
            servers.connect()
            servers.create(NAME, slot_count=SLOTS, log_streams=STREAMS, replicas=3)
            log_servers.wait()
            names = Names(NAME, SLOTS, STREAMS)
            servers.use(names)
            for before, agents in zip((0, *sizes), sizes, strict=False):
                free = shutil.disk_usage(home).free
                if free < 2 * DISK_BYTES_PER_AGENT * (agents - before):
                    print(f"Ended before {agents} agents: {free / MB:.0f} MB are free on the disk.")
                    return
                yield _step(log_servers, servers, names, before, agents)


def _step(log_servers: LogServers, servers: Servers, names: Names, before: int, agents: int) -> Step:
    _, load_ms = timed(lambda: asyncio.run(add(log_servers.urls, names, range(before, agents))))
    memory = [resident(one.process_id) for one in log_servers.all]
    found, list_ms = timed(lambda: answered(lambda: agents_in(servers, names, range(0, SLOTS, 3))))
    first = log_servers.all[0]
    killed_s = restarted_s(first, first.kill)
    memory_after = resident(first.process_id)
    stopped_s = restarted_s(first, first.stop)
    append_ms, last_ms = sampled(servers, names, agents)
    return Step(
        agents,
        agents - before,
        load_ms / 1000,
        memory,
        memory_after,
        [bytes_below(one.store) for one in log_servers.all],
        append_ms,
        last_ms,
        len(found),
        list_ms / 1000,
        killed_s,
        stopped_s,
        erased_per_s(servers, names, AgentId(f"erased-{agents}")),
    )


COLUMNS = (
    "agents",
    "added a second",
    "memory of each server, MB",
    "of one after its restart, MB",
    "disk of each server, MB",
    "append p50, p99 ms",
    "last record p50, p99 ms",
    "agents of a node listed, s",
    "killed → current, s",
    "stopped → current, s",
    "erased a second",
)


def line(step: Step) -> str:
    """Return a line of the table."""
    cells = (
        f"{step.agents}",
        f"{step.added / step.load_s:.0f}",
        ", ".join(f"{one.whole:.0f}" for one in step.memory),
        f"{step.memory_after_restart.whole:.0f}",
        ", ".join(f"{one / MB:.0f}" for one in step.disk_bytes),
        f"{step.append_ms.p50:.1f}, {step.append_ms.p99:.1f}",
        f"{step.last_ms.p50:.1f}, {step.last_ms.p99:.1f}",
        f"{step.list_s:.1f} ({step.listed})",
        f"{step.killed_s:.1f}",
        f"{step.stopped_s:.1f}",
        f"{step.erased_per_s:.0f}",
    )
    return row(cells)


def row(cells: Iterable[str]) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, nargs="+", default=SIZES, help="numbers of agents, growing")
    sizes = parser.parse_args().agents
    with tempfile.TemporaryDirectory(prefix="ebbtide-subjects-") as folder:
        print(f"File system: {file_system(Path(folder))}\n")
        print(row(COLUMNS), row("---:" for _ in COLUMNS), sep="\n", flush=True)
        for step in measure(Path(folder) / "log", sizes):
            print(line(step), flush=True)


if __name__ == "__main__":
    main()
