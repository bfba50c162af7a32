"""Forged backups are refused within limits of time, memory and disk, and leave nothing behind."""

from __future__ import annotations

import io
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ebbtide.errors import EbbtideError, Exhausted, InvalidRequest, Unavailable
from ebbtide.store import layout
from ebbtide.store.lmdb import probe
from ebbtide.store.transfer import backup_file
from ebbtide.store.transfer.backup_file import read_backup
from tests.support import hostile_backup as hostile
from tests.support.hostile_backup import FORGED_FILES, backup_of, forged_archives, forged_frames
from tests.support.moving import directory, received, staged_store

REFUSED = {"BACKUP_UNREADABLE", "STORE_FULL"}
MIB = 1 << 20


@pytest.fixture
def data() -> Iterator[Any]:
    """A data directory without agents."""
    with directory() as held:
        yield held


def in_backup(packed: bytes, size: int) -> bytes:
    """Return a backup with packed data, and the size that the manifest claims."""
    return backup_of(b"", size, packed)


def cases() -> dict[str, Callable[[], bytes]]:
    """Every kind of hostile backup."""
    made: dict[str, Callable[[], bytes]] = {}
    for name, make in FORGED_FILES.items():
        made[f"store: {name}"] = lambda make=make: backup_of(make())
    for name, make in forged_frames().items():
        made[f"frame: {name}"] = lambda make=make: in_backup(*make())
    return made | {f"archive: {name}": make for name, make in forged_archives().items()}


CASES = cases()


@pytest.mark.parametrize("name", CASES)
def test_forged_backups_are_refused_within_bounds(data: Any, name: str) -> None:
    """A hostile backup is refused with one reason, in bounded time and memory, and leaves no file."""
    content = CASES[name]()
    begin_s = time.process_time()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(EbbtideError) as refused:
        received(data, content)
    assert refused.value.reason in REFUSED, refused.value.message
    assert time.process_time() - begin_s < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024
    assert [path for path in data.transfers.rglob("*") if path.is_file()] == []


def test_the_unforged_backup_is_accepted(data: Any) -> None:
    """The unforged backup, from which the forged ones are made, is accepted."""
    received(data, backup_of(hostile.sound_file(node_count=0)))


def test_a_list_of_free_pages_is_not_trusted(data: Any) -> None:
    """Only entries of known tables are copied, not the list of free pages or another table."""
    staged = received(data, backup_of(hostile.free_pages_in_use()), "bea", rename=True)
    with staged_store(staged) as store:
        store.write(lambda txn: txn.tables.put(layout.BATCHES, layout.u64(1), bytes(100_000)))
        assert store.read(lambda txn: txn.tables.get(layout.BATCHES, layout.u64(1))) == bytes(100_000)
    assert b"of no store" not in (staged.path / "data.mdb").read_bytes()


def test_a_walk_through_pages_ends(data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a local store ends when its entries need more space than the file has."""
    monkeypatch.setattr(probe, "TIMEOUT_S", 20.0)
    (tmp_path / "data.mdb").write_bytes(hostile.thicket())
    assert not probe.is_sound(tmp_path)
    (tmp_path / "data.mdb").write_bytes(hostile.sound_file())
    assert probe.is_sound(tmp_path)


def test_an_aborted_copy_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of `pause` ends the copy, and a child that exceeds its time limit is ended."""
    children: list[subprocess.Popen[bytes]] = []

    def sleeping(*_: object) -> subprocess.Popen[bytes]:
        children.append(subprocess.Popen(["sleep", "60"]))
        return children[-1]

    def give_up() -> None:
        raise Unavailable("stopped", reason="AGENT_CLOSING")

    monkeypatch.setattr(probe, "_child", sleeping)
    with pytest.raises(Unavailable):
        probe.copy_foreign(tmp_path, tmp_path, {}, give_up)
    monkeypatch.setattr(probe, "TIMEOUT_S", 0.2)
    assert not probe.copy_foreign(tmp_path, tmp_path, {}, lambda: None)
    assert [child.poll() for child in children] == [-9, -9]


def test_a_disk_without_room_is_not_filled(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backup is STORE_FULL before it is unpacked, if the disk has less than three times its size free."""

    class Usage(NamedTuple):
        total: int
        used: int
        free: int

    file = hostile.sound_file(node_count=0)
    content, free = backup_of(file), 3 * len(file) - 1
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(2 * free, free, free))
    with pytest.raises(Exhausted, match="free") as refused:
        received(data, content)
    assert refused.value.reason == "STORE_FULL"


def test_a_small_file_may_not_say_that_it_is_a_large_one(data: Any) -> None:
    """Data that would unpack to more than 250 times its size is refused at once."""
    size = backup_file.ALWAYS_UNPACKED_BYTES + 100 * MIB
    source = io.BytesIO(backup_of(b"", size, hostile.zeros(size)))
    with pytest.raises(InvalidRequest, match="250 times"):
        read_backup(source, data.transfers / "out", max_bytes=1 << 40)
    assert not (data.transfers / "out").exists()
