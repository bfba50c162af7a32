"""Proving: the keyed hashes by which whoever holds a text can ask whether it was erased.

Hashed are a text as a whole and each of its sentences, so that a sentence is known too that went with a message or a
memory it was part of. The rule guarded here: **a text is read before anything is taken from it**; what is blanked first
leaves nothing to hash. Deliberately not here: where the hashes are kept (`store/lmdb/audit.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ebbtide.records import Node
from ebbtide.retrieval.sentences import sentences_of
from ebbtide.store.chain import proof_of
from ebbtide.store.port import ReadTransaction

MAX_SENTENCES = 1000
"""Sentences of one text that are hashed one by one: the text as a whole is, however many it has."""


@dataclass(slots=True)
class Proofs:
    """The hashes of texts that go, each once, in the order in which they went."""

    key: bytes
    found: dict[bytes, None] = field(default_factory=dict)

    def add(self, text: str) -> None:
        """Hash a text that goes, and its sentences."""
        for one in (text, *islice(sentences_of(text), MAX_SENTENCES)):
            if one.strip():
                self.found[proof_of(self.key, one)] = None

    def add_stretches(self, text: str, spans: Sequence[tuple[int, int]]) -> None:
        """Hash what goes of a text, in UTF-8 bytes."""
        raw = text.encode()
        for begin, end in spans:
            self.add(raw[begin:end].decode())

    def add_memory(self, txn: ReadTransaction, node: Node) -> None:
        """Hash what a memory says and what it said first, with its speaker's label and without."""
        for text in memory_texts(txn, node):
            self.add(text)


def memory_texts(txn: ReadTransaction, node: Node) -> Iterator[str]:
    """What a memory says, and what it said first."""
    first = txn.first_content(node)
    for text in (node.content, first or ""):
        yield text
        yield text.removeprefix(node.prefix)
