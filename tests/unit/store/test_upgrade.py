"""The upgrade of an older store: complete, at once or not at all, and also from a backup.

`tests/golden/format_2.backup` and `format_2.jsonl` are the backup and the export of one agent, written by the last
Ebbtide with format 2. `format_3.backup` is the same agent in format 3.
"""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lmdb
import msgspec
import pytest

from ebbtide.errors import Corrupted, Exhausted, InvalidRequest
from ebbtide.events import EventRecord, unpacked
from ebbtide.ids import AgentId
from ebbtide.records import AgentCounts, Identity, Life
from ebbtide.store import layout
from ebbtide.store.codec import record
from ebbtide.store.directory.agent_meta import write_meta
from ebbtide.store.encryption.seal import Seal
from ebbtide.store.integrity.check import check_store
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.upgrade import OLD_VALUE_SIZES
from ebbtide.store.transfer.backup_file import read_backup
from tests.support import mutations
from tests.support.forks import run_apart
from tests.support.moving import content_of, directory, received, sent, staged_store
from tests.support.steps import Steps, kill, watch
from tests.unit.store.test_check import fill

GOLDEN = Path(__file__).parents[2] / "golden"
ANN = AgentId("ann")
MAPS = {"map_bytes": 1 << 18, "max_map_bytes": 1 << 28}

OLD_EVENTS = record(EventRecord)


def unpacked_store(place: Path, version: int) -> Path:
    """Unpack the store of an older format."""
    place.mkdir()
    with (GOLDEN / f"format_{version}.backup").open("rb") as file:
        read_backup(file, place / "data.mdb", max_bytes=1 << 28)
    return place


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The directory of the store of format 2."""
    return unpacked_store(tmp_path / "old", 2)


@pytest.fixture(params=[2, 3])
def any_old(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The directory of a store of each older format."""
    return unpacked_store(tmp_path / "old", request.param)


@pytest.fixture
def data() -> Iterator[Any]:
    """An empty data directory."""
    with directory() as held:
        yield held


def lines_of(export: bytes) -> list[bytes]:
    """Return the lines of an export without the header and the end, which depend on time and version.

    They are without lives: an export of format 2 has none, while a store of format 2 has some in its events.
    """
    lines = [re.sub(rb',"born_after":[0-9]+', b"", line) for line in export.splitlines()[1:-1]]
    return [line for line in lines if not line.startswith(b'{"type":"forgotten"')]


EXPORTED = lines_of((GOLDEN / "format_2.jsonl").read_bytes())


def raw(path: Path, change: Callable[[lmdb.Environment, Any], Any]) -> Any:
    """Run a function in a transaction on an LMDB file, without any rule of the store."""
    with (
        lmdb.open(str(path), max_dbs=64, map_size=1 << 28) as environment,
        environment.begin(write=True) as txn,
    ):
        return change(environment, txn)


def trees_of(path: Path) -> set[bytes]:
    """Return the names of the trees of a store."""
    return raw(path, lambda _, txn: {bytes(name) for name, _ in txn.cursor()})  # type: ignore[no-any-return]


def events_of(path: Path) -> list[Any]:
    """Return the events of a store of format 2."""

    def read(environment: Any, txn: Any) -> list[Any]:
        entries = txn.cursor(db=environment.open_db(b"events", txn=txn, create=False)).iternext()
        return [
            event
            for key, value in list(entries)
            for event in unpacked(OLD_EVENTS.decode(value), layout.from_u64(key), 0)
        ]

    return raw(path, read)  # type: ignore[no-any-return]


def installed(data: Any, old: Path) -> Path:
    """Copy the store of format 2 into a data directory, as its agent."""
    place: Path = data.agents / "ann"
    shutil.copytree(old, place)
    write_meta(place, Identity("ann", 5, 7, 2), AgentCounts(), "")
    return place


