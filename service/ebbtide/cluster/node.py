"""This node of a cluster: its connection to the log servers, its lease, its agents, and the other nodes.

It is opened before the fleet, which takes agents through it, and joins after the servers listen. At a stop it gives its
slots to other nodes while its servers still answer, and ends its lease after the agents are closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import socket
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sized
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from ebbtide import __version__
from ebbtide.access.key_file import KeyFile
from ebbtide.cluster.erased_log import ErasedLog
from ebbtide.cluster.jetstream import Servers
from ebbtide.cluster.log import NoAnswer, Refused, Timing
from ebbtide.cluster.membership import LeaseTimes, Membership, NodeInfo
from ebbtide.cluster.ownership import Ownership, answered
from ebbtide.cluster.shared_keys import share_keys
from ebbtide.cluster.slots import slot_of
from ebbtide.cluster.snapshot_setting import admit_setting, node_snapshots
from ebbtide.cluster.status import agents_in, used_names
from ebbtide.errors import EbbtideError, Precondition, Unavailable
from ebbtide.fleet.runtime.fleet import Fleet
from ebbtide.fleet.runtime.notifier import Notifier
from ebbtide.forwarding.exchange import COPY_AGENT, SHOW_POSITION, VerbHead
from ebbtide.forwarding.nodes import NodePeers, Place
from ebbtide.ids import AgentId
from ebbtide.metrics import ClusterMetrics
from ebbtide.settings import ClusterSettings, StoreSettings
from ebbtide.store.directory.data_directory import directory_name
from ebbtide.store.journal import Position
from ebbtide.telemetry import get_log, in_background

T = TypeVar("T")

MIN_SECRET_BYTES = 16

ADOPTED_AT_ONCE = 4
"""Agents that are completed from the log at a time, after slots were taken."""

PREPARE_S = 2.0
"""How long the agents of some slots are copied before they move."""

COPIED_S = 0.2
"""The agents are copied again after a copy that took longer."""

OPEN_MOVED_AT_ONCE = 2
"""Open agents that move at a time: their requests wait until the new owner has opened all of them."""

MOST_MOVES = 16
"""Moves of open agents to one node: with many of them, more move at a time, so that a stop ends."""

MONITOR_S = 2.0
"""Time-out of a log server's monitoring."""

KEYS_S = 0.5
"""Pause between two looks at the API keys: a revocation takes effect on all nodes within about a second."""

LOST_S = 0.5
"""Pause between two looks for connections to nodes that are not live."""

SWEEP_S = 60.0
"""Pause between two searches for obsolete copies."""

MOVE_TIMEOUT_S = 2.0
"""How long a request waits for an agent that is moving."""

WAIT_S = 0.02
"""Longest wait for work on the event loop before the table of slots is looked at again."""

LOOK_S = 0.1
"""Pause between two looks while it waits."""

POSITION_S = 10.0
"""Time-out of a question to another node for where its file of an agent ends."""

WATCH_S = 10.0
"""Pause between two looks at the copies of the log."""

RETRY_S = 1.0
"""Pause before the agents of taken slots are listed again."""


