"""The first half of the checker: each entry by itself.

It checks the size and the numbers of every key, the size of every value, and every entry of META, as the tables state
them. Then it decodes every record within the bounds of its type, and collects what the second half (`check.py`)
compares. No number in an entry decides how long a loop runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeVar

from ebbtide.bounds import MAX_COUNT, MAX_METADATA_CHARS, MAX_NUMBER, MAX_TEXT_BYTES, MAX_VALUE_BYTES
from ebbtide.entity_names import is_entity
from ebbtide.errors import InvalidRequest
from ebbtide.ids import batch_text_id, node_text_id, parse_agent_id
from ebbtide.parameters import AgentParameters
from ebbtide.records import Batch, Concept, Entity, MessageRecord, Node
from ebbtide.statements import Assertion, Ruling
from ebbtide.store import layout
from ebbtide.store.codec import INVALID, UNDECODABLE, is_within
from ebbtide.store.integrity.derived import are_vectors_of, is_metadata, is_record_value, passages_fit
from ebbtide.store.layout import ENTRIES, META, MetaEntries, Table, chunk_key, from_u64
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.store.yielding import Pause, with_pauses

V = TypeVar("V")

MAX_FINDINGS: Final = 10_000
"""The checker stops after this many findings."""

MAX_CACHED_TEXTS: Final = 4
"""Texts in memory while memories are compared with them: those that cite one text are mostly adjacent."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One entry, or one pair of entries, that is wrong."""

    table: str
    key: str
    problem: str
    is_repairable: bool = False


class EnoughFound(Exception):
    """The checker has MAX_FINDINGS findings."""


