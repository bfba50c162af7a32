"""Every operation, without I/O: the request that it sends and how its response is read.

`Client` and `AsyncClient` take their methods from here, with signature and docstring, and add only the sending.
A call is safe to repeat (`is_safe`) if it only reads, and `remember` is safe because it always carries an idempotency
key: a retry after a lost connection does not store a batch twice.
"""

from __future__ import annotations

import json
import os
import uuid
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Generic, Literal, NoReturn, Protocol, Self, TypeVar, runtime_checkable
from urllib.parse import quote

from ebbtide_client import decoding, errors
from ebbtide_client.arguments import checked
from ebbtide_client.models import (
    AgentForecast,
    AgentHistory,
    AgentInfo,
    AgentListing,
    AgentMap,
    AgentPage,
    AgentStats,
    Attachment,
    AuditPage,
    AuditRecordInfo,
    AuditVerified,
    BatchInfo,
    BatchPage,
    Causes,
    Cleared,
    Closed,
    Compressing,
    ConflictInfo,
    ConflictPage,
    Consolidated,
    CreatedStatement,
    DeletedNode,
    DeletedNodes,
    EntityInfo,
    EntityPage,
    Erased,
    ErasedAgentPage,
    ErasedAgentRecord,
    EventInfo,
    Flushed,
    FocusInfo,
    Forgotten,
    Found,
    FoundStatements,
    Health,
    LinkInfo,
    LinkPage,
    Me,
    MergePage,
    MergeProposal,
    Message,
    MessageInfo,
    MessagePage,
    ModelInfo,
    NodeDetail,
    NodeHistory,
    NodeImportance,
    NodeInfo,
    NodePage,
    Profile,
    Readiness,
    Recalled,
    RecordResults,
    Remembered,
    Restored,
    RulingInfo,
    RulingPage,
    SchedulerInfo,
    StatementHistory,
    StatementInfo,
    StatementPage,
    StoredRuling,
    ToolList,
    ToolPrompt,
    ToolResult,
)

A_co = TypeVar("A_co", covariant=True)
M = TypeVar("M")
T_co = TypeVar("T_co", covariant=True)

ALWAYS_SENT = ("keywords", "relations")
"""Lists of a recall that are sent even if they are empty."""

AnyMessage = str | Message | Mapping[str, Any]
"""A message: a model, its JSON form, or the text of a message of the user."""

Time = int | str | datetime
"""A time: milliseconds since the epoch, or ISO 8601 where the daemon takes it."""

TimeRange = tuple[Time | None, Time | None]
"""(from, before); None leaves a side open."""

