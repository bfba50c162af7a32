"""records: JSON objects that the caller stores by namespace and key, and reads again exactly as they were.

A record is no memory: it does not fade, and only a recall of the kind `record` returns it. A search with a query finds
it by its words.
`fleet/records/batch.py` runs a batch. The agent's PII policy covers records as it covers messages: under `redact`,
personal data in a value is replaced by its kind, and in labels and keys by a keyed form, on writing and on reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import to_json

from ebbtide.access.grants import CALLER
from ebbtide.access.requirements import READ, WRITE, of_agent
from ebbtide.actor import actor
from ebbtide.bounds import (
    MAX_COUNT,
    MAX_INDEX_PATHS,
    MAX_LABEL_CHARS,
    MAX_LABELS,
    MAX_NUMBER,
    MAX_RECORD_BYTES,
    MAX_RECORD_DEPTH,
    MAX_RECORD_KEY_CHARS,
    MAX_TTL_MINUTES,
)
from ebbtide.fleet.deletion.records import value_of
from ebbtide.fleet.ingest.admission import PolicyChanged
from ebbtide.fleet.records import batch
from ebbtide.fleet.records.matching import OF_ORDER, OPERATORS, Pattern, is_number, is_of_operators
from ebbtide.fleet.records.searching import PATH, analysed_texts
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.records import StoredRecord
from ebbtide.store.integrity.derived import depth_of
from ebbtide.verbs.limits import Between, MaxChars, MaxItems, NotBlank, NotEmpty, OneOf, Several
from ebbtide.verbs.pii_policy import PiiPolicy, as_stored
from ebbtide.verbs.requests import AgentRequest, Fields, Response, invalid, requiring, violation
from ebbtide.verbs.service import Service

MAX_OPERATIONS = 1000
"""Most operations of a batch."""

MAX_RESULTS = 1000
"""Most records or namespaces of one result."""

CHARS_AT_ONCE = 100_000
"""Characters of texts that are analysed at a time for a query."""

DEFAULT_RECORDS = 10
DEFAULT_NAMESPACES = 100

OPERATIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "put": (("namespace", "key", "value"), ("ttl_minutes", "if_version", "index", "no_index")),
    "get": (("namespace", "key"), ("refresh_ttl",)),
    "delete": ((), ("namespace", "key", "prefix", "if_version")),
    "search": ((), ("prefix", "filter", "query", "limit", "offset", "order", "refresh_ttl")),
    "namespaces": ((), ("match", "max_depth", "limit", "offset")),
}
"""The fields of each operation: those that it requires, and others."""


def _checked_value(value: dict[str, Any]) -> dict[str, Any]:
    if depth_of(value, MAX_RECORD_DEPTH) > MAX_RECORD_DEPTH:
        raise violation("INVALID_VALUE", f"nested too deeply; allowed: at most {MAX_RECORD_DEPTH} levels")
    size = len(to_json(value))
    if size > MAX_RECORD_BYTES:
        raise violation("TEXT_TOO_LONG", f"{size} bytes as JSON; allowed: at most {MAX_RECORD_BYTES}")
    return value


def _checked_filter(wanted: Any) -> Any:
    if isinstance(wanted, dict):
        if is_of_operators(wanted):
            for name, operand in wanted.items():
                if name not in OPERATORS:
                    raise invalid(name, f"either names of fields or only {', '.join(OPERATORS)}")
                if name in OF_ORDER and not is_number(operand):
                    raise invalid(operand, f"a number after {name}")
        else:
            for one in wanted.values():
                _checked_filter(one)
    elif isinstance(wanted, list):
        for one in wanted:
            _checked_filter(one)
    return wanted


def _checked_path(path: str) -> str:
    if PATH.fullmatch(path) is None:
        raise invalid(
            path, "names of fields with dots between them, [*] for all items of a list, [0] for one"
        )
    return path


def _not_empty(operations: list[Any]) -> list[Any]:
    if not operations:
        raise violation("MISSING_FIELD", f"empty; allowed: 1-{MAX_OPERATIONS} operations")
    return operations


Label = Annotated[str, MaxChars(MAX_LABEL_CHARS), NotEmpty("a text that is not empty")]
Labels = Annotated[list[Label], Several, MaxItems(MAX_LABELS)]
Key = Annotated[str, MaxChars(MAX_RECORD_KEY_CHARS), NotEmpty("a text that is not empty")]
Value = Annotated[dict[str, Any], AfterValidator(_checked_value)]
Path = Annotated[str, MaxChars(MAX_LABEL_CHARS), AfterValidator(_checked_path)]


class RecordPattern(Fields):
    """The first or the last labels of a namespace."""

    type: Annotated[str, OneOf(("prefix", "suffix"))] = Field(description="prefix or suffix.")
    path: Labels = Field(default_factory=list, description="The labels; `*` matches any one.")


class RecordOperation(Fields):
    """One operation of a batch. Which fields it takes depends on `op`."""

    op: Annotated[str, OneOf(tuple(OPERATIONS))] = Field(
        description="put, get, delete, search or namespaces.", examples=["put"]
    )
    namespace: Labels = Field(
        default_factory=list,
        description="put, get, delete: the place of the record; 1-16 labels of 1-200 characters.",
        examples=[["users", "ann"]],
    )
    key: Key | None = Field(
        None, description="put, get, delete: the name of the record; 1-500 characters.", examples=["theme"]
    )
    value: Value | None = Field(
        None, description="put: a JSON object of at most 256 KiB and 30 levels.", examples=[{"dark": True}]
    )
    ttl_minutes: Annotated[int, Between(1, MAX_TTL_MINUTES)] | None = Field(
        None, description="put: minutes until the record expires; default: never."
    )
    if_version: Annotated[int, Between(0, MAX_NUMBER)] | None = Field(
        None,
        description="put, delete: refuse the batch unless the record has this version; 0 if none may exist.",
    )
    index: Annotated[list[Path], Several, MaxItems(MAX_INDEX_PATHS)] = Field(
        default_factory=list,
        description="put: paths to the texts that a query finds, such as title or notes[*].text; default: all texts in "
        "the value.",
    )
    no_index: bool = Field(False, description="put: whether no query finds the record.")
    refresh_ttl: bool = Field(
        False, description="get, search: let the records expire as long after now as after their last put."
    )
    prefix: Labels = Field(
        default_factory=list,
        description="search: only in this namespace and below it. delete: delete all records there.",
    )
    filter: Annotated[dict[str, Any], AfterValidator(_checked_filter)] | None = Field(
        None,
        description="search: only records with these values, also nested, or values that match $eq, $ne, $gt, $gte, "
        "$lt and $lte.",
        examples=[{"dark": True, "size": {"$gte": 2}}],
    )
    query: Annotated[str, MaxChars("max_query_chars"), NotBlank("a question or words")] | None = Field(
        None,
        description="search: only records with words of this question or text, the most relevant first.",
        examples=["Where is the spare key?"],
    )
    limit: Annotated[int, Between(1, MAX_RESULTS)] | None = Field(
        None, description="search, namespaces: most results, 1-1000; default 10, or 100 namespaces."
    )
    offset: Annotated[int, Between(0, MAX_COUNT)] | None = Field(
        None, description="search, namespaces: how many results to leave out first; default 0."
    )
    order: Annotated[str, OneOf(("key", "-key"))] | None = Field(
        None, description="search: key, by namespace and key (default), or -key, the reverse."
    )
    match: Annotated[list[RecordPattern], Several, MaxItems(MAX_LABELS)] = Field(
        default_factory=list, description="namespaces: only those that fit every pattern."
    )
    max_depth: Annotated[int, Between(1, MAX_LABELS)] | None = Field(
        None, description="namespaces: cut them to this many labels, each once."
    )

    @model_validator(mode="after")
    def _has_its_fields(self) -> Self:
        required, others = OPERATIONS[self.op]
        given = {name for name, value in self if value is not None and value is not False and value != []}
        for name in required:
            if name not in given:
                raise violation("MISSING_FIELD", f"required by {self.op}", name)
        for name in sorted(given - {"op", *required, *others}):
            raise violation("INVALID_VALUE", f"not a field of {self.op}; leave it out", name)
        if self.index and self.no_index:
            raise violation("INVALID_VALUE", "not allowed with no_index", "index")
        if self.query and self.order:
            raise violation("INVALID_VALUE", "not allowed with query, which orders by relevance", "order")
        if self.op == "delete":
            self._refuse_unclear_deletion()
        return self

    def _refuse_unclear_deletion(self) -> None:
        if self.prefix:
            if self.namespace or self.key or self.if_version is not None:
                raise violation("INVALID_VALUE", "not allowed with namespace, key or if_version", "prefix")
        elif not self.namespace or not self.key:
            raise violation("MISSING_FIELD", "required; give namespace and key, or prefix", "key")


class BatchRecordsRequest(AgentRequest):
    """Operations on records."""

    model_config = requiring("ops")

    ops: Annotated[list[RecordOperation], Several, MaxItems(MAX_OPERATIONS), AfterValidator(_not_empty)] = (
        Field([], validate_default=True, description="The operations, in order; 1-1000.")
    )


class RecordInfo(Response):
    """A record."""

    namespace: list[str] = Field(description="Its place, from the outermost label on.")
    key: str = Field(description="Its name in the namespace.", examples=["theme"])
    value: dict[str, Any] = Field(description="The value, as it was put.")
    version: int = Field(description="Version of the value. It grows with every put and is never used again.")
    created_at: int = Field(description="When the record was first put, ms since the epoch.")
    updated_at: int = Field(description="When it was last put, ms since the epoch.")
    expires_at: int | None = Field(description="When it expires, ms since the epoch; null for never.")
    score: float | None = Field(
        description="search with a query: how relevant it is, above 0; 1 for the best record. Else null."
    )


class RecordNamespace(Response):
    """A namespace that has records."""

    labels: list[str] = Field(description="Its labels, from the outermost on.")


class RecordResult(Response):
    """The result of one operation; fields of other operations are null or empty."""

    version: int | None = Field(description="put: the version of the new value.")
    deleted: int | None = Field(description="delete: how many records were deleted.")
    record: RecordInfo | None = Field(description="get: the record; null if there is none.")
    records: list[RecordInfo] = Field(description="search: the records, in order.")
    namespaces: list[RecordNamespace] = Field(description="namespaces: those that fit, in order.")


class RecordResults(Response):
    """The result of each operation."""

    results: list[RecordResult] = Field(
        description="One result for each operation, in the order of the request."
    )


async def batch_records(service: Service, request: BatchRecordsRequest) -> RecordResults:
    """Read and write records in one transaction: all writes happen, in order, or none.

    Reads see the state before the batch. A put creates the agent. Raise VERSION_DIFFERS if a record has another version
    than `if_version`, TOO_MANY_ITEMS if the batch reads or deletes too much, SCOPE_MISSING for a write (put, delete,
    `refresh_ttl`) without the scope write or another operation without the scope read.
    """
    _refuse_beyond_scope(request)
    creates = any(one.op == "put" for one in request.ops)
    quota = service.agent_quota
    async with service.fleet.using(request.owner, create=creates, agent_quota=quota) as agent:
        while True:
            try:
                return await _run(service, agent, request)
            except PolicyChanged:
                continue


async def _run(service: Service, agent: Agent, request: BatchRecordsRequest) -> RecordResults:
    workspace = agent.workspace
    parameters, identity = workspace.parameters, workspace.identity
    policy = PiiPolicy(parameters, identity)
    size = sum(len(to_json(one.value)) for one in request.ops if one.value is not None)
    operations = await service.texts.run(0 if policy.is_off else size, _as_stored, request.ops, policy)
    now_ms, may_expire = service.clock.now_ms(), workspace.records.may_expire
    if any(one.query for one in request.ops):
        await analyse(service, agent, operations, now_ms)
    run = partial(workspace.records.run, operations, now_ms, actor(), parameters.pii, service.quota)
    found = await agent.run(lambda: list(map(_result, run())))
    if workspace.records.may_expire and not may_expire:
        agent.retention_task.notice()
    return RecordResults(results=found)


async def analyse(service: Service, agent: Agent, operations: Sequence[batch.Operation], now_ms: int) -> None:
    """Compute the terms of the texts that queries search, outside of the agent's jobs, since it may take seconds."""
    records = agent.workspace.records
    texts = await agent.run(lambda: records.unanalysed(operations, now_ms))
    waiting = list(texts.items())
    while waiting:
        size, portion = 0, {}
        while waiting and size < CHARS_AT_ONCE:
            version, portion[version] = waiting[-1]
            size += len(waiting.pop()[1])
        found = await service.texts.run(size, analysed_texts, list(portion.values()))
        kept = dict(zip(portion, found, strict=True))
        await agent.run(lambda kept=kept: records.terms.keep(kept))  # type: ignore[misc]


