"""The archive of one agent: what was said, found by its words, whatever became of the memories made from it.

Passages are written to the store with the messages they belong to, in the commit that accepts them: a batch can
be found as soon as it is acknowledged, with no model and before any digest. In memory they stand on a shelf
(`retrieval/passages.py`), which is loaded when an agent is first asked a question and follows every commit after.

Messages of a store written before there were passages are analysed when the shelf is loaded.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import msgspec
import numpy as np
from numpy.typing import NDArray

from ebbtide.retrieval.analysis import Terms
from ebbtide.retrieval.lexical import WordScores
from ebbtide.retrieval.passages import Entry, Shelf, Shelved, entries_of, entry_of
from ebbtide.store.port import ReadTransaction
from ebbtide.vocabulary import MessageRecord, Node, NodeId, PassageEntry


def passages_of(text: str, speaker: str) -> list[PassageEntry]:
    """The passages of a message as the store keeps them."""
    return [_kept(entry) for entry in entries_of(text, speaker)]


def passage_of(stretch: str, speaker: str, begin: int) -> PassageEntry:
    """One passage of a message, as the store keeps it."""
    return _kept(entry_of(stretch, speaker, begin))


def _kept(entry: Entry) -> PassageEntry:
    terms = entry.terms.astype("<u4").tobytes()
    return PassageEntry(entry.begin, entry.length, entry.word_count, terms, entry.counts.tobytes())


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
    return [Shelved(record.number, _entry(one), record.time_ms, record.speaker, conversation) for one in kept]


@dataclass(slots=True)
class _Pairs:
    """(message, node) pairs, sorted by message."""

    messages: NDArray[np.int64]
    nodes: NDArray[np.int64]


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

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.facts = Facts()
        self._words: WordScores | None = None
        self._newest = 0
        self._messages, self._nodes = array("q"), array("q")
        self._pairs: _Pairs | None = None

    @classmethod
    def load(cls, txn: ReadTransaction) -> Archive:
        """Everything that the store holds."""
        archive = cls(Shelf())
        archive.shelf.add(archive._loaded(txn))
        archive.note(txn.nodes())
        return archive

    def _loaded(self, txn: ReadTransaction) -> Iterator[Shelved]:
        for record, kept in txn.passages():
            entries = _made_anew(txn, record) if kept is None else kept
            # Of a message stored before messages had metadata, that of its batch.
            key = b"b%d" % record.batch if record.metadata_key is None else record.metadata_key
            self.facts.add(key, partial(txn.metadata, record), len(entries))
            yield from shelved(record, entries)

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
        begin, end = np.searchsorted(self.shelf.column("message"), [message, message + 1]).tolist()
        assert end - begin == len(passages), "a message keeps its passages"
        self.shelf.replace(dict(zip(range(begin, end), map(_entry, passages), strict=True)))
        if not any(passage.word_count for passage in passages):
            self.facts.clear(range(begin, end))
        self._words = None

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
        order = np.argsort(node_ids)
        places = np.minimum(np.searchsorted(node_ids, pairs.nodes, sorter=order), len(order) - 1)
        known = node_ids[order[places]] == pairs.nodes
        by_message = np.zeros(int(pairs.messages[-1]) + 1)
        np.maximum.at(by_message, pairs.messages[known], worths[order[places[known]]])
        messages = self.shelf.column("message")
        known_message = messages < len(by_message)
        given[known_message] = by_message[messages[known_message]]
        return given

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
            order = np.argsort(messages, kind="stable")
            self._pairs = _Pairs(messages[order], nodes[order])
        return self._pairs

    @property
    def resident_bytes(self) -> int:
        """Bytes held, about."""
        return self.shelf.nbytes + self.facts.nbytes + 32 * len(self._nodes)


def _made_anew(txn: ReadTransaction, record: MessageRecord) -> list[PassageEntry]:
    text = txn.message_text(record)
    return [] if text is None else passages_of(text, record.speaker)


def _decoded(metadata: str) -> Mapping[str, object]:
    return msgspec.json.decode(metadata, type=dict[str, object])
