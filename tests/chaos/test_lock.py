"""Only one daemon may use a data directory."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ebbtide.cli.exit_codes import ExitCode
from tests.support.forks import run_command
from tests.support.process import Daemon, running_daemon

pytestmark = pytest.mark.chaos


def refused(data_dir: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run a start that must fail."""
    second = Daemon(data_dir)
    return run_command(*second.arguments, *more, env=second.environment)


def test_second_daemon_is_refused_with_the_name_of_the_first(tmp_path: Path) -> None:
    """Two daemons never share a directory: the second ends at once, names the holder, and harms nothing."""
    with running_daemon(tmp_path / "data") as daemon:
        daemon.remember("ann", "The kettle is blue.")
        second = refused(tmp_path / "data")
        assert second.returncode == ExitCode.LOCKED
        assert f"process {daemon.process.pid}" in second.stderr
        assert str(tmp_path / "data") in second.stderr.replace("\n", "")
        assert "Traceback" not in second.stderr
        assert "listening" not in second.stderr
        assert daemon.recall("ann", "kettle") == "[Memory] The kettle is blue."
        third = refused(tmp_path / "data")
        assert f"process {daemon.process.pid}" in third.stderr, "a refused start does not claim the lock"
        assert daemon.stop() == 0


def test_lock_dies_with_its_holder(tmp_path: Path) -> None:
    """After SIGKILL the directory is free at once, and a refusal names the new daemon."""
    with running_daemon(tmp_path / "data") as daemon:
        daemon.remember("ann", "The kettle is blue.")
        old = daemon.process.pid
        daemon.kill()
        daemon.start()
        second = refused(tmp_path / "data")
        assert second.returncode == ExitCode.LOCKED
        assert f"process {daemon.process.pid}" in second.stderr
        assert f"process {old}" not in second.stderr
        assert daemon.recall("ann", "kettle") == "[Memory] The kettle is blue."
        assert daemon.stop() == 0
        daemon.start()
        assert daemon.stop() == 0


def test_other_name_for_the_same_directory_is_the_same_directory(tmp_path: Path) -> None:
    """Neither a symbolic link nor a detour opens a directory twice."""
    with running_daemon(tmp_path / "data"):
        (tmp_path / "link").symlink_to(tmp_path / "data")
        for name in (tmp_path / "link", tmp_path / "data" / ".." / "data"):
            assert refused(name).returncode == ExitCode.LOCKED


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are read from /proc")
def test_lock_is_not_inherited_by_child_processes(tmp_path: Path) -> None:
    """The descriptor of the lock is closed on exec: a child process cannot keep the directory locked."""
    with running_daemon(tmp_path / "data") as daemon:
        descriptors = Path(f"/proc/{daemon.process.pid}/fd")
        [lock] = [d for d in descriptors.iterdir() if os.readlink(d) == str(tmp_path / "data/lock")]
        lines = Path(f"/proc/{daemon.process.pid}/fdinfo/{lock.name}").read_text().splitlines()
        flags = next(line.split()[1] for line in lines if line.startswith("flags"))
        assert int(flags, 8) & os.O_CLOEXEC


def test_port_in_use_is_reported(tmp_path: Path) -> None:
    """A port in use is one sentence and an exit code of its own, and no store was opened."""
    with running_daemon(tmp_path / "data") as daemon:
        port = daemon.url.rpartition(":")[2]
        second = refused(tmp_path / "other", "--rest-port", port)
        assert second.returncode == ExitCode.PORT_TAKEN
        assert port in second.stderr
        assert "Traceback" not in second.stderr


def test_insecure_bind_is_refused_at_start(tmp_path: Path) -> None:
    """Listening beyond this machine is refused before anything is opened, with its own exit code."""
    for host in ("0.0.0.0", "::"):
        done = refused(tmp_path / "data", "--host", host)
        assert done.returncode == ExitCode.INSECURE_BIND
        assert host in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists()
