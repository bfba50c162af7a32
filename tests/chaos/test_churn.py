"""Open and close many agents in sequence: each releases every resource that it used."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.churn import OPEN_AGENT_KIB, OPEN_AT_MOST, Look, faults_of
from tests.support.tier import amount

AGENTS = amount("EBBTIDE_CHURN_AGENTS", 80, 800)
"""`python -m benchmarks.churn` runs through 5000, in a minute."""


@pytest.mark.chaos
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="what is held is read from /proc")
def test_opened_and_closed_agents_leave_nothing_behind() -> None:
    """After many agents were opened and closed, descriptors, threads, tasks, objects and memory are as before.

    An agent that is opened again uses no more than at its first opening.
    """
    command = [sys.executable, "-m", "benchmarks.churn", "--json", "--agents", str(AGENTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    seen = json.loads(done.stdout)
    assert seen["faults"] == []
    assert done.returncode == 0
    assert [look["agents"] for look in seen["looks"]][-2:] == [AGENTS, AGENTS]
    assert [look["open"] for look in seen["looks"]][-3:] == [0, min(AGENTS, OPEN_AT_MOST), 0]


def test_growth_is_reported() -> None:
    """Growth of each observed resource is reported as a fault with its name."""
    flat = Look(1000, 0, 1.0, 80.0, 10, 7, 2, 90_000)
    assert faults_of([flat] * 4, OPEN_AGENT_KIB) == []
    grown = Look(5000, 1, 9.0, 99.0, 11, 8, 3, 99_000)
    found = " ".join(faults_of([flat, grown, grown, grown], OPEN_AGENT_KIB + 1))
    for name in ("open grew", "descriptors grew", "threads grew", "tasks grew", "objects", "memory", "again"):
        assert name in found
