"""Writes an export: the whole ground state of an agent, from one transaction, in an order that is read in one pass.

Only small data is in memory at once: the scan counters as arrays, and the order of the digested batches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from ebbtide.errors import Corrupted
from ebbtide.records import (
    NEVER_SCANNED,
    Attachment,
    Batch,
    BatchState,
    Life,
    MessageRecord,
    Node,
    ScanColumns,
    ScanState,
)
from ebbtide.statements import Assertion, ConsolidationState, LedgerState
from ebbtide.store.layout import DIGESTED, RELATIONS, from_u32, from_u64
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.store.transfer.export_lines import (
    AGENT_ENTRIES,
    FORM,
    VERSION,
    AgentLine,
    AnyLine,
    AttachmentLine,
    BatchLine,
    ConceptLine,
    ConsolidationLine,
    EmbeddingLine,
    EndLine,
    EntityLine,
    FadedLine,
    ForgottenLine,
    HeaderLine,
    IndexLine,
    LedgerLine,
    LinkLine,
    MessageLine,
    NodeLine,
    PassageLine,
    PassLine,
    PersonalLine,
    PinLine,
    RecordLine,
    RegionLine,
    RelationLine,
    RewriteLine,
    RulingLine,
    SourceLine,
    StatementLine,
    converted,
    copied,
    encoded,
    raw_json,
)
from ebbtide.store.yielding import Pause, with_pauses


def write_export(into: BinaryIO, store: LmdbStore, ebbtide_version: str, now_ms: int, pause: Pause) -> int:
    """Write every line of an agent, and return their number. `pause` is called between lines, and may raise."""

    def write(txn: ReadTransaction) -> int:
        digest, count = hashlib.sha256(), 0
        for line in with_pauses(_lines(txn, ebbtide_version, now_ms), pause):
            content = encoded(line)
            digest.update(content)
            into.write(content)
            count += 1
        into.write(encoded(EndLine(lines=count, sha256=digest.hexdigest())))
        return count + 1

    return store.read(write)


def _lines(txn: ReadTransaction, ebbtide_version: str, now_ms: int) -> Iterator[AnyLine]:
    agent = _agent(txn)
    yield HeaderLine(
        format=FORM,
        version=VERSION,
        ebbtide_version=ebbtide_version,
        agent_id=agent.agent_id,
        exported_at=now_ms,
    )
    yield agent
    for key, name in txn.tables.items(RELATIONS):
        yield RelationLine(id=from_u32(key), name=name.decode())
    for record in txn.messages.all():
        yield _message(txn, record)
    digested = {from_u64(value): from_u64(key) for key, value in txn.tables.items(DIGESTED)}
    for batch in txn.inbox.all():
        yield _batch(txn, batch, digested.get(batch.number, 0))
    yield from _nodes(txn)
    yield from _forgotten(txn)
    yield from _entities(txn)
    yield from _statements(txn)
    for concept in txn.concepts.all():
        yield converted(concept, ConceptLine)
    for stored in txn.records.all():
        yield copied(stored, RecordLine, value=raw_json(stored.value))
    yield from _pins(txn)
    for link in txn.links.all():
        yield converted(link, LinkLine)
    yield from _index(txn)


def _agent(txn: ReadTransaction) -> AgentLine:
    identity, state = txn.meta.identity, txn.meta.pass_state
    assert identity is not None, "an open store has its identity"
    own = {name: getattr(txn.meta, name) for name in AGENT_ENTRIES}
    own["pass_state"] = None if state is None else copied(state, PassLine)
    own["ledger"] = None if txn.meta.ledger == LedgerState() else converted(txn.meta.ledger, LedgerLine)
    consolidation = txn.meta.consolidation
    own["consolidation"] = (
        None if consolidation == ConsolidationState() else converted(consolidation, ConsolidationLine)
    )
    own["embedding"] = converted(txn.meta.embedding, EmbeddingLine)
    return AgentLine(
        agent_id=identity.agent_id, created_at=identity.created_at_ms, seed=str(identity.seed), **own
    )


def _text(txn: ReadTransaction, key: bytes) -> str:
    text = txn.texts.get(key)
    if text is None:
        # An export without it would describe another agent.
        raise Corrupted("A text is missing.", reason="STORE_CORRUPTED")
    return text


def _message(txn: ReadTransaction, record: MessageRecord) -> MessageLine:
    return copied(
        record,
        MessageLine,
        content=None if record.is_withdrawn else _text(txn, record.text_key),
        metadata=raw_json(_text(txn, record.metadata_key) if record.metadata_key else ""),
        personal=tuple(converted(one, PersonalLine) for one in record.personal),
        faded=tuple(converted(one, FadedLine) for one in record.faded),
        attachments=tuple(_attachment(txn, one) for one in record.attachments),
    )


def _attachment(txn: ReadTransaction, one: Attachment) -> AttachmentLine:
    regions = tuple(converted(region, RegionLine) for region in one.regions)
    return AttachmentLine(one.mime, txn.texts.content(one.sha256), one.offset, one.length, regions)


def _batch(txn: ReadTransaction, batch: Batch, digested: int) -> BatchLine:
    receipt = txn.inbox.receipt(batch.idempotency_key) if batch.idempotency_key else None
    is_own = receipt is not None and receipt.batch == batch.number
    return copied(
        batch,
        BatchLine,
        metadata=raw_json(batch.metadata),
        body_hash=receipt.body_hash if receipt is not None and is_own else None,
        position=digested if batch.state == BatchState.DIGESTED.value else batch.position,
    )


def _nodes(txn: ReadTransaction) -> Iterator[NodeLine]:
    scans = txn.scans.columns()
    for node in txn.nodes.all():
        yield _node(txn, node, _scan_of(scans, node.id), txn.lives.get(node.id))


def _forgotten(txn: ReadTransaction) -> Iterator[ForgottenLine]:
    lives = txn.lives.columns()
    for place in np.flatnonzero(lives.forgotten_in).tolist():
        yield ForgottenLine(
            id=int(lives.node_id[place]),
            born_after=int(lives.after[place]),
            length=int(lives.length[place]),
            forgotten_in=int(lives.forgotten_in[place]),
        )


def _entities(txn: ReadTransaction) -> Iterator[EntityLine]:
    scans = txn.scans.columns()
    for entity in txn.entities.all():
        scan = _scan_of(scans, entity.id)
        yield copied(entity, EntityLine, scans=scan.count, last_pass=scan.last_pass)


def _statements(txn: ReadTransaction) -> Iterator[StatementLine | RulingLine]:
    for entry in txn.statements.entries():
        if isinstance(entry, Assertion):
            yield copied(entry, StatementLine, source=converted(entry.source, SourceLine))
        else:
            sources = tuple(converted(one, SourceLine) for one in entry.sources)
            yield copied(entry, RulingLine, sources=sources)


def _pins(txn: ReadTransaction) -> Iterator[PinLine]:
    for node in txn.nodes.all():
        if node.pinned != "none":
            yield PinLine(node=node.id, by=node.pinned)


def _scan_of(scans: ScanColumns, node_id: int) -> ScanState:
    place = int(np.searchsorted(scans.node_id, node_id))
    is_scanned = place < len(scans.node_id) and scans.node_id[place] == node_id
    if not is_scanned:
        return NEVER_SCANNED
    return ScanState(int(scans.count[place]), int(scans.last_pass[place]), bool(scans.is_kept[place]))


def _node(txn: ReadTransaction, node: Node, scan: ScanState, life: Life | None) -> NodeLine:
    return copied(
        node,
        NodeLine,
        sources=tuple(converted(one, SourceLine) for one in node.sources),
        first=_text(txn, node.first_key) if node.first_key else None,
        rewrites=tuple(converted(one, RewriteLine) for one in node.rewrites),
        scans=scan.count,
        last_pass=scan.last_pass,
        kept=scan.is_kept,
        born_after=0 if life is None else life.after,
    )


def _index(txn: ReadTransaction) -> Iterator[IndexLine]:
    for record in txn.messages.all():
        passages, embedded = txn.passages.get(record.number), txn.vectors.get(record.number)
        if passages is not None or embedded is not None:
            yield IndexLine(
                message=record.number,
                passages=None if passages is None else tuple(converted(one, PassageLine) for one in passages),
                stamp=0 if embedded is None else embedded.stamp,
                vectors=None if embedded is None else embedded.vectors,
            )
