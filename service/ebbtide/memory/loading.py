"""Builds an agent's network from its store when the agent opens."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from ebbtide.han import contains_han
from ebbtide.ids import NodeId
from ebbtide.memory.columns import Array, places_in
from ebbtide.memory.network import Network, TextReader
from ebbtide.memory.texts import piece_of
from ebbtide.parameters import AgentParameters
from ebbtide.records import Entity, LinkColumns, Node, NodeFacts, Pin, ScanColumns
from ebbtide.statements import STATEMENT_KINDS

PIN_CODES = {Pin.NONE.value: 0, Pin.BY_HAND.value: 1, Pin.BY_REQUEST.value: 2}


def load_network(
    parameters: AgentParameters,
    nodes: Iterable[Node | NodeFacts],
    read_texts: TextReader,
    scans: ScanColumns,
    links: LinkColumns,
    focus: tuple[NodeId, ...],
    next_node_id: NodeId,
    entities: Iterable[Entity] = (),
    entity_focus: tuple[NodeId, ...] = (),
    entity_memories: int | None = None,
) -> Network:
    """Return the network of these nodes and entities (by ascending id), scan states and links.

    `read_texts` is called when a text is first needed.
    """
    network = Network(parameters)
    network.entity_memories = entity_memories or parameters.entity_memories
    known_entities = list(entities)
    _load_nodes(network, nodes, known_entities, links.target)
    network.read_texts_with(read_texts)
    places, known = places_in(network.slots["id"], scans.node_id)
    network.slots["scan_count"][places[known]] = scans.count[known]
    network.slots["last_pass"][places[known]] = scans.last_pass[known]
    network.slots["is_kept"][places[known]] = scans.is_kept[known]
    _load_links(network, links)
    network.next_node_id = next_node_id
    network.set_focus(focus, entity_focus)
    return network


def _load_nodes(
    network: Network, nodes: Iterable[Node | NodeFacts], entities: Sequence[Entity], targets: Array
) -> None:
    # Packed while reading: lists of a million objects would need more memory than the network.
    ids, times_ms = array("q"), array("q")
    original_lengths, content_lengths, chinese = array("i"), array("i"), bytearray()
    speakers, pins, kinds = array("i"), bytearray(), array("h")
    kind_numbers: dict[bytes, int] = {}
    for node in nodes:
        ids.append(node.id)
        original_lengths.append(node.original_length)
        content_lengths.append(len(node.content))
        chinese.append(contains_han(node.content))
        times_ms.append(node.created_at_ms)
        speakers.append(network.speaker_number(node.speaker))
        pins.append(PIN_CODES[node.pinned])
        kinds.append(_kind_number(network, node.kind, kind_numbers))
    memories = np.array(ids, dtype=np.int64)
    living = _merged(memories, np.array([entity.id for entity in entities], dtype=np.int64))
    # Forgotten nodes that links point at have a slot too.
    gone = np.unique(targets[~places_in(living, targets)[1]])
    everyone = _merged(living, gone)
    slots = network.slots
    slots.append(len(everyone), id=everyone)
    slots["alive"][places_in(everyone, living)[0]] = True
    places, _ = places_in(everyone, memories)
    slots["created_at_ms"][places] = times_ms
    slots["speaker"][places] = speakers
    pinned = np.frombuffer(pins, dtype=np.uint8)
    slots["is_pinned"][places] = pinned > 0
    slots["by_request"][places] = pinned == PIN_CODES[Pin.BY_REQUEST.value]
    slots["kind"][places] = kinds
    is_statement = np.array([kind in STATEMENT_KINDS for kind in network.kinds], dtype=np.bool_)
    slots["is_statement"][places] = is_statement[slots["kind"][places]]
    slots["has_han"][places] = np.frombuffer(chinese, dtype=np.bool_)
    slots["original_length"][places] = original_lengths
    slots["content_length"][places] = content_lengths
    network.node_count = len(ids)
    network.dead_kept = len(everyone) - len(living)
    _load_entities(network, entities)


def _kind_number(network: Network, kind: str | msgspec.Raw, known: dict[bytes, int]) -> int:
    """Return the number of the kind of a node, as a text or as `NodeFacts` has it."""
    if isinstance(kind, str):
        return network.kind_number(kind)
    number = known.get(bytes(kind))
    if number is None:
        number = known[bytes(kind)] = network.kind_number(msgspec.msgpack.decode(kind, type=str))
    return number


def _merged(ids: Array, others: Array) -> Array:
    """Return two ascending lists without common ids as one."""
    # A stable sort merges sorted runs; `union1d` hashes every id.
    return np.sort(np.concatenate([ids, others]), kind="stable") if len(others) else ids


def _load_entities(network: Network, entities: Sequence[Entity]) -> None:
    slots = network.slots_of([entity.id for entity in entities])
    network.slots["is_entity"][slots] = True
    buffer, starts = bytearray(), []
    for entity in entities:
        network.entities[entity.id] = entity
        network.entity_of_key[entity.key] = entity.id
        starts.append(len(buffer))
        buffer += piece_of(entity.key, ())
    network.keys.load(buffer, slots, np.array(starts, dtype=np.int64), network.slots.count)


def _load_links(network: Network, links: LinkColumns) -> None:
    slots, names = network.slots, links.names or [""]
    numbers = np.array([network.relation_number(name) for name in names], dtype=np.int32)
    source, _ = places_in(slots["id"], links.source)
    target, _ = places_in(slots["id"], links.target)
    strength, anchor = _with_left_links(network, source, target, links)
    ages = (slots["scan_count"][source] - anchor) * ~slots["is_kept"][target]
    network.links.load(
        slots.count,
        source=source.astype(np.int32),
        target=target.astype(np.int32),
        relation=numbers[links.relation],
        written=strength,
        anchor=anchor,
        now=strength * network.decay.factors(ages),
    )
    network.link_count = network.links.rows.count
    dangling = source[~slots["alive"][target]]
    slots["dangling_count"][:] = np.bincount(dangling, minlength=slots.count)


def _with_left_links(
    network: Network, source: Array, target: Array, links: LinkColumns
) -> tuple[Array, Array]:
    """Return strengths and anchors, with the links that were written when their entity left focus (see `Entity`)."""
    slots = network.slots
    left = [entity for entity in network.entities.values() if entity.left_from]
    left_from, left_at = np.zeros(slots.count, dtype=np.int64), np.full(slots.count, -1, dtype=np.int64)
    own = network.slots_of([entity.id for entity in left])
    left_from[own], left_at[own] = [one.left_from for one in left], [one.left_at for one in left]
    covered = network.are_memories(target) & (slots["id"][target] >= left_from[source])
    covered &= links.anchor <= left_at[source]
    return np.where(covered, 1.0, links.strength), np.where(covered, left_at[source], links.anchor)
