"""New keys on a cluster of two nodes over three real log servers: nothing is lost, and old keys are useless."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cluster.key_documents import read_keys
from ebbtide.cluster.master_key import rotate_master_key
from ebbtide.ids import AgentId
from ebbtide.settings import ClusterSettings
from ebbtide.store.directory.data_directory import directory_name
from ebbtide.store.encryption.keys import WrappedKeys
from ebbtide.store.encryption.seal import parse_master_key
from tests.cluster.test_real_servers import (
    RETRY_TIMEOUT_S,
    digested,
    facts,
    messages_of,
    refusal,
    remember,
)
from tests.support.cluster import ENCRYPTED, NAME, Cluster
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.full, pytest.mark.timeout(240)]

LEASE_S = 3.0
KEYS = (ENCRYPTED["ENCRYPTION__MASTER_KEY"], "6e" * 32)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster for all tests."""
    with Cluster(tmp_path_factory.mktemp("cluster"), lease_s=LEASE_S) as running:
        yield running.start_nodes(2)


def wrapped(cluster: Cluster, agent: str) -> WrappedKeys:
    """Return the wrapped data keys of an agent, as the log servers have them."""
    content = read_keys(cluster.servers, cluster.names, directory_name(AgentId(agent)))
    assert content is not None
    return msgspec.json.decode(content, type=WrappedKeys)


def rotate(cluster: Cluster, *agents: str) -> Any:
    """Run `ebbtide cluster rotate-key`."""
    return cluster.command("rotate-key", *agents, "--secret-file", str(cluster.secret), "--json")


def assert_equal(cluster: Cluster, agent: str, master_key: Path) -> None:
    """Fail unless the log of an agent leads to the file of its owner."""

    def is_equal() -> bool:
        flags = ("--secret-file", str(cluster.secret), "--master-key-file", str(master_key), "--json")
        [found] = json.loads(cluster.command("check", agent, *flags).stdout)
        assert found["fault"] == ""
        return not found["not_compared"]  # the agent may be moving

    wait_until(is_equal, RETRY_TIMEOUT_S)


def key_file(folder: Path, key: str) -> Path:
    """Return a file with a master key."""
    path = folder / key[:4]
    path.write_text(key)
    path.chmod(0o600)
    return path


def test_an_agent_gets_a_new_key_while_it_is_written(cluster: Cluster, tmp_path: Path) -> None:
    """Writes before, during and after the rotation are all there; the old key is on no log server."""
    owner, other = cluster.nodes
    agent = cluster.agent_of(owner, "rotated")
    for text in facts(0, 5):
        remember(other, agent, text)
    [before] = wrapped(cluster, agent).keys
    is_rotated = threading.Event()
    written = facts(0, 5)

    def write() -> None:
        number = 5
        while not is_rotated.is_set() or number % 5:
            [text] = facts(number, number + 1)
            remember(other, agent, text)
            written.append(text)
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        keys = []
        for _ in range(2):
            done = rotate(cluster, agent)
            assert done.returncode == 0, done.stdout + done.stderr
            keys.append(json.loads(done.stdout)["rotated"][agent])
    finally:
        is_rotated.set()
        writer.join()
    assert len(set(keys)) == 2 and len(written) > 5
    [after] = wrapped(cluster, agent).keys
    assert after.wrapped != before.wrapped
    assert [messages_of(node, agent) for node in cluster.nodes] == [written] * 2
    digested(owner, agent)
    assert_equal(cluster, agent, key_file(tmp_path, KEYS[0]))
    owner.kill()
    assert messages_of(other, agent) == written
    owner.start()
    cluster.settle()


def test_a_rotation_survives_the_kill_of_the_owner(cluster: Cluster, tmp_path: Path) -> None:
    """The owner is killed while it rotates keys: the command continues at the next owner; nothing is lost."""
    owner, other = cluster.nodes
    agents = [cluster.agent_of(owner, f"killed{letter}-") for letter in "abcdef"]
    for agent in agents:
        for text in facts(0, 3):
            remember(owner, agent, text)
    before = {agent: wrapped(cluster, agent) for agent in agents}
    results: list[Any] = []
    command = threading.Thread(target=lambda: results.append(rotate(cluster, *agents)))
    command.start()
    wait_until(lambda: wrapped(cluster, agents[1]) != before[agents[1]], RETRY_TIMEOUT_S, 0.002)
    owner.kill()
    command.join()
    [done] = results
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["rotated"].keys() == set(agents)
    for agent in agents:
        assert messages_of(other, agent) == facts(0, 3)
        [key] = wrapped(cluster, agent).keys
        assert key.wrapped not in [one.wrapped for one in before[agent].keys]
    owner.start()
    cluster.settle()
    for agent in agents:
        assert messages_of(owner, agent) == facts(0, 3)
        assert_equal(cluster, agent, key_file(tmp_path, KEYS[0]))


def test_the_master_key_is_rotated(cluster: Cluster, tmp_path: Path) -> None:
    """Not while a node runs. Interrupted, no node starts; repeated, nodes start with the new key, on their files."""
    texts, agents = facts(0, 3), [cluster.agent_of(node, "master") for node in cluster.nodes]
    for agent in agents:
        for text in texts:
            remember(cluster.nodes[0], agent, text)
    old, new = (key_file(tmp_path, key) for key in KEYS)
    rotating = ("rotate-master-key", "--old-key-file", str(old), "--new-key-file", str(new))
    refused = cluster.command(*rotating)
    assert refused.returncode == ExitCode.REFUSED and "Stop all nodes" in refused.stderr, refused.stderr
    for node in cluster.nodes:
        node.stop()

    def interrupted(directories: Sequence[str]) -> Iterator[str]:
        assert len(directories) > 1
        yield directories[0]
        raise InterruptedError

    urls = tuple(cluster.log_servers.urls)
    settings = ClusterSettings(
        name=NAME, servers=urls, secret_file=str(cluster.secret), lease_s=LEASE_S, renew_s=1
    )
    with pytest.raises(InterruptedError):
        rotate_master_key(cluster.servers, settings, *map(parse_master_key, KEYS), track=interrupted)
    for node in cluster.nodes:
        assert "is being rotated" in refusal(node)
    done = cluster.command(*rotating, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    master = parse_master_key(KEYS[1]).fingerprint
    assert result["rotated"] > 0 and result["left_out"] == {}
    assert result["master_key_fingerprint"] == master
    assert all(wrapped(cluster, agent).master == master for agent in agents)
    assert "another encryption.master_key_file" in refusal(cluster.nodes[0])
    for node in cluster.nodes:
        node._settings["ENCRYPTION__MASTER_KEY"] = KEYS[1]
        node.start()
    cluster.settle()
    for agent in agents:
        assert [messages_of(node, agent) for node in cluster.nodes] == [texts] * 2
        assert_equal(cluster, agent, new)
        remember(cluster.nodes[0], agent, "This came after.")
        local = [node.data_dir / "keys" / agent for node in cluster.nodes]
        assert {
            msgspec.json.decode(file.read_bytes(), type=WrappedKeys).master for file in local if file.exists()
        } == {master}
    remember(cluster.nodes[0], "created", "This agent is new.")
    assert wrapped(cluster, "created").master == master
