"""The format of a backup: one file with one agent, readable with standard tools.

    manifest.json     format, agent and time
    data.mdb.zst      the agent's LMDB file, compacted and compressed with Zstandard
    SHA256SUMS        checksums of the two, for `sha256sum -c`

A tar archive of exactly these three members, in this order. The reader accepts only the bytes that the writer would
write, including the tar headers. So it finds every damaged byte, and names, links or sizes in a forged archive have no
effect. The unpacked size is limited by the caller, by the size of the file, and by the free disk space.

The content of the agent is checked elsewhere.
"""

from __future__ import annotations

import hashlib
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, NoReturn

import msgspec

from ebbtide.bounds import AgentIdText, Name, Number, Time, Version
from ebbtide.errors import Exhausted, InvalidRequest, Precondition
from ebbtide.store import zstd
from ebbtide.store.codec import UNDECODABLE, make_known
from ebbtide.store.yielding import Pause

FORM: Final = "ebbtide-backup"
VERSION: Final = 1
"""Version of this format; a file with a higher one is refused."""

MANIFEST: Final = "manifest.json"
DATA: Final = "data.mdb.zst"
SUMS: Final = "SHA256SUMS"

BLOCK: Final = 512
END: Final = bytes(2 * BLOCK)
"""The end of every tar archive."""

MAX_MEMBER_BYTES: Final = 64 << 10
PIECE_BYTES: Final = 1 << 20
PACKED_PIECE_BYTES: Final = 1 << 17
MAX_WINDOW_LOG: Final = 23
"""Memory limit of unpacking, 8 MiB: enough for Zstandard up to its level 19."""

MAX_FRAMES: Final = 10_000
"""Most frames of Zstandard in a backup. Ebbtide writes one; a program that compresses in parallel writes more."""

