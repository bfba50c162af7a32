"""The agents of this node: which it owns, and their logs."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ebbtide.cluster.key_documents import read_keys, replace_keys
from ebbtide.cluster.log import (
    AgentLog,
    Copy,
    Kind,
    NoAnswer,
    Observer,
    Refused,
    Stream,
    Timing,
    erase_before,
    not_enough_servers,
)
from ebbtide.cluster.membership import Documents, Membership
from ebbtide.cluster.names import Names
from ebbtide.cluster.slots import slot_of
from ebbtide.cluster.snapshots import Snapshots
from ebbtide.errors import EbbtideError, Unavailable, agent_moving
from ebbtide.ids import AgentId
from ebbtide.metrics import ClusterMetrics
from ebbtide.store.chain import ChainHead
from ebbtide.store.directory.data_directory import directory_name
from ebbtide.store.journal import Position
from ebbtide.store.lmdb.lmdb_store import without_keys
from ebbtide.store.lmdb.replica import Replica
from ebbtide.telemetry import get_log

if TYPE_CHECKING:
    from ebbtide.store.encryption.seal import Seal

T = TypeVar("T")

CLOSE_S = 1.0
"""How long a stop waits for records that are being erased: the next take erases what is left."""

RETRY_S = 1.0
"""Pause before records are erased again that the log servers did not erase."""


def answered(ask: Callable[[], T], timing: Timing | None = None) -> T:
    """Return what the log servers answer, after attempts. Raise NOT_ENOUGH_LOG_SERVERS."""
    for _ in (timing or Timing()).attempts():
        try:
            return ask()
        except (NoAnswer, Refused):
            continue
    raise not_enough_servers()


def has_all(copy: Copy, idle: Collection[bytes], other: Position) -> bool:
    """Return whether a copy has every commit of another file: its last session, and as much of it.

    `idle` are marks of sessions without a commit.
    """
    if other.number == 0 or other.mark in idle:
        return True
    marks = copy.marks
    return other.mark in marks and (other.mark != marks[-1] or other.number <= copy.head.number)


def has_lost(stream: Stream, subject: str, head: ChainHead) -> bool:
    """Return whether a log begins after a record, because it was rewritten, or ends with a deletion after it."""
    first = stream.after(subject, 0, 1)
    last = stream.last(subject) if first else None
    if last is None or last.sequence <= head.number:
        return False
    # A damaged server may lack the first records, too: only a rewrite makes a copy obsolete.
    is_rewritten = first[0].kind in (Kind.REBASE, Kind.REBASE_PART, Kind.GONE) and not first[0].is_repair
    return (is_rewritten and first[0].sequence > head.number) or last.kind == Kind.GONE


def is_beyond(stream: Stream, subject: str, head: ChainHead) -> bool:
    """Return whether a copy has a record after the last one of its log: the log may have lost it on every server."""
    last = stream.last(subject)
    return head.number > (0 if last is None else last.sequence)


class Ownership:
    """Takes agents from the log, for the data directory of this node."""

    def __init__(
        self,
        stream: Stream,
        documents: Documents,
        membership: Membership,
        names: Names,
        *,
        author: str,
        append_timeout_s: float,
        map_bytes: int,
        max_map_bytes: int,
        metrics: ClusterMetrics | None = None,
        snapshots: Snapshots | None = None,
    ) -> None:
        self._stream = stream
        self._documents = documents
        self._membership = membership
        self._names = names
        self._author = author
        self._timing = Timing(append_timeout_s)
        self._map_bytes = map_bytes
        self._max_map_bytes = max_map_bytes
        self._logs: dict[str, AgentLog] = {}
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._snapshots = snapshots
        self._eraser = Eraser(stream, snapshots)
        self.seal_of: Callable[[str, str], Seal] = lambda _, fingerprint: without_keys(fingerprint)
        """Returns the seal of the agent in a directory that has a key with a fingerprint; raises without this key."""
        self.confirm_master_key: Callable[[], None] = lambda: None
        """Raises an error if the nodes of the cluster have another master key than this one."""
        self.damaged: set[str] = set()
        """The log servers that lacked records of an agent when they led its log."""
        self._observer = LogMetrics(metrics)
        self.positions: Callable[[str], dict[str, Position | None]] = lambda agent_id: {"": None}
        """Returns where the file of an agent ends on each other node; None: that node did not answer."""

    def close(self) -> None:
        """Stop erasing in the background; the next take of an agent continues. Idempotent."""
        self._eraser.close()

    def owns(self, directory: str) -> bool:
        """Return whether this node owns the agent in a directory now, and is not about to give it away."""
        return self._membership.accepts(slot_of(directory, self._names.slot_count))

    def refusal(self) -> EbbtideError:
        """Return AGENT_MOVING if this node has a lease or has lost its name, else NOT_ENOUGH_LOG_SERVERS."""
        if self._membership.is_fenced:
            return Unavailable(
                "Another process uses the name of this node of the cluster. Send the request to another node.",
                reason="AGENT_MOVING",
                retry_after_s=1.0,
            )
        return agent_moving() if self._membership.has_lease else not_enough_servers()

    def take(self, agent_id: str, path: Path, *, shortens: bool = False) -> bool:
        """Complete the closed file in an agent's directory from the log. Return whether the agent exists."""
        log = self._new_log(agent_id)
        with self._locks[path.name], self._observer.metrics.take_s.time():
            exists = log.take(self._replica(path), shortens=shortens)
        self._logs[agent_id] = log
        return exists

    def copy(self, agent_id: str, path: Path) -> bool:
        """Complete the closed file of an agent of another node from the log. Return whether the agent exists."""
        with self._locks[path.name]:
            exists = self._new_log(agent_id).fold(self._replica(path))
        self._observer.metrics.copies.inc()
        return exists

    def _replica(self, path: Path) -> Replica:
        return Replica(
            path,
            map_bytes=self._map_bytes,
            max_map_bytes=self._max_map_bytes,
            seal_of=partial(self.seal_of, path.name),
        )

    def log(self, agent_id: str) -> AgentLog:
        """Return the log of an agent, as the latest `take` left it."""
        return self._logs[agent_id]

    def discard(self, directory: str, path: Path, *, only_obsolete: bool) -> bool:
        """Delete the closed file of an agent of another node, or only one that is no part of its log any more.

        Return whether it was deleted. May raise NoAnswer.
        """
        slot = slot_of(directory, self._names.slot_count)
        with self._locks[directory]:
            if not self._membership.is_settled or self._membership.owns(slot):
                return False
            copy = Replica(path, map_bytes=self._map_bytes, max_map_bytes=self._max_map_bytes)
            subject = self._names.subject_of(directory)
            if only_obsolete and not has_lost(self._stream, subject, copy.head):
                return False
            if is_beyond(self._stream, subject, copy.head):
                return False
            copy.remove()
            return True

    def position(self, path: Path) -> Position:
        """Return where the closed file of an agent of another node ends. Raise AGENT_MOVING if it may be open."""
        slot = slot_of(path.name, self._names.slot_count)
        if self._membership.owns(slot):
            raise agent_moving()  # now, because its take may hold the lock, and wait for the node that asks
        with self._locks[path.name]:
            if not self._membership.is_settled or self._membership.owns(slot):
                raise agent_moving()
            copy = Replica(path, map_bytes=self._map_bytes, max_map_bytes=self._max_map_bytes)
            return Position(copy.head.number, (copy.marks or (b"",))[-1])

    def _is_newest(self, agent_id: str, copy: Copy, idle: Collection[bytes]) -> bool:
        """Return whether no other node has a commit that a copy lacks. Every node must have answered."""
        positions = self.positions(agent_id)
        silent = sorted(node for node, position in positions.items() if position is None)
        later = sorted(node for node, other in positions.items() if other and not has_all(copy, idle, other))
        if silent or later:
            get_log("cluster").error(
                "a log that lacks records is not repaired", agent_id=agent_id, later=later, silent=silent
            )
        return not silent and not later

    def data_keys(self, directory: str) -> bytes | None:
        """Return the wrapped data keys of an encrypted agent; None without any."""
        return answered(lambda: read_keys(self._documents, self._names, directory))

    def put_data_keys(self, agent_id: str, content: bytes | None) -> None:
        """Replace the wrapped data keys of an agent; None erases them.

        Raise AGENT_MOVING if this node does not own the agent, and CLUSTER_UNUSABLE if the nodes have another master
        key now.
        """
        directory = directory_name(AgentId(agent_id))

        def confirm() -> None:
            if content is not None:
                self.confirm_master_key()
                self._logs[agent_id].confirm()

        answered(lambda: replace_keys(self._documents, self._names, directory, content, confirm))

    def _note_damage(self, server: str) -> None:
        """Warn once about a log server that lacks records."""
        if not server:
            # It may only have been behind.
            get_log("cluster").info("a log server that does not lead lacked records; the leader has them")
        elif server not in self.damaged:
            self.damaged.add(server)
            get_log("cluster").warning(
                "a log server lacks records that another one has; empty its store", server=server
            )

    def _new_log(self, agent_id: str) -> AgentLog:
        directory = directory_name(AgentId(agent_id))
        slot, lease = slot_of(directory, self._names.slot_count), self._membership.lease

        def confirm() -> None:
            # The same lease without a gap, compared last: otherwise another node may have owned the agent in between.
            if not self._membership.owns(slot) or self._membership.lease != lease:
                raise self.refusal()

        subject = self._names.subject_of(directory)
        log = AgentLog(self._stream, subject, agent_id, self._author, confirm, self._timing, self._snapshots)
        log.erase_later, log.observer = self._eraser.add, self._observer
        log.on_damage = self._note_damage
        log.is_newest = partial(self._is_newest, agent_id)
        return log