class Entries:
    """The entries of one transaction, and the findings about them."""

    def __init__(self, txn: ReadTransaction, pause: Pause) -> None:
        self._txn = txn
        self._pause = pause
        self.found: list[Finding] = []
        self.nodes: dict[int, Node] = {}
        self.entities: dict[int, Entity] = {}
        self.statements: dict[int, Assertion | Ruling] = {}
        """Assertions and rulings by entry number."""
        self.concepts: dict[int, Concept] = {}
        self.messages: dict[int, MessageRecord] = {}
        self.lengths: dict[bytes, int] = {}
        """The characters of each text, by its stored key."""
        self.sizes: dict[bytes, int] = {}
        """The bytes of each chunk, by its stored key."""
        self.passage_counts: dict[int, int | None] = {}
        """The number of passages of each message; None where they cannot be decoded."""
        self.batches: dict[int, Batch] = {}
        self.newest_record = 0
        """The highest version of a record."""
        self._text_bytes = lru_cache(MAX_CACHED_TEXTS)(self._read_text)

    def read(self) -> bool:
        """Read every table. Return whether the entries can be compared."""
        if not (self._can_be_decrypted() and self._has_shape()):
            return False
        self._read_chunks()
        self._read_messages()
        self._read_passages()
        self._read_vectors()
        self._read_batches()
        self._read_nodes()
        self._read_entities()
        self._read_statements(layout.ASSERTIONS)
        self._read_statements(layout.RULINGS)
        self._read_concepts()
        self._read_records()
        return True

    def _items(self, table: Table[Any]) -> Iterator[tuple[bytes, bytes]]:
        return with_pauses(self._txn.tables.items(table), self._pause)

    def _decoded(self, table: Table[V]) -> Iterator[tuple[bytes, V | None]]:
        """Yield (stored key, value) of one table; None where a value cannot be decoded."""
        for key, value in self._items(table):
            try:
                decoded: V | None = table.value.decode(value)
            except UNDECODABLE as error:
                problem = f"cannot be decoded: {error}"[:200]
                self._note(table, key.hex(), problem, is_repairable=table.is_derived)
                decoded = None
            yield key, decoded

    def _note(self, table: Table[Any], key: str, problem: str, *, is_repairable: bool = False) -> None:
        self.found.append(Finding(table.name.decode(), key, problem, is_repairable))
        if len(self.found) == MAX_FINDINGS:
            raise EnoughFound

    # --- sizes and numbers -------------------------------------------------------------------------

    def _can_be_decrypted(self) -> bool:
        for table, place in self._txn.tables.unopened():
            self._note(table, place.hex(), "cannot be decrypted")
        return not self.found

    def _has_shape(self) -> bool:
        """Return whether every key and value has its size, and every key and entry of META is within its bounds."""
        for table in layout.TABLES:
            for key, value in self._items(table):
                problem = _fault(table, key, value)
                if problem is not None:
                    name = key.decode(errors="replace") if table is META else key.hex()
                    self._note(table, name, problem)
        for key in with_pauses(self._txn.tables.strays(), self._pause):
            self._note(META, key.hex(), "belongs to no table")
        if self._txn.tables.get(META, MetaEntries.identity.name) is None:
            self._note(META, "identity", "is missing")
        return not self.found

    # --- records -----------------------------------------------------------------------------------

    def _length(self, key: bytes) -> int | None:
        """Return the characters of a text, or None where it is missing."""
        return self.lengths.get(self._txn.tables.placed(layout.CHUNKS, key))

    def _read_text(self, key: bytes) -> bytes:
        text = self._txn.tables.load(layout.CHUNKS, key)
        assert text is not None, "it was read before"
        return text

    def _read_chunks(self) -> None:
        for key, value in self._items(layout.CHUNKS):
            try:
                if not is_within(MAX_TEXT_BYTES, value):
                    self._note(layout.CHUNKS, key.hex(), "is longer than a text may be")
                    continue
                content = layout.CHUNKS.value.decode(value)
            except INVALID:
                self._note(layout.CHUNKS, key.hex(), "cannot be decompressed")
                continue
            if self._txn.tables.placed(layout.CHUNKS, chunk_key(content)) != key:
                self._note(layout.CHUNKS, key.hex(), "does not match its key")
                continue
            self.sizes[key] = len(content)
            with contextlib.suppress(UnicodeDecodeError):
                self.lengths[key] = len(content.decode())

    def _read_messages(self) -> None:
        known: dict[bytes, bool] = {}
        has_withdrawn = self._txn.meta.withdrawn
        for key, record in self._decoded(layout.MESSAGES):
            if record is None:
                continue
            self.messages[record.number] = record
            name = str(record.number)
            if from_u64(key) != record.number:
                self._note(layout.MESSAGES, name, "is stored under another key")
            if record.attachments:
                self._check_attachments_of(record)
            if not record.is_withdrawn:
                self._check_text_of(record)
            elif record.role and not has_withdrawn:
                self._note(layout.MESSAGES, name, "has no text, but META says that none was withdrawn")
            if record.metadata_key and not self._is_metadata(record.metadata_key, known):
                self._note(layout.MESSAGES, name, "its metadata is missing or no JSON object")

    def _check_text_of(self, record: MessageRecord) -> None:
        if not record.role:
            self._note(layout.MESSAGES, str(record.number), "has a text but no role")
        if self._length(record.text_key) is None:
            self._note(layout.MESSAGES, str(record.number), "its text is missing")
            return
        if record.personal:
            end = max(one.offset + one.length for one in record.personal)
            if end > len(self._text_bytes(record.text_key)):
                self._note(
                    layout.MESSAGES, str(record.number), "has personal data beyond the end of its text"
                )
        if record.tools_from and record.tools_from > len(self._text_bytes(record.text_key)):
            self._note(layout.MESSAGES, str(record.number), "its calls of tools begin beyond its text")

    def _check_attachments_of(self, record: MessageRecord) -> None:
        """Every attachment has its content, and its captions are ranges of the text."""
        if record.is_withdrawn or self._length(record.text_key) is None:
            self._note(layout.MESSAGES, str(record.number), "has attachments but no text")
            return
        text = self._text_bytes(record.text_key)
        for one in record.attachments:
            if self.sizes.get(self._txn.tables.placed(layout.CHUNKS, one.sha256)) != one.size:
                self._note(
                    layout.MESSAGES, str(record.number), "the content of an attachment is missing or differs"
                )
            ranges = [(part.offset, part.offset + part.length) for part in one.captions]
            if any(end > len(text) or not _is_text(text[begin:end]) for begin, end in ranges):
                self._note(
                    layout.MESSAGES,
                    str(record.number),
                    "the caption of an attachment is no range of its text",
                )

    def _is_metadata(self, key: bytes, known: dict[bytes, bool]) -> bool:
        if key not in known:
            # A text may be much longer than metadata; then it is not read.
            is_short = 0 < (self._length(key) or 0) <= MAX_METADATA_CHARS
            known[key] = is_short and is_metadata(self._text_bytes(key).decode())
        return known[key]

    def _read_passages(self) -> None:
        for key, value in self._items(layout.PASSAGES):
            number = from_u64(key)
            record = self.messages.get(number)
            length = None if record is None or record.is_withdrawn else self._length(record.text_key)
            count = passages_fit(value, length)
            self.passage_counts[number] = count
            if record is None:
                self._note(layout.PASSAGES, str(number), "their message is missing", is_repairable=True)
            elif count is None:
                self._note(layout.PASSAGES, str(number), "do not fit their message", is_repairable=True)

    def _read_vectors(self) -> None:
        newest = self._txn.meta.embedding.stamp
        for key, value in self._items(layout.VECTORS):
            number = from_u64(key)
            if number not in self.messages:
                self._note(layout.VECTORS, str(number), "their message is missing", is_repairable=True)
            elif not are_vectors_of(value, self.passage_counts.get(number), newest):
                self._note(layout.VECTORS, str(number), "do not fit their message", is_repairable=True)

    def _read_batches(self) -> None:
        for key, batch in self._decoded(layout.BATCHES):
            if batch is not None:
                self.batches[batch.number] = batch
                if from_u64(key) != batch.number:
                    self._note(layout.BATCHES, batch_text_id(batch.number), "is stored under another key")
                if batch.metadata and not is_metadata(batch.metadata):
                    self._note(layout.BATCHES, batch_text_id(batch.number), "its metadata is no JSON object")

    def _read_nodes(self) -> None:
        for key, node in self._decoded(layout.NODES):
            if node is None:
                continue
            self.nodes[node.id] = node
            if from_u64(key) != node.id:
                self._note(layout.NODES, node_text_id(node.id), "is stored under another key")
            if len(node.content) > node.original_length:
                self._note(layout.NODES, node_text_id(node.id), "is longer than its original content")

    def _read_entities(self) -> None:
        for key, entity in self._decoded(layout.ENTITIES):
            if entity is None:
                continue
            self.entities[entity.id] = entity
            if from_u64(key) != entity.id:
                self._note(layout.ENTITIES, node_text_id(entity.id), "is stored under another key")
            if not is_entity(entity.name, entity.key):
                self._note(layout.ENTITIES, node_text_id(entity.id), "has no name that fits its key")

    def _read_concepts(self) -> None:
        for key, concept in self._decoded(layout.CONCEPTS):
            if concept is None:
                continue
            self.concepts[concept.id] = concept
            if from_u64(key) != concept.id:
                name = node_text_id(concept.id)
                self._note(layout.CONCEPTS, name, "is stored under another key", is_repairable=True)

    def _read_records(self) -> None:
        for place, record in self._decoded(layout.RECORDS):
            if record is None:
                continue
            self.newest_record = max(self.newest_record, record.version)
            key = layout.record_key(record.namespace, record.key)
            if self._txn.tables.placed(layout.RECORDS, key) != place:
                self._note(layout.RECORDS, place.hex(), "is stored under another key")
            if not is_record_value(record.value):
                self._note(layout.RECORDS, place.hex(), "has no JSON object as its value")

    def _read_statements(self, table: Table[Any]) -> None:
        for key, entry in self._decoded(table):
            if entry is None:
                continue
            if from_u64(key) != entry.entry:
                self._note(table, str(entry.entry), "is stored under another key")
            if entry.entry in self.statements:
                self._note(table, str(entry.entry), "has the entry number of an assertion")
            self.statements[entry.entry] = entry


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _fault(table: Table[Any], key: bytes, value: bytes) -> str | None:
    """Return what is wrong with the sizes and numbers of an entry."""
    if len(value) > MAX_VALUE_BYTES:
        return "is larger than an entry may be"
    if table is META:
        return _meta_fault(key, value)
    if table.key.size not in (None, len(key)) or table.value.size not in (None, len(value)):
        return "has a wrong size"
    try:
        table.key.check(key)
        if table is layout.RELATIONS:
            table.value.check(value)
    except INVALID:
        return "is beyond its bounds"
    if table is layout.LIVES and not 0 < len(value) <= layout.LIFE_BLOCK_BYTES:
        return "has a wrong size"
    if table is layout.SCANS and not 0 < len(value) <= layout.SCAN_BLOCK_BYTES:
        return "has a wrong size"
    if table is layout.SCANS:
        block = layout.from_scan_block(value)
        if max((block["count"] % layout.KEPT_BIT).max(), block["last_pass"].max()) > MAX_COUNT:
            return "has a counter beyond its bounds"
    return None


