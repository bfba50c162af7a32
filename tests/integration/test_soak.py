"""The soak in short: its exact checks hold after some seconds as after ten minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.soak import faults_of, soak
from tests.support.tier import IS_ALL

SECONDS, AGENTS = (12.0, 12) if IS_ALL else (5.0, 6)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="processes are looked at in /proc")
@pytest.mark.full
def test_everything_at_once_loses_nothing(tmp_path: Path) -> None:
    """Under a mixed load over both transports no request fails, no batch is lost or duplicated, and stores are valid.

    Whether memory stays flat takes minutes to decide: `make soak`.
    """
    outcome = soak(tmp_path / "data", SECONDS, AGENTS)
    assert outcome.failures == []
    assert outcome.batches >= AGENTS
    assert set(outcome.requests) == {"RestCalls", "GrpcCalls"}
    judged = {finding.what for finding in outcome.findings if finding.is_met}
    assert judged >= {"batches lost", "batches digested otherwise than once", "inconsistencies in stores"}


BATCH: dict[str, Any] = {"batch_id": "b1", "state": "digested", "message_count": 2, "node_ids": ["n1", "n2"]}


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"state": "parked"}, "b1 is parked"),
        ({"message_count": 3}, "b1 has other messages"),
        ({"batch_id": "b2"}, "1 batches nobody sent"),
        ({"node_ids": ["n1", "n1"]}, "not n1 to n2"),
        ({"node_ids": ["n1", "n3"]}, "not n1 to n2"),
    ],
)
def test_lost_or_changed_batches_are_detected(changed: dict[str, Any], fault: str) -> None:
    """A batch that is parked, changed, invented, or became memories twice or in part, is reported."""
    assert faults_of("ann", {"b1": 2}, [BATCH]) == []
    assert any(fault in found for found in faults_of("ann", {"b1": 2}, [{**BATCH, **changed}]))


def test_a_memory_of_two_batches_is_detected() -> None:
    """Batches that became the same memory are reported."""
    acknowledged, second = {"b1": 2, "b2": 2}, {**BATCH, "batch_id": "b2", "node_ids": ["n7", "n8"]}
    assert faults_of("ann", acknowledged, [BATCH, second]) == []
    [fault] = faults_of("ann", acknowledged, [BATCH, {**second, "node_ids": ["n2", "n3"]}])
    assert "of another batch" in fault
