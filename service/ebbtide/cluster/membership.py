"""The lease of this node, and the slots that it owns.

A node renews its lease by compare-and-swap, and regards it as its own until 0.75 of its length after the start of the
last successful renewal. Other nodes count the whole length from when they saw the last change, and only while their own
renewals succeed: otherwise an election of the log servers would depose every node at once. No wall clock is used.

The lease decides which node tries to take an agent, and whether a read may be answered. It is not the fence: that is
the compare-and-swap of the agent's log (`log.py`).

A read of the table of slots may be stale. So a node owns the slots that the table gives it only after it has written
the table itself, since it started or since its lease last lapsed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

import msgspec

from ebbtide.cluster.log import NoAnswer, Refused
from ebbtide.cluster.names import Names
from ebbtide.cluster.slots import Table, plan_for, slot_of
from ebbtide.errors import Precondition
from ebbtide.store.codec import make_known
from ebbtide.telemetry import get_log

OWN_SHARE = 0.75
"""The part of a lease for which its node relies on it."""

MAX_GIVES = 8
"""How often slots are given again while other nodes write the table too."""

NAME_TAKEN = "another process uses the name of this node; give it another cluster.node and restart it"


class NodeInfo(msgspec.Struct, frozen=True):
    """A node, as its lease describes it."""

    name: str
    life: str
    """A random id of the process."""
    address: str
    """Where other nodes connect to it: host and port."""
    version: str
    renewals: int = 0
    is_leaving: bool = False


make_known(NodeInfo, Table)


class Documents(Protocol):
    """Small shared documents on the log servers. Calls block and may raise NoAnswer; reads may be stale."""

    def read(self, subject: str) -> tuple[bytes, int] | None:
        """Return a document and its sequence."""
        ...

    def write(self, subject: str, data: bytes, expected: int) -> int:
        """Replace a document that has the sequence `expected`; 0: that does not exist. Return the new sequence.

        Raise Refused if it has another one.
        """
        ...

    def erase(self, subject: str, sequence: int) -> None:
        """Overwrite and delete a document that has a sequence, if it is still there."""
        ...

    def subjects(self, prefix: str) -> list[str]:
        """Return the subjects of the documents that begin with `prefix` and a dot."""
        ...


class Moves(Protocol):
    """The work of the daemon when slots move. Called on the thread of the membership."""

    def prepare(
        self, node: str, slots: Collection[int], most: int, meanwhile: Callable[[], None]
    ) -> frozenset[int]:
        """Return the slots that move to a node next, at most a number of them.

        The node first completes its copies of their open agents, which continue. Block for a moment, and call
        `meanwhile` again and again.
        """
        ...

    def release(self, accepts: Callable[[str], bool]) -> None:
        """Close every open agent whose directory `accepts` refuses. Block until they are closed."""
        ...

    def acquired(self, slots: Collection[int]) -> None:
        """Take note of slots that this node owns now. Does not block."""
        ...

    def settled(self) -> None:
        """Take note that slots have another owner, or are not about to move any more. Does not block."""
        ...


@dataclass
class _Seen:
    """The lease of another node, and when it last changed."""

    info: NodeInfo
    sequence: int
    changed_s: float


def boottime_s() -> float:
    """Return a clock that counts the time in which the machine was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """The length of leases, the pause between renewals, in seconds, and the slots moved at a time."""

    lease_s: float = 12.0
    renew_s: float = 3.0
    moves_at_once: int = 64
    clock: Callable[[], float] = boottime_s


