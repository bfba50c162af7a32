"""A cluster of three nodes over three real log servers, with one fault at a time.

One test belongs to `make test`: a node is killed. All share the log servers and the nodes; a test undoes its fault.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import msgspec
import pytest

from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cluster.log import LONG_LOG_RECORDS, Kind
from ebbtide.cluster.owners import FixedRouting
from ebbtide.errors import EbbtideError
from ebbtide.forwarding.nodes import NodePeers, Place
from ebbtide.ids import AgentId
from ebbtide.store.directory.data_directory import directory_name
from ebbtide.store.encryption.keys import WrappedKeys
from ebbtide.v1 import agents_pb2, memory_service_pb2_grpc, remember_pb2
from tests.support.cluster import ENCRYPTED, Cluster, Node
from tests.support.forks import run_command
from tests.support.log_servers import LogServer, free_ports, require_nats
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(180)]

LEASE_S = 3.0
APPEND_TIMEOUT_S = 3.0
"""Shorter than by default, so that a test of too few log servers need not wait longer."""
RETRY_TIMEOUT_S = 60.0


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster for all tests."""
    settings = {"CLUSTER__APPEND_TIMEOUT_S": str(APPEND_TIMEOUT_S)}
    with Cluster(tmp_path_factory.mktemp("cluster"), lease_s=LEASE_S, settings=settings) as cluster:
        yield cluster.start_nodes()


@pytest.fixture
def cluster(running: Cluster) -> Iterator[Cluster]:
    """The cluster without faults. After the test its faults are undone."""
    yield running
    for node in running.nodes:
        # Also one that lost its lease to another process: it takes no other one.
        if node.answers and node.client.get("/readyz").status_code != 200:
            node.kill()
    running.heal()


# --- short requests ------------------------------------------------------------------------------------


def persist(request: Callable[[], httpx.Response]) -> httpx.Response:
    """Return the first response that is neither 503 nor a lost connection."""
    found: list[httpx.Response] = []

    def is_answered() -> bool:
        with contextlib.suppress(httpx.TransportError):
            found.append(request())
        return bool(found) and found[-1].status_code != 503

    wait_until(is_answered, RETRY_TIMEOUT_S, 0.1)
    return found[-1]


def body_of(text: str) -> dict[str, Any]:
    """Return a request to remember one message, which can be repeated."""
    return {"messages": [{"role": "user", "content": text}], "idempotency_key": text}


def remember(node: Node, agent: str, text: str) -> None:
    """Append a message through a node, and repeat that until it is acknowledged."""
    response = persist(lambda: node.post(f"{agent}/remember", body_of(text), timeout=10))
    assert response.status_code == 202, response.text


def facts(begin: int, end: int) -> list[str]:
    """Return texts that differ."""
    return [f"The boat number {number} is blue." for number in range(begin, end)]


def messages_of(node: Node, agent: str) -> list[str]:
    """Return the messages of an agent through a node, in order."""
    response = persist(lambda: node.get(f"{agent}/messages", params={"page_size": 1000}))
    assert response.status_code == 200, response.text
    return [one["content"] for one in response.json()["messages"]]


def listed(node: Node) -> set[str]:
    """Return the ids of all agents, as a node lists them."""
    response = persist(lambda: node.client.get("/v1/agents", params={"page_size": 1000}))
    return {one["agent_id"] for one in response.json()["agents"]}


def digested(node: Node, agent: str) -> None:
    """Wait until every batch of an agent is digested."""
    wait_until(lambda: persist(lambda: node.get(agent)).json()["pending_batches"] == 0, RETRY_TIMEOUT_S, 0.1)


@contextlib.contextmanager
def calls(node: Node) -> Iterator[Any]:
    """Yield the gRPC calls of a node."""
    with grpc.insecure_channel(node.grpc_target) as channel:
        yield memory_service_pb2_grpc.MemoryServiceStub(channel)  # type: ignore[no-untyped-call]


# --- without faults ------------------------------------------------------------------------------------


