"""The consistency checker: is a store what was written, and does each entry fit the others?

It reads every entry (`check_entries.py`) and compares each with what it refers to, deriving again what the store
derives as it writes: backlinks from links, reference counts from messages and nodes, the inbox from batches. It runs
after every test that opened a store, before a backup or an import takes an agent's place, and as `ebbtide check`.

It changes nothing. What can be derived again is repairable, and `rebuild` repairs it.
"""

from __future__ import annotations

from collections import Counter

from ebbtide.events import EventRecord, fits
from ebbtide.ids import batch_text_id, node_text_id
from ebbtide.records import Batch, BatchState, Node, PassState, Receipt, Source
from ebbtide.store import layout
from ebbtide.store.chain import AuditRecord, Verification
from ebbtide.store.integrity.check_entries import EnoughFound, Entries, Finding
from ebbtide.store.integrity.derived import citing, passages_fit, references, told_by
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.texts import is_tombstone
from ebbtide.store.yielding import Rest, resting

__all__ = ["Finding", "check_store"]


def check_store(store: LmdbStore, rest: Rest = lambda: None) -> list[Finding]:
    """Return what is wrong in one agent's store. `rest` is called now and then, and may raise."""
    return store.read(lambda txn: _Check(txn, rest).findings())  # type: ignore[arg-type]


