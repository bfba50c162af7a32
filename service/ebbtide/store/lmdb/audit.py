"""The audit log of one agent, in its store: which operation, by which caller, when, and on how many memories.

A record is written in the transaction of the change that it describes. Records are appended and never changed. META
has the hash of the latest record, so a truncated chain is detected too. No record is ever dropped: the size of the
agent's map bounds the log.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from ebbtide.store.chain import KEY_BYTES, AuditEntry, AuditRecord, ChainHead, chained
from ebbtide.store.layout import AUDIT, u64
from ebbtide.store.lmdb.tables import MetaWriter, Part, TableWriter


class AuditReader(Part):
    """The audit log of one agent."""

    def records(self, start: int = 0) -> Iterator[AuditRecord]:
        """Yield records in order, from number `start`."""
        return self._tables.load_all(AUDIT, u64(start))


class AuditWriter(AuditReader):
    """The audit log of one agent, with changes."""

    _tables: TableWriter

    def __init__(self, tables: TableWriter, meta: MetaWriter) -> None:
        super().__init__(tables)
        self._meta = meta

    def append(self, entry: AuditEntry, agent_id: str) -> AuditRecord:
        """Append a record."""
        record = chained(entry, agent_id, self._meta.audit_head)
        self._tables.save(AUDIT, u64(record.number), record)
        self._meta.set(audit_head=ChainHead(record.number, record.hash))
        return record

    def make_proof_key(self) -> bytes:
        """Return the key of this agent's deletion proofs, and create it on first use."""
        key = self._meta.proof_key
        if key is None:
            key = secrets.token_bytes(KEY_BYTES)
            self._meta.set(proof_key=key)
        return key