def _meta_fault(name: bytes, value: bytes) -> str | None:
    entry = ENTRIES.get(name)
    if entry is None:
        return None
    if entry.codec.size not in (None, len(value)):
        return "has a wrong size"
    try:
        found = entry.codec.check(value)
    except INVALID as error:
        return f"cannot be decoded: {error}"[:200]
    if entry is MetaEntries.identity:
        try:
            parse_agent_id(found.agent_id)
        except InvalidRequest:
            return "has an invalid agent id"
    return _overrides_fault(found) if entry is MetaEntries.overrides else None


def _overrides_fault(overrides: dict[str, object]) -> str | None:
    """Check each parameter by itself: combinations depend on the defaults of the daemon."""
    for name, value in overrides.items():
        try:
            AgentParameters.model_validate({name: value})
        except ValueError:
            return f"has an invalid value of {name[:40]!r}"
    return None


def is_near_its_end(txn: ReadTransaction) -> bool:
    """Return whether a number that only grows is in the upper half of its range: see `bounds.NextId`."""
    numbers = [(entry, txn.meta.value_of(entry)) for entry in ENTRIES.values() if entry.most]
    counts = (txn.meta.embedding.stamp, txn.meta.consolidation.run)
    is_near = max(counts) > MAX_COUNT // 2 or txn.meta.ledger.next_entry > MAX_NUMBER // 2
    return is_near or any(isinstance(number, int) and number > entry.most // 2 for entry, number in numbers)
