"""The jobs that change an agent's statements: declare one, correct one, rule about statements and entities.

The words of a statement, and the reason of a ruling, are a message of its own, whose batch is digested in the same
commit. When the response is sent, the statement is durable, and can be found, cited and erased. No job waits for a
language model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from ebbtide.bounds import MAX_COUNT
from ebbtide.changes import Change
from ebbtide.clock import offset_of
from ebbtide.errors import Exhausted
from ebbtide.events import EventRun
from ebbtide.fleet.archive.archive import Archive
from ebbtide.fleet.archive.retention import PassageUpdates, is_digested, remove_texts
from ebbtide.fleet.ingest.admission import Accepted, IncomingBatch, PolicyChanged, accept
from ebbtide.fleet.state.agent_state import State
from ebbtide.ids import NodeId
from ebbtide.memory.declaration import Declaration, Saying, declare, evidence_of, ruled
from ebbtide.memory.subjects import USER, subject_name
from ebbtide.memory.values import reports_change
from ebbtide.records import BatchState, MessageRecord, Source
from ebbtide.retrieval.times import stated_time
from ebbtide.statements import Ruling
from ebbtide.store.chain import AuditEntry
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction

if TYPE_CHECKING:
    from ebbtide.language.builtin.extraction import Extracted

RULES = "rules@1"
"""The author of extracted statements; the number rises with the rules."""

RULES_CONFIDENCE, USER_TRUST = 0.9, 1.0

MESSAGES_PER_STEP = 64
"""Most messages that one step of the extraction reads."""


@dataclass(frozen=True, slots=True)
class Told:
    """A stored statement or ruling."""

    statement: NodeId = 0
    """The statement; 0 for a ruling."""
    is_new: bool = True
    """Whether a node was created; else the statement is evidence of an existing one, or the request was repeated."""
    ruling: int = 0
    """The entry number of the ruling; 0 for a statement without one."""


class Declaring:
    """The changes of the statements of one agent."""

    def __init__(self, state: State) -> None:
        self._state = state

    def declare(self, words: IncomingBatch, one: Declaration, now_ms: int) -> Told:
        """Store a statement. Raise TOO_MANY_STATEMENTS at the limit, and PolicyChanged as `Inbox.accept` does."""
        self._refuse_beyond(now_ms)
        return self._store(words, lambda txn, saying: self._declared(txn, saying, one), now_ms)

    def correct(
        self, words: IncomingBatch, one: Declaration, wrong: Ruling, now_ms: int, entry: AuditEntry
    ) -> Told:
        """Store a statement that corrects another one, and the ruling that says so."""

        def write(txn: WriteTransaction, saying: Saying) -> tuple[Change, Told]:
            state = self._state
            ruling = msgspec.structs.replace(
                wrong, other=state.network.next_node_id, sources=(saying.source,)
            )
            change = ruled(txn.meta.ledger, ruling)
            assert change.ledger is not None
            done = declare(state.network, state.ledger, change.ledger, saying, one, None)
            done.change.rulings = change.rulings
            txn.audit.append(entry, state.identity.agent_id)
            return done.change, Told(done.statement, True, change.rulings[0].entry)

        return self._store(words, write, now_ms)

    def rule(self, ruling: Ruling, reason: IncomingBatch | None, now_ms: int, entry: AuditEntry) -> Told:
        """Store a ruling. Its reason, if there is one, is its source."""

        def write(txn: WriteTransaction, saying: Saying | None) -> tuple[Change, Told]:
            sources = () if saying is None else (saying.source,)
            change = ruled(txn.meta.ledger, msgspec.structs.replace(ruling, sources=sources))
            txn.audit.append(entry, self._state.identity.agent_id)
            return change, Told(ruling=change.rulings[0].entry)

        if reason is not None:
            return self._store(reason, write, now_ms)
        state = self._state
        done: list[Told] = []
        assert state.ledger is not None  # read before the transaction, which cannot be nested
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

    def extract_next(self, now_ms: int) -> bool:
        """Extract the statements of some digested messages. Return whether more may be left.

        Each statement is a commit, and the last one notes how far the extraction is. After a crash, a message is read
        again, and its statements are not stored twice.
        """
        state = self._state
        if state.parameters.extraction == "off" or state.parameters.kept_days == 0:
            return False
        # Imported here, so that a daemon can listen before it has compiled the rules.
        from ebbtide.language.builtin.extraction import extract

        ledger = state.ledger  # read before the transaction, which cannot be nested
        found = state.store.read(lambda txn: _next_messages(txn))
        if not found:
            return False
        done = {one.source.message for one in ledger.all_assertions() if one.author == RULES}
        for record, text in found:
            if record.role == "user" and text and record.number not in done:
                for one in extract(text):
                    self._store_extracted(record, text, one, now_ms)
        last = found[-1][0].number

        def write(txn: WriteTransaction) -> None:
            txn.meta.set(ledger=msgspec.structs.replace(txn.meta.ledger, extracted_up_to=last))

        state.store.write(write)
        return True

    def _store_extracted(self, record: MessageRecord, text: str, one: Extracted, now_ms: int) -> None:
        """Store a statement that cites a part of an existing message."""
        state, quote = self._state, text[one.offset : one.offset + one.length]
        subject = subject_name(record.speaker) if record.speaker else USER
        ledger = state.ledger
        if subject is None or (
            ledger.statement_count >= state.parameters.max_statements
            and len(ledger.known().kept(now_ms)) >= state.parameters.max_statements
        ):
            return
        begin = len(text[: one.offset].encode())
        source = Source(record.number, begin, len(quote.encode()))
        saying = Saying(source, record.batch, record.time_ms, now_ms)
        is_task = one.kind == "task"
        stated = stated_time(
            quote, record.time_ms, "plan" if is_task else "event", offset_of(state.parameters.time_zone)
        )
        declaration = Declaration(
            subject=subject,
            slot=one.slot,
            content=quote,
            kind=one.kind,
            object=one.object,
            negated=one.negated,
            modality="planned" if is_task and stated is not None else "asserted",
            reports_change=reports_change(quote),
            since_ms=None if stated is None else stated.since_ms,
            granularity="" if stated is None else stated.granularity,
            time_words="" if stated is None else stated.time_words,
            importance=round(0.5 * RULES_CONFIDENCE + 0.3 * USER_TRUST + 0.2, 4),
            confidence=RULES_CONFIDENCE,
            author=RULES,
            keywords=tuple(dict.fromkeys((one.object, subject, one.slot))),
        )
        runs: list[EventRun] = []

        def write(txn: WriteTransaction) -> Change:
            change, _ = self._declared(txn, saying, declaration)
            txn.apply(change)
            runs[:] = state.events_of(change)
            state.log.write(txn, runs)
            return change

        state.follow(state.store.write(write), {})
        state.log.notify(runs)

    def _declared(self, txn: WriteTransaction, saying: Saying, one: Declaration) -> tuple[Change, Told]:
        network, ledger, state = self._state.network, self._state.ledger, txn.meta.ledger
        known = evidence_of(network, ledger, saying, one, state.next_entry)
        done = declare(network, ledger, state, saying, one, txn.nodes.get(known) if known else None)
        return done.change, Told(done.statement, done.is_new)

    def _refuse_beyond(self, now_ms: int) -> None:
        state = self._state
        most, ledger = state.parameters.max_statements, state.ledger
        if ledger.statement_count >= most and len(ledger.known().kept(now_ms)) >= most:
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
    ) -> Told:
        """Store a message and the change that it causes in one commit."""
        state = self._state
        if incoming.pii not in (None, state.parameters.pii):
            raise PolicyChanged
        network = state.network  # rebuilt here if necessary, not within the transaction
        assert state.ledger is not None

        runs: list[EventRun] = []

        def write(txn: WriteTransaction) -> tuple[Told, Accepted, Change, PassageUpdates]:
            # The batch does not wait, so a full inbox does not refuse it.
            accepted = accept(txn, incoming, MAX_COUNT)
            if isinstance(accepted, Exception):
                raise accepted
            if not accepted.records:
                repeated = accepted.batch.node_ids
                return Told(repeated[0] if repeated else 0, False), accepted, Change(), {}
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
                updates = remove_texts(txn, [record.number], change.nodes)
            return told, accepted, change, updates

        told, accepted, change, updates = state.store.write(write)
        if accepted.records:
            self._add_to_archive(incoming, accepted)
            state.follow(change, updates)
            state.log.notify(runs)
        return told

    def _add_to_archive(self, incoming: IncomingBatch, accepted: Accepted) -> None:
        def update_archive(archive: Archive) -> None:
            archive.add_messages(accepted.records, incoming.passages, incoming.metadata)

        self._state.open_archive.follow(update_archive)


def _next_messages(txn: ReadTransaction) -> list[tuple[MessageRecord, str]]:
    """Return the next messages whose batches are digested, with their texts; empty if there is none."""
    found: list[tuple[MessageRecord, str]] = []
    for record in txn.messages.all(txn.meta.ledger.extracted_up_to + 1):
        batch = txn.inbox.get(record.batch)
        is_parked = batch is not None and batch.state == BatchState.PARKED.value
        if len(found) == MESSAGES_PER_STEP or not (is_parked or is_digested(txn, record, {})):
            break
        found.append((record, "" if is_parked else txn.messages.text(record) or ""))
    return found
