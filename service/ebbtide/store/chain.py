"""A chain of audit records: verification finds a record that was changed, removed or inserted.

Each record is a line of JSON that includes the hash of the previous record. Its own hash is the SHA-256 of that line,
so the records alone are enough to verify a chain. The proofs of a record, keyed hashes of erased texts, are stored
next to the line, which has a hash of all of them. Records contain no content, only caller, time, action and numbers.

There is a chain in each store (`lmdb/audit.py`) and one for all erased agents (`audit/erased_agents.py`).
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
"""The previous hash of the first record."""

RENAMED = "renamed"
"""The action of a restore under another id; `from` is the original id."""

RESTORED = "restored"

CLEARED = "cleared"
"""An agent lost everything that it had stored, and kept its id and parameters."""
"""The action of a restore; `form` is `backup` or `export`."""

HASH_BYTES = 32
"""Size of a SHA-256 hash."""

KEY_BYTES = 32
"""Size of a proof key and of its HMACs."""


class AuditEntry(msgspec.Struct, frozen=True):
    """An operation on an agent, for its audit log. `details` are names and numbers, never content."""

    at_ms: int
    actor: str
    action: str
    details: dict[str, object]
    proofs: tuple[bytes, ...] = ()
    """Keyed hashes of the erased texts."""


class AuditRecord(msgspec.Struct, frozen=True, array_like=True):
    """One record of an audit log: its line, the hash of the line, and the proofs that the line has a hash of."""

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
    """Return the proof of an erased text: its HMAC-SHA256, without surrounding white space."""
    return hmac.new(key, text.strip().encode(), hashlib.sha256).digest()


def proofs_hash(proofs: Sequence[bytes]) -> str:
    """Return the hash of a record's proofs, or an empty string where there are none."""
    return hashlib.sha256(b"".join(proofs)).hexdigest() if proofs else ""


def chained(entry: AuditEntry, agent_id: str, head: ChainHead) -> AuditRecord:
    """Return the record that follows the head of a chain."""
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
    """The content of a record's line."""

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
"""Built on import: see codec.py."""


def line_of(record: AuditRecord) -> Line | None:
    """Return the content of a record's line, or None where it is invalid."""
    try:
        return _LINES.decode(record.text)
    except (msgspec.DecodeError, UnicodeError):
        return None


@dataclass(slots=True)
class Verification:
    """Verifies a chain from its first record, up to the first that does not fit."""

    agent_id: str | None = None
    """The agent that the records must belong to, after a renaming; None for a chain of many agents."""
    count: int = 0
    hash: bytes = NONE_BEFORE
    broken_at: int | None = None
    """Number of the first record that does not fit."""
    problem: str = ""
    _owner: str | None = None
    """The agent of the latest record."""

    def follow(self, records: Iterable[AuditRecord]) -> None:
        """Verify the next records."""
        for record in records:
            if self.broken_at is not None:
                return
            self.problem = self._fault(record)
            if self.problem:
                self.broken_at = self.count + 1
                return
            self.count, self.hash = self.count + 1, record.hash

    def end(self, head: ChainHead) -> None:
        """Check, after the last record, that it is the stored head of the chain."""
        if self.broken_at is None and self.agent_id is not None and self._owner not in (None, self.agent_id):
            self.broken_at, self.problem = 1, "belongs to another agent"
        if self.broken_at is None and (self.count, self.hash) != (head.number, head.hash):
            self.broken_at, self.problem = self.count + 1, "is missing, with all records after it"

    def break_off(self, problem: str, *, at: int = 0) -> None:
        """Note a problem that is not in a record itself: by default for the next number."""
        self.broken_at, self.problem = at or self.count + 1, problem

    def _fault(self, record: AuditRecord) -> str:
        line = line_of(record)
        if line is None:
            return "is invalid"
        if hashlib.sha256(record.text.encode()).digest() != record.hash:
            return "does not match its hash"
        if line.number != self.count + 1 or record.number != line.number:
            return "is out of order"
        if line.previous != self.hash.hex():
            return "does not follow the previous record"
        if (line.proof_count, line.proofs) != (len(record.proofs), proofs_hash(record.proofs)):
            return "does not match its proofs"
        if self.agent_id is None:
            return ""
        is_renamed = line.action == RENAMED and line.details.get("from") == self._owner
        if self._owner not in (None, line.agent_id) and not is_renamed:
            return "belongs to another agent"
        self._owner = line.agent_id
        return ""
