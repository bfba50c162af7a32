"""Faults of one node on real log servers: a full disk, another master key, and records of a newer version."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbtide.cluster.log import AgentLog
from ebbtide.ids import AgentId
from ebbtide.store.directory.data_directory import directory_name
from tests.cluster.test_real_servers import body_of, digested, facts, messages_of, persist, remember
from tests.support.cluster import Cluster
from tests.support.faults import failing
from tests.support.small_disk import fill_up, mounted
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.full, pytest.mark.chaos, pytest.mark.timeout(300)]

DISK = "size=32m"
ROOM_BYTES = 1 << 15
"""Left on the full disk: enough for the marker of waiting work, too little for a large batch."""


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The small disk of the second node."""
    with mounted(tmp_path_factory.mktemp("cluster") / "e2", DISK) as disk:
        yield disk


@pytest.fixture(scope="module")
def cluster(disk: Path) -> Iterator[Cluster]:
    """Two nodes."""
    with Cluster(disk.parent) as cluster:
        yield cluster.start_nodes(2)


def test_a_full_disk_of_the_owner_loses_nothing(cluster: Cluster, disk: Path) -> None:
    """A commit that fails after its append is STORE_BEHIND. It is in the log: once, also after a retry elsewhere."""
    other, owner = cluster.nodes
    agent = cluster.agent_of(owner, "full")
    texts = facts(0, 5)
    for text in texts:
        remember(other, agent, text)
    digested(other, agent)
    filler = fill_up(disk, but=ROOM_BYTES)
    dice, refused = random.Random(1), Counter[str]()
    many = [" ".join(dice.randbytes(4).hex() for _ in range(300)) for _ in range(40)]
    large = {
        "messages": [{"role": "system", "content": text} for text in many],
        "idempotency_key": "large",
    }

    def is_behind() -> bool:
        response = other.post(f"{agent}/remember", large, timeout=20)
        assert response.status_code in (503, 507), response.text
        refused[response.json()["error"]["reason"]] += 1
        return refused["STORE_BEHIND"] > 0

    wait_until(is_behind, 60, 0.1)
    drained = cluster.command("drain", owner.name)
    assert drained.returncode == 0, drained.stderr
    response = persist(lambda: other.post(f"{agent}/remember", large, timeout=20))
    assert response.status_code == 202, response.text
    expected = [*texts, *many]
    assert messages_of(other, agent) == expected
    filler.unlink()
    assert cluster.command("drain", owner.name, "--undo").returncode == 0
    cluster.settle()
    remember(other, agent, "There is space again.")
    expected.append("There is space again.")
    assert cluster.owner_of(agent) is owner
    assert [messages_of(node, agent) for node in cluster.nodes] == [expected] * 2


def test_a_commit_that_fails_after_its_append_is_completed_from_the_log(cluster: Cluster) -> None:
    """The disk of the owner fails when the commit is synced: STORE_BEHIND, and the commit takes effect once."""
    other, owner = cluster.nodes
    agent = cluster.agent_of(owner, "failing")
    remember(other, agent, "The boat is blue.")
    digested(other, agent)
    subject = cluster.names.subject_of(directory_name(AgentId(agent)))
    before = cluster.servers.ends(subject)[0]
    with failing(owner, "fdatasync", "error=EIO"):
        response = other.post(f"{agent}/remember", body_of("The kite is red."), timeout=30)
        assert (response.status_code, response.json()["error"]["reason"]) == (503, "STORE_BEHIND")
    assert cluster.servers.ends(subject)[0] > before
    remember(other, agent, "The kite is red.")
    remember(other, agent, "The lamp is green.")
    expected = ["The boat is blue.", "The kite is red.", "The lamp is green."]
    assert [messages_of(node, agent) for node in cluster.nodes] == [expected] * 2


def test_a_node_with_another_master_key_does_not_start(cluster: Cluster) -> None:
    """It could not open the agents of the others. It owns nothing, and the others continue."""
    stranger = cluster.new_node("e4", ENCRYPTION__MASTER_KEY="6e" * 32)
    with (
        cluster.extra_node(stranger),
        pytest.raises(AssertionError, match=r"another encryption\.master_key_file"),
    ):
        stranger.start()
    assert not cluster.table().slots_of("e4")
    assert not (stranger.data_dir / "keys").exists(), "the next start with the right key is not refused"
    remember(cluster.nodes[0], "anybody", "The cat is grey.")


def test_a_record_of_a_newer_version_is_not_passed_over(cluster: Cluster) -> None:
    """The agent is refused with FORMAT_TOO_NEW by every node, and its log stays as it is; other agents are served."""
    owner, other = cluster.nodes
    agent = cluster.agent_of(owner, "newer")
    remember(other, agent, "The roof is red.")
    digested(other, agent)
    subject = cluster.names.subject_of(directory_name(AgentId(agent)))

    last = cluster.servers.last(subject)
    assert last is not None
    log = AgentLog(cluster.servers, subject, agent, "newer/1")
    log.append(b"\x02of a later version", last.head)
    for node in cluster.nodes:
        response = persist(lambda node=node: node.post(f"{agent}/remember", body_of("Again."), timeout=10))  # type: ignore[misc]
        assert response.json()["error"]["reason"] == "FORMAT_TOO_NEW", response.text
    last = cluster.servers.last(subject)
    assert last is not None and last.author == "newer/1"
    remember(other, cluster.agent_of(owner, "older"), "The door is green.")
