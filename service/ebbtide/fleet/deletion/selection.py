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

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ebbtide.fleet.archive.reading import living_nodes, message_with_text, text_of
from ebbtide.fleet.deletion.deletion import KeptSources, outside, own_words, text_bytes, without
from ebbtide.ids import NodeId
from ebbtide.offload.pool import TextWorkers
from ebbtide.records import Batch, MessageRecord, Node
from ebbtide.retrieval.sentences import sentences_of
from ebbtide.retrieval.topic import Topic
from ebbtide.statements import STATEMENT_KINDS
from ebbtide.store.lmdb.texts import is_tombstone
from ebbtide.store.lmdb.transaction import ReadTransaction

MAX_READ_PER_STEP = 1000
"""Most messages or nodes read in one step."""

MIN_SENTENCE_BYTES = 12
"""Shorter sentences, such as "Yes, please.", are ignored when the search looks for repetitions."""

MAX_LISTED = 1000
"""Most places reported; further ones are only counted."""


Span = tuple[int, int]
"""(begin, end) of a part of a message, in UTF-8 bytes."""


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
        }
        return [name for name, value in given.items() if value]

    def matches(self, record: MessageRecord) -> bool:
        """Whether a message matches all filters except the topic."""
        return (not self.speakers or record.speaker in self.speakers) and self._matches_filters(record)

    def may_match(self, record: MessageRecord) -> bool:
        """Whether a message matches all filters except the topic, directly or after redaction."""
        is_speaker = record.speaker in self.speakers or record.speaker in self.redacted_speakers
        return (not self.speakers or is_speaker) and self._matches_filters(record)

    def may_name(self, text: str) -> bool:
        """Whether a text mentions the topic, directly or after redaction; True if there is no topic."""
        topics = [one for one in (self.topic, self.redacted_topic) if one is not None]
        return not topics or any(one.is_named_in(text) for one in topics)

    @property
    def may_be_redacted(self) -> bool:
        """Whether data that is meant may have been redacted to a common placeholder."""
        return bool(self.redacted_speakers) or self.redacted_topic is not None

    def _matches_filters(self, record: MessageRecord) -> bool:
        time_ms = record.time_ms
        return (
            (not self.conversations or record.conversation_id in self.conversations)
            and (self.begin_ms is None or time_ms >= self.begin_ms)
            and (self.end_ms is None or time_ms < self.end_ms)
        )


