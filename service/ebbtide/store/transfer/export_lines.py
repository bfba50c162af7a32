"""The lines of an export: one agent as JSON lines, for people and programs; docs/export-format.md explains each field.

The rule guarded here: an export names everything that is ground state, by what it means and not by how it is stored:
an agent made from its export alone is the same agent. `IN_EXPORT` says where each table and each entry of META goes, so
that a new one cannot be forgotten; a test holds it against the layout.

What is derived goes along only where making it anew would cost: `index` lines may be left out.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from ebbtide.bounds import (
    MAX_MESSAGES,
    MAX_PASSAGES,
    MAX_SPANS,
    AgentIdText,
    ByteLength,
    Count,
    DecayRate,
    Dimension,
    Drawn,
    FirstCount,
    Focus,
    Hash,
    Id,
    Ids,
    Importance,
    Keywords,
    MessageCount,
    Name,
    NextId,
    NextRelationId,
    Number,
    Overrides,
    OwedPasses,
    PersonalCounts,
    RelationId,
    RelationName,
    Strategy,
    Strength,
    Text,
    TextLength,
    Time,
    Vectors,
    Version,
)
from ebbtide.ids import NodeId
from ebbtide.records import REWRITES_KEPT, PassageEntry, PassState, Rewrite, Role, StoredState
from ebbtide.store import layout
from ebbtide.store.codec import make_known

FORM: Final = "ebbtide-export"
VERSION: Final = 1
"""Version of the lines; an export with a higher one is refused."""


NO_JSON: Final = msgspec.Raw(b"")


class Line(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="type",
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """What all lines have in common: they say what they are, and leave out what is empty."""


SeedText = Annotated[str, msgspec.Meta(pattern=r"^(0|[1-9][0-9]{0,18})$")]
"""A `Seed` as text: many readers of JSON have only 53 bits. Its bound is checked when it is a number again."""


class HeaderLine(Line, frozen=True, tag="header"):
    """The first line."""

    format: str
    version: Version
    ebbtide_version: Name
    agent_id: AgentIdText
    exported_at: Time


class AgentLine(Line, frozen=True, tag="agent"):
    """The agent as a whole."""

    agent_id: AgentIdText
    created_at: Time
    seed: SeedText
    parameters: Overrides
    decay_rate: DecayRate | None = None
    focus: Focus = ()
    owed_passes: OwedPasses = 0
    finished_passes: FirstCount = 0
    current_pass: PassLine | None = None
    next_node: NextId = 1
    next_message: NextId = 1
    next_batch: NextId = 1
    next_position: NextId = 1
    next_digested: NextId = 1
    next_relation: NextRelationId = 1
    texts_from: NextId = 1
    holds_withdrawn: bool = False
    embedding: EmbeddingLine | None = None


class PassLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A compression pass under way."""

    number: Count
    strategy: Strategy
    start: NodeId
    after: tuple[Count, NodeId] | None = None
    drawn: Drawn = ()

    @classmethod
    def of(cls, state: PassState) -> PassLine:
        """The pass as an export tells of it."""
        return cls(
            number=state.number,
            strategy=state.strategy,
            start=state.start_id,
            after=state.after,
            drawn=state.drawn,
        )

    def state(self) -> PassState:
        """The pass as it is stored."""
        return PassState(self.number, self.strategy, self.start, self.after, self.drawn)


class EmbeddingLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which model the vectors are from."""

    model: Name
    stamp: FirstCount
    up_to: Number
    dimension: Dimension


class RelationLine(Line, frozen=True, tag="relation"):
    """The name of links, with the number that decides their order."""

    id: RelationId
    name: RelationName


class PersonalLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where something personal stands in a message: a slice of it, in bytes of UTF-8."""

    kind: Name
    offset: ByteLength
    length: ByteLength


PersonalLines = Annotated[tuple[PersonalLine, ...], msgspec.Meta(max_length=MAX_SPANS)]


class MessageLine(Line, frozen=True, tag="message"):
    """What was said. Without `content` its text was withdrawn."""

    number: Id
    batch: Number
    index: MessageCount
    role: Role
    accepted_at: Time
    speaker: Name = ""
    id: Name = ""
    timestamp: Time | None = None
    conversation_id: Name = ""
    content: Text | None = None
    metadata: msgspec.Raw = NO_JSON
    of_batch: bool = False
    """Its metadata are its batch's: stored before messages had any of their own."""
    pii: PersonalLines = ()


class BatchLine(Line, frozen=True, tag="batch"):
    """A batch whose status is kept."""

    number: Id
    accepted_at: Time
    first_message: Id
    message_count: MessageCount
    state: StoredState
    conversation_id: Name = ""
    metadata: msgspec.Raw = NO_JSON
    idempotency_key: Name = ""
    body_hash: Hash | None = None
    """Of the request, where there is a receipt."""
    position: Number = 0
    """In the inbox; of a digested one: in the order of digests."""
    attempts: Count = 0
    not_before: Time = 0
    last_error: Text = ""
    digested_at: Time = 0
    nodes: Ids = ()
    erased_count: Count = 0
    pii: PersonalCounts = {}
    dropped_recalled: Count = 0
    collapsed: Count = 0


class SourceLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a memory came from: a slice of a message, in bytes of UTF-8."""

    message: Id
    offset: ByteLength
    length: ByteLength


class RewriteLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One shortening of a memory."""

    pass_number: Count
    importance: Importance
    length_before: TextLength
    length_after: TextLength
    model: Name

    @classmethod
    def of(cls, rewrite: Rewrite) -> RewriteLine:
        """The rewrite as an export tells of it."""
        return cls(
            rewrite.pass_number,
            rewrite.importance,
            rewrite.length_before,
            rewrite.length_after,
            rewrite.model,
        )

    def rewrite(self) -> Rewrite:
        """The rewrite as it is stored."""
        return Rewrite(self.pass_number, self.importance, self.length_before, self.length_after, self.model)


SourceLines = Annotated[tuple[SourceLine, ...], msgspec.Meta(max_length=MAX_MESSAGES)]
RewriteLines = Annotated[tuple[RewriteLine, ...], msgspec.Meta(max_length=REWRITES_KEPT)]


class NodeLine(Line, frozen=True, tag="node"):
    """A living memory, with how often it was scanned."""

    id: NodeId
    content: Text
    created_at: Time
    original_length: TextLength
    phrase: Name = ""
    keywords: Keywords = ()
    kind: Name = "episode"
    prefix: Name = ""
    sources: SourceLines = ()
    first: Text | None = None
    """What it first said, without the prefix, where that is no slice of its single source."""
    batch: Number = 0
    rewrites: RewriteLines = ()
    scans: FirstCount = 0
    last_pass: Count = 0


class LinkLine(Line, frozen=True, tag="link"):
    """A link, with the strength it had when it was written, at that number of scans of its source."""

    source: NodeId
    target: NodeId
    relation: RelationName
    strength: Strength
    anchor: Count


class PassageLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A stretch of a message with the terms it is found by."""

    begin: ByteLength
    length: ByteLength
    word_count: Count
    terms: bytes
    counts: bytes
    told_by: Ids = ()

    @classmethod
    def of(cls, entry: PassageEntry) -> PassageLine:
        """The passage as an export tells of it."""
        return cls(entry.begin, entry.length, entry.word_count, entry.terms, entry.counts, entry.told_by)

    def entry(self) -> PassageEntry:
        """The passage as it is stored."""
        return PassageEntry(self.begin, self.length, self.word_count, self.terms, self.counts, self.told_by)


PassageLines = Annotated[tuple[PassageLine, ...], msgspec.Meta(max_length=MAX_PASSAGES)]


class IndexLine(Line, frozen=True, tag="index"):
    """What is derived from a message: may be left out, and is made anew then."""

    message: Id
    passages: PassageLines | None = None
    stamp: Count = 0
    vectors: Vectors | None = None


class EndLine(Line, frozen=True, tag="end"):
    """The last line: how many there are before it, and their SHA-256, which whoever edits an export leaves out."""

    lines: Number
    sha256: str = ""


AnyLine = (
    HeaderLine
    | AgentLine
    | RelationLine
    | MessageLine
    | BatchLine
    | NodeLine
    | LinkLine
    | IndexLine
    | EndLine
)

IN_EXPORT: Final[dict[bytes, str]] = {
    layout.NODES: "node",
    layout.LINKS: "link",
    layout.BACKLINKS: "of links",
    layout.SCANS: "node.scans, node.last_pass",
    layout.RELATIONS: "relation",
    layout.RELATION_IDS: "of relations",
    layout.MESSAGES: "message",
    layout.PASSAGES: "index.passages",
    layout.VECTORS: "index.vectors",
    layout.CHUNKS: "message.content, message.metadata, node.first",
    layout.CHUNK_REFERENCES: "of messages and nodes",
    layout.BATCHES: "batch",
    layout.INBOX: "batch.state, batch.position",
    layout.PARKED: "batch.state",
    layout.DIGESTED: "batch.state, batch.position",
    layout.RECEIPTS: "batch.body_hash",
    layout.META: "agent",
    b"identity": "agent.agent_id, agent.created_at, agent.seed",
    b"overrides": "agent.parameters",
    b"decay_rate": "agent.decay_rate",
    b"focus": "agent.focus",
    b"owed_passes": "agent.owed_passes",
    b"finished_passes": "agent.finished_passes",
    b"pass_state": "agent.current_pass",
    b"next_node_id": "agent.next_node",
    b"next_message_number": "agent.next_message",
    b"next_batch_number": "agent.next_batch",
    b"next_position": "agent.next_position",
    b"next_digested": "agent.next_digested",
    b"next_relation_id": "agent.next_relation",
    b"texts_from": "agent.texts_from",
    b"withdrawn": "agent.holds_withdrawn",
    b"embedding": "agent.embedding",
}
"""Every table, and every entry of META, and where it stands in an export."""

NOT_IN_EXPORT: Final = frozenset({layout.AUDIT, layout.EVENTS, b"audit_head", b"proof_key", b"next_event"})
"""What was done to an agent, and what happened to it, where it was: it begins anew where the agent goes."""

make_known(AnyLine)


def raw_json(text: str) -> msgspec.Raw:
    """JSON that is kept as text, to stand in a line as it is; left out where it is empty."""
    return msgspec.Raw(text.encode()) if text else NO_JSON


def text_of(raw: msgspec.Raw) -> str:
    """The text of JSON that stands in a line."""
    return bytes(raw).decode()


def encoded(line: Any) -> bytes:
    """A line as bytes, with its end."""
    return msgspec.json.encode(line) + b"\n"
