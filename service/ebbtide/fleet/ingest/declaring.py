"""The jobs that change an agent's statements: declare one, correct one, rule about statements and entities.

The words of a statement, and the reason of a ruling, are a message of its own, whose batch is digested in the same
commit. When the response is sent, the statement is durable, and can be found, cited and erased. No job waits for a
language model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from ebbtide.bounds import MAX_COUNT
from ebbtide.changes import Change
from ebbtide.errors import Exhausted
from ebbtide.events import EventRun
from ebbtide.fleet.archive.archive import Archive
from ebbtide.fleet.archive.retention import PassageUpdates, remove_texts
from ebbtide.fleet.archive.unembedded import GivenVector, keep_given_vector
from ebbtide.fleet.ingest.admission import Accepted, IncomingBatch, PolicyChanged, accept, refuse_gone_targets
from ebbtide.fleet.state.agent_state import State
from ebbtide.ids import NodeId
from ebbtide.memory.declaration import Declaration, Saying, declare, evidence_of, ruled
from ebbtide.memory.digestion import OwnLink
from ebbtide.memory.network import Network
from ebbtide.memory.slot_names import slot_of
from ebbtide.records import EmbeddedMessage, EmbeddingState, Link, Source
from ebbtide.retrieval.times import StatedTime
from ebbtide.statements import CAUSES, Ruling
from ebbtide.store.chain import AuditEntry
from ebbtide.store.lmdb.transaction import WriteTransaction


@dataclass(frozen=True, slots=True)
class Told:
    """A stored statement or ruling."""

    statement: NodeId = 0
    """The statement; 0 for a ruling."""
    is_new: bool = True
    """Whether a node was created; else the statement is evidence of an existing one, or the request was repeated."""
    ruling: int = 0
    """The entry number of the ruling; 0 for a statement without one."""


@dataclass(frozen=True, slots=True)
class Supplied:
    """The caller's links of a statement, and the vector of its words."""

    links: Sequence[OwnLink] = ()
    vector: GivenVector | None = None


NOTHING_SUPPLIED = Supplied()


