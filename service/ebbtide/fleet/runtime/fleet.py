"""The fleet maps agent ids to open agents. Agents are opened on demand, a bounded number at a time.

The first verb that needs an agent opens it, and it stays open. When `max_open_agents` are open, the least recently used
idle agent is closed to make room. If none is idle, the verb is refused (TOO_MANY_AGENTS). Opening, closing and deleting
the same agent never overlap: later calls wait for the earlier one. `memory_budget.py` bounds the memory of open agents.

At start-up only agents with a work marker are opened, whatever the number of agents on disk. An agent that is closed by
a verb keeps its marker; its work resumes with the next verb or the next start.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ebbtide.actor import actor
from ebbtide.errors import (
    Conflict,
    Corrupted,
    EbbtideError,
    Exhausted,
    Internal,
    NotFound,
    Precondition,
    Unavailable,
    no_agent,
)
from ebbtide.events import EventKind, EventRun
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.fleet.runtime.agent_quota import AgentQuota, PendingCreations, agents_within, check_agent_quota
from ebbtide.fleet.runtime.event_streams import MAX_EVENT_STREAMS, EventStreams
from ebbtide.fleet.runtime.loading import CreateOptions, Loading
from ebbtide.fleet.runtime.memory_budget import MemoryBudget, least_recently_used
from ebbtide.fleet.runtime.notifier import Notifier
from ebbtide.fleet.runtime.scheduler import Scheduler
from ebbtide.fleet.runtime.shared import SharedResources
from ebbtide.ids import AgentId
from ebbtide.parameters import AgentParameters
from ebbtide.records import AgentSummary
from ebbtide.shard import WHOLE
from ebbtide.store.audit.erased_agents import ERASED
from ebbtide.store.chain import AuditEntry, AuditRecord
from ebbtide.store.directory.data_directory import DataDirectory
from ebbtide.telemetry import get_log, in_background

if TYPE_CHECKING:
    from ebbtide.store.replication import Log
    from ebbtide.store.transfer.receiving import Staged

T = TypeVar("T")

PAUSE_AFTER_STORE_ERROR_S = 2.0
"""Pause of an agent's compression after a store error."""

ROOM_TIMEOUT_S = 2.0
"""How long an opening waits for an idle agent before it is refused."""

BATCH_EVENTS = frozenset({EventKind.BATCH_DIGESTED, EventKind.BATCH_PARKED, EventKind.BATCH_RETRIED})

MAX_CONCURRENT_LOADS = 4
"""Most agents loaded at a time. More would delay the jobs of open agents, so that none becomes idle."""

PASSING = ("AGENT_BEING_ERASED", "AGENT_BEING_RESTORED", "STORE_BEHIND", "NOT_ENOUGH_LOG_SERVERS")
"""Reasons why an agent cannot be opened for a moment."""

OPENED: Final = ContextVar[list[AgentId] | None]("opened", default=None)
"""The agents that the present request has opened; None: nothing collects them."""

UNUSED_S = 2.0
"""How long no request has used an agent whose log is shortened: the agent is closed meanwhile."""

RELEASE_GRACE_S = 0.2
"""How long an agent that moves to another node stays open for the requests that use it."""


