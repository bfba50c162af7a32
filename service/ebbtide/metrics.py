"""The metrics of one daemon: what is counted and how it is called; docs/metrics.md is checked against this file.

The rule guarded here: **labels are bounded.** A label holds words of this product (a verb, a task, a family of
errors), never an agent's id, a text or anything a caller chose; agents are told apart only where `metrics.per_agent`
asks for it, and then so many of them. The registry belongs to the daemon that made it: two of them in one process
share nothing.

Deliberately not here: what is looked at when somebody asks (`verbs/metrics.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import generate_latest

from ebbtide.events import EventKind, EventRun

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

REQUEST_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds: from a recall in memory to the longest wait for an agent's turn."""

MODEL_BUCKETS = (0.001, 0.005, 0.02, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0)
"""Seconds: from the built-in model to a large one on a slow machine."""

LAG_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)

PER_AGENT = (
    "ebbtide_agent_pending_batches",
    "ebbtide_agent_digest_lag_seconds",
    "ebbtide_agent_resident_bytes",
)


class Metrics:
    """Everything that one daemon counts. Counting may be done on any thread."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=registry)

        def counter(name: str, description: str, *labels: str) -> Counter:
            return Counter(name, description, labels, registry=registry)

        def histogram(name: str, description: str, buckets: Sequence[float], *labels: str) -> Histogram:
            return Histogram(name, description, labels, registry=registry, buckets=buckets)

        self.requests = counter(
            "ebbtide_requests_total", "Requests that ended.", "transport", "verb", "outcome"
        )
        self.request_seconds = histogram(
            "ebbtide_request_duration_seconds",
            "How long requests took.",
            REQUEST_BUCKETS,
            "transport",
            "verb",
        )
        self.closed_connections = counter(
            "ebbtide_closed_connections_total",
            "Connections closed or refused because of their client, or for want of room.",
            "transport",
            "cause",
        )
        self.model_calls = counter("ebbtide_model_calls_total", "Calls of a model.", "task", "outcome")
        self.model_seconds = histogram(
            "ebbtide_model_call_duration_seconds", "How long calls of a model took.", MODEL_BUCKETS, "task"
        )
        self.batches = counter("ebbtide_batches_total", "Batches, by what became of them.", "outcome")
        self.nodes = counter("ebbtide_nodes_total", "Memories, by what became of them.", "change")
        self.links_broken = counter("ebbtide_links_broken_total", "Links that a scan made too weak.")
        self.passes = counter("ebbtide_passes_total", "Compression passes that are through.")
        self.events = counter("ebbtide_events_total", "Events told.")
        self.loop_lag = histogram(
            "ebbtide_event_loop_lag_seconds", "How late the event loop came to a task.", LAG_BUCKETS
        )
        self._add_gauges()
        self._known: dict[tuple[str, ...], Any] = {}

    def _add_gauges(self) -> None:
        """What is looked at when somebody asks."""

        def gauge(name: str, description: str, *labels: str) -> Gauge:
            return Gauge(name, description, labels, registry=self.registry)

        self.info = gauge("ebbtide_build_info", "1, with the version.", "version")
        self.open_agents = gauge("ebbtide_open_agents", "Agents that are open.")
        self.max_open_agents = gauge("ebbtide_max_open_agents", "Most agents open at once.")
        self.unresumed_agents = gauge(
            "ebbtide_unresumed_agents", "Agents with waiting work that could not be opened."
        )
        self.resident_bytes = gauge("ebbtide_resident_bytes", "Memory that open agents hold.")
        self.mailbox_jobs = gauge("ebbtide_mailbox_jobs", "Jobs that wait for their agent's turn.")
        self.longest_mailbox = gauge("ebbtide_mailbox_jobs_max", "Jobs that wait for one agent, at most.")
        self.pending_batches = gauge("ebbtide_pending_batches", "Batches of open agents that wait.")
        self.parked_batches = gauge("ebbtide_parked_batches", "Parked batches of open agents.")
        self.owed_passes = gauge("ebbtide_owed_passes", "Compression passes that open agents owe.")
        self.digest_lag = gauge(
            "ebbtide_digest_lag_seconds", "How long the oldest batch in hand or held up has waited."
        )
        self.held_up = gauge("ebbtide_held_up_digests", "Digests that sleep over a failure.")
        self.embeddings_held_up = gauge(
            "ebbtide_held_up_embeddings", "Agents whose messages get no vectors for a failure."
        )
        self.slices = gauge("ebbtide_slices", "Turns at compression since the start.")
        self.failed_slices = gauge("ebbtide_failed_slices", "Turns that ended in a fault.")
        self.waiting_slices = gauge("ebbtide_waiting_slices", "Agents that wait for a turn.")
        self.model_available = gauge("ebbtide_model_available", "Whether the language model answers.")
        self.embedder_available = gauge(
            "ebbtide_embedder_available", "Whether the embedding model answers; 1 where there is none."
        )
        self.longest_call = gauge("ebbtide_model_longest_call_seconds", "Age of the oldest call under way.")
        self.event_streams = gauge("ebbtide_event_streams", "Event streams that are open.")
        self.store_bytes = gauge("ebbtide_store_bytes", "Size of the files of open agents.")
        self.disk_free = gauge("ebbtide_disk_free_bytes", "Free disk of the data directory.")
        self.disk_low = gauge("ebbtide_disk_low_bytes", "Below this much free disk readiness is degraded.")
        self.ready = gauge("ebbtide_ready", "2 ready, 1 degraded, 0 unavailable.")
        self.per_agent = {
            name: gauge(name, "Of one agent; see metrics.per_agent.", "agent") for name in PER_AGENT
        }

    def request(self, transport: str, verb: str, outcome: str, took_s: float) -> None:
        """Count a request that ended."""
        counted = self._child(self.requests, transport, verb, outcome)
        timed = self._child(self.request_seconds, transport, verb)
        counted.inc()
        timed.observe(took_s)

    def connection_closed(self, transport: str, cause: str) -> None:
        """Count a connection that was closed because of its client, or for want of room."""
        self._child(self.closed_connections, transport, cause).inc()

    def model_call(self, task: str, outcome: str, took_s: float) -> None:
        """Count a call of a model that ended."""
        self._child(self.model_calls, task, outcome).inc()
        self._child(self.model_seconds, task).observe(took_s)

    def accepted(self) -> None:
        """Count a batch that was stored."""
        self._child(self.batches, "accepted").inc()

    def count_events(self, runs: Sequence[EventRun]) -> None:
        """Count what events tell of."""
        for run in runs:
            self.events.inc(run.count)
            family, label = EVENT_COUNTERS.get(run.kind, ("", ""))
            if label:
                self._child(getattr(self, family), label).inc(run.count)
            elif family:
                getattr(self, family).inc(run.count)

    def text(self) -> bytes:
        """Everything in the text format of Prometheus."""
        return generate_latest(self.registry)

    def _child(self, family: Any, *labels: str) -> Any:
        key = (str(id(family)), *labels)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = family.labels(*labels)
        return found


EVENT_COUNTERS: dict[str, tuple[str, str]] = {
    EventKind.BATCH_DIGESTED: ("batches", "digested"),
    EventKind.BATCH_PARKED: ("batches", "parked"),
    EventKind.BATCH_RETRIED: ("batches", "retried"),
    EventKind.NODE_CREATED: ("nodes", "created"),
    EventKind.NODE_COMPRESSED: ("nodes", "shortened"),
    EventKind.NODE_FORGOTTEN: ("nodes", "forgotten"),
    EventKind.NODE_CORRECTED: ("nodes", "corrected"),
    EventKind.MEMORY_ERASED: ("nodes", "erased"),
    EventKind.LINK_BROKEN: ("links_broken", ""),
    EventKind.PASS_COMPLETED: ("passes", ""),
}
"""What is counted of each kind of event: a family of metrics, and a label in it."""
