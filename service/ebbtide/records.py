"""What is stored of an agent, and what listings and recalls exchange, as frozen values that every package may import.

Nothing here does I/O. `changes.py` has the value that says how these records change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from ebbtide.bounds import (
    MAX_MESSAGES,
    MAX_SPANS,
    AgentIdText,
    ByteLength,
    Count,
    Dimension,
    Drawn,
    Hash,
    Id,
    Ids,
    Importance,
    Json,
    Keywords,
    MessageCount,
    Name,
    Number,
    PersonalCounts,
    RelationName,
    Seed,
    Strategy,
    Strength,
    Text,
    TextLength,
    Time,
    Vectors,
    Version,
)
from ebbtide.ids import NodeId, batch_text_id

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Identity(msgspec.Struct, frozen=True):
    """The agent that a store belongs to, with what never changes about it."""

    agent_id: AgentIdText
    created_at_ms: Time
    seed: Seed
    format_version: Version


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation as the caller gave it."""

    role: str
    content: str
    timestamp_ms: int | None = None
    id: str = ""
    speaker: str = ""


Role = Literal["user", "assistant", "system", ""]
"""Who speaks; empty once the message was erased."""


class PersonalSpan(msgspec.Struct, frozen=True, array_like=True):
    """Where something personal stands in a message: its kind, and a slice in UTF-8 bytes."""

    kind: Name
    offset: ByteLength
    length: ByteLength


PersonalSpans = Annotated[tuple[PersonalSpan, ...], msgspec.Meta(max_length=MAX_SPANS)]


class MessageRecord(msgspec.Struct, frozen=True, array_like=True):
    """One accepted message. Its text is the chunk under `text_key`; who and when live here.

    `text_key` is empty once the text was withdrawn: taken out of the archive for good.
    `metadata_key` is the key of the chunk with its metadata as JSON; empty for none. Its own metadata override those
    of its batch.
    """

    number: Id
    batch: Number
    index: MessageCount
    role: Role
    speaker: Name
    caller_id: Name
    timestamp_ms: Time | None
    accepted_at_ms: Time
    conversation_id: Name
    text_key: Hash
    metadata_key: Hash = b""
    personal: PersonalSpans = ()
    """What is personal in its text, where that was stored under the policy `tag`."""

    @property
    def is_withdrawn(self) -> bool:
        """Whether its text was taken out of the archive."""
        return not self.text_key

    @property
    def time_ms(self) -> int:
        """When it was said: the caller's time, else when it was accepted."""
        return self.accepted_at_ms if self.timestamp_ms is None else self.timestamp_ms

    @property
    def told_place(self) -> str:
        """When and where it was said, for a reader: time (UTC), conversation, the caller's id; else its batch."""
        moment = None if self.timestamp_ms is None else EPOCH + timedelta(milliseconds=self.timestamp_ms)
        time = "" if moment is None else f"{moment.year:04}-{moment:%m-%d %H:%M}"  # %Y may tell 1 as "1"
        told = ", ".join(part for part in (time, self.conversation_id, self.caller_id) if part)
        return told or f"{batch_text_id(self.batch)}, {self.index + 1}"


class PassageEntry(msgspec.Struct, frozen=True, array_like=True):
    """A stretch of a message, in characters, with the terms it is found by: ascending, and how often each occurs.

    `terms` are 32-bit numbers, least byte first; `counts` has one byte for each of them. Where the text of the
    message is withdrawn the terms are those of the memories in `told_by`, as they are now, and the stretch is told
    in UTF-8 bytes: without its text nobody can count characters.
    """

    begin: ByteLength
    length: ByteLength
    word_count: Count
    terms: bytes
    counts: bytes
    told_by: Ids = ()


class EmbeddedMessage(msgspec.Struct, frozen=True, array_like=True):
    """The vectors of a message's passages: 16-bit floats, least byte first; empty where a model has none to give.

    `stamp` tells under which of the agent's models they were made; vectors of two are never compared.
    """

    stamp: Count
    vectors: Vectors


class EmbeddingState(msgspec.Struct, frozen=True, array_like=True):
    """Which model the vectors of an agent are from, the stamp they bear, and that all up to a message have them."""

    model: Name = ""
    stamp: Count = 0
    up_to: Number = 0
    dimension: Dimension = 0
    """How many numbers a vector has; 0 where that is not known."""


class BatchState(StrEnum):
    """Where a batch stands."""

    WAITING = "waiting"
    DIGESTING = "digesting"
    DIGESTED = "digested"
    PARKED = "parked"


