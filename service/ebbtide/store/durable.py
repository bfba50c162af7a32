"""Durable changes of files: a rename is durable once its directory is synced. LMDB only syncs its own file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path


def sync_directory(path: Path) -> None:
    """Make durable which files a directory has."""
    _sync(path, os.O_RDONLY | os.O_DIRECTORY)


def sync_file(path: Path) -> None:
    """Make the content of a file durable."""
    _sync(path, os.O_RDONLY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_FRESH = ".new"


def fresh_file(path: Path) -> Path:
    """Return the path of a file while it is being written. An interrupted write leaves it."""
    return path.with_name(f"{path.name}{_FRESH}")


def fresh_files(folder: Path) -> list[Path]:
    """Return the files that interrupted writes have left in a directory. No write may be in progress there."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        entries = list(os.scandir(folder))
        names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        return [folder / name for name in sorted(names) if name.endswith(_FRESH)]
    return []


def remove_fresh_files(folder: Path) -> None:
    """Remove the files that interrupted writes have left in a directory. No write may be in progress there."""
    for path in fresh_files(folder):
        path.unlink(missing_ok=True)


def replace_file(path: Path, *parts: bytes, adopt: Callable[[int], None] | None = None) -> None:
    """Replace the content of a file with the given parts, atomically and durably. Only its owner can read it.

    After an error the file is unchanged. `adopt` gets the descriptor of the new file while it is empty, to change its
    owner.
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
    """Overwrite a file, then remove it, both durably. Return whether it existed.

    Copy-on-write file systems and flash disks may still contain the old bytes. The file is renamed first: after an
    interruption it is unchanged, or a start finishes the removal with `fresh_files`.
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
    """Overwrite a file in place, then remove it, both durably."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, os.urandom(os.fstat(descriptor).st_size))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    path.unlink()
    sync_directory(path.parent)
