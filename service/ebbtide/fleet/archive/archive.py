"""The archive of one agent: what was said, found by its words, whatever became of the memories made from it.

Passages are written to the store with the messages they belong to, in the commit that accepts them: a batch can
be found as soon as it is acknowledged, with no model and before any digest. In memory they stand on a shelf
(`retrieval/passages.py`), which is loaded when an agent is first asked a question and follows every commit after.

Messages of a store written before there were passages are analysed when the shelf is loaded.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

import msgspec
import numpy as np
from numpy.typing import NDArray

from ebbtide.ids import NodeId
from ebbtide.records import EmbeddedMessage, EmbeddingState, MessageRecord, Node, PassageEntry
from ebbtide.retrieval.analysis import Terms
from ebbtide.retrieval.lexical import WordScores
from ebbtide.retrieval.passages import Entry, PassageIndex, Shelved, cut, entries_of, entry_of
from ebbtide.retrieval.vectors import Vectors
from ebbtide.store.port import ReadTransaction


def passages_of(text: str, speaker: str) -> list[PassageEntry]:
    """The passages of a message as the store keeps them."""
    return [_kept(entry) for entry in entries_of(text, speaker)]


def passage_of(stretch: str, speaker: str, begin: int) -> PassageEntry:
    """One passage of a message, as the store keeps it."""
    return _kept(entry_of(stretch, speaker, begin))


def _kept(entry: Entry, told_by: tuple[NodeId, ...] = ()) -> PassageEntry:
    terms = entry.terms.astype("<u4").tobytes()
    return PassageEntry(entry.begin, entry.length, entry.word_count, terms, entry.counts.tobytes(), told_by)


Span = tuple[int, int]
"""(begin, length) of a stretch of a message, in UTF-8 bytes."""


def retold(record: MessageRecord, spans: Iterable[Span], nodes: Sequence[Node]) -> list[PassageEntry]:
    """The passages of a message without its text: what memories made of each stretch say now.

    A stretch of which no memory lives keeps its place and has no terms: nothing finds it.
    """
    entries = []
    for begin, length in spans:
        telling = [node for node in nodes if _tells(node, record.number, begin, length)]
        entry = replace(entry_of(said_by(telling), record.speaker, begin), length=length)
        entries.append(_kept(entry, tuple(node.id for node in telling)))
    return entries


def said_by(nodes: Iterable[Node]) -> str:
    """What memories say now, without who says it."""
    return " ".join(node.content.removeprefix(node.prefix) for node in nodes)


def _tells(node: Node, message: int, begin: int, length: int) -> bool:
    return any(
        source.message == message and source.offset < begin + length and source.offset + source.length > begin
        for source in node.sources
    )


def spans_of(text: str) -> list[Span]:
    """Where the passages of a text stand in it, in bytes."""
    spans, begin = [], 0
    for first, end in cut(text):
        length = len(text[first:end].encode())
        spans.append((begin, length))
        begin += length
    return spans


def spans_cited(record: MessageRecord, nodes: Iterable[Node]) -> list[Span]:
    """As much of a message as its memories cite, as one stretch: where nobody knows any more how it was cut."""
    cited = [source for node in nodes for source in node.sources if source.message == record.number]
    return [(0, max((source.offset + source.length for source in cited), default=0))]


def terms_of(kept: PassageEntry) -> Terms:
    """The terms of a passage as the store keeps it."""
    return np.frombuffer(kept.terms, dtype="<u4").astype(np.uint32, copy=False)


def _entry(kept: PassageEntry) -> Entry:
    counts = np.frombuffer(kept.counts, dtype=np.uint8)
    return Entry(kept.begin, kept.length, terms_of(kept), counts, kept.word_count)


def conversation_key(conversation_id: str) -> str:
    """What a conversation with an id is shelved as: no id can be that of a batch."""
    return f"c{conversation_id}"


def shelved(record: MessageRecord, kept: Iterable[PassageEntry]) -> list[Shelved]:
    """The passages of a message as they go on the shelf. Without a conversation a batch is one."""
    named = record.conversation_id
    conversation = conversation_key(named) if named else f"b{record.batch}"
    told = (
        record.time_ms,
        record.speaker,
        conversation,
        record.is_withdrawn,
        record.role,
        record.accepted_at_ms,
    )
    return [Shelved(record.number, _entry(one), *told) for one in kept]


@dataclass(slots=True)
class _Pairs:
    """(message, node) pairs, sorted by message."""

    messages: NDArray[np.int64]
    nodes: NDArray[np.int64]
    begins: NDArray[np.int64]
    """Where the pairs of each message begin."""
    known: NDArray[np.int64]
    """The nodes, each once, ascending."""
    at: NDArray[np.int64]
    """For each pair where its node stands in `known`."""

    @classmethod
    def of(cls, messages: NDArray[np.int64], nodes: NDArray[np.int64]) -> _Pairs:
        order = np.argsort(messages, kind="stable")
        messages, nodes = messages[order], nodes[order]
        begins = np.flatnonzero(np.diff(messages, prepend=-1))
        known, at = np.unique(nodes, return_inverse=True)
        return cls(messages, nodes, begins, known, at)


PAIR_BYTES = 56
"""What a pair of a message and a node holds."""


class Facts:
    """The metadata of passages: each kind of it once, found by what it holds.

    Thousands of messages share what their batch was remembered with, so a question looks at a few numbers.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {b"": 0}
        self._held: list[Mapping[str, object]] = [{}]
        self._by_fact: dict[tuple[str, bool, object], set[int]] = {}
        self._by_passage = array("q")
        self.nbytes = 0

    def add(self, key: bytes, read: Callable[[], Mapping[str, object]], passage_count: int) -> None:
        """The next passages have the metadata of this key, which is read when it is met first."""
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self._held)
            self._held.append(read())
            for name, value in self._held[number].items():
                if isinstance(value, str | int | float):
                    self._by_fact.setdefault((name, isinstance(value, bool), value), set()).add(number)
            self.nbytes += FACT_BYTES * (1 + len(self._held[number]))
        self._by_passage.extend([number] * passage_count)
        self.nbytes += 8 * passage_count

    def clear(self, passages: Iterable[int]) -> None:
        """Let passages have none."""
        for passage in passages:
            self._by_passage[passage] = 0

    def of(self, passage: int) -> Mapping[str, object]:
        """The metadata of a passage."""
        return self._held[self._by_passage[passage]]

    def holding(self, wanted: Mapping[str, object]) -> NDArray[np.bool_]:
        """Passages whose metadata has each of these values: 1 and 1.0 are equal, 1 and true are not."""
        found = set(range(len(self._held)))
        for name, value in wanted.items():
            found &= self._by_fact.get((name, isinstance(value, bool), value), set())
        return np.isin(np.array(self._by_passage, dtype=np.int64), list(found))


