"""Encrypted agents on disk: files are unreadable, changes are detected, and only the right key opens them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ebbtide.changes import Change
from ebbtide.errors import Corrupted, EbbtideError, Exhausted, Precondition
from ebbtide.ids import AgentId
from ebbtide.records import AgentCounts, Identity, Node
from ebbtide.store import layout
from ebbtide.store.chain import AuditEntry
from ebbtide.store.directory.data_directory import DataDirectory
from ebbtide.store.encryption.keys import DataKeys
from ebbtide.store.encryption.seal import MasterKey
from ebbtide.store.integrity.check import check_store
from ebbtide.store.integrity.rebuild import rebuild_store
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.transfer.rewrite import seal_agent, unseal_agent
from tests.support.encrypted import KEYED, digest, everything, fill, found_in, traces

ANN, BEA = AgentId("ann"), AgentId("bea")
MASTER, OTHER = MasterKey(b"m" * 32), MasterKey(b"o" * 32)


def make(root: Path, master: MasterKey | None = MASTER) -> DataDirectory:
    """Return a locked data directory."""
    made = DataDirectory(root, initial_map_bytes=1 << 18, max_map_bytes=1 << 26, master_key=master)
    made.acquire()
    return made


def put_agent(data: DataDirectory, agent_id: AgentId = ANN) -> None:
    """Create an agent and fill it."""
    store = data.create_store(Identity(agent_id, 5, 7, layout.FORMAT_VERSION))
    store.write(fill)
    store.close()


def told(data: DataDirectory, agent_id: AgentId = ANN) -> dict[str, object]:
    """Return the content of an agent's store, after checking it."""
    store = data.open_store(agent_id)
    try:
        assert check_store(store) == []
        return everything(store)
    finally:
        store.close()


@pytest.fixture
def data(tmp_path: Path) -> Iterator[DataDirectory]:
    made = make(tmp_path / "data")
    yield made
    made.release()


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[DataDirectory]:
    made = make(tmp_path / "plain", None)
    yield made
    made.release()


def test_no_text_is_found_in_any_file(data: DataDirectory, plain: DataDirectory) -> None:
    """Texts, hashes, compressed frames, vectors and index terms are in the files of a plain agent only."""
    put_agent(plain)
    put_agent(data)
    in_plain = found_in(plain.root)
    assert {name for name in traces() if not name.startswith("hash")} <= in_plain
    assert {f"hash of {text}" for text in KEYED} <= in_plain
    assert found_in(data.root) == set()
    assert told(data) == told(plain)


def test_deleted_text_leaves_no_trace_in_free_pages(data: DataDirectory) -> None:
    """Free pages of an encrypted store contain no plain text."""
    put_agent(data)
    store = data.open_store(ANN)
    store.write(lambda txn: txn.texts.put("Soon gone: Eichhörnchen in the attic"))
    store.write(lambda txn: txn.texts.drop(layout.text_key("Soon gone: Eichhörnchen in the attic")))
    store.close()
    contents = (data.agents / "ann" / "data.mdb").read_bytes()
    assert b"Soon gone" not in contents
    assert layout.text_key("Soon gone: Eichhörnchen in the attic") not in contents


def test_meta_has_the_fingerprint_and_no_file_contains_the_key(data: DataDirectory) -> None:
    """`meta.json` has the fingerprint; the wrapped key is outside the agent's files, readable by its owner only."""
    put_agent(data)
    meta = data.meta("ann")
    assert meta is not None
    assert meta.encrypted
    assert len(meta.key_fingerprint) == 16
    key_file = data.root / "keys" / "ann"
    assert key_file.stat().st_mode & 0o777 == 0o600
    assert key_file.parent.stat().st_mode & 0o777 == 0o700
    data.write_meta(Identity("ann", 5, 7, layout.FORMAT_VERSION), AgentCounts(node_count=9))
    again = data.meta("ann")
    assert again is not None
    assert (again.key_fingerprint, again.counts.node_count) == (meta.key_fingerprint, 9)


