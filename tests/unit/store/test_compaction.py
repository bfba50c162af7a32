"""A compaction removes all deleted data, loses no entry, and survives an interruption at any moment."""

from __future__ import annotations

import hashlib
import shutil
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ebbtide.changes import Change
from ebbtide.errors import Exhausted
from ebbtide.records import Identity, Link, Node
from ebbtide.store import layout
from ebbtide.store.chain import AuditEntry
from ebbtide.store.integrity.check import check_store
from ebbtide.store.lmdb.lmdb_store import FRESH_FILE, LmdbStore
from tests.support.process import ROOT
from tests.support.scanning import Traces

MAPS = {"map_bytes": 1 << 20, "max_map_bytes": 1 << 28}
SECRET = "Clara keeps the blue key under the third flowerpot"
KEPT = "The harbour smells of tar and oranges in the morning"


def filled(path: Path) -> LmdbStore:
    """Create a store in which texts of many sizes were written and erased, so pages were split, shared and freed."""
    path.mkdir(exist_ok=True)
    store = LmdbStore.create(path, Identity("ann", 1, 7, layout.FORMAT_VERSION), **MAPS)
    for number in range(1, 120):
        node = Node(number, f"{KEPT} {number}", KEPT, ("tar",), 1, 100)
        links = [Link(number, number - 1, f"r{number % 7}", 1.0, 0)] if number > 1 else []
        store.write(
            lambda txn, n=node, some=links: txn.apply(Change(nodes=[n], links=some, next_node_id=n.id + 1))  # type: ignore[misc]
        )
    keys = []
    for size in (1, 5, 30, 40, 60, 80, 120, 400):
        # Compressible text would use few pages; this text does not compress.
        noise = "".join(hashlib.sha256(b"%d %d" % (size, i)).hexdigest() for i in range(size))
        keys.append(store.write(lambda txn, text=f"{SECRET} {noise}": txn.texts.put(text)))  # type: ignore[misc]
    for name in (b"secret-1", b"secret-2"):
        store.write(lambda txn, name=name: txn.tables.put(layout.META, name, SECRET.encode() * 20))  # type: ignore
    for key in keys:
        store.write(lambda txn, key=key: txn.texts.drop(key))  # type: ignore[misc]
    for name in (b"secret-1", b"secret-2"):
        store.write(lambda txn, name=name: txn.tables.delete(layout.META, name))  # type: ignore
    store.write(
        lambda txn: (
            txn.meta.set(compaction_due=True),
            txn.audit.append(AuditEntry(1, "-", "forgotten", {}), "ann"),
        )
    )
    return store


def contents(store: LmdbStore) -> dict[layout.Table[Any], list[tuple[bytes, bytes]]]:
    """Return every entry of every table except the note of a due compaction."""

    def read(txn: Any) -> dict[layout.Table[Any], list[tuple[bytes, bytes]]]:
        return {
            name: [(bytes(k), bytes(v)) for k, v in txn.tables.items(name) if k != b"compaction_due"]
            for name in layout.TABLES
        }

    return store.read(read)


def holds_secret(path: Path) -> bool:
    return any(SECRET.encode() in file.read_bytes() for file in path.iterdir())


def test_nothing_is_lost_and_nothing_stays_behind(tmp_path: Path) -> None:
    """A compaction keeps every entry, and removes the bytes of deleted data from the file."""
    store = filled(tmp_path)
    before = contents(store)
    assert holds_secret(tmp_path) and store.read(lambda txn: txn.meta.compaction_due)
    size = (tmp_path / "data.mdb").stat().st_size
    store.compact()
    assert not holds_secret(tmp_path) and not store.read(lambda txn: txn.meta.compaction_due)
    assert contents(store) == before and check_store(store) == []
    assert (tmp_path / "data.mdb").stat().st_size < size
    store.write(lambda txn: txn.texts.put(KEPT))
    store.close()
    again = LmdbStore.open(tmp_path, **MAPS)
    assert len(contents(again)[layout.CHUNKS]) == 1
    again.close()
    assert Traces([SECRET]).found_in(tmp_path) == []


def test_a_compacted_store_grows_again(tmp_path: Path) -> None:
    """After a compaction the map starts at the size of the file and grows again."""
    store = filled(tmp_path)
    store.compact()
    for number in range(40):
        noise = "".join(hashlib.sha256(b"%d %d" % (number, i)).hexdigest() for i in range(2000))
        store.write(lambda txn, text=noise: txn.texts.put(text))  # type: ignore[misc]
    assert len(contents(store)[layout.CHUNKS]) == 40
    store.close()


