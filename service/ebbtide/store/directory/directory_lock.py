"""The lock on a data directory: one process at a time, and only while the directory is still there.

A file system can disappear under a running daemon: a disk is unplugged, a network mount is lost, a directory is moved.
Files that are open stay usable then, so that commits would go where no restart finds them. `confirm` tells whether the
directory at the path is the one that was locked. After a mount came back under another device number the content of
the lock file shows that it is the same directory, and the lock is taken again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import threading
from pathlib import Path

from ebbtide.errors import Precondition, Unavailable

RETRY_AFTER_S = 5.0
"""When a caller should try again while the directory is away."""


class DirectoryLock:
    """The lock of one process on one data directory: an flock on its file `lock`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._path = root / "lock"
        self._changing = threading.Lock()
        self._descriptor: int | None = None
        self._content = b""

    def acquire(self) -> None:
        """Lock the directory. DATA_DIRECTORY_LOCKED, naming the holder, when another process has it; or OSError."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(descriptor, 200).decode(errors="replace").split("\n")[0] or "another process"
            os.close(descriptor)
            raise Precondition(
                f"the data directory {self._root} is held by {holder}; "
                "stop it, or choose another directory with --data-dir",
                reason="DATA_DIRECTORY_LOCKED",
            ) from error
        self._descriptor = descriptor
        self._content = f"process {os.getpid()}\n{secrets.token_hex(16)}\n".encode()
        os.ftruncate(descriptor, 0)
        os.write(descriptor, self._content)
        os.fsync(descriptor)

    def release(self) -> None:
        """Unlock the directory. Idempotent."""
        with self._changing:
            if self._descriptor is not None:
                # On a disk that is gone even this may fail.
                with contextlib.suppress(OSError):
                    os.close(self._descriptor)
                self._descriptor = None

    def confirm(self) -> None:
        """STORE_UNAVAILABLE unless the directory at the path is the one that this process locked."""
        with self._changing:
            if self._descriptor is None:
                return
            try:
                if not os.path.samestat(os.stat(self._path), os.fstat(self._descriptor)):
                    self._lock_again()
            except OSError as error:
                raise Unavailable(
                    "the data directory cannot be reached; it was moved or is no longer mounted. "
                    "Nothing was stored. Mount it again",
                    reason="STORE_UNAVAILABLE",
                    retry_after_s=RETRY_AFTER_S,
                ) from error

    def _lock_again(self) -> None:
        """Lock the file at the path in place of the one that is gone. OSError unless it is the same file."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if os.read(descriptor, len(self._content) + 1) != self._content:
                raise FileNotFoundError(f"{self._path} was written by another process")
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        assert self._descriptor is not None
        with contextlib.suppress(OSError):
            os.close(self._descriptor)
        self._descriptor = descriptor