def test_agents_that_are_created_together_note_the_first_master_key_once(tmp_path: Path) -> None:
    """The first use of a master key succeeds on every thread that creates or restores an agent at that moment."""
    master = MasterKey(bytes(range(32)))
    with ThreadPoolExecutor(8) as pool:
        for number in range(30):
            path = tmp_path / str(number)
            keys = DataKeys(path, master)
            list(pool.map(lambda _, keys=keys: keys.admit(), range(8)))
            assert [file.name for file in path.iterdir()] == [".master"]
            assert keys.master_fingerprint() == master.fingerprint


@pytest.mark.parametrize("master", [None, OTHER], ids=["without", "another"])
def test_a_wrong_master_key_is_refused_and_changes_nothing(
    data: DataDirectory, master: MasterKey | None
) -> None:
    """A wrong or missing master key is MASTER_KEY_REFUSED, and changes no byte of the directory."""
    put_agent(data)
    data.keys.admit()
    data.release()
    # A restored agent has no lock file; opening the store creates one, even if it is then refused.
    (data.agents / "ann" / "lock.mdb").unlink()
    before = digest(data.root / "agents"), digest(data.root / "keys")
    wrong = make(data.root, master)
    for attempt in (wrong.keys.admit, lambda: wrong.open_store(ANN), lambda: seal_agent(wrong, ANN)):
        with pytest.raises(Precondition) as caught:
            attempt()
        assert caught.value.reason == "MASTER_KEY_REFUSED"
    wrong.release()
    assert (digest(data.root / "agents"), digest(data.root / "keys")) == before
    right = make(data.root)
    told(right)
    right.release()


def test_a_lost_meta_file_costs_nothing_without_the_key(data: DataDirectory) -> None:
    """A lost meta.json is recovered with the fingerprint, with or without the master key."""
    put_agent(data)
    before, meta = told(data), data.meta("ann")
    (data.agents / "ann" / "meta.json").unlink()
    data.release()
    wrong = make(data.root, OTHER)
    assert wrong.exists(ANN)
    with pytest.raises(Precondition):
        wrong.open_store(ANN)
    wrong.release()
    right = make(data.root)
    again = right.meta("ann")
    assert meta is not None
    assert again is not None
    assert (again.encrypted, again.key_fingerprint) == (True, meta.key_fingerprint)
    assert told(right) == before
    right.release()


def test_plain_agents_coexist_with_encrypted_ones(data: DataDirectory) -> None:
    """Existing agents stay unencrypted after a master key was set."""
    data.release()
    without = make(data.root, None)
    put_agent(without, BEA)
    without.release()
    both = make(data.root)
    put_agent(both, ANN)
    assert told(both, BEA) | {"identity": None} == told(both, ANN) | {"identity": None}
    metas = both.meta("ann"), both.meta("bea")
    assert [meta is not None and meta.encrypted for meta in metas] == [True, False]
    both.release()


def test_every_region_of_every_sealed_value_is_guarded(data: DataDirectory) -> None:
    """The checker and every reader detect a flipped bit in an encrypted value, and a moved value."""
    put_agent(data)
    store = data.open_store(ANN)
    raw = LmdbStore(store.path, store._environment, max_map_bytes=1 << 26)
    raw._tables = store._tables
    tampered = 0
    for table in sorted((one for one in layout.TABLES if one.is_sealed), key=lambda one: one.name):
        entries = raw.read(lambda txn, table=table: [*txn.tables.items(table)])  # type: ignore[attr-defined, misc]
        assert entries, table
        for index, (key, value) in enumerate(entries):
            changed = [
                value[:place] + bytes([value[place] ^ 4]) + value[place + 1 :] for place in places(value)
            ]
            swapped = entries[(index + 1) % len(entries)][1] if len(entries) > 1 else b""
            for wrong in [*changed, swapped, value[:10], b""]:
                raw.write(lambda txn, t=table, k=key, w=wrong: txn.tables.put(t, k, w))  # type: ignore[attr-defined, misc]
                assert [(one.table, one.key) for one in check_store(store)] == [
                    (table.name.decode(), key.hex())
                ]
                with pytest.raises(Corrupted):
                    store.read(lambda txn, table=table: [*txn.tables.items(table)])  # type: ignore[attr-defined, misc]
                tampered += 1
            raw.write(lambda txn, t=table, k=key, v=value: txn.tables.put(t, k, v))  # type: ignore[attr-defined, misc]
    assert tampered > 100
    assert check_store(store) == []
    store.close()


