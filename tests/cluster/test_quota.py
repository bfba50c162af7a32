"""The limit on the agents of a key counts the agents of all nodes, on real log servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.test_real_servers import persist
from tests.support.cluster import Cluster
from tests.support.keys import bearer, new_key
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.full, pytest.mark.chaos, pytest.mark.timeout(180)]

SETTINGS = {"ACCESS__AUTHENTICATION": "keys", "ACCESS__FAILED_TRIES_PER_S": 0}


def test_the_agents_of_all_nodes_count(tmp_path: Path) -> None:
    """A key with two agents on two nodes gets no third one on any node; after a deletion it gets one."""
    with Cluster(tmp_path / "cluster", settings=SETTINGS) as cluster:
        cluster.start_nodes()
        first = cluster.nodes[0]
        made = new_key(first.data_dir, "read", "write", "admin", agent_prefixes=("team-",), max_agents=2)
        key = bearer(made)
        agents = [cluster.agent_of(node, "team-") for node in cluster.nodes]

        def create(agent: str) -> int:
            return persist(lambda: first.client.put(f"/v1/agents/{agent}", json={}, headers=key)).status_code

        wait_until(lambda: create(agents[0]) in (200, 201))
        assert create(agents[1]) in (200, 201)
        assert create(agents[2]) == 507
        assert create(agents[1]) == 200
        assert first.client.delete(f"/v1/agents/{agents[1]}", headers=key).is_success
        wait_until(lambda: create(agents[2]) in (200, 201), 90, 1)
