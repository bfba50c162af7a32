"""Log servers whose disks are damaged, on real servers: a take has every acknowledged commit, or is LOG_BEHIND."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbtide.cluster.jetstream import Servers
from ebbtide.cluster.log import AgentLog, NoAnswer
from ebbtide.cluster.names import Names
from ebbtide.cluster.ownership import answered
from ebbtide.errors import EbbtideError
from tests.cluster.simulated import MemoryCopy, commit
from tests.support.log_servers import LogServers
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.full, pytest.mark.chaos, pytest.mark.timeout(300)]

NAMES = Names("ebbtide", 8, 1)
STREAM = NAMES.log_stream(0)
VICTIM = 0
RECORD_BYTES = 100_000
FILE_BYTES = 8 << 20
"""The size of a file of records, and the length of a log of elections that a log server does not keep longer."""
LOSSES = ("middle", "last", "whole")
"""The records of an agent that the damaged server has lost: in the middle, the last ones, or all."""
AGENTS = tuple(f"{loss}{number}" for loss in LOSSES for number in (0, 1))


class Owner:
    """An owner of one agent: its file and its log."""

    def __init__(self, servers: Servers, agent: str, copy: MemoryCopy | None = None) -> None:
        self.copy = copy or MemoryCopy()
        self.damaged: list[str] = []
        self.subject = NAMES.subject_of(agent)
        self.log = AgentLog(servers, self.subject, agent, "e1/1")
        self.log.on_damage = self.damaged.append

    def take(self) -> bool:
        return self.log.take(self.copy)

    def commit(self, name: str) -> None:
        head = self.log.append(commit(name), self.log.head)
        self.copy.apply([commit(name)], head)


class Scene:
    """Three log servers with the logs of some agents, which the logs of elections have no more."""

    def __init__(self, home: Path) -> None:
        self.log_servers = LogServers(home)
        self.home = home
        self.servers = Servers(self.log_servers.urls)

    def begin(self) -> Scene:
        self.log_servers.start()
        self.servers.connect()
        self.servers.create("ebbtide", slot_count=8, log_streams=1, replicas=3)
        self.servers.use(NAMES)
        self.log_servers.wait()
        self.owners = {name: Owner(self.servers, name) for name in ("flipped", *AGENTS, "filler")}
        for owner in self.owners.values():
            assert not owner.take()
        for name in AGENTS:
            if not name.startswith("whole"):
                self.append(name, "before")
        # The log server loses the record with the flipped bit, and all after it in the same file.
        for name in ("flipped", *AGENTS):
            self.append(name, f"damaged {name}")
        self.fill()
        for name in AGENTS:
            if name.startswith("middle"):
                self.append(name, "after")
        return self

    def append(self, agent: str, name: str) -> None:
        self.owners[agent].commit(name)

    def fill(self) -> None:
        """Fill more than one file with records of RECORD_BYTES, compressed."""
        for _ in range(3 * FILE_BYTES // (2 * RECORD_BYTES)):
            self.append("filler", random.randbytes(RECORD_BYTES).hex())

    def close(self) -> None:
        self.servers.close()
        self.log_servers.close()

    # --- faults --------------------------------------------------------------------------------------

    def files(self, index: int, stream: str = STREAM) -> list[Path]:
        """Return the files of a stream of a server, the oldest first."""
        folder = next(self.log_servers.all[index].store.rglob(f"streams/{stream}/msgs"))
        return sorted(folder.glob("*.blk"), key=lambda path: int(path.stem))

    def flip(self, index: int, subject: str = "") -> None:
        """Flip a bit in a record of a subject."""
        subject = subject or self.owners["flipped"].subject
        file = self.files(index, NAMES.stream_of(subject))[0]
        data = bytearray(file.read_bytes())
        data[data.index(subject.encode()) + len(subject) + 50] ^= 1
        file.write_bytes(data)

    def damage(self, *indices: int) -> None:
        """Flip a bit on the disks of some servers, and start them again."""
        for index in indices:
            self.log_servers.kill(index)
        for index in indices:
            self.flip(index)
            self.log_servers.restart(index)
        self.log_servers.wait()

    def lead(self, index: int, subject: str = "") -> None:
        """Let a server lead the stream of a subject."""
        name, subject = self.log_servers.all[index].name, subject or self.owners["flipped"].subject

        def leads() -> bool:
            try:
                if self.servers.leader(subject) != name:
                    query = {"placement": {"preferred": name}}
                    self.servers._api(f"STREAM.LEADER.STEPDOWN.{NAMES.stream_of(subject)}", query)
                return self.servers.leader(subject) == name
            except NoAnswer:
                return False

        wait_until(leads, 60, 0.2)

    def is_complete(self, agent: str) -> bool:
        """Return whether the leader has the whole log of an agent."""
        owner, sequence, count = self.owners[agent], 0, 0
        while records := self.servers.after(owner.subject, sequence, 1):
            sequence, count = records[0].sequence, count + 1
        return count == len(owner.copy.heads) and sequence == owner.copy.head.number

    def assert_taken(self, agent: str, *, has_file: bool) -> Owner:
        """Take an agent with its file or without one, and compare it with what was acknowledged."""
        expected = self.owners[agent].copy
        copy = MemoryCopy(expected.entries, expected.head, heads=[*expected.heads]) if has_file else None
        owner = Owner(self.servers, agent, copy)
        assert owner.take()
        assert owner.copy.entries == expected.entries
        assert owner.copy.asides == ()
        owner.commit(f"a commit after take {len(expected.heads)}")
        # The next test compares with these heads.
        owner.copy.heads = [*expected.heads, *(one for one in owner.copy.heads if one not in expected.heads)]
        self.owners[agent] = owner
        return owner


@pytest.fixture(scope="module")
def module_scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    scene = Scene(tmp_path_factory.mktemp("damage"))
    try:
        yield scene.begin()
    finally:
        scene.close()


@pytest.fixture
def scene(module_scene: Scene) -> Iterator[Scene]:
    """The servers without damage. After the test the damaged store is emptied, and copied from the others."""
    yield module_scene
    module_scene.log_servers.kill(VICTIM)
    shutil.rmtree(module_scene.log_servers.all[VICTIM].store)
    module_scene.log_servers.heal()
    module_scene.lead(VICTIM)
    for agent in module_scene.owners:
        assert module_scene.is_complete(agent)


@pytest.mark.parametrize("has_file", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_flipped_bits_at_the_leader_lose_nothing(scene: Scene, loss: str, has_file: bool) -> None:
    """The leader has lost records in the middle of the log, its end, or all of it: another server leads."""
    agent = f"{loss}{int(has_file)}"
    scene.damage(VICTIM)
    scene.lead(VICTIM)
    assert not scene.is_complete(agent), "the damage has no effect"
    owner = scene.assert_taken(agent, has_file=has_file)
    name = scene.log_servers.all[VICTIM].name
    assert set(owner.damaged) <= {name, ""}
    if loss != "middle":
        # Records in the middle are read from any server, or are in the file.
        assert name in owner.damaged and scene.servers.leader(owner.subject) != name


def test_flipped_bits_at_a_server_that_does_not_lead_stop_no_take(scene: Scene) -> None:
    """Reads of many records come from any server; those that break the chain are repeated at the leader."""
    scene.damage(VICTIM)
    scene.lead(1)
    for _ in range(5):
        owner = scene.assert_taken("middle0", has_file=False)
        assert set(owner.damaged) <= {""}
    assert scene.servers.leader(owner.subject) == scene.log_servers.all[1].name


def test_a_document_that_the_leader_has_lost_is_not_missing(scene: Scene) -> None:
    """Another server leads then: the wrapped data keys of an agent would otherwise be replaced by other ones."""
    servers, subject, content = scene.servers, NAMES.data_keys("ann"), b"wrapped" * 30
    servers.write(subject, content, 0)
    for number in range(2 * FILE_BYTES // RECORD_BYTES):
        servers.write(NAMES.data_keys(f"filler{number}"), random.randbytes(RECORD_BYTES), 0)
    scene.log_servers.kill(VICTIM)
    scene.flip(VICTIM, subject)
    scene.log_servers.restart(VICTIM)
    scene.log_servers.wait()
    scene.lead(VICTIM, subject)
    assert servers._message(NAMES.stream_of(subject), {"last_by_subj": subject}) is None, (
        "the damage has no effect"
    )
    found = answered(lambda: servers.read(subject))
    assert found is not None and found[0] == content
    assert servers.leader(subject) != scene.log_servers.all[VICTIM].name
    assert servers.read(NAMES.data_keys("bo")) is None


@pytest.mark.parametrize("is_emptied", [True, False])
def test_a_deleted_or_an_old_store_loses_nothing(scene: Scene, is_emptied: bool) -> None:
    """A server whose store was deleted, or replaced by an old copy, copies what it lacks from the others."""
    store = scene.log_servers.all[VICTIM].store
    old = scene.home / "old"
    scene.log_servers.kill(VICTIM)
    shutil.copytree(store, old, dirs_exist_ok=True)
    scene.log_servers.restart(VICTIM)
    scene.log_servers.wait()
    for agent in AGENTS:
        scene.append(agent, f"after the copy {is_emptied}")
    scene.fill()
    scene.log_servers.kill(VICTIM)
    shutil.rmtree(store)
    if not is_emptied:
        shutil.copytree(old, store)
    shutil.rmtree(old)
    scene.log_servers.restart(VICTIM)
    scene.log_servers.wait()
    scene.lead(VICTIM)
    for agent in AGENTS:
        scene.assert_taken(agent, has_file=False)
        scene.assert_taken(agent, has_file=True)


def test_bits_that_are_flipped_on_every_server_are_reported(tmp_path: Path) -> None:
    """Records that no server has are LOG_BEHIND, and no file is changed."""
    scene = Scene(tmp_path / "log")
    try:
        scene.begin()
        scene.damage(0, 1, 2)
        for agent, has_file in (("middle0", False), ("last0", True), ("whole0", True)):
            acknowledged = scene.owners[agent].copy
            copy = MemoryCopy(acknowledged.entries, acknowledged.head) if has_file else MemoryCopy()
            owner = Owner(scene.servers, agent, copy)
            with pytest.raises(EbbtideError) as error:
                owner.take()
            assert error.value.reason == "LOG_BEHIND"
            assert owner.damaged in ([], [""])
            assert (copy.entries == acknowledged.entries and not copy.asides) or not has_file
    finally:
        scene.close()
