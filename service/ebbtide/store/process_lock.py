"""A lock among the threads of several processes, which ends with the process that has it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from pathlib import Path
from types import TracebackType


class ProcessLock:
    """A lock among threads, and among processes where the directory can be opened. Not reentrant.

    The lock is an `flock` of the directory itself, so it leaves no file. If the directory does not exist, the protected
    operation fails anyway.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._among_threads = threading.Lock()
        self._descriptor: int | None = None

    def __enter__(self) -> None:
        self._among_threads.acquire()
        with contextlib.suppress(OSError):
            self._descriptor = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self._among_threads.release()
