"""The archive of one agent: all messages, searchable by their words even after their memories were forgotten.

Passages are stored in the commit that accepts their messages. A batch can therefore be found as soon as it is
acknowledged, before any digest and without a model. In memory they form a `PassageIndex`, which is loaded by the first
query and updated after every commit. Messages without stored passages are analysed when the index is loaded.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ebbtide.fleet.archive.reading import living_nodes
from ebbtide.ids import NodeId
from ebbtide.memory.columns import places_in
from ebbtide.records import EmbeddedMessage, EmbeddingState, MessageRecord, Node, PassageEntry
from ebbtide.retrieval.analysis import Terms
from ebbtide.retrieval.lexical import WordScores
from ebbtide.retrieval.marks import current
from ebbtide.retrieval.passages import Entry, IndexedPassage, PassageIndex, cut, entries_of, entry_of
from ebbtide.retrieval.vectors import Vectors
from ebbtide.statements import STATEMENT_KINDS
from ebbtide.store.lmdb.transaction import ReadTransaction


def passages_of(text: str, speaker: str) -> list[PassageEntry]:
    """Return the passages of a message in their stored form."""
    return [_kept(entry) for entry in entries_of(text, speaker)]


def passage_of(stretch: str, speaker: str, begin: int) -> PassageEntry:
    """Return one passage of a message in its stored form."""
    return _kept(entry_of(stretch, speaker, begin))


def _kept(entry: Entry, told_by: tuple[NodeId, ...] = ()) -> PassageEntry:
    terms = entry.terms.astype("<u4").tobytes()
    counts = entry.counts.tobytes()
    return PassageEntry(entry.begin, entry.length, entry.word_count, terms, counts, told_by, entry.marks)


Span = tuple[int, int]
"""(begin, length) of a part of a message, in UTF-8 bytes."""


def passages_from_memories(
    record: MessageRecord, spans: Iterable[Span], nodes: Sequence[Node]
) -> list[PassageEntry]:
    """Return the passages of a message whose text was removed, built from what its memories say now.

    A part without living memories keeps its passage, but without terms, so that no query finds it.
    """
    entries = []
    for begin, length in spans:
        overlapping = [node for node in nodes if _overlaps(node, record.number, begin, length)]
        # Marks describe the text, which was removed.
        entry = replace(
            entry_of(content_of(overlapping, record.number), record.speaker, begin), length=length, marks=0
        )
        entries.append(_kept(entry, tuple(node.id for node in overlapping)))
    return entries


def content_of(nodes: Sequence[Node], message: int) -> str:
    """Return the content of the nodes that cite a message: its memories, then its other statements.

    A statement repeats words of a memory while that is whole, so it is left out if its value is there. The words of a
    statement that an earlier message made first are those of that message.
    """
    said = " ".join(node.content for node in nodes if node.kind not in STATEMENT_KINDS)
    for node in nodes:
        if node.kind not in STATEMENT_KINDS or node.sources[0].message != message:
            continue
        value = node.keywords[0] if node.keywords else node.content
        if value.casefold() not in said.casefold():
            said = f"{said} {node.content}".lstrip()
    return said


def _overlaps(node: Node, message: int, begin: int, length: int) -> bool:
    return any(
        source.message == message and source.offset < begin + length and source.offset + source.length > begin
        for source in node.sources
    )


def spans_of(text: str) -> list[Span]:
    """Return the position of each passage in a text, in bytes."""
    spans, begin = [], 0
    for first, end in cut(text):
        length = len(text[first:end].encode())
        spans.append((begin, length))
        begin += length
    return spans


def cited_span(record: MessageRecord, nodes: Iterable[Node]) -> list[Span]:
    """Return the part of a message that memories cite, as one span: the original split is unknown."""
    cited = [source for node in nodes for source in node.sources if source.message == record.number]
    return [(0, max((source.offset + source.length for source in cited), default=0))]


def terms_of(kept: PassageEntry) -> Terms:
    """Return the terms of a stored passage."""
    return np.frombuffer(kept.terms, dtype="<u4").astype(np.uint32, copy=False)


def _entry(kept: PassageEntry) -> Entry:
    counts = np.frombuffer(kept.counts, dtype=np.uint8)
    return Entry(kept.begin, kept.length, terms_of(kept), counts, kept.word_count, current(kept.marks))


def conversation_key(conversation_id: str) -> str:
    """Return the index key of a conversation id. It never equals the key of a batch."""
    return f"c{conversation_id}"


def shelved(record: MessageRecord, kept: Iterable[PassageEntry]) -> list[IndexedPassage]:
    """Return the passages of a message as index entries. Without a conversation id the batch is the conversation."""
    named = record.conversation_id
    conversation = conversation_key(named) if named else f"b{record.batch}"
    common = (
        record.time_ms,
        record.speaker,
        conversation,
        record.is_withdrawn,
        "statement" if record.role == "tool" and record.tools_from is None else record.role,
        record.accepted_at_ms,
        not named,
    )
    return [IndexedPassage(record.number, _entry(one), *common) for one in kept]


@dataclass(slots=True)
class _Pairs:
    """Pairs of message and node, sorted by message."""

    messages: NDArray[np.int64]
    nodes: NDArray[np.int64]

    @classmethod
    def of(cls, messages: NDArray[np.int64], nodes: NDArray[np.int64]) -> _Pairs:
        order = np.argsort(messages, kind="stable")
        return cls(messages[order], nodes[order])

    @property
    def newest_message(self) -> int:
        """Return the last message with a memory, or -1."""
        return int(self.messages[-1]) if len(self.messages) else -1


@dataclass(slots=True)
class _PassagesOfNodes:
    """The passages of the messages that each node was made from."""

    nodes: NDArray[np.int64]
    """The distinct nodes, ascending."""
    begins: NDArray[np.int64]
    """Index of the first passage of each node, and the number of all."""
    passages: NDArray[np.int64]
    places: NDArray[np.int32] | None
    """The index of each node from the first to the last, -1 for other ids; None if most ids are of no node."""

    @classmethod
    def of(cls, pairs: _Pairs, messages: NDArray[np.int64]) -> _PassagesOfNodes:
        """Return those of pairs, with the message of each passage, ascending."""
        first = np.searchsorted(messages, pairs.messages, side="left")
        counts = np.searchsorted(messages, pairs.messages, side="right") - first
        passages, nodes = ranges(first, counts), np.repeat(pairs.nodes, counts)
        order = np.argsort(nodes, kind="stable")
        nodes = nodes[order]
        begins = np.flatnonzero(np.diff(nodes, prepend=-1))
        distinct, places = nodes[begins], None
        span = int(distinct[-1] - distinct[0]) + 1 if len(distinct) else 0
        if 0 < span <= IDS_PER_NODE * len(distinct):
            places = np.full(span, -1, dtype=np.int32)
            places[distinct - distinct[0]] = np.arange(len(distinct))
        return cls(distinct, np.append(begins, len(nodes)), passages[order], places)

    def best(
        self, node_ids: NDArray[np.int64], worths: NDArray[np.float64], passage_count: int
    ) -> NDArray[np.float64]:
        """Return the highest value of the nodes of each passage."""
        result = np.zeros(passage_count)
        places, is_known = self._places_of(node_ids)
        if not is_known.all():
            places, worths = places[is_known], worths[is_known]
        first = self.begins[places]
        counts = self.begins[places + 1] - first
        np.maximum.at(result, self.passages[ranges(first, counts)], np.repeat(worths, counts))
        return result

    def _places_of(self, node_ids: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return the index of each node, and whether it has a passage."""
        if self.places is None:
            return places_in(self.nodes, node_ids)
        offsets = node_ids - self.nodes[0]
        places = self.places[np.clip(offsets, 0, len(self.places) - 1)]
        return places, (places >= 0) & (offsets >= 0) & (offsets < len(self.places))