@pytest.mark.full
def test_every_node_serves_every_agent(cluster: Cluster) -> None:
    """Each node accepts requests over REST and gRPC for the agents of all nodes, and lists them all."""
    agents = {cluster.agent_of(node, "everywhere") for node in cluster.nodes}
    assert len({cluster.owner_of(agent).name for agent in agents}) == 3
    for agent in agents:
        expected = []
        for number, node in enumerate(cluster.nodes):
            over_rest, over_grpc = facts(2 * number, 2 * number + 2)
            remember(node, agent, over_rest)
            request = remember_pb2.RememberRequest(agent_id=agent)
            request.messages.add(role="ROLE_USER", content=over_grpc)
            with calls(node) as stub:
                assert stub.Remember(request, timeout=30).batch_id
            expected += [over_rest, over_grpc]
        for node in cluster.nodes:
            assert messages_of(node, agent) == expected
    for node in cluster.nodes:
        assert agents <= listed(node)
        with calls(node) as stub:
            found = stub.ListAgents(agents_pb2.ListAgentsRequest(page_size=1000), timeout=30).agents
            assert agents <= {one.agent_id for one in found}


@pytest.mark.full
def test_events_are_streamed_through_another_node(cluster: Cluster) -> None:
    """An event stream through a node that is not the owner delivers an event while it is open."""
    owner, other, third = cluster.nodes
    agent = cluster.agent_of(owner, "watched")
    remember(owner, agent, "The first boat is red.")
    with (
        httpx.Client(base_url=other.url, timeout=30) as client,
        client.stream("GET", f"/v1/agents/{agent}/events", params={"after": 0}) as stream,
    ):
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = (line for line in stream.iter_lines() if line == "event: BatchDigested")
        next(lines)
        remember(third, agent, "The second boat is green.")
        assert next(lines)


@pytest.mark.full
def test_an_event_stream_ends_when_its_agent_moves(cluster: Cluster) -> None:
    """Its client connects again with the last event it has, and misses none."""
    owner, other, _ = cluster.nodes
    agent = cluster.agent_of(owner, "followed")
    remember(owner, agent, "The first boat is red.")
    digested(owner, agent)
    path, seen = f"/v1/agents/{agent}/events", list[int]()

    def follow(url: str, until: Callable[[str], bool]) -> str:
        after = {"after": str(seen[-1])} if seen else {}
        with (
            httpx.Client(base_url=url, timeout=30) as client,
            client.stream("GET", path, params=after) as stream,
        ):
            for line in stream.iter_lines():
                if line.startswith("id: "):
                    seen.append(int(line.removeprefix("id: ")))
                if until(line):
                    return line
        return ""

    follow(other.url, lambda line: line == "event: BatchDigested")
    drained = threading.Thread(target=cluster.command, args=("drain", owner.name))
    drained.start()
    follow(owner.url, lambda line: "AGENT_MOVING" in line)
    drained.join()
    remember(other, agent, "The second boat is green.")
    digested(other, agent)
    follow(owner.url, lambda line: line == "event: BatchDigested")
    assert seen == list(range(seen[0], seen[0] + len(seen)))
    assert cluster.command("drain", owner.name, "--undo").returncode == 0


@pytest.mark.full
def test_a_request_to_an_owner_that_is_paused_ends_with_its_lease(cluster: Cluster) -> None:
    """It was passed on before the others knew: it is refused, not left open until the owner wakes up."""
    owner, other, _ = cluster.nodes
    agent = cluster.agent_of(owner, "asleep")
    remember(other, agent, "The boat is red.")
    owner.pause()
    try:
        begun_s = time.monotonic()
        response = other.get(f"{agent}/messages", timeout=60)
        assert time.monotonic() - begun_s < 4 * LEASE_S
        assert (response.status_code, response.json()["error"]["reason"]) == (503, "AGENT_MOVING")
        assert messages_of(other, agent) == ["The boat is red."]
    finally:
        owner.resume()


@pytest.mark.full
def test_files_of_a_node_are_used_only_by_nodes_of_its_cluster(cluster: Cluster, tmp_path: Path) -> None:
    """A daemon of its own would write commits that are not in the log."""
    owner = cluster.nodes[0]
    agent = cluster.agent_of(owner, "copied")
    remember(owner, agent, "The boat is red.")
    assert owner.stop() == 0
    copied = shutil.copytree(owner.data_dir, tmp_path / "copied")
    owner.start()
    cluster.settle()
    alone = run_command("serve", "--data-dir", str(copied), env={"EBBTIDE_ENCRYPTION__MASTER_KEY": "6d" * 32})
    assert alone.returncode == ExitCode.REFUSED, alone.stderr
    assert "copies of the logs of the cluster ebbtide" in alone.stderr
    assert messages_of(cluster.nodes[1], agent) == ["The boat is red."]


