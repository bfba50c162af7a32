"""The form of a backup: one file that holds one agent, and can be looked at with ordinary tools.

    manifest.json     what this is, whose, from when
    data.mdb.zst      the agent's LMDB file, compacted, compressed with Zstandard
    SHA256SUMS        of the two, as `sha256sum -c` reads it

A plain tar archive of these three, in this order, and nothing else. What is read must be what is written here, byte for
byte, down to the headers of tar: so a single damaged byte is found anywhere, and no name, link or size in an archive
made by somebody else means anything. Nothing is unpacked beyond the size that the caller allows, nor beyond what such a
file can hold or the disk has room for.

Whether the agent inside holds together is not looked at here.
"""

from __future__ import annotations

import hashlib
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, NoReturn, Protocol

import msgspec
import zstandard

from ebbtide.bounds import AgentIdText, Name, Number, Time, Version
from ebbtide.errors import Exhausted, InvalidRequest, Precondition
from ebbtide.store.codec import UNDECODABLE, make_known
from ebbtide.store.yielding import Pause

FORM: Final = "ebbtide-backup"
VERSION: Final = 1
"""Version of the form described here; a file with a higher one is refused."""

MANIFEST: Final = "manifest.json"
DATA: Final = "data.mdb.zst"
SUMS: Final = "SHA256SUMS"

BLOCK: Final = 512
END: Final = bytes(2 * BLOCK)
"""What every tar archive ends with."""

MOST_MANIFEST_BYTES: Final = 64 << 10
PIECE_BYTES: Final = 1 << 20
MOST_WINDOW_BYTES: Final = 8 << 20
"""Memory that unpacking may take; what Zstandard uses up to its level 19."""

MOST_RATIO: Final = 250
ALWAYS_UNPACKED_BYTES: Final = 16 << 20
"""How many times its size, and these bytes, the data may have unpacked: a small file is not to fill a disk."""


