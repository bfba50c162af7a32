"""Clients that send half a request, read nothing, or never stop are disconnected, and do not affect other clients."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from ebbtide.v1 import events_pb2, inspect_pb2
from tests.support.onlooker import LONGEST_RECALL_S, LONGEST_WAIT_S
from tests.support.process import Daemon, running_daemon
from tests.support.silent import MIB, Cost, HalfCaller, connected, is_closed, many, resident_bytes, watched
from tests.support.tier import amount
from tests.support.waiting import Stopwatch, wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(600)]

MANY = amount("EBBTIDE_SILENT_CLIENTS", 24, 60)
HEADER_S = 1
SEND_S = 2
PATIENT = {"EMBEDDING__MODEL": "off"}
SETTINGS = {
    **PATIENT,
    "SERVER__HEADER_TIMEOUT_MS": HEADER_S * 1000,
    "SERVER__SEND_TIMEOUT_MS": SEND_S * 1000,
    "SERVER__MAX_BUFFERED_BYTES": 16 * MIB,
}
GROWTH_BYTES = 64 * MIB + MANY * (192 << 10)
"""The most memory that silent clients may use: four times the limit for buffered data, and 192 KiB per connection."""

NODES = b"GET /v1/agents/ann/nodes?page_size=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
SERVICE = "/ebbtide.v1.MemoryService/"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with short deadlines, an agent whose listing is 0.6 MB, and another agent."""
    with running_daemon(tmp_path_factory.mktemp("silent") / "data", SETTINGS) as made:
        fill(made)
        yield made
        assert '"level": "error"' not in made.log
        assert "Traceback" not in made.log
        assert made.stop() == 0


def fill(daemon: Daemon) -> None:
    """Create an agent with a large listing, and a small one."""
    daemon.remember("ben", "The kettle is blue.")
    sentence = " ".join("the kettle stood on the green shelf" for _ in range(12))
    daemon.remember("ann", *(f"Fact {number}: {sentence}" for number in range(1000)))
    daemon.flush("ann")
    daemon.flush("ben")


def descriptors(daemon: Daemon) -> int:
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def sender(daemon: Daemon, data: bytes) -> Callable[[], socket.socket]:
    """Return a function that connects a client, sends the data without blocking, and reads nothing."""

    def make() -> socket.socket:
        made = connected(daemon.url)
        made.setblocking(False)
        with contextlib.suppress(BlockingIOError, ConnectionError):
            made.send(data)
        return made

    return make


def caller(daemon: Daemon, method: str, message: Any, **how: Any) -> Callable[[], socket.socket]:
    """Return a function that connects a gRPC client, calls a method, and reads no byte of the response."""

    def make() -> socket.socket:
        made = HalfCaller(daemon.grpc_target, window=how.get("window", 0))
        made.call(SERVICE + method, message.SerializeToString(), of=how.get("of"))
        return made.socket

    return make


def costs_nothing(daemon: Daemon, make: Callable[[], socket.socket], timeout_s: float) -> Cost:
    """Assert that such clients are closed after the deadline, memory stays flat, and another agent is served."""
    before = descriptors(daemon)
    with watched(daemon, "ben") as cost, many(MANY, make):
        time.sleep(timeout_s / 2)
        wait_until(lambda: descriptors(daemon) <= before + 4, 180)
    assert cost.failures == []
    assert cost.recalls > 0
    assert cost.most_cpu_s < LONGEST_RECALL_S
    assert cost.longest_s < LONGEST_WAIT_S
    assert cost.growth_bytes < GROWTH_BYTES
    return cost


@pytest.mark.parametrize(
    "half",
    [
        b"",
        pytest.param(b"\r\n" * 50, marks=pytest.mark.full),
        pytest.param(
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"a:\r\n" * 100, marks=pytest.mark.full
        ),
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"a:\r\n" * 16_000,
        pytest.param(
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 300_000, marks=pytest.mark.full
        ),
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nHo",
        pytest.param(
            b"GET /nowhere HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 900\r\n\r\n{",
            marks=pytest.mark.full,
        ),
    ],
)
def test_a_partial_head_is_disconnected(daemon: Daemon, half: bytes) -> None:
    """Connections with no data, half a head, too large a head, or half a second head are closed after the deadline."""
    costs_nothing(daemon, sender(daemon, half), SEND_S)


def test_a_head_byte_by_byte_has_one_deadline(daemon: Daemon) -> None:
    """A client that sends single bytes gets no more time: the deadline counts from the first byte."""
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Padding: " + b"x" * 1000
    watch = Stopwatch()
    with connected(daemon.url) as client:
        for byte in head:
            with contextlib.suppress(ConnectionError):
                client.send(bytes([byte]))
            if is_closed(client):
                break
            time.sleep(0.05)
        assert HEADER_S - 0.5 < watch.s < HEADER_S + 10