class Fleet:
    """All agents of one daemon."""

    def __init__(
        self,
        shared: SharedResources,
        defaults: AgentParameters,
        *,
        max_open: int,
        max_resident_bytes: int,
        compression_concurrency: int,
        max_event_streams: int = MAX_EVENT_STREAMS,
    ) -> None:
        self.shared = shared
        self.data: DataDirectory = shared.data
        self.defaults = defaults
        self.max_open = max_open
        self.scheduler = Scheduler(self._run_slice, concurrency=compression_concurrency)
        self._agents: dict[AgentId, Agent] = {}
        self.memory_budget = MemoryBudget(self._agents, self.close, shared.pool, max_resident_bytes)
        self._opening: dict[AgentId, asyncio.Task[bool]] = {}
        self._copying: set[AgentId] = set()
        """Those of `_opening` that are copied, while another node of a cluster owns them."""
        self._closing: dict[AgentId, asyncio.Task[Any]] = {}
        self._deleting: set[AgentId] = set()
        self._pending_creations = PendingCreations()
        self._creating = asyncio.Lock()
        self._restoring: set[AgentId] = set()
        self._room = Notifier()
        self._making_room = asyncio.Lock()
        self._reserved_count = 0
        self._loading = Loading(shared, defaults, self._on_events)
        self._loads = asyncio.Semaphore(MAX_CONCURRENT_LOADS)
        self.event_streams = EventStreams(max_event_streams)
        self.unresumed: dict[AgentId, str] = {}
        """Agents with waiting work that could not be opened, with the error reason."""
        self.damaged: dict[AgentId, str] = {}
        """Agents whose data failed its checks, with the error reason, until they open well or are replaced."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._background: list[asyncio.Task[None]] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_stopping = False
        self._log = get_log("fleet")

    # --- life --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the scheduler and resume work from before the last stop."""
        self._loop = asyncio.get_running_loop()
        self.scheduler.start()
        self._background = [in_background(self._resume()), in_background(self.memory_budget.enforce_limit())]

    async def _resume(self) -> None:
        if self.data.replication is not None:
            # Agents are resumed when their slots are taken.
            return
        marked = await self.on_pool(self.data.marked)
        if marked:
            self._log.info("resuming work", agents=len(marked))
        for agent_id in marked:
            await self._resume_one(agent_id)

    async def _resume_one(self, agent_id: AgentId) -> None:
        while True:
            try:
                async with self.using(agent_id):
                    return
            except NotFound:
                # Deleted after its work marker was read.
                return
            except EbbtideError as error:
                if error.reason == "AGENT_MOVING":
                    # Its owner resumes it.
                    return
                if isinstance(error, Exhausted) or error.reason in PASSING:
                    await self._room.wait(1.0)
                    continue
                self.unresumed[agent_id] = error.reason
                self._log.error("agent not resumed", agent_id=agent_id, reason=error.reason)
                return

    def wake_waiters(self) -> None:
        """Wake requests that wait for a digest or an event, so that they do not delay a stop."""
        self.event_streams.notify_all()
        for agent in self._agents.values():
            agent.digest.progressed.notify()

    async def stop(self) -> None:
        """Close every agent. Waiting batches stay in the inboxes."""
        self._is_stopping = True
        background = [*self._background, *self._tasks]
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await asyncio.gather(*self._opening.values(), return_exceptions=True)
        await asyncio.gather(
            *(self.close(agent_id) for agent_id in list(self._agents)), return_exceptions=True
        )
        await asyncio.gather(*self._closing.values(), return_exceptions=True)
        await self.scheduler.stop()

    # --- an agent to work with ---------------------------------------------------------------------

    @asynccontextmanager
    async def using(
        self, agent_id: AgentId, *, create: bool = False, agent_quota: AgentQuota | None = None
    ) -> AsyncIterator[Agent]:
        """Open the agent for the block. Raise AGENT_NOT_FOUND if it does not exist and `create` is False."""
        async with self.ensuring(agent_id, create=create, agent_quota=agent_quota) as (agent, _):
            yield agent

    @asynccontextmanager
    async def ensuring(
        self,
        agent_id: AgentId,
        overrides: Mapping[str, object] | None = None,
        *,
        create: bool = True,
        agent_quota: AgentQuota | None = None,
    ) -> AsyncIterator[tuple[Agent, bool]]:
        """Open the agent for the block; yield it and whether it was created, with the parameters in `overrides`."""
        options = CreateOptions(create, overrides or {}, agent_quota, actor())
        agent, is_new = await self._open(agent_id, options)
        agent.users += 1
        opened = OPENED.get()
        if opened is not None:
            opened.append(agent_id)
        try:
            yield agent, is_new
        except Corrupted as error:
            self._note_damage(agent_id, error)
            raise
        finally:
            agent.users -= 1
            agent.last_used_s = self.shared.clock.monotonic_s()
            self.memory_budget.note(agent)
            self._room.notify()

    async def _open(self, agent_id: AgentId, options: CreateOptions) -> tuple[Agent, bool]:
        is_new = False
        while True:
            self._refuse_when_unavailable(agent_id)
            # No await between finding the agent and counting its user.
            agent = self._agents.get(agent_id)
            if agent is not None and not agent.workspace.store.is_behind:
                return agent, is_new
            if agent is not None:
                await self.close(agent_id)
                continue
            if agent_id in self._closing:
                await asyncio.wait([self._closing[agent_id]])
            elif agent_id in self._opening:
                await asyncio.wait([self._opening[agent_id]])
            else:
                opening = in_background(self._open_now(agent_id, options))
                self._opening[agent_id] = opening
                opening.add_done_callback(lambda task: self._opened(agent_id, task))
                is_new = await asyncio.shield(opening)

    def _opened(self, agent_id: AgentId, task: asyncio.Task[bool]) -> None:
        del self._opening[agent_id]
        self._room.notify()
        if not task.cancelled():
            self._note_damage(agent_id, task.exception())

    def _note_damage(self, agent_id: AgentId, error: BaseException | None) -> None:
        if isinstance(error, Corrupted):
            self.damaged[agent_id] = error.reason
        elif error is None or isinstance(error, NotFound):
            self.damaged.pop(agent_id, None)

    def _refuse_when_unavailable(self, agent_id: AgentId) -> None:
        if self._is_stopping:
            raise Unavailable("the daemon is stopping", reason="SHUTTING_DOWN", retry_after_s=5.0)
        self._refuse_when_replaced(agent_id)

    def _refuse_when_replaced(self, agent_id: AgentId) -> None:
        if not self.data.owns(agent_id):
            raise self.refusal()
        if agent_id in self._deleting:
            raise Precondition("the agent is being deleted", reason="AGENT_BEING_ERASED")
        if agent_id in self._restoring:
            raise Precondition("the agent is being restored", reason="AGENT_BEING_RESTORED")

    def refusal(self) -> EbbtideError:
        """Return the error for a request for an agent that this process does not own."""
        if self.data.replication is not None:
            return self.data.replication.refusal()
        return Internal(f"worker {self.data.shard.index} does not own the agent")

    async def _open_now(self, agent_id: AgentId, options: CreateOptions) -> bool:
        """Open the agent. Return whether it was created."""
        exists = await self.on_pool(lambda: self.data.exists(agent_id))
        if exists:
            return await self._open_within(agent_id, options, exists)
        if not options.create:
            raise no_agent()
        async with self._within_quota(agent_id, options.agent_quota):
            return await self._open_within(agent_id, options, exists)

    @asynccontextmanager
    async def _within_quota(self, agent_id: AgentId, agent_quota: AgentQuota | None) -> AsyncIterator[None]:
        """Create an agent within the block. Raise QUOTA_REACHED."""
        with self._pending_creations.creating(agent_id) as before:
            if agent_quota is None:
                yield
                return
            if self.data.shard is WHOLE:
                elsewhere = (
                    await agent_quota.elsewhere(agent_quota.most) if agent_quota.elsewhere else set[str]()
                )
                await self.on_pool(lambda: check_agent_quota(agent_quota, self.data, before, elsewhere))
                yield
                return
            # Other workers create agents too. One thread of each waits for its turn.
            async with self._creating:
                await self.on_pool(self.data.creating.__enter__)
                try:
                    await self.on_pool(lambda: check_agent_quota(agent_quota, self.data, before))
                    yield
                finally:
                    self.data.creating.__exit__(None, None, None)

    async def _open_within(self, agent_id: AgentId, options: CreateOptions, exists: bool) -> bool:
        await self._reserve_room()
        try:
            async with self._loads:
                await self.memory_budget.close_idle()
                workspace, counts = await self.on_pool(lambda: self._loading.load(agent_id, exists, options))
            workspace.store.on_behind = partial(self._ask_to_take_again, agent_id)
            if self.data.replication is not None:
                log = self.data.replication.log(agent_id)
                log.on_long = partial(self._ask_to_shorten, agent_id, log)
                if log.is_long:
                    log.on_long()
            agent = Agent(agent_id, workspace, counts, self.shared, self._request_turn)
            self._agents[agent_id] = agent
            self.unresumed.pop(agent_id, None)
            self.memory_budget.note(agent)
        finally:
            self._reserved_count -= 1
        self._log.debug("agent opened", agent_id=agent_id, created=not exists)
        return not exists

    def _on_events(self, agent_id: AgentId, runs: Sequence[EventRun]) -> None:
        """Count events and wake their streams. Runs on the pool after the commit."""
        self.shared.metrics.count_events(runs)
        agent = self._agents.get(agent_id)
        if agent is not None and any(run.kind in BATCH_EVENTS for run in runs):
            agent.recount()
        if self.event_streams.is_watched(agent_id) and self._loop is not None:
            self._loop.call_soon_threadsafe(self.event_streams.notify, agent_id)

    # --- a cluster ---------------------------------------------------------------------------------

    def _ask_to_take_again(self, agent_id: AgentId) -> None:
        """Take an agent again whose file may lack what the log has. Runs on the pool."""
        if self._loop is not None and not self._is_stopping:
            self._loop.call_soon_threadsafe(lambda: self._in_background(self._take_again(agent_id)))

    async def _take_again(self, agent_id: AgentId) -> None:
        await self.close(agent_id)
        await self._resume_one(agent_id)

    def _ask_to_shorten(self, agent_id: AgentId, log: Log) -> None:
        """Shorten the log of an agent when the agent is idle, or when the log is very long. Runs on any thread."""
        if self._loop is not None and not self._is_stopping:
            self._loop.call_soon_threadsafe(lambda: self._in_background(self._shorten(agent_id, log)))

    async def _shorten(self, agent_id: AgentId, log: Log) -> None:
        clock = self.shared.clock
        while (agent := self._agents.get(agent_id)) is not None:
            is_unused = agent.is_idle and clock.monotonic_s() - agent.last_used_s >= UNUSED_S
            if is_unused or log.is_very_long:
                break
            await asyncio.sleep(UNUSED_S / 2)
        if agent is None or self.data.replication is None or self.data.replication.log(agent_id) is not log:
            # It was closed. When it is opened, its log is measured again.
            return
        await self.close(agent_id)
        if not self._is_busy(agent_id) and self.data.owns(agent_id):
            try:
                await self._as_opening(agent_id, self._taken(agent_id, shortens=True))
            except EbbtideError as error:
                self._log.info("log not shortened", agent_id=agent_id, reason=error.reason)
            await self._resume_one(agent_id)

    async def adopt(self, agent_id: AgentId) -> None:
        """Complete the file of an agent that this node has come to own, and resume its work."""
        if agent_id in self._opening:
            # It is copied or opened.
            await asyncio.wait([self._opening[agent_id]])
        if self._is_busy(agent_id) or not self.data.owns(agent_id):
            return
        if await self._as_opening(agent_id, self._taken(agent_id)):
            await self._resume_one(agent_id)

    async def copy(self, agent_id: AgentId) -> None:
        """Complete the file of an agent that is about to move to this node, while its owner continues."""
        if not self.data.owns(agent_id) and not self._is_busy(agent_id):
            await self._as_opening(agent_id, self._copied(agent_id))

    def _is_busy(self, agent_id: AgentId) -> bool:
        return any(agent_id in one for one in (self._agents, self._opening, self._deleting, self._restoring))

    async def _as_opening(self, agent_id: AgentId, work: Coroutine[Any, Any, bool]) -> bool:
        """Do work with the closed file of an agent, which is not opened meanwhile."""
        working = self._in_background(work)
        self._opening[agent_id] = working
        working.add_done_callback(lambda task: self._opened(agent_id, task))
        return await asyncio.shield(working)

    async def _copied(self, agent_id: AgentId) -> bool:
        self._copying.add(agent_id)
        try:
            if agent_id in self._closing:
                await asyncio.wait([self._closing[agent_id]])
            await self.on_pool(lambda: self.data.copy(agent_id))
        except (EbbtideError, OSError) as error:
            # It is taken from the log when this node owns it, and then an error counts.
            self._log.info("agent not copied before it moves", agent_id=agent_id, exc_info=error)
            return False
        finally:
            self._copying.discard(agent_id)
        return True

    async def _taken(self, agent_id: AgentId, *, shortens: bool = False) -> bool:
        """Complete the file of an agent, and shorten a long log if asked. Return whether it has work."""
        if agent_id in self._closing:
            await asyncio.wait([self._closing[agent_id]])
        async with self._loads:
            return await self.on_pool(
                lambda: self.data.exists(agent_id, shortens=shortens) and self.data.is_marked(agent_id)
            )

    async def release(self, keeps: Callable[[AgentId], bool]) -> None:
        """Close every agent that `keeps` refuses, and wait for those that are being opened or closed."""
        for reasons in (self.damaged, self.unresumed):
            for agent_id in [one for one in reasons if not keeps(one)]:
                del reasons[agent_id]
        leaving = [one for one in {*self._agents, *self._opening, *self._closing} if not keeps(one)]
        opening = [self._opening[one] for one in leaving if one in self._opening and one not in self._copying]
        await asyncio.gather(*opening, return_exceptions=True)
        await self._until_unused_for_a_moment(leaving)
        await asyncio.gather(*map(self.close, leaving), return_exceptions=True)

    async def _until_unused_for_a_moment(self, agent_ids: Sequence[AgentId]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(RELEASE_GRACE_S):
                await self._until_unused(agent_ids)

    async def _until_unused(self, agent_ids: Sequence[AgentId]) -> None:
        """Wait until no request uses these agents."""
        while True:
            change = self._room.next_notification()
            if not any(one in self._agents and self._agents[one].users for one in agent_ids):
                return
            await change.wait()

    def _in_background(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run work that ends with the fleet."""
        task = in_background(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _reserve_room(self) -> None:
        """Take one of `max_open` places. If none is free, close the least recently used idle agent."""
        deadline_s = self.shared.clock.monotonic_s() + ROOM_TIMEOUT_S
        async with self._making_room:
            while len(self._agents) + self._reserved_count + len(self._closing) >= self.max_open:
                idle = least_recently_used(self._agents.values())
                if idle is not None:
                    await self.close(idle.id)
                    continue
                left_s = deadline_s - self.shared.clock.monotonic_s()
                if left_s <= 0:
                    raise Exhausted(
                        f"{self.max_open} agents are open, the limit, and all of them are busy",
                        reason="TOO_MANY_AGENTS",
                        retry_after_s=1.0,
                    )
                await self._room.wait(left_s)
            self._reserved_count += 1

    # --- closing and erasing -----------------------------------------------------------------------

    async def close(self, agent_id: AgentId) -> bool:
        """Close the agent. Return whether it was open."""
        if agent_id in self._closing:
            await asyncio.wait([self._closing[agent_id]])
            return True
        agent = self._agents.pop(agent_id, None)
        if agent is None:
            return False
        self.memory_budget.drop(agent_id)
        await self._shielded(agent_id, self._shut(agent))
        return True

    async def _shut(self, agent: Agent) -> None:
        await self.scheduler.remove(agent.id)
        await agent.close()
        # One that asked for a turn meanwhile would be opened again.
        await self.scheduler.remove(agent.id)
        self._log.debug("agent closed", agent_id=agent.id)

    async def delete_agent(self, agent_id: AgentId) -> AuditRecord:
        """Delete the agent and its files for good. Return the audit record. Raise AGENT_NOT_FOUND."""
        self._refuse_when_replaced(agent_id)
        self._deleting.add(agent_id)
        try:
            opening = self._opening.get(agent_id)
            if opening is not None:
                await asyncio.wait([opening])
            await self.close(agent_id)
            # A deletion that was interrupted is completed.
            if not await self.on_pool(
                lambda: self.data.exists(agent_id) or self.data.is_being_erased(agent_id)
            ):
                raise no_agent()
            entry = AuditEntry(self.shared.clock.now_ms(), actor(), ERASED, {})
            erase = partial(self.data.erase, agent_id, entry)
            record = await self._shielded(agent_id, self.on_pool(erase))
            self.damaged.pop(agent_id, None)
            return record
        finally:
            self._deleting.discard(agent_id)
            self.unresumed.pop(agent_id, None)
            self.event_streams.notify(agent_id)

    async def install(self, staged: Staged, *, replace: bool, agent_quota: AgentQuota | None = None) -> bool:
        """Move a staged agent into place and start its work. Return whether it replaced an agent.

        Raise AGENT_EXISTS if the agent exists and `replace` is False. The caller must await this to its end.
        """
        agent_id = staged.agent_id
        self._refuse_when_unavailable(agent_id)
        self._restoring.add(agent_id)
        try:
            for task in (self._opening.get(agent_id), self._closing.get(agent_id)):
                if task is not None:
                    await asyncio.wait([task])
            exists = agent_id in self._agents or await self.on_pool(lambda: self._may_exist(agent_id))
            if exists and not replace:
                raise Conflict(
                    "an agent with this id already exists; pass replace=true to overwrite it",
                    reason="AGENT_EXISTS",
                )
            async with self._within_quota(agent_id, None if exists else agent_quota):
                await self.close(agent_id)
                put = partial(self.data.install, agent_id, staged.path, staged.entry)
                await self._shielded(agent_id, self.on_pool(put))
            self.damaged.pop(agent_id, None)
        finally:
            self._restoring.discard(agent_id)
            self.event_streams.notify(agent_id)
        if staged.counts.pending_batches or staged.counts.owed_passes:
            running = [task for task in self._background if not task.done()]
            self._background = [*running, in_background(self._resume_one(agent_id))]
        return exists

    async def rotate_key(self, agent_id: AgentId, pause: Callable[[], None] = lambda: None) -> str:
        """Encrypt an agent with another key and destroy the old one. Return the fingerprint of the key.

        Requests for the agent wait meanwhile. `pause` is called between small steps, and may raise.
        """
        await self._until_unused_for_a_moment([agent_id])
        while busy := [one[agent_id] for one in (self._opening, self._closing) if agent_id in one]:
            await asyncio.wait(busy)
        self._refuse_when_unavailable(agent_id)
        # No await between finding the agent and letting others wait for it.
        agent = self._agents.pop(agent_id, None)
        if agent is not None:
            self.memory_budget.drop(agent_id)
        try:
            return await self._shielded(agent_id, self._with_another_key(agent_id, agent, pause))
        finally:
            self._in_background(self.adopt(agent_id))

    async def _with_another_key(
        self, agent_id: AgentId, agent: Agent | None, pause: Callable[[], None]
    ) -> str:
        from ebbtide.store.transfer.rewrite import seal_agent

        def rewrite() -> str:
            if not self.data.exists(agent_id):
                raise no_agent()
            return seal_agent(self.data, agent_id, pause)

        if agent is not None:
            await self._shut(agent)
        return await self.on_pool(rewrite)

    def _may_exist(self, agent_id: AgentId) -> bool:
        try:
            return self.data.exists(agent_id)
        except (Corrupted, Precondition):
            # The stored agent is damaged; the restore may be meant to replace it.
            return True

    async def _shielded(self, agent_id: AgentId, work: Coroutine[Any, Any, T]) -> T:
        """Run work to its end even if the caller is cancelled. Other calls for the agent wait for it."""
        task = in_background(work)
        self._closing[agent_id] = task

        def release(_: asyncio.Task[T]) -> None:
            if self._closing.get(agent_id) is task:
                del self._closing[agent_id]
            self.memory_budget.closed()
            self._room.notify()

        task.add_done_callback(release)
        return await asyncio.shield(task)

    # --- slices ------------------------------------------------------------------------------------

    def _request_turn(self, agent_id: AgentId) -> None:
        """Queue the agent for compression after a digest or a request for passes. Its size may have changed."""
        self.scheduler.enqueue(agent_id)
        agent = self._agents.get(agent_id)
        if agent is not None:
            self.memory_budget.note(agent)

    async def _run_slice(self, key: Hashable) -> bool:
        agent = self._agents.get(AgentId(str(key)))
        if agent is None:
            return False
        try:
            owes_more = await agent.run_slice()
        except EbbtideError as error:
            # For example a full disk. Pause, so that the pass neither loops nor keeps its turn.
            self._log.warning("compression paused", agent_id=agent.id, reason=error.reason)
            loop = asyncio.get_running_loop()
            loop.call_later(PAUSE_AFTER_STORE_ERROR_S, self.scheduler.enqueue, agent.id)
            return False
        self.memory_budget.note(agent)
        self._room.notify()
        return owes_more

    # --- listing -----------------------------------------------------------------------------------

    @property
    def open_agents(self) -> list[Agent]:
        """The open agents."""
        return list(self._agents.values())

    @property
    def used_agents(self) -> set[AgentId]:
        """The ids of the agents that are open, or are being opened."""
        return {*self._agents, *self._opening}

    async def summaries(
        self, after: str, count: int, covers: Callable[[str], bool] = lambda _: True
    ) -> tuple[list[AgentSummary], str]:
        """Return up to `count` covered agents after the directory `after`, and the directory to continue from."""
        return await self.on_pool(lambda: self._summaries(after, count, covers))

    def _summaries(
        self, after: str, count: int, covers: Callable[[str], bool]
    ) -> tuple[list[AgentSummary], str]:
        found: list[AgentSummary] = []
        last = ""
        for directory, meta in agents_within(self.data, covers, after):
            if not self.data.owns_directory(directory):
                continue
            if len(found) == count:
                # The caller sees where to continue, so it must be an agent that the caller may know of.
                return found, last
            last = directory
            agent = self._agents.get(AgentId(meta.agent_id))
            counts = meta.counts if agent is None else agent.counts
            found.append(
                AgentSummary(
                    meta.agent_id, meta.created_at_ms, meta.format_version, agent is not None, counts
                )
            )
        return found, ""

    async def on_pool(self, fn: Callable[[], T]) -> T:
        """Run a blocking function on the job threads."""
        return await asyncio.get_running_loop().run_in_executor(self.shared.pool, fn)
