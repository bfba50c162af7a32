"""The records that a store contains, and values that listings and recalls exchange. All are frozen, without I/O.

`changes.py` has the value that describes a change of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Final, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ebbtide.bounds import (
    MAX_ATTACHMENTS,
    MAX_MESSAGES,
    MAX_REGIONS,
    MAX_SPANS,
    AgentIdText,
    AttachmentSize,
    Box,
    ByteLength,
    ConceptKeywords,
    Count,
    Dimension,
    Drawn,
    Hash,
    Id,
    Ids,
    Importance,
    IndexPaths,
    Json,
    Keywords,
    Marks,
    MediaType,
    MessageCount,
    Minutes,
    Name,
    Namespace,
    Number,
    PersonalCounts,
    RecordingTime,
    RecordKey,
    RecordText,
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


def local_date(time_ms: int, offset: Callable[[int], int]) -> str:
    """Return the date of a time where local clocks are so far ahead of UTC, in ms, such as 2026-03-12.

    Every date in a text for a person or a model is one, in the agent's time zone.
    """
    return local_minute(time_ms, offset)[:10]


def local_minute(time_ms: int, offset: Callable[[int], int]) -> str:
    """Return a local time to the minute, such as 2026-03-12 09:30."""
    # `strftime` takes five times as long, and may format the year 1 as "1".
    try:
        local = EPOCH + timedelta(milliseconds=time_ms + offset(time_ms))
    except OverflowError:  # the first or last day that a date can name
        local = EPOCH + timedelta(milliseconds=time_ms)
    return local.isoformat(" ")[:16]


class Identity(msgspec.Struct, frozen=True):
    """The agent that a store belongs to, with what never changes about it."""

    agent_id: AgentIdText
    created_at_ms: Time
    seed: Seed
    format_version: Version


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation, as in a request."""

    role: str
    content: str
    timestamp_ms: int | None = None
    id: str = ""
    speaker: str = ""


Role = Literal["user", "assistant", "system", "tool", ""]
"""The role of a speaker; `tool` also for the words of a statement; empty once the message was erased."""


class PersonalSpan(msgspec.Struct, frozen=True, array_like=True):
    """Personal data in a message: its kind, and its range in UTF-8 bytes."""

    kind: Name
    offset: ByteLength
    length: ByteLength


class FadedSpan(msgspec.Struct, frozen=True, array_like=True):
    """A part of a message from which a memory was made that is forgotten since, in UTF-8 bytes."""

    node: Id
    offset: ByteLength
    length: ByteLength


FadedSpans = Annotated[tuple[FadedSpan, ...], msgspec.Meta(max_length=MAX_SPANS)]
PersonalSpans = Annotated[tuple[PersonalSpan, ...], msgspec.Meta(max_length=MAX_SPANS)]


class Region(msgspec.Struct, frozen=True, array_like=True):
    """A part of an attachment: on a page, in a picture, in a recording. Its caption is a range of the text in bytes."""

    page: Count
    """From 1; 0 for none."""
    box: Box
    begin_ms: RecordingTime
    end_ms: RecordingTime
    offset: ByteLength
    length: ByteLength


class Attachment(msgspec.Struct, frozen=True, array_like=True):
    """A file of a message. `sha256` is the key of the chunk with its bytes; its caption is a range of the text."""

    mime: MediaType
    sha256: Hash
    size: AttachmentSize
    offset: ByteLength
    length: ByteLength
    regions: Annotated[tuple[Region, ...], msgspec.Meta(max_length=MAX_REGIONS)] = ()

    @property
    def captions(self) -> tuple[Attachment | Region, ...]:
        """The attachment and its regions, which all have captions."""
        return (self, *self.regions)


Attachments = Annotated[tuple[Attachment, ...], msgspec.Meta(max_length=MAX_ATTACHMENTS)]

AttachmentPlace = tuple[int, int | None]
"""The index of an attachment in its message, and that of a region of it, or None for all of it."""