IDS_PER_NODE = 8
"""Most ids per node for which a table of all ids is kept."""


def ranges(begins: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of several ranges, one after the other."""
    ends = np.cumsum(counts)
    places: NDArray[np.int64] = np.arange(int(ends[-1]) if len(ends) else 0)
    return places + np.repeat(begins - ends + counts, counts)


PAIR_BYTES = 80
"""Memory used by one pair."""


class PassageMetadata:
    """The metadata of passages. Each distinct value is stored once.

    Thousands of messages share the metadata of their batch, so a filter compares few values.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {b"": 0}
        self._values: list[Mapping[str, object]] = [{}]
        self._by_field: dict[tuple[str, bool, object], set[int]] = {}
        self._by_passage = array("q")
        self.nbytes = 0

    def add(self, key: bytes, read: Callable[[], Mapping[str, object]], passage_count: int) -> None:
        """Assign the metadata with this key to the next passages. It is read when the key first occurs."""
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self._values)
            self._values.append(read())
            for name, value in self._values[number].items():
                if isinstance(value, str | int | float):
                    self._by_field.setdefault((name, isinstance(value, bool), value), set()).add(number)
            self.nbytes += METADATA_ENTRY_BYTES * (1 + len(self._values[number]))
        self._by_passage.extend([number] * passage_count)
        self.nbytes += 8 * passage_count

    def clear(self, passages: Iterable[int]) -> None:
        """Remove the metadata of passages."""
        for passage in passages:
            self._by_passage[passage] = 0

    def of(self, passage: int) -> Mapping[str, object]:
        """Return the metadata of a passage."""
        return self._values[self._by_passage[passage]]

    def matching(self, values: Mapping[str, object]) -> NDArray[np.bool_]:
        """Return which passages have all of these values. 1 and 1.0 are equal; 1 and true are not."""
        found = set(range(len(self._values)))
        for name, value in values.items():
            found &= self._by_field.get((name, isinstance(value, bool), value), set())
        return np.isin(np.array(self._by_passage, dtype=np.int64), list(found))