@pytest.mark.parametrize(
    "request_of_much",
    [
        pytest.param(NODES, id="listing"),
        pytest.param(NODES * 1000, id="pipelined listings", marks=pytest.mark.full),
        pytest.param(
            b"GET /docs/files/swagger-ui-bundle.js HTTP/1.1\r\nHost: localhost\r\n\r\n",
            id="file",
            marks=pytest.mark.full,
        ),
        pytest.param(
            b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000,
            id="pipelined documents",
            marks=pytest.mark.full,
        ),
        # Connections refused by the limits on streams and transfers close without the deadline.
        pytest.param(
            b"GET /v1/agents/ann/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", id="events"
        ),
        pytest.param(
            b"GET /v1/agents/ann/export HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            id="export",
            marks=pytest.mark.full,
        ),
    ],
)
def test_an_unread_response_is_cancelled(daemon: Daemon, request_of_much: bytes) -> None:
    """A client that reads nothing is closed after the deadline, with at most one piece of the response in memory."""
    costs_nothing(daemon, sender(daemon, request_of_much), SEND_S)


def test_bodies_that_do_not_arrive_are_bounded_together(daemon: Daemon) -> None:
    """Large bodies without their end use bounded memory together."""
    head = "POST /v1/agents/ann/remember HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    data = f"{head}Content-Length: {8 * MIB}\r\n\r\n".encode() + b" " * (8 * MIB - 9)

    def make() -> socket.socket:
        made = connected(daemon.url)
        with contextlib.suppress(ConnectionError):
            made.sendall(data)
        return made

    with watched(daemon, "ben") as cost, many(MANY // 3, make):
        time.sleep(1)
    assert cost.failures == []
    assert cost.most_cpu_s < LONGEST_RECALL_S
    assert cost.longest_s < LONGEST_WAIT_S
    assert cost.growth_bytes < GROWTH_BYTES
    assert daemon.client.get("/metrics").text.count('transport="rest",cause="bytes"') or (
        'ebbtide_closed_connections_total{cause="bytes",transport="rest"}'
        in daemon.client.get("/metrics").text
    )


@pytest.mark.parametrize(
    "window",
    [
        pytest.param(0, id="no window"),
        pytest.param((1 << 31) - 1, id="nothing read", marks=pytest.mark.full),
    ],
)
def test_an_unread_grpc_response_is_cancelled(daemon: Daemon, window: int) -> None:
    """A gRPC client that grants no window, or does not read its socket, is closed after the deadline."""
    listing = inspect_pb2.ListNodesRequest(agent_id="ann", page_size=1000)
    costs_nothing(daemon, caller(daemon, "ListNodes", listing, window=window), SEND_S)


def test_an_unread_grpc_stream_is_cancelled(daemon: Daemon) -> None:
    """An event stream to a client that grants no window is closed after the deadline."""
    watching = events_pb2.WatchEventsRequest(agent_id="ann")
    costs_nothing(daemon, caller(daemon, "WatchEvents", watching), SEND_S)


def test_a_grpc_client_that_only_answers_pings_is_disconnected(daemon: Daemon) -> None:
    """A client that answers pings but grants no window for the response is closed too."""
    half = HalfCaller(daemon.grpc_target)
    request = inspect_pb2.ListNodesRequest(agent_id="ann", page_size=1000)
    half.call(SERVICE + "ListNodes", request.SerializeToString())
    watch = Stopwatch()
    with contextlib.closing(half.socket):
        while watch.s < SEND_S + 20 and not is_closed(half.socket):
            half.answer_pings()
            time.sleep(0.05)
        assert SEND_S - 0.5 < watch.s < SEND_S + 15


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(b"", marks=pytest.mark.full),
        b"PRI * HTTP",
        pytest.param(b"GET / HTTP/1.1\r\n", marks=pytest.mark.full),
    ],
)
def test_a_partial_grpc_preface_is_disconnected(daemon: Daemon, start: bytes) -> None:
    """A connection to the gRPC port with only a part of the preface is closed after the deadline."""

    def make() -> socket.socket:
        made = connected(daemon.grpc_target)
        made.sendall(start)
        return made

    costs_nothing(daemon, make, HEADER_S)


