"""Personalised PageRank: closeness to some nodes over all paths at once, with links weighted by strength.

A random walk starts at the given nodes and follows live links in proportion to their strength. At every node it may
return to the start. Nodes that it visits often are close. `association.py` finds the single strongest path to a node;
this considers all paths together.

Computed by pushing mass from all nodes that have enough at once (R. Andersen, F. Chung, K. Lang, "Local Graph
Partitioning using PageRank Vectors", 2006). The rule guarded here: **the cost does not depend on the size of the
memory.** A node pushes only if it has enough mass per link, so one round follows at most `1 / MIN_MASS_PER_LINK` links,
and there are at most `MAX_ROUNDS` rounds. Remaining mass stays where it is.
"""

from __future__ import annotations

import numpy as np

from ebbtide.memory.association import Association
from ebbtide.memory.columns import Array, Scratch
from ebbtide.memory.network import Network
from ebbtide.memory.walk import once_each

RESTART = 0.15
"""Probability of returning to the start."""

MIN_MASS_PER_LINK = 3e-4
"""Mass per link that a node needs before it pushes. The total mass is 1."""

MAX_ROUNDS = 6


def closeness(network: Network, start: Array, shares: Array) -> Association:
    """Return how close living nodes are to the start nodes: how often the walk arrives at each from another node.

    `shares` weights the start nodes. Nodes that do not live are ignored.
    """
    living = network.are_alive(start)
    start, shares = np.asarray(start, dtype=np.int64)[living], np.asarray(shares, dtype=np.float64)[living]
    total = float(shares.sum())
    if total <= 0:
        return Association(np.zeros(0, dtype=np.int64), np.zeros(0))
    slots, start_index = np.unique(network.slots_of(start), return_inverse=True)
    start_mass = np.bincount(start_index, weights=shares / total)
    scratch = network.scratch()
    try:
        scratch.worth[slots] = start_mass
        reached = _spread(network, scratch, slots)
        worths = scratch.top[reached] + RESTART * scratch.worth[reached]
        worths[: len(slots)] -= RESTART * start_mass
        scratch.top[reached] = scratch.worth[reached] = 0.0
        scratch.member[reached] = False
    except BaseException:
        network.spoil_scratch()
        raise
    return Association(network.slots["id"][reached], np.maximum(worths, 0.0))


def _spread(network: Network, scratch: Scratch, slots: Array) -> Array:
    """Push mass until no node has enough. Return the reached slots: first those given, which are ascending.

    By slot, `worth` is the mass that waits, `top` the mass that stays, and `member` whether the slot was reached.
    """
    waiting, settled = scratch.worth, scratch.top
    scratch.member[slots] = True
    reached, needed = slots, _mass_to_push(network, slots)
    for _ in range(MAX_ROUNDS):
        pushing = np.sort(reached[waiting[reached] >= needed])
        if not len(pushing):
            break
        targets, arrived, has_no_links = _push(network, scratch, pushing)
        settled[pushing] += waiting[pushing] * np.where(has_no_links, 1.0, RESTART)
        waiting[pushing] = 0.0
        np.add.at(waiting, targets, arrived)
        new = once_each(scratch, targets[~scratch.member[targets]])
        scratch.member[new] = True
        reached = np.concatenate([reached, new])
        needed = np.concatenate([needed, _mass_to_push(network, new)])
    return reached


def _mass_to_push(network: Network, slots: Array) -> Array:
    needed: Array = MIN_MASS_PER_LINK * np.maximum(network.links.counts_of(slots), 1)
    return needed


def _push(network: Network, scratch: Scratch, slots: Array) -> tuple[Array, Array, Array]:
    """Push the waiting mass along links. Return the targets, the mass that arrives, and which nodes have no link."""
    sources, targets, strengths = _live_links(network, slots)
    scratch.rank[slots] = np.arange(len(slots), dtype=np.int32)
    places = scratch.rank[sources]
    scratch.rank[slots] = 0
    outgoing = np.bincount(places, weights=strengths, minlength=len(slots))
    has_no_links = outgoing <= 0
    pushed = (1 - RESTART) * scratch.worth[slots] / np.where(has_no_links, 1.0, outgoing)
    return targets, pushed[places] * strengths, has_no_links


def _live_links(network: Network, slots: Array) -> tuple[Array, Array, Array]:
    """Return (source, target, strength) of all live links from these nodes to living memories."""
    table = network.links.rows
    is_pushing = np.zeros(network.slots.count, dtype=np.bool_)
    is_pushing[slots] = True
    rows = network.links.of_sources(slots, is_pushing)
    if rows is None:
        rows = np.flatnonzero(is_pushing[table["source"]])
    sources, targets, strengths = (table[name][rows] for name in ("source", "target", "now"))
    live = (strengths >= network.parameters.link_break_threshold) & network.slots["alive"][targets]
    live &= ~network.slots["is_entity"][targets]
    return sources[live], targets[live], strengths[live]
