"""The jobs of extraction: read the next messages, and store what a model or the rules found in them.

Between the two jobs the task asks the model, while no resource is held. All statements of a message are one commit,
which also notes how far the extraction is: after a kill no statement is missing and none is stored twice. The gate
judges the statements in that job, against the message as it is stored then.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import msgspec

from ebbtide.changes import Change
from ebbtide.clock import offset_of
from ebbtide.events import EventRun
from ebbtide.fleet.archive.retention import is_digested
from ebbtide.fleet.ingest.declaring import is_for_period
from ebbtide.fleet.ingest.inbox import DigestTask
from ebbtide.fleet.state.agent_state import State
from ebbtide.ids import NodeId
from ebbtide.language.port import ProposedStatement, Utterance
from ebbtide.memory.declaration import Declaration, Saying, corrected, declare, evidence_of, ruled
from ebbtide.memory.namesakes import Namesakes
from ebbtide.memory.relatives import Relatives
from ebbtide.memory.reports import (
    CANCELLATION,
    CORRECTION,
    LOSS,
    cancelled,
    follows_correction,
    lost_pets,
    values_of,
    wrong_statement,
    wrong_value,
)
from ebbtide.memory.slot_names import DATES, slot_of
from ebbtide.memory.subjects import PERSONS
from ebbtide.memory.values import compare, is_done, reports_change, tells_of_plan
from ebbtide.records import BatchState, MessageRecord, Source
from ebbtide.retrieval.times import not_ahead, stated_time
from ebbtide.statements import LedgerState, Ruling, is_extracted
from ebbtide.store.lmdb.texts import is_tombstone
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction

if TYPE_CHECKING:
    from ebbtide.fleet.ingest.gate import Gate, Reason, Statement

RULES: Final = "rules@2"
"""The author of statements that rules extract; the number rises with the rules."""

MODEL: Final = "model:"
"""The beginning of the author of statements that a model extracts."""

USER_TRUST: Final = 1.0

MAX_LOOKED_AT: Final = 64
"""Most messages that a job looks at."""

MAX_CONTEXT_CHARS: Final = 200
"""Characters of a message of the assistant that are shown for context: its end, where it may ask."""

RULES_CHARS: Final = 4_500
"""Characters of a message within which rules find statements."""

BEFORE: Final = 2
"""Messages before a message in which its subjects may be named."""

_SENTENCE_END: Final = re.compile(r"[.!?。！？\n]\s?")


class AgentFull(Exception):
    """The agent keeps as many statements as it may. The message is read again when there is room."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A message with its text, or for the assistant its end, and the texts of the messages before it."""

    record: MessageRecord
    text: str
    before: tuple[str, ...] = ()

    @property
    def is_from_user(self) -> bool:
        """Whether statements may be extracted from it."""
        return self.record.role == "user"


@dataclass(frozen=True, slots=True)
class Room:
    """How many messages and characters of one conversation are read together."""

    messages: int
    chars: int


MODEL_ROOM: Final = Room(10, 2000)
RULES_ROOM: Final = Room(MAX_LOOKED_AT, 1 << 16)


@dataclass(frozen=True, slots=True)
class ExtractionBatch:
    """Messages of one conversation in order. `up_to` is the last message that is done with them."""

    messages: tuple[Heard, ...]
    up_to: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    """A message, or a part of a long one that begins at a character."""

    message: int
    begin: int
    utterance: Utterance


@dataclass(slots=True)
class Findings:
    """The statements found in a message, and their author."""

    model: str
    """The author of what the model lists."""
    by_rules: list[ProposedStatement] = field(default_factory=list)
    by_model: dict[int, tuple[str, list[ProposedStatement]]] = field(default_factory=dict)
    """By where a part of the message begins: its text, and what the model lists of it."""
    invented: list[ProposedStatement] = field(default_factory=list)
    """The statements that the model lists of a message that does not exist."""
    is_fallback: bool = False
    """Whether the rules took the place of the model."""

    @property
    def are_any(self) -> bool:
        """Whether there is anything to judge or to note."""
        return bool(
            self.by_rules
            or self.invented
            or self.is_fallback
            or any(proposed for _, proposed in self.by_model.values())
        )


