"""recall: what the agent remembers, as text: what keywords and focus bring to mind, or the answer to a query.

It waits up to `patience_ms` for batches that are being digested or next, so that with a fast model a recall sees
everything said before it. A query finds undigested texts in the archive, so it does not wait by default. Then one job,
in one read transaction, makes the text.

There are two modes. *Associative*: the strongest paths from what keywords name and from the focus
(`memory/association.py`), filtered by keywords.
*Hybrid*, with a `query`: several signals rank all messages, living memories and the archive alike
(`fleet/recall/recollection.py`), and the best are packed into the budget.

It never depends on a model. It does not wait while no model server answers, while the remaining batches are postponed
after failures, or if this agent's digests take longer than the patience. The response says how many accepted batches
were not yet digested.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, PrivateAttr, model_validator

from ebbtide.errors import NotFound, no_node
from ebbtide.fleet.recall.query import MAX_RESULTS_BY_DEFAULT, ArchiveUse, Query
from ebbtide.fleet.recall.recollected import Hit, Recollected, RecordHit
from ebbtide.fleet.records.batch import search_of
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import node_text_id, parse_node_id
from ebbtide.language.embedding import vector_of
from ebbtide.memory.wording import SEPARATOR, joined
from ebbtide.parameters import MAX_RESULTS_CEILING
from ebbtide.records import EPISODE, Cue, local_date
from ebbtide.retrieval.ranking_request import SIGNALS
from ebbtide.retrieval.tokenizers import TOKENIZERS, count_tokens
from ebbtide.statements import STATEMENT_KINDS
from ebbtide.verbs.attachments import cited_attachment
from ebbtide.verbs.explanation import Explanation, explain_association, explained
from ebbtide.verbs.inspect import MEMORY, RECORD, SourceInfo, source_fields
from ebbtide.verbs.limits import (
    Between,
    FlatMetadata,
    Kind,
    MaxChars,
    MaxItems,
    Name,
    NotBlank,
    OneOf,
    Several,
    Time,
)
from ebbtide.verbs.pii_policy import PiiPolicy, as_stored
from ebbtide.verbs.records import analyse
from ebbtide.verbs.requests import AgentRequest, Fields, Response, invalid, violation
from ebbtide.verbs.service import Service

MAX_PATIENCE_MS = 30_000
MAX_TOKENS = 10_000_000
SMALL_DEPTH = 3
SMALL_RESULTS = 200
"""A recall with at most this depth and this many results is small."""

QUERY_KINDS = (MEMORY, RECORD, EPISODE, *sorted(STATEMENT_KINDS))
"""The kinds that a query may ask for, besides the caller's own."""

T = TypeVar("T")


