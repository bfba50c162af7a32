"""An open agent: its workspace, its mailbox with one worker, its digest, its embedding, its turns at compression.

Life cycle, as a table:

    state      what may happen                         next
    open       jobs run, digest and slices run         closing
    closing    no new jobs; the digest is cancelled    closed
               (a model call in flight too: its batch
               stays at the head), the slice is cut
               off, waiting jobs finish, the store
               closes
    closed     nothing; a verb opens a new Agent       -

`users` counts requests that hold the agent: one with users, jobs or work in hand is not idle and is never
closed to make room.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from ebbtide.clock import Clock
from ebbtide.errors import EbbtideError
from ebbtide.fleet.archive.unembedded import unembedded_count
from ebbtide.fleet.deletion.erasure import Erasure, ErasureStep
from ebbtide.fleet.ingest.admission import Accepted, Arrival
from ebbtide.fleet.runtime.digest import Digest, DigestPolicy
from ebbtide.fleet.runtime.embedding import Embedding
from ebbtide.fleet.runtime.mailbox import Mailbox
from ebbtide.fleet.runtime.retention_task import Sweeper
from ebbtide.fleet.runtime.slice import JOB_BUDGET_S, Budget, Compressor
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.fleet.state.event_builder import EVENTS_KEEP
from ebbtide.ids import AgentId
from ebbtide.language.embedding import Embedder
from ebbtide.language.port import LanguageModel
from ebbtide.language.served.limiter import PriorityLimiter
from ebbtide.language.served.retry import ModelClient
from ebbtide.metrics import Metrics
from ebbtide.offload.pool import INLINE, TextWorkers
from ebbtide.priority import RequestPriority
from ebbtide.records import AgentCounts, Batch
from ebbtide.store.chain import AuditEntry
from ebbtide.store.directory.data_directory import DataDirectory
from ebbtide.store.port import ReadTransaction
from ebbtide.telemetry import get_log, in_background, origin

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AgentNeeds:
    """What every agent of a daemon shares."""

    pool: Executor
    data: DataDirectory
    asking: ModelClient
    fallback: LanguageModel
    clock: Clock
    priority: RequestPriority
    digest_policy: DigestPolicy
    mailbox_size: int
    slice_s: float
    request_timeout_s: float
    events_keep: int = EVENTS_KEEP
    metrics: Metrics = field(default_factory=Metrics)
    embedder: Embedder | None = None
    texts: TextWorkers = INLINE
    embedding_gate: PriorityLimiter = field(default_factory=lambda: PriorityLimiter(1))


class Agent:
    """One open agent. Made on the event loop; its workspace was opened on the pool."""

    def __init__(
        self,
        agent_id: AgentId,
        workspace: Workspace,
        counts: AgentCounts,
        needs: AgentNeeds,
        ask_for_turn: Callable[[AgentId], None],
    ) -> None:
        self.id = agent_id
        self.workspace = workspace
        self.mailbox = Mailbox(needs.pool, size=needs.mailbox_size)
        self.digest = Digest(
            workspace,
            self.mailbox,
            needs.asking,
            needs.fallback,
            needs.clock,
            needs.digest_policy,
            on_digested=self._digested,
        )
        self.sweeper = Sweeper(workspace, self.mailbox, needs.clock, needs.priority.yield_to_requests)
        self.users = 0
        self.last_used_s = needs.clock.monotonic_s()
        self.counts = counts
        """As of the latest look; what a listing tells of an open agent."""
        self.derived_bytes = workspace.resident_bytes
        """What the network holds in memory, as of the latest look."""
        self._loop = asyncio.get_running_loop()
        self._needs = needs
        self._ask_for_turn = ask_for_turn
        self._compressor = Compressor(
            workspace,
            self.mailbox,
            needs.asking,
            needs.fallback,
            needs.clock,
            needs.slice_s,
            needs.priority.yield_to_requests,
        )
        self._is_marked = False
        self._inbox_is_empty = counts.pending_batches == 0
        """As of the latest look, which is part of every job that may fill it: False where that is not known."""
        self._has_work = counts.pending_batches > 0 or counts.owed_passes > 0 or workspace.is_compaction_due
        self.embedding: Embedding | None = None
        self._working = [in_background(self.digest.run()), in_background(self.sweeper.run())]
        if needs.embedder is not None:
            self.embedding = Embedding(
                workspace,
                self.mailbox,
                needs.embedder,
                needs.embedding_gate,
                needs.asking.patience,
                lambda: Budget(needs.clock, JOB_BUDGET_S, needs.priority.yield_to_requests),
                on_embedded=self.digest.progressed.beat,
                metrics=needs.metrics,
            )
            self._working.append(in_background(self.embedding.run()))
        if counts.owed_passes > 0:
            ask_for_turn(agent_id)

    @property
    def is_idle(self) -> bool:
        """Whether nobody uses the agent and nothing is left to do for it."""
        return self.users == 0 and self.mailbox.is_idle and not self._has_work

    @property
    def rules(self) -> LanguageModel:
        """The built-in model: what is worked out by rules needs no server, and is done beside the event loop."""
        return self._needs.fallback

    def look(self) -> int:
        """What the network holds in memory; looked at between two jobs only, since a job may be changing it."""
        if self.mailbox.is_idle:
            self.derived_bytes = self.workspace.resident_bytes
        return self.derived_bytes

    async def run(self, job: Callable[[], T]) -> T:
        """Run a job when its turn comes, within the daemon's request time-out."""

        def run() -> T:
            with self._needs.priority.for_a_request():
                return job()

        return await self.mailbox.run(run, timeout_s=self._needs.request_timeout_s)

    async def run_step(self, job: Callable[[], T]) -> T:
        """Run one short step of long work, which lets the jobs of requests pass between its pieces."""
        return await self.mailbox.run(job, timeout_s=self._needs.request_timeout_s)

    async def ask(self, job: Callable[[], T]) -> T:
        """Run a job that answers a question; what it has loaded may want an index, or vectors of another size."""
        answer = await self.run(job)
        if self.embedding is not None:
            size = self.embedding.dimension
            if self.workspace.wants_index or (size and self.workspace.holds_other_than(size)):
                self.embedding.notice()
        return answer

    async def amend(self, job: Callable[[], T]) -> T:
        """Run a job that changes what was said; what is left of it is embedded again, or swept."""
        amended = await self.run(job)
        self.sweeper.notice()
        if self.embedding is not None:
            self.embedding.notice()
        return amended

    async def accept(self, arrival: Arrival) -> Accepted:
        """Store a batch durably, note that there is work, wake the digest.

        Batches that wait side by side are stored in one commit.
        """
        accepted = await self.mailbox.run_together(
            self._accept, arrival, weight=arrival.weight, timeout_s=self._needs.request_timeout_s
        )
        self.digest.comes_from(accepted.batch.number, origin())
        return accepted

    def _accept(self, arrivals: Sequence[Arrival]) -> list[Accepted | Exception]:
        outcomes = self._make_busy(partial(self.workspace.inbox.accept, arrivals))
        for outcome in outcomes:
            if isinstance(outcome, Accepted) and outcome.records:
                self._needs.metrics.accepted()
        return outcomes

    async def last_accepted(self) -> int:
        """Number of the latest accepted batch, 0 for none."""
        store = self.workspace.store
        return await self.run(lambda: store.read(lambda txn: txn.next_batch_number())) - 1

    async def caught_up(self, patience_s: float, is_over: Callable[[], bool]) -> None:
        """Wait until what was accepted before is digested, unless that would take too long.

        Not at all while the digest is held up by a failure, while all that is left is put off, or when this
        agent's recent digests take longer than the patience. `is_over` ends the wait early.
        """
        clock, digest = self._needs.clock, self.digest
        deadline_s = clock.monotonic_s() + patience_s
        last: int | None = None
        while patience_s > 0 and not self._inbox_is_empty:
            progressed = digest.progressed.next_beat()
            if digest.is_held_up or self._needs.asking.troubled or digest.recent_s > patience_s:
                return
            if is_over():
                return
            if last is None:
                last = await self.last_accepted()
            left_s = deadline_s - clock.monotonic_s()
            if left_s <= 0 or not await self._is_behind(last):
                return
            await progressed.wait(left_s)

    async def _is_behind(self, last: int) -> bool:
        now_ms = self._needs.clock.now_ms()

        def read(txn: ReadTransaction) -> bool:
            return any(b.number <= last and b.not_before_ms <= now_ms for b in txn.waiting())

        return await self.run(lambda: self.workspace.store.read(read))

    def unembedded_count(self, txn: ReadTransaction) -> int:
        """Messages that have no vectors yet of the model in force; 0 where there is none."""
        if self.embedding is None:
            return 0
        count = unembedded_count(txn, self.embedding.model, self.embedding.dimension)
        if count:
            # Another agent may have found out that vectors have another size now: this one's are to be made anew.
            self._loop.call_soon_threadsafe(self.embedding.notice)
        return count

    async def owe_passes(self, count: int, actor: str) -> AgentCounts:
        """Owe passes and ask for a turn."""
        entry = AuditEntry(self._needs.clock.now_ms(), actor, "passes_owed", {"passes": count})
        return await self.run(partial(self._make_busy, partial(self.workspace.passes.owe, count, entry)))

    async def erase(self, erasure: Erasure, actor: str) -> ErasureStep:
        """Do a step of an erasure. A start would go on with the compaction that it asks for."""
        needs = self._needs
        job = partial(
            self.workspace.erase,
            erasure,
            Budget(needs.clock, JOB_BUDGET_S, needs.priority.yield_to_requests),
            needs.clock.now_ms(),
            actor,
        )
        return await self.run_step(partial(self._make_busy, job))

    async def compact(self) -> None:
        """Leave no byte of what was erased in the agent's files; whoever waits for the agent waits for that."""
        await self.run(partial(self._make_busy, self.workspace.compact))
        self.digest.progressed.beat()
        self.sweeper.notice()

    async def retry(self, number: int) -> Batch | None:
        """Put a parked batch back into the inbox and wake the digest."""
        return await self.run(partial(self._make_busy, partial(self.workspace.inbox.retry, number)))

    def _make_busy(self, job: Callable[[], T]) -> T:
        """Run a job that may give the agent work; runs on the pool, as part of the job.

        The marker comes before the commit: a missing one would lose the work at a start. Waking the digest
        is the job's own last act, because whoever asked may be gone by then. A job that stored nothing (a
        replay, a refusal) leaves the agent as idle as it was.
        """
        if not self._is_marked:
            self._needs.data.mark(self.id)
            self._is_marked = True
        self._has_work = True
        self._inbox_is_empty = False
        try:
            return job()
        finally:
            # What is stored is stored, and is digested: a look that fails only leaves the agent busy.
            with contextlib.suppress(EbbtideError, OSError):
                self._settle()
            if self._has_work:
                self._loop.call_soon_threadsafe(self._wake)

    def _digested(self) -> None:
        self._ask_for_turn(self.id)
        self._notice_retold()

    def _notice_retold(self) -> None:
        """Memories may have changed that tell messages without their text: these are embedded again."""
        if self.embedding is not None and self.workspace.parameters.kept_days is not None:
            self.embedding.notice()

    def _wake(self) -> None:
        self.digest.notice()
        if self.embedding is not None:
            self.embedding.notice()
        if self.counts.owed_passes > 0:
            self._ask_for_turn(self.id)

    async def run_slice(self) -> bool:
        """One turn at compression; whether more is owed. Afterwards look whether anything is left to do."""
        owes_more = await self._compressor.run_slice()
        if not owes_more:
            await self.mailbox.run(self._settle)
        self.digest.progressed.beat()
        self._notice_retold()
        return owes_more

    def _settle(self) -> None:
        counts = self.workspace.counts()
        self.counts = counts
        self._inbox_is_empty = counts.pending_batches == 0
        self.derived_bytes = self.workspace.resident_bytes
        is_idle = counts.pending_batches == 0 and counts.owed_passes == 0
        if is_idle and not self.workspace.is_compaction_due:
            self._needs.data.unmark(self.id)
            self._is_marked = False
            self._has_work = False

    def recount(self) -> None:
        """Count anew what waits and what is parked, as part of a job; a count that fails is made with the next one."""
        with contextlib.suppress(EbbtideError, OSError):
            self.counts = self.workspace.counts()

    async def close(self) -> None:
        """End the job in hand and everything that waits, then close the store. The inbox stays on disk."""
        for work in self._working:
            work.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)
        await self.mailbox.close()
        self.digest.progressed.beat()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._needs.pool, self._close_store)

    def _close_store(self) -> None:
        try:
            self.workspace.keep_index()
        except Exception as error:
            # It is built anew; the store must be closed whatever happens.
            get_log("agent").warning("index not kept", agent_id=self.id, exc_info=error)
        try:
            self._needs.data.write_meta(self.workspace.identity, self.workspace.counts())
        except Exception as error:
            # What meta.json says of counts is a courtesy; the store must be closed whatever happens.
            get_log("agent").warning("meta.json not written", agent_id=self.id, exc_info=error)
        finally:
            self.workspace.store.close()
