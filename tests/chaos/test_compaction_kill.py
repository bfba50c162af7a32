"""A daemon that is killed inside a compaction: what was erased is gone after the next start, and nothing else is."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import httpx
import pytest

from tests.support.cut_compaction import MODULE, step_file, steps_file
from tests.support.process import Daemon, check_data_directory, running_daemon
from tests.support.waiting import wait_until

pytestmark = pytest.mark.chaos

PLAIN = {"EMBEDDING__MODEL": "off", "LANGUAGE__RETRY_CAP_MS": 500}
SECRET = "The lighthouse keeper hides a violet ledger."
WHOLE = 1_000_000
"""More steps than there are."""

KEPT = [f"Fact number {number} about the harbour." for number in range(30)]


def holds_secret(data_dir: Path) -> bool:
    """Whether a word of what was erased stands in a file of the agent."""
    return any(b"violet" in file.read_bytes() for file in (data_dir / "agents" / "ann").iterdir())


def contents(daemon: Daemon) -> list[str]:
    """What the agent knows."""
    listed = daemon.get("ann/nodes", params={"page_size": 1000}).json()["nodes"]
    return [node["content"] for node in listed]


def test_killed_at_any_step_it_leaves_the_agent_whole_and_the_erased_bytes_go(tmp_path: Path) -> None:
    """While the fresh file is written, synced, renamed, opened: the next start finishes it, asked by nobody."""
    made = tmp_path / "made"
    with running_daemon(made, PLAIN) as daemon:
        for text in (KEPT[0], SECRET, *KEPT[1:]):
            daemon.remember("ann", text)
        assert daemon.flush("ann")["digested"]
        assert daemon.stop() == 0
    assert holds_secret(made)
    assert forgotten(made, tmp_path / "whole", WHOLE)
    steps = steps_file(tmp_path / "whole").read_text().split()
    pieces = steps.count("piece")
    assert steps == ["piece"] * pieces + ["sync_file", "replace", "sync_directory", "open_environment"]
    for at in (0, pieces // 2, *range(pieces, len(steps))):
        data_dir = tmp_path / f"cut-{at}"
        assert not forgotten(made, data_dir, at)
        check_data_directory(data_dir)
        with running_daemon(data_dir, PLAIN) as daemon:
            wait_until(lambda: not holds_secret(data_dir), 30)  # noqa: B023
            assert contents(daemon) == KEPT
            daemon.remember("ann", "The cup is red.")
            assert daemon.flush("ann")["digested"]
            assert daemon.stop() == 0
        assert not holds_secret(data_dir), steps[at]
        assert not (data_dir / "agents" / "ann" / "data.mdb.new").exists()


def forgotten(made: Path, data_dir: Path, at: int) -> bool:
    """Forget in a copy of a data directory, with a daemon that ends before a step; whether it came to its end."""
    shutil.copytree(made, data_dir)
    step_file(data_dir).write_text(str(at))
    daemon = Daemon(data_dir, PLAIN, module=MODULE)
    try:
        daemon.start()
        try:
            answer = daemon.post("ann/forget", {"topic": "violet ledger"})
        except httpx.TransportError:
            assert daemon.process.wait(20) == -signal.SIGKILL
            return False
        assert answer.json()["compacted"], answer.text
        assert daemon.stop() == 0
        return True
    finally:
        daemon.close()