class ExtractionJobs:
    """The jobs of extraction of one agent."""

    def __init__(self, state: State) -> None:
        self._state = state

    @property
    def is_on(self) -> bool:
        """Whether statements are extracted."""
        return self._state.parameters.extraction != "off"

    def people(self) -> frozenset[str]:
        """Return the names of the persons whom statements name as relatives, friends and so on."""
        ledger, network = self._state.ledger, self._state.network
        replay = ledger.known()
        named = set[str]()
        for one in ledger.in_slots(PERSONS, None):
            version = replay.version_of(one.statement)
            if (
                one.object_entity in network.entities
                and not one.negated
                and version
                and not version.withdrawn
            ):
                named.add(one.object)
        return frozenset(named)

    def next_batch(self, room: Room) -> ExtractionBatch | None:
        """Return the next messages to extract statements from; None if all are done. It may have no message.

        The reason of a ruling is no message of a conversation, so nothing is extracted from it.
        """
        rulings = self._state.ledger.all_rulings()  # read before the transaction, which cannot be nested
        reasons = {
            source.message for one in rulings if one.reason and one.kind != "cause" for source in one.sources
        }
        return self._state.store.read(lambda txn: _next_batch(txn, room, reasons))

    def is_due(self) -> bool:
        """Return whether messages are not read for statements yet."""
        return self.is_on and self._state.store.read(self.left_count) > 0

    def is_full(self, now_ms: int) -> bool:
        """Return whether the agent keeps as many statements as it may."""
        return self._state.is_full_of_statements(now_ms)

    def left_count(self, txn: ReadTransaction) -> int:
        """Return how many messages are not read for statements yet; 0 with extraction off."""
        return txn.meta.next_message_number - 1 - txn.meta.ledger.extracted_up_to if self.is_on else 0

    def early(self, task: DigestTask, room: Room) -> list[ExtractionBatch]:
        """Return the messages of an undigested batch that must be read before its digest.

        These are all with `retention=none`, since the digest deletes the texts, and those of a batch that was parked
        while later ones were read. Messages that were read in an earlier try are left out.
        """
        if not self.is_on:
            return []
        ledger = self._state.ledger  # read before the transaction, which cannot be nested
        is_late = self._state.store.read(
            lambda txn: task.batch.first_message <= txn.meta.ledger.extracted_up_to
        )
        if self._state.parameters.kept_days != 0 and not is_late:
            return []
        done = set(ledger.messages_by(is_extracted))
        heard = list(_heard(zip(task.records, task.texts, strict=True)))
        return [
            ExtractionBatch(tuple(part))
            for part in _grouped([one for one in heard if one.record.number not in done], room)
        ]

    def keep(self, heard: Heard, found: Findings, now_ms: int, up_to: int) -> tuple[int, Counter[Reason]]:
        """Store the statements of a message that pass the gate, and note that it is done.

        Return the number of statements, and the rejections by reason. `up_to` is 0 before the digest, which moves
        no mark. Raise AgentFull if the agent keeps as many statements as it may. Before a digest they are rejected
        then, since it waits for none.
        """
        # Imported here, so that a daemon can listen before it has compiled the rules.
        from ebbtide.fleet.ingest.gate import Gate

        state = self._state
        gate = Gate(
            redacts=state.parameters.pii == "redact",
            is_echo=lambda line: state.recall_filter.is_echo(line, heard.record.accepted_at_ms),
        )
        accepted = _judged(gate, heard, found)
        ledger, network = state.ledger, state.network  # read before the transaction, which cannot be nested
        if accepted and state.is_full_of_statements(now_ms):
            if up_to:
                raise AgentFull
            gate.rejected["max_statements"] += len(accepted)
            accepted = []
        runs: list[EventRun] = []
        count = 0

        def write(txn: WriteTransaction) -> Change:
            nonlocal count
            change = Change()
            meta = txn.meta.ledger
            if _is_unchanged(txn, heard):
                for begin, one in self._with_losses(heard, accepted, change):
                    saying = _saying(heard, begin, one, now_ms)
                    has_amended = self._amend(change, meta, heard, begin, one, saying)
                    if has_amended is not None:
                        count += has_amended
                        continue
                    declaration = self._declaration(heard, begin, one, found.model)
                    earlier = change.ledger or meta
                    known = evidence_of(network, ledger, saying, declaration, earlier.next_entry, change)
                    existing = txn.nodes.get(known) if known else None
                    change = declare(network, ledger, earlier, saying, declaration, existing, change).change
                    count += 1
                for ruling in list(Relatives(network, ledger, change).merges(now_ms, txn.messages.quote)):
                    _rule(change, meta, ruling)
            if up_to:
                change.ledger = msgspec.structs.replace(change.ledger or meta, extracted_up_to=up_to)
            txn.apply(change)
            if found.is_fallback:
                self._note_fallback(txn, heard.record.batch)
            runs[:] = state.events_of(change)
            state.log.write(txn, runs)
            return change

        state.follow(state.store.write(write), {})
        state.log.notify(runs)
        return count, gate.rejected

    def _with_losses(
        self, heard: Heard, accepted: Sequence[tuple[int, Statement]], change: Change
    ) -> Iterator[tuple[int, Statement]]:
        """Yield the statements, for a lost pet the denial of each of its values that is known or said with it."""
        for begin, one in accepted:
            if not one.is_by_rules or one.slot != LOSS:
                yield begin, one
                continue
            words = heard.text[begin + one.begin : begin + one.end]
            values = lost_pets(self._state.ledger, self._owners(one.subject, change), one.object, words)
            values += [
                other.object
                for _, other in accepted
                if other.slot == "pet" and compare(other.object, one.object) == "same"
            ]
            for value in dict.fromkeys(values):
                yield begin, replace(one, slot="pet", object=value, negated=True)

    def _amend(
        self, change: Change, state: LedgerState, heard: Heard, begin: int, one: Statement, saying: Saying
    ) -> bool | None:
        """Correct a known statement, or retract known plans, if a rule found words that do.

        Return whether there was one; None if the words are a statement of their own.
        """
        ledger, network = self._state.ledger, self._state.network
        if not one.is_by_rules:
            return None
        now_ms, number = saying.known_at_ms, heard.record.number
        said = Ruling(1, "retract", 1, now_ms, author=RULES, sources=(saying.source,))
        if one.slot == CANCELLATION:
            plans = cancelled(ledger, self._owners(one.subject, change), one.object, saying.told_at_ms)
            for plan in plans:
                _rule(change, state, msgspec.structs.replace(said, target=plan))
            return bool(plans)
        if one.slot == CORRECTION:
            value, wrong_words = values_of(one.object)
            wrong = wrong_statement(ledger, wrong_words, number)
        elif (
            not one.negated
            and slot_of(one.slot).cardinality != "many"
            and follows_correction(heard.text[: begin + one.begin])
        ):
            value = one.object
            wrong = wrong_value(ledger, self._owners(one.subject, change), one.slot, value, number)
        else:
            return None
        if wrong is None:
            return False if one.slot == CORRECTION else None
        entity = network.entities.get(wrong.subject)
        quote = heard.text[begin + one.begin : begin + one.end]
        right = corrected(wrong, one.subject if entity is None else entity.name, quote, value)
        right = replace(right, author=RULES, keywords=tuple(filter(None, (value, right.subject, right.slot))))
        new = change.next_node_id or network.next_node_id
        # The assertion of a correction follows its ruling, and counts as said when the wrong one was.
        _rule(change, state, msgspec.structs.replace(said, kind="correct", target=wrong.statement, other=new))
        placed = replace(saying, told_at_ms=wrong.told_at_ms)
        assert change.ledger is not None
        declare(network, ledger, change.ledger, placed, right, None, change)
        return True

    def _owners(self, subject: str, change: Change) -> frozenset[NodeId]:
        """Return the entities that are one with a subject; none if nothing is known of it."""
        entity = Namesakes(self._state.network, self._state.ledger, change).meant(subject).entity
        return self._state.ledger.known().merged_with(entity) if entity else frozenset()

    def finish(self, batch: ExtractionBatch) -> None:
        """Note that messages are done from which nothing is to be stored."""

        def write(txn: WriteTransaction) -> None:
            ledger = txn.meta.ledger
            if ledger.extracted_up_to < batch.up_to:
                txn.meta.set(ledger=msgspec.structs.replace(ledger, extracted_up_to=batch.up_to))

        self._state.store.write(write)

    def _note_fallback(self, txn: WriteTransaction, number: int) -> None:
        batch = txn.inbox.get(number)
        if batch is not None and not batch.extracted_by_rules:
            txn.inbox.note_extracted_by_rules(batch)

    def _declaration(self, heard: Heard, begin: int, one: Statement, model: str) -> Declaration:
        quote = heard.text[begin + one.begin : begin + one.end]
        is_ahead = one.kind == "task" or tells_of_plan(quote)
        zone = offset_of(self._state.parameters.time_zone)
        stated = (
            None
            if one.slot in DATES
            else stated_time(quote, heard.record.time_ms, "plan" if is_ahead else "event", zone)
        )
        if stated is not None and not is_ahead and is_done(quote):
            stated = not_ahead(stated, heard.record.time_ms, zone)
        is_planned = is_ahead and stated is not None
        declared = Declaration(
            subject=one.subject,
            slot=one.slot,
            content=quote,
            kind=one.kind,
            object=one.object,
            negated=one.negated,
            modality="planned" if is_planned else "reported" if one.reported else "asserted",
            reports_change=reports_change(quote, negated=one.negated),
            since_ms=None if stated is None else stated.since_ms,
            granularity="" if stated is None else stated.granularity,
            time_words="" if stated is None else stated.time_words,
            importance=round(0.5 * one.confidence + 0.3 * USER_TRUST + 0.2, 4),
            confidence=one.confidence,
            author=RULES if one.is_by_rules else model,
            keywords=tuple(dict.fromkeys(filter(None, (one.object, one.subject, one.slot)))),
        )
        if stated is not None and is_for_period(declared, stated):
            return replace(declared, until_ms=stated.until_ms)
        return declared


