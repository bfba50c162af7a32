"""No space: in the map of one agent, on the disk, or in a directory that cannot be written."""

from __future__ import annotations

import base64
import contextlib
import os
import random
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from ebbtide.cli.exit_codes import ExitCode
from tests.support.forks import run_command
from tests.support.process import Daemon, running_daemon
from tests.support.small_disk import fill_up, mounted
from tests.support.waiting import Stopwatch, wait_until

pytestmark = pytest.mark.chaos

TINY = {"STORE__INITIAL_MAP_BYTES": 1 << 18, "STORE__MAX_MAP_BYTES": 1 << 18, "LANGUAGE__RETRY_CAP_MS": 1000}
QUIET = {"EMBEDDING__MODEL": "off", "LANGUAGE__RETRY_CAP_MS": 500, "LANGUAGE__RETRY_BASE_MS": 100}
ROOMY = {"STORE__INITIAL_MAP_BYTES": 1 << 18}


def noise(dice: random.Random, characters: int) -> str:
    """Return text that cannot be compressed."""
    return base64.b64encode(dice.randbytes(characters)).decode()[:characters]


def try_to_remember(daemon: Daemon, agent: str, text: str, role: str = "user") -> httpx.Response:
    """Remember without a check of the response."""
    return daemon.post(f"{agent}/remember", {"messages": [{"role": role, "content": text}]})


def assert_full(response: httpx.Response) -> None:
    assert response.status_code == 507, response.text
    error = response.json()["error"]
    assert (error["reason"], error["status"]) == ("STORE_FULL", "RESOURCE_EXHAUSTED")


def all_batches(daemon: Daemon, agent: str) -> list[str]:
    response = daemon.get(f"{agent}/batches?page_size=1000")
    assert response.status_code == 200, response.text
    return [batch["batch_id"] for batch in response.json()["batches"]]


def fill(daemon: Daemon, agent: str, characters: int, role: str = "user", most: int = 2000) -> list[str]:
    """Remember until the store is full. Return the acknowledged batches. Messages of the system create no memories."""
    dice = random.Random(characters)
    acknowledged = []
    for _ in range(most):
        response = try_to_remember(daemon, agent, noise(dice, characters), role)
        if response.status_code != 202:
            assert_full(response)
            return acknowledged
        acknowledged.append(response.json()["batch_id"])
    raise AssertionError("it never got full")


def test_full_map_refuses_writes_until_it_is_larger(tmp_path: Path) -> None:
    """A full map refuses with STORE_FULL and stores nothing; reads work, and other agents are not affected.

    After a restart with a larger map everything acknowledged is there and is digested.
    """
    with running_daemon(tmp_path / "data", TINY) as daemon:
        daemon.remember("full", "The kettle is blue.")
        daemon.flush("full")
        acknowledged = ["b1", *fill(daemon, "full", 6000)]
        assert len(acknowledged) > 3
        for _ in range(3):
            assert_full(try_to_remember(daemon, "full", noise(random.Random(1), 90_000)))
        assert all_batches(daemon, "full") == acknowledged, "a refused batch leaves no trace"
        watch = Stopwatch()
        assert "[Memory] The kettle is blue." in daemon.recall("full", "kettle", patience_ms=0)
        assert daemon.get("full/nodes").status_code == 200
        assert daemon.get("full").json()["pending_batches"] <= len(acknowledged)
        daemon.remember("other", "The cup is red.")
        assert daemon.recall("other", "cup") == "[Memory] The cup is red."
        assert watch.s < 15, "half of what a request may wait"
        assert daemon.client.get("/readyz").status_code == 200
        assert daemon.stop() == 0

        # The same small map again: it starts and reads.
        daemon.start()
        assert "[Memory] The kettle is blue." in daemon.recall("full", "kettle", patience_ms=0)
        assert daemon.stop() == 0
    with running_daemon(tmp_path / "data", ROOMY) as daemon:
        answer = daemon.flush("full")
        assert (answer["digested"], answer["pending_batches"], answer["parked_batches"]) == (True, 0, 0)
        assert all_batches(daemon, "full") == acknowledged
        states = daemon.get("full/batches?page_size=1000&state=digested").json()["batches"]
        assert [b["batch_id"] for b in states] == acknowledged
        assert all(b["node_ids"] and b["attempts"] == 0 for b in states)


