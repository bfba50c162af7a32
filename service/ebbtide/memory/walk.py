"""The walk: search along the strongest paths (memory model, section 6).

The strength of a path is the product of its links' strengths. A node's strength is that of its strongest path **of at
most `depth` hops**. This is not Dijkstra's problem: a stronger but longer path must not hide nodes that only a weaker,
shorter path can still reach. The search is Bellman-Ford by hops (R. Bellman, "On a routing problem", 1958): hop h
extends only nodes that improved with exactly h - 1 hops. Any other path is dominated by one that is no weaker and no
longer.

Among equally strong paths the one from the start with the lowest position counts. Paths are compared by (strength
rounded to 12 significant digits, position), packed into one integer, the node's *label*: 0 = not reached, greater =
better. Among equal labels, fewer hops and then the greater unrounded strength count.

A walk leaves an entity by its `WALK_WIDTH` strongest links at most: a name of every day must not lead everywhere. A hop
is a few array operations on the links that leave the frontier. Nothing is changed.

Most recalls need only the strongest few of tens of thousands of nodes in reach. A path is never stronger than its
beginning. Once `most` memories are reached, a bounded walk therefore drops every path weaker than the weakest of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ebbtide.ids import NodeId
from ebbtide.memory.columns import Array, Scratch
from ebbtide.memory.network import Network
from ebbtide.memory.strength import rank_of, ranks_of

POSITION_BITS = 8
"""Bits of a label for the position of the start: at most 0, 64 memories and 64 entities in focus."""

LAST_POSITION = (1 << POSITION_BITS) - 1

NEARLY = 1 - 2e-11
"""Strengths further apart than this factor differ within 12 significant digits."""

WALK_WIDTH = 256
"""Most links by which a walk leaves an entity."""

STEPS_PER_MEMORY = 4
"""The bound of a walk is the strength of the last of so many steps per requested memory."""

GRADES = 1 << 12
"""Grades of strength by which links are counted."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Links that a hop follows, with the strength of the path to their targets."""

    sources: Array
    targets: Array
    worths: Array
    rows: Array

    def only(self, places: Array) -> Steps:
        """Return some of the steps."""
        return Steps(self.sources[places], self.targets[places], self.worths[places], self.rows[places])


@dataclass(frozen=True, slots=True)
class Follow:
    """Which links a walk follows; None for all."""

    relations: Array | None = None
    """By relation number."""
    entities: Array | None = None
    """By slot: links from and to these entities are followed whatever their name."""
    skips_entities: bool = False

    def are_followed(self, network: Network, rows: Array) -> Array:
        """Return which links are followed."""
        table = network.links.rows
        sources, targets = table["source"][rows], table["target"][rows]
        followed = np.ones(len(rows), dtype=np.bool_)
        if self.relations is not None:
            followed = self.relations[table["relation"][rows]]
            if self.entities is not None:
                followed |= self.entities[sources] | self.entities[targets]
        if self.skips_entities:
            followed &= ~network.slots["is_entity"][targets]
        return followed


@dataclass(frozen=True, slots=True)
class Reach:
    """The reached slots with their labels and unrounded strengths."""

    slots: Array
    labels: Array
    worths: Array
    arrived: Array
    """Which were reached by a link, not only as a start."""
    is_whole: bool = True
    """Whether these are all nodes in reach. Otherwise all others have weaker paths."""
    trace: list[Steps] = field(default_factory=list)
    """The steps of each hop that improved their targets, if the walk was traced."""

    @classmethod
    def nothing(cls) -> Reach:
        """Return the reach of a walk that has not begun."""
        none = np.zeros(0, dtype=np.int64)
        return cls(none, none, none.astype(np.float64), none.astype(np.bool_), is_whole=False)

    def chosen(self, places: Array) -> Reach:
        """Return some of the reached slots."""
        return Reach(
            self.slots[places],
            self.labels[places],
            self.worths[places],
            self.arrived[places],
            self.is_whole,
            self.trace,
        )

    def in_order(self, chosen: Array) -> Array:
        """Return the chosen positions sorted by label and then id, both descending."""
        newest_first = chosen[np.argsort(-self.slots[chosen], kind="stable")]
        ordered: Array = newest_first[np.argsort(-self.labels[newest_first], kind="stable")]
        return ordered

    def first(self, chosen: Array, most: int) -> Array:
        """Return the first `most` of the chosen positions in order."""
        if len(chosen) > 2 * most > 0:
            labels = self.labels[chosen]
            chosen = chosen[labels >= np.partition(labels, len(labels) - most)[len(labels) - most]]
        return self.in_order(chosen)[:most]

    def path_to(self, network: Network, slot: int) -> list[tuple[NodeId, str]]:
        """Return the strongest path to a slot from its start: each node with the name of the link to it."""
        path: list[tuple[NodeId, str]] = []
        ids, table = network.slots["id"], network.links.rows
        for steps in reversed(self.trace):
            found = np.flatnonzero(steps.targets == slot)
            if len(found):
                best = found[np.argmax(steps.worths[found])]
                path.append((int(ids[slot]), network.relations[int(table["relation"][steps.rows[best]])]))
                slot = int(steps.sources[best])
            elif path:
                break
        return [(int(ids[slot]), ""), *reversed(path)]