class Declaring:
    """The changes of the statements of one agent."""

    def __init__(self, state: State) -> None:
        self._state = state

    def declare(
        self, words: IncomingBatch, one: Declaration, now_ms: int, supplied: Supplied = NOTHING_SUPPLIED
    ) -> Told:
        """Store a statement. Raise TOO_MANY_STATEMENTS at the limit.

        Raise PolicyChanged and TargetGone as `Inbox.supply` does.
        """
        self._refuse_beyond(now_ms)
        network = self._state.network  # rebuilt here if necessary, not within the transaction

        def write(txn: WriteTransaction, saying: Saying) -> tuple[Change, Told]:
            refuse_gone_targets(network, supplied.links)
            change, told = self._declared(txn, saying, one)
            change.links += _both_ways(network, told.statement, supplied.links)
            return change, told

        return self._store(words, write, now_ms, supplied.vector)

    def correct(
        self,
        words: IncomingBatch,
        one: Declaration,
        wrong: Ruling,
        told_at_ms: int,
        now_ms: int,
        entry: AuditEntry,
    ) -> Told:
        """Store a statement that corrects another one, and the ruling that says so.

        It counts as said when the other one was, so that it ends nothing that was said since.
        """

        def write(txn: WriteTransaction, saying: Saying) -> tuple[Change, Told]:
            state = self._state
            ruling = msgspec.structs.replace(
                wrong, other=state.network.next_node_id, sources=(saying.source,)
            )
            change = ruled(txn.meta.ledger, ruling)
            assert change.ledger is not None
            placed = replace(saying, told_at_ms=told_at_ms)
            done = declare(state.network, state.ledger, change.ledger, placed, one, None)
            done.change.rulings = change.rulings
            txn.audit.append(entry, state.identity.agent_id)
            return done.change, Told(done.statement, True, change.rulings[0].entry)

        return self._store(words, write, now_ms)

    def rule(self, ruling: Ruling, reason: IncomingBatch | None, now_ms: int, entry: AuditEntry) -> Told:
        """Store a ruling. Its reason, if there is one, is its source."""
        state, ledger = self._state, self._state.ledger  # read before the transaction, which cannot be nested

        def write(txn: WriteTransaction, saying: Saying | None) -> tuple[Change, Told]:
            sources = () if saying is None else (saying.source,)
            change = ruled(txn.meta.ledger, msgspec.structs.replace(ruling, sources=sources))
            undone = ledger.ruling(ruling.target) if ruling.kind == "undo" else None
            if undone is not None and undone.kind == "cause":
                change.removed_links = [Link(undone.target, undone.other, CAUSES, 0.0, 0)]
            txn.audit.append(entry, state.identity.agent_id)
            return change, Told(ruling=change.rulings[0].entry)

        if reason is not None:
            return self._store(reason, write, now_ms)
        done: list[Told] = []
        runs: list[EventRun] = []

        def alone(txn: WriteTransaction) -> Change:
            change, told = write(txn, None)
            txn.apply(change)
            runs[:] = state.events_of(change)
            state.log.write(txn, runs)
            done[:] = [told]
            return change

        state.follow(state.store.write(alone), {})
        state.log.notify(runs)
        return done[0]

    def _declared(self, txn: WriteTransaction, saying: Saying, one: Declaration) -> tuple[Change, Told]:
        network, ledger, state = self._state.network, self._state.ledger, txn.meta.ledger
        known = evidence_of(network, ledger, saying, one, state.next_entry)
        done = declare(network, ledger, state, saying, one, txn.nodes.get(known) if known else None)
        return done.change, Told(done.statement, done.is_new)

    def _refuse_beyond(self, now_ms: int) -> None:
        if self._state.is_full_of_statements(now_ms):
            most = self._state.parameters.max_statements
            raise Exhausted(
                f"The agent keeps {most} statements, as max_statements allows; nothing was stored. Retract or delete "
                "some, or raise max_statements.",
                reason="TOO_MANY_STATEMENTS",
                metadata={"max_statements": str(most)},
            )

    def _store(
        self,
        incoming: IncomingBatch,
        build: Callable[[WriteTransaction, Saying], tuple[Change, Told]],
        now_ms: int,
        vector: GivenVector | None = None,
    ) -> Told:
        """Store a message and the change that it causes in one commit."""
        state = self._state
        if incoming.pii not in (None, state.parameters.pii):
            raise PolicyChanged
        network = state.network  # rebuilt here if necessary, not within the transaction
        assert state.ledger is not None

        runs: list[EventRun] = []

        def write(txn: WriteTransaction) -> _Stored:
            # The batch does not wait, so a full inbox does not refuse it.
            accepted = accept(txn, incoming, MAX_COUNT)
            if isinstance(accepted, Exception):
                raise accepted
            if not accepted.records:
                repeated = accepted.batch.node_ids
                return _Stored(Told(repeated[0] if repeated else 0, False), accepted)
            [record], [text] = accepted.records, incoming.texts
            source = Source(record.number, 0, len(text.encode()))
            change, told = build(txn, Saying(source, accepted.batch.number, record.time_ms, now_ms))
            txn.apply(change)
            made = tuple(node.id for node in change.nodes if node.id >= network.next_node_id)
            ids = made or ((told.statement,) if told.statement else ())
            txn.inbox.finish(msgspec.structs.replace(accepted.batch, digested_at_ms=now_ms, node_ids=ids))
            runs[:] = state.events_of(change)
            state.log.write(txn, runs)
            updates: PassageUpdates = {}
            if state.parameters.kept_days == 0:
                updates = remove_texts(txn, [record.number])
            embedded = {} if vector is None else keep_given_vector(txn, record.number, vector)
            return _Stored(told, accepted, change, updates, embedded, txn.meta.embedding)

        done = state.store.write(write)
        if done.accepted.records:
            self._add_to_archive(incoming, done)
            state.follow(done.change, done.updates)
            state.log.notify(runs)
        return done.told

    def _add_to_archive(self, incoming: IncomingBatch, done: _Stored) -> None:
        def update_archive(archive: Archive) -> None:
            archive.add_messages(done.accepted.records, incoming.passages, incoming.metadata)
            if done.embedded:
                archive.follow(done.embedding, done.embedded.items())

        self._state.open_archive.follow(update_archive)


@dataclass(frozen=True, slots=True)
class _Stored:
    """A message and its change as written; for a repeated request only the earlier result."""

    told: Told
    accepted: Accepted
    change: Change = field(default_factory=Change)
    updates: PassageUpdates = field(default_factory=dict)
    embedded: Mapping[int, EmbeddedMessage] = field(default_factory=dict)
    embedding: EmbeddingState = field(default_factory=EmbeddingState)


def _both_ways(network: Network, statement: NodeId, links: Sequence[OwnLink]) -> list[Link]:
    """Return the caller's links of a statement. A known statement is not linked with itself."""
    found = []
    own = network.scan_count(statement) if statement in network else 0
    for one in links:
        if one.other != statement:
            found.append(Link(statement, one.other, one.relation, one.strength, own))
            anchor = network.scan_count(one.other)
            found.append(Link(one.other, statement, one.relation, one.strength, anchor))
    return found


_STOPS: Final = (*",，;；。!?！？\n", ". ")
"""Ends of a clause."""


def is_for_period(one: Declaration, stated: StatedTime | None) -> bool:
    """Return whether the words give the beginning and the end of a state: "I lived in Rome from 2015 to 2019".

    The period is in the clause of the value, or a comma separates them. A degree outlasts the studies.
    """
    if stated is None or not stated.is_period or one.until_ms is not None or one.reports_change:
        return False
    if slot_of(one.slot).cardinality == "many" or one.slot == "education":
        return False
    if one.kind == "task" or one.modality == "planned":
        return False
    at, end = one.content.find(one.object), stated.offset + stated.length
    between = one.content[end:at] if at >= end else one.content[at + len(one.object) : stated.offset]
    return not any(stop in between.lstrip(" ,，") for stop in _STOPS)
