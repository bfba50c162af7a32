"""Malicious backups: checksums and headers are correct, the content is not.

The forged LMDB files are created by changing pages of a valid one, in the layout of LMDB 0.9.
"""

from __future__ import annotations

import io
import json
import struct
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lmdb
import zstandard

from ebbtide.records import Identity
from ebbtide.store import layout
from ebbtide.store.directory.data_directory import DataDirectory
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.transfer.backup_file import FORM, VERSION, Manifest, write_backup

PAGE, HEADER = 4096, 16
META_AT = 16
MAIN_ROOT_AT = META_AT + 24 + 48 + 40
FREE_ROOT_AT = META_AT + 24 + 40
LAST_PAGE_AT = META_AT + 24 + 96
BRANCH, LEAF = 1, 2
LEVELS = 24
"""Levels of branches in a forged tree: with four children each, 10^14 leaves."""


def backup_of(
    data: bytes, data_bytes: int | None = None, packed: bytes | None = None, **fields: Any
) -> bytes:
    """Return a backup with correct checksums around any LMDB file."""
    told: dict[str, Any] = {"agent_id": "ann", "ebbtide_version": "0", "store_format": 1, "taken_at": 0}
    size = len(data) if data_bytes is None else data_bytes
    manifest = Manifest(**{"format": FORM, "version": VERSION, **told, "data_bytes": size, **fields})
    into = io.BytesIO()
    write_backup(into, manifest, io.BytesIO(zstandard.compress(data) if packed is None else packed))
    return into.getvalue()


def sound_file(*, chunks: dict[bytes, bytes] | None = None, node_count: int = 200) -> bytes:
    """Return the LMDB file of an agent, with these stored chunks, and with these values in a table of their own."""
    with tempfile.TemporaryDirectory() as place:
        data = DataDirectory(Path(place), initial_map_bytes=1 << 20, max_map_bytes=1 << 30)
        data.acquire()
        try:
            store = data.create_store(Identity("ann", 5, 7, layout.FORMAT_VERSION))
            try:
                return _copied(data, store, chunks or {}, node_count)
            finally:
                store.close()
        finally:
            data.release()


def _copied(data: DataDirectory, store: LmdbStore, chunks: dict[bytes, bytes], node_count: int) -> bytes:
    def write(txn: Any) -> None:
        for key, value in chunks.items():
            txn.tables.put(layout.CHUNKS, key, value)
        for number in range(node_count):
            txn.tables.put(layout.BATCHES, layout.u64(number), bytes(1000))

    store.write(write)
    folder = data.make_transfer()
    assert store.copy(folder, lambda: False, lambda: None)
    content = (folder / "data.mdb").read_bytes()
    data.end_transfer(folder)
    return content


class Pages:
    """The pages of an LMDB file, for changes."""

    def __init__(self, content: bytes) -> None:
        self.content = bytearray(content)

    @property
    def meta(self) -> int:
        """Return the offset of the current meta page."""
        txn_ids = [self._u64(at * PAGE + LAST_PAGE_AT + 8) for at in (0, 1)]
        return PAGE * txn_ids.index(max(txn_ids))

    def _u64(self, at: int) -> int:
        number: int = struct.unpack_from("<Q", self.content, at)[0]
        return number

    def set_u64(self, at: int, number: int) -> None:
        """Overwrite a number."""
        struct.pack_into("<Q", self.content, at, number)

    def record_of(self, table: bytes) -> int:
        """Return the offset of a table's record: 48 bytes after its name."""
        at = self.content.rindex(table + b"\0" * 0, 2 * PAGE)
        while self.content[at - 2 : at] != struct.pack("<H", len(table)):
            at = self.content.rindex(table, 2 * PAGE, at)
        return at + len(table)

    def root_of(self, table: bytes) -> int:
        """Return the root page of a table."""
        return self._u64(self.record_of(table) + 40)

    def nodes(self, page: int) -> Iterator[int]:
        """Return the offsets of a page's nodes."""
        begin = page * PAGE
        (lower,) = struct.unpack_from("<H", self.content, begin + 12)
        for at in range(begin + HEADER, begin + lower, 2):
            yield begin + struct.unpack_from("<H", self.content, at)[0]

    def point(self, page: int, child: int) -> None:
        """Make every node of a branch page refer to one page."""
        for at in self.nodes(page):
            struct.pack_into("<HHH", self.content, at, child & 0xFFFF, child >> 16 & 0xFFFF, child >> 32)

    def first_child(self, page: int) -> int:
        """Return the page to which the first node of a branch refers."""
        low, high, top = struct.unpack_from("<HHH", self.content, next(self.nodes(page)))
        child: int = low | high << 16 | top << 32
        return child

    def append_copy(self, page: int) -> int:
        """Append a copy of a page. Return its number."""
        number = len(self.content) // PAGE
        self.content += self.content[page * PAGE : (page + 1) * PAGE]
        self.set_u64(number * PAGE, number)
        self.set_u64(self.meta + LAST_PAGE_AT, number)
        return number


