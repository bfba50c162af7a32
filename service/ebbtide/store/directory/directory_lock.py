"""The lock on a data directory: one process at a time, and only while the directory is present.

A file system can disappear from a running daemon: a disk is unplugged, a network mount is lost, a directory is moved.
Open files stay usable, and a restart would not find commits to them. `confirm` checks that the directory at the path is
the locked one. A mount may come back with another device number: then the content of the lock file identifies the
directory, and the lock is acquired again.
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
"""When a client should retry while the directory is missing."""


class DirectoryLock:
    """The lock of one process on one data directory: an `flock` of its file `lock`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._path = root / "lock"
        self._changing = threading.Lock()
        self._descriptor: int | None = None
        self._content = b""
        self.life = ""
        """A random id of the process that has the lock."""
        self.previous_life = ""
        """That of the process before it, which has ended; empty if there was none."""
        self.is_shared = False
        """Whether workers have inherited the lock. Each of them then locks a directory that comes back."""

    def acquire(self) -> None:
        """Lock the directory. Raise DATA_DIRECTORY_LOCKED if another process has the lock, or OSError."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(descriptor, 200).decode(errors="replace").split("\n")[0] or "another process"
            os.close(descriptor)
            raise Precondition(
                f"The data directory {self._root} is locked by {holder}. "
                "Stop it, or choose another directory with --data-dir.",
                reason="DATA_DIRECTORY_LOCKED",
            ) from error
        self._descriptor = descriptor
        before = os.pread(descriptor, 200, 0).decode(errors="replace").split("\n")
        self.life, self.previous_life = secrets.token_hex(8), before[1] if len(before) > 1 else ""
        self._content = f"process {os.getpid()}\n{self.life}\n".encode()
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, self._content, 0)
        os.fsync(descriptor)

    def release(self) -> None:
        """Unlock the directory. Idempotent."""
        with self._changing:
            if self._descriptor is not None:
                # This may fail on a disk that was removed.
                with contextlib.suppress(OSError):
                    os.close(self._descriptor)
                self._descriptor = None

    def confirm(self) -> None:
        """Raise STORE_UNAVAILABLE unless this process has locked the directory at the path."""
        with self._changing:
            if self._descriptor is None:
                return
            try:
                if not os.path.samestat(os.stat(self._path), os.fstat(self._descriptor)):
                    self._lock_again()
            except OSError as error:
                raise Unavailable(
                    "The data directory cannot be reached: it was moved or is not mounted. Nothing was stored. "
                    "Mount it again.",
                    reason="STORE_UNAVAILABLE",
                    retry_after_s=RETRY_AFTER_S,
                ) from error

    def _lock_again(self) -> None:
        """Lock the file at the path instead. Raise OSError unless it has the content of the locked file."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if os.read(descriptor, len(self._content) + 1) != self._content:
                raise FileNotFoundError(f"{self._path} was written by another process")
            fcntl.flock(descriptor, (fcntl.LOCK_SH if self.is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        assert self._descriptor is not None
        with contextlib.suppress(OSError):
            os.close(self._descriptor)
        self._descriptor = descriptor
