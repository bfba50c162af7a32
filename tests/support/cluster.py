"""A real cluster: nodes of Ebbtide over real log servers, which a test can kill, pause, cut off and start again."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ebbtide.cluster.jetstream import Servers
from ebbtide.cluster.log import NoAnswer
from ebbtide.cluster.names import Names
from ebbtide.cluster.ownership import answered
from ebbtide.cluster.slots import Table, best_node, slot_of
from ebbtide.ids import AgentId
from ebbtide.store.directory.data_directory import directory_name
from ebbtide.store.encryption.keys import DataKeys
from ebbtide.store.encryption.seal import parse_master_key
from ebbtide.store.journal import SealOf
from tests.support.clocks import WallClock
from tests.support.forks import run_command
from tests.support.links import Link, Links
from tests.support.log_servers import HOST, LogServers, free_ports
from tests.support.process import EMBEDDER_VARIABLE, Daemon
from tests.support.waiting import wait_until

NAME = "ebbtide"
SECRET = "a secret of sixteen bytes or more"
NOTHING_FORGOTTEN = {
    "MEMORY__DECAY_RATE": "1.0",
    "MEMORY__MAX_OWED_PASSES": "100000",
    "MEMORY__MAX_QUEUE_SIZE": "100000",
}
ENCRYPTED = {"ENCRYPTION__MASTER_KEY": "6d" * 32}
SETTLE_TIMEOUT_S = 60.0


class Node(Daemon):
    """One node: `ebbtide serve` with a name, and the links that it uses, if it uses any."""

    def __init__(self, name: str, data_dir: Path, settings: Mapping[str, Any]) -> None:
        super().__init__(data_dir, settings)
        self.name = name
        self.flags = (*self.flags, "--node", name)
        self.is_paused = False
        self.is_running = False
        self.clock: WallClock | None = None
        self.links_to_servers: list[Link] = []
        self.link_from_nodes: Link | None = None

    def use_clock(self, clock: WallClock) -> None:
        """Use a wall clock that the test moves, from the next start on."""
        self.clock = clock
        self._executed = True  # the clock is replaced when a program is loaded

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the process, with its clock."""
        return super().environment | (self.clock.environment if self.clock else {})

    def start(self) -> Node:
        """Start the node and wait until it listens."""
        super().start()
        self.is_running = True
        return self

    def await_ready(self) -> None:
        """Wait until the node has its lease."""
        wait_until(lambda: self.client.get("/readyz").status_code == 200, SETTLE_TIMEOUT_S)

    def kill(self) -> None:
        """Send SIGKILL and wait for the end."""
        self.is_running = self.is_paused = False
        super().kill()

    def stop(self) -> int:
        """Send SIGTERM, wait for the end, and return the exit code."""
        code = super().stop()
        self.is_running = False
        return code

    def pause(self) -> None:
        """Stop the process with SIGSTOP."""
        self.is_paused = True
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the process."""
        if self.is_paused:
            self.process.send_signal(signal.SIGCONT)
            self.is_paused = False

    @property
    def answers(self) -> bool:
        """Whether the process runs and is not paused."""
        return self.is_running and not self.is_paused


class Cluster:
    """Log servers, a cluster on them, and its nodes. `with Cluster(…) as cluster:` starts and ends all of it."""

    def __init__(
        self,
        home: Path,
        *,
        lease_s: float = 3,
        renew_s: float = 1,
        has_links: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.home = home
        self._lease = {"CLUSTER__LEASE_S": str(lease_s), "CLUSTER__RENEW_S": str(renew_s)}
        self._links = Links() if has_links else None
        self.log_servers = LogServers(home / "log", links=self._links)
        self._settings = {**NOTHING_FORGOTTEN, **ENCRYPTED, **(settings or {})}
        self.secret = home / "secret"
        self.secret.write_text(SECRET)
        self.nodes: list[Node] = []
        self.servers = Servers(self.log_servers.urls)

    def __enter__(self) -> Cluster:
        try:
            self.log_servers.start()
            created = self.command("init")
            assert created.returncode == 0, created.stderr
            self.servers.connect()
            self.log_servers.wait()
            found = self.servers.created(NAME)
            assert found is not None
            self.names = Names(NAME, found.slot_count, found.log_streams)
            self.servers.use(self.names)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything. Idempotent."""
        for node in self.nodes:
            node.close()
        self.servers.close()
        self.log_servers.close()
        if self._links is not None:
            self._links.close()

    def command(self, *arguments: str, master_key: bool = False, **settings: str) -> Any:
        """Run `ebbtide cluster …` on the log servers, with the nodes' master key if asked. Return what it printed."""
        flags = ("--servers", ",".join(self.log_servers.urls))
        settings = {**(ENCRYPTED if master_key else {}), **settings}
        environment = {f"EBBTIDE_{name}": value for name, value in settings.items()}
        s3 = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        return run_command(
            "cluster", *arguments, *flags, env={EMBEDDER_VARIABLE: "builtin", **environment, **s3}
        )

    # --- nodes -------------------------------------------------------------------------------------

    def new_node(self, name: str, folder: str = "", **settings: Any) -> Node:
        """Return a node that is not started yet. `settings` replace those of every node."""
        port = free_ports(1)[0]
        own: dict[str, Any] = {
            **self._settings,
            **self._lease,
            "CLUSTER__SERVERS": self.log_servers.urls,
            "CLUSTER__MONITOR_URLS": self.log_servers.monitor_urls,
            "CLUSTER__SECRET_FILE": str(self.secret),
            "CLUSTER__PORT": str(port),
        }
        to_servers: list[Link] = []
        from_nodes = None
        if self._links is not None:
            to_servers = [self._links.add(server.port) for server in self.log_servers.all]
            from_nodes = self._links.add(port)
            own["CLUSTER__SERVERS"] = [f"nats://{HOST}:{link.port}" for link in to_servers]
            own["CLUSTER__ADVERTISE"] = f"{HOST}:{from_nodes.port}"
        node = Node(name, self.home / (folder or name), {**own, **settings})
        node.links_to_servers, node.link_from_nodes = to_servers, from_nodes
        return node

    def start_nodes(self, count: int = 3) -> Cluster:
        """Start nodes and wait until each has its slots."""
        for number in range(len(self.nodes), count):
            self.nodes.append(self.new_node(f"e{number + 1}").start())
        self.settle()
        return self

    def node(self, name: str) -> Node:
        """Return the node with a name."""
        return next(one for one in self.nodes if one.name == name)

    @contextlib.contextmanager
    def extra_node(self, node: Node) -> Iterator[Node]:
        """Kill a node that is not in `nodes` at the end of the block."""
        try:
            yield node
        finally:
            node.close()

    def heal(self) -> None:
        """Undo every fault: start and continue all servers and nodes, and wait until the slots have settled."""
        for node in self.nodes:
            node.resume()
            for link in (*node.links_to_servers, *filter(None, [node.link_from_nodes])):
                link.heal()
        self.log_servers.heal()
        for node in self.nodes:
            if not node.is_running:
                node.start()
        self.settle()

    def seal_of(self, agent: str) -> SealOf:
        """Return what returns the seals of an agent, from its wrapped keys on the log servers."""
        keys = DataKeys(self.home / "no keys", parse_master_key(ENCRYPTED["ENCRYPTION__MASTER_KEY"]))

        def fetch(directory: str) -> bytes | None:
            found = answered(lambda: self.servers.read(self.names.data_keys(directory)))
            return None if found is None else found[0]

        keys.fetch = fetch
        return partial(keys.seal_of, directory_name(AgentId(agent)))

    # --- slots -------------------------------------------------------------------------------------

    def table(self) -> Table:
        """Return the table of slots, as the log servers have it."""
        found = answered(lambda: self.servers.read(self.names.table))
        return (
            Table.empty(self.names.slot_count)
            if found is None
            else msgspec.msgpack.decode(found[0], type=Table)
        )

    def settle(self) -> None:
        """Wait until every node that answers has its lease and its share of the slots."""
        names = [node.name for node in self.nodes if node.answers]
        for node in self.nodes:
            if node.answers:
                node.await_ready()

        def is_settled() -> bool:
            try:
                owners = self.table().owners
            except NoAnswer:
                return False
            return all(owner == best_node(slot, names) for slot, owner in enumerate(owners))

        wait_until(is_settled, SETTLE_TIMEOUT_S, 0.1)

    def owner_of(self, agent: str) -> Node:
        """Return the node that owns an agent."""
        slot = slot_of(directory_name(AgentId(agent)), self.names.slot_count)
        return self.node(self.table().owners[slot])

    def other_than(self, owner: Node) -> Node:
        """Return a node that answers and is not this one."""
        return next(one for one in self.nodes if one is not owner and one.answers)

    def agent_of(self, node: Node, word: str) -> str:
        """Return an id, beginning with `word`, of an agent that a node should own while all nodes live."""
        names = [one.name for one in self.nodes]
        for number in range(1000):
            agent = f"{word}{number}"
            slot = slot_of(directory_name(AgentId(agent)), self.names.slot_count)
            if best_node(slot, names) == node.name:
                return agent
        raise AssertionError(f"{node.name} owns nothing")