@pytest.mark.full
def test_an_agent_is_restored_through_another_node(cluster: Cluster) -> None:
    """A backup through a node that is not the owner, restored through one that is not the new owner, survives both."""
    first, second, third = cluster.nodes
    agent, copy = cluster.agent_of(first, "original"), cluster.agent_of(second, "restored")
    texts = facts(0, 5)
    for text in texts:
        remember(first, agent, text)
    first.flush(agent)
    file = persist(lambda: third.get(f"{agent}/backup")).content
    remember(third, copy, "This agent is replaced.")
    response = persist(
        lambda: third.client.post(
            f"/v1/agents/{copy}/restore",
            params={"replace": True, "rename": True},
            content=file,
            headers={"content-type": "application/octet-stream"},
        )
    )
    assert response.is_success, response.text
    assert [messages_of(node, copy) for node in cluster.nodes] == [texts] * 3
    second.kill()
    assert messages_of(third, copy) == texts
    remember(first, copy, "This came after the kill.")
    assert messages_of(third, copy) == [*texts, "This came after the kill."]


@pytest.mark.full
def test_an_import_gives_an_agent_a_new_key(cluster: Cluster) -> None:
    """An export that replaces its agent is encrypted with another key; the log servers have no other one."""
    owner, other, third = cluster.nodes
    agent, texts = cluster.agent_of(owner, "rekeyed"), facts(0, 3)
    for text in texts:
        remember(other, agent, text)
    owner.flush(agent)
    subject = cluster.names.data_keys(directory_name(AgentId(agent)))

    def wrapped() -> WrappedKeys:
        found = cluster.servers.read(subject)
        assert found is not None
        return msgspec.json.decode(found[0], type=WrappedKeys)

    [before] = wrapped().keys
    file = persist(lambda: other.get(f"{agent}/export")).content
    replaced = persist(
        lambda: third.client.post(
            f"/v1/agents/{agent}/restore",
            params={"replace": True},
            content=file,
            headers={"content-type": "application/octet-stream"},
        )
    )
    assert replaced.is_success, replaced.text
    assert [one.wrapped for one in wrapped().keys] != [before.wrapped] and len(wrapped().keys) == 1
    owner.kill()
    assert messages_of(third, agent) == texts


@pytest.mark.full
def test_a_deleted_agent_stays_deleted(cluster: Cluster) -> None:
    """An agent that is deleted through another node exists on no node, also after its owner was killed."""
    owner, other, third = cluster.nodes
    agent = cluster.agent_of(owner, "deleted")

    def agent_count() -> int:
        return int(json.loads(cluster.command("status", "--json").stdout)["agents"])

    before = agent_count()
    remember(other, agent, "This is deleted.")
    assert agent_count() == before + 1
    assert persist(lambda: other.client.delete(f"/v1/agents/{agent}")).status_code == 200
    for node in cluster.nodes:
        assert persist(lambda node=node: node.get(agent)).status_code == 404  # type: ignore[misc]
        assert agent not in listed(node)
    assert agent_count() == before
    owner.kill()
    for node in (other, third):
        assert persist(lambda node=node: node.get(agent)).status_code == 404  # type: ignore[misc]
        assert agent not in listed(node)
    for node in (other, third):
        records = node.client.get("/v1/erased-agents", params={"agent_id": agent}).json()["records"]
        assert [record["agent_id"] for record in records] == [agent], (
            "every node has the record of a lost one"
        )
    remember(third, agent, "This is a new agent.")
    assert messages_of(other, agent) == ["This is a new agent."]


