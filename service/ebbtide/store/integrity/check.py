"""The consistency checker: is each entry of a store valid, and does it fit the others?

The first half (`entries.py`) reads every entry by itself. This half compares each entry with those that it refers to,
and derives again what the store derives as it writes: reference counts from messages and nodes, the inbox from batches.
The checker runs after every test that opened a store, before a backup or an export replaces an agent, and as
`ebbtide check`.

It changes nothing. `rebuild.py` repairs the findings that are repairable: those about derived entries.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ebbtide.events import fits
from ebbtide.ids import batch_text_id, node_text_id
from ebbtide.records import Batch, BatchState, Life, Node, PassState, Source
from ebbtide.statements import STATEMENT_KINDS, Assertion, Ruling
from ebbtide.store import layout
from ebbtide.store.chain import Verification
from ebbtide.store.integrity.derived import (
    are_passages_of,
    citations,
    citings,
    life_fault,
    passages_fit,
    references,
)
from ebbtide.store.integrity.entries import EnoughFound, Entries, Finding
from ebbtide.store.layout import META, Table, from_u32, from_u64, text_key, u32, u64
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.texts import is_tombstone
from ebbtide.store.yielding import Pause, with_pauses

__all__ = ["Finding", "check_store"]


def check_store(store: LmdbStore, pause: Pause = lambda: None) -> list[Finding]:
    """Return what is wrong in one agent's store. `pause` is called now and then, and may raise."""
    return store.read(lambda txn: _Check(txn, pause).findings())


