"""Files: the backup or export of an agent on its way to where it is kept, and back. Nothing is sent here.

The rules guarded here: never more than one piece of a file is in memory; a file that is named by its path is there once
all of it is on disk, and not before; a transfer that breaks off leaves nothing behind under any name.
"""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ebbtide_client import errors
from ebbtide_client.calls import EXPORT_TYPE, Readable, Sending, Target, Writable

PIECE_BYTES = 256 << 10


class Landing:
    """Where a file comes down. A path gets it whole or not at all; what is open gets it piece by piece."""

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
        # An async client may be told to give up while a thread still writes.
        self._lock = threading.Lock()

    @property
    def can_begin_anew(self) -> bool:
        """Whether nothing of a try that failed is left."""
        return self._path is not None or not self.size

    def begin(self) -> None:
        """Make ready for the first piece."""
        if self._path is None:
            return
        name = f".{self._path.name[:100]}."
        descriptor, part = tempfile.mkstemp(prefix=name, suffix=".part", dir=self._path.parent)
        self._into = self._part = os.fdopen(descriptor, "wb")
        self._part_path, self.size = Path(part), 0

    def put(self, piece: bytes) -> None:
        """Take a piece."""
        with self._lock:
            assert self._into is not None, "it was begun"
            while piece:
                taken = self._into.write(piece)
                # What is not buffered may take a part only; what is not from the library may not say how much.
                count = taken if isinstance(taken, int) else len(piece)
                piece = piece[count:]
                self.size += count

    def keep(self) -> None:
        """All is here: put it on disk, and give it its name."""
        with self._lock:
            if self._part is None or self._path is None:
                return
            self._part.flush()
            os.fsync(self._part.fileno())
            self._part.close()
            os.replace(self._part_path, self._path)
            self._part = None

    def drop(self) -> None:
        """Leave nothing of what was not kept."""
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
        raise IsADirectoryError(errno.EISDIR, "a folder; name a file in it", str(path))
    if path.exists() and not path.is_file():
        # A pipe or a device would be replaced by a file.
        raise OSError(errno.EINVAL, "no ordinary file; open it and hand it over", str(path))
    return path


class Parcel:
    """A file that is handed over piece by piece; of an export it is seen that it is one before anything is sent."""

    def __init__(self, sending: Sending) -> None:
        self._is_export = sending.media_type == EXPORT_TYPE
        self._opened: BinaryIO | None = None
        if isinstance(sending.source, str | os.PathLike):
            self._opened = Path(sending.source).open("rb")  # noqa: SIM115
            self._file: Readable = self._opened
        else:
            self._file = sending.source
        self._first = b""

    def look(self) -> None:
        """Read the first piece, and see what it is."""
        self._first = self._read()
        if self._is_export and self._first[:1] != b"{":
            raise errors.InvalidRequest("the source is no export", reason="BACKUP_UNREADABLE")

    def piece(self) -> bytes:
        """The next piece; empty at the end."""
        piece, self._first = self._first or self._read(), b""
        return piece

    def pieces(self) -> Iterator[bytes]:
        """All pieces."""
        while piece := self.piece():
            yield piece

    def close(self) -> None:
        """Close what was opened here."""
        if self._opened is not None:
            self._opened.close()

    def _read(self) -> bytes:
        piece: object = self._file.read(PIECE_BYTES)
        if not isinstance(piece, bytes):
            raise TypeError("the source must be open for reading bytes, not text")
        return piece