def circle() -> bytes:
    """Return a file with a branch page that refers to itself."""
    pages = Pages(sound_file())
    root = pages.root_of(layout.BATCHES.name)
    pages.point(root, root)
    return bytes(pages.content)


def thicket() -> bytes:
    """Return a small file with 10^14 entries: all children of each branch are the same page."""
    pages = Pages(sound_file())
    root = pages.root_of(layout.BATCHES.name)
    below = pages.first_child(root)
    for _ in range(LEVELS):
        pages.point(root, below)
        below = pages.append_copy(root)
    pages.point(root, below)
    return bytes(pages.content)


def endless() -> bytes:
    """Return a file that claims to have 2^50 pages."""
    pages = Pages(sound_file())
    pages.set_u64(pages.meta + LAST_PAGE_AT, 1 << 50)
    return bytes(pages.content)


def wrong_page_size() -> bytes:
    """Return a file whose meta pages state another page size than LMDB uses."""
    pages = Pages(sound_file())
    for meta in (0, PAGE):
        struct.pack_into("<I", pages.content, meta + META_AT + 24, 3)
    return bytes(pages.content)


def free_pages_in_use() -> bytes:
    """Return a file whose list of free pages contains the pages of a table: the next write would overwrite them."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "data.mdb"
        file.write_bytes(sound_file(node_count=0))
        environment = lmdb.open(str(file), subdir=False, lock=False, map_size=1 << 24, max_dbs=64)
        other = environment.open_db(b"of no store")
        for value in (b"a" * 30_000, b"b" * 30_000, b"c" * 30_000):
            with environment.begin(write=True) as txn:
                txn.put(b"key", value, db=other)
        environment.close()
        pages = Pages(file.read_bytes())
    root = struct.unpack_from("<Q", pages.content, pages.meta + FREE_ROOT_AT)[0]
    assert root != (1 << 64) - 1, "there are free pages"
    for at in pages.nodes(root):
        low, high, _, key_size = struct.unpack_from("<HHHH", pages.content, at)
        begin = at + 8 + key_size
        for number in range(1, (low | high << 16) // 8):
            pages.set_u64(begin + 8 * number, (1 << 40) - number)
    return bytes(pages.content)


def unordered() -> bytes:
    """Return a file with two keys of a table swapped, so that lookups fail."""
    pages = Pages(sound_file())
    leaf = pages.first_child(pages.root_of(layout.BATCHES.name))
    first, second, *_ = pages.nodes(leaf)
    key = slice(first + 8, first + 16), slice(second + 8, second + 16)
    pages.content[key[0]], pages.content[key[1]] = pages.content[key[1]], pages.content[key[0]]
    return bytes(pages.content)


def inflated_text(size: int = 1 << 30) -> bytes:
    """Return a store with one text, of some kilobytes, that unpacks to a gigabyte."""
    return sound_file(chunks={bytes(32): zeros(size)}, node_count=0)


def deflated_text(size: int = 1 << 28) -> bytes:
    """Return a store with one text, deflated, that unpacks to a quarter of a gigabyte."""
    return sound_file(chunks={bytes(32): zlib.compress(bytes(size), 1)}, node_count=0)


def zeros(size: int, *, declares_size: bool = True) -> bytes:
    """Return a zstd frame that unpacks to this many zeros."""
    writer = zstandard.ZstdCompressor().compressobj(size=size if declares_size else -1)
    piece = bytes(1 << 20)
    packed = b"".join(writer.compress(piece) for _ in range(size >> 20))
    return packed + writer.flush()


FORGED_FILES: dict[str, Callable[[], bytes]] = {
    "a branch that refers to itself": circle,
    "branches with one child many times": thicket,
    "2^50 pages": endless,
    "another page size": wrong_page_size,
    "keys out of order": unordered,
    "a text that unpacks to a gigabyte": inflated_text,
    "a deflated text that unpacks to 256 MB": deflated_text,
    "nothing": lambda: b"",
    "garbage": lambda: bytes(range(256)) * 64,
    "zeros": lambda: bytes(1 << 20),
}
"""LMDB files that a restore must refuse."""


def skippable(size: int) -> bytes:
    """Return an empty zstd frame."""
    return struct.pack("<II", 0x184D2A50, size) + bytes(size)


def with_dictionary(content: bytes) -> bytes:
    """Return a zstd frame that needs a dictionary."""
    dictionary = zstandard.ZstdCompressionDict(b"ebbtide" * 100, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    made = bytearray(zstandard.ZstdCompressor(dict_data=dictionary).compress(content))
    # A frame with a dictionary id of one byte: the flag, and the id after the header's descriptor.
    made[4] |= 1
    made[5:5] = b"\x07"
    return bytes(made)


def wide_window(log: int) -> bytes:
    """Return a zstd frame that requests a window of 2^log bytes."""
    return struct.pack("<IBB", 0xFD2FB528, 0, (log - 10) << 3) + b"\x01\x00\x00"


def forged_frames() -> dict[str, Callable[[], tuple[bytes, int]]]:
    """Return functions that return packed data, and the size that the manifest claims."""
    sound = sound_file()
    packed = zstandard.compress(sound)
    size = len(sound)
    return {
        "a declared size of terabytes": lambda: (packed, 1 << 42),
        "a gigabyte in kilobytes": lambda: (zeros(1 << 30), 1 << 30),
        "more than is declared": lambda: (zeros(1 << 28, declares_size=False), 4096),
        "less than is declared": lambda: (packed, size + 1),
        "more than allowed, without a declared size": lambda: (zeros(1 << 28, declares_size=False), 1 << 20),
        "a million empty frames": lambda: (zstandard.compress(b"") * 1_000_000, size),
        "frames that hold nothing": lambda: (skippable(1000) * 1000, size),
        "a frame behind the data": lambda: (packed + zstandard.compress(b"more"), size),
        "garbage behind the data": lambda: (packed + b"garbage", size),
        "a dictionary": lambda: (with_dictionary(sound), size),
        "a window of 2 GiB": lambda: (wide_window(31), size),
        "a window of 2 TiB": lambda: (wide_window(41), size),
        "broken off": lambda: (packed[: len(packed) // 2], size),
        "nothing": lambda: (b"", size),
        "no zstd": lambda: (sound, size),
    }


# --- archives ------------------------------------------------------------------------------------------------


def archive(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.GNU_FORMAT) -> bytes:
    """Return a tar archive with these members."""
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w", format=form) as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return into.getvalue()


def member(name: str, size: int = 0, **fields: Any) -> tarfile.TarInfo:
    """Return the header of a member."""
    info = tarfile.TarInfo(name)
    # Written as Ebbtide does, so that the header is not the reason of a refusal.
    info.size, info.mode = size, 0o600
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def _number(header: bytes, at: int, field: bytes) -> bytes:
    """Return a header with other bytes in a field, and a matching checksum."""
    made = bytearray(header[:at] + field + header[at + len(field) :])
    made[148:156] = b" " * 8
    made[148:156] = b"%06o\0 " % sum(made)
    return bytes(made)


def forged_archives() -> dict[str, Callable[[], bytes]]:
    """Return functions that return archives with false headers."""
    sound = backup_of(sound_file())
    head, rest = sound[:512], sound[512:]
    sparse = bytearray(member("manifest.json", 512, type=tarfile.GNUTYPE_SPARSE).tobuf(tarfile.GNU_FORMAT))
    link = member("manifest.json", type=tarfile.SYMTYPE, linkname="/etc/passwd")
    deep = b'{"format":"ebbtide-backup","version":1,"x":' + b"[" * 60_000
    huge = json.dumps({"format": FORM, "version": 1, "data_bytes": 10**4000}).encode()
    pax = member("manifest.json", pax_headers={"comment": "x" * (8 << 20), "size": "99999999999999"})
    return {
        "many members": lambda: archive(*((member(f"m{n}"), b"") for n in range(5000))),
        "a sparse member": lambda: _number(bytes(sparse), 483, b"77777777777\0") + rest,
        "pax headers of megabytes": lambda: archive((pax, b""), form=tarfile.PAX_FORMAT),
        "a negative size": lambda: _number(head, 124, b"\xff" * 12) + rest,
        "a size of 2^87": lambda: _number(head, 124, b"\x80" + b"\x7f" * 11) + rest,
        "a size of eight gigabytes": lambda: _number(head, 124, b"77777777777\0") + rest,
        "a size in words": lambda: _number(head, 124, b"manymanymany") + rest,
        "a link": lambda: archive((link, b"")) + rest,
        "a name that leads out": lambda: archive((member("../../manifest.json", 2), b"{}")),
        "the first member twice": lambda: sound[: 512 * 2] + sound,
        "a manifest of brackets": lambda: archive((member("manifest.json", len(deep)), deep)),
        "a number of 4000 digits": lambda: archive((member("manifest.json", len(huge)), huge)),
        "headers only": lambda: head * 3,
        "an empty file": lambda: b"",
        "one byte": lambda: b"m",
    }
