"""metrics: all counters and the current gauges, in the text format of Prometheus.

State of the event loop is read here, disk sizes on the pool, and the text is written on the offload thread, so a scrape
delays no request. Figures that need a job of an agent are read in the background. Agents are separate only if the
settings say so, and then a bounded number: those with the largest lag.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ebbtide import __version__
from ebbtide.fleet.runtime.agent import Agent
from ebbtide.metrics import ClusterMetrics, Metrics
from ebbtide.records import AgentCounts
from ebbtide.verbs.requests import Request
from ebbtide.verbs.service import EMPTY, LARGE_BYTES, Service, get_readiness

if TYPE_CHECKING:
    from ebbtide.cluster.membership import Membership

STATUS = {"ready": 2, "degraded": 1, "unavailable": 0}

STORED: Mapping[str, Callable[[AgentCounts], int]] = {
    "message": lambda counts: counts.message_count,
    "memory": lambda counts: counts.node_count,
    "entity": lambda counts: counts.entity_count,
    "link": lambda counts: counts.link_count,
}
"""The kinds of records that are counted."""

MAX_FIGURES_S = 0.5
"""Longest wait of a scrape for the figures of agents."""


async def get_metrics(service: Service, _: Request = EMPTY) -> bytes:
    """Return all metrics in the text format of Prometheus."""
    metrics, agents = service.metrics, service.fleet.open_agents
    await _refresh_figures(agents)
    _read_agents(metrics, service, agents)
    await _read_daemon(metrics, service)
    if metrics.cluster is not None and service.cluster is not None:
        _read_cluster(metrics.cluster, service, service.cluster)
    paths = [agent.workspace.store.path for agent in agents]
    sizes = await service.fleet.on_pool(lambda: [_size(path / "data.mdb") for path in paths])
    metrics.store_bytes.set(sum(sizes))
    if service.settings.metrics.per_agent:
        _separate_agents(metrics, agents, service.settings.metrics.max_agents)
    return await service.offload(LARGE_BYTES, metrics.text)


async def _refresh_figures(agents: list[Agent]) -> None:
    """Read the figures that have changed, in jobs of the agents. Those of a busy agent may be older."""
    tasks = [task for task in (agent.refresh_figures() for agent in agents) if task is not None]
    if tasks:
        await asyncio.wait(tasks, timeout=MAX_FIGURES_S)


def _read_agents(metrics: Metrics, service: Service, agents: list[Agent]) -> None:
    fleet = service.fleet
    metrics.info.labels(__version__).set(1)
    # The values of all workers are added.
    metrics.workers.set(1)
    metrics.open_agents.set(len(agents))
    metrics.max_open_agents.set(fleet.max_open)
    metrics.unresumed_agents.set(len(fleet.unresumed))
    metrics.resident_bytes.set(sum(agent.derived_bytes for agent in agents))
    for kind, count in STORED.items():
        metrics.stored.labels(kind).set(sum(count(agent.counts) for agent in agents))
    statements: Counter[tuple[str, str]] = Counter()
    for agent in agents:
        statements.update(agent.figures.statements)
    metrics.statements.clear()
    for labels, number in statements.items():
        metrics.statements.labels(*labels).set(number)
    metrics.open_conflicts.set(sum(agent.figures.open_conflicts for agent in agents))
    metrics.store_used_bytes.set(sum(agent.figures.used_bytes for agent in agents))
    metrics.compactions_due.set(sum(agent.workspace.is_compaction_due for agent in agents))
    waiting = [agent.mailbox.waiting_count for agent in agents]
    metrics.mailbox_jobs.set(sum(waiting))
    metrics.longest_mailbox.set(max(waiting, default=0))
    metrics.pending_batches.set(sum(agent.counts.pending_batches for agent in agents))
    metrics.parked_batches.set(sum(agent.counts.parked_batches for agent in agents))
    metrics.owed_passes.set(sum(agent.counts.owed_passes for agent in agents))
    metrics.digest_lag.set(max((agent.digest.lag_s for agent in agents), default=0.0))
    metrics.held_up.set(sum(agent.digest.is_held_up for agent in agents))
    embeddings = [agent.embedding for agent in agents if agent.embedding is not None]
    metrics.embeddings_held_up.set(sum(one.is_held_up for one in embeddings))
    metrics.extractions_held_up.set(sum(agent.extraction.is_held_up for agent in agents))
    metrics.slices.set(fleet.scheduler.tally.slices)
    metrics.failed_slices.set(fleet.scheduler.tally.failed_slices)
    metrics.waiting_slices.set(len(fleet.scheduler.ring.waiting))
    metrics.event_streams.set(fleet.event_streams.count)


async def _read_daemon(metrics: Metrics, service: Service) -> None:
    readiness = await get_readiness(service)
    metrics.ready.set(STATUS[readiness.status])
    state = await service.model_client.state()
    metrics.model_available.set(state.available and not service.model_client.troubled)
    embedder = service.fleet.shared.embedder
    metrics.embedder_available.set(embedder is None or (await embedder.state()).available)
    metrics.longest_call.set(service.model_client.longest_call_s)
    metrics.disk_low.set(service.settings.store.low_disk_bytes)
    try:
        metrics.disk_free.set(await service.fleet.on_pool(service.fleet.data.free_bytes))
    except OSError:
        metrics.disk_free.set(0)


def _read_cluster(metrics: ClusterMetrics, service: Service, membership: Membership) -> None:
    metrics.lease_s.set(membership.lease_left_s)
    metrics.nodes.set(len(membership.nodes))
    metrics.slots.set(membership.slot_count)
    metrics.unowned_slots.set(membership.unowned_count)
    damaged = service.fleet.damaged
    metrics.log_behind.set(sum(reason == "LOG_BEHIND" for reason in damaged.values()))


def _separate_agents(metrics: Metrics, agents: list[Agent], most: int) -> None:
    ordered = sorted(agents, key=lambda agent: (-agent.digest.lag_s, -agent.counts.pending_batches, agent.id))
    pending, lag, resident = metrics.per_agent.values()
    for family in (pending, lag, resident):
        family.clear()
    for agent in ordered[:most]:
        pending.labels(agent.id).set(agent.counts.pending_batches)
        lag.labels(agent.id).set(agent.digest.lag_s)
        resident.labels(agent.id).set(agent.derived_bytes)


def _size(path: os.PathLike[str]) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
