"""The jobs on an agent's inbox: accept a batch, hand it to the digest, commit its memories, defer or park it.

The rule guarded here: a batch leaves the inbox only in the commit that contains its memories. `admission.py` decides
whether a batch is accepted; `digest.py` works off the inbox.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec

from ebbtide.bounds import MAX_COUNT
from ebbtide.changes import Change
from ebbtide.errors import Exhausted, Precondition
from ebbtide.events import EventKind, EventRun
from ebbtide.fleet.archive.archive import Archive, passages_of
from ebbtide.fleet.archive.retention import PassageUpdates, remove_texts
from ebbtide.fleet.archive.unembedded import GivenVector, keep_given_vector
from ebbtide.fleet.ingest.admission import Accepted, IncomingBatch, PolicyChanged, accept, refuse_gone_targets
from ebbtide.fleet.state.agent_state import State
from ebbtide.fleet.state.event_builder import batch_run, build_events
from ebbtide.ids import NodeId
from ebbtide.language.tokens import estimate
from ebbtide.memory import digestion
from ebbtide.memory.digestion import LinkNames, Mention, NewMemory, OwnLink
from ebbtide.records import Batch, BatchState, EmbeddedMessage, EmbeddingState, MessageRecord, Source
from ebbtide.store.lmdb.texts import is_tombstone
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction

MAX_PAUSE_MS = 600_000
"""Upper bound of `language.retry_cap_ms`: no batch is deferred for longer."""

MIN_KEPT = 100
"""This many statuses and receipts are kept regardless of age, in case the clock was set forward."""

PRUNED_PER_DIGEST = 32
"""Most statuses deleted with one digest, to bound the commit."""


@dataclass(frozen=True, slots=True)
class DigestTask:
    """The next batch to digest, with its messages and their texts."""

    batch: Batch
    records: list[MessageRecord]
    texts: list[str]


@dataclass(frozen=True, slots=True)
class MemoryDraft:
    """A processed segment. `own_text` is its first content if that occurs in no message."""

    memory: NewMemory
    own_text: str | None = None


@dataclass(frozen=True, slots=True)
class StatusRetention:
    """How long statuses of digested batches are kept."""

    keep: int
    older_than_ms: int


@dataclass(frozen=True, slots=True)
class SuppliedMemory:
    """A memory that the caller supplies: a batch of one message, which becomes this memory without a model."""

    incoming: IncomingBatch
    memory: NewMemory
    """Its only source is the message."""
    links: Sequence[OwnLink] = ()
    vector: GivenVector | None = None


class BatchChanged(Exception):
    """Part of the batch was erased meanwhile; the digest must read it again."""


class Inbox:
    """The accepted, undigested batches of one agent."""

    def __init__(self, state: State) -> None:
        self._state = state

    def accept(self, batches: Sequence[IncomingBatch]) -> list[Accepted | Exception]:
        """Store batches in one commit. Return an outcome for each.

        The result is the same as if they were stored one after the other: a refusal does not affect the others, and an
        idempotency key finds a batch of the same commit. The outcome is PolicyChanged for a batch that was redacted
        under another policy than the current one. If there is no room for all, each is stored separately, because a
        small one may fit.
        """
        outcomes = self._accept_all(batches)
        self._update_archive(batches, outcomes)
        return outcomes

    def _accept_all(self, batches: Sequence[IncomingBatch]) -> list[Accepted | Exception]:
        try:
            return self._state.store.write(lambda txn: [self._accept(txn, incoming) for incoming in batches])
        except Exhausted:
            if len(batches) == 1:
                raise
        return [self._accept_alone(incoming) for incoming in batches]

    def _update_archive(
        self, batches: Sequence[IncomingBatch], outcomes: Sequence[Accepted | Exception]
    ) -> None:
        """Add the committed messages to the archive."""

        def update_archive(archive: Archive) -> None:
            for incoming, outcome in zip(batches, outcomes, strict=True):
                if isinstance(outcome, Accepted) and outcome.records:
                    spoken = zip(incoming.texts, outcome.records, strict=True)
                    passages = incoming.passages or [passages_of(text, one.speaker) for text, one in spoken]
                    archive.add_messages(outcome.records, passages, incoming.metadata)

        self._state.open_archive.follow(update_archive)

    def _accept(self, txn: WriteTransaction, incoming: IncomingBatch) -> Accepted | Exception:
        parameters = self._state.parameters
        if incoming.pii not in (None, parameters.pii):
            return PolicyChanged()
        return accept(txn, incoming, parameters.max_queue_size)

    def _accept_alone(self, incoming: IncomingBatch) -> Accepted | Exception:
        try:
            return self._state.store.write(lambda txn: self._accept(txn, incoming))
        except Exception as error:
            # Earlier ones may be stored already; an error from here on concerns this batch alone.
            return error

    def next_task(self, now_ms: int, longest_pause_ms: int = MAX_PAUSE_MS) -> DigestTask | int | None:
        """Return the next batch to digest; the wait in milliseconds if all are deferred; None if none waits.

        A batch that is deferred for longer than `longest_pause_ms` was deferred before the clock was set back; it is
        due.
        """

        def read(txn: ReadTransaction) -> DigestTask | int | None:
            soonest: int | None = None
            for batch in txn.inbox.waiting():
                wait_ms = batch.not_before_ms - now_ms
                if wait_ms <= 0 or wait_ms > longest_pause_ms:
                    return _task(txn, batch)
                soonest = wait_ms if soonest is None else min(soonest, wait_ms)
            return soonest

        return self._state.store.read(read)

    def focus_texts(self) -> list[tuple[NodeId, str]]:
        """Return (id, content) of the memories in focus, newest first."""
        focus = self._state.network.focus[: self._state.parameters.focus_limit]

        def read(txn: ReadTransaction) -> list[tuple[NodeId, str]]:
            found = []
            for node_id in focus:
                node = txn.nodes.get(node_id)
                assert node is not None, "a node in focus lives"
                found.append((node_id, node.content))
            return found

        return self._state.store.read(read)

    def digest(
        self,
        batch: Batch,
        items: Sequence[MemoryDraft | Mention],
        names: LinkNames,
        expected_focus: Sequence[NodeId],
        now_ms: int,
        retention: StatusRetention,
    ) -> bool:
        """Commit the memories of a batch. Return False and change nothing if the focus has moved meanwhile.

        Raise BatchChanged and change nothing if the batch differs from what the digest read.
        """
        self._state.store.read(lambda txn: _refuse_changed(txn, batch))
        if tuple(expected_focus) != self._state.network.focus[: self._state.parameters.focus_limit]:
            return False
        owed, uncounted = self._state.store.read(
            lambda txn: (txn.meta.owed_passes, txn.meta.uncounted_tokens)
        )
        if self._state.parameters.strategy == "slots":
            self._state.keep_statements(is_new_pass=False)
        change = digestion.digest(
            self._state.network,
            [one if isinstance(one, Mention) else one.memory for one in items],
            names,
            batch=batch.number,
            owed_passes=owed,
            tokens=uncounted + self._tokens_of(one.memory for one in items if isinstance(one, MemoryDraft)),
            rng=self._state.rng("digest", batch.number),
        )
        drafts = [one for one in items if isinstance(one, MemoryDraft)]
        new = {node.id: index for index, node in enumerate(change.nodes)}
        runs = [
            *build_events(self._state.network, change),
            batch_run(EventKind.BATCH_DIGESTED, batch, len(new)),
        ]

        def write(txn: WriteTransaction) -> PassageUpdates:
            placed = msgspec.structs.replace(change, nodes=list(change.nodes))
            for node_id, index in new.items():
                own_text = drafts[index].own_text
                if own_text is not None:
                    key = txn.texts.put(own_text)
                    node = msgspec.structs.replace(placed.nodes[index], first_key=key)
                    assert node.id == node_id
                    placed.nodes[index] = node
            txn.apply(placed)
            done = msgspec.structs.replace(batch, digested_at_ms=now_ms, node_ids=tuple(new), not_before_ms=0)
            txn.inbox.finish(done)
            self._state.log.write(txn, runs)
            txn.inbox.prune(
                keep=retention.keep,
                older_than_ms=retention.older_than_ms,
                most=PRUNED_PER_DIGEST,
                least=MIN_KEPT,
            )
            if self._state.parameters.kept_days != 0:
                return {}
            first = batch.first_message
            return remove_texts(txn, range(first, first + batch.message_count))

        self._state.follow(change, self._state.store.write(write))
        self._state.log.notify(runs)
        return True

    def _tokens_of(self, memories: Iterable[NewMemory]) -> int:
        """Return the estimated tokens of new memories, if passes are owed by them."""
        return (
            sum(estimate(one.content) for one in memories) if self._state.parameters.pass_every_tokens else 0
        )

    def supply(self, supplied: SuppliedMemory, now_ms: int) -> NodeId:
        """Store a message and the memory that it becomes in one commit. Return the id of the memory.

        For a known idempotency key, return the memory of the first request. Raise PolicyChanged, TargetGone, or
        the refusal of the batch; then nothing is stored.
        """
        state, incoming = self._state, supplied.incoming
        network, parameters = state.network, state.parameters
        if incoming.pii not in (None, parameters.pii):
            raise PolicyChanged

        def write(txn: WriteTransaction) -> _Supplied:
            accepted = accept(txn, incoming, parameters.max_queue_size)
            if isinstance(accepted, Exception):
                raise accepted
            batch = accepted.batch
            if not accepted.records:
                return _Supplied(batch.node_ids)
            refuse_gone_targets(network, supplied.links)
            (record,) = accepted.records
            source = Source(record.number, 0, len(incoming.texts[0].encode()))
            change = digestion.digest(
                network,
                [replace(supplied.memory, sources=(source,))],
                LinkNames(),
                batch=batch.number,
                owed_passes=txn.meta.owed_passes,
                tokens=txn.meta.uncounted_tokens + self._tokens_of([supplied.memory]),
                rng=state.rng("digest", batch.number),
                own_links=supplied.links,
            )
            (node,) = change.nodes
            runs = [*build_events(network, change), batch_run(EventKind.BATCH_DIGESTED, batch, 1)]
            txn.apply(change)
            txn.inbox.finish(msgspec.structs.replace(batch, digested_at_ms=now_ms, node_ids=(node.id,)))
            state.log.write(txn, runs)
            removed = remove_texts(txn, [record.number]) if parameters.kept_days == 0 else {}
            embedded: dict[int, EmbeddedMessage] = {}
            if supplied.vector is not None:
                embedded = keep_given_vector(txn, record.number, supplied.vector)
            return _Supplied((node.id,), change, runs, record, removed, embedded, txn.meta.embedding)

        done = state.store.write(write)

        if done.record is not None:
            update_archive = partial(_add_supplied, incoming, done, done.record)
            state.follow(done.change, done.removed, update_archive)
            state.log.notify(done.runs)
        return done.node_ids[0]

    def defer(self, batch: Batch, error: str, not_before_ms: int, park_after: int) -> bool:
        """Count a failed attempt, then defer the batch to the tail, or park it. Return whether it is parked.

        Raise BatchChanged and change nothing if the batch differs from what the digest read.
        """
        failed = msgspec.structs.replace(
            batch, attempts=min(batch.attempts + 1, MAX_COUNT), last_error=error, not_before_ms=not_before_ms
        )
        parked = failed.attempts >= park_after
        runs = [batch_run(EventKind.BATCH_PARKED, failed, failed.attempts)] if parked else []

        def write(txn: WriteTransaction) -> None:
            _refuse_changed(txn, batch)
            if parked:
                txn.inbox.park(failed)
            else:
                txn.inbox.defer(failed)
            self._state.log.write(txn, runs)

        self._state.store.write(write)
        self._state.log.notify(runs)
        return parked

    def retry(self, number: int) -> Batch | None:
        """Put a parked batch back into the inbox with no attempts counted. Return None if the batch does not exist."""

        def write(txn: WriteTransaction) -> Batch | None:
            batch = txn.inbox.get(number)
            if batch is None:
                return None
            if batch.state != BatchState.PARKED.value:
                raise Precondition(f"batch b{number} is {batch.state}, not parked", reason="BATCH_NOT_PARKED")
            fresh = msgspec.structs.replace(batch, attempts=0, not_before_ms=0)
            self._state.log.write(txn, [batch_run(EventKind.BATCH_RETRIED, batch)])
            return txn.inbox.unpark(fresh)

        retried = self._state.store.write(write)
        if retried is not None:
            self._state.log.notify([batch_run(EventKind.BATCH_RETRIED, retried)])
        return retried


@dataclass(frozen=True, slots=True)
class _Supplied:
    """The records of a supplied memory as written; for a replay only its id."""

    node_ids: tuple[NodeId, ...]
    change: Change = field(default_factory=Change)
    runs: Sequence[EventRun] = ()
    record: MessageRecord | None = None
    removed: PassageUpdates = field(default_factory=dict)
    embedded: Mapping[int, EmbeddedMessage] = field(default_factory=dict)
    embedding: EmbeddingState = field(default_factory=EmbeddingState)


def _add_supplied(incoming: IncomingBatch, done: _Supplied, record: MessageRecord, archive: Archive) -> None:
    archive.add_messages([record], incoming.passages, incoming.metadata)
    if done.embedded:
        archive.follow(done.embedding, done.embedded.items())


def _refuse_changed(txn: ReadTransaction, batch: Batch) -> None:
    if txn.inbox.get(batch.number) != batch:
        raise BatchChanged


def _task(txn: ReadTransaction, batch: Batch) -> DigestTask:
    records, texts = [], []
    for number in range(batch.first_message, batch.first_message + batch.message_count):
        record = txn.messages.get(number)
        assert record is not None, "an undigested batch has its messages"
        if is_tombstone(record):
            continue
        text = txn.messages.text(record)
        assert text is not None, "an undigested message has its text"
        records.append(record)
        texts.append(text)
    return DigestTask(batch, records, texts)
