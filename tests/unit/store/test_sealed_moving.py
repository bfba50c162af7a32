"""Encrypted agents: a backup stays encrypted, an export is plain text, and restored agents are encrypted again."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbtide.errors import EbbtideError, Precondition, Unavailable
from ebbtide.ids import AgentId
from ebbtide.parameters import AgentParameters
from ebbtide.records import Identity
from ebbtide.store import yielding
from ebbtide.store.chain import AuditEntry
from ebbtide.store.directory.data_directory import DataDirectory
from ebbtide.store.encryption.seal import MasterKey
from ebbtide.store.layout import FORMAT_VERSION
from ebbtide.store.transfer.receiving import Staged, receive
from ebbtide.store.yielding import Pause
from tests.support.encrypted import SAID, everything, fill, found_in
from tests.support.moving import received, sent

ANN, BEA = AgentId("ann"), AgentId("bea")
MAPS = {"initial_map_bytes": 1 << 20, "max_map_bytes": 1 << 26}


@pytest.fixture
def data(tmp_path: Path) -> Iterator[DataDirectory]:
    """A data directory with a master key and one encrypted agent."""
    made = DataDirectory(tmp_path / "data", master_key=MasterKey(bytes(range(32))), **MAPS)
    made.acquire()
    store = made.create_store(Identity(ANN, 5, 7, FORMAT_VERSION))
    store.write(fill)
    store.close()
    yield made
    made.release()


def told(data: DataDirectory, agent_id: AgentId) -> dict[str, object]:
    store = data.open_store(agent_id)
    try:
        return everything(store)
    finally:
        store.close()


def form_of(data: DataDirectory, form: str) -> bytes:
    store = data.open_store(ANN)
    try:
        return sent(data, store, form)
    finally:
        store.close()


def test_a_backup_comes_back_with_its_key_and_not_without(data: DataDirectory) -> None:
    """A backup of an encrypted agent contains no text, and needs the key to be restored."""
    before, content = told(data, ANN), form_of(data, "backup")
    assert not any(text.encode() in content for text in SAID)
    staged = received(data, content, ANN)
    data.install(ANN, staged.path)
    assert told(data, ANN) == before
    assert data.keys.destroy("ann")
    for owner in (ANN, BEA):
        with pytest.raises(Precondition) as caught:
            received(data, content, owner, rename=True)
        assert caught.value.reason == "DATA_KEY_MISSING"


def test_a_backup_under_another_id_gets_a_key_of_its_own(data: DataDirectory) -> None:
    """A backup restored under another id has the same content and its own key."""
    before, content, was = told(data, ANN), form_of(data, "backup"), (data.root / "keys" / "ann").read_bytes()
    staged = received(data, content, BEA, rename=True)
    data.install(BEA, staged.path)
    after = told(data, BEA)
    assert {**after, "identity": None} == {**before, "identity": None}
    assert (data.root / "keys" / "ann").read_bytes() == was
    assert found_in(data.root) == set()
    told(data, ANN)


def test_nothing_is_restored_unencrypted_without_the_master_key(data: DataDirectory, tmp_path: Path) -> None:
    """Without the master key, backups and exports are MASTER_KEY_REFUSED before anything is written."""
    contents = [form_of(data, form) for form in ("backup", "export")]
    data.release()
    without = DataDirectory(tmp_path / "data", **MAPS)
    without.acquire()
    try:
        for content in contents:
            with pytest.raises(Precondition) as caught:
                received(without, content, BEA, rename=True)
            assert caught.value.reason == "MASTER_KEY_REFUSED"
        assert not (without.agents / "bea").exists()
    finally:
        without.release()
        data.acquire()


def test_keys_are_removed_with_the_replaced_agent(data: DataDirectory, tmp_path: Path) -> None:
    """An unencrypted agent that replaces an encrypted one leaves no key of it."""
    plain = DataDirectory(tmp_path / "plain", **MAPS)
    plain.acquire()
    store = plain.create_store(Identity(ANN, 5, 7, FORMAT_VERSION))
    store.write(fill)
    content = sent(plain, store, "backup")
    store.close()
    plain.release()
    (data.root / "keys" / ".master").unlink()
    data.release()
    without = DataDirectory(tmp_path / "data", **MAPS)
    without.acquire()
    try:
        without.install(ANN, received(without, content, ANN).path)
        assert not (without.root / "keys" / "ann").exists()
        assert told(without, ANN)
    finally:
        without.release()
        data.acquire()


def test_an_export_is_plain_text_and_is_encrypted_when_imported(data: DataDirectory) -> None:
    """The old key stays until the new agent is installed, and is removed then."""
    content = form_of(data, "export")
    assert all(text.encode() in content for text in SAID)
    before = data.meta("ann")
    staged = received(data, content, ANN)
    assert told(data, ANN), "it can still be read"
    staged = received(data, content, ANN)
    data.install(ANN, staged.path)
    files = [path.read_bytes() for path in (data.agents / "ann").iterdir()]
    assert not any(text.encode() in held for text in SAID for held in files)
    told(data, ANN)
    after = data.meta("ann")
    assert before is not None
    assert after is not None
    assert after.encrypted
    assert after.key_fingerprint != before.key_fingerprint


def test_an_import_without_its_key_replaces_nothing(data: DataDirectory) -> None:
    """Opening an agent keeps the key of a staged store; erasing it removes the key."""
    content = form_of(data, "export")
    staged = received(data, content, ANN)
    before = told(data, ANN)
    assert told(data, ANN) == before, "it was opened, and its other keys went"
    data.install(ANN, staged.path)
    assert told(data, ANN) == before
    again = received(data, content, ANN)
    assert data.keys.destroy("ann")
    with pytest.raises(Precondition) as caught:
        data.install(ANN, again.path)
    assert caught.value.reason == "DATA_KEY_MISSING"
    assert (data.agents / "ann" / "data.mdb").exists(), "what is there stays where it is"


def test_a_new_agent_keeps_its_key_when_an_old_erasure_ends(data: DataDirectory) -> None:
    """A start that finishes an old deletion keeps the key of the new agent of that name."""
    before = told(data, ANN)
    shutil.copytree(data.agents / "ann", data.agents / ".erasing-ann")
    data._clean_up()
    assert not (data.agents / ".erasing-ann").exists()
    assert told(data, ANN) == before


def keys_of(data: DataDirectory, name: str) -> int:
    """Return the number of keys of an agent."""
    return len(data.keys._file(name).keys)


def test_a_cancelled_import_leaves_no_key(data: DataDirectory) -> None:
    """A cancelled import leaves the keys unchanged; an installed one keeps its own."""
    content = form_of(data, "export")
    for taken in (content, content[: len(content) // 2]):
        folder = data.make_transfer()
        with contextlib.suppress(EbbtideError):
            received_in(data, folder, taken, ANN)
            assert keys_of(data, "ann") == 2
        data.end_transfer(folder)
        assert keys_of(data, "ann") == 1 and told(data, ANN)
    folder = data.make_transfer()
    received_in(data, folder, content, BEA)
    data.end_transfer(folder)
    assert not data.keys.has_keys("bea")
    folder = data.make_transfer()
    data.install(BEA, received_in(data, folder, content, BEA).path)
    data.end_transfer(folder)
    assert keys_of(data, "bea") == 1 and told(data, BEA)


@pytest.mark.parametrize("has_master_key", [True, False])
def test_a_start_removes_the_keys_of_interrupted_transfers(data: DataDirectory, has_master_key: bool) -> None:
    """A start keeps the keys of existing agents, and of agents that are not copied yet."""
    content = form_of(data, "export")
    shutil.copy(data.root / "keys" / "ann", data.root / "keys" / "brought")
    received_in(data, data.make_transfer(), content, BEA)
    received_in(data, data.make_transfer(), content, ANN)
    assert keys_of(data, "bea") == 1 and keys_of(data, "ann") == 2
    data.release()
    master_key = MasterKey(bytes(range(32)))
    for shown in (master_key if has_master_key else None, master_key):
        after = DataDirectory(data.root, master_key=shown, **MAPS)
        after.acquire()
        assert not after.keys.has_keys("bea") and after.keys.has_keys("brought")
        if shown is not None:
            assert told(after, ANN) and keys_of(after, "ann") == 1
        after.release()


@pytest.mark.parametrize("ends", [True, False])
def test_an_installed_agent_keeps_its_key_after_later_failures(
    data: DataDirectory, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    """An installed agent keeps its key, also if its directory is moved away during a start."""
    folder = data.make_transfer()
    staged = received_in(data, folder, form_of(data, "export"), BEA)
    monkeypatch.setattr(data.keys, "keep_only", lambda *_: None)
    data.install(BEA, staged.path)
    if ends:
        data.end_transfer(folder)
    data.release()
    elsewhere = data.root / "elsewhere"
    (data.agents / "bea").rename(elsewhere)
    after = DataDirectory(data.root, master_key=MasterKey(bytes(range(32))), **MAPS)
    after.make_transfer()
    after.acquire()
    elsewhere.rename(data.agents / "bea")
    assert told(after, BEA)
    after.release()
    data.acquire()


@contextlib.contextmanager
def away_once(monkeypatch: pytest.MonkeyPatch, method: str, path: Path) -> Iterator[None]:
    """Let one call of a method of `Path` report a missing file, as on a disk that is away for a moment."""
    real, calls = getattr(Path, method), []

    def called(self: Path, *arguments: object) -> object:
        if self == path and not calls:
            calls.append(self)
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))
        return real(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Path, method, called)
        yield
    assert calls


@pytest.mark.parametrize("method", ["rename", "open"])
def test_a_disk_that_is_away_for_a_moment_leaves_no_key(
    data: DataDirectory, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """A key whose file seems to be missing is removed with its transfer, at once or by the next start."""
    folder = data.make_transfer()
    received_in(data, folder, form_of(data, "export"), BEA)
    with away_once(monkeypatch, method, data.root / "keys" / "bea"):
        data.end_transfer(folder)
    data.release()
    data.acquire()
    assert not data.keys.has_keys("bea")
    assert list(data.transfers.iterdir()) == []


def test_a_key_on_a_disk_that_is_away_is_not_reported_as_destroyed(
    data: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Destroying a key fails while its disk is away, and succeeds afterwards."""
    path = data.root / "keys" / "ann"
    with away_once(monkeypatch, "rename", path), pytest.raises(Unavailable) as caught:
        data.keys.destroy("ann")
    assert caught.value.reason == "STORE_UNAVAILABLE" and path.exists()
    assert data.keys.destroy("ann") and not path.exists()
    assert not data.keys.destroy("ann")


