"""Nodes of a cluster and their shared documents, in memory and with a clock that a test moves. No threads."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

import msgspec

from ebbtide.cluster.log import NoAnswer, Refused
from ebbtide.cluster.membership import LeaseTimes, Membership, NodeInfo
from ebbtide.cluster.names import Names
from ebbtide.cluster.slots import Table
from tests.cluster.simulated import Clock

SLOTS = 8
NAMES = Names("test", SLOTS, 1)


class Write(Enum):
    """The outcome of one write of a document."""

    UNANSWERED = auto()
    """It is made, without an answer."""
    LOST = auto()
    """It is not made; without an answer."""


class Version(NamedTuple):
    """A document at one time."""

    written_s: float
    subject: str
    data: bytes


@dataclass
class Documents:
    """The documents on the log servers, with every earlier version. A sequence is a place in the list, from 1."""

    clock: Clock
    versions: list[Version] = field(default_factory=list)

    def read(self, subject: str, at_s: float) -> tuple[bytes, int] | None:
        for sequence in range(len(self.versions), 0, -1):
            version = self.versions[sequence - 1]
            if version.subject == subject and version.written_s <= at_s:
                return version.data, sequence
        return None

    def write(self, subject: str, data: bytes, expected: int) -> int:
        found = self.read(subject, self.clock.now_s)
        if expected != (0 if found is None else found[1]):
            raise Refused
        self.versions.append(Version(self.clock.now_s, subject, data))
        return len(self.versions)


@dataclass
class Connection:
    """The documents as one node reaches them."""

    documents: Documents
    is_silent: bool = False
    lag_s: float = 0.0
    """The age of what its reads return."""
    next_writes: dict[str, Write] = field(default_factory=dict)
    """The outcome of the next write of each subject."""
    before_read: dict[str, Callable[[], object]] = field(default_factory=dict)
    """Called once, before the next read of a subject."""
    before_write: dict[str, Callable[[], object]] = field(default_factory=dict)
    """Called once, before the next write of a subject."""
    written: list[str] = field(default_factory=list)

    def _reach(self) -> None:
        if self.is_silent:
            raise NoAnswer

    def read(self, subject: str) -> tuple[bytes, int] | None:
        self._reach()
        self.before_read.pop(subject, lambda: None)()
        return self.documents.read(subject, self.documents.clock.now_s - self.lag_s)

    def write(self, subject: str, data: bytes, expected: int) -> int:
        self._reach()
        self.before_write.pop(subject, lambda: None)()
        outcome = self.next_writes.pop(subject, None)
        if outcome == Write.LOST:
            raise NoAnswer
        sequence = self.documents.write(subject, data, expected)
        self.written.append(subject)
        if outcome == Write.UNANSWERED:
            raise NoAnswer
        return sequence

    def subjects(self, prefix: str) -> list[str]:
        self._reach()
        seen_s = self.documents.clock.now_s - self.lag_s
        return sorted(
            {
                version.subject
                for version in self.documents.versions
                if version.subject.startswith(f"{prefix}.") and version.written_s <= seen_s
            }
        )


@dataclass
class Moves:
    """Notes what a membership asks of its daemon."""

    during_release: Callable[[], object] = lambda: None
    during_prepare: Callable[[], object] = lambda: None
    after_meanwhile: Callable[[], object] = lambda: None
    releases: int = 0

    def prepare(
        self, node: str, slots: Collection[int], most: int, meanwhile: Callable[[], None]
    ) -> frozenset[int]:
        self.during_prepare()
        meanwhile()
        self.after_meanwhile()
        return frozenset(sorted(slots)[:most])

    def release(self, accepts: Callable[[str], bool]) -> None:
        self.releases += 1
        self.during_release()

    def acquired(self, slots: Collection[int]) -> None:
        pass

    def settled(self) -> None:
        pass


class Process:
    """One process of a node."""

    def __init__(
        self, documents: Documents, name: str, life: str = "0", offset_s: float = 0.0, at_once: int = SLOTS
    ) -> None:
        self.name = name
        self.connection = Connection(documents)
        self.moves = Moves()
        self.while_clock_is_read: Callable[[], object] | None = None
        self._clock, self._offset_s = documents.clock, offset_s
        times = LeaseTimes(moves_at_once=at_once, clock=self._read_clock)
        info = NodeInfo(name, life, f"{name}:1", "1")
        self.membership = Membership(self.connection, NAMES, info, self.moves, times)
        self.next_renewal_s = self.next_plan_s = 0.0

    def _read_clock(self) -> float:
        if self.while_clock_is_read is not None:
            act, self.while_clock_is_read = self.while_clock_is_read, None
            act()
        return self._clock.now_s + self._offset_s

    def renew(self) -> None:
        """Renew as the thread of the membership does."""
        if not self.membership.is_fenced:
            with contextlib.suppress(NoAnswer):
                self.membership.renew()

    def plan(self) -> None:
        """Plan as the thread of the membership does."""
        with contextlib.suppress(NoAnswer, Refused):
            self.membership.plan()

    def owned(self) -> frozenset[int]:
        return frozenset(slot for slot in range(SLOTS) if self.membership.owns(slot))

    def run(self, now_s: float) -> None:
        """Renew and plan if it is time to, as the threads of the membership do."""
        if now_s >= self.next_renewal_s:
            self.renew()
            self.next_renewal_s = now_s + (3.0 if self.membership.has_lease else 0.5)
        if now_s >= self.next_plan_s:
            self.plan()
            self.next_plan_s = now_s + 1.0


class Cluster:
    """Some processes and their documents."""

    def __init__(self, *names: str) -> None:
        self.clock = Clock(1000.0)
        self.documents = Documents(self.clock)
        self.processes = [
            Process(self.documents, name, offset_s=7.5 * number) for number, name in enumerate(names)
        ]

    def table(self) -> Table:
        """Return the table as it is written now."""
        return self.processes[0].membership.table

    def mark_drained(self, name: str, *, is_drained: bool) -> None:
        """Write into the table whether a node is drained, as the command of an operator does."""
        found = self.documents.read(NAMES.table, self.clock.now_s)
        if found is not None:
            table = msgspec.msgpack.decode(found[0], type=Table).with_drained(name, is_drained=is_drained)
            self.documents.write(NAMES.table, msgspec.msgpack.encode(table), found[1])

    def settle(self) -> None:
        """Let every process run until the slots are where they should be."""
        self.run(20.0)

    def run(self, seconds: float, step_s: float = 0.5) -> None:
        """Let time pass. Check after each step of each process that no slot has two owners."""
        for _ in range(round(seconds / step_s)):
            self.clock.now_s += step_s
            for process in self.processes:
                process.run(self.clock.now_s)
                self.check()

    def check(self) -> None:
        """Check that no two processes own a slot."""
        owners: dict[int, str] = {}
        for process in self.processes:
            for slot in process.owned():
                assert slot not in owners, f"{owners[slot]} and {process.name} own slot {slot}"
                owners[slot] = process.name
