"""The audit log of one agent, in its own store: what was done to it, by whom, when, and to how much.

A record is written in the transaction of what it tells, so that neither is there without the other. Records are
appended and never changed; the hash of the latest is noted beside the table, so that a chain cut short is noticed too.
The key of its proofs is made with the first one and stays in the store. Nothing here ever drops a record: what bounds
the log is the agent's map.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from ebbtide.store import layout
from ebbtide.store.chain import KEY_BYTES, AuditEntry, AuditRecord, ChainHead, sealed
from ebbtide.store.lmdb.tables import TableReading, TableWriting


class AuditReading(TableReading):
    """The audit log of one agent."""

    def audit_records(self, start: int = 0) -> Iterator[AuditRecord]:
        """Records from number `start` on, in order."""
        for _, value in self.items(layout.AUDIT, layout.u64(start)):
            yield layout.decode(value, type=AuditRecord)

    def audit_head(self) -> ChainHead:
        """Number and hash of the latest record."""
        value = self.get(layout.META, b"audit_head")
        return ChainHead() if value is None else ChainHead(layout.from_u64(value[:8]), bytes(value[8:]))

    def proof_key(self) -> bytes | None:
        """The key of this agent's proofs; None while it has none."""
        value = self.get(layout.META, b"proof_key")
        return None if value is None else bytes(value)

    def is_compaction_due(self) -> bool:
        """Whether texts were erased that the file may still hold where nothing refers to it."""
        return self.get(layout.META, layout.COMPACTION_DUE) is not None

    def holds_leftovers(self) -> bool:
        """Whether texts were taken away otherwise since the file was written: the next erasure leaves them behind."""
        return self.get(layout.META, layout.LEFTOVERS) is not None


class AuditWriting(AuditReading, TableWriting):
    """The audit log of one agent, continued."""

    def record(self, entry: AuditEntry, agent_id: str) -> AuditRecord:
        """Append a record."""
        record = sealed(entry, agent_id, self.audit_head())
        self.put(layout.AUDIT, layout.u64(record.number), layout.encode(record))
        self.put(layout.META, b"audit_head", layout.u64(record.number) + record.hash)
        return record

    def make_proof_key(self) -> bytes:
        """The key of this agent's proofs, made where it has none."""
        key = self.proof_key()
        if key is None:
            key = secrets.token_bytes(KEY_BYTES)
            self.put(layout.META, b"proof_key", key)
        return key

    def set_compaction_due(self) -> None:
        """Note that the file holds texts that were erased; a compaction takes the note along."""
        self.put(layout.META, layout.COMPACTION_DUE, b"1")

    def note_leftovers(self) -> None:
        """Note that the file may hold texts that were deleted, corrected or withdrawn; a compaction takes it along.

        It asks for nothing by itself: these are no promise about bytes. Who forgets wants more.
        """
        if not self.holds_leftovers():
            self.put(layout.META, layout.LEFTOVERS, b"1")
