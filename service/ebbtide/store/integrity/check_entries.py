"""What the entries of a store say of themselves: each decoded within the bounds of its type.

The first half of the checker (`check.py`): it looks at the shape of every entry (`shape.py`), decodes every record, and
keeps what the second half compares. Every loop is over entries that are there: no number in an entry decides how long
it takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import zstandard

from ebbtide.bounds import MAX_METADATA_CHARS, MAX_TEXT_BYTES
from ebbtide.ids import batch_text_id, node_text_id
from ebbtide.records import Batch, MessageRecord, Node
from ebbtide.store import layout
from ebbtide.store.codec import UNDECODABLE
from ebbtide.store.integrity.derived import are_vectors_of, passages_fit
from ebbtide.store.integrity.shape import faults
from ebbtide.store.lmdb.metadata import is_metadata
from ebbtide.store.lmdb.transaction import LmdbReading
from ebbtide.store.yielding import Rest, resting

MAX_FINDINGS: Final = 10_000
"""Findings that are listed; the checker stops after them."""

TEXTS_CACHED: Final = 4
"""Texts kept while the memories that cite them are compared: those that cite one text mostly follow each other."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One entry, or one pair of entries, that is wrong."""

    table: str
    key: str
    problem: str
    is_repairable: bool = False


class EnoughFound(Exception):
    """As many findings as are listed."""


