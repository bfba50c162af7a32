"""The event numbers and the audit log of an agent continue in its successor: the next agent with the same id.

A client that watches an agent must never see one event number for two events, even after the agent was deleted and
created again, or replaced by a backup. So a successor starts beyond the numbers of its predecessor and leaves one out:
a client that has seen all earlier events gets EVENTS_GONE instead of unrelated events.

A restored store may be older than the events that clients have seen, and the store cannot know by how much. Its numbers
start with the clock, at a thousand per millisecond. No agent uses numbers that fast, and a float represents them
exactly for 230 years. Its audit log records the restore, and the end of the log that it replaces.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from ebbtide.bounds import MAX_NUMBER
from ebbtide.errors import EbbtideError
from ebbtide.store.chain import AuditEntry
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction

NUMBERS_PER_MS = 1000
"""Events of one agent need fewer: a commit that forgets ten thousand memories takes seconds."""


@dataclass(frozen=True, slots=True)
class Predecessor:
    """The record of a replaced agent."""

    last_event: int = 0
    details: dict[str, object] | None = None
    """Details about its audit log, for the log of its successor; None where there was no agent."""


def highest_event_by(at_ms: int) -> int:
    """Return a number that no event had before this time."""
    return min(max(0, at_ms) * NUMBERS_PER_MS, MAX_NUMBER - 1)


def valid_event_number(number: object, at_ms: int) -> int:
    """Return the number of a last event as it was stored, or the highest possible one if it is invalid."""
    if isinstance(number, int) and 0 <= number < MAX_NUMBER:
        return number
    return highest_event_by(at_ms)


def read_predecessor(path: Path, *, max_map_bytes: int, at_ms: int) -> Predecessor:
    """Read the closed store of an agent that is being replaced. It may be damaged, and its key may be missing."""

    def read(txn: ReadTransaction) -> Predecessor:
        head = txn.meta.audit_head
        details = {"replaced_records": head.number, "replaced_record": head.hash.hex()}
        return Predecessor(valid_event_number(txn.meta.next_event - 1, at_ms), details)

    try:
        return LmdbStore.peek(path, read, max_map_bytes=max_map_bytes)
    except EbbtideError:
        return Predecessor(highest_event_by(at_ms), {"replaced_readable": False})


def continue_from(store: LmdbStore, predecessor: Predecessor, beyond: int, entry: AuditEntry) -> None:
    """Prepare a store that replaces an agent: event numbers start beyond `beyond` and those of the predecessor."""
    full = msgspec.structs.replace(entry, details={**entry.details, **(predecessor.details or {})})

    def write(txn: WriteTransaction) -> None:
        identity = txn.meta.identity
        assert identity is not None, "it was verified"
        txn.events.restart_beyond(max(predecessor.last_event, beyond))
        txn.audit.append(full, identity.agent_id)

    store.write(write)
