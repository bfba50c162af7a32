"""The layout of one agent's store: tables, keys, codecs, format version.

Numbers that are keys are big-endian u64, so that LMDB's byte order is numeric order. Link and backlink values
have a fixed size: all links of a node, or of an agent, can be read as one buffer. Keys made from text go
through `text_key` and nowhere else, so that encryption can key them later.

Changing anything here means a new FORMAT_VERSION and a migration from the old one.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Final

import msgspec

FORMAT_VERSION: Final = 1
"""Version of the tables and codecs below; a store with a higher one is refused."""

LMDB_ENGINE: Final = "0.9"
"""The LMDB file format in use: 0.9 files are read by every LMDB tool, 1.0 files are not."""

NODES = b"nodes"  # u64 id -> Node
LINKS = b"links"  # u64 source -> many (target, relation, strength, anchor), sorted
BACKLINKS = b"backlinks"  # u64 target -> many (source, relation), sorted
SCANS = b"scans"  # u64 block -> SCANS_PER_BLOCK x (count, last pass)
RELATIONS = b"relations"  # u32 id -> name
RELATION_IDS = b"relation_ids"  # text key of the name -> u32 id
MESSAGES = b"messages"  # u64 number -> MessageRecord
CHUNKS = b"chunks"  # text key -> zstd
CHUNK_REFERENCES = b"chunk_references"  # text key -> u32
BATCHES = b"batches"  # u64 number -> Batch
INBOX = b"inbox"  # u64 position -> u64 batch: waiting, in order
PARKED = b"parked"  # u64 batch -> empty
DIGESTED = b"digested"  # u64 sequence -> u64 batch: for retention
RECEIPTS = b"receipts"  # text key of the idempotency key -> Receipt
META = b"meta"  # name -> value

TABLES: Final = (
    NODES,
    LINKS,
    BACKLINKS,
    SCANS,
    RELATIONS,
    RELATION_IDS,
    MESSAGES,
    CHUNKS,
    CHUNK_REFERENCES,
    BATCHES,
    INBOX,
    PARKED,
    DIGESTED,
    RECEIPTS,
    META,
)
SORTED_TABLES: Final = frozenset({LINKS, BACKLINKS})

SCANS_PER_BLOCK: Final = 1024

_U64 = struct.Struct(">Q")
_U32 = struct.Struct(">I")
_LINK = struct.Struct(">QIdI")
_BACKLINK = struct.Struct(">QI")
_SCAN = struct.Struct(">II")

LINK_SIZE: Final = _LINK.size
SCAN_SIZE: Final = _SCAN.size
EMPTY_SCAN_BLOCK: Final = bytes(SCANS_PER_BLOCK * _SCAN.size)

u64 = _U64.pack
u32 = _U32.pack
link_value = _LINK.pack
backlink_value = _BACKLINK.pack
scan_value = _SCAN.pack


def from_u64(value: bytes) -> int:
    """The number behind an eight-byte key or value."""
    number: int = _U64.unpack(value)[0]
    return number


def from_u32(value: bytes) -> int:
    """The number behind a four-byte value."""
    number: int = _U32.unpack(value)[0]
    return number


def from_link_value(value: bytes) -> tuple[int, int, float, int]:
    """(target, relation id, strength, anchor) of a link value."""
    target, relation, strength, anchor = _LINK.unpack(value)
    return target, relation, strength, anchor


def from_scan_block(value: bytes) -> list[tuple[int, int]]:
    """(count, last pass) of every node of a block."""
    return list(_SCAN.iter_unpack(value))


def link_prefix(target: int, relation: int) -> bytes:
    """What a link value begins with; its other fields follow."""
    return _BACKLINK.pack(target, relation)


def scan_place(node_id: int) -> tuple[bytes, int]:
    """(key of the block, byte offset in it) of a node's scan state."""
    return u64(node_id // SCANS_PER_BLOCK), node_id % SCANS_PER_BLOCK * _SCAN.size


def text_key(text: str) -> bytes:
    """The key under which a text, or something named by a text, is found: SHA-256 of its UTF-8."""
    return hashlib.sha256(text.encode()).digest()


encode = msgspec.msgpack.encode
decode = msgspec.msgpack.decode
