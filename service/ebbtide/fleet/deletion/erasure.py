"""Erasure: removes for good what a selection found, in small steps, each a complete transaction.

The rules guarded here:

* **Nothing derived from erased data stays.** Removed are memories with their links, focus and rewrites; texts,
  passages, vectors, metadata and names of messages, which leave a numbered tombstone; batches with their receipts once
  all their messages are erased; and relation names that reveal it (`relation_scrubbing.py`).
* **Nothing comes back.** Erasing part of a batch changes the batch, so a digest that read it before is refused.
* **Every step is recorded.** Its audit record, with a keyed hash of each erased text, is in the same transaction.

The erased bytes stay in the file until the compaction that follows (`State.compact`). The store notes that it is due,
in case the process ends before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import msgspec
import numpy as np

from ebbtide.changes import Change
from ebbtide.fleet.archive.archive import Archive, passage_of
from ebbtide.fleet.archive.reading import living_nodes, message_with_text, text_of
from ebbtide.fleet.archive.retention import PassageUpdates, citing, refresh_passages
from ebbtide.fleet.deletion.deletion import KeptSources, blanked, own_words, text_bytes
from ebbtide.fleet.deletion.proofs import Proofs
from ebbtide.fleet.deletion.relation_scrubbing import MAX_SCRUBBED_LINKS, came_from, without_names
from ebbtide.fleet.deletion.selection import SelectionSearch, Span
from ebbtide.fleet.state.agent_state import Amendment
from ebbtide.ids import NodeId
from ebbtide.memory.amendment import merged, settle_entities
from ebbtide.memory.declaration import MAX_PHRASE_CHARS
from ebbtide.memory.network import Network
from ebbtide.records import Link, MessageRecord, Node
from ebbtide.statements import STATEMENT_KINDS
from ebbtide.store.chain import AuditEntry, AuditRecord, proof_of
from ebbtide.store.lmdb.texts import is_tombstone
from ebbtide.store.lmdb.transaction import WriteTransaction

MAX_PROOFS_PER_STEP = 200
"""Most texts erased in one step, to bound the audit record. Texts of one message stay together."""


@dataclass(slots=True)
class Tally:
    """Counts of erased items."""

    node_count: int = 0
    link_count: int = 0
    message_count: int = 0
    batch_count: int = 0
    byte_count: int = 0
    relation_count: int = 0
    """Links that lost their name."""

    def add(self, other: Tally) -> None:
        """Add the counts of another step."""
        self.node_count += other.node_count
        self.link_count += other.link_count
        self.message_count += other.message_count
        self.batch_count += other.batch_count
        self.byte_count += other.byte_count
        self.relation_count += other.relation_count


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureStep(Amendment):
    """The items that one step erased, the updates to apply, and the remaining items."""

    tombstones: PassageUpdates
    tally: Tally
    record: AuditRecord | None
    text_proofs: dict[int, bytes]
    left: tuple[Sequence[int], Sequence[NodeId], Sequence[Link]]
    """Messages, nodes and links still to erase."""

    def update_archive(self, archive: Archive) -> None:
        """Apply the step to the archive."""
        Amendment.update_archive(self, archive)
        archive.replace_withdrawn(self.tombstones)


@dataclass(slots=True)
class Erasure:
    """The part of a selection that is still to be erased."""

    search: SelectionSearch
    messages: Sequence[int] = ()
    nodes: Sequence[NodeId] = ()
    links: Sequence[Link] = ()
    """Links that lose their names after everything else is erased."""
    has_entities: bool = True
    """Whether entities that erased text named are still to be found."""
    text_proofs: dict[int, bytes] = field(default_factory=dict)
    """Proofs of complete messages, computed before their first part is erased."""

    @classmethod
    def of(cls, search: SelectionSearch, links: Sequence[Link] = ()) -> Erasure:
        """Erase what a search found and scrub the names of these links."""
        faded = [number for number, spans in search.faded.items() if spans]
        return cls(search, sorted({*search.whole, *search.spans, *faded}), list(search.nodes), links)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return not (self.messages or self.nodes or self.links or self.has_entities)

    def step(
        self, txn: WriteTransaction, is_time_up: Callable[[], bool], entry: AuditEntry, network: Network
    ) -> ErasureStep:
        """Erase some items. This object changes only in `committed`, because a transaction may be retried."""
        step, kinds = (
            _Step(txn, network, self.search, Proofs(txn.audit.make_proof_key()), self.text_proofs),
            self.search.selection.kinds,
        )
        if not self.messages and not self.nodes:
            # The network is up to date here: it has no links of erased memories.
            change = without_names(network, self.links[:MAX_SCRUBBED_LINKS])
            left_links = self.links[MAX_SCRUBBED_LINKS:]
            return step.end(entry, kinds, ((), (), left_links), change, settles=self.has_entities)
        messages, nodes = iter(self.messages), iter(self.nodes)
        message_count = sum(1 for _ in step.erase(messages, step.message, is_time_up))
        # Selected memories follow after the messages, because most of them are erased with their messages.
        node_count = 0
        if message_count == len(self.messages):
            node_count = sum(1 for _ in step.erase(nodes, step.node, is_time_up))
        left = self.messages[message_count:], self.nodes[node_count:], self.links
        return step.end(entry, kinds, left, Change(), settles=not left[0] and not left[1])

    def committed(self, step: ErasureStep) -> None:
        """Advance after a committed step."""
        self.messages, self.nodes, self.links = step.left
        self.has_entities = bool(self.messages or self.nodes)
        self.text_proofs |= step.text_proofs


@dataclass(slots=True)
class _Step:
    """One step within its transaction."""

    txn: WriteTransaction
    network: Network
    search: SelectionSearch
    proofs: Proofs
    proofs_before: Mapping[int, bytes]
    text_proofs: dict[int, bytes] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    rewritten: PassageUpdates = field(default_factory=dict)
    tombstones: PassageUpdates = field(default_factory=dict)
    deleted_ids: list[NodeId] = field(default_factory=list)
    changed: dict[NodeId, Node] = field(default_factory=dict)
    """The statements that lost one of several sources."""
    without_text: set[int] = field(default_factory=set)
    batches: set[int] = field(default_factory=set)
    since: dict[int, list[Node]] | None = None
    blank_spans: dict[int, list[Span]] = field(default_factory=dict)
    """Spans to overwrite at the end of the step, once per message."""
    kept_sources: KeptSources = field(init=False)

    def __post_init__(self) -> None:
        """Note which memories the erasure deletes."""
        self.kept_sources = KeptSources(self.search.nodes)

    def erase(
        self, names: Iterator[int], erase: Callable[[int], None], is_time_up: Callable[[], bool]
    ) -> Iterator[int]:
        """Erase items while there is time, at least one. Yield the erased ones."""
        for name in names:
            erase(name)
            yield name
            if len(self.proofs.found) >= MAX_PROOFS_PER_STEP or is_time_up():
                return

    def message(self, number: int) -> None:
        """Erase a message, or its selected parts, with the memories made from them."""
        record = self.txn.messages.get(number)
        if record is None or is_tombstone(record):
            return
        is_whole = number in self.search.whole
        spans = [*self.search.spans.get(number, ()), *self.search.faded.get(number, ())]
        # Read first: a memory erased below takes part of the text with it.
        before = self._read_text(number)
        if is_whole:
            self.proofs.add(before or "")
        elif before is not None:
            self.proofs.add_stretches(before, spans)
        for node in self._citing(number):
            self._take(node)
        if not is_whole:
            self._blank(number, spans)
            return
        # Read again: the last memory may have taken the last words.
        record = self.txn.messages.get(number)
        if record is not None and not is_tombstone(record):
            self.tally.byte_count += text_bytes(self.txn.messages.text(record) or "")
            self._bury(record)

    def _read_text(self, number: int) -> str | None:
        """Return the text of a message. On the first call, note the proof of the complete text."""
        found = message_with_text(self.txn, number)
        if found is None:
            return None
        if number not in self.proofs_before and number not in self.text_proofs:
            self.text_proofs[number] = proof_of(self.proofs.key, found[1])
        return found[1]

    def _blank(self, number: int, spans: Sequence[Span]) -> None:
        text = self._read_text(number)
        if text is not None:
            self.proofs.add_stretches(text, spans)
            self.blank_spans.setdefault(number, []).extend(spans)

    def _overwrite(self) -> None:
        """Overwrite the erased parts of messages that stay."""
        for number, spans in self.blank_spans.items():
            before = text_of(self.txn, number)
            passages = blanked(self.txn, number, spans)
            if passages is None:
                continue
            record = self.txn.messages.get(number)
            assert record is not None, "a message that was overwritten exists"
            after = self.txn.messages.text(record) or ""
            self.tally.byte_count += text_bytes(before) - text_bytes(after)
            self.rewritten[number] = passages
            self.batches.add(record.batch)
            if not after.strip():
                self._bury(record)

    def node(self, node_id: NodeId) -> None:
        """Erase a memory with its sources."""
        node = self.txn.nodes.get(node_id)
        if node is not None:
            self._take(node)

    def _citing(self, message: int) -> list[Node]:
        """Return the memories that are erased with a message, including those made since the search."""
        if self.since is None:
            self.since = {}
            for node in self.txn.nodes.all(self.search.next_node_id):
                for number in self.search.erased_sources(node):
                    self.since.setdefault(number, []).append(node)
        made_since = (node.id for node in self.since.get(message, ()))
        return living_nodes(self.txn, [*self.search.citing.get(message, ()), *made_since])

    def _take(self, node: Node) -> None:
        txn = self.txn
        left = self._kept_statement(node)
        if left is not None:
            if left.sources != node.sources:
                txn.apply(Change(nodes=[left]))
                self.changed[left.id] = left
            return
        self.without_text |= citing(txn, Change(deleted=[node.id]))
        self.proofs.add_memory(txn, node)
        if self.search.erases_sources(node):
            for message, spans in own_words(txn, node, self.kept_sources).items():
                self._blank(message, spans)
        self.tally.link_count += txn.links.count_at(node.id)
        self.tally.node_count += 1
        txn.apply(Change(deleted=[node.id]))
        self.deleted_ids.append(node.id)

    def _kept_statement(self, node: Node) -> Node | None:
        """Return a statement with the sources that are left and the words of the oldest; None to delete it."""
        if node.kind not in STATEMENT_KINDS or node.id in self.search.fully_erased:
            return None
        erased = set(self.search.erased_sources(node))
        left = tuple(source for source in node.sources if source.message not in erased)
        text = text_of(self.txn, left[0].message) if left else ""
        content = (
            text.encode()[left[0].offset : left[0].offset + left[0].length].decode(errors="replace")
            if left
            else ""
        )
        if not content.strip():
            return None
        return msgspec.structs.replace(
            node,
            content=content,
            phrase=content[:MAX_PHRASE_CHARS],
            original_length=len(content),
            sources=left,
        )

    def _bury(self, record: MessageRecord) -> None:
        """Replace a message by a tombstone."""
        proof = self.proofs_before.get(record.number) or self.text_proofs.get(record.number)
        if proof is not None:
            self.proofs.found[proof] = None
        kept = self.txn.passages.get(record.number) or []
        self.rewritten.pop(record.number, None)
        self.without_text.discard(record.number)
        self.tombstones[record.number] = [passage_of("", "", one.begin) for one in kept]
        self.txn.messages.erase(record)
        self.batches.add(record.batch)
        self.tally.message_count += 1

    def end(
        self,
        entry: AuditEntry,
        kinds: list[str],
        left: tuple[Sequence[int], Sequence[NodeId], Sequence[Link]],
        renamed: Change,
        *,
        settles: bool,
    ) -> ErasureStep:
        """Complete the step: overwrite texts, update links, entities, focus, batches and passages, and write the audit
        record. `settles`: every memory of the selection is erased now.
        """
        txn, tally = self.txn, self.tally
        self._overwrite()
        focus = tuple(node_id for node_id in txn.meta.focus if node_id not in self.deleted_ids)
        entities = self._settled_entities(settles=settles)
        rest = _without_ended(renamed, entities)
        rest.focus = focus
        merged(rest, entities)
        txn.apply(rest)
        changed = [node for node in self.changed.values() if node.id not in self.deleted_ids]
        change = msgspec.structs.replace(rest, deleted=self.deleted_ids, nodes=changed)
        tally.relation_count = len(renamed.removed_links)
        self._settle_batches()
        passage_updates = refresh_passages(txn, self.without_text - self.tombstones.keys(), change)
        record = None
        has_erased_names = bool(entities.deleted_entities or entities.entities or entities.removed_links)
        if (
            tally.node_count
            or tally.message_count
            or tally.relation_count
            or self.rewritten
            or has_erased_names
        ):
            details: dict[str, object] = {
                "by": kinds,
                "nodes": tally.node_count,
                "links": tally.link_count,
                "messages": tally.message_count,
                "batches": tally.batch_count,
                "bytes": tally.byte_count,
                "relations": tally.relation_count,
            }
            whole = AuditEntry(entry.at_ms, entry.actor, entry.action, details, tuple(self.proofs.found))
            identity = txn.meta.identity
            assert identity is not None, "an open store has its identity"
            record = txn.audit.append(whole, identity.agent_id)
            txn.meta.set(compaction_due=True)
        return ErasureStep(
            change=change,
            rewritten=self.rewritten,
            passage_updates=passage_updates,
            erased_messages=sorted(self.tombstones.keys() | self.rewritten.keys()),
            tombstones=self.tombstones,
            tally=tally,
            record=record,
            text_proofs=self.text_proofs,
            left=left,
            is_settled=True,
        )

    def _settled_entities(self, *, settles: bool) -> Change:
        """Return what the step means for entities. The last one also finds names that forgotten memories said."""
        txn, search = self.txn, self.search

        def keywords_of(node_id: NodeId) -> Sequence[str]:
            node = txn.nodes.get(node_id)
            return () if node is None else node.keywords

        if not settles:
            return settle_entities(self.network, self.deleted_ids, keywords_of)
        topic = None if search.selection.has_filters else search.selection.topic
        named = [
            entity.id
            for entity in self.network.entities.values()
            if topic is not None and topic.is_named_in(entity.name)
        ]
        return settle_entities(
            self.network,
            self.deleted_ids,
            keywords_of,
            erased=lambda node_id: bool(came_from(search, np.array([node_id]))[0]),
            dropped=named,
        )

    def _settle_batches(self) -> None:
        """Delete batches without remaining messages, and mark the others as changed."""
        empty = []
        for number in sorted(self.batches):
            batch = self.txn.inbox.get(number)
            if batch is None:
                continue
            numbers = range(batch.first_message, batch.first_message + batch.message_count)
            if _are_erased(self.txn, numbers):
                empty.append(batch)
            else:
                self.txn.inbox.note_erasure(batch)
        self.txn.inbox.erase(empty)
        self.tally.batch_count += len(empty)


def _without_ended(renamed: Change, entities: Change) -> Change:
    """Return the renamed links without those that end with their entities."""
    gone, ended = (
        {(link.source, link.target) for link in entities.removed_links},
        set(entities.deleted_entities),
    )

    def stays(link: Link) -> bool:
        return (link.source, link.target) not in gone and ended.isdisjoint((link.source, link.target))

    return Change(
        removed_links=list(filter(stays, renamed.removed_links)), links=list(filter(stays, renamed.links))
    )


def _are_erased(txn: WriteTransaction, numbers: Collection[int]) -> bool:
    first = next(iter(numbers), 0)
    records = islice(txn.messages.all(first), len(numbers))
    return all(is_tombstone(record) for record in records)