def test_an_older_store_is_upgraded_when_it_is_opened(data: Any, old: Path) -> None:
    """The upgraded store has the same content and events, passes the checker, and states its format in both places."""
    events = events_of(old)
    place = installed(data, old)
    store = data.open_store(ANN)
    try:
        assert check_store(store) == []
        assert lines_of(sent(data, store, "export")) == EXPORTED
        assert store.read(lambda txn: list(txn.events.since(0))) == events
        assert_lives_follow(store, events)
        assert store.read(lambda txn: txn.meta.identity).format_version == layout.FORMAT_VERSION
    finally:
        store.close()
    assert data.meta("ann").format_version == layout.FORMAT_VERSION
    assert trees_of(place) == {name.encode() for name in layout.VALUE_SIZES}


def assert_lives_follow(store: LmdbStore, events: list[Any]) -> None:
    """Assert that the lives of a store are those that its events tell, which go back to its beginning."""
    finished, lives = 0, dict[int, Life]()
    for event in events:
        numbers = event.numbers
        if event.kind == "NodeCreated":
            lives[numbers["node"]] = Life(finished, numbers["length"])
        elif event.kind == "NodeForgotten":
            lives[numbers["node"]] = lives[numbers["node"]]._replace(forgotten_in=numbers["pass_number"])
        elif event.kind == "MemoryErased":
            lives.pop(numbers["node"], None)
        elif event.kind == "PassCompleted":
            finished = numbers["pass_number"]
    assert lives
    assert store.read(lambda txn: txn.events.lives()) == lives
    assert store.read(lambda txn: {one: txn.lives.get(one) for one in range(txn.meta.next_node_id)}) == {
        one: lives.get(one) for one in range(store.read(lambda txn: txn.meta.next_node_id))
    }


def test_an_upgraded_store_is_written_like_a_new_one(data: Any, old: Path) -> None:
    """After an upgrade texts are counted, links found by target and entities deleted as in a new store."""
    installed(data, old)
    store = data.open_store(ANN)
    try:
        node = store.read(lambda txn: next(txn.nodes.all()))
        entity = store.read(lambda txn: next(txn.entities.all()))
        assert store.read(lambda txn: txn.links.count_at(node.id)) > 0

        def change(txn: Any) -> None:
            txn.texts.drop(txn.texts.put("said once"))
            txn.links.remove_to(node.id)
            txn.entities.delete(entity.id)
            txn.meta.set(entity_focus=())
            txn.scans.reset([entity.id])

        store.write(change)
        assert not [one for one in store.read(lambda txn: list(txn.links.all())) if one.target == node.id]
        assert check_store(store) == []
    finally:
        store.close()


@pytest.mark.parametrize("version", [2, 3])
def test_a_backup_of_an_older_format_is_restored(data: Any, version: int) -> None:
    """A backup of an older format becomes an agent with the same content."""
    staged = received(data, (GOLDEN / f"format_{version}.backup").read_bytes())
    with staged_store(staged) as store:
        assert check_store(store) == []
        assert lines_of(sent(data, store, "export")) == EXPORTED
    assert trees_of(staged.path) == {name.encode() for name in layout.VALUE_SIZES}


def test_an_export_of_an_older_store_is_imported(data: Any) -> None:
    """An export that was written with format 2 becomes an agent with the same content."""
    content = (GOLDEN / "format_2.jsonl").read_bytes()
    assert b'"version":2' in content.splitlines()[0]
    staged = received(data, content)
    with staged_store(staged) as store:
        assert check_store(store) == []
        assert lines_of(sent(data, store, "export")) == EXPORTED


def opened_with_steps(path: Path, at: int) -> list[str]:
    """Open a store and close it. A kill happens at a step."""
    steps = Steps(path, at, kill)
    watch(steps)
    steps.is_armed = True
    LmdbStore.open(path, **MAPS).close()
    return steps.taken