FACT_BYTES = 200
"""What a kind of metadata, and each field of it, holds, about."""


class Archive:
    """The shelf of one agent, and which memories were made from which message."""

    def __init__(self, shelf: PassageIndex) -> None:
        self.shelf = shelf
        self.vectors: Vectors | None = None
        """Those of the model in `embedding`; None while there are none."""
        self.embedding = EmbeddingState()
        self.facts = Facts()
        self._words: WordScores | None = None
        self._newest = 0
        self._messages, self._nodes = array("q"), array("q")
        self._pairs: _Pairs | None = None

    @classmethod
    def load(cls, txn: ReadTransaction) -> Archive:
        """Everything that the store holds."""
        archive = cls(PassageIndex())
        archive.note(txn.nodes())
        archive.shelf.add(archive._loaded(txn))
        archive.follow(txn.embedding_state(), txn.embedded_messages())
        return archive

    def _loaded(self, txn: ReadTransaction) -> Iterator[Shelved]:
        for record, kept in txn.passages():
            entries = self._made_anew(txn, record) if kept is None else kept
            # Of a message stored before messages had metadata, that of its batch.
            key = b"b%d" % record.batch if record.metadata_key is None else record.metadata_key
            self.facts.add(key, partial(txn.metadata, record), len(entries))
            yield from shelved(record, entries)

    def _made_anew(self, txn: ReadTransaction, record: MessageRecord) -> list[PassageEntry]:
        text = txn.message_text(record)
        if text is not None:
            return passages_of(text, record.speaker)
        if not record.is_withdrawn:
            return []
        nodes = [node for node in map(txn.node, self.memories_of(record.number)) if node is not None]
        return retold(record, spans_cited(record, nodes), nodes)

    def accepted(
        self,
        records: Sequence[MessageRecord],
        passages: Sequence[Sequence[PassageEntry]],
        metadata: Mapping[bytes, str] = MappingProxyType({}),
    ) -> None:
        """Messages were accepted; `metadata` by key, as JSON."""
        pairs = zip(records, passages, strict=True)
        for record, kept in zip(records, passages, strict=True):
            key = record.metadata_key or b""
            self.facts.add(key, partial(_decoded, metadata.get(key, "{}")), len(kept))
        self.shelf.add(one for record, kept in pairs for one in shelved(record, kept))
        self._words = None

    def follow(self, state: EmbeddingState, embedded: Iterable[tuple[int, EmbeddedMessage]]) -> None:
        """Vectors of messages were made, by number; those of another model than before stand by themselves."""
        if state.stamp != self.embedding.stamp:
            self.vectors = None
        self.embedding = state
        messages = self.shelf.column("message")
        passages: list[int] = []
        packed: list[bytes] = []
        # Older stores may hold vectors of two sizes under one stamp, until they are made anew.
        size = 2 * (state.dimension if self.vectors is None else self.vectors.dimension)
        for message, one in embedded:
            first = int(np.searchsorted(messages, message))
            if one.stamp != state.stamp or first == len(messages) or messages[first] != message:
                continue
            for index, vector in enumerate(one.vectors):
                size = size or len(vector)
                if vector and len(vector) == size:
                    passages.append(first + index)
                    packed.append(vector)
        if not packed:
            return
        rows = np.frombuffer(b"".join(packed), dtype="<f2").reshape(len(packed), -1)
        if self.vectors is None:
            self.vectors = Vectors(state.model, rows.shape[1])
        self.vectors.put(np.array(passages, dtype=np.int64), rows.astype(np.float16, copy=False))

    def retold(self, told: Mapping[int, Sequence[PassageEntry]]) -> None:
        """Texts of messages were withdrawn, or memories that tell them have changed."""
        if told:
            self._say(told, is_withdrawn=True)

    def _say(self, said: Mapping[int, Sequence[PassageEntry]], *, is_withdrawn: bool) -> None:
        entries = {message: [_entry(one) for one in kept] for message, kept in said.items()}
        self.shelf.retell(entries, is_withdrawn=is_withdrawn)
        self._words = None
        if self.vectors is not None:
            self.vectors.drop(np.flatnonzero(np.isin(self.shelf.column("message"), list(said))))

    def note(self, nodes: Iterable[Node]) -> None:
        """Memories were made, or rewritten: these are known by then, since ids ascend."""
        for node in nodes:
            if node.id > self._newest:
                self._newest = node.id
                self._messages.extend(source.message for source in node.sources)
                self._nodes.extend([node.id] * len(node.sources))
                self._pairs = None

    def rewritten(self, message: int, passages: Sequence[PassageEntry]) -> None:
        """A message says something else now, in as many passages as before."""
        self._say({message: passages}, is_withdrawn=False)
        if not any(passage.word_count for passage in passages):
            self.facts.clear(np.flatnonzero(self.shelf.column("message") == message).tolist())

    def cites_anew(self, node: Node) -> None:
        """A memory that is known comes from other messages now."""
        others = np.array(self._nodes, dtype=np.int64) != node.id
        self._messages = array("q", np.array(self._messages, dtype=np.int64)[others].tobytes())
        self._nodes = array("q", np.array(self._nodes, dtype=np.int64)[others].tobytes())
        self._messages.extend(source.message for source in node.sources)
        self._nodes.extend([node.id] * len(node.sources))
        self._pairs = None

    def by_passage(self, node_ids: NDArray[np.int64], worths: NDArray[np.float64]) -> NDArray[np.float64]:
        """The best worth among the memories of each passage's message; 0 where none is given one."""
        given = np.zeros(len(self.shelf))
        pairs = self._sorted_pairs()
        if not len(pairs.nodes) or not len(node_ids):
            return given
        places = np.minimum(np.searchsorted(pairs.known, node_ids), len(pairs.known) - 1)
        is_known = pairs.known[places] == node_ids
        by_node = np.zeros(len(pairs.known))
        by_node[places[is_known]] = worths[is_known]
        # Numbers of messages may lie far apart: nothing is as long as the highest of them.
        cited, best = pairs.messages[pairs.begins], np.maximum.reduceat(by_node[pairs.at], pairs.begins)
        messages = self.shelf.column("message")
        places = np.minimum(np.searchsorted(cited, messages), len(cited) - 1)
        is_cited = cited[places] == messages
        given[is_cited] = best[places[is_cited]]
        return given

    def best_of_memories(
        self, passages: NDArray[np.int64], worths_of: Callable[[NDArray[np.int64]], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """The best worth among the memories of each of these passages' messages; 0 where there is none."""
        pairs = self._sorted_pairs()
        best = np.zeros(len(passages))
        messages = self.shelf.column("message")[passages]
        begins, ends = (
            np.searchsorted(pairs.messages, messages),
            np.searchsorted(pairs.messages, messages + 1),
        )
        counts = ends - begins
        whose = np.repeat(np.arange(len(passages)), counts)
        places = np.arange(len(whose)) + np.repeat(begins - np.cumsum(counts) + counts, counts)
        np.maximum.at(best, whose, worths_of(pairs.nodes[places]))
        return best

    def told_by(self, are_alive: Callable[[NDArray[np.int64]], NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """Passages of messages from which some memory lives."""
        pairs = self._sorted_pairs()
        living = np.unique(pairs.messages[are_alive(pairs.nodes)])
        return np.isin(self.shelf.column("message"), living)

    @property
    def words(self) -> WordScores:
        """The words signal over the shelf as it is now."""
        if self._words is None:
            self._words = WordScores(self.shelf)
        return self._words

    def memories_of(self, message: int) -> list[NodeId]:
        """Ids of memories made from a message, ascending; those forgotten since the archive was loaded among them."""
        pairs = self._sorted_pairs()
        begin, end = np.searchsorted(pairs.messages, [message, message + 1])
        ids: list[int] = pairs.nodes[begin:end].tolist()
        return ids

    def _sorted_pairs(self) -> _Pairs:
        if self._pairs is None:
            messages, nodes = (np.array(column, dtype=np.int64) for column in (self._messages, self._nodes))
            self._pairs = _Pairs.of(messages, nodes)
        return self._pairs

    def vectors_stamp(self) -> str:
        """What an index over the vectors belongs to: these vectors of these passages of these messages."""
        assert self.vectors is not None
        stamp = self.vectors.digest()
        for name in ("message", "begin"):
            stamp.update(self.shelf.column(name).tobytes())
        told: str = stamp.hexdigest()
        return told

    @property
    def resident_bytes(self) -> int:
        """Bytes held, about."""
        vectors = 0 if self.vectors is None else self.vectors.nbytes
        return self.shelf.nbytes + self.facts.nbytes + vectors + PAIR_BYTES * len(self._nodes)


def _decoded(metadata: str) -> Mapping[str, object]:
    return msgspec.json.decode(metadata, type=dict[str, object])