@pytest.mark.full
def test_full_map_refuses_only_concurrent_batches_that_do_not_fit(tmp_path: Path) -> None:
    """An acknowledged batch is stored and a refused one is not, whatever other batches share its commit.

    Small batches are accepted while large concurrent ones are refused for lack of space.
    """
    acknowledged: list[str] = []
    refused_beside: list[int] = []
    # Room for every small one and for no large one.
    small = {**TINY, "STORE__INITIAL_MAP_BYTES": 294_912, "STORE__MAX_MAP_BYTES": 294_912}
    with running_daemon(tmp_path / "data", small) as daemon:
        daemon.remember("full", "The kettle is blue.")
        daemon.flush("full")

        def tell(number: int) -> None:
            characters = 90_000 if number % 2 else 10
            # System messages create no memories, so only accepted batches use space.
            text = noise(random.Random(number), characters)
            response = try_to_remember(daemon, "full", text, "system")
            if response.status_code == 202:
                acknowledged.append(response.json()["batch_id"])
            else:
                assert_full(response)
                refused_beside.append(characters)

        with ThreadPoolExecutor(16) as callers:
            list(callers.map(tell, range(64)))
        assert sorted(all_batches(daemon, "full")[1:]) == sorted(acknowledged)
        assert len(set(acknowledged)) == len(acknowledged) >= 32
        assert set(refused_beside) == {90_000}
        assert daemon.flush("full")["digested"]
        assert daemon.stop() == 0


@pytest.mark.full
def test_map_grows_by_itself(tmp_path: Path) -> None:
    """The map grows from the smallest size to many MiB without an error."""
    dice = random.Random(3)
    with running_daemon(tmp_path / "data", ROOMY) as daemon:
        texts = [noise(dice, 90_000) for _ in range(120)]
        for number in range(0, 120, 12):
            messages = [{"role": "system", "content": text} for text in texts[number : number + 12]]
            response = daemon.post("ann/remember", {"messages": messages})
            assert response.status_code == 202, response.text
            daemon.remember("ann", f"Fact number {number}.")
        assert daemon.flush("ann")["digested"]
        assert (tmp_path / "data/agents/ann/data.mdb").stat().st_size > 8 << 20
        assert daemon.get("ann").json()["counts"]["messages"] == 130
        assert len(daemon.get("ann/nodes").json()["nodes"]) == 10
        assert '"level": "error"' not in daemon.log


@pytest.mark.full
def test_failed_write_of_a_full_map_does_not_wedge_the_store(tmp_path: Path) -> None:
    """Small writes succeed after large ones were refused: refused batches use no space of the map."""
    with running_daemon(tmp_path / "data", TINY) as daemon:
        daemon.remember("ann", "The kettle is blue.")
        for seed in range(20):
            dice = random.Random(seed)
            big = [{"role": "user", "content": noise(dice, 99_000)} for _ in range(5)]
            assert_full(daemon.post("ann/remember", {"messages": big}))
        daemon.remember("ann", "The cup is red.")
        assert daemon.flush("ann")["digested"]
        assert daemon.recall("ann", "cup") == "[Memory] The cup is red."


# --- a disk without room ---------------------------------------------------------------------------------


