"""Admission of an incoming batch: store it, replay an earlier result, or refuse it.

This runs inside a transaction that the caller commits, possibly with other batches. The rule guarded here: a refusal
writes nothing. It is returned rather than raised, so that it does not affect other batches of the commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from ebbtide.errors import Conflict, EbbtideError, Exhausted
from ebbtide.ids import NodeId
from ebbtide.memory.digestion import OwnLink
from ebbtide.memory.network import Network
from ebbtide.records import AgentCounts, Batch, MessageRecord, PassageEntry, Receipt
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction

MESSAGE_WEIGHT = 1 << 10
"""Weight of a message in addition to its text: storing its record takes as long as this many bytes of text."""


@dataclass(frozen=True, slots=True)
class Quota:
    """Limits above which an agent accepts no further batch; 0: no limit."""

    nodes: int = 0
    used_bytes: int = 0


UNBOUNDED = Quota()

NO_COUNTS = AgentCounts()


class PolicyChanged(Exception):
    """The policy on personal data changed after the batch was redacted, so it must be redacted again."""


class TargetGone(Exception):
    """A link that the caller supplies leads to a node that does not live."""

    def __init__(self, node_id: NodeId) -> None:
        super().__init__(node_id)
        self.node_id = node_id


def refuse_gone_targets(network: Network, links: Sequence[OwnLink]) -> None:
    """Raise TargetGone for a link of the caller that leads to no living node."""
    for link in links:
        if link.other not in network:
            raise TargetGone(link.other)


@dataclass(frozen=True, slots=True)
class IncomingBatch:
    """A batch to accept: its messages, their texts and the hash of the request body for its idempotency key."""

    batch: Batch
    records: Sequence[MessageRecord]
    texts: Sequence[str]
    body_hash: bytes
    passages: Sequence[list[PassageEntry]] = ()
    metadata: Mapping[bytes, str] = field(default_factory=dict)
    """The metadata of its messages as JSON, by key."""
    contents: Mapping[bytes, bytes] = field(default_factory=dict)
    """The contents of its attachments, by key."""
    quota: Quota = UNBOUNDED
    pii: str | None = None
    """The policy on personal data that was applied; None if none was applied."""

    @property
    def weight(self) -> int:
        """The amount of work, in bytes of text."""
        attached = sum(map(len, self.contents.values()))
        return sum(map(len, self.texts)) + MESSAGE_WEIGHT * len(self.texts) + attached


@dataclass(frozen=True, slots=True)
class Accepted:
    """A stored batch, and the number of waiting batches including it."""

    batch: Batch
    pending_batches: int
    records: Sequence[MessageRecord] = ()
    """Its messages as stored; empty for a replay."""


def accept(txn: WriteTransaction, incoming: IncomingBatch, max_queue_size: int) -> Accepted | Exception:
    """Put a batch into the inbox and assign its numbers. Return a refusal instead of raising it.

    For a known idempotency key, return the first batch and store nothing.
    """
    batch, counts = incoming.batch, txn.counts()
    known = txn.inbox.receipt(batch.idempotency_key) if batch.idempotency_key else None
    try:
        if known is not None:
            return Accepted(_replayed(txn, known, incoming.body_hash), counts.pending_batches)
        _refuse_when_full(counts, max_queue_size)
        refuse_beyond(incoming.quota, txn, counts)
    except EbbtideError as refusal:
        return refusal
    first, number = txn.meta.next_message_number, txn.meta.next_batch_number
    numbered = msgspec.structs.replace(batch, number=number, first_message=first)
    placed = [
        msgspec.structs.replace(record, number=first + index, batch=number)
        for index, record in enumerate(incoming.records)
    ]
    receipt = Receipt(number, incoming.body_hash) if batch.idempotency_key else None
    stored = txn.accept(
        numbered,
        placed,
        list(incoming.texts),
        receipt,
        incoming.passages,
        incoming.metadata,
        incoming.contents,
    )
    return Accepted(stored, counts.pending_batches + 1, placed)


def _replayed(txn: ReadTransaction, known: Receipt, body_hash: bytes) -> Batch:
    if known.body_hash != body_hash:
        raise Conflict(
            f"the idempotency key was already used with a different body, for batch b{known.batch}",
            reason="IDEMPOTENCY_KEY_REUSED",
        )
    batch = txn.inbox.get(known.batch)
    assert batch is not None, "a receipt lives as long as its batch"
    return batch


def _refuse_when_full(counts: AgentCounts, most: int) -> None:
    held = counts.pending_batches + counts.parked_batches
    if held >= most:
        raise Exhausted(
            f"the inbox contains {counts.pending_batches} waiting and {counts.parked_batches} parked batches, "
            f"and max_queue_size is {most}; nothing was stored",
            reason="QUEUE_FULL",
            retry_after_s=5.0,
        )


def refuse_beyond(quota: Quota, txn: ReadTransaction, counts: AgentCounts = NO_COUNTS) -> None:
    """Raise QUOTA_REACHED if the agent has reached its quota.

    A batch that arrives below the limit is accepted whole, so waiting batches may take the agent over the limit.
    """
    if quota.nodes and counts.node_count >= quota.nodes:
        raise _quota_reached("nodes", counts.node_count, quota.nodes)
    if quota.used_bytes and (used := txn.tables.used_bytes()) >= quota.used_bytes:
        raise _quota_reached("bytes", used, quota.used_bytes)


def _quota_reached(what: str, held: int, limit: int) -> Exhausted:
    return Exhausted(
        f"the agent has {held} {what}, and its limit is {limit}; nothing was stored",
        reason="QUOTA_REACHED",
        metadata={"quota": what, "limit": str(limit), "held": str(held)},
    )
