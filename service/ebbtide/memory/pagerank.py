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
from ebbtide.memory.columns import Array
from ebbtide.memory.network import Network

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
    waiting, settled = start_mass.copy(), np.zeros(len(slots))
    restart_mass = RESTART * start_mass
    for _ in range(MAX_ROUNDS):
        pushing = waiting >= MIN_MASS_PER_LINK * np.maximum(network.links.counts_of(slots), 1)
        if not pushing.any():
            break
        targets, arrived, has_no_links = _push(network, slots[pushing], waiting[pushing])
        settled[pushing] += waiting[pushing] * np.where(has_no_links, 1.0, RESTART)
        waiting[pushing] = 0.0
        slots, (waiting, settled, restart_mass) = _merge_slots(
            slots, np.unique(targets), (waiting, settled, restart_mass)
        )
        np.add.at(waiting, np.searchsorted(slots, targets), arrived)
    return Association(
        network.slots["id"][slots], np.maximum(settled + RESTART * waiting - restart_mass, 0.0)
    )


def _push(network: Network, slots: Array, mass: Array) -> tuple[Array, Array, Array]:
    """Push mass along links. Return the targets, the mass that arrives, and which nodes have no link."""
    sources, targets, strengths = _live_links(network, slots)
    places = np.searchsorted(slots, sources)
    outgoing = np.bincount(places, weights=strengths, minlength=len(slots))
    has_no_links = outgoing <= 0
    pushed = (1 - RESTART) * mass / np.where(has_no_links, 1.0, outgoing)
    return targets, pushed[places] * strengths, has_no_links


def _live_links(network: Network, slots: Array) -> tuple[Array, Array, Array]:
    """Return (source, target, strength) of all live links from these nodes to living memories."""
    table, member = network.links.rows, network.scratch().member
    member[slots] = True
    rows = network.links.of_sources(slots, member[: network.slots.count])
    if rows is None:
        rows = np.flatnonzero(member[table["source"]])
    member[slots] = False
    sources, targets, strengths = (table[name][rows] for name in ("source", "target", "now"))
    live = (strengths >= network.parameters.link_break_threshold) & network.slots["alive"][targets]
    live &= ~network.slots["is_entity"][targets]
    return sources[live], targets[live], strengths[live]


def _merge_slots(slots: Array, others: Array, mass: tuple[Array, ...]) -> tuple[Array, list[Array]]:
    """Return the union of two slot arrays, and the values by slot, zero for new ones."""
    merged = np.union1d(slots, others)
    places = np.searchsorted(merged, slots)
    results = []
    for values in mass:
        values_by_slot = np.zeros(len(merged))
        values_by_slot[places] = values
        results.append(values_by_slot)
    return merged, results