def test_a_store_of_format_3_gets_the_nodes_that_cite_each_message(data: Any, tmp_path: Path) -> None:
    """The upgrade writes what a new store has, and an export of format 2 and 3 gives the same."""
    place = installed(data, unpacked_store(tmp_path / "old", 3))
    assert LmdbStore.peek(place, lambda txn: txn.meta.citings_due, max_map_bytes=1 << 28)
    store = data.open_store(ANN)
    try:
        assert not store.read(lambda txn: txn.meta.citings_due)
        assert check_store(store) == []
        assert lines_of(sent(data, store, "export")) == EXPORTED
        nodes = store.read(lambda txn: list(txn.nodes.all()))
        for node in nodes:
            for source in node.sources:
                found = store.read(lambda txn, message=source.message: txn.citings.of(message))
                assert node.id in found
    finally:
        store.close()


def test_a_kill_during_an_upgrade_loses_nothing(data: Any, any_old: Path, tmp_path: Path) -> None:
    """After a kill at any step the next opening has the whole content."""
    place, log = tmp_path / "killed", tmp_path / "log"
    shutil.copytree(any_old, place)
    code, steps = run_apart(log, opened_with_steps, place, 0)
    assert code == 0, log.read_text()
    assert any(step.startswith("commit") for step in steps)
    for at in range(1, len(steps) + 1):
        shutil.rmtree(place)
        shutil.copytree(any_old, place)
        code, _ = run_apart(log, opened_with_steps, place, at)
        assert code == -signal.SIGKILL, (at, log.read_text())
        store = LmdbStore.open(place, **MAPS)
        try:
            assert check_store(store) == [], steps[at - 1]
            assert lines_of(sent(data, store, "export")) == EXPORTED, steps[at - 1]
        finally:
            store.close()


def test_an_upgrade_without_room_changes_nothing(old: Path) -> None:
    """Where the map cannot grow the upgrade is STORE_FULL, and works later with a larger map."""

    def grow(environment: Any, txn: Any) -> None:
        digested = environment.open_db(b"digested", txn=txn, create=False)
        for number in range(100, 20_000):
            txn.put(layout.u64(number), layout.u64(number), db=digested)

    raw(old, grow)
    size = (old / "data.mdb").stat().st_size
    trees = trees_of(old)
    with pytest.raises(Exhausted) as caught:
        LmdbStore.open(old, map_bytes=size, max_map_bytes=size)
    assert caught.value.reason == "STORE_FULL"
    assert trees_of(old) == trees == {name.encode() for name in OLD_VALUE_SIZES}
    store = LmdbStore.open(old, map_bytes=size, max_map_bytes=1 << 28)
    assert store.read(lambda txn: txn.tables.count(layout.DIGESTED)) > 19_000
    store.close()


def test_an_encrypted_store_is_upgraded_without_its_key(tmp_path: Path) -> None:
    """Sealed values are copied as they are, and can be decrypted at their places afterwards."""
    seal = Seal(1, bytes(32))
    path = tmp_path / "sealed"
    path.mkdir()
    store = LmdbStore.create(path, Identity("ann", 1, 7, layout.FORMAT_VERSION), seal=seal, **MAPS)
    store.write(fill)
    before = content_of(store)
    store.close()
    raw(path, _downgrade)
    assert trees_of(path) == {name.encode() for name in OLD_VALUE_SIZES}
    assert LmdbStore.peek(path, lambda txn: txn.counts(), max_map_bytes=1 << 28).message_count == 3
    store = LmdbStore.open(path, seal_of=lambda _: seal, **MAPS)
    lives = {"lives": content_of(store)["lives"]}
    assert content_of(store) == before | lives
    assert check_store(store) == []
    store.close()


def test_an_encrypted_store_of_format_3_is_upgraded_with_its_key(tmp_path: Path) -> None:
    """Reading it without the key leaves the nodes that cite each message to the next opening with the key."""
    seal = Seal(1, bytes(32))
    store = LmdbStore.create(tmp_path, Identity("ann", 1, 7, 3), seal=seal, **MAPS)
    store.write(fill)
    before = content_of(store)
    store.write(lambda txn: txn.tables.clear(layout.CITINGS))
    store.close()
    assert LmdbStore.peek(tmp_path, lambda txn: txn.meta.citings_due, max_map_bytes=1 << 28)
    store = LmdbStore.open(tmp_path, seal_of=lambda _: seal, **MAPS)
    after = content_of(store)
    assert after.pop("identity").format_version == layout.FORMAT_VERSION
    assert after == {name: value for name, value in before.items() if name != "identity"}
    assert check_store(store) == []
    store.close()


