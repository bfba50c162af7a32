"""Reads an export into a new store that is not in use yet.

Nothing is guessed: a line that is invalid, duplicated, or missing at the end refuses the whole export, with its number.
The checker then tests whether the lines fit each other. The caller discards the store after an error, so it is written
in several transactions.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final, NoReturn, Protocol

import msgspec

from ebbtide.bounds import Seed
from ebbtide.entity_names import is_entity
from ebbtide.errors import InvalidRequest, Precondition
from ebbtide.records import (
    Attachment,
    Batch,
    BatchState,
    Concept,
    EmbeddedMessage,
    EmbeddingState,
    Entity,
    FadedSpan,
    Identity,
    Life,
    MessageRecord,
    Node,
    PassageEntry,
    PassState,
    PersonalSpan,
    Pin,
    Receipt,
    Region,
    Rewrite,
    ScanState,
    Source,
    StoredRecord,
)
from ebbtide.statements import Assertion, ConsolidationState, LedgerState, Ruling
from ebbtide.store import layout
from ebbtide.store.codec import UNDECODABLE, make_known
from ebbtide.store.integrity.derived import is_metadata, is_record_value
from ebbtide.store.layout import Table, link_value, text_key, u32, u64
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.transaction import WriteTransaction
from ebbtide.store.transfer.export_lines import (
    AGENT_ENTRIES,
    FORM,
    OLDEST_VERSION,
    VERSION,
    AgentLine,
    AnyLine,
    AttachmentLine,
    BatchLine,
    ConceptLine,
    EndLine,
    EntityLine,
    ForgottenLine,
    HeaderLine,
    IndexLine,
    LinkLine,
    MessageLine,
    NodeLine,
    PinLine,
    RecordLine,
    RelationLine,
    RulingLine,
    StatementLine,
    converted,
    copied,
)
from ebbtide.store.yielding import Pause, with_pauses

MAX_LINE_BYTES: Final = 64 << 20
"""Longest line: far more than the longest message with its vectors."""

MAX_COMMAS: Final = 5_000_000
"""Commas in a line, more than any text has: decoding holds the interpreter lock longer the more values there are."""

COMMIT_LINES: Final = 5000
COMMIT_BYTES: Final = 16 << 20
"""A transaction ends after this many lines, or after this many bytes."""

OUT_OF_RANGE = (struct.error, OverflowError, ValueError)
"""Errors that a number raises which cannot be stored."""


class _Version(msgspec.Struct):
    type: str
    format: str
    version: int


make_known(_Version, Seed)
_decode = msgspec.json.Decoder(AnyLine).decode


class StoreFactory(Protocol):
    """Creates the empty store of an agent."""

    def __call__(self, identity: Identity) -> LmdbStore: ...


def _refuse(number: int, what: str) -> NoReturn:
    raise InvalidRequest(
        f"Invalid export, line {number}: {what}. Nothing was changed.",
        reason="BACKUP_UNREADABLE",
        metadata={"line": str(number)},
    )


def read_agent(source: BinaryIO) -> AgentLine:
    """Return the second line of an export, which identifies the agent. The position of the source stays."""
    begin = source.tell()
    lines = Lines(source)
    lines.header()
    agent = lines.agent()
    source.seek(begin)
    return agent


class Lines:
    """Reads the lines of an export in order, and counts them."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._digest = hashlib.sha256()
        self.number = 0
        self.size = 0
        """Bytes of the current line."""

    def header(self) -> HeaderLine:
        """Read the first line. Raise FORMAT_TOO_NEW or FORMAT_TOO_OLD for an export of another version."""
        content = self._read()
        try:
            found = msgspec.json.decode(content, type=_Version)
        except UNDECODABLE:
            _refuse(1, "not the header of an export")
        if found.type != "header" or found.format != FORM:
            _refuse(1, "not the header of an export")
        if found.version > VERSION:
            raise Precondition(
                f"The export has version {found.version}; this Ebbtide reads versions {OLDEST_VERSION} to {VERSION}. "
                "Use a newer Ebbtide.",
                reason="FORMAT_TOO_NEW",
            )
        if found.version < OLDEST_VERSION:
            raise Precondition(
                f"The export has version {found.version}; this Ebbtide reads versions {OLDEST_VERSION} to {VERSION}. "
                "Remember the conversations again.",
                reason="FORMAT_TOO_OLD",
            )
        header = self._decoded(content)
        assert isinstance(header, HeaderLine)
        return header

    def agent(self) -> AgentLine:
        """Read the second line."""
        line = self._decoded(self._read())
        if not isinstance(line, AgentLine):
            _refuse(self.number, "it must be the agent line")
        return line

    def others(self) -> Iterator[AnyLine]:
        """Yield the lines between the agent and the end, and check the end against them."""
        while True:
            line = self._decoded(self._read())
            if isinstance(line, EndLine):
                self._end(line)
                return
            yield line

    def _end(self, line: EndLine) -> None:
        if line.lines != self.number - 1:
            _refuse(self.number, f"the end counts {line.lines} lines, but there are {self.number - 1}")
        if line.sha256 not in ("", self._digest.hexdigest()):
            _refuse(self.number, "the SHA-256 of the lines differs")
        if self._source.read(1):
            _refuse(self.number + 1, "there is data after the end")

    def _read(self) -> bytes:
        self.number += 1
        content = self._source.readline(MAX_LINE_BYTES)
        if not content:
            _refuse(self.number, "the file ends without an end line")
        if not content.endswith(b"\n") and len(content) == MAX_LINE_BYTES:
            _refuse(self.number, f"the line is longer than {MAX_LINE_BYTES} bytes")
        if content.count(b",") > MAX_COMMAS:
            _refuse(self.number, "the line has too many values")
        self.size = len(content)
        return content

    def _decoded(self, content: bytes) -> AnyLine:
        try:
            line: AnyLine = _decode(content)
        except UNDECODABLE as error:
            _refuse(self.number, str(error)[:200])
        if not isinstance(line, EndLine):
            self._digest.update(content)
        return line


