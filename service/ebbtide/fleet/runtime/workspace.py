"""The workspace of one open agent: its state and the jobs on it.

Every public method, also of `inbox` and `passes`, is a job: it runs on a pool thread to its end, one job of the agent
at a time. Jobs commit first and then apply the change to memory; `agent_state.py` guards that rule.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ebbtide.changes import Change
from ebbtide.clock import offset_of
from ebbtide.fleet.archive.archive import Archive
from ebbtide.fleet.archive.unembedded import (
    Unembedded,
    Vector,
    keep_vectors,
    next_unembedded,
    unembedded_count,
)
from ebbtide.fleet.compression.passes import Passes
from ebbtide.fleet.consolidation.consolidation import Consolidation
from ebbtide.fleet.deletion.executor import Executor
from ebbtide.fleet.deletion.expiry import Expiry, before_ms
from ebbtide.fleet.deletion.link_names import links_about, links_at
from ebbtide.fleet.deletion.records import find_expired
from ebbtide.fleet.deletion.removal import Removal, Removed
from ebbtide.fleet.deletion.selection import Selection, SelectionSearch
from ebbtide.fleet.ingest.declaring import Declaring
from ebbtide.fleet.ingest.extraction import ExtractionJobs
from ebbtide.fleet.ingest.inbox import Inbox
from ebbtide.fleet.recall.query import Query
from ebbtide.fleet.recall.subject_names import SubjectNames
from ebbtide.fleet.records.batch import RecordJobs, search_of
from ebbtide.fleet.state.agent_state import State
from ebbtide.fleet.state.event_builder import EventLog
from ebbtide.fleet.state.privacy_budget import PrivacyBudget
from ebbtide.fleet.state.statement_uses import StatementUses
from ebbtide.ids import NodeId
from ebbtide.memory import association, focus
from ebbtide.memory.association import Answer
from ebbtide.offload.pool import INLINE, TextWorkers
from ebbtide.parameters import AgentParameters
from ebbtide.records import AgentCounts, Cue, Node, Pin
from ebbtide.settings import DEFAULT_SEARCH, SearchSettings
from ebbtide.store.chain import AuditEntry
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.transaction import ReadTransaction

if TYPE_CHECKING:
    from ebbtide.fleet.recall.recollected import Recollected
    from ebbtide.retrieval.times import Offset


class Workspace(State):
    """One agent's state with all jobs on it."""

    def __init__(
        self,
        store: LmdbStore,
        defaults: AgentParameters,
        log: EventLog | None = None,
        texts: TextWorkers = INLINE,
        search: SearchSettings = DEFAULT_SEARCH,
    ) -> None:
        super().__init__(store, defaults, log)
        self.search = search
        self.texts = texts
        # The parts refer to the workspace weakly: a cycle would keep a closed agent in memory until the next full
        # garbage collection.
        me: Workspace = weakref.proxy(self)
        self.inbox = Inbox(me)
        self.passes = Passes(me)
        self.declaring = Declaring(me)
        self.consolidation = Consolidation(me)
        self.extraction = ExtractionJobs(me)
        stored = store.read(lambda txn: txn.meta.statement_uses)
        self.statement_uses = StatementUses(stored, lambda node_id: node_id in me.network)
        store.before_commit = self.statement_uses.write
        self.subject_names = SubjectNames()
        self.privacy_budget = PrivacyBudget()
        self.records = RecordJobs(me)
        self._expired_from = b""
        self._executor = Executor(me)
        self._expiry: Expiry | None = None

    @property
    def resident_bytes(self) -> int:
        """Size of the derived state in memory."""
        return super().resident_bytes + self.passes.resident_bytes + self.records.terms.resident_bytes

    def _follow_entries(self, change: Change) -> None:
        super()._follow_entries(change)
        if change.assertions:  # none while the agent opens, when there is no consolidation yet
            self.consolidation.note(change, self.log.now_ms())

    def save_statement_uses(self) -> None:
        """Commit how often searches have returned statements, if that has changed."""
        if self.store.read(self.statement_uses.differ):
            self.store.write(lambda _: None)

    def close(self) -> None:
        """Close the store and release the replays of the ledger. No job runs any more."""
        try:
            self.store.close()
        finally:
            if self._ledger is not None:
                self._ledger.release()

    # --- vectors -----------------------------------------------------------------------------------

    def next_unembedded(self, model: str, dimension: int, texts_per_round: int) -> Unembedded | None:
        """Return the next messages without vectors of this model and dimension (0: any); None if there is none."""
        return self.store.read(lambda txn: next_unembedded(txn, model, dimension, texts_per_round))

    def keep_vectors(self, work: Unembedded, vectors: Sequence[Vector | None]) -> None:
        """Commit the vectors of the texts in `work`."""
        kept = self.store.write(lambda txn: keep_vectors(txn, work, vectors))
        if kept:
            self.open_archive.follow(lambda archive: archive.follow(work.state, kept.items()))

    # --- retention ---------------------------------------------------------------------------------

    def sweep(self, now_ms: int, is_time_up: Callable[[], bool]) -> bool:
        """Run one step of removing expired records and texts. Return whether more is to do."""
        if self.records.may_expire and self._expire_records(now_ms):
            return True
        days = self.parameters.kept_days
        if days is None:
            self._expiry = None
            return False
        # If a step fails, the next one starts a new search; the store knows what is left.
        expiry, self._expiry = self._expiry, None
        if expiry is None or expiry.retention != self.parameters.retention:
            evidence = self._evidence(now_ms) if self.parameters.keeps_evidence else frozenset[int]()
            expiry = Expiry(self.parameters.retention, before_ms(days, now_ms), evidence)
        if expiry.removal.is_done:
            expiry.find(self.store)
        else:
            self.remove(expiry.removal, is_time_up, now_ms, "-")
        if not expiry.is_done:
            self._expiry = expiry
        return not expiry.is_done

    def _expire_records(self, now_ms: int) -> bool:
        """Delete the next expired records. Return whether more are to be read."""
        start = self._expired_from
        due, self._expired_from = self.store.read(lambda txn: find_expired(txn, start, now_ms))
        if due:
            self.remove(Removal(due), lambda: False, now_ms, "-")
        return bool(self._expired_from)

    def _evidence(self, now_ms: int) -> frozenset[int]:
        """Return the messages that living statements cite which are true at a time."""
        network = self.network
        return frozenset(
            one.source.message
            for version in self.ledger.known().true_at(now_ms)
            if any(one.statement in network for one in version.assertions)
            for one in version.assertions
        )

    # --- deletions ---------------------------------------------------------------------------------

    def remove(self, removal: Removal, is_time_up: Callable[[], bool], now_ms: int, actor: str) -> Removed:
        """Remove the next items of a selector."""
        removed = self._executor.step(removal, AuditEntry(now_ms, actor, removal.action, {}), is_time_up)
        if removed.tally.records:
            self.records.terms.clear()
        return removed

    def statements_about(self, selection: Selection) -> frozenset[NodeId]:
        """Return the statements about the entities whose names mention the topic of a selection."""
        return frozenset(self.ledger.about(self.named_by(selection)))

    def named_by(self, selection: Selection) -> list[NodeId]:
        """Return the entities whose names mention the topic; none if filters limit it to some messages."""
        topic = None if selection.has_filters else selection.topic
        entities = () if topic is None else self.network.entities.values()
        return [one.id for one in entities if topic is not None and topic.is_named_in(one.name)]

    def search_step(self, search: SelectionSearch, is_time_up: Callable[[], bool]) -> None:
        """Continue a search."""
        ledger = self.ledger  # read before the transaction, which cannot be nested
        self.store.read(lambda txn: search.step(txn, ledger, is_time_up))

    def found(self, search: SelectionSearch) -> Removal:
        """Return what a search found as items, with the links whose names mention the topic."""
        network = self.network
        links = self.store.read(lambda txn: links_about(txn, network, search))
        return search.removal(links)

    def unnamed_count(self, search: SelectionSearch) -> int:
        """Return how many links that stay will lose their names with what a search found."""
        network = self.network
        links = self.store.read(lambda txn: links_about(txn, network, search))
        ends = {
            (one.source, one.target, one.relation) for one in (*links, *links_at(network, search.forgotten))
        }
        return sum(source not in search.nodes and target not in search.nodes for source, target, _ in ends)

    def holds_leftovers(self) -> bool:
        """Whether files may still contain erased, deleted, corrected or expired texts that nothing refers to."""
        return self.store.read(lambda txn: txn.meta.compaction_due or txn.meta.leftovers)

    # --- focus and pins by hand --------------------------------------------------------------------

    def focus_by_hand(self, node_id: NodeId) -> None:
        """Move a memory or an entity to the front of its list. It must live."""
        self.commit(focus.focus_by_hand(self.network, node_id))

    def unfocus_by_hand(self, node_id: NodeId) -> None:
        """Remove a memory or an entity from its list."""
        self.commit(focus.unfocus_by_hand(self.network, node_id))

    def pin_by_hand(self, node_id: NodeId) -> bool:
        """Pin a living memory. Return False and change nothing if `max_pinned` memories are pinned."""
        pinned = dict(self.network.pinned())
        if node_id not in pinned and len(pinned) >= self.parameters.max_pinned:
            return False
        if pinned.get(node_id) is not Pin.BY_HAND:
            self.commit(focus.pin_by_hand(self.network, node_id))
        return True

    def unpin_by_hand(self, node_id: NodeId) -> None:
        """Unpin a memory. Its links with entities decay from now on."""
        self.commit(focus.unpin_by_hand(self.network, node_id))

    # --- recall ------------------------------------------------------------------------------------

    def recall(self, cue: Cue) -> tuple[Answer, AgentCounts]:
        """Return the memories that match a cue, and the counts of the agent."""

        def read(txn: ReadTransaction) -> tuple[Answer, AgentCounts]:
            def node_of(node_id: NodeId) -> Node:
                node = txn.nodes.get(node_id)
                assert node is not None, "network and store contain the same nodes"
                return node

            answer = association.recall(self.network, cue, node_of, self.parameters.locale)
            return answer, txn.counts()

        return self.store.read(read)

    def archive(self, txn: ReadTransaction) -> Archive:
        """Return the archive, loading it if necessary."""
        return self.open_archive.of(txn)

    @property
    def offset(self) -> Offset:
        """How far local clocks of the agent's time zone are ahead of UTC, as a function of the time in ms."""
        return offset_of(self.parameters.time_zone)

    def answer(
        self, query: Query, now_ms: int, count_tokens: Callable[[str], int]
    ) -> tuple[Recollected, AgentCounts]:
        """Answer a query with memories, records or both. Return the result and the counts of the agent."""
        if not query.with_records:
            return self.recollect(query, now_ms, count_tokens)
        # Imported here, as the rules for queries below.
        from ebbtide.fleet.recall.mixing import mixed
        from ebbtide.fleet.recall.recollected import Recollected

        found, counts = (
            self.recollect(query, now_ms, count_tokens)
            if query.with_memories
            else (Recollected(), self.store.read(lambda txn: txn.counts()))
        )
        records = self.records.recall(search_of(query), now_ms)
        locale = self.parameters.locale
        return mixed(found, records, query, count_tokens, locale, self.offset), counts

    def recollect(
        self, query: Query, now_ms: int, count_tokens: Callable[[str], int]
    ) -> tuple[Recollected, AgentCounts]:
        """Answer a query over everything the agent heard. Return the result and the counts of the agent."""
        # Imported here, so that a daemon can listen before it has compiled the rules for queries.
        from ebbtide.fleet.recall.recollection import QueryRunner

        ledger = self.ledger  # read before the transaction, which cannot be nested

        def read(txn: ReadTransaction) -> tuple[Recollected, AgentCounts]:
            archive, locale = self.archive(txn), self.parameters.locale
            recollector = QueryRunner(
                txn, archive, self.network, now_ms, locale, ledger, count_tokens, self.texts, self.offset
            )
            found, counts = recollector.answer(query), txn.counts()
            if query.embedding_model:
                dimension = 0 if query.vector is None else len(query.vector)
                behind = unembedded_count(txn, query.embedding_model, dimension)
                found = replace(found, unembedded_count=behind)
            return found, counts

        return self.store.read(read)
