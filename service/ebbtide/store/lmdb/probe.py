"""Probing: a child process reads a store through before this process trusts it.

LMDB believes what it finds: a page beyond the end of a file that was cut (SIGBUS), or one that holds garbage (a failed
assertion), ends the process that reads it, and with it every other agent. So where there is reason for doubt a child
reads every page first, and it is the child that ends. There are two kinds of doubt:

* The process ended while the store was open (`IN_USE` was left behind), or the file is shorter than it says of itself.
  The child reads the store through, and then this process opens it.
* The file came from elsewhere. Then its list of free pages, its flags and the order of its keys may be forged too, and
  LMDB trusts these when it writes. This process never opens such a file: the child writes every entry of the known
  tables into a fresh one.

The child's memory, CPU time and output are limited. Pages that refer to each other in circles would be read without an
end, so entries may take no more room together than the file has.

What the entries mean is for others to check, with the keys if there are any.
"""

from __future__ import annotations

import contextlib
import json
import resource
import subprocess
import sys
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import lmdb

from ebbtide.store.lmdb.hot_copy import COMMIT_BYTES, pieces
from ebbtide.store.yielding import Pause

IN_USE = "in-use"
"""An empty file beside a store that is open; one left behind says that the process ended before it was closed."""

PATIENCE_S = 600.0
"""How long a probe may take. A store that is still being read then has not ended anything, and is opened."""

COPIED_BYTES_PER_S = 10 << 20
"""A copy may take longer, by the time it needs at this speed."""

POLL_S = 0.05
"""How often the caller of a copy may give it up."""

MEMORY_BYTES = 512 << 20
"""What the child may use beside its maps of the files."""

KEY_BYTES = 8
"""Size of every key of a sorted table."""

Sizes = Mapping[str, int]
"""The name of each table, with the size of its values where they are sorted duplicates, else 0."""


def is_sound(path: Path, pause: Pause = lambda: None) -> bool:
    """Return whether a child can read every page of the store in a directory. Block; `pause` may cancel by raising."""
    return _ends_well(PATIENCE_S, pause, "read", path) is not False


def copy_foreign(file: Path, into: Path, sizes: Sizes, pause: Pause = lambda: None) -> bool:
    """Write the entries of an LMDB file from elsewhere into a fresh one, not durably. Block; `pause` may cancel.

    Return False where the file is damaged, is larger unpacked than it can be, or takes too long.
    """
    return _ends_well(_copy_s(file), pause, "copy", file, into, json.dumps(sizes)) is True


def _copy_s(file: Path) -> float:
    return PATIENCE_S + file.stat().st_size / COPIED_BYTES_PER_S


def _ends_well(patience_s: float, pause: Pause, *arguments: str | Path) -> bool | None:
    """Run the child; return whether it succeeded, None where it did not end in time."""
    deadline_s = time.monotonic() + patience_s
    with _child(*arguments) as child:
        try:
            while time.monotonic() < deadline_s:
                pause()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return child.wait(POLL_S) == 0
            return None
        finally:
            child.kill()


def _child(*arguments: str | Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "ebbtide.store.lmdb.probe", *map(str, arguments)]
    silent = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent)


def is_in_doubt(path: Path) -> bool:
    """Whether the process ended while the store in a directory was open."""
    return (path / IN_USE).exists()


def note_use(path: Path) -> None:
    """Note that the store is open. Not synced: it outlives the process, which is what it is for."""
    # Where no file can be made, for want of room, the store is opened all the same.
    with contextlib.suppress(OSError):
        (path / IN_USE).touch(mode=0o600)


def note_closed(path: Path) -> None:
    """Note that the store was closed."""
    with contextlib.suppress(OSError):
        (path / IN_USE).unlink(missing_ok=True)


# --- the child ---------------------------------------------------------------------------------------------


def read_through(path: Path) -> None:
    """Read every page that the tables of a store refer to."""
    file = path / "data.mdb"
    _limit(file.stat().st_size, PATIENCE_S)
    environment = lmdb.open(str(file), subdir=False, readonly=True, lock=False, create=False, max_dbs=256)
    room = _Room(file)
    with environment.begin(buffers=True) as txn:
        names = [bytes(name) for name, _ in txn.cursor()]
        for name in names:
            table = environment.open_db(name, txn=txn, create=False)
            for key, value in room.within(txn.cursor(table)):
                # All of it: a long value has pages of its own.
                zlib.crc32(value, zlib.crc32(key))


def copy_through(file: Path, into: Path, sizes: Sizes) -> None:
    """Write every entry of the known tables of an LMDB file into a fresh one; fail where one does not fit there."""
    size = file.stat().st_size
    most = 2 * size + (4 << 20)
    _limit(size + most, _copy_s(file))
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    source = lmdb.open(str(file), subdir=False, readonly=True, lock=False, create=False, max_dbs=len(sizes))
    fresh = lmdb.open(
        str(into), subdir=False, lock=False, sync=False, map_size=most, max_dbs=len(sizes), mode=0o600
    )
    room = _Room(file)
    with source.begin() as txn:
        for name, value_bytes in sizes.items():
            if txn.get(name.encode()) is None:
                continue
            table = source.open_db(name.encode(), txn=txn, create=False)
            is_sorted = value_bytes > 0
            new = fresh.open_db(name.encode(), dupsort=is_sorted, dupfixed=is_sorted)
            entries = room.within(txn.cursor(table))
            _write(fresh, new, _of_size(entries, value_bytes) if is_sorted else entries)
    fresh.close()


def _write(fresh: Any, table: Any, entries: Iterable[tuple[bytes, bytes]]) -> None:
    left = pieces(entries)
    piece = next(left, None)
    while piece is not None:
        written = 0
        with fresh.begin(write=True) as txn:
            cursor = txn.cursor(db=table)
            while piece is not None and written < COMMIT_BYTES:
                # Keys that are not in order, or not the only ones, are passed over, and counted as not added.
                if cursor.putmulti(piece, append=True)[1] != len(piece):
                    raise ValueError("entries are not in order")
                written += sum(len(key) + len(value) for key, value in piece)
                piece = next(left, None)


def _of_size(entries: Iterable[tuple[bytes, bytes]], value_bytes: int) -> Iterator[tuple[bytes, bytes]]:
    for key, value in entries:
        if (len(key), len(value)) != (KEY_BYTES, value_bytes):
            raise ValueError("an entry of another size")
        yield key, value


class _Room:
    """The bytes of a file: what all its entries together take at most, unless pages are referred to twice."""

    def __init__(self, file: Path) -> None:
        self._left = file.stat().st_size

    def within(self, entries: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """The entries of a table; ValueError where they need more room than is left."""
        last = None
        for key, value in entries:
            # Duplicates share one key, and an entry of no length must end a walk too.
            self._left -= max(len(value), 1) + (len(key) if key != last else 0)
            last = bytes(key)
            if self._left < 0:
                raise ValueError("more entries than the file has room for")
            yield key, value


def _limit(map_bytes: int, patience_s: float) -> None:
    """Bound what the child may take; its maps of files need `map_bytes`, or twice as much where a file was cut."""
    # It may well crash, and nobody is served by a picture of its memory.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    seconds = int(patience_s)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    memory = MEMORY_BYTES + 2 * map_bytes
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


if __name__ == "__main__":
    if sys.argv[1] == "copy":
        copy_through(Path(sys.argv[2]), Path(sys.argv[3]), json.loads(sys.argv[4]))
    else:
        read_through(Path(sys.argv[2]))