@dataclass(slots=True)
class SelectionSearch:
    """The search for a selection and its findings so far."""

    selection: Selection
    nodes: dict[NodeId, None] = field(default_factory=dict)
    """Memories to erase."""
    whole: dict[int, None] = field(default_factory=dict)
    """Messages to erase as a whole."""
    spans: dict[int, list[Span]] = field(default_factory=dict)
    """Spans to erase of other messages."""
    faded: dict[int, list[Span]] = field(default_factory=dict)
    """Spans of messages from which selected memories were made that are forgotten since."""
    citing: dict[int, list[NodeId]] = field(default_factory=dict)
    """Memories to erase with a message."""
    byte_count: int = 0
    """Bytes of text to erase, without white space."""
    emptied: dict[int, None] = field(default_factory=dict)
    """Messages without any text after their spans are erased."""
    partially_erased: dict[int, None] = field(default_factory=dict)
    """Messages that lose a part of their text."""
    fully_erased: set[NodeId] = field(default_factory=set)
    """Memories to erase whose sources are erased too."""
    next_node_id: NodeId = 0
    """Memories from this id on were created after the search for memories."""
    batches: set[int] = field(default_factory=set)
    """Batches that lose data."""
    possible_memories: set[NodeId] = field(default_factory=set)
    """Memories, living or not, that came from these batches, and listed ones."""
    has_unknown_batches: bool = False
    """Whether the status of such a batch was pruned, so that its memories are unknown."""
    other_memories: set[NodeId] = field(default_factory=set)
    """Memories that came from other batches, if that matters."""
    corrected: set[NodeId] = field(default_factory=set)
    """Memories from these batches that stay, because they were corrected."""
    elsewhere: list[str] = field(default_factory=list)
    elsewhere_count: int = 0
    redacted_count: int = 0
    """How many of these may be meant, but cannot be distinguished after redaction."""
    is_done: bool = False
    _stage: int = 0
    _begin: int = 0
    _matched: set[int] = field(default_factory=set)
    _cited: dict[int, list[Span]] = field(default_factory=dict)
    """Spans of the messages in `faded` that memories cite which stay."""
    _marked: dict[int, dict[Span, None]] = field(default_factory=dict)
    """Spans to erase, by message."""
    _named_batches: dict[int, bool] = field(default_factory=dict)
    """Whether the metadata of a batch mentions the topic."""
    _sentence_hashes: set[int] = field(default_factory=set)
    """Hashes of the sentences to erase, of which there may be very many."""

    def step(self, txn: ReadTransaction, is_time_up: Callable[[], bool]) -> None:
        """Search on. The stages: messages, memories, their sources, their batches, repetitions elsewhere."""
        stages = (
            self._messages,
            self._nodes,
            self._sources_of_faded,
            self._sources_of_nodes,
            self._count_bytes,
            self._batches,
            self._other_batches,
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

    # --- what to erase -----------------------------------------------------------------------------

    def _messages(self, txn: ReadTransaction) -> Iterator[int]:
        for record in txn.messages.all(self._begin):
            if not is_tombstone(record):
                self._select_message(txn, record)
            yield record.number

    def _select_message(self, txn: ReadTransaction, record: MessageRecord) -> None:
        selection, number = self.selection, record.number
        faded = [(one.offset, one.offset + one.length) for one in record.faded if one.node in selection.nodes]
        if faded:
            self.faded[number] = faded
        matched = selection.matches(record)
        if matched and selection.has_filters:
            self._matched.add(number)
        if number in selection.messages or (matched and selection.has_filters and selection.topic is None):
            self.whole[number] = None
            self.batches.add(record.batch)
            self._add_sentences(txn.messages.text(record) or "")
        elif matched and selection.topic is not None:
            said = txn.messages.text(record) or ""
            spans = selection.topic.stretches(said)
            if spans:
                self.spans[number] = spans
                self.batches.add(record.batch)
                self._mark(number, said, spans)

    def erases_sources(self, node: Node) -> bool:
        """Whether the sources of a memory are erased with it; not if its messages are erased as a whole."""
        erased_sources = self.erased_sources(node)
        return node.id in self.fully_erased or any(message not in self.whole for message in erased_sources)

    def _nodes(self, txn: ReadTransaction) -> Iterator[int]:
        self.next_node_id = txn.meta.next_node_id
        for node in txn.nodes.all(self._begin):
            self._select_node(txn, node)
            yield node.id

    def _select_node(self, txn: ReadTransaction, node: Node) -> None:
        erased_sources = self.erased_sources(node)
        for message in erased_sources:
            self.citing.setdefault(message, []).append(node.id)
        is_named = node.id in self.selection.nodes or self._names_topic(node)
        if not erased_sources and not is_named:
            for source in node.sources:
                if source.message in self.faded:
                    cited = self._cited.setdefault(source.message, [])
                    cited.append((source.offset, source.offset + source.length))
            return
        if not self._keeps_sources(node, erased_sources) and (
            is_named or any(message not in self.whole for message in erased_sources)
        ):
            self.fully_erased.add(node.id)
        self.nodes.setdefault(node.id)
        self.batches.add(node.batch)
        self._add_sentences(node.content)

    def _keeps_sources(self, node: Node, erased_sources: list[int]) -> bool:
        """Return whether a statement has words in other messages, so that it loses only the erased sources."""
        if node.kind not in STATEMENT_KINDS or node.id in self.selection.nodes:
            return False
        return bool(erased_sources) and any(one.message not in erased_sources for one in node.sources)

    def _sources_of_faded(self, txn: ReadTransaction) -> Iterator[int]:
        """Find what the forgotten memories alone were made from. Its text is erased by itself."""
        for number in sorted(one for one in self.faded if one >= self._begin):
            text = text_of(txn, number)
            raw = text.encode()
            own = outside(sorted(self.faded[number]), sorted(self._cited.get(number, ())))
            spans = [span for span in own if raw[span[0] : span[1]].strip()]
            self.faded[number] = [] if number in self.whole else spans
            self._mark(number, text, self.faded[number])
            yield number

    def _sources_of_nodes(self, txn: ReadTransaction) -> Iterator[int]:
        kept = KeptSources(self.nodes)
        for node_id in sorted(one for one in self.fully_erased if one >= self._begin):
            node = txn.nodes.get(node_id)
            for number, spans in own_words(txn, node, kept).items() if node is not None else ():
                found = message_with_text(txn, number)
                if found is not None and number not in self.whole:
                    self._mark(number, found[1], spans)
            yield node_id

    def _count_bytes(self, txn: ReadTransaction) -> Iterator[int]:
        """Count the erased bytes of each message once."""
        for number in sorted(one for one in self.whole.keys() | self._marked.keys() if one >= self._begin):
            text = text_of(txn, number)
            left = "" if number in self.whole else without(text, self._marked[number])
            byte_count = text_bytes(text) - text_bytes(left)
            self.byte_count += byte_count
            if number not in self.whole and byte_count:
                (self.partially_erased if left.strip() else self.emptied)[number] = None
            yield number

    def _batches(self, txn: ReadTransaction) -> Iterator[int]:
        self.possible_memories.update(self.selection.nodes)
        for number in sorted(number for number in self.batches if number >= self._begin):
            batch = txn.inbox.get(number)
            if batch is None:
                self.has_unknown_batches = True
            else:
                self.possible_memories.update(batch.node_ids)
                self.corrected.update(self._corrected_nodes(txn, batch))
            yield number

    def _corrected_nodes(self, txn: ReadTransaction, batch: Batch) -> Iterator[NodeId]:
        said = range(batch.first_message, batch.first_message + batch.message_count)
        for node in living_nodes(txn, batch.node_ids):
            if node.id not in self.nodes and all(source.message not in said for source in node.sources):
                yield node.id

    def _other_batches(self, txn: ReadTransaction) -> Iterator[int]:
        for batch in txn.inbox.all(self._begin) if self.has_unknown_batches else ():
            if batch.number not in self.batches:
                self.other_memories.update(batch.node_ids)
            yield batch.number

    def matched(self, message: int) -> bool:
        """Whether a message matches the filters."""
        return message in self._matched

    @property
    def gone_whole(self) -> list[int]:
        """Messages without any remaining text."""
        return sorted(self.whole.keys() | self.emptied.keys())

    def erased_sources(self, node: Node) -> list[int]:
        """Return the selected messages because of which a memory is erased."""
        return list(
            dict.fromkeys(
                source.message
                for source in node.sources
                if source.message in self.whole
                or any(
                    begin < source.offset + source.length and end > source.offset
                    for begin, end in self.spans.get(source.message, ())
                )
            )
        )

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
        """Whether the search found nothing to erase."""
        return not (self.nodes or self.whole or self.spans or any(self.faded.values()))

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