def parts_of(batch: ExtractionBatch, room: Room = MODEL_ROOM) -> list[list[Part]]:
    """Return the requests for a batch: lists of messages, or of parts of a message that is too long for one."""
    groups: list[list[Part]] = [[]]
    size = 0
    for index, heard in enumerate(batch.messages):
        for begin, text in _pieces(heard.text, room.chars):
            if groups[-1] and (len(groups[-1]) >= room.messages or size + len(text) > room.chars):
                groups.append([])
                size = 0
            groups[-1].append(Part(index, begin, Utterance(heard.record.role, heard.record.speaker, text)))
            size += len(text)
    return [group for group in groups if any(part.utterance.role == "user" for part in group)]


def _pieces(text: str, most: int) -> Iterator[tuple[int, str]]:
    """Yield a text in parts of at most so many characters, which end with a sentence where one ends."""
    begin = 0
    while len(text) - begin > most:
        ends = [match.end() for match in _SENTENCE_END.finditer(text, begin + most // 2, begin + most)]
        end = ends[-1] if ends else begin + most
        yield begin, text[begin:end]
        begin = end
    yield begin, text[begin:]


def _judged(gate: Gate, heard: Heard, found: Findings) -> list[tuple[int, Statement]]:
    """Return the statements that pass, with where the judged part of the message begins."""
    from ebbtide.fleet.ingest.gate import Said

    record = heard.record
    gate.judge(None, found.invented)
    # Rules read the beginning of a long message only.
    beginning = Said(record.role, record.speaker, heard.text[:RULES_CHARS], heard.before)
    accepted = [(0, one) for one in gate.judge(beginning, found.by_rules, by_rules=True)]
    for begin, (text, proposed) in found.by_model.items():
        said = Said(record.role, record.speaker, text, heard.before)
        accepted += [(begin, one) for one in gate.judge(said, proposed)]
    return accepted


def _saying(heard: Heard, begin: int, one: Statement, now_ms: int) -> Saying:
    first, last = begin + one.begin, begin + one.end
    offset = len(heard.text[:first].encode())
    source = Source(heard.record.number, offset, len(heard.text[first:last].encode()))
    return Saying(source, heard.record.batch, heard.record.time_ms, now_ms)


def _rule(change: Change, state: LedgerState, ruling: Ruling) -> None:
    """Add a ruling to a change, with the next entry number."""
    placed = ruled(change.ledger or state, ruling)
    change.rulings += placed.rulings
    change.ledger = placed.ledger


def _is_unchanged(txn: ReadTransaction, heard: Heard) -> bool:
    """Return whether a message still has the text that was read."""
    record = txn.messages.get(heard.record.number)
    return (
        record is not None
        and not record.is_withdrawn
        and not is_tombstone(record)
        and record.text_key == heard.record.text_key
    )


def _next_batch(txn: ReadTransaction, room: Room, reasons: Collection[int]) -> ExtractionBatch | None:
    begin, last = txn.meta.ledger.extracted_up_to + 1, txn.meta.next_message_number - 1
    if begin > last:
        return None
    found: list[tuple[MessageRecord, str]] = []
    batches: dict[int, bool] = {}
    size, up_to, is_complete = 0, begin - 1, True
    for looked_at, record in enumerate(txn.messages.all(begin)):
        parked = _is_parked(txn, record)
        if looked_at == MAX_LOOKED_AT or not (parked or is_digested(txn, record, batches)):
            is_complete = False
            break
        is_heard = not parked and record.role in ("user", "assistant") and record.number not in reasons
        text = record.without_tools(txn.messages.text(record) or "") if is_heard else ""
        if text:
            text = text if record.role == "user" else text[-MAX_CONTEXT_CHARS:]
            size += len(text)
            is_other = found and found[0][0].conversation_id != record.conversation_id
            if found and (is_other or len(found) == room.messages or size > room.chars):
                is_complete = False
                break
            found.append((record, text))
        up_to = record.number
    if is_complete:
        # The last messages may have been deleted.
        up_to = last
    if up_to < begin:
        return None
    if not any(record.role == "user" for record, _ in found):
        return ExtractionBatch((), up_to)
    return ExtractionBatch(tuple(_heard(found, _before(txn, found[0][0]))), up_to)


def _is_parked(txn: ReadTransaction, record: MessageRecord) -> bool:
    batch = txn.inbox.get(record.batch)
    return batch is not None and batch.state == BatchState.PARKED.value


def _before(txn: ReadTransaction, first: MessageRecord) -> list[str]:
    """Return the texts of the messages before one in its conversation, at most two."""
    found: list[str] = []
    for number in range(first.number - 1, max(0, first.number - 1 - BEFORE), -1):
        record = txn.messages.get(number)
        if record is None or record.conversation_id != first.conversation_id:
            break
        found.insert(0, record.without_tools(txn.messages.text(record) or "")[-MODEL_ROOM.chars :])
    return found


def _heard(found: Iterable[tuple[MessageRecord, str]], before: Sequence[str] = ()) -> Iterator[Heard]:
    """Yield messages with the texts before each."""
    earlier = list(before)
    for record, text in found:
        yield Heard(record, text, tuple(earlier[-BEFORE:]))
        earlier.append(text[-MODEL_ROOM.chars :])


def _grouped(heard: Sequence[Heard], room: Room) -> Iterator[list[Heard]]:
    group: list[Heard] = []
    size = 0
    for one in heard:
        if one.record.role not in ("user", "assistant") or not one.text:
            continue
        if not one.is_from_user:
            one = Heard(one.record, one.text[-MAX_CONTEXT_CHARS:], one.before)
        if group and (len(group) == room.messages or size + len(one.text) > room.chars):
            yield group
            group, size = [], 0
        group.append(one)
        size += len(one.text)
    if any(one.is_from_user for one in group):
        yield group
