"""The executor of deletions: removes the items of a selector with everything derived from them, in bounded steps.

The rules guarded here:

* **Everything derived goes with its source.** `REGISTER` lists what derives from memories and messages. A new derived
  thing is one entry there.
* **Every step is one commit**, with its audit record and its events. The remaining work can be found in the store, so a
  kill at any moment loses nothing, and restores nothing.
* **No text stays in a cache** of this process after a step (`text_caches.py`).
* **A text is hashed before any part of it is removed** (`proofs.py`).
* **Nothing comes back.** A permanent deletion changes the batches that lose a part, so a digest that read one before
  is refused.

Freed bytes stay in the file until LMDB reuses the page; the store notes that. After a permanent deletion, it notes that
the file must be rewritten (`State.compact`).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import singledispatchmethod
from itertools import chain, islice
from typing import Any, Final, NamedTuple

import msgspec

from ebbtide.changes import Change
from ebbtide.events import EventRun
from ebbtide.fleet.archive import retention
from ebbtide.fleet.archive.archive import Archive, passage_of, passages_from_memories, passages_of, spans_of
from ebbtide.fleet.archive.reading import living_nodes, message_with_text, text_of
from ebbtide.fleet.deletion import words
from ebbtide.fleet.deletion.link_names import links_at, without_names
from ebbtide.fleet.deletion.proofs import Proofs
from ebbtide.fleet.deletion.records import delete_record
from ebbtide.fleet.deletion.removal import (
    Correction,
    Deleted,
    Item,
    Memory,
    Outcome,
    OwnSource,
    Record,
    Removal,
    Removed,
    Text,
    Traces,
    Uncited,
    Undigested,
    Words,
)
from ebbtide.fleet.deletion.words import Span, outside, overlaps, span_of
from ebbtide.fleet.state.agent_state import State
from ebbtide.ids import NodeId
from ebbtide.memory.amendment import merged, settle_entities
from ebbtide.memory.network import Network
from ebbtide.memory.statements import Ledger
from ebbtide.records import Link, MessageRecord, Node, Source
from ebbtide.statements import (
    CAUSES,
    MAX_RULING_SOURCES,
    STATEMENT_KINDS,
    Ruling,
    is_extracted,
    is_inferred,
)
from ebbtide.store import layout
from ebbtide.store.chain import AuditEntry, proof_of
from ebbtide.store.layout import Table, text_key
from ebbtide.store.lmdb.texts import is_tombstone
from ebbtide.store.lmdb.transaction import WriteTransaction
from ebbtide.text_caches import clear_text_caches

MAX_TEXTS_PER_STEP = 200
"""Most texts removed or hashed in one step, to bound the commit and the audit record. An item stays together."""


class Executor:
    """Runs the deletions of one agent, step by step."""

    def __init__(self, state: State) -> None:
        self._state = state

    def step(self, removal: Removal, entry: AuditEntry, is_time_up: Callable[[], bool]) -> Removed:
        """Remove the next items: at least one, and more while there is time. `entry` has the time and the actor."""
        state = self._state
        # Before the commit: after a kill, no vectors of removed texts may be left.
        state.open_archive.remove_index_file()
        # Rebuilt or read here if necessary, not within the transaction.
        network, ledger = state.network, state.ledger
        runs: list[EventRun] = []

        def write(txn: WriteTransaction) -> Removed:
            step = Step(txn, network, ledger, removal)
            step.run(is_time_up)
            removed = step.end(entry)
            runs[:] = state.events_of(removed.change, sorted(removed.erased_messages))
            state.log.write(txn, runs)
            return removed

        if removal.is_permanent:
            # Set before the commit, so that the agent counts as busy meanwhile.
            state.is_compaction_due = True
        try:
            removed = state.store.write(write)
        finally:
            state.is_compaction_due = state.store.read(lambda txn: txn.meta.compaction_due)
        removal.committed(removed)
        if removal.action:
            state.recall_filter.clear()
        state.follow(removed.change, removed.passage_updates, lambda archive: _follow(archive, removed))
        state.log.notify(runs)
        clear_text_caches()
        return removed


def _follow(archive: Archive, removed: Removed) -> None:
    """Apply a step to the archive."""
    for message, passages in removed.rewritten.items():
        archive.replace_text(message, passages)
    archive.replace_withdrawn(removed.without_text)
    if removed.own is not None and removed.node is not None:
        record, metadata = removed.own.record, removed.own.metadata
        archive.add_messages([record], [removed.own.passages], {record.metadata_key or b"": metadata or "{}"})
        for node in (removed.node, *removed.moved):
            archive.replace_sources(node)


@dataclass(slots=True)
class Step:
    """One step within its transaction."""

    txn: WriteTransaction
    network: Network
    ledger: Ledger
    removal: Removal
    done: Removed = field(default_factory=Removed)
    """Nodes and deletions in its change are written already; `end` writes the rest."""
    proofs: Proofs = field(init=False)
    whole: dict[int, None] = field(default_factory=dict)
    """Messages that become tombstones."""
    erased: dict[int, list[Span]] = field(default_factory=dict)
    """Words of messages that are overwritten."""
    released: dict[int, list[tuple[Span, Deleted | None]]] = field(default_factory=dict)
    """Words of deleted memories, which are overwritten unless a living memory cites them."""
    said: dict[int, list[Span]] = field(default_factory=dict)
    """Those of them from which statements may have been extracted."""
    due: dict[int, None] = field(default_factory=dict)
    """Messages to overwrite or replace at the end of the step, each once."""
    citing: set[int] = field(default_factory=set)
    """Messages without text whose memories changed."""
    batches: set[int] = field(default_factory=set)
    """Batches that lost a part."""
    forgotten: set[NodeId] = field(default_factory=set)
    """Memories that are forgotten, or say other words now: no name of a link and no loose end reveals the old ones."""
    reworded: list[Node] = field(default_factory=list)
    """Memories before their correction: their links may have names after the old words."""
    unnamed: list[Link] = field(default_factory=list)
    """Links that lose their names."""
    entities: set[NodeId] = field(default_factory=set)
    """Entities to delete in any case."""
    changed: dict[NodeId, Node] = field(default_factory=dict)
    """The corrected memory, and statements that lost some of their sources."""
    moved: dict[Source, Source] = field(default_factory=dict)
    """Words of statements that moved with the corrected memory to its own message: from where, and to where."""
    rejected: dict[NodeId, list[Source]] = field(default_factory=dict)
    """The sources of the inferred statements among the items, which must not be inferred from them again."""

    def __post_init__(self) -> None:
        """Create what the step works with."""
        self.proofs = Proofs(self.txn.audit.make_proof_key() if self.removal.action else b"")

    def run(self, is_time_up: Callable[[], bool]) -> None:
        """Remove items while there is time, at least one."""
        for item in islice(self.removal.items, self.removal.done_count, None):
            self.done.outcomes.append(self.remove(item))
            if len(self.proofs.found) + len(self.done.without_text) >= MAX_TEXTS_PER_STEP or is_time_up():
                return

    # --- items -------------------------------------------------------------------------------------

    @singledispatchmethod
    def remove(self, item: Item) -> Outcome:
        """Remove one item."""
        raise NotImplementedError

    @remove.register
    def _(self, item: Memory) -> Outcome:
        node = self.txn.nodes.get(item.node)
        if node is None:
            return None
        inferred = [one.source for one in self.ledger.assertions_of(node.id) if is_inferred(one)]
        if inferred:
            self.rejected[node.id] = inferred[-MAX_RULING_SOURCES:]
        return self._take(node)

    @remove.register
    def _(self, item: Uncited) -> Outcome:
        found = message_with_text(self.txn, item.message)
        if found is None:
            return None
        record, text = found
        if not retention.is_digested(self.txn, record, {}):
            return Undigested(record.batch)
        going = [
            *self.erased.get(item.message, ()),
            *(span for span, _ in self.released.get(item.message, ())),
        ]
        raw = words.without(text, going).encode()
        kept = words.kept_in(self.txn, item.message)
        uncited = list(outside([(0, len(raw))], kept))
        spans = [(begin, end) for begin, end in uncited if raw[begin:end].strip()]
        if not spans:
            return None
        self._erase(item.message, spans)
        self.done.erased_messages.add(item.message)
        return Deleted(0, sum(words.word_bytes(raw[begin:end].decode()) for begin, end in spans))

    @remove.register
    def _(self, item: Words) -> Outcome:
        txn, number, spans = self.txn, item.message, item.spans
        record = txn.messages.get(number)
        if record is None or is_tombstone(record):
            return None

        def is_erased(source: Source) -> bool:
            return source.message == number and (spans is None or overlaps(source, spans))

        for node in living_nodes(txn, txn.citings.of(number)):
            self._take_sources(node, is_erased, with_words=spans is not None)
        self._erase(number, spans)
        return None

    @remove.register
    def _(self, item: Text) -> Outcome:
        self.done.without_text |= retention.remove_texts(self.txn, [item.message])
        return None

    @remove.register
    def _(self, item: Record) -> Outcome:
        record = self.txn.records.get(item.namespace, item.key)
        if record is not None and record.version == item.version:
            delete_record(self.txn, record, self.proofs if self.removal.action else None)
            self.done.tally.records += 1
        return None

    @remove.register
    def _(self, item: Traces) -> Outcome:
        self.forgotten.update(one for one in item.forgotten if self.txn.nodes.get(one) is None)
        self.unnamed += item.links
        self.entities.update(one for one in item.entities if one in self.network.entities)
        return None

    @remove.register
    def _(self, item: Correction) -> Outcome:
        before = self.txn.nodes.get(item.node_id)
        assert before is not None, "only a living memory is corrected"
        node = before
        if item.content is not None:
            node = msgspec.structs.replace(node, content=item.content, phrase=item.phrase)
            self.proofs.add_memory(self.txn, before)
            self.reworded.append(before)
            self._end_said(before)
        if item.keywords is not None:
            node = msgspec.structs.replace(node, keywords=item.keywords)
        if item.content is not None or item.metadata is not None:
            node = self._with_own_source(before, node, item)
        self._put(node)
        self.done.node = node
        return None

    def _take(self, node: Node, *, with_words: bool = True) -> Deleted:
        """Delete a memory."""
        txn = self.txn
        self.citing |= retention.citing(txn, Change(deleted=[node.id]))
        self.proofs.add_memory(txn, node)
        deleted = Deleted(txn.links.count_at(node.id))
        if with_words:
            self._release(node, deleted)
            self._end_said(node)
        txn.apply(Change(deleted=[node.id]))
        self.done.change.deleted.append(node.id)
        self.done.tally.nodes += 1
        self.done.tally.links += deleted.links_removed
        return deleted

    def _release(self, node: Node, deleted: Deleted | None = None) -> None:
        for source in node.sources:
            self.released.setdefault(source.message, []).append((span_of(source), deleted))

    def _end_said(self, node: Node) -> None:
        """Note that what a memory says is deleted. Statements were extracted from its words."""
        if node.kind not in STATEMENT_KINDS:
            for source in node.sources:
                self.said.setdefault(source.message, []).append(span_of(source))

    def _put(self, node: Node) -> None:
        self.citing |= retention.citing(self.txn, Change(nodes=[node]))
        self.txn.apply(Change(nodes=[node]))
        self.changed[node.id] = node

    def _erase(self, number: int, spans: Sequence[Span] | None) -> None:
        """Note words to overwrite, and hash them."""
        self.due[number] = None
        found = message_with_text(self.txn, number)
        text = "" if found is None else found[1]
        if number not in self.removal.text_proofs and number not in self.done.text_proofs and text:
            self.done.text_proofs[number] = proof_of(self.proofs.key, text)
        if spans is None:
            self.whole[number] = None
            self.proofs.add(text)
        elif found is not None:
            self.erased.setdefault(number, []).extend(spans)
            self.proofs.add_stretches(text, spans)

    def _with_own_source(self, before: Node, node: Node, correction: Correction) -> Node:
        """Return a corrected memory as its own source: its content becomes a message, and its old words go.

        The message has the speaker and the time of the memory's first message, without the caller's message id.
        """
        txn = self.txn
        first_content = correction.content or txn.nodes.first_content(before)
        text = first_content or before.content
        found = (txn.messages.get(source.message) for source in before.sources)
        first = next((one for one in found if one is not None), None) or MessageRecord(
            0, before.batch, 0, "user", "", "", None, before.created_at_ms, "", b""
        )
        metadata = correction.metadata
        if metadata is None:
            stored = txn.messages.metadata(first)
            metadata = msgspec.json.encode(stored).decode() if stored else ""
        self._release(before)
        record = msgspec.structs.replace(
            first,
            number=txn.meta.next_message_number,
            # No caller sent this message; the id stays with the original.
            caller_id="",
            text_key=text_key(text),
            personal=correction.personal,
            faded=(),
            attachments=(),
            metadata_key=txn.texts.put(metadata) if metadata else b"",
        )
        passages = passages_of(text, record.speaker)
        txn.messages.put(record, text, passages)
        node = msgspec.structs.replace(node, sources=(Source(record.number, 0, len(text.encode())),))
        if first_content is None:
            # The first content was removed from the archive; the present one does not take its place.
            passages = passages_from_memories(record, spans_of(text), [node])
            txn.messages.withdraw(record, passages)
            record = msgspec.structs.replace(record, text_key=b"", personal=())
        else:
            first_key = txn.texts.put(text)
            if before.first_key:
                txn.texts.drop(before.first_key)
            node = msgspec.structs.replace(node, first_key=first_key, original_length=len(text))
            if correction.content is None:
                self._move_statements(before, record.number, text.encode())
        self.done.own = OwnSource(record, passages, metadata)
        return node

    def _move_statements(self, before: Node, number: int, data: bytes) -> None:
        """Let statements cite the own message of a memory instead of the words that moved there.

        The message is not read for statements again if the extraction was done with all others.
        """
        txn = self.txn
        for source in before.sources:
            begin, end = span_of(source)
            found = data.find(text_of(txn, source.message).encode()[begin:end])
            said = [one.source for one in self.ledger.said_in([source.message])] if found >= 0 else []
            # The words of a ruling join two statements.
            rulings = self.ledger.all_rulings() if said else ()
            said += [one for ruling in rulings for one in ruling.sources if one.message == source.message]
            for one in said:
                first, last = span_of(one)
                if begin <= first and last <= end:
                    self.moved[one] = Source(number, found + first - begin, last - first)
            ids = txn.citings.of(source.message) if self.moved else ()
            for node in living_nodes(txn, ids):
                if node.kind in STATEMENT_KINDS and not self.moved.keys().isdisjoint(node.sources):
                    self._put(msgspec.structs.replace(node, sources=self._moved(node.sources)))
                    self.done.moved.append(self.changed[node.id])
        if self.moved and txn.meta.ledger.extracted_up_to == number - 1:
            self.done.change.ledger = msgspec.structs.replace(txn.meta.ledger, extracted_up_to=number)

    def _moved(self, sources: Iterable[Source]) -> tuple[Source, ...]:
        return tuple(self.moved.get(one, one) for one in sources)

    # --- what derives from the items: see REGISTER -------------------------------------------------

    def _is_erased(self, source: Source) -> bool:
        if source in self.moved:
            return False
        return source.message in self.whole or overlaps(source, self.erased.get(source.message, ()))

    def release_words(self) -> None:
        """Find the words of deleted memories that no living one cites. The first memory of a request counts them."""
        for message, spans in self.said.items():
            self._take_quotes(message, spans)
        for message, released in self.released.items():
            kept = words.kept_in(self.txn, message)
            for span, deleted in released:
                own = list(outside([span], kept))
                if deleted is not None and own != [span]:
                    deleted.cited_by |= words.citing(self.txn, message, span)
                if own:
                    self._erase(message, own)
                    for one in own:
                        insort(kept, one)
                    if deleted is not None:
                        deleted.bytes_withdrawn += sum(end - begin for begin, end in own)

    def _take_quotes(self, message: int, spans: Sequence[Span]) -> None:
        """Take the words of deleted memories from the statements that were extracted from them."""
        extracted = {
            node_id
            for node_id in self.txn.citings.of(message)
            for one in self.ledger.assertions_of(node_id)
            if one.source.message == message and is_extracted(one.author)
        }
        gone = list(outside(sorted(spans), words.kept_in(self.txn, message, extracted)))
        for node in living_nodes(self.txn, extracted):
            self._take_sources(node, lambda one: one.message == message and overlaps(one, gone))

    def _take_sources(
        self, node: Node, is_erased: Callable[[Source], bool], *, with_words: bool = True
    ) -> None:
        """Take erased sources from a memory. It is deleted, unless it is a statement with another source."""
        if not any(map(is_erased, node.sources)):
            return
        left = words.requoted(self.txn, node, is_erased)
        if left is None:
            self._take(node, with_words=with_words)
            return
        if with_words:
            self._release(msgspec.structs.replace(node, sources=tuple(filter(is_erased, node.sources))))
        self._put(left)

    def remove_entries(self) -> None:
        """Remove the assertions and rulings that lose their source, their statement or their entity."""
        self._remove_entries([*self.done.change.deleted, *self.entities], self.due)

    def _remove_entries(self, gone: Collection[NodeId], messages: Collection[int]) -> None:
        if not len(self.ledger):
            return
        lost = self.ledger.lost(gone, messages, self._is_erased)
        change = self.done.change
        change.removed_entries += lost.entries
        changed = {one.entry: one for one in (*change.rulings, *lost.changed)}
        change.rulings = [one for one in changed.values() if one.entry not in change.removed_entries]
        for node in living_nodes(self.txn, lost.inferred):
            self._take(node, with_words=False)
        deleted, known = set(change.deleted), self.ledger.inferred_links()
        change.removed_links += [
            Link(one.target, one.other, CAUSES, 0.0, 0)
            for one in lost.rulings
            if one.kind == "cause"
            and (one.target, one.other) in known
            and deleted.isdisjoint((one.target, one.other))
        ]
        # The reason of a ruling is a message of its own.
        for source in chain.from_iterable(ruling.sources for ruling in lost.rulings):
            reason = list(outside([span_of(source)], words.kept_in(self.txn, source.message)))
            if reason and source.message not in self.whole:
                self._erase(source.message, reason)

    def remove_words(self) -> None:
        """Overwrite erased words, and replace messages without any by tombstones if the deletion is permanent."""
        txn = self.txn
        due, self.due = self.due, {}
        for number in due:
            record = txn.messages.get(number)
            if record is None or is_tombstone(record):
                continue
            spans = self.erased.get(number, [])
            before = txn.messages.text(record) or ""
            is_whole = number in self.whole
            if self.removal.is_permanent:
                self.forgotten.update(one.node for one in record.faded if is_whole or overlaps(one, spans))
            passages = None if is_whole else words.overwrite(txn, number, spans)
            if not is_whole and passages is None:
                continue
            record = txn.messages.get(number)
            assert record is not None, "a message that was overwritten exists"
            after = "" if is_whole else txn.messages.text(record) or ""
            self.done.tally.bytes += words.word_bytes(before) - words.word_bytes(after)
            self.batches.add(record.batch)
            if passages is not None:
                self.done.rewritten[number] = passages
            if is_whole or (self.removal.is_permanent and not after.strip()):
                self._bury(record)

    def _bury(self, record: MessageRecord) -> None:
        """Replace a message by a tombstone."""
        number = record.number
        proof = self.removal.text_proofs.get(number) or self.done.text_proofs.get(number)
        if proof is not None:
            self.proofs.found[proof] = None
        kept = self.txn.passages.get(number) or []
        self.done.rewritten.pop(number, None)
        self.citing.discard(number)
        self.done.without_text[number] = [passage_of("", "", one.begin) for one in kept]
        self.txn.messages.erase(record)
        self.done.tally.messages += 1

    def remove_link_names(self) -> None:
        """Remove the names of links that a language model derived from what is deleted."""
        deleted = set(self.done.change.deleted)
        links = [*self.unnamed, *links_at(self.network, self.forgotten)]
        links = [link for link in links if deleted.isdisjoint((link.source, link.target))]
        renamed = without_names(self.network, links)
        self.done.tally.relations = len(renamed.removed_links)
        self.done.change.removed_links += renamed.removed_links
        self.done.change.links += renamed.links

    def remove_entities(self) -> None:
        """Delete the entities that nothing names any more, and the spelling that only deleted memories used."""
        network, change = self.network, self.done.change
        if not (change.deleted or self.forgotten or self.entities or self.done.node):
            return
        settled = settle_entities(
            network,
            change.deleted,
            self._keywords_of,
            erased={one for one in self.forgotten if one not in network},
            dropped=self.entities,
            corrected=self.done.node,
        )
        ended = {(link.source, link.target) for link in settled.removed_links}
        gone = set(settled.deleted_entities)
        for links in (change.removed_links, change.links):
            links[:] = [
                one
                for one in links
                if (one.source, one.target) not in ended and gone.isdisjoint((one.source, one.target))
            ]
        merged(change, settled)
        self._remove_entries(gone - self.entities, ())
        self.remove_words()

    def remove_lives(self) -> None:
        """Delete the lives of forgotten memories that were made from deleted words."""
        self.txn.lives.remove(one for one in self.forgotten if self.txn.nodes.get(one) is None)

    def _keywords_of(self, node_id: NodeId) -> Sequence[str]:
        node = self.txn.nodes.get(node_id)
        return () if node is None else node.keywords

    def remove_batches(self) -> None:
        """Delete batches without remaining messages, and mark the others as changed, if the deletion is permanent."""
        empty = []
        for number in sorted(self.batches) if self.removal.is_permanent else ():
            batch = self.txn.inbox.get(number)
            if batch is None:
                continue
            records = islice(self.txn.messages.all(batch.first_message), batch.message_count)
            if all(map(is_tombstone, records)):
                empty.append(batch)
            else:
                self.txn.inbox.note_erasure(batch)
        self.txn.inbox.erase(empty)
        self.done.tally.batches += len(empty)

    # --- the end of a step -------------------------------------------------------------------------

    def _move_entries(self) -> None:
        """Let assertions and rulings cite the words that moved."""
        if not self.moved:
            return
        change = self.done.change
        change.assertions += [
            msgspec.structs.replace(one, source=self.moved[one.source])
            for one in self.ledger.said_in({one.message for one in self.moved})
            if one.source in self.moved and one.entry not in change.removed_entries
        ]
        changed = {one.entry: one for one in change.rulings}
        for ruling in self.ledger.all_rulings():
            one = changed.get(ruling.entry, ruling)
            if not self.moved.keys().isdisjoint(one.sources) and one.entry not in change.removed_entries:
                changed[one.entry] = msgspec.structs.replace(one, sources=self._moved(one.sources))
        change.rulings = list(changed.values())

    def _reject(self, now_ms: int) -> None:
        """Retract the inferred statements among the items: a ruling keeps the places of their sources, and no word."""
        change, ledger = self.done.change, self.done.change.ledger or self.txn.meta.ledger
        for node_id, sources in self.rejected.items():
            if left := tuple(one for one in sources if not self._is_erased(one)):
                change.rulings.append(Ruling(ledger.next_entry, "retract", node_id, now_ms, sources=left))
                ledger = msgspec.structs.replace(ledger, next_entry=ledger.next_entry + 1)
                change.ledger = ledger

    def end(self, entry: AuditEntry) -> Removed:
        """Remove what derives from the removed items, and write the audit record."""
        txn, done, change, removal = self.txn, self.done, self.done.change, self.removal
        for one in REGISTER:
            one.remove(self)
        for node in self.reworded:
            txn.messages.note_faded(node)
        self._move_entries()
        self._reject(entry.at_ms)
        focus = tuple(node_id for node_id in txn.meta.focus if node_id not in change.deleted)
        if focus != txn.meta.focus:
            change.focus = focus
        txn.apply(msgspec.structs.replace(change, deleted=[]))
        change.nodes = [node for node in self.changed.values() if node.id not in change.deleted]
        done.passage_updates = retention.refresh_passages(txn, self.citing - done.without_text.keys())
        if done.rewritten or done.without_text or change.deleted or done.node:
            txn.meta.set(leftovers=True)
        if removal.is_permanent:
            done.erased_messages.update(done.without_text, done.rewritten)
        counts = done.tally
        has_effect = (counts.nodes or counts.messages or counts.relations or counts.records) or (
            done.rewritten or done.node or change.entities or change.deleted_entities or change.removed_links
        )
        if removal.action and has_effect:
            details = removal.details(counts, removal.items[removal.done_count :], done.outcomes)
            whole = AuditEntry(entry.at_ms, entry.actor, removal.action, details, tuple(self.proofs.found))
            identity = txn.meta.identity
            assert identity is not None, "an open store has its identity"
            done.record = txn.audit.append(whole, identity.agent_id)
            if removal.is_permanent:
                txn.meta.set(compaction_due=True)
        return done


class Derived(NamedTuple):
    """Tables with data that derives from memories or messages, and what removes it at the end of a step."""

    tables: tuple[Table[Any], ...]
    remove: Callable[[Step], None]


REGISTER: Final = (
    # The transaction itself deletes the concepts of deleted members.
    Derived((layout.NODES, layout.SCANS, layout.CITINGS, layout.CONCEPTS), Step.release_words),
    Derived((layout.ASSERTIONS, layout.RULINGS), Step.remove_entries),
    Derived(
        (layout.MESSAGES, layout.CHUNKS, layout.CHUNK_REFERENCES, layout.PASSAGES, layout.VECTORS),
        Step.remove_words,
    ),
    Derived((layout.LINKS, layout.RELATIONS, layout.RELATION_IDS), Step.remove_link_names),
    Derived((layout.ENTITIES,), Step.remove_entities),
    Derived((layout.LIVES,), Step.remove_lives),
    Derived(
        (layout.BATCHES, layout.INBOX, layout.PARKED, layout.DIGESTED, layout.RECEIPTS), Step.remove_batches
    ),
)
"""The data that derives from memories and messages, in the order of removal. A test requires every table here."""

NOT_DERIVED: Final = (layout.RECORDS, layout.AUDIT, layout.EVENTS, layout.META)
"""Tables from which a deletion of memories removes nothing: records, which are items of their own, and tables of ids,
numbers and keyed hashes."""