class MessageRecord(msgspec.Struct, frozen=True, array_like=True):
    """One accepted message. Its text is the chunk under `text_key`, which is empty once the text was withdrawn.

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
    """The personal data in its text, if it was stored under the policy `tag`."""
    faded: FadedSpans = ()
    """The parts from which forgotten memories were made, while its text is stored."""
    attachments: Attachments = ()
    """Its files, while its text is stored. Their captions follow its own words in the text."""
    tools_from: ByteLength | None = None
    """Where the text of tools begins, in UTF-8 bytes: calls at the end, or all of the output. None for no such text,
    also for the words of a statement."""

    def without_tools(self, text: str) -> str:
        """Return the part of its text that does not come from tools."""
        return text if self.tools_from is None else text.encode()[: self.tools_from].decode(errors="ignore")

    @property
    def is_withdrawn(self) -> bool:
        """Whether its text was deleted from the archive."""
        return not self.text_key

    @property
    def own_length(self) -> int | None:
        """The bytes of its own words, which captions follow; None if all of the text is its own."""
        places = [one.offset for attached in self.attachments for one in attached.captions if one.length]
        return max(min(places) - 1, 0) if places else None

    def attachment_at(self, offset: int, length: int) -> AttachmentPlace | None:
        """Return the first attachment whose caption a range of the text overlaps; the region if it is within one."""
        end = offset + length
        for index, attached in enumerate(self.attachments):
            quoted = [
                place
                for place, one in enumerate(attached.captions)
                if one.offset < end and offset < one.offset + one.length
            ]
            if quoted:
                return index, quoted[0] - 1 if len(quoted) == 1 and quoted[0] else None
        return None

    @property
    def time_ms(self) -> int:
        """The time of the message: the caller's timestamp, else the time of acceptance."""
        return self.accepted_at_ms if self.timestamp_ms is None else self.timestamp_ms

    def place_label(self, offset: Callable[[int], int]) -> str:
        """Return local time, conversation and the caller's id, for a reader; without any of them, its batch."""
        time = "" if self.timestamp_ms is None else local_minute(self.timestamp_ms, offset)
        known = ", ".join(part for part in (time, self.conversation_id, self.caller_id) if part)
        return known or f"{batch_text_id(self.batch)}, {self.index + 1}"


class PassageEntry(msgspec.Struct, frozen=True, array_like=True):
    """A range of a message in characters, with its index terms in ascending order, and the count of each.

    `terms` are 32-bit little-endian numbers; `counts` has one byte for each. For a withdrawn text the terms are those
    of the memories in `told_by`, as they are now, and the range is in UTF-8 bytes. `marks` are those of the text
    (`retrieval/marks.py`), -1 if they are unknown.
    """

    begin: ByteLength
    length: ByteLength
    word_count: Count
    terms: bytes
    counts: bytes
    told_by: Ids = ()
    marks: Marks = -1


class EmbeddedMessage(msgspec.Struct, frozen=True, array_like=True):
    """The vectors of a message's passages: 16-bit little-endian floats; empty for a passage without one.

    `stamp` identifies the agent's embedding model. Vectors of two models are never compared.
    """

    stamp: Count
    vectors: Vectors


class EmbeddingState(msgspec.Struct, frozen=True, array_like=True):
    """The embedding model of an agent, its stamp, and the last message up to which all have vectors."""

    model: Name = ""
    stamp: Count = 0
    up_to: Number = 0
    dimension: Dimension = 0
    """Numbers in a vector; 0 while it is unknown."""


class BatchState(StrEnum):
    """The state of a batch."""

    WAITING = "waiting"
    DIGESTING = "digesting"
    DIGESTED = "digested"
    PARKED = "parked"


StoredState = Literal["waiting", "digested", "parked"]
"""The stored states; `digesting` is not stored."""


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """An accepted batch: its status, and its place in the inbox until it is digested."""

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
    """How often a part of it was erased. A digest that started before an erasure is discarded."""
    personal: PersonalCounts = {}
    """Personal data that was tagged or redacted, by kind."""
    dropped_recalled: Count = 0
    """Lines left out because a recall had just returned them."""
    collapsed: Count = 0
    """Messages left out because they repeated an earlier one."""
    extracted_by_rules: bool = False
    """Whether rules extracted its statements because the replies of the model were unusable."""


class Receipt(msgspec.Struct, frozen=True, array_like=True):
    """The use of an idempotency key."""

    batch: Id
    body_hash: Hash


class Source(msgspec.Struct, frozen=True, array_like=True):
    """The source of a memory: a range of a message's text, in UTF-8 bytes."""

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
"""The number of latest rewrites that a node records."""


Sources = Annotated[tuple[Source, ...], msgspec.Meta(max_length=MAX_MESSAGES)]


Rewrites = Annotated[tuple[Rewrite, ...], msgspec.Meta(max_length=REWRITES_KEPT)]


class Pin(StrEnum):
    """Whether a memory is pinned, and by whom."""

    NONE = "none"
    BY_HAND = "by_hand"
    BY_REQUEST = "by_request"


StoredPin = Literal["none", "by_hand", "by_request"]


EPISODE: Final = "episode"
"""The kind of memories that were made from what was said, unless the caller gave them another one."""


class Node(msgspec.Struct, frozen=True, array_like=True):
    """A memory. Its scan counter is stored elsewhere, so a scan does not rewrite the record.

    The first content is the chunk under `first_key`; if that is empty, the range of its single source.
    """

    id: NodeId
    content: Text
    phrase: Name
    keywords: Keywords
    created_at_ms: Time
    original_length: TextLength
    kind: Name = EPISODE
    speaker: Name = ""
    pinned: StoredPin = "none"
    label: Name = ""
    """The name or role of the speaker, as shown before the content."""
    sources: Sources = ()
    first_key: Hash = b""
    batch: Number = 0
    rewrites: Rewrites = ()


