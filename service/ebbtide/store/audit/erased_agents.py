"""The log of erased agents: what is left of an agent when its directory is gone, beside all directories.

    DATA_DIR/audit/erased.jsonl        a chain of records, one line each, of all agents that were erased or replaced
    DATA_DIR/audit/head.json           number and hash of the latest record, so that a log cut short shows
    DATA_DIR/audit/<number>.proofs     of one record: a key, and a keyed hash of each text that the agent held

Records are sealed as in an agent's own log (`chain.py`); the hash of the proofs stands in the record. A line that was
cut off while it was written was never told to anybody, and makes room for the next. Files block; who calls is on a
thread and holds the lock of the data directory. Agents are erased side by side: their records follow one another.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from ebbtide.store.audit.succession import likely
from ebbtide.store.chain import (
    KEY_BYTES,
    NONE_BEFORE,
    AuditEntry,
    AuditRecord,
    ChainHead,
    Line,
    Verification,
    line_of,
    proof_of,
    sealed,
)
from ebbtide.store.durable import replace_file, sync_directory
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.port import ReadTransaction
from ebbtide.store.presence import Confirm, nothing_to_confirm
from ebbtide.store.translation import translated

LOG = "erased.jsonl"
HEAD = "head.json"

ERASED = "agent_erased"
"""The action by which an agent goes for good."""

REPLACED = "replaced"
"""The action by which an agent goes since another one takes its place."""


class NotedHead(msgspec.Struct, frozen=True):
    """The latest record, as it is noted beside the log. A crash may leave the log one record longer, never shorter."""

    number: int
    hash: str


class LoggedLine(msgspec.Struct, frozen=True):
    """A record as a line of the file."""

    text: str
    hash: str


_HEADS = msgspec.json.Decoder(NotedHead)
_LINES = msgspec.json.Decoder(LoggedLine)
"""Made on import: see codec.py."""


class Place(NamedTuple):
    """Where in the log a record ends: how many there are up to there, and the byte."""

    number: int = 0
    offset: int = 0


BEGIN = Place()


class Standing(NamedTuple):
    """Where the log ends at one moment, and what stands beside it."""

    head: ChainHead
    noted: ChainHead | None
    """The latest record as it was noted; None where nothing that can be read is."""
    is_noted: bool
    """Whether anything is noted, readable or not."""
    orphan: int
    """The first number that has proofs and no record; 0 for none."""


class Following:
    """The log followed as far as it went at one moment, and held against what stood beside it then."""

    def __init__(self, standing: Standing) -> None:
        self.standing = standing
        self.chain = Verification()
        self._noted_number = 0 if standing.noted is None else standing.noted.number
        self._hash_where_noted = NONE_BEFORE

    def follow(self, record: AuditRecord) -> bool:
        """Look at the next record, with its proofs; whether it fits."""
        self.chain.follow([record])
        if self.chain.count == self._noted_number:
            self._hash_where_noted = self.chain.hash
        return self.chain.broken_at is None

    def end(self) -> Verification:
        """All records were looked at, up to the head: what came of it."""
        chain, standing = self.chain, self.standing
        chain.end(standing.head)
        if chain.broken_at is None and standing.noted is None and (chain.count or standing.is_noted):
            what = "is the last, and which one should be is not noted beside the log"
            chain.break_off(what, at=max(1, chain.count))
        if chain.broken_at is None and self._noted_number > chain.count:
            chain.break_off("is missing, and so is what came after it")
        if chain.broken_at is None and standing.noted and self._hash_where_noted != standing.noted.hash:
            chain.break_off("is not the one that was noted beside the log", at=self._noted_number)
        if chain.broken_at is None and standing.orphan:
            chain.break_off("is missing, though its proofs are there", at=standing.orphan)
        return chain


class ErasedAgents:
    """The log of one data directory."""

    def __init__(self, root: Path, confirm: Confirm = nothing_to_confirm) -> None:
        self.path = root / "audit"
        self._confirm = confirm
        self._writing = threading.Lock()
        """Held from a look at the latest record until the next one is written."""
        self._last_event: int | None = None
        """As `last_event` told it, once it was asked."""

    def records(self) -> Iterator[AuditRecord]:
        """Every record in order; what cannot be read is told as a record of nothing."""
        for record, _ in self.logged():
            yield self.with_proofs(record)

    def logged(self, after: Place = BEGIN) -> Iterator[tuple[AuditRecord, Place]]:
        """Records behind a place, without their proofs, which may be very many; each with where it ends."""
        try:
            file = (self.path / LOG).open("rb")
        except FileNotFoundError:
            # There is no record, or the whole directory is gone.
            self._confirm()
            return
        except OSError as error:
            raise translated(error, self.path) from error
        number, offset = after
        with file:
            file.seek(offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                number, offset = number + 1, offset + len(line)
                yield _bare(number, line), Place(number, offset)

    def with_proofs(self, record: AuditRecord) -> AuditRecord:
        """A record with the number that it says it has, and the keyed hashes that it vouches for, if they are there."""
        said = line_of(record)
        if said is None:
            return record
        proofs = self.proofs(said.number) if said.proof_count else ()
        return msgspec.structs.replace(record, number=said.number, proofs=proofs)

    def head(self) -> ChainHead:
        """The latest record."""
        return _head(self._whole_lines())

    def standing(self) -> Standing:
        """Where the log ends now, and what stands beside it."""
        with self._writing:
            head = self.head()
            is_noted = (self.path / HEAD).exists()
            return Standing(head, self._noted(), is_noted, self._proofs_beyond(head.number))

    def verified(self) -> Verification:
        """The chain followed, and held against what stands beside it."""
        following = Following(self.standing())
        for record in islice(self.records(), following.standing.head.number):
            following.follow(record)
        return following.end()

    def _noted(self) -> ChainHead | None:
        """The latest record as it was noted; None where nothing is, or nothing that can be read."""
        try:
            head = _HEADS.decode((self.path / HEAD).read_bytes())
            return ChainHead(head.number, bytes.fromhex(head.hash)) if head.number >= 0 else None
        except (FileNotFoundError, IsADirectoryError, msgspec.DecodeError, ValueError):
            return None

    def _note(self, head: ChainHead) -> None:
        noted = NotedHead(head.number, head.hash.hex())
        replace_file(self.path / HEAD, msgspec.json.encode(noted))

    def _proofs_beyond(self, count: int) -> int:
        """The first number beyond `count` that has proofs; 0 for none."""
        with contextlib.suppress(FileNotFoundError):
            numbers = (path.stem for path in self.path.glob("*.proofs"))
            return min((int(one) for one in numbers if one.isdecimal() and int(one) > count), default=0)
        return 0

    def last_event(self) -> int:
        """The largest number that an event of an erased agent had; one that none had where that is not known."""
        with self._writing:
            if self._last_event is None:
                lines = self._whole_lines()
                records = (line_of(_bare(place, line)) for place, line in enumerate(lines, 1))
                self._last_event = max((_last_event(said) for said in records if said), default=0)
            return self._last_event

    def proofs(self, number: int) -> tuple[bytes, ...]:
        """The keyed hashes of a record; none where the file is gone."""
        return self._kept(number)[1]

    def holds(self, number: int, text: str) -> bool:
        """Whether a text is among those that were erased with a record."""
        return self.held(number, [text]) == [True]

    def held(self, number: int, texts: Sequence[str]) -> list[bool]:
        """Of each text, whether it is among those that were erased with a record."""
        key, proofs = self._kept(number)
        known = frozenset(proofs)
        return [bool(key) and proof_of(key, text) in known for text in texts]

    def _kept(self, number: int) -> tuple[bytes, tuple[bytes, ...]]:
        try:
            content = (self.path / f"{number}.proofs").read_bytes()
        except OSError:
            return b"", ()
        pieces = [content[at : at + KEY_BYTES] for at in range(0, len(content), KEY_BYTES)]
        return (pieces[0], tuple(pieces[1:])) if pieces else (b"", ())

    def append(self, entry: AuditEntry, agent_id: str, key: bytes) -> AuditRecord:
        """Add a record, durably."""
        with self._writing:
            return self._append(self._whole_lines(), entry, agent_id, key)

    def tell(self, entry: AuditEntry, agent_id: str, key: bytes, *, after: int) -> AuditRecord:
        """Add the record of an erasure, durably, unless it is there already; the record.

        `after` is the number of the latest record when the erasure began. An agent is not erased again before the
        erasure ends: of its records later than that, one of the same moment is the one that a crash cut off behind.
        """
        with self._writing:
            lines = self._whole_lines()
            for place, line in enumerate(lines[after:], after + 1):
                record = _bare(place, line)
                said = line_of(record)
                if said is not None and (said.agent_id, said.at, said.action) == (
                    agent_id,
                    entry.at_ms,
                    entry.action,
                ):
                    if _is_behind(self._noted(), head := _head(lines)):
                        # The crash came before it was noted.
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
        """Its proofs come first, so that no record names proofs that are not there; that it is the latest, last.

        It follows the latest record that was noted, also where the log was cut: then it does not fit, and that shows.
        """
        self.path.mkdir(exist_ok=True, mode=0o700)
        sync_directory(self.path.parent)
        head, noted = _head(lines), self._noted()
        if noted is None and not lines:
            # So that a log with records always has a note, also where the first note is cut off.
            self._note(head)
        record = sealed(entry, agent_id, head if noted is None or _is_behind(noted, head) else noted)
        if record.proofs:
            replace_file(self.path / f"{record.number}.proofs", key, *record.proofs)
        line = msgspec.json.encode(LoggedLine(record.text, record.hash.hex())) + b"\n"
        whole = sum(len(one) + 1 for one in lines)
        with open(os.open(self.path / LOG, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b") as file:
            file.truncate(whole)
            file.seek(whole)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        sync_directory(self.path)
        self._note(ChainHead(record.number, record.hash))
        said = line_of(record)
        if self._last_event is not None and said is not None:
            self._last_event = max(self._last_event, _last_event(said))
        return record

    def _whole_lines(self) -> list[bytes]:
        try:
            content = (self.path / LOG).read_bytes()
        except FileNotFoundError:
            self._confirm()
            return []
        except OSError as error:
            raise translated(error, self.path) from error
        return content.split(b"\n")[:-1]


def _bare(place: int, line: bytes) -> AuditRecord:
    """The record in a line, without its proofs; of nothing where it cannot be read."""
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
    """Whether what is noted as the latest record came before the one that is."""
    return noted is None or noted.number < head.number


def _last_event(said: Line) -> int:
    """The last number of the agent that a record tells of; 0 where it was not erased."""
    return likely(said.details.get("last_event"), said.at) if said.action == ERASED else 0


def last_words(store: LmdbStore, entry: AuditEntry) -> tuple[AuditEntry, bytes]:
    """What is told of an agent whose store is about to go, and the key of its proofs.

    Proofs of earlier erasures are among them, under the same key: that a text was erased can still be told.
    """

    def read(txn: ReadTransaction) -> tuple[AuditEntry, bytes]:
        key = txn.proof_key() or secrets.token_bytes(KEY_BYTES)
        proofs = {proof for record in txn.audit_records() for proof in record.proofs}
        proofs.update(proof_of(key, text) for text in _texts(txn))
        counts, head, identity = txn.counts(), txn.audit_head(), txn.identity()
        details: dict[str, object] = {
            "created_at": 0 if identity is None else identity.created_at_ms,
            "nodes": counts.node_count,
            "links": counts.link_count,
            "messages": counts.message_count,
            "batches": counts.pending_batches + counts.parked_batches,
            "records": head.number,
            "last_record": head.hash.hex(),
            "last_event": txn.next_event() - 1,
        }
        return msgspec.structs.replace(entry, details=details, proofs=tuple(sorted(proofs))), key

    return store.read(read)


def _texts(txn: ReadTransaction) -> Iterator[str]:
    for record in txn.messages():
        text = txn.message_text(record)
        if text is not None and text.strip():
            yield text
    for node in txn.nodes():
        yield node.content
        yield node.content.removeprefix(node.prefix)
