"""The lines of an export: one agent as JSON lines, for people and programs; docs/export-format.md explains each field.

The rule guarded here: an export names everything that is ground state, by what it means and not by how it is stored:
an agent made from its export alone is the same agent. `IN_EXPORT` says where each table and each entry of META goes, so
that a new one cannot be forgotten; a test holds it against the layout.

What is derived goes along only where making it anew would cost: `index` lines may be left out.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ebbtide.store import layout
from ebbtide.store.codec import make_known
from ebbtide.vocabulary import PassageEntry, PassState, Rewrite

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


class HeaderLine(Line, frozen=True, tag="header"):
    """The first line."""

    format: str
    version: int
    ebbtide_version: str
    agent_id: str
    exported_at: int


class AgentLine(Line, frozen=True, tag="agent"):
    """The agent as a whole."""

    agent_id: str
    created_at: int
    seed: str
    """A number of 63 bits, as a text: many readers of JSON have only 53."""
    parameters: dict[str, object]
    decay_rate: float | None = None
    focus: tuple[int, ...] = ()
    owed_passes: int = 0
    finished_passes: int = 0
    current_pass: PassLine | None = None
    next_node: int = 1
    next_message: int = 1
    next_batch: int = 1
    next_position: int = 1
    next_digested: int = 1
    next_relation: int = 1
    texts_from: int = 1
    holds_withdrawn: bool = False
    embedding: EmbeddingLine | None = None


class PassLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A compression pass under way."""

    number: int
    strategy: str
    start: int
    after: tuple[int, int] | None = None
    drawn: tuple[int, ...] = ()

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

    model: str
    stamp: int
    up_to: int
    dimension: int


class RelationLine(Line, frozen=True, tag="relation"):
    """The name of links, with the number that decides their order."""

    id: int
    name: str


class PersonalLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where something personal stands in a message: a slice of it, in bytes of UTF-8."""

    kind: str
    offset: int
    length: int


class MessageLine(Line, frozen=True, tag="message"):
    """What was said. Without `content` its text was withdrawn."""

    number: int
    batch: int
    index: int
    role: str
    accepted_at: int
    speaker: str = ""
    id: str = ""
    timestamp: int | None = None
    conversation_id: str = ""
    content: str | None = None
    metadata: msgspec.Raw = NO_JSON
    of_batch: bool = False
    """Its metadata are its batch's: stored before messages had any of their own."""
    pii: tuple[PersonalLine, ...] = ()


class BatchLine(Line, frozen=True, tag="batch"):
    """A batch whose status is kept."""

    number: int
    accepted_at: int
    first_message: int
    message_count: int
    state: str
    conversation_id: str = ""
    metadata: msgspec.Raw = NO_JSON
    idempotency_key: str = ""
    body_hash: bytes | None = None
    """Of the request, where there is a receipt."""
    position: int = 0
    """In the inbox; of a digested one: in the order of digests."""
    attempts: int = 0
    not_before: int = 0
    last_error: str = ""
    digested_at: int = 0
    nodes: tuple[int, ...] = ()
    erased_count: int = 0
    pii: dict[str, int] = {}
    dropped_recalled: int = 0
    collapsed: int = 0


class SourceLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a memory came from: a slice of a message, in bytes of UTF-8."""

    message: int
    offset: int
    length: int


class RewriteLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One shortening of a memory."""

    pass_number: int
    importance: float
    length_before: int
    length_after: int
    model: str

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


class NodeLine(Line, frozen=True, tag="node"):
    """A living memory, with how often it was scanned."""

    id: int
    content: str
    created_at: int
    original_length: int
    phrase: str = ""
    keywords: tuple[str, ...] = ()
    kind: str = "episode"
    prefix: str = ""
    sources: tuple[SourceLine, ...] = ()
    first: str | None = None
    """What it first said, without the prefix, where that is no slice of its single source."""
    batch: int = 0
    rewrites: tuple[RewriteLine, ...] = ()
    scans: int = 0
    last_pass: int = 0


class LinkLine(Line, frozen=True, tag="link"):
    """A link, with the strength it had when it was written, at that number of scans of its source."""

    source: int
    target: int
    relation: str
    strength: float
    anchor: int


class PassageLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A stretch of a message with the terms it is found by."""

    begin: int
    length: int
    word_count: int
    terms: bytes
    counts: bytes
    told_by: tuple[int, ...] = ()

    @classmethod
    def of(cls, entry: PassageEntry) -> PassageLine:
        """The passage as an export tells of it."""
        return cls(entry.begin, entry.length, entry.word_count, entry.terms, entry.counts, entry.told_by)

    def entry(self) -> PassageEntry:
        """The passage as it is stored."""
        return PassageEntry(self.begin, self.length, self.word_count, self.terms, self.counts, self.told_by)


class IndexLine(Line, frozen=True, tag="index"):
    """What is derived from a message: may be left out, and is made anew then."""

    message: int
    passages: tuple[PassageLine, ...] | None = None
    stamp: int = 0
    vectors: tuple[bytes, ...] | None = None


class EndLine(Line, frozen=True, tag="end"):
    """The last line: how many there are before it, and their SHA-256, which whoever edits an export leaves out."""

    lines: int
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
