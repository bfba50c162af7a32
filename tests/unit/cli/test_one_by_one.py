"""Many agents in one command: one that cannot be read is named, and the others are processed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ebbtide.cli import app as command_line
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure
from ebbtide.cli.files.one_by_one import OneByOne
from ebbtide.errors import Corrupted, NotFound, Unavailable
from ebbtide.records import Identity
from ebbtide.store import layout
from ebbtide.store.directory.data_directory import DataDirectory
from tests.support.encrypted import fill

ODD = "Ann Möller"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A data directory with four agents, and a master key outside it."""
    data = DataDirectory(tmp_path / "data", initial_map_bytes=1 << 18, max_map_bytes=1 << 26)
    data.acquire()
    for name in ("ann", "bea", "cid", ODD):
        store = data.create_store(Identity(name, 5, 7, layout.FORMAT_VERSION))
        store.write(fill)
        store.close()
    data.release()
    (tmp_path / "key").write_text("6d" * 32)
    return tmp_path


def run(root: Path, *arguments: str) -> int:
    """Return the exit code of a command on the data directory."""
    with pytest.raises(SystemExit) as caught:
        command_line.main([*arguments, "--data-dir", str(root / "data")])
    code = caught.value.code
    return code if isinstance(code, int) else 0


def spoil(root: Path, agent: str) -> None:
    """Overwrite an agent's database with garbage."""
    file = root / "data" / "agents" / agent / "data.mdb"
    file.write_bytes(b"\xa5" * file.stat().st_size)


