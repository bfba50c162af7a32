"""The benchmark with the logs of many agents runs, and finds each of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.subjects import SLOTS, STREAMS, agent_id, line, measure
from ebbtide.cluster.names import Names
from ebbtide.cluster.slots import slot_of
from ebbtide.store.directory.data_directory import directory_name
from tests.support.log_servers import require_nats

pytestmark = [pytest.mark.chaos, pytest.mark.full, pytest.mark.timeout(300)]

AGENTS = 1000


def test_the_logs_of_many_agents_are_stored_and_listed(tmp_path: Path) -> None:
    """Each agent has a log on every server, also on one that was killed, and a node lists those of its slots."""
    require_nats()
    few, many = measure(tmp_path / "log", [AGENTS // 10, AGENTS])
    assert (few.agents, many.agents, many.added) == (AGENTS // 10, AGENTS, AGENTS - AGENTS // 10)
    slots = [slot_of(directory_name(agent_id(number)), SLOTS) for number in range(AGENTS)]
    assert many.listed == sum(slot % 3 == 0 for slot in slots) > 0
    assert all(one > AGENTS * 1000 for one in many.disk_bytes)
    assert all(one.whole > 0 for one in many.memory)
    assert line(many).startswith(f"| {AGENTS} |")


def test_subjects_are_those_of_a_cluster() -> None:
    """The benchmark uses the names that a cluster uses."""
    names = Names("ebbtide", SLOTS, STREAMS)
    slot = slot_of("agent-7", SLOTS)
    assert names.subject_of(directory_name(agent_id(7))) == f"ebbtide.log.{slot % STREAMS}.{slot}.agent-7"
