"""The workspace of one open agent: its state, and the jobs that work on it.

Every public method, of its inbox and its passes too, is a job: it runs on a pool thread, to its end, with no other job
of this agent beside it. The rule they keep, commit and then apply, is guarded in `state.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ebbtide.fleet.archive.archive import Archive
from ebbtide.fleet.archive.retention import Sweep, before_ms
from ebbtide.fleet.archive.unembedded import Unembedded, Vector, keep_vectors, next_unembedded
from ebbtide.fleet.compression.passes import Passes
from ebbtide.fleet.deletion.erasure import Erasure, ErasureStep
from ebbtide.fleet.deletion.relation_scrubbing import staying, telling_links
from ebbtide.fleet.deletion.selection import Look
from ebbtide.fleet.ingest.inbox import Inbox
from ebbtide.fleet.recall.query import Query
from ebbtide.fleet.recall.recollected import Recollected
from ebbtide.fleet.recall.recollection import Recollector
from ebbtide.fleet.state.agent_state import State
from ebbtide.fleet.state.event_builder import EventLog
from ebbtide.ids import NodeId
from ebbtide.memory import association
from ebbtide.memory.association import Answer
from ebbtide.offload.pool import INLINE, TextWorkers
from ebbtide.parameters import AgentParameters
from ebbtide.records import AgentCounts, Cue, Link
from ebbtide.store.chain import AuditEntry
from ebbtide.store.port import ReadTransaction, Store


class Workspace(State):
    """One agent's store and network, and every job on them."""

    def __init__(
        self,
        store: Store,
        defaults: AgentParameters,
        log: EventLog | None = None,
        texts: TextWorkers = INLINE,
    ) -> None:
        super().__init__(store, defaults, log)
        self.texts = texts
        self.inbox = Inbox(self)
        self.passes = Passes(self)
        self._sweep: Sweep | None = None

    @property
    def resident_bytes(self) -> int:
        """Bytes of memory that the agent's derived state holds."""
        return super().resident_bytes + self.passes.resident_bytes

    # --- vectors -----------------------------------------------------------------------------------

    def next_unembedded(self, model: str, dimension: int) -> Unembedded | None:
        """The next messages that lack vectors of a model, of a size unless that is 0; None when none does."""
        return self.store.read(lambda txn: next_unembedded(txn, model, dimension))

    def keep_vectors(self, work: Unembedded, vectors: Sequence[Vector | None]) -> None:
        """Commit vectors, for each text that was asked for."""
        kept = self.store.write(lambda txn: keep_vectors(txn, work, vectors))
        if kept:
            self.open_archive.follow(lambda archive: archive.follow(work.state, kept.items()))

    @property
    def wants_index(self) -> bool:
        """Whether questions would go faster with an index that is not built yet."""
        return self.open_archive.wants_index

    def holds_other_than(self, dimension: int) -> bool:
        """Whether questions are held against vectors that have not so many numbers."""
        return self.open_archive.holds_other_than(dimension)

    def index_vectors(self, is_time_up: Callable[[], bool]) -> bool:
        """Build at the index of very many vectors for a while; whether more is to do."""
        return self.open_archive.index_some(is_time_up)

    def keep_index(self) -> None:
        """Keep what of the index was built since it was opened. OSError where that fails."""
        self.open_archive.keep_index()

    # --- retention ---------------------------------------------------------------------------------

    def sweep(self, now_ms: int, is_time_up: Callable[[], bool]) -> bool:
        """One step of withdrawing texts whose time is over; whether more is to do."""
        days = self.parameters.kept_days
        if days is None:
            self._sweep = None
            return False
        # A failed step begins everything anew: what is left to do stands in the store.
        sweep, self._sweep = self._sweep, None
        if sweep is None or sweep.retention != self.parameters.retention:
            sweep = Sweep(self.parameters.retention, before_ms(days, now_ms))
        if sweep.withdraws_next:
            self.open_archive.drop_index_file()
        self.retell(sweep.step(self.store, is_time_up))
        if not sweep.is_done:
            self._sweep = sweep
        return not sweep.is_done

    # --- erasure -----------------------------------------------------------------------------------

    def telling_links(self, look: Look) -> tuple[list[Link], int]:
        """The links whose names tell of what a look has found, and how many of them stay without it."""
        network = self.network
        links = self.store.read(lambda txn: telling_links(txn, network, look))
        return links, staying(links, network, look)

    def erase(self, erasure: Erasure, is_time_up: Callable[[], bool], now_ms: int, actor: str) -> ErasureStep:
        """One step of an erasure; the store says that it is to be compacted from this commit on."""
        entry, network = AuditEntry(now_ms, actor, "forgotten", {}), self.network
        # Known before the commit, so that whoever looks meanwhile takes the agent to be busy.
        self.is_compaction_due = True
        try:
            step = self.amend(lambda txn: erasure.step(txn, is_time_up, entry, network))
        finally:
            self.is_compaction_due = self.store.read(lambda txn: txn.is_compaction_due())
        erasure.committed(step)
        return step

    def holds_leftovers(self) -> bool:
        """Whether files may hold what was erased, deleted, corrected or withdrawn, though nothing refers to it."""
        return self.store.read(lambda txn: txn.is_compaction_due() or txn.holds_leftovers())

    # --- recall ------------------------------------------------------------------------------------

    def recall(self, cue: Cue) -> tuple[Answer, AgentCounts]:
        """What the cue brings back, and how many batches were not digested yet."""

        def read(txn: ReadTransaction) -> tuple[Answer, AgentCounts]:
            def content_of(node_id: NodeId) -> str:
                node = txn.node(node_id)
                assert node is not None, "the network and the store agree on who lives"
                return node.content

            answer = association.recall(self.network, cue, content_of, self.parameters.locale)
            return answer, txn.counts()

        return self.store.read(read)

    def archive(self, txn: ReadTransaction) -> Archive:
        """What was said, loaded if it is not there."""
        return self.open_archive.of(txn)

    def recollect(
        self, query: Query, now_ms: int, count_tokens: Callable[[str], int]
    ) -> tuple[Recollected, AgentCounts]:
        """The answer to a question over everything the agent ever heard, and how many batches wait."""

        def read(txn: ReadTransaction) -> tuple[Recollected, AgentCounts]:
            archive, locale = self.archive(txn), self.parameters.locale
            recollector = Recollector(txn, archive, self.network, now_ms, locale, count_tokens, self.texts)
            return recollector.answer(query), txn.counts()

        return self.store.read(read)