def places(value: bytes) -> list[int]:
    """Offsets in the key number, the nonce, the text and the tag."""
    return [0, 1, 12, 13, len(value) // 2, len(value) - 17, len(value) - 1]


def test_a_rebuild_repairs_an_encrypted_store(data: DataDirectory) -> None:
    """A rebuild of an encrypted store repairs derived entries and deletes texts without references."""
    put_agent(data)
    store = data.open_store(ANN)
    before = everything(store)
    store.write(lambda txn: txn.tables.clear(layout.CHUNK_REFERENCES))  # type: ignore[attr-defined]
    store.write(lambda txn: txn.texts.put("unreferenced"))
    assert any(one.is_repairable for one in check_store(store))
    assert rebuild_store(store) == []
    assert everything(store) == before
    store.close()


# --- other keys -----------------------------------------------------------------------------------------


def test_a_plain_agent_is_encrypted_rotated_and_decrypted(data: DataDirectory) -> None:
    """Each rewrite keeps the content, changes the key, leaves no file behind, and removes the old key."""
    data.release()
    without = make(data.root, None)
    put_agent(without)
    before = told(without)
    (data.agents / "ann" / "vectors.index").write_bytes(b"made of texts")
    without.release()
    held = make(data.root)
    fingerprints = [seal_agent(held, ANN), seal_agent(held, ANN)]
    assert len(set(fingerprints)) == 2
    assert told(held) == before
    assert found_in(held.root) == set()
    assert sorted(path.name for path in (held.agents / "ann").iterdir()) == [
        "data.mdb",
        "lock.mdb",
        "meta.json",
    ]
    held.keys.seal_of("ann", fingerprints[1])
    with pytest.raises(Precondition) as caught:
        held.keys.seal_of("ann", fingerprints[0])
    assert caught.value.reason == "DATA_KEY_MISSING"
    assert unseal_agent(held, ANN)
    assert not unseal_agent(held, ANN)
    assert told(held) == before
    assert not held.keys.has_keys("ann")
    meta = held.meta("ann")
    assert meta is not None
    assert (meta.encrypted, meta.key_fingerprint) == (False, "")
    held.release()


def test_a_store_with_damage_is_not_rewritten(data: DataDirectory) -> None:
    """A store with findings is not rewritten, and neither it nor its keys change."""
    put_agent(data)
    store = data.open_store(ANN)
    store.write(lambda txn: txn.tables.delete(layout.NODES, layout.u64(1)))  # type: ignore[attr-defined]
    store.close()
    before = (data.agents / "ann" / "data.mdb").read_bytes(), digest(data.root / "keys")
    with pytest.raises(Corrupted, match="Nothing was changed"):
        seal_agent(data, ANN)
    assert ((data.agents / "ann" / "data.mdb").read_bytes(), digest(data.root / "keys")) == before


@pytest.mark.parametrize("rewrite", [seal_agent, unseal_agent])
def test_without_room_for_both_nothing_is_changed(
    data: DataDirectory, rewrite: Callable[[DataDirectory, AgentId], object]
) -> None:
    """A rewrite on a full disk is STORE_FULL; the store and its key are unchanged."""
    put_agent(data)
    data.release()
    store = data.open_store(ANN)
    for number in range(10, 70):
        store.write(lambda txn, n=number: txn.apply(Change(nodes=[large(n)], next_node_id=n + 1)))  # type: ignore[misc]
    before = everything(store)
    store.close()
    small = DataDirectory(data.root, initial_map_bytes=1 << 18, max_map_bytes=1 << 18, master_key=MASTER)
    with pytest.raises(Exhausted):
        rewrite(small, ANN)
    assert not (data.agents / "ann" / "rewritten").exists()
    assert told(data) == before


def large(number: int) -> Node:
    """Return a large node."""
    content = "".join(chr(0x4E00 + number * 50 + place) for place in range(2000))
    return Node(number, content, "p", (), 1, len(content))


def test_a_new_master_key_rewraps_every_key(data: DataDirectory) -> None:
    """A rotation of the master key touches no agent, and a second run finishes an interrupted one."""
    put_agent(data, ANN)
    put_agent(data, BEA)
    data.keys.admit()
    before = digest(data.agents), told(data, ANN), told(data, BEA)
    write = data.keys._write
    data.keys._write = lambda name, content: write(name, content) if name == "ann" else cut()  # type: ignore[method-assign]
    with pytest.raises(InterruptedError):
        data.keys.rotate_master(OTHER)
    data.keys._write = write  # type: ignore[method-assign]
    told(data, BEA)
    with pytest.raises(Precondition):
        told(data, ANN)
    assert data.keys.rotate_master(OTHER) == 1
    assert data.keys.rotate_master(OTHER) == 0
    data.release()
    renewed = make(data.root, OTHER)
    renewed.keys.admit()
    assert (told(renewed, ANN), told(renewed, BEA)) == before[1:]
    renewed.release()
    old = make(data.root)
    with pytest.raises(Precondition, match="rotate-master"):
        old.keys.admit()
    with pytest.raises(Precondition):
        old.keys.rotate_master(MasterKey(b"x" * 32))
    old.release()


def cut() -> None:
    """Interrupts an operation, as a kill does."""
    raise InterruptedError


def test_a_destroyed_key_makes_agent_and_backups_unreadable(data: DataDirectory, tmp_path: Path) -> None:
    """An agent without its key is DATA_KEY_MISSING, also a copy of it; it can be erased and created again."""
    put_agent(data)
    shutil.copytree(data.agents / "ann", tmp_path / "backup")
    wrapped = (data.root / "keys" / "ann").read_bytes()
    assert data.keys.destroy("ann")
    assert not data.keys.destroy("ann")
    assert all(wrapped not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    with pytest.raises(Precondition) as caught:
        data.open_store(ANN)
    assert caught.value.reason == "DATA_KEY_MISSING"
    assert data.exists(ANN)
    data.erase(ANN, AuditEntry(0, "-", "agent_erased", {}))
    put_agent(data)
    shutil.rmtree(data.agents / "ann")
    shutil.copytree(tmp_path / "backup", data.agents / "ann")
    with pytest.raises(Precondition) as caught:
        data.open_store(ANN)
    assert caught.value.reason == "DATA_KEY_MISSING"


def test_erasing_an_agent_destroys_its_key(data: DataDirectory) -> None:
    """A deletion destroys the key; a start finishes one that was interrupted after the rename."""
    put_agent(data, ANN)
    put_agent(data, BEA)
    data.erase(ANN, AuditEntry(0, "-", "agent_erased", {}))
    assert not data.keys.has_keys("ann")
    (data.agents / "bea").rename(data.agents / ".erasing-bea")
    data.release()
    again = make(data.root)
    assert not again.keys.has_keys("bea")
    assert list(again.agents.iterdir()) == []
    again.release()


def test_a_new_agent_never_has_the_key_of_an_old_one(data: DataDirectory) -> None:
    """A new agent does not get the key of an earlier one whose files were removed by hand."""
    put_agent(data)
    old = data.meta("ann")
    shutil.rmtree(data.agents / "ann")
    put_agent(data)
    new = data.meta("ann")
    assert old is not None
    assert new is not None
    assert new.key_fingerprint != old.key_fingerprint
    with pytest.raises(Precondition):
        data.keys.seal_of("ann", old.key_fingerprint)


def test_without_a_master_key_nothing_of_it_is_loaded() -> None:
    """A daemon without encryption does not import `cryptography`."""
    script = "import sys, ebbtide.daemon, ebbtide.cli.offline; sys.exit('cryptography' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_keys_are_of_no_use_to_another_agent(data: DataDirectory) -> None:
    """A key file of another agent is refused, and a partial one is Corrupted."""
    put_agent(data, ANN)
    put_agent(data, BEA)
    ann, keys = data.root / "keys" / "ann", data.root / "keys"
    saved = ann.read_bytes()
    for content, reason in (
        ((keys / "bea").read_bytes(), "MASTER_KEY_REFUSED"),
        (saved[:40], "STORE_CORRUPTED"),
    ):
        ann.write_bytes(content)
        with pytest.raises(EbbtideError) as caught:
            data.open_store(ANN)
        assert caught.value.reason == reason
    ann.write_bytes(saved)
    told(data)