class Entries:
    """The entries of one transaction, and what is wrong with them."""

    def __init__(self, txn: LmdbReading, rest: Rest) -> None:
        self._txn = txn
        self._rest = rest
        self.found: list[Finding] = []
        self.nodes: dict[int, Node] = {}
        self.messages: dict[int, MessageRecord] = {}
        self.lengths: dict[bytes, int] = {}
        """The characters of each text, by the key under which it is stored."""
        self.passage_counts: dict[int, int | None] = {}
        """The passages of each message that has some; None where they cannot be decoded."""
        self.batches: dict[int, Batch] = {}
        self._text_bytes = lru_cache(TEXTS_CACHED)(self._read_text)

    def read(self) -> bool:
        """Read every table; whether the entries have a shape that can be compared."""
        # What cannot be read cannot be compared.
        if not (self._are_opened() and self._has_shape()):
            return False
        self._read_chunks()
        self._read_messages()
        self._read_passages()
        self._read_vectors()
        self._read_batches()
        self._read_nodes()
        return True

    def _items(self, table: bytes) -> Iterator[tuple[bytes, bytes]]:
        return resting(self._txn.items(table), self._rest)

    def _note(self, table: bytes, key: str, problem: str, *, is_repairable: bool = False) -> None:
        self.found.append(Finding(table.decode(), key, problem, is_repairable))
        if len(self.found) == MAX_FINDINGS:
            raise EnoughFound

    def _decoded(self, table: bytes, key: bytes, value: bytes, kind: type[Any]) -> Any:
        try:
            return layout.decode(value, type=kind)
        except UNDECODABLE as error:
            self._note(table, key.hex(), f"cannot be decoded: {error}"[:200])
            return None

    def _are_opened(self) -> bool:
        for table, place in self._txn.unopened():
            self._note(table, place.hex(), "is not what was sealed there")
        return not self.found

    def _has_shape(self) -> bool:
        for table, key, problem in faults(self._txn, self._rest):
            self._note(table, key, problem)
        if self._txn.get(layout.META, b"identity") is None:
            self._note(layout.META, "identity", "is missing")
        return not self.found

    def _length(self, key: bytes) -> int | None:
        """The characters of a text, None where it is gone."""
        return self.lengths.get(self._txn.placed(layout.CHUNKS, key))

    def _read_text(self, key: bytes) -> bytes:
        value = self._txn.get(layout.CHUNKS, key)
        assert value is not None, "it was read before"
        return zstandard.ZstdDecompressor().decompress(value)

    # --- reading, with what each entry says of itself --------------------------------------------------

    def _read_chunks(self) -> None:
        for key, value in self._items(layout.CHUNKS):
            try:
                # The size that a frame declares is allocated before anything is decompressed.
                if not 0 <= zstandard.frame_content_size(value) <= MAX_TEXT_BYTES:
                    self._note(layout.CHUNKS, key.hex(), "is longer than a text may be")
                    continue
                text = zstandard.ZstdDecompressor().decompress(value).decode()
            except (zstandard.ZstdError, UnicodeDecodeError):
                self._note(layout.CHUNKS, key.hex(), "cannot be decompressed")
                continue
            if self._txn.placed(layout.CHUNKS, layout.text_key(text)) != key:
                self._note(layout.CHUNKS, key.hex(), "is not the text its key says")
                continue
            self.lengths[bytes(key)] = len(text)

    def _read_messages(self) -> None:
        known: dict[bytes, bool] = {}
        for key, value in self._items(layout.MESSAGES):
            record = self._decoded(layout.MESSAGES, key, value, MessageRecord)
            if record is None:
                continue
            self.messages[record.number] = record
            name = str(record.number)
            if layout.from_u64(key) != record.number:
                self._note(layout.MESSAGES, name, "stands under another key")
            if not record.is_withdrawn:
                self._check_text_of(record)
            elif record.role and not self._txn.holds_withdrawn():
                self._note(layout.MESSAGES, name, "has no text, and META does not say so")
            if record.metadata_key and not self._is_metadata(record.metadata_key, known):
                self._note(layout.MESSAGES, name, "its metadata is gone, or no object")

    def _check_text_of(self, record: MessageRecord) -> None:
        if self._length(record.text_key) is None:
            self._note(layout.MESSAGES, str(record.number), "its text is gone")
        elif record.personal:
            end = max(one.offset + one.length for one in record.personal)
            if end > len(self._text_bytes(record.text_key)):
                self._note(layout.MESSAGES, str(record.number), "has personal data beyond its end")

    def _is_metadata(self, key: bytes, known: dict[bytes, bool]) -> bool:
        if key not in known:
            # A text may be much longer than metadata: it is not read then.
            is_short = 0 < (self._length(key) or 0) <= MAX_METADATA_CHARS
            known[key] = is_short and is_metadata(self._text_bytes(key).decode())
        return known[key]

    def _read_passages(self) -> None:
        for key, value in self._items(layout.PASSAGES):
            number = layout.from_u64(key)
            record = self.messages.get(number)
            length = None if record is None or record.is_withdrawn else self._length(record.text_key)
            count = passages_fit(value, length)
            self.passage_counts[number] = count
            if record is None:
                self._note(layout.PASSAGES, str(number), "their message is gone", is_repairable=True)
            elif count is None:
                problem = (
                    "cannot be those of memories" if record.is_withdrawn else "are not those of their message"
                )
                self._note(layout.PASSAGES, str(number), problem, is_repairable=True)

    def _read_vectors(self) -> None:
        newest = self._txn.embedding_state().stamp
        for key, value in self._items(layout.VECTORS):
            number = layout.from_u64(key)
            if number not in self.messages:
                self._note(layout.VECTORS, str(number), "their message is gone", is_repairable=True)
            elif not are_vectors_of(value, self.passage_counts.get(number), newest):
                self._note(layout.VECTORS, str(number), "are not those of their message", is_repairable=True)

    def _read_batches(self) -> None:
        for key, value in self._items(layout.BATCHES):
            batch = self._decoded(layout.BATCHES, key, value, Batch)
            if batch is not None:
                self.batches[batch.number] = batch
                if layout.from_u64(key) != batch.number:
                    self._note(layout.BATCHES, batch_text_id(batch.number), "stands under another key")
                if batch.metadata and not is_metadata(batch.metadata):
                    self._note(layout.BATCHES, batch_text_id(batch.number), "its metadata is no object")

    def _read_nodes(self) -> None:
        for key, value in self._items(layout.NODES):
            node = self._decoded(layout.NODES, key, value, Node)
            if node is None:
                continue
            self.nodes[node.id] = node
            if layout.from_u64(key) != node.id:
                self._note(layout.NODES, node_text_id(node.id), "stands under another key")
            if len(node.content) > node.original_length:
                self._note(layout.NODES, node_text_id(node.id), "is longer than it was made")
