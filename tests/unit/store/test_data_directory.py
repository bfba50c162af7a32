"""The data directory: names, lock, creation, erasure, markers."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import lmdb
import msgspec
import pytest

from ebbtide.errors import Corrupted, Exhausted, Precondition
from ebbtide.ids import AgentId
from ebbtide.records import Identity
from ebbtide.shard import Shard
from ebbtide.store import layout
from ebbtide.store.audit.erased_agents import ErasedAgents
from ebbtide.store.chain import AuditEntry, line_of
from ebbtide.store.directory.agent_replacement import PendingDeletion
from ebbtide.store.directory.data_directory import DataDirectory, directory_name
from ebbtide.store.lmdb import environment
from ebbtide.store.lmdb.environment import DATA_FILE
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from tests.support.erased_log import records_of
from tests.support.moving import received, sent

ANN = AgentId("ann")


def make(path: Path) -> DataDirectory:
    return DataDirectory(path, initial_map_bytes=1 << 18, max_map_bytes=1 << 26)


@pytest.fixture
def data(tmp_path: Path) -> Iterator[DataDirectory]:
    made = make(tmp_path / "data")
    made.acquire()
    yield made
    made.release()


def identity(agent_id: str = "ann", version: int = layout.FORMAT_VERSION) -> Identity:
    return Identity(agent_id, 5, 7, version)


@pytest.mark.parametrize(
    ("agent_id", "name"),
    [("ann", "ann"), ("a-b_9", "a-b_9"), ("0", "0")],
)
def test_plain_ids_are_their_own_directory(agent_id: str, name: str) -> None:
    """An id of lower-case letters, digits, dash and underscore is its own directory name."""
    assert directory_name(AgentId(agent_id)) == name


@pytest.mark.parametrize("agent_id", ["Ann", "-a", "_a", "安", "a b", "a.b", "~a", "x" * 65, "CON"])
def test_other_ids_are_hashed(agent_id: str) -> None:
    """Any other id becomes ~ and the base32 of its SHA-256, which every file system accepts."""
    name = directory_name(AgentId(agent_id))
    assert name.startswith("~")
    assert len(name) == 53
    assert name == name.lower()


def test_a_second_daemon_learns_the_holder_of_the_lock(data: DataDirectory) -> None:
    """Two daemons never share a directory; the error names the process with the lock."""
    import os

    with pytest.raises(Precondition, match=f"process {os.getpid()}") as caught:
        make(data.root).acquire()
    assert caught.value.reason == "DATA_DIRECTORY_LOCKED"
    data.release()
    data.release()
    again = make(data.root)
    again.acquire()
    again.release()


def test_an_agent_exists_from_creation_to_erasure(data: DataDirectory) -> None:
    """An agent is created, opened and erased, and nothing of it is left."""
    assert not data.exists(ANN)
    data.create_store(identity()).close()
    data.mark(ANN)
    assert data.exists(ANN)
    assert data.marked() == [ANN]
    data.open_store(ANN).close()
    assert data.erase(ANN, AuditEntry(1, "-", "agent_erased", {})).number == 1
    assert not data.exists(ANN)
    assert data.marked() == []
    assert list(data.agents.iterdir()) == []


def test_an_interrupted_creation_is_replaced(data: DataDirectory) -> None:
    """A directory without an identity has no accepted data, and a creation replaces it."""
    (data.agents / "ann").mkdir()
    assert not data.exists(ANN)
    data.create_store(identity()).close()
    assert data.exists(ANN)


class Interrupted(BaseException):
    """Ends an operation half-way, as a kill does."""


class CutOff(tuple[layout.Table[Any], ...]):
    """Tables that interrupt a creation half-way."""

    def __iter__(self) -> Iterator[layout.Table[Any]]:
        yield from list(super().__iter__())[: len(self) // 2]
        raise Interrupted


def test_a_creation_interrupted_among_its_tables_is_replaced(
    data: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted creation leaves a whole store or a blank one, which the next creation replaces."""
    with monkeypatch.context() as patch:
        patch.setattr(environment, "TABLES", CutOff(layout.TABLES))
        with pytest.raises(Interrupted):
            data.create_store(identity())
    assert (data.agents / "ann" / "data.mdb").exists()
    data.mark(ANN)
    assert not data.exists(ANN)
    assert data.marked() == []
    data.create_store(identity()).close()
    assert data.exists(ANN)
    assert data.marked() == [ANN]


