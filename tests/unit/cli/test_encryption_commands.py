"""`ebbtide encryption …`: changes of keys on the command line."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from ebbtide.cli import app as command_line
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.records import Identity
from ebbtide.store import layout
from ebbtide.store.audit.erased_agents import ErasedAgents
from ebbtide.store.chain import ChainHead
from ebbtide.store.directory.data_directory import DataDirectory
from ebbtide.store.lmdb.replica import Replica
from tests.support.encrypted import fill, found_in
from tests.support.erased_log import records_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A data directory with two plain agents, and two master keys outside it."""
    data = DataDirectory(tmp_path / "data", initial_map_bytes=1 << 18, max_map_bytes=1 << 26)
    data.acquire()
    for name in ("ann", "bea"):
        store = data.create_store(Identity(name, 5, 7, layout.FORMAT_VERSION))
        store.write(fill)
        store.close()
    data.release()
    for name, text in (("old.key", "6d" * 32), ("new.key", "6f" * 32)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o640)
    return tmp_path


def run(root: Path, *arguments: str, key: str = "") -> int:
    """Return the exit code of a command on the data directory, with a master key if one is named."""
    flags = ["--data-dir", str(root / "data"), *(["--master-key-file", str(root / key)] if key else [])]
    with pytest.raises(SystemExit) as caught:
        command_line.main([*arguments, *flags])
    code = caught.value.code
    return code if isinstance(code, int) else 0


def told(root: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, tuple[bool, bool]]:
    """Return whether each agent is encrypted and has a key."""
    capsys.readouterr()
    assert run(root, "encryption", "status", "--json") == 0
    status = json.loads(capsys.readouterr().out)
    return {one["agent_id"]: (one["encrypted"], one["has_key"]) for one in status["agents"]}


