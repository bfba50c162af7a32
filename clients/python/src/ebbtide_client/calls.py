"""Every verb once, without any I/O: the request it makes and how its answer is read.

`Client` and `AsyncClient` take their methods from here, with signature and docstring; all they add is sending.
A call says whether it may be sent twice (`is_safe`): what only reads, and `remember`, which always carries an
idempotency key, so that sending it again after a lost connection does the work once.
"""

from __future__ import annotations

import inspect
import json
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial, wraps
from typing import Any, Generic, NoReturn, Protocol, TypeVar
from urllib.parse import quote

from ebbtide_client import errors, models
from ebbtide_client.models import (
    AgentInfo,
    AgentPage,
    ArchiveUse,
    AuditPage,
    AuditVerified,
    BatchInfo,
    BatchPage,
    BatchState,
    Closed,
    Compressing,
    DeletedNode,
    DeletedNodes,
    Erased,
    ErasedAgentPage,
    EventInfo,
    Flushed,
    FocusInfo,
    Forgotten,
    Found,
    Health,
    Initialised,
    LinkPage,
    Message,
    ModelInfo,
    NodeDetail,
    NodePage,
    Readiness,
    Recalled,
    RecallMode,
    Remembered,
    Restored,
    SchedulerInfo,
)

A_co = TypeVar("A_co", covariant=True)
M = TypeVar("M")
F = TypeVar("F", bound=Callable[..., Any])

ALWAYS_SENT = ("keywords", "relations")
"""Lists of a recall that are sent empty too."""

AnyMessage = Message | Mapping[str, Any]
"""A message, or the mapping it is in JSON."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as it came."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True, slots=True)
class Call(Generic[A_co]):
    """A request, and how to read its answer."""

    method: str
    path: str
    parse: Callable[[int, object], A_co]
    body: bytes | None = None
    query: Mapping[str, str] | None = None
    is_safe: bool = False
    waits_s: float = 0.0
    """How long the daemon may take because it was asked to wait; added to the client's own timeout."""
    good: frozenset[int] = frozenset({200, 201, 202})
    is_text: bool = False
    """Whether a good answer is plain text."""

    def read(self, reply: Reply) -> A_co:
        """The answer in a reply, or the error that it tells of."""
        answer = _json_of(reply)
        misfit = "no error of Ebbtide"
        if reply.status in self.good:
            try:
                return self.parse(reply.status, _text_of(reply) if self.is_text else answer)
            except models.Misfit as error:
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
                f"HTTP {reply.status}, not in the words of an Ebbtide daemon",
                reason="FROM_A_PROXY",
                retry_after_s=retry_after_s,
                http_status=reply.status,
            )
        return _unexpected(reply, misfit)

    def on_page(self, token: str) -> Call[A_co]:
        """The same listing from another page on."""
        return replace(self, query={**(self.query or {}), "page_token": token})


BACKUP_TYPE = "application/octet-stream"
EXPORT_TYPE = "application/x-ndjson"


class Writable(Protocol):
    """A file that takes bytes."""

    def write(self, piece: bytes, /) -> object:
        """Take a piece; how much of it was taken."""


class Readable(Protocol):
    """A file that gives bytes."""

    def read(self, size: int, /) -> bytes:
        """The next piece; empty at the end."""


Target = str | os.PathLike[str] | Writable
"""Where a file goes: a path, or something open for writing bytes."""

Origin = str | os.PathLike[str] | Readable
"""Where a file comes from: a path, or something open for reading bytes."""


@dataclass(frozen=True, slots=True)
class Saving:
    """A file that is asked for, and where it goes."""

    call: Call[NoReturn]
    to: Target
    media_type: str

    @property
    def headers(self) -> dict[str, str]:
        """What is sent with the request. It is packed already."""
        return {"Accept": f"{self.media_type}, application/json", "Accept-Encoding": "identity"}

    def is_answered_by(self, headers: Mapping[str, str]) -> bool:
        """Whether what comes is the file."""
        return headers.get("content-type", "").partition(";")[0] == self.media_type


@dataclass(frozen=True, slots=True)
class Sending:
    """A file that is handed over, and from where."""

    call: Call[Restored]
    source: Origin
    media_type: str

    @property
    def headers(self) -> dict[str, str]:
        """What is sent with the request."""
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
        f"the answer (HTTP {reply.status}) is not that of an Ebbtide daemon: {what}",
        reason="UNEXPECTED_ANSWER",
        http_status=reply.status,
        request_id=reply.headers.get("x-request-id", ""),
    )


