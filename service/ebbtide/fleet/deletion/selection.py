"""A selection describes what to forget for good. A search finds it in small steps before anything is erased.

All filters (time range, conversations, speakers, topic) must match; explicitly listed memories and messages are added.
A selected message is erased whole, with every memory made from it. A topic selects the sentences of a message that
mention it, and every memory that mentions it or was made from such a sentence. A selected memory is erased with its
sources, as in a deletion.

The same sentences may occur elsewhere, and the topic may occur in names, ids or metadata of data that stays. That data
was not selected, so it stays and is reported as `also_found_in`. Data that may be meant but was redacted to a common
placeholder is reported too, because it may belong to someone else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

from ebbtide.fleet.archive.reading import living_nodes, text_of
from ebbtide.fleet.deletion.records import texts_in, value_of
from ebbtide.fleet.deletion.removal import Item, Memory, Record, Removal, Tally, Traces, Words
from ebbtide.fleet.deletion.words import (
    Span,
    kept_in,
    outside,
    overlaps,
    requoted,
    span_of,
    without,
    word_bytes,
)
from ebbtide.ids import NodeId
from ebbtide.memory.statements import Ledger
from ebbtide.offload.pool import TextWorkers
from ebbtide.records import Link, MessageRecord, Node, Source, StoredRecord
from ebbtide.retrieval.sentences import sentences_of
from ebbtide.retrieval.topic import Topic
from ebbtide.store.lmdb.texts import is_tombstone
from ebbtide.store.lmdb.transaction import ReadTransaction

MAX_READ_PER_STEP = 1000
"""Most messages or nodes read in one step."""

MIN_SENTENCE_BYTES = 12
"""Shorter sentences, such as "Yes, please.", are ignored when the search looks for repetitions."""

MAX_LISTED = 1000
"""Most places reported; further ones are only counted."""

MAX_LINKS_PER_ITEM = 1000
"""Most links that lose their names at once."""


class OffloadedTopic(Topic):
    """A topic that is matched in worker processes if a text is long. For threads that may block."""

    def __init__(self, topic: Topic, texts: TextWorkers) -> None:
        self._topic = topic
        self._texts = texts

    def is_named_in(self, text: str) -> bool:
        """Whether a text mentions the topic. Raise TEXT_TOO_COMPLEX if that takes too long."""
        return self._texts.call(len(text), self._topic.is_named_in, text)

    def stretches(self, text: str) -> list[Span]:
        """Return the sentences of a text that mention the topic. Raise TEXT_TOO_COMPLEX if that takes too long."""
        return self._texts.call(len(text), self._topic.stretches, text)


@dataclass(frozen=True, slots=True)
class Selection:
    """What to forget."""

    nodes: frozenset[NodeId] = frozenset()
    messages: frozenset[int] = frozenset()
    conversations: frozenset[str] = frozenset()
    speakers: frozenset[str] = frozenset()
    begin_ms: int | None = None
    end_ms: int | None = None
    topic: Topic | None = None
    records: frozenset[tuple[tuple[str, ...], str]] = frozenset()
    """Namespaces, each with the key of a record, or with an empty key for all records in it and below it."""
    about: frozenset[NodeId] = frozenset()
    """The statements about entities of the topic's name."""
    redacted_speakers: frozenset[str] = frozenset()
    """The speakers' names after redaction; other names may be redacted to the same."""
    redacted_topic: Topic | None = None
    """The topic after redaction."""

    @property
    def has_filters(self) -> bool:
        """Whether the selection is limited to some messages."""
        return bool(self.conversations or self.speakers) or (self.begin_ms, self.end_ms) != (None, None)

    @property
    def kinds(self) -> list[str]:
        """The kinds of criteria, without their values, for the audit log."""
        given = {
            "nodes": self.nodes,
            "messages": self.messages,
            "topic": self.topic,
            "time_range": (self.begin_ms, self.end_ms) != (None, None),
            "conversations": self.conversations,
            "speakers": self.speakers,
            "records": self.records,
        }
        return [name for name, value in given.items() if value]

    def matches(self, record: MessageRecord) -> bool:
        """Whether a message matches all filters except the topic."""
        return (not self.speakers or record.speaker in self.speakers) and self._matches_filters(record)

    def may_match(self, record: MessageRecord) -> bool:
        """Whether a message matches all filters except the topic, directly or after redaction."""
        is_speaker = record.speaker in self.speakers or record.speaker in self.redacted_speakers
        return (not self.speakers or is_speaker) and self._matches_filters(record)

    def matches_record(self, record: StoredRecord) -> bool:
        """Whether a record is listed, or matches all filters: the times of its writes, and the topic."""
        places = ((record.namespace[:size], "") for size in range(1, len(record.namespace) + 1))
        if (record.namespace, record.key) in self.records or any(one in self.records for one in places):
            return True
        if self.conversations or self.speakers:
            return False
        if (self.begin_ms, self.end_ms) == (None, None) and self.topic is None:
            return False
        if not any(map(self._is_within, (record.created_at_ms, record.updated_at_ms))):
            return False
        texts = (*record.namespace, record.key, *texts_in(value_of(record)))
        return self.topic is None or any(map(self.topic.is_named_in, texts))

    def may_name(self, text: str) -> bool:
        """Whether a text mentions the topic, directly or after redaction; True if there is no topic."""
        topics = [one for one in (self.topic, self.redacted_topic) if one is not None]
        return not topics or any(one.is_named_in(text) for one in topics)

    @property
    def may_be_redacted(self) -> bool:
        """Whether data that is meant may have been redacted to a common placeholder."""
        return bool(self.redacted_speakers) or self.redacted_topic is not None

    def _matches_filters(self, record: MessageRecord) -> bool:
        is_in_conversation = not self.conversations or record.conversation_id in self.conversations
        return is_in_conversation and self._is_within(record.time_ms)

    def _is_within(self, time_ms: int) -> bool:
        return (self.begin_ms is None or time_ms >= self.begin_ms) and (
            self.end_ms is None or time_ms < self.end_ms
        )


