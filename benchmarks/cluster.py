"""The cost of a cluster, as ratios to a single daemon in the same run.

`python -m benchmarks.cluster` starts a single daemon and a cluster of three nodes on three log servers, all on this
machine, and prints in about two minutes:

* the time of `remember` and `recall` at the owner and through another node, alternating with the single daemon, and
  of a bare append to the log;
* the bytes of the log for each byte of text;
* the longest wait of a writing client when the owner is stopped and when it is killed.

All processes share the processors, so the ratios are worse than with log servers on other machines.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles

import httpx

from ebbtide.cluster.log import Kind, Record
from ebbtide.ids import AgentId
from ebbtide.store.directory.data_directory import directory_name
from tests.support.cluster import ENCRYPTED, NOTHING_FORGOTTEN, Cluster, Node
from tests.support.process import Daemon

LEASE_S = 12.0
RENEW_S = 3.0
TEXT = "Note {number}: the boat in the harbour has a new owner, who painted its mast green and its {colour} sail grey."
COLOURS = ("first", "second", "third", "largest")
WRITES_AROUND_FAULT_S = 4.0


def remember(daemon: Daemon, agent: str, number: int) -> None:
    """Store one message. Raise httpx.HTTPStatusError if it is refused."""
    text = TEXT.format(number=number, colour=COLOURS[number % len(COLOURS)])
    body = {"messages": [{"role": "user", "content": text}], "idempotency_key": f"{agent}-{number}"}
    daemon.post(f"{agent}/remember", body, timeout=10).raise_for_status()


def recall(daemon: Daemon, agent: str, number: int) -> None:
    """Ask one question."""
    daemon.post(
        f"{agent}/recall", {"query": f"Who painted the mast in note {number}?"}, timeout=10
    ).raise_for_status()


def timed(act: Callable[[], object]) -> float:
    """Return how long a call takes, in ms."""
    begin = time.perf_counter()
    act()
    return (time.perf_counter() - begin) * 1000


def appended(cluster: Cluster, count: int) -> list[float]:
    """Return the times of bare appends of 1 KB to a log, in ms."""
    subject, sequence, found = cluster.names.subject_of("bench"), 0, list[float]()
    for number in range(count):
        record = Record(Kind.OWN, bytes(32), "bench", "bench", number.to_bytes(4) * 256)

        def append(record: Record = record, expected: int = sequence) -> None:
            nonlocal sequence
            sequence = cluster.servers.append(subject, record, expected)

        found.append(timed(append))
    return found


def row(name: str, times: list[float], single: list[float] | None = None) -> None:
    """Print one row."""
    ratio = "" if single is None else f"{median(times) / median(single):.2f} ×"
    print(f"| {name} | {median(times):.1f} | {quantiles(times, n=20)[-1]:.1f} | {ratio} |")


def compare(cluster: Cluster, single: Daemon, count: int) -> None:
    """Print the times of requests."""
    owner, other, _ = cluster.nodes
    agent = cluster.agent_of(owner, "bench")
    print("| request | p50 ms | p95 ms | to a single daemon, p50 |\n|---|---:|---:|---:|")
    for name, request in (("remember", remember), ("recall", recall)):
        places: dict[str, tuple[Daemon, list[float]]] = {
            f"{name}, single daemon": (single, []),
            f"{name}, at the owner": (owner, []),
            f"{name}, through another node": (other, []),
        }
        for number in range(3 * count):
            daemon, times = list(places.values())[number % 3]
            times.append(timed(partial(request, daemon, agent, number)))
        base = places[f"{name}, single daemon"][1]
        for place, (_, times) in places.items():
            row(place, times, None if times is base else base)
    row("append of 1 KB to the log", appended(cluster, count))
    subject = cluster.names.subject_of(directory_name(AgentId(agent)))
    records = cluster.servers.after(subject, 0, 100_000)
    texts = sum(len(TEXT) for _ in range(2 * count))
    print(f"\nThe log has {sum(len(one.body) for one in records) / texts:.1f} bytes for each byte of text.")


def longest_wait(cluster: Cluster, owner: Node, fault: Callable[[], object]) -> float:
    """Return the longest time between two acknowledged writes through another node, around a fault, in seconds."""
    agent, other = cluster.agent_of(owner, "fault"), cluster.other_than(owner)
    acknowledged, stop = [time.perf_counter()], threading.Event()

    def write() -> None:
        number = time.monotonic_ns()
        while not stop.is_set():
            try:
                remember(other, agent, number)
            except httpx.HTTPError:
                time.sleep(0.02)
                continue
            number += 1
            acknowledged.append(time.perf_counter())

    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(WRITES_AROUND_FAULT_S)
    fault()
    before = len(acknowledged)
    while len(acknowledged) < before + 20:
        time.sleep(0.05)
    stop.set()
    writer.join()
    return max(after - one for one, after in pairwise(acknowledged))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="requests of each kind")
    count = parser.parse_args().count
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        single = Daemon(home / "single", {**NOTHING_FORGOTTEN, **ENCRYPTED})
        try:
            single.start()
            with Cluster(home / "cluster", lease_s=LEASE_S, renew_s=RENEW_S) as cluster:
                cluster.start_nodes()
                compare(cluster, single, count)
                owner = cluster.nodes[0]
                stopped = longest_wait(cluster, owner, owner.stop)
                cluster.heal()
                killed = longest_wait(cluster, owner, owner.kill)
        finally:
            single.close()
    print(
        f"Longest wait of a writing client: {stopped:.2f} s when the owner is stopped, {killed:.1f} s when it is"
    )
    print(f"killed (lease {LEASE_S:g} s).")


if __name__ == "__main__":
    main()
