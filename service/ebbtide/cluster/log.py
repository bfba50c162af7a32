"""The log of one agent: how its owner appends to it, and how a node takes the agent. No network code.

Five rules:

1. A commit is appended before it is made. So every acknowledged write is in the log and in the owner's file.
2. Each append names the sequence of the record before it, and is refused if that is not the last one. This is the
   fence: a node that was deposed cannot write, however late it wakes up.
3. No read is trusted: it may be stale. An agent is taken when an empty `own` record was appended directly after the
   records that were read. That append is fence and read barrier in one.
4. Each record has the hash of all records before it, back to the latest `rebase` or `gone`, which need none of them. A
   copy that is no prefix of the log, and a log that has lost records, are detected. Then each log server leads in turn,
   and the records are read there: one server with a damaged disk does not stop an agent.
5. If it is not known whether a record was appended, the agent is closed and taken again. There is no third path.

A log that has lost its last records on every server is repaired by the take of a node whose file has them, if nothing
acknowledged can be lost by that (`_repair`).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeVar

from ebbtide.cluster.snapshots import REFERENCE, Snapshots, unavailable
from ebbtide.errors import Corrupted, EbbtideError, Precondition, Unavailable, agent_moving
from ebbtide.store.chain import NONE_BEFORE, ChainHead
from ebbtide.store.codec import from_u32, u32
from ebbtide.store.journal import Rewritten
from ebbtide.telemetry import get_log

T = TypeVar("T")

MAX_BODY_BYTES: Final = 512 << 10
"""A longer body is split into records of the kind `part`."""

RECORDS_PER_READ: Final = 1000
"""Most records that are read, and applied in one transaction, at a time."""

RETRY_S: Final = (0.05, 0.5)
"""First and longest pause before the same record is appended again, or the log is read again."""

LONG_LOG_RECORDS: Final = 1000
"""A log with fewer records is not replaced by the content of its file."""

VERY_LONG: Final = 4
"""How many times as long as a long log one is that is replaced also while requests wait for its agent."""

RECORD_BYTES: Final = 1000
"""Mean size of a record. A log is replaced when it has about half the size of the file."""

STALE_READ_S: Final = 3.0
"""How long a log that seems to lack records is read again at the server that leads it."""

REPAIR: Final = "repair"
"""Ends the author of a rebase that repairs a log: files that are not part of it are kept."""

MAX_TAKES: Final = 9
"""How often a take that finds a damaged log begins again: each of three servers may lead, and be elected meanwhile."""


class Kind(StrEnum):
    """The kinds of records."""

    DELTA = "delta"
    """A commit."""
    PART = "part"
    """The beginning of the body of a later commit. Without that record it does not count."""
    OWN = "own"
    """A node has taken the agent. Without a body."""
    REBASE = "rebase"
    """The whole content of a store, which replaces all before it."""
    REBASE_PART = "rebase_part"
    """The beginning of the body of a later rebase."""
    GONE = "gone"
    """The agent was deleted. Without a body."""


class Record(NamedTuple):
    """A record of the log of an agent."""

    kind: str
    hash: bytes
    author: str
    """The node and its process that appended it."""
    agent_id: str
    body: bytes
    sequence: int = 0
    """Its place in the stream; 0 before it is appended."""

    @property
    def head(self) -> ChainHead:
        """The head of a copy that ends with this record."""
        return ChainHead(self.sequence, self.hash)

    @property
    def mark(self) -> bytes:
        """The mark of the session that begins with this record: a take, a rebase, or the creation of the agent."""
        return mark_of(self.hash, self.author)

    @property
    def is_repair(self) -> bool:
        """Whether this record is a rebase, or a part of one, that repairs a log."""
        return self.kind in (Kind.REBASE, Kind.REBASE_PART) and self.author.rpartition("/")[2] == REPAIR


class Refused(Exception):
    """The expected record is not the last one of the agent."""


class NoAnswer(Exception):
    """It is not known whether a record was appended, or nothing could be read."""


class Deposed(Exception):
    """Another node has appended a record."""


class Lacking(Exception):
    """The server that leads the log seems to lack records of it."""

    def __init__(self, what: str, *, has_file: bool = False) -> None:
        """`has_file`: the agent's file on this node has the records."""
        super().__init__(what)
        self.error = Corrupted(f"The log of the agent {what}.", reason="LOG_BEHIND")
        self.has_file = has_file


class Stream(Protocol):
    """The records of many agents on the log servers. Calls block. Reads may be stale; each may raise NoAnswer."""

    def append(self, subject: str, record: Record, expected: int) -> int:
        """Append a record after the one with the sequence `expected`; 0: as the first. Return its sequence.

        Raise Refused if another record is the last one, NoAnswer if the outcome is not known.
        """
        ...

    def after(self, subject: str, sequence: int, most: int) -> Sequence[Record]:
        """Return the next records of an agent after a sequence."""
        ...

    def at(self, subject: str, sequence: int) -> Record | None:
        """Return the record of an agent at a sequence."""
        ...

    def last(self, subject: str) -> Record | None:
        """Return the last record of an agent."""
        ...

    def count(self, subject: str) -> int:
        """Return how many records an agent has."""
        ...

    def erase_before(self, subject: str, sequence: int) -> bool:
        """Overwrite and delete some records of an agent before a sequence. Return whether none is left."""
        ...

    def ends(self, subject: str) -> tuple[int, int]:
        """Return the sequence of the last record of an agent at the leader, and the newest one of several servers.

        0: no record. Not certainly every server is queried.
        """
        ...

    def leader(self, subject: str) -> str:
        """Return the name of the server that leads the log."""
        ...

    def lead_by_another(self, subject: str, avoided: Collection[str]) -> str:
        """Let a server lead that is not avoided. Return the name of the new leader; empty: there is no such server."""
        ...


class Copy(Protocol):
    """The file of an agent on this node, closed."""

    @property
    def head(self) -> ChainHead:
        """The last record that the file has; number 0 without a file."""
        ...

    @property
    def start(self) -> int:
        """The first record of the latest rebase that the file has; 0 without one."""
        ...

    @property
    def marks(self) -> tuple[bytes, ...]:
        """The marks of the latest sessions that the file has, the last one at the end."""
        ...

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        ...

    def content(self) -> bytes:
        """Return the whole content of the file, as the body of a rebase."""
        ...

    def apply(
        self, entries: Sequence[bytes], head: ChainHead, start: int = 0, marks: Sequence[bytes] = ()
    ) -> None:
        """Apply commits and write the new head, durably and together. Create the file if there is none.

        `start` is the first record of a rebase among them; 0: there is none. `marks` are those of sessions that began.
        Raise DATA_KEY_MISSING for a commit of which the data key was destroyed.
        """
        ...

    def put_aside(self) -> None:
        """Rename the file: it is no prefix of the log."""
        ...

    def remove(self, *, keeps_aside: bool = False) -> None:
        """Delete the file, and one that was put aside: the agent was deleted, or a rebase replaces its content."""
        ...


def erase_before(stream: Stream, snapshots: Snapshots | None, subject: str, start: int) -> bool:
    """Erase objects and some records of an agent before the rebase or deletion `start`. Return whether none is left.

    The objects first: as long as one is left, so are records. May raise NoAnswer and SNAPSHOTS_UNAVAILABLE.
    """
    if snapshots is not None:
        record = stream.at(subject, start)
        if record is None:
            first = stream.after(subject, 0, 1)
            if first and first[0].sequence > start:
                return True  # a later rebase has erased it
            raise NoAnswer
        if record.kind in (Kind.REBASE, Kind.REBASE_PART, Kind.GONE):
            kept = record.body[4:] if record.kind == Kind.REBASE else b""
            snapshots.erase_before(subject, start, kept)
    return stream.erase_before(subject, start)


def hash_of(before: bytes, kind: str, body: bytes) -> bytes:
    """Return the hash of a record: SHA-256 of the hash before it, its kind and its body."""
    return hashlib.sha256(before + kind.encode() + body).digest()