class ClusterNode:
    """One node. `open` it, give it the fleet, `join`, `drain`, `close`."""

    def __init__(self, settings: ClusterSettings, store: StoreSettings, *, shares_keys: bool) -> None:
        """`shares_keys`: whether API keys are in use."""
        self._settings = settings
        self._store = store
        self.name = settings.node or node_name()
        self.cluster = settings.name
        self._servers = Servers(
            settings.servers, credentials_file=settings.credentials_file, tls_ca_file=settings.tls_ca_file
        )
        self._fleet: Fleet | None = None
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopped = threading.Event()
        self._moved = Notifier()
        self._shares_keys = shares_keys
        self._secret = read_secret(settings.secret_file)
        self.metrics = ClusterMetrics()

    def open(
        self, master_fingerprint: str, life: str, previous_life: str, confirm_first: Callable[[], None]
    ) -> None:
        """Connect to the log servers. Blocks. Raise CLUSTER_UNUSABLE or NOT_ENOUGH_LOG_SERVERS.

        `life` is a random id of this process, and `previous_life` that of the one that used its data directory before.
        `confirm_first` raises an error if this node must not set the master key of a new cluster.
        """
        settings = self._settings
        try:
            self._servers.connect()
            if not settings.allow_unsynced_log:
                refuse_unsynced(settings)
            # The log servers may be electing a leader.
            self._names = answered(lambda: used_names(self._servers, settings))
        except NoAnswer as error:
            self._servers.close()
            raise Unavailable(
                "The log servers do not answer.", reason="NOT_ENOUGH_LOG_SERVERS", retry_after_s=5.0
            ) from error
        except EbbtideError:
            self._servers.close()
            raise
        snapshots = node_snapshots(settings)
        times = LeaseTimes(settings.lease_s, settings.renew_s, settings.moves_at_once)
        info = NodeInfo(
            self.name, life, settings.advertise or f"{settings.host}:{settings.port}", __version__
        )
        self.membership = Membership(self._servers, self._names, info, self, times)
        self.ownership = Ownership(
            self._servers,
            self._servers,
            self.membership,
            self._names,
            author=f"{self.name}/{life}",
            append_timeout_s=settings.append_timeout_s,
            map_bytes=self._store.initial_map_bytes,
            max_map_bytes=self._store.max_map_bytes,
            metrics=self.metrics,
            snapshots=snapshots,
        )
        self.membership.on_moved = self.metrics.moved
        self.ownership.positions = self._positions
        self.erased_log = ErasedLog(self._servers, self._names, Timing(settings.append_timeout_s))
        self.peers = NodePeers(self.name, self._secret, self)
        confirm = partial(
            self._admit,
            self._names.master_key,
            master_fingerprint,
            "encryption.master_key_file",
            confirm_first,
        )
        confirm()
        self.ownership.confirm_master_key = confirm
        self._admit(self._names.secret, fingerprint(self._secret), "cluster.secret_file")
        answered(lambda: admit_setting(self._servers, self._names, settings, self.name))
        answered(lambda: self.membership.refuse_namesake(previous_life))
        if self._shares_keys:
            file = KeyFile(self._store.data_dir)
            answered(lambda: share_keys(file, self._servers, self._names.api_keys))

    def _admit(
        self, subject: str, fingerprint: str, setting: str, confirm_first: Callable[[], None] = lambda: None
    ) -> None:
        """Raise CLUSTER_UNUSABLE if the other nodes have another key or secret, or one of them has none."""

        def common() -> str:
            found = self._servers.read(subject)
            if found is None:
                confirm_first()
                self._servers.write(subject, fingerprint.encode(), 0)
                return fingerprint
            return found[0].decode()

        known = answered(common)
        if " " in known:
            raise Precondition(
                f"The master key of this cluster is being rotated ({' to '.join(known.split())}). Let "
                "`ebbtide cluster rotate-master-key` end, or run it again with the same two keys.",
                reason="CLUSTER_UNUSABLE",
            )
        if known != fingerprint:
            raise Precondition(
                f"The other nodes of this cluster have another {setting}. All nodes need the same one.",
                reason="CLUSTER_UNUSABLE",
            )

    async def _follow_keys(self, fleet: Fleet) -> None:
        file = KeyFile(self._store.data_dir)
        while True:
            try:
                await fleet.on_pool(lambda: share_keys(file, self._servers, self._names.api_keys))
            except (NoAnswer, Refused):
                pass
            except EbbtideError as error:
                get_log("cluster").error("API keys not shared", reason=error.reason)
            await asyncio.sleep(KEYS_S)

    async def _watch_log(self, fleet: Fleet) -> None:
        """Gauge how many copies of the log are current, and log when that changes for longer than a moment."""
        logged = before = None
        while True:
            self.metrics.damaged_log_servers.set(len(self.ownership.damaged))
            try:
                found = await fleet.on_pool(self._servers.copies)
                self.metrics.log_copies.set(found.configured)
                self.metrics.current_log_copies.set(found.current)
                if found == before != logged:
                    log = get_log("cluster").info if found.is_complete else get_log("cluster").warning
                    log("current copies of the log", current=found.current, missing=found.missing)
                    logged = found
                before = found
            except NoAnswer:
                self.metrics.current_log_copies.set(0)
            await asyncio.sleep(WATCH_S)

    async def _abort_lost(self) -> None:
        """End requests to nodes whose lease has lapsed."""
        while True:
            await asyncio.sleep(LOST_S)
            self.peers.abort_lost()

    async def _sweep(self, fleet: Fleet) -> None:
        """Remove copies of agents that other nodes own: of rewritten logs, of deleted agents, and too many."""
        while True:
            await asyncio.sleep(SWEEP_S)
            try:
                removed = await fleet.on_pool(
                    lambda: fleet.data.discard_copies(self._settings.local_cache_bytes)
                )
                await fleet.on_pool(fleet.data.erased.follow)
                if removed:
                    get_log("cluster").info("copies removed", count=removed)
            except (NoAnswer, EbbtideError, OSError) as error:
                get_log("cluster").warning("copies not removed", exc_info=error)

    def _slot(self, agent_id: str) -> int:
        return slot_of(directory_name(AgentId(agent_id)), self._names.slot_count)

    # --- where agents and nodes are ----------------------------------------------------------------

    @property
    def version(self) -> int:
        """The version of the table of slots that this node has read."""
        return self.membership.table_version

    def owner_name(self, agent_id: str) -> str:
        """Return the name of the node that owns an agent; empty if there is none."""
        return self.membership.table.owners[self._slot(agent_id)]

    def places(self) -> dict[str, Place]:
        """Return the places of the live nodes, by name."""
        return {name: Place(info.address, info.life) for name, info in self.membership.nodes.items()}

    async def settle(self, agent_id: str) -> None:
        """Wait a moment while an agent is moving from or to this node."""
        slot = self._slot(agent_id)

        def is_settled() -> bool:
            return self.membership.table.owners[slot] not in ("", self.name) or self.membership.accepts(slot)

        await self._until(is_settled)

    async def catch_up(self, version: int) -> None:
        """Wait a moment until this node has read a version of the table of slots."""

        def is_current() -> bool:
            if self.version >= version:
                return True
            self.membership.wake()
            return False

        await self._until(is_current)

    async def _until(self, is_true: Callable[[], bool]) -> None:
        """Wait until something is true of the slots, at most for the time of a move."""
        deadline_s = time.monotonic() + MOVE_TIMEOUT_S
        while not self._stopped.is_set() and not self.membership.is_fenced:
            change = self._moved.next_notification()
            left_s = deadline_s - time.monotonic()
            if is_true() or left_s <= 0:
                return
            # A read of the table may have been stale.
            await change.wait(min(left_s, LOOK_S))

    # --- life --------------------------------------------------------------------------------------

    @asynccontextmanager
    async def joined(self, fleet: Fleet) -> AsyncIterator[None]:
        """Accept connections of other nodes, and own agents within the block."""
        self._fleet = fleet
        settings = self._settings
        port = await self.peers.listen(settings.host, settings.port)
        self.membership.set_address(settings.advertise or f"{settings.host}:{port}")
        await fleet.on_pool(lambda: self._servers.on_change(settings.name, self.membership.wake))
        self.membership.start()
        loops = [self._sweep(fleet), self._watch_log(fleet), self._abort_lost()] + (
            [self._follow_keys(fleet)] if self._shares_keys else []
        )
        self._tasks |= {in_background(loop) for loop in loops}
        try:
            yield
        finally:
            self._stopped.set()
            for task in self._tasks:
                task.cancel()
            await self.peers.close()

    async def drain(self) -> None:
        """Give the agents of this node to other nodes, if there are any."""
        await asyncio.to_thread(self.membership.drain, self._settings.drain_s)

    def close(self) -> None:
        """End the lease and the connection. The agents are closed. Idempotent."""
        self._stopped.set()
        if hasattr(self, "membership"):
            self.membership.stop()
            self.ownership.close()
        self._servers.close()

    # --- moves, on the thread of the membership ----------------------------------------------------

    def prepare(
        self, node: str, slots: Collection[int], most: int, meanwhile: Callable[[], None]
    ) -> frozenset[int]:
        """Return the slots that move to a node next, at most a number of them, with few open agents.

        The node first completes its copies of these agents. Block for at most `PREPARE_S`.
        """
        fleet = self._fleet
        prepared = (
            None if fleet is None else self._await(lambda: self._prepare(fleet, node, slots, most), meanwhile)
        )
        return frozenset(sorted(slots)[:most]) if prepared is None else prepared

    async def _prepare(self, fleet: Fleet, node: str, slots: Collection[int], most: int) -> frozenset[int]:
        places = asyncio.Semaphore(ADOPTED_AT_ONCE)

        async def copy(agent_id: AgentId) -> None:
            async with places:
                await self.peers.request_of(node, VerbHead(COPY_AGENT, b"", b"", agent_id))

        open_agents = {slot: list[AgentId]() for slot in sorted(slots)}
        for agent_id in fleet.used_agents:
            open_agents.get(self._slot(agent_id), []).append(agent_id)
        moving = some_slots(open_agents, most)
        leaving = [agent_id for slot in moving for agent_id in open_agents[slot]]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PREPARE_S):
                took_s = inf
                while leaving and took_s > COPIED_S:
                    # Again after a long copy: the agents had commits meanwhile. One that fails moves all the same.
                    begun_s = time.monotonic()
                    await asyncio.gather(*map(copy, leaving), return_exceptions=True)
                    took_s = time.monotonic() - begun_s
        return moving

    def _positions(self, agent_id: str) -> dict[str, Position | None]:
        """Return where the file of an agent ends on each other node that the cluster knows; None without an answer."""
        subjects = answered(lambda: self._servers.subjects(self._names.nodes))
        names = {subject.rpartition(".")[2] for subject in subjects} | self.membership.nodes.keys()

        async def ask(name: str) -> Position | None:
            try:
                async with asyncio.timeout(POSITION_S):
                    head = VerbHead(SHOW_POSITION, b"", b"", agent_id)
                    result = await self.peers.request_of(name, head)
                return None if result.error else msgspec.msgpack.decode(result.body, type=Position)
            except (EbbtideError, TimeoutError, msgspec.MsgspecError):
                return None

        async def ask_all(others: list[str]) -> dict[str, Position | None]:
            return dict(zip(others, await asyncio.gather(*map(ask, others)), strict=True))

        asked = ask_all(sorted(names - {self.name}))
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result(2 * POSITION_S)

    def release(self, keeps: Callable[[str], bool]) -> None:
        """Close every open agent whose directory `keeps` refuses. Block until they are closed."""
        fleet = self._fleet
        if fleet is not None:
            self._await(lambda: fleet.release(lambda agent_id: keeps(directory_name(agent_id))))

    def _await(
        self, work: Callable[[], Coroutine[Any, Any, T]], meanwhile: Callable[[], None] = lambda: None
    ) -> T | None:
        """Return the result of work on the event loop; None once the node stops. Call `meanwhile` again and again."""
        if self._stopped.is_set():
            return None
        running = asyncio.run_coroutine_threadsafe(work(), self._loop)
        while not self._stopped.is_set():
            try:
                return running.result(WAIT_S)
            except TimeoutError:
                meanwhile()
        return None

    def acquired(self, slots: Collection[int]) -> None:
        """Complete the files of the agents in these slots, and resume their work, in the background."""
        if not self._stopped.is_set():
            self._loop.call_soon_threadsafe(self._begin_adopting, frozenset(slots))

    def settled(self) -> None:
        """Let requests continue that wait for moving agents."""
        if not self._stopped.is_set():
            self._loop.call_soon_threadsafe(self._moved.notify)

    def _begin_adopting(self, slots: frozenset[int]) -> None:
        assert self._fleet is not None
        task = in_background(self._adopt(slots))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _adopt(self, slots: frozenset[int]) -> None:
        fleet = self._fleet
        assert fleet is not None
        places = asyncio.Semaphore(ADOPTED_AT_ONCE)

        async def adopt(agent_id: AgentId) -> None:
            async with places:
                await fleet.adopt(agent_id)

        agent_ids = await self._with_retries(fleet, slots)
        results = await asyncio.gather(*map(adopt, agent_ids), return_exceptions=True)
        failed = [one for one in results if isinstance(one, BaseException)]
        if failed:
            # They are taken when they are requested.
            get_log("cluster").warning("agents not taken", count=len(failed), exc_info=failed[0])

    async def _with_retries(self, fleet: Fleet, slots: frozenset[int]) -> list[AgentId]:
        while True:
            try:
                return await fleet.on_pool(lambda: agents_in(self._servers, self._names, slots))
            except NoAnswer:
                await asyncio.sleep(RETRY_S)