@pytest.mark.parametrize("damage", ["missing", "torn"])
def test_a_lost_meta_file_never_costs_a_memory(data: DataDirectory, damage: str) -> None:
    """A lost meta.json is recovered from the store, which is not mistaken for an interrupted creation."""
    data.create_store(identity()).close()
    meta = data.agents / "ann" / "meta.json"
    meta.unlink() if damage == "missing" else meta.write_text("{")
    assert data.exists(ANN)
    made = data.meta("ann")
    assert made is not None
    assert made.agent_id == "ann"


def test_a_lost_meta_file_is_recovered_by_one_thread_at_a_time(
    data: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start and a request recover the same agent at once, and the store is opened only once."""
    data.create_store(identity()).close()
    data.mark(ANN)
    (data.agents / "ann" / "meta.json").unlink()
    looking, may_go_on, look = threading.Event(), threading.Event(), LmdbStore.peek

    def slow_look(path: Path, *args: Any, **kwargs: Any) -> Any:
        def slowly(txn: Any) -> Any:
            looking.set()
            may_go_on.wait(20)
            return args[0](txn)

        return look(path, slowly, *args[1:], **kwargs)

    monkeypatch.setattr(LmdbStore, "peek", slow_look)
    with ThreadPoolExecutor(2) as pool:
        at_start = pool.submit(data.marked)
        assert looking.wait(20)
        request = pool.submit(data.exists, ANN)
        with contextlib.suppress(TimeoutError):
            request.result(0.2)  # fails at once where it opens the store that is open
        may_go_on.set()
        assert at_start.result(20) == [ANN]
        assert request.result(20)


def test_a_directory_of_another_agent_is_refused(data: DataDirectory) -> None:
    """A store copied into another agent's directory is refused."""
    data.create_store(identity()).close()
    shutil.copytree(data.agents / "ann", data.agents / "bea")
    with pytest.raises(Corrupted) as caught:
        data.open_store(AgentId("bea"))
    assert caught.value.reason == "AGENT_ID_MISMATCH"


def test_a_newer_format_is_refused_before_the_store_is_touched(data: DataDirectory) -> None:
    """meta.json of a newer Ebbtide is FORMAT_TOO_NEW."""
    data.create_store(identity(version=layout.FORMAT_VERSION + 1)).close()
    with pytest.raises(Precondition) as caught:
        data.open_store(ANN)
    assert caught.value.reason == "FORMAT_TOO_NEW"


def test_an_older_format_is_refused(data: DataDirectory) -> None:
    """Data of an older Ebbtide is FORMAT_TOO_OLD, also where it lacks tables and meta.json."""
    data.create_store(identity(version=1)).close()
    with pytest.raises(Precondition) as caught:
        data.open_store(AgentId("ann"))
    assert caught.value.reason == "FORMAT_TOO_OLD"
    path = data.agents / directory_name(AgentId("ann"))
    with lmdb.open(str(path), max_dbs=40) as opened, opened.begin(write=True) as txn:
        txn.drop(opened.open_db(layout.ENTITIES.name, txn=txn, create=False))
    with pytest.raises(Precondition) as caught:
        LmdbStore.open(path, map_bytes=1 << 18, max_map_bytes=1 << 26)
    assert caught.value.reason == "FORMAT_TOO_OLD"
    assert "Start with an empty data directory." in caught.value.message


def test_an_erasure_cut_off_in_the_middle_is_finished_at_the_next_start(data: DataDirectory) -> None:
    """An agent whose directory was renamed for deletion does not come back."""
    data.create_store(identity()).close()
    (data.agents / "ann").rename(data.agents / ".erasing-ann")
    data.release()
    again = make(data.root)
    again.acquire()
    assert list(again.agents.iterdir()) == []
    again.release()


def entry(at_ms: int) -> AuditEntry:
    return AuditEntry(at_ms, "-", "agent_erased", {})


class Refusing:
    """A disk on which removals and renames of certain names fail."""

    def __init__(self, patch: pytest.MonkeyPatch, *names: str) -> None:
        self.names = names
        for owner, name in ((shutil, "rmtree"), (Path, "rename")):
            patch.setattr(owner, name, self._refusing(getattr(owner, name)))

    def _refusing(self, real: Callable[..., object]) -> Callable[..., object]:
        def step(path: Path, *rest: object, **how: object) -> object:
            if Path(path).name in self.names:
                raise OSError(errno.ENOSPC, "no space left on device")
            return real(path, *rest, **how)

        return step


def test_an_unfinished_deletion_does_not_stop_a_start(
    data: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start skips a deletion that cannot be finished; a later start finishes it with one record."""
    for name in ("ann", "bea", "cia", "dot"):
        data.create_store(identity(name)).close()
    data.release()
    for name in ("ann", "bea"):
        (data.agents / name).rename(data.agents / f".erasing-{name}")
        will = PendingDeletion(name, 9, "key1", "agent_erased")
        (data.agents / f".erasing-{name}" / "erasing.json").write_bytes(msgspec.json.encode(will))
    (data.agents / "cia").rename(data.agents / ".replaced-cia")
    (data.work / "cia").touch()
    (data.transfers / "left").mkdir()
    again = make(data.root)
    with monkeypatch.context() as patch:
        Refusing(patch, ".erasing-ann", ".replaced-cia")
        again.acquire()
        assert sorted(path.name for path in again.agents.iterdir()) == [
            ".erasing-ann",
            ".replaced-cia",
            "dot",
        ]
        again.open_store(AgentId("dot")).close()
        assert again.marked() == [], "nothing can be opened that has no place"
        with pytest.raises(Exhausted):
            again.exists(AgentId("cia"))
        with pytest.raises(Exhausted):
            again.create_store(identity("ann"))
        again.release()
    again.acquire()
    assert sorted(path.name for path in again.agents.iterdir()) == ["cia", "dot"]
    assert again.marked() == [AgentId("cia")], "its work is not forgotten"
    lines = [line_of(record) for record in records_of(again.erased)]
    assert sorted(line.agent_id for line in lines if line is not None) == ["ann", "bea"]
    again.release()


def test_an_agent_that_was_put_aside_is_back_before_its_name_is_used(data: DataDirectory) -> None:
    """After an interrupted replacement the old agent is back, and no other is created in its place."""
    data.create_store(identity()).close()
    (data.agents / "ann").rename(data.agents / ".replaced-ann")
    assert data.exists(ANN)
    data.open_store(ANN).close()
    assert [path.name for path in data.agents.iterdir()] == ["ann"]


def test_an_erasure_that_failed_half_way_ends_when_the_name_is_used(
    data: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pending deletion gets one record and leaves nothing, also when the agent is erased or created again."""
    for number, again in enumerate((lambda: data.erase(ANN, entry(8)), lambda: None), 1):
        data.create_store(identity()).close()
        with monkeypatch.context() as patch:
            Refusing(patch, ".erasing-ann")
            with pytest.raises(Exhausted):
                data.erase(ANN, entry(7))
        assert data.is_being_erased(ANN)
        assert not data.exists(ANN)
        again()
        data.create_store(identity()).close()
        assert not data.is_being_erased(ANN)
        assert [path.name for path in data.agents.iterdir()] == ["ann"]
        assert len(list(records_of(data.erased))) == 2 * number - 1
        data.erase(ANN, entry(7))
        assert len(list(records_of(data.erased))) == 2 * number, "it is another erasure, at the same moment"


def test_a_missing_record_of_a_replacement_is_written_later(
    data: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replacement succeeds without its record; a start, a deletion or the next replacement writes it once."""
    store: Any = data.create_store(identity())
    content = sent(data, store, "backup")
    store.close()

    def start() -> None:
        data.release()
        data.acquire()

    for number, then in enumerate((start, lambda: data.erase(ANN, entry(8)), lambda: None), 1):
        if not data.exists(ANN):
            data.create_store(identity()).close()
        with monkeypatch.context() as patch:
            patch.setattr(ErasedAgents, "ensure", refusing)
            data.install(ANN, received(data, content, ANN).path, entry(number))
        assert data.exists(ANN)
        data.open_store(ANN).close()
        assert (data.agents / ".replaced-ann").exists()
        then()
        data.install(ANN, received(data, content, ANN).path, entry(number + 10))
        assert [path.name for path in data.agents.iterdir()] == ["ann"]
    lines = [line for line in map(line_of, records_of(data.erased)) if line is not None]
    assert [(line.action, line.at) for line in lines] == [
        ("replaced", 1),
        ("replaced", 11),
        ("replaced", 2),
        ("agent_erased", 8),
        ("replaced", 3),
        ("replaced", 13),
    ]


def refusing(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "no space left on device")


def test_stale_markers_are_dropped(data: DataDirectory) -> None:
    """A marker of a missing agent is removed."""
    (data.work / "ghost").touch()
    assert data.marked() == []
    assert list(data.work.iterdir()) == []


def test_a_marker_that_cannot_be_removed_is_harmless(data: DataDirectory) -> None:
    """A marker that cannot be removed is no error."""
    (data.work / directory_name(ANN)).mkdir()
    data.unmark(ANN)
    assert (data.work / directory_name(ANN)).exists()


def test_a_successor_cleans_up_for_its_own_agents_only(data: DataDirectory) -> None:
    """A worker that replaces another finishes what that one was interrupted in, and touches nothing of the others."""
    shards = [Shard(index, 2) for index in range(2)]
    own, foreign = (
        next(f"agent-{n}" for n in range(9) if shard.owns(directory_name(AgentId(f"agent-{n}"))))
        for shard in shards
    )
    for agent in (own, foreign):
        data.create_store(identity(agent), begin=lambda txn: None).close()
        (data.agents / agent).rename(data.agents / f".erased-{agent}")
        data.mark(AgentId(agent))
    workers = [make(data.root) for _ in shards]
    for worker, shard in zip(workers, shards, strict=True):
        worker.share(shard, cleans_up=False)
    transfers = [worker.make_transfer() for worker in workers]
    successor = make(data.root)
    successor.share(shards[0], cleans_up=True)
    assert sorted(path.name for path in data.agents.iterdir()) == [f".erased-{foreign}"]
    assert not transfers[0].exists()
    assert transfers[1].exists()
    assert successor.marked() == []
    assert sorted(path.name for path in data.work.iterdir()) == [foreign]
    assert successor.owns(AgentId(own))
    assert not successor.owns(AgentId(foreign))


class OthersOwn:
    """Another node of a cluster owns every agent but some, and the logs of some do not have their copies any more."""

    def __init__(self, own: set[str], obsolete: set[str]) -> None:
        self._own, self._obsolete = own, obsolete

    def owns(self, directory: str) -> bool:
        return directory in self._own

    def discard(self, directory: str, path: Path, *, only_obsolete: bool) -> bool:
        if only_obsolete and directory not in self._obsolete:
            return False
        shutil.rmtree(path)
        return True

    def data_keys(self, directory: str) -> bytes | None:
        return None


@pytest.mark.parametrize(
    ("room_for", "left"), [(0, "bcdeo"), (4, "bcdeo"), (3, "cdeo"), (1, "eo"), (0.5, "o")]
)
def test_copies_of_other_nodes_have_a_limit(data: DataDirectory, room_for: float, left: str) -> None:
    """Obsolete copies are deleted, then those that were written longest ago; none that this node owns."""
    for age, name in enumerate("oabcde"):
        data.create_store(identity(name)).close()
        file = data.agents / name / DATA_FILE
        os.utime(file, (1000 + age, 1000 + age))
    size = file.stat().st_size
    data.replication = cast(Any, OthersOwn(own={"o"}, obsolete={"a"}))
    try:
        assert data.discard_copies(int(room_for * size)) == 6 - len(left)
        assert "".join(data.directories()) == left
    finally:
        data.replication = None
