"""What makes changes of a directory durable: the rule that a rename counts once its directory is synced.

LMDB syncs its own file; which files there are is for us to sync. Nothing else about files stands here.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path


def sync_directory(path: Path) -> None:
    """Make what was created in, renamed in or removed from a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make what was written into a file durable, by whatever wrote it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_FRESH = ".new"


def fresh_file(path: Path) -> Path:
    """Where a file is written until it is whole; a write that was cut off may have left it."""
    return path.with_name(f"{path.name}{_FRESH}")


def fresh_files(folder: Path) -> list[Path]:
    """What writes that were cut off left in a directory. Nothing may be writing there."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        entries = list(os.scandir(folder))
        names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        return [folder / name for name in sorted(names) if name.endswith(_FRESH)]
    return []


def remove_fresh_files(folder: Path) -> None:
    """Remove what writes that were cut off left in a directory. Nothing may be writing there."""
    for path in fresh_files(folder):
        path.unlink(missing_ok=True)


def replace_file(path: Path, *parts: bytes, adopt: Callable[[int], None] | None = None) -> None:
    """Make the parts, one after the other, the content of a file that only its owner can read.

    Atomic and durable. Where it fails the file is as it was, and nothing is left beside it. `adopt` gets the
    descriptor of the new file while it is empty: whose it is to be is settled before anything stands in it.
    """
    fresh = fresh_file(path)
    try:
        fresh.unlink(missing_ok=True)
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            if adopt is not None:
                adopt(file.fileno())
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def overwrite_and_remove(path: Path) -> bool:
    """Overwrite a file, then remove it, both durably; whether there was one.

    A file system that writes elsewhere than it overwrites, or a disk that does, may still hold what was there. The file
    gets the name of a fresh one first: cut off, it is either as it was, or what a start finishes with `fresh_files`.
    """
    doomed = fresh_file(path)
    try:
        path.rename(doomed)
    except FileNotFoundError:
        return False
    sync_directory(path.parent)
    overwrite_and_unlink(doomed)
    return True


def overwrite_and_unlink(path: Path) -> None:
    """Overwrite a file in its place, then remove it, both durably."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, os.urandom(os.fstat(descriptor).st_size))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    path.unlink()
    sync_directory(path.parent)