@pytest.mark.full
def test_deleted_text_leaves_the_log(cluster: Cluster) -> None:
    """After a deletion no record of the log is left that had the text, and the agent continues at the next owner."""
    owner, other, _ = cluster.nodes
    agent = cluster.agent_of(owner, "erased")
    for text in (*facts(0, 3), "Wilhelmina hides the Quittenmus.", *facts(3, 6)):
        remember(other, agent, text)
    digested(other, agent)
    servers, subject = cluster.servers, cluster.names.subject_of(directory_name(AgentId(agent)))
    before = {record.hash for record in servers.after(subject, 0, 1000)}
    response = persist(lambda: other.post(f"{agent}/forget", {"topic": "Quittenmus"}, timeout=30))
    assert response.json()["compacted"] is True, response.text
    wait_until(lambda: servers.after(subject, 0, 1000)[0].kind == Kind.REBASE, RETRY_TIMEOUT_S, 0.1)
    assert not before & {record.hash for record in servers.after(subject, 0, 1000)}
    owner.kill()
    assert messages_of(other, agent) == facts(0, 6)
    assert persist(lambda: other.post(f"{agent}/recall", {"query": "Quittenmus"})).json()["text"] == ""


@pytest.mark.full
def test_agents_of_a_single_machine_are_moved_in(cluster: Cluster, tmp_path: Path) -> None:
    """`ebbtide cluster adopt` moves agents into the cluster, once."""
    node = cluster.nodes[0]
    agents = [f"single{number}" for number in range(3)]
    home = tmp_path / "single"
    with cluster.extra_node(Node("single", home, ENCRYPTED).start()) as single:
        for agent in agents:
            remember(single, agent, f"The cat of {agent} is grey.")
            digested(single, agent)
        assert single.stop() == 0
    adopt = ("adopt", "--data-dir", str(home), "--json")
    assert json.loads(cluster.command(*adopt).stdout)["adopted"] == agents
    again = json.loads(cluster.command(*adopt).stdout)
    assert again["adopted"] == [] and set(again["left_out"]) == set(agents)
    for agent in agents:
        assert messages_of(node, agent) == [f"The cat of {agent} is grey."]
    assert set(agents) <= listed(node)


@pytest.mark.full
def test_a_damaged_log_is_detected_and_repaired(cluster: Cluster, tmp_path: Path) -> None:
    """A log without one of its records is LOG_BEHIND on a node without the file; `repair` restores it from a file."""
    owner, other, _ = cluster.nodes
    agent = cluster.agent_of(owner, "damaged")
    for text in facts(0, 4):
        remember(other, agent, text)
    digested(other, agent)
    servers, subject = cluster.servers, cluster.names.subject_of(directory_name(AgentId(agent)))
    check = ("check", agent, "--secret-file", str(cluster.secret), "--json")

    locked = cluster.command(*check)
    [without_key] = json.loads(locked.stdout)
    assert (locked.returncode, without_key["fault"]) == (ExitCode.UNAVAILABLE, "") and without_key[
        "records"
    ] > 4
    assert "--master-key-file" in without_key["not_compared"]

    def is_intact() -> bool:
        [found] = json.loads(cluster.command(*check, master_key=True).stdout)
        assert (found["owner"], found["fault"]) == (owner.name, "")
        return not found["not_compared"]  # on a busy machine the agent may be moving

    wait_until(is_intact, RETRY_TIMEOUT_S)
    wrong = tmp_path / "secret"
    wrong.write_text("another secret, long enough")
    refused = cluster.command("check", agent, "--secret-file", str(wrong))
    assert refused.returncode == ExitCode.USAGE and "is not the secret of the nodes" in refused.stderr
    record = servers.after(subject, 0, 1000)[2]
    servers._run(servers._erase(cluster.names.stream_of(subject), [record.sequence]), 10)
    for master_key in (True, False):
        found_damage = cluster.command(*check, master_key=master_key)
        assert found_damage.returncode == ExitCode.DAMAGED and "does not follow" in found_damage.stdout
    owner.kill()
    found: list[str] = []

    def is_detected() -> bool:
        response = other.get(f"{agent}/messages", timeout=10)
        found.append("" if response.status_code == 200 else response.json()["error"]["reason"])
        return found[-1] == "LOG_BEHIND"

    wait_until(is_detected, RETRY_TIMEOUT_S, 0.2)
    assert set(found) <= {"AGENT_MOVING", "LOG_BEHIND"}
    repaired = cluster.command("repair", agent, "--data-dir", str(owner.data_dir), "--json", master_key=True)
    assert repaired.returncode == 0, repaired.stderr
    assert messages_of(other, agent) == facts(0, 4)


