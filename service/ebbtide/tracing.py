"""Traces by OpenTelemetry: the only module that imports it, and only when an endpoint is set.

A request is a span, taking up the caller's `traceparent`; below it stand the verb, its jobs with the time they waited
for the agent's turn, commits, calls of models. The digest of a batch is told below the request that brought it, as long
as the daemon that accepted it runs. Attributes are ids, numbers and words, never content; agents' ids only where asked
for.

Spans are sent in the background, and those that find no collector are dropped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ebbtide import __version__
from ebbtide.errors import Precondition
from ebbtide.settings import TelemetrySettings
from ebbtide.telemetry import Span, trace_with

MISSING = (
    "telemetry.otlp_endpoint is set, but the extra `traces` is not installed: pip install 'ebbtide[traces]'"
)


class _Kept:
    """A span of OpenTelemetry behind our port."""

    def __init__(self, kept: Any) -> None:
        self._kept = kept

    def set(self, name: str, value: str | int | float | bool) -> None:
        """Tell something more of it."""
        self._kept.set_attribute(name, value)


class OpenTelemetry:
    """Keeps spans and sends them to a collector."""

    def __init__(self, settings: TelemetrySettings, exporter: Any = None) -> None:
        """MISSING_EXTRA where the SDK is not installed. `exporter` takes spans at once, for tests."""
        try:
            from opentelemetry import trace
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
            from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

            if exporter is None:
                from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        except ImportError as error:
            raise Precondition(MISSING, reason="MISSING_EXTRA") from error
        resource = Resource.create({"service.name": settings.service_name, "service.version": __version__})
        # Of our own, not the process's: two daemons in one process share nothing.
        self._provider = TracerProvider(
            resource=resource, sampler=ParentBasedTraceIdRatio(settings.sample_ratio), shutdown_on_exit=False
        )
        processor = (
            BatchSpanProcessor(OTLPSpanExporter(endpoint=settings.otlp_endpoint))
            if exporter is None
            else SimpleSpanProcessor(exporter)
        )
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("ebbtide", __version__)
        self._propagator = TraceContextTextMapPropagator()
        self._trace = trace
        self._agent_ids = settings.agent_ids

    @contextlib.contextmanager
    def span(self, name: str, parent: str, attributes: dict[str, Any]) -> Iterator[Span]:
        """A span for the length of a block; an error that ends it is told by its type only."""
        context = self._propagator.extract({"traceparent": parent}) if parent else None
        told = {key: value for key, value in attributes.items() if key != "agent_id" or self._agent_ids}
        with self._tracer.start_as_current_span(
            name, context=context, attributes=told, record_exception=False, set_status_on_exception=False
        ) as kept:
            try:
                yield _Kept(kept)
            except BaseException as error:
                # Its message may quote what was said.
                kept.set_attribute("error.type", getattr(error, "reason", "") or type(error).__name__)
                kept.set_status(self._trace.StatusCode.ERROR)
                raise

    def origin(self) -> str:
        """The `traceparent` of the span around."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return carrier.get("traceparent", "")

    def close(self) -> None:
        """Send what is left, for a moment."""
        self._provider.shutdown()


def start_tracing(settings: TelemetrySettings) -> OpenTelemetry | None:
    """Trace from now on, if an endpoint is set."""
    if not settings.otlp_endpoint:
        return None
    tracing = OpenTelemetry(settings)
    trace_with(tracing)
    return tracing


def stop_tracing(tracing: OpenTelemetry) -> None:
    """Trace no more."""
    trace_with(None)
    tracing.close()
