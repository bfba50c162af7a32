"""The shape of a store: how many bytes each key and value has, and which values META may have.

What fits here can be read by every method of a transaction: no method fails on an entry of a wrong size, and no number
is beyond its bound. Records are decoded elsewhere, with the bounds of their types. The checker looks at the shape
first and goes no further where it is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from ebbtide.bounds import (
    MAX_COUNT,
    MAX_NUMBER,
    MAX_RELATION_CHARS,
    MAX_VALUE_BYTES,
    Count,
    DecayRate,
    Focus,
    Id,
    Overrides,
    OwedPasses,
    RelationId,
)
from ebbtide.errors import InvalidRequest
from ebbtide.ids import parse_agent_id
from ebbtide.parameters import AgentParameters
from ebbtide.records import EmbeddingState, PassState
from ebbtide.store import layout
from ebbtide.store.chain import KEY_BYTES
from ebbtide.store.codec import UNDECODABLE
from ebbtide.store.lmdb.transaction import LmdbReading
from ebbtide.store.port import Identity
from ebbtide.store.yielding import Rest, resting

HASH_BYTES: Final = 32
SCAN_BLOCK_BYTES: Final = len(layout.EMPTY_SCAN_BLOCK)

SIZES: Final[dict[bytes, tuple[int, int | None]]] = {
    layout.NODES: (8, None),
    layout.LINKS: (8, layout.LINK_SIZE),
    layout.BACKLINKS: (8, len(layout.backlink_value(0, 0))),
    layout.SCANS: (8, SCAN_BLOCK_BYTES),
    layout.RELATIONS: (4, None),
    layout.RELATION_IDS: (HASH_BYTES, 4),
    layout.MESSAGES: (8, None),
    layout.PASSAGES: (8, None),
    layout.VECTORS: (8, None),
    layout.CHUNKS: (HASH_BYTES, None),
    layout.CHUNK_REFERENCES: (HASH_BYTES, 4),
    layout.BATCHES: (8, None),
    layout.INBOX: (8, 8),
    layout.PARKED: (8, 0),
    layout.DIGESTED: (8, 8),
    layout.RECEIPTS: (HASH_BYTES, None),
    layout.AUDIT: (8, None),
    layout.EVENTS: (8, None),
}
"""The bytes of a key and of a value in each table but META; None where a value is as long as what it says."""

NUMBERS: Final[dict[bytes, Any]] = {
    b"next_node_id": Id,
    b"next_message_number": Id,
    b"next_batch_number": Id,
    b"next_position": Id,
    b"next_digested": Id,
    b"next_relation_id": RelationId,
    b"next_event": Id,
    b"texts_from": Id,
    b"owed_passes": OwedPasses,
    b"finished_passes": Count,
}
"""The entries of META that are a u64, with their bounds."""

RECORDS: Final[dict[bytes, Any]] = {
    b"identity": Identity,
    b"overrides": Overrides,
    b"decay_rate": DecayRate,
    b"focus": Focus,
    b"pass_state": PassState,
    b"embedding": EmbeddingState,
}
"""The entries of META that are encoded."""

LENGTHS: Final[dict[bytes, int]] = {b"audit_head": 8 + HASH_BYTES, b"proof_key": KEY_BYTES}
"""The entries of META that are bytes of a fixed length."""

ASCENDING: Final = {
    name: MAX_NUMBER if kind is Id else MAX_COUNT
    for name, kind in NUMBERS.items()
    # The numbers of events begin elsewhere when an agent takes its place (`succession.py`).
    if kind in (Id, RelationId, Count) and name != b"next_event"
}
"""The numbers of META that only grow, with the highest that each may become."""

Fault = tuple[bytes, str, str]
"""Table, key, and what is wrong."""


def faults(txn: LmdbReading, rest: Rest) -> Iterator[Fault]:
    """Every entry of a wrong size, and every value of META that is outside its bounds."""
    for table, (key_bytes, value_bytes) in SIZES.items():
        for key, value in resting(txn.items(table), rest):
            if len(key) != key_bytes or value_bytes not in (None, len(value)):
                yield table, bytes(key).hex(), "has a wrong size"
            elif len(value) > MAX_VALUE_BYTES:
                yield table, bytes(key).hex(), "is larger than an entry may be"
            elif (problem := _fault(table, key, value)) is not None:
                yield table, bytes(key).hex(), problem
    for key, value in txn.items(layout.META):
        problem = "is larger than an entry may be" if len(value) > MAX_VALUE_BYTES else None
        problem = problem or _meta_fault(bytes(key), bytes(value))
        if problem is not None:
            yield layout.META, bytes(key).decode(errors="replace"), problem


def _fault(table: bytes, key: bytes, value: bytes) -> str | None:
    """What is wrong with the numbers of an entry that has the right size."""
    if table == layout.SCANS:
        if layout.from_u64(key) > MAX_NUMBER // layout.SCANS_PER_BLOCK:
            return "counts nodes beyond every number"
        if np.frombuffer(value, dtype=">u4").max() > MAX_COUNT:
            return "has a counter beyond its bound"
    elif table == layout.RELATIONS:
        return _relation_fault(layout.from_u32(key), bytes(value))
    elif table not in layout.KEYED_BY_TEXT and not 0 < layout.from_u64(key) <= MAX_NUMBER:
        return "has a number beyond its bounds"
    return None


def _relation_fault(relation: int, name: bytes) -> str | None:
    try:
        is_short = len(name.decode()) <= MAX_RELATION_CHARS
    except UnicodeDecodeError:
        return "is no text"
    return None if is_short and 0 < relation <= MAX_COUNT else "has a number or a name beyond its bounds"


def _meta_fault(name: bytes, value: bytes) -> str | None:
    if name in NUMBERS:
        if len(value) != 8:
            return "has a wrong size"
        kind, content = NUMBERS[name], layout.encode(layout.from_u64(value))
    elif name in LENGTHS:
        return None if len(value) == LENGTHS[name] else "has a wrong size"
    elif name in RECORDS:
        kind, content = RECORDS[name], value
    else:
        return None
    try:
        found = layout.decode(content, type=kind)
    except UNDECODABLE as error:
        return f"cannot be decoded: {error}"[:200]
    if name == b"identity":
        return _identity_fault(found)
    return _overrides_fault(found) if name == b"overrides" else None


def _identity_fault(identity: Identity) -> str | None:
    try:
        parse_agent_id(identity.agent_id)
    except InvalidRequest:
        return "is no agent id"
    return None


def _overrides_fault(overrides: dict[str, object]) -> str | None:
    """Each parameter by itself: whether they fit together depends on the defaults of the daemon."""
    for name, value in overrides.items():
        try:
            AgentParameters.model_validate({name: value})
        except ValueError:
            return f"has a value of {name[:40]!r} that no agent may have"
    return None


def is_near_its_end(txn: LmdbReading) -> bool:
    """Whether a number that only grows is beyond the half of what it may become: see `bounds.NextId`."""
    values = {name: txn.get(layout.META, name) for name in ASCENDING}
    return txn.embedding_state().stamp > MAX_COUNT // 2 or any(
        value is not None and layout.from_u64(value) > ASCENDING[name] // 2 for name, value in values.items()
    )