# --- nodes ---------------------------------------------------------------------------------------------


def test_another_node_continues_after_a_kill(cluster: Cluster) -> None:
    """The owner is killed with work to do: another node has each acknowledged message once and digests the rest."""
    owner, other, third = cluster.nodes
    agent, texts = cluster.agent_of(owner, "killed"), facts(0, 30)
    for text in texts:
        remember(other, agent, text)
    owner.kill()
    assert (owner.data_dir / "work" / directory_name(AgentId(agent))).exists(), "it had batches to digest"
    assert messages_of(other, agent) == texts
    # A request whose answer was lost is sent again.
    remember(third, agent, texts[-1])
    persist(lambda: third.post(f"{agent}/flush", {"timeout_ms": 60_000}))
    batches = other.get(f"{agent}/batches", params={"page_size": 100}).json()["batches"]
    assert [batch["state"] for batch in batches] == ["digested"] * 30
    nodes = other.get(f"{agent}/nodes", params={"page_size": 1000}).json()["nodes"]
    assert [node["content"] for node in nodes] == texts

    owner.start()
    cluster.settle()
    assert cluster.owner_of(agent) is owner
    remember(third, agent, "The last boat is green.")
    assert [messages_of(node, agent) for node in cluster.nodes] == [[*texts, "The last boat is green."]] * 3


@pytest.mark.full
def test_a_paused_owner_answers_nothing_stale(cluster: Cluster) -> None:
    """The owner wakes up beyond its lease: what it then answers is current, and what it acknowledges is stored."""
    owner, other, _ = cluster.nodes
    agent = cluster.agent_of(owner, "paused")
    remember(owner, agent, "This came before the pause.")
    acknowledged: list[str] = []

    def append_through_the_paused(text: str) -> None:
        with contextlib.suppress(httpx.TransportError):
            url = f"{owner.url}/v1/agents/{agent}/remember"
            if httpx.post(url, json=body_of(text), timeout=30).status_code == 202:
                acknowledged.append(text)

    owner.pause()
    late = [threading.Thread(target=append_through_the_paused, args=(f"Late {i}",)) for i in range(8)]
    for thread in late:
        thread.start()
    remember(other, agent, "This came during the pause.")
    assert cluster.owner_of(agent) is not owner
    owner.resume()
    for _ in range(20):
        response = owner.get(f"{agent}/messages")
        assert response.status_code in (200, 503), response.text
        if response.status_code == 200:
            assert "This came during the pause." in response.text
    for thread in late:
        thread.join()
    found = messages_of(other, agent)
    assert found[:2] == ["This came before the pause.", "This came during the pause."]
    assert set(acknowledged) <= set(found)
    assert len(set(found)) == len(found)


@contextlib.contextmanager
def writing(node: Node, agent: str) -> Iterator[list[str]]:
    """Append messages through a node, twenty before the block and twenty after it. Yield the acknowledged ones."""
    is_over, acknowledged, gaps = threading.Event(), list[str](), list[float]()

    def write() -> None:
        while not is_over.is_set():
            begun_s, text = time.monotonic(), f"The boat number {len(acknowledged)} is blue."
            remember(node, agent, text)
            acknowledged.append(text)
            gaps.append(time.monotonic() - begun_s)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_until(lambda: len(acknowledged) >= 20)
        yield acknowledged
        moved = len(acknowledged)
        wait_until(lambda: len(acknowledged) >= moved + 20)
    finally:
        is_over.set()
        writer.join()
    print(f"longest wait of a client: {max(gaps):.2f} s; median {sorted(gaps)[len(gaps) // 2]:.3f} s")


