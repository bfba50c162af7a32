"""recall: what the agent remembers, as text: near its focus, or as the answer to a question.

The story: check limits → wait up to `patience_ms` for batches being digested or next in line, so that with a
fast model a recall sees everything said before it → one job, one read transaction → text.

Two modes. *Associative*: strongest paths outward from the focus (`memory/association.py`), keywords filter.
*Hybrid*, when a `query` is given: everything the agent ever heard is ranked by several signals, living memories
and the archive alike (`fleet/recall/recollection.py`), and packed into the budget.

It never stands behind a model: it does not wait at all while no model server answers, while what is left is
put off after failures, or when this agent's digests take longer than the patience. The reply says how many
accepted batches were not yet digested.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from pydantic import Field, PrivateAttr

from ebbtide.fleet.recall.recollected import Hit, Wanted
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import node_text_id, parse_agent_id, parse_node_id
from ebbtide.language.embedding import vector_of
from ebbtide.memory.wording import SEPARATOR, word_answer
from ebbtide.records import Cue
from ebbtide.retrieval.ranking import SIGNALS
from ebbtide.retrieval.tokenizers import TOKENIZERS, count_tokens
from ebbtide.settings import LimitSettings
from ebbtide.verbs.door import Door, asked
from ebbtide.verbs.explanation import Explanation, explained
from ebbtide.verbs.forms import Answer, Form, Several, check_count, check_text, refuse
from ebbtide.verbs.inspect import SourceInfo, source_info
from ebbtide.verbs.metadata import check_flat
from ebbtide.verbs.service import Service

MOST_PATIENCE_MS = 30_000
MOST_TOKENS = 10_000_000
KINDS = ("episode",)


class TimeRange(Form):
    """A stretch of time; what is left out is open."""

    begin: int | None = Field(None, description="From this time on, ms since the epoch.")
    end: int | None = Field(None, description="Before this time, ms since the epoch.")


class RecallCommand(Form):
    """A cue, or a question."""

    keywords: Several[str] = Field(
        default_factory=list,
        description="A memory matches when any of them occurs in it; none matches everything in reach. "
        "In hybrid mode: words to look for beside those of the query.",
        examples=[["Lisbon"]],
    )
    query: str | None = Field(
        None,
        description="A question in plain words, answered over everything the agent ever heard.",
        examples=["Where did Ann move in May?"],
    )
    mode: Literal["auto", "associative", "hybrid"] = Field(
        "auto", description="auto: hybrid when a query is given, else associative."
    )
    relations: Several[str] = Field(
        default_factory=list,
        description="Follow only links of these names; focus nodes are then no results. Associative mode only.",
        examples=[[]],
    )
    depth: int | None = Field(
        None, description="Hops from the focus, 0-8; default: the agent's.", examples=[2]
    )
    start_nodes: Several[str] = Field(
        default_factory=list, description="Start from these nodes instead of the focus; hybrid mode only."
    )
    kinds: Several[str] = Field(
        default_factory=list, description="Only memories of these kinds; hybrid mode only."
    )
    speakers: Several[str] = Field(
        default_factory=list, description="Only what these speakers said; hybrid mode only."
    )
    sources: Several[str] = Field(
        default_factory=list, description="Only what was said in these conversations; hybrid mode only."
    )
    time_range: TimeRange | None = Field(
        None, description="Only what was said in this time; hybrid mode only."
    )
    metadata: dict[str, Any] | None = Field(
        None,
        description="Only what was remembered with each of these values; hybrid mode only.",
        examples=[None],
    )
    max_results: int | None = Field(
        None, description="Most memories in the answer; 0 means 10000; default: the agent's."
    )
    token_budget: int | None = Field(
        None, description="Most tokens of the text, by `tokenizer`; hybrid mode only.", examples=[1000]
    )
    tokenizer: str = Field(
        "estimate", description="What counts tokens: estimate (never too few), characters, words, utf8_bytes."
    )
    key_sentences: bool = Field(
        False,
        description="Tell by its key sentences what does not fit into the token budget whole; hybrid mode only.",
    )
    include_archive: bool = Field(
        True,
        description="Whether what was forgotten, shortened or not yet digested takes part; hybrid mode only.",
    )
    archive: Literal["always", "never", "when_needed"] | None = Field(
        None,
        description="When the archive takes part: always, never, when_needed (living memories do not do); "
        "default: as `include_archive` says; hybrid mode only.",
    )
    citations: bool = Field(
        False, description="Name the sources of each memory, in the text and as `memories`; hybrid mode only."
    )
    explain: bool = Field(
        False, description="Tell how the answer came about, as `explanation`; hybrid mode only."
    )
    without: Several[str] = Field(
        default_factory=list,
        description="Signals to leave out: " + ", ".join(SIGNALS) + "; hybrid mode only.",
    )
    patience_ms: int | None = Field(
        None, description="Longest wait for batches accepted before, 0-30000; default: the daemon's."
    )

    def check(self, limits: LimitSettings) -> None:
        """Refuse what is outside the limits."""
        check_command(self, limits)


class CitedSource(SourceInfo):
    """Where a memory came from, with the key of the whole text and the words themselves."""

    chunk_id: str = Field(
        description="SHA-256 of the message's text, in hexadecimal; empty where that is gone."
    )
    quote: str = Field(description="What was said there, word for word; empty where the text is gone.")


class RecalledMemory(Answer):
    """A memory of the answer, in the order of the text."""

    id: str = Field(description="Its node, or its message where no node of it lives.", examples=["n1"])
    kind: str = Field(examples=["episode"])
    content: str
    state: str = Field(
        description="living, archived (shortened or forgotten since) or pending (not digested)."
    )
    node_ids: list[str] = Field(description="Living nodes made from it.")
    sources: list[CitedSource]


class Recalled(Answer):
    """What came back."""

    text: str = Field(
        description="Memories for a language model to read; empty when there is nothing.",
        examples=["[Memory] Ann: I moved to Lisbon in May."],
    )
    pending_batches: int = Field(description="Accepted batches not yet digested.", examples=[0])
    parked_batches: int = Field(description="Batches parked after failures.", examples=[0])
    memories: list[RecalledMemory] = Field(
        default_factory=list, description="With `citations`: the memories of the text."
    )
    explanation: Explanation | None = Field(None, description="With `explain`: how the answer came about.")

    _asked: frozenset[str] = PrivateAttr(frozenset())
    """Which of `memories` and `explanation` were asked for."""

    def as_json(self) -> str:
        """What was not asked for is left out; what was is there, though it be empty."""
        return self.model_dump_json(exclude={"memories", "explanation"} - self._asked)


async def recall(service: Service, agent_id: str, command: RecallCommand) -> Recalled:
    """Recall what matches a cue or answers a question. Reads only: no focus, strength or scan count changes.

    Raises AGENT_NOT_FOUND, and InvalidRequest for values outside their limits.
    """
    owner = parse_agent_id(agent_id)
    check_command(command, service.settings.limits)
    async with service.fleet.using(owner) as agent:
        await wait_for_digest(service, agent, command.patience_ms)
        if is_hybrid(command):
            now_ms = service.clock.now_ms()
            wanted = await with_meaning(service, await wanted_by(agent, command))
            return await agent.query(partial(_recollected, agent.workspace, wanted, command, now_ms))
        return await agent.run(partial(_recalled, agent.workspace, _cue(agent, command)))


async def wait_for_digest(service: Service, agent: Agent, patience_ms: int | None) -> None:
    """Wait for batches accepted before, as long as was asked, or as the daemon is set to."""
    if patience_ms is None:
        patience_ms = service.settings.fleet.recall_patience_ms
    await agent.wait_for_digest(patience_ms / 1000, lambda: not service.is_accepting)


def is_hybrid(command: RecallCommand) -> bool:
    """Whether a question is to be answered, not what is near the focus."""
    return command.mode == "hybrid" or (command.mode == "auto" and command.query is not None)


def _recalled(workspace: Workspace, cue: Cue) -> Recalled:
    """The job: ten thousand memories are worded here too, where nobody but this agent waits for it."""
    answer, counts = workspace.recall(cue)
    contents = (content for _, content in answer.memories)
    text = word_answer(contents, answer.once_known, workspace.parameters.locale)
    note_told(workspace, text.split(SEPARATOR))
    return Recalled(text=text, pending_batches=counts.pending_batches, parked_batches=counts.parked_batches)


def note_told(workspace: Workspace, texts: Iterable[str]) -> None:
    """Note what an answer tells, so that it is not remembered once more."""
    if workspace.parameters.drop_recalled:
        workspace.recall_filter.note(texts)


def _cue(agent: Agent, command: RecallCommand) -> Cue:
    parameters = agent.workspace.parameters
    depth, most = command.depth, command.max_results
    door = Door(parameters, agent.workspace.identity)
    return Cue(
        keywords=asked(door, command.keywords),
        relations=command.relations,
        depth=parameters.default_search_depth if depth is None else depth,
        max_results=parameters.limit_results(most),
    )


# --- hybrid ----------------------------------------------------------------------------------------------


async def wanted_by(agent: Agent, command: RecallCommand) -> Wanted:
    """The question that a command asks of an agent."""
    parameters = agent.workspace.parameters
    span = command.time_range or TimeRange()
    door = Door(parameters, agent.workspace.identity)
    texts = [command.query or "", *command.keywords]
    texts = await agent.workspace.texts.run(len(texts[0]), asked, door, texts)
    return Wanted(
        query=" ".join(texts).strip(),
        max_results=parameters.limit_results(command.max_results),
        depth=parameters.default_search_depth if command.depth is None else command.depth,
        start_nodes=[parse_node_id(node_id) for node_id in command.start_nodes],
        token_budget=command.token_budget,
        key_sentences=command.key_sentences,
        include_archive=_archive(command) != "never",
        archive_when_needed=_archive(command) == "when_needed",
        speakers=asked(door, command.speakers),
        conversations=[door.name(source) for source in command.sources],
        time_range=(span.begin, span.end),
        without=frozenset(command.without),
        metadata=door.metadata(command.metadata) or {},
        cites=command.citations,
    )


async def with_meaning(service: Service, wanted: Wanted) -> Wanted:
    """The question with what it means to the embedder, where there is one and its vector is wanted."""
    if {"semantic", "window"} <= set(wanted.without):
        return wanted
    embedder = service.fleet.shared.embedder
    timeout_s = service.settings.embedding.query_timeout_ms / 1000
    vector, why = await vector_of(embedder, wanted.query, timeout_s)
    model = "" if embedder is None else embedder.model
    return replace(wanted, vector=vector, embedding_model=model, no_vector=why)


def _archive(command: RecallCommand) -> str:
    return command.archive or ("always" if command.include_archive else "never")


def _recollected(workspace: Workspace, wanted: Wanted, command: RecallCommand, now_ms: int) -> Recalled:
    locale = workspace.parameters.locale
    found, counts = workspace.recollect(wanted, now_ms, lambda text: count_tokens(text, command.tokenizer))
    answer = Recalled(
        text=word_answer((one.told(cites=wanted.cites, locale=locale) for one in found.memories), (), locale),
        pending_batches=counts.pending_batches,
        parked_batches=counts.parked_batches,
        memories=[memory_info(one) for one in found.memories] if command.citations else [],
        explanation=explained(found) if command.explain else None,
    )
    answer._asked = _asked_for(command)
    contents = (one.content for one in found.memories if command.citations)
    note_told(workspace, [*answer.text.split(SEPARATOR), *contents])
    return answer


def _asked_for(command: RecallCommand) -> frozenset[str]:
    return frozenset(
        name for name, asked in (("memories", command.citations), ("explanation", command.explain)) if asked
    )


def memory_info(one: Hit) -> RecalledMemory:
    """A memory of an answer."""
    record = one.source.record
    told = source_info(record, one.source.offset, one.source.length, one.source.metadata)
    source = CitedSource(**told.model_dump(), chunk_id=record.text_key.hex(), quote=one.source.quote)
    return RecalledMemory(
        id=one.text_id,
        kind=one.kind,
        content=one.content,
        state=one.state,
        node_ids=[node_text_id(node_id) for node_id in one.node_ids],
        sources=[source],
    )


def check_command(command: RecallCommand, limits: LimitSettings) -> None:
    """Refuse what is outside the limits."""
    check_count("keywords", len(command.keywords), limits.max_keywords)
    for index, keyword in enumerate(command.keywords):
        if not keyword.strip():
            refuse(f"keywords[{index}]", keyword, "a word; leave keywords out to match everything")
        check_text(f"keywords[{index}]", keyword, limits.max_keyword_chars)
    check_count("relations", len(command.relations), limits.max_relations)
    for index, relation in enumerate(command.relations):
        check_text(f"relations[{index}]", relation, limits.max_relation_chars)
    depth = command.depth
    if depth is not None and not 0 <= depth <= limits.max_depth:
        refuse("depth", depth, f"0-{limits.max_depth}", "INVALID_DEPTH")
    most = command.max_results
    if most is not None and not 0 <= most <= 10_000:
        refuse("max_results", most, "0-10000")
    patience_ms = command.patience_ms
    if patience_ms is not None and not 0 <= patience_ms <= MOST_PATIENCE_MS:
        refuse("patience_ms", patience_ms, f"0-{MOST_PATIENCE_MS}")
    _check_hybrid(command, limits)


ONLY_HYBRID = (
    *("start_nodes", "kinds", "speakers", "sources", "time_range", "token_budget", "tokenizer"),
    *("metadata", "key_sentences", "include_archive", "archive", "citations", "explain", "without"),
)
"""Fields that an associative recall would have to ignore; so it refuses them."""


def _check_mode(command: RecallCommand) -> None:
    if command.mode == "hybrid" and command.query is None:
        refuse("query", None, "a question; hybrid mode needs one", "MISSING_FIELD")
    if is_hybrid(command):
        if command.relations:
            refuse(
                "relations",
                command.relations[0],
                "no relations with a query; signals are switched off by `without`",
            )
        return
    if command.query is not None:
        refuse("mode", command.mode, "auto or hybrid with a query")
    for name in ONLY_HYBRID:
        value = getattr(command, name)
        if name in command.model_fields_set and value not in ([], None, False):
            refuse(name, value, "no such field without a query")


def _check_hybrid(command: RecallCommand, limits: LimitSettings) -> None:
    _check_mode(command)
    span = command.time_range
    if span is not None and span.begin is not None and span.end is not None and span.begin >= span.end:
        refuse("time_range.end", span.end, "a time after its begin")
    if command.query is not None:
        if not command.query.strip():
            refuse("query", command.query, "a question; leave it out to recall by association")
        check_text("query", command.query, limits.max_query_chars)
    for name, given in (("speakers", command.speakers), ("sources", command.sources)):
        check_count(name, len(given), limits.max_keywords)
        for index, text in enumerate(given):
            check_text(f"{name}[{index}]", text, limits.max_name_chars)
    check_flat("metadata", command.metadata, limits)
    check_count("start_nodes", len(command.start_nodes), limits.max_keywords)
    for name, words, allowed in (("kinds", command.kinds, KINDS), ("without", command.without, SIGNALS)):
        for index, word in enumerate(words):
            if word not in allowed:
                refuse(f"{name}[{index}]", word, ", ".join(allowed))
    if command.archive is not None and "include_archive" in command.model_fields_set:
        refuse("archive", command.archive, "one of `archive` and `include_archive`, not both")
    if command.tokenizer not in TOKENIZERS:
        refuse("tokenizer", command.tokenizer, ", ".join(TOKENIZERS))
    budget = command.token_budget
    if budget is not None and not 1 <= budget <= MOST_TOKENS:
        refuse("token_budget", budget, f"1-{MOST_TOKENS}")
