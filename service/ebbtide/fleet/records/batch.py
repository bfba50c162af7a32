"""The jobs on an agent's records: a batch of reads and writes.

The rules guarded here: **a batch is one transaction**, so all of its writes happen or none. **Its reads see the state
before it**, at every place in it. Its writes happen in order. Expired records do not exist for any of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from ebbtide.bounds import LATEST_MS
from ebbtide.errors import Conflict, InvalidRequest
from ebbtide.fleet.deletion.proofs import Proofs
from ebbtide.fleet.deletion.records import delete_record, value_of
from ebbtide.fleet.ingest.admission import PolicyChanged, Quota, refuse_beyond
from ebbtide.fleet.recall.recollected import RecordHit
from ebbtide.fleet.records.matching import Pattern, matches
from ebbtide.fleet.records.searching import KeptTerms, scores, text_of
from ebbtide.fleet.state.agent_state import State
from ebbtide.records import StoredRecord
from ebbtide.store.chain import AuditEntry
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction

if TYPE_CHECKING:
    from ebbtide.fleet.recall.query import Query

MAX_RETURNED_BYTES = 2 << 20
"""Most bytes of values that a batch returns, so that gRPC clients accept the response by default."""

MAX_EXAMINED = 200_000
"""Most records that the searches and deletions of a batch read."""

MAX_DELETED = 10_000
"""Most records that a batch deletes: their proofs are in one audit record."""

MAX_SEARCHED, MAX_SEARCHED_BYTES = 20_000, 20 << 20
"""Most records, and bytes of their values, among which one query searches."""

MINUTE_MS = 60_000

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Put:
    """Write a record."""

    namespace: Names
    key: str
    value: str
    """JSON."""
    ttl_minutes: int = 0
    if_version: int | None = None
    index: tuple[str, ...] | None = None
    """Paths to the texts that a search finds; None for all texts."""


@dataclass(frozen=True, slots=True)
class Get:
    """Read a record."""

    namespace: Names
    key: str
    refreshes: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a record, or without `key` all records in a namespace and below it."""

    namespace: Names
    key: str = ""
    if_version: int | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """Read records in a namespace and below it, in the order of namespace and key, or those that fit a query best."""

    namespace: Names = ()
    filter: dict[str, Any] = field(default_factory=dict)
    limit: int = 10
    offset: int = 0
    is_descending: bool = False
    refreshes: bool = False
    query: str = ""
    put_in: tuple[int | None, int | None] = (None, None)
    """Only records whose last put was from the first time on and before the second."""
    created_after: int | None = None


def search_of(query: Query) -> Search:
    """Return the search for the records of a query."""
    return Search(
        limit=query.max_results,
        query=query.text,
        put_in=query.time_range,
        created_after=query.created_after,
    )


@dataclass(frozen=True, slots=True)
class Namespaces:
    """List the namespaces that have records, in order, cut to a depth."""

    patterns: tuple[Pattern, ...] = ()
    max_depth: int | None = None
    limit: int = 100
    offset: int = 0


Read = Get | Search | Namespaces
Operation = Put | Delete | Read


@dataclass(frozen=True, slots=True)
class Done:
    """The result of an operation."""

    version: int | None = None
    """Of the value that was put."""
    deleted: int | None = None
    """The number of deleted records."""
    records: Sequence[StoredRecord] = ()
    """The records that were found."""
    scores: Sequence[float | None] = ()
    """How well each of them fits the query; None without one."""
    is_get: bool = False
    namespaces: Sequence[Names] = ()


