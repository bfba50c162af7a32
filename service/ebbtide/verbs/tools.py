"""Tools for language models: their declarations, instructions on their use, and calls by a model.

`tools/` declares the tools and reads their arguments leniently. A call performs the operation of its tool, so it needs
the scope of that operation. `EXECUTIONS` has one row for each tool.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, WithJsonSchema

from ebbtide.access.grants import CALLER
from ebbtide.access.requirements import ADMIN, READ, WRITE, Scope, of_agent
from ebbtide.actor import actor
from ebbtide.bounds import EARLIEST_MS, LATEST_MS
from ebbtide.clock import offset_of
from ebbtide.errors import EbbtideError, FieldViolation, NotFound
from ebbtide.ids import AgentId, node_number
from ebbtide.memory.wording import word_value
from ebbtide.retrieval.analysis import words_of
from ebbtide.retrieval.times import Offset, stated_time, utc
from ebbtide.tools import schema
from ebbtide.tools.reading import MAX_CHARS, Interval, Reading, read_arguments
from ebbtide.verbs.forget import ForgetRequest, forget_memories
from ebbtide.verbs.limits import EPOCH, MILLISECOND
from ebbtide.verbs.links import CreateLinkRequest, SetImportanceRequest, create_link, set_importance
from ebbtide.verbs.profile import line_of
from ebbtide.verbs.recall import RecallRequest, recall
from ebbtide.verbs.remember import RememberRequest, remember
from ebbtide.verbs.requests import AgentRequest, Request, Response, refuse, validated
from ebbtide.verbs.search import SearchRequest, search
from ebbtide.verbs.service import Service
from ebbtide.verbs.statement_search import SearchStatementsRequest, search_statements
from ebbtide.verbs.statements import (
    CreateStatementRequest,
    GetStatementRequest,
    StatementInfo,
    create,
    get_statement,
)


class ListToolsRequest(Request):
    """The form and the language of the declarations."""

    format: Literal["openai", "anthropic", "mcp"] = Field(
        "openai", description="Form of the declarations: openai, anthropic or mcp."
    )
    lang: Literal["en", "zh"] = Field("en", description="Language of the descriptions: en or zh.")


class ToolList(Response):
    """Declarations of tools, to be passed to a language model."""

    tools: list[dict[str, Any]] = Field(
        description="The declarations, in the requested form.", examples=[[{"name": "recall"}]]
    )


class GetToolPromptRequest(Request):
    """The language of the instructions, and the role of the model."""

    lang: Literal["en", "zh"] = Field("en", description="Language of the instructions: en or zh.")
    role: Literal["assistant", "archivist"] = Field(
        "assistant",
        description="assistant: a model that talks with the user; archivist: one that stores a finished conversation.",
    )


class ToolPrompt(Response):
    """Instructions on the tools."""

    text: str = Field(description="The instructions, with examples, for the system prompt of a model.")


SENT = {
    "anyOf": [{"type": "object", "additionalProperties": True}, {"type": "string", "maxLength": MAX_CHARS}]
}
"""The schema of arguments: an object, or its JSON as text."""


class CallToolRequest(AgentRequest):
    """A call by a language model."""

    name: str = Field(description="The name of a tool, such as recall.", examples=["recall"])
    arguments: Annotated[Any, WithJsonSchema(SENT)] = Field(
        None,
        description="The arguments as the model sent them: an object, or its JSON as text. At most 65536 "
        "characters, 1000 values and 8 levels.",
        examples=[{"query": "Where does Ann live?"}],
    )


class ToolResult(Response):
    """The outcome of a call."""

    result: dict[str, Any] = Field(
        description="The response of the operation of this name.", examples=[{"text": "I moved to Lisbon."}]
    )
    noticed: list[str] = Field(
        description="Changes that were made to read the arguments.", examples=[["q: read as query"]]
    )


# --- the tools -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Execution:
    """How a tool is performed: the scope that it needs, and its operation."""

    scope: Scope
    request: type[AgentRequest]
    fields: Callable[[Mapping[str, Any]], dict[str, Any]]
    """From the arguments of the tool to the fields of the request."""
    verb: Callable[[Service, Any], Awaitable[BaseModel]]
    described: tuple[str, ...] = ()
    """The arguments that may describe a memory instead of giving its id."""
    arguments: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The argument that gives a field of the request, where it has another name."""