@dataclass(slots=True)
class SelectionSearch:
    """The search for a selection and its findings so far."""

    selection: Selection
    entities: Sequence[NodeId] = ()
    """The entities whose names mention the topic, which are deleted."""
    nodes: dict[NodeId, None] = field(default_factory=dict)
    """Memories to delete."""
    records: list[Record] = field(default_factory=list)
    """Records to delete."""
    whole: dict[int, None] = field(default_factory=dict)
    """Messages to delete as a whole."""
    spans: dict[int, list[Span]] = field(default_factory=dict)
    """Spans to overwrite of other messages."""
    forgotten: set[NodeId] = field(default_factory=set)
    """Memories that were made from deleted words and are forgotten or corrected since, and selected ones."""
    byte_count: int = 0
    """Bytes of text to delete, without white space."""
    emptied: dict[int, None] = field(default_factory=dict)
    """Messages without any text after their spans are overwritten."""
    partially_erased: dict[int, None] = field(default_factory=dict)
    """Messages that lose a part of their text."""
    fully_erased: set[NodeId] = field(default_factory=set)
    """Memories to delete with their words."""
    elsewhere: list[str] = field(default_factory=list)
    elsewhere_count: int = 0
    redacted_count: int = 0
    """How many of these may be meant, but cannot be distinguished after redaction."""
    is_done: bool = False
    _stage: int = 0
    _begin: int = 0
    _record_place: bytes = b""
    _matched: set[int] = field(default_factory=set)
    _faded: dict[int, list[Span]] = field(default_factory=dict)
    """Spans of messages from which selected memories were made that are forgotten since."""
    _released: dict[int, list[Span]] = field(default_factory=dict)
    """Spans of messages from which memories were made that are deleted with their words."""
    _marked: dict[int, dict[Span, None]] = field(default_factory=dict)
    """Spans to overwrite, by message, also those of memories."""
    _named_batches: dict[int, bool] = field(default_factory=dict)
    """Whether the metadata of a batch mentions the topic."""
    _sentence_hashes: set[int] = field(default_factory=set)
    """Hashes of the sentences to delete, of which there may be very many."""

    def step(self, txn: ReadTransaction, ledger: Ledger, is_time_up: Callable[[], bool]) -> None:
        """Search on. The stages: records, messages, memories, their words, what derives from them, repetitions
        elsewhere.
        """
        stages = (
            self._records,
            self._messages,
            self._nodes,
            self._own_words,
            partial(self._derived, ledger),
            self._count_bytes,
            self._messages_elsewhere,
            self._nodes_elsewhere,
        )
        numbers = stages[self._stage](txn)
        for count, number in enumerate(numbers, 1):
            self._begin = number + 1
            if count == MAX_READ_PER_STEP or is_time_up():
                return
        self._stage, self._begin = self._stage + 1, 0
        self.is_done = self._stage == len(stages)

    def removal(self, links: Sequence[Link]) -> Removal:
        """Return what the search found as items, with links that lose their names."""
        items: list[Item] = [
            *self.records,
            *map(Memory, sorted(self.fully_erased)),
            *(Words(number, None) for number in self.whole),
            *(Words(number, tuple(spans)) for number, spans in self.spans.items()),
            *(
                Traces(links=tuple(links[begin : begin + MAX_LINKS_PER_ITEM]))
                for begin in range(0, len(links), MAX_LINKS_PER_ITEM)
            ),
            Traces(tuple(self.forgotten), entities=tuple(self.entities)),
        ]
        kinds = self.selection.kinds

        def details(tally: Tally, *_: object) -> dict[str, object]:
            return {"by": kinds, **msgspec.structs.asdict(tally)}

        return Removal(items, "forgotten", details, is_permanent=True)

    # --- what to erase -----------------------------------------------------------------------------

    def _records(self, txn: ReadTransaction) -> Iterator[int]:
        for place, record in txn.records.placed(start=self._record_place):
            if self.selection.matches_record(record):
                self.records.append(Record(record.namespace, record.key, record.version))
            self._record_place = place + b"\0"
            yield record.version

    def _messages(self, txn: ReadTransaction) -> Iterator[int]:
        for record in txn.messages.all(self._begin):
            if not is_tombstone(record):
                self._select_message(txn, record)
            yield record.number

    def _select_message(self, txn: ReadTransaction, record: MessageRecord) -> None:
        selection, number = self.selection, record.number
        if faded := [span_of(one) for one in record.faded if one.node in selection.nodes]:
            self._faded[number] = faded
        matched = selection.matches(record)
        if matched and selection.has_filters:
            self._matched.add(number)
        if number in selection.messages or (matched and selection.has_filters and selection.topic is None):
            self.whole[number] = None
            self._add_sentences(txn.messages.text(record) or "")
        elif matched and selection.topic is not None:
            said = txn.messages.text(record) or ""
            spans = selection.topic.stretches(said)
            if spans:
                self.spans[number] = spans
                self._mark(number, said, spans)

    def _nodes(self, txn: ReadTransaction) -> Iterator[int]:
        for node in txn.nodes.all(self._begin):
            self._select_node(txn, node)
            yield node.id

    def _select_node(self, txn: ReadTransaction, node: Node) -> None:
        sources = list(filter(self._is_erased, node.sources))
        chosen = self.selection.nodes | self.selection.about
        is_named = node.id in chosen or self._names_topic(node)
        if not sources and not is_named:
            return
        left = requoted(txn, node, self._is_erased)
        if sources and left is not None and node.id not in chosen and not self._names_topic(left):
            return
        if is_named or any(source.message not in self.whole for source in sources):
            self.fully_erased.add(node.id)
            for source in node.sources:
                self._released.setdefault(source.message, []).append(span_of(source))
        self.nodes[node.id] = None
        self._add_sentences(node.content)

    def _is_erased(self, source: Source) -> bool:
        """Whether the words of a source are selected."""
        return source.message in self.whole or overlaps(source, self.spans.get(source.message, ()))

    def _own_words(self, txn: ReadTransaction) -> Iterator[int]:
        """Find the words that only deleted memories, living or forgotten, were made from."""
        numbers = (self._faded.keys() | self._released.keys()) - self.whole.keys()
        for number in sorted(one for one in numbers if one >= self._begin):
            text, kept = text_of(txn, number), kept_in(txn, number, self.nodes)
            raw = text.encode()
            own = outside(sorted(self._faded.get(number, ())), kept)
            spans = [span for span in own if raw[span[0] : span[1]].strip()]
            if spans:
                self.spans.setdefault(number, []).extend(spans)
            if text:
                self._mark(number, text, [*spans, *outside(sorted(self._released.get(number, ())), kept)])
            yield number

    def _derived(self, ledger: Ledger, txn: ReadTransaction) -> Iterator[int]:
        """Find the inferred statements and the reasons of rulings that go with the rest, as the executor does."""

        def is_erased(source: Source) -> bool:
            return source.message in self.whole or overlaps(source, self._marked.get(source.message, ()))

        lost = ledger.lost([*self.nodes, *self.entities], self.whole.keys() | self._marked.keys(), is_erased)
        for node in living_nodes(txn, lost.inferred):
            self.nodes[node.id] = None
        for source in (source for ruling in lost.rulings for source in ruling.sources):
            text = text_of(txn, source.message)
            if text and source.message not in self.whole:
                kept = kept_in(txn, source.message, self.nodes)
                self._mark(source.message, text, outside([span_of(source)], kept))
        yield from ()

    def _count_bytes(self, txn: ReadTransaction) -> Iterator[int]:
        """Count the deleted bytes of each message once, and find the forgotten memories made from them."""
        self.forgotten.update(one for one in self.selection.nodes if one not in self.nodes)
        for number in sorted(one for one in self.whole.keys() | self._marked.keys() if one >= self._begin):
            is_whole, spans = number in self.whole, self._marked.get(number, {})
            record = txn.messages.get(number)
            for one in () if record is None else record.faded:
                if is_whole or overlaps(one, spans):
                    self.forgotten.add(one.node)
            text = text_of(txn, number)
            left = "" if is_whole else without(text, spans)
            byte_count = word_bytes(text) - word_bytes(left)
            self.byte_count += byte_count
            if not is_whole and byte_count:
                (self.partially_erased if left.strip() else self.emptied)[number] = None
            yield number

    def matched(self, message: int) -> bool:
        """Whether a message matches the filters."""
        return message in self._matched

    @property
    def gone_whole(self) -> list[int]:
        """Messages without any remaining text."""
        return sorted(self.whole.keys() | self.emptied.keys())

    def _names_topic(self, node: Node) -> bool:
        topic = self.selection.topic
        if topic is None or not any(map(topic.is_named_in, (node.content, node.phrase, *node.keywords))):
            return False
        return not self.selection.has_filters or any(one.message in self._matched for one in node.sources)

    def _mark(self, message: int, text: str, spans: Iterable[Span]) -> None:
        known, raw = self._marked.setdefault(message, {}), text.encode()
        for span in spans:
            if span not in known:
                known[span] = None
                self._add_sentences(raw[span[0] : span[1]].decode(errors="replace"))

    def _add_sentences(self, text: str) -> None:
        self._sentence_hashes.update(map(hash, _sentences(text)))

    @property
    def is_empty(self) -> bool:
        """Whether the search found nothing to delete."""
        return not (self.nodes or self.whole or self.spans or self.records)

    # --- repetitions in data that stays ------------------------------------------------------------

    @property
    def _searches_elsewhere(self) -> bool:
        return (
            bool(self._sentence_hashes) or self.selection.topic is not None or self.selection.may_be_redacted
        )

    def _messages_elsewhere(self, txn: ReadTransaction) -> Iterator[int]:
        for record in txn.messages.all(self._begin) if self._searches_elsewhere else ():
            is_gone = record.number in self.whole or record.number in self.emptied or is_tombstone(record)
            if not is_gone and self._mentions(txn, record):
                self._report(f"m{record.number}")
            yield record.number

    def _mentions(self, txn: ReadTransaction, record: MessageRecord) -> bool:
        selection, is_touched = self.selection, record.number in self._marked
        text = (None if is_touched else txn.messages.text(record)) or ""
        if (
            selection.may_be_redacted
            and not is_touched
            and selection.may_match(record)
            and selection.may_name(text)
        ):
            self.redacted_count += 1
            return True
        return self._repeats(text) or self._is_named_in_context(txn, record)

    def _is_named_in_context(self, txn: ReadTransaction, record: MessageRecord) -> bool:
        """Whether the topic occurs in the speaker, ids or metadata of a message, or in its batch."""
        topic = self.selection.topic
        if topic is None:
            return False
        around = (
            record.speaker,
            record.conversation_id,
            record.caller_id,
            *words_in(txn.messages.metadata(record)),
        )
        return any(map(topic.is_named_in, around)) or self._is_named_by_batch(txn, record.batch, topic)

    def _is_named_by_batch(self, txn: ReadTransaction, number: int, topic: Topic) -> bool:
        if number not in self._named_batches:
            batch = txn.inbox.get(number)
            texts = () if batch is None else (batch.metadata, batch.idempotency_key, batch.last_error)
            self._named_batches[number] = any(map(topic.is_named_in, texts))
        return self._named_batches[number]

    def _nodes_elsewhere(self, txn: ReadTransaction) -> Iterator[int]:
        redacted = self.selection.redacted_topic
        for node in txn.nodes.all(self._begin) if self._sentence_hashes or redacted is not None else ():
            if node.id not in self.nodes:
                may_be_meant = redacted is not None and redacted.is_named_in(node.content)
                self.redacted_count += may_be_meant
                if may_be_meant or self._repeats(node.content):
                    self._report(f"n{node.id}")
            yield node.id

    def _repeats(self, text: str) -> bool:
        return any(hash(sentence) in self._sentence_hashes for sentence in _sentences(text))

    def _report(self, name: str) -> None:
        self.elsewhere_count += 1
        if len(self.elsewhere) < MAX_LISTED:
            self.elsewhere.append(name)


def words_in(value: object) -> Iterator[str]:
    """Yield the texts in a metadata value, including field names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from words_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from words_in(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text that are long enough to identify it."""
    for sentence in sentences_of(text):
        sentence_text = sentence.strip()
        if len(sentence_text.encode()) >= MIN_SENTENCE_BYTES:
            yield sentence_text