class _Check(Entries):
    """One walk over one transaction."""

    def findings(self) -> list[Finding]:
        """Read everything, and compare it."""
        try:
            if self.read():
                self._compare()
        except EnoughFound:
            pass
        return self.found

    def _compare(self) -> None:
        self._check_next_numbers()
        self._check_meta()
        self._check_sources()
        self._check_withdrawn()
        self._check_relations()
        self._check_links()
        self._check_scans()
        self._check_references()
        self._check_queues()
        self._check_receipts()
        self._check_audit()
        self._check_events()

    def _check_next_numbers(self) -> None:
        """No number that is in use is given again."""
        batches = self.batches.values()
        made = max((node_id for batch in batches for node_id in batch.node_ids), default=0)
        from_batches = {record.batch for record in self.messages.values()}
        from_batches.update(node.batch for node in self.nodes.values())
        said = max((one.first_message + one.message_count - 1 for one in batches), default=0)
        for name, what, highest in (
            ("next_node_id", "node id", max(made, max(self.nodes, default=0))),
            ("next_message_number", "message number", max(said, max(self.messages, default=0))),
            ("next_batch_number", "batch number", max(from_batches | self.batches.keys(), default=0)),
            ("next_position", "place in the inbox", self._highest(layout.INBOX)),
            ("next_digested", "place among digested batches", self._highest(layout.DIGESTED)),
            ("next_relation_id", "relation id", self._highest(layout.RELATIONS)),
        ):
            if highest >= self._next(name):
                self._note(layout.META, name, f"a {what} could be given twice")

    def _highest(self, table: bytes) -> int:
        return max((int.from_bytes(key) for key, _ in self._items(table)), default=0)

    def _next(self, name: str) -> int:
        value = self._txn.get(layout.META, name.encode())
        return 1 if value is None else layout.from_u64(value)

    def _check_meta(self) -> None:
        txn, focus = self._txn, self._txn.focus()
        if len(set(focus)) != len(focus) or any(node_id not in self.nodes for node_id in focus):
            self._note(layout.META, "focus", "names a node twice or one that is gone", is_repairable=True)
        if txn.embedding_state().up_to >= txn.next_message_number():
            self._note(layout.META, "embedding", "counts messages that never were", is_repairable=True)
        state = txn.pass_state()
        if state is None:
            return
        if state.number != txn.finished_passes() + 1:
            self._note(layout.META, "pass_state", "is not the pass after the last one")
        if txn.owed_passes() == 0:
            self._note(layout.META, "owed_passes", "a pass is under way but none is owed")
        if not self._is_visit(state):
            self._note(layout.META, "pass_state", "visits nodes that it cannot visit")

    def _is_visit(self, state: PassState) -> bool:
        """Whether the nodes of a pass under way are some that it may visit, each once."""
        if state.start_id > self._txn.next_node_id() or len(set(state.drawn)) != len(state.drawn):
            return False
        is_behind = state.strategy == "scan" or state.after is None or state.after[1] in state.drawn
        return is_behind and max(state.drawn, default=0) < self._txn.next_node_id()

    def _check_sources(self) -> None:
        for node in resting(self.nodes.values(), self._rest):
            for source in node.sources:
                self._check_source(node, source)
            first = self._first_length(node)
            if first is not None and len(node.prefix) + first != node.original_length:
                self._note(layout.NODES, node_text_id(node.id), "its first content has another length")

    def _check_source(self, node: Node, source: Source) -> None:
        record = self.messages.get(source.message)
        if record is None:
            self._note(layout.NODES, node_text_id(node.id), "cites a message that is gone")
        elif not record.is_withdrawn and self._length(record.text_key) is not None:
            text, end = self._text_bytes(record.text_key), source.offset + source.length
            if end > len(text) or not (_is_between(text, source.offset) and _is_between(text, end)):
                self._note(layout.NODES, node_text_id(node.id), "cites bytes that are no text")

    def _first_length(self, node: Node) -> int | None:
        """The characters of what a node first said, without its prefix; None where it is not kept."""
        if node.first_key:
            length = self._length(node.first_key)
            if length is None:
                self._note(layout.NODES, node_text_id(node.id), "its first content is gone")
            return length
        record = self.messages.get(node.sources[0].message) if len(node.sources) == 1 else None
        if record is None or record.is_withdrawn or self._length(record.text_key) is None:
            return None
        source = node.sources[0]
        cited = self._text_bytes(record.text_key)[source.offset : source.offset + source.length]
        return len(cited.decode(errors="ignore"))

    def _check_withdrawn(self) -> None:
        """A text that is gone is found by the memories that live, and by all that cite it."""
        cited = citing(self.nodes.values())
        for record in resting(self.messages.values(), self._rest):
            if record.is_withdrawn:
                value = self._txn.get(layout.PASSAGES, layout.u64(record.number))
                told = told_by(value) if value is not None and passages_fit(value, None) is not None else None
                if told is not None and told != cited.get(record.number, set()):
                    problem = "are not told by the memories that live"
                    self._note(layout.PASSAGES, str(record.number), problem, is_repairable=True)
            elif record.number < self._txn.texts_from():
                problem = f"message {record.number} has its text"
                self._note(layout.META, "texts_from", problem, is_repairable=True)
        if self._txn.texts_from() > self._txn.next_message_number():
            self._note(layout.META, "texts_from", "counts messages that never were", is_repairable=True)

    def _check_relations(self) -> None:
        for key, name in self._items(layout.RELATIONS):
            if self._txn.get(layout.RELATION_IDS, layout.text_key(bytes(name).decode())) != key:
                self._note(layout.RELATIONS, str(layout.from_u32(key)), "is not found by its name")
        if self._txn.entry_count(layout.RELATIONS) != self._txn.entry_count(layout.RELATION_IDS):
            self._note(layout.RELATION_IDS, "", "a name has no relation")

    def _check_links(self) -> None:
        highest = self._txn.next_node_id()
        scans = dict(self._txn.scans())
        expected: set[tuple[bytes, bytes]] = set()
        before = b""
        for key, value in self._items(layout.LINKS):
            source = layout.from_u64(key)
            target, relation, strength, anchor = layout.from_link_value(value)
            name = f"{node_text_id(source)} to {node_text_id(target)}"
            ends = bytes(key) + layout.link_prefix(target, relation)
            if ends == before:
                self._note(layout.LINKS, name, "stands twice")
            before = ends
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
        for node_id, scan in resting(self._txn.scans(), self._rest):
            name = node_text_id(node_id)
            if node_id not in self.nodes:
                self._note(layout.SCANS, name, "counts a node that is gone", is_repairable=True)
            if scan.last_pass > latest:
                self._note(layout.SCANS, name, "was scanned in a pass to come")
            if scan.count > scan.last_pass:
                self._note(layout.SCANS, name, "was scanned more often than there were passes")

    def _check_references(self) -> None:
        counted = references(self.messages.values(), self.nodes.values())
        expected = {self._txn.placed(layout.CHUNKS, key): count for key, count in counted.items()}
        present = {bytes(k): layout.from_u32(v) for k, v in self._items(layout.CHUNK_REFERENCES)}
        for key in expected.keys() | present.keys() | self.lengths.keys():
            if expected.get(key, 0) != present.get(key, 0):
                self._note(layout.CHUNK_REFERENCES, key.hex(), "is counted wrongly", is_repairable=True)
            elif key in self.lengths and key not in expected:
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
        if self._txn.entry_count(layout.INBOX) != len(waiting):
            self._note(layout.INBOX, "", "a batch is queued twice")
        for number, times in digested.items():
            if times > 1:
                self._note(layout.DIGESTED, batch_text_id(number), "was digested more than once")

    def _check_messages_of(self, batch: Batch) -> None:
        """Every message of a batch that is not digested is its own, and has its text unless it was erased."""
        for number in range(batch.first_message, batch.first_message + batch.message_count):
            record = self.messages.get(number)
            if record is None or record.batch != batch.number:
                self._note(
                    layout.BATCHES, batch_text_id(batch.number), "has lost a message before its digest"
                )
                return
            if record.is_withdrawn and not is_tombstone(record):
                self._note(layout.BATCHES, batch_text_id(batch.number), "has lost a text before its digest")

    def _check_receipts(self) -> None:
        for key, value in self._items(layout.RECEIPTS):
            receipt = self._decoded(layout.RECEIPTS, key, value, Receipt)
            batch = None if receipt is None else self.batches.get(receipt.batch)
            if receipt is not None and batch is None:
                self._note(layout.RECEIPTS, key.hex(), "names a batch that is gone")
            elif batch is not None:
                named = layout.text_key(batch.idempotency_key) if batch.idempotency_key else b""
                if self._txn.placed(layout.RECEIPTS, named) != key:
                    self._note(layout.RECEIPTS, key.hex(), "is not that of the batch it names")

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


def _is_between(text: bytes, place: int) -> bool:
    """Whether a place in UTF-8 is between two characters."""
    return place == len(text) or text[place] & 0xC0 != 0x80
