"""Stores of LangGraph on the records of an agent: `EbbtideStore`, and `AsyncEbbtideStore` for one event loop.

A batch of at most 1000 operations is one request and one transaction. Its reads come first and see the state before
it; the last put of a key wins. Needs `langgraph-checkpoint`.

A search with `query` returns the items with words of it first, then the others with score 0. Records have no vectors,
so embeddings are not used.
"""

from __future__ import annotations

import asyncio
import math
import warnings
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)
from langgraph.store.base.batch import AsyncBatchedBaseStore

from ebbtide_client.errors import NotFound

if TYPE_CHECKING:
    from ebbtide_client.async_client import AsyncClient
    from ebbtide_client.client import Client
    from ebbtide_client.models import RecordInfo, RecordResult

MAX_OPERATIONS = 1000
"""Most operations of one request."""

MAX_RESULTS = 1000
"""Most items of one search."""

WHOLE = "$"
"""The path of LangGraph for all texts of a value."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Batch:
    """The requests for a batch of operations of LangGraph, and their results."""

    def __init__(self, ops: Iterable[Op], ttl: TTLConfig | None, fields: Sequence[str]) -> None:
        self._refreshes = ttl is not None
        self._fields = fields
        self._ops = list(ops)
        for op in self._ops:
            validate_op_namespace(op)
        self._results: list[list[RecordResult]] = [[] for _ in self._ops]
        sent = [
            (place, operation)
            for place, op in enumerate(self._ops)
            if not _is_empty(op)
            for operation in self._operations(op)
        ]
        # Reads come first, so that they see the state before a batch of several requests too.
        sent.sort(key=lambda one: isinstance(self._ops[one[0]], PutOp))
        self.portions = [
            sent[begin : begin + MAX_OPERATIONS] for begin in range(0, len(sent), MAX_OPERATIONS)
        ]
        """The operations of each request, with the place of the one in this batch that they belong to."""

    def request(self, portion: Sequence[tuple[int, dict[str, Any]]]) -> list[dict[str, Any]]:
        """Return the operations of a request."""
        return [operation for _, operation in portion]

    def take(self, portion: Sequence[tuple[int, dict[str, Any]]], results: Sequence[RecordResult]) -> None:
        """Take the results of a request."""
        for (place, _), result in zip(portion, results, strict=True):
            self._results[place].append(result)

    def results(self) -> list[Result]:
        """Return the result of each operation, in their order."""
        return [_result(op, results) for op, results in zip(self._ops, self._results, strict=True)]

    def _operations(self, op: Op) -> list[dict[str, Any]]:
        """Return the operations for one: two for a query that items without its words fill up."""
        operation = self._operation(op)
        if not isinstance(op, SearchOp) or not op.query:
            return [operation]
        query = {"query": op.query}
        if not _is_filled_up(op):
            return [operation | query]
        first = operation | {"limit": op.offset + op.limit, "offset": 0}
        return [first | query, first]

    def _operation(self, op: Op) -> dict[str, Any]:
        if isinstance(op, PutOp):
            place = {"namespace": list(op.namespace), "key": str(op.key)}
            if op.value is None:
                return {"op": "delete", **place}
            if op.ttl is not None and op.ttl <= 0:
                raise ValueError(f"ttl: {op.ttl} minutes; it must be positive")
            ttl = {} if op.ttl is None else {"ttl_minutes": max(1, math.ceil(op.ttl))}
            return {"op": "put", **place, "value": op.value, **ttl, **self._index(op)}
        if isinstance(op, ListNamespacesOp):
            match = [{"type": one.match_type, "path": list(one.path)} for one in op.match_conditions or ()]
            depth = {} if op.max_depth is None else {"max_depth": op.max_depth}
            return {"op": "namespaces", "match": match, "limit": op.limit, "offset": op.offset, **depth}
        refresh = {"refresh_ttl": True} if op.refresh_ttl and self._refreshes else {}
        if isinstance(op, GetOp):
            return {"op": "get", "namespace": list(op.namespace), "key": str(op.key), **refresh}
        return {
            "op": "search",
            "prefix": list(op.namespace_prefix),
            "limit": op.limit,
            "offset": op.offset,
            **({"filter": op.filter} if op.filter else {}),
            **refresh,
        }

    def _index(self, op: PutOp) -> dict[str, Any]:
        """Return which texts of an item a query finds."""
        if op.index is False:
            return {"no_index": True}
        paths = list(self._fields if op.index is None else op.index)
        return {} if WHOLE in paths or not paths else {"index": paths}


def _is_filled_up(op: SearchOp) -> bool:
    """Whether items without words of the query follow the others."""
    last: int = op.offset + op.limit
    return last <= MAX_RESULTS


def _is_empty(op: Op) -> bool:
    """Whether an operation asks for nothing."""
    return isinstance(op, SearchOp | ListNamespacesOp) and op.limit == 0


def _nothing(op: Op) -> Result:
    return [] if isinstance(op, SearchOp | ListNamespacesOp) else None


def _result(op: Op, results: Sequence[RecordResult]) -> Result:
    if not results:
        return _nothing(op)
    if isinstance(op, GetOp):
        record = results[0].record
        return None if record is None else Item(**_fields(record))
    if isinstance(op, SearchOp):
        missing = 0.0 if op.query else None
        return [SearchItem(**_fields(one), score=one.score or missing) for one in _merged(op, results)]
    if isinstance(op, ListNamespacesOp):
        return [tuple(one.labels) for one in results[0].namespaces]
    return None


def _merged(op: SearchOp, results: Sequence[RecordResult]) -> list[RecordInfo]:
    """Return the items of a search: those that a query found, then the others."""
    records = [one for result in results for one in result.records]
    if len(results) == 1:
        return records
    each = {(tuple(one.namespace), one.key): one for one in reversed(records)}
    order = dict.fromkeys((tuple(one.namespace), one.key) for one in records)
    return [each[place] for place in order][op.offset : op.offset + op.limit]


def _fields(record: RecordInfo) -> dict[str, Any]:
    return {
        "namespace": tuple(record.namespace),
        "key": record.key,
        "value": dict(record.value),
        "created_at": EPOCH + timedelta(milliseconds=record.created_at),
        "updated_at": EPOCH + timedelta(milliseconds=record.updated_at),
    }


def _is_unknown_agent(error: NotFound) -> bool:
    """Whether no agent has the id: nothing was put yet."""
    return error.reason == "AGENT_NOT_FOUND"


def _fields_of(index: IndexConfig | None) -> list[str]:
    """Return the paths to the texts that queries find, where a put names none; warn that embeddings are not used."""
    if index is None:
        return []
    message = "EbbtideStore searches by words: dims and embed of the index are ignored"
    warnings.warn(message, UserWarning, stacklevel=3)
    return list(index.get("fields") or [])


class EbbtideStore(BaseStore):
    """A store of LangGraph on the records of an agent. Its async methods run in threads."""

    supports_ttl = True

    def __init__(
        self, client: Client, agent_id: str, *, ttl: TTLConfig | None = None, index: IndexConfig | None = None
    ) -> None:
        """Use the records of an agent, which the first put creates.

        With `ttl`, puts have its default time to live, and reads refresh that of what they return. The `fields` of
        `index` are the paths to the texts that queries find; default: all texts.
        """
        self._fields = _fields_of(index)
        self._client = client
        self._agent_id = agent_id
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: reads first, then writes in order."""
        batch = _Batch(ops, self.ttl_config, self._fields)
        for portion in batch.portions:
            try:
                done = self._client.batch_records(self._agent_id, batch.request(portion))
            except NotFound as error:
                if not _is_unknown_agent(error):
                    raise
            else:
                batch.take(portion, done.results)
        return batch.results()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))


