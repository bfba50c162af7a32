"""A daemon that is killed while it consolidates: the store is sound, and the next runs end as without the kill."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from random import Random

import httpx

from tests.support.process import Daemon, check_data_directory, running_daemon

AGENT = "ann"
WEEK_MS = 7 * 86_400_000
MONDAY_MS = 1_704_067_200_000
HABITS = 20
KILLS = 4


def tell(daemon: Daemon) -> None:
    """Store events that form many habits."""
    for number in range(HABITS):
        for week in range(4):
            body = {
                "subject": "I",
                "topic": "did",
                "object": f"sport {number}" if number % 2 else f"第{number}项运动",
                "kind": "event",
                "since": MONDAY_MS + week * WEEK_MS,
            }
            stored = daemon.post(f"{AGENT}/statements", body)
            assert stored.status_code == 201, stored.text


def consolidate(daemon: Daemon) -> None:
    """Request a consolidation; the daemon may die before the response."""
    try:
        daemon.post(f"{AGENT}/consolidate", {})
    except httpx.HTTPError:
        return


def test_a_killed_run_leaves_every_habit_once(tmp_path: Path) -> None:
    """After kills at random moments of a run, and a complete run, each habit exists once and each entry is sound."""
    random = Random(7)
    data = tmp_path / "data"
    with running_daemon(data) as daemon:
        tell(daemon)
        for _ in range(KILLS):
            request = threading.Thread(target=consolidate, args=(daemon,))
            request.start()
            request.join(random.uniform(0.0, 0.15))
            daemon.kill()
            request.join()
            check_data_directory(data)
            daemon.start()
        done = daemon.post(f"{AGENT}/consolidate", {})
        assert done.status_code == 200, done.text
        found = daemon.get(f"{AGENT}/statements", params={"topic": "habit", "page_size": 1000}).json()
        counts = Counter(one["object"] for one in found["statements"])
        assert len(counts) == HABITS and set(counts.values()) == {1}
        listed = daemon.get(f"{AGENT}/statements", params={"page_size": 1000}).json()["statements"]
        assert {one["status"] for one in listed} <= {"staged", "consolidated"}
        again = daemon.post(f"{AGENT}/consolidate", {"dry_run": True}).json()["steps"]
        assert {step["step"]: step["changed"] for step in again}["habits"] == 0
