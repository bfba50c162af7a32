"""Contents of agents in a real S3 server, below a real cluster: taken, deleted, lost, and while S3 does not answer.

All tests share the servers and the nodes; a test undoes its fault. Nothing is encrypted, so that bytes can be searched.
"""

from __future__ import annotations

import base64
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cluster.log import Kind
from ebbtide.cluster.s3 import S3Objects
from ebbtide.cluster.snapshots import Snapshots, reference_in
from ebbtide.ids import AgentId
from ebbtide.settings import s3_address
from ebbtide.store.directory.data_directory import directory_name
from tests.cluster.test_real_servers import messages_of, persist
from tests.support.cluster import Cluster, Node
from tests.support.s3_server import CREDENTIALS, S3Server, s3_server
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.full, pytest.mark.chaos, pytest.mark.timeout(400)]

LARGE_BYTES = 700_000
"""More than one record has, and less than an attachment may have."""
APPEND_TIMEOUT_S = 3.0
RETRY_TIMEOUT_S = 60.0
ERASURE_TIMEOUT_S = 300.0
"""How long the log servers may keep recent records; see docs/cluster.md."""


class World:
    """A cluster with S3."""

    def __init__(self, cluster: Cluster, s3: S3Server) -> None:
        self.cluster, self.s3 = cluster, s3
        self.objects = S3Objects(s3_address(s3.setting), 10.0)

    def subject(self, agent: str) -> str:
        return self.cluster.names.subject_of(directory_name(AgentId(agent)))

    def keys(self, agent: str) -> list[str]:
        """Return the names of the agent's objects."""
        return sorted(self.objects.keys(f"ebbtide/{directory_name(AgentId(agent))}"))

    def grown(self, node: Node, word: str, *texts: str) -> tuple[str, dict[str, bytes]]:
        """Return an agent of a node that has a large attachment for each text, and the bytes of those."""
        agent, contents = self.cluster.agent_of(node, word), dict[str, bytes]()
        for text in texts:
            contents[text] = random.randbytes(LARGE_BYTES)
            remember(node, agent, text, contents[text])
        node.flush(agent)
        return agent, contents

    def rebased(self, node: Node, agent: str) -> None:
        """Let the log be replaced, by a deletion of another message."""
        remember(node, agent, "The Zeppelin is grey.")
        node.flush(agent)
        assert forgotten(node, agent, "Zeppelin")["compacted"] is True

    def await_vacuumed(self, trace: bytes) -> None:
        """Wait until vacuums have dropped some bytes. S3 marks the bytes of a deleted object a moment later."""

        def is_vacuumed() -> bool:
            self.s3.vacuum()
            return not files_with(trace, self.s3.store)

        wait_until(is_vacuumed, RETRY_TIMEOUT_S, 1)

    def check(self, agent: str) -> dict[str, Any]:
        """Return what `ebbtide cluster check` finds."""
        flags = ("--secret-file", str(self.cluster.secret), "--json")
        [found] = json.loads(self.cluster.command("check", agent, *flags).stdout)
        return dict(found)


def remember(node: Node, agent: str, text: str, attachment: bytes = b"") -> None:
    """Append a message, with an attachment or without, once."""
    one: dict[str, Any] = {"role": "user", "content": text}
    if attachment:
        one["attachments"] = [{"mime": "image/png", "bytes": base64.b64encode(attachment).decode()}]
    body = {"messages": [one], "idempotency_key": f"{agent} {text}"}

    def is_stored() -> bool:
        # On a busy machine the text can also exceed its time.
        response = node.post(f"{agent}/remember", body, timeout=30)
        return response.status_code == 202

    wait_until(is_stored, RETRY_TIMEOUT_S, 0.2)


def forgotten(node: Node, agent: str, topic: str) -> dict[str, Any]:
    """Delete what a topic selects. Return the response."""
    response = persist(lambda: node.post(f"{agent}/forget", {"topic": topic}, timeout=60))
    assert response.status_code == 200, response.text
    return dict(response.json())