class RecordJobs:
    """The records of one agent."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.may_expire = state.store.read(lambda txn: next(txn.records.all(), None) is not None)
        """Whether the agent may have records that expire."""
        self.terms = KeptTerms()

    def recall(self, search: Search, now_ms: int) -> list[RecordHit]:
        """Return the records that fit a query best, each with its best passage."""

        def read(txn: ReadTransaction) -> list[RecordHit]:
            return list(_Reads(txn, now_ms, self.terms).hits(search))

        return self._state.store.read(read)

    def unanalysed(self, operations: Sequence[Operation], now_ms: int) -> dict[int, str]:
        """Return the texts that the queries of a batch search and whose terms are not kept, by version."""
        searches = [one for one in operations if isinstance(one, Search) and one.query]

        def read(txn: ReadTransaction) -> dict[int, str]:
            reads = _Reads(txn, now_ms, self.terms)
            found = (record for one in searches for record in reads.searched(one))
            return {one.version: text_of(one) for one in found if one.version not in self.terms}

        return self._state.store.read(read) if searches else {}

    def run(
        self, operations: Sequence[Operation], now_ms: int, actor: str, pii: str, quota: Quota
    ) -> list[Done]:
        """Run a batch. Raise VERSION_DIFFERS, QUOTA_REACHED or TOO_MANY_ITEMS, after which nothing has changed.

        Raise PolicyChanged if the agent's PII policy is not the one that was applied to the batch.
        """
        state = self._state
        if state.parameters.pii != pii:
            raise PolicyChanged
        if not any(is_write(one) for one in operations):
            return state.store.read(lambda txn: _Reads(txn, now_ms, self.terms).results(operations))
        if any(isinstance(one, Put) and one.ttl_minutes for one in operations):
            self.may_expire = True
        entry = AuditEntry(now_ms, actor, "record_deleted", {})
        replaced: list[int] = []

        def write(txn: WriteTransaction) -> list[Done]:
            if any(isinstance(one, Put) for one in operations):
                refuse_beyond(quota, txn)
            writes = _Writes(txn, entry, self.terms)
            results = writes.results(operations)
            replaced[:] = writes.replaced
            return results

        done = state.store.write(write)
        self.terms.drop(replaced)
        state.are_figures_due = True
        return done


def is_write(operation: Operation) -> bool:
    """Return whether an operation changes something."""
    return isinstance(operation, Put | Delete) or (
        isinstance(operation, Get | Search) and operation.refreshes
    )


class _Reads:
    """The reads of a batch."""

    def __init__(self, txn: ReadTransaction, now_ms: int, terms: KeptTerms) -> None:
        self._txn = txn
        self._now_ms = now_ms
        self._terms = terms
        self._examined = self._returned_bytes = 0
        self.read: list[tuple[Read, list[StoredRecord]]] = []

    def results(self, operations: Sequence[Operation]) -> list[Done]:
        """Return the result of each read, and an empty one for each write."""
        return [Done() if isinstance(one, Put | Delete) else self._result(one) for one in operations]

    def _result(self, operation: Read) -> Done:
        if isinstance(operation, Namespaces):
            return Done(namespaces=self._namespaces(operation))
        given: list[float] = []
        if isinstance(operation, Get):
            found = self._get(operation)
        elif operation.query:
            found, given = self._best(operation)
        else:
            found = self._search(operation)
        self._returned_bytes += sum(len(one.value) for one in found)
        if self._returned_bytes > MAX_RETURNED_BYTES:
            raise _too_many(f"returns more than {MAX_RETURNED_BYTES} bytes; ask for fewer records at a time")
        self.read.append((operation, found))
        return Done(records=found, scores=given or [None] * len(found), is_get=isinstance(operation, Get))

    def living(self, namespace: Names, key: str) -> StoredRecord | None:
        """Return a record, unless it has expired."""
        record = self._txn.records.get(namespace, key)
        return None if record is None or record.is_expired(self._now_ms) else record

    def examined(self, namespace: Names) -> Iterator[StoredRecord]:
        """Yield the records in a namespace and below it that have not expired."""
        for record in self._txn.records.all(namespace):
            self._examined += 1
            if self._examined > MAX_EXAMINED:
                raise _too_many(f"reads more than {MAX_EXAMINED} records; name a narrower namespace")
            if not record.is_expired(self._now_ms):
                yield record

    def _get(self, operation: Get) -> list[StoredRecord]:
        record = self.living(operation.namespace, operation.key)
        return [] if record is None else [record]

    def _search(self, operation: Search) -> list[StoredRecord]:
        places = sorted(
            ((one.namespace, one.key) for one in self._matching(operation)),
            reverse=operation.is_descending,
        )
        return self._at(places[operation.offset : operation.offset + operation.limit])

    def _best(self, operation: Search) -> tuple[list[StoredRecord], list[float]]:
        """Return the records that fit a query best among those that match its filter, with their scores."""
        some = self._ranked(operation)
        return self._at([place for _, place, _ in some]), [-score for score, _, _ in some]

    def hits(self, operation: Search) -> Iterator[RecordHit]:
        """Yield the records that fit a query best, each with its best passage."""
        for score, place, best in self._ranked(operation):
            [record] = self._at([place])
            entry = self._terms.of(record)[best]
            yield RecordHit(record, text_of(record)[entry.begin : entry.begin + entry.length], -score)

    def _ranked(self, operation: Search) -> list[tuple[float, tuple[Names, str], int]]:
        """Return the negative score, the place and the number of the best passage of each record, the best first."""
        found = [((one.namespace, one.key), self._terms.of(one)) for one in self.searched(operation)]
        given = scores(operation.query, [entries for _, entries in found])
        order = sorted(
            (-score, place, best) for (place, _), (score, best) in zip(found, given, strict=True) if score
        )
        return order[operation.offset : operation.offset + operation.limit]

    def searched(self, operation: Search) -> Iterator[StoredRecord]:
        """Yield the records among which a query searches."""
        count = size = 0
        for record in self._matching(operation):
            if record.index != ():
                count, size = count + 1, size + len(record.value)
            if count > MAX_SEARCHED or size > MAX_SEARCHED_BYTES:
                raise _too_many(
                    f"searches more than {MAX_SEARCHED} records or {MAX_SEARCHED_BYTES} bytes of values for a query; "
                    "search records in a narrower namespace or with a filter"
                )
            yield record

    def _matching(self, operation: Search) -> Iterator[StoredRecord]:
        wanted, (begin, end) = operation.filter, operation.put_in
        for one in self.examined(operation.namespace):
            if begin is not None and one.updated_at_ms < begin:
                continue
            if end is not None and one.updated_at_ms >= end:
                continue
            if operation.created_after is not None and one.created_at_ms < operation.created_after:
                continue
            if not wanted or matches(value_of(one), wanted):
                yield one

    def _at(self, places: Sequence[tuple[Names, str]]) -> list[StoredRecord]:
        records = (self._txn.records.get(*place) for place in places)
        return [one for one in records if one is not None]

    def _namespaces(self, operation: Namespaces) -> list[Names]:
        found = {
            one.namespace[: operation.max_depth]
            for one in self.examined(())
            if all(pattern.matches(one.namespace) for pattern in operation.patterns)
        }
        return sorted(found)[operation.offset : operation.offset + operation.limit]


class _Writes:
    """A batch with writes, within its transaction."""

    def __init__(self, txn: WriteTransaction, entry: AuditEntry, terms: KeptTerms) -> None:
        self._txn = txn
        self._entry = entry
        self._now_ms = entry.at_ms
        self._reads = _Reads(txn, entry.at_ms, terms)
        self.replaced: list[int] = []
        """The versions that exist no more."""
        self._next_version = txn.meta.next_record_version
        self._deleted_count = 0
        self._proofs: Proofs | None = None

    def results(self, operations: Sequence[Operation]) -> list[Done]:
        """Run the reads, then the writes. Return the result of each operation."""
        results = self._reads.results(operations)
        self._refresh()
        for place, one in enumerate(operations):
            if isinstance(one, Put):
                results[place] = self._put(one, place)
            elif isinstance(one, Delete):
                results[place] = self._delete(one, place)
        if self._next_version > self._txn.meta.next_record_version:
            self._txn.meta.set(next_record_version=self._next_version)
        self._end()
        return results

    def _refresh(self) -> None:
        """Let the records that were read with `refreshes` expire later."""
        for operation, records in self._reads.read:
            for record in records if not isinstance(operation, Namespaces) and operation.refreshes else ():
                if record.ttl_minutes:
                    self._txn.records.put(
                        msgspec.structs.replace(record, expires_at_ms=self._expiry(record.ttl_minutes))
                    )

    def _expiry(self, ttl_minutes: int) -> int | None:
        return min(self._now_ms + ttl_minutes * MINUTE_MS, LATEST_MS) if ttl_minutes else None

    def _put(self, operation: Put, place: int) -> Done:
        namespace, key = operation.namespace, operation.key
        stored, before = self._txn.records.get(namespace, key), self._reads.living(namespace, key)
        _refuse_other_version(operation, place, before)
        version, self._next_version = self._next_version, self._next_version + 1
        self._txn.records.put(
            StoredRecord(
                namespace,
                key,
                operation.value,
                version,
                self._now_ms if before is None else before.created_at_ms,
                self._now_ms,
                operation.ttl_minutes,
                self._expiry(operation.ttl_minutes),
                operation.index,
            )
        )
        if stored is not None:
            self.replaced.append(stored.version)
            # The file may still contain the value before.
            self._txn.meta.set(leftovers=True)
        return Done(version)

    def _delete(self, operation: Delete, place: int) -> Done:
        if operation.key:
            record = self._reads.living(operation.namespace, operation.key)
            _refuse_other_version(operation, place, record)
            records = [] if record is None else [record]
        else:
            records = list(self._reads.examined(operation.namespace))
        self._deleted_count += len(records)
        if self._deleted_count > MAX_DELETED:
            raise _too_many(f"deletes more than {MAX_DELETED} records; forget them: `records` in POST forget")
        if records and self._proofs is None:
            self._proofs = Proofs(self._txn.audit.make_proof_key())
        for one in records:
            delete_record(self._txn, one, self._proofs)
            self.replaced.append(one.version)
        return Done(deleted=len(records))

    def _end(self) -> None:
        if self._proofs is not None:
            details: dict[str, object] = {"records": self._deleted_count}
            entry = msgspec.structs.replace(self._entry, details=details, proofs=tuple(self._proofs.found))
            identity = self._txn.meta.identity
            assert identity is not None, "an open store has its identity"
            self._txn.audit.append(entry, identity.agent_id)


def _refuse_other_version(operation: Put | Delete, place: int, record: StoredRecord | None) -> None:
    version = 0 if record is None else record.version
    if operation.if_version not in (None, version):
        raise Conflict(
            f"ops[{place}].if_version: the record has version {version}, not {operation.if_version}; nothing was "
            "changed. Read it and decide again. Version 0 means that there is no record.",
            reason="VERSION_DIFFERS",
            metadata={"op": str(place), "version": str(version)},
        )


def _too_many(what: str) -> InvalidRequest:
    return InvalidRequest(f"ops: the batch {what}. Nothing was changed.", reason="TOO_MANY_ITEMS")