def _to_remember(given: Mapping[str, Any]) -> dict[str, Any]:
    message = {"role": given["role"], "content": given["content"]}
    message |= {"speaker": given["speaker"]} if given["speaker"] else {}
    message |= {"timestamp": given["time"]} if given["time"] is not None else {}
    return {"messages": [message]}


def _to_recall(given: Mapping[str, Any]) -> dict[str, Any]:
    fields = {"query": given["query"], "max_results": given["max_results"]}
    fields |= {"speakers": given["speakers"]} if given["speakers"] else {}
    if given["time_range"] is not None:
        begin, end = given["time_range"]
        fields["time_range"] = {"begin": begin, "end": end}
    return fields


def _to_forget(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"topic": given["topic"], "nodes": given["memories"] or [], "dry_run": given["dry_run"]}


def _to_create(given: Mapping[str, Any]) -> dict[str, Any]:
    fields = {
        "subject": given["subject"],
        "topic": given["topic"],
        "object": given["object"] or "",
        "content": given["sentence"] or "",
        "kind": given["memory_type"],
        "attributes": given["attributes"] or {},
        "importance": float(given["importance"]),
        "replaces": given["replaces"] or "",
    }
    fields |= {"since": given["time"]} if given["time"] is not None else {}
    fields |= {"negated": given["negated"]} if given["negated"] is not None else {}
    is_ahead = given["memory_type"] == "task"
    return {**fields, "modality": "planned"} if is_ahead and given["time"] is not None else fields


def _to_link(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "source": given["source_memory_description"],
        "target": given["target_memory_description"],
        "relation": given["relation_type"],
        "strength": float(given["importance"]),
    }


def _to_search(given: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: given[name] for name in ("query", "max_results", "expand_depth")}
    fields |= {"kinds": given["memory_types"]} if given["memory_types"] else {}
    fields |= {"as_of": given["as_of"]} if given["as_of"] is not None else {}
    if given["time_range"] is not None:
        begin, end = given["time_range"]
        fields["time_range"] = {"begin": begin, "end": end}
    return fields


def _to_weigh(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"node_id": given["memory"], "importance": float(given["importance"])}


class CreatedMemory(Response):
    """A fact that a model has stored."""

    memory_id: str = Field(description="Id of the statement.")
    status: str = Field(
        description="staged: stored and searchable; known: an earlier memory already said it."
    )
    normalized: dict[str, str] = Field(description="Subject, topic and value as they are stored.")
    superseded: list[str] = Field(description="Ids of the memories that are no longer true because of it.")
    contradicts: list[str] = Field(description="Memories that say something else, with their ids.")
    advice: str = Field(description="Next step if it contradicts another memory; empty otherwise.")


async def create_memory(service: Service, request: CreateStatementRequest) -> CreatedMemory:
    """Store a fact for a language model."""
    done = await create(
        service,
        request,
        service.clock.now_ms(),
        author=f"tool:{actor()}",
        trust=TOOL_TRUST,
        confidence=TOOL_CONFIDENCE,
    )
    ids = [GetStatementRequest(agent_id=request.agent_id, node_id=one) for one in done.conflicts_with]
    others = await _lines(service, request.owner, [await get_statement(service, one) for one in ids])
    advice = "If the new value replaces the old one, call create_memory again with replaces set to its id."
    return CreatedMemory(
        memory_id=done.id,
        status="staged" if done.created else "known",
        normalized={
            "subject": done.subject,
            "topic": done.slot,
            "object": word_value(done.slot, done.object, negated=done.negated, is_chinese=False),
        },
        superseded=done.superseded,
        contradicts=others,
        advice=advice if others else "",
    )


TOOL_TRUST, TOOL_CONFIDENCE = 0.8, 0.8
"""Trust in a language model that calls a tool, and confidence in its statements."""

MAX_CHOICES = 5
"""Most memories that an error names."""

PRESENT, OVER = ("current", "contested", "planned"), ("superseded", "ended")
"""The states of statements that a description may mean."""

CLEAR_LEAD = 0.9
"""A description is ambiguous if another memory has this share of the words that the best one has of it."""