class _Check(Entries):
    """One walk over one transaction."""

    def findings(self) -> list[Finding]:
        """Read all entries, compare them, and return the findings."""
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
        self._check_citings()
        self._check_statements()
        self._check_concepts()
        self._check_withdrawn()
        self._check_relations()
        self._check_entities()
        self._check_links()
        self._check_scans()
        self._check_lives()
        self._check_references()
        self._check_queues()
        self._check_receipts()
        self._check_audit()
        self._check_events()

    def _check_next_numbers(self) -> None:
        """Every number in use is lower than the next one."""
        batches = self.batches.values()
        made = max((node_id for batch in batches for node_id in batch.node_ids), default=0)
        from_batches = {record.batch for record in self.messages.values()}
        from_batches.update(node.batch for node in self.nodes.values())
        said = max((one.first_message + one.message_count - 1 for one in batches), default=0)
        for name, what, highest in (
            ("next_node_id", "node id", max(made, *self.nodes, *self.entities, *self.concepts, 0)),
            ("next_message_number", "message number", max(said, max(self.messages, default=0))),
            ("next_batch_number", "batch number", max(from_batches | self.batches.keys(), default=0)),
            ("next_position", "position in the inbox", self._highest(layout.INBOX)),
            ("next_digested", "position among digested batches", self._highest(layout.DIGESTED)),
            ("next_relation_id", "relation id", self._highest(layout.RELATIONS)),
            ("next_record_version", "version of a record", self.newest_record),
        ):
            if highest >= getattr(self._txn.meta, name):
                self._note(META, name, f"a {what} could be used twice")
        if max(self.statements, default=0) >= self._txn.meta.ledger.next_entry:
            self._note(META, "ledger", "an entry number could be used twice")

    def _highest(self, table: Table[Any]) -> int:
        return max((int.from_bytes(key) for key, _ in self._items(table)), default=0)

    def _check_meta(self) -> None:
        meta, focus = self._txn.meta, self._txn.meta.focus
        if len(set(focus)) != len(focus) or any(node_id not in self.nodes for node_id in focus):
            self._note(META, "focus", "names a node twice or a missing one", is_repairable=True)
        entities = meta.entity_focus
        if len(set(entities)) != len(entities) or any(one not in self.entities for one in entities):
            self._note(META, "entity_focus", "names an entity twice or a missing one", is_repairable=True)
        if meta.ledger.extracted_up_to >= meta.next_message_number:
            self._note(META, "ledger", "counts messages that do not exist")
        consolidation = meta.consolidation
        if max(consolidation.consolidated_up_to, consolidation.up_to) >= meta.ledger.next_entry:
            self._note(META, "consolidation", "counts entries that do not exist")
        if meta.embedding.up_to >= meta.next_message_number:
            self._note(META, "embedding", "counts messages that do not exist", is_repairable=True)
        state = meta.pass_state
        if state is None:
            return
        if state.number != meta.finished_passes + 1:
            self._note(META, "pass_state", "does not follow the last completed pass")
        if meta.owed_passes == 0:
            self._note(META, "owed_passes", "is 0 although a pass is in progress")
        if not self._is_visit(state):
            self._note(META, "pass_state", "names nodes that the pass cannot visit")

    def _is_visit(self, state: PassState) -> bool:
        """Return whether the current pass may visit the nodes that it names, each once."""
        if state.start_id > self._txn.meta.next_node_id or len(set(state.drawn)) != len(state.drawn):
            return False
        # Under slots, the entities follow the drawn memories.
        known = {*state.drawn, *self.entities}
        is_behind = state.strategy == "scan" or state.after is None or state.after[1] in known
        return is_behind and max(state.drawn, default=0) < self._txn.meta.next_node_id

    def _check_sources(self) -> None:
        for node in with_pauses(self.nodes.values(), self._pause):
            for source in node.sources:
                self._check_source(layout.NODES, node_text_id(node.id), source)
            first = self._first_length(node)
            if first is not None and first != node.original_length:
                self._note(layout.NODES, node_text_id(node.id), "its first content has a wrong length")

    def _check_citings(self) -> None:
        if self._txn.meta.citings_due:
            return
        expected = citings(self.nodes.values())
        for key, block in self._decoded(layout.CITINGS):
            first = from_u64(key) * layout.MESSAGES_PER_BLOCK
            for place, ids in (block or {}).items():
                if expected.pop(first + place, None) != ids:
                    problem = "do not name the nodes that cite the message"
                    self._note(layout.CITINGS, str(first + place), problem, is_repairable=True)
        for message in expected:
            self._note(layout.CITINGS, str(message), "are missing", is_repairable=True)

    def _check_statements(self) -> None:
        """Entries refer to nodes, entities and entries that exist or existed, and to texts."""
        for entry in with_pauses(self.statements.values(), self._pause):
            if isinstance(entry, Assertion):
                self._check_assertion(entry)
            else:
                self._check_ruling(entry)

    def _check_assertion(self, one: Assertion) -> None:
        name, node = str(one.entry), self.nodes.get(one.statement)
        entities = {one.subject, *filter(None, (one.object_entity,))}
        statements = {one.statement, *filter(None, (one.replaces,))}
        if max(entities | statements) >= self._txn.meta.next_node_id:
            self._note(layout.ASSERTIONS, name, "names a node that never existed")
        if node is not None and node.kind != one.kind:
            self._note(layout.ASSERTIONS, name, "has another kind than its node")
        if entities & self.nodes.keys() or statements & self.entities.keys():
            self._note(
                layout.ASSERTIONS, name, "takes an entity for a statement, or a statement for an entity"
            )
        self._check_source(layout.ASSERTIONS, name, one.source)

    def _check_ruling(self, one: Ruling) -> None:
        name = str(one.entry)
        if one.kind == "undo":
            if one.target >= one.entry or isinstance(self.statements.get(one.target), Assertion):
                self._note(layout.RULINGS, name, "undoes an entry that is no earlier ruling")
        elif max(one.target, one.other) >= self._txn.meta.next_node_id:
            self._note(layout.RULINGS, name, "names a node that never existed")
        for source in one.sources:
            self._check_source(layout.RULINGS, name, source)

    def _check_concepts(self) -> None:
        """The members of a concept exist or existed, each once; a concept is neither a memory nor an entity."""
        highest, known = self._txn.meta.next_node_id, self.nodes.keys() | self.entities.keys()
        for one in self.concepts.values():
            name = node_text_id(one.id)
            if list(one.members) != sorted(set(one.members)) or not one.members:
                self._note(layout.CONCEPTS, name, "has no members in order", is_repairable=True)
            elif one.members[-1] >= highest or not self.concepts.keys().isdisjoint(one.members):
                self._note(layout.CONCEPTS, name, "has a member that never existed", is_repairable=True)
            if one.id in known:
                self._note(layout.CONCEPTS, name, "is a memory or an entity too", is_repairable=True)

    def _check_source(self, table: Table[Any], name: str, source: Source) -> None:
        record = self.messages.get(source.message)
        if record is None:
            self._note(table, name, "cites a missing message")
        elif not record.role:
            self._note(table, name, "cites an erased message")
        elif not record.is_withdrawn and self._length(record.text_key) is not None:
            text, end = self._text_bytes(record.text_key), source.offset + source.length
            if end > len(text) or not (_is_between(text, source.offset) and _is_between(text, end)):
                self._note(table, name, "cites a range that is no text")

    def _first_length(self, node: Node) -> int | None:
        """Return the characters of a node's first content; None if it was deleted."""
        if node.first_key:
            length = self._length(node.first_key)
            if length is None:
                self._note(layout.NODES, node_text_id(node.id), "its first content is missing")
            return length
        record = self.messages.get(node.sources[0].message) if len(node.sources) == 1 else None
        if record is None or record.is_withdrawn or self._length(record.text_key) is None:
            return None
        source = node.sources[0]
        cited = self._text_bytes(record.text_key)[source.offset : source.offset + source.length]
        return len(cited.decode(errors="ignore"))

    def _check_withdrawn(self) -> None:
        """The passages of a withdrawn message have the words of exactly the memories that cite it."""
        cited = citations(self.nodes.values())
        for record in with_pauses(self.messages.values(), self._pause):
            if record.is_withdrawn:
                value = self._txn.tables.get(layout.PASSAGES, u64(record.number))
                is_valid = value is not None and passages_fit(value, None) is not None
                if value and is_valid and not are_passages_of(value, cited.get(record.number, set())):
                    problem = "do not have the words of the memories that cite the message"
                    self._note(layout.PASSAGES, str(record.number), problem, is_repairable=True)
            elif record.number < self._txn.meta.texts_from:
                problem = f"message {record.number} has its text"
                self._note(META, "texts_from", problem, is_repairable=True)
        if self._txn.meta.texts_from > self._txn.meta.next_message_number:
            self._note(META, "texts_from", "counts messages that do not exist", is_repairable=True)

    def _check_relations(self) -> None:
        for key, name in self._items(layout.RELATIONS):
            if self._txn.tables.get(layout.RELATION_IDS, text_key(bytes(name).decode())) != key:
                self._note(layout.RELATIONS, str(from_u32(key)), "is not found by its name")
        if self._txn.tables.count(layout.RELATIONS) != self._txn.tables.count(layout.RELATION_IDS):
            self._note(layout.RELATION_IDS, "", "a name has no relation")

    def _check_entities(self) -> None:
        """Every entity has a key of its own, is no memory, and left focus at a scan that it has had."""
        scans, keys = dict(self._txn.scans.all()), set[str]()
        for entity in self.entities.values():
            name = node_text_id(entity.id)
            if entity.key in keys:
                self._note(layout.ENTITIES, name, "has the key of another entity")
            keys.add(entity.key)
            if entity.id in self.nodes:
                self._note(layout.ENTITIES, name, "is a memory too")
            if entity.left_at > (scans[entity.id].count if entity.id in scans else 0):
                self._note(layout.ENTITIES, name, "left focus in a scan that it has not had")

    def _check_links(self) -> None:
        highest = self._txn.meta.next_node_id
        scans = dict(self._txn.scans.all())
        before = b""
        for key, value in self._items(layout.LINKS):
            source = from_u64(key)
            target, relation, strength, anchor = layout.from_link_value(value)
            name = f"{node_text_id(source)} to {node_text_id(target)}"
            ends = bytes(key) + layout.link_prefix(target, relation)
            if ends == before:
                self._note(layout.LINKS, name, "is stored twice")
            before = ends
            if source not in self.nodes and source not in self.entities:
                self._note(layout.LINKS, name, "its source is missing", is_repairable=True)
                continue
            if source in self.entities and target in self.entities:
                self._note(layout.LINKS, name, "links two entities")
            if not 0 <= strength <= 1:
                self._note(layout.LINKS, name, f"has strength {strength}")
            if anchor > (scans[source].count if source in scans else 0):
                self._note(layout.LINKS, name, "was written in a scan that its source has not had")
            if not 0 < target < highest:
                self._note(layout.LINKS, name, "points to a node that never existed")
            if self._txn.tables.get(layout.RELATIONS, u32(relation)) is None:
                self._note(layout.LINKS, name, "its relation has no name")

    def _check_scans(self) -> None:
        state, finished = self._txn.meta.pass_state, self._txn.meta.finished_passes
        latest = finished if state is None else state.number
        for node_id, scan in with_pauses(self._txn.scans.all(), self._pause):
            name = node_text_id(node_id)
            if node_id not in self.nodes and node_id not in self.entities:
                self._note(layout.SCANS, name, "counts a missing node", is_repairable=True)
            if scan.last_pass > latest:
                self._note(layout.SCANS, name, "was scanned in a pass after the latest one")
            if scan.count > scan.last_pass:
                self._note(layout.SCANS, name, "was scanned more often than there were passes")
            if scan.is_kept and node_id in self.nodes and self.nodes[node_id].kind not in STATEMENT_KINDS:
                self._note(layout.SCANS, name, "is kept, but is no statement")

    def _check_lives(self) -> None:
        """Every memory has a life that fits it, and every other life ended in a pass."""
        if not self._txn.meta.has_lives:
            return
        current, lives = self._txn.meta.finished_passes + 1, self._txn.lives.columns()
        living, highest = dict(self.nodes), self._txn.meta.next_node_id
        columns = (lives.node_id, lives.after, lives.length, lives.forgotten_in)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for node_id, *row in with_pauses(rows, self._pause):
            problem = life_fault(Life(*row), living.pop(node_id, None), current)
            if node_id in self.entities or node_id >= highest:
                problem = "is of no memory"
            if problem:
                self._note(layout.LIVES, node_text_id(node_id), problem, is_repairable=True)
        for node_id in living:
            self._note(layout.LIVES, node_text_id(node_id), "is missing", is_repairable=True)

    def _check_references(self) -> None:
        counted = references(self.messages.values(), self.nodes.values())
        expected = {self._txn.tables.placed(layout.CHUNKS, key): count for key, count in counted.items()}
        present = {bytes(k): from_u32(v) for k, v in self._items(layout.CHUNK_REFERENCES)}
        for key in expected.keys() | present.keys() | self.sizes.keys():
            count = expected.get(key, 0)
            if present.get(key) != (count if count > 1 else None):
                self._note(layout.CHUNK_REFERENCES, key.hex(), "has a wrong count", is_repairable=True)
            elif key in self.sizes and key not in expected:
                self._note(layout.CHUNKS, key.hex(), "has no reference", is_repairable=True)

    def _check_queues(self) -> None:
        waiting = {from_u64(v): from_u64(k) for k, v in self._items(layout.INBOX)}
        parked = {from_u64(k) for k, _ in self._items(layout.PARKED)}
        digested = Counter(from_u64(v) for _, v in self._items(layout.DIGESTED))
        places = {
            BatchState.WAITING.value: waiting.keys(),
            BatchState.PARKED.value: parked,
            BatchState.DIGESTED.value: digested.keys(),
        }
        for number, batch in self.batches.items():
            for state, numbers in places.items():
                if (number in numbers) != (batch.state == state):
                    self._note(layout.BATCHES, batch_text_id(number), f"is {state} in one table only")
            if batch.state == BatchState.WAITING.value and waiting.get(number) != batch.position:
                self._note(layout.INBOX, batch_text_id(number), "is at another position")
            if batch.state != BatchState.DIGESTED.value:
                self._check_messages_of(batch)
        for number in waiting.keys() | parked | digested.keys():
            if number not in self.batches:
                self._note(layout.INBOX, batch_text_id(number), "is queued but has no record")
        if self._txn.tables.count(layout.INBOX) != len(waiting):
            self._note(layout.INBOX, "", "a batch is queued twice")
        for number, times in digested.items():
            if times > 1:
                self._note(layout.DIGESTED, batch_text_id(number), "was digested more than once")

    def _check_messages_of(self, batch: Batch) -> None:
        """Every message of an undigested batch names it, and has its text unless it was erased."""
        for number in range(batch.first_message, batch.first_message + batch.message_count):
            record = self.messages.get(number)
            if record is None or record.batch != batch.number:
                self._note(layout.BATCHES, batch_text_id(batch.number), "lost a message before its digest")
                return
            if record.is_withdrawn and not is_tombstone(record):
                self._note(layout.BATCHES, batch_text_id(batch.number), "lost a text before its digest")

    def _check_receipts(self) -> None:
        for key, receipt in self._decoded(layout.RECEIPTS):
            batch = None if receipt is None else self.batches.get(receipt.batch)
            if receipt is not None and batch is None:
                self._note(layout.RECEIPTS, key.hex(), "refers to a missing batch")
            elif batch is not None:
                expected = text_key(batch.idempotency_key) if batch.idempotency_key else b""
                if self._txn.tables.placed(layout.RECEIPTS, expected) != key:
                    self._note(layout.RECEIPTS, key.hex(), "is stored under another key than its batch names")

    def _check_audit(self) -> None:
        identity = self._txn.meta.identity
        chain = Verification(None if identity is None else identity.agent_id)
        for key, record in self._decoded(layout.AUDIT):
            if record is None:
                return
            if from_u64(key) != record.number:
                self._note(layout.AUDIT, str(record.number), "is stored under another key")
            chain.follow([record])
        chain.end(self._txn.meta.audit_head)
        if chain.broken_at is not None:
            self._note(layout.AUDIT, str(chain.broken_at), chain.problem)

    def _check_events(self) -> None:
        """Records follow each other without a gap, up to the next event number."""
        expected: int | None = None
        for key, record in self._decoded(layout.EVENTS):
            first = from_u64(key)
            if record is None or not fits(record):
                self._note(layout.EVENTS, str(first), "does not contain valid events")
                expected = None
                continue
            if expected is not None and first != expected:
                self._note(layout.EVENTS, str(first), "does not follow the previous record")
            expected = first + record.count
        if expected is not None and expected != self._txn.meta.next_event:
            self._note(META, "next_event", "is not the number after the last event")


def _is_between(text: bytes, place: int) -> bool:
    """Return whether an offset in UTF-8 is between two characters."""
    return place == len(text) or text[place] & 0xC0 != 0x80