def test_a_damaged_agent_does_not_stop_a_backup(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With one damaged agent the others are backed up, it is named with its reason, and the exit code is not 0."""
    spoil(root, "ann")
    assert run(root, "backup", "--out", str(root / "out"), "--json") == ExitCode.DAMAGED
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert sorted(one["agent_id"] for one in told["backups"]) == [ODD, "bea", "cid"]
    assert [(one["name"], one["reason"]) for one in told["failed"]] == [("ann", "STORE_CORRUPTED")]
    assert len(list((root / "out").iterdir())) == 3
    assert "ann: " in printed.err and "[STORE_CORRUPTED]" in printed.err
    assert "1 of the agents could not be backed up." in printed.err


def test_an_agent_without_its_key_does_not_stop_a_backup(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An agent without its key fails with its reason; the exit code is that of the refusal."""
    key = ("--master-key-file", str(root / "key"))
    assert run(root, "encryption", "encrypt", "bea", *key) == 0
    assert run(root, "encryption", "destroy", "bea", "--yes") == 0
    capsys.readouterr()
    assert run(root, "backup", "--out", str(root / "out")) == ExitCode.REFUSED
    printed = capsys.readouterr()
    assert "3 agents backed up." in printed.out
    assert "bea: " in printed.err and "[DATA_KEY_MISSING]" in printed.err


def test_an_agent_without_a_name_is_reported(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An agent without `meta.json` is backed up under its own name, or reported under the name of its directory."""
    [hashed] = [path for path in (root / "data" / "agents").iterdir() if path.name.startswith("~")]
    for directory in ("bea", hashed.name):
        (root / "data" / "agents" / directory / "meta.json").unlink()
    assert run(root, "backup", "--out", str(root / "out"), "--json") == ExitCode.DAMAGED
    told = json.loads(capsys.readouterr().out)
    assert [one["agent_id"] for one in told["backups"]] == ["ann", "bea", "cid"]
    assert [one["name"] for one in told["failed"]] == [hashed.name]


def test_a_damaged_file_does_not_stop_a_restore(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of several files the valid ones are restored, and a damaged and a missing one are named."""
    assert run(root, "backup", "--out", str(root / "out")) == 0
    bad = root / "out" / "ann.ebb"
    bad.write_bytes(bad.read_bytes()[:-700])
    capsys.readouterr()
    files = [str(root / "out" / name) for name in ("ann.ebb", "none.ebb", "bea.ebb")]
    there = run(root, "restore", *files, "--replace", "--json")
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert there not in (0, ExitCode.FAILURE)
    assert [one["agent_id"] for one in told["restored"]] == ["bea"]
    assert [one["name"] for one in told["failed"]] == files[:2]
    assert "2 of the files could not be restored." in printed.err


def test_a_single_agent_fails_with_its_own_error(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A command for one agent fails with that agent's error and code, without a count."""
    assert run(root, "backup", "zoe", "--out", str(root / "out")) == ExitCode.NOT_FOUND
    assert capsys.readouterr().err == "error: There is no agent of this id.\n"


def test_an_agent_deleted_meanwhile_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    """A listed agent may be erased before its turn; one that was named explicitly must exist."""
    for is_asked_for in (False, True):
        row = OneByOne(["ann", "bea"], are_named=is_asked_for)
        for name in row:
            with row.trying(name):
                if name == "ann":
                    raise NotFound("there is no agent of this id", reason="AGENT_NOT_FOUND")
        if not is_asked_for:
            row.end("agents could not be backed up")
            assert (row.gone, row.failed) == (["ann"], [])
            assert capsys.readouterr().err == "ann: was deleted in the meantime.\n"
            continue
        with pytest.raises(Failure) as caught:
            row.end("agents could not be backed up")
        assert caught.value.code == ExitCode.NOT_FOUND


def test_damage_decides_the_exit_code() -> None:
    """The exit code of damaged data takes precedence over failures that a retry may fix."""
    row = OneByOne(["ann", "bea", "cid"], are_named=True)
    for name, error in zip(row, (Unavailable("busy"), Corrupted("bad"), ValueError("odd")), strict=True):
        with row.trying(name):
            raise error
    with pytest.raises(Failure) as caught:
        row.end("agents could not be backed up")
    assert caught.value.code == ExitCode.DAMAGED
    assert [one["message"] for one in row.failed] == ["Busy.", "Bad.", "Unreadable: ValueError: odd"]


def test_an_unreachable_daemon_ends_the_run() -> None:
    """If no daemon answers, the other agents are not tried."""
    row = OneByOne(["ann", "bea"], are_named=True)
    tried = []
    for name in row:
        with row.trying(name):
            tried.append(name)
            raise Failure("No daemon answers.", ExitCode.UNREACHABLE, ends_all=True)
    assert tried == ["ann"]
    with pytest.raises(Failure):
        row.end("agents could not be backed up")


def test_a_damaged_agent_does_not_stop_a_verification(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All readable audit logs are verified, including that of erased agents; others are named with a reason."""
    key = ("--master-key-file", str(root / "key"))
    assert run(root, "encryption", "encrypt", "bea", *key) == 0
    assert run(root, "encryption", "destroy", "bea", "--yes") == 0
    spoil(root, "ann")
    capsys.readouterr()
    assert run(root, "audit", "verify", "--json") == ExitCode.DAMAGED
    told = json.loads(capsys.readouterr().out)
    assert list(told["logs"]) == ["cid", ODD] and told["erased_agents"]["records"] == 1
    assert [(one["name"], one["reason"]) for one in told["failed"]] == [
        ("ann", "STORE_CORRUPTED"),
        ("bea", "DATA_KEY_MISSING"),
    ]
    assert run(root, "audit", "verify") == ExitCode.DAMAGED
    printed = capsys.readouterr().err
    assert "(erased agents): 1 record is whole, last " in printed
    assert "2 of the audit logs could not be read." in printed


def test_destroyed_keys_are_logged_by_name(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of erased agents names the agent and the id of the destroyed key."""
    monkeypatch.setenv("COLUMNS", "200")
    assert run(root, "encryption", "encrypt", ODD, "--master-key-file", str(root / "key")) == 0
    capsys.readouterr()
    assert run(root, "encryption", "status", "--json") == 0
    agents = json.loads(capsys.readouterr().out)["agents"]
    [fingerprint] = [one["key_fingerprint"] for one in agents if one["agent_id"] == ODD]
    assert run(root, "encryption", "destroy", ODD, "--yes") == 0
    assert run(root, "audit", "show") == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split()[:2] == ["record", "agent"]
    assert ODD in row and "key_destroyed" in row and f"key_fingerprint={fingerprint}" in row
