"""Faults at random moments in a real cluster, under load: `python -m tests.cluster.chaos --minutes 2 --seed 7`.

Three nodes, three log servers, six clients on six agents. Each client appends unique facts with idempotency keys,
repeats each request until it succeeds, and reads whole lists in between. One fault at a time: a node or a log server is
killed, paused or stopped, or its connections are cut. The seed determines the faults and their order, not the moments
of the machine.

The checks: nothing acknowledged is lost, and nothing appears twice; each read is a prefix of the final list, and
contains every append that was acknowledged before the read began; the appends of each client keep their order. At the
end the hash chain of each agent's log is intact, no record comes from a process that had lost the agent, and the file
of each node equals the fold of the log.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from ebbtide.ids import AgentId
from ebbtide.store.directory.data_directory import directory_name
from ebbtide.telemetry import configure_log
from tests.cluster.history import Promises, Waits, faults_of_authors, faults_of_files, records_of
from tests.conftest import MEMORY_DISK
from tests.support.cluster import Cluster, Node
from tests.support.links import Link
from tests.support.process import EMBEDDER_VARIABLE

CLIENTS = 6
LEASE_S, RENEW_S = 4.0, 1.0
REQUEST_TIMEOUT_S = 5.0
PACE_S = 0.03
"""Pause of a client between two operations; on two cores more load would only measure the queues."""
END_TIMEOUT_S = 90.0
"""How long the last request of a client may take after every fault is undone."""
PASSING = frozenset({429, 503})
"""Statuses that a client repeats without a question."""


@dataclass
class Outcome:
    """The result of a run."""

    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    timeline: list[str] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)
    agents: list[Promises] = field(default_factory=list)
    waits: Waits = field(default_factory=Waits)
    lost: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    """Other faults."""
    unexpected: list[str] = field(default_factory=list)
    """Responses that are neither a success nor a request to try again."""

    @property
    def twice(self) -> list[str]:
        return [one for agent in self.agents for one in agent.twice]

    @property
    def stale(self) -> list[str]:
        return [one for agent in self.agents for one in agent.stale]

    @property
    def acknowledged(self) -> int:
        return sum(len(agent.acknowledged) for agent in self.agents)

    @property
    def is_clean(self) -> bool:
        """Whether everything held."""
        return not (self.lost or self.twice or self.stale or self.others or self.unexpected)

    def table(self) -> str:
        """Return the outcome as text."""
        lines = [
            f"seed {self.seed}",
            f"faults        {sum(self.faults.values())}: "
            + ", ".join(f"{name} x{count}" for name, count in sorted(self.faults.items())),
            f"acknowledged  {self.acknowledged}",
            f"reads         {sum(agent.reads for agent in self.agents)}",
            f"lost          {len(self.lost)}",
            f"twice         {len(self.twice)}",
            f"stale         {len(self.stale)}",
            f"other         {len(self.others) + len(self.unexpected)}",
            "longest times without an answer: " + "; ".join(self.waits.longest(8)),
            "repeated requests: "
            + ", ".join(f"{what} x{count}" for what, count in self.refusals.most_common()),
        ]
        for title, found in (
            ("lost", self.lost),
            ("twice", self.twice),
            ("stale", self.stale),
            ("other", self.others),
            ("unexpected", self.unexpected),
        ):
            lines += [f"  {title}: {one}" for one in found[:12]]
        return "\n".join(lines)


class Chaos:
    """One run."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster = cluster
        self.dice = random.Random(seed)
        self.outcome = Outcome(seed)
        self.begun_s = time.monotonic()
        self.is_over = threading.Event()
        self.outcome.agents = [Promises(f"agent{number}") for number in range(CLIENTS)]

    # --- clients -----------------------------------------------------------------------------------

    def run(self, minutes: float, faults: list[str] | None = None) -> Outcome:
        """Run the clients while faults happen, then compare everything."""
        clients = [
            threading.Thread(target=self._client, args=(number,), daemon=True) for number in range(CLIENTS)
        ]
        for client in clients:
            client.start()
        try:
            self._inject(60 * minutes, faults)
        finally:
            self.is_over.set()
            self.cluster.heal()
            self._note("healed")
        deadline_s = time.monotonic() + END_TIMEOUT_S
        for client in clients:
            client.join(max(0.0, deadline_s - time.monotonic()))
        stuck = sum(client.is_alive() for client in clients)
        if stuck:
            self.outcome.others.append(
                f"{stuck} clients had no answer {END_TIMEOUT_S:.0f} s after the last fault"
            )
        self._compare()
        return self.outcome

    def _client(self, number: int) -> None:
        dice = random.Random(f"{self.outcome.seed}/{number}")
        with httpx.Client(timeout=httpx.Timeout(REQUEST_TIMEOUT_S, connect=2.0)) as http:
            caller = Caller(self, http, dice)
            for count in itertools.count():
                own = self.outcome.agents[number]
                # Only agents that exist are read: each client has appended to its own.
                is_own = count == 0 or dice.random() < 0.7
                caller.append(own if is_own else dice.choice(self.outcome.agents), number, count)
                if self.is_over.is_set():
                    return
                if dice.random() < 0.15:
                    caller.read(own)
                time.sleep(PACE_S)

    # --- faults ------------------------------------------------------------------------------------

    @property
    def _kinds(self) -> dict[str, Callable[[], None]]:
        lease_s = LEASE_S
        return {
            "owner kill": lambda: self._kill(self._owner()),
            "owner lost": lambda: self._lose(self._owner()),
            "owner and log server kill": lambda: self._kill_both(self._owner()),
            "owner short pause": lambda: self._pause(self._owner(), self.dice.uniform(0.3, 0.7 * lease_s)),
            "owner long pause": lambda: self._pause(
                self._owner(), self.dice.uniform(1.5 * lease_s, 3 * lease_s)
            ),
            "node kill": lambda: self._kill(self._node()),
            "node stop": lambda: self._stop(self._node()),
            "log server kill": self._kill_log_server,
            "log server pause": self._pause_log_server,
            "log server cut off": self._cut_off_log_server,
            "cut from log servers": lambda: self._cut("log servers", self._links_to_servers(self._node())),
            "cut from a log server": lambda: self._cut(
                "a log server", [self.dice.choice(self._links_to_servers(self._node()))]
            ),
            "cut from nodes": lambda: self._cut("nodes", self._links_from_nodes([self._node()])),
            "cut between all nodes": lambda: self._cut(
                "all nodes", self._links_from_nodes(self.cluster.nodes)
            ),
        }

    def _inject(self, seconds: float, faults: list[str] | None) -> None:
        end_s = self.begun_s + seconds
        kinds = self._kinds
        # Each kind once in an order of the dice, then again: a short run has seen most of them.
        order = (
            name
            for _ in itertools.count()
            for name in self.dice.sample(faults or sorted(kinds), len(faults or kinds))
        )
        while True:
            if self.is_over.wait(self.dice.uniform(1.0, 3.5)) or time.monotonic() > end_s:
                return
            name = next(order)
            self.outcome.faults[name] += 1
            kinds[name]()
            self._note(f"end of {name}")

    def _note(self, what: str) -> None:
        self.outcome.timeline.append(
            f"{time.monotonic() - self.begun_s:6.1f} {time.strftime('%H:%M:%S')} {what}"
        )

    def _owner(self) -> Node:
        return self.cluster.owner_of(self.dice.choice(self.outcome.agents).agent)

    def _node(self) -> Node:
        return self.dice.choice(self.cluster.nodes)

    def _links_to_servers(self, node: Node) -> list[Link]:
        self._note(f"node {node.name}")
        return node.links_to_servers

    def _links_from_nodes(self, nodes: list[Node]) -> list[Link]:
        self._note(f"nodes {[one.name for one in nodes]}")
        return [one.link_from_nodes for one in nodes if one.link_from_nodes is not None]

    def _kill(self, node: Node) -> None:
        away_s = self.dice.choice((0.0, self.dice.uniform(0.5, 2 * LEASE_S)))
        self._note(f"kill {node.name}, {away_s:.1f} s away")
        node.kill()
        time.sleep(away_s)
        self._start(node)

    def _lose(self, node: Node) -> None:
        """Kill a node and delete its files: all that it acknowledged must be in the log."""
        away_s = self.dice.uniform(0.0, 2 * LEASE_S)
        self._note(f"lose {node.name} and its files, {away_s:.1f} s away")
        node.kill()
        shutil.rmtree(node.data_dir)
        time.sleep(away_s)
        self._start(node)

    def _kill_both(self, node: Node) -> None:
        index, seconds = self.dice.randrange(3), self.dice.uniform(0.0, 3 * LEASE_S)
        self._note(f"kill log server {index + 1} and {node.name}, {seconds:.1f} s away")
        self.cluster.log_servers.kill(index)
        node.kill()
        time.sleep(seconds)
        self.cluster.log_servers.restart(index)
        self.cluster.log_servers.wait()
        self._start(node)

    def _stop(self, node: Node) -> None:
        self._note(f"stop {node.name}")
        begun_s = time.monotonic()
        code = node.stop()
        self._note(f"stopped {node.name} in {time.monotonic() - begun_s:.1f} s with {code}")
        if code:
            self.outcome.others.append(f"{node.name} stopped with {code}")
        self._start(node)

    def _start(self, node: Node) -> None:
        try:
            node.start()
        except AssertionError as error:
            self.outcome.others.append(f"{node.name} does not start: {str(error)[-600:]}")
            node.start()

    def _pause(self, node: Node, seconds: float) -> None:
        self._note(f"pause {node.name} for {seconds:.1f} s")
        node.pause()
        time.sleep(seconds)
        node.resume()

    def _kill_log_server(self) -> None:
        index, seconds = self.dice.randrange(3), self.dice.uniform(0.0, 8.0)
        self._note(f"kill log server {index + 1}, {seconds:.1f} s away")
        self.cluster.log_servers.kill(index)
        time.sleep(seconds)
        self.cluster.log_servers.restart(index)

    def _pause_log_server(self) -> None:
        index, seconds = self.dice.randrange(3), self.dice.uniform(1.0, 10.0)
        self._note(f"pause log server {index + 1} for {seconds:.1f} s")
        self.cluster.log_servers.pause(index)
        time.sleep(seconds)
        self.cluster.log_servers.resume(index)

    def _cut_off_log_server(self) -> None:
        index, seconds, is_silent = (
            self.dice.randrange(3),
            self.dice.uniform(1.0, 10.0),
            self.dice.random() < 0.6,
        )
        self._note(f"cut log server {index + 1} off for {seconds:.1f} s{', silent' if is_silent else ''}")
        self.cluster.log_servers.cut_off(index, is_silent=is_silent)
        time.sleep(seconds)
        self.cluster.log_servers.join()

    def _cut(self, what: str, links: list[Link]) -> None:
        seconds, is_silent = self.dice.uniform(1.0, 3 * LEASE_S), self.dice.random() < 0.6
        self._note(f"cut from {what} for {seconds:.1f} s{', silent' if is_silent else ''}")
        for link in links:
            link.cut(is_silent=is_silent)
        time.sleep(seconds)
        for link in links:
            link.heal()

    # --- the end -----------------------------------------------------------------------------------

    def _compare(self) -> None:
        outcome, cluster = self.outcome, self.cluster
        with httpx.Client(timeout=60.0) as http:
            caller = Caller(self, http, self.dice)
            for promises in outcome.agents:
                for node in cluster.nodes:
                    caller.read(promises, node)
                final = promises.longest
                outcome.lost += [f"{promises.agent}: {text}" for text in promises.lost(final)]
                outcome.others += [f"{promises.agent} invented {text}" for text in promises.invented(final)]
                outcome.others += [f"{promises.agent}: {text} is out of order" for text in disorder(final)]
                self._compare_memories(promises)
        owners = {one.agent: cluster.owner_of(one.agent).name for one in outcome.agents}
        for node in cluster.nodes:
            node.kill()
        for promises in outcome.agents:
            self._compare_files(promises.agent, owners[promises.agent])
        for node in cluster.nodes:
            for line in node.log.splitlines():
                if '"level": "error"' in line or "network discarded" in line:
                    outcome.others.append(f"{node.name} logged {line[:700]}")

    def _compare_memories(self, promises: Promises) -> None:
        """Every message is digested once: with nothing forgotten, each has one memory."""
        node = self.cluster.owner_of(promises.agent)
        node.flush(promises.agent, passes=False, timeout_ms=60_000)
        made = Counter[str]()
        token = ""
        while True:
            page = node.get(f"{promises.agent}/nodes", params={"page_size": 1000, "page_token": token}).json()
            made.update(one["content"] for one in page["nodes"])
            token = page["next_page_token"]
            if not token:
                break
        wrong = {text: made[text] for text in promises.longest if made[text] != 1}
        if wrong:
            self.outcome.others.append(
                f"{promises.agent}: memories a message: {dict(list(wrong.items())[:3])}"
            )

    def _compare_files(self, agent: str, owner: str) -> None:
        directory = directory_name(AgentId(agent))
        files = {node.name: node.data_dir / "agents" / directory for node in self.cluster.nodes}
        try:
            records = records_of(self.cluster.servers, self.cluster.names.subject_of(directory))
            faults = faults_of_authors(records)
            folder, seal_of = self.cluster.home / f"fold-{agent}", self.cluster.seal_of(agent)
            faults += faults_of_files(records, files, owner, folder, seal_of)
        except Exception as error:
            faults = [repr(error)]
        self.outcome.others += [f"{agent}: {one}" for one in faults]


