"""Faults of whole clusters that `test_real_servers.py` has not: partitions between log servers, clocks, deletions."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbtide.ids import AgentId
from ebbtide.store.directory.data_directory import directory_name
from tests.cluster.test_real_servers import body_of, digested, facts, messages_of, persist, remember
from tests.support.clocks import WallClock, built_library
from tests.support.cluster import ENCRYPTED, Cluster, Node
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.full, pytest.mark.chaos, pytest.mark.timeout(420)]

DAY_S = 86_400
TEXT = "Quittenmus"
ERASED_S = 300.0
"""Within this time after the response no deleted text is left: docs/cluster.md."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster whose connections can be cut, with wall clocks that can be moved."""
    home = tmp_path_factory.mktemp("cluster")
    with Cluster(home, has_links=True) as cluster:
        yield cluster.start_nodes()


@pytest.fixture
def cluster(running: Cluster) -> Iterator[Cluster]:
    """The cluster without faults. After the test its faults are undone."""
    yield running
    running.heal()


class Writer:
    """A client that appends until the block ends, and keeps what was acknowledged.

    It does not use nodes that the test starts again: they get another port.
    """

    def __init__(self, nodes: list[Node], agent: str) -> None:
        self._nodes, self._agent = nodes, agent
        self._is_over = threading.Event()
        self.acknowledged: list[str] = []
        self._thread = threading.Thread(target=self._write)

    def _write(self) -> None:
        for number, text in enumerate(facts(0, 100_000)):
            if self._is_over.is_set():
                return
            remember(self._nodes[number % len(self._nodes)], self._agent, text)
            self.acknowledged.append(text)

    def __enter__(self) -> Writer:
        self._thread.start()
        self.wait_for_more()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def wait_for_more(self, count: int = 10) -> None:
        """Wait until more was acknowledged."""
        before = len(self.acknowledged)
        wait_until(lambda: len(self.acknowledged) >= before + count, 60)


def stream_of(cluster: Cluster, agent: str) -> str:
    """Return the name of the stream with the log of an agent."""
    return cluster.names.stream_of(cluster.names.subject_of(directory_name(AgentId(agent))))


# --- log servers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_silent", [True, False])
def test_the_leader_of_a_log_is_cut_off_from_the_other_servers(cluster: Cluster, is_silent: bool) -> None:
    """All nodes still reach it. It acknowledges nothing, the two others elect a leader, and reads are not stale."""
    owner, other, third = cluster.nodes
    agent = cluster.agent_of(owner, f"partition{is_silent}")
    remember(other, agent, "This came before.")
    isolated = cluster.log_servers.leader_of(stream_of(cluster, agent))
    cluster.log_servers.cut_off(isolated, is_silent=is_silent)
    remember(other, agent, "This came during the partition.")
    majority = next(index for index in range(3) if index != isolated)
    assert cluster.log_servers.all[majority].leaders()[stream_of(cluster, agent)] not in (
        "",
        cluster.log_servers.all[isolated].name,
    )
    owner.kill()
    remember(third, agent, "This came without the owner.")
    cluster.heal()
    remember(owner, agent, "This came after.")
    expected = [
        "This came before.",
        "This came during the partition.",
        "This came without the owner.",
        "This came after.",
    ]
    assert [messages_of(node, agent) for node in cluster.nodes] == [expected] * 3


@pytest.mark.parametrize("is_silent", [True, False])
def test_a_node_is_cut_off_from_one_log_server(cluster: Cluster, is_silent: bool) -> None:
    """The owner of an agent uses another log server, and no write is lost."""
    owner, other, _ = cluster.nodes
    agent = cluster.agent_of(owner, f"cut{is_silent}")
    with Writer([owner, other], agent) as writer:
        for link in owner.links_to_servers:
            link.cut(is_silent=is_silent)
            writer.wait_for_more()
            link.heal()
            writer.wait_for_more()
    cluster.heal()
    assert [messages_of(node, agent) for node in cluster.nodes] == [writer.acknowledged] * 3


