"""A chain of audit records: how a record is sealed, and how it is seen that one was changed, dropped or put in.

Each record is a line of JSON that names the hash of the record before it, and its own hash is SHA-256 of that line, so
that anybody can verify a chain with nothing but the records. The proofs of a record, keyed hashes of erased texts,
stand beside the line, which holds a hash of all of them. The rule guarded here: no content, only who, when, what and
how many. Where chains are kept is for others: one in each store (`audit.py`), one beside them (`erased_agents.py`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from ebbtide.bounds import Count, Hash, Id, Text, Time

NONE_BEFORE = bytes(32)
"""What the first record of a chain names as the hash before it."""

RENAMED = "renamed"
"""The action by which an agent that was restored gets another id; `from` tells the one before."""

RESTORED = "restored"
"""The action by which an agent comes back, or comes from elsewhere; `form` tells whether as a backup or an export."""

HASH_BYTES = 32
"""Size of a SHA-256 hash."""

KEY_BYTES = 32
"""Random bytes of a proof key: as many as its HMACs have."""


class AuditEntry(msgspec.Struct, frozen=True):
    """What was done to an agent, as it goes into its audit log. `details` are names and numbers, never content."""

    at_ms: int
    actor: str
    action: str
    details: dict[str, object]
    proofs: tuple[bytes, ...] = ()
    """Keyed hashes of the texts that were erased."""


class AuditRecord(msgspec.Struct, frozen=True, array_like=True):
    """One record of an audit log: the line that was hashed, its hash, and the proofs that the line vouches for."""

    number: Id
    text: Text
    hash: Hash
    proofs: tuple[Hash, ...] = ()


@dataclass(frozen=True, slots=True)
class ChainHead:
    """The latest record of a chain."""

    number: int = 0
    hash: bytes = NONE_BEFORE


def proof_of(key: bytes, text: str) -> bytes:
    """What stands for an erased text: HMAC-SHA256 of it, without white space around it, under a proof key."""
    return hmac.new(key, text.strip().encode(), hashlib.sha256).digest()


def proofs_hash(proofs: Sequence[bytes]) -> str:
    """What a record's line says of its proofs; empty where there are none."""
    return hashlib.sha256(b"".join(proofs)).hexdigest() if proofs else ""


def sealed(entry: AuditEntry, agent_id: str, head: ChainHead) -> AuditRecord:
    """The record that follows the head of a chain."""
    line = {
        "action": entry.action,
        "actor": entry.actor,
        "agent_id": agent_id,
        "at": entry.at_ms,
        "details": entry.details,
        "number": head.number + 1,
        "previous": head.hash.hex(),
        "proof_count": len(entry.proofs),
        "proofs": proofs_hash(entry.proofs),
    }
    text = json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return AuditRecord(head.number + 1, text, hashlib.sha256(text.encode()).digest(), entry.proofs)


class Line(msgspec.Struct, frozen=True):
    """What the line of a record says."""

    action: str
    actor: str
    agent_id: str
    at: Time
    details: dict[str, object]
    number: Id
    previous: str
    proof_count: Count
    proofs: str


_LINES = msgspec.json.Decoder(Line)
"""Made on import: see codec.py."""


def line_of(record: AuditRecord) -> Line | None:
    """What the line of a record says; None where it is no such line."""
    try:
        return _LINES.decode(record.text)
    except (msgspec.DecodeError, UnicodeError):
        return None


@dataclass(slots=True)
class Verification:
    """A chain followed from its first record; it stops at the first that does not fit."""

    agent_id: str | None = None
    """Whose the records must be, after those of who it was before it was renamed; None where a chain tells of many."""
    count: int = 0
    hash: bytes = NONE_BEFORE
    broken_at: int | None = None
    """Number of the first record that does not fit."""
    problem: str = ""
    _owner: str | None = None
    """Whose the latest record is."""

    def follow(self, records: Iterable[AuditRecord]) -> None:
        """Look at the next records."""
        for record in records:
            if self.broken_at is not None:
                return
            self.problem = self._fault(record)
            if self.problem:
                self.broken_at = self.count + 1
                return
            self.count, self.hash = self.count + 1, record.hash

    def end(self, head: ChainHead) -> None:
        """All records were looked at; the last must be the one that is noted beside the chain."""
        if self.broken_at is None and self.agent_id is not None and self._owner not in (None, self.agent_id):
            self.broken_at, self.problem = 1, "is of another agent"
        if self.broken_at is None and (self.count, self.hash) != (head.number, head.hash):
            self.broken_at, self.problem = self.count + 1, "records are missing at the end"

    def break_off(self, problem: str, *, at: int = 0) -> None:
        """Note what does not fit beside the chain itself: by default of the record that should be next."""
        self.broken_at, self.problem = at or self.count + 1, problem

    def _fault(self, record: AuditRecord) -> str:
        line = line_of(record)
        if line is None:
            return "cannot be read"
        if hashlib.sha256(record.text.encode()).digest() != record.hash:
            return "is not what was written"
        if line.number != self.count + 1 or record.number != line.number:
            return "is not the record after the one before it"
        if line.previous != self.hash.hex():
            return "does not follow the record before it"
        if (line.proof_count, line.proofs) != (len(record.proofs), proofs_hash(record.proofs)):
            return "has other proofs than were written"
        if self.agent_id is None:
            return ""
        is_renamed = line.action == RENAMED and line.details.get("from") == self._owner
        if self._owner not in (None, line.agent_id) and not is_renamed:
            return "is of another agent"
        self._owner = line.agent_id
        return ""
