"""The parts that all agents of one daemon share: thread pool, models, clock, limits."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field

from ebbtide.clock import Clock
from ebbtide.fleet.state.event_builder import EVENTS_KEEP
from ebbtide.language.builtin.adapter import BuiltinModel
from ebbtide.language.embedding import Embedder
from ebbtide.language.served.limiter import PriorityLimiter
from ebbtide.language.served.retry import ModelClient
from ebbtide.metrics import Metrics
from ebbtide.offload.pool import INLINE, TextWorkers
from ebbtide.priority import RequestPriority
from ebbtide.settings import DEFAULT_SEARCH, SearchSettings
from ebbtide.store.directory.data_directory import DataDirectory

STEP_BUDGET_S = 0.02
"""Longest time that one step of background work keeps the agent's turn."""

AWAITED_STEP_S = 0.002
"""The same while a request waits for the agent. A step ends with a commit, so it is worth some work."""

MAX_STEP_PAUSE_S = 0.002
"""Longest pause within a step: a request for the same agent may arrive meanwhile."""


@dataclass(frozen=True, slots=True)
class DigestPolicy:
    """When a batch is parked, and how long statuses of digested batches are kept."""

    park_after_attempts: int
    status_keep: int
    status_keep_h: int


class Budget:
    """Whether a step's time is up. The time starts at the first call, so that waiting in the mailbox does not count.

    The time is shorter if a request waits for the same agent (`is_awaited`). Each call first yields to requests of
    other agents.
    """

    def __init__(
        self,
        clock: Clock,
        priority: RequestPriority,
        is_awaited: Callable[[], bool] = lambda: False,
        seconds: float = STEP_BUDGET_S,
    ) -> None:
        self._clock = clock
        self._priority = priority
        self._is_awaited = is_awaited
        self._seconds = seconds
        self._begun_s: float | None = None

    def __call__(self) -> bool:
        is_awaited = self._is_awaited()
        if not is_awaited:
            self._priority.yield_to_requests(MAX_STEP_PAUSE_S)
        now_s = self._clock.monotonic_s()
        if self._begun_s is None:
            self._begun_s = now_s
            return False
        return now_s >= self._begun_s + (AWAITED_STEP_S if is_awaited else self._seconds)


@dataclass(frozen=True, slots=True)
class SharedResources:
    """The resources and limits that every agent of a daemon uses. `fallback` is the built-in model."""

    pool: Executor
    """Runs short jobs of requests, and whatever belongs to no agent."""
    query_pool: Executor
    """Runs queries, one at a time: two on one interpreter take longer than one after the other."""
    recall_pool: Executor
    """Runs recalls without a query, one at a time, so that they wait for no query."""
    background_pool: Executor
    """Runs background jobs, which pause for requests and so must not occupy their threads."""
    data: DataDirectory
    model_client: ModelClient
    fallback: BuiltinModel
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
    search: SearchSettings = DEFAULT_SEARCH
    embedding_gate: PriorityLimiter = field(default_factory=lambda: PriorityLimiter(1))

    def budget(self, is_awaited: Callable[[], bool]) -> Budget:
        """Return the time budget of one step. `is_awaited` says whether a request waits for the agent."""
        return Budget(self.clock, self.priority, is_awaited)
