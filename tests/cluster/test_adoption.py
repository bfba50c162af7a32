"""`ebbtide cluster adopt` on real log servers, without nodes: what it refuses, and what it appends."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cluster.key_documents import replace_keys
from ebbtide.cluster.log import AgentLog, Kind
from ebbtide.cluster.names import Names
from ebbtide.ids import AgentId
from ebbtide.records import Identity
from ebbtide.store import layout
from ebbtide.store.chain import ChainHead
from ebbtide.store.directory.data_directory import DataDirectory
from ebbtide.store.encryption.seal import MasterKey
from ebbtide.store.lmdb.replica import Replica
from tests.support.cluster import Cluster
from tests.support.encrypted import fill

MASTER, OTHER = MasterKey(b"m" * 32), MasterKey(b"o" * 32)
MAP_BYTES = 1 << 26

pytestmark = [pytest.mark.full, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Log servers for all tests."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


class Target:
    """A cluster without nodes, and the data directories that are moved into it."""

    def __init__(self, cluster: Cluster, name: str, home: Path) -> None:
        self._cluster = cluster
        self.home = home
        self.servers = cluster.servers
        flags = ("--replicas", "1", "--slots", "1", "--log-streams", "1")
        created = cluster.command("init", "--name", name, *flags)
        assert created.returncode == 0, created.stderr
        self.names, self._name = Names(name, 1, 1), name
        self.servers.use(self.names)

    def start_with(self, fingerprint: str) -> None:
        """Note the master key of the nodes, as their first start does."""
        self.servers.write(self.names.master_key, fingerprint.encode(), 0)

    def master_key(self) -> str | None:
        """Return the fingerprint of the nodes' master key; None if no node has started."""
        found = self.servers.read(self.names.master_key)
        return None if found is None else found[0].decode()

    def directory(self, folder: str, master: MasterKey | None, *agents: str) -> Path:
        """Create agents in a data directory of a single machine."""
        root = self.home / folder
        data = DataDirectory(root, initial_map_bytes=1 << 18, max_map_bytes=MAP_BYTES, master_key=master)
        data.acquire()
        if master is not None:
            data.keys.admit()
        for agent in agents:
            store = data.create_store(Identity(AgentId(agent), 5, 7, layout.FORMAT_VERSION))
            store.write(fill)
            store.close()
        data.release()
        return root

    def adopt(self, root: Path, **settings: str) -> Any:
        """Run the command on a directory."""
        flags = ("--name", self._name, "--data-dir", str(root), "--json")
        return self._cluster.command("adopt", *flags, **settings)

    def is_empty(self) -> bool:
        """Return whether nothing was moved into the cluster."""
        subjects = self.servers.subjects(self.names.log_prefix(0))
        return not subjects and not self.servers.subjects(f"{self.names.cluster}.state.data_keys")

    def log(self, agent: str) -> AgentLog:
        """Return the log of an agent."""
        return AgentLog(self.servers, self.names.subject_of(agent), agent, "test")

    def folded(self, agent: str, root: Path, folder: Path) -> Replica:
        """Return a copy that was made from the log of an agent, with the keys in a directory."""
        keys = DataDirectory(root, initial_map_bytes=1 << 18, max_map_bytes=MAP_BYTES, master_key=MASTER).keys
        seal_of = partial(keys.seal_of, agent)
        copy = Replica(folder, map_bytes=1 << 18, max_map_bytes=MAP_BYTES, seal_of=seal_of)
        assert self.log(agent).fold(copy)
        return copy


_numbers = itertools.count()


@pytest.fixture
def target(servers: Cluster, tmp_path: Path) -> Target:
    """A new cluster."""
    return Target(servers, f"c{next(_numbers)}", tmp_path)


def test_another_master_key_is_refused(target: Target) -> None:
    """Nothing is moved if the nodes could not decrypt it; with their key it is."""
    target.start_with(MASTER.fingerprint)
    root = target.directory("other", OTHER, "ann", "bea")
    refused = target.adopt(root)
    assert refused.returncode == ExitCode.REFUSED and "rotate-master" in refused.stderr
    for word in ("ann, bea", MASTER.fingerprint, OTHER.fingerprint, str(root)):
        assert word in " ".join(refused.stderr.split()), refused.stderr
    assert target.is_empty()
    same = target.adopt(target.directory("same", MASTER, "ann", "bea"))
    assert json.loads(same.stdout) == {"adopted": ["ann", "bea"], "left_out": {}}


