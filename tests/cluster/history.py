"""The history of the clients of a cluster, and its comparison with the logs and the files."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ebbtide.cluster.jetstream import Servers
from ebbtide.cluster.log import NONE_BEFORE, Kind, Record, hash_of
from ebbtide.store.chain import ChainHead
from ebbtide.store.journal import SealOf
from ebbtide.store.lmdb.replica import Replica
from tests.support.replicas import contents_at
from tests.support.waiting import wait_until

RECORDS_PER_READ = 500


@dataclass
class Promises:
    """One agent: a list that clients append to, and read. Safe on every thread."""

    agent: str
    sent: set[str] = field(default_factory=set)
    acknowledged: set[str] = field(default_factory=set)
    longest: list[str] = field(default_factory=list)
    """The longest list that was read."""
    reads: int = 0
    stale: list[str] = field(default_factory=list)
    """Reads that lacked what was acknowledged before they began, or that are no prefix of a longer one."""
    twice: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, text: str) -> None:
        """Note a text before its first request."""
        with self._lock:
            self.sent.add(text)

    def acknowledge(self, text: str) -> None:
        """Note a text whose request was answered with success."""
        with self._lock:
            self.acknowledged.add(text)

    def begin_read(self) -> frozenset[str]:
        """Return what a read that begins now must contain."""
        with self._lock:
            return frozenset(self.acknowledged)

    def end_read(self, required: frozenset[str], found: list[str], place: str) -> None:
        """Compare a read with what it must contain, and with every other read."""
        with self._lock:
            self.reads += 1
            repeated = [text for text, count in Counter(found).items() if count > 1]
            if repeated:
                self.twice.append(f"{place}: {self.agent}: {repeated[:3]}")
            missing = required - set(found)
            if missing:
                self.stale.append(f"{place}: {self.agent} lacks {len(missing)}: {sorted(missing)[:3]}")
            shorter, longer = sorted((found, self.longest), key=len)
            if longer[: len(shorter)] != shorter:
                self.stale.append(
                    f"{place}: {self.agent}: a read of {len(found)} is no prefix of another one"
                )
            self.longest = longer

    def lost(self, final: Sequence[str]) -> list[str]:
        """Return what was acknowledged and is not in the final list."""
        return sorted(self.acknowledged - set(final))

    def invented(self, final: Sequence[str]) -> list[str]:
        """Return what is in the final list and was never sent."""
        return sorted(set(final) - self.sent)


@dataclass
class Waits:
    """How long requests had no answer, in seconds, with what they waited for."""

    all: list[tuple[float, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, begun_s: float, what: str) -> None:
        """Note the end of a request that began at a time of the monotonic clock."""
        with self._lock:
            self.all.append((time.monotonic() - begun_s, what))

    def longest(self, count: int) -> list[str]:
        """Return the longest ones."""
        return [f"{wait:.1f} s ({what})" for wait, what in sorted(self.all, reverse=True)[:count]]


def records_of(servers: Servers, subject: str) -> list[Record]:
    """Return the log of an agent. Fail if its hash chain is broken.

    A rewrite begins a new chain. Records before it may be missing, as they are erased; then they are left out.
    """
    found: list[Record] = []
    head, broken, rebase, is_rebase = ChainHead(), "", NONE_BEFORE, False

    def add(record: Record) -> None:
        nonlocal head, broken, rebase, is_rebase
        # A rewrite has a chain of its own, which takes the place of the other one when it is complete.
        rebase, was_rebase = rebase if is_rebase else NONE_BEFORE, is_rebase
        is_rebase = record.kind in (Kind.REBASE, Kind.REBASE_PART)
        begins = record.kind == Kind.GONE or (is_rebase and not was_rebase)
        if begins and broken:
            found.clear()
            broken = ""
        before = rebase if is_rebase else NONE_BEFORE if begins else head.hash
        if record.hash != hash_of(before, record.kind, record.body):
            broken = broken or f"{subject}: the record {record.sequence} does not follow {head.number}"
        is_part, rebase = record.kind == Kind.REBASE_PART, record.hash
        head = ChainHead(record.sequence, head.hash) if is_part else record.head
        is_rebase = is_part
        found.append(record)

    def is_complete() -> bool:
        last = servers.last(subject)
        while batch := servers.after(subject, head.number, RECORDS_PER_READ):
            for record in batch:
                add(record)
        # A read may be stale.
        return last is None or head.number >= last.sequence

    wait_until(is_complete, 30, 0.2)
    assert not broken, broken
    return found


def faults_of_authors(records: Sequence[Record]) -> list[str]:
    """Return the records of a process that was not the latest to take the agent."""
    found, owner = list[str](), ""
    for record in records:
        if record.kind == Kind.OWN or not owner:
            owner = record.author
        elif record.author != owner:
            found.append(f"{record.sequence} of {record.author}, but {owner} had taken the agent")
    return found


def faults_of_files(
    records: Sequence[Record], files: dict[str, Path], owner: str, folder: Path, seal_of: SealOf
) -> list[str]:
    """Return what differs between the file of each node and the fold of the log up to the head of that file.

    The owner's file must end with the last record, or, as the nodes were killed, with the one before it.
    """
    copies = {
        name: Replica(path, map_bytes=1 << 20, max_map_bytes=1 << 34)
        for name, path in files.items()
        if (path / "data.mdb").exists()
    }
    heads = {name: copy.head for name, copy in copies.items()}
    found: list[str] = []
    numbers = [0, *(record.sequence for record in records)]
    own = heads.get(owner, ChainHead()).number
    behind = sum(number > own for number in numbers)
    if behind > 1:
        found.append(f"the owner {owner} is {behind} records behind its log")
    fold, done = Replica(folder, map_bytes=1 << 24, max_map_bytes=1 << 34, seal_of=seal_of), 0
    for name in sorted(heads, key=lambda one: heads[one].number):
        head = heads[name]
        if head.number == 0 or head.number < records[0].sequence:
            # Without a file, or with one from before a rewrite of the log.
            continue
        if head.number not in numbers:
            found.append(f"{name} has the record {head.number}, which the log lacks")
            continue
        end = numbers.index(head.number)
        apply(fold, records[done:end])
        done = max(done, end)
        if records[end - 1].hash != head.hash:
            found.append(f"{name} has another record {head.number} than the log")
        elif end == done:
            mine, theirs = contents_at(folder), contents_at(files[name])
            found += [
                f"{name}: the table {tree} differs from the fold"
                for tree in mine
                if mine[tree] != theirs[tree]
            ]
    return found


def apply(fold: Replica, records: Sequence[Record]) -> None:
    """Apply records to a file."""
    parts, entries = list[bytes](), list[bytes]()
    for record in records:
        if record.kind in (Kind.PART, Kind.REBASE_PART):
            parts.append(record.body)
            continue
        if record.kind in (Kind.DELTA, Kind.REBASE):
            count = int.from_bytes(record.body[:4])
            entries.append(b"".join((*parts[len(parts) - count :], record.body[4:])))
        elif record.kind == Kind.GONE:
            entries.clear()
            fold.remove()
        parts = []
    if records and records[-1].kind != Kind.GONE:
        fold.apply(entries, records[-1].head)