def walk(
    network: Network,
    starts: Array,
    positions: Array,
    depth: int,
    follow: Follow,
    *,
    most: int | None = None,
    is_traced: bool = False,
) -> Reach:
    """Return the nodes within `depth` hops of the start slots, which are distinct.

    With `most`, a walk without relations may return fewer nodes: at least the first `most` memories.
    """
    scratch = network.scratch()
    trace: list[Steps] = []
    least, most = 0.0, most if follow.relations is None else None
    try:
        frontier = starts
        scratch.worth[frontier] = 1.0
        scratch.label[frontier] = _labels(np.ones(len(frontier)), LAST_POSITION - positions)
        reached, arrived = [frontier], [frontier[:0]]
        for hop in range(1, depth + 1):
            if most is not None:
                least = max(least, _worth_of_last(network, scratch, np.concatenate(reached), most))
                frontier = frontier[scratch.worth[frontier] >= least * NEARLY]
            if not len(frontier):
                break
            steps = _steps(network, scratch, frontier, follow, arrived, least * NEARLY)
            if most is not None and not least and hop == depth:
                least = _worth_of_strongest(network, steps, most)
                steps = steps.only(np.flatnonzero(steps.worths >= least * NEARLY))
            improved = _hop(scratch, steps, reached, trace if is_traced else None)
            frontier = once_each(scratch, improved) if hop < depth else improved
        slots = np.concatenate(reached)
        scratch.member[np.concatenate(arrived)] = True
        found = Reach(
            slots, scratch.label[slots], scratch.worth[slots], scratch.member[slots], least == 0.0, trace
        )
        scratch.member[np.concatenate(arrived)] = False
        scratch.label[slots] = 0
        scratch.worth[slots] = 0.0
    except BaseException:
        network.spoil_scratch()
        raise
    if not found.is_whole:
        # The labels of weaker nodes may be too low.
        found = found.chosen(np.flatnonzero(found.labels >> POSITION_BITS >= rank_of(least)))
    return found


def strengths(network: Network, starts: Array, depth: int, follow: Follow) -> tuple[Array, Array]:
    """Return the nodes within `depth` hops of the start slots, with the strength of the strongest path to each.

    The same nodes and strengths as those of `walk`, but without labels, which only order equally strong paths.
    """
    scratch = network.scratch()
    worth = scratch.worth
    try:
        worth[starts] = 1.0
        frontier, reached = starts, [starts]
        for _ in range(depth):
            rows = _rows_to_follow(network, scratch, frontier, follow, 0.0)
            table = network.links.rows
            targets, worths = table["target"][rows], worth[table["source"][rows]] * table["now"][rows]
            before = worth[targets]
            reached.append(once_each(scratch, targets[before == 0.0]))
            better = np.flatnonzero(worths > before)
            np.maximum.at(worth, targets[better], worths[better])
            frontier = once_each(scratch, targets[better])
            if not len(frontier):
                break
        slots = np.concatenate(reached)
        found = worth[slots]
        worth[slots] = 0.0
    except BaseException:
        network.spoil_scratch()
        raise
    return slots, found


def _worth_of_last(network: Network, scratch: Scratch, slots: Array, most: int) -> float:
    """Return the strength of the last of the first `most` memories reached so far; 0 if they are fewer."""
    worths = scratch.worth[slots[~network.slots["is_entity"][slots]]]
    if len(worths) < max(1, most):
        return 0.0
    return float(np.partition(worths, len(worths) - most)[len(worths) - most])


def _worth_of_strongest(network: Network, steps: Steps, most: int) -> float:
    """Return a strength that the strongest steps to at least `most` memories have; 0 if they lead to fewer."""
    count = STEPS_PER_MEMORY * max(1, most)
    if len(steps.worths) < 2 * count:
        return 0.0
    worth = np.partition(steps.worths, len(steps.worths) - count)[len(steps.worths) - count]
    targets = steps.targets[steps.worths >= worth]
    memories = np.unique(targets[~network.slots["is_entity"][targets]])
    return float(worth) if len(memories) >= most else 0.0


def _labels(worths: Array, nearness: Array) -> Array:
    labels: Array = (ranks_of(worths) << POSITION_BITS) | nearness
    return labels


def _hop(scratch: Scratch, steps: Steps, reached: list[Array], trace: list[Steps] | None) -> Array:
    """Run one hop. Return the nodes that it improved, some repeatedly; append new ones to `reached`."""
    best, top = scratch.best, scratch.top
    # 1. Only paths within rounding of the greatest strength at their target can win or tie.
    np.maximum.at(top, steps.targets, steps.worths)
    near = np.flatnonzero(steps.worths >= top[steps.targets] * NEARLY)
    top[steps.targets] = 0.0
    steps = steps.only(near)
    # 2. Take the greatest label of each target if it improves the target.
    labels = _labels(steps.worths, scratch.label[steps.sources] & LAST_POSITION)
    np.maximum.at(best, steps.targets, labels)
    is_better = (labels == best[steps.targets]) & (labels > scratch.label[steps.targets])
    best[steps.targets] = 0
    improved = np.flatnonzero(is_better)
    steps, labels = steps.only(improved), labels[improved]
    if trace is not None:
        trace.append(steps)
    # 3. Among equal labels, take the greatest strength.
    targets = steps.targets
    np.maximum.at(top, targets, steps.worths)
    new = targets[scratch.label[targets] == 0]
    scratch.label[targets] = labels
    scratch.worth[targets] = top[targets]
    top[targets] = 0.0
    reached.append(once_each(scratch, new))
    return targets


