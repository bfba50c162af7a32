"""The lines of an export: one agent as JSON lines. docs/export-format.md describes each field.

An export contains all ground state, by meaning rather than by storage: an agent created from its export alone is the
same agent. The layout states for each table and each entry of META where an export has it (`exported`), and a test
checks that every one has a place or is left out on purpose. Derived state is included only where computing it again is
expensive: `index` lines are optional.

Lines have the fields of the stored records, under the same names in Python; `converted` and `copied` convert between
the two.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import field
from msgspec.structs import astuple

from ebbtide.bounds import (
    MAX_ATTACHMENTS,
    MAX_MESSAGES,
    MAX_PASSAGES,
    MAX_REGIONS,
    MAX_SPANS,
    AgentIdText,
    AttachmentBytes,
    ByteLength,
    ConceptKeywords,
    Count,
    DecayRate,
    Dimension,
    Drawn,
    FirstCount,
    Focus,
    Hash,
    Id,
    Ids,
    IndexPaths,
    Keywords,
    MediaType,
    MessageCount,
    Minutes,
    Name,
    Namespace,
    NextId,
    NextRelationId,
    Number,
    Overrides,
    OwedPasses,
    PersonalCounts,
    RecordKey,
    RelationId,
    RelationName,
    Strategy,
    Text,
    TextLength,
    Time,
    UncountedTokens,
    Vectors,
    Version,
)
from ebbtide.ids import NodeId
from ebbtide.records import (
    REWRITES_KEPT,
    FadedSpan,
    Link,
    PassageEntry,
    PersonalSpan,
    Region,
    Rewrite,
    Role,
    Source,
    StoredState,
)
from ebbtide.statements import MAX_RULING_SOURCES, Assertion, ConsolidationState, Ruling
from ebbtide.store.codec import make_known
from ebbtide.store.layout import MetaEntries

FORM: Final = "ebbtide-export"
VERSION: Final = 3
"""Version of the lines; an export with a higher one is refused."""

OLDEST_VERSION: Final = 2
"""The oldest version that is read: it had no statements."""

NO_JSON: Final = msgspec.Raw(b"")

S = TypeVar("S", bound=msgspec.Struct)


class Line(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="type",
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """A line: `type` names its kind, and empty fields are left out."""


SeedText = Annotated[str, msgspec.Meta(pattern=r"^(0|[1-9][0-9]{0,18})$")]
"""A `Seed` as text, since many JSON readers have only 53 bits. Its bound is checked after conversion."""


class HeaderLine(Line, frozen=True, tag="header"):
    """The first line."""

    format: str
    version: Version
    ebbtide_version: Name
    agent_id: AgentIdText
    exported_at: Time


class PassLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The current compression pass."""

    number: Count
    strategy: Strategy
    start_id: NodeId = field(name="start")
    after: tuple[Count, NodeId] | None = None
    drawn: Drawn = ()


class EmbeddingLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The model of the agent's vectors."""

    model: Name
    stamp: FirstCount
    up_to: Number
    dimension: Dimension


class LedgerLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The next entry number, and the messages up to which statements were extracted."""

    next_entry: NextId
    extracted_up_to: Number


class ConsolidationLine(
    ConsolidationState, frozen=True, array_like=False, forbid_unknown_fields=True, omit_defaults=True
):
    """How far the consolidation of statements is."""


class AgentLine(Line, frozen=True, tag="agent"):
    """The agent as a whole."""

    agent_id: AgentIdText
    created_at: Time
    seed: SeedText
    overrides: Overrides = field(name="parameters")
    decay_rate: DecayRate | None = None
    focus: Focus = ()
    entity_focus: Focus = ()
    entity_memories: Count | None = None
    owed_passes: OwedPasses = 0
    uncounted_tokens: UncountedTokens = 0
    finished_passes: FirstCount = 0
    pass_state: PassLine | None = field(default=None, name="current_pass")
    next_node_id: NextId = field(default=1, name="next_node")
    next_message_number: NextId = field(default=1, name="next_message")
    next_batch_number: NextId = field(default=1, name="next_batch")
    next_position: NextId = 1
    next_digested: NextId = 1
    next_relation_id: NextRelationId = field(default=1, name="next_relation")
    next_record_version: NextId = 1
    texts_from: NextId = 1
    withdrawn: bool = field(default=False, name="holds_withdrawn")
    ledger: LedgerLine | None = None
    consolidation: ConsolidationLine | None = None
    embedding: EmbeddingLine | None = None


AGENT_ENTRIES: Final = tuple(name for name in AgentLine.__struct_fields__ if hasattr(MetaEntries, name))
"""The entries of META that the agent line has."""


class RelationLine(Line, frozen=True, tag="relation"):
    """The name of a relation, with the number that determines the order of its links."""

    id: RelationId
    name: RelationName


class PersonalLine(PersonalSpan, frozen=True, array_like=False, forbid_unknown_fields=True):
    """A place of personal data in a message."""


class FadedLine(FadedSpan, frozen=True, array_like=False, forbid_unknown_fields=True):
    """A part of a message from which a forgotten memory was made."""


FadedLines = Annotated[tuple[FadedLine, ...], msgspec.Meta(max_length=MAX_SPANS)]
PersonalLines = Annotated[tuple[PersonalLine, ...], msgspec.Meta(max_length=MAX_SPANS)]


class RegionLine(Region, frozen=True, array_like=False, forbid_unknown_fields=True):
    """A part of an attachment; its caption is a range of the content of the message."""


class AttachmentLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A file of a message; its caption is a range of the content of the message."""

    mime: MediaType
    content: AttachmentBytes = field(name="bytes")
    offset: ByteLength
    length: ByteLength
    regions: Annotated[tuple[RegionLine, ...], msgspec.Meta(max_length=MAX_REGIONS)] = ()


AttachmentLines = Annotated[tuple[AttachmentLine, ...], msgspec.Meta(max_length=MAX_ATTACHMENTS)]


class MessageLine(Line, frozen=True, tag="message"):
    """A message. Without `content` its text was withdrawn."""

    number: Id
    batch: Number
    index: MessageCount
    role: Role
    accepted_at_ms: Time = field(name="accepted_at")
    speaker: Name = ""
    caller_id: Name = field(default="", name="id")
    timestamp_ms: Time | None = field(default=None, name="timestamp")
    conversation_id: Name = ""
    content: Text | None = None
    metadata: msgspec.Raw = NO_JSON
    personal: PersonalLines = field(default=(), name="pii")
    faded: FadedLines = ()
    attachments: AttachmentLines = ()
    tools_from: ByteLength | None = None


class BatchLine(Line, frozen=True, tag="batch"):
    """A batch whose status is stored."""

    number: Id
    accepted_at_ms: Time = field(name="accepted_at")
    first_message: Id
    message_count: MessageCount
    state: StoredState
    conversation_id: Name = ""
    metadata: msgspec.Raw = NO_JSON
    idempotency_key: Name = ""
    body_hash: Hash | None = None
    """The hash of the request, where there is a receipt."""
    position: Number = 0
    """In the inbox; for a digested batch, in the order of digests."""
    attempts: Count = 0
    not_before_ms: Time = field(default=0, name="not_before")
    last_error: Text = ""
    digested_at_ms: Time = field(default=0, name="digested_at")
    node_ids: Ids = field(default=(), name="nodes")
    erased_count: Count = 0
    personal: PersonalCounts = field(default={}, name="pii")
    dropped_recalled: Count = 0
    collapsed: Count = 0
    extracted_by_rules: bool = False


class SourceLine(Source, frozen=True, array_like=False, forbid_unknown_fields=True):
    """The source of a memory: a range of a message, in bytes of UTF-8."""


class RewriteLine(Rewrite, frozen=True, array_like=False, forbid_unknown_fields=True):
    """One shortening of a memory."""


SourceLines = Annotated[tuple[SourceLine, ...], msgspec.Meta(max_length=MAX_MESSAGES)]
RewriteLines = Annotated[tuple[RewriteLine, ...], msgspec.Meta(max_length=REWRITES_KEPT)]


class NodeLine(Line, frozen=True, tag="node"):
    """A living memory, with its scan counters."""

    id: NodeId
    content: Text
    created_at_ms: Time = field(name="created_at")
    original_length: TextLength
    phrase: Name = ""
    keywords: Keywords = ()
    kind: Name = "episode"
    speaker: Name = ""
    label: Name = ""
    sources: SourceLines = ()
    first: Text | None = None
    """Its first content, where that is no range of its single source."""
    batch: Number = 0
    rewrites: RewriteLines = ()
    scans: FirstCount = 0
    last_pass: Count = 0
    kept: bool = False
    """Whether passes skip it, because it is a statement that is true."""
    born_after: FirstCount = 0
    """Completed passes when it was made."""


