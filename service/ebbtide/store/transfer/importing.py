"""An agent made from the lines of an export, in a store of its own that nobody uses yet.

The rule guarded here: nothing is guessed. A line that cannot be read, stands twice, or is missing at the end refuses
the whole export, with its number; whether what the lines say holds together is then for the checker to find. The store
is given up by whoever made it when that is so, and so it does not matter that it is written in several transactions.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final, NoReturn, Protocol

import msgspec

from ebbtide.bounds import Seed
from ebbtide.changes import Change
from ebbtide.errors import InvalidRequest, Precondition
from ebbtide.records import (
    Batch,
    BatchState,
    EmbeddedMessage,
    EmbeddingState,
    MessageRecord,
    Node,
    PersonalSpan,
    Receipt,
    ScanState,
    Source,
)
from ebbtide.store import layout
from ebbtide.store.codec import UNDECODABLE, make_known
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.metadata import is_metadata
from ebbtide.store.lmdb.transaction import LmdbWriting
from ebbtide.store.port import Identity
from ebbtide.store.transfer.export_lines import (
    FORM,
    VERSION,
    AgentLine,
    AnyLine,
    BatchLine,
    EndLine,
    HeaderLine,
    IndexLine,
    LinkLine,
    MessageLine,
    NodeLine,
    RelationLine,
    text_of,
)
from ebbtide.store.yielding import Rest, resting

MOST_LINE_BYTES: Final = 64 << 20
"""Longest line: far more than the longest message with its vectors."""

MAX_COMMAS: Final = 5_000_000
"""Commas in a line: reading it holds the interpreter, for longer the more values it has. More than texts have."""

LINES_TOGETHER: Final = 5000
BYTES_TOGETHER: Final = 16 << 20
"""Lines written in one transaction, and held in memory for it: so many, or until they have so many bytes."""

OUT_OF_RANGE = (struct.error, OverflowError, ValueError)
"""What a number that cannot be stored raises."""


class _Version(msgspec.Struct):
    type: str
    format: str
    version: int


make_known(_Version, Seed)
_decode = msgspec.json.Decoder(AnyLine).decode


class MakesStore(Protocol):
    """Makes the empty store of an agent."""

    def __call__(self, identity: Identity) -> LmdbStore: ...


def _refuse(number: int, what: str) -> NoReturn:
    raise InvalidRequest(
        f"not a whole export, line {number}: {what}; nothing was changed",
        reason="BACKUP_UNREADABLE",
        metadata={"line": str(number)},
    )


def read_agent(source: BinaryIO) -> AgentLine:
    """Whose export it is: its first two lines. The source is then where it was."""
    begin = source.tell()
    lines = Lines(source)
    lines.header()
    agent = lines.agent()
    source.seek(begin)
    return agent


class Lines:
    """The lines of an export, one after the other, with their number."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._digest = hashlib.sha256()
        self.number = 0
        self.size = 0
        """Bytes of the line at hand."""

    def header(self) -> HeaderLine:
        """The first line. FORMAT_TOO_NEW when a newer Ebbtide wrote the export."""
        content = self._read()
        try:
            told = msgspec.json.decode(content, type=_Version)
        except UNDECODABLE:
            _refuse(1, "this is no header")
        if told.type != "header" or told.format != FORM:
            _refuse(1, "this is no header")
        if told.version > VERSION:
            raise Precondition(
                f"the export has form {told.version}, this Ebbtide reads up to {VERSION}; use a newer Ebbtide",
                reason="FORMAT_TOO_NEW",
            )
        header = self._taken(content)
        assert isinstance(header, HeaderLine)
        return header

    def agent(self) -> AgentLine:
        """The second line."""
        line = self._taken(self._read())
        if not isinstance(line, AgentLine):
            _refuse(self.number, "the agent has to come first")
        return line

    def rest(self) -> Iterator[AnyLine]:
        """Every other line up to the last one, which must be the end and fit what came before."""
        while True:
            line = self._taken(self._read())
            if isinstance(line, EndLine):
                self._end(line)
                return
            yield line

    def _end(self, line: EndLine) -> None:
        if line.lines != self.number - 1:
            _refuse(self.number, f"{line.lines} lines were written, {self.number - 1} are here")
        if line.sha256 not in ("", self._digest.hexdigest()):
            _refuse(self.number, "the lines are not those that were written")
        if self._source.read(1):
            _refuse(self.number + 1, "nothing comes after the end")

    def _read(self) -> bytes:
        self.number += 1
        content = self._source.readline(MOST_LINE_BYTES)
        if not content:
            _refuse(self.number, "it breaks off here")
        if not content.endswith(b"\n") and len(content) == MOST_LINE_BYTES:
            _refuse(self.number, f"longer than {MOST_LINE_BYTES} bytes")
        if content.count(b",") > MAX_COMMAS:
            _refuse(self.number, "more values than a line may have")
        self.size = len(content)
        return content

    def _taken(self, content: bytes) -> AnyLine:
        try:
            line: AnyLine = _decode(content)
        except UNDECODABLE as error:
            _refuse(self.number, str(error)[:200])
        if not isinstance(line, EndLine):
            self._digest.update(content)
        return line


