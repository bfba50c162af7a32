"""The comparison with other memories: the same work and measure for all, and a reason for each skipped one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.peers.__main__ import PEERS, ROWS, NotMeasured, Peer, as_table, installed, measured
from benchmarks.peers.driver import share_found

TURNS = [
    {"id": f"t{number}", "session": "s", "speaker": "Ann", "text": text, "time_ms": None}
    for number, text in enumerate(["I moved to York", "The cat is ill", "Tea is ready", "It rains"] * 3)
]
WORK = {
    "turns": [{**turn, "id": f"t{number}"} for number, turn in enumerate(TURNS)],
    "questions": [{"text": "Who moved to York?", "gold": [["t0", "t4", "t8"], ["t1"]]}],
    "count": 10,
}


def test_a_gold_group_is_found_by_any_of_its_turns() -> None:
    """Promise: the measure is that of the recall benchmark: the share of gold groups with a turn among the results."""
    assert share_found(["a", "b"], [["b", "c"], ["d"]]) == 0.5
    assert share_found([], [["b"]]) == 0.0


def test_a_memory_is_measured_in_two_processes(tmp_path: Path) -> None:
    """Promise: every row of the table gets a figure, and the second process answers from what the first stored."""
    (fts5,) = (peer for peer in PEERS if peer.module == "fts5")
    environment = tmp_path / "environment" / "bin"
    environment.mkdir(parents=True)
    (environment / "python").symlink_to(sys.executable)
    (environment.parent / "empty").write_text("0")
    figures = measured(fts5, environment / "python", WORK, tmp_path)
    assert set(figures) == {figure for figure, _ in ROWS.values()}
    assert figures["recall"] == 50.0 and figures["bytes_per_turn"] > 0
    table = as_table(
        {"Ebbtide": figures, "other": {**figures, "p50_ms": 2 * figures["p50_ms"]}},
        {"Ebbtide": "1", "other": "2"},
    )
    assert "(2 ×)" in table


def test_the_driver_needs_no_other_package(tmp_path: Path) -> None:
    """Promise: the driver runs in an environment that has only the memory's own packages."""
    work = tmp_path / "work.json"
    work.write_text(json.dumps({**WORK, "module": "fts5", "folder": str(tmp_path / "store")}))
    command = [sys.executable, "-S", "-m", "benchmarks.peers.driver", str(work), "fill", str(time.time())]
    root = Path(__file__).parents[3]
    done = subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert json.loads(done.stdout)["recall"] == 50.0


@pytest.mark.full
def test_a_memory_that_cannot_be_installed_has_a_reason(tmp_path: Path) -> None:
    """Promise: a failed installation has pip's last line as its reason, and does not count as complete."""
    peer = Peer("none", "none", (str(tmp_path / "missing.whl"),), "none")
    with pytest.raises(NotMeasured, match="not installed"):
        installed(peer, tmp_path, reinstall=False)
    assert not (tmp_path / "environments" / "none" / "complete").exists()
