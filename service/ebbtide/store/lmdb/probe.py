"""A child process reads a store before this process trusts it.

LMDB trusts its files. A page beyond the end of a truncated file (SIGBUS) or an invalid page (a failed assertion) ends
the process that reads it, with every other agent. So a child process reads a doubtful store first. There are two cases:

* The process ended while the store was open (`IN_USE` was left behind), or the file is shorter than its header states.
  The child reads every page, and then this process opens the store.
* The file comes from a client. Its list of free pages, its flags and the order of its keys may be forged too, and LMDB
  trusts these when it writes. This process never opens such a file: the child copies every entry of the known tables
  into a new one.

The memory, CPU time and output of the child are limited. Entries may not need more space than the file has: otherwise
pages refer to each other in a circle. The content of entries is checked elsewhere.
"""

from __future__ import annotations

import contextlib
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from operator import itemgetter
from pathlib import Path

import lmdb

from ebbtide.store.lmdb.hot_copy import write_trees
from ebbtide.store.yielding import Pause

IN_USE = "in-use"
"""An empty file next to an open store. If it is left, the process ended before the store was closed."""

TIMEOUT_S = 600.0
"""Time limit of a child. A store that is still being read after it has not crashed the child, and is opened."""

COPIED_BYTES_PER_S = 10 << 20
"""A copy may take longer, by the time that it needs at this speed."""

POLL_S = 0.05
"""How often the caller can cancel a copy."""

MEMORY_BYTES = 512 << 20
"""Memory limit of the child, without its maps of the files."""

ENTRIES_AT_ONCE = 256
"""Entries that the child reads between two checks of their size."""

KEY_BYTES = 8
"""Size of every key of a sorted table."""

Sizes = Mapping[str, int]

_VALUE_OF = itemgetter(1)


def is_sound(path: Path, pause: Pause = lambda: None) -> bool:
    """Return whether a child can read every page of the store in a directory. `pause` may raise to cancel."""
    return _ends_well(TIMEOUT_S, pause, "read", path) is not False


def copy_foreign(file: Path, into: Path, sizes: Sizes, pause: Pause = lambda: None) -> bool:
    """Copy the entries of a foreign LMDB file into a new one, not durably. `pause` may raise to cancel.

    `sizes` has the name of each table, with the size of its values if they are sorted duplicates, else 0. Return False
    if the file is damaged, has more entries than it has space for, or takes too long.
    """
    return _ends_well(_copy_s(file), pause, "copy", file, into, json.dumps(sizes)) is True


def _copy_s(file: Path) -> float:
    return TIMEOUT_S + file.stat().st_size / COPIED_BYTES_PER_S


def _ends_well(timeout_s: float, pause: Pause, *arguments: str | Path) -> bool | None:
    """Run the child. Return whether it succeeded, or None where it did not end in time."""
    deadline_s = time.monotonic() + timeout_s
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
    """Return whether the process ended while the store in a directory was open."""
    return (path / IN_USE).exists()


def note_use(path: Path) -> None:
    """Note that the store is open. Not synced: it only has to survive the process."""
    # On a full disk the store is opened without the note.
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
    _limit(file.stat().st_size, TIMEOUT_S)
    environment = lmdb.open(str(file), subdir=False, readonly=True, lock=False, create=False, max_dbs=256)
    room = _Room(file)
    with environment.begin() as txn:
        names = [name for name, _ in txn.cursor()]
        for name in names:
            table = environment.open_db(name, txn=txn, create=False)
            # LMDB copies each entry, which reads all of it: a long value has pages of its own.
            values = map(_VALUE_OF, txn.cursor(table))
            while sizes := list(map(len, islice(values, ENTRIES_AT_ONCE))):
                room.take(max(len(sizes), sum(sizes)))


def copy_through(file: Path, into: Path, sizes: Sizes) -> None:
    """Copy every entry of the known tables of an LMDB file into a new one. Fail if an entry is invalid."""
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
        entries: dict[str, Iterable[tuple[bytes, bytes]]] = {}
        for name, value_bytes in sizes.items():
            if txn.get(name.encode()) is not None:
                table = source.open_db(name.encode(), txn=txn, create=False)
                found = room.within(txn.cursor(table))
                entries[name] = _of_size(found, value_bytes) if value_bytes else found
        write_trees(fresh, {name: sizes[name] for name in entries}, entries)
    fresh.close()


def _of_size(entries: Iterable[tuple[bytes, bytes]], value_bytes: int) -> Iterator[tuple[bytes, bytes]]:
    for key, value in entries:
        if (len(key), len(value)) != (KEY_BYTES, value_bytes):
            raise ValueError("an entry has a wrong size")
        yield key, value


class _Room:
    """The space of a file: its entries do not need more, unless a page is referred to twice."""

    def __init__(self, file: Path) -> None:
        self._left = file.stat().st_size

    def within(self, entries: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries of a table. Raise ValueError if they need more space than is left."""
        last = None
        for key, value in entries:
            # Duplicates share one key. An empty entry counts too, so that every walk ends.
            self.take(max(len(value), 1) + (len(key) if key != last else 0))
            last = key
            yield key, value

    def take(self, size: int) -> None:
        """Use some of the space. Raise ValueError if less is left."""
        self._left -= size
        if self._left < 0:
            raise ValueError("more entries than the file has space for")


def _limit(map_bytes: int, timeout_s: float) -> None:
    """Limit the child. Its maps need `map_bytes`, or twice as much for a truncated file."""
    # The child may crash, and its memory image is useless.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    seconds = int(timeout_s)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    memory = MEMORY_BYTES + 2 * map_bytes
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


if __name__ == "__main__":
    if sys.argv[1] == "copy":
        copy_through(Path(sys.argv[2]), Path(sys.argv[3]), json.loads(sys.argv[4]))
    else:
        read_through(Path(sys.argv[2]))