def _refuse_beyond_scope(request: BatchRecordsRequest) -> None:
    grant = CALLER.get().grant
    for one in request.ops:
        if one.op in ("put", "delete") or one.refresh_ttl:
            grant.refuse_beyond(of_agent(WRITE), request.agent_id)
        if one.op not in ("put", "delete"):
            grant.refuse_beyond(of_agent(READ), request.agent_id)


def _as_stored(given: list[RecordOperation], policy: PiiPolicy) -> list[batch.Operation]:
    """Return operations with personal data redacted as the policy says."""
    return [_operation(one, policy) for one in given]


def _operation(given: RecordOperation, policy: PiiPolicy) -> batch.Operation:
    namespace, prefix = (tuple(map(policy.name, labels)) for labels in (given.namespace, given.prefix))
    key = policy.name(given.key or "")
    if given.op == "put":
        value = to_json(policy.metadata(given.value)).decode()
        index = () if given.no_index else tuple(map(policy.name, given.index)) or None
        return batch.Put(namespace, key, value, given.ttl_minutes or 0, given.if_version, index)
    if given.op == "get":
        return batch.Get(namespace, key, given.refresh_ttl)
    if given.op == "delete":
        return batch.Delete(prefix or namespace, key, given.if_version)
    offset = given.offset or 0
    if given.op == "search":
        wanted = policy.metadata(given.filter) or {}
        limit = given.limit or DEFAULT_RECORDS
        [query] = as_stored(policy, [given.query or ""])
        return batch.Search(prefix, wanted, limit, offset, given.order == "-key", given.refresh_ttl, query)
    patterns = tuple(
        Pattern("suffix" if one.type == "suffix" else "prefix", tuple(map(policy.name, one.path)))
        for one in given.match
    )
    return batch.Namespaces(patterns, given.max_depth, given.limit or DEFAULT_NAMESPACES, offset)


def _result(done: batch.Done) -> RecordResult:
    found = [record_info(one, score) for one, score in zip(done.records, done.scores, strict=True)]
    return RecordResult(
        version=done.version,
        deleted=done.deleted,
        record=found[0] if found and done.is_get else None,
        records=[] if done.is_get else found,
        namespaces=[RecordNamespace(labels=list(one)) for one in done.namespaces],
    )


def record_info(record: StoredRecord, score: float | None = None) -> RecordInfo:
    """Return a record for a response."""
    return RecordInfo(
        namespace=list(record.namespace),
        key=record.key,
        value=value_of(record),
        version=record.version,
        created_at=record.created_at_ms,
        updated_at=record.updated_at_ms,
        expires_at=record.expires_at_ms,
        score=score,
    )