def _steps(
    network: Network, scratch: Scratch, frontier: Array, follow: Follow, arrived: list[Array], least: float
) -> Steps:
    """Return every step from the frontier that may improve its target. Add the targets of all steps to `arrived`.

    Paths weaker than `least` are left out.
    """
    rows = _rows_to_follow(network, scratch, frontier, follow, least)
    table = network.links.rows
    sources, targets = table["source"][rows], table["target"][rows]
    if follow.relations is not None:
        arrived.append(targets)
    worths = scratch.worth[sources] * table["now"][rows]
    kept = np.flatnonzero(worths >= np.maximum(scratch.worth[targets] * NEARLY, least))
    return Steps(sources[kept], targets[kept], worths[kept], rows[kept])


def _rows_to_follow(
    network: Network, scratch: Scratch, frontier: Array, follow: Follow, least: float
) -> Array:
    """Return the links by which the walk leaves the frontier, without those weaker than `least`."""
    is_entity = network.slots["is_entity"][frontier]
    if not is_entity.any():
        return _steps_among(network, _rows_from(network, scratch, frontier), follow, least)
    is_wide = is_entity & (network.links.counts_of(frontier) > WALK_WIDTH)
    rows = _steps_among(network, _rows_from(network, scratch, frontier[~is_wide]), follow, least)
    wide = frontier[is_wide]
    if network.links.rows.count > network.links.sorted_count:
        # With new links, others may be wide as well.
        sources = network.links.rows["source"][rows]
        counts = np.bincount(sources, minlength=network.slots.count)
        too_wide = frontier[is_entity & ~is_wide & (counts[frontier] > WALK_WIDTH)]
        if len(too_wide):
            rows = rows[~np.isin(sources, too_wide)]
            wide = np.concatenate([wide, too_wide])
    return np.concatenate([rows, *(_strongest(network, slot, follow, least) for slot in wide.tolist())])


def _rows_from(network: Network, scratch: Scratch, slots: Array) -> Array:
    member = scratch.member
    member[slots] = True
    rows = network.links.of_sources(slots, member[: network.slots.count])
    if rows is None:
        rows = np.flatnonzero(member[network.links.rows["source"]])
    member[slots] = False
    return rows


def _steps_among(network: Network, rows: Array, follow: Follow, least: float) -> Array:
    """Return the links that are live, not weaker than `least`, followed, and lead to a living node."""
    table = network.links.rows
    rows = rows[table["now"][rows] >= max(network.parameters.link_break_threshold, least)]
    rows = rows[network.slots["alive"][table["target"][rows]]]
    if follow.relations is not None or follow.skips_entities:
        rows = rows[follow.are_followed(network, rows)]
    return rows


def _strongest(network: Network, slot: int, follow: Follow, least: float) -> Array:
    """Return the strongest links of one entity, at most `WALK_WIDTH`; among equal ones those to the newest nodes."""
    rows = _steps_among(network, network.links.of_source(slot), follow, least)
    if len(rows) <= WALK_WIDTH:
        return rows
    table = network.links.rows
    strengths = table["now"][rows]
    # Most links of an entity have one of few strengths, with which numpy's partition is slow. So count by grade first.
    grades = (strengths * GRADES).astype(np.int16)
    at_least = np.cumsum(np.bincount(grades, minlength=GRADES + 1)[::-1])[::-1]
    grade = int(np.flatnonzero(at_least >= WALK_WIDTH)[-1])
    # Strengths of neighbouring grades may be equal in 12 digits.
    certain = rows[grades > grade + 1]
    doubtful = rows[np.abs(grades - grade) <= 1]
    return np.concatenate([certain, _first_of(network, doubtful, WALK_WIDTH - len(certain))])


def _first_of(network: Network, rows: Array, most: int) -> Array:
    """Return the first `most` links by strength, compared by 12 digits, and then by newness of their targets."""
    strengths, targets = network.links.rows["now"][rows], network.links.rows["target"][rows]
    if strengths.min() == strengths.max() and most < len(rows):
        newest: Array = rows[np.argpartition(-targets, most - 1)[:most]]
        return newest
    first: Array = rows[np.lexsort((-targets, -ranks_of(strengths)))[:most]]
    return first


def once_each(scratch: Scratch, slots: Array) -> Array:
    """Return the distinct slots. For duplicates, the last writer of a slot's rank stays."""
    places = np.arange(len(slots), dtype=np.int32)
    scratch.rank[slots] = places
    kept: Array = slots[scratch.rank[slots] == places]
    scratch.rank[slots] = 0
    return kept