def read_export(source: BinaryIO, make: StoreFactory, pause: Pause = lambda: None) -> LmdbStore:
    """Read an export into a store that `make` creates. Close the store and raise unless all of it is valid."""
    lines = Lines(source)
    lines.header()
    agent = lines.agent()
    try:
        seed = msgspec.convert(int(agent.seed), Seed)
    except msgspec.ValidationError as error:
        _refuse(lines.number, f"seed: {error}")
    store = make(Identity(agent.agent_id, agent.created_at, seed, layout.FORMAT_VERSION))
    try:
        store.write(lambda txn: _guarded(lines.number, lambda: _put_agent(txn, agent)))
        while _write_some(store, lines, pause):
            pass
    except BaseException:
        store.close()
        raise
    return store


def _write_some(store: LmdbStore, lines: Lines, pause: Pause) -> bool:
    """Write some lines in one transaction. Return whether there may be more."""
    # All are read before the transaction, which may run again.
    some: list[tuple[int, AnyLine]] = []
    size, is_more = 0, False
    for line in with_pauses(lines.others(), pause):
        some.append((lines.number, line))
        size += lines.size
        is_more = len(some) == COMMIT_LINES or size >= COMMIT_BYTES
        if is_more:
            break

    def write(txn: WriteTransaction) -> None:
        for number, line in with_pauses(some, pause):
            _guarded(number, lambda line=line: _put(txn, line))  # type: ignore[misc]

    store.write(write)
    return is_more


class _Invalid(Exception):
    """The reason why a line is refused."""


def _guarded(number: int, put: Callable[[], None]) -> None:
    try:
        put()
    except _Invalid as fault:
        _refuse(number, str(fault))
    except OUT_OF_RANGE:
        _refuse(number, "a number is outside its range")