def _seconds(text: str | None) -> float | None:
    """`Retry-After` in seconds; a date, which the daemon never sends, counts as none."""
    return float(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


def as_method(build: Callable[..., Any]) -> Callable[[F], F]:
    """Give the method that sends a call the name, docstring and signature of what builds it."""

    def dress(method: F) -> F:
        wraps(build)(method)
        signature = inspect.signature(build)
        this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        method.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[this, *signature.parameters.values()], return_annotation=inspect.Signature.empty
        )
        return method

    return dress


# --- agents --------------------------------------------------------------------------------------------


def initialise(agent_id: str, parameters: Mapping[str, Any] | None = None) -> Call[Initialised]:
    """Bring an agent into being with parameters of its own, or find that it is as asked.

    Raises Conflict when it exists with other parameters; `update` changes them.
    """
    return Call("PUT", _of(agent_id), _initialised, body=_body(dict(parameters or {})))


def _initialised(status: int, answer: object) -> Initialised:
    return Initialised(agent=models.read(AgentInfo, answer), is_new=status == 201)


def update(agent_id: str, parameters: Mapping[str, Any]) -> Call[AgentInfo]:
    """Change parameters of an agent; None goes back to the daemon's default."""
    return Call("PATCH", _of(agent_id), _reads(AgentInfo), body=_body(dict(parameters)))


def get_agent(agent_id: str) -> Call[AgentInfo]:
    """The agent at this moment: parameters, counts, focus, what waits and what it owes."""
    return _get(_of(agent_id), AgentInfo)


def list_agents(*, page_size: int | None = None, page_token: str = "") -> Call[AgentPage]:
    """A page of agents, without opening any."""
    return _get("/v1/agents", AgentPage, page_size=page_size, page_token=page_token)


def close_agent(agent_id: str) -> Call[Closed]:
    """Put everything on disk and let the agent rest until the next verb."""
    return Call("POST", _of(agent_id, "close"), _reads(Closed))


def erase(agent_id: str) -> Call[Erased]:
    """Erase an agent with everything it holds. Irreversible."""
    return Call("DELETE", _of(agent_id), _reads(Erased))


# --- remember and recall -------------------------------------------------------------------------------


def remember(
    agent_id: str,
    messages: Sequence[AnyMessage],
    *,
    conversation_id: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> Call[Remembered]:
    """Store a batch of messages; on return it is on disk, and becomes memories soon after.

    One batch is one unit of the memory's time: send what belongs together in one call. Without a key of your own
    one is made up, so that a retry after a lost connection never stores the batch twice.
    """
    form = {
        "messages": [_message(message) for message in messages],
        "conversation_id": conversation_id,
        "metadata": None if metadata is None else dict(metadata),
        "idempotency_key": uuid.uuid4().hex if idempotency_key is None else idempotency_key,
    }
    return Call("POST", _of(agent_id, "remember"), _reads(Remembered), body=_body(_given(form)), is_safe=True)


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
    time_range: tuple[int | None, int | None] | None = None,
    metadata: Mapping[str, Any] | None = None,
    max_results: int | None = None,
    token_budget: int | None = None,
    tokenizer: str | None = None,
    key_sentences: bool | None = None,
    archive: ArchiveUse | None = None,
    citations: bool | None = None,
    explain: bool | None = None,
    without: Sequence[str] = (),
    patience_ms: int | None = None,
) -> Call[Recalled]:
    """What the agent remembers near its focus, as text for a language model, strongest first.

    A memory matches when any of the keywords occurs in it; none matches everything in reach. With a `query`:
    the answer to a question over everything the agent ever heard, best first. `time_range` is (from, before) in
    ms since the epoch.
    """
    several = {
        "keywords": keywords,
        "relations": relations,
        "start_nodes": start_nodes,
        "kinds": kinds,
        "speakers": speakers,
        "sources": sources,
        "without": without,
    }
    lists = {name: _words(name, words) for name, words in several.items()}
    span = dict(zip(("begin", "end"), time_range, strict=True)) if time_range is not None else None
    form = {
        **{name: words if words or name in ALWAYS_SENT else None for name, words in lists.items()},
        "query": query,
        "mode": mode,
        "depth": depth,
        "time_range": None if span is None else _given(span),
        "metadata": None if metadata is None else dict(metadata),
        "max_results": max_results,
        "token_budget": token_budget,
        "tokenizer": tokenizer,
        "key_sentences": key_sentences,
        "archive": archive,
        "citations": citations,
        "explain": explain,
        "patience_ms": patience_ms,
    }
    return Call(
        "POST",
        _of(agent_id, "recall"),
        _reads(Recalled),
        body=_body(_given(form)),
        is_safe=True,
        waits_s=max(0, patience_ms or 0) / 1000,
    )


