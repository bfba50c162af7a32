"""The layout of one agent's store: its tables, the entries of META, and the format version.

A `Table` states how its keys and values are encoded, whether it is encrypted or derived, and where an export has its
content. Reading, writing, sealing, checking and exporting all use these values.

Numbers in keys are big-endian, so the byte order of LMDB is numeric order. Links have a fixed size, so all links of an
agent can be read as one buffer. Keys made from text are hashes (`text_key`); an encrypted store uses HMACs instead.

LMDB stores each tree in pages of its own. So small tables share one tree, and the first byte of a key there is the
`prefix` of its table. DIGESTED has the highest prefix of the tables that every agent fills: a tree that grows at its
end has full pages.

Any change here needs a new FORMAT_VERSION and an upgrade from the old one (`lmdb/upgrade.py`).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic, NamedTuple, Self, TypeVar, cast, overload

import numpy as np
from msgspec import Meta

from ebbtide.bounds import (
    MAX_COUNT,
    MAX_NUMBER,
    Count,
    DecayRate,
    Focus,
    Hash,
    Id,
    Ids,
    Overrides,
    OwedPasses,
    RelationId,
    RelationName,
    UncountedTokens,
)
from ebbtide.events import EventRecord, decode_events, encode_events
from ebbtide.records import (
    Batch,
    Concept,
    EmbeddedMessage,
    EmbeddingState,
    Entity,
    Identity,
    Life,
    MessageRecord,
    Node,
    NodeFacts,
    NodeText,
    PassageEntry,
    PassState,
    Receipt,
    StoredRecord,
)
from ebbtide.statements import Assertion, ConsolidationState, LedgerState, Ruling
from ebbtide.store.chain import HASH_BYTES, KEY_BYTES, AuditRecord, ChainHead
from ebbtide.store.codec import (
    COMPRESSED,
    FLAG,
    Codec,
    decode,
    encode,
    fixed,
    from_u32,
    from_u64,
    make_known,
    number,
    record,
    small_number,
    text,
    u32,
    u64,
)

__all__ = ["decode", "encode", "from_u32", "from_u64", "u32", "u64"]

V = TypeVar("V")

FORMAT_VERSION: Final = 4
"""Version of the tables and codecs below."""

OLDEST_FORMAT: Final = 2
"""A store of this version or a later one is upgraded when it is opened; an older one is refused."""

LMDB_ENGINE: Final = "0.9"
"""The LMDB file format in use: every LMDB tool reads 0.9 files, not 1.0 files."""

SCANS_PER_BLOCK: Final = 1024
"""Nodes whose scan counters share one value of SCANS."""

LIVES_PER_BLOCK: Final = 64
"""Memories whose lives share one value of LIVES."""

MESSAGES_PER_BLOCK: Final = 16
"""Messages whose citing nodes share one value of CITINGS."""

# --- values of a fixed size --------------------------------------------------------------------------------


class LinkValue(NamedTuple):
    """A link as its source stores it."""

    target: int
    relation: int
    strength: float
    anchor: int


_LINK = struct.Struct(">QIdI")
_LINK_PREFIX = struct.Struct(">QI")

LINK_SIZE: Final = _LINK.size
LINK_ROW: Final = np.dtype(
    [("source", ">u8"), ("target", ">u8"), ("relation", ">u4"), ("strength", ">f8"), ("anchor", ">u4")]
)
"""A key of LINKS and one of its values as one array element."""

SCAN_ROW: Final = np.dtype([("count", ">u4"), ("last_pass", ">u4")])
KEPT_BIT: Final = 1 << 31
"""Set in the count of a statement that passes skip."""
SCAN_BLOCK_BYTES: Final = SCANS_PER_BLOCK * SCAN_ROW.itemsize

_LIFE = struct.Struct(">III")
LIFE_ROW: Final = np.dtype([("first_pass", ">u4"), ("length", ">u4"), ("forgotten_in", ">u4")])
"""The life of a memory: the pass after its birth, so that a row of zeros is none."""
LIFE_BLOCK_BYTES: Final = LIVES_PER_BLOCK * _LIFE.size

link_value = _LINK.pack
link_prefix = _LINK_PREFIX.pack
"""The first bytes of a link value: target and relation id."""


def from_link_value(value: bytes) -> LinkValue:
    """Return the fields of a link value."""
    return LinkValue._make(_LINK.unpack(value))


def from_scan_block(value: bytes) -> np.ndarray[Any, Any]:
    """Return the counters of a block as a writable array of SCAN_ROW."""
    return np.frombuffer(value.ljust(SCAN_BLOCK_BYTES, b"\0"), dtype=SCAN_ROW).copy()


def scan_block(rows: np.ndarray[Any, Any]) -> bytes:
    """Return the counters of a block as bytes, without the zeros at the end."""
    return rows.tobytes().rstrip(b"\0")


def life_in(block: bytes, node_id: int) -> Life | None:
    """Return the life of a memory in the block of its id; None if it has none."""
    place = node_id % LIVES_PER_BLOCK * _LIFE.size
    first, length, forgotten_in = _LIFE.unpack(block[place : place + _LIFE.size].ljust(_LIFE.size, b"\0"))
    return Life(first - 1, length, forgotten_in) if first else None


def with_life(block: bytes, node_id: int, life: Life | None) -> bytes:
    """Return a block with another life of a memory, without the zeros at the end."""
    changed = bytearray(block.ljust(LIFE_BLOCK_BYTES, b"\0"))
    row = (0, 0, 0) if life is None else (life.after + 1, life.length, life.forgotten_in)
    _LIFE.pack_into(changed, node_id % LIVES_PER_BLOCK * _LIFE.size, *row)
    return bytes(changed.rstrip(b"\0"))


def text_key(content: str) -> bytes:
    """Return the key of a text, or of an entry named by a text: SHA-256 of its UTF-8."""
    return chunk_key(content.encode())


def chunk_key(content: bytes) -> bytes:
    """Return the key of a chunk: SHA-256 of its bytes."""
    return hashlib.sha256(content).digest()


NAME_BYTES: Final = 16
"""The size of the hash of each label in the key of a record."""


def record_key(namespace: Sequence[str], key: str = "") -> bytes:
    """Return the key of a record, or without `key` the first bytes of the keys of all records in a namespace.

    It is a hash for each label, of the path up to there, and one of the record's key. So the records of a namespace
    and of those below it are adjacent, and a key has a limited size.
    """
    path, hashes = hashlib.sha256(), []
    for label in namespace:
        path.update(_sized(label))
        hashes.append(path.digest()[:NAME_BYTES])
    if key:
        path.update(b"\0" + _sized(key))
        hashes.append(path.digest()[:NAME_BYTES])
    return b"".join(hashes)


def _sized(name: str) -> bytes:
    data = name.encode()
    return b"\1" + u32(len(data)) + data


SHARED_TREE: Final = b"small"
"""The name of the tree that the tables with a prefix share."""

# --- tables ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Table(Generic[V]):
    """One table of a store: how its entries are encoded, and what holds for all of them."""

    name: bytes
    key: Codec[Any]
    value: Codec[V]
    prefix: bytes = b""
    """The first byte of its keys in the tree that small tables share; empty for a table with a tree of its own."""
    exported: str = ""
    """Where an export has its content; empty where an export leaves it out."""
    is_sealed: bool = False
    """Whether values contain or derive from text, and so are encrypted in an encrypted store."""
    text_kind: bytes = b""
    """The kind of text that keys are made from; an encrypted store has HMACs of them."""
    name_bytes: int = 0
    """The size of the hashes that keys are made of, one for each name in a path; 0 for keys that are one."""
    is_derived: bool = False
    """Whether the table is computed again from others where entries are missing."""
    has_duplicates: bool = False
    """Whether one key has many sorted values."""

    @property
    def tree(self) -> bytes:
        """The name of the LMDB tree that has its entries."""
        return SHARED_TREE if self.prefix else self.name


_ID = number(Id)
_HASH = fixed(HASH_BYTES)
_SCAN_BLOCK = number(Annotated[int, Meta(ge=0, le=MAX_NUMBER // SCANS_PER_BLOCK)])
_LIFE_BLOCK = number(Annotated[int, Meta(ge=0, le=MAX_NUMBER // LIVES_PER_BLOCK)])
_CITING_BLOCK = number(Annotated[int, Meta(ge=0, le=MAX_NUMBER // MESSAGES_PER_BLOCK)])
_MESSAGE_IN_BLOCK = Annotated[int, Meta(ge=0, lt=MESSAGES_PER_BLOCK)]

NODES = Table[Node](b"nodes", _ID, record(Node), exported="node", is_sealed=True)
ENTITIES = Table[Entity](b"entities", _ID, record(Entity), exported="entity", is_sealed=True)
ASSERTIONS = Table[Assertion](b"assertions", _ID, record(Assertion), b"\x09", "statement", is_sealed=True)
RULINGS = Table[Ruling](b"rulings", _ID, record(Ruling), b"\x0a", "ruling", is_sealed=True)
CONCEPTS = Table[Concept](
    b"concepts", _ID, record(Concept), b"\x0b", "concept", is_sealed=True, is_derived=True
)
LINKS = Table[LinkValue](
    b"links",
    _ID,
    Codec(lambda one: link_value(*one), from_link_value, LINK_SIZE),
    exported="link",
    has_duplicates=True,
)
SCANS = Table[bytes](b"scans", _SCAN_BLOCK, fixed(), b"\7", "node.scans, node.last_pass")
LIVES = Table[bytes](b"lives", _LIFE_BLOCK, fixed(), b"\x0d", "node.born_after, forgotten")
RELATIONS = Table[str](
    b"relations", small_number(RelationId), text(RelationName), b"\2", "relation", is_sealed=True
)
RELATION_IDS = Table[int](
    b"relation_ids", _HASH, small_number(), b"\3", "of relations", text_kind=b"relation"
)
MESSAGES = Table[MessageRecord](b"messages", _ID, record(MessageRecord), exported="message", is_sealed=True)
PASSAGES = Table[list[PassageEntry]](
    b"passages", _ID, record(list[PassageEntry]), exported="index.passages", is_sealed=True, is_derived=True
)
VECTORS = Table[EmbeddedMessage](
    b"vectors", _ID, record(EmbeddedMessage), exported="index.vectors", is_sealed=True, is_derived=True
)
CITINGS = Table[dict[int, tuple[int, ...]]](  # the nodes whose sources name each message of a block
    b"citings", _CITING_BLOCK, record(dict[_MESSAGE_IN_BLOCK, Ids]), b"\0", "node.sources", is_derived=True
)
CHUNKS = Table[bytes](  # texts in UTF-8, and attachments
    b"chunks",
    _HASH,
    COMPRESSED,
    exported="message.content, message.metadata, message.attachments, node.first",
    is_sealed=True,
    text_kind=b"chunk",
)
CHUNK_REFERENCES = Table[int](  # of the texts that have several
    b"chunk_references", _HASH, small_number(), b"\6", "of messages and nodes", text_kind=b"chunk"
)
BATCHES = Table[Batch](b"batches", _ID, record(Batch), exported="batch", is_sealed=True)
INBOX = Table[int](
    b"inbox", _ID, number(), exported="batch.state, batch.position"
)  # position to batch, in order
PARKED = Table[bytes](b"parked", _ID, fixed(0), exported="batch.state")
DIGESTED = Table[int](
    b"digested", _ID, number(), b"\x08", "batch.state, batch.position"
)  # in the order of digests
RECEIPTS = Table[Receipt](
    b"receipts",
    _HASH,
    record(Receipt),
    b"\5",
    "batch.body_hash",
    is_sealed=True,
    text_kind=b"idempotency key",
)
RECORDS = Table[StoredRecord](
    b"records",
    fixed(),
    record(StoredRecord),
    b"\x0c",
    "record",
    is_sealed=True,
    text_kind=b"record",
    name_bytes=NAME_BYTES,
)
AUDIT = Table[AuditRecord](b"audit", _ID, record(AuditRecord), b"\4", is_sealed=True)
EVENTS = Table[EventRecord](  # under the number of its first event
    b"events", _ID, Codec(encode_events, decode_events)
)
META = Table[bytes](b"meta", fixed(), fixed(), b"\1", "agent")

TABLES: Final[tuple[Table[Any], ...]] = (
    NODES,
    ENTITIES,
    ASSERTIONS,
    RULINGS,
    CONCEPTS,
    LINKS,
    SCANS,
    LIVES,
    RELATIONS,
    RELATION_IDS,
    MESSAGES,
    PASSAGES,
    VECTORS,
    CITINGS,
    CHUNKS,
    CHUNK_REFERENCES,
    BATCHES,
    INBOX,
    PARKED,
    DIGESTED,
    RECEIPTS,
    RECORDS,
    AUDIT,
    EVENTS,
    META,
)

VALUE_SIZES: Final = {
    table.tree.decode(): (table.value.size or 0) if table.has_duplicates else 0 for table in TABLES
}
"""The name of each tree, with the size of its values where they are sorted duplicates, else 0."""

make_known(NodeFacts, NodeText, dict[str, object])

# --- the entries of META -----------------------------------------------------------------------------------


class Entry(Generic[V]):
    """One entry of META: an attribute of `MetaEntries`, whose name is its key."""

    name: bytes

    def __init__(self, codec: Codec[Any], default: V, exported: str = "", most: int = 0) -> None:
        self.codec = codec
        self.default = default
        self.exported = exported
        """Where an export has it; empty where an export leaves it out."""
        self.most = most
        """The highest value of a number that only grows; 0 for other entries."""

    def __set_name__(self, _: type, name: str) -> None:
        self.name = name.encode()

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: MetaEntries, owner: type) -> V: ...
    def __get__(self, instance: MetaEntries | None, owner: type) -> Self | V:
        return self if instance is None else cast(V, instance.value_of(self))


def _next(exported: str, kind: Any = Id, most: int = MAX_NUMBER) -> Entry[int]:
    """The number that is given next."""
    return Entry(number(kind), 1, exported, most)


def _chain_head(value: bytes) -> ChainHead:
    return ChainHead(from_u64(value[:8]), value[8:])


class MetaEntries:
    """The entries of META as attributes; one that is absent has its default."""

    identity = Entry[Identity | None](record(Identity), None, "agent.agent_id, agent.created_at, agent.seed")
    sealed_with = Entry(text(), "")
    """The fingerprint of the key that encrypts the store; empty for an unencrypted one."""
    overrides = Entry[dict[str, object]](record(Overrides), {}, "agent.parameters")
    """The parameters that were set for this agent."""
    decay_rate = Entry[float | None](record(DecayRate), None, "agent.decay_rate")
    """The rate at which the stored links decay; None before the agent was first opened."""
    focus = Entry[tuple[int, ...]](record(Focus), (), "agent.focus")
    """The ids of the memories in focus, newest first."""
    entity_focus = Entry[tuple[int, ...]](record(Focus), (), "agent.entity_focus")
    """The ids of the entities in focus, newest first."""
    entity_memories = Entry[int | None](number(Count), None, "agent.entity_memories")
    """The number of memories whose links an entity in focus holds; None before the first pass."""
    owed_passes = Entry(number(OwedPasses), 0, "agent.owed_passes")
    """Compression passes that the agent owes, including the current one."""
    uncounted_tokens = Entry(number(UncountedTokens), 0, "agent.uncounted_tokens")
    """Tokens of memories for which no pass is owed yet, under the parameter `pass_every_tokens`."""
    finished_passes = Entry(number(Count), 0, "agent.finished_passes", MAX_COUNT)
    """The number of the last completed pass."""
    pass_state = Entry[PassState | None](record(PassState), None, "agent.current_pass")
    """The current pass."""
    next_node_id = _next("agent.next_node")
    next_message_number = _next("agent.next_message")
    next_batch_number = _next("agent.next_batch")
    next_position = _next("agent.next_position")
    """The next position in the inbox."""
    next_digested = _next("agent.next_digested")
    """The next position in the order of digests."""
    next_relation_id = _next("agent.next_relation", RelationId, MAX_COUNT)
    # A replacement raises it to a number derived from the clock, so it has no bound of its own.
    next_event = Entry(number(Id), 1)
    next_record_version = _next("agent.next_record_version")
    """The version of the next value of a record."""
    texts_from = _next("agent.texts_from")
    """Every message before this one has lost its text."""
    withdrawn = Entry(FLAG, default=False, exported="agent.holds_withdrawn")
    """Whether the text of any message was withdrawn."""
    ledger = Entry(record(LedgerState), LedgerState(), "agent.ledger")
    """The next entry number, and the messages up to which statements were extracted."""
    consolidation = Entry(record(ConsolidationState), ConsolidationState(), "agent.consolidation")
    """How far the consolidation of statements is."""
    statement_uses = Entry[dict[int, int]](record(dict[Id, Count]), {})
    """How often searches have returned statements, by their nodes."""
    embedding = Entry(record(EmbeddingState), EmbeddingState(), "agent.embedding")
    """The model of the agent's vectors, and the last message that has some."""
    audit_head = Entry(
        Codec(lambda head: u64(head.number) + head.hash, _chain_head, 8 + HASH_BYTES), ChainHead()
    )
    """Number and hash of the latest audit record."""
    journal_head = Entry(
        Codec(lambda head: u64(head.number) + head.hash, _chain_head, 8 + HASH_BYTES), ChainHead()
    )
    """Number and hash of the latest commit in the journal, in a cluster."""
    journal_start = Entry(number(Id), 0)
    """The number of the first journal entry of the latest rewrite; entries before it are to be erased."""
    journal_marks = Entry[tuple[bytes, ...]](record(tuple[Hash, ...]), ())
    """The marks of the latest sessions of the journal that the file has, the last one at the end."""
    proof_key = Entry[bytes | None](fixed(KEY_BYTES), None)
    """The key of the agent's deletion proofs."""
    citings_due = Entry(FLAG, default=False)
    """Whether an upgrade has left CITINGS to be written: that needs the key of an encrypted store."""
    has_lives = Entry(FLAG, default=False)
    """Whether LIVES has every memory. A store of an Ebbtide without that table is completed when it is opened."""
    compaction_due = Entry(FLAG, default=False)
    """Whether the file may still contain texts that were erased."""
    leftovers = Entry(FLAG, default=False)
    """Whether the file may still contain texts that were deleted, corrected or withdrawn."""

    def value_of(self, entry: Entry[Any]) -> object:
        """Return the value of an entry."""
        raise NotImplementedError


ENTRIES: Final[Mapping[bytes, Entry[Any]]] = {
    one.name: one for one in vars(MetaEntries).values() if isinstance(one, Entry)
}
"""Every entry of META by its key."""

NOTES_OF_FILE: Final = (MetaEntries.compaction_due, MetaEntries.leftovers)
"""Entries that describe the file rather than the agent: a fresh copy has none."""
