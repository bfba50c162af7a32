"""Relation scrubbing: links lose a name that reveals erased data.

A link to a forgotten memory stays in its source with the relation name that a language model derived from that memory,
such as “diagnosed with …”. When the text behind that memory is erased, the name is removed and the link stays without
one. The same applies to every link whose name mentions an erased topic, and to all links of a corrected memory, which
may be named after its old content.

A forgotten memory leaves only its id, so its origin is known only from the status of its batch. The rules guarded here:
**every memory of a batch counts as erased if any part of the batch is**, because its exact message is unknown; and if
that status was pruned, **every memory that is not known to come from another batch counts.** Names of neighbour links
are not derived from texts and stay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import chain

import numpy as np

from ebbtide.changes import Change
from ebbtide.fleet.deletion.selection import SelectionSearch
from ebbtide.ids import NodeId
from ebbtide.memory.columns import Array
from ebbtide.memory.naming import LINK_NAMES, NEIGHBOUR_NAMES
from ebbtide.memory.network import LinkState, Network
from ebbtide.records import Link
from ebbtide.store.lmdb.transaction import ReadTransaction

MAX_SCRUBBED_LINKS = 1000
"""Most links scrubbed in one step."""

NEUTRAL_RELATIONS = frozenset(
    {"", *chain.from_iterable(NEIGHBOUR_NAMES.values()), *chain.from_iterable(LINK_NAMES.values())}
)
"""Relation names of the closed list, which reveal nothing."""


def links_to_scrub(txn: ReadTransaction, network: Network, search: SelectionSearch) -> list[Link]:
    """Return the links whose names may reveal what a search found.

    This includes links at memories that will be erased: such a memory may be forgotten first, and then its links stay.
    """
    topic, names = search.selection.topic, network.relations
    is_derived = np.array([name not in NEUTRAL_RELATIONS for name in names], dtype=np.bool_)
    if not is_derived.any():
        return []
    is_about = np.array([topic is not None and topic.is_named_in(name) for name in names], dtype=np.bool_)
    table, alive, ids = network.links.rows, network.slots["alive"], network.slots["id"]
    rows = np.flatnonzero(alive[table["source"]] & (table["written"] >= 0) & is_derived[table["relation"]])
    slots = table["target"][rows]
    is_affected = _among(search.nodes)(ids[slots]) | (~alive[slots] & came_from(search, ids[slots]))
    is_corrected = _among(search.corrected)
    is_affected |= is_corrected(ids[slots]) | is_corrected(ids[table["source"][rows]])
    rows = rows[is_affected | is_about[table["relation"][rows]]]

    def is_selected(link: Link) -> bool:
        is_erased = link.target in search.nodes or not search.corrected.isdisjoint((link.source, link.target))
        if is_erased or not search.selection.has_filters:
            return True
        is_affected = link.target not in network and bool(came_from(search, np.array([link.target]))[0])
        return is_affected or _is_matched(txn, search, link)

    return [link for link, _ in network.link_states(rows) if is_selected(link)]


def kept_link_count(links: Sequence[Link], network: Network, search: SelectionSearch) -> int:
    """Return how many of these links remain but lose their name. The others are erased with a memory."""
    erased = {node_id for node_id in search.nodes if node_id in network}
    return sum(1 for link in links if link.source not in erased and link.target not in erased)


def without_names(network: Network, links: Sequence[Link]) -> Change:
    """Return the change that removes the names of these links, as far as they still exist.

    If several links become equal, the strongest stays.
    """
    selection = {(link.source, link.target, link.relation) for link in links}
    ends = {(link.source, link.target) for link in links}
    gone: list[Link] = []
    strongest: dict[tuple[NodeId, NodeId], LinkState] = {}
    for source in sorted({source for source, _ in ends if source in network}):
        for state in network.link_states(network.rows_from(network.slot_of(source))):
            link = state.link
            key = (link.source, link.target)
            is_selected = (*key, link.relation) in selection
            gone += [link] if is_selected else []
            if is_selected or (key in ends and link.relation == ""):
                known = strongest.get(key)
                strongest[key] = state if known is None or state.strength > known.strength else known
    changed = {(link.source, link.target) for link in gone}
    fresh = [
        Link(*key, "", state.link.strength, state.link.anchor)
        for key, state in strongest.items()
        if key in changed
    ]
    return Change(removed_links=gone, links=fresh)


def _among(node_ids: Collection[NodeId]) -> Callable[[Array], Array]:
    known = np.fromiter(node_ids, dtype=np.int64, count=len(node_ids))
    return lambda targets: np.isin(targets, known)


def came_from(search: SelectionSearch, targets: Array) -> Array:
    """Return which of these forgotten memories came, or may have come, from erased text."""
    found = _among(search.possible_memories)(targets)
    return found | ~_among(search.other_memories)(targets) if search.has_unknown_batches else found


def _is_matched(txn: ReadTransaction, search: SelectionSearch, link: Link) -> bool:
    """Whether either end of a link comes from a message that matches the filters."""
    ends = (txn.nodes.get(link.source), txn.nodes.get(link.target))
    return any(search.matched(source.message) for node in ends if node is not None for source in node.sources)
