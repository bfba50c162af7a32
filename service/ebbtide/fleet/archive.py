"""The archive of one agent: what was said, found by its words, whatever became of the memories made from it.

Passages are written to the store with the messages they belong to, in the commit that accepts them: a batch can
be found as soon as it is acknowledged, with no model and before any digest. In memory they stand on a shelf
(`retrieval/passages.py`), which is loaded when an agent is first asked a question and follows every commit after.

Messages of a store written before there were passages are analysed when the shelf is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebbtide.retrieval.lexical import WordScores
from ebbtide.retrieval.passages import Entry, Shelf, Shelved, entries_of
from ebbtide.store.port import ReadTransaction
from ebbtide.vocabulary import MessageRecord, Node, NodeId, PassageEntry


def passages_of(text: str, speaker: str) -> list[PassageEntry]:
    """The passages of a message as the store keeps them."""
    return [
        PassageEntry(
            entry.begin,
            entry.length,
            entry.word_count,
            entry.terms.astype("<u4").tobytes(),
            entry.counts.tobytes(),
        )
        for entry in entries_of(text, speaker)
    ]


def _entry(kept: PassageEntry) -> Entry:
    terms = np.frombuffer(kept.terms, dtype="<u4").astype(np.uint32, copy=False)
    counts = np.frombuffer(kept.counts, dtype=np.uint8)
    return Entry(kept.begin, kept.length, terms, counts, kept.word_count)


def shelved(record: MessageRecord, kept: Iterable[PassageEntry]) -> list[Shelved]:
    """The passages of a message as they go on the shelf. Without a conversation a batch is one."""
    conversation = record.conversation_id or f"\0{record.batch}"
    return [Shelved(record.number, _entry(one), record.time_ms, record.speaker, conversation) for one in kept]


@dataclass(slots=True)
class _Pairs:
    """(message, node) pairs, sorted by message."""

    messages: NDArray[np.int64]
    nodes: NDArray[np.int64]


class Archive:
    """The shelf of one agent, and which memories were made from which message."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self._words: WordScores | None = None
        self._made: list[tuple[int, NodeId]] = []
        self._pairs: _Pairs | None = None

    @classmethod
    def load(cls, txn: ReadTransaction) -> Archive:
        """Everything that the store holds."""
        archive = cls(Shelf())
        archive.shelf.add(
            one
            for record, kept in txn.passages()
            for one in shelved(record, _made_anew(txn, record) if kept is None else kept)
        )
        archive.note(txn.nodes())
        return archive

    def accepted(self, records: Sequence[MessageRecord], passages: Sequence[Sequence[PassageEntry]]) -> None:
        """Messages were accepted."""
        for record, kept in zip(records, passages, strict=True):
            self.shelf.add(shelved(record, kept))
        self._words = None

    def note(self, nodes: Iterable[Node]) -> None:
        """Memories were made; one that was rewritten may come again."""
        self._made += [(source.message, node.id) for node in nodes for source in node.sources]
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

    @property
    def words(self) -> WordScores:
        """The words signal over the shelf as it is now."""
        if self._words is None:
            self._words = WordScores(self.shelf)
        return self._words

    def memories_of(self, message: int) -> list[NodeId]:
        """Ids of the memories that were ever made from a message, ascending; forgotten ones too."""
        pairs = self._sorted_pairs()
        begin, end = np.searchsorted(pairs.messages, [message, message + 1])
        ids: list[int] = pairs.nodes[begin:end].tolist()
        return ids

    def _sorted_pairs(self) -> _Pairs:
        if self._pairs is None:
            self._made = sorted(set(self._made))
            pairs = np.array(self._made, dtype=np.int64).reshape(-1, 2)
            self._pairs = _Pairs(pairs[:, 0].copy(), pairs[:, 1].copy())
        return self._pairs

    @property
    def resident_bytes(self) -> int:
        """Bytes held, about."""
        return self.shelf.nbytes + 100 * len(self._made)


def _made_anew(txn: ReadTransaction, record: MessageRecord) -> list[PassageEntry]:
    text = txn.message_text(record)
    return [] if text is None else passages_of(text, record.speaker)