METADATA_ENTRY_BYTES = 200
"""Approximate memory of one metadata value and of each of its fields."""


class Archive:
    """The passage index of one agent, and which memories came from which message."""

    def __init__(self, index: PassageIndex) -> None:
        self.index = index
        self.vectors: Vectors | None = None
        """Vectors of the model in `embedding`; None if there are none."""
        self.embedding = EmbeddingState()
        self.metadata_of_passages = PassageMetadata()
        self._words: WordScores | None = None
        self._newest = 0
        self._messages, self._nodes = array("q"), array("q")
        self._pairs: _Pairs | None = None
        self._of_nodes: _PassagesOfNodes | None = None
        self._last: tuple[Hashable, NDArray[np.float64]] | None = None
        """The last result of `unchanged`, with its key."""

    @classmethod
    def load(cls, txn: ReadTransaction) -> Archive:
        """Load everything from the store."""
        archive = cls(PassageIndex())
        archive.add_memories(txn.nodes.all())
        archive.index.add(archive._loaded(txn))
        archive.follow(txn.meta.embedding, txn.vectors.all())
        return archive

    def _loaded(self, txn: ReadTransaction) -> Iterator[IndexedPassage]:
        for record, kept in txn.passages.by_message():
            entries = self._rebuilt(txn, record) if kept is None else kept
            # A message stored without a metadata key has the metadata of its batch.
            key = b"b%d" % record.batch if record.metadata_key is None else record.metadata_key
            self.metadata_of_passages.add(key, partial(txn.messages.metadata, record), len(entries))
            yield from shelved(record, entries)

    def _rebuilt(self, txn: ReadTransaction, record: MessageRecord) -> list[PassageEntry]:
        text = txn.messages.text(record)
        if text is not None:
            return passages_of(text, record.speaker)
        if not record.is_withdrawn:
            return []
        nodes = living_nodes(txn, self.memories_of(record.number))
        return passages_from_memories(record, cited_span(record, nodes), nodes)

    def add_messages(
        self,
        records: Sequence[MessageRecord],
        passages: Sequence[Sequence[PassageEntry]],
        metadata: Mapping[bytes, str] = MappingProxyType({}),
    ) -> None:
        """Add accepted messages. `metadata` contains JSON by key."""
        pairs = zip(records, passages, strict=True)
        for record, kept in zip(records, passages, strict=True):
            key = record.metadata_key or b""
            self.metadata_of_passages.add(key, partial(_decoded, metadata.get(key, "{}")), len(kept))
        self.index.add(one for record, kept in pairs for one in shelved(record, kept))
        self._words = self._last = None
        if self._pairs is None or any(record.number <= self._pairs.newest_message for record in records):
            self._of_nodes = None

    def follow(self, state: EmbeddingState, embedded: Iterable[tuple[int, EmbeddedMessage]]) -> None:
        """Add vectors by message number. Vectors of another model replace all others."""
        if state.stamp != self.embedding.stamp:
            self.vectors = None
        self.embedding = state
        messages = self.index.column("message")
        passages: list[int] = []
        packed: list[bytes] = []
        # A store may contain vectors of two dimensions under one stamp until they are recomputed.
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

    def replace_withdrawn(self, passages: Mapping[int, Sequence[PassageEntry]]) -> None:
        """Replace the passages of messages whose text was removed, or whose memories have changed."""
        if passages:
            self._replace(passages, is_withdrawn=True)

    def _replace(
        self, passages_by_message: Mapping[int, Sequence[PassageEntry]], *, is_withdrawn: bool
    ) -> None:
        entries = {message: [_entry(one) for one in kept] for message, kept in passages_by_message.items()}
        self.index.replace_entries(entries, is_withdrawn=is_withdrawn)
        self._words = self._last = None
        if self.vectors is not None:
            self.vectors.drop(
                np.flatnonzero(np.isin(self.index.column("message"), list(passages_by_message)))
            )

    def add_memories(self, nodes: Iterable[Node]) -> None:
        """Add new memories. Known ones are skipped: ids ascend, and sources do not change here."""
        for node in nodes:
            if node.id > self._newest:
                self._newest = node.id
                self._messages.extend(source.message for source in node.sources)
                self._nodes.extend([node.id] * len(node.sources))
                self._pairs = self._of_nodes = self._last = None

    def replace_text(self, message: int, passages: Sequence[PassageEntry]) -> None:
        """Replace the text of a message; the number of passages stays."""
        self._replace({message: passages}, is_withdrawn=False)
        if not any(passage.word_count for passage in passages):
            self.metadata_of_passages.clear(np.flatnonzero(self.index.column("message") == message).tolist())

    def replace_sources(self, node: Node) -> None:
        """Replace the sources of a known memory."""
        others = np.array(self._nodes, dtype=np.int64) != node.id
        self._messages = array("q", np.array(self._messages, dtype=np.int64)[others].tobytes())
        self._nodes = array("q", np.array(self._nodes, dtype=np.int64)[others].tobytes())
        self._messages.extend(source.message for source in node.sources)
        self._nodes.extend([node.id] * len(node.sources))
        self._pairs = self._of_nodes = self._last = None

    def unchanged(self, key: Hashable, compute: Callable[[], NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return what `compute` returns, computed once while the key, the passages and the memories stay the same.

        `key` represents everything else that the result depends on. Do not change the result.
        """
        if self._last is None or self._last[0] != key:
            self._last = key, compute()
        return self._last[1]

    def by_passage(self, node_ids: NDArray[np.int64], worths: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, for every passage, the highest value among the memories of its message; 0 if none has a value."""
        if self._of_nodes is None:
            self._of_nodes = _PassagesOfNodes.of(self._sorted_pairs(), self.index.column("message"))
        return self._of_nodes.best(node_ids, worths, len(self.index))

    def best_of_memories(
        self, passages: NDArray[np.int64], worths_of: Callable[[NDArray[np.int64]], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Return, for these passages, the highest value among the memories of their messages; 0 if there are none."""
        pairs = self._sorted_pairs()
        best = np.zeros(len(passages))
        messages = self.index.column("message")[passages]
        begins, ends = (
            np.searchsorted(pairs.messages, messages),
            np.searchsorted(pairs.messages, messages + 1),
        )
        counts = ends - begins
        owners = np.repeat(np.arange(len(passages)), counts)
        np.maximum.at(best, owners, worths_of(pairs.nodes[ranges(begins, counts)]))
        return best

    def with_living_memories(
        self, are_alive: Callable[[NDArray[np.int64]], NDArray[np.bool_]]
    ) -> NDArray[np.bool_]:
        """Return which passages belong to messages with living memories."""
        pairs = self._sorted_pairs()
        living = np.unique(pairs.messages[are_alive(pairs.nodes)])
        return np.isin(self.index.column("message"), living)

    @property
    def words(self) -> WordScores:
        """The lexical signal over the current index."""
        if self._words is None:
            self._words = WordScores(self.index)
        return self._words

    def memories_of(self, message: int) -> list[NodeId]:
        """Return the ids of memories made from a message, ascending. Some may be forgotten."""
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
        """Return the stamp of a vector index, which identifies the vectors, passages and messages in it."""
        assert self.vectors is not None
        stamp = self.vectors.digest()
        for name in ("message", "begin"):
            stamp.update(self.index.column(name).tobytes())
        passages: str = stamp.hexdigest()
        return passages

    @property
    def resident_bytes(self) -> int:
        """Approximate size in memory."""
        vectors = 0 if self.vectors is None else self.vectors.nbytes
        return self.index.nbytes + self.metadata_of_passages.nbytes + vectors + PAIR_BYTES * len(self._nodes)


def _decoded(metadata: str) -> Mapping[str, object]:
    return msgspec.json.decode(metadata, type=dict[str, object])