class AsyncEbbtideStore(AsyncBatchedBaseStore):
    """A store of LangGraph on the records of an agent, for the event loop that creates it.

    Operations that wait at the same time share a request. Its methods that are not async work in other threads only.
    """

    supports_ttl = True

    def __init__(
        self,
        client: AsyncClient,
        agent_id: str,
        *,
        ttl: TTLConfig | None = None,
        index: IndexConfig | None = None,
    ) -> None:
        """Use the records of an agent, as `EbbtideStore` does. Call it within a running event loop."""
        super().__init__()
        self._fields = _fields_of(index)
        self._client = client
        self._agent_id = agent_id
        self.ttl_config = ttl

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: reads first, then writes in order."""
        batch = _Batch(ops, self.ttl_config, self._fields)
        for portion in batch.portions:
            try:
                done = await self._client.batch_records(self._agent_id, batch.request(portion))
            except NotFound as error:
                if not _is_unknown_agent(error):
                    raise
            else:
                batch.take(portion, done.results)
        return batch.results()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations from another thread. Raise InvalidStateError in the event loop of the store."""
        try:
            is_own_loop = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_own_loop = False
        if is_own_loop:
            raise asyncio.InvalidStateError(
                "A synchronous call in the event loop of the store would block it; await abatch instead."
            )
        return asyncio.run_coroutine_threadsafe(self.abatch(ops), self._loop).result()
