"""Models of the daemon's responses, and the message of `remember`.

Generated from the OpenAPI document by `python -m tests.tidy.generate_client_models`. Do not edit.
Times are milliseconds since 1970-01-01 UTC; ids are opaque. `ebbtide_client.decoding` reads them from JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias


@dataclass(frozen=True, kw_only=True, slots=True)
class CalledFunction:
    """The name and the arguments of a call."""

    name: str
    """Name of the function."""

    arguments: str | Mapping[str, Any] | None = None
    """The arguments, as JSON."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CalledTool:
    """The name and the input of a call of a custom tool."""

    name: str
    """Name of the tool."""

    input: str | Mapping[str, Any] | None = None
    """The input."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ContentPart:
    """A part of the content of a message."""

    type: str = "text"
    """`text`; other parts are stored as their type, such as `[image]`."""

    text: str | None = None
    """The text of a part of the type `text`."""


BoxItem: TypeAlias = float


@dataclass(frozen=True, kw_only=True, slots=True)
class Region:
    """A part of an attachment: of a page, a picture or a recording, with words for it."""

    page: int | None = None
    """Its page, from 1."""

    box: Sequence[BoxItem] | None = None
    """x, y, width and height as shares of the picture or page, from its top left corner."""

    begin_ms: int | None = None
    """Its begin in a recording, in ms."""

    end_ms: int | None = None
    """Its end in a recording, in ms."""

    caption: str = ""
    """The words that describe it; queries find them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """A call of a tool by the assistant."""

    id: str | None = None
    """Id of the call; stored as metadata."""

    type: Literal["function", "custom"] | None = None
    """Which of the two fields it has; `function` if it is missing."""

    function: CalledFunction | None = None
    """The function that is called."""

    custom: CalledTool | None = None
    """The custom tool that is called."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentParameters:
    """How one agent remembers and forgets (memory model, section 7)."""

    focus_limit: int
    """Most memories in focus, and most entities."""

    focus_policy: Literal["both", "nodes"]
    """both: memories and entities move into focus; nodes: memories only, and no entities are created."""

    decay_rate: float
    """A link's strength is multiplied by this each time its source is scanned."""

    link_initial_strength: float
    """Strength of the links between neighbours within a batch."""

    link_break_threshold: float
    """A link weaker than this is broken."""

    delete_threshold: int
    """A memory that would shrink below this many characters is forgotten."""

    min_shrink: float
    """Content is shortened only if it loses at least this share of its length."""

    entities_per_memory: int
    """Most entities that a memory is linked with: its first keywords that are names."""

    entity_memories: int
    """Newest memories of an entity in focus whose links do not decay."""

    entity_wait_max: int
    """Most passes until an entity is scanned again."""

    strategy: Literal["scan", "slots"]
    """scan: every due node in every pass; slots: a bounded number of nodes."""

    max_nodes: int
    """Most memories under `slots`; at least focus_limit + 100 there. Entities do not count."""

    compression_batch_size: int
    """Nodes drawn for one pass under `slots`."""

    slot_sample_size: int
    """Nodes drawn to find the least important one when all `slots` are used."""

    long_term_factor: float
    """After k scans a node is due again 1 + floor(k x this) passes later; 0 = every pass."""

    default_search_depth: int
    """Hops of a recall that specifies no depth."""

    max_search_results: int
    """Most memories in one answer; 0 means 10000."""

    cue_memories: int
    """Newest memories containing a keyword at which a recall starts."""

    max_pinned: int
    """Most pinned memories, which are neither shortened nor forgotten."""

    pin_on_request: bool
    """Whether a memory in which the user asks to remember it is pinned."""

    remember_questions: bool
    """Whether a segment that is only a question becomes a memory."""

    locale: Literal["auto", "zh", "en"]
    """Language of the wording; auto decides by the text."""

    speaker_prefix: Literal["auto", "always", "never"]
    """When a memory is shown with its speaker."""

    digest_system: bool
    """Whether system messages become memories."""

    digest_tools: bool
    """Whether calls of tools and their output become memories."""

    max_queue_size: int
    """Most batches in the inbox, waiting or parked; beyond it, remember is refused."""

    max_owed_passes: int
    """Most compression passes that an agent can owe; further ones are merged."""

    pass_every_tokens: int
    """One compression pass is owed for every so many tokens of new memories; 0: one for each batch."""

    segment_max_chars: int
    """Recommended longest segment, in characters."""

    retention: str
    """How long texts are kept after their digest: keep (for ever), days:N (N days after acceptance), evidence:N (as days:N, and longer while a true statement cites them), none. Their memories stay."""

    pii: Literal["off", "tag", "redact"]
    """Handling of personal data in new messages: off (no detection), tag (stored, with its positions), redact (replaced by its kind before anything is stored)."""

    drop_recalled: bool
    """Whether text of recent recalls is removed from new messages."""

    collapse_repeats: bool
    """Whether exact repetitions within a batch are dropped."""

    extraction: Literal["off", "rules", "model", "rules+model"]
    """Whether statements are extracted from messages of the user: by rules, by the language model, or by both (docs/knowledge.md)."""

    max_statements: int
    """Most statements that are kept, since they are true in a lasting slot, or pinned."""

    consolidation_interval_h: int
    """Hours between two consolidations of the statements; 0: on request only."""

    merge_policy: Literal["propose", "auto"]
    """propose: names that may mean one thing are only listed; auto: such names of things, never of people, are merged if their meaning is close."""

    privacy_budget: float
    """Highest sum of the epsilons of counts with differential privacy."""

    time_zone: str
    """Time zone of dates in texts, and in which words such as today are read: a name of the IANA database."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentStats:
    """How much an agent has stored."""

    messages: int
    """Stored messages."""

    memories: int
    """Living memories."""

    pinned: int
    """Pinned ones among them."""

    entities: int
    """Entities: names that memories are linked with."""

    links: int | None
    """Links, dangling ones included; null with `epsilon`: one record may have thousands."""

    epsilon: float | None
    """The privacy of these counts; null if they are exact."""

    privacy_budget: float
    """The agent's parameter: the highest sum of epsilons."""

    privacy_spent: float
    """The sum of the epsilons of all releases so far."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditRecordInfo:
    """One record of an audit log."""

    number: int
    """Position in the chain, from 1."""

    at: int
    """Time, ms since the epoch."""

    actor: str
    """Id of the caller's key; - if unknown."""

    action: str
    """created, parameters_changed, corrected, deleted, record_deleted, forgotten, passes_owed, renamed, restored, cleared, stats_released, ruled."""

    details: Mapping[str, Any]
    """Ids, names and counts; never content."""

    proof_count: int
    """Number of keyed hashes of erased texts in this record."""

    previous_hash: str
    """Hash of the previous record, in hexadecimal."""

    record_hash: str
    """SHA-256 of `line`, in hexadecimal."""

    line: str
    """The hashed text of the record."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchInfo:
    """The current state of a batch."""

    batch_id: str
    """Id of the batch."""

    state: Literal["waiting", "digesting", "digested", "parked"]
    """waiting, digesting, digested or parked."""

    accepted_at: int
    """Time of acceptance, ms since the epoch."""

    digested_at: int | None
    """Time of digestion, ms since the epoch."""

    not_before: int | None
    """Earliest time of the next try after a failure, ms since the epoch."""

    message_count: int
    """Number of its messages."""

    conversation_id: str
    """The conversation that the caller gave; empty without one."""

    attempts: int
    """Failed tries so far."""

    last_error: str
    """Why the last try failed."""

    node_ids: Sequence[str]
    """The memories made from it."""

    pii: Mapping[str, int]
    """Personal data found in it, by kind, tagged or redacted by the agent's `pii` policy."""

    dropped_recalled: int
    """Lines left out because a recall had just returned them."""

    collapsed: int
    """Messages left out because they repeat an earlier one."""

    extraction: Literal["none", "waiting", "done", "by_rules"]
    """State of the extraction of its statements: none (extraction is off), waiting, done, or by_rules (done by rules, because the replies of the model were unusable)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchPage:
    """A page of batches."""

    batches: Sequence[BatchInfo]
    """The batches of this page, in the order of their ids."""

    next_page_token: str
    """Empty on the last page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CausalStep:
    """A node of a path, and the link between it and the node before it."""

    id: str
    """Id of the node."""

    relation: str
    """Name of the link, as it was stored in either direction; empty for the start of the path."""

    strength: float
    """Current strength of that link; 1 for the start of the path."""

    inferred: bool
    """Whether consolidation inferred that link."""

    kind: str
    """episode, or the kind of the statement; empty for a forgotten node."""

    state: str
    """State of the statement at this time, such as current or superseded; empty for a living memory; forgotten."""

    since: int | None
    """From when the statement is true, ms since the epoch; null for a memory."""

    content: str
    """The sentence; empty once the node is forgotten."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CausePath:
    """A path from a node to its farthest known cause."""

    steps: Sequence[CausalStep]
    """The node itself, then its cause, the cause of that, …"""

    strength: float
    """The product of the strengths of its links."""

    inferred: bool
    """Whether any of its links was inferred."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Causes:
    """Why something is so."""

    paths: Sequence[CausePath]
    """The strongest paths, at most 16; empty if no cause is known."""

    truncated: bool
    """Whether a bound has left out further paths."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cleared:
    """The data that was removed."""

    agent_id: str
    """The agent's id."""

    messages: int
    """Messages that were removed."""

    memories: int
    """Living memories that were removed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Closed:
    """The agent is closed."""

    agent_id: str
    """The agent's id."""

    closed: bool
    """Whether it was open."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Compressing:
    """The passes owed now."""

    owed_passes: int
    """Compression passes owed, including the running one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsolidationFinding:
    """Something that a step found."""

    node_ids: Sequence[str]
    """Ids of the statements or entities concerned."""

    text: str
    """Description of the finding."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsolidationStep:
    """Outcome of a step."""

    step: str
    """staged, conflicts, causes, concepts, habits or tiers."""

    looked: int
    """Number of items that it looked at."""

    changed: int
    """Number of items that it changed, or would change."""

    findings: Sequence[ConsolidationFinding]
    """Findings of the step; at most 100."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """The size of an agent."""

    nodes: int
    """Living memories."""

    entities: int
    """Entities: names that memories are linked with."""

    links: int
    """Links, dangling ones included."""

    messages: int
    """Stored messages."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeletedNode:
    """The items deleted with a memory, or from a message."""

    node_id: str
    """The id from the request."""

    links_removed: int
    """Number of links from or to it."""

    bytes_withdrawn: int
    """Bytes of source text removed from the archive."""

    cited_by: Sequence[str]
    """Ids of other memories that cite its source text, which stays for them; at most 5. Delete these too to remove the text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbedderInfo:
    """The current embedding model."""

    kind: str
    """multilingual, builtin, ollama, openai or off."""

    name: str
    """Name of the model."""

    available: bool
    """Whether it answers."""

    detail: str
    """Why it does not answer; else empty."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EntityInfo:
    """The current state of an entity: a name that memories are linked with."""

    id: str
    """Id of the node."""

    name: str
    """The name, as it was first said."""

    living_count: int
    """Living memories that a live link joins with it."""

    forgotten_count: int
    """Forgotten memories that it still has a live link to."""

    in_focus: bool
    """Whether it is in focus."""

    scan_count: int
    """Compression scans so far."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EntityLink:
    """An entity that a live link joins with a memory."""

    id: str
    """Id of the entity."""

    name: str
    """Its name, as it was first said."""

    relation: str
    """Name of the relation."""

    strength: float
    """Current strength of the stronger of the two links between the memory and the entity."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EntityPage:
    """A page of entities."""

    entities: Sequence[EntityInfo]
    """The entities of this page, in the order of their ids."""

    next_page_token: str
    """Empty on the last page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Erased:
    """The agent is deleted."""

    agent_id: str
    """The id of the deleted agent."""

    erased: bool
    """True: the agent and its data are deleted."""

    record_number: int
    """Number of the deletion's record in the log of erased agents."""

    record_hash: str
    """Hash of that record in hexadecimal; it covers all records before it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ErasedAgentRecord:
    """One record of the log of erased agents."""

    number: int
    """Position in the chain, from 1."""

    at: int
    """Time, ms since the epoch."""

    actor: str
    """Id of the caller's key; - if unknown."""

    action: str
    """agent_erased; replaced if another agent took its place; key_destroyed if its key was."""

    details: Mapping[str, Any]
    """Ids, names and counts; never content."""

    proof_count: int
    """Number of keyed hashes of erased texts in this record."""

    previous_hash: str
    """Hash of the previous record, in hexadecimal."""

    record_hash: str
    """SHA-256 of `line`, in hexadecimal."""

    line: str
    """The hashed text of the record."""

    agent_id: str
    """The deleted agent; empty if the record is unreadable."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EventInfo:
    """One event. Fields that its kind does not have are null or empty."""

    sequence: int
    """Number of the event, one more than that of the previous one."""

    happened_at: int
    """Time of the event, ms since the epoch."""

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
        "NodePinned",
        "NodeUnpinned",
        "EntityMade",
        "EntityGone",
        "FocusMoved",
        "ParametersChanged",
        "PassCompleted",
        "StatementClosed",
        "ConflictFound",
        "ConflictSettled",
        "FactPromoted",
        "FactDemoted",
        "EntitiesMerged",
        "EntitiesSeparated",
        "Consolidated",
    ]
    """Kind of the event; see docs/events.md. New kinds may be added."""

    node_id: str | None
    """The memory, the statement, the entity, or the source of the link."""

    target_id: str | None
    """The node that the link points at; the other statement or entity of a pair."""

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
    """Number of memories made from the batch."""

    attempts: int | None
    """Failed tries of the batch."""

    focus: Sequence[str]
    """The memories in focus now, newest first."""

    focus_entities: Sequence[str]
    """The entities in focus now, newest first."""

    parameters: Sequence[str]
    """Names of the parameters that were changed."""

    step: str | None
    """The step of the consolidation."""

    looked: int | None
    """Number of items that the step looked at."""

    changed: int | None
    """Number of items that the step changed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Flushed:
    """The state after waiting, also if the timeout expired."""

    digested: bool
    """Whether every batch accepted before the request is digested."""

    passes_done: bool
    """Whether no compression pass is owed."""

    pending_batches: int
    """Accepted batches not yet digested."""

    owed_passes: int
    """Compression passes owed, including the running one."""

    parked_batches: int
    """Batches parked after repeated failures."""

    unembedded_messages: int
    """Messages without vectors; 0 without an embedder."""

    unextracted_messages: int
    """Messages from which statements are not extracted yet; 0 if extraction is off."""

    extraction_paused: str
    """Why extraction pauses: max_statements at the limit of the agent, or a failure in words; empty while it does not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ForecastAssumptions:
    """The coming events that a forecast assumes."""

    memories_per_batch: int
    """Memories of the unrelated batch before each pass."""

    characters: int
    """Characters of each of these memories."""

    owed_passes: int
    """Passes that the agent owes for earlier batches. No batch comes before these."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ForecastForgotten:
    """Columns with one entry for each memory and statement that will be forgotten, in order."""

    id: Sequence[int]
    """Number of the node."""

    after: Sequence[int]
    """The pass that will forget it, counted from now: 1 is the next."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ForecastShortened:
    """Columns with one entry for each shortening, in order."""

    id: Sequence[int]
    """Number of the memory: 17 is n17."""

    after: Sequence[int]
    """The pass that will shorten it, counted from now: 1 is the next."""

    length: Sequence[int]
    """Characters that it will have then."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ForgetCounts:
    """The amount of erased data; in a dry run, of data that would be erased."""

    nodes: int
    """Memories."""

    links: int
    """Links from or to them; 0 in a dry run."""

    messages: int
    """Messages erased as a whole."""

    batches: int
    """Batches erased as a whole; 0 in a dry run."""

    bytes: int
    """Bytes of message text."""

    relations: int
    """Links that remain but lose their name, since the name reveals the topic."""

    records: int
    """Records."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ForgetProof:
    """The proof: records of the audit log, and keyed hashes of the erased texts."""

    first_record: int
    """Number of the first record; 0 if nothing was erased."""

    last_record: int
    """Number of the last record."""

    record_hash: str
    """Hash of the last record, in hexadecimal."""

    hmacs: Sequence[str]
    """HMAC-SHA256 of each erased text, in hexadecimal; the first 1000."""

    hmac_count: int
    """The total number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Health:
    """The process is alive."""

    status: str
    """Always `ok`."""

    version: str
    """The version of the daemon."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryBorn:
    """Columns with one entry for each memory and statement that was made, by id."""

    id: Sequence[int]
    """Number of the node: 17 is n17."""

    after: Sequence[int]
    """Completed passes when it was made."""

    length: Sequence[int]
    """Characters that it had at first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryErased:
    """Columns with one entry for each memory and statement that was deleted, in order."""

    id: Sequence[int]
    """Number of the node."""

    event: Sequence[int]
    """Number of the event of its deletion."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryFocus:
    """Columns with one entry for each change of the focus, in order, and the memories in focus."""

    pass_number: Sequence[int]
    """Completed passes at that time."""

    offset: Sequence[int]
    """Where its memories begin in `id`; they end where those of the next begin."""

    id: Sequence[int]
    """Numbers of the memories in focus, newest first, one change after the other."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryForgotten:
    """Columns with one entry for each memory and statement that a pass forgot, by id."""

    id: Sequence[int]
    """Number of the node."""

    pass_number: Sequence[int]
    """The pass that forgot it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryShortened:
    """Columns with one entry for each shortening, in order."""

    id: Sequence[int]
    """Number of the node."""

    pass_number: Sequence[int]
    """The pass that shortened it."""

    length: Sequence[int]
    """Characters that it had then."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LifeBirth:
    """The birth of a memory."""

    pass_number: int
    """Completed passes at that time."""

    batch_id: str | None
    """The batch that it was made from; null if unknown, or none."""

    at: int | None
    """Time, ms since the epoch; null if unknown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LifeBrokenLink:
    """A link from the memory that became too weak."""

    target: int
    """Number of the node that the link led to."""

    pass_number: int
    """The pass that broke it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LifeChange:
    """One shortening of a memory."""

    pass_number: int
    """The pass that shortened it."""

    importance: float | None
    """Its importance at that time; null if unknown."""

    length_before: int
    """Characters before."""

    length: int
    """Characters after."""

    model: str | None
    """The language model that wrote the new text; null if unknown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LifeCorrection:
    """One correction of a memory by the caller."""

    event: int
    """Number of the event."""

    at: int
    """Time, ms since the epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LifeEnd:
    """The end of a memory."""

    pass_number: int
    """The pass that forgot it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkIn:
    """A link from another node."""

    source: str
    """Id of the node that the link comes from."""

    relation: str
    """Name of the relation."""

    strength: float
    """Current strength; 1 while it is held."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkInfo:
    """A live link."""

    source: str
    """Id of the node that the link comes from."""

    target: str
    """Id of the node that the link leads to."""

    relation: str
    """Name of the relation."""

    strength: float
    """Current strength; 1 while it is held."""

    dangling: bool
    """Whether its target is forgotten."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkOut:
    """A link to another node."""

    target: str
    """Id of the node that the link leads to."""

    relation: str
    """Name of the relation."""

    strength: float
    """Current strength; 1 while it is held."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkPage:
    """A page of links."""

    links: Sequence[LinkInfo]
    """The links of this page."""

    next_page_token: str
    """Empty on the last page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MapLinks:
    """Columns with one entry for each live link, by source."""

    source: Sequence[int]
    """Number of the node that the link comes from."""

    target: Sequence[int]
    """Number of the node that the link leads to. If no page has this node, it is forgotten."""

    relation: Sequence[int]
    """Its relation, as a position in `relations`."""

    strength: Sequence[float]
    """Current strength, rounded to 3 digits; 1 while it is held."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MapNodes:
    """Columns with one entry for each node, by id."""

    id: Sequence[int]
    """Number of the node: 17 is n17."""

    kind: Sequence[int]
    """Its kind, as a position in `kinds`."""

    importance: Sequence[float]
    """Its importance, rounded to 3 digits."""

    length: Sequence[int]
    """Characters that it has now; 0 for an entity."""

    original_length: Sequence[int]
    """Characters that it had at first; 0 for an entity."""

    scans: Sequence[int]
    """Compression scans so far."""

    created_at: Sequence[int]
    """Creation time, ms since the epoch; 0 for an entity."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Me:
    """The rights of the caller's key."""

    keys_required: bool
    """Whether callers must send an API key."""

    key_id: str
    """The id of the key; empty without keys."""

    scopes: Sequence[str]
    """read, write, admin: those that the key has."""

    agents: Sequence[str]
    """Agents that the key is bound to."""

    agent_prefixes: Sequence[str]
    """Prefixes of the ids of agents that the key is bound to."""

    everywhere: bool
    """Whether the key is bound to no agents, so that it reaches all of them."""

    version: str
    """The version of the daemon."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MergeProposal:
    """Two names that may mean one person or thing."""

    first: str
    """A name."""

    first_id: str
    """Id of its entity."""

    second: str
    """The other name."""

    second_id: str
    """Id of its entity."""

    why: str
    """spelling, contains (one name contains the other), or similar."""

    similarity: float
    """Similarity of the names, 0-1; 0 if unknown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeDeletion:
    """The result for one of many memories."""

    node_id: str
    """The id from the request."""

    links_removed: int
    """Number of links from or to it."""

    bytes_withdrawn: int
    """Bytes of source text removed from the archive."""

    cited_by: Sequence[str]
    """Ids of other memories that cite its source text, which stays for them; at most 5. Delete these too to remove the text."""

    deleted: bool
    """Whether it existed and was deleted."""

    reason: str
    """Why it was not deleted: NODE_NOT_FOUND, BATCH_NOT_DIGESTED or INVALID_VALUE (a concept); else empty."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeHistory:
    """The life of a memory or statement."""

    id: int
    """Number of the node: 17 is n17."""

    state: str
    """living, forgotten, or erased: deleted, and nothing else is known of it."""

    born: LifeBirth | None
    """Its birth; null for an erased one."""

    changes: Sequence[LifeChange]
    """Its shortenings, in order."""

    forgotten: LifeEnd | None
    """Its end; null while it lives, and for an erased one."""

    corrections: Sequence[LifeCorrection]
    """Its corrections, in order."""

    links_broken: Sequence[LifeBrokenLink]
    """Its links that became too weak, in order."""

    complete: bool
    """Whether the events since its birth are kept. Otherwise changes may be missing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeImportance:
    """The importance of a node after a change."""

    node_id: str
    """Id of the node."""

    links_changed: int
    """Number of links whose strength was set."""

    importance: float
    """Support from other memories and entities now."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PathStep:
    """A node of a path, and the link that leads to it."""

    id: str
    """Id of the node."""

    name: str
    """Name of the entity; empty for a memory."""

    relation: str
    """Name of the link to it; empty for the start of the path."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonalData:
    """Personal data in a message that was stored under the policy `tag`: a slice in UTF-8 bytes."""

    kind: str
    """email, phone, national_id, card, iban, ip or secret."""

    offset: int
    """Offset of its first byte in the message's UTF-8."""

    length: int
    """Its length in bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedSearch:
    """The plan of the language model for a search."""

    outcome: str
    """off: no plan was requested; used; failed: the search ran without a plan."""

    why: str
    """Why it failed; empty otherwise."""

    kinds: Sequence[str]
    """The kinds that it selects; empty for all."""

    topics: Sequence[str]
    """The topics that it adds to those of the question."""

    since: int | None
    """From when on messages count, ms since the epoch; null for no limit."""

    until: int | None
    """Until when messages count, exclusive; null for no limit."""

    expand: bool
    """Whether it follows links."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Quote:
    """Words that support a statement."""

    text: str
    """The words; empty once they have expired."""

    message_id: str
    """The caller's own id of the message; empty if none was given."""

    batch_id: str
    """Id of the batch of the message."""

    message_index: int
    """Position of the message in its batch."""

    offset: int
    """Offset of the words in the message's UTF-8."""

    length: int
    """Length of the words in bytes."""

    role: str
    """Role of the speaker; tool for the words of a statement itself."""

    said_at: int
    """Time of the message, ms since the epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Readiness:
    """Whether the daemon can do its work."""

    status: Literal["ready", "degraded", "unavailable"]
    """ready, degraded or unavailable."""

    reasons: Sequence[str]
    """Why it is not ready; else empty."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecallStart:
    """A node at which an associative recall started."""

    id: str
    """Id of the node."""

    name: str
    """Name of the entity; empty for a memory."""

    position: int
    """0: a keyword names it; from 1: its position in the focus."""

    keyword: str
    """The keyword that names it; empty for the focus."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecalledRecord:
    """A record of the response, in the order of the text."""

    namespace: Sequence[str]
    """Its place, from the outermost label on."""

    key: str
    """Its name in the namespace."""

    version: int
    """Version of its value."""

    text: str
    """The passage of its texts that matches the query best."""

    score: float
    """How relevant it is among the records, above 0; 1 for the best one."""

    position: int
    """Its position among the memories and records of the response, from 0."""

    created_at: int
    """When the record was first put, ms since the epoch."""

    updated_at: int
    """When it was last put, ms since the epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordInfo:
    """A record."""

    namespace: Sequence[str]
    """Its place, from the outermost label on."""

    key: str
    """Its name in the namespace."""

    value: Mapping[str, Any]
    """The value, as it was put."""

    version: int
    """Version of the value. It grows with every put and is never used again."""

    created_at: int
    """When the record was first put, ms since the epoch."""

    updated_at: int
    """When it was last put, ms since the epoch."""

    expires_at: int | None
    """When it expires, ms since the epoch; null for never."""

    score: float | None
    """search with a query: how relevant it is, above 0; 1 for the best record. Else null."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordName:
    """A record by its place and name."""

    namespace: Sequence[str]
    """Its place, from the outermost label on."""

    key: str
    """Its name in the namespace."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordNamespace:
    """A namespace that has records."""

    labels: Sequence[str]
    """Its labels, from the outermost on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordResult:
    """The result of one operation; fields of other operations are null or empty."""

    version: int | None
    """put: the version of the new value."""

    deleted: int | None
    """delete: how many records were deleted."""

    record: RecordInfo | None
    """get: the record; null if there is none."""

    records: Sequence[RecordInfo]
    """search: the records, in order."""

    namespaces: Sequence[RecordNamespace]
    """namespaces: those that fit, in order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordResults:
    """The result of each operation."""

    results: Sequence[RecordResult]
    """One result for each operation, in the order of the request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RegionInfo:
    """A part of an attachment."""

    page: int | None
    """Its page, from 1; null if none was given."""

    box: Sequence[float]
    """x, y, width and height as shares of the picture or page; empty if none was given."""

    begin_ms: int | None
    """Its begin in a recording, in ms; null if none was given."""

    end_ms: int | None
    """Its end in a recording, in ms; null if none was given."""

    caption: str
    """The words that describe it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Remembered:
    """The batch is stored durably."""

    batch_id: str
    """Id of the batch, for its status."""

    pending_batches: int
    """Accepted batches not yet digested."""

    pii: Mapping[str, int]
    """Personal data found in it, by kind, tagged or redacted by the agent's `pii` policy."""

    dropped_recalled: int
    """Lines left out because a recall had just returned them."""

    collapsed: int
    """Messages left out because they repeat an earlier one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Restored:
    """The restored agent."""

    agent_id: str
    """The agent's id."""

    replaced: bool
    """Whether it replaced an existing agent."""

    counts: Counts
    """Number of living memories, entities, links and stored messages."""

    pending_batches: int
    """Accepted batches not yet digested."""

    parked_batches: int
    """Batches parked after repeated failures."""

    owed_passes: int
    """Compression passes owed, including the running one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RewriteInfo:
    """One rewrite, which shortened a memory."""

    pass_number: int
    """The compression pass that made it."""

    importance: float
    """Importance of the memory at that time."""

    length_before: int
    """Characters before."""

    length_after: int
    """Characters after."""

    model: str
    """The language model that wrote the new text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RulingInfo:
    """A ruling in effect."""

    id: str
    """Id of the ruling."""

    kind: str
    """merge, settle, correct, retract, pin, unpin, vote, distinct (a rejected proposal) or cause (an inferred link)."""

    target: str
    """Id of the statement or entity that it is about."""

    other: str
    """Id of the other statement or entity; empty if there is none."""

    value: float
    """1 or -1 for a vote; the confidence of a cause."""

    author: str
    """The name of the key that stored it, or the rule, such as causes@1."""

    reason: str
    """Why; without a reason, the words that it rests on."""

    known_at: int
    """When it was stored, ms since the epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RulingPage:
    """A page of rulings."""

    rulings: Sequence[RulingInfo]
    """The rulings of this page, in order of arrival."""

    next_page_token: str
    """Empty on the last page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SchedulerInfo:
    """The state of the compression scheduler."""

    concurrency: int
    """Concurrent slices."""

    time_slice_ms: int
    """Longest slice."""

    running: Sequence[str]
    """Agents that compress now."""

    waiting: Sequence[str]
    """Agents that wait for a turn, next first; at most 100."""

    waiting_count: int
    """Agents that wait for a turn."""

    slices: int
    """Slices since the start."""

    failed_slices: int
    """Slices that ended with an internal error."""

    open_agents: int
    """Agents that are open."""

    max_open_agents: int
    """Most agents open at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SignalOff:
    """A signal that was not used."""

    signal: str
    """Name of the signal."""

    why: str
    """Why it was not used."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SignalShare:
    """The contribution of one signal to a memory's score."""

    signal: str
    """Name of the signal."""

    score: float
    """Contribution of the signal to the score of the memory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StatementInfo:
    """A statement at a time."""

    id: str
    """Id of its node."""

    subject: str
    """Name of the entity that it is about."""

    subject_id: str
    """Id of that entity."""

    slot: str
    """The known topic, or the caller's topic."""

    object: str
    """The value."""

    object_id: str
    """Id of the entity that is the value; empty if none is."""

    kind: str
    """fact, event, relation, opinion, preference, task or reflection."""

    negated: bool
    """Whether it denies the value."""

    modality: str
    """asserted, reported or planned."""

    state: str
    """current, contested, planned, superseded, ended, corrected, retracted or forgotten."""

    status: str
    """staged (new), consolidated, or archived (forgotten)."""

    since: int
    """From when it is true, ms since the epoch."""

    until: int | None
    """Until when it is true, exclusive; null if open."""

    time_words: str
    """The words that give the time; empty if none do."""

    told_at: int
    """When it was said last, ms since the epoch."""

    known_at: int
    """When it was stored first, ms since the epoch."""

    superseded_by: str
    """Id of the statement that ended it; empty if none did."""

    conflicts_with: Sequence[str]
    """Ids of the statements that contradict it at this time, oldest first; at most 16."""

    confidence: float
    """Confidence of the evidence, 0-1; further messages raise it."""

    importance: float
    """The importance that was declared for it, 0-1."""

    priority: float
    """Order among statements that contradict each other."""

    weight: float
    """How much it matters now: its importance, how often and when it was said, feeling and votes."""

    pinned: bool
    """Whether it is pinned."""

    author: str
    """user, tool:KEY, rules@N or model:NAME."""

    scope: str
    """private, team or public."""

    tier: str
    """How firmly it is known: short (new), middle or long (said in several conversations)."""

    attributes: Mapping[str, str]
    """Further fields."""

    content: str
    """The sentence; empty once the statement is forgotten."""

    quotes: Sequence[Quote]
    """The words that support it, oldest first; at most 16."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StatementPage:
    """A page of statements."""

    statements: Sequence[StatementInfo]
    """The statements of this page: those that are or were true, then planned ones, each by id."""

    next_page_token: str
    """Empty on the last page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredRuling:
    """A stored ruling."""

    ruling_id: str
    """Id of the ruling, to undo it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskTally:
    """The calls of one task."""

    calls: int
    """Number of calls."""

    parsed: int
    """Usable replies."""

    bad_replies: int
    """Unusable replies."""

    unavailable: int
    """Calls that no server answered."""

    parse_rate: float | None
    """Share of usable replies."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TextVerdict:
    """Whether a text was erased."""

    erased: bool
    """Whether a record proves that the text was erased."""

    record: int
    """Number of the record that proves it; 0 for none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeSpoken:
    """A time named in the query."""

    words: str
    """The words in the query that name it."""

    begin: int
    """Its begin, ms since the epoch."""

    end: int
    """Its end, which does not belong to it; ms since the epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolList:
    """Declarations of tools, to be passed to a language model."""

    tools: Sequence[Mapping[str, Any]]
    """The declarations, in the requested form."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolPrompt:
    """Instructions on the tools."""

    text: str
    """The instructions, with examples, for the system prompt of a model."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolResult:
    """The outcome of a call."""

    result: Mapping[str, Any]
    """The response of the operation of this name."""

    noticed: Sequence[str]
    """Changes that were made to read the arguments."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Attachment:
    """A small file that belongs to a message."""

    mime: str
    """Its media type, without parameters."""

    bytes: str
    """Its content, at most 1 MiB; over REST in base64."""

    sha256: str | None = None
    """SHA-256 of the content in hexadecimal; checked if it is given."""

    caption: str = ""
    """The words that describe it; queries find them."""

    regions: Sequence[Region] | None = None
    """Parts of it that can be found and cited, at most 64."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message of a conversation, also as a client of OpenAI's chat completions holds it."""

    role: Literal["user", "assistant", "system", "developer", "tool", "function"]
    """Role of the speaker. `developer` means `system`; `function` means `tool`."""

    content: str | Sequence[ContentPart] | None = None
    """The text of the message, or its parts. Not required if there are calls of tools. `limits.max_message_chars` sets the limit."""

    timestamp: int | str | None = None
    """When it was said: ms since the epoch, or ISO 8601 with a time zone."""

    id: str | None = None
    """The caller's own id, returned with sources. `limits.max_name_chars` sets the limit."""

    speaker: str | None = None
    """Name of the speaker, where the role does not say enough. `limits.max_name_chars` sets the limit."""

    metadata: Mapping[str, Any] | None = None
    """Flat fields stored with the message, over those of its batch; at most 4 KiB as JSON. `limits.max_metadata_bytes` sets the limit."""

    attachments: Sequence[Attachment] | None = None
    """Small files that belong to the message, at most 16. Queries find them by their captions."""

    name: str | None = None
    """Same as `speaker`, as OpenAI names it. `limits.max_name_chars` sets the limit."""

    tool_calls: Sequence[ToolCall] | None = None
    """Calls of tools, at most 128, stored as `name(arguments)` after the content."""

    tool_call_id: str | None = None
    """Id of the call that a tool answers; stored as metadata."""

    function_call: CalledFunction | None = None
    """A call, as OpenAI had it before `tool_calls`."""

    refusal: str | None = None
    """The refusal of a model, in place of content; stored as text. `limits.max_message_chars` sets the limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentForecast:
    """The shortenings and ends to come, as columns."""

    pass_number: int
    """Completed compression passes since creation."""

    passes: int
    """Passes from now on that the forecast contains: those requested, or those that were computed within 4 seconds."""

    assumes: ForecastAssumptions
    """Assumptions of the forecast."""

    shortened: ForecastShortened
    """Shortenings of memories that live now."""

    forgotten: ForecastForgotten
    """Memories and statements that will be forgotten."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentHistory:
    """The lives of memories and statements, as columns."""

    first_pass: int
    """The number of passes completed before the oldest event that is kept. Shortenings, focus and erasures of earlier passes are missing."""

    passes: int
    """Completed compression passes since creation."""

    complete: bool
    """Whether the events since creation are kept."""

    last_event: int
    """Number of the latest event that the page reflects. Follow the events after that of the first page."""

    born: HistoryBorn
    """Births, without those of deleted memories."""

    shortened: HistoryShortened
    """Shortenings, without those of deleted memories."""

    forgotten: HistoryForgotten
    """Memories and statements that a pass forgot."""

    erased: HistoryErased
    """Deletions of memories that lived."""

    focus: HistoryFocus
    """Changes of the focus."""

    next_page_token: str
    """Empty on the last page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentInfo:
    """The current state of an agent."""

    agent_id: str
    """The agent's id."""

    created_at: int
    """Creation time, ms since the epoch."""

    parameters: AgentParameters
    """The current parameters."""

    counts: Counts
    """Number of living memories, entities, links and stored messages."""

    focus: Sequence[str]
    """Memories in focus, newest first."""

    pending_batches: int
    """Accepted batches not yet digested."""

    parked_batches: int
    """Batches parked after repeated failures."""

    owed_passes: int
    """Compression passes owed, including the running one."""

    finished_passes: int
    """Completed compression passes since creation."""

    unembedded_messages: int
    """Messages without vectors of the current embedding model; 0 without a model."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentListing:
    """An agent in a listing, which does not open it."""

    agent_id: str
    """The agent's id."""

    created_at: int
    """Creation time, ms since the epoch."""

    open: bool
    """Whether the agent is open."""

    counts: Counts
    """If the agent is not open: as of its last close."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentMap:
    """Living nodes and their links, as columns."""

    pass_number: int
    """Completed compression passes since creation."""

    last_event: int
    """Number of the latest event that the page reflects. Follow the events after that of the first page."""

    first_event: int
    """Number of the oldest stored event, or of the next one if none is stored."""

    next_node: int
    """Number of the next new node. Lower ones that no page has are forgotten."""

    focus: Sequence[int]
    """Numbers of the nodes in focus: memories, then entities, newest first."""

    kinds: Sequence[str]
    """Kinds of the nodes: episode or your own for memories, entity, and the kinds of statements."""

    nodes: MapNodes
    """Living memories, statements and entities."""

    relations: Sequence[str]
    """Names of the relations of the links."""

    links: MapLinks
    """The live links from the nodes; empty unless requested."""

    next_page_token: str
    """Empty on the last page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentPage:
    """A page of agents."""

    agents: Sequence[AgentListing]
    """The agents of this page."""

    next_page_token: str
    """Empty on the last page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AttachmentInfo:
    """An attachment without its content."""

    mime: str
    """Its media type."""

    sha256: str
    """SHA-256 of its content, in hexadecimal."""

    size: int
    """Bytes of its content."""

    caption: str
    """The words that describe it."""

    regions: Sequence[RegionInfo]
    """Parts of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditPage:
    """A page of an audit log."""

    records: Sequence[AuditRecordInfo]
    """The records of this page."""

    next_page_token: str
    """Empty on the last page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditVerified:
    """Whether an audit log is intact."""

    intact: bool
    """Whether every record is valid and follows the one before it."""

    records: int
    """Number of consecutive valid records from the first."""

    record_hash: str
    """Hash of the last of them, in hexadecimal; empty without any."""

    broken_record: int
    """Number of the first invalid record; 0 for none."""

    problem: str
    """The fault of that record."""

    texts: Sequence[TextVerdict]
    """One result per text, in the order of the request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CitedAttachment:
    """The attachment whose caption a source quotes."""

    message: str
    """Id of its message."""

    index: int
    """Its position among the attachments of the message, from 0."""

    mime: str
    """Its media type."""

    region: RegionInfo | None
    """The part of it that the caption describes; null for all of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CitedSource:
    """The source of a memory, with the key of the whole text and a quote."""

    message_id: str
    """The caller's own id of the message, empty if none was given."""

    batch_id: str
    """Id of the batch of the message."""

    message_index: int
    """Position of the message in its batch."""

    offset: int
    """Offset of the slice in the message's UTF-8."""

    length: int
    """Length of the slice in bytes."""

    role: Literal["user", "assistant", "system", "tool"]
    """Role of the speaker."""

    speaker: str
    """Name of the speaker; empty if none was given."""

    timestamp: int | None
    """When it was said, if the caller gave a time; ms since the epoch."""

    conversation_id: str
    """The conversation of the message; empty if none was given."""

    metadata: Mapping[str, Any]
    """The message's metadata, over that of its batch."""

    pii: Sequence[PersonalData]
    """Personal data in the slice, if the message was stored under the policy `tag`."""

    attachment: CitedAttachment | None
    """The attachment whose caption the slice quotes; null for the message's own words."""

    chunk_id: str
    """SHA-256 of the message's text, in hexadecimal; empty if the text is deleted."""

    quote: str
    """The text of the slice; empty if it is deleted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConflictInfo:
    """Two statements that contradict each other; the one with the higher priority first."""

    first: StatementInfo
    """The statement with the higher priority."""

    second: StatementInfo
    """The other one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConflictPage:
    """A page of conflicts."""

    conflicts: Sequence[ConflictInfo]
    """The conflicts of this page."""

    next_page_token: str
    """Empty on the last page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Consolidated:
    """The outcome of a consolidation."""

    dry_run: bool
    """Whether nothing was changed."""

    steps: Sequence[ConsolidationStep]
    """The steps, in order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CreatedStatement:
    """A stored statement, and what it changed."""

    id: str
    """Id of its node."""

    subject: str
    """Name of the entity that it is about."""

    subject_id: str
    """Id of that entity."""

    slot: str
    """The known topic, or the caller's topic."""

    object: str
    """The value."""

    object_id: str
    """Id of the entity that is the value; empty if none is."""

    kind: str
    """fact, event, relation, opinion, preference, task or reflection."""

    negated: bool
    """Whether it denies the value."""

    modality: str
    """asserted, reported or planned."""

    state: str
    """current, contested, planned, superseded, ended, corrected, retracted or forgotten."""

    status: str
    """staged (new), consolidated, or archived (forgotten)."""

    since: int
    """From when it is true, ms since the epoch."""

    until: int | None
    """Until when it is true, exclusive; null if open."""

    time_words: str
    """The words that give the time; empty if none do."""

    told_at: int
    """When it was said last, ms since the epoch."""

    known_at: int
    """When it was stored first, ms since the epoch."""

    superseded_by: str
    """Id of the statement that ended it; empty if none did."""

    conflicts_with: Sequence[str]
    """Ids of the statements that contradict it at this time, oldest first; at most 16."""

    confidence: float
    """Confidence of the evidence, 0-1; further messages raise it."""

    importance: float
    """The importance that was declared for it, 0-1."""

    priority: float
    """Order among statements that contradict each other."""

    weight: float
    """How much it matters now: its importance, how often and when it was said, feeling and votes."""

    pinned: bool
    """Whether it is pinned."""

    author: str
    """user, tool:KEY, rules@N or model:NAME."""

    scope: str
    """private, team or public."""

    tier: str
    """How firmly it is known: short (new), middle or long (said in several conversations)."""

    attributes: Mapping[str, str]
    """Further fields."""

    content: str
    """The sentence; empty once the statement is forgotten."""

    quotes: Sequence[Quote]
    """The words that support it, oldest first; at most 16."""

    created: bool
    """False if an earlier statement already said it; its confidence has grown."""

    superseded: Sequence[str]
    """Ids of the statements that it has ended."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeletedNodes:
    """The result for each memory, in the order of the request."""

    results: Sequence[NodeDeletion]
    """One result for each id, in the order of the request."""

    deleted_count: int
    """How many were deleted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ErasedAgentPage:
    """A page of the log of erased agents."""

    records: Sequence[ErasedAgentRecord]
    """The records of this page, oldest first."""

    next_page_token: str
    """Empty on the last page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExplainedMemory:
    """Why a memory has its rank, or was left out."""

    id: str
    """Id of its node, or of its message if no node of it lives."""

    score: float
    """The combined score of the signals; in associative mode the strength of its path."""

    signals: Sequence[SignalShare]
    """The contribution of each signal; in hybrid mode."""

    matched_keywords: Sequence[str]
    """The keywords that it matches; in associative mode."""

    path: Sequence[PathStep]
    """The strongest path to it, from its start; in associative mode."""

    dropped: str
    """Why the response does not contain it; empty if it does."""

    shortened: bool
    """Whether it was shortened to its key sentences."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """How a recall was ranked."""

    starts: Sequence[RecallStart]
    """Where an associative recall started: what the keywords name, then the focus."""

    looked_for: str
    """The words of the query that the word index searches."""

    phrases: Sequence[str]
    """Quoted phrases in the query."""

    speakers: Sequence[str]
    """Speakers named in the query."""

    times: Sequence[TimeSpoken]
    """Times named in the query."""

    signals_off: Sequence[SignalOff]
    """Signals that were not used."""

    archive: str
    """Whether the archive took part: always, never, not needed, or why it was needed: code in the query, few results, no clear top. Empty for an agent without messages."""

    memories: Sequence[ExplainedMemory]
    """The memories of the response, then those left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Forgotten:
    """The erased items; in a dry run, the items that would be erased."""

    dry_run: bool
    """Whether this was a dry run, which erases nothing."""

    counts: ForgetCounts
    """The amount of erased data."""

    nodes: Sequence[str]
    """The memories; the first 1000."""

    messages: Sequence[str]
    """The messages erased as a whole; the first 1000."""

    partly: Sequence[str]
    """The messages of which only sentences are erased; the first 1000."""

    records: Sequence[RecordName]
    """In a dry run the records, whose names may reveal the topic; the first 1000."""

    also_found_in: Sequence[str]
    """Memories and messages that also mention it and remain; the first 1000."""

    also_found_count: int
    """The total number."""

    proof: ForgetProof
    """The records of the audit log that prove the erasure."""

    compacted: bool
    """Whether the files no longer contain any byte of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundMemory:
    """A found memory."""

    id: str
    """Id of its node, or of its message if no node of it lives."""

    kind: str
    """episode: made from what was said; else the kind of a statement, or the caller's own."""

    content: str
    """The text of the memory, without the label of its speaker."""

    state: Literal["living", "archived", "pending"]
    """living, archived (shortened or forgotten since) or pending (not digested)."""

    node_ids: Sequence[str]
    """Living nodes made from it."""

    sources: Sequence[CitedSource]
    """The slices of messages that it was made from."""

    created_at: int
    """When it was said, else when its message was accepted; ms since the epoch."""

    score: float
    """The combined score of the signals; comparable within one response only."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundStatement:
    """A found statement."""

    id: str
    """Id of its node."""

    subject: str
    """Name of the entity that it is about."""

    subject_id: str
    """Id of that entity."""

    slot: str
    """The known topic, or the caller's topic."""

    object: str
    """The value."""

    object_id: str
    """Id of the entity that is the value; empty if none is."""

    kind: str
    """fact, event, relation, opinion, preference, task or reflection."""

    negated: bool
    """Whether it denies the value."""

    modality: str
    """asserted, reported or planned."""

    state: str
    """current, contested, planned, superseded, ended, corrected, retracted or forgotten."""

    status: str
    """staged (new), consolidated, or archived (forgotten)."""

    since: int
    """From when it is true, ms since the epoch."""

    until: int | None
    """Until when it is true, exclusive; null if open."""

    time_words: str
    """The words that give the time; empty if none do."""

    told_at: int
    """When it was said last, ms since the epoch."""

    known_at: int
    """When it was stored first, ms since the epoch."""

    superseded_by: str
    """Id of the statement that ended it; empty if none did."""

    conflicts_with: Sequence[str]
    """Ids of the statements that contradict it at this time, oldest first; at most 16."""

    confidence: float
    """Confidence of the evidence, 0-1; further messages raise it."""

    importance: float
    """The importance that was declared for it, 0-1."""

    priority: float
    """Order among statements that contradict each other."""

    weight: float
    """How much it matters now: its importance, how often and when it was said, feeling and votes."""

    pinned: bool
    """Whether it is pinned."""

    author: str
    """user, tool:KEY, rules@N or model:NAME."""

    scope: str
    """private, team or public."""

    tier: str
    """How firmly it is known: short (new), middle or long (said in several conversations)."""

    attributes: Mapping[str, str]
    """Further fields."""

    content: str
    """The sentence; empty once the statement is forgotten."""

    quotes: Sequence[Quote]
    """The words that support it, oldest first; at most 16."""

    score: float
    """Its score; comparable within one response only."""

    distance: int
    """Links from a statement that was found by its words; 0 for such a one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundStatements:
    """The found statements."""

    statements: Sequence[FoundStatement]
    """The statements, best first."""

    paths: Sequence[CausePath]
    """The paths to causes that the search followed, if the question asks why; at most 5."""

    plan: PlannedSearch
    """The plan of the search, if the daemon has a planner."""

    unembedded_messages: int
    """Messages, those of new statements included, that a query finds only by their words so far, since they have no vectors yet. 0 without a query or an embedding model."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MergePage:
    """A page of proposals."""

    proposals: Sequence[MergeProposal]
    """The proposals of this page, the most similar first."""

    decided: Sequence[RulingInfo]
    """The latest merges and rejected proposals in effect, on the first page."""

    next_page_token: str
    """Empty on the last page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageInfo:
    """A stored message."""

    id: str
    """Id of the message, which `forget` and deletions take."""

    message_id: str
    """The caller's own id of the message, empty if none was given."""

    batch_id: str
    """Id of the batch of the message."""

    message_index: int
    """Position of the message in its batch."""

    role: Literal["user", "assistant", "system", "tool"]
    """Role of the speaker."""

    speaker: str
    """Name of the speaker; empty if none was given."""

    timestamp: int | None
    """When it was said, if the caller gave a time; ms since the epoch."""

    accepted_at: int
    """When it was accepted, ms since the epoch."""

    conversation_id: str
    """The conversation of the message; empty if none was given."""

    metadata: Mapping[str, Any]
    """The message's metadata, over that of its batch."""

    content: str | None
    """The text of the message, with the captions of its attachments; null if it is deleted."""

    pii: Sequence[PersonalData]
    """Personal data in the text, if the message was stored under the policy `tag`."""

    attachments: Sequence[AttachmentInfo]
    """Its attachments, without their content; none once the text is deleted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MessagePage:
    """A page of messages."""

    messages: Sequence[MessageInfo]
    """The messages of this page, in the order of arrival."""

    next_page_token: str
    """Empty on the last page. A page may have few messages, or none, before the last."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelInfo:
    """The current language model and embedding model."""

    kind: str
    """builtin, ollama or openai."""

    name: str
    """Name of the model."""

    available: bool
    """Whether it answers."""

    detail: str
    """Why it does not answer; else empty."""

    tasks: Mapping[str, TaskTally]
    """The calls of each task: segment, process, relate, extract, plan."""

    embedder: EmbedderInfo
    """The embedding model, for recall by meaning."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProfileSlot:
    """A topic, with what is true of it."""

    slot: str
    """The topic."""

    cardinality: str
    """How many values it has at a time: one, few or many."""

    lasting: bool
    """Whether statements on it are never forgotten while they are true."""

    statements: Sequence[StatementInfo]
    """The true statements, the best first; then open plans."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecalledMemory:
    """A memory of the response, in the order of the text."""

    id: str
    """Id of its node, or of its message if no node of it lives."""

    kind: str
    """episode: made from what was said; else the kind of a statement, or the caller's own."""

    content: str
    """The text of the memory, without the label of its speaker."""

    state: Literal["living", "archived", "pending"]
    """living, archived (shortened or forgotten since) or pending (not digested)."""

    node_ids: Sequence[str]
    """Living nodes made from it."""

    sources: Sequence[CitedSource]
    """The slices of messages that it was made from."""

    created_at: int
    """When it was said, else when its message was accepted; ms since the epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceInfo:
    """The source of a memory: a slice of a message, in UTF-8 bytes."""

    message_id: str
    """The caller's own id of the message, empty if none was given."""

    batch_id: str
    """Id of the batch of the message."""

    message_index: int
    """Position of the message in its batch."""

    offset: int
    """Offset of the slice in the message's UTF-8."""

    length: int
    """Length of the slice in bytes."""

    role: Literal["user", "assistant", "system", "tool"]
    """Role of the speaker."""

    speaker: str
    """Name of the speaker; empty if none was given."""

    timestamp: int | None
    """When it was said, if the caller gave a time; ms since the epoch."""

    conversation_id: str
    """The conversation of the message; empty if none was given."""

    metadata: Mapping[str, Any]
    """The message's metadata, over that of its batch."""

    pii: Sequence[PersonalData]
    """Personal data in the slice, if the message was stored under the policy `tag`."""

    attachment: CitedAttachment | None
    """The attachment whose caption the slice quotes; null for the message's own words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StatementHistory:
    """All versions of the topic of a statement."""

    statements: Sequence[StatementInfo]
    """The versions, by the time from which they are true."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The found memories, best first."""

    memories: Sequence[FoundMemory]
    """The memories, best first."""

    pending_batches: int
    """Accepted batches not yet digested."""

    parked_batches: int
    """Batches parked after repeated failures."""

    unembedded_messages: int
    """Messages, those of new statements included, that a query finds only by their words so far, since they have no vectors yet. 0 without a query or an embedding model."""

    records: Sequence[RecalledRecord] = field(default_factory=list)
    """With the kind record: the records of the response. Memories have the other positions, in order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeDetail:
    """A memory with its first content and its live links."""

    id: str
    """Id of the node."""

    kind: str
    """episode: made from what was said; entity: a name, which has no content; concept: keywords that a group of statements and entities share; else a statement's kind, or the caller's own."""

    label: str
    """The speaker, as shown before the content; not part of the content."""

    content: str
    """The current text of the memory; empty for an entity."""

    phrase: str
    """Summary of 10-20 characters, or up to 8 words; the name of an entity."""

    keywords: Sequence[str]
    """Words by which an associative recall finds it."""

    created_at: int | None
    """Creation time, ms since the epoch; null for an entity."""

    scan_count: int
    """Compression scans so far."""

    original_length: int
    """Length of the original content, in characters."""

    importance: float
    """Support from other memories: at 1 it keeps its length, at 0 it is forgotten."""

    in_focus: bool
    """Whether it is in focus."""

    pinned: Literal["none", "by_hand", "by_request"]
    """Whether the memory is pinned: none, by_hand, or by_request (the user asked to remember it)."""

    entities: Sequence[EntityLink]
    """The entities that it is linked with, strongest first."""

    sources: Sequence[SourceInfo]
    """The slices of messages that it was made from."""

    rewrites: Sequence[RewriteInfo]
    """The latest rewrites."""

    first_content: str | None
    """The content when the memory was made; null if it was deleted or is not retained."""

    links_in: Sequence[LinkIn]
    """Links from other nodes."""

    links_out: Sequence[LinkOut]
    """Links to living nodes."""

    dangling: Sequence[LinkOut]
    """Links to forgotten memories."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeInfo:
    """The current state of a memory, or of an entity."""

    id: str
    """Id of the node."""

    kind: str
    """episode: made from what was said; entity: a name, which has no content; concept: keywords that a group of statements and entities share; else a statement's kind, or the caller's own."""

    label: str
    """The speaker, as shown before the content; not part of the content."""

    content: str
    """The current text of the memory; empty for an entity."""

    phrase: str
    """Summary of 10-20 characters, or up to 8 words; the name of an entity."""

    keywords: Sequence[str]
    """Words by which an associative recall finds it."""

    created_at: int | None
    """Creation time, ms since the epoch; null for an entity."""

    scan_count: int
    """Compression scans so far."""

    original_length: int
    """Length of the original content, in characters."""

    importance: float
    """Support from other memories: at 1 it keeps its length, at 0 it is forgotten."""

    in_focus: bool
    """Whether it is in focus."""

    pinned: Literal["none", "by_hand", "by_request"]
    """Whether the memory is pinned: none, by_hand, or by_request (the user asked to remember it)."""

    entities: Sequence[EntityLink]
    """The entities that it is linked with, strongest first."""

    sources: Sequence[SourceInfo]
    """The slices of messages that it was made from."""

    rewrites: Sequence[RewriteInfo]
    """The latest rewrites."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodePage:
    """A page of nodes."""

    nodes: Sequence[NodeInfo]
    """The nodes of this page, in the order of their ids, or that of `ids`."""

    next_page_token: str
    """Empty on the last page."""

    details: Sequence[NodeDetail] = field(default_factory=list)
    """With `details`: the nodes with their first content and links; `nodes` is empty then."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """The knowledge about an entity."""

    entity_id: str
    """Id of the entity; empty if nothing is known about it."""

    name: str
    """Its name."""

    names: Sequence[str]
    """The names of the entities that are merged with it, its own included."""

    slots: Sequence[ProfileSlot]
    """The topics, lasting ones first."""

    text: str
    """The profile for a language model, a line for each statement, within the token budget."""

    is_cut: bool
    """Whether statements were left out: of the text for the token budget, or of a topic that has more than 256 of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recalled:
    """The result of a recall."""

    text: str
    """Memories for a language model to read; empty if there are none."""

    pending_batches: int
    """Accepted batches not yet digested."""

    parked_batches: int
    """Batches parked after repeated failures."""

    unembedded_messages: int
    """Messages, those of new statements included, that a query finds only by their words so far, since they have no vectors yet. 0 without a query or an embedding model."""

    relations_unknown: Sequence[str]
    """Requested `relations` that no link and no entity has; they were ignored."""

    memories: Sequence[RecalledMemory] = field(default_factory=list)
    """With `citations`: the memories of the text."""

    explanation: Explanation | None = None
    """With `explain`: how the memories were ranked."""

    records: Sequence[RecalledRecord] = field(default_factory=list)
    """With the kind record: the records of the response. Memories have the other positions, in order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FocusInfo:
    """The agent's focus."""

    nodes: Sequence[NodeInfo]
    """Memories in focus, newest first."""

    entities: Sequence[EntityInfo]
    """Entities in focus, newest first."""
