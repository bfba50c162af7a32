"""Names of links that a language model derived from memories, or the caller chose.

A link to a forgotten memory stays in its source, with a name such as “diagnosis” that can reveal what the memory said.
The rule guarded here: **the name goes with the words, and the link stays without one.** Names of the closed lists
reveal nothing and stay.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from ebbtide.changes import Change
from ebbtide.fleet.deletion.selection import SelectionSearch
from ebbtide.ids import NodeId
from ebbtide.memory.columns import Array
from ebbtide.memory.naming import CLOSED_NAMES
from ebbtide.memory.network import LinkState, Network
from ebbtide.records import Link
from ebbtide.store.lmdb.transaction import ReadTransaction


def links_at(network: Network, node_ids: Collection[NodeId]) -> list[Link]:
    """Return the links from and to nodes, living or forgotten, whose names may reveal what the nodes say."""
    slots = [slot for slot in map(network.slot_of, node_ids) if slot >= 0]
    rows = [network.rows_to(slot) for slot in slots]
    rows += [network.rows_from(slot) for slot in slots]
    return _named(network, np.unique(np.concatenate(rows)) if rows else np.zeros(0, dtype=np.int64))


def links_about(txn: ReadTransaction, network: Network, search: SelectionSearch) -> list[Link]:
    """Return the links whose names mention the topic of a selection; with filters, those of matching messages."""
    topic, selection = search.selection.topic, search.selection
    if topic is None:
        return []
    is_about = np.array([topic.is_named_in(name) for name in network.relations], dtype=np.bool_)
    if not is_about.any():
        return []
    rows = np.flatnonzero(is_about[network.links.rows["relation"]])
    return [
        link for link in _named(network, rows) if not selection.has_filters or _is_matched(txn, search, link)
    ]


def _named(network: Network, rows: Array) -> list[Link]:
    """Return the links of these rows that are stored and have a name outside of the closed lists."""
    table = network.links.rows
    rows = rows[network.slots["alive"][table["source"][rows]] & (table["written"][rows] >= 0)]
    return [link for link in network.as_links(rows) if link.relation not in CLOSED_NAMES]


def _is_matched(txn: ReadTransaction, search: SelectionSearch, link: Link) -> bool:
    """Whether either end of a link comes from a message that matches the filters."""
    ends = (txn.nodes.get(link.source), txn.nodes.get(link.target))
    return any(search.matched(source.message) for node in ends if node is not None for source in node.sources)


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