def some_slots(open_agents: Mapping[int, Sized], most: int) -> frozenset[int]:
    """Return the first slots that move at a time: at most a number of them, and with few open agents."""
    room = max(OPEN_MOVED_AT_ONCE, sum(map(len, open_agents.values())) // MOST_MOVES)
    found = list[int]()
    for slot, agents in open_agents.items():
        room -= len(agents)
        if found and (room < 0 or len(found) == most):
            break
        found.append(slot)
    return frozenset(found)


def node_name() -> str:
    """Return the name of this machine, as a node may be named."""
    return (
        "".join(one if one.isascii() and one.isalnum() else "-" for one in socket.gethostname())[:63]
        or "node"
    )


def read_secret(file: str) -> bytes:
    """Return the secret of the nodes. Raise CLUSTER_UNUSABLE for a file that cannot be used."""
    if not file:
        raise Precondition("cluster.secret_file is required in a cluster.", reason="CLUSTER_UNUSABLE")
    try:
        secret = Path(file).read_bytes().strip()
    except OSError as error:
        raise Precondition(
            f"cluster.secret_file {file} cannot be read: {error.strerror}.", reason="CLUSTER_UNUSABLE"
        ) from error
    if len(secret) < MIN_SECRET_BYTES:
        raise Precondition(
            f"cluster.secret_file {file} has {len(secret)} bytes; at least {MIN_SECRET_BYTES} are required.",
            reason="CLUSTER_UNUSABLE",
        )
    return secret


def fingerprint(secret: bytes) -> str:
    """Return a value that identifies a secret and does not reveal it."""
    return hmac.new(secret, b"ebbtide cluster", hashlib.sha256).hexdigest()


def refuse_unsynced(settings: ClusterSettings) -> None:
    """Raise CLUSTER_UNUSABLE if a log server does not sync each record, or at least half of them do not say so.

    Warn of each one that does not say so.
    """
    hosts = [urlsplit(server).hostname for server in settings.servers]
    urls = settings.monitor_urls or [f"http://{host}:8222" for host in hosts]
    silent: list[str] = []
    for url in urls:
        try:
            with urllib.request.urlopen(f"{url}/jsz?config=true", timeout=MONITOR_S) as response:
                synced = json.load(response).get("config", {}).get("sync_always") is True
        except (OSError, ValueError) as error:
            silent.append(f"{url} ({error})")
            continue
        if not synced:
            raise Precondition(
                f"The log server at {url} does not sync each record. Set `sync_interval: always` in its section "
                "`jetstream`.",
                reason="CLUSTER_UNUSABLE",
            )
    if 2 * len(silent) >= len(urls):
        raise Precondition(
            f"The monitoring of these log servers does not answer: {', '.join(silent)}. Set cluster.monitor_urls, or "
            "cluster.allow_unsynced_log.",
            reason="CLUSTER_UNUSABLE",
        )
    if silent:
        get_log("cluster").warning(
            "the monitoring of a log server does not answer, so it is unknown whether it syncs each record",
            monitoring=silent,
        )
