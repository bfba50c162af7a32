"""`ebbtide cluster drain`: it waits until the slots have moved, and refuses what could not end."""

from __future__ import annotations

import pytest

from ebbtide.cluster import draining
from ebbtide.cluster.draining import Drained, drain, end_drain
from ebbtide.cluster.jetstream import Created
from ebbtide.cluster.names import Names
from ebbtide.errors import Precondition
from ebbtide.settings import ClusterSettings
from tests.cluster.simulated_nodes import NAMES, SLOTS, Cluster, Connection
from tests.cluster.test_membership import best

SETTINGS = ClusterSettings(name=NAMES.cluster)


class Servers(Connection):
    """The log servers, as a command uses them."""

    def created(self, cluster: str) -> Created | None:
        return Created(SLOTS, 1)

    def use(self, names: Names) -> None:
        assert names == NAMES

    def age_s(self, subject: str) -> float:
        written = [one.written_s for one in self.documents.versions if one.subject == subject]
        return self.documents.clock.now_s - written[-1]


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draining, "POLL_S", 0.0)


def settled(*names: str) -> tuple[Cluster, Servers]:
    cluster = Cluster(*names)
    cluster.settle()
    return cluster, Servers(cluster.documents)


def test_a_drain_ends_when_the_others_own_all_slots() -> None:
    """It reports the slots that are left, which only fall, and which nodes took them."""
    cluster, servers = settled("a", "b", "c")
    seen = list[int]()

    def pass_time(left: int) -> None:
        seen.append(left)
        cluster.run(0.5)

    begun = best("a", "b", "c").count("a")
    done = drain(servers, SETTINGS, "a", timeout_s=60, on_progress=pass_time)  # type: ignore[arg-type]
    assert seen[0] == begun and seen[-1] == 0 and sorted(seen, reverse=True) == seen
    assert done.left == 0 and sum(done.taken.values()) == begun and set(done.taken) <= {"b", "c"}
    assert end_drain(servers, SETTINGS, "a")  # type: ignore[arg-type]
    assert not end_drain(servers, SETTINGS, "a")  # type: ignore[arg-type]
    cluster.run(10.0)
    assert list(cluster.table().owners) == best("a", "b", "c")


def test_a_drain_that_takes_too_long_says_what_is_left() -> None:
    """The mark stays, so the node continues to give its slots away."""
    cluster, servers = settled("a", "b")
    begun = best("a", "b").count("a")
    assert drain(servers, SETTINGS, "a", timeout_s=0) == Drained(begun, {})  # type: ignore[arg-type]
    cluster.run(5.0)
    assert list(cluster.table().owners) == best("b")


def test_a_drain_that_could_not_end_is_refused() -> None:
    """An unknown, a stopped and a silent node, and one whose slots no other node could take. Nothing is written."""
    cluster, servers = settled("a", "b", "c")
    cluster.processes.pop().membership.stop()
    cluster.run(5.0)
    with pytest.raises(Precondition, match="is stopped"):
        drain(servers, SETTINGS, "c", timeout_s=0)  # type: ignore[arg-type]
    with pytest.raises(Precondition, match=r"has no node d\. Its nodes: a \(running\), b \(running\)"):
        drain(servers, SETTINGS, "d", timeout_s=0)  # type: ignore[arg-type]
    cluster.processes[1].connection.is_silent = True
    cluster.run(20.0)
    with pytest.raises(Precondition, match="is silent"):
        drain(servers, SETTINGS, "b", timeout_s=0)  # type: ignore[arg-type]
    with pytest.raises(Precondition, match="No other node runs"):
        drain(servers, SETTINGS, "a", timeout_s=0)  # type: ignore[arg-type]
    cluster.run(2.0)
    assert cluster.table().drained == ()
