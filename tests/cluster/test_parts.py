"""Small parts of a cluster: shared API keys, errors between processes, and refusals at a start."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from ebbtide.access.key_file import KeyFile
from ebbtide.access.keys import ID_LENGTH, Key
from ebbtide.cluster.jetstream import Servers
from ebbtide.cluster.log import Kind, Record, Refused
from ebbtide.cluster.names import Names
from ebbtide.cluster.node import refuse_unsynced, some_slots
from ebbtide.cluster.owners import FixedRouting
from ebbtide.cluster.ownership import LogMetrics
from ebbtide.cluster.shared_keys import merged, share_keys
from ebbtide.cluster.slots import slot_of
from ebbtide.cluster.status import agents_in
from ebbtide.daemon import locked_directory, node_of
from ebbtide.errors import EbbtideError, Exhausted, FieldViolation, InvalidRequest, Precondition, agent_moving
from ebbtide.forwarding.errors import error_from, error_to
from ebbtide.forwarding.nodes import NodePeers, Place
from ebbtide.ids import AgentId
from ebbtide.metrics import ClusterMetrics
from ebbtide.settings import Settings
from ebbtide.store.directory.data_directory import directory_name
from ebbtide.telemetry import configure_log
from ebbtide.verbs.catalogue import OPERATIONS
from ebbtide.verbs.merging import perform
from ebbtide.verbs.paging import PageRequest
from ebbtide.verbs.requests import Request
from tests.cluster.simulated import Node as Simulated
from tests.cluster.simulated import Outcome, SimulatedStream, content
from tests.cluster.simulated_nodes import SLOTS, Cluster
from tests.support.in_process import service_in, tell
from tests.support.log_servers import free_ports

SUBJECT = "test.state.api_keys"


class Documents:
    """One document."""

    def __init__(self) -> None:
        self.content: tuple[bytes, int] | None = None

    def read(self, subject: str) -> tuple[bytes, int] | None:
        assert subject == SUBJECT
        return self.content

    def write(self, subject: str, data: bytes, expected: int) -> int:
        sequence = 0 if self.content is None else self.content[1]
        if expected != sequence:
            raise Refused
        self.content = (data, sequence + 1)
        return sequence + 1

    def erase(self, subject: str, sequence: int) -> None:
        self.content = None

    def subjects(self, prefix: str) -> list[str]:
        return [SUBJECT]


def key(number: int, *, revoked_at_ms: int | None = None) -> Key:
    """Return an API key."""
    return Key(
        id=f"{number:0{ID_LENGTH}}",
        name="",
        secret_sha256="a" * 64,
        scopes=("read",),
        all_agents=True,
        created_at_ms=number,
        revoked_at_ms=revoked_at_ms,
    )


def test_keys_are_added_and_stay_revoked() -> None:
    """The merge of two versions has the keys of both; it does not depend on their order."""
    one, other = [key(1), key(2, revoked_at_ms=9)], [key(1, revoked_at_ms=8), key(2), key(3)]
    expected = [key(1, revoked_at_ms=8), key(2, revoked_at_ms=9), key(3)]
    assert merged(one, other) == merged(other, one) == expected


def test_nodes_share_their_keys(tmp_path: Path) -> None:
    """A key that is created or revoked on one node arrives at the other, and nothing is written without a change."""
    documents = Documents()
    files = [KeyFile(tmp_path / name) for name in ("one", "other")]
    for file in files:
        file.path.parent.mkdir()
    files[0].change(lambda keys: ([*keys, key(1)], None))
    files[1].change(lambda keys: ([*keys, key(2)], None))
    for file in (*files, files[0]):
        share_keys(file, documents, SUBJECT)
    assert [list(file.read()) for file in files] == [[key(1), key(2)]] * 2
    files[1].change(lambda _: ([key(1, revoked_at_ms=5), key(2)], None))
    for file in reversed(files):
        share_keys(file, documents, SUBJECT)
    assert files[0].read()[0].revoked_at_ms == 5
    before, stamps = documents.content, [file.stamp() for file in files]
    for file in files:
        share_keys(file, documents, SUBJECT)
    assert (documents.content, [file.stamp() for file in files]) == (before, stamps)


@pytest.mark.parametrize(
    "error",
    [
        agent_moving(),
        Exhausted("full", reason="QUOTA_REACHED", metadata={"quota": "nodes"}, retry_after_s=2.5),
        InvalidRequest("bad", violations=[FieldViolation("query", "must be text")]),
    ],
)
def test_errors_pass_between_processes(error: EbbtideError) -> None:
    """An error arrives with its family and every field."""
    found = error_from(error_to(error))
    assert type(found) is type(error)
    for name in ("message", "reason", "metadata", "violations", "retry_after_s"):
        assert getattr(found, name) == getattr(error, name), name


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"secret_file": "missing"}, "secret_file"),
        ({"secret_file": ""}, "secret_file is required"),
        ({"require_encryption": True}, "require_encryption"),
    ],
)
async def test_a_node_that_cannot_join_says_why(
    tmp_path: Path, section: dict[str, object], words: str
) -> None:
    """CLUSTER_UNUSABLE names the setting, before the log servers are queried."""
    secret = tmp_path / "secret"
    secret.write_text("x" * 16)
    cluster: dict[str, object] = {
        "servers": ["nats://127.0.0.1:1"],
        "secret_file": str(secret),
        "require_encryption": False,
    }
    settings = Settings(cluster={**cluster, **section})
    with pytest.raises(Precondition) as refused:
        node_of(settings)
    assert refused.value.reason == "CLUSTER_UNUSABLE" and words in refused.value.message


def test_a_directory_belongs_to_one_cluster_and_one_process(tmp_path: Path) -> None:
    """A node has one worker. Its directory is refused without a cluster and in another one, and stays unlocked then."""
    secret = tmp_path / "secret"
    secret.write_text("x" * 16)

    def settings(cluster: str, workers: int = 1) -> Settings:
        node = (
            {"servers": ["nats://127.0.0.1:1"], "secret_file": str(secret), "name": cluster}
            if cluster
            else {}
        )
        return Settings(cluster=node, server={"workers": workers}, store={"data_dir": tmp_path / "data"})

    with pytest.raises(Precondition, match="one worker") as error:
        locked_directory(settings("one", 2))
    assert error.value.reason == "CLUSTER_UNUSABLE"
    data = locked_directory(settings("one"))
    data.join_cluster("one")
    data.join_cluster("one")
    data.release()
    for other in (settings(""), settings("", 2), settings("two")):
        with pytest.raises(Precondition, match="logs of the cluster one") as error:
            locked_directory(other)
        assert error.value.reason == "CLUSTER_UNUSABLE"
    locked_directory(settings("one")).release()


async def test_an_agent_whose_file_lacks_a_commit_is_closed_with_one_line(tmp_path: Path) -> None:
    """It cannot save anything, so nothing is attempted; the next open works."""
    configure_log("warning", "json")
    async with service_in(tmp_path) as service:
        await tell(service, "ann", "I moved to Lisbon in May.")
        (agent,) = service.fleet.open_agents
        noted = list[str]()
        agent.workspace.store.on_behind = lambda: noted.append("behind")

        def fail() -> None:
            raise agent_moving()

        appended: Callable[[Callable[[], None]], None] = agent.workspace.store._appended
        with pytest.raises(EbbtideError):
            appended(fail)
        assert noted == ["behind"] and agent.workspace.store.is_behind
        service.metrics.cluster = ClusterMetrics()
        with capture_logs() as lines:
            await service.fleet.close(AgentId("ann"))
        assert b"ebbtide_cluster_store_behind_total 1.0" in service.metrics.text()
        assert [line["event"] for line in lines] == ["closed, because its file may lack a commit"]
        await tell(service, "ann", "I moved back in June.")


async def test_an_agent_that_this_node_has_lost_is_closed_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the lease has lapsed every read is refused, so nothing is saved."""
    configure_log("info", "json")
    async with service_in(tmp_path) as service:
        await tell(service, "ann", "I moved to Lisbon in May.")
        (agent,) = service.fleet.open_agents

        def refuse(_: object) -> None:
            raise agent_moving()

        monkeypatch.setattr(agent.workspace.store, "read", refuse)
        with capture_logs() as lines:
            await service.fleet.close(AgentId("ann"))
        assert [line["event"] for line in lines] == ["closed, because this node does not own it now"]


