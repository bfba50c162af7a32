"""An agent written as lines: its whole ground state, in one transaction, in an order that can be read in one go.

Nothing is held in memory but what is small beside a store: the scan counters as arrays, and the order of the batches
whose status is kept. Each line is for others to keep; what they mean is said in `export_lines`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from ebbtide.errors import Corrupted
from ebbtide.records import Batch, BatchState, MessageRecord, Node
from ebbtide.store import layout
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.transaction import LmdbReading
from ebbtide.store.transfer.export_lines import (
    FORM,
    VERSION,
    AgentLine,
    AnyLine,
    BatchLine,
    EmbeddingLine,
    EndLine,
    HeaderLine,
    IndexLine,
    LinkLine,
    MessageLine,
    NodeLine,
    PassageLine,
    PassLine,
    PersonalLine,
    RelationLine,
    RewriteLine,
    SourceLine,
    encoded,
    raw_json,
)
from ebbtide.store.yielding import Rest, resting


def write_export(into: BinaryIO, store: LmdbStore, ebbtide_version: str, now_ms: int, rest: Rest) -> int:
    """Write every line of an agent; how many. `rest` is called all the while, and may raise."""

    def write(txn: Any) -> int:
        digest, count = hashlib.sha256(), 0
        for line in resting(_lines(txn, ebbtide_version, now_ms), rest):
            content = encoded(line)
            digest.update(content)
            into.write(content)
            count += 1
        into.write(encoded(EndLine(lines=count, sha256=digest.hexdigest())))
        return count + 1

    return store.read(write)


def _lines(txn: LmdbReading, ebbtide_version: str, now_ms: int) -> Iterator[AnyLine]:
    identity = txn.identity()
    assert identity is not None, "an open store has its identity"
    yield HeaderLine(
        format=FORM,
        version=VERSION,
        ebbtide_version=ebbtide_version,
        agent_id=identity.agent_id,
        exported_at=now_ms,
    )
    yield _agent(txn)
    for key, name in txn.items(layout.RELATIONS):
        yield RelationLine(id=layout.from_u32(key), name=name.decode())
    for record in txn.messages():
        yield _message(txn, record)
    yield from _batches(txn)
    yield from _nodes(txn)
    for link in txn.links():
        yield LinkLine(
            source=link.source,
            target=link.target,
            relation=link.relation,
            strength=link.strength,
            anchor=link.anchor,
        )
    yield from _index(txn)


def _agent(txn: LmdbReading) -> AgentLine:
    identity, state, embedding = txn.identity(), txn.pass_state(), txn.embedding_state()
    assert identity is not None
    return AgentLine(
        agent_id=identity.agent_id,
        created_at=identity.created_at_ms,
        seed=str(identity.seed),
        parameters=txn.overrides(),
        decay_rate=txn.decay_rate(),
        focus=txn.focus(),
        owed_passes=txn.owed_passes(),
        finished_passes=txn.finished_passes(),
        current_pass=None if state is None else PassLine.of(state),
        next_node=txn.next_node_id(),
        next_message=txn.next_message_number(),
        next_batch=txn.next_batch_number(),
        next_position=_number(txn, b"next_position"),
        next_digested=_number(txn, b"next_digested"),
        next_relation=_number(txn, b"next_relation_id"),
        texts_from=txn.texts_from(),
        holds_withdrawn=txn.holds_withdrawn(),
        embedding=EmbeddingLine(
            model=embedding.model,
            stamp=embedding.stamp,
            up_to=embedding.up_to,
            dimension=embedding.dimension,
        ),
    )


def _number(txn: LmdbReading, name: bytes) -> int:
    value = txn.get(layout.META, name)
    return 1 if value is None else layout.from_u64(value)


def _chunk(txn: LmdbReading, key: bytes) -> str:
    text = txn.chunk(key)
    if text is None:
        # An export that says nothing of it would be of another agent.
        raise Corrupted("a text is gone", reason="STORE_CORRUPTED")
    return text


def _message(txn: LmdbReading, record: MessageRecord) -> MessageLine:
    return MessageLine(
        number=record.number,
        batch=record.batch,
        index=record.index,
        role=record.role,
        accepted_at=record.accepted_at_ms,
        speaker=record.speaker,
        id=record.caller_id,
        timestamp=record.timestamp_ms,
        conversation_id=record.conversation_id,
        content=None if record.is_withdrawn else _chunk(txn, record.text_key),
        metadata=raw_json(_chunk(txn, record.metadata_key) if record.metadata_key else ""),
        of_batch=record.metadata_key is None,
        pii=tuple(PersonalLine(one.kind, one.offset, one.length) for one in record.personal),
    )


def _batches(txn: LmdbReading) -> Iterator[BatchLine]:
    digested = {layout.from_u64(value): layout.from_u64(key) for key, value in txn.items(layout.DIGESTED)}
    for batch in txn.batches():
        yield _batch(txn, batch, digested.get(batch.number, 0))


def _batch(txn: LmdbReading, batch: Batch, digested: int) -> BatchLine:
    receipt = txn.receipt(batch.idempotency_key) if batch.idempotency_key else None
    is_ours = receipt is not None and receipt.batch == batch.number
    return BatchLine(
        number=batch.number,
        accepted_at=batch.accepted_at_ms,
        first_message=batch.first_message,
        message_count=batch.message_count,
        state=batch.state,
        conversation_id=batch.conversation_id,
        metadata=raw_json(batch.metadata),
        idempotency_key=batch.idempotency_key,
        body_hash=receipt.body_hash if receipt is not None and is_ours else None,
        position=digested if batch.state == BatchState.DIGESTED.value else batch.position,
        attempts=batch.attempts,
        not_before=batch.not_before_ms,
        last_error=batch.last_error,
        digested_at=batch.digested_at_ms,
        nodes=batch.node_ids,
        erased_count=batch.erased_count,
        pii=batch.personal,
        dropped_recalled=batch.dropped_recalled,
        collapsed=batch.collapsed,
    )


def _nodes(txn: LmdbReading) -> Iterator[NodeLine]:
    scans = txn.scan_columns()
    for node in txn.nodes():
        place = int(np.searchsorted(scans.node_id, node.id))
        is_scanned = place < len(scans.node_id) and scans.node_id[place] == node.id
        counts = (int(scans.count[place]), int(scans.last_pass[place])) if is_scanned else (0, 0)
        yield _node(txn, node, *counts)


def _node(txn: LmdbReading, node: Node, scans: int, last_pass: int) -> NodeLine:
    return NodeLine(
        id=node.id,
        content=node.content,
        created_at=node.created_at_ms,
        original_length=node.original_length,
        phrase=node.phrase,
        keywords=node.keywords,
        kind=node.kind,
        prefix=node.prefix,
        sources=tuple(SourceLine(one.message, one.offset, one.length) for one in node.sources),
        first=_chunk(txn, node.first_key) if node.first_key else None,
        batch=node.batch,
        rewrites=tuple(map(RewriteLine.of, node.rewrites)),
        scans=scans,
        last_pass=last_pass,
    )


def _index(txn: LmdbReading) -> Iterator[IndexLine]:
    for record in txn.messages():
        passages, embedded = txn.passages_of(record.number), txn.embedded(record.number)
        if passages is not None or embedded is not None:
            yield IndexLine(
                message=record.number,
                passages=None if passages is None else tuple(map(PassageLine.of, passages)),
                stamp=0 if embedded is None else embedded.stamp,
                vectors=None if embedded is None else embedded.vectors,
            )
