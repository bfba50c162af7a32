"""Answers of the daemon as frozen dataclasses, under the names and with the fields of its OpenAPI document.

Read leniently in one direction only: fields that a newer daemon adds are left out, fields that are missing or of
another type make the answer unexpected. Times are milliseconds since 1970-01-01 UTC; ids are opaque.
"""

from __future__ import annotations

import types
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, Generic, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Role = Literal["user", "assistant", "system"]
RecallMode = Literal["auto", "associative", "hybrid"]
ArchiveUse = Literal["always", "never", "when_needed"]
BatchState = Literal["waiting", "digesting", "digested", "parked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation, as `remember` takes it."""

    role: Role
    content: str
    timestamp: int | None = None
    """When it was said, ms since the epoch."""
    id: str | None = None
    """Your own id, given back with sources."""
    speaker: str | None = None
    """Who speaks, where the role does not say enough."""
    metadata: dict[str, Any] | None = None
    """Flat fields kept with the message, over those of its batch."""


# --- agents --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AgentParameters:
    """How one agent remembers and forgets."""

    focus_limit: int
    focus_policy: str
    decay_rate: float
    link_initial_strength: float
    link_break_threshold: float
    delete_threshold: int
    min_shrink: float
    strategy: str
    max_nodes: int
    compression_batch_size: int
    slot_sample_size: int
    long_term_factor: float
    default_search_depth: int
    max_search_results: int
    locale: str
    speaker_prefix: str
    digest_system: bool
    max_queue_size: int
    max_owed_passes: int
    segment_max_chars: int
    retention: str
    pii: str
    drop_recalled: bool
    collapse_repeats: bool


@dataclass(frozen=True, slots=True)
class Counts:
    """How much an agent holds."""

    nodes: int
    links: int
    messages: int


@dataclass(frozen=True, slots=True)
class AgentInfo:
    """An agent at this moment."""

    agent_id: str
    created_at: int
    parameters: AgentParameters
    counts: Counts
    focus: tuple[str, ...]
    pending_batches: int
    parked_batches: int
    owed_passes: int
    finished_passes: int
    unembedded_messages: int


@dataclass(frozen=True, slots=True)
class Initialised:
    """An agent that now exists, and whether it came into being by this call."""

    agent: AgentInfo
    is_new: bool


@dataclass(frozen=True, slots=True)
class AgentListing:
    """An agent as a listing tells of it, without opening it."""

    agent_id: str
    created_at: int
    open: bool
    counts: Counts


@dataclass(frozen=True, slots=True)
class Closed:
    """The agent rests; whether it was open."""

    agent_id: str
    closed: bool


@dataclass(frozen=True, slots=True)
class Erased:
    """An agent is gone for good."""

    agent_id: str
    erased: bool
    record_number: int
    record_hash: str


@dataclass(frozen=True, slots=True)
class Restored:
    """An agent came back; whether one of its id was there and is gone."""

    agent_id: str
    replaced: bool
    counts: Counts
    pending_batches: int
    parked_batches: int
    owed_passes: int


# --- remember, recall, batches -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Remembered:
    """The batch is on disk."""

    batch_id: str
    pending_batches: int
    pii: dict[str, int] = field(default_factory=dict)
    """Personal data found in it, by kind: tagged or redacted, as the agent's `pii` says."""
    dropped_recalled: int = 0
    """Lines left out: a recall had just told them."""
    collapsed: int = 0
    """Messages left out: they repeated an earlier one."""


@dataclass(frozen=True, slots=True)
class PersonalData:
    """Something personal in a message, by the policy `tag`: a slice of it, in UTF-8 bytes."""

    kind: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """Where a memory came from: a slice of a message, in UTF-8 bytes."""

    message_id: str
    batch_id: str
    message_index: int
    offset: int
    length: int
    role: str
    speaker: str
    timestamp: int | None
    conversation_id: str
    metadata: dict[str, Any]
    pii: tuple[PersonalData, ...]
    """What is personal in the slice, where the message was stored under the policy `tag`."""


@dataclass(frozen=True, slots=True)
class CitedSource(SourceInfo):
    """Where a recalled memory came from, with the key of the whole text and the words themselves."""

    chunk_id: str
    quote: str
    """What was said there, word for word; empty where the text is gone."""


@dataclass(frozen=True, slots=True)
class RecalledMemory:
    """A memory of an answer, in the order of the text."""

    id: str
    kind: str
    content: str
    state: str
    node_ids: tuple[str, ...]
    sources: tuple[CitedSource, ...]


@dataclass(frozen=True, slots=True)
class SignalShare:
    """What one signal gave a memory."""

    signal: str
    score: float


@dataclass(frozen=True, slots=True)
class SignalOff:
    """A signal that did not take part."""

    signal: str
    why: str


@dataclass(frozen=True, slots=True)
class ExplainedMemory:
    """Why a memory stands where it stands, or was left out."""

    id: str
    score: float
    signals: tuple[SignalShare, ...]
    dropped: str
    shortened: bool


@dataclass(frozen=True, slots=True)
class TimeSpoken:
    """A time that a query speaks of."""

    words: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """How an answer came about."""

    looked_for: str
    phrases: tuple[str, ...]
    speakers: tuple[str, ...]
    times: tuple[TimeSpoken, ...]
    signals_off: tuple[SignalOff, ...]
    archive: str
    memories: tuple[ExplainedMemory, ...]


@dataclass(frozen=True, slots=True)
class Recalled:
    """What came back: text for a language model, empty when there is nothing."""

    text: str
    pending_batches: int
    parked_batches: int
    memories: tuple[RecalledMemory, ...] = ()
    """With `citations`: the memories of the text."""
    explanation: Explanation | None = None
    """With `explain`: how the answer came about."""


@dataclass(frozen=True, slots=True)
class FoundMemory(RecalledMemory):
    """A memory that was found; its score is comparable within one answer only."""

    score: float


@dataclass(frozen=True, slots=True)
class Found:
    """What was found, best first."""

    memories: tuple[FoundMemory, ...]
    pending_batches: int
    parked_batches: int


@dataclass(frozen=True, slots=True)
class BatchInfo:
    """A batch at this moment."""

    batch_id: str
    state: str
    accepted_at: int
    digested_at: int | None
    not_before: int | None
    message_count: int
    conversation_id: str
    attempts: int
    last_error: str
    node_ids: tuple[str, ...]
    pii: dict[str, int] = field(default_factory=dict)
    dropped_recalled: int = 0
    collapsed: int = 0


@dataclass(frozen=True, slots=True)
class EventInfo:
    """One thing that happened. What its kind does not have is None, or empty."""

    sequence: int
    happened_at: int
    kind: str
    node_id: str | None
    target_id: str | None
    batch_id: str | None
    message_id: str | None
    pass_number: int | None
    length_before: int | None
    length: int | None
    node_count: int | None
    attempts: int | None
    focus: tuple[str, ...]
    parameters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flushed:
    """Where things stand, also when the time ran out."""

    digested: bool
    passes_done: bool
    pending_batches: int
    owed_passes: int
    parked_batches: int
    unembedded_messages: int


@dataclass(frozen=True, slots=True)
class Compressing:
    """The passes owed now."""

    owed_passes: int


# --- nodes and links -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RewriteInfo:
    """One shortening of a memory."""

    pass_number: int
    importance: float
    length_before: int
    length_after: int
    model: str


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A memory at this moment."""

    id: str
    kind: str
    content: str
    phrase: str
    keywords: tuple[str, ...]
    created_at: int
    scan_count: int
    original_length: int
    importance: float
    in_focus: bool
    sources: tuple[SourceInfo, ...]
    rewrites: tuple[RewriteInfo, ...]


@dataclass(frozen=True, slots=True)
class LinkOut:
    """A link to another memory, with its strength now."""

    target: str
    relation: str
    strength: float


@dataclass(frozen=True, slots=True)
class LinkIn:
    """A link from another memory, with its strength now."""

    source: str
    relation: str
    strength: float


@dataclass(frozen=True, slots=True)
class NodeDetail(NodeInfo):
    """A memory with its live links; `dangling` are those to what is forgotten."""

    links_in: tuple[LinkIn, ...]
    links_out: tuple[LinkOut, ...]
    dangling: tuple[LinkOut, ...]


@dataclass(frozen=True, slots=True)
class DeletedNode:
    """What went with a memory: links at either end, bytes of the messages it was made from; or of a message."""

    node_id: str
    links_removed: int
    bytes_withdrawn: int


@dataclass(frozen=True, slots=True)
class NodeDeletion(DeletedNode):
    """What became of one of many memories that were to be deleted, and why if it was not there."""

    deleted: bool
    reason: str


@dataclass(frozen=True, slots=True)
class DeletedNodes:
    """What became of each memory, in the order asked."""

    results: tuple[NodeDeletion, ...]
    deleted_count: int


@dataclass(frozen=True, slots=True)
class ForgetCounts:
    """How much goes, or went; links and batches are 0 in a dry run."""

    nodes: int
    links: int
    messages: int
    batches: int
    bytes: int
    relations: int
    """Links that stay without their names, since these told of it."""


@dataclass(frozen=True, slots=True)
class ForgetProof:
    """What vouches for it: records of the audit log, and keyed hashes of the texts, hexadecimal."""

    first_record: int
    last_record: int
    record_hash: str
    hmacs: tuple[str, ...]
    hmac_count: int


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What is gone for good, or in a dry run would go."""

    dry_run: bool
    counts: ForgetCounts
    nodes: tuple[str, ...]
    messages: tuple[str, ...]
    partly: tuple[str, ...]
    also_found_in: tuple[str, ...]
    also_found_count: int
    proof: ForgetProof
    compacted: bool


@dataclass(frozen=True, slots=True)
class AuditRecordInfo:
    """One record of an audit log: who, what, when, how many; `line` is what was hashed."""

    number: int
    at: int
    actor: str
    action: str
    details: dict[str, Any]
    proof_count: int
    previous_hash: str
    record_hash: str
    line: str


@dataclass(frozen=True, slots=True)
class ErasedAgentRecord(AuditRecordInfo):
    """One record of the log of erased agents: whose it is stands last."""

    agent_id: str


@dataclass(frozen=True, slots=True)
class TextVerdict:
    """Whether a text was erased, and the record that vouches for it (0: none)."""

    erased: bool
    record: int


@dataclass(frozen=True, slots=True)
class AuditVerified:
    """Whether an audit log is whole, and the first record that does not fit (0: none)."""

    intact: bool
    records: int
    record_hash: str
    broken_record: int
    problem: str
    texts: tuple[TextVerdict, ...]


@dataclass(frozen=True, slots=True)
class LinkInfo:
    """A live link; whether its target is forgotten."""

    source: str
    target: str
    relation: str
    strength: float
    dangling: bool


@dataclass(frozen=True, slots=True)
class FocusInfo:
    """What is in focus, newest first."""

    nodes: tuple[NodeInfo, ...]


# --- pages ---------------------------------------------------------------------------------------------


class Page(Generic[T_co]):
    """A page of a listing."""

    __slots__ = ()

    @property
    def items(self) -> tuple[T_co, ...]:
        """What stands on the page."""
        return cast("tuple[T_co, ...]", getattr(self, fields(cast(Any, self))[0].name))

    @property
    def next_token(self) -> str:
        """The token of the page that follows; empty on the last one."""
        return cast(str, getattr(self, fields(cast(Any, self))[1].name))


@dataclass(frozen=True, slots=True)
class AgentPage(Page[AgentListing]):
    """A page of agents."""

    agents: tuple[AgentListing, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class BatchPage(Page[BatchInfo]):
    """A page of batches."""

    batches: tuple[BatchInfo, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class NodePage(Page[NodeInfo]):
    """A page of memories."""

    nodes: tuple[NodeInfo, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class LinkPage(Page[LinkInfo]):
    """A page of links."""

    links: tuple[LinkInfo, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class AuditPage(Page[AuditRecordInfo]):
    """A page of an audit log."""

    records: tuple[AuditRecordInfo, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class ErasedAgentPage(Page[ErasedAgentRecord]):
    """A page of the log of erased agents."""

    records: tuple[ErasedAgentRecord, ...]
    next_page_token: str


# --- the daemon ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Health:
    """The process is alive."""

    status: str
    version: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether requests are accepted: ready, degraded or unavailable, and why."""

    status: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TaskTally:
    """What became of the calls of one task."""

    calls: int
    parsed: int
    bad_replies: int
    unavailable: int
    parse_rate: float | None


@dataclass(frozen=True, slots=True)
class EmbedderInfo:
    """The embedding model in force."""

    kind: str
    name: str
    available: bool
    detail: str


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The language model and the embedding model in force."""

    kind: str
    name: str
    available: bool
    detail: str
    tasks: dict[str, TaskTally]
    embedder: EmbedderInfo


@dataclass(frozen=True, slots=True)
class Me:
    """What the caller's key allows."""

    keys_required: bool
    key_id: str
    scopes: tuple[str, ...]
    agents: tuple[str, ...]
    agent_prefixes: tuple[str, ...]
    everywhere: bool
    version: str


@dataclass(frozen=True, slots=True)
class SchedulerInfo:
    """Whose turn it is to compress."""

    concurrency: int
    time_slice_ms: int
    running: tuple[str, ...]
    waiting: tuple[str, ...]
    waiting_count: int
    slices: int
    failed_slices: int
    open_agents: int
    max_open_agents: int


# --- reading -------------------------------------------------------------------------------------------


class Misfit(Exception):
    """A value is not of the form that a model has."""


def read(kind: type[T], value: object) -> T:
    """The model in a JSON value; unknown fields are left out, anything else that does not fit is a Misfit."""
    return cast(T, _read(kind, value, kind.__name__))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _is_required(one: Field[Any]) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def _read(kind: Any, value: Any, path: str) -> Any:
    if kind is Any:
        return value
    if is_dataclass(kind):
        if not isinstance(value, dict):
            raise Misfit(f"{path} is not an object")
        # What has a default here is what the daemon leaves out where it was not asked for.
        absent = [f.name for f in fields(kind) if f.name not in value and _is_required(f)]
        if absent:
            raise Misfit(f"{path}.{absent[0]} is missing")
        hints = _hints(cast(type, kind))
        present = [f.name for f in fields(kind) if f.name in value]
        return cast(Any, kind)(
            **{name: _read(hints[name], value[name], f"{path}.{name}") for name in present}
        )
    origin = get_origin(kind)
    if origin is tuple and isinstance(value, list):
        return tuple(_read(get_args(kind)[0], item, f"{path}[]") for item in value)
    if origin is dict and isinstance(value, dict):
        return {key: _read(get_args(kind)[1], item, f"{path}.{key}") for key, item in value.items()}
    if origin in (Union, types.UnionType):
        others = [option for option in get_args(kind) if option is not type(None)]
        return None if value is None else _read(others[0], value, path)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    # A bool is an int to Python, and nowhere else.
    if isinstance(kind, type) and isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    raise Misfit(f"{path} is of another type")
