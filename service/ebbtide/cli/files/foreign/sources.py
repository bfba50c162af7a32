"""The files of an import: a file, an archive, a folder, or a pattern, as readers take them.

Products divide large exports among several files and pack them. Nothing is unpacked to a disk, and names within an
archive only select what is read.
"""

from __future__ import annotations

import lzma
import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, cast

from ebbtide.cli.files.conversation import bad_input
from ebbtide.cli.files.disk import opened
from ebbtide.cli.files.foreign.chats import placed_name

ZIP_MAGIC = b"PK\x03\x04"
MAX_UNPACKED_BYTES = 8 << 30
"""Maximum size of the files that are read from an archive."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file that is open for reading, with its name in messages."""

    name: str
    file: BinaryIO

    @property
    def stem(self) -> str:
        """The name without its suffix, for places in the file."""
        return placed_name(PurePosixPath(self.name).stem)


def paths_of(given: Sequence[Path]) -> list[Path]:
    """Return the files that are meant: each file, the conversations in a folder, the matches of a pattern."""
    paths: list[Path] = []
    for path in given:
        if os.path.isdir(path):
            found = sorted(one for one in path.iterdir() if _has_conversations(one.name))
            if not found:
                raise bad_input(f"{path} is a folder without a file conversations.json.")
        elif "*" in path.name and not os.path.exists(path):
            found = sorted(path.parent.glob(path.name))
            if not found:
                raise bad_input(f"No file matches {path}.")
        else:
            found = [path]
        paths += found
    return list(dict.fromkeys(paths))


@contextmanager
def source_of(path: Path) -> Iterator[Iterator[Source]]:
    """Open a file. Yield what it contains: itself, or the conversations of an archive, one after the other."""
    with opened(path) as file:
        magic = file.read(len(ZIP_MAGIC))
        file.seek(0)
        if magic == ZIP_MAGIC:
            yield _members(file, path)
        else:
            yield iter([Source(path.name, file)])


def _members(file: BinaryIO, path: Path) -> Iterator[Source]:
    with _unpacking(path):
        archive = zipfile.ZipFile(file)
    with archive:
        members = [one for one in archive.infolist() if _has_conversations(_base(one.filename))]
        if not members:
            raise bad_input(f"{path} is an archive without a file conversations.json.")
        if sum(one.file_size for one in members) > MAX_UNPACKED_BYTES:
            raise bad_input(f"{path}: its conversations have more than {MAX_UNPACKED_BYTES >> 30} GiB.")
        for member in sorted(members, key=lambda one: one.filename):
            with _unpacking(path):
                unpacked = archive.open(member)
            with unpacked:
                yield Source(_base(member.filename), cast(BinaryIO, _Unpacked(unpacked, path)))


class _Unpacked:
    """A file of an archive. Damage that is found while it is read is a Failure."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file = file
        self._path = path

    def read(self, size: int = -1) -> bytes:
        """Read a piece."""
        with _unpacking(self._path):
            return self._file.read(size)

    def seek(self, at: int, whence: int = 0) -> int:
        """Move to a position, by unpacking the file again if it was passed."""
        with _unpacking(self._path):
            return self._file.seek(at, whence)

    def seekable(self) -> bool:
        """Whether `seek` works."""
        return True


@contextmanager
def _unpacking(path: Path) -> Iterator[None]:
    try:
        yield
    except (*_DAMAGE, OSError) as error:
        raise bad_input(f"{path} cannot be unpacked: {placed_name(error)}.") from None


_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, ValueError)
"""RuntimeError: it is encrypted, or its compression is unknown."""


def _has_conversations(name: str) -> bool:
    """Whether a file is called `conversations.json` or `conversations-000.json`, as in data exports."""
    stem, _, suffix = name.rpartition(".")
    first, dash, number = stem.partition("-")
    return first == "conversations" and suffix == "json" and (number.isdigit() if dash else True)


def _base(name: str) -> str:
    return name.replace("\\", "/").rpartition("/")[2]
