"""What makes changes of a directory durable: the rule that a rename counts once its directory is synced.

LMDB syncs its own file; which files there are is for us to sync. Nothing else about files stands here.
"""

from __future__ import annotations

import os
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


def replace_file(path: Path, content: bytes) -> None:
    """Make this the content of a file that only its owner can read, atomically and durably."""
    fresh = path.with_name(f"{path.name}.new")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_directory(path.parent)


def overwrite_and_remove(path: Path) -> bool:
    """Overwrite a file, then remove it, both durably; whether there was one.

    A file system that writes elsewhere than it overwrites, or a disk that does, may still hold what was there.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        os.write(descriptor, os.urandom(os.fstat(descriptor).st_size))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    path.unlink()
    sync_directory(path.parent)
    return True
