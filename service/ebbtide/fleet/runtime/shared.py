"""The parts that all agents of one daemon share: thread pool, models, clock, limits."""

from __future__ import annotations

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
from ebbtide.store.directory.data_directory import DataDirectory

STEP_BUDGET_S = 0.02
"""Longest time that one step of background work keeps the agent's turn."""


@dataclass(frozen=True, slots=True)
class DigestPolicy:
    """When a batch is parked, and how long statuses of digested batches are kept."""

    park_after_attempts: int
    status_keep: int
    status_keep_h: int


class Budget:
    """Whether a step's time is up. The time starts at the first call, so that waiting in the mailbox does not count.

    Each call first yields to running requests of other agents.
    """

    def __init__(self, clock: Clock, priority: RequestPriority, seconds: float = STEP_BUDGET_S) -> None:
        self._clock = clock
        self._priority = priority
        self._seconds = seconds
        self._end_s: float | None = None

    def __call__(self) -> bool:
        self._priority.yield_to_requests()
        now_s = self._clock.monotonic_s()
        if self._end_s is None:
            self._end_s = now_s + self._seconds
        return now_s >= self._end_s


@dataclass(frozen=True, slots=True)
class SharedResources:
    """The resources and limits that every agent of a daemon uses. `fallback` is the built-in model."""

    pool: Executor
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
    embedding_gate: PriorityLimiter = field(default_factory=lambda: PriorityLimiter(1))

    def budget(self) -> Budget:
        """Return the time budget of one step."""
        return Budget(self.clock, self.priority)
