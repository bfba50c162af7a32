"""The words of this product as frozen values that every package may import.

Each value here is either ground state (it is stored as it stands: MessageRecord, Node, Link, Batch, PassState)
or says how ground state changes (Change). A Change is a plain value: `memory/` computes it, `store/` writes
it in one transaction, and only then is it applied to what is held in memory. Nothing here does I/O.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Literal, NewType

import msgspec
import numpy as np
from numpy.typing import NDArray

from ebbtide.bounds import (
    MAX_MESSAGES,
    MAX_SPANS,
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
    Strategy,
    Strength,
    Text,
    TextLength,
    Time,
    Vectors,
)
from ebbtide.errors import FieldViolation, InvalidRequest, NotFound

AgentId = NewType("AgentId", str)
"""Whose memory it is. Made by `parse_agent_id` only."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

NodeId = Id
"""Given from 1 upward, never reused."""

MAX_AGENT_ID_LENGTH = 128


def parse_agent_id(text: str) -> AgentId:
    """Take `text` as an agent id, or say why it cannot be one.

    1-128 code points of any script, compared byte for byte. Refused: empty, longer, `/`, `\\`, controls,
    surrogates, leading or trailing white space or dot, anything not in NFC (two ids that look the same must
    be the same).
    """
    why = _agent_id_fault(text)
    if why is None:
        return AgentId(text)
    shown = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text[:40])
    message = f"agent_id '{shown}' {why}; allowed: 1-{MAX_AGENT_ID_LENGTH} characters of any script"
    raise InvalidRequest(
        message,
        reason="INVALID_AGENT_ID",
        violations=[FieldViolation("agent_id", why)],
    )


def _agent_id_fault(text: str) -> str | None:
    if not text:
        return "is empty"
    if len(text) > MAX_AGENT_ID_LENGTH:
        return f"has {len(text)} characters"
    if text[0] == "." or text[-1] == ".":
        return "begins or ends with a dot"
    if text[0].isspace() or text[-1].isspace():
        return "begins or ends with white space"
    for character in text:
        if character in "/\\":
            return "holds a slash or backslash"
        # Cc controls, Cs surrogates, Zl/Zp line breaks that a log reader may honour.
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"):
            return f"holds the control character U+{ord(character):04X}"
    if not unicodedata.is_normalized("NFC", text):
        return "is not in Unicode normal form C"
    return None


def node_text_id(node_id: NodeId) -> str:
    """The text form of a node id: `n` + base 10."""
    return f"n{node_id}"


def parse_node_id(text: str) -> NodeId:
    """The node id behind its text form; NODE_NOT_FOUND for anything that never was one."""
    number = _numbered(text, "n")
    if number is None:
        # What is no id may be anything, somebody's address too: it is not repeated.
        raise NotFound("there is no node of this id: ids are such as n1", reason="NODE_NOT_FOUND")
    return number


def batch_text_id(number: int) -> str:
    """The text form of a batch number: `b` + base 10."""
    return f"b{number}"


def parse_batch_id(text: str) -> int:
    """The batch number behind its text form; BATCH_NOT_FOUND for anything that never was one."""
    number = _numbered(text, "b")
    if number is None:
        raise NotFound("there is no batch of this id: ids are such as b1", reason="BATCH_NOT_FOUND")
    return number


def message_text_id(number: int) -> str:
    """The text form of a message number: `m` + base 10."""
    return f"m{number}"


def message_number(text: str) -> int | None:
    """The message number behind its text form; None for anything that never was one."""
    return _numbered(text, "m")


def _numbered(text: str, letter: str) -> int | None:
    digits = text[1:]
    plain = digits.isascii() and digits.isdigit() and len(digits) <= 19 and digits[0] != "0"
    return int(digits) if text[:1] == letter and plain else None


_HAN = re.compile(
    "[\u2e80-\u2e99\u2e9b-\u2ef3\u2f00-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufa6d\ufa70-\ufad9"
    "\U00016fe2-\U00016fe3\U00016ff0-\U00016ff1\U00020000-\U0002a6df\U0002a700-\U0002b739"
    "\U0002b740-\U0002b81d\U0002b820-\U0002cea1\U0002ceb0-\U0002ebe0\U0002ebf0-\U0002ee5d"
    "\U0002f800-\U0002fa1d\U00030000-\U0003134a\U00031350-\U000323af]"
)
"""The Unicode script Han."""


def holds_han(text: str) -> bool:
    """Whether a Han character stands in the text: what decides between Chinese and English wording."""
    return not text.isascii() and _HAN.search(text) is not None


# --- what was said -------------------------------------------------------------------------------------


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
    `metadata_key` is the chunk that holds its metadata as JSON, its own over its batch's: empty for none, None in
    records written before messages had any.
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
    metadata_key: Hash | None = None
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


# --- what is remembered --------------------------------------------------------------------------------


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


class Change(msgspec.Struct):
    """How an agent's memory changes: written in one transaction, then applied to the network in memory.

    Order within a change: nodes are put, forgotten and deleted, then links in `unnamed` go, then links are put, then
    focus, scans and passes. Forgetting a node removes its outgoing links; links that point at it stay. Deleting one
    removes both. The nodes in `scanned` count one scan more, in the pass `scanned_in`.
    """

    nodes: list[Node] = msgspec.field(default_factory=list)
    forgotten: list[NodeId] = msgspec.field(default_factory=list)
    deleted: list[NodeId] = msgspec.field(default_factory=list)
    unnamed: list[Link] = msgspec.field(default_factory=list)
    links: list[Link] = msgspec.field(default_factory=list)
    scanned: NDArray[np.int64] = msgspec.field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    scanned_in: int = 0
    focus: tuple[NodeId, ...] | None = None
    next_node_id: NodeId | None = None
    owed_passes: int | None = None
    finished_passes: int | None = None
    pass_state: PassState | None = None
    pass_ended: bool = False


# --- what is asked and answered ------------------------------------------------------------------------


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