async def test_readiness_and_metrics_are_those_of_the_node(tmp_path: Path) -> None:
    """Another node that does not answer changes neither, but a list of all agents needs it."""
    cluster = Cluster("a")
    cluster.settle()
    async with service_in(tmp_path) as service:
        others = {"b": Place("127.0.0.1:1", "")}
        service.peers = NodePeers("a", b"x" * 16, FixedRouting("a", others))
        service.cluster = cluster.processes[0].membership
        readiness = await perform(service, OPERATIONS["GetReadiness"], Request())
        assert (readiness.status, readiness.reasons) == ("ready", [])
        service.metrics.cluster = ClusterMetrics()
        service.fleet.damaged |= {AgentId("ann"): "LOG_BEHIND", AgentId("bob"): "STORE_CORRUPTED"}
        text = await perform(service, OPERATIONS["GetMetrics"], Request())
        assert b"ebbtide_ready 1.0" in text
        assert f"ebbtide_cluster_slots {SLOTS}.0".encode() in text
        assert b"ebbtide_cluster_nodes 1.0" in text and b"ebbtide_cluster_unowned_slots 0.0" in text
        assert b"ebbtide_cluster_log_behind_agents 1.0" in text
        await service.fleet.release(lambda _: False)
        assert service.fleet.damaged == {}
        with pytest.raises(EbbtideError, match="moving"):
            await perform(service, OPERATIONS["ListAgents"], PageRequest())
        cluster.clock.now_s += 20.0
        readiness = await perform(service, OPERATIONS["GetReadiness"], Request())
        assert (readiness.status, readiness.reasons) == (
            "unavailable",
            ["this node has no lease in its cluster"],
        )
        text = await perform(service, OPERATIONS["GetMetrics"], Request())
        assert b"ebbtide_cluster_slots 0.0" in text and b"ebbtide_cluster_lease_seconds 0.0" in text
        service.peers = None


