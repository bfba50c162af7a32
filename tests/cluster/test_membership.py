"""Leases and slots: at no time do two nodes own a slot, and no silence of the servers moves one."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from structlog.testing import capture_logs

from ebbtide.cluster.ownership import Ownership
from ebbtide.cluster.slots import best_node, slot_of
from ebbtide.errors import Precondition
from ebbtide.ids import AgentId
from ebbtide.store.directory.data_directory import directory_name
from tests.cluster.simulated import SimulatedStream
from tests.cluster.simulated_nodes import NAMES, SLOTS, Cluster, Process, Write
from tests.support.tier import amount

SCHEDULES = amount("EBBTIDE_CLUSTER_SCHEDULES", 60, 2000)
STEPS = 150
ALL = frozenset(range(SLOTS))


def best(*names: str) -> list[str]:
    return [best_node(slot, names) for slot in range(SLOTS)]


def owners(cluster: Cluster) -> list[str]:
    """Return the owner of each slot, as the owners themselves say."""
    found = [""] * SLOTS
    for process in cluster.processes:
        for slot in process.owned():
            found[slot] = process.name
    return found


def settled(*names: str) -> Cluster:
    cluster = Cluster(*names)
    cluster.settle()
    assert owners(cluster) == best(*names)
    return cluster


# --- every schedule ------------------------------------------------------------------------------------


STEPS_AND_WEIGHTS = {
    "time": 6.0,
    "renew": 8.0,
    "plan": 8.0,
    "rest": 1.0,
    "silence": 1.0,
    "lag": 1.0,
    "doubt": 1.0,
    "restart": 0.3,
    "end": 0.3,
    "drain": 0.3,
}


def step(dice: Random, cluster: Cluster) -> None:
    """Make one step: time passes, or one process renews, plans, pauses, is cut off, reads stale or restarts."""
    process = dice.choice(cluster.processes)
    connection = process.connection
    match dice.choices(list(STEPS_AND_WEIGHTS), list(STEPS_AND_WEIGHTS.values()))[0]:
        case "time":
            cluster.clock.now_s += dice.choice((0.1, 0.5, 1.0, 3.0, 13.0))
        case "renew":
            process.renew()
        case "plan":
            process.plan()
        case "rest":
            # The process is paused; the others continue.
            for _ in range(dice.randrange(8)):
                cluster.clock.now_s += 2.0
                for other in cluster.processes:
                    if other is not process:
                        other.renew()
                        other.plan()
                        cluster.check()
        case "silence":
            connection.is_silent = not connection.is_silent
        case "lag":
            connection.lag_s = dice.choice((0.0, 0.5, 1.0))
        case "doubt":
            connection.next_writes[NAMES.node(process.name)] = dice.choice(list(Write))
            connection.next_writes[NAMES.table] = Write.LOST
        case "drain":
            cluster.mark_drained(process.name, is_drained=dice.random() < 0.7)
        case "restart" | "end" as kind:
            if kind == "end" and not connection.is_silent:
                process.membership.stop()
            place = cluster.processes.index(process)
            life = str(dice.random())
            cluster.processes[place] = Process(cluster.documents, process.name, life, offset_s=5.0 * place)


@pytest.mark.parametrize("names", [("a", "b"), ("a", "b", "c")])
def test_no_schedule_lets_two_nodes_own_a_slot(names: tuple[str, ...]) -> None:
    """Renewals, plans, pauses, silence, stale reads, lost writes, drains and restarts in any order; then all settle.

    Each of the schedules has 150 steps; the owners are compared after each step.
    """
    for seed in range(SCHEDULES):
        dice, cluster = Random(seed), Cluster(*names)
        for _ in range(STEPS):
            step(dice, cluster)
            cluster.check()
        for process in cluster.processes:
            process.connection.is_silent, process.connection.lag_s = False, 0.0
            process.connection.next_writes.clear()
            cluster.mark_drained(process.name, is_drained=False)
        cluster.run(40.0)
        assert owners(cluster) == best(*names), f"seed {seed}"


# --- the lease -----------------------------------------------------------------------------------------


def test_a_lapsed_lease_owns_nothing_until_the_table_was_written_again() -> None:
    """A node that was away owns its slots again only after a compare-and-swap of the table in its new lease."""
    cluster = settled("a")
    (node,) = cluster.processes
    cluster.clock.now_s += 9.0
    assert node.owned() == frozenset()
    node.renew()
    assert node.membership.has_lease and node.owned() == frozenset()
    node.connection.next_writes[NAMES.table] = Write.LOST
    node.plan()
    assert node.owned() == frozenset()
    node.connection.written.clear()
    node.plan()
    assert node.owned() == ALL
    assert node.connection.written == [NAMES.table]


def test_a_lease_is_valid_for_three_quarters_from_the_start_of_its_renewal() -> None:
    """The time that a renewal takes is not added."""
    cluster = settled("a")
    (node,) = cluster.processes

    def slow() -> None:
        cluster.clock.now_s += 4.0

    node.connection.before_write[NAMES.node("a")] = slow
    node.renew()
    cluster.clock.now_s += 4.9
    assert node.owned() == ALL
    cluster.clock.now_s += 0.2
    assert node.owned() == frozenset()


@pytest.mark.parametrize("phase", range(7))
@pytest.mark.parametrize("silence_s", [3.0, 6.0, 7.5, 9.0, 15.0])
def test_an_election_deposes_no_node(phase: int, silence_s: float) -> None:
    """The servers are silent for as long as an election, or longer, at any time: the table stays."""
    cluster = Cluster("a", "b")
    cluster.processes[1].next_renewal_s = cluster.clock.now_s + phase / 2
    cluster.settle()
    before, written = owners(cluster), len(cluster.documents.versions)
    assert before == best("a", "b")
    table = cluster.table()
    for process in cluster.processes:
        process.connection.is_silent = True
    cluster.run(silence_s)
    assert len(cluster.documents.versions) == written
    for process in cluster.processes:
        process.connection.is_silent = False
    cluster.run(10.0)
    assert owners(cluster) == before
    assert all(process.membership.table == table for process in cluster.processes)


def test_a_node_that_cannot_renew_is_replaced_after_its_lease() -> None:
    """Not before: the other node claims its slots between 12 s and 14 s after the last renewal that it saw."""
    cluster = settled("a", "b")
    away, other = cluster.processes
    away.connection.is_silent = True
    cluster.run(8.5)
    assert other.owned() != ALL
    cluster.run(5.5)
    assert other.owned() == ALL
    assert away.owned() == frozenset()


def test_a_node_that_ended_its_lease_is_replaced_at_once() -> None:
    """No time passes between its end and the claim of its slots."""
    cluster = settled("a", "b")
    leaver, other = cluster.processes
    leaver.membership.stop()
    assert leaver.owned() == frozenset()
    other.plan()
    assert other.owned() == ALL


def test_a_renewal_without_answer_that_was_made_fences_no_node() -> None:
    """The node finds its own life in the document, and continues with the same lease."""
    cluster = settled("a")
    (node,) = cluster.processes
    lease = node.membership.lease
    node.connection.next_writes[NAMES.node("a")] = Write.UNANSWERED
    for _ in range(3):
        node.renew()
    assert not node.membership.is_fenced
    assert node.membership.lease == lease
    cluster.clock.now_s += 8.0
    assert node.owned() == ALL


def test_a_second_process_with_the_same_name_fences_the_first() -> None:
    """It takes the lease at once; the next renewal of the first is its last, and it owns nothing."""
    cluster = settled("a")
    (old,) = cluster.processes
    new = Process(cluster.documents, "a", life="1")
    new.renew()
    new.plan()
    assert new.owned() == ALL
    assert old.membership.why_unready == ""
    with capture_logs() as lines:
        old.renew()
        old.membership.drain(0.0)
    assert old.membership.is_fenced and old.owned() == frozenset()
    assert [line["event"] for line in lines] == [old.membership.why_unready]
    assert "give it another cluster.node and restart it" in old.membership.why_unready
    old.plan()
    assert old.owned() == frozenset()
    new.renew()
    assert not new.membership.is_fenced and new.owned() == ALL


def joins(cluster: Cluster, ended_life: str, meanwhile: Callable[[], object] = lambda: None) -> float:
    """Return how long another process of node a waits before it takes the name. It may raise Precondition."""
    twin, begun_s = Process(cluster.documents, "a", life="1"), cluster.clock.now_s

    def wait(seconds: float) -> None:
        cluster.clock.now_s += seconds
        meanwhile()

    twin.membership.refuse_namesake(ended_life, wait)
    return cluster.clock.now_s - begun_s


def test_a_process_is_refused_while_another_one_renews_the_lease_of_its_name() -> None:
    """It learns that from two renewals: the first change may only show that its first read was stale."""
    cluster = settled("a")
    (first,) = cluster.processes
    with pytest.raises(
        Precondition, match=r"at a:1, uses the name of this node, a\. Set another cluster\.node"
    ):
        joins(cluster, "", first.renew)
    assert not first.membership.is_fenced and first.owned() == ALL


def test_a_process_takes_a_name_once_no_process_renews_its_lease() -> None:
    """After the length of a lease; at once if the process that had the name is known to have ended, or said so."""
    cluster = Cluster("a")
    assert joins(cluster, "") == 0.0, "the name is new"
    cluster.settle()
    (first,) = cluster.processes
    assert joins(cluster, "another life") == pytest.approx(12.0)
    assert joins(cluster, "0") == 0.0, "its data directory was unlocked"
    first.membership.stop()
    assert joins(cluster, "") == 0.0


def test_a_stale_read_refuses_no_process() -> None:
    """A renewal that is only seen late does not count."""
    cluster = settled("a")
    (first,) = cluster.processes
    twin = Process(cluster.documents, "a", life="1")
    twin.connection.lag_s = 3.0
    first.renew()

    def wait(seconds: float) -> None:
        cluster.clock.now_s += seconds
        twin.connection.lag_s = 0.0

    twin.membership.refuse_namesake("", wait)


# --- slots ---------------------------------------------------------------------------------------------


def test_a_hand_over_closes_the_agents_before_the_table_is_written() -> None:
    """While the agents are copied the node serves them; while they are closed no node does."""
    cluster = settled("a")
    old = cluster.processes[0]
    new = Process(cluster.documents, "b")
    new.renew()
    new.plan()
    moved = {slot for slot, name in enumerate(best("a", "b")) if name == "b"}
    seen = list[set[int]]()

    def note() -> None:
        new.plan()
        assert not new.owned()
        seen.append({slot for slot in ALL if not old.membership.accepts(slot)})

    old.moves.during_prepare = old.moves.during_release = note
    old.plan()
    assert seen == [set(), moved]
    new.plan()
    assert new.owned() == moved
    assert old.owned() == ALL - moved


def test_the_table_is_read_while_agents_are_copied() -> None:
    """Requests that were passed on by a later table wait for that. Slots that were lost meanwhile are not given."""
    cluster = settled("a")
    (old,) = cluster.processes
    new = Process(cluster.documents, "b")
    new.renew()
    new.plan()
    seen = list[int]()

    def write() -> None:
        cluster.mark_drained("x", is_drained=True)
        old.membership.wake()

    old.moves.during_prepare = write
    old.moves.after_meanwhile = lambda: seen.append(old.membership.table_version)
    before = old.membership.table_version
    old.plan()
    assert seen[0] > before
    new.plan()
    assert new.owned() == ALL - old.owned() != frozenset()
    assert new.membership.table.drained == ("x",)


def test_a_lease_that_lapses_while_agents_are_copied_gives_nothing() -> None:
    """Another node may own the slots already."""
    cluster = settled("a")
    (old,) = cluster.processes
    new = Process(cluster.documents, "b")
    new.renew()
    new.plan()

    def lapse() -> None:
        cluster.clock.now_s += 20.0
        new.renew()
        new.plan()
        old.renew()

    old.moves.during_prepare = lapse
    releases = old.moves.releases
    old.plan()
    assert old.moves.releases == releases
    cluster.processes.append(new)
    old.moves.during_prepare = lambda: None
    cluster.settle()
    assert owners(cluster) == best("a", "b")


def test_two_nodes_that_give_slots_at_once_keep_their_other_slots() -> None:
    """The table of one is refused: it gives the slots again, without closing its agents or losing a slot."""
    cluster = settled("a", "b")
    first, second = cluster.processes
    third = Process(cluster.documents, "f")
    third.renew()
    third.plan()
    first.connection.before_write[NAMES.table] = second.plan
    releases = first.moves.releases
    assert first.membership.plan()
    assert first.moves.releases == releases + 1
    assert first.membership.is_settled and first.owned() | second.owned() < ALL
    third.plan()
    cluster.processes.append(third)
    assert owners(cluster) == best("a", "b", "f")


def test_few_slots_move_at_a_time() -> None:
    """A hand-over moves at most `moves_at_once` slots to a node, and says that there are more."""
    cluster = Cluster()
    old, new = Process(cluster.documents, "a", at_once=1), Process(cluster.documents, "b")
    old.renew()
    old.plan()
    new.renew()
    count = best("a", "b").count("b")
    assert count > 1
    for moved in range(1, count + 1):
        assert old.membership.plan()
        assert len(old.owned()) == SLOTS - moved
    assert not old.membership.plan()


# --- what is not kept yet ------------------------------------------------------------------------------


def test_a_hand_over_in_doubt_leaves_one_owner() -> None:
    """The table was written without an answer: the giver does not own the slots until it knows."""
    cluster = settled("a")
    cluster.processes.append(Process(cluster.documents, "b"))
    old, new = cluster.processes
    new.renew()
    old.connection.next_writes[NAMES.table] = Write.UNANSWERED
    old.plan()
    new.plan()
    assert new.owned()
    cluster.check()


@pytest.mark.parametrize("ends", [False, True])
def test_a_node_that_returns_during_a_plan_of_another_is_not_replaced(ends: bool) -> None:
    """A node renews, and confirms the table, after another read its old lease and before that read the table."""
    cluster = settled("a", "b")
    returning, other = cluster.processes
    if ends:
        returning.membership.stop()
        returning = cluster.processes[0] = Process(cluster.documents, "a", life="1")
    else:
        returning.connection.is_silent = True
        for _ in range(5):
            cluster.clock.now_s += 2.9
            other.renew()
        returning.connection.is_silent = False

    def back() -> None:
        returning.renew()
        returning.plan()
        assert returning.owned()

    other.connection.before_read[NAMES.table] = back
    other.plan()
    cluster.check()


def test_a_pause_within_owns_gives_no_slot_of_a_lease_that_lapsed() -> None:
    """The thread that asks is paused in the middle; another thread renews; meanwhile another node took the slots."""
    cluster = settled("a", "b")
    paused, other = cluster.processes
    slot = next(iter(paused.owned()))
    paused.while_clock_is_read = lambda: away(cluster, paused, other)
    assert not paused.membership.owns(slot)


def away(cluster: Cluster, paused: Process, other: Process) -> None:
    """Pause a process until another has its slots, then let it renew its lease."""
    for _ in range(6):
        cluster.clock.now_s += 2.9
        other.renew()
        other.plan()
    assert other.owned() == ALL
    paused.renew()


def test_a_pause_within_a_confirmation_refuses_the_answer() -> None:
    """The slots came back in a new lease; in between another node may have committed what was not read."""
    cluster = settled("a")
    (node,) = cluster.processes
    agent = next(name for name in map(str, range(1000)) if node.membership.owns(slot_of_agent(name)))
    ownership = Ownership(
        SimulatedStream(),
        node.connection,
        node.membership,
        NAMES,
        author="a/0",
        append_timeout_s=1.0,
        map_bytes=1 << 20,
        max_map_bytes=1 << 20,
    )
    log = ownership._new_log(agent)
    log.confirm()

    def lapse_and_return() -> None:
        cluster.clock.now_s += 20.0
        node.renew()
        node.plan()
        assert node.owned() == ALL

    node.while_clock_is_read = lapse_and_return
    with pytest.raises(Exception, match="moving"):
        log.confirm()


def slot_of_agent(agent_id: str) -> int:
    return slot_of(directory_name(AgentId(agent_id)), SLOTS)


def test_a_drain_during_a_renewal_is_not_forgotten() -> None:
    """The node gives its slots away, also if its other thread renews when the drain begins."""
    cluster = settled("a", "b")
    leaver, other = cluster.processes
    leaver.connection.before_write[NAMES.node("a")] = lambda: leaver.membership.drain(0.0)
    leaver.renew()
    cluster.run(10.0)
    assert other.owned() == ALL


def test_slots_of_a_node_that_drains_do_not_come_back() -> None:
    """The other nodes know that it leaves before they own its slots."""
    cluster = settled("a", "b")
    leaver, other = cluster.processes
    leaver.membership.drain(0.0)
    assert leaver.membership.why_unready == "this node is leaving its cluster"
    leaver.plan()
    assert leaver.owned() == frozenset()
    other.plan()
    assert other.owned() == ALL


def test_a_drained_node_owns_nothing_until_it_is_started_again() -> None:
    """It gives its slots away and gets none back, also in another lease; its next process gets its share."""
    cluster = settled("a", "b")
    drained, other = cluster.processes
    cluster.mark_drained("a", is_drained=True)
    cluster.run(5.0)
    assert drained.owned() == frozenset() and other.owned() == ALL
    cluster.clock.now_s += 20.0
    cluster.run(20.0)
    assert drained.membership.lease == 2
    assert drained.owned() == frozenset() and other.owned() == ALL
    cluster.processes[0] = Process(cluster.documents, "a", life="1")
    cluster.run(10.0)
    assert owners(cluster) == best("a", "b")
    assert cluster.table().drained == ()


def test_a_drained_node_is_better_than_none() -> None:
    """It takes the slots of the others when all of them are lost, and gives them back when one returns."""
    cluster = settled("a", "b")
    drained, other = cluster.processes
    cluster.mark_drained("a", is_drained=True)
    cluster.run(5.0)
    other.connection.is_silent = True
    cluster.run(20.0)
    assert drained.owned() == ALL
    other.connection.is_silent = False
    cluster.run(10.0)
    assert other.owned() == ALL


def test_a_process_that_reads_its_lease_again_is_fenced() -> None:
    """A renewal without answer makes the first process read the document; it finds the second one's life there."""
    cluster = settled("a")
    (old,) = cluster.processes
    old.connection.next_writes[NAMES.node("a")] = Write.UNANSWERED
    old.renew()
    old.renew()  # refused: its own life
    new = Process(cluster.documents, "a", life="1")
    new.renew()
    new.plan()
    old.renew()
    new.renew()
    assert old.membership.is_fenced
    assert not new.membership.is_fenced and new.owned() == ALL
