"""Whether the file of an open store is still the one at its path.

An open file stays usable after its file system was unmounted, or its directory moved or removed. A commit to it would
be acknowledged and lost at a restart. So a store compares device and inode before and after each commit: two calls of
`stat`, which take microseconds next to a sync.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from ebbtide.errors import Unavailable

Confirm = Callable[[], None]
"""Raises where the data directory is not the one that this process has locked."""


def nothing_to_confirm() -> None:
    """Accept any place: the store is in no data directory."""


def is_missing(path: Path, confirm: Confirm) -> bool:
    """Return whether a file that was not found does not exist. Raise STORE_UNAVAILABLE if the data directory is away.

    If the data directory was away for a moment, the file exists again.
    """
    confirm()
    return not os.path.lexists(path)


_TRIES = 3


def opened(path: Path, confirm: Confirm) -> BinaryIO | None:
    """Open a file for reading, or return None if it does not exist. Raise OSError, and STORE_UNAVAILABLE as above.

    A file that appears after it was not found is opened again: another thread has created it, or its disk was away.
    """
    for _ in range(_TRIES - 1):
        try:
            return path.open("rb")
        except FileNotFoundError:
            if is_missing(path, confirm):
                return None
    return path.open("rb")


class Presence:
    """The file of one store as it was when it was opened."""

    def __init__(self, file: Path, confirm: Confirm) -> None:
        self._file = file
        self.confirm = confirm
        self.note()

    def note(self) -> None:
        """Note which file is at the path: it was opened just now."""
        self._noted = self._found()

    @property
    def is_there(self) -> bool:
        """Whether the file that was opened is at its path."""
        return self._found() == self._noted

    def must_reopen(self) -> bool:
        """Return whether another file is at the path, in the locked directory. Raise STORE_UNAVAILABLE for none."""
        found = self._found()
        if found == self._noted:
            return False
        self.confirm()
        if found is None:
            raise file_moved()
        return True

    def _found(self) -> tuple[int, int] | None:
        try:
            status = self._file.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino


def file_moved() -> Unavailable:
    """Return the error of a write whose file is not at its path."""
    return Unavailable(
        "The agent's store is not at its path. Writes fail until it is back.",
        reason="STORE_UNAVAILABLE",
        retry_after_s=1.0,
    )