def metric(node: Node, name: str) -> float:
    """Return the value of a metric without labels."""
    lines = node.client.get("/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


@pytest.mark.full
def test_a_stopped_node_hands_its_agents_over(cluster: Cluster) -> None:
    """SIGTERM: no acknowledged write is lost, and the new owner has completed its copy before the agent moves."""
    owner, other, third = cluster.nodes
    agent = cluster.agent_of(owner, "handed")
    before = sum(metric(one, "ebbtide_cluster_copies_total") for one in (other, third))
    with writing(other, agent) as acknowledged:
        assert owner.stop() == 0
    assert messages_of(other, agent) == acknowledged
    assert sum(metric(one, "ebbtide_cluster_copies_total") for one in (other, third)) > before


@pytest.mark.full
def test_a_long_log_is_shortened_when_its_agent_is_idle(cluster: Cluster) -> None:
    """Not while a client writes, and nothing is lost; then another node has less to replay."""
    owner, other, _ = cluster.nodes
    agent = cluster.agent_of(owner, "long")
    subject = cluster.names.subject_of(directory_name(AgentId(agent)))
    acknowledged = list[str]()
    while cluster.servers.count(subject) < LONG_LOG_RECORDS + 50:
        for text in facts(len(acknowledged), len(acknowledged) + 20):
            remember(owner, agent, text)
            acknowledged.append(text)
    assert all(one.kind != Kind.REBASE for one in cluster.servers.after(subject, 0, 10 * LONG_LOG_RECORDS))
    first = (Kind.REBASE, Kind.REBASE_PART)
    wait_until(lambda: cluster.servers.after(subject, 0, 1)[0].kind in first, RETRY_TIMEOUT_S, 0.2)
    assert cluster.servers.count(subject) < LONG_LOG_RECORDS / 2
    assert messages_of(other, agent) == acknowledged


@pytest.mark.full
def test_a_drained_node_serves_without_agents_until_it_is_started_again(cluster: Cluster) -> None:
    """Every slot moves while clients write; the node passes requests on, and gets its share back after a restart."""
    owner, other, _ = cluster.nodes
    agent = cluster.agent_of(owner, "drained")
    with writing(other, agent) as acknowledged:
        done = cluster.command("drain", owner.name, "--json")
        assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["left"] == 0 and not cluster.table().slots_of(owner.name)
    states = {
        one["name"]: one["state"] for one in json.loads(cluster.command("status", "--json").stdout)["nodes"]
    }
    assert states == {"e1": "drained", "e2": "running", "e3": "running"}
    assert owner.client.get("/readyz").status_code == 200
    assert messages_of(owner, agent) == acknowledged
    assert owner.stop() == 0
    owner.start()
    cluster.settle()
    assert cluster.owner_of(agent) is owner
    assert messages_of(other, agent) == acknowledged


@pytest.mark.full
async def test_a_connection_without_the_secret_is_refused(cluster: Cluster) -> None:
    """A process that does not know the secret of the cluster gets no connection to a node."""
    places = {node.name: Place(f"127.0.0.1:{node._settings['CLUSTER__PORT']}", "") for node in cluster.nodes}
    for secret, is_right in ((cluster.secret.read_bytes(), True), (b"another secret, long enough", False)):
        peers = NodePeers("stranger", secret, FixedRouting("e1", places))
        try:
            if is_right:
                (await peers.connect(peers.owner_of("ann"))).close()
            else:
                with pytest.raises(EbbtideError, match="moving"):
                    await peers.connect(peers.owner_of("ann"))
        finally:
            await peers.close()


@pytest.mark.full
def test_a_node_with_another_secret_takes_no_agents(cluster: Cluster, tmp_path: Path) -> None:
    """A node with a wrong secret cannot be reached by the others, so it must own nothing."""
    wrong = tmp_path / "secret"
    wrong.write_text("another secret, long enough")
    stranger = cluster.new_node("e4", CLUSTER__SECRET_FILE=str(wrong))
    agents = [cluster.agent_of(node, "secret") for node in cluster.nodes]
    with cluster.extra_node(stranger):
        with contextlib.suppress(AssertionError):
            stranger.start()
            wait_until(lambda: stranger.client.get("/readyz").status_code == 200, 2 * LEASE_S)
        for number in range(20):
            for agent in (*agents, f"anybody{number}"):
                response = cluster.nodes[0].post(f"{agent}/remember", body_of(f"Number {number}."))
                assert response.status_code == 202, (agent, cluster.table().slots_of("e4"), response.text)
    assert not cluster.table().slots_of("e4")


@pytest.mark.full
def test_a_node_name_is_used_once(cluster: Cluster) -> None:
    """A second process with the name of a node does not start. It does while the first one is paused, which then
    answers nothing any more; nothing acknowledged is lost.
    """
    first, other, _ = cluster.nodes
    agent = cluster.agent_of(first, "named")
    remember(other, agent, "This came before.")
    twin = cluster.new_node(first.name, "twin")
    assert "uses the name of this node, e1" in refusal(twin)
    assert first.client.get("/readyz").status_code == 200
    first.pause()
    with cluster.extra_node(twin):
        twin.start()
        twin.await_ready()
        remember(other, agent, "This came with two of one name.")
        first.resume()
        wait_until(lambda: "uses the name of this node" in first.client.get("/readyz").text)
        for path in (f"{agent}/messages", ""):
            response = first.get(path) if path else first.client.get("/v1/agents")
            assert response.status_code == 503, response.text
            assert "name of this node" in response.text, "an empty list would say there are none"
        assert twin.client.get("/readyz").status_code == 200
        assert "This came with two of one name." in persist(lambda: twin.get(f"{agent}/messages")).text
    # The one that lost its lease takes no other; a restart does, after the lease of the other.
    first.kill()
    first.start()
    cluster.settle()
    assert messages_of(first, agent) == ["This came before.", "This came with two of one name."]


# --- log servers ---------------------------------------------------------------------------------------


def refusal(node: Node) -> str:
    """Return what a node says that does not start. It must be one line."""
    done = run_command(*node.arguments, env=node.environment, timeout_s=60)
    assert done.returncode not in (0, None), done.stdout
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    print(said)
    return said[-1]


@pytest.mark.full
def test_unsynced_log_servers_are_refused(cluster: Cluster, tmp_path: Path) -> None:
    """A node does not start on a log server that can lose acknowledged records in a power failure."""
    client, monitor = free_ports(2)
    unsynced = LogServer(require_nats(), tmp_path, "n4", (client, monitor))
    unsynced.start(synced=False)
    try:
        wait_until(lambda: unsynced.is_healthy)
        node = cluster.new_node(
            "e5", CLUSTER__SERVERS=[unsynced.url], CLUSTER__MONITOR_URLS=[unsynced.monitor_url]
        )
        assert "sync_interval: always" in refusal(node)
    finally:
        unsynced.kill()


@pytest.mark.full
def test_a_cluster_must_have_been_created(cluster: Cluster) -> None:
    """A node does not start for a cluster that is not on the log servers, and the message says what to run."""
    assert "ebbtide cluster init" in refusal(cluster.new_node("e6", CLUSTER__NAME="another"))


@pytest.mark.full
def test_one_log_server_is_enough_to_lose(cluster: Cluster) -> None:
    """With one log server of three killed, writes continue and nodes start."""
    owner, other, _ = cluster.nodes
    agent = cluster.agent_of(owner, "minority")
    remember(other, agent, "This came before.")
    cluster.log_servers.kill(0)
    remember(other, agent, "This came with two log servers.")
    owner.kill()
    remember(other, agent, "This came without the owner.")
    owner.start()
    cluster.settle()
    expected = ["This came before.", "This came with two log servers.", "This came without the owner."]
    assert [messages_of(node, agent) for node in cluster.nodes] == [expected] * 3


@pytest.mark.full
def test_too_few_log_servers_refuse_writes(cluster: Cluster) -> None:
    """With two of three killed, writes answer NOT_ENOUGH_LOG_SERVERS, and recover; nothing is lost or doubled."""
    owner, other, _ = cluster.nodes
    agent = cluster.agent_of(owner, "majority")
    remember(other, agent, "This came before.")
    for index in (0, 1):
        cluster.log_servers.kill(index)
    reasons = []
    for _ in range(3):
        response = owner.post(f"{agent}/remember", body_of("This was in doubt."), timeout=40)
        assert response.status_code == 503, response.text
        assert response.headers["retry-after"]
        reasons.append(response.json()["error"]["reason"])
    # A request that waits behind a commit in doubt meets a file that may lack this commit.
    assert (
        set(reasons) <= {"STORE_BEHIND", "NOT_ENOUGH_LOG_SERVERS"} and reasons[-1] == "NOT_ENOUGH_LOG_SERVERS"
    )
    for index in (0, 1):
        cluster.log_servers.restart(index)
    remember(other, agent, "This was in doubt.")
    remember(other, agent, "This came after.")
    assert messages_of(owner, agent) == ["This came before.", "This was in doubt.", "This came after."]
