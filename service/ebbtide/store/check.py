"""The consistency checker: does a store hold together?

It walks every table and holds each entry against what it refers to, deriving again what the store derives as it
writes: backlinks from links, reference counts from messages and nodes, the inbox from batches. It runs after
every test that opened a store, and as `ebbtide check`.

It changes nothing. What can be made anew is said to be repairable, and mended by `rebuild`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import zstandard

from ebbtide.events import EventRecord, fits
from ebbtide.store import layout
from ebbtide.store.chain import AuditRecord, Verification
from ebbtide.store.derived import are_vectors_of, citing, passages_fit, references, told_by
from ebbtide.store.lmdb_store import LmdbStore
from ebbtide.store.resting import Rest, resting
from ebbtide.store.transaction import LmdbReading
from ebbtide.vocabulary import (
    Batch,
    BatchState,
    MessageRecord,
    Node,
    Receipt,
    Source,
    batch_text_id,
    node_text_id,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not hold together."""

    table: str
    key: str
    problem: str
    is_repairable: bool = False


def check_store(store: LmdbStore, rest: Rest = lambda: None) -> list[Finding]:
    """Everything that does not hold together in one agent's store; `rest` is called now and then."""
    return store.read(lambda txn: _Check(txn, rest).findings())  # type: ignore[arg-type]