def read_export(source: BinaryIO, make: MakesStore, rest: Rest = lambda: None) -> LmdbStore:
    """The store of the agent that an export tells of, made by `make`; closed and refused unless all of it was read."""
    lines = Lines(source)
    lines.header()
    agent = lines.agent()
    try:
        seed = msgspec.convert(int(agent.seed), Seed)
    except msgspec.ValidationError as error:
        _refuse(lines.number, f"seed: {error}")
    identity = Identity(agent.agent_id, agent.created_at, seed, layout.FORMAT_VERSION)
    store = make(identity)
    try:
        store.write(lambda txn: _guarded(lines.number, lambda: _put_agent(txn, agent)))
        while _write_some(store, lines, rest):
            pass
    except BaseException:
        store.close()
        raise
    return store


def _write_some(store: LmdbStore, lines: Lines, rest: Rest) -> bool:
    """One transaction; whether there was something to write."""
    # Read before it is written: a write may be tried again.
    some: list[tuple[int, AnyLine]] = []
    size, is_more = 0, False
    for line in resting(lines.rest(), rest):
        some.append((lines.number, line))
        size += lines.size
        is_more = len(some) == LINES_TOGETHER or size >= BYTES_TOGETHER
        if is_more:
            break

    def write(txn: Any) -> None:
        for number, line in resting(some, rest):
            _guarded(number, lambda line=line: _put(txn, line))  # type: ignore[misc]

    store.write(write)
    return is_more


class _Unfit(Exception):
    """Why a line cannot be taken."""


def _guarded(number: int, put: Callable[[], None]) -> None:
    try:
        put()
    except _Unfit as fault:
        _refuse(number, str(fault))
    except OUT_OF_RANGE:
        _refuse(number, "a number is outside its range")


def _put(txn: LmdbWriting, line: AnyLine) -> None:
    if isinstance(line, MessageLine):
        _put_message(txn, line)
    elif isinstance(line, NodeLine):
        _put_node(txn, line)
    elif isinstance(line, LinkLine):
        _put_link(txn, line)
    elif isinstance(line, BatchLine):
        _put_batch(txn, line)
    elif isinstance(line, IndexLine):
        _put_index(txn, line)
    elif isinstance(line, RelationLine):
        _put_relation(txn, line)
    else:
        raise _Unfit("it stands at the beginning only")


def _new_key(txn: LmdbWriting, table: bytes, number: int) -> bytes:
    key = layout.u64(number)
    if txn.get(table, key) is not None:
        raise _Unfit(f"{number} stands twice")
    return key


def _object_text(raw: msgspec.Raw) -> str:
    try:
        text = text_of(raw)
    except UnicodeDecodeError:
        raise _Unfit("metadata is not UTF-8") from None
    if text and not is_metadata(text):
        raise _Unfit("metadata is no object, or too large")
    return text


def _put_agent(txn: Any, line: AgentLine) -> None:
    rate = line.decay_rate
    txn.put(layout.META, b"overrides", layout.encode(line.parameters))
    if rate is not None:
        txn.put(layout.META, b"decay_rate", layout.encode(rate))
    txn.apply(
        Change(
            focus=line.focus,
            next_node_id=line.next_node,
            owed_passes=line.owed_passes,
            finished_passes=line.finished_passes,
            pass_state=None if line.current_pass is None else line.current_pass.state(),
        )
    )
    for name, number in (
        (b"next_message_number", line.next_message),
        (b"next_batch_number", line.next_batch),
        (b"next_position", line.next_position),
        (b"next_digested", line.next_digested),
        (b"next_relation_id", line.next_relation),
        (b"texts_from", line.texts_from),
    ):
        txn.put(layout.META, name, layout.u64(number))
    if line.holds_withdrawn:
        txn.put(layout.META, b"withdrawn", b"1")
    if line.embedding is not None:
        told = line.embedding
        txn.set_embedding_state(EmbeddingState(told.model, told.stamp, told.up_to, told.dimension))


