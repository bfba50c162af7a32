"""A data directory that disappears under a running daemon: it reports that, acknowledges nothing, and recovers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.support.process import Daemon, running_daemon
from tests.support.waiting import Stopwatch, wait_until

pytestmark = pytest.mark.chaos

SETTINGS = {
    "EMBEDDING__MODEL": "off",
    "LANGUAGE__RETRY_BASE_MS": 100,
    "LANGUAGE__RETRY_CAP_MS": 500,
    "SERVER__SHUTDOWN_GRACE_S": 5,
}
GRACE_S = 5

KEPT = ["The kettle is blue.", "The cup is red."]


class Disk:
    """A data directory that can be removed and put back. This class moves the directory."""

    def __init__(self, folder: Path) -> None:
        self.data_dir = folder / "data"
        self._elsewhere = folder / "elsewhere"

    def take_away(self) -> None:
        """Leave an empty directory where the data was, as below a mount."""
        self.data_dir.rename(self._elsewhere)
        self.data_dir.mkdir()

    def bring_back(self) -> None:
        """Put the data back, after a check that nothing was written in their place."""
        self.data_dir.rmdir()
        self._elsewhere.rename(self.data_dir)

    def close(self) -> None:
        """Clean up."""


class RemountedDisk(Disk):
    """A directory that comes back as other files with the same content, as a disk does under another device number."""

    def bring_back(self) -> None:
        """Put a copy into its place."""
        self.data_dir.rmdir()
        shutil.copytree(self._elsewhere, self.data_dir)


class Mount(Disk):
    """A real mount, which is detached lazily while files on it are open."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._elsewhere.mkdir()
        self.data_dir.mkdir()
        if os.geteuid() != 0 or shutil.which("mount") is None:
            pytest.skip("mounting takes root")
        self._closing = [["umount", "-l", str(self._elsewhere)]]
        if subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(self._elsewhere)]
        ).returncode:
            pytest.skip("mounting is not permitted here")
        self.bring_back()

    def take_away(self) -> None:
        """Detach it from the tree."""
        subprocess.run(["umount", "-l", str(self.data_dir)], check=True)

    def bring_back(self) -> None:
        """Attach it again."""
        assert list(self.data_dir.iterdir()) == []
        subprocess.run(["mount", "--bind", str(self._elsewhere), str(self.data_dir)], check=True)

    def close(self) -> None:
        """Unmount everything."""
        subprocess.run(["umount", "-l", str(self.data_dir)], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["umount", "-l", str(self._elsewhere)], check=True)


def remembered(daemon: Daemon, agent: str, text: str) -> httpx.Response:
    return daemon.post(f"{agent}/remember", {"messages": [{"role": "user", "content": text}]})


def contents(daemon: Daemon, agent: str) -> list[str]:
    listed = daemon.get(f"{agent}/nodes", params={"page_size": 1000}).json()["nodes"]
    return [node["content"] for node in listed]


def begun(daemon: Daemon) -> None:
    """Create two agents that are open, and one that is not."""
    for agent in ("ann", "bob", "cid"):
        daemon.remember(agent, *KEPT)
        assert daemon.flush(agent)["digested"]
    assert daemon.post("cid/close").status_code == 200


def readiness(daemon: Daemon) -> str:
    status: str = daemon.client.get("/readyz").json()["status"]
    return status


def gone_s_answers(daemon: Daemon) -> None:
    """Assert that every request that needs the disk is refused, and that all others are answered."""
    for agent in ("ann", "bob", "cid", "new"):
        refused = remembered(daemon, agent, "This is lost.")
        assert (refused.status_code, refused.json()["error"]["reason"]) == (503, "STORE_UNAVAILABLE")
    for call in (daemon.get("cid"), daemon.client.get("/v1/agents"), daemon.client.delete("/v1/agents/bob")):
        assert (call.status_code, call.json()["error"]["reason"]) == (503, "STORE_UNAVAILABLE")
    ready = daemon.client.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (503, "unavailable")
    assert daemon.client.get("/healthz").status_code == 200
    assert daemon.recall("ann", "kettle", patience_ms=0) == "[Memory] The kettle is blue."


@pytest.mark.parametrize("kind", [Disk, RemountedDisk, Mount])
def test_a_restored_disk_is_used_again(tmp_path: Path, kind: Callable[[Path], Disk]) -> None:
    """Nothing is acknowledged without the directory; then everything works, and a restart finds what was stored."""
    disk = kind(tmp_path)
    try:
        with running_daemon(disk.data_dir, SETTINGS) as daemon:
            begun(daemon)
            disk.take_away()
            gone_s_answers(daemon)
            assert list(disk.data_dir.iterdir()) == [], "nothing is written where the disk was"
            disk.bring_back()
            wait_until(lambda: readiness(daemon) != "unavailable", 10)
            for agent in ("ann", "bob", "cid"):
                wait_until(lambda: remembered(daemon, agent, "The spoon is green.").status_code == 202, 10)  # noqa: B023
                assert daemon.flush(agent)["digested"]
                assert contents(daemon, agent) == [*KEPT, "The spoon is green."]
            assert daemon.stop() == 0
            daemon.start()
            for agent in ("ann", "bob", "cid"):
                assert contents(daemon, agent) == [*KEPT, "The spoon is green."]
            assert daemon.get("new").status_code == 404
            assert daemon.stop() == 0
    finally:
        disk.close()


@pytest.mark.parametrize("kind", [Disk, Mount])
def test_a_daemon_without_its_disk_stops_within_its_grace(
    tmp_path: Path, kind: Callable[[Path], Disk]
) -> None:
    """A stop without the directory does not hang; acknowledged batches are there once the directory is back."""
    disk = kind(tmp_path)
    try:
        with running_daemon(disk.data_dir, SETTINGS) as daemon:
            begun(daemon)
            daemon.remember("ann", "The spoon is green.")
            disk.take_away()
            remembered(daemon, "ann", "This is lost.")
            watch = Stopwatch()
            daemon.stop()
            assert watch.s < GRACE_S + 5
            disk.bring_back()
            daemon.start()
            assert daemon.flush("ann")["digested"]
            assert contents(daemon, "ann") == [*KEPT, "The spoon is green."]
            assert daemon.stop() == 0
    finally:
        disk.close()


def test_another_daemons_directory_in_its_place_is_not_written_to(tmp_path: Path) -> None:
    """A directory that another daemon locked meanwhile is not used, nor is a copy from before the start."""
    disk = Disk(tmp_path)
    with running_daemon(tmp_path / "other", SETTINGS) as other:
        other.remember("ann", "The other kettle is black.")
        assert other.stop() == 0
    with running_daemon(disk.data_dir, SETTINGS) as daemon:
        begun(daemon)
        disk.take_away()
        disk.data_dir.rmdir()
        (tmp_path / "other").rename(disk.data_dir)
        gone_s_answers(daemon)
        disk.data_dir.rename(tmp_path / "other")
        disk.data_dir.mkdir()
        disk.bring_back()
        assert remembered(daemon, "ann", "The spoon is green.").status_code == 202
        assert daemon.stop() == 0
    with running_daemon(tmp_path / "other", SETTINGS) as other:
        assert contents(other, "ann") == ["The other kettle is black."]
        assert other.stop() == 0