StoredState = Literal["waiting", "digested", "parked"]
"""The state of a batch as it is stored: which one is being digested is not."""


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """An accepted batch: the status record, and, while it is not digested, what the inbox points at."""

    number: Number
    accepted_at_ms: Time
    first_message: Number
    message_count: MessageCount
    conversation_id: Name = ""
    metadata: Json = ""
    idempotency_key: Name = ""
    state: StoredState = "waiting"
    position: Number = 0
    attempts: Count = 0
    not_before_ms: Time = 0
    last_error: Text = ""
    digested_at_ms: Time = 0
    node_ids: Ids = ()
    erased_count: Count = 0
    """How often something of what it says was erased: what was read of it before is worth nothing any more."""
    personal: PersonalCounts = {}
    """What was found at the door, by kind: tagged or redacted."""
    dropped_recalled: Count = 0
    """Lines that were left out because a recall had just told them."""
    collapsed: Count = 0
    """Messages that were left out because they repeated one before them."""


class Receipt(msgspec.Struct, frozen=True, array_like=True):
    """What an idempotency key was used for."""

    batch: Id
    body_hash: Hash


class Source(msgspec.Struct, frozen=True, array_like=True):
    """Where a memory came from: a slice of a message's text, in UTF-8 bytes."""

    message: Id
    offset: ByteLength
    length: ByteLength


class Rewrite(msgspec.Struct, frozen=True, array_like=True):
    """One shortening of a memory."""

    pass_number: Count
    importance: Importance
    length_before: TextLength
    length_after: TextLength
    model: Name


REWRITES_KEPT = 16
"""The latest rewrites of a node that are recorded."""


Sources = Annotated[tuple[Source, ...], msgspec.Meta(max_length=MAX_MESSAGES)]


Rewrites = Annotated[tuple[Rewrite, ...], msgspec.Meta(max_length=REWRITES_KEPT)]


class Node(msgspec.Struct, frozen=True, array_like=True):
    """A memory. Its scan counter is kept apart, so that a scan does not rewrite the record.

    `prefix` is the speaker's label at the start of the first content. The first content is `prefix` plus the
    slice named by the single source when `first_key` is empty, else the chunk under `first_key`.
    """

    id: NodeId
    content: Text
    phrase: Name
    keywords: Keywords
    created_at_ms: Time
    original_length: TextLength
    kind: Name = "episode"
    prefix: Name = ""
    sources: Sources = ()
    first_key: Hash = b""
    batch: Number = 0
    rewrites: Rewrites = ()


class NodeText(msgspec.Struct, frozen=True, array_like=True):
    """The beginning of a stored node, as far as it says something; the rest of the record is not decoded."""

    id: NodeId
    content: Text
    phrase: msgspec.Raw
    keywords: Keywords
    created_at_ms: Time
    original_length: TextLength


class ScanState(msgspec.Struct, frozen=True, array_like=True):
    """How often a node was scanned, and in which pass last (0 = never)."""

    count: Count = 0
    last_pass: Count = 0


NEVER_SCANNED = ScanState()


class Link(msgspec.Struct, frozen=True, array_like=True):
    """A directed link with the strength it had when written, at that scan count of its source."""

    source: NodeId
    target: NodeId
    relation: RelationName
    strength: Strength
    anchor: Count


@dataclass(frozen=True, slots=True)
class LinkColumns:
    """Many links as arrays, one entry a link; `relation` counts in `names`."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    relation: NDArray[np.int64]
    strength: NDArray[np.float64]
    anchor: NDArray[np.int64]
    names: list[str]


@dataclass(frozen=True, slots=True)
class ScanColumns:
    """The scan states of many nodes as arrays, one entry a node."""

    node_id: NDArray[np.int64]
    count: NDArray[np.int64]
    last_pass: NDArray[np.int64]


class PassState(msgspec.Struct, frozen=True, array_like=True):
    """A compression pass under way: enough to go on at any node, also after a restart.

    Nodes from `start_id` on were made after it began and wait for the next. `after` is the (scan count, id)
    of the last node visited, `drawn` the nodes of a pass under `slots` that are still to be visited.
    """

    number: Count
    strategy: Strategy
    start_id: NodeId
    after: tuple[Count, NodeId] | None = None
    drawn: Drawn = ()


class Cue(msgspec.Struct, frozen=True):
    """The input of an associative recall."""

    keywords: Sequence[str] = ()
    relations: Sequence[str] = ()
    depth: int = 2
    max_results: int = 100


class AgentCounts(msgspec.Struct, frozen=True):
    """How much an agent holds."""

    node_count: int = 0
    link_count: int = 0
    message_count: int = 0
    pending_batches: int = 0
    parked_batches: int = 0
    owed_passes: int = 0


class AgentSummary(msgspec.Struct, frozen=True):
    """What a listing tells of an agent without opening it."""

    agent_id: str
    created_at_ms: int
    format_version: int
    open: bool
    counts: AgentCounts
