"""One agent's log, its file and a clock, in memory and under the control of a test. Nothing waits."""

from __future__ import annotations

import contextlib
import hashlib
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from ebbtide.cluster.log import AgentLog, Copy, NoAnswer, Record, Refused, Timing
from ebbtide.cluster.ownership import has_all
from ebbtide.cluster.snapshots import Snapshots, unavailable
from ebbtide.errors import Precondition
from ebbtide.store.chain import ChainHead
from ebbtide.store.journal import Delta, Position, TreeDelta, with_marks
from ebbtide.store.lmdb.lmdb_store import without_keys

SUBJECT = "test.log.0.0.ann"
AGENT = "ann"
TREE = "entries"
MAX_APPENDS = 1000
GAP = 3
"""Sequences between two records of the agent: the other records of the stream are of other agents."""


class Outcome(Enum):
    """The outcome of one append."""

    HONEST = auto()
    """It is appended and acknowledged, or refused."""
    UNANSWERED = auto()
    """It is appended or refused, without an answer."""
    LOST = auto()
    """It never arrives; without an answer."""
    LATE = auto()
    """It has no answer, and arrives when the test calls `deliver`."""
    REFUSED = auto()
    """It is refused, although the expected record is the last one."""
    UNAVAILABLE = auto()
    """It is not attempted, and the answer says so: as a server without a leader, or with an append in progress."""


class Damage(Exception):
    """The log that a test looks at is not a chain."""


class EndlessLoop(Exception):
    """A call is repeated again and again."""


class Crash(Exception):
    """The process ends between two steps."""


def commit(*names: str) -> bytes:
    """Return a commit that adds entries with these names."""
    return Delta({TREE: TreeDelta(put=[(name.encode(), b"") for name in names])}).encoded()


def content(*names: str) -> bytes:
    """Return a commit that replaces all entries by these."""
    return Delta({TREE: TreeDelta(is_cleared=True, put=[(name.encode(), b"") for name in names])}).encoded()


def applied(entries: tuple[str, ...], commits: Iterable[bytes]) -> tuple[str, ...]:
    """Return entries after some commits. Unlike a tree of LMDB, an entry that is put twice is there twice."""
    for one in commits:
        for changes in Delta.decoded(one, without_keys).trees.values():
            entries = () if changes.is_cleared else entries
            entries += tuple(key.decode() for key, _ in changes.put)
    return entries


class Fold(NamedTuple):
    """The state that a log leads to, by the rules of the specification, written without the code under test."""

    entries: tuple[str, ...]
    exists: bool
    head: ChainHead
    """The last record at which a file may end: not a part without its final record."""


def fold(records: Iterable[Record]) -> Fold:
    """Return the state after all records. Raise Damage if a record does not have the hash of all before it.

    A rebase and a deletion begin a new chain.
    """
    entries: tuple[str, ...] = ()
    exists, parts, chain, head, kind = False, list[Record](), bytes(32), ChainHead(), ""
    rebase = bytes(32)
    for record in records:
        before, kind = kind, str(record.kind)
        if kind.startswith("rebase"):
            # A chain of its own, which takes the place of the other one when it is complete.
            if before != "rebase_part":
                parts.clear()
                rebase = bytes(32)
            rebase = found = hashlib.sha256(rebase + kind.encode() + record.body).digest()
            chain = rebase if kind == "rebase" else chain
        else:
            chain = found = hashlib.sha256(
                (bytes(32) if kind == "gone" else chain) + kind.encode() + record.body
            ).digest()
        if found != record.hash:
            raise Damage(record.sequence)
        if record.kind in ("part", "rebase_part"):
            parts.append(record)
            continue
        head = ChainHead(record.sequence, record.hash)
        if record.kind == "gone":
            entries, exists = (), False
        elif record.kind != "own":
            # The first four bytes of a final record are the number of its parts, which come directly before it.
            count = int.from_bytes(record.body[:4])
            mine = b"".join(part.body for part in parts[len(parts) - count :])
            entries, exists = applied(entries, [mine + record.body[4:]]), True
        parts.clear()
    return Fold(entries, exists, head)


