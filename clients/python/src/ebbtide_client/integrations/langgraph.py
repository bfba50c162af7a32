"""Stores of LangGraph on the records of an agent: `EbbtideStore`, and `AsyncEbbtideStore` for one event loop.

A batch of at most 1000 operations is one request and one transaction. Its reads come first and see the state before
it; the last put of a key wins. Needs `langgraph-checkpoint`.

Deliberately not here: search by meaning. As in a store of LangGraph without an index, `query` and `index` change
nothing.
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

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Batch:
    """The requests for a batch of operations of LangGraph, and their results."""

    def __init__(self, ops: Iterable[Op], ttl: TTLConfig | None) -> None:
        self._refreshes = ttl is not None
        self._ops = list(ops)
        for op in self._ops:
            validate_op_namespace(op)
        self._results: list[Result] = [_nothing(op) for op in self._ops]
        sent = [place for place, op in enumerate(self._ops) if not _is_empty(op)]
        # Reads come first, so that they see the state before a batch of several requests too.
        sent.sort(key=lambda place: isinstance(self._ops[place], PutOp))
        self.portions = [
            sent[begin : begin + MAX_OPERATIONS] for begin in range(0, len(sent), MAX_OPERATIONS)
        ]
        """The places of the operations of each request."""

    def request(self, portion: Sequence[int]) -> list[dict[str, Any]]:
        """Return the operations of a request."""
        return [self._operation(self._ops[place]) for place in portion]

    def take(self, portion: Sequence[int], results: Sequence[RecordResult]) -> None:
        """Take the results of a request."""
        for place, result in zip(portion, results, strict=True):
            self._results[place] = _result(self._ops[place], result)

    def results(self) -> list[Result]:
        """Return the result of each operation, in their order."""
        return self._results

    def _operation(self, op: Op) -> dict[str, Any]:
        if isinstance(op, PutOp):
            place = {"namespace": list(op.namespace), "key": str(op.key)}
            if op.value is None:
                return {"op": "delete", **place}
            ttl = {} if op.ttl is None else {"ttl_minutes": max(1, math.ceil(op.ttl))}
            return {"op": "put", **place, "value": op.value, **ttl}
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


def _is_empty(op: Op) -> bool:
    """Whether an operation asks for nothing."""
    return isinstance(op, SearchOp | ListNamespacesOp) and op.limit == 0


def _nothing(op: Op) -> Result:
    return [] if isinstance(op, SearchOp | ListNamespacesOp) else None


def _result(op: Op, result: RecordResult) -> Result:
    if isinstance(op, GetOp):
        return None if result.record is None else Item(**_fields(result.record))
    if isinstance(op, SearchOp):
        return [SearchItem(**_fields(one), score=None) for one in result.records]
    if isinstance(op, ListNamespacesOp):
        return [tuple(one.labels) for one in result.namespaces]
    return None


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


def _warn_of(index: object) -> None:
    if index is not None:
        message = "EbbtideStore does not search by meaning yet: the index is ignored"
        warnings.warn(message, UserWarning, stacklevel=3)


class EbbtideStore(BaseStore):
    """A store of LangGraph on the records of an agent. Its async methods run in threads."""

    supports_ttl = True

    def __init__(
        self, client: Client, agent_id: str, *, ttl: TTLConfig | None = None, index: object = None
    ) -> None:
        """Use the records of an agent, which the first put creates.

        With `ttl`, puts have its default time to live, and reads refresh that of what they return.
        """
        _warn_of(index)
        self._client = client
        self._agent_id = agent_id
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: reads first, then writes in order."""
        batch = _Batch(ops, self.ttl_config)
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
        self, client: AsyncClient, agent_id: str, *, ttl: TTLConfig | None = None, index: object = None
    ) -> None:
        """Use the records of an agent, as `EbbtideStore` does. Call it within a running event loop."""
        super().__init__()
        _warn_of(index)
        self._client = client
        self._agent_id = agent_id
        self.ttl_config = ttl

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: reads first, then writes in order."""
        batch = _Batch(ops, self.ttl_config)
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