class Membership:
    """This node's lease, the live nodes, and the table of slots. Reads are safe on every thread."""

    def __init__(
        self,
        documents: Documents,
        names: Names,
        info: NodeInfo,
        moves: Moves,
        times: LeaseTimes | None = None,
    ) -> None:
        self._documents = documents
        self._names = names
        self._info = info
        self._moves = moves
        self._times = times or LeaseTimes()
        self.lease = 0
        """Counts the leases of this process; a lease that lapsed is followed by another one."""
        self._lapsed = 0
        """The latest lease of which the log says that it lapsed."""
        self._lock = threading.Lock()
        self._renewal = threading.RLock()
        self._confirmed = 0
        """The lease in which this node has written the table."""
        self._has_joined = False
        """Whether this process has written the table: it ends the drain of the process before it."""
        self._valid_until_s = float("-inf")
        self._renewed_s = float("-inf")
        self._sequence = -1
        self._written = 0
        """The sequence of the latest lease that this process has written."""
        self._renewed = threading.Event()
        self._others: dict[str, _Seen] = {}
        self._table = Table.empty(names.slot_count)
        self._table_sequence = 0
        self._owned: frozenset[int] = frozenset()
        """The slots that this node owns while its lease is valid."""
        self._moving: frozenset[int] = frozenset()
        self.on_moved: Callable[[str, int], None] = lambda direction, count: None
        """Called with `taken` or `given` and a number of slots."""
        self._stopping = threading.Event()
        self._woken = threading.Event()
        self._threads: list[threading.Thread] = []
        self._log = get_log("cluster")
        self.is_fenced = False
        """Whether another process has taken the lease of this node's name."""

    # --- what others read --------------------------------------------------------------------------

    @property
    def has_lease(self) -> bool:
        """Whether the lease of this node is valid now."""
        return self._times.clock() < self._valid_until_s

    @property
    def is_leaving(self) -> bool:
        """Whether this node gives its agents away before it stops."""
        return self._info.is_leaving

    @property
    def lease_left_s(self) -> float:
        """Seconds until the lease of this node lapses; 0 without a lease."""
        return max(0.0, self._valid_until_s - self._times.clock())

    @property
    def slot_count(self) -> int:
        """The number of slots that this node owns now."""
        return len(self._owned) if self.has_lease else 0

    @property
    def unowned_count(self) -> int:
        """The number of slots without a live node, as this node sees them."""
        live = self.nodes
        return sum(owner not in live for owner in self._table.owners)

    @property
    def why_unready(self) -> str:
        """Why this node should get no requests; empty if it should."""
        if self.is_fenced:
            return NAME_TAKEN
        if not self.has_lease:
            return "this node has no lease in its cluster"
        return "this node is leaving its cluster" if self.is_leaving else ""

    @property
    def is_settled(self) -> bool:
        """Whether the lease is valid and every agent is closed that this node does not own."""
        return self.has_lease and self._confirmed == self.lease

    def owns(self, slot: int) -> bool:
        """Return whether this node owns a slot now."""
        # In this order: the lease may lapse and begin again in between, without slots.
        return self.has_lease and slot in self._owned

    def accepts(self, slot: int) -> bool:
        """Return whether this node owns a slot and is not about to give it away."""
        return self.owns(slot) and slot not in self._moving

    @property
    def table(self) -> Table:
        """The latest table that this node has read or written."""
        return self._table

    @property
    def table_version(self) -> int:
        """The version of that table; a later one is larger. 0 before the first."""
        return self._table_sequence

    @property
    def nodes(self) -> dict[str, NodeInfo]:
        """The live nodes by name, with this one."""
        return {self._info.name: self._info} | {name: self._others[name].info for name in self._live_others()}

    def _live_others(self) -> list[str]:
        now_s = self._times.clock()
        return [
            name
            for name, seen in list(self._others.items())
            if now_s - seen.changed_s <= self._times.lease_s and seen.info.renewals >= 0
        ]

    # --- life --------------------------------------------------------------------------------------

    def refuse_namesake(self, ended_life: str, wait: Callable[[float], None] = time.sleep) -> None:
        """Raise CLUSTER_UNUSABLE if another process renews the lease of this node's name. May raise NoAnswer.

        Blocks for the length of a lease if that can be: the lease neither was ended nor belongs to the life
        `ended_life`, of which is known that it has ended.
        """
        subject = self._names.node(self._info.name)
        found = self._documents.read(subject)
        if found is None:
            return
        info = msgspec.msgpack.decode(found[0], type=NodeInfo)
        if info.renewals < 0 or info.life == ended_life:
            return
        self._log.info("waiting until the lease of this node's name has lapsed", address=info.address)
        sequence, changes, until_s = found[1], 0, self._times.clock() + self._times.lease_s
        while self._times.clock() < until_s:
            wait(self._times.renew_s / 3)
            found = self._documents.read(subject)
            if found is not None and found[1] > sequence:
                # Two changes: the first read may have been stale.
                sequence, changes = found[1], changes + 1
            if changes > 1:
                raise Precondition(
                    f"Another process, at {info.address}, uses the name of this node, {info.name}. Set another "
                    "cluster.node, or stop that process.",
                    reason="CLUSTER_UNUSABLE",
                )

    def set_address(self, address: str) -> None:
        """Set where other nodes connect to this one. Before `start`."""
        self._info = msgspec.structs.replace(self._info, address=address)

    def start(self) -> None:
        """Renew the lease and move slots, on two threads, until `stop`."""
        for run in (self._renewing, self._planning):
            thread = threading.Thread(target=run, name="cluster", daemon=True)
            self._threads.append(thread)
            thread.start()

    def drain(self, timeout_s: float) -> None:
        """Give every slot to other nodes, if there are any. Blocks."""
        self._info = msgspec.structs.replace(self._info, is_leaving=True)
        try:
            # At once: a node that does not know it would give slots back.
            self.renew()
        except NoAnswer:
            return
        deadline_s = time.monotonic() + timeout_s
        while self._owned and self._has_staying() and time.monotonic() < deadline_s and self.has_lease:
            self._woken.set()
            time.sleep(0.05)

    def _has_staying(self) -> bool:
        """Return whether another live node is not leaving."""
        return any(not self._others[name].info.is_leaving for name in self._live_others())

    def stop(self) -> None:
        """Stop the threads, and end the lease so that other nodes need not wait for it. Idempotent."""
        if not self._stopping.is_set():
            self._stopping.set()
            self._woken.set()
            for thread in self._threads:
                thread.join()
            self._owned, self._valid_until_s = frozenset(), float("-inf")
            if self.is_fenced or not self.lease:
                return
            try:
                ended = msgspec.structs.replace(self._info, renewals=-1)
                self._documents.write(
                    self._names.node(self._info.name), msgspec.msgpack.encode(ended), self._sequence
                )
            except (NoAnswer, Refused):
                self._log.info("the lease was not ended")

    # --- the lease ---------------------------------------------------------------------------------

    def _renewing(self) -> None:
        while not self._stopping.is_set() and not self.is_fenced:
            try:
                self.renew()
            except NoAnswer:
                if self.lease > self._lapsed and not self.has_lease:
                    self._lapsed = self.lease
                    self._log.warning("lease lapsed, because the log servers do not answer")
            except Exception as error:
                self._log.error("renewal failed", exc_info=error)
            self._stopping.wait(self._times.renew_s if self.has_lease else self._times.renew_s / 6)

    def renew(self) -> None:
        """Renew the lease. After a gap it is another lease, without slots. May raise NoAnswer."""
        with self._renewal:
            self._renew()

    def _renew(self) -> None:
        subject, begun_s = self._names.node(self._info.name), self._times.clock()
        if self._sequence < 0:
            # A process of the same node has ended: it had the lock of the data directory.
            found = self._documents.read(subject)
            if self.lease:
                if found is None or found[1] < self._written:
                    raise NoAnswer("a stale read")
                if not self._is_own(found[0]):
                    return
            self._sequence = 0 if found is None else found[1]
        info = msgspec.structs.replace(self._info, renewals=self._info.renewals + 1)
        try:
            self._sequence = self._documents.write(subject, msgspec.msgpack.encode(info), self._sequence)
        except Refused:
            self._resolve_refusal(subject)
            return
        self._written = self._sequence
        self._info = msgspec.structs.replace(self._info, renewals=info.renewals)
        now_s = self._times.clock()
        with self._lock:
            if now_s >= self._valid_until_s:
                # Before the lease is valid again: no read may see the slots of the lease that lapsed.
                self._owned, self._moving = frozenset(), frozenset()
                self.lease += 1
                if self.lease > 1:
                    self._log.info("another lease after a gap", lease=self.lease)
            if now_s - self._renewed_s > 2 * self._times.renew_s:
                # The other nodes could not renew their leases either.
                for seen in self._others.values():
                    seen.changed_s = now_s
            self._renewed_s = now_s
            self._valid_until_s = begun_s + OWN_SHARE * self._times.lease_s
        self._renewed.set()

    def _resolve_refusal(self, subject: str) -> None:
        """Find out which process wrote the lease: this one, without an answer, or another one."""
        found = self._documents.read(subject)
        if found is None or found[1] < self._written or self.lease == 0 or self._is_own(found[0]):
            self._sequence = -1

    def _is_own(self, lease: bytes) -> bool:
        """Return whether this process wrote a lease. Otherwise it has lost its name, and owns nothing any more."""
        info = msgspec.msgpack.decode(lease, type=NodeInfo)
        if info.life == self._info.life:
            return True
        if not self.is_fenced:
            self._log.error(NAME_TAKEN, node=info.name, address=info.address)
        self.is_fenced = True
        self._valid_until_s = float("-inf")
        return False

    # --- slots -------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Look at the table and the leases now: another node has written one of them."""
        self._woken.set()

    def _planning(self) -> None:
        while not self._stopping.is_set():
            has_more = False
            if self._renewed.wait(0.1):
                try:
                    has_more = self.plan()
                except (NoAnswer, Refused):
                    pass
                except Exception as error:
                    self._log.error("slots cannot be moved", exc_info=error)
            if not has_more:
                self._woken.wait(self._times.renew_s / 3)
                self._woken.clear()

    def plan(self) -> bool:
        """Read leases and table, and move slots. Return whether more is to be moved. May raise NoAnswer or Refused."""
        if not self.has_lease:
            # Agents that this node does not own any more are closed; they are taken again when they are its own.
            self._moves.release(lambda _: False)
            return False
        self._look()
        if self._confirmed != self.lease:
            self._moves.release(lambda _: False)
            self._confirm()
        return self._move()

    def _look(self) -> None:
        """Read the leases of the other nodes and the table of slots."""
        # The table first: if a node renews its lease and writes the table in between, a write of this node is refused.
        found = self._documents.read(self._names.table)
        if found is not None and found[1] > self._table_sequence:
            self._table, self._table_sequence = msgspec.msgpack.decode(found[0], type=Table), found[1]
            # Slots that another node has given to this one belong to it at once.
            self._take_over(self.lease)
            self._moves.settled()
        for subject in self._documents.subjects(self._names.nodes):
            found = self._documents.read(subject)
            name = subject.rpartition(".")[2]
            if name == self._info.name or found is None:
                continue
            seen = self._others.get(name)
            if seen is None or found[1] > seen.sequence:
                info = msgspec.msgpack.decode(found[0], type=NodeInfo)
                self._others[name] = _Seen(info, found[1], self._times.clock())

    def _look_when_woken(self) -> None:
        """Look if another node has written something: requests may wait until this node has read the table."""
        if self._woken.is_set():
            self._woken.clear()
            self._look()

    def _confirm(self) -> None:
        """Write the table in this lease: no read of it can be older than the lease.

        A node that was drained is drained no longer once it is started again.
        """
        lease, name = self.lease, self._info.name
        self._write(self._table if self._has_joined else self._table.with_drained(name, is_drained=False))
        self._confirmed, self._has_joined = lease, True
        self._take_over(lease)

    def _move(self) -> bool:
        """Claim slots without a live owner, and give some away. Return whether more is to be given."""
        lease, nodes = self.lease, self.nodes
        leaving = [name for name, info in nodes.items() if info.is_leaving]
        plan = plan_for(self._info.name, self._table, nodes, leaving)
        if plan.claimed:
            self._write(self._table.with_owner(plan.claimed, self._info.name))
            self._take_over(lease)
        for node, slots in plan.given.items():
            moving = self._moves.prepare(node, slots, self._times.moves_at_once, self._look_when_woken)
            if lease != self.lease or not moving <= self._owned:
                return True
            self._moving = moving
            try:
                self._moves.release(lambda directory: self._slot(directory) not in self._moving)
                self._give(node)
                self._log.info("slots given", node=node, count=len(self._moving))
                self.on_moved("given", len(self._moving))
            except NoAnswer:
                with self._lock:
                    # The other node may own them, now or when the write arrives late: until this node has written
                    # the table again, it owns none of them.
                    self._owned -= self._moving
                    self._confirmed = 0
                raise
            finally:
                self._take_over(lease)
                self._moving = frozenset()
                self._moves.settled()
        return bool(plan.given)

    def _give(self, node: str) -> None:
        """Write that the moving slots belong to a node, again after another node has written the table.

        A refused write has changed nothing, so this node still owns the slots. Their agents stay closed meanwhile.
        """
        for attempt in range(MAX_GIVES):
            try:
                self._write(self._table.with_owner(self._moving, node))
                return
            except Refused:
                if attempt + 1 == MAX_GIVES:
                    raise
            self._look()
            if not self._moving <= self._owned or node not in self.nodes:
                raise Refused

    def _slot(self, directory: str) -> int:
        return slot_of(directory, self._names.slot_count)

    def _write(self, table: Table) -> None:
        data = msgspec.msgpack.encode(table)
        self._table_sequence = self._documents.write(self._names.table, data, self._table_sequence)
        self._table = table

    def _take_over(self, lease: int) -> None:
        """Own the slots that the table gives to this node, if the table was confirmed in this lease."""
        slots = self._table.slots_of(self._info.name)
        with self._lock:
            if lease != self.lease or lease != self._confirmed:
                return
            gained, self._owned = slots - self._owned, slots
        if gained:
            self._log.info("slots taken", count=len(gained), owned=len(slots))
            self.on_moved("taken", len(gained))
            self._moves.acquired(gained)
            self._moves.settled()
