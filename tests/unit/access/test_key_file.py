"""The key file: written atomically, readable by its owner only, and strictly parsed."""

from __future__ import annotations

import json
import stat
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ebbtide.access import key_file
from ebbtide.access.key_file import KeyFile
from ebbtide.access.keys import Key, hash_of
from ebbtide.errors import Exhausted, Precondition
from tests.support.keys import new_key


def key(number: int, **fields: Any) -> Key:
    """Return a valid key."""
    plain = {"name": "", "secret_sha256": hash_of("s"), "scopes": ("read",), "created_at_ms": 1}
    return Key(id=f"k{number:011}", **{**plain, "all_agents": True, **fields})


def test_written_keys_are_read_back_and_readable_by_the_owner_only(tmp_path: Path) -> None:
    """Every field is read back; the file and its lock have mode 0600; no secret and no partial file remain."""
    secret = new_key(tmp_path / "new" / "d", "read", "admin", agents=["林月"], expires_at_ms=5, max_agents=2)
    file = KeyFile(tmp_path / "new" / "d")
    (kept,) = file.read()
    assert (kept.scopes, kept.agents, kept.expires_at_ms, kept.max_agents) == (
        ("read", "admin"),
        ("林月",),
        5,
        2,
    )
    for name in ("keys.json", "keys.lock"):
        assert stat.S_IMODE((file.path.parent / name).stat().st_mode) == 0o600
    assert secret.rpartition("_")[2] not in file.path.read_text()
    assert {p.name for p in file.path.parent.iterdir()} == {"keys.json", "keys.lock"}
    assert not file.is_open_to_others
    file.path.chmod(0o640)
    assert file.is_open_to_others


def test_without_a_file_there_are_no_keys(tmp_path: Path) -> None:
    """A directory without a key file has no keys, which is no error."""
    assert KeyFile(tmp_path).read() == ()
    assert KeyFile(tmp_path).stamp() is None


def damaged(**fields: Any) -> bytes:
    """Return a file with one key that has an invalid field."""
    document = {"version": 1, "keys": [{**msgspec.to_builtins(key(1)), **fields}]}
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe\x00",
        b'{"version": 2, "keys": []}',
        b'{"version": 1}',
        b'{"version": 1, "keys": [], "more": 1}',
        damaged(id="short"),
        damaged(id="a/../b______"),
        damaged(secret_sha256="0" * 63),
        damaged(scopes=[]),
        damaged(scopes=["read", "root"]),
        damaged(agents=[""]),
        damaged(agent_prefixes=[""]),
        damaged(requests_per_s=0),
        damaged(max_agents=-1),
        damaged(only_on_mondays=True),
    ],
)
def test_a_damaged_key_file_is_refused_and_not_changed(tmp_path: Path, content: bytes) -> None:
    """A damaged file is KEY_FILE_UNUSABLE with its name; changes are refused too, so that it can be repaired."""
    file = KeyFile(tmp_path)
    file.path.write_bytes(content)
    for attempt in (file.read, lambda: file.change(lambda known: ([*known, key(2)], None))):
        with pytest.raises(Precondition) as refused:
            attempt()
        assert refused.value.reason == "KEY_FILE_UNUSABLE"
        assert "keys.json" in refused.value.message
    assert file.path.read_bytes() == content


def test_two_keys_of_one_id_are_refused(tmp_path: Path) -> None:
    """A file with two keys of one id is refused, because it does not define which one is valid."""
    one = msgspec.to_builtins(key(1))
    KeyFile(tmp_path).path.write_text(json.dumps({"version": 1, "keys": [one, one]}))
    with pytest.raises(Precondition):
        KeyFile(tmp_path).read()


def test_concurrent_changes_lose_nothing(tmp_path: Path) -> None:
    """Eight concurrent writers with ten keys each store eighty keys, and a reader always reads a complete file."""
    faults: list[BaseException] = []
    is_over = threading.Event()

    def guarded(work: Any) -> None:
        try:
            work()
        except BaseException as error:
            faults.append(error)

    def write(writer: int) -> None:
        for number in range(10):
            made = key(writer * 100 + number)
            KeyFile(tmp_path).change(lambda known, made=made: ([*known, made], None))  # type: ignore[misc]

    def read() -> None:
        while not is_over.is_set():
            KeyFile(tmp_path).read()
            is_over.wait(0.001)

    writers = [threading.Thread(target=guarded, args=(lambda n=n: write(n),)) for n in range(8)]
    reader = threading.Thread(target=guarded, args=(read,))
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    is_over.set()
    reader.join()
    assert faults == []
    assert len(KeyFile(tmp_path).read()) == 80


def test_a_change_that_fails_changes_nothing(tmp_path: Path) -> None:
    """An interruption before the rename leaves the old file, and the next change succeeds."""
    file = KeyFile(tmp_path)
    file.change(lambda known: ([key(1)], None))
    (tmp_path / "keys.json.new").write_text("half a fi")

    def fail(known: Any) -> Any:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        file.change(fail)
    assert [k.id for k in file.read()] == [key(1).id]
    file.change(lambda known: ([*known, key(2)], None))
    assert len(file.read()) == 2


def test_keys_and_revoked_keys_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many keys are QUOTA_REACHED; of revoked keys the latest are kept, and they do not count against the bound."""
    monkeypatch.setattr(key_file, "MAX_KEYS", 3)
    monkeypatch.setattr(key_file, "KEPT_REVOKED", 2)
    file = KeyFile(tmp_path)
    revoked = [key(n, revoked_at_ms=10 + n) for n in range(5)]
    file.change(lambda _: ([*revoked, *(key(n) for n in range(10, 13))], None))
    assert {k.revoked_at_ms for k in file.read()} == {None, 13, 14}
    with pytest.raises(Exhausted) as refused:
        file.change(lambda known: ([*known, key(20)], None))
    assert refused.value.reason == "QUOTA_REACHED"
    assert len(file.read()) == 5