RecallMode = Literal["auto", "associative", "hybrid"]
ArchiveUse = Literal["always", "never", "when_needed"]
MapLinkChoice = Literal["none", "all"]
BatchState = Literal["waiting", "digesting", "digested", "parked"]
Role = Literal["user", "assistant", "system"]
StatementKind = Literal["fact", "event", "relation", "opinion", "preference", "task", "reflection"]
StatementState = Literal[
    "current", "contested", "planned", "superseded", "ended", "corrected", "retracted", "forgotten"
]
RulingKind = Literal[
    "merge", "alias", "settle", "correct", "retract", "pin", "unpin", "vote", "distinct", "cause"
]
Feedback = Literal["pin", "unpin", "upvote", "downvote"]
ToolFormat = Literal["openai", "anthropic", "mcp"]
ToolLanguage = Literal["en", "zh"]
ToolRole = Literal["assistant", "archivist"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedAgent:
    """An agent that exists, and whether this call created it."""

    agent: AgentInfo
    is_new: bool


@dataclass(frozen=True, slots=True)
class Reply:
    """A response as it arrived."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True, slots=True)
class Call(Generic[A_co]):
    """A request, and how to read its response."""

    method: str
    path: str
    parse: Callable[[int, object], A_co]
    body: bytes | None = None
    query: Mapping[str, str] | None = None
    is_safe: bool = False
    waits_s: float = 0.0
    """How long the request asks the daemon to wait. This time is added to the client's timeout."""
    is_long: bool = False
    """Whether the daemon may need up to an hour, as with a large agent."""
    good: frozenset[int] = frozenset({200, 201, 202})
    is_text: bool = False
    """Whether a successful response is plain text."""
    is_file: bool = False
    """Whether a successful response is a file."""

    def read(self, reply: Reply) -> A_co:
        """Return the result in a response. Raise the error that the response reports."""
        answer = None if self.is_file and reply.status in self.good else _json_of(reply)
        misfit = "no error of Ebbtide"
        if reply.status in self.good:
            try:
                if self.is_file:
                    return self.parse(reply.status, reply.content)
                return self.parse(reply.status, _text_of(reply) if self.is_text else answer)
            except decoding.Misfit as error:
                misfit = str(error)
        raise self._error(reply, answer, misfit)

    def _error(self, reply: Reply, answer: object, misfit: str) -> errors.EbbtideError:
        error = answer.get("error") if isinstance(answer, dict) else None
        retry_after_s = _seconds(reply.headers.get("retry-after"))
        request_id = reply.headers.get("x-request-id", "")
        if isinstance(error, dict) and isinstance(error.get("reason"), str):
            return errors.refusal(error, reply.status, retry_after_s, request_id)
        if reply.status in errors.PROXY_CODES:
            return errors.family_of_code(reply.status)(
                f"HTTP {reply.status} without an error body of Ebbtide; probably from a proxy",
                reason="FROM_A_PROXY",
                retry_after_s=retry_after_s,
                http_status=reply.status,
            )
        return _unexpected(reply, misfit)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCall(Call[A_co], Generic[A_co, T_co]):
    """A request for a page of a listing."""

    field: str
    """The field of the page that contains its items."""

    def items(self, page: Any) -> Sequence[T_co]:
        """Return the items of a page."""
        found: Sequence[T_co] = getattr(page, self.field)
        return found

    def next(self, page: Any) -> Self | None:
        """Return the request for the next page, or None after the last one."""
        token = page.next_page_token
        return replace(self, query={**(self.query or {}), "page_token": token}) if token else None


BACKUP_TYPE = "application/octet-stream"
EXPORT_TYPE = "application/x-ndjson"


@runtime_checkable
class Writable(Protocol):
    """A file that takes bytes."""

    def write(self, piece: bytes, /) -> object:
        """Write a piece. Return how many bytes were written."""


@runtime_checkable
class Readable(Protocol):
    """A file that returns bytes."""

    def read(self, size: int, /) -> bytes:
        """Return the next piece; empty at the end."""


Target = str | os.PathLike[str] | Writable
"""Where a file is written: a path, or a file open for writing bytes."""

Origin = str | os.PathLike[str] | Readable
"""Where a file is read from: a path, or a file open for reading bytes."""


@dataclass(frozen=True, slots=True)
class Saving:
    """A download, and where it is written."""

    call: Call[NoReturn]
    to: Target
    media_type: str

    @property
    def headers(self) -> dict[str, str]:
        """Request headers. The file is compressed already."""
        return {"Accept": f"{self.media_type}, application/json", "Accept-Encoding": "identity"}

    def is_answered_by(self, headers: Mapping[str, str]) -> bool:
        """Whether a response is the file."""
        return headers.get("content-type", "").partition(";")[0] == self.media_type


@dataclass(frozen=True, slots=True)
class Sending:
    """An upload, and where it is read from."""

    call: Call[Restored]
    source: Origin
    media_type: str

    @property
    def headers(self) -> dict[str, str]:
        """Request headers."""
        return {"Content-Type": self.media_type}


def _json_of(reply: Reply) -> object:
    try:
        answer: object = json.loads(reply.content)
    except (ValueError, RecursionError):
        return None
    return answer


def _text_of(reply: Reply) -> str | None:
    is_plain = reply.headers.get("content-type", "").startswith("text/plain")
    return reply.content.decode(errors="replace") if is_plain else None


def _unexpected(reply: Reply, what: str) -> errors.UnexpectedAnswer:
    return errors.UnexpectedAnswer(
        f"the response (HTTP {reply.status}) is not that of an Ebbtide daemon: {what}",
        reason="UNEXPECTED_ANSWER",
        http_status=reply.status,
        request_id=reply.headers.get("x-request-id", ""),
    )


def _seconds(text: str | None) -> float | None:
    """Return `Retry-After` in seconds. The daemon never sends a date, so a date counts as absent."""
    return float(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


# --- agents --------------------------------------------------------------------------------------------


@checked
def open_agent(agent_id: str, parameters: Mapping[str, Any] | None = None) -> Call[OpenedAgent]:
    """Create the agent, or return it if it exists with the same parameters.

    Raises Conflict if it exists with other parameters; `update_agent` changes them.
    """
    return Call("PUT", _of(agent_id), _opened, body=_body(dict(parameters or {})))


def _opened(status: int, answer: object) -> OpenedAgent:
    return OpenedAgent(agent=decoding.read(AgentInfo, answer), is_new=status == 201)


@checked
def update_agent(agent_id: str, parameters: Mapping[str, Any]) -> Call[AgentInfo]:
    """Change parameters of an agent. None restores the daemon's default."""
    return Call("PATCH", _of(agent_id), _reads(AgentInfo), body=_body(dict(parameters)))


@checked
def get_agent(agent_id: str) -> Call[AgentInfo]:
    """Return the agent: parameters, counts, focus, waiting batches and owed passes."""
    return _get(_of(agent_id), AgentInfo)


@checked
def get_stats(agent_id: str, *, epsilon: float | None = None) -> Call[AgentStats]:
    """Return how much the agent has stored; with `epsilon`, with the noise of differential privacy.

    Each release spends `epsilon` of the agent's privacy budget, so it is never repeated by itself.
    """
    query = None if epsilon is None else {"epsilon": str(epsilon)}
    return Call("GET", _of(agent_id, "stats"), _reads(AgentStats), query=query, is_safe=query is None)


@checked
def list_agents(*, page_size: int | None = None, page_token: str = "") -> PageCall[AgentPage, AgentListing]:
    """Return a page of agents. No agent is opened."""
    return _page("/v1/agents", AgentPage, "agents", page_size=page_size, page_token=page_token)


@checked
def close_agent(agent_id: str) -> Call[Closed]:
    """Write everything to disk and close the agent until the next request for it."""
    return Call("POST", _of(agent_id, "close"), _reads(Closed))


@checked
def clear_agent(agent_id: str) -> Call[Cleared]:
    """Remove everything that an agent has stored, and keep its id and its parameters. Irreversible."""
    return Call("POST", _of(agent_id, "clear"), _reads(Cleared), is_long=True)


@checked
def delete_agent(agent_id: str) -> Call[Erased]:
    """Delete the agent with everything it contains. Irreversible."""
    return Call("DELETE", _of(agent_id), _reads(Erased))


# --- remember and recall -------------------------------------------------------------------------------


@checked
def remember(
    agent_id: str,
    messages: AnyMessage | Sequence[AnyMessage],
    *,
    conversation_id: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> Call[Remembered]:
    """Store a message or a batch of messages. When it returns, the batch is on disk and becomes memories soon after.

    A string is a message of the user. One batch is one unit of the memory's time, so send what belongs together in
    one call. Without an `idempotency_key` the client creates one: a retry never stores the batch twice.
    """
    several = [messages] if isinstance(messages, str | Message | Mapping) else messages
    form = {
        "messages": [_message(message) for message in several],
        "conversation_id": conversation_id,
        "metadata": None if metadata is None else dict(metadata),
        "idempotency_key": uuid.uuid4().hex if idempotency_key is None else idempotency_key,
    }
    return Call("POST", _of(agent_id, "remember"), _reads(Remembered), body=_body(_given(form)), is_safe=True)


@checked
def recall(
    agent_id: str,
    keywords: Sequence[str] = (),
    *,
    query: str | None = None,
    mode: RecallMode | None = None,
    relations: Sequence[str] = (),
    depth: int | None = None,
    start_nodes: Sequence[str] = (),
    kinds: Sequence[str] = (),
    speakers: Sequence[str] = (),
    sources: Sequence[str] = (),
    time_range: TimeRange | None = None,
    metadata: Mapping[str, Any] | None = None,
    max_results: int | None = None,
    token_budget: int | None = None,
    tokenizer: str | None = None,
    key_sentences: bool | None = None,
    archive: ArchiveUse | None = None,
    citations: bool | None = None,
    explain: bool | None = None,
    dates: bool | None = None,
    without: Sequence[str] = (),
    patience_ms: int | None = None,
) -> Call[Recalled]:
    """Return what the agent remembers, as text for a language model, strongest first.

    With a `query`, the text answers a question over everything that the agent ever received. Without one, it contains
    the memories that the keywords and the focus bring to mind; without keywords, all within reach of the focus. For an
    agent that does not exist the text is empty. `dates` puts the date before each memory, by default with a `query`.
    """
    lists = {
        "keywords": keywords,
        "relations": relations,
        "start_nodes": start_nodes,
        "kinds": kinds,
        "speakers": speakers,
        "sources": sources,
        "without": without,
    }
    form = {
        **{name: words if words or name in ALWAYS_SENT else None for name, words in lists.items()},
        "query": query,
        "mode": mode,
        "depth": depth,
        "time_range": _span(time_range),
        "metadata": None if metadata is None else dict(metadata),
        "max_results": max_results,
        "token_budget": token_budget,
        "tokenizer": tokenizer,
        "key_sentences": key_sentences,
        "archive": archive,
        "citations": citations,
        "explain": explain,
        "dates": dates,
        "patience_ms": patience_ms,
    }
    return _question(_of(agent_id, "recall"), Recalled, form, patience_ms)


@checked
def search(
    agent_id: str,
    query: str | None = None,
    *,
    vector: Sequence[float] = (),
    kinds: Sequence[str] = (),
    speakers: Sequence[str] = (),
    sources: Sequence[str] = (),
    time_range: TimeRange | None = None,
    created_after: Time | None = None,
    metadata: Mapping[str, Any] | None = None,
    max_results: int | None = None,
    archive: ArchiveUse | None = None,
    patience_ms: int | None = None,
    own_words: bool = False,
) -> Call[Found]:
    """Return the memories that answer a question as a list, best first.

    With `own_words` each memory of a found passage is returned by itself. For an agent that does not exist the list is
    empty.
    """
    form = {
        "query": query,
        "vector": vector or None,
        "kinds": kinds,
        "speakers": speakers,
        "sources": sources,
        "time_range": _span(time_range),
        "created_after": created_after,
        "metadata": None if metadata is None else dict(metadata),
        "max_results": max_results,
        "archive": archive,
        "patience_ms": patience_ms,
        "own_words": own_words or None,
    }
    return _question(_of(agent_id, "search"), Found, form, patience_ms)


# --- batches -------------------------------------------------------------------------------------------


@checked
def get_batch(agent_id: str, batch_id: str) -> Call[BatchInfo]:
    """Return the state of a batch."""
    return _get(_of(agent_id, "batches", batch_id), BatchInfo)


@checked
def list_batches(
    agent_id: str, *, state: BatchState | None = None, page_size: int | None = None, page_token: str = ""
) -> PageCall[BatchPage, BatchInfo]:
    """Return a page of batches by number, all or those of one state."""
    path = _of(agent_id, "batches")
    return _page(path, BatchPage, "batches", state=state, page_size=page_size, page_token=page_token)


@checked
def retry_batch(agent_id: str, batch_id: str) -> Call[BatchInfo]:
    """Return a parked batch to the inbox."""
    return Call("POST", _of(agent_id, "batches", batch_id, "retry"), _reads(BatchInfo))


@checked
def flush(
    agent_id: str,
    *,
    timeout_ms: int = 30_000,
    passes: bool = False,
    vectors: bool = False,
    extraction: bool = False,
) -> Call[Flushed]:
    """Wait until all accepted batches are digested; with `passes` no pass is owed, with `vectors` all are embedded,
    with `extraction` statements are extracted from all messages.

    Also returns at the timeout; the fields say what is left.
    """
    return Call(
        "POST",
        _of(agent_id, "flush"),
        _reads(Flushed),
        body=_body(
            {"timeout_ms": timeout_ms, "passes": passes, "vectors": vectors, "extraction": extraction}
        ),
        is_safe=True,
        waits_s=max(0, timeout_ms) / 1000,
    )


@checked
def compress(agent_id: str, *, passes: int = 1) -> Call[Compressing]:
    """Schedule compression passes in addition to those that batches cause."""
    return Call("POST", _of(agent_id, "compress"), _reads(Compressing), body=_body({"passes": passes}))


# --- inspection ----------------------------------------------------------------------------------------


@checked
def get_focus(agent_id: str) -> Call[FocusInfo]:
    """Return the memories and the entities in focus, newest first."""
    return _get(_of(agent_id, "focus"), FocusInfo)


@checked
def list_entities(
    agent_id: str, *, page_size: int | None = None, page_token: str = ""
) -> PageCall[EntityPage, EntityInfo]:
    """Return a page of entities by id: names, and how many memories of each live and are forgotten."""
    path = _of(agent_id, "entities")
    return _page(path, EntityPage, "entities", page_size=page_size, page_token=page_token)


@checked
def get_node(agent_id: str, node_id: str) -> Call[NodeDetail]:
    """Return one node with its links. The reason of NotFound says whether it was forgotten or never existed."""
    return _get(_of(agent_id, "nodes", node_id), NodeDetail)


@checked
def list_messages(
    agent_id: str,
    *,
    metadata: Mapping[str, Any] | None = None,
    page_size: int | None = None,
    page_token: str = "",
) -> PageCall[MessagePage, MessageInfo]:
    """Return a page of stored messages: all, or those that were stored with each of these values of `metadata`."""
    path, chosen = _of(agent_id, "messages"), _json_option(metadata)
    return _page(path, MessagePage, "messages", metadata=chosen, page_size=page_size, page_token=page_token)


@checked
def get_attachment(agent_id: str, message: str, index: int) -> Call[bytes]:
    """Return the content of an attachment, by the id of its message (`m1`) and its position there, from 0."""
    path = _of(agent_id, "messages", message, "attachments", str(index))
    return Call("GET", path, _content, is_safe=True, is_file=True)


def _content(_: int, answer: object) -> bytes:
    if not isinstance(answer, bytes):
        raise decoding.Misfit("no file")
    return answer


@checked
def list_nodes(
    agent_id: str,
    *,
    kinds: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    newest_first: bool = False,
    ids: Sequence[str] = (),
    details: bool = False,
    page_size: int | None = None,
    page_token: str = "",
) -> PageCall[NodePage, NodeInfo]:
    """Return a page of nodes by id: living memories, or the given kinds; with `metadata`, those of such messages.

    With `ids`, at most 100, return these nodes in this order, without those that do not exist. With `details`, they
    are in the field of this name, as `get_node` returns them.
    """
    path = _of(agent_id, "nodes")
    options = {"kinds": ",".join(kinds) or None, "metadata": _json_option(metadata)}
    options["newest_first"] = "true" if newest_first else None
    options["ids"] = ",".join(ids) or None
    options["details"] = "true" if details else None
    return _page(path, NodePage, "nodes", **options, page_size=page_size, page_token=page_token)


@checked
def list_links(
    agent_id: str, *, page_size: int | None = None, page_token: str = ""
) -> PageCall[LinkPage, LinkInfo]:
    """Return a page of links by source."""
    return _page(_of(agent_id, "links"), LinkPage, "links", page_size=page_size, page_token=page_token)


@checked
def get_map(
    agent_id: str, *, links: MapLinkChoice | None = None, page_size: int | None = None, page_token: str = ""
) -> Call[AgentMap]:
    """Return living nodes as columns of numbers, for a picture of the whole memory; with `links="all"`, their links."""
    query = _query(links=links, page_size=page_size, page_token=page_token)
    return Call("GET", _of(agent_id, "map"), _reads(AgentMap), query=query, is_safe=True)


@checked
def get_history(
    agent_id: str,
    *,
    from_pass: int | None = None,
    to_pass: int | None = None,
    page_size: int | None = None,
    page_token: str = "",
) -> Call[AgentHistory]:
    """Return when memories were made, shortened and forgotten, as columns of numbers."""
    query = _query(from_pass=from_pass, to_pass=to_pass, page_size=page_size, page_token=page_token)
    return Call("GET", _of(agent_id, "history"), _reads(AgentHistory), query=query, is_safe=True)


@checked
def forecast(
    agent_id: str,
    *,
    passes: int | None = None,
    memories_per_batch: int | None = None,
    nodes: Sequence[str] = (),
) -> Call[AgentForecast]:
    """Return what the next passes will shorten and forget, if nothing is mentioned again and the parameters stay.

    `passes`: default 200; the response has fewer if they take too long. `memories_per_batch` are those of the unrelated
    batch before each pass; default: the mean of the latest batches. `nodes` limits the forecast to these memories and
    statements.
    """
    form = {"passes": passes, "memories_per_batch": memories_per_batch, "nodes": list(nodes) or None}
    return Call(
        "POST", _of(agent_id, "forecast"), _reads(AgentForecast), body=_body(_given(form)), is_safe=True
    )


@checked
def get_node_history(agent_id: str, node_id: str) -> Call[NodeHistory]:
    """Return the life of a memory or statement, also of a forgotten one."""
    return _get(_of(agent_id, "nodes", node_id, "history"), NodeHistory)


# --- changes and deletion ------------------------------------------------------------------------------


@checked
def pin_node(agent_id: str, node_id: str) -> Call[NodeDetail]:
    """Pin a memory: it is neither shortened nor forgotten until it is unpinned."""
    return Call("PUT", _of(agent_id, "nodes", node_id, "pin"), _reads(NodeDetail), is_safe=True)


@checked
def unpin_node(agent_id: str, node_id: str) -> Call[NodeDetail]:
    """Unpin a memory. Its links with entities decay from now on."""
    return Call("DELETE", _of(agent_id, "nodes", node_id, "pin"), _reads(NodeDetail), is_safe=True)


@checked
def focus_node(agent_id: str, node_id: str) -> Call[FocusInfo]:
    """Move a memory or an entity to the front of the focus. Returns the focus."""
    return Call("PUT", _of(agent_id, "focus", node_id), _reads(FocusInfo))


@checked
def unfocus_node(agent_id: str, node_id: str) -> Call[FocusInfo]:
    """Remove a memory or an entity from the focus. Returns the focus."""
    return Call("DELETE", _of(agent_id, "focus", node_id), _reads(FocusInfo))


@checked
def create_node(
    agent_id: str,
    content: str,
    *,
    kind: str | None = None,
    role: Role | None = None,
    speaker: str | None = None,
    timestamp: Time | None = None,
    message_id: str | None = None,
    conversation_id: str | None = None,
    keywords: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    links: Sequence[Mapping[str, Any]] = (),
    vector: Sequence[float] = (),
    idempotency_key: str | None = None,
) -> Call[NodeDetail]:
    """Create one memory from a text, at once and without a language model.

    `kind` is a word of your own, such as `recipe`, by which lists and queries can be filtered. With `links`
    (`{"target": "n1", "relation": "about", "strength": 0.5}`) it does not join the focus. Without an `idempotency_key`
    the client creates one: a retry never creates it twice.
    """
    form = {
        "content": content,
        "kind": kind,
        "role": role,
        "speaker": speaker,
        "timestamp": timestamp,
        "message_id": message_id,
        "conversation_id": conversation_id,
        "keywords": keywords or None,
        "metadata": None if metadata is None else dict(metadata),
        "links": [dict(link) for link in links] or None,
        "vector": list(vector) or None,
        "idempotency_key": uuid.uuid4().hex if idempotency_key is None else idempotency_key,
    }
    return Call("POST", _of(agent_id, "nodes"), _reads(NodeDetail), body=_body(_given(form)), is_safe=True)


@checked
def update_node(
    agent_id: str,
    node_id: str,
    *,
    content: str | None = None,
    keywords: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> Call[NodeDetail]:
    """Correct the content or the keywords of a memory. Without keywords, those of the new content are used."""
    form = {
        "content": content,
        "keywords": keywords or None,
        "metadata": None if metadata is None else dict(metadata),
    }
    return Call("PATCH", _of(agent_id, "nodes", node_id), _reads(NodeDetail), body=_body(_given(form)))


@checked
def delete_nodes(agent_id: str, node_ids: Sequence[str]) -> Call[DeletedNodes]:
    """Delete up to 1000 memories (`n1`), or messages as search returns them (`m1`). Irreversible."""
    return Call(
        "POST", _of(agent_id, "nodes", "delete"), _reads(DeletedNodes), body=_body({"node_ids": node_ids})
    )


@checked
def delete_node(agent_id: str, node_id: str) -> Call[DeletedNode]:
    """Delete a memory with its links and its source, or what no memory has of a message (`m1`). Irreversible."""
    return Call("DELETE", _of(agent_id, "nodes", node_id), _reads(DeletedNode))


@checked
def forget_memories(
    agent_id: str,
    *,
    nodes: Sequence[str] = (),
    messages: Sequence[str] = (),
    topic: str | None = None,
    time_range: TimeRange | None = None,
    conversations: Sequence[str] = (),
    speakers: Sequence[str] = (),
    records: Sequence[Mapping[str, Any]] = (),
    dry_run: bool = False,
) -> Call[Forgotten]:
    """Delete a selection for good, including its bytes on disk. `dry_run` returns what would be deleted. Irreversible.

    Topic, time_range, conversations and speakers select together; nodes, messages and records are added. A record is
    `{"namespace": [...], "key": "..."}`; without `key` it means all records in the namespace and below it.
    """
    lists = {"nodes": nodes, "messages": messages, "conversations": conversations, "speakers": speakers}
    form = {
        **{name: words or None for name, words in lists.items()},
        "topic": topic,
        "time_range": _span(time_range),
        "records": [dict(one) for one in records] or None,
        "dry_run": dry_run or None,
    }
    return Call(
        "POST",
        _of(agent_id, "forget"),
        _reads(Forgotten),
        body=_body(_given(form)),
        is_safe=dry_run,
        is_long=True,
    )


# --- audit ---------------------------------------------------------------------------------------------


@checked
def list_audit_records(
    agent_id: str, *, newest_first: bool = False, page_size: int | None = None, page_token: str = ""
) -> PageCall[AuditPage, AuditRecordInfo]:
    """Return a page of an agent's audit log: actor, action, time, counts."""
    options = {"newest_first": "true" if newest_first else None, "page_token": page_token}
    return _page(_of(agent_id, "audit"), AuditPage, "records", page_size=page_size, **options)


@checked
def verify_audit(agent_id: str, texts: Sequence[str] = ()) -> Call[AuditVerified]:
    """Check that an agent's audit log is intact, and whether the given texts were deleted there."""
    return _verification(_of(agent_id, "audit", "verify"), {"texts": texts})


@checked
def list_erased_agents(
    *, agent_id: str | None = None, page_size: int | None = None, page_token: str = ""
) -> PageCall[ErasedAgentPage, ErasedAgentRecord]:
    """Return a page of the log of deleted agents, or of the records of one agent."""
    path, options = (
        "/v1/erased-agents",
        {"agent_id": agent_id, "page_size": page_size, "page_token": page_token},
    )
    return _page(path, ErasedAgentPage, "records", **options)


@checked
def verify_erased_agents(texts: Sequence[str] = (), *, agent_id: str | None = None) -> Call[AuditVerified]:
    """Check that the log of deleted agents is intact, and whether they, or one of them, had the given texts."""
    return _verification("/v1/erased-agents/verify", _given({"texts": texts, "agent_id": agent_id}))


# --- files ---------------------------------------------------------------------------------------------


@checked
def backup_agent(agent_id: str, to: Target) -> Saving:
    """Save the agent as one file for `restore_agent`, also while it is in use. Returns the number of bytes.

    A path receives the file once all of it is on disk, and replaces a file of that name. A file open for writing
    receives pieces as they arrive, so after an error it may have some of them.
    """
    return _saving(agent_id, "backup", to, BACKUP_TYPE)


@checked
def export_agent(agent_id: str, to: Target) -> Saving:
    """Save the agent as JSON lines, for people and programs. `to` is as with `backup_agent`."""
    return _saving(agent_id, "export", to, EXPORT_TYPE)


@checked
def restore_agent(agent_id: str, source: Origin, *, replace: bool = False, rename: bool = False) -> Sending:
    """Restore an agent from a backup or an export: a path, or a file open for reading bytes.

    Raises Conflict if the agent exists, unless `replace` is set. Raises Precondition if the file is that of another
    agent, unless `rename` is set. A failed restore changes nothing. A backup contains a database file: restore only
    what you trust.
    """
    return _sending(agent_id, source, BACKUP_TYPE, replace=replace, rename=rename)


@checked
def import_agent(agent_id: str, source: Origin, *, replace: bool = False, rename: bool = False) -> Sending:
    """Restore an agent from an export, as `restore_agent` does. A backup is refused before it is sent."""
    return _sending(agent_id, source, EXPORT_TYPE, replace=replace, rename=rename)


def _saving(agent_id: str, what: str, to: Target, media_type: str) -> Saving:
    call = Call("GET", _of(agent_id, what), _no_file, is_safe=True, is_long=True, good=frozenset({200}))
    return Saving(call, to, media_type)


def _no_file(_: int, __: object) -> NoReturn:
    raise decoding.Misfit("no file")


def _sending(agent_id: str, source: Origin, media_type: str, **options: bool) -> Sending:
    query = {name: "true" for name, is_set in options.items() if is_set}
    call = Call("POST", _of(agent_id, "restore"), _reads(Restored), query=query, is_long=True)
    return Sending(call, source, media_type)


# --- statements ----------------------------------------------------------------------------------------


@checked
def create_statement(
    agent_id: str,
    subject: str,
    topic: str,
    object: str = "",  # noqa: A002
    *,
    kind: StatementKind = "fact",
    content: str = "",
    attributes: Mapping[str, str] | None = None,
    importance: float | None = None,
    negated: bool | None = None,
    modality: Literal["asserted", "reported", "planned"] | None = None,
    since: Time | None = None,
    until: Time | None = None,
    timestamp: Time | None = None,
    replaces: str = "",
    scope: Literal["private", "team", "public"] = "private",
    valence: float | None = None,
    arousal: float | None = None,
    metadata: Mapping[str, Any] | None = None,
    links: Sequence[Mapping[str, Any]] = (),
    vector: Sequence[float] = (),
    idempotency_key: str | None = None,
) -> Call[CreatedStatement]:
    """Store a statement, which is durable and searchable at once. With an idempotency key it is safe to repeat.

    `links` (`{"target": "n1", "relation": "about", "strength": 0.5}`) are added to those with its subject and value.
    `vector` is that of its content.
    """
    form = {
        "subject": subject,
        "topic": topic,
        "object": object or None,
        "kind": kind,
        "content": content or None,
        "attributes": dict(attributes) if attributes else None,
        "importance": importance,
        "negated": negated,
        "modality": modality,
        "since": since,
        "until": until,
        "timestamp": timestamp,
        "replaces": replaces or None,
        "scope": scope,
        "valence": valence,
        "arousal": arousal,
        "metadata": None if metadata is None else dict(metadata),
        "links": [dict(link) for link in links] or None,
        "vector": list(vector) or None,
        "idempotency_key": idempotency_key,
    }
    path, is_safe = _of(agent_id, "statements"), idempotency_key is not None
    return Call("POST", path, _reads(CreatedStatement), body=_body(_given(form)), is_safe=is_safe)


@checked
def list_statements(
    agent_id: str,
    *,
    subject: str = "",
    topic: str = "",
    kinds: Sequence[StatementKind] = (),
    states: Sequence[StatementState] = (),
    as_of: Time | None = None,
    known_at: Time | None = None,
    metadata: Mapping[str, Any] | None = None,
    page_size: int | None = None,
    page_token: str = "",
) -> PageCall[StatementPage, StatementInfo]:
    """Return a page of statements by id: the current ones, or those in the given states.

    With `metadata`, only those that a message with each of these values supports.
    """
    return _page(
        _of(agent_id, "statements"),
        StatementPage,
        "statements",
        subject=subject,
        topic=topic,
        kinds=",".join(kinds),
        states=",".join(states),
        **_times(as_of, known_at),
        metadata=_json_option(metadata),
        page_size=page_size,
        page_token=page_token,
    )


@checked
def get_statement(
    agent_id: str, node_id: str, *, as_of: Time | None = None, known_at: Time | None = None
) -> Call[StatementInfo]:
    """Return a statement with the words that support it."""
    path = _of(agent_id, "statements", node_id)
    return Call("GET", path, _reads(StatementInfo), query=_times(as_of, known_at), is_safe=True)


@checked
def get_statement_history(
    agent_id: str, node_id: str, *, as_of: Time | None = None, known_at: Time | None = None
) -> Call[StatementHistory]:
    """Return all versions of the topic of a statement."""
    path = _of(agent_id, "statements", node_id, "history")
    return Call("GET", path, _reads(StatementHistory), query=_times(as_of, known_at), is_safe=True)


@checked
def correct_statement(
    agent_id: str,
    node_id: str,
    *,
    object: str | None = None,  # noqa: A002
    since: Time | None = None,
    until: Time | None = None,
    negated: bool | None = None,
    replaces: str | None = None,
    reason: str = "",
) -> Call[CreatedStatement]:
    """Correct a statement. The old one stays in the history."""
    form = {"object": object, "since": since, "until": until, "negated": negated, "replaces": replaces}
    form |= {"reason": reason or None}
    return Call(
        "PATCH", _of(agent_id, "statements", node_id), _reads(CreatedStatement), body=_body(_given(form))
    )


@checked
def retract_statement(agent_id: str, node_id: str, *, reason: str = "") -> Call[StoredRuling]:
    """Retract a statement, which was never true."""
    return _ruling(_of(agent_id, "statements", node_id, "retract"), reason=reason or None)


@checked
def search_statements(
    agent_id: str,
    query: str,
    *,
    kinds: Sequence[StatementKind] = (),
    time_range: TimeRange | None = None,
    max_results: int | None = None,
    mode: Literal["fast", "deep", "auto"] = "auto",
    expand_depth: int | None = None,
    as_of: Time | None = None,
    known_at: Time | None = None,
    include_past: bool = False,
) -> Call[FoundStatements]:
    """Return statements that answer a question, best first."""
    form = {
        "query": query,
        "kinds": kinds or None,
        "time_range": _span(time_range),
        "max_results": max_results,
        "mode": mode,
        "expand_depth": expand_depth,
        "as_of": as_of,
        "known_at": known_at,
        "include_past": include_past or None,
    }
    path = _of(agent_id, "statements", "search")
    return Call("POST", path, _reads(FoundStatements), body=_body(_given(form)), is_safe=True)


@checked
def get_causes(
    agent_id: str,
    node_id: str,
    *,
    depth: int | None = None,
    as_of: Time | None = None,
    known_at: Time | None = None,
) -> Call[Causes]:
    """Return the paths of links from a node to its causes, the strongest first."""
    query = {**_times(as_of, known_at), **_given({"depth": depth})}
    return Call("GET", _of(agent_id, "nodes", node_id, "why"), _reads(Causes), query=query, is_safe=True)


@checked
def create_link(
    agent_id: str, source: str, target: str, relation: str, *, strength: float | None = None
) -> Call[LinkInfo]:
    """Create a link between two living nodes, or set its strength."""
    form = {"source": source, "target": target, "relation": relation, "strength": strength}
    return Call("POST", _of(agent_id, "links"), _reads(LinkInfo), body=_body(_given(form)))


@checked
def set_importance(agent_id: str, node_id: str, importance: float) -> Call[NodeImportance]:
    """Set the strength of the links between a memory or a statement and its entities."""
    path, body = _of(agent_id, "nodes", node_id, "importance"), _body({"importance": importance})
    return Call("PUT", path, _reads(NodeImportance), body=body, is_safe=True)


@checked
def get_profile(
    agent_id: str,
    entity: str = "",
    *,
    as_of: Time | None = None,
    known_at: Time | None = None,
    token_budget: int | None = None,
) -> Call[Profile]:
    """Return what is known about a person or a thing, by topic; without `entity` about the user."""
    query = {"entity": entity, "token_budget": "" if token_budget is None else str(token_budget)}
    query = {name: text for name, text in {**query, **_times(as_of, known_at)}.items() if text}
    return Call("GET", _of(agent_id, "profile"), _reads(Profile), query=query, is_safe=True)


@checked
def list_conflicts(
    agent_id: str, *, as_of: Time | None = None, page_size: int | None = None, page_token: str = ""
) -> PageCall[ConflictPage, ConflictInfo]:
    """Return a page of pairs of statements that contradict each other."""
    path = _of(agent_id, "conflicts")
    times = _times(as_of, None)
    return _page(path, ConflictPage, "conflicts", **times, page_size=page_size, page_token=page_token)


@checked
def resolve_conflict(agent_id: str, keep: str, drop: str, *, reason: str = "") -> Call[StoredRuling]:
    """Settle a conflict in favour of one statement."""
    return _ruling(_of(agent_id, "conflicts", "resolve"), keep=keep, drop=drop, reason=reason or None)


@checked
def merge_entities(agent_id: str, entity: str, other: str, *, reason: str = "") -> Call[StoredRuling]:
    """Treat two entities as one in every answer."""
    return _ruling(_of(agent_id, "merges"), entity=entity, other=other, reason=reason or None)


@checked
def list_merges(
    agent_id: str, *, page_size: int | None = None, page_token: str = ""
) -> PageCall[MergePage, MergeProposal]:
    """Return a page of names that may mean one person or thing."""
    return _page(_of(agent_id, "merges"), MergePage, "proposals", page_size=page_size, page_token=page_token)


@checked
def reject_merge(agent_id: str, entity: str, other: str, *, reason: str = "") -> Call[StoredRuling]:
    """Reject a proposal: the two names are not proposed again."""
    return _ruling(_of(agent_id, "merges", "reject"), entity=entity, other=other, reason=reason or None)


@checked
def give_feedback(agent_id: str, node_id: str, action: Feedback, *, reason: str = "") -> Call[StoredRuling]:
    """Pin or unpin a statement, or vote on it."""
    return _ruling(_of(agent_id, "feedback"), node_id=node_id, action=action, reason=reason or None)


@checked
def list_rulings(
    agent_id: str, *, kinds: Sequence[RulingKind] = (), page_size: int | None = None, page_token: str = ""
) -> PageCall[RulingPage, RulingInfo]:
    """Return a page of the rulings in effect."""
    path, chosen = _of(agent_id, "rulings"), ",".join(kinds)
    return _page(path, RulingPage, "rulings", kinds=chosen, page_size=page_size, page_token=page_token)


@checked
def undo_ruling(agent_id: str, ruling_id: str) -> Call[StoredRuling]:
    """Undo a ruling: a merge, a settled conflict, a correction, a retraction, a pin or a vote."""
    return Call("DELETE", _of(agent_id, "rulings", ruling_id), _reads(StoredRuling))


@checked
def consolidate(agent_id: str, *, dry_run: bool = False) -> Call[Consolidated]:
    """Consolidate the statements now, or only return what that would change."""
    return Call("POST", _of(agent_id, "consolidate"), _reads(Consolidated), body=_body({"dry_run": dry_run}))


def _ruling(path: str, **form: str | None) -> Call[StoredRuling]:
    return Call("POST", path, _reads(StoredRuling), body=_body(_given(form)))


def _times(as_of: Time | None, known_at: Time | None) -> dict[str, str]:
    """Return the times of a question as texts of a query."""
    given = {"as_of": as_of, "known_at": known_at}
    return {
        name: time.isoformat() if isinstance(time, datetime) else str(time)
        for name, time in given.items()
        if time is not None
    }


# --- records -------------------------------------------------------------------------------------------

RECORD_READS = ("get", "search", "namespaces")
"""The operations on records that change nothing."""


@checked
def batch_records(agent_id: str, ops: Sequence[Mapping[str, Any]]) -> Call[RecordResults]:
    """Read and write records in one transaction: all writes happen, in order, or none. Reads see the state before it.

    An operation is an object such as `{"op": "put", "namespace": ["users"], "key": "ann", "value": {...}}`. A batch
    with writes is not repeated after a lost connection: it may have been performed.
    """
    is_safe = all(one.get("op") in RECORD_READS and not one.get("refresh_ttl") for one in ops)
    body = _body({"ops": [dict(one) for one in ops]})
    return Call("POST", _of(agent_id, "records", "batch"), _reads(RecordResults), body=body, is_safe=is_safe)


# --- tools ---------------------------------------------------------------------------------------------


@checked
def list_tools(*, format: ToolFormat = "openai", lang: ToolLanguage = "en") -> Call[ToolList]:  # noqa: A002
    """Return the declarations of the tools that a language model may call."""
    query = {"format": format, "lang": lang}
    return Call("GET", "/v1/tools", _reads(ToolList), query=query, is_safe=True)


@checked
def get_tool_prompt(*, lang: ToolLanguage = "en", role: ToolRole = "assistant") -> Call[ToolPrompt]:
    """Return instructions on the tools, with examples, for the system prompt of a language model."""
    query = {"lang": lang, "role": role}
    return Call("GET", "/v1/tools/prompt", _reads(ToolPrompt), query=query, is_safe=True)


@checked
def call_tool(agent_id: str, name: str, arguments: Mapping[str, Any] | str | None = None) -> Call[ToolResult]:
    """Perform the call of a tool as a language model sent it. Its arguments are read leniently.

    It is not repeated after a lost connection, since it may store something.
    """
    body = _body({"arguments": dict(arguments) if isinstance(arguments, Mapping) else arguments})
    return Call("POST", _of(agent_id, "tools", name), _reads(ToolResult), body=body, is_long=True)


# --- events --------------------------------------------------------------------------------------------


@checked
def watch_events(agent_id: str, *, after: int | None = None, follow: bool = True) -> Call[EventInfo]:
    """Return the events of an agent after a number, without end unless `follow` is False.

    Without `after` the stream begins with the oldest stored event, with -1 with the next one. A lost connection is
    resumed where it broke off. Raises NotFound (EVENTS_GONE) if events in between are no longer stored.
    """
    query = {"follow": "true" if follow else "false"} | ({} if after is None else {"after": str(after)})
    return Call("GET", _of(agent_id, "events"), _reads(EventInfo), query=query, is_safe=True)


# --- the daemon ----------------------------------------------------------------------------------------


@checked
def get_health() -> Call[Health]:
    """Return whether the process is alive. This says nothing about its work."""
    return _get("/healthz", Health)


@checked
def get_readiness() -> Call[Readiness]:
    """Return whether requests are accepted, and what is wrong. `unavailable` is a result, not an error."""
    return replace(_get("/readyz", Readiness), good=frozenset({200, 503}))


@checked
def get_me() -> Call[Me]:
    """Return what the API key may do: its scopes, and the agents that it reaches."""
    return _get("/v1/me", Me)


@checked
def get_model() -> Call[ModelInfo]:
    """Return which language model is in use, whether it answers, and how its replies parse."""
    return _get("/v1/model", ModelInfo)


@checked
def get_scheduler() -> Call[SchedulerInfo]:
    """Return which agents compress now and which wait."""
    return _get("/v1/scheduler", SchedulerInfo)


@checked
def get_metrics() -> Call[str]:
    """Return all metrics in the text format of Prometheus."""
    return Call("GET", "/metrics", _as_text, is_safe=True, is_text=True)


def _as_text(_: int, answer: object) -> str:
    if not isinstance(answer, str):
        raise decoding.Misfit("no text")
    return answer


# --- parts ---------------------------------------------------------------------------------------------


def _get(path: str, kind: type[M]) -> Call[M]:
    return Call("GET", path, _reads(kind), is_safe=True)


def _page(path: str, kind: type[M], field: str, **options: str | int | None) -> PageCall[M, Any]:
    return PageCall("GET", path, _reads(kind), query=_query(**options), is_safe=True, field=field)


def _query(**options: str | int | None) -> dict[str, str]:
    """Return the options that are given."""
    return {name: str(value) for name, value in options.items() if value not in (None, "")}


def _json_option(value: Mapping[str, Any] | None) -> str | None:
    """Return an object as an option of a query."""
    return None if value is None else _body(dict(value)).decode()


def _question(path: str, kind: type[M], form: Mapping[str, Any], patience_ms: int | None) -> Call[M]:
    waits_s = max(0, patience_ms or 0) / 1000
    return Call("POST", path, _reads(kind), body=_body(_given(form)), is_safe=True, waits_s=waits_s)


def _verification(path: str, form: Mapping[str, Any]) -> Call[AuditVerified]:
    return Call("POST", path, _reads(AuditVerified), body=_body(form), is_safe=True, is_long=True)


def _reads(kind: type[M]) -> Callable[[int, object], M]:
    return partial(_read_as, kind)


def _read_as(kind: type[M], _: int, answer: object) -> M:
    return decoding.read(kind, answer)


def _of(agent_id: str, *rest: str) -> str:
    return "/".join(("/v1/agents", _segment("agent_id", agent_id), *(_segment("id", part) for part in rest)))


def _segment(field: str, text: str) -> str:
    try:
        quoted = quote(text, safe="")
    except UnicodeEncodeError:  # a lone surrogate
        quoted = ""
    # An empty segment, or one that URLs resolve as a folder, would make the path that of another operation.
    if quoted in ("", ".", ".."):
        description = "cannot be part of a URL" if text else "empty"
        raise errors.InvalidRequest(
            f"{field}: {description}",
            reason="INVALID_AGENT_ID" if field == "agent_id" else "INVALID_VALUE",
            violations=[errors.FieldViolation(field, description)],
        )
    return quoted


def _message(message: AnyMessage) -> dict[str, Any]:
    if isinstance(message, str):
        return {"role": "user", "content": message}
    form = _given(asdict(message)) if isinstance(message, Message) else dict(message)
    attachments = form.get("attachments")
    if isinstance(attachments, list | tuple):
        form["attachments"] = [_attachment(one) for one in attachments]
    return form


def _attachment(attachment: object) -> object:
    """Return an attachment as JSON: a model as an object, and bytes in base64."""
    if isinstance(attachment, Attachment):
        attachment = asdict(attachment)
    if not isinstance(attachment, Mapping):
        return attachment
    form = _given(attachment)
    if isinstance(form.get("bytes"), bytes):
        form["bytes"] = b64encode(form["bytes"]).decode()
    if "regions" in form:
        form["regions"] = [_given(one) if isinstance(one, Mapping) else one for one in form["regions"]]
    return form


def _span(time_range: TimeRange | None) -> dict[str, Any] | None:
    if time_range is None:
        return None
    begin, end = time_range
    return _given({"begin": begin, "end": end})


def _given(form: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in form.items() if value is not None}


def _time(value: object) -> str:
    """Return an aware datetime as ISO 8601, which the daemon accepts as a time."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.isoformat()
    expected = "a datetime with a time zone" if isinstance(value, datetime) else "a JSON value"
    raise TypeError(f"a request takes {expected}, not {value!r}")


def _body(form: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(form, ensure_ascii=False, default=_time).encode()
    except UnicodeEncodeError:
        # A lone surrogate: the daemon's error names the field.
        return json.dumps(form, default=_time).encode()