def test_without_room_the_store_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk a compaction fails, stays due, and leaves no partial file; the store works on."""
    store = filled(tmp_path)
    before = contents(store)

    def refuse(path: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("ebbtide.store.lmdb.lmdb_store.sync_file", refuse)
        with pytest.raises(Exhausted):
            store.compact()
    assert contents(store) == before and not (tmp_path / FRESH_FILE).exists()
    assert store.read(lambda txn: txn.meta.compaction_due)
    store.compact()
    assert not holds_secret(tmp_path)
    store.close()


CUT_OFF = """
import os, signal, sys
from pathlib import Path
from ebbtide.store.lmdb.lmdb_store import LmdbStore
store = LmdbStore.open(Path(sys.argv[1]), map_bytes=1 << 20, max_map_bytes=1 << 28)
left = int(sys.argv[2])
def hook(event, arguments):
    global left
    if event in ("open", "os.remove", "os.rename", "os.truncate"):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
store.compact()
os._exit(0)
"""


def test_a_kill_at_any_moment_leaves_a_whole_store(tmp_path: Path) -> None:
    """After a kill before any file operation the store has every entry, and a second compaction succeeds."""
    store = filled(tmp_path / "made")
    before = contents(store)
    store.close()
    for moment in count():
        path = tmp_path / f"cut-{moment}"
        shutil.copytree(tmp_path / "made", path)
        command = [sys.executable, "-c", CUT_OFF, str(path), str(moment)]
        done = subprocess.run(command, cwd=ROOT, timeout=60, check=False)
        assert done.returncode in (0, -signal.SIGKILL)
        left = LmdbStore.open(path, **MAPS)
        assert contents(left) == before and check_store(left) == [], moment
        assert not (path / FRESH_FILE).exists()
        if left.read(lambda txn: txn.meta.compaction_due):
            left.compact()
        left.close()
        assert not holds_secret(path), moment
        if done.returncode == 0:
            break
    assert moment >= 4


def grown(path: Path) -> LmdbStore:
    """Create a store with few entries, written in many commits."""
    path.mkdir(exist_ok=True)
    store = LmdbStore.create(path, Identity("ann", 1, 7, layout.FORMAT_VERSION), **MAPS)
    for number in range(1, 20):
        node = Node(number, f"{KEPT} {number}", KEPT, ("tar",), 1, 100)
        store.write(lambda txn, n=node: txn.apply(Change(nodes=[n], next_node_id=n.id + 1)))  # type: ignore[misc]
    return store


def test_a_small_file_is_trimmed_once(tmp_path: Path) -> None:
    """A trim removes the free pages of a small file and keeps every entry; without free pages it writes nothing."""
    store = grown(tmp_path)
    before, file = contents(store), tmp_path / "data.mdb"
    size = file.stat().st_size
    store.trim()
    assert file.stat().st_size <= size / 2
    assert contents(store) == before and check_store(store) == []
    trimmed = file.stat()
    store.trim()
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (trimmed.st_ino, trimmed.st_mtime_ns)
    store.close()


@pytest.mark.parametrize("note", [one.name.decode() for one in layout.NOTES_OF_FILE])
def test_a_trim_leaves_a_marked_file_to_the_compaction(tmp_path: Path, note: str) -> None:
    """A trim keeps the note that an erasure has left: the compaction of the agent removes more than this one."""
    store = grown(tmp_path)
    store.write(lambda txn: txn.meta.set(**{note: True}))
    inode = (tmp_path / "data.mdb").stat().st_ino
    store.trim()
    assert (tmp_path / "data.mdb").stat().st_ino == inode
    assert store.read(lambda txn: getattr(txn.meta, note))
    store.close()


def test_a_large_file_is_not_trimmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file above the limit is left as it is, since writing it would delay the end of the daemon."""
    store = grown(tmp_path)
    monkeypatch.setattr(
        "ebbtide.store.lmdb.lmdb_store.TRIMMED_BYTES", (tmp_path / "data.mdb").stat().st_size - 1
    )
    inode = (tmp_path / "data.mdb").stat().st_ino
    store.trim()
    assert (tmp_path / "data.mdb").stat().st_ino == inode
    store.close()