def test_agents_are_encrypted_rotated_checked_and_decrypted(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents are encrypted singly or all at once; `status` shows it, `check` needs the key, and no text is on disk."""
    monkeypatch.setenv("COLUMNS", "300")
    assert run(root, "encryption", "encrypt", "ann", key="old.key") == 0
    assert told(root, capsys) == {"ann": (True, True), "bea": (False, False)}
    assert run(root, "encryption", "encrypt", "--all", key="old.key") == 0
    assert "ann  is already encrypted" in capsys.readouterr().err
    assert found_in(root / "data") == set()
    assert run(root, "encryption", "rotate", "--all", key="old.key") == 0
    assert run(root, "check", key="old.key") == 0
    assert run(root, "check") == ExitCode.DAMAGED
    assert "Set encryption.master_key_file" in "".join(capsys.readouterr()).replace("\n", " ")
    assert run(root, "encryption", "decrypt", "--all", key="old.key") == 0
    assert told(root, capsys) == {"ann": (False, False), "bea": (False, False)}
    assert run(root, "check") == 0


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        (["encrypt", "--all"], "cluster rotate-key"),
        (["rotate", "ann"], "cluster rotate-key"),
        (["decrypt", "ann"], "not decrypted in place"),
        (["destroy", "ann", "--yes"], "Delete it through a running node"),
        (["rotate-master", "--new-key-file"], "cluster rotate-master-key"),
    ],
)
def test_the_files_of_a_node_are_refused(
    root: Path, capsys: pytest.CaptureFixture[str], command: list[str], advice: str
) -> None:
    """Another key would make them differ from the logs. The message says what to do; nothing changes."""
    assert run(root, "encryption", "encrypt", "ann", key="old.key") == 0
    file = root / "data" / "agents" / "ann"
    Replica(file, map_bytes=1 << 18, max_map_bytes=1 << 26).apply([], ChainHead(5, b"h" * 32))
    before = (file / "data.mdb").read_bytes(), (root / "data" / "keys" / "ann").read_bytes()
    more = [str(root / "new.key")] if command[0] == "rotate-master" else []
    capsys.readouterr()
    assert run(root, "encryption", *command, *more, key="old.key") == ExitCode.REFUSED
    message = " ".join("".join(capsys.readouterr()).split())
    assert "belongs to a" in message and advice in message
    assert before == ((file / "data.mdb").read_bytes(), (root / "data" / "keys" / "ann").read_bytes())
    assert told(root, capsys)["bea"] == (False, False)


def test_the_master_key_is_changed(root: Path) -> None:
    """Afterwards the old key is refused, with its exit code, and the new one opens every agent."""
    assert run(root, "encryption", "encrypt", "--all", key="old.key") == 0
    rotate = ("encryption", "rotate-master", "--new-key-file", str(root / "new.key"))
    assert run(root, *rotate, key="new.key") == ExitCode.BAD_SETTING
    assert run(root, *rotate, key="old.key") == 0
    assert run(root, "encryption", "rotate", "ann", key="old.key") == ExitCode.BAD_SETTING
    assert run(root, "encryption", "rotate", "ann", key="new.key") == 0
    assert run(root, "check", key="new.key") == 0


def test_a_key_is_destroyed_only_after_confirmation(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks for confirmation, or requires --yes without a terminal; afterwards the agent is listed but unreadable."""
    assert run(root, "encryption", "encrypt", "ann", key="old.key") == 0
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run(root, "encryption", "destroy", "ann") == ExitCode.USAGE
    assert told(root, capsys)["ann"] == (True, True)
    assert run(root, "encryption", "destroy", "ann", "--yes") == 0
    assert told(root, capsys)["ann"] == (True, False)
    [record] = records_of(ErasedAgents(root / "data"))
    assert '"action":"key_destroyed"' in record.text
    assert '"agent_id":"ann"' in record.text
    assert run(root, "check", "ann", key="old.key") == ExitCode.DAMAGED
    assert run(root, "encryption", "destroy", "ann", "--yes") == ExitCode.NOT_FOUND


def test_invalid_requests_have_exit_codes(root: Path) -> None:
    """A missing or invalid key and a missing or unknown agent each have an exit code, and change nothing."""
    assert run(root, "encryption", "encrypt", "ann") == ExitCode.BAD_SETTING
    assert run(root, "encryption", "encrypt", "zoe", key="old.key") == ExitCode.NOT_FOUND
    assert run(root, "encryption", "encrypt", key="old.key") == ExitCode.USAGE
    assert run(root, "encryption", "encrypt", "ann", "--all", key="old.key") == ExitCode.USAGE
    (root / "bad.key").write_text("not a key")
    assert run(root, "encryption", "encrypt", "ann", key="bad.key") == ExitCode.BAD_SETTING
    assert not (root / "data" / "keys").exists()
    assert run(root, "check") == 0


def test_offline_commands_accept_the_master_key(
    root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Every command that reads encrypted agents works with the key from the command line."""
    assert run(root, "encryption", "encrypt", "--all", key="old.key") == 0
    for command in (
        ("agents",),
        ("inspect", "ann"),
        ("audit", "show", "ann"),
        ("audit", "verify"),
        ("backup", "--out", str(tmp_path)),
        ("restore", str(tmp_path / "ann.ebb"), "--replace"),
        ("export", "ann", "--out", str(tmp_path / "ann.jsonl")),
        ("import", str(tmp_path / "ann.jsonl"), "--replace"),
        ("encryption", "status"),
        ("encryption", "destroy", "bea", "--yes"),
    ):
        assert run(root, *command, key="old.key") == 0, command
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        command_line.main(["audit", "show", "ann", "--master-key-file", str(root / "old.key")])
    assert caught.value.code == ExitCode.USAGE
    assert "--master-key-file needs --data-dir" in capsys.readouterr().err


def test_a_world_readable_key_file_causes_a_warning(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command warns once on standard error, with the file name: the master key, the new one, an API key."""
    rotate = ("encryption", "rotate-master", "--new-key-file", str(root / "new.key"))
    assert run(root, "encryption", "encrypt", "--all", key="old.key") == 0
    assert "warning" not in capsys.readouterr().err
    for name in ("old.key", "new.key"):
        (root / name).chmod(0o644)
    assert run(root, "agents", "--json", key="old.key") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["agents"]
    assert printed.err == (
        "warning: every user of this machine may read the file of the master key; "
        f"chmod 600 {root / 'old.key'}\n"
    )
    assert run(root, *rotate, key="old.key") == 0
    assert capsys.readouterr().err.count("warning: ") == 2
    for mode, count in ((0o600, 0), (0o604, 1)):
        (root / "new.key").chmod(mode)
        asked = ["recall", "x", "--url", "http://127.0.0.1:9", "--api-key-file", str(root / "new.key")]
        with pytest.raises(SystemExit):
            command_line.main(asked)
        assert capsys.readouterr().err.count("may read the API key file; chmod 600") == count
