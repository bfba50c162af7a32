"""Traces with OpenTelemetry. This is the only module that imports it, and only if an endpoint is set.

A request is a span that continues the caller's `traceparent`. Its children are the verb, its jobs with their waiting
times, commits and model calls. The digest of a batch belongs to the request that brought it, until the daemon restarts.
Attributes are ids, numbers and words, never content; agent ids only if the settings allow it.

Spans are sent in the background. Without a collector they are dropped.
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
    """An OpenTelemetry span as our `Span`."""

    def __init__(self, kept: Any) -> None:
        self._kept = kept

    def set(self, name: str, value: str | int | float | bool) -> None:
        """Add an attribute."""
        self._kept.set_attribute(name, value)


class OpenTelemetry:
    """Records spans and sends them to a collector."""

    def __init__(self, settings: TelemetrySettings, exporter: Any = None) -> None:
        """Raise MISSING_EXTRA if the SDK is not installed. `exporter` receives spans immediately, for tests."""
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
        # Not the process-wide provider: two daemons in one process share nothing.
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
        """Return a span for a block. An error that ends the block is recorded by its reason or type."""
        context = self._propagator.extract({"traceparent": parent}) if parent else None
        recorded = {key: value for key, value in attributes.items() if key != "agent_id" or self._agent_ids}
        with self._tracer.start_as_current_span(
            name, context=context, attributes=recorded, record_exception=False, set_status_on_exception=False
        ) as kept:
            try:
                yield _Kept(kept)
            except BaseException as error:
                # Its message may quote content.
                kept.set_attribute("error.type", getattr(error, "reason", "") or type(error).__name__)
                kept.set_status(self._trace.StatusCode.ERROR)
                raise

    def origin(self) -> str:
        """Return the `traceparent` of the current span."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return carrier.get("traceparent", "")

    def close(self) -> None:
        """Send the remaining spans, for a short time."""
        self._provider.shutdown()


def start_tracing(settings: TelemetrySettings) -> OpenTelemetry | None:
    """Start tracing if an endpoint is set."""
    if not settings.otlp_endpoint:
        return None
    tracing = OpenTelemetry(settings)
    trace_with(tracing)
    return tracing


def stop_tracing(tracing: OpenTelemetry) -> None:
    """Stop tracing."""
    trace_with(None)
    tracing.close()
