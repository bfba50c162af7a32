"""The layout of one agent's store: tables, keys, codecs, format version.

Numbers that are keys are big-endian u64, so that LMDB's byte order is numeric order. Link and backlink values
have a fixed size: all links of a node, or of an agent, can be read as one buffer. Keys made from text go
through `text_key` and nowhere else; in a sealed store HMACs of them stand in their place.

Changing anything here means a new FORMAT_VERSION and a migration from the old one.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any, Final

import numpy as np

from ebbtide.store import codec

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
PASSAGES = b"passages"  # u64 message -> list of PassageEntry; derived from its text
VECTORS = b"vectors"  # u64 message -> EmbeddedMessage; derived from its text by an embedding model
CHUNKS = b"chunks"  # text key -> zstd
CHUNK_REFERENCES = b"chunk_references"  # text key -> u32
BATCHES = b"batches"  # u64 number -> Batch
INBOX = b"inbox"  # u64 position -> u64 batch: waiting, in order
PARKED = b"parked"  # u64 batch -> empty
DIGESTED = b"digested"  # u64 sequence -> u64 batch: for retention
RECEIPTS = b"receipts"  # text key of the idempotency key -> Receipt
AUDIT = b"audit"  # u64 number -> AuditRecord
EVENTS = b"events"  # u64 number of the first event -> EventRecord: what one commit did
META = b"meta"  # name -> value

TABLES: Final = (
    NODES,
    LINKS,
    BACKLINKS,
    SCANS,
    RELATIONS,
    RELATION_IDS,
    MESSAGES,
    PASSAGES,
    VECTORS,
    CHUNKS,
    CHUNK_REFERENCES,
    BATCHES,
    INBOX,
    PARKED,
    DIGESTED,
    RECEIPTS,
    AUDIT,
    EVENTS,
    META,
)
SORTED_TABLES: Final = frozenset({LINKS, BACKLINKS})
DERIVED_TABLES: Final = frozenset({PASSAGES, VECTORS})
"""Made anew from the others where they are missing, as in a store that was written before there were any."""
LATER_TABLES: Final = DERIVED_TABLES | {AUDIT, EVENTS}
"""Made where they are missing: a store that was written before there were any is opened as it is."""

COMPACTION_DUE: Final = b"compaction_due"
"""The name in META under which it stands that the file may hold what was erased."""
LEFTOVERS: Final = b"leftovers"
"""The name in META under which it stands that the file may hold what was deleted, corrected or withdrawn."""

SEALED_TABLES: Final = frozenset(
    {NODES, RELATIONS, MESSAGES, PASSAGES, VECTORS, CHUNKS, BATCHES, RECEIPTS, AUDIT}
)
"""Whose values hold or derive from text, as proofs in the audit log do: encrypted in a sealed store. Ids, strengths,
counters and events are not."""
KEYED_BY_TEXT: Final = {
    CHUNKS: b"chunk",
    CHUNK_REFERENCES: b"chunk",
    RECEIPTS: b"idempotency key",
    RELATION_IDS: b"relation",
}
"""Whose keys are text keys, and what kind of text: in a sealed store they are HMACs."""
SEALED_WITH: Final = b"sealed_with"
"""The name in META of the fingerprint of the key that seals a store; absent where nothing is sealed."""

SCANS_PER_BLOCK: Final = 1024

_U64 = struct.Struct(">Q")
_U32 = struct.Struct(">I")
_LINK = struct.Struct(">QIdI")
_BACKLINK = struct.Struct(">QI")

LINK_SIZE: Final = _LINK.size
VALUE_SIZES: Final = {
    table.decode(): {LINKS: _LINK.size, BACKLINKS: _BACKLINK.size}.get(table, 0) for table in TABLES
}
"""The name of each table, with the size of its values where they are sorted duplicates, else 0."""
LINK_ROW: Final = np.dtype(
    [("source", ">u8"), ("target", ">u8"), ("relation", ">u4"), ("strength", ">f8"), ("anchor", ">u4")]
)
"""A key of LINKS and one of its values as one array element."""

SCAN_ROW: Final = np.dtype([("count", ">u4"), ("last_pass", ">u4")])
EMPTY_SCAN_BLOCK: Final = bytes(SCANS_PER_BLOCK * SCAN_ROW.itemsize)

u64 = _U64.pack
u32 = _U32.pack
link_value = _LINK.pack
backlink_value = _BACKLINK.pack


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


def from_backlink_value(value: bytes) -> tuple[int, int]:
    """(source, relation id) of a backlink value."""
    source, relation = _BACKLINK.unpack(value)
    return source, relation


def from_link_rows(rows: memoryview) -> np.ndarray[Any, Any]:
    """Keys of LINKS, each followed by one of its values, as one array of LINK_ROW."""
    return np.frombuffer(rows, dtype=LINK_ROW)


def from_scan_block(value: bytes) -> np.ndarray[Any, Any]:
    """The counters of every node of a block as an array of SCAN_ROW, free to be written to."""
    return np.frombuffer(value, dtype=SCAN_ROW).copy()


def link_prefix(target: int, relation: int) -> bytes:
    """What a link value begins with; its other fields follow."""
    return _BACKLINK.pack(target, relation)


def text_key(text: str) -> bytes:
    """The key under which a text, or something named by a text, is found: SHA-256 of its UTF-8."""
    return hashlib.sha256(text.encode()).digest()


encode = codec.encode
decode = codec.decode