MAX_RATIO: Final = 250
ALWAYS_UNPACKED_BYTES: Final = 16 << 20
"""Limit of the unpacked size: this many times the packed size, plus these bytes. A small file cannot fill a disk."""


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `manifest.json`."""

    format: str
    version: Version
    ebbtide_version: Name
    store_format: Version
    agent_id: AgentIdText
    taken_at: Time
    data_bytes: Number
    """Size of the unpacked LMDB file."""


class _Version(msgspec.Struct):
    """The fields that decide whether the manifest can be read."""

    format: str
    version: int


make_known(Manifest, _Version)


def damaged(what: str) -> NoReturn:
    """Raise BACKUP_UNREADABLE."""
    raise InvalidRequest(f"Invalid backup: {what}. Nothing was changed.", reason="BACKUP_UNREADABLE")


def pack(data: Path, into: BinaryIO, pause: Pause) -> int:
    """Compress an LMDB file. Return its size before."""
    compressor = zstd.ZstdCompressor(options={zstd.CompressionParameter.checksum_flag: 1})
    size = 0
    with data.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            size += len(piece)
            into.write(compressor.compress(piece))
            pause()
    into.write(compressor.flush())
    return size


def write_backup(into: BinaryIO, manifest: Manifest, packed: BinaryIO) -> None:
    """Write the archive of a packed LMDB file."""
    content = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    _put(into, MANIFEST, content)
    size = packed.seek(0, 2)
    packed.seek(0)
    into.write(_header(DATA, size))
    digest = hashlib.sha256()
    while piece := packed.read(PIECE_BYTES):
        digest.update(piece)
        into.write(piece)
    into.write(bytes(-size % BLOCK))
    _put(into, SUMS, _sums(hashlib.sha256(content).hexdigest(), digest.hexdigest()))
    into.write(END)


def _put(into: BinaryIO, name: str, content: bytes) -> None:
    into.write(_header(name, len(content)) + content + bytes(-len(content) % BLOCK))


def _sums(of_manifest: str, of_data: str) -> bytes:
    return f"{of_manifest}  {MANIFEST}\n{of_data}  {DATA}\n".encode()


def _header(name: str, size: int) -> bytes:
    """Return the tar header of a member. It only depends on name and size."""
    info = tarfile.TarInfo(name)
    info.size = size
    info.mode = 0o600
    return info.tobuf(tarfile.GNU_FORMAT)


def read_manifest(source: BinaryIO) -> Manifest:
    """Read only the manifest of a backup."""
    return _manifest(_member(source, MANIFEST, MAX_MEMBER_BYTES))


def read_backup(
    source: BinaryIO,
    into: Path,
    *,
    max_bytes: int,
    check: Callable[[Manifest], None] = lambda manifest: None,
    pause: Pause = lambda: None,
) -> Manifest:
    """Verify a backup and write its LMDB file to `into`.

    `check` may refuse the manifest before the rest is read. `pause` is called between small steps. Raise
    BACKUP_UNREADABLE for an invalid backup, FORMAT_TOO_NEW for one of a newer Ebbtide, and STORE_FULL where it has more
    than `max_bytes` or the disk has too little space.
    """
    content = _member(source, MANIFEST, MAX_MEMBER_BYTES)
    manifest = _manifest(content)
    check(manifest)
    if manifest.data_bytes > max_bytes:
        raise Exhausted(
            f"The agent has {manifest.data_bytes} bytes, more than max_map_bytes = {max_bytes}. "
            "Nothing was stored.",
            reason="STORE_FULL",
        )
    begin = source.tell()
    size = _size(source, DATA)
    digest = hashlib.sha256()
    if manifest.data_bytes > MAX_RATIO * size + ALWAYS_UNPACKED_BYTES:
        damaged(f"its data would unpack to more than {MAX_RATIO} times its size")
    _refuse_without_room(into, manifest.data_bytes)
    for piece in _pieces(source, size):
        digest.update(piece)
        pause()
    _skip_padding(source, size)
    sums = _member(source, SUMS, MAX_MEMBER_BYTES)
    if sums != _sums(hashlib.sha256(content).hexdigest(), digest.hexdigest()):
        damaged("its checksums are wrong")
    if source.read(len(END) + 1) != END:
        damaged("it has a wrong end")
    # The data is unpacked after its checksum was verified.
    source.seek(begin + BLOCK)
    _unpack(_Within(source, size, pause), into, manifest.data_bytes)
    return manifest


def _refuse_without_room(into: Path, data_bytes: int) -> None:
    """Raise STORE_FULL where the disk has no space for the unpacked file, its copy, and as much for other agents."""
    free = shutil.disk_usage(into.parent).free
    if 3 * data_bytes > free:
        raise Exhausted(
            f"Restoring {data_bytes} bytes needs three times as much free disk space, but only {free} bytes are "
            "free. Nothing was stored.",
            reason="STORE_FULL",
        )


def _manifest(content: bytes) -> Manifest:
    try:
        version = msgspec.json.decode(content, type=_Version)
        if version.format != FORM:
            damaged("its manifest has another format")
        if version.version > VERSION:
            raise Precondition(
                f"The backup has version {version.version}; this Ebbtide reads versions up to {VERSION}. "
                "Use a newer Ebbtide.",
                reason="FORMAT_TOO_NEW",
            )
        return msgspec.json.decode(content, type=Manifest)
    except UNDECODABLE:
        damaged("its manifest is invalid")


def _size(source: BinaryIO, name: str) -> int:
    """Read the header of the expected next member, and return its size."""
    header = source.read(BLOCK)
    if len(header) < BLOCK:
        damaged("it is truncated" if header else f"it ends before {name}")
    try:
        size = tarfile.TarInfo.frombuf(header, "utf-8", "strict").size
    except (tarfile.HeaderError, UnicodeDecodeError):
        damaged(f"it does not contain {name} where a backup has it")
    if size < 0 or header != _header(name, size):
        damaged(f"it does not contain {name} where a backup has it")
    return size


def _member(source: BinaryIO, name: str, most: int) -> bytes:
    """Read the expected next member, a small one."""
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
            damaged("it is truncated")
        yield piece
        left -= len(piece)


def _skip_padding(source: BinaryIO, size: int) -> None:
    if source.read(-size % BLOCK) != bytes(-size % BLOCK):
        damaged("it has extra data")


class _Within:
    """Reads a number of bytes from the position of a file."""

    def __init__(self, source: BinaryIO, size: int, pause: Pause) -> None:
        self._source = source
        self._left = size
        self._pause = pause

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes."""
        self._pause()
        piece = self._source.read(min(size, self._left))
        self._left -= len(piece)
        return piece


def _unpacked(source: _Within) -> Iterator[bytes]:
    """Yield the unpacked data in pieces. Raise ZstdError if it is invalid, incomplete, or has too many frames."""
    # Across frames, so data after the first frame counts too, or is refused.
    packed = source.read(PACKED_PIECE_BYTES)
    for _ in range(MAX_FRAMES):
        if not packed:
            return
        frame = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: MAX_WINDOW_LOG})
        while not frame.eof:
            if frame.needs_input and not packed:
                raise zstd.ZstdError("the last frame is incomplete")
            yield frame.decompress(packed, PIECE_BYTES)
            packed = source.read(PACKED_PIECE_BYTES) if frame.needs_input else b""
        packed = frame.unused_data or source.read(PACKED_PIECE_BYTES)
    raise zstd.ZstdError("too many frames")


def _unpack(source: _Within, into: Path, data_bytes: int) -> None:
    left = data_bytes
    with into.open("wb") as file:
        try:
            for piece in _unpacked(source):
                left -= len(piece)
                if left < 0:
                    break
                file.write(piece)
        except zstd.ZstdError:
            damaged("its data cannot be unpacked")
    if left:
        damaged("its data has another size than its manifest states")