class Caller:
    """Requests of one client, which are repeated until they succeed."""

    def __init__(self, chaos: Chaos, http: httpx.Client, dice: random.Random) -> None:
        self._chaos = chaos
        self._outcome = chaos.outcome
        self._http = http
        self._dice = dice
        self._node = dice.choice(chaos.cluster.nodes)

    def append(self, promises: Promises, client: int, count: int) -> None:
        """Append a text, and repeat the request until it is acknowledged."""
        text = f"Client {client} noted number {count} of the list."
        body = {"messages": [{"role": "user", "content": text}], "idempotency_key": f"{client}-{count}"}
        promises.send(text)
        begun_s = time.monotonic()
        while True:
            if self._succeeded("POST", f"{promises.agent}/remember", json=body) is not None:
                break
        promises.acknowledge(text)
        self._outcome.waits.note(begun_s, f"append until {time.strftime('%H:%M:%S')}")

    def read(self, promises: Promises, node: Node | None = None) -> None:
        """Read the whole list, and repeat it until it is complete."""
        begun_s = time.monotonic()
        while True:
            # A repeated read begins later, so it must contain more.
            required = promises.begin_read()
            found = self._list(promises.agent, node)
            if found is not None:
                break
            if node is not None and time.monotonic() > begun_s + END_TIMEOUT_S:
                self._outcome.others.append(f"{node.name} does not list {promises.agent}")
                return
        promises.end_read(required, found, time.strftime("%H:%M:%S"))
        self._outcome.waits.note(begun_s, f"read until {time.strftime('%H:%M:%S')}")

    def _list(self, agent: str, node: Node | None) -> list[str] | None:
        found, token = list[str](), ""
        while True:
            params = {"page_size": 1000, "page_token": token}
            page = self._succeeded("GET", f"{agent}/messages", node, params=params)
            if page is None:
                return None
            found += [one["content"] for one in page["messages"]]
            token = page["next_page_token"]
            if not token:
                return found

    def _succeeded(self, method: str, path: str, node: Node | None = None, **options: Any) -> Any:
        """Return the body of a successful response. Otherwise choose another node and return None."""
        try:
            response = self._http.request(method, f"{(node or self._node).url}/v1/agents/{path}", **options)
        except httpx.TransportError as error:
            self._outcome.refusals[type(error).__name__] += 1
        else:
            if response.is_success:
                return response.json()
            self._refused(method, path, response)
        self._node = self._dice.choice(self._chaos.cluster.nodes)
        time.sleep(self._dice.uniform(0.02, 0.2))
        return None

    def _refused(self, method: str, path: str, response: httpx.Response) -> None:
        what = f"{response.status_code} {response.json()['error']['reason']}"
        self._outcome.refusals[what] += 1
        if response.status_code not in PASSING:
            self._outcome.unexpected.append(
                f"{time.strftime('%H:%M:%S')} {self._node.name} {method} {path}: {what}: {response.text[:300]}"
            )