# --- the agents of slots -------------------------------------------------------------------------------


class Logs:
    """The last records of some agents, as log servers return them."""

    def __init__(self, names: Names, *agents: str) -> None:
        self.records = {
            names.subject_of(directory_name(AgentId(agent))): Record(Kind.OWN, b"", "", agent, b"")
            for agent in agents
        }
        self.read: list[str] = []

    def subjects(self, prefix: str) -> list[str]:
        return sorted(subject for subject in self.records if subject.startswith(f"{prefix}."))

    def last(self, subject: str) -> Record:
        self.read.append(subject)
        return self.records[subject]


def test_the_agents_of_slots_are_listed() -> None:
    """Those of other slots are not. A record is read only for an id that its directory does not reveal."""
    names, agents = Names("test", 16, 4), [*(f"agent-{number}" for number in range(40)), "Ann", "安"]
    logs = Logs(names, *agents)
    slots = {1, 5, 6, 15} | {slot_of(directory_name(AgentId(agent)), 16) for agent in ("Ann", "安")}
    found = agents_in(cast(Servers, logs), names, slots)
    assert sorted(found) == sorted(
        agent for agent in agents if slot_of(directory_name(AgentId(agent)), 16) in slots
    )
    assert set(found) < set(agents)
    assert len(logs.read) == 2


def test_appends_are_counted() -> None:
    """By kind, with their bytes and their duration with retries; one in doubt is also logged, with its agent."""
    configure_log("warning", "json")
    stream, metrics = SimulatedStream(), ClusterMetrics()
    node = Simulated(stream, "a")
    node.log.observer = LogMetrics(metrics)
    stream.script.append(Outcome.LOST)
    node.commit("one")
    size = len(stream.records[0].body)
    node.log.append_gone()
    stream.script.extend([Outcome.LOST] * 1000)
    with capture_logs() as lines, pytest.raises(EbbtideError):
        node.log.rewrite(content("two"))
    assert [(line["event"], line["agent_id"]) for line in lines] == [("append in doubt", "ann")]
    text = metrics.text().decode()
    for sample in (
        'records_total{kind="delta"} 1.0',
        'records_total{kind="gone"} 1.0',
        f'record_bytes_total{{kind="delta"}} {size}.0',
        "append_seconds_count 2.0",
        "append_seconds_sum 0.05",
        "appends_in_doubt_total 1.0",
    ):
        assert f"ebbtide_cluster_{sample}\n" in text, text


@contextmanager
def monitoring(*, is_synced: bool) -> Iterator[str]:
    """Yield the address of the monitoring of a log server."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"config": {"sync_always": is_synced}}).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_log_servers_must_say_that_they_sync_each_record() -> None:
    """One of three may be silent, with a warning that names it; one that does not sync is refused."""
    configure_log("warning", "json")
    silent = f"http://127.0.0.1:{free_ports(1)[0]}"

    def warnings(*urls: str) -> list[Any]:
        settings = Settings(cluster={"servers": ["nats://a:4222"], "secret_file": "-", "monitor_urls": urls})
        with capture_logs() as lines:
            refuse_unsynced(settings.cluster)
        return [line["monitoring"] for line in lines]

    with monitoring(is_synced=True) as one, monitoring(is_synced=True) as two:
        assert warnings(one, two) == []
        [[named]] = warnings(one, two, silent)
        assert named.startswith(silent)
        with pytest.raises(Precondition, match="does not answer"):
            warnings(one, silent)
        with (
            monitoring(is_synced=False) as unsynced,
            pytest.raises(Precondition, match="does not sync each record"),
        ):
            warnings(one, two, unsynced)


# --- the slots that move at a time -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("open_agents", "most", "moving"),
    [
        ({1: 0, 2: 0, 3: 0}, 2, {1, 2}),
        ({1: 1, 2: 0, 3: 1, 4: 0, 5: 1}, 64, {1, 2, 3, 4}),
        ({1: 7, 2: 0, 3: 1}, 64, {1}),
        (dict.fromkeys(range(100), 1), 64, set(range(6))),
        ({}, 64, set()),
    ],
)
def test_few_open_agents_move_at_a_time(open_agents: dict[int, int], most: int, moving: set[int]) -> None:
    """At most two, or a sixteenth if there are many; but at least one slot moves."""
    assert some_slots({slot: "x" * count for slot, count in open_agents.items()}, most) == moving