def search(
    agent_id: str,
    query: str | None = None,
    *,
    vector: Sequence[float] = (),
    kinds: Sequence[str] = (),
    speakers: Sequence[str] = (),
    sources: Sequence[str] = (),
    time_range: tuple[int | None, int | None] | None = None,
    metadata: Mapping[str, Any] | None = None,
    max_results: int | None = None,
    archive: ArchiveUse | None = None,
    patience_ms: int | None = None,
    created_after: int | None = None,
) -> Call[Found]:
    """The memories that answer a question, best first: a recall with a `query` for who wants results, not wording."""
    span = dict(zip(("begin", "end"), time_range, strict=True)) if time_range is not None else None
    form = {
        "query": query,
        "vector": list(vector) or None,
        "kinds": _words("kinds", kinds),
        "speakers": _words("speakers", speakers),
        "sources": _words("sources", sources),
        "time_range": None if span is None else _given(span),
        "metadata": None if metadata is None else dict(metadata),
        "max_results": max_results,
        "archive": archive,
        "patience_ms": patience_ms,
        "created_after": created_after,
    }
    return Call(
        "POST",
        _of(agent_id, "search"),
        _reads(Found),
        body=_body(_given(form)),
        is_safe=True,
        waits_s=max(0, patience_ms or 0) / 1000,
    )


# --- batches -------------------------------------------------------------------------------------------


def get_batch(agent_id: str, batch_id: str) -> Call[BatchInfo]:
    """What became of a batch."""
    return _get(_of(agent_id, "batches", batch_id), BatchInfo)


def list_batches(
    agent_id: str, *, state: BatchState | None = None, page_size: int | None = None, page_token: str = ""
) -> Call[BatchPage]:
    """A page of batches by number, of one state if one is named."""
    return _get(_of(agent_id, "batches"), BatchPage, state=state, page_size=page_size, page_token=page_token)


def retry_batch(agent_id: str, batch_id: str) -> Call[BatchInfo]:
    """Put a parked batch back into the inbox."""
    return Call("POST", _of(agent_id, "batches", batch_id, "retry"), _reads(BatchInfo))


def flush(
    agent_id: str, *, timeout_ms: int = 30_000, passes: bool = False, vectors: bool = False
) -> Call[Flushed]:
    """Wait until what was accepted is digested; with `passes` until no pass is owed, with `vectors` embedded.

    Also returns when the time ran out: the fields say where things stand.
    """
    return Call(
        "POST",
        _of(agent_id, "flush"),
        _reads(Flushed),
        body=_body({"timeout_ms": timeout_ms, "passes": passes, "vectors": vectors}),
        is_safe=True,
        waits_s=max(0, timeout_ms) / 1000,
    )


def compress(agent_id: str, *, passes: int = 1) -> Call[Compressing]:
    """Owe the agent compression passes beyond those its batches bring: let time go by for it."""
    return Call("POST", _of(agent_id, "compress"), _reads(Compressing), body=_body({"passes": passes}))


# --- looking inside ------------------------------------------------------------------------------------


def get_focus(agent_id: str) -> Call[FocusInfo]:
    """The memories in focus, newest first."""
    return _get(_of(agent_id, "focus"), FocusInfo)


def get_node(agent_id: str, node_id: str) -> Call[NodeDetail]:
    """One memory with its live links. NotFound tells a forgotten memory from one that never was, by its reason."""
    return _get(_of(agent_id, "nodes", node_id), NodeDetail)


def list_nodes(agent_id: str, *, page_size: int | None = None, page_token: str = "") -> Call[NodePage]:
    """A page of living memories by id."""
    return _get(_of(agent_id, "nodes"), NodePage, page_size=page_size, page_token=page_token)


def list_links(agent_id: str, *, page_size: int | None = None, page_token: str = "") -> Call[LinkPage]:
    """A page of live links by source."""
    return _get(_of(agent_id, "links"), LinkPage, page_size=page_size, page_token=page_token)


# --- memories that are there ---------------------------------------------------------------------------