@dataclass
class Clock:
    """A clock that only `sleep` and a test move."""

    now_s: float = 0.0

    def read(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@dataclass
class SimulatedStream:
    """One subject of a stream. A test sets the outcome of the next appends, and how much the next reads miss."""

    records: list[Record] = field(default_factory=list)
    script: deque[Outcome] = field(default_factory=deque)
    """The outcomes of the next appends; honest after those."""
    late: list[tuple[Record, int]] = field(default_factory=list)
    """Appends that have not arrived, with the sequence that they expect."""
    hidden: int = 0
    """The last records that stale reads do not see."""
    stale_reads: int = 0
    """Reads that are stale, from now on."""
    silent_reads: int = 0
    """Reads without an answer, from now on."""
    lags: bool = False
    """Whether each read of many records is stale."""
    before_append: Callable[[], object] | None = None
    """Called once, before the next append."""
    missing: dict[str, set[int]] = field(default_factory=lambda: {"n1": set(), "n2": set(), "n3": set()})
    """The sequences that the disk of each server has lost."""
    leading: str = "n1"
    """The server that leads, and answers everything but reads of many records."""
    answering: str = ""
    """The server that answers reads of many records; empty: the leader."""
    elections: int = 0
    append_count: int = 0

    def append(self, subject: str, record: Record, expected: int) -> int:
        assert subject == SUBJECT
        self.append_count += 1
        if self.append_count > MAX_APPENDS:
            raise EndlessLoop
        if self.before_append is not None:
            before, self.before_append = self.before_append, None
            before()
        outcome = self.script.popleft() if self.script else Outcome.HONEST
        if outcome in (Outcome.LOST, Outcome.UNAVAILABLE):
            raise NoAnswer
        if outcome == Outcome.LATE:
            self.late.append((record, expected))
            raise NoAnswer
        if outcome == Outcome.REFUSED:
            raise Refused
        if outcome == Outcome.UNANSWERED:
            with contextlib.suppress(Refused):
                self._compare_and_append(record, expected)
            raise NoAnswer
        return self._compare_and_append(record, expected)

    def deliver(self) -> bool:
        """Let the first late append arrive. Return whether it was appended."""
        record, expected = self.late.pop(0)
        try:
            self._compare_and_append(record, expected)
        except Refused:
            return False
        return True

    def _compare_and_append(self, record: Record, expected: int) -> int:
        known = self._at_server(self.leading)
        if expected != (known[-1].sequence if known else 0):
            raise Refused
        last = self.records[-1].sequence if self.records else 0
        self.records.append(record._replace(sequence=last + GAP))
        return last + GAP

    def _at_server(self, name: str) -> list[Record]:
        """Return the records that a server still has."""
        lost = self.missing[name]
        return [record for record in self.records if record.sequence not in lost] if lost else self.records

    def _seen(self, server: str = "") -> list[Record]:
        found = self._at_server(server or self.leading)
        if self.silent_reads > 0:
            self.silent_reads -= 1
            raise NoAnswer
        if self.stale_reads > 0:
            self.stale_reads -= 1
            return found[: max(0, len(found) - self.hidden)]
        return found

    def after(self, subject: str, sequence: int, most: int) -> Sequence[Record]:
        assert subject == SUBJECT
        if self.lags and most > 1:
            self.stale_reads = 1
        server = self.answering if most > 1 else ""
        return [record for record in self._seen(server) if record.sequence > sequence][:most]

    def at(self, subject: str, sequence: int) -> Record | None:
        assert subject == SUBJECT
        return next((record for record in self._seen() if record.sequence == sequence), None)

    def last(self, subject: str) -> Record | None:
        assert subject == SUBJECT
        return next(reversed(self._seen()), None)

    def count(self, subject: str) -> int:
        assert subject == SUBJECT
        return len(self._seen())

    def erase_before(self, subject: str, sequence: int) -> bool:
        """Erase one record, so that a test can stop in between."""
        assert subject == SUBJECT
        erased = [record for record in self._seen() if record.sequence < sequence]
        for record in erased[:1]:
            self.records.remove(record)
        return not erased

    def ends(self, subject: str) -> tuple[int, int]:
        assert subject == SUBJECT
        ends = {name: known[-1].sequence if (known := self._at_server(name)) else 0 for name in self.missing}
        return ends[self.leading], max(ends.values())

    def leader(self, subject: str) -> str:
        assert subject == SUBJECT
        return self.leading

    def lead_by_another(self, subject: str, avoided: Collection[str]) -> str:
        assert subject == SUBJECT
        for name in self.missing:
            if name not in avoided:
                self.elections += 1
                self.leading = name
                return name
        return ""


@dataclass
class SimulatedObjects:
    """Objects in memory. A test can let S3 fail from a call on."""

    content: dict[str, bytes] = field(default_factory=dict)
    failing: frozenset[str] = frozenset()
    """The names of the calls that fail."""

    def _refuse(self, call: str) -> None:
        if call in self.failing:
            raise unavailable("S3 does not answer.")

    def put(self, key: str, content: bytes) -> None:
        self._refuse("put")
        self.content[key] = content

    def get(self, key: str, size: int) -> bytes | None:
        self._refuse("get")
        found = self.content.get(key)
        assert found is None or abs(len(found) - size) <= 1
        return found

    def keys(self, folder: str) -> Sequence[str]:
        self._refuse("keys")
        return [key for key in self.content if key.startswith(f"{folder}/")]

    def delete(self, keys: Sequence[str]) -> None:
        self._refuse("delete")
        for key in keys:
            self.content.pop(key, None)


@dataclass
class MemoryCopy:
    """The file of the agent on one node."""

    entries: tuple[str, ...] = ()
    head: ChainHead = field(default_factory=ChainHead)
    asides: tuple[tuple[str, ...], ...] = ()
    """The entries of the files that were put aside."""
    heads: list[ChainHead] = field(default_factory=list)
    """Every head that the file has had."""
    start: int = 0
    """The first record of the latest rebase."""
    marks: tuple[bytes, ...] = ()
    """The marks of the latest sessions."""
    size: int = 0
    locked: frozenset[str] = frozenset()
    """Names of entries whose data key was destroyed."""
    crashes: bool = False
    """Whether the process ends before the next commit."""

    def content(self) -> bytes:
        return content(*self.entries)

    def apply(
        self, commits: Sequence[bytes], head: ChainHead, start: int = 0, marks: Sequence[bytes] = ()
    ) -> None:
        self.start = start or self.start
        if self.crashes:
            self.crashes = False
            raise Crash
        if self.locked.intersection(applied((), commits)):
            raise Precondition("The key of this agent is missing.", reason="DATA_KEY_MISSING")
        self.entries, self.head = applied(self.entries, commits), head
        self.heads.append(head)
        self.marks = with_marks(self.marks, marks)

    def put_aside(self) -> None:
        self.asides += (self.entries,)
        self.entries, self.head, self.start, self.marks = (), ChainHead(), 0, ()

    def remove(self, *, keeps_aside: bool = False) -> None:
        self.entries, self.head, self.start, self.marks = (), ChainHead(), 0, ()
        self.asides = self.asides if keeps_aside else ()


def position_of(copy: Copy) -> Position:
    """Return where a file ends, as its node says."""
    return Position(copy.head.number, (copy.marks or (b"",))[-1])


class Node:
    """One node: its file and, while the agent is open, its log. Commits as a store does: append, then apply."""

    def __init__(self, stream: SimulatedStream, name: str, timeout_s: float = 20.0) -> None:
        self.clock = Clock()
        self.copy = MemoryCopy()
        self.owns = True
        self.damaged: list[str] = []
        """The servers that the log has named as damaged."""
        self.snapshots: Snapshots | None = None
        """The objects of the cluster, if it has any."""
        self._stream = stream
        self._name = name
        self._timing = Timing(timeout_s, self.clock.read, self.clock.sleep)
        self.others: Sequence[Node] | None = None
        """The other nodes of the cluster, which say where their files end; None: they do not answer."""
        self.open_log()

    def open_log(self) -> None:
        """Begin with a new log, as each take does."""
        self.log = AgentLog(
            self._stream, SUBJECT, AGENT, self._name, self._confirm, self._timing, self.snapshots
        )
        self.log.on_damage = self.damaged.append
        self.log.is_newest = self._is_newest

    def _is_newest(self, copy: Copy, idle: Collection[bytes]) -> bool:
        if self.others is None:
            return False
        return all(has_all(copy, idle, position_of(other.copy)) for other in self.others)

    def _confirm(self) -> None:
        if not self.owns:
            raise NotOwned

    def take(self, *, shortens: bool = True) -> bool:
        self.open_log()
        return self.log.take(self.copy, shortens=shortens)

    def commit(self, *names: str) -> None:
        """Append and apply a commit. Without an error it is acknowledged."""
        before = self.copy.head if self.copy.head.number else self.log.head
        head = self.log.append(commit(*names), before)
        self.copy.apply([commit(*names)], head, 0, [self.log.mark])


class NotOwned(Exception):
    """This node does not own the agent."""
