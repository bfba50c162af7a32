"""Slots: a node that joins or leaves moves its share and no other slot, and all nodes come to one table."""

from __future__ import annotations

import zlib
from collections.abc import Collection

from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.cluster.slots import Table, best_node, plan_for, slot_of

SLOTS = 128
quick = settings(deadline=None, derandomize=True, database=None, max_examples=20)
names = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=12)
nodes = st.sets(names, min_size=1, max_size=6)


def best_of_all(live: Collection[str], count: int = SLOTS) -> list[str]:
    return [best_node(slot, live) for slot in range(count)]


def settled(table: Table, live: Collection[str], leaving: Collection[str] = ()) -> Table:
    """Let every live node make the moves of its plan, one after the other, until no plan has a move."""
    for _ in range(3):
        before = table
        for node in sorted(live):
            plan = plan_for(node, table, live, leaving)
            table = table.with_owner(plan.claimed, node)
            for target, slots in plan.given.items():
                table = table.with_owner(slots, target)
        if table == before:
            return table
    raise AssertionError("the plans do not end")


@given(names, st.integers(1, 2048))
def test_the_slot_of_an_agent_never_changes(directory: str, slot_count: int) -> None:
    """It is the CRC-32 of its directory name, modulo the number of slots."""
    assert slot_of(directory, slot_count) == zlib.crc32(directory.encode()) % slot_count


@quick
@given(nodes, names)
def test_a_join_moves_only_slots_to_the_new_node(live: set[str], new: str) -> None:
    """Every slot that has another best node has the new one."""
    before, after = best_of_all(live - {new} or {"first"}), best_of_all(live | {new})
    assert {now for was, now in zip(before, after, strict=True) if was != now} <= {new}


@quick
@given(nodes, names)
def test_a_leave_moves_only_the_slots_of_the_leaver(live: set[str], leaver: str) -> None:
    """Every slot that has another best node had the one that left."""
    stays = live - {leaver} or {"last"}
    before, after = best_of_all(stays | {leaver}), best_of_all(stays)
    assert {was for was, now in zip(before, after, strict=True) if was != now} == set(before) & {leaver}


@quick
@given(st.sets(names, min_size=2, max_size=6))
def test_each_node_gets_about_an_equal_share(live: set[str]) -> None:
    """Of 2048 slots each node has 1/N, within 30 per cent: six standard deviations for six nodes."""
    best = best_of_all(live, 2048)
    for node in live:
        assert abs(best.count(node) * len(live) / 2048 - 1) < 0.3


@st.composite
def situations(draw: st.DrawFn) -> tuple[Table, set[str], set[str]]:
    """Draw a table with any owners, also dead ones and none, the live nodes, and those of them that leave."""
    live = draw(nodes)
    owners = st.sampled_from(sorted(live | {"", "dead", "long-dead"}))
    table = Table(tuple(draw(st.lists(owners, min_size=32, max_size=32))))
    return table, live, draw(st.sets(st.sampled_from(sorted(live))))


@quick
@given(situations())
def test_no_slot_is_claimed_or_given_by_two_nodes(situation: tuple[Table, set[str], set[str]]) -> None:
    """With the same table and live nodes, the plans of all nodes concern different slots."""
    table, live, leaving = situation
    planned = list[int]()
    for node in live:
        plan = plan_for(node, table, live, leaving)
        planned += plan.claimed
        for slots in plan.given.values():
            planned += slots
    assert len(planned) == len(set(planned))


@quick
@given(situations())
def test_a_node_claims_no_slot_of_a_live_node_and_gives_only_its_own(
    situation: tuple[Table, set[str], set[str]],
) -> None:
    """A slot of a live node moves only if that node gives it, and only to a live node that stays."""
    table, live, leaving = situation
    for node in live:
        plan = plan_for(node, table, live, leaving)
        assert all(table.owners[slot] not in live for slot in plan.claimed)
        for target, slots in plan.given.items():
            assert slots <= table.slots_of(node)
            assert target in live - leaving - {node}


@quick
@given(situations())
def test_all_plans_lead_to_the_best_nodes(situation: tuple[Table, set[str], set[str]]) -> None:
    """Each slot ends at its best node of those that stay. Where none stays, a live owner keeps its slots."""
    table, live, leaving = situation
    end, stays = settled(table, live, leaving), live - leaving
    for slot, owner in enumerate(end.owners):
        assert owner == (best_node(slot, stays) if stays else table.owners[slot])


@quick
@given(situations(), st.data())
def test_drained_nodes_own_slots_only_where_no_other_node_stays(
    situation: tuple[Table, set[str], set[str]], data: st.DataObject
) -> None:
    """Each slot ends at its best node of those that stay and are not drained; of all that stay, if all are drained."""
    table, live, leaving = situation
    stays = live - leaving
    drained = data.draw(st.sets(st.sampled_from([*sorted(live), "dead"])))
    for node in drained:
        table = table.with_drained(node, is_drained=True)
    end = settled(table, live, leaving)
    assert set(end.drained) == drained, "a move keeps the drained nodes"
    for slot, owner in enumerate(end.owners):
        expected = stays - drained or stays
        assert owner == (best_node(slot, expected) if expected else table.owners[slot])


@quick
@given(nodes, names)
def test_a_settled_table_moves_as_little_as_a_join_needs(live: set[str], new: str) -> None:
    """From a settled table, a node that joins gets slots and no other node does."""
    others = live - {new} or {"first"}
    before = settled(Table.empty(64), others)
    after = settled(before, others | {new})
    changed = {now for was, now in zip(before.owners, after.owners, strict=True) if was != now}
    assert changed <= {new}
