"""Personalised PageRank: what is close to some nodes by many ways at once, over links weighted by strength.

A walker starts at one of the given nodes and follows live links, each the more often the stronger it is; at every
node he may go back to the start. Where he is met often is close. The strongest path (`association.py`) knows one way
to a node; this knows all of them together.

Computed by pushing, all nodes that have enough at once (R. Andersen, F. Chung, K. Lang, "Local Graph Partitioning
using PageRank Vectors", 2006). The rule guarded here: **a question costs the same however large a memory is.** A node
hands on only what is worth following its links, so one round follows `1 / MIN_MASS_PER_LINK` links at most, and there are
`MAX_ROUNDS`; what is not handed on by then stays where it is.

Nothing here is changed. Deliberately not here: where to start, and what closeness is worth in a ranking.
"""

from __future__ import annotations

import numpy as np

from ebbtide.memory.association import Association
from ebbtide.memory.columns import Array
from ebbtide.memory.network import Network

BACK = 0.15
"""The chance at every node to go back to the start."""

MIN_MASS_PER_LINK = 3e-4
"""What must have arrived at a node for each of its links, or it hands nothing on. All that is handed out is 1."""

MAX_ROUNDS = 6


def closeness(network: Network, start: Array, shares: Array) -> Association:
    """How close living nodes are to some nodes, by id: how often the walker comes *to* each from another one.

    `shares` says how often he starts at each. Who does not live is no start, and nowhere to come to.
    """
    living = network.are_alive(start)
    start, shares = np.asarray(start, dtype=np.int64)[living], np.asarray(shares, dtype=np.float64)[living]
    total = float(shares.sum())
    if total <= 0:
        return Association(np.zeros(0, dtype=np.int64), np.zeros(0))
    slots, whose = np.unique(network.slots_of(start), return_inverse=True)
    begun = np.bincount(whose, weights=shares / total)
    waiting, settled = begun.copy(), np.zeros(len(slots))
    own = BACK * begun
    for _ in range(MAX_ROUNDS):
        pushing = waiting >= MIN_MASS_PER_LINK * np.maximum(network.links.counts_of(slots), 1)
        if not pushing.any():
            break
        targets, arrived, is_stuck = _handed_on(network, slots[pushing], waiting[pushing])
        settled[pushing] += waiting[pushing] * np.where(is_stuck, 1.0, BACK)
        waiting[pushing] = 0.0
        slots, (waiting, settled, own) = _widened(slots, np.unique(targets), (waiting, settled, own))
        np.add.at(waiting, np.searchsorted(slots, targets), arrived)
    return Association(network.slots["id"][slots], np.maximum(settled + BACK * waiting - own, 0.0))


def _handed_on(network: Network, slots: Array, held: Array) -> tuple[Array, Array, Array]:
    """Where what nodes hold goes on to: targets, how much arrives; and which nodes have no link to follow."""
    sources, targets, strengths = _live_links(network, slots)
    places = np.searchsorted(slots, sources)
    outgoing = np.bincount(places, weights=strengths, minlength=len(slots))
    is_stuck = outgoing <= 0
    going = (1 - BACK) * held / np.where(is_stuck, 1.0, outgoing)
    return targets, going[places] * strengths, is_stuck


def _live_links(network: Network, slots: Array) -> tuple[Array, Array, Array]:
    """(source, target, strength) of every live link of some nodes to a living one."""
    table, member = network.links.rows, network.scratch().member
    member[slots] = True
    rows = network.links.of_sources(slots, member[: network.slots.count])
    if rows is None:
        rows = np.flatnonzero(member[table["source"]])
    member[slots] = False
    sources, targets, strengths = (table[name][rows] for name in ("source", "target", "now"))
    live = (strengths >= network.parameters.link_break_threshold) & network.slots["alive"][targets]
    return sources[live], targets[live], strengths[live]


def _widened(slots: Array, others: Array, held: tuple[Array, ...]) -> tuple[Array, list[Array]]:
    """Slots with others among them, and what is held by slot, nothing by those that are new."""
    wider = np.union1d(slots, others)
    places = np.searchsorted(wider, slots)
    widened = []
    for values in held:
        some = np.zeros(len(wider))
        some[places] = values
        widened.append(some)
    return wider, widened
