"""What an agent leaves to the next one of its id: how far the numbers of its events went, the end of its audit log.

The rule guarded here: whoever watches an agent is never given one number for two things, also where the agent was
erased and made anew, or another store took its place. So the next life begins beyond the numbers of the one before,
with one left out: who has seen all of that gets EVENTS_GONE too, and not what comes as if nothing else had happened.

A store that comes from elsewhere may be older than what its watchers saw, and nobody here knows how much. Its numbers
begin with the clock, a thousand a millisecond: more than any agent ever uses up, and exact in a float for 230 years.
And its audit log says that it came, and the end of which log it has replaced.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from ebbtide.bounds import MAX_NUMBER
from ebbtide.errors import EbbtideError
from ebbtide.store.chain import AuditEntry
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.port import ReadTransaction, WriteTransaction

NUMBERS_PER_MS = 1000
"""Events of one agent take fewer: a commit that forgets ten thousand memories takes seconds."""


@dataclass(frozen=True, slots=True)
class Legacy:
    """What is known of an agent that gives way to another."""

    last_event: int = 0
    records: dict[str, object] | None = None
    """What the audit log of the next one tells of this one's; None where there was no agent."""


def last_event_by(at_ms: int) -> int:
    """A number that no event had before this moment, however often its agent was made anew."""
    return min(max(0, at_ms) * NUMBERS_PER_MS, MAX_NUMBER - 1)


def likely(number: object, at_ms: int) -> int:
    """The number of a last event as it was found somewhere, or what it can be at most where that is none."""
    if isinstance(number, int) and 0 <= number < MAX_NUMBER:
        return number
    return last_event_by(at_ms)


def legacy_in(path: Path, *, max_map_bytes: int, at_ms: int) -> Legacy:
    """What the agent in a directory leaves; it is closed, and may be damaged, or sealed with a key that is gone."""

    def read(txn: ReadTransaction) -> Legacy:
        head = txn.audit_head()
        records = {"replaced_records": head.number, "replaced_record": head.hash.hex()}
        return Legacy(likely(txn.next_event() - 1, at_ms), records)

    try:
        return LmdbStore.look(path, read, max_map_bytes=max_map_bytes)
    except EbbtideError:
        return Legacy(last_event_by(at_ms), {"replaced_readable": False})


def begin_life(store: LmdbStore, former: Legacy, beyond: int, entry: AuditEntry) -> None:
    """Let a store that is about to take the place of an agent go on from there, and tell that it came, at once."""
    told = msgspec.structs.replace(entry, details={**entry.details, **(former.records or {})})

    def write(txn: WriteTransaction) -> None:
        identity = txn.identity()
        assert identity is not None, "it was verified"
        txn.begin_events_beyond(max(former.last_event, beyond))
        txn.record(told, identity.agent_id)

    store.write(write)