def files_with(trace: bytes, *folders: Path) -> list[str]:
    """Return the files that contain some bytes."""
    found = []
    for folder in folders:
        for path in (one for one in folder.rglob("*") if one.is_file()):
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue  # it was replaced meanwhile
            found += [str(path.relative_to(folder.parent))] if trace in content else []
    return found


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The servers and the nodes of all tests."""
    home = tmp_path_factory.mktemp("s3")
    with pytest.MonkeyPatch.context() as patch, s3_server(home / "s3") as s3:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        settings = {
            "CLUSTER__SNAPSHOTS": s3.setting,
            "CLUSTER__APPEND_TIMEOUT_S": str(APPEND_TIMEOUT_S),
            "CLUSTER__REQUIRE_ENCRYPTION": "false",
            "ENCRYPTION__MASTER_KEY": "",
        }
        with Cluster(home, settings=settings) as cluster:
            cluster.start_nodes(2)
            yield World(cluster, s3)


@pytest.fixture
def world(running: World) -> Iterator[World]:
    """The servers and the nodes without faults."""
    yield running
    if not running.s3.is_running:
        running.s3.start()
    running.cluster.heal()


def test_a_large_content_is_taken_from_s3(world: World) -> None:
    """The owner is killed and its disk is lost: another node has the same bytes, from one record and one object."""
    owner, other = world.cluster.nodes
    agent, contents = world.grown(owner, "taken", "The picture shows a boat.")
    world.rebased(owner, agent)
    records = [
        one for one in world.cluster.servers.after(world.subject(agent), 0, 1000) if one.kind == Kind.REBASE
    ]
    reference = reference_in(records[0].body[4:])
    assert reference is not None and reference.size > LARGE_BYTES and len(records[0].body) < 200
    assert [key.rpartition("/")[2] for key in world.keys(agent)] == [reference.name]
    remember(owner, agent, "It is blue.")
    owner.flush(agent)
    before = world.check(agent)
    assert (before["fault"], before["not_compared"], before["owner"]) == ("", "", owner.name)
    owner.kill()
    shutil.rmtree(owner.data_dir)
    assert messages_of(other, agent) == ["The picture shows a boat.", "It is blue."]
    listed = other.get(f"{agent}/messages").json()["messages"][0]["id"]
    assert (
        other.get(f"{agent}/messages/{listed}/attachments/0").content == contents["The picture shows a boat."]
    )
    after = world.check(agent)
    assert (after["fault"], after["not_compared"], after["owner"]) == ("", "", other.name)


def test_what_is_deleted_is_on_no_disk(world: World) -> None:
    """After `compacted: true` and a vacuum of S3 no byte of it is there, and after five minutes on no log server."""
    owner, other = world.cluster.nodes
    agent, contents = world.grown(
        owner, "erased", "The picture shows Quittenmus.", "The picture shows a boat."
    )
    trace = contents["The picture shows Quittenmus."][300_000:300_064]
    kept = contents["The picture shows a boat."][300_000:300_064]
    world.rebased(owner, agent)
    assert files_with(trace, world.s3.store) and files_with(kept, world.s3.store)
    assert forgotten(other, agent, "Quittenmus")["compacted"] is True
    assert len(world.keys(agent)) == 1
    world.await_vacuumed(trace)
    assert files_with(kept, world.s3.store)
    servers = [server.store for server in world.cluster.log_servers.all]
    folders = (*servers, world.s3.store, *(node.data_dir for node in world.cluster.nodes))
    wait_until(lambda: not files_with(trace, *folders), ERASURE_TIMEOUT_S, 5)
    assert messages_of(other, agent) == ["The picture shows a boat."]
    assert persist(lambda: other.client.delete(f"/v1/agents/{agent}")).status_code == 200
    assert world.keys(agent) == []
    world.await_vacuumed(kept)


def test_agents_work_while_s3_is_stopped(world: World) -> None:
    """A write is stored, a deletion is not compacted and completes later, and a restore is refused as a whole."""
    owner, other = world.cluster.nodes
    agent, _ = world.grown(owner, "stopped", "The picture shows Quittenmus.", "The picture shows a boat.")
    world.rebased(owner, agent)
    file = persist(lambda: owner.get(f"{agent}/backup")).content
    before = world.keys(agent)
    world.s3.stop()
    remember(owner, agent, "It is blue.")
    assert forgotten(owner, agent, "Quittenmus")["compacted"] is False
    assert messages_of(owner, agent) == ["The picture shows a boat.", "It is blue."]
    restored = owner.client.post(
        f"/v1/agents/{agent}/restore",
        params={"replace": True},
        content=file,
        headers={"content-type": "application/octet-stream"},
        timeout=60,
    )
    assert restored.status_code == 503, restored.text
    assert restored.json()["error"]["reason"] == "SNAPSHOTS_UNAVAILABLE"
    assert messages_of(other, agent) == ["The picture shows a boat.", "It is blue."]
    owner.kill()
    found: list[str] = []

    def is_refused() -> bool:
        response = other.get(f"{agent}/messages", timeout=30)
        found.append(response.json().get("error", {}).get("reason", ""))
        return found[-1] == "SNAPSHOTS_UNAVAILABLE"

    wait_until(is_refused, RETRY_TIMEOUT_S, 0.2)
    assert set(found) <= {"AGENT_MOVING", "SNAPSHOTS_UNAVAILABLE"}
    world.s3.start()
    assert messages_of(other, agent) == ["The picture shows a boat.", "It is blue."]
    # The deletion is completed at the open.
    assert len(world.keys(agent)) == 1 and world.keys(agent) != before
    assert world.check(agent)["fault"] == ""


def test_an_object_of_a_killed_rebase_is_deleted(world: World) -> None:
    """It was stored, and the node ended before its record was appended."""
    owner, _ = world.cluster.nodes
    agent, _ = world.grown(owner, "left", "The picture shows a boat.")
    last = world.cluster.servers.last(world.subject(agent))
    assert last is not None
    Snapshots(world.objects).put(world.subject(agent), last.sequence, random.randbytes(1000))
    assert len(world.keys(agent)) == 1
    world.rebased(owner, agent)
    assert len(world.keys(agent)) == 1
    owner.kill()
    assert messages_of(world.cluster.nodes[1], agent) == ["The picture shows a boat."]


def test_a_lost_object_is_log_behind(world: World) -> None:
    """A node without the file refuses the agent, `check` names the object, and the owner's file repairs the log."""
    owner, other = world.cluster.nodes
    agent, _ = world.grown(owner, "lost", "The picture shows a boat.")
    world.rebased(owner, agent)
    [key] = world.keys(agent)
    world.objects.delete([key])
    found = world.cluster.command("check", agent, "--secret-file", str(world.cluster.secret))
    assert found.returncode == ExitCode.DAMAGED and directory_name(AgentId(agent)) in found.stdout
    owner.kill()

    def is_refused() -> bool:
        response: httpx.Response = other.get(f"{agent}/messages", timeout=30)
        return response.status_code == 500 and response.json()["error"]["reason"] == "LOG_BEHIND"

    wait_until(is_refused, RETRY_TIMEOUT_S, 0.2)
    repaired = world.cluster.command("repair", agent, "--data-dir", str(owner.data_dir), "--discard")
    assert repaired.returncode == 0, repaired.stderr
    assert len(world.keys(agent)) == 1
    assert messages_of(other, agent) == ["The picture shows a boat."]


def test_a_node_with_another_setting_does_not_start(world: World) -> None:
    """The exit code and the message say which setting the others have."""
    node = world.cluster.new_node("another", CLUSTER__SNAPSHOTS="nats")
    with world.cluster.extra_node(node):
        node.launch()
        assert node.process.wait(RETRY_TIMEOUT_S) != 0
        assert "cluster.snapshots" in node.log and CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in node.log
    for running in world.cluster.nodes:
        assert not any(value in running.log for value in CREDENTIALS.values())
