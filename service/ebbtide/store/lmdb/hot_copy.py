"""Hot copies: every entry of an open store is written into a new one while the agent remains available.

A copy reads one consistent state, and no job waits for it. But the map cannot grow, and the environment cannot be
closed, while a transaction is open in it. `CopyGate.standstill` ends the copies in progress for that; their callers
start them again afterwards.

Entries are copied one by one. This omits deleted data in free pages, and LMDB's own compacting copy crashes the process
on tables of many sorted duplicates of one size (0.9.36), which links are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import lmdb

PIECE_ENTRIES = 256
PIECE_BYTES = 1 << 20
"""Written at once, while no other thread runs: some tenths of a millisecond. A copy can end between two pieces."""

COMMIT_BYTES = 16 << 20
"""Data that a transaction of the new store may have in memory."""


class CopyGate:
    """Counts the copies of one environment in progress, and ends them for a standstill."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._copies = 0
        self._standstills = 0

    @property
    def must_end(self) -> bool:
        """Whether another thread waits for copies to end."""
        return self._standstills > 0

    @contextmanager
    def copying(self) -> Iterator[None]:
        """Mark a copy as in progress. Waits until no standstill is requested."""
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
        """Wait until no copy is in progress, and let none start during the block."""
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


def write_trees(
    into: Any,
    sizes: Mapping[str, int],
    entries: Mapping[str, Iterable[tuple[bytes, bytes]]],
    may_go_on: Callable[[], bool] = lambda: True,
) -> bool:
    """Create trees in an empty environment and write their sorted entries, a small store in one commit.

    `sizes` has the name of each tree, with the size of its values if they are sorted duplicates, else 0. `may_go_on` is
    called between two pieces. Return False once it returns False. Raise CorruptedError where keys are out of order or
    duplicated.
    """
    left = ((name, piece) for name, several in entries.items() for piece in pieces(several))
    name, piece = next(left, ("", []))
    trees: dict[str, Any] = {}
    while piece or not trees:
        written = 0
        with into.begin(write=True) as txn:
            trees = trees or {
                name: into.open_db(name.encode(), txn=txn, create=True, dupsort=size > 0, dupfixed=size > 0)
                for name, size in sizes.items()
            }
            while piece and written < COMMIT_BYTES:
                if not may_go_on():
                    return False
                # LMDB skips such keys, and does not count them.
                if txn.cursor(db=trees[name]).putmulti(piece, append=True)[1] != len(piece):
                    raise lmdb.CorruptedError("entries are out of order")
                written += sum(len(key) + len(value) for key, value in piece)
                name, piece = next(left, ("", []))
    return True


def pieces(entries: Iterable[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    """Yield entries in lists of at most `PIECE_ENTRIES` entries or about `PIECE_BYTES` bytes."""
    piece: list[tuple[bytes, bytes]] = []
    size = 0
    for key, value in entries:
        piece.append((key, value))
        size += len(key) + len(value)
        if len(piece) == PIECE_ENTRIES or size >= PIECE_BYTES:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece
