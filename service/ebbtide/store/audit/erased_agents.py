"""The log of erased agents: the records that remain after an agent's directory is deleted.

    DATA_DIR/audit/erased.jsonl        one line for each agent that was erased or replaced: a chain of records
    DATA_DIR/audit/head.json           number and hash of the latest record, which reveal a truncated log
    DATA_DIR/audit/<number>.proofs     for one record: a key, and a keyed hash of each text of the agent

Records are chained as in an agent's own log (`chain.py`); a record has the hash of its proofs. A line without its end
was never acknowledged, and the next record overwrites it. Methods block; the caller has the lock of the data directory.
Several agents may be erased at a time: their records follow one another.

The nodes of a cluster have one log. A record is first added to the shared one; each node has a copy in these files.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

import msgspec

from ebbtide.errors import Precondition
from ebbtide.store.audit.predecessor import valid_event_number
from ebbtide.store.chain import (
    KEY_BYTES,
    NONE_BEFORE,
    AuditEntry,
    AuditRecord,
    ChainHead,
    Line,
    Verification,
    chained,
    line_of,
    proof_of,
)
from ebbtide.store.durable import replace_file, sync_directory
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.store.presence import Confirm, nothing_to_confirm, opened
from ebbtide.store.process_lock import ProcessLock
from ebbtide.store.translation import translated

LOG = "erased.jsonl"
HEAD = "head.json"

ERASED = "agent_erased"
"""The action of a deletion."""

REPLACED = "replaced"
"""The action of a replacement by another agent."""


class NotedHead(msgspec.Struct, frozen=True):
    """The content of `head.json`. After a crash the log may be one record longer, never shorter."""

    number: int
    hash: str


class LoggedLine(msgspec.Struct, frozen=True):
    """One line of the file."""

    text: str
    hash: str


_HEADS = msgspec.json.Decoder(NotedHead)
_LINES = msgspec.json.Decoder(LoggedLine)
"""Built on import: see codec.py."""


class LogPosition(NamedTuple):
    """The end of a record in the log: the number of records up to there, and the offset in bytes."""

    number: int = 0
    offset: int = 0


LOG_START = LogPosition()


class LogState(NamedTuple):
    """The end of the log at one moment, and the contents of the other files."""

    head: ChainHead
    noted: ChainHead | None
    """The content of `head.json`; None where it is missing or invalid."""
    is_noted: bool
    """Whether there is a `head.json`, valid or not."""
    orphan: int
    """The first number with proofs but without a record; 0 for none."""


class LogVerification:
    """Verifies the log up to its end at one moment, against the other files at that moment."""

    def __init__(self, state: LogState) -> None:
        self.state = state
        self.chain = Verification()
        self._noted_number = 0 if state.noted is None else state.noted.number
        self._hash_where_noted = NONE_BEFORE

    def follow(self, record: AuditRecord) -> bool:
        """Verify the next record with its proofs. Return whether the chain is still intact."""
        self.chain.follow([record])
        if self.chain.count == self._noted_number:
            self._hash_where_noted = self.chain.hash
        return self.chain.broken_at is None

    def end(self) -> Verification:
        """Return the result, after every record up to the head."""
        chain, state = self.chain, self.state
        chain.end(state.head)
        if chain.broken_at is None and state.noted is None and (chain.count or state.is_noted):
            problem = "is the last one, but head.json does not confirm it"
            chain.break_off(problem, at=max(1, chain.count))
        if chain.broken_at is None and self._noted_number > chain.count:
            chain.break_off("is missing, with all records after it")
        if chain.broken_at is None and state.noted and self._hash_where_noted != state.noted.hash:
            chain.break_off("differs from the one in head.json", at=self._noted_number)
        if chain.broken_at is None and state.orphan:
            chain.break_off("is missing, but its proofs exist", at=state.orphan)
        return chain


class SharedRecord(NamedTuple):
    """A record as the nodes of a cluster share it: its line, and the content of its file with proofs."""

    line: bytes
    kept: bytes


class SharedLog(Protocol):
    """The log that the nodes of a cluster share. Calls block, and raise NOT_ENOUGH_LOG_SERVERS without an answer."""

    def record(self, number: int) -> SharedRecord | None:
        """Return the record with a number; None if there is none yet."""
        ...

    def claim(self, number: int, record: SharedRecord) -> bool:
        """Add a record. Return False if another node has added one with this number."""
        ...


class ErasedAgents:
    """The log of one data directory."""

    def __init__(self, root: Path, confirm: Confirm = nothing_to_confirm) -> None:
        self.path = root / "audit"
        self._confirm = confirm
        self._writing = ProcessLock(root)
        """Locked from reading the latest record until the next one is written. Workers share the log."""
        self._last_event: tuple[int, int] | None = None
        """The result of `last_event`, and the size of the log from which it was computed."""
        self.shared: SharedLog | None = None
        """The log of the cluster, if this data directory is that of a node."""
        self._is_copy = False
        """Whether the records of this log are known to be those of the cluster."""

    def follow(self) -> None:
        """Add the records of the other nodes of a cluster; without a cluster do nothing.

        Records that the cluster lacks are shared. Raise CLUSTER_UNUSABLE if its records are others.
        """
        if self.shared is not None:
            with self._writing:
                self._newest_lines()

    def _newest_lines(self) -> list[bytes]:
        """Return the lines of the log, after those are added that other nodes have written."""
        lines, shared = self._whole_lines(), self.shared
        if shared is None:
            return lines
        if not self._is_copy:
            self._compare(lines, shared)
            self._is_copy = True
        while (record := shared.record(len(lines) + 1)) is not None:
            self._write(lines, len(lines) + 1, record)
            lines.append(record.line)
        return lines

    def _compare(self, lines: list[bytes], shared: SharedLog) -> None:
        """Share the records that a cluster lacks. Raise CLUSTER_UNUSABLE if it has another log."""
        newest = shared.record(len(lines)) if lines else None
        if newest is not None:
            has_same = newest.line == lines[-1]
        else:
            has_same = all(
                shared.claim(number, SharedRecord(line, self._kept_file(number)))
                for number, line in enumerate(lines, 1)
            )
        if not has_same:
            raise Precondition(
                f"{self.path} is not the log of erased agents of this cluster. Move it to another place.",
                reason="CLUSTER_UNUSABLE",
            )

    def logged(self, after: LogPosition = LOG_START) -> Iterator[tuple[AuditRecord, LogPosition]]:
        """Yield the records after a place, without their many proofs, and the end of each."""
        file = self._opened()
        if file is None:
            return
        number, offset = after
        with file:
            file.seek(offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                number, offset = number + 1, offset + len(line)
                yield _bare(number, line), LogPosition(number, offset)

    def with_proofs(self, record: AuditRecord) -> AuditRecord:
        """Return a record with the number in its line, and with its proofs if they exist."""
        said = line_of(record)
        if said is None:
            return record
        proofs = self.proofs(said.number) if said.proof_count else ()
        return msgspec.structs.replace(record, number=said.number, proofs=proofs)

    def head(self) -> ChainHead:
        """Return number and hash of the latest record."""
        return _head(self._whole_lines())

    def state(self) -> LogState:
        """Return the present end of the log, and the contents of the other files."""
        with self._writing:
            head = self.head()
            is_noted = (self.path / HEAD).exists()
            return LogState(head, self._noted(), is_noted, self._proofs_beyond(head.number))

    def _noted(self) -> ChainHead | None:
        """Return the content of `head.json`, or None where it is missing or invalid."""
        try:
            head = _HEADS.decode((self.path / HEAD).read_bytes())
            return ChainHead(head.number, bytes.fromhex(head.hash)) if head.number >= 0 else None
        except (FileNotFoundError, IsADirectoryError, msgspec.DecodeError, ValueError):
            return None

    def _note(self, head: ChainHead) -> None:
        noted = NotedHead(head.number, head.hash.hex())
        replace_file(self.path / HEAD, msgspec.json.encode(noted))

    def _proofs_beyond(self, count: int) -> int:
        """Return the first number beyond `count` that has proofs, or 0."""
        with contextlib.suppress(FileNotFoundError):
            numbers = (path.stem for path in self.path.glob("*.proofs"))
            return min((int(one) for one in numbers if one.isdecimal() and int(one) > count), default=0)
        return 0

    def last_event(self) -> int:
        """Return the highest event number of all erased agents, or an upper bound of it."""
        with self._writing:
            if self.shared is not None:
                self._newest_lines()
            size = self._size()
            if self._last_event is None or self._last_event[1] != size:
                lines = self._whole_lines()
                records = (line_of(_bare(place, line)) for place, line in enumerate(lines, 1))
                self._last_event = max((_last_event(said) for said in records if said), default=0), size
            return self._last_event[0]

    def _size(self) -> int:
        """Return the size of the log in bytes; 0 if there is no record yet."""
        try:
            return (self.path / LOG).stat().st_size
        except OSError:
            return 0

    def proofs(self, number: int) -> tuple[bytes, ...]:
        """Return the proofs of a record; none where the file is missing."""
        return self._kept(number)[1]

    def held(self, number: int, texts: Sequence[str]) -> list[bool]:
        """Return for each text whether it was erased with a record."""
        key, proofs = self._kept(number)
        known = frozenset(proofs)
        return [bool(key) and proof_of(key, text) in known for text in texts]

    def _kept_file(self, number: int) -> bytes:
        try:
            return (self.path / f"{number}.proofs").read_bytes()
        except OSError:
            return b""

    def _kept(self, number: int) -> tuple[bytes, tuple[bytes, ...]]:
        content = self._kept_file(number)
        pieces = [content[at : at + KEY_BYTES] for at in range(0, len(content), KEY_BYTES)]
        return (pieces[0], tuple(pieces[1:])) if pieces else (b"", ())

    def append(self, entry: AuditEntry, agent_id: str, key: bytes) -> AuditRecord:
        """Append a record, durably."""
        with self._writing:
            return self._append(self._newest_lines(), entry, agent_id, key)

    def ensure(self, entry: AuditEntry, agent_id: str, key: bytes, *, after: int) -> AuditRecord:
        """Return the record of a deletion, and append it, durably, unless it exists.

        `after` is the number of the latest record when the deletion began. An agent is not deleted twice at a time: a
        later record of the same agent and time is of this deletion, which a crash has interrupted.
        """
        with self._writing:
            lines = self._newest_lines()
            for place, line in enumerate(lines[after:], after + 1):
                record = _bare(place, line)
                said = line_of(record)
                if said is not None and (said.agent_id, said.at, said.action) == (
                    agent_id,
                    entry.at_ms,
                    entry.action,
                ):
                    if _is_behind(self._noted(), head := _head(lines)):
                        # The crash came before head.json was written.
                        self._note(head)
                    return self.with_proofs(record)
            return self._append(lines, entry, agent_id, key)

    def _append(self, lines: list[bytes], entry: AuditEntry, agent_id: str, key: bytes) -> AuditRecord:
        self._confirm()
        try:
            return self._written(lines, entry, agent_id, key)
        except OSError as error:
            raise translated(error, self.path) from error

    def _written(self, lines: list[bytes], entry: AuditEntry, agent_id: str, key: bytes) -> AuditRecord:
        """Share the record in a cluster, then write it. It follows the one in `head.json`.

        Where the log was truncated, verification finds the gap.
        """
        while True:
            head, noted = _head(lines), self._noted()
            record = chained(entry, agent_id, head if noted is None or _is_behind(noted, head) else noted)
            line = msgspec.json.encode(LoggedLine(record.text, record.hash.hex()))
            shared = SharedRecord(line, b"".join((key, *record.proofs)) if record.proofs else b"")
            if self.shared is None or self.shared.claim(record.number, shared):
                break
            lines = self._newest_lines()
        self._write(lines, record.number, shared)
        return record

    def _write(self, lines: list[bytes], number: int, record: SharedRecord) -> None:
        """Write the proofs, then the line, then `head.json`: so every record has its proofs."""
        self.path.mkdir(exist_ok=True, mode=0o700)
        sync_directory(self.path.parent)
        if not lines and self._noted() is None:
            # So a log with records always has a head.json.
            self._note(ChainHead())
        if record.kept:
            replace_file(self.path / f"{number}.proofs", record.kept)
        line = record.line + b"\n"
        whole = sum(len(one) + 1 for one in lines)
        with open(os.open(self.path / LOG, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b") as file:
            file.truncate(whole)
            file.seek(whole)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        sync_directory(self.path)
        self._note(ChainHead(number, _bare(number, record.line).hash))
        self._count_event(number, whole, record.line)

    def _count_event(self, number: int, before: int, line: bytes) -> None:
        """Keep the result of `last_event` for a log that had `before` bytes and got a line."""
        said = line_of(_bare(number, line))
        if self._last_event is not None and self._last_event[1] == before and said is not None:
            self._last_event = max(self._last_event[0], _last_event(said)), before + len(line) + 1

    def _whole_lines(self) -> list[bytes]:
        file = self._opened()
        if file is None:
            return []
        with file:
            return file.read().split(b"\n")[:-1]

    def _opened(self) -> BinaryIO | None:
        """Open the log, or return None if there is no record yet."""
        try:
            return opened(self.path / LOG, self._confirm)
        except OSError as error:
            raise translated(error, self.path) from error


def _bare(place: int, line: bytes) -> AuditRecord:
    """Return the record in a line without its proofs; an empty record where the line is invalid."""
    try:
        logged = _LINES.decode(line)
        return AuditRecord(place, logged.text, bytes.fromhex(logged.hash))
    except (msgspec.DecodeError, ValueError):
        return AuditRecord(place, "", b"")


def _head(lines: Sequence[bytes]) -> ChainHead:
    if not lines:
        return ChainHead()
    return ChainHead(len(lines), _bare(len(lines), lines[-1]).hash or NONE_BEFORE)


def _is_behind(noted: ChainHead | None, head: ChainHead) -> bool:
    """Return whether `head.json` is older than the latest record."""
    return noted is None or noted.number < head.number


def _last_event(said: Line) -> int:
    """Return the last event number of the agent in a record; 0 for a replaced one."""
    return valid_event_number(said.details.get("last_event"), said.at) if said.action == ERASED else 0


def deletion_record(store: LmdbStore, entry: AuditEntry) -> tuple[AuditEntry, bytes]:
    """Return the audit entry of an agent that is being deleted, and the key of its proofs.

    It includes the proofs of earlier erasures, under the same key.
    """

    def read(txn: ReadTransaction) -> tuple[AuditEntry, bytes]:
        key = txn.meta.proof_key or secrets.token_bytes(KEY_BYTES)
        proofs = {proof for record in txn.audit.records() for proof in record.proofs}
        proofs.update(proof_of(key, text) for text in _texts(txn))
        counts, head, identity = txn.counts(), txn.meta.audit_head, txn.meta.identity
        details: dict[str, object] = {
            "created_at": 0 if identity is None else identity.created_at_ms,
            "nodes": counts.node_count,
            "links": counts.link_count,
            "messages": counts.message_count,
            "batches": counts.pending_batches + counts.parked_batches,
            "records": head.number,
            "last_record": head.hash.hex(),
            "last_event": txn.meta.next_event - 1,
        }
        return msgspec.structs.replace(entry, details=details, proofs=tuple(sorted(proofs))), key

    return store.read(read)


def _texts(txn: ReadTransaction) -> Iterator[str]:
    for record in txn.messages.all():
        text = txn.messages.text(record)
        if text is not None and text.strip():
            yield text
    for node in txn.nodes.all():
        yield from filter(str.strip, txn.nodes.contents(node))