class ForgottenLine(Line, frozen=True, tag="forgotten"):
    """The life of a forgotten memory, in numbers."""

    id: NodeId
    length: TextLength
    forgotten_in: FirstCount
    born_after: FirstCount = 0


class EntityLine(Line, frozen=True, tag="entity"):
    """An entity, with its scan counters. Its links to memories from `left_from` on were written as 1.0 at `left_at`."""

    id: NodeId
    name: Name
    key: Name
    named_by: Number = 0
    left_from: Number = 0
    left_at: Count = 0
    scans: FirstCount = 0
    last_pass: Count = 0


_PLAIN_TIMES = {
    name: name.removesuffix("_ms") for name in ("told_at_ms", "known_at_ms", "since_ms", "until_ms")
}


class StatementLine(
    Assertion,
    frozen=True,
    array_like=False,
    tag_field="type",
    tag="statement",
    rename=_PLAIN_TIMES,
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """An assertion: once that a message states what a statement says."""

    source: SourceLine


class RulingLine(
    Ruling,
    frozen=True,
    array_like=False,
    tag_field="type",
    tag="ruling",
    rename=_PLAIN_TIMES,
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """A decision about statements or entities."""

    sources: Annotated[tuple[SourceLine, ...], msgspec.Meta(max_length=MAX_RULING_SOURCES)] = ()


class ConceptLine(Line, frozen=True, tag="concept"):
    """A group of statements and entities, and the keywords that they share."""

    id: NodeId
    keywords: ConceptKeywords
    members: Ids
    created_at_ms: Time = field(name="created_at")


class RecordLine(Line, frozen=True, tag="record"):
    """A JSON object that the caller stored by namespace and key."""

    namespace: Namespace
    key: RecordKey
    value: msgspec.Raw
    version: Id
    created_at_ms: Time = field(name="created_at")
    updated_at_ms: Time = field(name="updated_at")
    ttl_minutes: Minutes = 0
    expires_at_ms: Time | None = field(default=None, name="expires_at")
    index: IndexPaths | None = None


class PinLine(Line, frozen=True, tag="pin"):
    """A pinned memory."""

    node: NodeId
    by: Literal["by_hand", "by_request"]


class LinkLine(Link, frozen=True, array_like=False, tag_field="type", tag="link", forbid_unknown_fields=True):
    """A link, with its strength when it was written, at that number of scans of its source."""


class PassageLine(
    PassageEntry, frozen=True, array_like=False, forbid_unknown_fields=True, omit_defaults=True
):
    """A range of a message with its index terms."""


PassageLines = Annotated[tuple[PassageLine, ...], msgspec.Meta(max_length=MAX_PASSAGES)]


class IndexLine(Line, frozen=True, tag="index"):
    """Derived state of a message. Optional: missing entries are computed again."""

    message: Id
    passages: PassageLines | None = None
    stamp: Count = 0
    vectors: Vectors | None = None


class EndLine(Line, frozen=True, tag="end"):
    """The last line: the number of lines before it and their SHA-256, which an edited export leaves out."""

    lines: Number
    sha256: str = ""


AnyLine = (
    HeaderLine
    | AgentLine
    | RelationLine
    | MessageLine
    | BatchLine
    | NodeLine
    | ForgottenLine
    | EntityLine
    | StatementLine
    | RulingLine
    | ConceptLine
    | RecordLine
    | PinLine
    | LinkLine
    | IndexLine
    | EndLine
)

make_known(AnyLine)


def converted(value: msgspec.Struct, kind: type[S]) -> S:
    """Return a value as another type with the same fields."""
    return kind(*astuple(value))


def copied(value: msgspec.Struct, kind: type[S], /, **others: Any) -> S:
    """Return a value as another type: fields that are not among `others` have the same name in both."""
    for name in kind.__struct_fields__:
        if name not in others:
            others[name] = getattr(value, name)
    return kind(**others)


def raw_json(text: str) -> msgspec.Raw:
    """Return stored JSON for a line; empty text leaves the field out."""
    return msgspec.Raw(text.encode()) if text else NO_JSON


def encoded(line: Any) -> bytes:
    """Return a line as bytes with its line end."""
    return msgspec.json.encode(line) + b"\n"