def test_all_log_servers_are_killed_at_once(cluster: Cluster) -> None:
    """After their restart each acknowledged write is there once, also if a node was lost with its files."""
    owner, other, third = cluster.nodes
    agent = cluster.agent_of(owner, "power")
    with Writer([other, third], agent) as writer:
        for index in range(3):
            cluster.log_servers.kill(index)
        owner.kill()
        for index in range(3):
            cluster.log_servers.restart(index)
        cluster.log_servers.wait()
        owner.start()
        writer.wait_for_more()
    cluster.settle()
    assert messages_of(other, agent) == writer.acknowledged


# --- clocks --------------------------------------------------------------------------------------------


def test_wall_clocks_of_nodes_jump(cluster: Cluster, tmp_path: Path) -> None:
    """A day ahead, a day back, and back again: no node is deposed, and each write is there once, in order."""
    library = built_library(tmp_path)
    clocks = []
    for node in cluster.nodes:
        clocks.append(WallClock(library, tmp_path / node.name))
        node.use_clock(clocks[-1])
        node.stop()
        node.start()
        cluster.settle()
    owner, other, third = cluster.nodes
    agent = cluster.agent_of(owner, "clock")
    begun_s = time.time()
    with Writer([other, third], agent) as writer:
        table = cluster.table()
        for seconds in (DAY_S, -DAY_S, 0, 3600, -3600):
            clocks[0].shift(seconds)
            writer.wait_for_more()
            # A repeated request is acknowledged, and not stored again.
            assert other.post(f"{agent}/remember", body_of(writer.acknowledged[0])).status_code == 202
            clocks[1].shift(-seconds)
            writer.wait_for_more()
        # Longer than a lease.
        wait_until(lambda: time.time() - begun_s > 5)
        assert cluster.table().owners == table.owners and cluster.owner_of(agent) is owner
        owner.kill()
        clocks[2].shift(DAY_S)
        clocks[1].shift(-DAY_S)
        writer.wait_for_more()
        owner.start()
        writer.wait_for_more()
    cluster.settle()
    assert [messages_of(node, agent) for node in cluster.nodes] == [writer.acknowledged] * 3
    stored = persist(lambda: other.get(f"{agent}/messages", params={"page_size": 1000})).json()["messages"]
    times = [one["accepted_at"] for one in stored]
    assert max(times) - min(times) > 1500 * DAY_S, "the clocks had no effect"
    for node in cluster.nodes:
        assert '"level": "error"' not in node.log


# --- deletion ------------------------------------------------------------------------------------------


def places_of(text: str, folder: Path) -> list[str]:
    """Return the files in a folder that contain a text."""
    found = []
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file() and text.encode() in path.read_bytes():
                found.append(str(path.relative_to(folder)))
    return sorted(found)


def test_deleted_text_leaves_every_disk(tmp_path: Path) -> None:
    """No file of a log server or of a node has the text any more, five minutes after the response; no write helps.

    The agents are not encrypted. Another node has a copy from before the deletion.
    """
    unencrypted = {**dict.fromkeys(ENCRYPTED, ""), "CLUSTER__REQUIRE_ENCRYPTION": "false"}
    home = tmp_path / "cluster"
    home.mkdir()
    with Cluster(home, settings=unencrypted) as cluster:
        owner, other, _ = cluster.start_nodes().nodes
        agent = cluster.agent_of(owner, "erased")
        for text in (*facts(0, 3), f"Wilhelmina hides the {TEXT}.", *facts(3, 6)):
            remember(other, agent, text)
        digested(other, agent)
        owner.kill()
        assert len(messages_of(other, agent)) == 7
        owner.start()
        cluster.settle()
        assert len(messages_of(owner, agent)) == 7
        before = places_of(TEXT, home)
        folders = {place.rpartition("/agents/")[0] if "/agents/" in place else place[:6] for place in before}
        assert {"log/n1", "log/n2", "log/n3", owner.name} < folders, before
        response = persist(lambda: other.post(f"{agent}/forget", {"topic": TEXT}, timeout=30))
        assert response.json()["compacted"] is True, response.text
        begun_s = time.monotonic()
        left: list[str] = []

        def is_gone() -> bool:
            found = places_of(TEXT, home)
            if found != left:
                left[:] = found
                print(f"{time.monotonic() - begun_s:.0f} s: {len(found)} files", found)
            return not found

        wait_until(is_gone, ERASED_S, 2.0)
        assert messages_of(other, agent) == facts(0, 6)
