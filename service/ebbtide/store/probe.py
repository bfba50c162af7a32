"""Probing: a store is read through in a process of its own before it is trusted.

LMDB believes what it finds: a page beyond the end of a file that was cut (SIGBUS), or one that holds garbage (a failed
assertion), ends the process that reads it, and with it every other agent. So where there is reason for doubt a child
reads every page first, and it is the child that ends. Reasons are: the process ended while the store was open
(`IN_USE` was left behind), the file is shorter than it says of itself, or it came from elsewhere.

What the pages mean is for others to check, with the keys if there are any; here they are only read.
"""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
import zlib
from pathlib import Path

import lmdb

IN_USE = "in-use"
"""An empty file beside a store that is open; one left behind says that the process ended before it was closed."""

PATIENCE_S = 600.0
"""How long a probe may take. A store that is still being read then has not ended anything, and is opened."""


def is_sound(path: Path) -> bool:
    """Whether every page of the store in a directory can be read, by a process that may end over it. Blocks."""
    command = [sys.executable, "-m", "ebbtide.store.probe", str(path)]
    silent = subprocess.DEVNULL
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = subprocess.run(
            command, stdin=silent, stdout=silent, stderr=silent, check=False, timeout=PATIENCE_S
        )
        return done.returncode == 0
    return True


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


def read_through(path: Path) -> None:
    """Read every page that the tables of a store refer to."""
    environment = lmdb.open(str(path), readonly=True, lock=False, create=False, max_dbs=256)
    with environment.begin(buffers=True) as txn:
        names = [bytes(name) for name, _ in txn.cursor()]
        for name in names:
            table = environment.open_db(name, txn=txn, create=False)
            for key, value in txn.cursor(table):
                # All of it: a long value has pages of its own.
                zlib.crc32(value, zlib.crc32(key))


if __name__ == "__main__":
    # It may well crash, and nobody is served by a picture of its memory.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    read_through(Path(sys.argv[1]))
