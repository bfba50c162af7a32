"""Models of the daemon's responses, and the message of `remember`.

Generated from the OpenAPI document by `python -m tests.tidy.generate_client_models`. Do not edit.
Times are milliseconds since 1970-01-01 UTC; ids are opaque. `ebbtide_client.decoding` reads them from JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Literal["user", "assistant", "system"]
    """Who speaks."""

    content: str
    """What was said."""

    timestamp: int | None = None
    """When it was said, ms since the epoch, UTC."""

    id: str | None = None
    """The caller's own id, given back with sources."""

    speaker: str | None = None
    """Who speaks, where the role does not say enough."""

    metadata: Mapping[str, Any] | None = None
    """Flat fields kept with the message, over those of its batch; at most 4 KiB as JSON."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentParameters:
    """How one agent remembers and forgets (memory model, section 7)."""

    focus_limit: int
    """Most nodes in focus at once; what is in focus is protected."""

    focus_policy: Literal["nodes"]
    """What moves into focus: the newest nodes of a batch."""

    decay_rate: float
    """A link's strength is multiplied by this each time its source is scanned."""

    link_initial_strength: float
    """Strength of the links between neighbours within a batch."""

    link_break_threshold: float
    """Below this strength a link is broken."""

    delete_threshold: int
    """A memory that would shrink below this many characters is forgotten."""

    min_shrink: float
    """Content is rewritten only when it loses at least this share of its length."""

    strategy: Literal["scan", "slots"]
    """scan: every due node in every pass; slots: a bounded number of nodes."""

    max_nodes: int
    """Most nodes under `slots`; at least focus_limit + 100 there."""

    compression_batch_size: int
    """Nodes drawn for one pass under `slots`."""

    slot_sample_size: int
    """Nodes drawn to find the least important one when `slots` are full."""

    long_term_factor: float
    """After k scans a node is due again 1 + floor(k x this) passes later; 0 = every pass."""

    default_search_depth: int
    """Hops a recall walks when it names no depth."""

    max_search_results: int
    """Most memories in one answer; 0 means 10000."""

    locale: Literal["auto", "zh", "en"]
    """Language of the wording; auto decides by the text."""

    speaker_prefix: Literal["auto", "always", "never"]
    """When a memory's content names who spoke."""

    digest_system: bool
    """Whether system messages become memories."""

    max_queue_size: int
    """Most batches in the inbox, waiting or parked; beyond it remember is refused."""

    max_owed_passes: int
    """Most compression passes an agent can owe; further ones are merged."""

    segment_max_chars: int
    """Advised longest segment, in characters."""

    retention: str
    """How long what was said is kept once it is digested: keep (for ever), days:N (N days from its acceptance), none. Memories made of it live on."""

    pii: Literal["off", "tag", "redact"]
    """What becomes of personal data in what is remembered from now on: off (nobody looks), tag (stored, and told where it stands), redact (replaced by its kind before anything is stored)."""

    drop_recalled: bool
    """Whether what a recall has just told is left out when it comes back in a message."""

    collapse_repeats: bool
    """Whether a message that repeats an earlier one of its batch exactly is left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditRecordInfo:
    """One record of an audit log."""

    number: int
    """Its place in the chain, from 1."""

    at: int
    """When, ms since the epoch."""

    actor: str
    """Who: the id of a key; - where nobody knows."""

    action: str
    """created, parameters_changed, corrected, deleted, forgotten, passes_owed, renamed, restored."""

    details: Mapping[str, Any]
    """Ids, names and counts; never content."""

    proof_count: int
    """Keyed hashes of erased texts that belong to it."""

    previous_hash: str
    """Hash of the record before it, hexadecimal."""

    record_hash: str
    """SHA-256 of `line`, hexadecimal."""

    line: str
    """The record as it was hashed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchInfo:
    """A batch at this moment."""

    batch_id: str
    state: Literal["waiting", "digesting", "digested", "parked"]
    """waiting, digesting, digested or parked."""

    accepted_at: int
    """ms since the epoch."""

    digested_at: int | None
    """ms since the epoch."""

    not_before: int | None
    """When it is tried again, after a failed round."""

    message_count: int
    conversation_id: str
    attempts: int
    """Failed rounds so far."""

    last_error: str
    """Why the last round failed."""

    node_ids: Sequence[str]
    """The memories it became."""

    pii: Mapping[str, int]
    """Personal data found in it, by kind: tagged or redacted, as the agent's `pii` said."""

    dropped_recalled: int
    """Lines left out: a recall had just told them."""

    collapsed: int
    """Messages left out: they repeated an earlier one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchPage:
    """A page of batches."""

    batches: Sequence[BatchInfo]
    next_page_token: str
    """Empty on the last page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Closed:
    """The agent rests."""

    agent_id: str
    closed: bool
    """Whether it was open."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Compressing:
    """What is owed now."""

    owed_passes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """How much an agent holds."""

    nodes: int
    """Living memories."""

    links: int
    """Links, dangling ones included."""

    messages: int
    """Messages kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeletedNode:
    """What went with a memory, or of a message."""

    node_id: str
    """What is gone, as it was named."""

    links_removed: int
    """Links that started or ended at it."""

    bytes_withdrawn: int
    """Bytes of messages it was made from, or of the message, that are gone from the archive."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbedderInfo:
    """The embedding model in force."""

    kind: str
    """builtin, ollama, openai or off."""

    name: str
    """Name of the model."""

    available: bool
    """Whether it answers."""

    detail: str
    """Why not, if it does not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Erased:
    """An agent is gone for good."""

    agent_id: str
    erased: bool
    record_number: int
    """The record of it in the log of erased agents."""

    record_hash: str
    """The hash of that record, hexadecimal: it vouches for all before it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ErasedAgentRecord:
    """One record of the log of erased agents."""

    number: int
    """Its place in the chain, from 1."""

    at: int
    """When, ms since the epoch."""

    actor: str
    """Who: the id of a key; - where nobody knows."""

    action: str
    """agent_erased; replaced where another one took its place; key_destroyed where its key was."""

    details: Mapping[str, Any]
    """Ids, names and counts; never content."""

    proof_count: int
    """Keyed hashes of erased texts that belong to it."""

    previous_hash: str
    """Hash of the record before it, hexadecimal."""

    record_hash: str
    """SHA-256 of `line`, hexadecimal."""

    line: str
    """The record as it was hashed."""

    agent_id: str
    """Who was erased; empty where the record cannot be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EventInfo:
    """One thing that happened. What its kind does not have is null, or empty."""

    sequence: int
    """Its number: one more than that of the event before."""

    happened_at: int
    """ms since the epoch."""

    kind: Literal[
        "BatchDigested",
        "BatchParked",
        "BatchRetried",
        "NodeCreated",
        "NodeCompressed",
        "NodeForgotten",
        "NodeCorrected",
        "MemoryErased",
        "LinkBroken",
        "FocusChanged",
        "ParametersChanged",
        "PassCompleted",
    ]
    """What happened; see docs/events.md."""

    node_id: str | None
    """The memory, or the source of the link."""

    target_id: str | None
    """The memory that the link points at."""

    batch_id: str | None
    """The batch."""

    message_id: str | None
    """The message."""

    pass_number: int | None
    """The compression pass."""

    length_before: int | None
    """Characters of the memory before."""

    length: int | None
    """Characters of the memory now."""

    node_count: int | None
    """How many memories the batch became."""

    attempts: int | None
    """Failed rounds of the batch."""

    focus: Sequence[str]
    """The memories in focus now, newest first."""

    parameters: Sequence[str]
    """Names of the parameters that were changed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Flushed:
    """Where things stand, also when the time ran out."""

    digested: bool
    """Whether all that was accepted before is digested."""

    passes_done: bool
    """Whether no compression pass is owed."""

    pending_batches: int
    owed_passes: int
    parked_batches: int
    unembedded_messages: int
    """Messages that have no vectors yet; 0 without an embedder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ForgetCounts:
    """How much goes, or went."""

    nodes: int
    """Memories."""

    links: int
    """Links that started or ended at them; 0 in a dry run."""

    messages: int
    """Messages of which nothing is left."""

    batches: int
    """Batches of which nothing is left; 0 in a dry run."""

    bytes: int
    """Bytes of what was said."""

    relations: int
    """Links that stay without their names, since these told of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ForgetProof:
    """What vouches for it: records of the audit log, and keyed hashes of the texts."""

    first_record: int
    """The first record of it; 0 where nothing was there."""

    last_record: int
    """The last record of it."""

    record_hash: str
    """The hash of the last record, hexadecimal."""

    hmacs: Sequence[str]
    """HMAC-SHA256 of each erased text, hexadecimal; the first 1000."""

    hmac_count: int
    """How many there are in all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Forgotten:
    """What is gone, or in a dry run would go."""

    dry_run: bool
    counts: ForgetCounts
    nodes: Sequence[str]
    """The memories; the first 1000."""

    messages: Sequence[str]
    """The messages that go whole; the first 1000."""

    partly: Sequence[str]
    """Messages of which only sentences go; the first 1000."""

    also_found_in: Sequence[str]
    """Memories and messages that tell of it too, and stay; the first 1000."""

    also_found_count: int
    """How many there are in all."""

    proof: ForgetProof
    compacted: bool
    """Whether the files hold no byte of it any more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Health:
    """The process is alive."""

    status: str
    version: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkIn:
    """A link from another memory."""

    source: str
    relation: str
    strength: float
    """Now; 1 while its source is in focus."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkInfo:
    """A live link."""

    source: str
    target: str
    relation: str
    strength: float
    """Now; 1 while its source is in focus."""

    dangling: bool
    """Whether its target is forgotten."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkOut:
    """A link to another memory."""

    target: str
    relation: str
    strength: float
    """Now; 1 while its source is in focus."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkPage:
    """A page of links."""

    links: Sequence[LinkInfo]
    next_page_token: str
    """Empty on the last page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeDeletion:
    """What became of one of many memories that were to be deleted."""

    node_id: str
    """What is gone, as it was named."""

    links_removed: int
    """Links that started or ended at it."""

    bytes_withdrawn: int
    """Bytes of messages it was made from, or of the message, that are gone from the archive."""

    deleted: bool
    """Whether it was there."""

    reason: str
    """Why not: NODE_NOT_FOUND, BATCH_NOT_DIGESTED; empty when it was."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonalData:
    """Something personal in a message, by the policy `tag`: a slice of it, in UTF-8 bytes."""

    kind: str
    """email, phone, national_id, card, iban, ip or secret."""

    offset: int
    """Its first byte in the message's UTF-8."""

    length: int
    """Its bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Readiness:
    """Whether the daemon can do its work."""

    status: Literal["ready", "degraded", "unavailable"]
    """ready, degraded or unavailable."""

    reasons: Sequence[str]
    """Why it is not ready."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Remembered:
    """The batch is on disk."""

    batch_id: str
    """The batch, for its status."""

    pending_batches: int
    """Accepted batches not yet digested."""

    pii: Mapping[str, int]
    """Personal data found in it, by kind: tagged or redacted, as the agent's `pii` says."""

    dropped_recalled: int
    """Lines left out: a recall had just told them."""

    collapsed: int
    """Messages left out: they repeated an earlier one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Restored:
    """An agent came back."""

    agent_id: str
    """Whose memory it is."""

    replaced: bool
    """Whether an agent of this id was there and is gone."""

    counts: Counts
    pending_batches: int
    """Accepted batches not yet digested."""

    parked_batches: int
    """Batches parked after failures."""

    owed_passes: int
    """Compression passes owed, the one under way included."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RewriteInfo:
    """One shortening of a memory."""

    pass_number: int
    importance: float
    length_before: int
    length_after: int
    model: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SchedulerInfo:
    """Whose turn it is to compress."""

    concurrency: int
    """Slices at a time."""

    time_slice_ms: int
    """Longest slice."""

    running: Sequence[str]
    """Agents whose turn it is."""

    waiting: Sequence[str]
    """Agents that wait for a turn, next first; at most 100."""

    waiting_count: int
    """Agents that wait for a turn."""

    slices: int
    """Slices given since the start."""

    failed_slices: int
    """Slices that ended in a fault of ours."""

    open_agents: int
    """Agents that are open."""

    max_open_agents: int
    """Most agents open at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SignalOff:
    """A signal that did not take part."""

    signal: str
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SignalShare:
    """What one signal gave a memory."""

    signal: str
    score: float


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceInfo:
    """Where a memory came from: a slice of a message, in UTF-8 bytes."""

    message_id: str
    """The caller's own id of the message, empty if none was given."""

    batch_id: str
    message_index: int
    """Place of the message in its batch."""

    offset: int
    """First byte of the slice in the message's UTF-8."""

    length: int
    """Bytes of the slice."""

    role: Literal["user", "assistant", "system"]
    speaker: str
    timestamp: int | None
    """When it was said, if the caller told."""

    conversation_id: str
    metadata: Mapping[str, Any]
    """What the message was remembered with, over its batch's."""

    pii: Sequence[PersonalData]
    """What is personal in the slice, where the message was stored under the policy `tag`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskTally:
    """What became of the calls of one task."""

    calls: int
    """Calls made."""

    parsed: int
    """Replies that could be used."""

    bad_replies: int
    """Replies that could not."""

    unavailable: int
    """Calls that found no server."""

    parse_rate: float | None
    """Share of replies that could be used."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TextVerdict:
    """Whether a text was erased."""

    erased: bool
    record: int
    """The record that vouches for it; 0 for none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeSpoken:
    """A time that the query speaks of."""

    words: str
    begin: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentInfo:
    """An agent at this moment."""

    agent_id: str
    """Whose memory it is."""

    created_at: int
    """When it came into being, ms since the epoch."""

    parameters: AgentParameters
    """The parameters in force."""

    counts: Counts
    focus: Sequence[str]
    """Nodes in focus, newest first."""

    pending_batches: int
    """Accepted batches not yet digested."""

    parked_batches: int
    """Batches parked after failures."""

    owed_passes: int
    """Compression passes owed, the one under way included."""

    finished_passes: int
    """Compression passes done since it came into being."""

    unembedded_messages: int
    """Messages that have no vectors yet of the embedding model in force; 0 without one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentListing:
    """An agent as a listing tells of it, without opening it."""

    agent_id: str
    created_at: int
    """ms since the epoch."""

    open: bool
    """Whether it is open now."""

    counts: Counts
    """As of its last close when it is not open."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentPage:
    """A page of agents."""

    agents: Sequence[AgentListing]
    next_page_token: str
    """Empty on the last page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditPage:
    """A page of an audit log."""

    records: Sequence[AuditRecordInfo]
    next_page_token: str
    """Empty on the last page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditVerified:
    """Whether an audit log is whole."""

    intact: bool
    records: int
    """Records that follow each other from the first on."""

    record_hash: str
    """Hash of the last of them, hexadecimal; empty without any."""

    broken_record: int
    """The first record that does not fit; 0 for none."""

    problem: str
    """What is wrong with it."""

    texts: Sequence[TextVerdict]
    """One for each text, in the order asked."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CitedSource:
    """Where a memory came from, with the key of the whole text and the words themselves."""

    message_id: str
    """The caller's own id of the message, empty if none was given."""

    batch_id: str
    message_index: int
    """Place of the message in its batch."""

    offset: int
    """First byte of the slice in the message's UTF-8."""

    length: int
    """Bytes of the slice."""

    role: Literal["user", "assistant", "system"]
    speaker: str
    timestamp: int | None
    """When it was said, if the caller told."""

    conversation_id: str
    metadata: Mapping[str, Any]
    """What the message was remembered with, over its batch's."""

    pii: Sequence[PersonalData]
    """What is personal in the slice, where the message was stored under the policy `tag`."""

    chunk_id: str
    """SHA-256 of the message's text, in hexadecimal; empty where that is gone."""

    quote: str
    """What was said there, word for word; empty where the text is gone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeletedNodes:
    """What became of each memory, in the order asked."""

    results: Sequence[NodeDeletion]
    deleted_count: int
    """How many were there, and are gone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ErasedAgentPage:
    """A page of the log of erased agents."""

    records: Sequence[ErasedAgentRecord]
    next_page_token: str
    """Empty on the last page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExplainedMemory:
    """Why a memory stands where it stands, or was left out."""

    id: str
    score: float
    signals: Sequence[SignalShare]
    dropped: str
    """Why it is not in the answer; empty for those that are."""

    shortened: bool
    """Whether only its key sentences are told."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """How an answer came about."""

    looked_for: str
    """What was left of the query for the words index."""

    phrases: Sequence[str]
    """What was quoted in the query."""

    speakers: Sequence[str]
    """Speakers named in the query."""

    times: Sequence[TimeSpoken]
    signals_off: Sequence[SignalOff]
    archive: str
    """Whether the archive took part: always, never, not needed, or why it was needed: code in the query, few results, no clear top. Empty for an agent that never heard anything."""

    memories: Sequence[ExplainedMemory]


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundMemory:
    """A memory that was found."""

    id: str
    """Its node, or its message where no node of it lives."""

    kind: Literal["episode"]
    content: str
    state: Literal["living", "archived", "pending"]
    """living, archived (shortened or forgotten since) or pending (not digested)."""

    node_ids: Sequence[str]
    """Living nodes made from it."""

    sources: Sequence[CitedSource]
    score: float
    """What the signals give it together; comparable within one answer only."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelInfo:
    """The language model and the embedding model in force."""

    kind: str
    """builtin, ollama or openai."""

    name: str
    """Name of the model."""

    available: bool
    """Whether it answers."""

    detail: str
    """Why not, if it does not."""

    tasks: Mapping[str, TaskTally]
    """segment, process, relate: how calls went."""

    embedder: EmbedderInfo
    """The embedding model, for recall by meaning."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeDetail:
    """A memory with its live links."""

    id: str
    kind: Literal["episode"]
    content: str
    phrase: str
    """Summary of 10-20 characters, or up to 8 words."""

    keywords: Sequence[str]
    created_at: int
    """ms since the epoch."""

    scan_count: int
    """Compression scans so far."""

    original_length: int
    """Characters of the first content."""

    importance: float
    """Support it receives: at 1 it is kept whole, at 0 forgotten."""

    in_focus: bool
    sources: Sequence[SourceInfo]
    rewrites: Sequence[RewriteInfo]
    """The latest shortenings."""

    links_in: Sequence[LinkIn]
    links_out: Sequence[LinkOut]
    dangling: Sequence[LinkOut]
    """Links to what was forgotten."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeInfo:
    """A memory at this moment."""

    id: str
    kind: Literal["episode"]
    content: str
    phrase: str
    """Summary of 10-20 characters, or up to 8 words."""

    keywords: Sequence[str]
    created_at: int
    """ms since the epoch."""

    scan_count: int
    """Compression scans so far."""

    original_length: int
    """Characters of the first content."""

    importance: float
    """Support it receives: at 1 it is kept whole, at 0 forgotten."""

    in_focus: bool
    sources: Sequence[SourceInfo]
    rewrites: Sequence[RewriteInfo]
    """The latest shortenings."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodePage:
    """A page of nodes."""

    nodes: Sequence[NodeInfo]
    next_page_token: str
    """Empty on the last page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecalledMemory:
    """A memory of the answer, in the order of the text."""

    id: str
    """Its node, or its message where no node of it lives."""

    kind: Literal["episode"]
    content: str
    state: Literal["living", "archived", "pending"]
    """living, archived (shortened or forgotten since) or pending (not digested)."""

    node_ids: Sequence[str]
    """Living nodes made from it."""

    sources: Sequence[CitedSource]


@dataclass(frozen=True, kw_only=True, slots=True)
class FocusInfo:
    """What the agent is attending to."""

    nodes: Sequence[NodeInfo]
    """Nodes in focus, newest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What was found, best first."""

    memories: Sequence[FoundMemory]
    pending_batches: int
    """Accepted batches not yet digested."""

    parked_batches: int
    """Batches parked after failures."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recalled:
    """What came back."""

    text: str
    """Memories for a language model to read; empty when there is nothing."""

    pending_batches: int
    """Accepted batches not yet digested."""

    parked_batches: int
    """Batches parked after failures."""

    memories: Sequence[RecalledMemory] = field(default_factory=list)
    """With `citations`: the memories of the text."""

    explanation: Explanation | None = None
    """With `explain`: how the answer came about."""