def _put(txn: WriteTransaction, line: AnyLine) -> None:
    if isinstance(line, MessageLine):
        _put_message(txn, line)
    elif isinstance(line, NodeLine):
        _put_node(txn, line)
    elif isinstance(line, ForgottenLine):
        _put_forgotten(txn, line)
    elif isinstance(line, EntityLine):
        _put_entity(txn, line)
    elif isinstance(line, StatementLine | RulingLine):
        _put_statement(txn, line)
    elif isinstance(line, ConceptLine):
        _new_key(txn, layout.CONCEPTS, line.id)
        txn.concepts.put(converted(line, Concept))
    elif isinstance(line, RecordLine):
        _put_record(txn, line)
    elif isinstance(line, PinLine):
        _put_pin(txn, line)
    elif isinstance(line, LinkLine):
        _put_link(txn, line)
    elif isinstance(line, BatchLine):
        _put_batch(txn, line)
    elif isinstance(line, IndexLine):
        _put_index(txn, line)
    elif isinstance(line, RelationLine):
        _put_relation(txn, line)
    else:
        raise _Invalid("header and agent must be the first lines")


def _new_key(txn: WriteTransaction, table: Table[Any], number: int) -> bytes:
    key = u64(number)
    if txn.tables.get(table, key) is not None:
        raise _Invalid(f"duplicate number {number}")
    return key


def _json_text(raw: msgspec.Raw) -> str:
    try:
        text = bytes(raw).decode()
    except UnicodeDecodeError:
        raise _Invalid("metadata is not UTF-8") from None
    if text and not is_metadata(text):
        raise _Invalid("metadata is no JSON object, or too large")
    return text


def _put_agent(txn: WriteTransaction, line: AgentLine) -> None:
    own = {name: getattr(line, name) for name in AGENT_ENTRIES}
    if line.pass_state is not None:
        own["pass_state"] = copied(line.pass_state, PassState)
    if line.ledger is not None:
        own["ledger"] = converted(line.ledger, LedgerState)
    if line.consolidation is not None:
        own["consolidation"] = converted(line.consolidation, ConsolidationState)
    if line.embedding is not None:
        own["embedding"] = converted(line.embedding, EmbeddingState)
    txn.meta.set(**own)


def _put_relation(txn: WriteTransaction, line: RelationLine) -> None:
    key, name_key = u32(line.id), text_key(line.name)
    known = (txn.tables.get(layout.RELATIONS, key), txn.tables.get(layout.RELATION_IDS, name_key))
    if known != (None, None):
        raise _Invalid("duplicate relation")
    txn.tables.save(layout.RELATIONS, key, line.name)
    txn.tables.save(layout.RELATION_IDS, name_key, line.id)


def _put_message(txn: WriteTransaction, line: MessageLine) -> None:
    key = _new_key(txn, layout.MESSAGES, line.number)
    metadata = _json_text(line.metadata)
    record = copied(
        line,
        MessageRecord,
        metadata_key=txn.texts.put(metadata) if metadata else b"",
        text_key=b"" if line.content is None else txn.texts.put(line.content),
        personal=tuple(converted(one, PersonalSpan) for one in line.personal),
        faded=tuple(converted(one, FadedSpan) for one in line.faded),
        attachments=tuple(_attachment(txn, one) for one in line.attachments),
    )
    txn.tables.save(layout.MESSAGES, key, record)


def _attachment(txn: WriteTransaction, line: AttachmentLine) -> Attachment:
    kept = txn.texts.put_content(line.content)
    regions = tuple(converted(one, Region) for one in line.regions)
    return Attachment(line.mime, kept, len(line.content), line.offset, line.length, regions)


