"""A request has spans from its caller to the model, over each transport, without content and without ids."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ebbtide.errors import Precondition
from ebbtide.settings import TelemetrySettings
from ebbtide.telemetry import is_traced, span, trace_with
from ebbtide.tracing import OpenTelemetry, start_tracing, stop_tracing
from ebbtide.v1 import remember_pb2
from tests.support.callers import SERVICE, grpc_served, rest_in
from tests.support.in_process import ask, service_in, settle, tell

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
HELLO = {"messages": [{"role": "user", "content": "I moved to Lisbon in May."}]}


@pytest.fixture
async def kept() -> AsyncIterator[InMemorySpanExporter]:
    """Collect every span of the test in memory."""
    exporter = InMemorySpanExporter()
    tracing = OpenTelemetry(TelemetrySettings(), exporter)
    trace_with(tracing)
    yield exporter
    trace_with(None)
    tracing.close()


def spans(kept: InMemorySpanExporter) -> list[Any]:
    return list(kept.get_finished_spans())


def path_of(span: Any, everything: list[Any]) -> list[str]:
    """Return the names from our outermost span down to this one."""
    by_id = {one.context.span_id: one for one in everything}
    names = [span.name]
    while span.parent is not None and span.parent.span_id in by_id:
        span = by_id[span.parent.span_id]
        names.insert(0, span.name)
    return names


async def over_rest(path: Path) -> None:
    async with rest_in(path) as call:
        done = await call("POST", "/v1/agents/ann/remember", HELLO, headers={"traceparent": PARENT})
        assert done.status_code == 202
        await settle(call.service, "ann")


async def over_grpc(path: Path) -> None:
    async with (
        service_in(path) as service,
        grpc_served(service) as server,
        grpc.aio.insecure_channel(server.target) as channel,
    ):
        kind = remember_pb2.RememberRequest
        request = kind(agent_id="ann", messages=[{"role": 1, "content": "I moved to Lisbon in May."}])
        await channel.unary_unary(
            f"/{SERVICE.full_name}/Remember",
            request_serializer=kind.SerializeToString,
            response_deserializer=remember_pb2.RememberResponse.FromString,
        )(request, metadata=(("traceparent", PARENT),))
        await settle(service, "ann")


@pytest.mark.parametrize(("way", "first"), [(over_rest, "rest.request"), (over_grpc, "rpc.request")])
async def test_one_trace_leads_from_the_caller_to_the_model(
    tmp_path: Path, kept: InMemorySpanExporter, way: Any, first: str
) -> None:
    """Request, operation, job with its wait, and commit; below the same request, digest, model call, and its commit."""
    await way(tmp_path)
    everything = [one for one in spans(kept) if f"{one.context.trace_id:032x}" == TRACE]
    paths = {tuple(path_of(one, everything)) for one in everything}
    verb = (first, "verb remember")
    assert (*verb, "job", "commit") in paths
    assert any(path[:2] == verb and path[-2:] == ("digest", "model.call") for path in paths)
    assert any(path[-3:] == ("digest", "job", "commit") for path in paths)
    jobs = [one for one in everything if one.name == "job"]
    assert all(one.attributes["queue_wait_ms"] >= 0 for one in jobs)
    [request] = [one for one in everything if one.name == first]
    assert f"{request.parent.span_id:016x}" == "b7ad6b7169203331"
    assert request.attributes["request_id"]
    told = str([(one.name, dict(one.attributes)) for one in spans(kept)])
    assert "Lisbon" not in told
    assert "'ann'" not in told


async def test_names_of_the_conventions_and_errors_by_reason(
    tmp_path: Path, kept: InMemorySpanExporter
) -> None:
    """A recall is named `search_memory`. A failed span contains the reason, not the message."""
    async with rest_in(tmp_path) as call:
        await tell(call.service, "ann", "I moved to Lisbon in May.")
        await call("POST", "/v1/agents/ann/recall", {"keywords": ["Lisbon"]})
        await call("GET", "/v1/agents/nobody")
    named = {one.name: one for one in spans(kept)}
    assert named["verb recall"].attributes["gen_ai.operation.name"] == "search_memory"
    assert named["verb get_agent"].attributes["error.type"] == "AGENT_NOT_FOUND"
    assert named["verb get_agent"].events == ()


async def test_agent_ids_are_traced_only_if_configured(tmp_path: Path) -> None:
    """With `telemetry.agent_ids` the span of a digest names its agent."""
    exporter = InMemorySpanExporter()
    tracing = OpenTelemetry(TelemetrySettings(agent_ids=True), exporter)
    trace_with(tracing)
    try:
        async with service_in(tmp_path) as service:
            await tell(service, "ann", "I moved to Lisbon in May.")
            await settle(service, "ann")
    finally:
        trace_with(None)
        tracing.close()
    assert [s.attributes["agent_id"] for s in spans(exporter) if s.name == "digest"] == ["ann"]


async def test_spans_reach_a_collector() -> None:
    """With an endpoint, spans are sent by OTLP over HTTP, at the latest at the end."""
    bodies: list[bytes] = []

    async def collect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        bodies.append(await reader.readexactly(length))
        assert "content-encoding" not in head
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(collect, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        settings = TelemetrySettings(otlp_endpoint=f"http://127.0.0.1:{port}/v1/traces", service_name="here")
        tracing = start_tracing(settings)
        assert tracing is not None
        with span("job"):
            pass
        await asyncio.to_thread(stop_tracing, tracing)
    assert not is_traced()
    sent = ExportTraceServiceRequest.FromString(bodies[0])
    [scope] = sent.resource_spans[0].scope_spans
    assert [span.name for span in scope.spans] == ["job"]


async def test_nothing_is_traced_without_an_endpoint(tmp_path: Path) -> None:
    """There is no span, and OpenTelemetry is not even imported."""
    assert start_tracing(TelemetrySettings()) is None
    script = (
        "import sys, ebbtide.daemon; from ebbtide.telemetry import span, origin\n"
        "with span('job') as told: told.set('a', 1)\n"
        "assert origin() == ''\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry.sdk')])"
    )
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stdout == "[]\n", done.stderr
    async with service_in(tmp_path) as service:
        await tell(service, "ann", "The kettle is blue.")
        await settle(service, "ann")
        assert (await ask(service, "ann", "kettle")).text


async def test_an_endpoint_without_the_extra_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MISSING_EXTRA at the start names the package to install."""
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(Precondition) as caught:
        async with service_in(tmp_path, telemetry={"otlp_endpoint": "http://127.0.0.1:9/v1/traces"}):
            pass
    assert caught.value.reason == "MISSING_EXTRA"
    assert "ebbtide[traces]" in caught.value.message