class LogMetrics(Observer):
    """Counts appends."""

    def __init__(self, metrics: ClusterMetrics | None) -> None:
        self.metrics = metrics or ClusterMetrics()

    def appended(self, kind: str, size: int, took_s: float) -> None:
        """Count a record that was appended."""
        self.metrics.appended(kind, size, took_s)

    def in_doubt(self, agent_id: str) -> None:
        """Count and log an append in doubt."""
        self.metrics.in_doubt.inc()
        get_log("cluster").warning("append in doubt", agent_id=agent_id)

    def repaired(self, agent_id: str, file_head: int, log_head: int) -> None:
        """Count and log a repair."""
        self.metrics.repaired_logs.inc()
        get_log("cluster").warning(
            "a log that lacked records was repaired", agent_id=agent_id, file=file_head, log=log_head
        )


class Eraser:
    """Erases records and objects in the background: overwriting a record takes the log servers some milliseconds."""

    def __init__(self, stream: Stream, snapshots: Snapshots | None = None) -> None:
        self._stream = stream
        self._snapshots = snapshots
        self._due: dict[str, int] = {}
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="eraser", daemon=True)
        self._thread.start()

    def add(self, subject: str, start: int) -> None:
        """Erase the records and objects of a subject before a sequence."""
        with self._changed:
            self._due[subject] = max(start, self._due.get(subject, 0))
            self._changed.notify()

    def close(self) -> None:
        """End after the records in progress, or after a moment. Idempotent."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join(CLOSE_S)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._due or self._is_closed)
                if self._is_closed:
                    return
                subject, start = next(iter(self._due.items()))
            try:
                is_done = erase_before(self._stream, self._snapshots, subject, start)
            except (NoAnswer, Unavailable):
                is_done = False
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closed, RETRY_S)
            with self._changed:
                newest = self._due.pop(subject)
                if newest != start or not is_done:
                    self._due[subject] = newest  # at the end: subjects take turns