class _Reads(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes: ...


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a backup says of itself."""

    format: str
    version: Version
    ebbtide_version: Name
    store_format: Version
    agent_id: AgentIdText
    taken_at: Time
    data_bytes: Number
    """Of the LMDB file, unpacked."""


class _Version(msgspec.Struct):
    """As much of a manifest as tells whether the rest can be read."""

    format: str
    version: int


make_known(Manifest, _Version)


def damaged(what: str) -> NoReturn:
    """Refuse a file."""
    raise InvalidRequest(f"not a sound backup: {what}; nothing was changed", reason="BACKUP_UNREADABLE")


def pack(data: Path, into: BinaryIO, pause: Pause) -> int:
    """Compress an LMDB file, which is the second member; the size it has unpacked."""
    compressor = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    size = 0
    with data.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            size += len(piece)
            into.write(compressor.compress(piece))
            pause()
    into.write(compressor.flush())
    return size


def write_backup(into: BinaryIO, manifest: Manifest, packed: BinaryIO) -> None:
    """Write the archive around a packed LMDB file."""
    told = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    _put(into, MANIFEST, told)
    size = packed.seek(0, 2)
    packed.seek(0)
    into.write(_header(DATA, size))
    digest = hashlib.sha256()
    while piece := packed.read(PIECE_BYTES):
        digest.update(piece)
        into.write(piece)
    into.write(bytes(-size % BLOCK))
    _put(into, SUMS, _sums(hashlib.sha256(told).hexdigest(), digest.hexdigest()))
    into.write(END)


def _put(into: BinaryIO, name: str, content: bytes) -> None:
    into.write(_header(name, len(content)) + content + bytes(-len(content) % BLOCK))


def _sums(of_manifest: str, of_data: str) -> bytes:
    return f"{of_manifest}  {MANIFEST}\n{of_data}  {DATA}\n".encode()


def _header(name: str, size: int) -> bytes:
    """The header of a member: the same for the same name and size, whoever writes it and when."""
    info = tarfile.TarInfo(name)
    info.size = size
    info.mode = 0o600
    return info.tobuf(tarfile.GNU_FORMAT)


def read_manifest(source: BinaryIO) -> Manifest:
    """What a backup says of itself; nothing else of it is looked at."""
    return _manifest(_member(source, MANIFEST, MOST_MANIFEST_BYTES))


def read_backup(
    source: BinaryIO,
    into: Path,
    *,
    max_bytes: int,
    check: Callable[[Manifest], None] = lambda manifest: None,
    pause: Pause = lambda: None,
) -> Manifest:
    """Verify a backup and write the LMDB file in it to `into`; refused, with nothing to be used, unless it is sound.

    `check` may refuse what the manifest tells before the rest is read; `pause` is called now and then. FORMAT_TOO_NEW
    for a form of a newer Ebbtide, STORE_FULL for more than `max_bytes` or than the disk has room for.
    """
    told = _member(source, MANIFEST, MOST_MANIFEST_BYTES)
    manifest = _manifest(told)
    check(manifest)
    if manifest.data_bytes > max_bytes:
        raise Exhausted(
            f"the agent has {manifest.data_bytes} bytes, more than max_map_bytes = {max_bytes}; "
            "nothing was stored",
            reason="STORE_FULL",
        )
    begin = source.tell()
    size = _size(source, DATA)
    digest = hashlib.sha256()
    if manifest.data_bytes > MOST_RATIO * size + ALWAYS_UNPACKED_BYTES:
        damaged(f"it says that its data unpacks to more than {MOST_RATIO} times its size")
    _refuse_without_room(into, manifest.data_bytes)
    for piece in _pieces(source, size):
        digest.update(piece)
        pause()
    _skip_padding(source, size)
    sums = _member(source, SUMS, MOST_MANIFEST_BYTES)
    if sums != _sums(hashlib.sha256(told).hexdigest(), digest.hexdigest()):
        damaged("its sums do not fit")
    if source.read(len(END) + 1) != END:
        damaged("it does not end where it should")
    # Only what was written as it stands is unpacked.
    source.seek(begin + BLOCK)
    _unpack(_Within(source, size, pause), into, manifest.data_bytes)
    return manifest


def _refuse_without_room(into: Path, data_bytes: int) -> None:
    """Refuse to fill the disk on which all other agents write: unpacked, copied, and as much again for them."""
    free = shutil.disk_usage(into.parent).free
    if 3 * data_bytes > free:
        raise Exhausted(
            f"restoring {data_bytes} bytes needs three times as much free disk, and {free} bytes are free; "
            "nothing was stored",
            reason="STORE_FULL",
        )


def _manifest(told: bytes) -> Manifest:
    try:
        version = msgspec.json.decode(told, type=_Version)
        if version.format != FORM:
            damaged("it is something else")
        if version.version > VERSION:
            raise Precondition(
                f"the backup has form {version.version}, this Ebbtide reads up to {VERSION}; use a newer Ebbtide",
                reason="FORMAT_TOO_NEW",
            )
        return msgspec.json.decode(told, type=Manifest)
    except UNDECODABLE:
        damaged("its manifest cannot be read")


def _size(source: BinaryIO, name: str) -> int:
    """The size of the member that must come next."""
    header = source.read(BLOCK)
    try:
        size = tarfile.TarInfo.frombuf(header, "utf-8", "strict").size
    except (tarfile.HeaderError, UnicodeDecodeError):
        damaged(f"{name} is not where it should be")
    if size < 0 or header != _header(name, size):
        damaged(f"{name} is not where it should be")
    return size


def _member(source: BinaryIO, name: str, most: int) -> bytes:
    """The content of a small member that must come next."""
    size = _size(source, name)
    if size > most:
        damaged(f"{name} is too large")
    content = b"".join(_pieces(source, size))
    _skip_padding(source, size)
    return content


def _pieces(source: BinaryIO, size: int) -> Iterator[bytes]:
    left = size
    while left:
        piece = source.read(min(left, PIECE_BYTES))
        if not piece:
            damaged("it breaks off")
        yield piece
        left -= len(piece)


def _skip_padding(source: BinaryIO, size: int) -> None:
    if source.read(-size % BLOCK) != bytes(-size % BLOCK):
        damaged("it holds what does not belong to it")


class _Within:
    """So many bytes of a file from where it stands."""

    def __init__(self, source: BinaryIO, size: int, pause: Pause) -> None:
        self._source = source
        self._left = size
        self._pause = pause

    def read(self, size: int) -> bytes:
        """Read at most so many bytes."""
        self._pause()
        piece = self._source.read(min(size, self._left))
        self._left -= len(piece)
        return piece


def _unpack(source: _Within, into: Path, data_bytes: int) -> None:
    # Across frames, so that whatever follows the first one counts too, or is refused.
    reader = zstandard.ZstdDecompressor(max_window_size=MOST_WINDOW_BYTES).stream_reader(
        source,  # type: ignore[arg-type]
        read_across_frames=True,
    )
    left = data_bytes
    with into.open("wb") as file:
        try:
            while piece := reader.read(min(PIECE_BYTES, left + 1)):
                left -= len(piece)
                if left < 0:
                    break
                file.write(piece)
        except zstandard.ZstdError:
            damaged("its data cannot be unpacked")
    if left:
        damaged("its data has another size than it says")
