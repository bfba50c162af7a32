"""The metrics of one daemon. A test compares docs/metrics.md with this file.

The rule guarded here: **labels are bounded.** Their values are words of this product (a verb, a task, an error family),
never an agent id, a text or anything chosen by a caller. Only `metrics.per_agent` adds agent ids, and at most
`metrics.max_agents` of them. Each daemon has a registry of its own, so two daemons in one process share nothing.

`verbs/metrics.py` sets the gauges at each scrape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from ebbtide.events import EventKind, EventRun

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

REQUEST_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds, from a recall in memory to the longest wait for an agent's turn."""

MODEL_BUCKETS = (0.001, 0.005, 0.02, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0)
"""Seconds, from the built-in model to a large model on a slow machine."""

LAG_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)

PER_AGENT = (
    "ebbtide_agent_pending_batches",
    "ebbtide_agent_digest_lag_seconds",
    "ebbtide_agent_resident_bytes",
)


class Metrics:
    """The metrics of one daemon. Any thread may update them."""

    def __init__(self, cluster: ClusterMetrics | None = None) -> None:
        """`cluster` has those of a node of a cluster."""
        self.cluster = cluster
        self.registry = registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=registry)

        def counter(name: str, description: str, *labels: str) -> Counter:
            return Counter(name, description, labels, registry=registry)

        def histogram(name: str, description: str, buckets: Sequence[float], *labels: str) -> Histogram:
            return Histogram(name, description, labels, registry=registry, buckets=buckets)

        self.requests = counter(
            "ebbtide_requests_total", "Completed requests.", "transport", "verb", "outcome"
        )
        self.request_seconds = histogram(
            "ebbtide_request_duration_seconds",
            "Duration of requests in seconds.",
            REQUEST_BUCKETS,
            "transport",
            "verb",
        )
        self.closed_connections = counter(
            "ebbtide_closed_connections_total",
            "Connections closed or refused because of their client or for lack of capacity.",
            "transport",
            "cause",
        )
        self.model_calls = counter("ebbtide_model_calls_total", "Model calls.", "task", "outcome")
        self.model_seconds = histogram(
            "ebbtide_model_call_duration_seconds",
            "Duration of model calls in seconds.",
            MODEL_BUCKETS,
            "task",
        )
        self.batches = counter("ebbtide_batches_total", "Batches by outcome.", "outcome")
        self.nodes = counter("ebbtide_nodes_total", "Memories by change.", "change")
        self.entities = counter("ebbtide_entities_total", "Entities by change.", "change")
        self.pins = counter("ebbtide_pins_total", "Pins by change.", "change")
        self.fillers = counter(
            "ebbtide_fillers_total", "Segments without a memory of their own: courtesies and questions."
        )
        self.relations_ignored = counter(
            "ebbtide_relations_ignored_total", "Relations of recalls that no link and no entity has."
        )
        self.links_broken = counter("ebbtide_links_broken_total", "Links broken because scans weakened them.")
        self.passes = counter("ebbtide_passes_total", "Completed compression passes.")
        self.events = counter("ebbtide_events_total", "Recorded events.")
        self.archive_uses = counter(
            "ebbtide_archive_uses_total",
            "Queries by whether the agent's archive was in memory or was loaded.",
            "archive",
        )
        self.compactions = counter("ebbtide_compactions_total", "Compactions of the files of agents.")
        self.statement_changes = counter(
            "ebbtide_statement_changes_total", "Changes of what statements say is true.", "change"
        )
        self.consolidation_seconds = histogram(
            "ebbtide_consolidation_step_seconds",
            "Processor time of the parts of consolidation steps in seconds.",
            LAG_BUCKETS,
            "step",
        )
        self.loop_lag = histogram(
            "ebbtide_event_loop_lag_seconds", "Event-loop scheduling lag in seconds.", LAG_BUCKETS
        )
        self._add_extraction()
        self._add_proxy()
        self._add_gauges()
        self._known: dict[tuple[str, ...], Any] = {}

    def _add_extraction(self) -> None:
        """Create the counters of the extraction of statements."""
        self.extracted_statements = Counter(
            "ebbtide_extracted_statements_total",
            "Statements extracted from messages and stored.",
            registry=self.registry,
        )
        self.extraction_rejections = Counter(
            "ebbtide_extraction_rejections_total",
            "Extracted statements that the acceptance gate refused, by reason.",
            ("reason",),
            registry=self.registry,
        )

    def _add_proxy(self) -> None:
        """Create the counters of the memory proxy."""
        self.proxy_recalls = Counter(
            "ebbtide_proxy_recalls_total",
            "Chats through the memory proxy, by whether memories were added.",
            ("outcome",),
            registry=self.registry,
        )
        self.proxy_turns_dropped = Counter(
            "ebbtide_proxy_turns_dropped_total",
            "Turns through the memory proxy that were not remembered, by reason.",
            ("reason",),
            registry=self.registry,
        )

    def _add_gauges(self) -> None:
        """Create the gauges that are set at each scrape."""

        def gauge(name: str, description: str, *labels: str) -> Gauge:
            return Gauge(name, description, labels, registry=self.registry)

        self.info = gauge("ebbtide_build_info", "Always 1; the version is a label.", "version")
        self.workers = gauge(
            "ebbtide_workers", "Serving processes; below server.workers while one is replaced."
        )
        self.open_agents = gauge("ebbtide_open_agents", "Open agents.")
        self.max_open_agents = gauge("ebbtide_max_open_agents", "Limit of open agents.")
        self.unresumed_agents = gauge(
            "ebbtide_unresumed_agents", "Agents with waiting work that could not be opened."
        )
        self.resident_bytes = gauge("ebbtide_resident_bytes", "Memory of open agents in bytes.")
        self.stored = gauge("ebbtide_stored", "Records of open agents, by kind.", "kind")
        self.statements = gauge(
            "ebbtide_statements", "Statements of open agents, by kind and state.", "kind", "state"
        )
        self.open_conflicts = gauge(
            "ebbtide_open_conflicts", "Pairs of statements of open agents that contradict each other."
        )
        self.compactions_due = gauge(
            "ebbtide_compactions_due", "Open agents whose files may still contain erased data."
        )
        self.mailbox_jobs = gauge("ebbtide_mailbox_jobs", "Jobs waiting in mailboxes.")
        self.longest_mailbox = gauge("ebbtide_mailbox_jobs_max", "Jobs waiting in the fullest mailbox.")
        self.pending_batches = gauge("ebbtide_pending_batches", "Waiting batches of open agents.")
        self.parked_batches = gauge("ebbtide_parked_batches", "Parked batches of open agents.")
        self.owed_passes = gauge("ebbtide_owed_passes", "Owed compression passes of open agents.")
        self.digest_lag = gauge(
            "ebbtide_digest_lag_seconds",
            "Age of the oldest batch that is being digested or held up, in seconds.",
        )
        self.held_up = gauge("ebbtide_held_up_digests", "Digests that pause after a failure.")
        self.embeddings_held_up = gauge(
            "ebbtide_held_up_embeddings", "Agents whose embedding pauses after a failure."
        )
        self.extractions_held_up = gauge(
            "ebbtide_held_up_extractions",
            "Agents whose extraction pauses after a failure or at max_statements.",
        )
        self.slices = gauge("ebbtide_slices", "Compression slices since the start.")
        self.failed_slices = gauge("ebbtide_failed_slices", "Compression slices that failed.")
        self.waiting_slices = gauge("ebbtide_waiting_slices", "Agents waiting for a compression slice.")
        self.model_available = gauge("ebbtide_model_available", "Whether the language model is available.")
        self.embedder_available = gauge(
            "ebbtide_embedder_available", "Whether the embedding model is available; 1 if none is configured."
        )
        self.longest_call = gauge(
            "ebbtide_model_longest_call_seconds", "Age of the oldest model call in progress, in seconds."
        )
        self.event_streams = gauge("ebbtide_event_streams", "Open event streams.")
        self.store_bytes = gauge("ebbtide_store_bytes", "Size of the files of open agents in bytes.")
        self.store_used_bytes = gauge(
            "ebbtide_store_used_bytes", "Part of the files of open agents that is in use, in bytes."
        )
        self.disk_free = gauge("ebbtide_disk_free_bytes", "Free disk space of the data directory in bytes.")
        self.disk_low = gauge("ebbtide_disk_low_bytes", "Free disk space below which readiness is degraded.")
        self.ready = gauge("ebbtide_ready", "Readiness: 2 ready, 1 degraded, 0 unavailable.")
        self.per_agent = {
            name: gauge(name, "Value of one agent; see metrics.per_agent.", "agent") for name in PER_AGENT
        }

    def request(self, transport: str, verb: str, outcome: str, took_s: float) -> None:
        """Count a completed request."""
        counted = self._child(self.requests, transport, verb, outcome)
        timed = self._child(self.request_seconds, transport, verb)
        counted.inc()
        timed.observe(took_s)

    def connection_closed(self, transport: str, cause: str) -> None:
        """Count a connection that was closed or refused because of its client or for lack of capacity."""
        self._child(self.closed_connections, transport, cause).inc()

    def model_call(self, task: str, outcome: str, took_s: float) -> None:
        """Count a completed model call."""
        self._child(self.model_calls, task, outcome).inc()
        self._child(self.model_seconds, task).observe(took_s)

    def extracted(self, count: int, rejected: Mapping[Any, int]) -> None:
        """Count extracted statements, and those that the gate refused by reason."""
        self.extracted_statements.inc(count)
        for reason, refused in rejected.items():
            self._child(self.extraction_rejections, reason).inc(refused)

    def proxy_recalled(self, outcome: str) -> None:
        """Count a chat through the memory proxy."""
        self._child(self.proxy_recalls, outcome).inc()

    def turn_dropped(self, reason: str) -> None:
        """Count a turn through the memory proxy that was not remembered."""
        self._child(self.proxy_turns_dropped, reason).inc()

    def store_behind(self) -> None:
        """Count an agent of a cluster that was closed because its file may lack a commit."""
        if self.cluster is not None:
            self.cluster.store_behind.inc()

    def accepted(self) -> None:
        """Count a stored batch."""
        self._child(self.batches, "accepted").inc()

    def count_events(self, runs: Sequence[EventRun]) -> None:
        """Count events."""
        for run in runs:
            self.events.inc(run.count)
            family, label = EVENT_COUNTERS.get(run.kind, ("", ""))
            if label:
                self._child(getattr(self, family), label).inc(run.count)
            elif family:
                getattr(self, family).inc(run.count)

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        own = generate_latest(self.registry)
        return own if self.cluster is None else own + self.cluster.text()

    def _child(self, family: Any, *labels: str) -> Any:
        key = (str(id(family)), *labels)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = family.labels(*labels)
        return found


