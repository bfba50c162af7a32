"""Builds an agent's network from its store when the agent opens."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np

from ebbtide.han import contains_han
from ebbtide.ids import NodeId
from ebbtide.memory.columns import Array, places_in
from ebbtide.memory.network import Network
from ebbtide.memory.texts import piece_of
from ebbtide.parameters import AgentParameters
from ebbtide.records import LinkColumns, Node, NodeText, ScanColumns


def load_network(
    parameters: AgentParameters,
    nodes: Iterable[Node | NodeText],
    scans: ScanColumns,
    links: LinkColumns,
    focus: tuple[NodeId, ...],
    next_node_id: NodeId,
) -> Network:
    """Return the network of these nodes (by ascending id), scan states and links."""
    network = Network(parameters)
    _load_nodes(network, nodes, links.target)
    places, known = places_in(network.slots["id"], scans.node_id)
    network.slots["scan_count"][places[known]] = scans.count[known]
    network.slots["last_pass"][places[known]] = scans.last_pass[known]
    _load_links(network, links)
    network.next_node_id = next_node_id
    network.set_focus(focus)
    return network


def _load_nodes(network: Network, nodes: Iterable[Node | NodeText], targets: Array) -> None:
    # Packed while reading: lists of a million objects would need more memory than the network.
    ids, starts = array("q"), array("q")
    original_lengths, content_lengths, chinese = array("i"), array("i"), bytearray()
    buffer = bytearray()
    for node in nodes:
        ids.append(node.id)
        original_lengths.append(node.original_length)
        content_lengths.append(len(node.content))
        chinese.append(contains_han(node.content))
        starts.append(len(buffer))
        buffer += piece_of(node.content, node.keywords)
    living = np.array(ids, dtype=np.int64)
    # Forgotten nodes that links point at have a slot too.
    gone = np.unique(targets[~places_in(living, targets)[1]])
    everyone = np.union1d(living, gone)
    places, _ = places_in(everyone, living)
    slots = network.slots
    slots.append(len(everyone), id=everyone)
    slots["alive"][places] = True
    slots["has_han"][places] = np.frombuffer(chinese, dtype=np.bool_)
    slots["original_length"][places] = original_lengths
    slots["content_length"][places] = content_lengths
    network.texts.load(buffer, places, np.array(starts, dtype=np.int64), len(everyone))
    network.node_count = len(ids)
    network.dead_kept = len(everyone) - len(ids)


def _load_links(network: Network, links: LinkColumns) -> None:
    slots, names = network.slots, links.names or [""]
    numbers = np.array([network.relation_number(name) for name in names], dtype=np.int32)
    source, _ = places_in(slots["id"], links.source)
    target, _ = places_in(slots["id"], links.target)
    ages = slots["scan_count"][source] - links.anchor
    network.links.load(
        slots.count,
        source=source.astype(np.int32),
        target=target.astype(np.int32),
        relation=numbers[links.relation],
        written=links.strength,
        anchor=links.anchor,
        now=links.strength * network.decay.factors(ages),
    )
    network.link_count = network.links.rows.count
    dangling = source[~slots["alive"][target]]
    slots["dangling_count"][:] = np.bincount(dangling, minlength=slots.count)