class NodeText(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The text and the keywords of a stored node. The rest of the record is not decoded."""

    id: NodeId
    content: Text
    phrase: msgspec.Raw
    keywords: Keywords


class NodeFacts(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The fields of a stored node that a network needs. The rest of the record is not decoded."""

    id: NodeId
    content: Text
    phrase: msgspec.Raw
    keywords: msgspec.Raw
    created_at_ms: Time
    original_length: TextLength
    kind: msgspec.Raw
    speaker: Name
    pinned: StoredPin


class StoredRecord(msgspec.Struct, frozen=True, array_like=True):
    """A JSON object that the caller stores and reads again as it was. It is no memory: it never fades."""

    namespace: Namespace
    key: RecordKey
    value: RecordText
    """A JSON object."""
    version: Id
    """From one sequence of the agent: no two values of records have the same."""
    created_at_ms: Time
    updated_at_ms: Time
    ttl_minutes: Minutes = 0
    expires_at_ms: Time | None = None
    index: IndexPaths | None = None
    """Paths to the texts that a search finds; None for all texts."""

    def is_expired(self, now_ms: int) -> bool:
        """Return whether the record has expired."""
        return self.expires_at_ms is not None and self.expires_at_ms <= now_ms


class Concept(msgspec.Struct, frozen=True, array_like=True):
    """A group of statements and entities that are linked with each other, and the keywords that they share.

    It is computed from them, and deleted with any of them that is deleted. It is no part of the network.
    """

    id: NodeId
    keywords: ConceptKeywords
    """The best keyword first."""
    members: Ids
    """The ids of its statements and entities, in ascending order."""
    created_at_ms: Time

    @property
    def content(self) -> str:
        """The keywords as one text."""
        return ", ".join(self.keywords)


class Entity(msgspec.Struct, frozen=True, array_like=True):
    """A name that memories are linked with. Its scan counter is stored elsewhere.

    When an entity leaves focus, its links to its newest living memories are written as 1.0. The entity records that
    once: at scan count `left_at`, the links to living memories from `left_from` on were written. A link that was
    written later has its own strength.
    """

    id: NodeId
    name: Name
    key: Name
    named_by: Number = 0
    """The memory that first said the name."""
    left_from: Number = 0
    """0 if the entity has not left focus since its links were last written."""
    left_at: Count = 0


class ScanState(msgspec.Struct, frozen=True, array_like=True):
    """The number of scans of a node, and the last pass that scanned it (0 = never)."""

    count: Count = 0
    last_pass: Count = 0
    is_kept: bool = False
    """Whether it is a statement that passes skip. Links that point at it do not decay."""


NEVER_SCANNED = ScanState()


class Link(msgspec.Struct, frozen=True, array_like=True):
    """A directed link, with its strength when it was written, at the scan count `anchor` of its source."""

    source: NodeId
    target: NodeId
    relation: RelationName
    strength: Strength
    anchor: Count


@dataclass(frozen=True, slots=True)
class LinkColumns:
    """Links as arrays, one entry for each link; `relation` is an index into `names`."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    relation: NDArray[np.int64]
    strength: NDArray[np.float64]
    anchor: NDArray[np.int64]
    names: list[str]


@dataclass(frozen=True, slots=True)
class ScanColumns:
    """The scan states of nodes as arrays, one entry for each node."""

    node_id: NDArray[np.int64]
    count: NDArray[np.int64]
    last_pass: NDArray[np.int64]
    is_kept: NDArray[np.bool_]


class Life(NamedTuple):
    """The life of a memory or statement, in numbers."""

    after: int
    """Completed passes when it was made."""
    length: int
    """Characters that it had at first."""
    forgotten_in: int = 0
    """The pass that forgot it; 0 while it lives."""


@dataclass(frozen=True, slots=True)
class LifeColumns:
    """Lives as arrays, one entry for each memory, by id."""

    node_id: NDArray[np.int64]
    after: NDArray[np.int64]
    length: NDArray[np.int64]
    forgotten_in: NDArray[np.int64]


class PassState(msgspec.Struct, frozen=True, array_like=True):
    """The current compression pass, which can continue after any node, also after a restart.

    Nodes from `start_id` on were created after it began and wait for the next pass. `after` is (scan count, id) of the
    last visited node; `drawn` has the nodes that a pass under `slots` still has to visit.
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
    time_range: tuple[int | None, int | None] = (None, None)
    """Only memories created from the first time on, and before the second."""
    explains: bool = False
    """Whether the answer includes the path to each memory."""


class AgentCounts(msgspec.Struct, frozen=True):
    """How much an agent has stored."""

    node_count: int = 0
    link_count: int = 0
    message_count: int = 0
    pending_batches: int = 0
    parked_batches: int = 0
    owed_passes: int = 0
    entity_count: int = 0


class AgentSummary(msgspec.Struct, frozen=True):
    """The entry of an agent in a listing."""

    agent_id: str
    created_at_ms: int
    format_version: int
    open: bool
    counts: AgentCounts
