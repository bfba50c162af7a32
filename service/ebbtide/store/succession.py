"""What an agent leaves to the next one of its id: how far the numbers of its events went.

The rule guarded here: whoever watches an agent is never given one number for two things, also where the agent was
erased and made anew, or another store took its place. So the next life begins beyond the numbers of the one before,
with one left out: who has seen all of that gets EVENTS_GONE too, and not what comes as if nothing else had happened.

A store that comes from elsewhere may be older than what its watchers saw, and nobody here knows how much. Its numbers
begin with the clock, a thousand a millisecond: more than any agent ever uses up, and exact in a float for 230 years.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ebbtide.errors import EbbtideError
from ebbtide.store.events import MOST_NUMBER
from ebbtide.store.lmdb_store import LmdbStore
from ebbtide.store.port import ReadTransaction

NUMBERS_PER_MS = 1000
"""Events of one agent take fewer: a commit that forgets ten thousand memories takes seconds."""


@dataclass(frozen=True, slots=True)
class Legacy:
    """What is known of an agent that gives way to another."""

    last_event: int = 0


def last_event_by(at_ms: int) -> int:
    """A number that no event had before this moment, however often its agent was made anew."""
    return min(max(0, at_ms) * NUMBERS_PER_MS, MOST_NUMBER - 1)


def likely(number: object, at_ms: int) -> int:
    """The number of a last event as it was found somewhere, or what it can be at most where that is none."""
    if isinstance(number, int) and 0 <= number < MOST_NUMBER:
        return number
    return last_event_by(at_ms)


def legacy_in(path: Path, *, max_map_bytes: int, at_ms: int) -> Legacy:
    """What the agent in a directory leaves; it is closed, and may be damaged, or sealed with a key that is gone."""

    def read(txn: ReadTransaction) -> Legacy:
        return Legacy(likely(txn.next_event() - 1, at_ms))

    try:
        return LmdbStore.look(path, read, max_map_bytes=max_map_bytes)
    except EbbtideError:
        return Legacy(last_event_by(at_ms))
