"""Probing: a store is read in a process of its own before it is trusted.

LMDB believes what it finds: a page beyond the end of a file that was cut (SIGBUS), or one that holds garbage (a failed
assertion), ends the process that reads it, and with it every other agent. So where there is reason for doubt a child
reads every page first, and it is the child that ends. Reasons are: the process ended while the store was open
(`IN_USE` was left behind), or the file is shorter than it says of itself.

A store that came from elsewhere is not opened at all: the child writes its entries into a fresh store, which LMDB laid
out itself. So neither free pages nor entries out of order, which reading alone does not find, reach the daemon.

What the entries mean is for others to check, with the keys if there are any; here they are only read.
"""

from __future__ import annotations

import contextlib
import json
import resource
import subprocess
import sys
import time
import zlib
from collections.abc import Sequence
from math import inf
from pathlib import Path

import lmdb

from ebbtide.store.hot_copy import copy_tables
from ebbtide.store.resting import Rest

TableKind = tuple[str, bool, bool]
"""A table's name, whether it is one of sorted duplicates, and whether it may be missing."""

SPARE_MAP_BYTES = 1 << 20
"""Room for empty tables. The child imports little, so that it starts soon: it does not know the layout of a store."""

IN_USE = "in-use"
"""An empty file beside a store that is open; one left behind says that the process ended before it was closed."""

LOOK_S = 0.1
"""How often it is looked whether the work was cancelled."""

PATIENCE_S = 600.0
"""How long a probe may take. A store that is still being read then has not ended anything, and is opened."""


def is_sound(path: Path, rest: Rest = lambda: None) -> bool:
    """Whether every page of the store in a directory can be read, by a process that may end over it. Blocks.

    `rest` is called now and then; when it raises, the process is ended.
    """
    return _has_ended_well([str(path)], rest, PATIENCE_S) is not False


def is_copied(source: Path, into: Path, tables: Sequence[TableKind], rest: Rest = lambda: None) -> bool:
    """Write the entries of a store file into a fresh one; whether that went well. Blocks, as `is_sound` does."""
    return _has_ended_well([str(source), str(into), json.dumps(tables)], rest) is True


def _has_ended_well(arguments: list[str], rest: Rest, patience_s: float = inf) -> bool | None:
    """Whether a probe has ended in order; None where it did not end in time."""
    command = [sys.executable, "-m", "ebbtide.store.probe", *arguments]
    silent = subprocess.DEVNULL
    deadline_s = time.monotonic() + patience_s
    with subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent) as probe:
        try:
            while time.monotonic() < deadline_s:
                rest()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return probe.wait(LOOK_S) == 0
            return None
        finally:
            probe.kill()


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


def copy_entries(source: Path, into: Path, tables: list[TableKind]) -> None:
    """Write every entry of a store file into a fresh file, each table in order. Raises where one is out of order."""
    size = source.stat().st_size
    foreign = lmdb.open(
        str(source), subdir=False, readonly=True, lock=False, create=False, max_dbs=256, map_size=size
    )
    # Pages may be filled otherwise; the file takes only what is used of it.
    map_bytes = 4 * size + SPARE_MAP_BYTES
    fresh = lmdb.open(
        str(into), subdir=False, lock=False, sync=False, max_dbs=256, map_size=map_bytes, mode=0o600
    )
    try:
        with foreign.begin() as txn:
            found = {bytes(name).decode() for name, _ in txn.cursor()}
        if any(not may_lack and name not in found for name, _, may_lack in tables):
            raise lmdb.NotFoundError("a table is missing")
        kept = [(name.encode(), is_sorted) for name, is_sorted, _ in tables if name in found]
        opened = {name: foreign.open_db(name, create=False) for name, _ in kept}
        made = {name: fresh.open_db(name, dupsort=is_sorted, dupfixed=is_sorted) for name, is_sorted in kept}
        with foreign.begin() as txn:
            copy_tables(txn, opened, fresh, made, lambda: True)
    finally:
        fresh.close()
        foreign.close()


if __name__ == "__main__":
    # It may well crash, and nobody is served by a picture of its memory.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if len(sys.argv) == 2:
        read_through(Path(sys.argv[1]))
    else:
        copy_entries(Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]))
