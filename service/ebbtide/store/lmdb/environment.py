"""LMDB's environments and their tables: how they are opened, and with which bounds.

The rule guarded here: nothing that is found on disk kills the process. A map is at least as large as its file; the lock
file has its blocks before it is mapped; and a file that is shorter than it says of itself is read by another process
first (`probe.py`). What is done in an environment is for `lmdb_store.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import lmdb

from ebbtide.errors import Corrupted
from ebbtide.store import layout
from ebbtide.store.lmdb.probe import is_sound
from ebbtide.store.translation import translated

MOST_TABLES = len(layout.TABLES) + 16
"""Tables there is room for, those of a later format among them."""

SMALLEST_MAP_BYTES = 1 << 18
"""Below this LMDB cannot even hold the empty tables."""

MAX_READERS = 8
"""Jobs of one agent run one at a time; the rest is room for a checker or a backup beside them."""

LOCK_FILE_BYTES = 8192
"""Room for the reader table of MAX_READERS, with page sizes up to 8 KiB."""


def _allocate_lock_file(path: Path) -> None:
    """Give the lock file its blocks before LMDB maps it: a mapped page that finds no room kills the process."""
    descriptor = os.open(path / "lock.mdb", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, LOCK_FILE_BYTES)
    finally:
        os.close(descriptor)


def open_environment(path: Path, *, map_bytes: int, max_map_bytes: int, new: bool) -> Any:
    """LMDB's environment in a directory, its map at least as large as its file."""
    present = (path / "data.mdb").stat().st_size if (path / "data.mdb").exists() else 0
    try:
        if new or present:
            _allocate_lock_file(path)
        environment = lmdb.open(
            str(path),
            map_size=max(min(map_bytes, max_map_bytes), present, SMALLEST_MAP_BYTES),
            max_dbs=MOST_TABLES,
            max_readers=MAX_READERS,
            subdir=True,
            create=new,
            mode=0o600,
            readahead=False,
        )
        if _is_short(path / "data.mdb", environment) and not is_sound(path):
            environment.close()
            raise Corrupted("the store was cut short", reason="STORE_CORRUPTED")
        return environment
    except (lmdb.Error, OSError) as error:
        raise translated(error, path) from error


def _is_short(file: Path, environment: Any) -> bool:
    """Whether a file ends before the last page that it says it has.

    LMDB itself may leave out pages at the end that a transaction took and did not need, so this is no fault by itself.
    """
    whole: int = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
    return whole > file.stat().st_size


def opened_tables(environment: Any, names: Iterable[bytes], creating: Any = None) -> dict[bytes, Any]:
    """Tables, open; in a transaction that creates the store they are made, else only later ones may be."""
    tables = {}
    for name in names:
        duplicates = name in layout.SORTED_TABLES
        tables[name] = environment.open_db(
            name,
            txn=creating,
            create=creating is not None or name in layout.LATER_TABLES,
            dupsort=duplicates,
            dupfixed=duplicates,
        )
    return tables


def fresh_environment(file: Path, map_bytes: int) -> Any:
    """An environment in a file that is not there yet, for one writer who syncs it, or has no need to."""
    return lmdb.open(
        str(file),
        subdir=False,
        lock=False,
        sync=False,
        map_size=max(map_bytes, SMALLEST_MAP_BYTES * 4),
        max_dbs=MOST_TABLES,
        mode=0o600,
    )
