"""A store whose file is not at its path acknowledges nothing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ebbtide.errors import Unavailable
from ebbtide.records import Identity
from ebbtide.store import layout
from ebbtide.store.directory.directory_lock import DirectoryLock
from ebbtide.store.lmdb.lmdb_store import LmdbStore

MAPS = {"map_bytes": 1 << 18, "max_map_bytes": 1 << 26}


def store_in(path: Path) -> LmdbStore:
    path.mkdir()
    return LmdbStore.create(path, Identity("ann", 5, 7, layout.FORMAT_VERSION), **MAPS)


def write(txn: Any) -> None:
    txn.meta.set(overrides={"decay_rate": 0.5}, decay_rate=0.5)


def test_a_store_that_was_moved_is_read_and_not_written(tmp_path: Path) -> None:
    """A store whose file is not at its path refuses commits, and accepts them once it is back."""
    store = store_in(tmp_path / "ann")
    (tmp_path / "ann").rename(tmp_path / "elsewhere")
    with pytest.raises(Unavailable) as caught:
        store.write(write)
    assert caught.value.reason == "STORE_UNAVAILABLE"
    assert store.read(lambda txn: txn.meta.overrides) == {}
    (tmp_path / "elsewhere").rename(tmp_path / "ann")
    store.write(write)
    assert store.read(lambda txn: txn.meta.overrides) == {"decay_rate": 0.5}
    store.close()


def test_a_store_that_was_removed_while_it_was_written_is_not_acknowledged(tmp_path: Path) -> None:
    """A file that disappears during a commit makes the commit fail."""
    store = store_in(tmp_path / "ann")
    lost: list[None] = []
    store.on_reopened = lambda: lost.append(None)

    def write_and_lose(txn: Any) -> None:
        write(txn)
        shutil.rmtree(tmp_path / "ann")

    with pytest.raises(Unavailable) as caught:
        store.write(write_and_lose)
    assert caught.value.reason == "STORE_UNAVAILABLE"
    assert lost, "what is in memory is built again"
    store.close()


def test_another_file_with_the_same_content_is_opened_by_the_next_call(tmp_path: Path) -> None:
    """After a remount under another device number the store is opened again and works."""
    store = store_in(tmp_path / "ann")
    lost: list[None] = []
    store.on_reopened = lambda: lost.append(None)
    (tmp_path / "ann").rename(tmp_path / "elsewhere")
    shutil.copytree(tmp_path / "elsewhere", tmp_path / "ann")
    with pytest.raises(Unavailable):
        store.write(write)
    assert lost == [None]
    store.write(write)
    assert store.read(lambda txn: txn.meta.overrides) == {"decay_rate": 0.5}
    store.close()
    again = LmdbStore.open(tmp_path / "ann", **MAPS)
    assert again.read(lambda txn: txn.meta.overrides) == {"decay_rate": 0.5}
    again.close()


def test_a_lock_knows_the_process_before_it(tmp_path: Path) -> None:
    """Each process has a life of its own. That of the last one stays in the file, also if the process was killed."""
    lives = []
    for _ in range(3):
        lock = DirectoryLock(tmp_path)
        lock.acquire()
        lives.append((lock.previous_life, lock.life))
        lock.release()
    assert [before for before, _ in lives] == ["", lives[0][1], lives[1][1]]
    assert len({life for _, life in lives}) == 3
    (tmp_path / "lock").write_text("")
    lock.acquire()
    assert lock.previous_life == ""
    lock.release()


def test_a_directory_is_confirmed_only_while_it_is_the_one_that_was_locked(tmp_path: Path) -> None:
    """A moved or replaced data directory is refused; once it is back, it is locked again."""
    root, away = tmp_path / "data", tmp_path / "away"
    root.mkdir()
    lock = DirectoryLock(root)
    lock.acquire()
    lock.confirm()
    root.rename(away)
    for prepare in (lambda: None, root.mkdir, lambda: (root / "lock").write_text("process 1\n")):
        prepare()
        with pytest.raises(Unavailable) as caught:
            lock.confirm()
        assert caught.value.reason == "STORE_UNAVAILABLE"
    shutil.rmtree(root)
    shutil.copytree(away, root)
    lock.confirm()
    with pytest.raises(Exception, match="is locked by process"):
        DirectoryLock(root).acquire()
    lock.release()
    DirectoryLock(root).acquire()