def test_full_disk_refuses_writes_and_recovers(tmp_path: Path) -> None:
    """A full disk refuses with STORE_FULL and loses nothing; with space again the daemon continues without help."""
    settings = {"LANGUAGE__RETRY_CAP_MS": 500, "LANGUAGE__RETRY_BASE_MS": 100}
    with mounted(tmp_path / "disk") as disk, running_daemon(disk / "data", settings) as daemon:
        daemon.remember("ann", "The kettle is blue.")
        daemon.flush("ann")
        filler = fill_up(disk)
        acknowledged = ["b1", *fill(daemon, "ann", 90_000, "system"), *fill(daemon, "ann", 1000, "system")]
        assert "[Memory] The kettle is blue." in daemon.recall("ann", "kettle", patience_ms=0)
        assert_full(try_to_remember(daemon, "newcomer", "The cup is red."))
        ready = daemon.client.get("/readyz").json()
        assert ready["status"] == "degraded"
        assert any("disk" in why for why in ready["reasons"])
        filler.unlink()
        daemon.remember("ann", "The cup is red.")
        answer = daemon.flush("ann", timeout_ms=20_000)
        assert (answer["digested"], answer["passes_done"], answer["parked_batches"]) == (True, True, 0)
        assert all_batches(daemon, "ann")[: len(acknowledged)] == acknowledged
        assert "cup" in daemon.recall("ann", "cup")
        daemon.remember("newcomer", "The spoon is green.")
        assert daemon.recall("newcomer", "spoon") == "[Memory] The spoon is green."
        assert daemon.stop() == 0


def test_kill_on_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """After SIGKILL on a full disk every acknowledged batch is there once there is space."""
    with mounted(tmp_path / "disk") as disk:
        with running_daemon(disk / "data") as daemon:
            acknowledged = [daemon.remember("ann", "The kettle is blue.")]
            for characters in (90_000, 1000, 10):
                acknowledged += fill(daemon, "ann", characters, "system")
            daemon.kill()
            moved = tmp_path / "data"
            shutil.copytree(disk / "data", moved)
        with running_daemon(moved) as daemon:
            assert daemon.flush("ann")["digested"]
            assert all_batches(daemon, "ann") == acknowledged
            assert daemon.recall("ann", "kettle") == "[Memory] The kettle is blue."


@pytest.mark.parametrize(
    "room", [pytest.param(0, marks=pytest.mark.full), 200_000, pytest.param(500_000, marks=pytest.mark.full)]
)
def test_full_disk_while_an_agent_is_copied_or_compacted(tmp_path: Path, room: int) -> None:
    """A backup and a compaction without enough space are refused and leave no file.

    Meanwhile the agent can be read, and memories forgotten. With space again the backup is complete, and erased bytes
    are removed.
    """
    dice = random.Random(room)
    with mounted(tmp_path / "disk") as disk, running_daemon(disk / "data", QUIET) as daemon:
        agent = disk / "data/agents/ann"
        daemon.remember("ann", "The kettle is blue.")
        daemon.remember("ann", "The violet ledger is hidden.")
        for _ in range(12):
            assert try_to_remember(daemon, "ann", noise(dice, 90_000), "system").status_code == 202
        daemon.flush("ann")
        filler = fill_up(disk, but=room)
        before = sorted(path.name for path in agent.iterdir())
        for what in ("backup", "export"):
            response = daemon.get(f"ann/{what}")
            assert_full(response)
        assert list((disk / "data/transfers").iterdir()) == []
        free = shutil.disk_usage(disk).free
        response = daemon.post("ann/forget", {"topic": "violet ledger"})
        if response.status_code == 200:
            assert not response.json()["compacted"]
        else:
            assert_full(response)
        assert sorted(path.name for path in agent.iterdir()) == before, "no half of a fresh file is left"
        assert shutil.disk_usage(disk).free > free - 200_000
        assert "[Memory] The kettle is blue." in daemon.recall("ann", "kettle", patience_ms=0)
        filler.unlink()
        answer = daemon.post("ann/forget", {"topic": "violet ledger"})
        assert answer.status_code == 200, answer.text
        assert daemon.flush("ann", timeout_ms=20_000)["digested"]
        assert daemon.stop() == 0
        daemon.start()
        wait_until(lambda: b"violet" not in (agent / "data.mdb").read_bytes())
        content = daemon.get("ann/backup").content
        assert daemon.get("ann").json()["counts"]["messages"] >= 13
        (tmp_path / "ann.ebb").write_bytes(content)
        assert daemon.client.post(
            "/v1/agents/bea/restore?rename=true",
            content=content,
            headers={"Content-Type": "application/octet-stream"},
        ).is_success
        assert "[Memory] The kettle is blue." in daemon.recall("bea", "kettle")
        assert daemon.stop() == 0


# --- a directory that cannot be used ---------------------------------------------------------------------


