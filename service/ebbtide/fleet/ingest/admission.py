"""What becomes of a batch that arrives: put into the inbox, answered with an earlier one, or refused.

All of it happens inside a transaction that someone else commits, perhaps along with other arrivals. The rule
guarded here: a refusal writes nothing, so it is returned and spoils nothing for what shares its commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from ebbtide.errors import Conflict, EbbtideError, Exhausted
from ebbtide.records import AgentCounts, Batch, MessageRecord, PassageEntry, Receipt
from ebbtide.store.port import ReadTransaction, WriteTransaction

MESSAGE_WEIGHT = 1 << 10
"""What a message weighs beside its text: storing its record takes as long as so many bytes more of text."""


@dataclass(frozen=True, slots=True)
class Quota:
    """How much an agent may hold for it to take a batch; 0: no limit."""

    nodes: int = 0
    used_bytes: int = 0


UNBOUNDED = Quota()


class PolicyChanged(Exception):
    """What arrived went through the door under a policy that is in force no longer: it goes through it anew."""


@dataclass(frozen=True, slots=True)
class IncomingBatch:
    """A batch to be accepted, with its messages, their texts and the hash that its idempotency key stands for."""

    batch: Batch
    records: Sequence[MessageRecord]
    texts: Sequence[str]
    body_hash: bytes
    passages: Sequence[list[PassageEntry]] = ()
    metadata: Mapping[bytes, str] = field(default_factory=dict)
    """The metadata of its messages as JSON, by key."""
    quota: Quota = UNBOUNDED
    pii: str | None = None
    """The policy on personal data that it went through the door under; None where there was no door."""

    @property
    def weight(self) -> int:
        """The work it makes, as so many bytes of text."""
        return sum(map(len, self.texts)) + MESSAGE_WEIGHT * len(self.texts)


@dataclass(frozen=True, slots=True)
class Accepted:
    """A batch as it is stored, and how many waited then, itself included."""

    batch: Batch
    pending_batches: int
    records: Sequence[MessageRecord] = ()
    """Its messages as they are stored; none where nothing was stored again."""


def accept(txn: WriteTransaction, arrival: IncomingBatch, max_queue_size: int) -> Accepted | Exception:
    """Put a batch into the inbox; its numbers are given here. A refusal is returned, not raised.

    A known idempotency key answers with the first batch; nothing is stored again.
    """
    batch, counts = arrival.batch, txn.counts()
    known = txn.receipt(batch.idempotency_key) if batch.idempotency_key else None
    try:
        if known is not None:
            return Accepted(_replayed(txn, known, arrival.body_hash), counts.pending_batches)
        _refuse_when_full(counts, max_queue_size)
        _refuse_beyond(arrival.quota, txn, counts)
    except EbbtideError as refusal:
        return refusal
    first, number = txn.next_message_number(), txn.next_batch_number()
    numbered = msgspec.structs.replace(batch, number=number, first_message=first)
    placed = [
        msgspec.structs.replace(record, number=first + index, batch=number)
        for index, record in enumerate(arrival.records)
    ]
    receipt = Receipt(number, arrival.body_hash) if batch.idempotency_key else None
    stored = txn.accept(numbered, placed, list(arrival.texts), receipt, arrival.passages, arrival.metadata)
    return Accepted(stored, counts.pending_batches + 1, placed)


def _replayed(txn: ReadTransaction, known: Receipt, body_hash: bytes) -> Batch:
    if known.body_hash != body_hash:
        raise Conflict(
            f"the idempotency key was used with another body, for batch b{known.batch}",
            reason="IDEMPOTENCY_KEY_REUSED",
        )
    batch = txn.batch(known.batch)
    assert batch is not None, "a receipt lives as long as its batch"
    return batch


def _refuse_when_full(counts: AgentCounts, most: int) -> None:
    held = counts.pending_batches + counts.parked_batches
    if held >= most:
        raise Exhausted(
            f"the inbox holds {counts.pending_batches} waiting and {counts.parked_batches} parked "
            f"batches; max_queue_size is {most}; nothing was stored",
            reason="QUEUE_FULL",
            retry_after_s=5.0,
        )


def _refuse_beyond(quota: Quota, txn: ReadTransaction, counts: AgentCounts) -> None:
    """QUOTA_REACHED for an agent that holds as much as it may.

    A batch that arrives below the bound is taken whole, so what an agent holds may pass it by what waits in its inbox.
    """
    if quota.nodes and counts.node_count >= quota.nodes:
        raise _quota_reached("nodes", counts.node_count, quota.nodes)
    if quota.used_bytes and (used := txn.used_bytes()) >= quota.used_bytes:
        raise _quota_reached("bytes", used, quota.used_bytes)


def _quota_reached(what: str, held: int, limit: int) -> Exhausted:
    return Exhausted(
        f"the agent holds {held} {what} and may hold {limit}; nothing was stored",
        reason="QUOTA_REACHED",
        metadata={"quota": what, "limit": str(limit), "held": str(held)},
    )