class _Check:
    """One walk over one transaction."""

    def __init__(self, txn: LmdbReading, rest: Rest) -> None:
        self._txn = txn
        self._rest = rest
        self.found: list[Finding] = []
        self.nodes: dict[int, Node] = {}
        self.messages: dict[int, MessageRecord] = {}
        self.texts: dict[bytes, str] = {}
        self.batches: dict[int, Batch] = {}

    def findings(self) -> list[Finding]:
        """Walk every table."""
        if not self._are_opened():
            # Nothing can be held against what cannot be read.
            return self.found
        self._read_chunks()
        self._read_messages()
        self._read_passages()
        self._read_vectors()
        self._read_batches()
        self._read_nodes()
        self._check_meta()
        self._check_sources()
        self._check_withdrawn()
        self._check_links()
        self._check_scans()
        self._check_references()
        self._check_queues()
        self._check_receipts()
        self._check_audit()
        self._check_events()
        return self.found

    def _items(self, table: bytes) -> Iterator[tuple[bytes, bytes]]:
        return resting(self._txn.items(table), self._rest)

    def _note(self, table: bytes, key: str, problem: str, *, is_repairable: bool = False) -> None:
        self.found.append(Finding(table.decode(), key, problem, is_repairable))

    def _decoded(self, table: bytes, key: bytes, value: bytes, kind: type[Any]) -> Any:
        try:
            return layout.decode(value, type=kind)
        except msgspec.DecodeError:
            self._note(table, key.hex(), "cannot be decoded")
            return None

    def _are_opened(self) -> bool:
        for table, place in self._txn.unopened():
            self._note(table, place.hex(), "is not what was sealed there")
        return not self.found

    def _text(self, key: bytes) -> str | None:
        return self.texts.get(self._txn.placed(layout.CHUNKS, key))

    # --- reading, with what each entry says of itself --------------------------------------------------

    def _read_chunks(self) -> None:
        for key, value in self._items(layout.CHUNKS):
            try:
                text = zstandard.ZstdDecompressor().decompress(value).decode()
            except (zstandard.ZstdError, UnicodeDecodeError):
                self._note(layout.CHUNKS, key.hex(), "cannot be decompressed")
                continue
            if self._txn.placed(layout.CHUNKS, layout.text_key(text)) != key:
                self._note(layout.CHUNKS, key.hex(), "is not the text its key says")
            self.texts[bytes(key)] = text

    def _read_messages(self) -> None:
        for key, value in self._items(layout.MESSAGES):
            record = self._decoded(layout.MESSAGES, key, value, MessageRecord)
            if record is None:
                continue
            self.messages[record.number] = record
            if layout.from_u64(key) != record.number:
                self._note(layout.MESSAGES, str(record.number), "stands under another key")
            if not record.is_withdrawn and self._text(record.text_key) is None:
                self._note(layout.MESSAGES, str(record.number), "its text is gone")

    def _read_passages(self) -> None:
        for key, value in self._items(layout.PASSAGES):
            number = layout.from_u64(key)
            record = self.messages.get(number)
            if record is None:
                self._note(layout.PASSAGES, str(number), "their message is gone", is_repairable=True)
            elif record.is_withdrawn:
                if not passages_fit(value, None):
                    self._note(
                        layout.PASSAGES, str(number), "cannot be those of memories", is_repairable=True
                    )
            elif (text := self._text(record.text_key)) is not None and not passages_fit(value, text):
                self._note(layout.PASSAGES, str(number), "are not those of their message", is_repairable=True)

    def _read_vectors(self) -> None:
        newest = self._txn.embedding_state().stamp
        for key, value in self._items(layout.VECTORS):
            number = layout.from_u64(key)
            if number not in self.messages:
                self._note(layout.VECTORS, str(number), "their message is gone", is_repairable=True)
            elif not are_vectors_of(value, self._txn.passages_of(number), newest):
                self._note(layout.VECTORS, str(number), "are not those of their message", is_repairable=True)

    def _read_batches(self) -> None:
        for key, value in self._items(layout.BATCHES):
            batch = self._decoded(layout.BATCHES, key, value, Batch)
            if batch is not None:
                self.batches[batch.number] = batch
                if layout.from_u64(key) != batch.number:
                    self._note(layout.BATCHES, batch_text_id(batch.number), "stands under another key")

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

    # --- holding one against another ----------------------------------------------------------------

    def _check_meta(self) -> None:
        highest = max(self.nodes, default=0)
        if highest >= self._txn.next_node_id():
            self._note(layout.META, "next_node_id", "a node id could be given twice")
        if max(self.messages, default=0) >= self._txn.next_message_number():
            self._note(layout.META, "next_message_number", "a message number could be given twice")
        if max(self.batches, default=0) >= self._txn.next_batch_number():
            self._note(layout.META, "next_batch_number", "a batch number could be given twice")
        focus = self._txn.focus()
        if len(set(focus)) != len(focus) or any(node_id not in self.nodes for node_id in focus):
            self._note(layout.META, "focus", "names a node twice or one that is gone", is_repairable=True)
        state = self._txn.pass_state()
        if state is not None and state.number != self._txn.finished_passes() + 1:
            self._note(layout.META, "pass_state", "is not the pass after the last one")
        if state is not None and self._txn.owed_passes() == 0:
            self._note(layout.META, "owed_passes", "a pass is under way but none is owed")

    def _check_sources(self) -> None:
        for node in self.nodes.values():
            slices = [self._cited(node, source) for source in node.sources]
            own = self._text(node.first_key) if node.first_key else None
            if node.first_key and own is None:
                self._note(layout.NODES, node_text_id(node.id), "its first content is gone")
            first = own if node.first_key else slices[0] if len(slices) == 1 else None
            if first is not None and len(node.prefix + first) != node.original_length:
                self._note(layout.NODES, node_text_id(node.id), "its first content has another length")

    def _check_withdrawn(self) -> None:
        """What is told instead of a text that is gone: by memories that live, and by all that cite it."""
        cited = citing(self.nodes.values())
        for record in self.messages.values():
            if record.is_withdrawn:
                value = self._txn.get(layout.PASSAGES, layout.u64(record.number))
                told = told_by(value) if value is not None and passages_fit(value, None) else None
                if told is not None and told != cited.get(record.number, set()):
                    self._note(
                        layout.PASSAGES,
                        str(record.number),
                        "are not told by the memories that live",
                        is_repairable=True,
                    )
        for number in range(1, self._txn.texts_from()):
            if number in self.messages and not self.messages[number].is_withdrawn:
                self._note(layout.META, "texts_from", f"message {number} has its text", is_repairable=True)

    def _cited(self, node: Node, source: Source) -> str | None:
        record = self.messages.get(source.message)
        if record is None:
            self._note(layout.NODES, node_text_id(node.id), "cites a message that is gone")
            return None
        text = self._text(record.text_key)
        if text is None:
            return None
        found = _slice(text.encode(), source.offset, source.length)
        if found is None:
            self._note(layout.NODES, node_text_id(node.id), "cites bytes that are no text")
        return found

    def _check_links(self) -> None:
        highest = self._txn.next_node_id()
        scans = dict(self._txn.scans())
        expected: set[tuple[bytes, bytes]] = set()
        for key, value in self._items(layout.LINKS):
            source = layout.from_u64(key)
            target, relation, strength, anchor = layout.from_link_value(value)
            name = f"{node_text_id(source)} to {node_text_id(target)}"
            if source not in self.nodes:
                self._note(layout.LINKS, name, "its source is gone", is_repairable=True)
                continue
            if not 0 <= strength <= 1:
                self._note(layout.LINKS, name, f"has strength {strength}")
            if anchor > (scans[source].count if source in scans else 0):
                self._note(layout.LINKS, name, "was written in a scan that never was")
            if not 0 < target < highest:
                self._note(layout.LINKS, name, "points at a node that never was")
            if self._txn.get(layout.RELATIONS, layout.u32(relation)) is None:
                self._note(layout.LINKS, name, "its relation has no name")
            expected.add((layout.u64(target), layout.backlink_value(source, relation)))
        present = {(bytes(key), bytes(value)) for key, value in self._items(layout.BACKLINKS)}
        for _ in expected - present:
            self._note(layout.BACKLINKS, "", "a link has no backlink", is_repairable=True)
        for _ in present - expected:
            self._note(layout.BACKLINKS, "", "a backlink has no link", is_repairable=True)

    def _check_scans(self) -> None:
        state, finished = self._txn.pass_state(), self._txn.finished_passes()
        latest = finished if state is None else state.number
        for node_id, scan in self._txn.scans():
            if node_id not in self.nodes:
                self._note(
                    layout.SCANS, node_text_id(node_id), "counts a node that is gone", is_repairable=True
                )
            if scan.last_pass > latest:
                self._note(layout.SCANS, node_text_id(node_id), "was scanned in a pass to come")

    def _check_references(self) -> None:
        counted = references(self.messages.values(), self.nodes.values())
        expected = {self._txn.placed(layout.CHUNKS, key): count for key, count in counted.items()}
        present = {bytes(k): layout.from_u32(v) for k, v in self._items(layout.CHUNK_REFERENCES)}
        for key in expected.keys() | present.keys() | self.texts.keys():
            if expected.get(key, 0) != present.get(key, 0):
                self._note(layout.CHUNK_REFERENCES, key.hex(), "is counted wrongly", is_repairable=True)
            elif key in self.texts and key not in expected:
                self._note(layout.CHUNKS, key.hex(), "is referred to by nothing", is_repairable=True)

    def _check_queues(self) -> None:
        waiting = {layout.from_u64(v): layout.from_u64(k) for k, v in self._items(layout.INBOX)}
        parked = {layout.from_u64(k) for k, _ in self._items(layout.PARKED)}
        digested = Counter(layout.from_u64(v) for _, v in self._items(layout.DIGESTED))
        places = {
            BatchState.WAITING.value: waiting.keys(),
            BatchState.PARKED.value: parked,
            BatchState.DIGESTED.value: digested.keys(),
        }
        for number, batch in self.batches.items():
            for state, numbers in places.items():
                if (number in numbers) != (batch.state == state):
                    self._note(layout.BATCHES, batch_text_id(number), f"{state} in one table only")
            if batch.state == BatchState.WAITING.value and waiting.get(number) != batch.position:
                self._note(layout.INBOX, batch_text_id(number), "stands at another place")
            if batch.state != BatchState.DIGESTED.value:
                self._check_messages_of(batch)
        for number in waiting.keys() | parked | digested.keys():
            if number not in self.batches:
                self._note(layout.INBOX, batch_text_id(number), "is queued but not known")
        for number, times in digested.items():
            if times > 1:
                self._note(layout.DIGESTED, batch_text_id(number), "was digested more than once")

    def _check_messages_of(self, batch: Batch) -> None:
        numbers = range(batch.first_message, batch.first_message + batch.message_count)
        if any(number not in self.messages for number in numbers):
            self._note(layout.BATCHES, batch_text_id(batch.number), "has lost a message before its digest")

    def _check_receipts(self) -> None:
        for key, value in self._items(layout.RECEIPTS):
            receipt = self._decoded(layout.RECEIPTS, key, value, Receipt)
            if receipt is not None and receipt.batch not in self.batches:
                self._note(layout.RECEIPTS, key.hex(), "names a batch that is gone")

    def _check_audit(self) -> None:
        identity = self._txn.identity()
        chain = Verification(None if identity is None else identity.agent_id)
        for key, value in self._items(layout.AUDIT):
            record = self._decoded(layout.AUDIT, key, value, AuditRecord)
            if record is None:
                return
            if layout.from_u64(key) != record.number:
                self._note(layout.AUDIT, str(record.number), "stands under another key")
            chain.follow([record])
        chain.end(self._txn.audit_head())
        if chain.broken_at is not None:
            self._note(layout.AUDIT, str(chain.broken_at), chain.problem)

    def _check_events(self) -> None:
        """Records follow each other without a gap, up to the number that the next event gets."""
        expected: int | None = None
        for key, value in self._items(layout.EVENTS):
            first = layout.from_u64(key)
            record = self._decoded(layout.EVENTS, key, value, EventRecord)
            if record is None or not fits(record):
                self._note(layout.EVENTS, str(first), "cannot be read as events")
                expected = None
                continue
            if expected is not None and first != expected:
                self._note(layout.EVENTS, str(first), "does not follow the record before it")
            expected = first + record.count
        if expected is not None and expected != self._txn.next_event():
            self._note(layout.META, "next_event", "is not the number after the last event")


def _slice(text: bytes, offset: int, length: int) -> str | None:
    if offset + length > len(text):
        return None
    try:
        return text[offset : offset + length].decode()
    except UnicodeDecodeError:
        return None