@pytest.mark.parametrize("place", ["keys/ann", "agents/.erasing-ann/erasing.json"])
def test_a_deletion_while_the_disk_is_away_for_a_moment_is_finished_later(
    data: DataDirectory, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A deletion that cannot find its note or the key fails; its repetition logs it and removes the key."""
    path = data.root / place
    method = "rename" if path.name == "ann" else "read_bytes"
    entry = AuditEntry(9, "key k", "DELETED", {})
    with away_once(monkeypatch, method, path), pytest.raises(Unavailable):
        data.erase(ANN, entry)
    data.erase(ANN, entry)
    assert not data.keys.has_keys("ann") and list(data.agents.iterdir()) == []
    assert data.erased.head().number == 1
    with away_once(monkeypatch, "open", data.erased.path / "erased.jsonl"):
        assert data.erased.head().number == 1


def test_an_unreadable_key_file_does_not_stop_others(data: DataDirectory) -> None:
    """A start removes the key of an interrupted transfer, with or without a file in its place."""
    received_in(data, data.make_transfer(), form_of(data, "export"), BEA)
    data.release()
    (data.root / "keys" / "aaa").write_bytes(b"garbage")
    (data.root / "keys" / "aab").mkdir()
    after = DataDirectory(data.root, master_key=MasterKey(bytes(range(32))), **MAPS)
    after.acquire()
    assert not after.keys.has_keys("bea") and after.keys.has_keys("aaa")
    after.release()
    data.acquire()


def test_an_import_yields_all_the_time(data: DataDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import yields while it reads lines, checks, encrypts and checks again."""
    monkeypatch.setattr(yielding, "ITEMS_PER_PAUSE", 1)
    rests: dict[str, int] = dict.fromkeys(("backup", "export", "another id"), 0)
    backup, export = form_of(data, "backup"), form_of(data, "export")
    for name, content, wanted in (
        ("backup", backup, ANN),
        ("export", export, ANN),
        ("another id", backup, BEA),
    ):

        def pause(name: str = name) -> None:
            rests[name] += 1

        folder = data.make_transfer()
        received_in(data, folder, content, wanted, pause)
        data.end_transfer(folder)
    # A backup is read and unpacked too, in a piece or two each.
    checked = rests["backup"] - 10
    assert checked > 20, "every entry that is checked"
    lines = export.count(b"\n")
    assert rests["export"] > 20 + 2 * (lines - 4), "lines are read, then written, then checked"
    assert rests["another id"] > 3 * checked, "checked, copied, written and checked"


def received_in(
    data: DataDirectory, folder: Path, content: bytes, wanted: AgentId, pause: Pause = lambda: None
) -> Staged:
    """Return the staged agent of an export."""
    source, defaults = io.BytesIO(content), AgentParameters()
    return receive(data, source, folder, expected=wanted, rename=True, defaults=defaults, pause=pause)