def update_node(
    agent_id: str,
    node_id: str,
    *,
    content: str | None = None,
    keywords: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> Call[NodeDetail]:
    """Correct a memory: what it says, what it is found by. Without keywords those of the new content are taken."""
    form = {
        "content": content,
        "keywords": _words("keywords", keywords) or None,
        "metadata": None if metadata is None else dict(metadata),
    }
    return Call("PATCH", _of(agent_id, "nodes", node_id), _reads(NodeDetail), body=_body(_given(form)))


def delete_nodes(agent_id: str, node_ids: Sequence[str]) -> Call[DeletedNodes]:
    """Delete many memories, or messages as search tells them, at most 1000, and tell what became of each.

    Irreversible.
    """
    form = {"node_ids": _words("node_ids", node_ids)}
    return Call("POST", _of(agent_id, "nodes", "delete"), _reads(DeletedNodes), body=_body(form))


def delete_node(agent_id: str, node_id: str) -> Call[DeletedNode]:
    """Delete one memory with its links and what it was made from, or what no living memory has of a message (`m1`).

    Irreversible.
    """
    return Call("DELETE", _of(agent_id, "nodes", node_id), _reads(DeletedNode))


def forget(
    agent_id: str,
    *,
    nodes: Sequence[str] = (),
    messages: Sequence[str] = (),
    topic: str | None = None,
    time_range: tuple[int | None, int | None] | None = None,
    conversations: Sequence[str] = (),
    speakers: Sequence[str] = (),
    dry_run: bool = False,
) -> Call[Forgotten]:
    """Forget a selection for good, bytes on disk included, or with `dry_run` tell what would go. Irreversible.

    What narrows (topic, time_range, conversations, speakers) holds together; nodes and messages come on top.
    `time_range` is (from, before) in ms since the epoch.
    """
    several = {"nodes": nodes, "messages": messages, "conversations": conversations, "speakers": speakers}
    span = dict(zip(("begin", "end"), time_range, strict=True)) if time_range is not None else None
    form = {
        **{name: _words(name, words) if words else None for name, words in several.items()},
        "topic": topic,
        "time_range": None if span is None else _given(span),
        "dry_run": dry_run or None,
    }
    return Call("POST", _of(agent_id, "forget"), _reads(Forgotten), body=_body(_given(form)), is_safe=dry_run)


def list_audit(agent_id: str, *, page_size: int | None = None, page_token: str = "") -> Call[AuditPage]:
    """A page of an agent's audit log: who did what to it, when, to how much."""
    return _get(_of(agent_id, "audit"), AuditPage, page_size=page_size, page_token=page_token)


def verify_audit(agent_id: str, texts: Sequence[str] = ()) -> Call[AuditVerified]:
    """Whether an agent's audit log is whole, and whether texts that you hold were erased there."""
    form = {"texts": _words("texts", texts)}
    return Call(
        "POST", _of(agent_id, "audit", "verify"), _reads(AuditVerified), body=_body(form), is_safe=True
    )


def list_erased_agents(
    *, agent_id: str | None = None, page_size: int | None = None, page_token: str = ""
) -> Call[ErasedAgentPage]:
    """A page of the log of erased agents, or of the records of one: who is gone, by whom, how much it held."""
    return _get(
        "/v1/erased-agents", ErasedAgentPage, agent_id=agent_id, page_size=page_size, page_token=page_token
    )


def verify_erased_agents(texts: Sequence[str] = (), *, agent_id: str | None = None) -> Call[AuditVerified]:
    """Whether the log of erased agents is whole, and whether texts were among what they held, or one of them did."""
    form = _given({"texts": _words("texts", texts), "agent_id": agent_id})
    return Call("POST", "/v1/erased-agents/verify", _reads(AuditVerified), body=_body(form), is_safe=True)


# --- files ---------------------------------------------------------------------------------------------


def backup(agent_id: str, to: Target) -> Saving:
    """Save an agent as it is now as one file, for `restore`; also while it is at work. Answers the bytes written.

    At a path the file is there once all of it is, in the place of one of that name. Something that is open for writing
    bytes gets them as they come, so after an error it may have got some.
    """
    return _saving(agent_id, "backup", to, BACKUP_TYPE)


def export(agent_id: str, to: Target) -> Saving:
    """Save an agent as it is now as JSON lines, for people and programs; `to` is as with `backup`."""
    return _saving(agent_id, "export", to, EXPORT_TYPE)


def restore(agent_id: str, source: Origin, *, replace: bool = False, rename: bool = False) -> Sending:
    """Bring an agent back from a backup or an export: a path, or something open for reading bytes.

    Raises Conflict when there is an agent of this id, unless it may `replace` it, and Precondition when the file is of
    an agent with another id, unless it may `rename` it. Whatever is refused or cut off leaves everything as it was.
    A backup holds a database file: restore only what you trust.
    """
    return _sending(agent_id, source, BACKUP_TYPE, replace=replace, rename=rename)


def import_agent(agent_id: str, source: Origin, *, replace: bool = False, rename: bool = False) -> Sending:
    """Bring an agent back from an export, as `restore` does, and from nothing else: a backup is not sent."""
    return _sending(agent_id, source, EXPORT_TYPE, replace=replace, rename=rename)


def _saving(agent_id: str, what: str, to: Target, media_type: str) -> Saving:
    call = Call("GET", _of(agent_id, what), _no_file, is_safe=True, good=frozenset({200}))
    return Saving(call, to, media_type)


def _no_file(_: int, __: object) -> NoReturn:
    raise models.Misfit("no file")


def _sending(agent_id: str, source: Origin, media_type: str, **options: bool) -> Sending:
    query = {name: "true" for name, is_wanted in options.items() if is_wanted}
    call = Call("POST", _of(agent_id, "restore"), _reads(Restored), query=query)
    return Sending(call, source, media_type)


# --- events --------------------------------------------------------------------------------------------


def events(agent_id: str, *, after: int | None = None, follow: bool = True) -> Call[EventInfo]:
    """What happens to an agent's memory, event by event, after the one of a number; for ever, unless not to `follow`.

    Without `after` it begins with the oldest event that is kept, with -1 with the next one to come. A lost connection
    is taken up where it broke off. NotFound (EVENTS_GONE) where events in between are no longer kept.
    """
    query = {"follow": "true" if follow else "false"} | ({} if after is None else {"after": str(after)})
    return Call("GET", _of(agent_id, "events"), _reads(EventInfo), query=query, is_safe=True)


# --- the daemon ----------------------------------------------------------------------------------------


def get_health() -> Call[Health]:
    """Whether the process is alive; says nothing about its work."""
    return _get("/healthz", Health)


def get_readiness() -> Call[Readiness]:
    """Whether requests are accepted, and what is wrong if something is; `unavailable` is an answer, no error."""
    return replace(_get("/readyz", Readiness), good=frozenset({200, 503}))


def get_model() -> Call[ModelInfo]:
    """Which language model is in force, whether it answers, how its replies parse."""
    return _get("/v1/model", ModelInfo)


def get_scheduler() -> Call[SchedulerInfo]:
    """Who compresses now and who waits for a turn."""
    return _get("/v1/scheduler", SchedulerInfo)


def get_metrics() -> Call[str]:
    """Everything that is counted, in the text format of Prometheus."""
    return Call("GET", "/metrics", _as_text, is_safe=True, is_text=True)


def _as_text(_: int, answer: object) -> str:
    if not isinstance(answer, str):
        raise models.Misfit("no text")
    return answer


# --- parts ---------------------------------------------------------------------------------------------


def _get(path: str, kind: type[M], **options: str | int | None) -> Call[M]:
    query = {name: str(value) for name, value in options.items() if value not in (None, "")}
    return Call("GET", path, _reads(kind), query=query, is_safe=True)


def _reads(kind: type[M]) -> Callable[[int, object], M]:
    return partial(_read_as, kind)


def _read_as(kind: type[M], _: int, answer: object) -> M:
    return models.read(kind, answer)


def _of(agent_id: str, *rest: str) -> str:
    return "/".join(("/v1/agents", _segment("agent_id", agent_id), *(_segment("id", part) for part in rest)))


def _segment(field: str, text: str) -> str:
    if not text:  # the path would be that of something else
        description = "empty"
        raise errors.InvalidRequest(
            f"{field}: {description}",
            reason="INVALID_AGENT_ID" if field == "agent_id" else "INVALID_VALUE",
            violations=[errors.FieldViolation(field, description)],
        )
    quoted = quote(text, safe="", errors="surrogatepass")
    # A segment of dots only would be taken as a way up the path before it is sent.
    return quoted if text.strip(".") else quoted.replace(".", "%2E")


def _message(message: AnyMessage) -> dict[str, Any]:
    if isinstance(message, Message):
        return _given({field.name: getattr(message, field.name) for field in fields(message)})
    return dict(message)


def _words(name: str, words: Sequence[str]) -> list[str]:
    if isinstance(words, str):  # would be sent as a list of its characters
        raise TypeError(f"{name} must be a list of words, not one text")
    return list(words)


def _given(form: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in form.items() if value is not None}


def _body(form: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(form, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a lone surrogate: the daemon says which field has it
        return json.dumps(form).encode()
