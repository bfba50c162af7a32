"""Every step by which a process changes files, counted; at a chosen step a fault happens.

A step is an open for writing, write, truncation, allocation, fsync, rename, removal, or creation of a file or
directory under a root, the opening of an LMDB environment, or an LMDB commit. Nothing on disk changes between two
steps, so a kill before step k is also the kill after step k - 1.

Python's audit events report opens, renames and removals, including calls made in C. Functions without an audit event
are wrapped. `watch` cannot be undone: call it only in a process that is used once (`tests/support/forks.py`).
"""

from __future__ import annotations

import builtins
import io
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmdb

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

AUDITED = frozenset(
    {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate"}
)

WRAPPED = ("fsync", "fdatasync", "write", "pwrite", "posix_fallocate")


class Steps:
    """The steps of one process under a root, and a fault at one of them."""

    def __init__(self, root: Path, at: int, fault: Callable[[], None]) -> None:
        self.root = str(root)
        self.taken: list[str] = []
        """Each step that was taken, with its kind and the name of the file."""
        self.is_armed = False
        self._at = at
        self._fault = fault
        self._lock = threading.RLock()
        self._is_busy = False
        self.broken: int | None = None
        """The errno of every step after the disk broke."""

    def step(self, name: str, target: object) -> None:
        """Count one step. A fault happens before the step. Raise OSError where the disk is broken."""
        with self._lock:
            if self._is_busy:
                return
            if self.is_armed:
                self.taken.append(f"{name} {os.path.basename(os.fsdecode(_path(target)))}")
                if len(self.taken) == self._at:
                    self._is_busy = True
                    self._fault()
                    self._is_busy = False
            if self.broken is not None:
                raise OSError(self.broken, os.strerror(self.broken))

    @property
    def is_active(self) -> bool:
        """Whether a step is to be counted, or fails."""
        return self.is_armed or self.broken is not None

    def end(self) -> None:
        """Count the last moment for a fault: everything is done."""
        with self._lock:
            if self.is_armed and len(self.taken) == self._at - 1:
                self._is_busy = True
                self._fault()
                self._is_busy = False

    def is_within(self, target: object) -> bool:
        """Whether a path, or a descriptor of a file or directory, is one whose changes count."""
        return os.fsdecode(_path(target)).startswith(self.root)


def kill() -> None:
    """Send SIGKILL to this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def watch(steps: Steps) -> None:
    """Count the steps of this process from now on."""
    sys.addaudithook(lambda event, arguments: _hear(steps, event, arguments))
    for name in WRAPPED:
        setattr(os, name, _before(steps, name, getattr(os, name)))
    builtins.open = io.open = _opening(steps, io.open)  # type: ignore[assignment]
    lmdb.open = lambda path, **options: _Environment(steps, path, options)


def _path(target: object) -> Any:
    if isinstance(target, int):
        return os.readlink(f"/proc/self/fd/{target}")
    return target


def _hear(steps: Steps, event: str, arguments: tuple[Any, ...]) -> None:
    if not steps.is_active:
        return
    if event == "open":
        path, _, flags = arguments
        if not isinstance(path, int) and path is not None and flags & WRITING and steps.is_within(path):
            steps.step("open", path)
    elif event in AUDITED:
        # Relative to an open directory, as in a removal of a whole tree; or a path.
        is_relative = any(
            isinstance(one, int) and one != -1 for one in arguments[2 if event == "os.mkdir" else 1 :]
        )
        if is_relative or steps.is_within(arguments[0]):
            steps.step(event.removeprefix("os."), arguments[0])


def _before(steps: Steps, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def stepping(target: int, *arguments: Any) -> Any:
        if steps.is_active and steps.is_within(target):
            steps.step(name, target)
        return function(target, *arguments)

    return stepping


def _opening(steps: Steps, plain: Callable[..., Any]) -> Callable[..., Any]:
    class Raw(io.FileIO):
        """A file that counts every write as a step."""

        def write(self, data: Any) -> int:
            steps.step("write", self.name)
            return super().write(data)

        def truncate(self, size: int | None = None) -> int:
            steps.step("truncate", self.name)
            return super().truncate(size)

    def opened(
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        if not (steps.is_active and set(mode) & set("wax+") and steps.is_within(file)):
            return plain(file, mode, buffering, encoding, errors, newline, closefd, opener)
        assert "b" in mode and opener is None, "only binary files are written under the root"
        raw = Raw(file, mode.replace("b", ""), closefd)
        if buffering == 0:
            return raw
        return io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)

    return opened


class _Environment:
    """An LMDB environment that counts its opening and its commits as steps."""

    def __init__(self, steps: Steps, path: str, options: dict[str, Any]) -> None:
        self._steps = steps
        if steps.is_within(path):
            self._step("lmdb_open", path)
        self._real = lmdb.Environment(path, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def _step(self, name: str, target: object) -> None:
        try:
            self._steps.step(name, target)
        except OSError as error:
            # As LMDB reports what the operating system said.
            raise lmdb.Error(f"{name}: {error.strerror}") from error

    def begin(self, *arguments: Any, **options: Any) -> Any:
        """Begin a transaction. The commit of a write transaction is a step."""
        transaction = self._real.begin(*arguments, **options)
        return _Writing(self, transaction) if options.get("write") else transaction

    def open_db(self, name: bytes, txn: Any = None, **options: Any) -> Any:
        """Open a table; where it may be created in a transaction of its own, that is a step."""
        if txn is None and options.get("create"):
            self._step("commit", self._real.path())
        return self._real.open_db(name, txn=txn, **options)


class _Writing:
    """A transaction that writes, as a context manager; its commit is a step."""

    def __init__(self, environment: _Environment, real: Any) -> None:
        self._environment = environment
        self._real = real

    def __enter__(self) -> Any:
        return self._real.__enter__()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        if kind is None:
            try:
                self._environment._step("commit", self._environment.path())
            except lmdb.Error:
                self._real.abort()
                raise
        return self._real.__exit__(kind, error, trace)