class TimeRange(Fields):
    """A period of time; an end that is left out is open."""

    begin: Time | None = Field(None, description="From this time on: ms since the epoch, or ISO 8601.")
    end: Time | None = Field(None, description="Before this time: ms since the epoch, or ISO 8601.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.begin is not None and self.end is not None and self.begin >= self.end:
            raise invalid(self.end, "a time after begin", field="end")
        return self


class QueryRequest(AgentRequest):
    """A query, and what narrows its results: what `recall` and `search` have in common."""

    query: (
        Annotated[str, MaxChars("max_query_chars"), NotBlank("a question or words; leave it out for none")]
        | None
    ) = Field(
        None,
        description="A question in plain language, answered from all messages of the agent.",
        examples=["Where did Ann move in May?"],
    )
    kinds: Annotated[list[Annotated[str, Kind(known=QUERY_KINDS)]], Several, MaxItems("max_keywords")] = (
        Field(
            default_factory=list,
            description="Only memories of these kinds: episode, kinds of statements, or your own; memory for all. With "
            "record, records too, or alone. In `recall`: hybrid mode only.",
        )
    )
    speakers: Annotated[list[Name], Several, MaxItems("max_keywords")] = Field(
        default_factory=list,
        description="Only what these speakers said; `user` and `assistant` also find messages without a speaker. "
        "In `recall`: hybrid mode only.",
    )
    sources: Annotated[list[Name], Several, MaxItems("max_keywords")] = Field(
        default_factory=list,
        description="Only what was said in these conversations. In `recall`: hybrid mode only.",
    )
    time_range: TimeRange | None = Field(None, description="Only what was said in this period.")
    metadata: FlatMetadata | None = Field(
        None,
        description="Only what was stored with each of these values. In `recall`: hybrid mode only.",
        examples=[None],
    )
    max_results: Annotated[int, Between(0, MAX_RESULTS_CEILING)] | None = Field(
        None,
        description="Most memories in the response; 0 means 10000; default: the agent's, but 20 at most in a `recall` "
        "with a query and no token budget.",
        examples=[10],
    )
    archive: ArchiveUse | None = Field(
        None,
        description="When the archive (what was forgotten, shortened or not yet digested) takes part: always "
        "(the default), never, or when_needed (if living memories do not suffice). In `recall`: hybrid mode only.",
    )
    patience_ms: Annotated[int, Between(0, MAX_PATIENCE_MS)] | None = Field(
        None,
        description="Longest wait for batches accepted before, 0-30000; default: the daemon's, but 0 for a query that "
        "searches the archive, which includes texts that are not digested yet.",
    )

    @property
    def with_records(self) -> bool:
        """Whether records are searched."""
        return RECORD in self.kinds

    @property
    def with_memories(self) -> bool:
        """Whether memories are searched."""
        return set(self.kinds) != {RECORD}

    @model_validator(mode="after")
    def _fits_its_kinds(self) -> Self:
        if not self.with_records:
            return self
        if self.query is None:
            raise violation(
                "MISSING_FIELD", "required with the kind record, which is found by words", "query"
            )
        for name in NOT_OF_RECORDS:
            if getattr(self, name):
                description = (
                    "not allowed with the kind record, which has none; leave out this field, or record"
                )
                raise violation("INVALID_VALUE", description, name)
        for name in () if self.with_memories else ONLY_OF_MEMORIES:
            if name in self.model_fields_set and getattr(self, name) not in ([], None, False):
                description = "needs memories; add memory to kinds, or leave this field out"
                raise violation("INVALID_VALUE", description, name)
        return self


NOT_OF_RECORDS = ("speakers", "sources", "metadata")
"""Filters that no record would pass; so a query for records refuses them."""

ONLY_OF_MEMORIES = ("archive", "start_nodes", "without", "explain", "vector")
"""Fields that a query for records alone would have to ignore; so it refuses them."""


class RecallRequest(QueryRequest):
    """A cue for association, or a query."""

    keywords: Annotated[
        list[
            Annotated[
                str,
                MaxChars("max_keyword_chars"),
                NotBlank("a word; leave keywords out to match everything"),
            ]
        ],
        Several,
        MaxItems("max_keywords"),
    ] = Field(
        default_factory=list,
        description="Words that a memory may contain, or that name its speaker or an entity it is linked with. "
        "Memories that match more of them come first; without keywords everything in reach matches. "
        "In hybrid mode: words to look for besides those of the query.",
        examples=[["Lisbon"]],
    )
    mode: Literal["auto", "associative", "hybrid"] = Field(
        "auto", description="auto: hybrid when a query is given, else associative."
    )
    relations: Annotated[
        list[
            Annotated[
                str,
                MaxChars("max_relation_chars"),
                NotBlank("a name; leave relations out to follow every link"),
            ]
        ],
        Several,
        MaxItems("max_relations"),
    ] = Field(
        default_factory=list,
        description="Follow only links with these names, and links with entities of these names. Names in no use are "
        "ignored and returned as `relations_unknown`. Associative mode only.",
        examples=[[]],
    )
    depth: Annotated[int, Between(0, "max_depth", "INVALID_DEPTH")] | None = Field(
        None, description="Hops from where the search starts, 0-8; default: the agent's.", examples=[2]
    )
    start_nodes: Annotated[list[str], Several, MaxItems("max_keywords")] = Field(
        default_factory=list,
        description="Start from these nodes instead of the focus; forgotten ones are ignored. Hybrid mode only.",
    )
    token_budget: Annotated[int, Between(1, MAX_TOKENS)] | None = Field(
        None,
        description="Most tokens of the text, counted by `tokenizer`; hybrid mode only.",
        examples=[1000],
    )
    tokenizer: Annotated[str, OneOf(tuple(TOKENIZERS))] = Field(
        "estimate",
        description="The token counter: estimate (never too few), characters, words, utf8_bytes; hybrid mode only.",
    )
    key_sentences: bool = Field(
        False,
        description="Shorten what does not fit the token budget to its key sentences; hybrid mode only.",
    )
    citations: bool = Field(
        False, description="Cite the sources of each memory, in the text and as `memories`; hybrid mode only."
    )
    explain: bool = Field(False, description="Return how the results were ranked, as `explanation`.")
    dates: bool | None = Field(
        None,
        description="Put the date, in the agent's time_zone, before each memory of the text; default: true in hybrid "
        "mode, else false.",
    )
    without: Annotated[list[Annotated[str, OneOf(SIGNALS)]], Several] = Field(
        default_factory=list,
        description="Signals to leave out: " + ", ".join(SIGNALS) + "; hybrid mode only.",
    )

    @property
    def with_dates(self) -> bool:
        """Whether the text has the date of each memory."""
        return self.is_hybrid if self.dates is None else self.dates

    @property
    def is_hybrid(self) -> bool:
        """Whether a query is to be answered, instead of associating from the focus."""
        return self.mode == "hybrid" or (self.mode == "auto" and self.query is not None)

    @model_validator(mode="after")
    def _fits_its_mode(self) -> Self:
        if self.mode == "hybrid" and self.query is None:
            raise violation("MISSING_FIELD", "required; hybrid mode answers a query", "query")
        if self.is_hybrid:
            if self.relations:
                description = "not allowed with a query; leave out relations, or the query"
                raise violation("INVALID_VALUE", description, "relations")
            return self
        if self.query is not None:
            raise invalid(self.mode, "auto or hybrid, because a query is given", field="mode")
        given = self.model_fields_set
        for name in ONLY_HYBRID:
            if name in given and getattr(self, name) not in ([], None, False):
                raise violation("INVALID_VALUE", "needs a query; give query, or leave this field out", name)
        return self


ONLY_HYBRID = (
    *("start_nodes", "kinds", "speakers", "sources", "token_budget", "tokenizer"),
    *("metadata", "key_sentences", "archive", "citations", "without"),
)
"""Fields that an associative recall would have to ignore; so it refuses them."""


class CitedSource(SourceInfo):
    """The source of a memory, with the key of the whole text and a quote."""

    chunk_id: str = Field(
        description="SHA-256 of the message's text, in hexadecimal; empty if the text is deleted."
    )
    quote: str = Field(description="The text of the slice; empty if it is deleted.")


class RecalledMemory(Response):
    """A memory of the response, in the order of the text."""

    id: str = Field(description="Id of its node, or of its message if no node of it lives.", examples=["n1"])
    kind: str = Field(
        description="episode: made from what was said; else the kind of a statement, or the caller's own.",
        examples=["episode"],
    )
    content: str = Field(description="The text of the memory, without the label of its speaker.")
    state: str = Field(
        description="living, archived (shortened or forgotten since) or pending (not digested)."
    )
    node_ids: list[str] = Field(description="Living nodes made from it.")
    sources: list[CitedSource] = Field(description="The slices of messages that it was made from.")
    created_at: int = Field(
        description="When it was said, else when its message was accepted; ms since the epoch."
    )


class RecalledRecord(Response):
    """A record of the response, in the order of the text."""

    namespace: list[str] = Field(description="Its place, from the outermost label on.")
    key: str = Field(description="Its name in the namespace.", examples=["theme"])
    version: int = Field(description="Version of its value.")
    text: str = Field(description="The passage of its texts that matches the query best.")
    score: float = Field(description="How relevant it is among the records, above 0; 1 for the best one.")
    position: int = Field(description="Its position among the memories and records of the response, from 0.")
    created_at: int = Field(description="When the record was first put, ms since the epoch.")
    updated_at: int = Field(description="When it was last put, ms since the epoch.")


RECORDS: Any = Field(
    default_factory=list,
    description="With the kind record: the records of the response. Memories have the other positions, in order.",
)

UNEMBEDDED: Any = Field(
    description="Messages, those of new statements included, that a query finds only by their words so far, since "
    "they have no vectors yet. 0 without a query or an embedding model.",
    examples=[0],
)


class Recalled(Response):
    """The result of a recall."""

    text: str = Field(
        description="Memories for a language model to read; empty if there are none.",
        examples=["[Memory] Ann: I moved to Lisbon in May."],
    )
    pending_batches: int = Field(description="Accepted batches not yet digested.", examples=[0])
    parked_batches: int = Field(description="Batches parked after repeated failures.", examples=[0])
    unembedded_messages: int = UNEMBEDDED
    relations_unknown: list[str] = Field(
        default_factory=list,
        description="Requested `relations` that no link and no entity has; they were ignored.",
        examples=[[]],
    )
    memories: list[RecalledMemory] = Field(
        default_factory=list, description="With `citations`: the memories of the text."
    )
    explanation: Explanation | None = Field(None, description="With `explain`: how the memories were ranked.")
    records: list[RecalledRecord] = RECORDS

    _requested: frozenset[str] = PrivateAttr(frozenset())
    """Which of `memories`, `explanation` and `records` were requested."""

    def as_json(self) -> str:
        """Return the body, without fields that were not requested. Requested ones are there even if empty."""
        return self.model_dump_json(exclude={"memories", "explanation", "records"} - self._requested)


async def recall(service: Service, request: RecallRequest) -> Recalled:
    """Return what keywords and focus bring to mind, or the answer to a query, as text.

    Reads only: no focus, strength or scan count changes. For an agent that does not exist the text is empty.
    """

    def nothing() -> Recalled:
        return _requested(
            Recalled(text="", pending_batches=0, parked_batches=0, unembedded_messages=0), request
        )

    recalled = await unless_unknown(_recall(service, request), nothing)
    if recalled.relations_unknown:
        service.metrics.relations_ignored.inc(len(recalled.relations_unknown))
    return recalled


async def _recall(service: Service, request: RecallRequest) -> Recalled:
    async with service.fleet.using(request.owner) as agent:
        await caught_up(service, agent, request, is_query=request.is_hybrid)
        if request.is_hybrid:
            now_ms = service.clock.now_ms()
            query = await with_meaning(service, await _query_of(service, agent, request))
            return await answered(
                service, agent, query, now_ms, partial(_recollected, agent.workspace, query, request, now_ms)
            )
        cue = _cue(agent, request)
        is_small = cue.depth <= SMALL_DEPTH and cue.max_results <= SMALL_RESULTS
        return await agent.recall(partial(_recalled, agent.workspace, cue, request), is_small=is_small)


async def answered(service: Service, agent: Agent, query: Query, now_ms: int, job: Callable[[], T]) -> T:
    """Run the job that answers a query, after the words of records that it needs are computed."""
    if query.with_records:
        await analyse(service, agent, [search_of(query)], now_ms)
    return await (agent.query(job) if query.with_memories else agent.run(job))


async def unless_unknown(answer: Awaitable[T], nothing: Callable[[], T]) -> T:
    """Return an answer, or `nothing` if the agent does not exist."""
    try:
        return await answer
    except NotFound as error:
        if error.reason != "AGENT_NOT_FOUND":
            raise
        return nothing()


async def caught_up(service: Service, agent: Agent, request: QueryRequest, *, is_query: bool) -> None:
    """Wait for batches accepted before, for the requested time or the daemon's default."""
    patience_ms = request.patience_ms
    if patience_ms is None:
        if is_query and request.archive in (None, "always"):
            # The archive contains them already.
            return
        patience_ms = service.settings.fleet.recall_patience_ms
    await agent.wait_for_digest(patience_ms / 1000, lambda: not service.is_accepting)


def _recalled(workspace: Workspace, cue: Cue, request: RecallRequest) -> Recalled:
    """The job. It also writes the text, which may be of ten thousand memories, off the event loop."""
    answer, counts = workspace.recall(cue)
    date_of = partial(local_date, offset=workspace.offset) if request.with_dates else None
    text = answer.text(workspace.parameters.locale, date_of)
    note_returned(workspace, text.split(SEPARATOR))
    recalled = Recalled(
        text=text,
        pending_batches=counts.pending_batches,
        parked_batches=counts.parked_batches,
        unembedded_messages=0,
        relations_unknown=list(answer.relations_unknown),
        explanation=explain_association(answer, workspace.network) if request.explain else None,
    )
    return _requested(recalled, request)


def _requested(recalled: Recalled, request: RecallRequest) -> Recalled:
    """Return the response, noting which of its optional fields were requested."""
    given = {
        "memories": request.citations,
        "explanation": request.explain,
        "records": request.with_records,
    }
    recalled._requested = frozenset(name for name, is_requested in given.items() if is_requested)
    return recalled


def note_returned(workspace: Workspace, texts: Iterable[str]) -> None:
    """Record the returned texts, so that they are not remembered again."""
    if workspace.parameters.drop_recalled:
        workspace.recall_filter.note(texts)


def _cue(agent: Agent, request: RecallRequest) -> Cue:
    parameters, time_range = agent.workspace.parameters, request.time_range or TimeRange()
    depth, most = request.depth, request.max_results
    policy = PiiPolicy(parameters, agent.workspace.identity)
    return Cue(
        keywords=as_stored(policy, request.keywords),
        relations=request.relations,
        depth=parameters.default_search_depth if depth is None else depth,
        max_results=parameters.limit_results(most),
        time_range=(time_range.begin, time_range.end),
        explains=request.explain,
    )


# --- hybrid ----------------------------------------------------------------------------------------------


async def _query_of(service: Service, agent: Agent, request: RecallRequest) -> Query:
    parameters = agent.workspace.parameters
    max_results = parameters.limit_results(request.max_results)
    is_size_open = request.max_results is None and request.token_budget is None
    return await query_of(
        agent,
        request,
        request.keywords,
        max_results=min(max_results, MAX_RESULTS_BY_DEFAULT) if is_size_open else max_results,
        is_size_open=is_size_open,
        min_relevance=service.settings.fleet.min_relevance,
        depth=parameters.default_search_depth if request.depth is None else request.depth,
        start_nodes=[parse_node_id(node_id) for node_id in request.start_nodes],
        token_budget=request.token_budget,
        key_sentences=request.key_sentences,
        without=frozenset(request.without),
        cites=request.citations,
        dates=request.with_dates,
        explains=request.explain,
    )


async def query_of(agent: Agent, request: QueryRequest, words: Sequence[str] = (), **more: Any) -> Query:
    """Return the query of a request and further words, redacted as the agent's memories are.

    `more` are fields of the query that only some operations have.
    """
    parameters, time_range = agent.workspace.parameters, request.time_range or TimeRange()
    policy = PiiPolicy(parameters, agent.workspace.identity)
    texts = [request.query or "", *words]
    texts = await agent.workspace.texts.run(len(texts[0]), as_stored, policy, texts)
    fields: dict[str, Any] = {
        "text": " ".join(texts).strip(),
        "max_results": parameters.limit_results(request.max_results),
        "depth": parameters.default_search_depth,
        "archive": request.archive or "always",
        "speakers": as_stored(policy, request.speakers),
        "conversations": [policy.name(source) for source in request.sources],
        "kinds": () if MEMORY in request.kinds else tuple(kind for kind in request.kinds if kind != RECORD),
        "with_memories": request.with_memories,
        "with_records": request.with_records,
        "time_range": (time_range.begin, time_range.end),
        "metadata": policy.metadata(request.metadata) or {},
    }
    return Query(**(fields | more))


async def with_meaning(service: Service, query: Query) -> Query:
    """Return the query with its vector, if there is an embedder and a signal needs the vector."""
    if {"semantic", "window"} <= set(query.without) or not query.with_memories:
        return query
    embedder = service.fleet.shared.embedder
    timeout_s = service.settings.embedding.query_timeout_ms / 1000
    vector, why = await vector_of(embedder, query.text, timeout_s)
    model = "" if embedder is None else embedder.model
    return replace(query, vector=vector, embedding_model=model, no_vector=why)


def _recollected(workspace: Workspace, query: Query, request: RecallRequest, now_ms: int) -> Recalled:
    locale, network, offset = workspace.parameters.locale, workspace.network, workspace.offset
    if not all(0 < node_id < network.next_node_id for node_id in query.start_nodes):
        raise no_node()
    if query.start_nodes:
        query = replace(query, start_nodes=[node_id for node_id in query.start_nodes if node_id in network])
    found, counts = workspace.answer(query, now_ms, lambda text: count_tokens(text, request.tokenizer))
    answer = Recalled(
        text=joined(
            one.block(cites=query.cites, dates=query.dates, locale=locale, offset=offset)
            for one in found.order or found.memories
        ),
        pending_batches=counts.pending_batches,
        parked_batches=counts.parked_batches,
        unembedded_messages=found.unembedded_count,
        memories=[memory_info(one) for one in found.memories] if request.citations else [],
        explanation=explained(found) if request.explain else None,
        records=record_infos(found),
    )
    contents = (one.said for one in found.memories if request.citations)
    note_returned(
        workspace, [*answer.text.split(SEPARATOR), *contents, *(one.content for one in found.records)]
    )
    return _requested(answer, request)


def record_infos(found: Recollected) -> list[RecalledRecord]:
    """Return the records of a result for a response."""
    return [
        RecalledRecord(
            namespace=list(one.record.namespace),
            key=one.record.key,
            version=one.record.version,
            text=one.content,
            score=round(one.score, 6),
            position=position,
            created_at=one.record.created_at_ms,
            updated_at=one.record.updated_at_ms,
        )
        for position, one in enumerate(found.order)
        if isinstance(one, RecordHit)
    ]


def memory_info(one: Hit) -> RecalledMemory:
    """Return a memory for a response."""
    record, cited = one.source.record, one.source
    attachment = cited_attachment(record, cited.attachment, cited.text)
    fields = source_fields(record, cited.offset, cited.length, cited.metadata, attachment)
    source = CitedSource(**fields, chunk_id=record.text_key.hex(), quote=one.source.quote)
    return RecalledMemory(
        id=one.text_id,
        kind=one.kind,
        content=one.said,
        state=one.state,
        node_ids=[node_text_id(node_id) for node_id in one.node_ids],
        sources=[source],
        created_at=record.time_ms,
    )