_GREATEST = frozenset(
    {
        "ebbtide_build_info",
        "ebbtide_digest_lag_seconds",
        "ebbtide_disk_free_bytes",
        "ebbtide_disk_low_bytes",
        "ebbtide_mailbox_jobs_max",
        "ebbtide_model_longest_call_seconds",
        "process_max_fds",
    }
)
_LEAST = frozenset(
    {
        "ebbtide_embedder_available",
        "ebbtide_model_available",
        "ebbtide_ready",
        "process_start_time_seconds",
    }
)
"""Gauges whose value for a daemon is the greatest or the least of its workers'; other values are added."""


class ClusterMetrics:
    """The metrics of one node of a cluster, in addition to those of a daemon. Any thread may update them."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry(auto_describe=False)

        def gauge(name: str, description: str) -> Gauge:
            return Gauge(f"ebbtide_cluster_{name}", description, registry=registry)

        def counter(name: str, description: str, *labels: str) -> Counter:
            return Counter(f"ebbtide_cluster_{name}", description, labels, registry=registry)

        def histogram(name: str, description: str) -> Histogram:
            return Histogram(
                f"ebbtide_cluster_{name}", description, registry=registry, buckets=REQUEST_BUCKETS
            )

        self.lease_s = gauge(
            "lease_seconds", "Seconds until the lease of this node lapses; 0 without a lease."
        )
        self.nodes = gauge("nodes", "Live nodes, as this node sees them.")
        self.slots = gauge("slots", "Slots that this node owns.")
        self.unowned_slots = gauge("unowned_slots", "Slots without a live node, as this node sees them.")
        self.log_copies = gauge("log_copies", "Copies that each stream of the log should have.")
        self.current_log_copies = gauge(
            "log_copies_current", "Current copies of the stream that has the fewest; 0 without an answer."
        )
        self.damaged_log_servers = gauge(
            "damaged_log_servers", "Log servers that lacked records when they led, as this node found."
        )
        self.log_behind = gauge(
            "log_behind_agents", "Agents of this node whose log lacks records or was damaged (LOG_BEHIND)."
        )
        self.append_s = histogram("append_seconds", "Duration of appends of a record to the log, in seconds.")
        self.records = counter("records_total", "Records appended to the log.", "kind")
        self.record_bytes = counter("record_bytes_total", "Bytes of records appended to the log.", "kind")
        self.in_doubt = counter(
            "appends_in_doubt_total", "Appends of which it is not known whether they succeeded."
        )
        self.store_behind = counter(
            "store_behind_total", "Agents closed because their file may lack a commit (STORE_BEHIND)."
        )
        self.repaired_logs = counter(
            "repaired_logs_total",
            "Logs that had lost records and were repaired from the file of their agent.",
        )
        self.take_s = histogram("take_seconds", "Duration of taking an agent from the log, in seconds.")
        self.copies = counter(
            "copies_total", "Agents whose copies this node completed before they moved to it."
        )
        self.moved_slots = counter(
            "slots_moved_total", "Slots that this node took or gave away.", "direction"
        )

    def appended(self, kind: str, size: int, took_s: float) -> None:
        """Count a record of `size` bytes that was appended."""
        self.append_s.observe(took_s)
        self.records.labels(kind).inc()
        self.record_bytes.labels(kind).inc(size)

    def moved(self, direction: str, count: int) -> None:
        """Count slots that were `taken` or `given`."""
        self.moved_slots.labels(direction).inc(count)

    def text(self) -> bytes:
        """Return the metrics in the Prometheus text format."""
        return generate_latest(self.registry)


def merged_text(texts: Sequence[bytes]) -> bytes:
    """Return the metrics of several workers as those of one daemon."""
    merged: dict[str, Metric] = {}
    values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
    for text in texts:
        for family in text_string_to_metric_families(text.decode()):
            known = merged.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            is_least = known.name in _LEAST or known.name.endswith("_created")
            combine = max if known.name in _GREATEST else min if is_least else None
            found = values.setdefault(family.name, {})
            for sample in family.samples:
                key = (sample.name, tuple(sample.labels.items()))
                before = found.get(key)
                if before is None:
                    found[key] = sample.value
                else:
                    found[key] = combine(before, sample.value) if combine else before + sample.value
    for name, family in merged.items():
        for (sample_name, labels), value in values[name].items():
            family.add_sample(sample_name, dict(labels), value)
    return generate_latest(_Collected(list(merged.values())))


class _Collected(CollectorRegistry):
    """A registry of metrics that have been collected."""

    def __init__(self, families: list[Metric]) -> None:
        super().__init__()
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        return self._families


EVENT_COUNTERS: dict[str, tuple[str, str]] = {
    EventKind.BATCH_DIGESTED: ("batches", "digested"),
    EventKind.BATCH_PARKED: ("batches", "parked"),
    EventKind.BATCH_RETRIED: ("batches", "retried"),
    EventKind.NODE_CREATED: ("nodes", "created"),
    EventKind.NODE_COMPRESSED: ("nodes", "shortened"),
    EventKind.NODE_FORGOTTEN: ("nodes", "forgotten"),
    EventKind.NODE_CORRECTED: ("nodes", "corrected"),
    EventKind.MEMORY_ERASED: ("nodes", "erased"),
    EventKind.NODE_PINNED: ("pins", "pinned"),
    EventKind.NODE_UNPINNED: ("pins", "unpinned"),
    EventKind.ENTITY_MADE: ("entities", "made"),
    EventKind.ENTITY_GONE: ("entities", "gone"),
    EventKind.LINK_BROKEN: ("links_broken", ""),
    EventKind.PASS_COMPLETED: ("passes", ""),
    EventKind.STATEMENT_CLOSED: ("statement_changes", "closed"),
    EventKind.CONFLICT_FOUND: ("statement_changes", "contested"),
    EventKind.CONFLICT_SETTLED: ("statement_changes", "settled"),
    EventKind.FACT_PROMOTED: ("statement_changes", "promoted"),
    EventKind.FACT_DEMOTED: ("statement_changes", "demoted"),
    EventKind.ENTITIES_MERGED: ("statement_changes", "merged"),
    EventKind.ENTITIES_SEPARATED: ("statement_changes", "separated"),
}
"""The metric and the label value that count each kind of event."""