def test_a_damaged_store_of_format_3_can_be_checked(tmp_path: Path) -> None:
    """A node that cannot be decoded is a finding, also where the upgrade is not complete."""
    store = LmdbStore.create(tmp_path, Identity("ann", 1, 7, 3), **MAPS)
    store.write(fill)
    store.write(lambda txn: txn.tables.put(layout.NODES, layout.u64(2), b"\xc1"))
    store.close()
    store = LmdbStore.open(tmp_path, **MAPS)
    assert {finding.table for finding in check_store(store) if not finding.is_repairable} == {"nodes"}
    store.close()


_ADDED = (layout.ASSERTIONS, layout.RULINGS, layout.CITINGS, layout.LIVES)
"""The tables that format 2 does not have."""


def _downgrade(environment: Any, txn: Any) -> None:
    """Turn a store into one of format 2 with the same content."""
    shared = environment.open_db(layout.SHARED_TREE, txn=txn, create=False)
    entries = list(txn.cursor(db=shared).iternext())
    chunks = environment.open_db(b"chunks", txn=txn, create=False)
    places = [bytes(place) for place, _ in txn.cursor(db=chunks).iternext()]
    tables = {table.prefix: table for table in layout.TABLES if table.prefix}
    old = {
        name: environment.open_db(name.encode(), txn=txn, dupsort=size > 0, dupfixed=size > 0)
        for name, size in OLD_VALUE_SIZES.items()
    }
    for place in places:
        txn.put(place, layout.u32(1), db=old["chunk_references"])
    for key, value in entries:
        if tables[key[:1]] not in _ADDED and key[1:] != layout.MetaEntries.has_lives.name:
            txn.put(key[1:], value, db=old[tables[key[:1]].name.decode()])
    events = list(txn.cursor(db=old["events"]).iternext())
    for key, value in events:
        txn.put(key, OLD_EVENTS.encode(layout.EVENTS.value.decode(value)), db=old["events"])
    identity = layout.MetaEntries.identity
    agent = identity.codec.decode(txn.get(identity.name, db=old["meta"]))
    txn.put(identity.name, identity.codec.encode(Identity(agent.agent_id, 1, 7, 2)), db=old["meta"])
    txn.drop(shared)


def test_an_invalid_record_of_events_stays_a_finding(old: Path) -> None:
    """Events that cannot be decoded do not stop the upgrade, and the checker reports them."""
    raw(
        old,
        lambda environment, txn: txn.put(
            layout.u64(1), b"\xc1", db=environment.open_db(b"events", txn=txn, create=False)
        ),
    )
    store = LmdbStore.open(old, **MAPS)
    assert {finding.table for finding in check_store(store)} == {"events"}
    store.close()


@pytest.mark.parametrize("name", sorted(OLD_VALUE_SIZES))
def test_an_older_store_without_a_table_is_corrupted(old: Path, name: str) -> None:
    """An incomplete store of format 2 is STORE_CORRUPTED, and stays as it is."""
    raw(
        old,
        lambda environment, txn: txn.drop(environment.open_db(name.encode(), txn=txn, create=False)),
    )
    trees = trees_of(old)
    with pytest.raises(Corrupted) as caught:
        LmdbStore.open(old, **MAPS)
    assert caught.value.reason == "STORE_CORRUPTED"
    assert trees_of(old) == trees


def test_a_backup_with_the_trees_of_another_format_is_refused(data: Any) -> None:
    """The manifest decides which trees are read, so other trees in the file have no effect."""
    manifest, content = mutations.unpacked((GOLDEN / "format_2.backup").read_bytes())
    forged = mutations.packed(msgspec.structs.replace(manifest, store_format=3), content)
    with pytest.raises(InvalidRequest) as caught:
        received(data, forged)
    assert caught.value.reason == "BACKUP_UNREADABLE"
