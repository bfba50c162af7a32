"""Proofs: keyed hashes by which the owner of a text can check whether it was erased.

Each text is hashed as a whole and sentence by sentence, so that a sentence of an erased message can be checked too. The
rule guarded here: **a text is hashed before any part of it is removed.** `store/lmdb/audit.py` stores the hashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from ebbtide.records import Node
from ebbtide.retrieval.sentences import sentences_of
from ebbtide.store.chain import proof_of
from ebbtide.store.lmdb.transaction import ReadTransaction

MAX_SENTENCES = 1000
"""Most sentences of one text that are hashed separately; the whole text always is."""


@dataclass(slots=True)
class Proofs:
    """The hashes of removed texts, each once, in order."""

    key: bytes
    found: dict[bytes, None] = field(default_factory=dict)

    def add(self, text: str) -> None:
        """Hash a text and its sentences."""
        for one in (text, *islice(sentences_of(text), MAX_SENTENCES)):
            self.add_whole(one)

    def add_whole(self, text: str) -> None:
        """Hash a text, but not its sentences."""
        if text.strip():
            self.found[proof_of(self.key, text)] = None

    def add_stretches(self, text: str, spans: Sequence[tuple[int, int]]) -> None:
        """Hash parts of a text, given in UTF-8 bytes."""
        raw = text.encode()
        for begin, end in spans:
            self.add(raw[begin:end].decode())

    def add_memory(self, txn: ReadTransaction, node: Node) -> None:
        """Hash the current and the first content of a memory."""
        for text in txn.nodes.contents(node):
            self.add(text)
