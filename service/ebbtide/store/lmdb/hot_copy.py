"""A hot copy: every entry of an open store written into a new one, beside the jobs of its agent.

The rule guarded here: nothing waits for a copy. It reads one consistent state, however long it takes, while jobs go on
committing; but the map may not grow, nor the environment be closed, while a transaction is open in it. Who has to do
that asks for a standstill: copies under way end, and what they were for begins anew afterwards.

Entry by entry, because only this leaves out what was deleted but still stands in free pages, and because LMDB's own
compacting copy crashes the process on tables of many sorted duplicates of one size (0.9.36), which links are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

ENTRIES_AT_ONCE = 256
BYTES_AT_ONCE = 1 << 20
"""What is written in one go, which nobody else can run beside: some tenths of a millisecond. A copy can be ended, and
rests, between two of these."""

BYTES_IN_A_COMMIT = 16 << 20
"""What a transaction of the new store may hold in memory."""


class CopyGate:
    """Counts the copies of one environment that are under way, and ends them for a standstill."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._copies = 0
        self._standstills = 0

    @property
    def must_end(self) -> bool:
        """Whether somebody waits for copies to end."""
        return self._standstills > 0

    @contextmanager
    def copying(self) -> Iterator[None]:
        """Read the environment beside its jobs, for the block; begins when nobody wants a standstill."""
        with self._changed:
            while self._standstills:
                self._changed.wait()
            self._copies += 1
        try:
            yield
        finally:
            with self._changed:
                self._copies -= 1
                self._changed.notify_all()

    @contextmanager
    def standstill(self) -> Iterator[None]:
        """No copy is under way for the length of the block; those that are end soon."""
        with self._changed:
            self._standstills += 1
            while self._copies:
                self._changed.wait()
        try:
            yield
        finally:
            with self._changed:
                self._standstills -= 1
                self._changed.notify_all()


def copy_tables(
    source: Any,
    tables: Mapping[bytes, Any],
    into: Any,
    new_tables: Mapping[bytes, Any],
    between: Callable[[], bool],
) -> bool:
    """Write every entry that a transaction sees into the empty tables of another environment; False when cut off.

    `between` is called all the while; it may rest, and tells whether to go on.
    """
    for name, table in tables.items():
        left = pieces(source.cursor(db=table).iternext())
        piece: list[tuple[bytes, bytes]] | None = next(left, None)
        while piece is not None:
            written = 0
            with into.begin(write=True) as txn:
                cursor = txn.cursor(db=new_tables[name])
                while piece is not None and written < BYTES_IN_A_COMMIT:
                    if not between():
                        return False
                    cursor.putmulti(piece, append=True)
                    written += sum(len(key) + len(value) for key, value in piece)
                    piece = next(left, None)
    return True


def pieces(entries: Iterable[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    """Yield entries in lists of at most `ENTRIES_AT_ONCE`, or of about `BYTES_AT_ONCE`."""
    piece: list[tuple[bytes, bytes]] = []
    size = 0
    for key, value in entries:
        piece.append((key, value))
        size += len(key) + len(value)
        if len(piece) == ENTRIES_AT_ONCE or size >= BYTES_AT_ONCE:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece
