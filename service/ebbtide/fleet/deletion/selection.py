"""A selection: what of an agent is to be forgotten for good, found in small steps before anything is erased.

What narrows (a time, conversations, speakers, a topic) holds together; memories and messages that are named come on
top. A message that is selected goes whole, with every memory made from it. A topic takes of each message the sentences
that name it, and every memory that names it or was made from such a sentence. A memory that is selected goes with what
it was made from, as a deleted one does.

The same words may have been said elsewhere, and a topic may be named around what stays: by a speaker's name, an id,
metadata. That stays, since nobody selected it, and is told: `also_found_in`. So is what may be meant but was redacted
to something that others share: whose it was nobody can tell any more, and nothing of others goes in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ebbtide.fleet.deletion.deletion import BatchSources, own_words, said_bytes, without
from ebbtide.ids import NodeId
from ebbtide.offload.pool import TextWorkers
from ebbtide.records import Batch, MessageRecord, Node
from ebbtide.retrieval.sentences import sentences_of
from ebbtide.retrieval.topic import Topic
from ebbtide.store.lmdb.texts import is_tombstone
from ebbtide.store.port import ReadTransaction

MAX_READ_PER_STEP = 1000
"""Messages or nodes looked at in one step, unless its time is over sooner."""

MIN_SENTENCE_BYTES = 12
"""A sentence shorter than this is no clue to anything when it was said elsewhere too: "Yes, please."."""

MOST_TOLD = 1000
"""Places named where the same words were said; further ones are counted."""


Span = tuple[int, int]
"""(begin, end) of a stretch of a message, in UTF-8 bytes."""


class OffloadedTopic(Topic):
    """A topic that is looked for in worker processes where a text is long. For threads that may block."""

    def __init__(self, topic: Topic, texts: TextWorkers) -> None:
        self._topic = topic
        self._texts = texts

    def is_named_in(self, text: str) -> bool:
        """Whether a text names it. TEXT_TOO_COMPLEX where that takes too long."""
        return self._texts.call(len(text), self._topic.is_named_in, text)

    def stretches(self, text: str) -> list[Span]:
        """The sentences of a text that name it. TEXT_TOO_COMPLEX where that takes too long."""
        return self._texts.call(len(text), self._topic.stretches, text)


@dataclass(frozen=True, slots=True)
class Selection:
    """What is to be forgotten."""

    nodes: frozenset[NodeId] = frozenset()
    messages: frozenset[int] = frozenset()
    conversations: frozenset[str] = frozenset()
    speakers: frozenset[str] = frozenset()
    begin_ms: int | None = None
    end_ms: int | None = None
    topic: Topic | None = None
    redacted_speakers: frozenset[str] = frozenset()
    """What redaction would have left of the speakers' names: others may have been redacted to the same."""
    redacted_topic: Topic | None = None
    """What redaction would have left of the topic."""

    @property
    def is_filtering(self) -> bool:
        """Whether only some messages count."""
        return bool(self.conversations or self.speakers) or (self.begin_ms, self.end_ms) != (None, None)

    @property
    def kinds(self) -> list[str]:
        """By what is selected, without the words: what the audit log may tell."""
        given = {
            "nodes": self.nodes,
            "messages": self.messages,
            "topic": self.topic,
            "time_range": (self.begin_ms, self.end_ms) != (None, None),
            "conversations": self.conversations,
            "speakers": self.speakers,
        }
        return [name for name, value in given.items() if value]

    def picks(self, record: MessageRecord) -> bool:
        """Whether everything that narrows holds for a message; the topic apart."""
        return (not self.speakers or record.speaker in self.speakers) and self._picks_otherwise(record)

    def may_mean(self, record: MessageRecord) -> bool:
        """Whether everything that narrows holds for a message as it is, or as redaction may have left it."""
        is_speaker = record.speaker in self.speakers or record.speaker in self.redacted_speakers
        return (not self.speakers or is_speaker) and self._picks_otherwise(record)

    def may_name(self, text: str) -> bool:
        """Whether a text names the topic, as it is or as redaction may have left it; all do where there is none."""
        topics = [one for one in (self.topic, self.redacted_topic) if one is not None]
        return not topics or any(one.is_named_in(text) for one in topics)

    @property
    def may_be_redacted(self) -> bool:
        """Whether what is meant may have been redacted to something that others share."""
        return bool(self.redacted_speakers) or self.redacted_topic is not None

    def _picks_otherwise(self, record: MessageRecord) -> bool:
        time_ms = record.time_ms
        return (
            (not self.conversations or record.conversation_id in self.conversations)
            and (self.begin_ms is None or time_ms >= self.begin_ms)
            and (self.end_ms is None or time_ms < self.end_ms)
        )


@dataclass(slots=True)
class SelectionSearch:
    """A selection looked up; what it found so far."""

    wanted: Selection
    nodes: dict[NodeId, None] = field(default_factory=dict)
    """Memories that go."""
    whole: dict[int, None] = field(default_factory=dict)
    """Messages that go as a whole."""
    spans: dict[int, list[Span]] = field(default_factory=dict)
    """Of these messages only some stretches go."""
    citing: dict[int, list[NodeId]] = field(default_factory=dict)
    """The memories that go along with a message."""
    byte_count: int = 0
    """Bytes of words that go, without the white space between them."""
    emptied: dict[int, None] = field(default_factory=dict)
    """Messages of which nothing is left once their stretches are gone."""
    partly: dict[int, None] = field(default_factory=dict)
    """Messages of which something goes and something is left."""
    named: set[NodeId] = field(default_factory=set)
    """Of the memories that go, those that take what they were made from along."""
    next_node_id: NodeId = 0
    """Memories from here on came into being since the look at them was over."""
    batches: set[int] = field(default_factory=set)
    """Batches of which something goes."""
    once_made: set[NodeId] = field(default_factory=set)
    """Memories that came from these, living or not, and those that are named."""
    is_unsure: bool = False
    """Whether the status of one of these is not kept any more: nobody knows which memories came from it."""
    made_elsewhere: set[NodeId] = field(default_factory=set)
    """Memories that came from other batches, where that matters."""
    corrected: set[NodeId] = field(default_factory=set)
    """Memories that came from these and stay, since they say something else by now."""
    also: list[str] = field(default_factory=list)
    also_count: int = 0
    redacted_count: int = 0
    """Of these, those that may be meant: redaction made them like others, so nobody can tell."""
    is_done: bool = False
    _stage: int = 0
    _begin: int = 0
    _picked: set[int] = field(default_factory=set)
    _going: dict[int, dict[Span, None]] = field(default_factory=dict)
    """Stretches that go, by message."""
    _named_batches: dict[int, bool] = field(default_factory=dict)
    """Whether what was told with a batch names the topic."""
    _said: set[int] = field(default_factory=set)
    """Hashes of the sentences that go: there may be very many."""

    def step(self, txn: ReadTransaction, is_time_up: Callable[[], bool]) -> None:
        """Look at some more. The stages: messages, memories, their words, their batches, the same words elsewhere."""
        stages = (
            self._messages,
            self._nodes,
            self._words_of_nodes,
            self._what_is_left,
            self._batches,
            self._other_batches,
            self._messages_alike,
            self._nodes_alike,
        )
        numbers = stages[self._stage](txn)
        for count, number in enumerate(numbers, 1):
            self._begin = number + 1
            if count == MAX_READ_PER_STEP or is_time_up():
                return
        self._stage, self._begin = self._stage + 1, 0
        self.is_done = self._stage == len(stages)

    # --- what goes ---------------------------------------------------------------------------------

    def _messages(self, txn: ReadTransaction) -> Iterator[int]:
        for record in txn.messages(self._begin):
            if not is_tombstone(record):
                self._look_at(txn, record)
            yield record.number

    def _look_at(self, txn: ReadTransaction, record: MessageRecord) -> None:
        wanted, number = self.wanted, record.number
        is_picked = wanted.picks(record)
        if is_picked and wanted.is_filtering:
            self._picked.add(number)
        if number in wanted.messages or (is_picked and wanted.is_filtering and wanted.topic is None):
            self.whole[number] = None
            self.batches.add(record.batch)
            self._note(txn.message_text(record) or "")
        elif is_picked and wanted.topic is not None:
            said = txn.message_text(record) or ""
            spans = wanted.topic.stretches(said)
            if spans:
                self.spans[number] = spans
                self.batches.add(record.batch)
                self._goes(number, said, spans)

    def takes_words(self, node: Node) -> bool:
        """Whether a memory that goes takes along what it was made from: unless its messages go whole anyway."""
        along = self.along(node)
        return node.id in self.named or any(message not in self.whole for message in along)

    def _nodes(self, txn: ReadTransaction) -> Iterator[int]:
        self.next_node_id = txn.next_node_id()
        for node in txn.nodes(self._begin):
            self._look_at_node(txn, node)
            yield node.id

    def _look_at_node(self, txn: ReadTransaction, node: Node) -> None:
        along = self.along(node)
        for message in along:
            self.citing.setdefault(message, []).append(node.id)
        is_named = node.id in self.wanted.nodes or self._is_about(node)
        if not along and not is_named:
            return
        if is_named or any(message not in self.whole for message in along):
            self.named.add(node.id)
        self.nodes.setdefault(node.id)
        self.batches.add(node.batch)
        self._note(node.content.removeprefix(node.prefix))

    def _words_of_nodes(self, txn: ReadTransaction) -> Iterator[int]:
        mates = BatchSources()
        for node_id in sorted(one for one in self.named if one >= self._begin):
            node = txn.node(node_id)
            for number, spans in own_words(txn, node, self.nodes, mates).items() if node is not None else ():
                record = txn.message(number)
                text = None if record is None else txn.message_text(record)
                if text is not None and number not in self.whole:
                    self._goes(number, text, spans)
            yield node_id

    def _what_is_left(self, txn: ReadTransaction) -> Iterator[int]:
        """Count what goes of each message once, however many memories and sentences take it along."""
        for number in sorted(one for one in self.whole.keys() | self._going.keys() if one >= self._begin):
            record = txn.message(number)
            text = (None if record is None else txn.message_text(record)) or ""
            left = "" if number in self.whole else without(text, self._going[number])
            byte_count = said_bytes(text) - said_bytes(left)
            self.byte_count += byte_count
            if number not in self.whole and byte_count:
                (self.partly if left.strip() else self.emptied)[number] = None
            yield number

    def _batches(self, txn: ReadTransaction) -> Iterator[int]:
        self.once_made.update(self.wanted.nodes)
        for number in sorted(number for number in self.batches if number >= self._begin):
            batch = txn.batch(number)
            if batch is None:
                self.is_unsure = True
            else:
                self.once_made.update(batch.node_ids)
                self.corrected.update(self._corrected_of(txn, batch))
            yield number

    def _corrected_of(self, txn: ReadTransaction, batch: Batch) -> Iterator[NodeId]:
        said = range(batch.first_message, batch.first_message + batch.message_count)
        living = [node for node in map(txn.node, batch.node_ids) if node is not None]
        for node in living:
            if node.id not in self.nodes and all(source.message not in said for source in node.sources):
                yield node.id

    def _other_batches(self, txn: ReadTransaction) -> Iterator[int]:
        for batch in txn.batches(self._begin) if self.is_unsure else ():
            if batch.number not in self.batches:
                self.made_elsewhere.update(batch.node_ids)
            yield batch.number

    def is_picked(self, message: int) -> bool:
        """Whether a message is one of those that the selection is narrowed to."""
        return message in self._picked

    @property
    def gone_whole(self) -> list[int]:
        """Messages of which nothing is left, whether they were selected or everything in them was."""
        return sorted(self.whole.keys() | self.emptied.keys())

    def along(self, node: Node) -> list[int]:
        """The selected messages, or messages of which something is selected, that take a memory along."""
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

    def _is_about(self, node: Node) -> bool:
        topic = self.wanted.topic
        if topic is None or not any(map(topic.is_named_in, (node.content, node.phrase, *node.keywords))):
            return False
        return not self.wanted.is_filtering or any(one.message in self._picked for one in node.sources)

    def _goes(self, message: int, text: str, spans: Iterable[Span]) -> None:
        known, raw = self._going.setdefault(message, {}), text.encode()
        for span in spans:
            if span not in known:
                known[span] = None
                self._note(raw[span[0] : span[1]].decode(errors="replace"))

    def _note(self, text: str) -> None:
        self._said.update(map(hash, _telling(text)))

    @property
    def is_nothing(self) -> bool:
        """Whether nothing was found that goes."""
        return not (self.nodes or self.whole or self.spans)

    # --- what stays, and tells of it -----------------------------------------------------------------

    @property
    def _may_stay(self) -> bool:
        return bool(self._said) or self.wanted.topic is not None or self.wanted.may_be_redacted

    def _messages_alike(self, txn: ReadTransaction) -> Iterator[int]:
        for record in txn.messages(self._begin) if self._may_stay else ():
            is_gone = record.number in self.whole or record.number in self.emptied or is_tombstone(record)
            if not is_gone and self._tells_in(txn, record):
                self._tell(f"m{record.number}")
            yield record.number

    def _tells_in(self, txn: ReadTransaction, record: MessageRecord) -> bool:
        wanted, is_touched = self.wanted, record.number in self._going
        text = (None if is_touched else txn.message_text(record)) or ""
        if wanted.may_be_redacted and not is_touched and wanted.may_mean(record) and wanted.may_name(text):
            self.redacted_count += 1
            return True
        return self._is_said_in(text) or self._is_named_around(txn, record)

    def _is_named_around(self, txn: ReadTransaction, record: MessageRecord) -> bool:
        """Whether the topic is named by who said a message, where, under which id, and by what was told with it."""
        topic = self.wanted.topic
        if topic is None:
            return False
        around = (record.speaker, record.conversation_id, record.caller_id, *words_in(txn.metadata(record)))
        return any(map(topic.is_named_in, around)) or self._is_named_by_batch(txn, record.batch, topic)

    def _is_named_by_batch(self, txn: ReadTransaction, number: int, topic: Topic) -> bool:
        if number not in self._named_batches:
            batch = txn.batch(number)
            told = () if batch is None else (batch.metadata, batch.idempotency_key, batch.last_error)
            self._named_batches[number] = any(map(topic.is_named_in, told))
        return self._named_batches[number]

    def _nodes_alike(self, txn: ReadTransaction) -> Iterator[int]:
        redacted = self.wanted.redacted_topic
        for node in txn.nodes(self._begin) if self._said or redacted is not None else ():
            if node.id not in self.nodes:
                may_be_meant = redacted is not None and redacted.is_named_in(node.content)
                self.redacted_count += may_be_meant
                if may_be_meant or self._is_said_in(node.content.removeprefix(node.prefix)):
                    self._tell(f"n{node.id}")
            yield node.id

    def _is_said_in(self, text: str) -> bool:
        return any(hash(sentence) in self._said for sentence in _telling(text))

    def _tell(self, name: str) -> None:
        self.also_count += 1
        if len(self.also) < MOST_TOLD:
            self.also.append(name)


def words_in(value: object) -> Iterator[str]:
    """The texts in a value of metadata, names of fields too."""
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


def _telling(text: str) -> Iterator[str]:
    """The sentences of a text that are long enough to tell something."""
    for sentence in sentences_of(text):
        told = sentence.strip()
        if len(told.encode()) >= MIN_SENTENCE_BYTES:
            yield told