def _put_relation(txn: LmdbWriting, line: RelationLine) -> None:
    key, name_key = layout.u32(line.id), layout.text_key(line.name)
    if txn.get(layout.RELATIONS, key) is not None or txn.get(layout.RELATION_IDS, name_key) is not None:
        raise _Unfit("the relation stands twice")
    txn.put(layout.RELATIONS, key, line.name.encode())
    txn.put(layout.RELATION_IDS, name_key, key)


def _put_message(txn: LmdbWriting, line: MessageLine) -> None:
    key = _new_key(txn, layout.MESSAGES, line.number)
    held = _object_text(line.metadata)
    metadata: bytes | None = txn.put_chunk(held) if held else b""
    if line.of_batch:
        metadata = None
    record = MessageRecord(
        number=line.number,
        batch=line.batch,
        index=line.index,
        role=line.role,
        speaker=line.speaker,
        caller_id=line.id,
        timestamp_ms=line.timestamp,
        accepted_at_ms=line.accepted_at,
        conversation_id=line.conversation_id,
        text_key=b"" if line.content is None else txn.put_chunk(line.content),
        metadata_key=metadata,
        personal=tuple(PersonalSpan(one.kind, one.offset, one.length) for one in line.pii),
    )
    txn.put(layout.MESSAGES, key, layout.encode(record))


def _put_node(txn: LmdbWriting, line: NodeLine) -> None:
    key = _new_key(txn, layout.NODES, line.id)
    node = Node(
        id=line.id,
        content=line.content,
        phrase=line.phrase,
        keywords=line.keywords,
        created_at_ms=line.created_at,
        original_length=line.original_length,
        kind=line.kind,
        prefix=line.prefix,
        sources=tuple(Source(one.message, one.offset, one.length) for one in line.sources),
        first_key=b"" if line.first is None else txn.put_chunk(line.first),
        batch=line.batch,
        rewrites=tuple(one.rewrite() for one in line.rewrites),
    )
    txn.put(layout.NODES, key, layout.encode(node))
    if line.scans:
        txn.put_scans({line.id: ScanState(line.scans, line.last_pass)})


def _put_link(txn: LmdbWriting, line: LinkLine) -> None:
    relation = txn.get(layout.RELATION_IDS, layout.text_key(line.relation))
    if relation is None:
        raise _Unfit("no relation of this name came before")
    key, relation_id = layout.u64(line.source), layout.from_u32(relation)
    prefix = layout.backlink_value(line.source, relation_id)
    if txn.has(layout.BACKLINKS, layout.u64(line.target), prefix):
        raise _Unfit("the link stands twice")
    txn.put(layout.LINKS, key, layout.link_value(line.target, relation_id, line.strength, line.anchor))
    txn.put(layout.BACKLINKS, layout.u64(line.target), prefix)


def _put_batch(txn: LmdbWriting, line: BatchLine) -> None:
    key = _new_key(txn, layout.BATCHES, line.number)
    is_digested = line.state == BatchState.DIGESTED.value
    if line.state == BatchState.WAITING.value:
        txn.put(layout.INBOX, _new_key(txn, layout.INBOX, line.position), key)
    elif line.state == BatchState.PARKED.value:
        txn.put(layout.PARKED, key, b"")
    elif is_digested:
        txn.put(layout.DIGESTED, _new_key(txn, layout.DIGESTED, line.position), key)
    else:
        raise _Unfit("the state is none of waiting, parked, digested")
    batch = Batch(
        number=line.number,
        accepted_at_ms=line.accepted_at,
        first_message=line.first_message,
        message_count=line.message_count,
        conversation_id=line.conversation_id,
        metadata=_object_text(line.metadata),
        idempotency_key=line.idempotency_key,
        state=line.state,
        position=0 if is_digested else line.position,
        attempts=line.attempts,
        not_before_ms=line.not_before,
        last_error=line.last_error,
        digested_at_ms=line.digested_at,
        node_ids=line.nodes,
        erased_count=line.erased_count,
        personal=line.pii,
        dropped_recalled=line.dropped_recalled,
        collapsed=line.collapsed,
    )
    txn.put(layout.BATCHES, key, layout.encode(batch))
    if line.body_hash is not None:
        receipt = Receipt(line.number, line.body_hash)
        txn.put(layout.RECEIPTS, layout.text_key(line.idempotency_key), layout.encode(receipt))


def _put_index(txn: LmdbWriting, line: IndexLine) -> None:
    key = layout.u64(line.message)
    if line.passages is not None:
        entries = [one.entry() for one in line.passages]
        txn.put(layout.PASSAGES, key, layout.encode(entries))
    if line.vectors is not None:
        txn.put(layout.VECTORS, key, layout.encode(EmbeddedMessage(line.stamp, line.vectors)))
