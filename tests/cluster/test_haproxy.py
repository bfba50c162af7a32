"""The configuration of deploy/cluster for HAProxy, in front of three nodes: one is stopped, one is killed."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import httpx
import pytest

from ebbtide.v1 import memory_service_pb2_grpc, remember_pb2
from tests.cluster.test_real_servers import body_of, messages_of
from tests.support.cluster import Cluster
from tests.support.log_servers import HOST, free_ports
from tests.support.node import ROOT, skip_locally
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.full, pytest.mark.chaos, pytest.mark.timeout(300)]

CONFIGURATION = ROOT / "deploy" / "cluster" / "haproxy.cfg"
LEASE_S = 3.0
RETRIED_S = 60.0
PHASE_S = 8.0
"""How long clients write after each fault."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), lease_s=LEASE_S) as cluster:
        yield cluster.start_nodes()


@contextlib.contextmanager
def proxy(cluster: Cluster, folder: Path) -> Iterator[tuple[str, str]]:
    """Run HAProxy in front of the nodes. Yield its addresses for REST and gRPC."""
    program = shutil.which("haproxy")
    if program is None:
        skip_locally("haproxy is not installed")
    assert program is not None
    rest, rpc = free_ports(2)
    text = CONFIGURATION.read_text().replace("bind :8420", f"bind {HOST}:{rest}")
    text = text.replace("bind :8421", f"bind {HOST}:{rpc}")
    for node in cluster.nodes:
        ports = {"8420": node.url.rpartition(":")[2], "8421": node.grpc_target.rpartition(":")[2]}
        text = re.sub(rf"{node.name}:(842[01])", lambda found: f"{HOST}:{ports[found[1]]}", text)  # noqa: B023
    assert "8420" not in text.replace(str(rest), "")
    file = folder / "haproxy.cfg"
    file.write_text(text)
    with (folder / "haproxy.log").open("wb") as log:
        process = subprocess.Popen([program, "-db", "-f", str(file)], stdout=log, stderr=log)
    try:
        wait_until(lambda: answers(f"http://{HOST}:{rest}/readyz"), 30, 0.1)
        yield f"http://{HOST}:{rest}", f"{HOST}:{rpc}"
    finally:
        process.kill()
        process.wait()


def answers(url: str) -> bool:
    """Return whether a page is there."""
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(url).status_code == 200
    return False


class Clients:
    """Clients that write through the proxy over REST and gRPC, and one that follows the events of an agent."""

    def __init__(self, url: str, target: str, agents: list[str]) -> None:
        self._url, self._target, self._agents = url, target, agents
        self.errors: Counter[str] = Counter()
        """The responses to the clients that were no successes."""
        self.acknowledged: dict[str, list[str]] = {agent: [] for agent in agents}
        self.events: list[int] = []
        self._is_over = threading.Event()
        writes = [(self._over_rest, agent) for agent in agents] + [
            (self._over_grpc, agent) for agent in agents
        ]
        self._threads = [threading.Thread(target=self._write, args=one, daemon=True) for one in writes]
        self._follower = threading.Thread(target=self._follow, args=(agents[0],), daemon=True)

    def __enter__(self) -> Clients:
        for one in (*self._threads, self._follower):
            one.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for one in self._threads:
            one.join(RETRIED_S)
        assert not any(one.is_alive() for one in self._threads), "a client had no answer"

    def seen(self) -> str:
        """Return the errors since the last call, and reset them."""
        found = ", ".join(f"{what} x{count}" for what, count in sorted(self.errors.items()))
        self.errors.clear()
        return found or "none"

    def _write(self, send: Callable[[str, str], str], agent: str) -> None:
        for number in range(100_000):
            if self._is_over.is_set():
                return
            text = f"The boat {number} of {send.__name__} is blue."
            while error := send(agent, text):
                self.errors[error] += 1
                time.sleep(0.2)
            self.acknowledged[agent].append(text)
            time.sleep(0.02)

    def _over_rest(self, agent: str, text: str) -> str:
        """Return the error of one attempt; empty for a success."""
        try:
            response = httpx.post(f"{self._url}/v1/agents/{agent}/remember", json=body_of(text), timeout=15)
        except httpx.TransportError as error:
            return f"REST {type(error).__name__}"
        return "" if response.status_code == 202 else f"REST {response.status_code}"

    def _over_grpc(self, agent: str, text: str) -> str:
        request = remember_pb2.RememberRequest(agent_id=agent, idempotency_key=text)
        request.messages.add(role="ROLE_USER", content=text)
        with grpc.insecure_channel(self._target) as channel:
            stub = memory_service_pb2_grpc.MemoryServiceStub(channel)  # type: ignore[no-untyped-call]
            try:
                stub.Remember(request, timeout=15)
            except grpc.RpcError as error:
                return f"gRPC {error.code().name}"
        return ""

    def _follow(self, agent: str) -> None:
        """Follow the events of an agent, and connect again after the last one."""
        while not self._is_over.is_set():
            headers = {"Last-Event-ID": str(self.events[-1] if self.events else 0)}
            try:
                with httpx.stream(
                    "GET", f"{self._url}/v1/agents/{agent}/events", headers=headers, timeout=30
                ) as stream:
                    if stream.status_code != 200:
                        self.errors[f"events {stream.status_code}"] += 1
                        time.sleep(0.2)
                        continue
                    self.events += (int(line[4:]) for line in stream.iter_lines() if line.startswith("id: "))
                self.errors["events ended"] += 1
            except httpx.TransportError as error:
                self.errors[f"events {type(error).__name__}"] += 1
                time.sleep(0.2)


def test_clients_behind_haproxy_lose_nothing(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Errors are such that a client tries again; each write takes effect once, and each event arrives once."""
    agents = [cluster.agent_of(node, "proxied") for node in cluster.nodes]
    _, stopped, killed = cluster.nodes
    seen: dict[str, str] = {}
    with proxy(cluster, tmp_path) as (url, target):
        for agent in agents:
            wait_until(lambda agent=agent: httpx.put(f"{url}/v1/agents/{agent}", json={}).is_success, 30)  # type: ignore[misc]
        with Clients(url, target, agents) as clients:

            def more(phase: str) -> None:
                before = {agent: len(texts) for agent, texts in clients.acknowledged.items()}
                time.sleep(PHASE_S)
                wait_until(
                    lambda: all(len(clients.acknowledged[one]) > before[one] + 10 for one in agents),
                    RETRIED_S,
                )
                kinds = set(clients.errors)
                seen[phase] = clients.seen()
                unexpected = kinds - {
                    *("REST 503", "REST 502", "REST 504", "gRPC UNAVAILABLE", "events 503", "events 502"),
                    *(f"{one} {name}" for one in ("REST", "events") for name in TRANSPORT),
                    "events ended",
                }
                assert not unexpected

            more("none")
            assert seen["none"] == "none"
            stopped.stop()
            more("stopped")
            killed.kill()
            more("killed")
        first = cluster.nodes[0]
        for agent in agents:
            found = messages_of(first, agent)
            assert sorted(found) == sorted(clients.acknowledged[agent])
    assert clients.events == list(range(1, len(clients.events) + 1)), "an event is missing, or came twice"
    with capsys.disabled():
        print(f"\nerrors by phase: {seen}; acknowledged: {sum(map(len, clients.acknowledged.values()))}")


TRANSPORT = ("ReadError", "RemoteProtocolError", "ConnectError", "ReadTimeout")