def test_a_partial_handshake_is_disconnected(tmp_path: Path) -> None:
    """Half a TLS handshake is closed after the deadline on both ports, and other handshakes succeed."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    files = {
        "ACCESS__TLS_CERT_FILE": str(tmp_path / "cert.pem"),
        "ACCESS__TLS_KEY_FILE": str(tmp_path / "key.pem"),
    }
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with running_daemon(tmp_path / "data", {**SETTINGS, **files}) as daemon:

        def is_served() -> bool:
            with httpx.Client(base_url=daemon.url, verify=context, timeout=5) as client:
                return client.get("/healthz").status_code == 200

        assert is_served()
        before = descriptors(daemon)
        for target in (daemon.url, daemon.grpc_target):

            def half(target: str = target) -> socket.socket:
                made = connected(target)
                # The first bytes of a ClientHello.
                made.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01")
                return made

            with many(MANY, half):
                assert is_served()
                wait_until(lambda: descriptors(daemon) <= before + 4, 30)
        with many(MANY, lambda: connected(daemon.url)):
            watch = Stopwatch()
            assert daemon.stop() == 0
            assert watch.s < 15, "a stop waits for no handshake"


def test_silent_connections_make_room_for_others(tmp_path: Path) -> None:
    """At the limit, idle connections are closed for new ones; connections with a request in progress are not."""
    limits = {"SERVER__MAX_CONNECTIONS": 20, "SERVER__HEADER_TIMEOUT_MS": 600_000}
    with running_daemon(tmp_path / "data", {**PATIENT, **limits}) as daemon:
        daemon.remember("ben", "The kettle is blue.")
        with many(60, lambda: connected(daemon.url)) as clients:
            time.sleep(1.2)
            for _ in range(5):
                answer = httpx.get(f"{daemon.url}/healthz", timeout=5)
                assert answer.status_code == 200
            wait_until(lambda: sum(map(is_closed, clients)) >= 41, 10)
        with many(
            60, sender(daemon, b"GET /v1/agents/ben/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        ) as clients:
            wait_until(lambda: sum(map(is_closed, clients)) >= 40, 10)
            refused = httpx.get(f"{daemon.url}/healthz", timeout=5)
            assert (refused.status_code, refused.json()["error"]["reason"]) == (503, "SERVER_BUSY")
            assert refused.headers["cross-origin-resource-policy"] == "same-origin"
            assert int(refused.headers["retry-after"]) >= 1
        wait_until(lambda: httpx.get(f"{daemon.url}/healthz", timeout=5).status_code == 200, 10)
        for _ in range(3):
            with many(60, lambda: connected(daemon.grpc_target)) as clients:
                wait_until(lambda: sum(map(is_closed, clients)) >= 40, 10)
        assert daemon.stop() == 0


@pytest.mark.full
def test_a_stop_does_not_wait_for_clients_that_read_nothing(tmp_path: Path) -> None:
    """With a grace period of a minute, silent clients over both ports delay a stop only briefly."""
    with running_daemon(tmp_path / "data", {**PATIENT, "SERVER__SHUTDOWN_GRACE_S": 60}) as daemon:
        fill(daemon)
        listing = inspect_pb2.ListNodesRequest(agent_id="ann", page_size=1000)
        watching = events_pb2.WatchEventsRequest(agent_id="ann")
        makers = (
            sender(daemon, NODES * 10),
            sender(daemon, b"GET /v1/agents/ann/events HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            sender(daemon, b"GET /heal"),
            caller(daemon, "ListNodes", listing),
            caller(daemon, "ListNodes", listing, of=100),
            caller(daemon, "WatchEvents", watching),
        )
        with contextlib.ExitStack() as held:
            for make in makers:
                held.enter_context(many(10, make))
            time.sleep(1.5)
            watch = Stopwatch()
            assert daemon.stop() == 0
            assert watch.s < 30, "half of the grace period, for a busy machine"
        assert '"level": "error"' not in daemon.log


def test_a_slow_reader_is_served(daemon: Daemon) -> None:
    """A client that reads slowly gets a complete large response, also after the deadline."""
    with connected(daemon.url) as client:
        client.sendall(
            b"GET /docs/files/swagger-ui-bundle.js HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        received, watch = 0, Stopwatch()
        while part := client.recv(16 << 10):
            received += len(part)
            time.sleep(0.01)
    assert watch.s > SEND_S
    assert received > 1_600_000


def test_half_requests_over_grpc_are_bounded(daemon: Daemon) -> None:
    """Half-sent requests over gRPC use bounded memory; the oldest are dropped."""
    request = inspect_pb2.ListNodesRequest(agent_id="ann").SerializeToString()
    before = resident_bytes(daemon)

    def make() -> socket.socket:
        half = HalfCaller(daemon.grpc_target)
        half.call(SERVICE + "ListNodes", request, of=100)
        return half.socket

    with many(80, make) as clients:
        time.sleep(1.2)
        with many(40, make):
            wait_until(lambda: sum(map(is_closed, clients)) >= 50, 10)
    assert resident_bytes(daemon) < before + GROWTH_BYTES