async def described_memory(service: Service, agent_id: str, text: str) -> str:
    """Return the id of the memory that a description means. An id is a description too.

    Raise AMBIGUOUS_MEMORY with up to five candidates if none or more than one fits.
    """
    if node_number(text) is not None:
        return text
    facts = SearchStatementsRequest(
        agent_id=agent_id, query=text, max_results=MAX_CHOICES, mode="fast", include_past=True
    )
    statements = (await search_statements(service, facts)).statements
    lines = await _lines(service, facts.owner, statements)
    found = [
        Candidate(one.id, line, one.content, is_past=one.state in OVER)
        for one, line in zip(statements, lines, strict=True)
        if one.state in (*PRESENT, *OVER)
    ]
    if not found:
        plain = SearchRequest(agent_id=agent_id, query=text, max_results=MAX_CHOICES)
        memories = (await search(service, plain)).memories
        found = [Candidate(one.id, one.content) for one in memories if one.node_ids]
    fitting = _fitting(text, found)
    if len(fitting) == 1:
        return fitting[0].id
    # A description means a fact that is no longer true only if no present one fits it.
    present = [one for one in fitting if not one.is_past]
    if len(present) == 1:
        return present[0].id
    raise NotFound(
        "No memory fits the description; use search_memories to find its id."
        if not fitting
        else "More than one memory fits the description; pass the id of one of them: "
        + "; ".join(f"{one.id}: {one.line}" for one in fitting),
        reason="AMBIGUOUS_MEMORY",
        metadata={one.id: one.line for one in fitting},
    )


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that a description may mean."""

    id: str
    line: str
    content: str = ""
    is_past: bool = False


async def _lines(service: Service, owner: AgentId, statements: Sequence[StatementInfo]) -> list[str]:
    async with service.fleet.using(owner) as agent:
        return [line_of(agent.workspace, one) for one in statements]


def _fitting(text: str, found: Sequence[Candidate]) -> list[Candidate]:
    """Return the memories that share about as many words with a description as the best one; at least one word.

    A memory without a word of the description is never chosen, or the wrong one could be changed.
    """
    words = {word.casefold() for word in words_of(text)}
    shares = [
        len(words & {word.casefold() for word in words_of(f"{one.line} {one.content}")}) for one in found
    ]
    least = CLEAR_LEAD * max(shares, default=0)
    return [one for one, share in zip(found, shares, strict=True) if share and share >= least]


EXECUTIONS: Mapping[str, Execution] = {
    "create_memory": Execution(
        *(WRITE, CreateStatementRequest, _to_create, create_memory),
        arguments={"kind": "memory_type", "since": "time", "content": "sentence"},
    ),
    "search_memories": Execution(
        *(READ, SearchStatementsRequest, _to_search, search_statements), arguments={"kinds": "memory_types"}
    ),
    "link_memories": Execution(
        *(WRITE, CreateLinkRequest, _to_link, create_link),
        described=("source_memory_description", "target_memory_description"),
        arguments={
            "source": "source_memory_description",
            "target": "target_memory_description",
            "relation": "relation_type",
            "strength": "importance",
        },
    ),
    "update_memory_importance": Execution(
        *(WRITE, SetImportanceRequest, _to_weigh, set_importance),
        described=("memory",),
        arguments={"node_id": "memory"},
    ),
    "remember": Execution(
        *(WRITE, RememberRequest, _to_remember, remember),
        arguments={"messages[0].timestamp": "time"}
        | {f"messages[0].{name}": name for name in ("role", "content", "speaker")},
    ),
    "recall": Execution(READ, RecallRequest, _to_recall, recall),
    "forget": Execution(
        *(ADMIN, ForgetRequest, _to_forget, forget_memories), arguments={"nodes": "memories"}
    ),
}
"""How each tool is performed, by its name."""


# --- the operations --------------------------------------------------------------------------------------


async def list_tools(_: Service, request: ListToolsRequest) -> ToolList:
    """Return the declarations of the tools that a language model may call."""
    return ToolList(tools=[one.rendered(request.format, request.lang) for one in schema.TOOLS.values()])


async def get_tool_prompt(_: Service, request: GetToolPromptRequest) -> ToolPrompt:
    """Return instructions on the tools, with examples, for the system prompt of a language model."""
    return ToolPrompt(text=schema.prompt(request.lang, request.role))


async def call_tool(service: Service, request: CallToolRequest) -> ToolResult:
    """Perform the call of a tool as a language model sent it. Its arguments are read leniently.

    Raise SCOPE_MISSING if the key lacks the scope of the tool.
    """
    tool = schema.TOOLS.get(request.name)
    if tool is None:
        refuse("name", request.name, ", ".join(schema.TOOLS))
    execution = EXECUTIONS[tool.name]
    # The rate of the agent was counted when the call arrived; this checks the scope of the tool only.
    CALLER.get().grant.refuse_beyond(of_agent(execution.scope), request.agent_id)
    offset = await offset_of_agent(service, request.owner)
    read_time = partial(period, reference_ms=service.clock.now_ms(), offset=offset)
    reading: Reading = read_arguments(tool, request.arguments, read_time)
    arguments = dict(reading.arguments)
    try:
        for name in execution.described:
            arguments[name] = await described_memory(service, request.agent_id, arguments[name])
        fields = {"agent_id": request.agent_id, **execution.fields(arguments)}
        done = await execution.verb(service, validated(execution.request, fields, service.settings.limits))
    except EbbtideError as error:
        raise for_model(error, execution.arguments) from error
    return ToolResult(result=done.model_dump(mode="json"), noticed=reading.noticed)


_STEPS: Mapping[str, str] = {
    "AGENT_NOT_FOUND": "Nothing is stored yet; create_memory and remember store a memory.",
    "NODE_NOT_FOUND": "search_memories finds the ids of facts.",
    "NODE_FORGOTTEN": "search_memories finds the ids of other facts.",
    "NOT_A_STATEMENT": "search_memories finds the ids of facts.",
}
"""The next step of a model, by reason."""

_ROUTES = ("/v1/", "PATCH ", "PUT ")
"""Parts of the clauses that only a program can follow."""


def for_model(
    error: EbbtideError, arguments: Mapping[str, str], steps: Mapping[str, str] = _STEPS
) -> EbbtideError:
    """Return an error of an operation with arguments for its fields, and a tool to call for its routes."""
    clauses = _with_arguments(error.message, arguments).replace("; ", ";\0").replace(". ", ".\0").split("\0")
    kept = [clause for clause in clauses if not any(route in clause for route in _ROUTES)]
    message = " ".join(kept)
    message = f"{message.removesuffix(';').removesuffix('.')}." if len(kept) < len(clauses) else message
    if step := steps.get(error.reason):
        message = f"{message} {step}"
    return type(error)(
        message,
        reason=error.reason,
        metadata=error.metadata,
        violations=[
            FieldViolation(_with_arguments(f"{one.field}:", arguments)[:-1], one.description)
            for one in error.violations
        ],
        retry_after_s=error.retry_after_s,
    )


def _with_arguments(message: str, arguments: Mapping[str, str]) -> str:
    """Return a message with the argument in place of the field with which it begins."""
    for name, argument in arguments.items():
        if message.startswith((f"{name}:", f"{name}[", f"{name}.")):
            return argument + message.removeprefix(name)
    return message


async def offset_of_agent(service: Service, owner: AgentId) -> Offset:
    """Return the offset of the agent's time zone. An agent that does not exist yet will have the daemon's default."""
    zone = service.settings.memory.time_zone
    with suppress(NotFound):
        async with service.fleet.using(owner) as agent:
            zone = agent.workspace.parameters.time_zone
    return offset_of(zone)


def period(words: str, reference_ms: int, offset: Offset = utc) -> Interval | None:
    """Return the period in milliseconds that words state: ISO 8601, or a time in English or Chinese."""
    try:
        time = datetime.fromisoformat(words.strip()[:40]) if len(words) <= 40 and ":" in words else None
    except ValueError:
        time = None
    found: Interval
    if time is not None and time.tzinfo is not None:
        time_ms = (time - EPOCH) // MILLISECOND
        found = time_ms, time_ms + 1
    else:
        stated = stated_time(words, reference_ms, "question", offset)
        if stated is None:
            return None
        found = stated.since_ms, stated.until_ms
    return found if all(end is None or EARLIEST_MS <= end <= LATEST_MS for end in found) else None
