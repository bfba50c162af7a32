"""Files: write a download to disk, and read an upload. Nothing is sent here.

At most one piece of a file is in memory. A path has its file only after all of it is on disk. A transfer that breaks
off leaves no partial file behind.
"""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ebbtide_client import errors
from ebbtide_client.calls import EXPORT_TYPE, Readable, Sending, Target, Writable

PIECE_BYTES = 256 << 10


class Download:
    """A file being written. A path receives it completely or not at all; an open file receives it piece by piece."""

    def __init__(self, to: Target) -> None:
        self.size = 0
        self._into: Writable | None = None
        self._path: Path | None = None
        if isinstance(to, str | os.PathLike):
            self._path = _place(Path(to))
        else:
            self._into = to
        self._part: BinaryIO | None = None
        self._part_path = Path()
        # An async client may be cancelled while a thread still writes.
        self._lock = threading.Lock()

    @property
    def can_restart(self) -> bool:
        """Whether another attempt can start from nothing."""
        return self._path is not None or not self.size

    def begin(self) -> None:
        """Prepare for the first piece."""
        if self._path is None:
            return
        name = f".{self._path.name[:100]}."
        descriptor, part = tempfile.mkstemp(prefix=name, suffix=".part", dir=self._path.parent)
        self._into = self._part = os.fdopen(descriptor, "wb")
        self._part_path, self.size = Path(part), 0

    def write(self, piece: bytes) -> None:
        """Write a piece."""
        with self._lock:
            assert self._into is not None, "begin() was called"
            while piece:
                taken = self._into.write(piece)
                # An unbuffered file may write only a part. Other file objects may return no count.
                count = taken if isinstance(taken, int) else len(piece)
                piece = piece[count:]
                self.size += count

    def commit(self) -> None:
        """Sync the file to disk and give it its name."""
        with self._lock:
            if self._part is None or self._path is None:
                return
            self._part.flush()
            os.fsync(self._part.fileno())
            self._part.close()
            os.replace(self._part_path, self._path)
            self._part = None

    def discard(self) -> None:
        """Delete the file unless it was committed. Idempotent."""
        with self._lock:
            if self._part is None:
                return
            with suppress(OSError):
                self._part.close()
            self._part_path.unlink(missing_ok=True)
            self._part = None


def _place(path: Path) -> Path:
    path = path.resolve()
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder; name a file in it", str(path))
    if path.exists() and not path.is_file():
        # A pipe or a device would be replaced by a file.
        raise OSError(errno.EINVAL, "is not a regular file; open it and pass the file object", str(path))
    return path


class Upload:
    """A file being read. An export is recognised before anything is sent."""

    def __init__(self, sending: Sending) -> None:
        self._is_export = sending.media_type == EXPORT_TYPE
        self._opened: BinaryIO | None = None
        if isinstance(sending.source, str | os.PathLike):
            self._opened = Path(sending.source).open("rb")  # noqa: SIM115
            self._file: Readable = self._opened
        else:
            self._file = sending.source
        self._first = b""

    def check(self) -> None:
        """Read the first piece. Raise InvalidRequest if an export is expected and this is none."""
        self._first = self._read()
        if self._is_export and self._first[:1] != b"{":
            raise errors.InvalidRequest("the source is not an export", reason="BACKUP_UNREADABLE")

    def piece(self) -> bytes:
        """Return the next piece; empty at the end."""
        piece, self._first = self._first or self._read(), b""
        return piece

    def close(self) -> None:
        """Close the file if it was opened here."""
        if self._opened is not None:
            self._opened.close()

    def _read(self) -> bytes:
        piece: object = self._file.read(PIECE_BYTES)
        if not isinstance(piece, bytes):
            raise TypeError("the source must be open for reading bytes, not text")
        return piece