def started(data_dir: Path) -> subprocess.CompletedProcess[str]:
    daemon = Daemon(data_dir)
    return run_command(*daemon.arguments, env=daemon.environment)


def assert_one_clear_sentence(done: subprocess.CompletedProcess[str], data_dir: Path) -> None:
    """Assert that the message names the directory, no other cause, and shows no traceback."""
    told = " ".join(done.stderr.split())
    assert done.returncode not in (0, ExitCode.FAILURE, ExitCode.PORT_TAKEN), told
    assert "Traceback" not in told
    assert data_dir.name in told
    assert "listen" not in told.lower(), "it is not about the port"
    assert "of this agent" not in told, "it is not about an agent"
    assert len(told) < 400


def test_read_only_data_directory_is_one_clear_sentence(tmp_path: Path) -> None:
    """A start with a read-only data directory fails with its name and an exit code of its own."""
    with mounted(tmp_path / "disk") as disk:
        with running_daemon(disk / "data") as daemon:
            daemon.remember("ann", "The kettle is blue.")
            assert daemon.stop() == 0
        remount = ["mount", "-o", "remount,ro", str(disk)]
        for name in ("data", "fresh"):
            # A child of the daemon may end a moment after it, with a file open.
            wait_until(lambda: subprocess.run(remount, check=False).returncode == 0)
            done = started(disk / name)
            subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
            assert_one_clear_sentence(done, disk / name)


def test_data_directory_that_is_a_file_is_one_clear_sentence(tmp_path: Path) -> None:
    """A start with a path that is not a directory, or is below a file, fails in the same way."""
    (tmp_path / "file").write_text("not a directory")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        assert_one_clear_sentence(started(path), path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
@pytest.mark.parametrize("mode", [0o000, 0o500])
def test_forbidden_data_directory_is_one_clear_sentence(tmp_path: Path, mode: int) -> None:
    """A start with a directory that may not be read or written fails in the same way."""
    (tmp_path / "data").mkdir(mode=mode)
    try:
        assert_one_clear_sentence(started(tmp_path / "data"), tmp_path / "data")
    finally:
        (tmp_path / "data").chmod(0o700)


def test_full_disk_at_the_start_is_one_clear_sentence(tmp_path: Path) -> None:
    """A disk without space for the lock file is reported as such, not as a port in use."""
    with mounted(tmp_path / "disk") as disk:
        with (disk / "filler").open("wb") as file, contextlib.suppress(OSError):
            while True:
                os.write(file.fileno(), bytes(1 << 12))
        done = started(disk / "data")
        told = " ".join(done.stderr.split())
        assert "Traceback" not in told
        if done.returncode != ExitCode.REFUSED:
            assert_one_clear_sentence(done, disk / "data")
        assert "listen" not in told.lower()
        assert "full" in told or "space" in told.lower()


def test_agent_whose_files_cannot_be_read_harms_only_itself(tmp_path: Path) -> None:
    """A damaged store is a 500 without details for its agent; all other agents are served, also at the start."""
    with running_daemon(tmp_path / "data") as daemon:
        for agent in ("broken", "whole"):
            daemon.remember(agent, "The kettle is blue.")
            daemon.flush(agent)
        assert daemon.stop() == 0
        store = tmp_path / "data/agents/broken/data.mdb"
        kept = store.read_bytes()
        store.write_bytes(b"\xff" * 8192)
        for agent in ("broken", "whole"):
            (tmp_path / "data/work" / agent).touch()
        daemon.start()
        wait_until(lambda: not (tmp_path / "data/work/whole").exists())
        response = daemon.post("broken/recall")
        assert response.status_code == 500
        assert response.json()["error"]["reason"] == "STORE_CORRUPTED"
        assert "data.mdb" not in response.text
        assert daemon.recall("whole", "kettle") == "[Memory] The kettle is blue."
        listed = {a["agent_id"] for a in daemon.client.get("/v1/agents").json()["agents"]}
        assert listed == {"broken", "whole"}
        assert daemon.stop() == 0
        store.write_bytes(kept)
        daemon.start()
        assert daemon.recall("broken", "kettle") == "[Memory] The kettle is blue."