def disorder(final: list[str]) -> list[str]:
    """Return the texts that a client appended before one that precedes them."""
    latest: dict[int, int] = {}
    found = []
    for text in final:
        words = text.split()
        client, count = int(words[1]), int(words[4])
        if count < latest.get(client, -1):
            found.append(text)
        latest[client] = count
    return found


def run(home: Path, seed: int, minutes: float, faults: list[str] | None = None) -> Outcome:
    """Run in an empty folder."""
    with Cluster(home, lease_s=LEASE_S, renew_s=RENEW_S, has_links=True) as cluster:
        cluster.start_nodes()
        chaos = Chaos(cluster, seed)
        return chaos.run(minutes, faults)


def main() -> None:
    """Run as a program. The exit code is 1 if anything did not hold; then the files stay."""
    parser = argparse.ArgumentParser(description="Faults at random moments in a real cluster.")
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--fault", action="append", help="inject only faults of this name; can be repeated")
    parser.add_argument("--keep", action="store_true", help="keep the logs and files also of a clean run")
    parser.add_argument("--timeline", action="store_true", help="print when each fault began and ended")
    arguments = parser.parse_args()
    os.environ.setdefault(EMBEDDER_VARIABLE, "builtin")
    configure_log("error", "json")
    print(f"seed {arguments.seed}", flush=True)
    home = Path(tempfile.mkdtemp(prefix="ebbtide-chaos-", dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None))
    outcome = run(home, arguments.seed, arguments.minutes, arguments.fault)
    if arguments.timeline or not outcome.is_clean:
        print("\n".join(outcome.timeline))
    print(outcome.table())
    if outcome.is_clean and not arguments.keep:
        shutil.rmtree(home)
    else:
        print(f"The logs and files are in {home}.")
        sys.exit(0 if outcome.is_clean else 1)


if __name__ == "__main__":
    main()