def mark_of(hash_: bytes, author: str) -> bytes:
    """Return the mark of the session that an author began with a record. Two nodes may append equal records."""
    return hashlib.sha256(hash_ + author.encode()).digest()


class Observer:
    """Is notified of the appends of many agents, on any thread. This one does nothing."""

    def appended(self, kind: str, size: int, took_s: float) -> None:
        """Take note of a record of `size` bytes that was appended."""

    def in_doubt(self, agent_id: str) -> None:
        """Take note that it is not known whether a record was appended."""

    def repaired(self, agent_id: str, file_head: int, log_head: int) -> None:
        """Take note that a log was repaired, and with which records the file and the log ended."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The clock and the time-out of appends, in seconds."""

    timeout_s: float = 20.0
    monotonic_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def attempts(self, timeout_s: float | None = None) -> Iterator[None]:
        """Yield until a time-out, with growing pauses; without one given until that of appends."""
        pause, longest = RETRY_S
        deadline = self.monotonic_s() + (self.timeout_s if timeout_s is None else timeout_s)
        while True:
            yield
            if self.monotonic_s() + pause > deadline:
                return
            self.sleep(pause)
            pause = min(2 * pause, longest)


class AgentLog:
    """The log of one agent, as one node uses it: the journal of its store."""

    def __init__(
        self,
        stream: Stream,
        subject: str,
        agent_id: str,
        author: str,
        confirm: Callable[[], None] = lambda: None,
        timing: Timing | None = None,
        snapshots: Snapshots | None = None,
    ) -> None:
        """`confirm` raises an error unless this node owns the agent now. Large contents are in `snapshots`, if any."""
        self.agent_id = agent_id
        self.head = ChainHead()
        """The last record that this node has read or appended; a new store continues there."""
        self.mark = b""
        """The mark of the present session; empty until the agent is taken or created."""
        self.is_newest: Callable[[Copy, Collection[bytes]], bool] = lambda copy, idle: False
        """Returns whether no other file of the agent has a commit that a copy lacks. `idle` are marks of sessions
        without a commit."""
        self.on_long: Callable[[], None] = lambda: None
        """Called when the log has become long: when idle, the agent should be closed, taken again and shortened."""
        self.erase_later: Callable[[str, int], None] = lambda subject, start: None
        """Called when the records of a subject before a sequence are to be erased, which takes a while."""
        self.on_damage: Callable[[str], None] = lambda server: None
        """Called with each log server that lacks records that another one has; empty: one that does not lead."""
        self.observer = Observer()
        self._appended = 0
        self._long = LONG_LOG_RECORDS
        self._stream = stream
        self._subject = subject
        self._author = author
        self._timing = timing or Timing()
        self._confirm = confirm
        self._snapshots = snapshots

    def confirm(self) -> None:
        """Raise AGENT_MOVING unless this node owns the agent now."""
        self._confirm()

    @property
    def is_long(self) -> bool:
        """Whether the log should be replaced by the content of the file when the agent is idle."""
        return self._appended >= self._long

    @property
    def is_very_long(self) -> bool:
        """Whether the log should be replaced now."""
        return self._appended >= VERY_LONG * self._long

    # --- appending ---------------------------------------------------------------------------------

    def append(self, entry: bytes, head: ChainHead) -> ChainHead:
        """Append a commit after the record `head`. Return its head.

        Raise AGENT_MOVING if another node has taken the agent, NOT_ENOUGH_LOG_SERVERS if the outcome is not known.
        """
        self._confirm()
        self._appended += 1
        if self._appended == self._long:
            self.on_long()
        appended = self._append_all(Kind.PART, Kind.DELTA, entry, head)[0]
        self.mark = self.mark or mark_of(appended.hash, self._author)
        return appended

    def placed(self, content: bytes) -> bytes:
        """Store the whole content of a store in S3 if it is large. Return the entry for `rewrite`.

        Nothing is appended. Raise AGENT_MOVING or SNAPSHOTS_UNAVAILABLE.
        """
        self._confirm()
        if self._snapshots is None or len(content) <= MAX_BODY_BYTES:
            return content
        return self._snapshots.put(self._subject, self.head.number, content)

    def rewrite(self, entry: bytes) -> Rewritten:
        """Append what `placed` has returned for a whole store. It replaces all before. Raises as `append`."""
        self._confirm()
        rewritten = Rewritten(*self._append_all(Kind.REBASE_PART, Kind.REBASE, entry, self.head))
        self.mark = mark_of(rewritten.head.hash, self._author)
        return rewritten

    def append_gone(self) -> None:
        """Append that the agent was deleted, and erase all before. Raises as `append`."""
        self._confirm()
        head, _ = self._append_all(Kind.PART, Kind.GONE, b"", self.head)
        self.mark = b""
        self.erase_before(head.number)

    def erase_before(self, start: int) -> None:
        """Overwrite and delete every record and object before the rebase or deletion `start`. Repeatable.

        Raise NOT_ENOUGH_LOG_SERVERS or SNAPSHOTS_UNAVAILABLE.
        """
        while not self._read(partial(erase_before, self._stream, self._snapshots, self._subject, start)):
            pass

    def _append_all(self, part: Kind, kind: Kind, body: bytes, head: ChainHead) -> tuple[ChainHead, int]:
        """Append a body in records of limited size. Return the head, and the sequence of the first record."""
        start = 0
        if kind in (Kind.REBASE, Kind.GONE):
            head = ChainHead(head.number)  # a new chain
        try:
            pieces = [body[at : at + MAX_BODY_BYTES] for at in range(0, len(body), MAX_BODY_BYTES)]
            for piece in pieces[:-1]:
                head = self._append(part, piece, head)
                start = start or head.number
            # Parts of an append that failed may come before: so the last record says how many are its own.
            last = u32(len(pieces) - 1) + pieces[-1] if pieces else b""
            head = self._append(kind, last, head)
            return head, start or head.number
        except Deposed:
            raise agent_moving() from None

    def _append(self, kind: Kind, body: bytes, head: ChainHead) -> ChainHead:
        """Append one record. Raise Deposed, or NOT_ENOUGH_LOG_SERVERS if the outcome is not known."""
        begun_s = self._timing.monotonic_s()
        try:
            appended = self._attempt_append(kind, body, head)
        except Unavailable:
            self.observer.in_doubt(self.agent_id)
            raise
        self.observer.appended(kind, len(body), self._timing.monotonic_s() - begun_s)
        return appended

    def _attempt_append(self, kind: Kind, body: bytes, head: ChainHead) -> ChainHead:
        record = Record(kind, hash_of(head.hash, kind, body), self._author, self.agent_id, body)
        # The same record with the same expected sequence: at most one of the attempts can succeed.
        for _ in self._timing.attempts():
            try:
                sequence = self._stream.append(self._subject, record, head.number)
                self.head = ChainHead(sequence, record.hash)
                return self.head
            except Refused:
                following = self._following(head)
                if following is None:
                    continue
                if (following.hash, following.author) == (record.hash, record.author):
                    self.head = following.head
                    return self.head
                raise Deposed from None
            except NoAnswer:
                continue
        raise not_enough_servers()

    def _following(self, head: ChainHead) -> Record | None:
        """Return the record directly after `head`; None if it cannot be read yet."""
        try:
            records = self._stream.after(self._subject, head.number, 1)
        except NoAnswer:
            return None
        return records[0] if records else None

    # --- taking ------------------------------------------------------------------------------------

    def take(self, copy: Copy, *, shortens: bool = True) -> bool:
        """Complete the copy from the log and become the agent's owner. Return whether the agent exists.

        `shortens` replaces a long log by the content of the copy; a very long one is always replaced.

        A log that lacks records of the copy on every server is repaired, if nothing acknowledged can be lost by that.
        Raise AGENT_MOVING if this node does not own the agent, LOG_BEHIND if the log lacks records that the copy has
        or was damaged, on every server, or refers to a lost object, NOT_ENOUGH_LOG_SERVERS, and SNAPSHOTS_UNAVAILABLE.
        """
        damaged, leader = list[str](), ""
        for _ in range(MAX_TAKES):
            try:
                exists = self._take(copy, shortens)
            except Lacking as lacking:
                self._confirm()
                current = self._read(partial(self._stream.leader, self._subject))
                if current == leader:
                    # It led before the log was read and after it.
                    damaged.append(leader)
                    current = self._read(partial(self._stream.lead_by_another, self._subject, damaged))
                    if not current:
                        self._give_up(copy, lacking)
                        damaged.clear()
                leader = current
                continue
            for server in damaged:
                self.on_damage(server)
            return exists
        raise not_enough_servers()

    def fold(self, copy: Copy) -> bool:
        """Complete a copy from the log without becoming the owner. Return whether the agent exists.

        Raise LOG_BEHIND if records or an object are missing, NOT_ENOUGH_LOG_SERVERS, and SNAPSHOTS_UNAVAILABLE.
        """
        try:
            return self._replay(copy, copy.head)[2]
        except Lacking as lacking:
            raise lacking.error from None

    def _give_up(self, copy: Copy, lacking: Lacking) -> None:
        """Repair the log, or raise LOG_BEHIND: no server has the records.

        A file that the log contradicts is put aside instead, also one that is not part of a log that was repaired.
        """
        if not lacking.has_file:
            raise lacking.error from None
        log = self._compared(copy.marks)
        if log.is_beginning and log.last_commit < copy.head.number:
            if not self.is_newest(copy, log.idle):
                raise lacking.error from None
            self._repair(copy, log.head)
        elif log.was_repaired or log.head.number > copy.head.number:
            self._put_aside(copy)
        else:
            raise lacking.error from None

    def _compared(self, marks: Collection[bytes]) -> Comparison:
        """Compare the whole log with the marks of a file. Raise Lacking's error if it was damaged."""
        chain, log = Chain(ChainHead()), Comparison(marks)
        while records := self._next(chain, is_last=True):
            for record in records:
                if not chain.accepts(record) and record is not records[0]:
                    break  # `_next` reads it again
                chain.add(record)
                if not chain.damaged:
                    log.add(record)
        log.head, log.is_beginning = chain.head, log.is_beginning and not chain.damaged
        return log

    def _repair(self, copy: Copy, end: ChainHead) -> None:
        """Replace a log that ends with `end` by the content of a file that has all of it and more.

        Nothing acknowledged is lost, because

        * a commit is acknowledged when it is in the log and in the file of its owner. No file of another node has a
          commit that this one lacks (`is_newest`), so this file has every acknowledged commit that is left;
        * the log is a beginning of this file: its last session with a commit is one of the file's sessions, by hash and
          author. The hash covers all before it. Within a session each commit follows the one before it. So no commit is
          in the log only, as after another node continued a log without its last records;
        * the append names the last record that was read. If another node has taken the agent, or a server has
          more records after all, it is refused. So one of two nodes repairs a log.

        Every server led the log before, or was not there. Sequences may be lower than those of the file afterwards: its
        head becomes that of the rebase.
        """
        self._confirm()
        before = copy.head.number
        rewritten, mark = self.repaired_by(copy.content(), end)
        copy.apply([], rewritten.head, rewritten.start, [mark])
        self.observer.repaired(self.agent_id, before, end.number)

    def repaired_by(self, content: bytes, end: ChainHead) -> tuple[Rewritten, bytes]:
        """Append a content after the last record `end`, as a repair. Return its records and its mark.

        All objects that were there before are deleted, with any name: the records that the names refer to may be lost.
        None of them gets a reference any more, because the append of the repair was not refused.
        """
        author = f"{self._author}/{REPAIR}"
        objects = self._snapshots
        log = AgentLog(
            self._stream, self._subject, self.agent_id, author, self._confirm, self._timing, objects
        )
        log.head, log.observer = end, self.observer
        names = [] if objects is None else objects.names(self._subject)
        entry = log.placed(content)
        rewritten = log.rewrite(entry)
        if objects is not None:
            objects.delete(self._subject, names, kept=entry)
        return rewritten, log.mark

    def _take(self, copy: Copy, shortens: bool) -> bool:
        """Take the agent from the server that leads its log. Raise Lacking if records are missing there."""
        self._confirm()
        head = self._common_head(copy)
        for _ in self._timing.attempts():
            whole, head, exists = self._replay(copy, head)
            self.head = head
            newest = self._newest(head)
            if not exists:
                if newest > head.number:
                    head = whole  # a stale read
                    continue
                self._has_rest(head.number)
                return False
            self._confirm()
            try:
                head = self._append(Kind.OWN, b"", head)
            except Deposed:
                # From there on again: parts may have got their final record.
                head = whole
                continue
            self.mark = mark_of(head.hash, self._author)
            copy.apply([], head, marks=[self.mark])
            has_rest = self._has_rest(copy.start)
            self._measure(copy)
            if not has_rest and (self.is_very_long or (shortens and self.is_long)):
                self._shorten(copy)
            return True
        raise not_enough_servers()

    def _newest(self, head: ChainHead) -> int:
        """Return the newest record that a server reports. Raise Lacking if the leader does not have it.

        A leader that has lost the last record of the agent would let another one take its place.
        """
        for _ in self._timing.attempts(STALE_READ_S):
            at_leader, newest = self._read(partial(self._stream.ends, self._subject))
            if at_leader >= max(newest, head.number):
                return newest
        raise Lacking("lacks its last records")

    def _has_rest(self, start: int) -> bool:
        """Return whether records before a rebase or a deletion are still to be erased, and ask for that.

        Objects are always searched: one may have arrived after its request had timed out.
        """
        first = self._read(partial(self._stream.after, self._subject, 0, 1)) if start else []
        has_rest = bool(first) and first[0].sequence < start
        if has_rest or (start and self._snapshots is not None):
            self.erase_later(self._subject, start)
        return has_rest

    def _measure(self, copy: Copy) -> None:
        self._long = max(LONG_LOG_RECORDS, copy.size // (2 * RECORD_BYTES))
        self._appended = self._read(partial(self._stream.count, self._subject))

    def _shorten(self, copy: Copy) -> None:
        """Replace the log by the content of the file. The records before are erased later.

        If the content cannot be stored, the log stays as it is until it is twice as long, or the agent is taken again.
        """
        try:
            entry = self.placed(copy.content())
        except Unavailable as error:
            if error.reason != "SNAPSHOTS_UNAVAILABLE":
                raise
            get_log("cluster").warning("a long log was not shortened", agent_id=self.agent_id)
            self._long = 2 * self._appended
            return
        rewritten = self.rewrite(entry)
        copy.apply([], rewritten.head, rewritten.start, [self.mark])
        self.erase_later(self._subject, rewritten.start)
        self._appended = 1

    def _common_head(self, copy: Copy) -> ChainHead:
        """Return the head from which to replay: that of the copy if the log has it, else the beginning."""
        head = copy.head
        if head.number == 0:
            return head
        for _ in self._timing.attempts(STALE_READ_S):
            record = self._read(lambda: self._stream.at(self._subject, head.number))
            if record is not None:
                if record.hash == head.hash:
                    return head
                self._put_aside(copy)
                return ChainHead()
            base = self._base_after(head.number)
            if base is not None:
                if base.is_repair:
                    self._put_aside(copy)
                else:
                    # The log was rewritten; the records that it lost may have been deleted for good.
                    copy.remove()
                return ChainHead()
        raise Lacking("lacks commits that the agent's file on this node has", has_file=True)

    def _base_after(self, sequence: int) -> Record | None:
        """Return the first rebase or deletion after a record."""
        while records := self._read(partial(self._stream.after, self._subject, sequence, RECORDS_PER_READ)):
            for record in records:
                if record.kind in (Kind.REBASE, Kind.GONE):
                    return record
            sequence = records[-1].sequence
        return None

    def _put_aside(self, copy: Copy) -> None:
        get_log("cluster").error("a file is no prefix of its log", agent_id=self.agent_id)
        copy.put_aside()

    def _replay(self, copy: Copy, head: ChainHead) -> tuple[ChainHead, ChainHead, bool]:
        """Apply every record after `head` that can be read. Raise Lacking if records are missing.

        Return the last record that is no part, the last one, and whether the agent exists.
        Records before a rebase or a deletion may be missing, because they are being erased: they are skipped. So are
        commits before it whose data key was destroyed, and a rebase whose object is missing.
        """
        chain, parts, whole, exists = Chain(head), list[bytes](), head, copy.head.number > 0
        failed: EbbtideError | None = None
        while records := self._next(chain, is_last=failed is None):
            entries, base, marks = list[bytes](), 0, list[bytes]()
            for record in records:
                if not chain.accepts(record) and record is not records[0]:
                    break  # `_next` reads it again
                start = chain.add(record)
                if chain.damaged and record.kind != Kind.REBASE_PART:
                    continue
                if record.kind in (Kind.PART, Kind.REBASE_PART):
                    parts.append(record.body)
                    continue
                # A file never ends between a part and the record that makes it count.
                body, parts, whole = _joined(parts, record.body), [], chain.head
                if record.kind in (Kind.GONE, Kind.REBASE):
                    entries, exists, base, failed, marks = [], False, start, None, []
                    if record.kind == Kind.REBASE:
                        body, failed = self._content(body)
                    if failed is None:
                        copy.remove(keeps_aside=record.is_repair)
                if record.kind == Kind.OWN or (not exists and record.kind != Kind.GONE):
                    marks.append(record.mark)
                if record.kind in (Kind.DELTA, Kind.REBASE):
                    entries, exists = [*entries, body], True
            if exists and not chain.damaged and failed is None:
                failed = _apply(copy, entries, whole, base, marks)
        if chain.damaged:
            raise Lacking(f"was damaged: record {chain.damaged} does not follow the one before it")
        if failed is not None:
            raise failed
        return whole, chain.head, exists

    def _content(self, body: bytes) -> tuple[bytes, EbbtideError | None]:
        """Return the content of a rebase, or the error if its object is missing. Raise SNAPSHOTS_UNAVAILABLE."""
        if body[:1] != REFERENCE:
            return body, None
        if self._snapshots is None:
            raise unavailable(
                "The content of the agent is in S3, but this node has cluster.snapshots = nats."
            )
        content = self._snapshots.get(self._subject, body)
        return (b"", content) if isinstance(content, Corrupted) else (content, None)

    def _next(self, chain: Chain, *, is_last: bool) -> Sequence[Record]:
        """Return the next records of any server, or the next one of the leader if the first does not follow.

        Unless `is_last`, the leader must have no other record if another server has none: it may lag.
        """
        number = chain.head.number
        records = self._read(partial(self._stream.after, self._subject, number, RECORDS_PER_READ))
        if chain.accepts(records[0]) if records else is_last:
            return records
        records = self._read(partial(self._stream.after, self._subject, number, 1))
        if records and chain.accepts(records[0]):
            self.on_damage("")
        return records

    def _read(self, read: Callable[[], T]) -> T:
        """Return the result of a read. Raise NOT_ENOUGH_LOG_SERVERS after the time-out."""
        for _ in self._timing.attempts():
            try:
                return read()
            except NoAnswer:
                continue
        raise not_enough_servers()


class Chain:
    """The hashes of a log while it is read.

    A rebase has hashes of its own, and becomes the chain when it is complete. One that was not completed is skipped.
    """

    def __init__(self, head: ChainHead) -> None:
        self.head = head
        """The last record, with the hash that the next one continues."""
        self.damaged = 0
        """The first record that does not follow the one before it, since the latest rebase or deletion; 0: none."""
        self._start = 0
        self._rebase = NONE_BEFORE
        self._is_intact = True

    def accepts(self, record: Record) -> bool:
        """Return whether a record follows, or is skipped because the chain is damaged already."""
        if record.kind in (Kind.REBASE, Kind.REBASE_PART):
            continues = record.hash == hash_of(self._rebase, record.kind, record.body)
            return self._begins(record) or (self._start > 0 and continues)
        before = NONE_BEFORE if record.kind == Kind.GONE else self.head.hash
        return bool(self.damaged) or record.hash == hash_of(before, record.kind, record.body)

    def _begins(self, record: Record) -> bool:
        """Return whether a record of a rebase is its first one."""
        return record.hash == hash_of(NONE_BEFORE, record.kind, record.body)

    def add(self, record: Record) -> int:
        """Add a record. Return the sequence of the first record of the rebase that it belongs to; 0: to none."""
        is_next = self.accepts(record)
        if record.kind not in (Kind.REBASE, Kind.REBASE_PART):
            self._start = 0
            if record.kind == Kind.GONE and is_next:
                self.damaged = 0
            elif not is_next:
                self.damaged = self.damaged or record.sequence
            self.head = record.head
            return 0
        if not self._start or self._begins(record):
            self._start, self._rebase, self._is_intact = record.sequence, NONE_BEFORE, True
        self._rebase, self._is_intact = record.hash, self._is_intact and is_next
        if record.kind == Kind.REBASE_PART:
            self.head = ChainHead(record.sequence, self.head.hash)
            return self._start
        start, self._start = self._start, 0
        self.head = record.head
        self.damaged = 0 if self._is_intact else self.damaged or record.sequence
        return start


class Comparison:
    """A log that is compared with the sessions of a file, record by record.

    A session begins with a take, a rebase, or the creation of the agent; all commits after it are its own.
    """

    def __init__(self, marks: Collection[bytes]) -> None:
        self._marks = marks
        self._exists = self._is_known = False
        self._author = ""
        self.head = ChainHead()
        """The last record of the log."""
        self.is_beginning = False
        """Whether the file has every session that has a commit."""
        self.last_commit = 0
        """The sequence of the last commit."""
        self.idle: list[bytes] = []
        """The marks of sessions without a commit, at the end, that the file does not have."""
        self.was_repaired = False
        """Whether the latest rebase repaired the log."""

    def add(self, record: Record) -> None:
        """Add the next record."""
        if record.kind in (Kind.PART, Kind.REBASE_PART):
            return
        if record.kind == Kind.GONE:
            self._exists = self._is_known = self.is_beginning = self.was_repaired = False
            return
        begins = not self._exists or record.kind in (Kind.OWN, Kind.REBASE)
        if begins:
            self._exists, self._author = True, record.author
            self._is_known = record.mark in self._marks
        if record.kind == Kind.OWN and not self._is_known:
            self.idle.append(record.mark)
            return
        if record.kind == Kind.REBASE:
            self.was_repaired = record.is_repair
        if begins:
            self.idle, self.is_beginning = [], self._is_known
        elif not self._is_known or record.author != self._author:
            self.is_beginning = False
        if record.kind != Kind.OWN:
            self.last_commit = record.sequence


def _apply(
    copy: Copy, entries: Sequence[bytes], head: ChainHead, start: int, marks: Sequence[bytes]
) -> Precondition | None:
    """Apply commits to a copy. Return the error if the data key of one was destroyed."""
    try:
        copy.apply(entries, head, start, marks)
    except Precondition as error:
        if error.reason != "DATA_KEY_MISSING":
            raise
        return error
    return None


def _joined(parts: Sequence[bytes], last: bytes) -> bytes:
    """Return the body that the last record and those of the parts before it that belong to it make."""
    count = from_u32(last[:4]) if last else 0
    if count > len(parts):
        raise Lacking("was damaged: it lacks a part of a commit")
    return b"".join((*parts[len(parts) - count :], last[4:]))


def not_enough_servers() -> Unavailable:
    """Return the error for an append whose outcome is not known, and for reads without an answer."""
    return Unavailable(
        "Too few servers of the cluster's log answer. Retry with the same idempotency key.",
        reason="NOT_ENOUGH_LOG_SERVERS",
        retry_after_s=5.0,
    )