def _put_node(txn: WriteTransaction, line: NodeLine) -> None:
    _new_key(txn, layout.NODES, line.id)
    node = copied(
        line,
        Node,
        pinned="none",
        sources=tuple(converted(one, Source) for one in line.sources),
        first_key=b"" if line.first is None else txn.texts.put(line.first),
        rewrites=tuple(converted(one, Rewrite) for one in line.rewrites),
    )
    txn.lives.put(line.id, Life(line.born_after, line.original_length))
    txn.nodes.put(node)
    if line.scans or line.kept:
        txn.scans.put(line.id, ScanState(line.scans, line.last_pass, line.kept))


def _put_forgotten(txn: WriteTransaction, line: ForgottenLine) -> None:
    if txn.lives.get(line.id) is not None:
        raise _Invalid(f"duplicate number {line.id}")
    txn.lives.put(line.id, Life(line.born_after, line.length, line.forgotten_in))


def _put_entity(txn: WriteTransaction, line: EntityLine) -> None:
    _new_key(txn, layout.ENTITIES, line.id)
    if txn.tables.get(layout.NODES, u64(line.id)) is not None:
        raise _Invalid("duplicate entity")
    if not is_entity(line.name, line.key):
        raise _Invalid(
            "key does not fit the name, is too short or too long, or the name has control characters"
        )
    txn.entities.put(copied(line, Entity))
    if line.scans:
        txn.scans.put(line.id, ScanState(line.scans, line.last_pass))


def _put_statement(txn: WriteTransaction, line: StatementLine | RulingLine) -> None:
    for table in (layout.ASSERTIONS, layout.RULINGS):
        _new_key(txn, table, line.entry)
    if isinstance(line, StatementLine):
        txn.statements.put(copied(line, Assertion, source=converted(line.source, Source)))
    else:
        txn.statements.put(
            copied(line, Ruling, sources=tuple(converted(one, Source) for one in line.sources))
        )


def _put_record(txn: WriteTransaction, line: RecordLine) -> None:
    if txn.records.get(line.namespace, line.key) is not None:
        raise _Invalid("duplicate record")
    value = bytes(line.value)
    if not is_record_value(value):
        raise _Invalid("value is no JSON object, too large or too deep")
    txn.records.put(copied(line, StoredRecord, value=value.decode()))


def _put_pin(txn: WriteTransaction, line: PinLine) -> None:
    if txn.nodes.get(line.node) is None:
        raise _Invalid("no earlier line defines its memory")
    txn.nodes.pin(line.node, Pin(line.by))


def _put_link(txn: WriteTransaction, line: LinkLine) -> None:
    relation = txn.tables.load(layout.RELATION_IDS, text_key(line.relation))
    if relation is None:
        raise _Invalid("no earlier line defines its relation")
    if txn.links.has(line.source, line.target, relation):
        raise _Invalid("duplicate link")
    value = link_value(line.target, relation, line.strength, line.anchor)
    txn.tables.put(layout.LINKS, u64(line.source), value)


def _put_batch(txn: WriteTransaction, line: BatchLine) -> None:
    key = _new_key(txn, layout.BATCHES, line.number)
    is_digested = line.state == BatchState.DIGESTED.value
    if line.state == BatchState.PARKED.value:
        txn.tables.put(layout.PARKED, key, b"")
    else:
        table = layout.DIGESTED if is_digested else layout.INBOX
        txn.tables.put(table, _new_key(txn, table, line.position), key)
    batch = copied(
        line, Batch, metadata=_json_text(line.metadata), position=0 if is_digested else line.position
    )
    txn.tables.save(layout.BATCHES, key, batch)
    if line.body_hash is not None:
        receipt = Receipt(line.number, line.body_hash)
        txn.tables.save(layout.RECEIPTS, text_key(line.idempotency_key), receipt)


def _put_index(txn: WriteTransaction, line: IndexLine) -> None:
    key = u64(line.message)
    if line.passages is not None:
        entries = [converted(one, PassageEntry) for one in line.passages]
        txn.tables.save(layout.PASSAGES, key, entries)
    if line.vectors is not None:
        txn.tables.save(layout.VECTORS, key, EmbeddedMessage(line.stamp, line.vectors))
