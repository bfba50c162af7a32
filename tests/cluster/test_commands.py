"""`ebbtide cluster` on real log servers without nodes: settings, exit codes and messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cluster.node import fingerprint
from ebbtide.ids import AgentId
from ebbtide.records import Identity
from ebbtide.store import layout
from ebbtide.store.directory.data_directory import DataDirectory
from ebbtide.store.encryption.seal import MasterKey
from tests.support.cluster import SECRET, Cluster
from tests.support.encrypted import fill

MASTER, OTHER = MasterKey(b"m" * 32), MasterKey(b"o" * 32)

pytestmark = [pytest.mark.full, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with one encrypted agent that no node has yet."""
    home = tmp_path_factory.mktemp("cluster")
    with Cluster(home) as cluster:
        cluster.servers.write(cluster.names.secret, fingerprint(SECRET.encode()).encode(), 0)
        data = DataDirectory(
            home / "single", initial_map_bytes=1 << 18, max_map_bytes=1 << 26, master_key=MASTER
        )
        data.acquire()
        store = data.create_store(Identity(AgentId("ann"), 5, 7, layout.FORMAT_VERSION))
        store.write(fill)
        store.close()
        data.release()
        adopted = cluster.command("adopt", "--data-dir", str(home / "single"))
        assert adopted.returncode == 0, adopted.stderr
        yield cluster


def test_the_secret_decides_whether_files_are_compared(cluster: Cluster, tmp_path: Path) -> None:
    """Without one, hashes are enough for success. That of the environment counts also with --servers."""
    hashes = cluster.command("check", "--json")
    [found] = json.loads(hashes.stdout)
    assert (hashes.returncode, found["fault"]) == (ExitCode.OK, "") and "--secret-file" in found[
        "not_compared"
    ]
    # No node answers.
    compared = cluster.command("check", "--json", master_key=True, CLUSTER__SECRET_FILE=str(cluster.secret))
    assert compared.returncode == ExitCode.UNAVAILABLE
    wrong = tmp_path / "secret"
    wrong.write_text("another secret, long enough")
    refused = cluster.command("check", CLUSTER__SECRET_FILE=str(wrong))
    assert refused.returncode == ExitCode.USAGE and "is not the secret of the nodes" in refused.stderr
    given = cluster.command("check", "--secret-file", str(cluster.secret), CLUSTER__SECRET_FILE=str(wrong))
    assert given.returncode == ExitCode.UNAVAILABLE


def test_another_master_key_is_named(cluster: Cluster) -> None:
    """A check does not say that a key is missing if it is the wrong one."""
    refused = cluster.command("check", ENCRYPTION__MASTER_KEY="6f" * 32)
    assert refused.returncode == ExitCode.USAGE
    assert f"{OTHER.fingerprint} is not the master key of the nodes" in refused.stderr
    assert MASTER.fingerprint in refused.stderr


def test_status_before_a_node_has_started(cluster: Cluster) -> None:
    """No empty table, and all numbers in one format."""
    found = cluster.command("status")
    assert found.stdout == "" and found.stderr.splitlines() == [
        "No node has started yet.",
        "1 agent in 1,024 slots, 1,024 of them without a node.",
    ]


def test_a_directory_without_agents_is_no_data_directory(cluster: Cluster, tmp_path: Path) -> None:
    """The message does not deny that the directory exists."""
    for folder, why in ((tmp_path, "it has no folder agents"), (tmp_path / "absent", "it does not exist")):
        refused = cluster.command("repair", "ann", "--data-dir", str(folder))
        assert refused.returncode == ExitCode.NOT_FOUND
        assert f"There is no data directory at {folder}: {why}." in refused.stderr


def test_too_few_log_servers(cluster: Cluster) -> None:
    """One of three answers, without a leader: the message is a sentence."""
    for index in (1, 2):
        cluster.log_servers.kill(index)
    try:
        failed = cluster.command("status")
    finally:
        cluster.log_servers.heal()
    assert failed.returncode == ExitCode.UNAVAILABLE
    assert "The log servers do not answer" in failed.stderr and "More than half" in failed.stderr
    assert "{" not in failed.stderr
