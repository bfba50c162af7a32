"""All log servers are restored to an older copy: the nodes repair the logs from the files of their agents."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cluster.test_real_servers import facts, messages_of, remember
from tests.support.cluster import Cluster, Node
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.full, pytest.mark.chaos, pytest.mark.timeout(420)]

LEASE_S = 3.0
REPAIRED_S = 120.0
"""Each log server is asked to lead every log."""


def end(cluster: Cluster) -> None:
    """Kill every node and every log server."""
    for node in cluster.nodes:
        node.kill()
    for index in range(3):
        cluster.log_servers.kill(index)


def repaired(node: Node) -> float:
    """Return how many logs a node has repaired."""
    text = node.client.get("/metrics").text
    line = next(one for one in text.splitlines() if one.startswith("ebbtide_cluster_repaired_logs_total"))
    return float(line.split()[1])


def has_answered(node: Node, agent: str, status: int) -> bool:
    """Return whether a request for an agent got a status."""
    return node.get(f"{agent}/messages", timeout=60).status_code == status


def test_logs_that_lost_their_end_everywhere_are_repaired(tmp_path: Path) -> None:
    """No acknowledged message is lost. A log waits for an answer of every node: each may have the newest file."""
    old = tmp_path / "old"
    with Cluster(tmp_path / "cluster", lease_s=LEASE_S) as cluster:
        cluster.start_nodes()
        agents = [cluster.agent_of(node, "restored") for node in cluster.nodes]
        expected = facts(0, 6)
        for agent in agents:
            for text in expected[:2]:
                remember(cluster.nodes[0], agent, text)
        for index, server in enumerate(cluster.log_servers.all):
            cluster.log_servers.kill(index)
            shutil.copytree(server.store, old / server.name)
            cluster.log_servers.restart(index)
            cluster.log_servers.wait()
        cluster.settle()
        for agent in agents:
            for text in expected[2:]:
                remember(cluster.nodes[0], agent, text)
        end(cluster)
        for index, server in enumerate(cluster.log_servers.all):
            shutil.rmtree(server.store)
            shutil.copytree(old / server.name, server.store)
            cluster.log_servers.restart(index)
        cluster.log_servers.wait()
        first, second, third = cluster.nodes
        first.start()
        second.start()
        wait_until(lambda: has_answered(second, agents[0], 500), REPAIRED_S, 1)
        reason = second.get(f"{agents[0]}/messages", timeout=60).json()["error"]["reason"]
        assert reason == "LOG_BEHIND", "the file of the third node may be newer"
        assert not repaired(first) + repaired(second)
        third.start()
        for agent in agents:
            wait_until(lambda agent=agent: has_answered(first, agent, 200), REPAIRED_S, 1)  # type: ignore[misc]
            assert messages_of(third, agent) == expected
            remember(second, agent, "This came after the repair.")
            assert messages_of(first, agent) == [*expected, "This came after the repair."]
        assert sum(map(repaired, cluster.nodes)) >= 3
        checked = cluster.command("check", "--secret-file", str(cluster.secret), master_key=True)
        assert checked.returncode == 0, checked.stdout
