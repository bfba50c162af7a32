"""LMDB environments: how they are opened, and within which limits.

Nothing found on disk may crash the process:

* A map is at least as large as its file.
* The lock file has its blocks before LMDB maps it.
* A store that may be damaged is read by a child process first (`probe.py`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import lmdb

from ebbtide.errors import Corrupted, Precondition
from ebbtide.store.layout import FORMAT_VERSION, OLDEST_FORMAT, TABLES, VALUE_SIZES, Table
from ebbtide.store.lmdb.probe import is_in_doubt, is_sound
from ebbtide.store.translation import translated

DATA_FILE: Final = "data.mdb"

MAX_TABLES: Final = len(TABLES) + 16
"""Room for the trees, including those of an older or later format."""

MIN_MAP_BYTES: Final = 1 << 18
"""A smaller map cannot contain the empty tables."""

MAX_READERS: Final = 8
"""Jobs of one agent run one at a time; the rest is for a checker or a backup at the same time."""

LOCK_FILE_BYTES: Final = 4096
"""Size of the lock file: more than LMDB needs for MAX_READERS."""


def open_environment(path: Path, *, map_bytes: int, max_map_bytes: int, new: bool) -> Any:
    """Open the LMDB environment in a directory. Raise STORE_CORRUPTED where it cannot be read through."""
    file = path / DATA_FILE
    present = file.stat().st_size if file.exists() else 0
    try:
        if new or present:
            _allocate_lock_file(path)
        environment = lmdb.open(
            str(path),
            map_size=max(min(map_bytes, max_map_bytes), present, MIN_MAP_BYTES),
            max_dbs=MAX_TABLES,
            max_readers=MAX_READERS,
            subdir=True,
            create=new,
            mode=0o600,
            readahead=False,
        )
        if _is_short(file, environment) and not is_sound(path):
            environment.close()
            raise Corrupted("The store file is truncated.", reason="STORE_CORRUPTED")
        return environment
    except (lmdb.Error, OSError) as error:
        raise translated(error, path) from error


def fresh_environment(file: Path, map_bytes: int) -> Any:
    """Create an environment in a new file, for one writer. Commits are not synced."""
    return lmdb.open(
        str(file),
        subdir=False,
        lock=False,
        sync=False,
        map_size=max(map_bytes, MIN_MAP_BYTES * 4),
        max_dbs=MAX_TABLES,
        mode=0o600,
    )


def open_tables(environment: Any, creating: Any = None) -> Mapping[Table[Any], Any]:
    """Return the handle of the tree of each table. With a transaction that creates a store, create the trees too."""
    trees = {
        name: environment.open_db(
            name.encode(), txn=creating, create=creating is not None, dupsort=size > 0, dupfixed=size > 0
        )
        for name, size in VALUE_SIZES.items()
    }
    return {table: trees[table.tree.decode()] for table in TABLES}


def trees_of(handles: Mapping[Table[Any], Any]) -> dict[str, Any]:
    """Return the handle of each tree, by its name."""
    return {table.tree.decode(): handle for table, handle in handles.items()}


def refuse_unsound(path: Path) -> None:
    """Raise STORE_CORRUPTED where the process ended while the store was open and its pages cannot be read."""
    if is_in_doubt(path) and not is_sound(path):
        raise Corrupted("The store cannot be read through.", reason="STORE_CORRUPTED")


def refuse_other_format(version: int) -> None:
    """Raise FORMAT_TOO_NEW for a store of a newer Ebbtide, and FORMAT_TOO_OLD for one that cannot be upgraded."""
    if version < OLDEST_FORMAT:
        raise Precondition(
            f"The data has format {version}; this Ebbtide reads formats {OLDEST_FORMAT} to {FORMAT_VERSION}. "
            "Start with an empty data directory.",
            reason="FORMAT_TOO_OLD",
        )
    if version > FORMAT_VERSION:
        raise Precondition(
            f"The data has format {version}; this Ebbtide reads formats {OLDEST_FORMAT} to {FORMAT_VERSION}. "
            "Use a newer version.",
            reason="FORMAT_TOO_NEW",
        )


def _allocate_lock_file(path: Path) -> None:
    """Allocate the blocks of the lock file: a mapped page without disk space kills the process."""
    descriptor = os.open(path / "lock.mdb", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, LOCK_FILE_BYTES)
    finally:
        os.close(descriptor)


def _is_short(file: Path, environment: Any) -> bool:
    """Return whether a file ends before the last page that it names.

    This is no error by itself: LMDB may omit pages at the end that a transaction took and did not need.
    """
    whole: int = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
    return whole > file.stat().st_size