def test_the_master_key_becomes_that_of_a_new_cluster(target: Target) -> None:
    """Nodes with another key are refused from then on, and so is another directory."""
    assert json.loads(target.adopt(target.directory("one", MASTER, "ann")).stdout)["adopted"] == ["ann"]
    assert target.master_key() == MASTER.fingerprint
    assert target.adopt(target.directory("two", OTHER, "bea")).returncode == ExitCode.REFUSED


def test_encrypted_agents_need_nodes_with_a_master_key(target: Target) -> None:
    """Nodes without one could not decrypt them."""
    target.start_with("")
    refused = target.adopt(target.directory("one", MASTER, "ann"), CLUSTER__REQUIRE_ENCRYPTION="false")
    assert refused.returncode == ExitCode.REFUSED and "no master key" in refused.stderr
    assert "encryption decrypt" in refused.stderr and target.is_empty()


def test_unencrypted_agents_are_refused(target: Target) -> None:
    """Unless the setting allows them: their texts are readable on the log servers."""
    target.start_with(MASTER.fingerprint)
    root = target.directory("plain", None, *(f"plain{number}" for number in range(7)))
    refused = target.adopt(root)
    message = " ".join(refused.stderr.split())
    assert refused.returncode == ExitCode.REFUSED and "plain4 and 2 more" in message
    assert "encryption encrypt" in message and "EBBTIDE_CLUSTER__REQUIRE_ENCRYPTION=false" in message
    assert target.is_empty()
    allowed = target.adopt(root, CLUSTER__REQUIRE_ENCRYPTION="false")
    assert len(json.loads(allowed.stdout)["adopted"]) == 7


def test_a_deleted_id_can_be_moved_in(target: Target, tmp_path: Path) -> None:
    """Its log continues after the deletion. But a file that was moved in before is not restored."""
    root = target.directory("first", MASTER, "ann")
    assert json.loads(target.adopt(root).stdout)["adopted"] == ["ann"]
    log = target.log("ann")
    last = target.servers.last(target.names.subject_of("ann"))
    assert last is not None
    log.head = ChainHead(last.sequence, last.hash)
    log.append_gone()
    replace_keys(target.servers, target.names, "ann", None)
    again = json.loads(target.adopt(root).stdout)
    assert again == {"adopted": [], "left_out": {"ann": "it was moved into the cluster and deleted there"}}
    other = target.directory("second", MASTER, "ann")
    assert json.loads(target.adopt(other).stdout)["adopted"] == ["ann"]
    records = target.servers.after(target.names.subject_of("ann"), 0, 100)
    assert [record.kind for record in records] == [Kind.GONE, Kind.REBASE]
    copy = target.folded("ann", other, tmp_path / "copy")
    file = Replica(other / "agents" / "ann", map_bytes=1 << 18, max_map_bytes=MAP_BYTES)
    assert copy.head == file.head and copy.digests() == file.digests()
    assert "has an agent with this id" in json.loads(target.adopt(other).stdout)["left_out"]["ann"]


def test_an_interrupted_adoption_is_repeated(target: Target) -> None:
    """Keys that it had written are no obstacle; other keys are one, and the agents after it are moved."""
    root = target.directory("one", MASTER, "ann", "bea")
    target.servers.write(target.names.data_keys("ann"), b"other keys", 0)
    target.servers.write(target.names.data_keys("bea"), (root / "keys" / "bea").read_bytes(), 0)
    done = json.loads(target.adopt(root).stdout)
    assert done["adopted"] == ["bea"] and "other data keys" in done["left_out"]["ann"]


def test_an_agent_without_its_key_is_left_out(target: Target) -> None:
    """Nodes could not decrypt it."""
    root = target.directory("one", MASTER, "ann", "bea")
    (root / "keys" / "ann").unlink()
    done = json.loads(target.adopt(root).stdout)
    assert done == {"adopted": ["bea"], "left_out": {"ann": "its data key is missing"}}
