"""An open agent: its workspace, its mailbox and the background tasks that work on it.

Life cycle:

    state      what may happen                         next
    open       jobs, digest and slices run             closing
    closing    new jobs are refused; the digest is     closed
               cancelled, with its model call (its
               batch stays at the head); the slice is
               cut off; waiting jobs finish; the store
               closes
    closed     nothing; a verb opens a new Agent       -

`users` counts the requests that use the agent. An agent with users, jobs or work is not idle and is never closed to
make room.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import ParamSpec, TypeVar
from weakref import WeakMethod

import numpy as np
from numpy.typing import NDArray

from ebbtide.errors import EbbtideError
from ebbtide.fleet.archive.unembedded import unembedded_count
from ebbtide.fleet.consolidation.consolidation import Outcome
from ebbtide.fleet.consolidation.merges import MergeSearch
from ebbtide.fleet.deletion.removal import Removal, Removed
from ebbtide.fleet.ingest.admission import Accepted, IncomingBatch
from ebbtide.fleet.ingest.inbox import SuppliedMemory
from ebbtide.fleet.runtime.consolidator import Consolidator
from ebbtide.fleet.runtime.digest import Digest
from ebbtide.fleet.runtime.embedding import Embedding
from ebbtide.fleet.runtime.extraction_task import Extraction
from ebbtide.fleet.runtime.mailbox import Mailbox
from ebbtide.fleet.runtime.retention_task import RetentionTask
from ebbtide.fleet.runtime.shared import SharedResources
from ebbtide.fleet.runtime.slice import Compressor
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.fleet.state.agent_state import Figures
from ebbtide.heap import fresh_pages
from ebbtide.ids import AgentId, NodeId
from ebbtide.language.port import LanguageModel
from ebbtide.memory.merge_proposals import Proposal
from ebbtide.records import AgentCounts, Batch
from ebbtide.store.chain import AuditEntry
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.telemetry import get_log, in_background, origin
from ebbtide.text_caches import clear_text_caches

P = ParamSpec("P")
T = TypeVar("T")

SHORT_RECALL_S = 0.01
"""A recall up to this long is short: ten times as long as most."""


def weakly(method: Callable[P, T]) -> Callable[P, T]:
    """Return a function that calls a bound method without keeping its object alive.

    A part that held its agent would form a cycle with it, and the agent would stay in memory after its close until
    the next full garbage collection. A call after that raises a ReferenceError.
    """
    reference = WeakMethod(method)

    def call(*arguments: P.args, **named: P.kwargs) -> T:
        alive = reference()
        if alive is None:
            raise ReferenceError("the agent is closed")
        return alive(*arguments, **named)

    return call


class Agent:
    """One open agent. Created on the event loop, with a workspace that was opened on the pool."""

    def __init__(
        self,
        agent_id: AgentId,
        workspace: Workspace,
        counts: AgentCounts,
        shared: SharedResources,
        request_turn: Callable[[AgentId], None],
    ) -> None:
        self.id = agent_id
        self.workspace = workspace
        self.mailbox = Mailbox(shared.pool, size=shared.mailbox_size, background_pool=shared.background_pool)
        self.extraction = Extraction(
            workspace, self.mailbox, shared, weakly(self._on_extracted), weakly(self._settle)
        )
        self.digest = Digest(
            workspace,
            self.mailbox,
            shared,
            on_digested=weakly(self._on_digested),
            before_digest=self.extraction.before_digest,
        )
        self.retention_task = RetentionTask(workspace, self.mailbox, shared)
        self.embedding: Embedding | None = None
        self.users = 0
        self.last_used_s = shared.clock.monotonic_s()
        self.counts = counts
        """The latest counts; listings show them."""
        self.derived_bytes = workspace.resident_bytes
        """The latest size of the derived state in memory."""
        self.figures = Figures()
        """The figures of the last `refresh_figures`."""
        self._figures_task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._shared = shared
        self._request_turn = request_turn
        self._compressor = Compressor(workspace, self.mailbox, shared)
        take_turn = partial(request_turn, agent_id)
        self.consolidator = Consolidator(workspace, self.mailbox, shared, take_turn, weakly(self._vectors_of))
        self._is_marked = False
        self._last_recall_s = 0.0
        """Processor time of the last small recall."""
        self._inbox_is_empty = counts.pending_batches == 0
        """Whether the inbox is known to be empty. Every job that may fill it updates this."""
        self._has_work = (
            counts.pending_batches > 0
            or counts.owed_passes > 0
            or workspace.is_compaction_due
            or workspace.extraction.is_on
        )
        tasks = (self.digest, self.extraction, self.retention_task)
        self._tasks = [in_background(task.run()) for task in tasks]
        if shared.embedder is not None:
            on_embedded = self.digest.progressed.notify
            self.embedding = Embedding(workspace, self.mailbox, shared.embedder, shared, on_embedded)
            self._tasks.append(in_background(self.embedding.run()))
        if counts.owed_passes > 0:
            request_turn(agent_id)
        self.consolidator.schedule()

    @property
    def is_idle(self) -> bool:
        """Whether no request uses the agent and it has no work."""
        return self.users == 0 and self.mailbox.is_idle and not self._has_work

    @property
    def builtin_model(self) -> LanguageModel:
        """The built-in model, which needs no server and runs outside the event loop."""
        return self._shared.fallback

    def measure(self) -> int:
        """Return the size of the derived state. It is measured only while no job may change it."""
        if self.mailbox.is_idle:
            self.derived_bytes = self.workspace.resident_bytes
        return self.derived_bytes

    # --- jobs --------------------------------------------------------------------------------------

    async def run(self, job: Callable[[], T]) -> T:
        """Run a job of a request in turn, within the request timeout."""
        return await self._run_first(job, self._shared.pool)

    async def _run_first(self, job: Callable[[], T], pool: Executor) -> T:
        with self._shared.priority.for_a_request():
            return await self.mailbox.run(job, timeout_s=self._shared.request_timeout_s, pool=pool)

    async def recall(self, job: Callable[[], T], *, is_small: bool) -> T:
        """Run a recall without a query.

        Short ones of all agents take turns on one thread. Others have the threads of requests, so that a short one
        never waits for them: those that are not small, and those of an agent whose last small one was long.
        """
        is_short = is_small and self._last_recall_s <= SHORT_RECALL_S
        if not is_small:
            return await self._run_first(job, self._shared.pool)

        def timed() -> T:
            began_s = time.thread_time()
            try:
                return job()
            finally:
                self._last_recall_s = time.thread_time() - began_s

        return await self._run_first(timed, self._shared.recall_pool if is_short else self._shared.pool)

    async def run_step(self, job: Callable[[], T]) -> T:
        """Run one short step of long work, which yields to the jobs of requests."""
        pool, timeout_s = self._shared.background_pool, self._shared.request_timeout_s
        return await self.mailbox.run(job, timeout_s=timeout_s, pool=pool)

    async def query(self, job: Callable[[], T]) -> T:
        """Run a query. The archive that it loaded may need an index or new vectors."""
        # A query that first loads its archive may take long; other queries must not wait for it.
        is_loaded = self.workspace.open_archive.loaded is not None
        self._shared.metrics.archive_uses.labels("in_memory" if is_loaded else "loaded").inc()
        answer = await self._run_first(job, self._shared.query_pool if is_loaded else self._shared.pool)
        if self.embedding is not None:
            archive, dimension = self.workspace.open_archive, self.embedding.dimension
            if archive.needs_index or (dimension and archive.has_other_dimension(dimension)):
                self.embedding.notice()
        return answer

    async def amend(self, job: Callable[[], T]) -> T:
        """Run a job that changes stored texts, then notify the background tasks that read texts."""
        amended = await self.run(job)
        self.retention_task.notice()
        self.consolidator.schedule()
        self.extraction.notice()
        if self.embedding is not None:
            self.embedding.notice()
        return amended

    async def change_parameters(self, job: Callable[[], T]) -> T:
        """Run a job that changes parameters, then notify the background tasks that they concern."""
        changed = await self.run(partial(self._make_busy, job))
        self.retention_task.notice()
        self.consolidator.schedule()
        return changed

    async def accept(self, batch: IncomingBatch) -> Accepted:
        """Store a batch durably and wake the digest. Waiting batches share one commit."""
        with self._shared.priority.for_a_request():
            accepted = await self.mailbox.run_together(
                self._accept, batch, weight=batch.weight, timeout_s=self._shared.request_timeout_s
            )
        self.digest.set_origin(accepted.batch.number, origin())
        return accepted

    def _accept(self, batches: Sequence[IncomingBatch]) -> list[Accepted | Exception]:
        outcomes = self._make_busy(partial(self.workspace.inbox.accept, batches))
        for outcome in outcomes:
            if isinstance(outcome, Accepted) and outcome.records:
                self._shared.metrics.accepted()
        return outcomes

    async def supply(self, supplied: SuppliedMemory, read: Callable[[NodeId], T]) -> T:
        """Store a memory that the caller supplies, and read it in the same job: a pass may follow at once."""
        now_ms = self._shared.clock.now_ms()
        found = await self.run(
            partial(self._make_busy, lambda: read(self.workspace.inbox.supply(supplied, now_ms)))
        )
        self.digest.progressed.notify()
        return found

    async def last_accepted(self) -> int:
        """Return the number of the latest accepted batch; 0 if there is none."""
        store = self.workspace.store
        return await self.run(lambda: store.read(lambda txn: txn.meta.next_batch_number)) - 1

    async def wait_for_digest(self, patience_s: float, is_over: Callable[[], bool]) -> None:
        """Wait at most `patience_s` until the batches accepted so far are digested.

        Return at once if waiting is pointless: the digest is held up by a failure, all remaining batches are
        deferred, or recent digests took longer than `patience_s`. `is_over` ends the wait early.
        """
        clock, digest = self._shared.clock, self.digest
        deadline_s = clock.monotonic_s() + patience_s
        last: int | None = None
        while patience_s > 0 and not self._inbox_is_empty:
            progressed = digest.progressed.next_notification()
            if digest.is_held_up or self._shared.model_client.troubled or digest.recent_s > patience_s:
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
        now_ms = self._shared.clock.now_ms()

        def read(txn: ReadTransaction) -> bool:
            return any(b.number <= last and b.not_before_ms <= now_ms for b in txn.inbox.waiting())

        return await self.run(lambda: self.workspace.store.read(read))

    def unembedded_count(self, txn: ReadTransaction) -> int:
        """Return how many messages lack vectors of the current model; 0 without an embedder."""
        if self.embedding is None:
            return 0
        count = unembedded_count(txn, self.embedding.model, self.embedding.dimension)
        if count:
            # Another agent may have discovered a new vector dimension; then these vectors must be recomputed.
            self._loop.call_soon_threadsafe(self.embedding.notice)
        return count

    async def owe_passes(self, count: int, actor: str) -> AgentCounts:
        """Add owed compression passes and request a turn."""
        entry = AuditEntry(self._shared.clock.now_ms(), actor, "passes_owed", {"passes": count})
        return await self.run(partial(self._make_busy, partial(self.workspace.passes.owe, count, entry)))

    async def remove(self, removal: Removal, actor: str) -> Removed:
        """Remove the next items of a selector, then notify the embedding and retention tasks.

        A permanent deletion yields to requests. If the daemon stops, the next start completes its compaction.
        """
        now_ms, budget = self._shared.clock.now_ms(), self._shared.budget(self.mailbox.is_awaited)
        job = partial(self.workspace.remove, removal, budget, now_ms, actor)
        if removal.is_permanent:
            return await self.run_step(partial(self._make_busy, job))
        return await self.amend(job)

    async def compact(self) -> None:
        """Rewrite the agent's files without erased bytes. Other jobs of the agent wait meanwhile."""
        await self.run(partial(self._make_busy, self.workspace.compact))
        self._shared.metrics.compactions.inc()
        self.digest.progressed.notify()
        self.retention_task.notice()

    async def consolidate(self, *, dry_run: bool) -> Outcome:
        """Consolidate the statements to the end, or only find out what that would change."""
        consolidator = self.consolidator
        return await (consolidator.rehearse if dry_run else consolidator.run_now)(self.run_step)

    async def propose_merges(self) -> list[tuple[Proposal, str, str]]:
        """Return the names in statements that may mean one entity, the most similar first."""
        workspace = self.workspace
        search = await self.run_step(lambda: MergeSearch(workspace.network, workspace.ledger))
        while not await self.run_step(lambda: search.prepare(self._shared.budget(self.mailbox.is_awaited))):
            pass
        advance = partial(search.advance, await self._vectors_of(search.texts))
        while not await self.run_step(partial(advance, self._shared.budget(self.mailbox.is_awaited))):
            pass
        found = await self.run(lambda: list(search.proposals(workspace.ledger)))
        return [(one, search.names[one.first], search.names[one.second]) for one in found]

    async def _vectors_of(self, names: Sequence[str]) -> NDArray[np.float32] | None:
        return None if self.embedding is None else await self.embedding.vectors_of_names(names)

    async def retry(self, number: int) -> Batch | None:
        """Put a parked batch back into the inbox and wake the digest."""
        return await self.run(partial(self._make_busy, partial(self.workspace.inbox.retry, number)))

    # --- background work ---------------------------------------------------------------------------

    def _make_busy(self, job: Callable[[], T]) -> T:
        """Run a job that may add work. Called on the pool, as part of the job.

        The work marker is written before the commit, because without it a start would miss the work. The job itself
        wakes the digest, because its caller may be gone by then. A job that stored nothing (a replay, a refusal)
        leaves an idle agent idle.
        """
        if not self._is_marked:
            self._shared.data.mark(self.id)
            self._is_marked = True
        self._has_work = True
        self._inbox_is_empty = False
        try:
            return job()
        finally:
            # The job's commit remains valid even if the counts cannot be read; the agent then stays busy.
            with contextlib.suppress(EbbtideError, OSError):
                self._settle()
            if self._has_work:
                self._loop.call_soon_threadsafe(self._wake)

    def _on_digested(self) -> None:
        self._request_turn(self.id)
        self.consolidator.schedule()
        self._wake_embedding()
        self.extraction.notice()

    def _on_extracted(self) -> None:
        self.digest.progressed.notify()
        self.consolidator.schedule()
        self._wake_embedding()

    def _wake_embedding(self) -> None:
        """Embed messages without text again, because memories they are found by may have changed."""
        if self.embedding is not None and self.workspace.parameters.kept_days is not None:
            self.embedding.notice()

    def _wake(self) -> None:
        self.digest.notice()
        self.extraction.notice()
        if self.embedding is not None:
            self.embedding.notice()
        if self.counts.owed_passes > 0:
            self._request_turn(self.id)

    async def run_slice(self) -> bool:
        """Run one slice: compression first, then consolidation. Return whether more is owed."""
        owes_more = await self._compressor.run_slice() or await self.consolidator.run_slice()
        if not owes_more:
            await self.mailbox.run_in_background(self._settle)
        self.digest.progressed.notify()
        self._wake_embedding()
        return owes_more

    def _settle(self) -> None:
        counts = self.workspace.counts()
        self.counts = counts
        self._inbox_is_empty = counts.pending_batches == 0
        self.derived_bytes = self.workspace.resident_bytes
        is_idle = counts.pending_batches == 0 and counts.owed_passes == 0
        if is_idle and not self.workspace.is_compaction_due and not self.workspace.extraction.is_due():
            self._shared.data.unmark(self.id)
            self._is_marked = False
            self._has_work = False

    def recount(self) -> None:
        """Refresh the counts, as part of a job. A failure is ignored: the next job counts again."""
        with contextlib.suppress(EbbtideError, OSError):
            self.counts = self.workspace.counts()

    def refresh_figures(self) -> asyncio.Task[None] | None:
        """Begin to read the figures in the background if they may have changed. Return the task; None if not."""
        if self._figures_task is not None and not self._figures_task.done():
            return self._figures_task
        if not self.workspace.are_figures_due:
            return None
        self._figures_task = in_background(self._read_figures())
        return self._figures_task

    async def _read_figures(self) -> None:
        # A failure, also that of a closing agent, is ignored: the next scrape tries again.
        with contextlib.suppress(EbbtideError, OSError):
            self.figures = await self.mailbox.run_in_background(self.workspace.figures)

    # --- closing -----------------------------------------------------------------------------------

    async def close(self) -> None:
        """Cancel the background tasks, finish the waiting jobs and close the store."""
        self.consolidator.stop()
        if self._figures_task is not None:
            self._tasks.append(self._figures_task)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.mailbox.close()
        self.digest.progressed.notify()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._shared.pool, self._close_store)

    def _close_store(self) -> None:
        workspace = self.workspace
        try:
            if workspace.store.is_behind:
                # It refuses everything. The next open completes the file from the log.
                get_log("agent").warning("closed, because its file may lack a commit", agent_id=self.id)
                self._shared.metrics.store_behind()
            elif self._is_lost():
                get_log("agent").info("closed, because this node does not own it now", agent_id=self.id)
            else:
                # The counts of uses only order results, and the index can be rebuilt.
                self._attempt("uses of statements not saved", workspace.save_statement_uses)
                self._attempt("vector index not saved", workspace.open_archive.save_index)
                # The counts in meta.json are only a hint.
                self._attempt("meta.json not written", self._write_meta)
                # Without it, the file is as good as before, only larger than necessary.
                self._attempt("store not trimmed", self._trim)
        finally:
            workspace.close()
            # The agent may be deleted next, in a cluster also on another node.
            clear_text_caches()

    def _is_lost(self) -> bool:
        """Return whether this node of a cluster does not own the agent any more, so that every read is refused."""
        try:
            self.workspace.store.read(lambda _: None)
        except EbbtideError as error:
            return error.reason in ("AGENT_MOVING", "NOT_ENOUGH_LOG_SERVERS")
        return False

    def _attempt(self, failure: str, work: Callable[[], object]) -> None:
        """Do work without which the store can be closed."""
        try:
            work()
        except Exception as error:
            get_log("agent").warning(failure, agent_id=self.id, exc_info=error)

    def _write_meta(self) -> None:
        self._shared.data.write_meta(self.workspace.identity, self.workspace.counts())

    def _trim(self) -> None:
        with fresh_pages():
            self.workspace.store.trim()
