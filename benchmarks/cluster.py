"""The cost of a cluster, as ratios to a single daemon in the same run: `python -m benchmarks.cluster`.

A single daemon and a cluster of three nodes on three log servers run on this machine and take turns. About ten minutes
later a table has, with its targets:

* C1, C2: `remember` and `recall` at the owner and through another node;
* C3: batches a second, stored and digested, of one node and of three;
* C4: the bytes of the log for each byte of text;
* C5: taking an agent from its log, to opening its file; agents that a node completes when it starts;
* C6, C7: the longest wait of writing clients when a node is killed, and when it is stopped and started again.

`--before CHECKOUT` adds C8: `remember` and `recall` of a single daemon, to a single daemon of another checkout.

All processes share the processors, so the ratios are worse than with log servers on other machines.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, count, pairwise
from pathlib import Path

import httpx
from rich.console import Console

from benchmarks.measuring import Spread, in_turns, machine, timed
from benchmarks.report import Figure, as_markdown, at_least, at_most, show
from benchmarks.texts import Writer
from ebbtide.cluster.log import RECORD_BYTES, AgentLog, Kind, Record
from ebbtide.cluster.ownership import answered
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import AgentId
from ebbtide.parameters import AgentParameters
from ebbtide.store.directory.data_directory import directory_name
from ebbtide.store.encryption.keys import DataKeys
from ebbtide.store.encryption.seal import parse_master_key
from ebbtide.store.journal import Delta, TreeDelta
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.replica import Replica
from tests.support.cluster import ENCRYPTED, NOTHING_FORGOTTEN, Cluster, Node
from tests.support.process import Daemon
from tests.support.waiting import wait_until

LEASE_S = 12.0
RENEW_S = 3.0
TEXT_CHARS = 480
CHUNKS = 5
"""Parts of a run whose ratios show how far single ratios vary."""
AGENTS = 8
BATCHES = 10
"""Of each agent, in one round of C3."""
MAX_TAIL_RECORDS = 900
"""With more records, a take would also replace the log."""
STEADY_S = 4.0
"""Of writing before a fault."""
WRITES_AFTER = 20
WRITERS = 4
MAP_BYTES = (1 << 20, 1 << 30)
REQUEST_S = 10.0
FLUSH_MS = 120_000
RETRY_S = 0.02
CORES_FOR_THREE = 8
"""Three nodes, three log servers and a client need about as many cores to do more than one node."""
SMALL_AGENTS = 60
COMPLETED_TIMEOUT_S = 120.0
CALLS = 20
"""Requests of one kind in one round of C8."""
ROWS = ("C1", "C3", "C5", "C6", "C7")


class Texts:
    """Texts of a conversation, each of about 480 characters."""

    def __init__(self) -> None:
        turns = iter(Writer(7).turns(20_000, chinese=False))
        self.all: list[str] = []
        text = ""
        for turn in turns:
            text = f"{text} {turn}".strip()
            if len(text) >= TEXT_CHARS:
                self.all.append(text)
                text = ""

    def __getitem__(self, number: int) -> str:
        return self.all[number % len(self.all)]


TEXTS = Texts()


def accepted(send: Callable[[], httpx.Response]) -> None:
    """Send a request, again while the daemon is unavailable or silent, as clients do. Raise httpx.HTTPError."""
    while True:
        with contextlib.suppress(httpx.TimeoutException):
            response = send()
            if response.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                response.raise_for_status()
                return
        time.sleep(RETRY_S)


def remember(daemon: Daemon, agent: str, number: int) -> None:
    """Store one message. Raise httpx.HTTPError if it is refused."""
    body = {
        "messages": [{"role": "user", "content": TEXTS[number]}],
        "idempotency_key": f"{agent}-{number}",
    }
    accepted(lambda: daemon.post(f"{agent}/remember", body, timeout=REQUEST_S))


def digested(daemon: Daemon, agent: str) -> None:
    """Wait until every batch of an agent is digested."""
    accepted(
        lambda: daemon.post(
            f"{agent}/flush", {"timeout_ms": FLUSH_MS, "passes": True}, timeout=FLUSH_MS / 500
        )
    )


def recall(daemon: Daemon, agent: str, number: int) -> None:
    """Search for the first words of a text."""
    query = " ".join(TEXTS[number].split()[:6])
    accepted(lambda: daemon.post(f"{agent}/recall", {"query": query}, timeout=REQUEST_S))


def look(daemon: Daemon, agent: str) -> None:
    """Send a request that reads nearly nothing."""
    accepted(lambda: daemon.get(agent, timeout=REQUEST_S))


def ratio(ours: Sequence[float], base: Sequence[float]) -> str:
    """Return the ratio of two medians, and the least and largest one of parts of the run."""
    size = max(1, len(ours) // CHUNKS)
    parts = [
        statistics.median(ours[at : at + size]) / statistics.median(base[at : at + size])
        for at in range(0, size * min(CHUNKS, len(ours)), size)
    ]
    whole = statistics.median(ours) / statistics.median(base)
    return f"{whole:.2f} × ({min(parts):.2f}–{max(parts):.2f})"


def times_of(
    tasks: dict[str, Callable[[int], None]], times: int, after: Callable[[str], None] = lambda name: None
) -> dict[str, list[float]]:
    """Return how long each task takes, in ms. They take turns, in an order that reverses each time.

    `after` is called after each task, outside of the measured time.
    """
    numbers = {name: count() for name in tasks}

    def once(name: str) -> float:
        _, took_ms = timed(lambda: tasks[name](next(numbers[name])))
        after(name)
        return took_ms

    return in_turns(times, {name: partial(once, name) for name in tasks})


# --- C1, C2, C4: requests ------------------------------------------------------------------------------


class Bare:
    """Appends of 1 KB to a log of their own, without a store."""

    def __init__(self, cluster: Cluster) -> None:
        self._log = AgentLog(cluster.servers, cluster.names.subject_of("bench"), "bench", "bench")

    def append(self, number: int) -> None:
        """Append one record."""
        entry = (number.to_bytes(8), os.urandom(RECORD_BYTES))
        self._log.append(Delta({"nodes": TreeDelta(put=[entry])}).encoded(), self._log.head)


def requests(cluster: Cluster, single: Daemon, times: int) -> list[Figure]:
    """Return C1, C2 and C4. Each place has an agent of its own, so that all agents have the same content."""
    owner, other, _ = cluster.nodes
    single_agent, near_agent, far_agent = (
        cluster.agent_of(owner, word) for word in ("single", "near", "far")
    )
    places = {
        "single daemon": (single, single_agent),
        "owner": (owner, near_agent),
        "another node": (other, far_agent),
    }

    def rest(name: str) -> None:
        # The digest of one request must not be measured with the next one.
        if name in places:
            daemon, agent = places[name]
            digested(daemon, agent)

    writes = {name: partial(remember, *place) for name, place in places.items()}
    wrote = times_of({**writes, "append of 1 KB": Bare(cluster).append}, times, rest)
    reads = {name: partial(recall, *place) for name, place in places.items()}
    read = times_of({**reads, "forwarded empty request": lambda _: look(other, far_agent)}, times)
    return [*remembering(wrote), *recalling(read), log_bytes(cluster, near_agent, times)]


def remembering(found: dict[str, list[float]]) -> list[Figure]:
    """Return C1."""
    near = compared("C1", "remember at the owner", found, "owner", "append of 1 KB")
    base, append = (near.baselines[name].p50 for name in ("single daemon", "append of 1 KB"))
    near.claims = [at_most(near.ours.p50, round(base + 1.5 * append, 1), "ms", what="single + 1.5 appends")]
    return [near, compared("C1", "remember through another node", found, "another node")]


def recalling(found: dict[str, list[float]]) -> list[Figure]:
    """Return C2."""
    near = compared("C2", "recall at the owner", found, "owner")
    near.claims = [at_most(near.ours.p50 / near.baselines["single daemon"].p50, 1.05, "× single")]
    far = compared("C2", "recall through another node", found, "another node", "forwarded empty request")
    bound = round(sum(spread.p50 for spread in far.baselines.values()), 1)
    far.claims = [at_most(far.ours.p50, bound, "ms", what="single + forwarded empty request")]
    return [near, far]


def compared(row: str, what: str, found: dict[str, list[float]], ours: str, *more: str) -> Figure:
    """Return a row with its ratio to the single daemon, and further baselines."""
    figure = Figure(row, what, "ms", Spread.of(found[ours]))
    figure.baselines = {name: Spread.of(found[name]) for name in ("single daemon", *more)}
    figure.ratio = ratio(found[ours], found["single daemon"])
    return figure


def log_bytes(cluster: Cluster, agent: str, batches: int) -> Figure:
    """Return C4."""
    records = all_records(cluster, agent)
    size = sum(len(record.body) for record in records if record.kind != Kind.OWN)
    texts = sum(len(TEXTS[number].encode()) for number in range(batches))
    figure = Figure("C4", "log for each byte of text", "bytes", Spread.of([size / texts]))
    figure.claims = [at_most(size / texts, 7, "bytes")]
    figure.beside = {"records a batch": len(records) / batches, "bytes of text a batch": texts / batches}
    figure.note = "encrypted: each record is compressed, then encrypted as a whole"
    return figure


def all_records(cluster: Cluster, agent: str) -> list[Record]:
    """Return the whole log of an agent."""
    subject, found = cluster.names.subject_of(directory_name(AgentId(agent))), list[Record]()
    while True:
        more = cluster.servers.after(subject, found[-1].sequence if found else 0, 1000)
        if not more:
            return found
        found += more


# --- C3: throughput ------------------------------------------------------------------------------------


class Load:
    """Clients that each store batches of their own agent, one after the other."""

    def __init__(self, places: Sequence[tuple[Daemon, str]]) -> None:
        self._places = places
        self._round = 0

    def rate(self) -> float:
        """Store some batches of each agent, and return how many were stored and digested a second."""
        first, self._round = self._round * BATCHES, self._round + 1

        def store(place: tuple[Daemon, str]) -> None:
            daemon, agent = place
            for number in range(first, first + BATCHES):
                remember(daemon, agent, number)
            digested(daemon, agent)

        with ThreadPoolExecutor(len(self._places)) as pool:
            _, took_ms = timed(lambda: list(pool.map(store, self._places)))
        return len(self._places) * BATCHES / took_ms * 1000


def throughput(cluster: Cluster, single: Daemon, rounds: int) -> list[Figure]:
    """Return C3."""

    def agents_of(node: Node, word: str) -> list[str]:
        return [cluster.agent_of(node, f"{word}{number}-") for number in range(AGENTS)]

    first = cluster.nodes[0]
    agents = agents_of(first, "one")
    loads = {
        "single": Load([(single, agent) for agent in agents]),
        "one node": Load([(first, agent) for agent in agents]),
        "three nodes": Load([(node, agent) for node in cluster.nodes for agent in agents_of(node, "three")]),
    }
    rates = in_turns(rounds, {name: load.rate for name, load in loads.items()})
    found = {name: Spread.of(of_rounds) for name, of_rounds in rates.items()}
    one = Figure("C3", f"batches of {AGENTS} agents, one node", "1/s", found["one node"], is_rate=True)
    one.baselines, one.ratio = {"single daemon": found["single"]}, ratio(rates["one node"], rates["single"])
    one.claims = [at_least(found["one node"].p50 / found["single"].p50, 0.6, "× single")]
    three = Figure(
        "C3", f"batches of {3 * AGENTS} agents, three nodes", "1/s", found["three nodes"], is_rate=True
    )
    three.baselines, three.ratio = (
        {"one node": found["one node"]},
        ratio(rates["three nodes"], rates["one node"]),
    )
    reached = found["three nodes"].p50 / found["one node"].p50
    can_show = (os.cpu_count() or 1) >= CORES_FOR_THREE
    three.claims = [at_least(reached, 2.4, "× one node", counts=can_show)]
    three.note = f"one machine with fewer than {CORES_FOR_THREE} cores cannot show it"
    return [one, three]


# --- C5: taking an agent -------------------------------------------------------------------------------


def take(cluster: Cluster, home: Path, rounds: int) -> Figure:
    """Return C5. It deposes the owner of its agent."""
    owner = cluster.nodes[0]
    agent = cluster.agent_of(owner, "taken")
    directory, number = directory_name(AgentId(agent)), count()
    while len(all_records(cluster, agent)) + 2 * rounds < MAX_TAIL_RECORDS:
        for _ in range(10):
            remember(owner, agent, next(number))
        digested(owner, agent)
    records = len(all_records(cluster, agent))
    subject, folders = cluster.names.subject_of(directory), (home / f"taken{one}" for one in count())
    seal_of = partial(
        DataKeys(owner.data_dir / "keys", parse_master_key(ENCRYPTED["ENCRYPTION__MASTER_KEY"])).seal_of,
        directory,
    )
    smallest, largest = MAP_BYTES
    taken: list[Path] = []

    def take_all() -> float:
        taken.append(next(folders))
        copy = Replica(taken[-1], map_bytes=smallest, max_map_bytes=largest, seal_of=seal_of)
        log = AgentLog(cluster.servers, subject, agent, "bench")
        return timed(lambda: log.take(copy))[1]

    def open_cold() -> float:
        def opened() -> Workspace:
            store = LmdbStore.open(taken[-1], map_bytes=smallest, max_map_bytes=largest, seal_of=seal_of)
            return Workspace(store, AgentParameters())

        workspace, took_ms = timed(opened)
        workspace.store.close()
        return took_ms

    take_all()
    open_cold()
    found = in_turns(rounds, {"take": take_all, "open": open_cold})
    both = [take_ms + open_ms for take_ms, open_ms in zip(found["take"], found["open"], strict=True)]
    figure = Figure(
        "C5", f"take of an agent without a file, {records} records, and opening it", "ms", Spread.of(both)
    )
    figure.baselines, figure.ratio = {"opening": Spread.of(found["open"])}, ratio(both, found["open"])
    figure.claims = [at_most(figure.ours.p50 / figure.baselines["opening"].p50, 3, "× opening")]
    return figure


def completed(cluster: Cluster) -> Figure:
    """Return how many agents a second a killed node completes from their logs when it is started again."""
    node = cluster.nodes[0]
    agents = [cluster.agent_of(node, f"small{number}-") for number in range(SMALL_AGENTS)]

    for agent in agents:
        remember(node, agent, 0)
    for agent in agents:
        digested(node, agent)
    node.kill()
    node.start()
    node.await_ready()
    begun = time.perf_counter()
    subjects = [cluster.names.subject_of(directory_name(AgentId(agent))) for agent in agents]
    wait_until(
        lambda: all(last_kind(cluster, subject) == Kind.OWN for subject in subjects), COMPLETED_TIMEOUT_S
    )
    rate = SMALL_AGENTS / (time.perf_counter() - begun)
    figure = Figure("C5", "agents that a started node completes", "1/s", Spread.of([rate]), is_rate=True)
    figure.note = f"{SMALL_AGENTS} agents of one batch"
    return figure


def last_kind(cluster: Cluster, subject: str) -> str:
    """Return the kind of the last record of a log."""
    last = answered(partial(cluster.servers.last, subject))
    return "" if last is None else last.kind


# --- C6, C7: waits -------------------------------------------------------------------------------------


class Writing:
    """Clients that write through a node without a pause, each to its own agent, until the end of the block."""

    def __init__(self, node: Daemon, agents: Sequence[str]) -> None:
        self._node = node
        self._stopping = threading.Event()
        self._acknowledged: dict[str, list[float]] = {agent: [] for agent in agents}
        self._threads = [threading.Thread(target=self._write, args=(agent,)) for agent in agents]

    def __enter__(self) -> Writing:
        for thread in self._threads:
            thread.start()
        self.await_more(1)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _write(self, agent: str) -> None:
        number = time.monotonic_ns()
        while not self._stopping.is_set():
            try:
                remember(self._node, agent, number)
            except httpx.HTTPError:
                time.sleep(RETRY_S)
                continue
            number += 1
            self._acknowledged[agent].append(time.perf_counter())

    def await_more(self, writes: int) -> None:
        """Wait until each client has this many further acknowledgements."""
        before = {agent: len(times) for agent, times in self._acknowledged.items()}
        while any(len(times) < before[agent] + writes for agent, times in self._acknowledged.items()):
            time.sleep(0.02)

    def waits(self, since: float) -> list[list[float]]:
        """Return the times between acknowledgements since a moment, in ms, of each client."""
        found = []
        for times in self._acknowledged.values():
            first = max(0, sum(one < since for one in times) - 1)
            found.append([(after - before) * 1000 for before, after in pairwise(times[first:])])
        return found


def waits_around(
    cluster: Cluster, node: Node, agents: Sequence[str], fault: Callable[[], object]
) -> tuple[list[float], list[float]]:
    """Return every wait of writing clients before a fault of a node, and the longest one of each after it, in ms."""
    with Writing(cluster.other_than(node), agents) as writing:
        begun = time.perf_counter()
        time.sleep(STEADY_S)
        steady = list(chain(*writing.waits(begun)))
        begun = time.perf_counter()
        fault()
        writing.await_more(WRITES_AFTER)
        return steady, [max(of_client) for of_client in writing.waits(begun)]


def kills(cluster: Cluster, rounds: int) -> Figure:
    """Return C6."""
    node, longest = cluster.nodes[0], list[float]()
    agents = [cluster.agent_of(node, "killed")]
    for _ in range(rounds):
        longest += [one / 1000 for one in waits_around(cluster, node, agents, node.kill)[1]]
        cluster.heal()
    figure = Figure("C6", "longest wait of a client, owner killed", "s", Spread.of(longest))
    figure.claims = [at_most(figure.ours.most, LEASE_S + 5, "s")]
    figure.note = f"lease {LEASE_S:g} s"
    return figure


def hand_overs(cluster: Cluster, rounds: int) -> Figure:
    """Return C7: a node stops, and starts again, so its agents move twice."""
    node, steady, longest = cluster.nodes[0], list[float](), list[float]()
    agents = [cluster.agent_of(node, f"moved{number}-") for number in range(WRITERS)]
    for _ in range(rounds):
        for fault in (node.stop, node.start):
            before, after = waits_around(cluster, node, agents, fault)
            cluster.settle()
            steady += before
            longest += after
    figure = Figure(
        "C7", f"longest wait of {WRITERS} clients, owner stopped or started", "ms", Spread.of(longest)
    )
    figure.baselines = {"between two writes": Spread.of(steady)}
    figure.claims = [at_most(figure.ours.p99, 300, "ms, p99")]
    figure.beside = {"p99 between two writes without a fault": Spread.of(steady).p99}
    return figure


# --- C8: without a cluster -----------------------------------------------------------------------------


class Earlier(Daemon):
    """A daemon of another checkout."""

    def __init__(self, data_dir: Path, checkout: Path) -> None:
        super().__init__(data_dir, NOTHING_FORGOTTEN, executed=True)
        self._checkout = checkout

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | {"PYTHONPATH": str(self._checkout / "service")}


def processor_s(daemon: Daemon) -> float:
    """Return the processor time that a daemon has used."""
    fields = Path(f"/proc/{daemon.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def without_cluster(home: Path, checkout: Path, rounds: int) -> list[Figure]:
    """Return C8."""
    daemons = {
        "now": Daemon(home / "now", NOTHING_FORGOTTEN, executed=True),
        "before": Earlier(home / "old", checkout),
    }
    figures = []
    try:
        for daemon in daemons.values():
            daemon.start()
        for request in (remember, recall):
            clients = {name: Calls(daemon, request) for name, daemon in daemons.items()}
            cost = in_turns(rounds, {name: client.processor_ms for name, client in clients.items()})
            now, before = (clients[name].took_ms for name in daemons)
            figure = Figure("C8", f"{request.__name__}, single daemon", "ms", Spread.of(now))
            figure.baselines, figure.ratio = {"before": Spread.of(before)}, ratio(now, before)
            share = sum(cost["now"]) / sum(cost["before"])
            figure.claims = [at_most(share, 1.05, "× the processor time before")]
            figure.beside = {name: statistics.median(each) for name, each in cost.items()}
            figure.note = f"processor ms of a request, {ratio(cost['now'], cost['before'])}"
            figures.append(figure)
    finally:
        for daemon in daemons.values():
            daemon.close()
    return figures


class Calls:
    """Requests of one kind to one daemon."""

    def __init__(self, daemon: Daemon, request: Callable[[Daemon, str, int], None]) -> None:
        self._daemon = daemon
        self._request = request
        self.took_ms: list[float] = []

    def processor_ms(self) -> float:
        """Send some requests, and return the processor time that the daemon used for each and its digest."""
        before_s = processor_s(self._daemon)
        for _ in range(CALLS):
            number = len(self.took_ms)
            self.took_ms.append(timed(partial(self._request, self._daemon, "ann", number))[1])
            digested(self._daemon, "ann")
        return (processor_s(self._daemon) - before_s) * 1000 / CALLS


# --- all -----------------------------------------------------------------------------------------------


def measure(
    home: Path, rows: Sequence[str], times: int, rounds: int, before: Path | None
) -> Iterator[Figure]:
    """Yield each row."""
    if before is not None:
        yield from without_cluster(home, before, times // CALLS)
    if not rows:
        return
    single = Daemon(home / "single", {**NOTHING_FORGOTTEN, **ENCRYPTED})
    try:
        single.start()
        with Cluster(home / "cluster", lease_s=LEASE_S, renew_s=RENEW_S) as cluster:
            cluster.start_nodes()
            if "C1" in rows:
                yield from requests(cluster, single, times)
            if "C3" in rows:
                yield from throughput(cluster, single, rounds)
            if "C7" in rows:
                yield hand_overs(cluster, 2 * rounds)
            if "C6" in rows:
                yield kills(cluster, rounds)
            if "C5" in rows:
                yield completed(cluster)
                yield take(cluster, home, 3 * rounds)
    finally:
        single.close()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=100, help="requests of each kind")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of loads and faults")
    parser.add_argument("--rows", default=",".join(ROWS), help="C1 (with C2 and C4), C3, C5, C6, C7")
    parser.add_argument("--before", type=Path, help="another checkout, for C8")
    given = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory(prefix="ebbtide-cluster-") as folder:
        home = Path(folder)
        rows = [row for row in given.rows.split(",") if row]
        figures = []
        about = machine(home)
        for figure in measure(home, rows, given.times, given.rounds, given.before):
            figures.append(figure)
            reached = ", ".join(f"{claim.reached:.3g} ({claim.wanted})" for claim in figure.claims)
            console.print(
                f"{figure.row} {figure.what}: {figure.ours.p50:.3g} {figure.unit}; {reached}", style="dim"
            )
        about["load_at_end"] = round(os.getloadavg()[0], 2)
    show(figures, about, console, title="Ebbtide: a cluster", reference="")
    console.print(as_markdown(figures, about), markup=False, highlight=False)


if __name__ == "__main__":
    main()
