"""The consequences of deleted and corrected memories for entities (memory model, section 8).

A deleted memory leaves no loose end, and an entity that has neither a living memory nor a loose end is deleted with it:
its name is personal data. Where the source of a name is deleted, the oldest memory left gives the name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from ebbtide.changes import Change
from ebbtide.entity_names import entity_key
from ebbtide.ids import NodeId
from ebbtide.memory.digestion import batch_locale, named_entities
from ebbtide.memory.draft import Draft
from ebbtide.memory.naming import entity_link_name
from ebbtide.memory.network import Network
from ebbtide.memory.subjects import qualified, unqualified
from ebbtide.memory.texts import piece_of
from ebbtide.records import Entity, Link, Node

KeywordsOf = Callable[[NodeId], Sequence[str]]
"""Returns the keywords of a living memory."""


def settle_entities(
    network: Network,
    deleted: Collection[NodeId],
    keywords_of: KeywordsOf,
    *,
    erased: Collection[NodeId] = (),
    dropped: Collection[NodeId] = (),
    corrected: Node | None = None,
) -> Change:
    """Return what follows for entities when memories of the network are deleted, and the owner corrects one.

    `erased` are forgotten memories that leave no loose end either. `dropped` are entities to delete in any case.

    Entities are found or created for the new keywords of the corrected memory. Its links with those no longer named are
    deleted, and an entity that is left alone is deleted as after the deletion of the memory.
    """
    change = Change(deleted_entities=sorted(dropped), removed_links=_broken_in_focus(network))
    wording = None if corrected is None else _wording(network, corrected)
    affected = _affected(network, deleted, erased)
    if wording is not None:
        affected |= wording.left
    for entity_id in sorted(affected.difference(dropped)):
        entity = network.entities[entity_id]
        lost = {*deleted, wording.node.id} if wording is not None and entity_id in wording.left else deleted
        living, loose, ended = _ends_of(network, entity, lost, erased)
        if wording is not None and entity_id in wording.kept:
            living = sorted({*living, wording.node.id})
        must_rename = entity.named_by in lost or entity.named_by in erased
        if not living and (must_rename or not loose):
            change.deleted_entities.append(entity_id)
            continue
        change.removed_links += ended
        if must_rename:
            change.entities[entity_id] = _renamed(entity, living, keywords_of)
    if wording is not None:
        _relink(network, wording, change)
    # The links of deleted nodes are deleted with them.
    gone = set(change.deleted_entities)
    ends = gone.union(deleted)
    change.removed_links = [
        link for link in change.removed_links if ends.isdisjoint((link.source, link.target))
    ]
    if not gone.isdisjoint(network.entity_focus):
        change.entity_focus = tuple(one for one in network.entity_focus if one not in gone)
    return change


def _broken_in_focus(network: Network) -> list[Link]:
    """Return the broken links of the entities in focus, which may hold more links after a deletion."""
    draft = Draft(network)
    draft.settle_focus()
    return draft.change.removed_links


def _affected(network: Network, deleted: Collection[NodeId], erased: Collection[NodeId]) -> set[NodeId]:
    """Return the entities that are linked with deleted memories, or that erased memories named or leave behind."""
    slots = [network.slot_of(node_id) for node_id in deleted if node_id in network]
    entity_ids = {entity_id for slot in slots for entity_id in network.entities_of(slot)}
    for slot in map(network.slot_of, erased):
        if slot >= 0:
            entity_ids.update(one for one in network.ids_to(slot) if one in network.entities)
    for entity_id, entity in network.entities.items():
        if entity.named_by in deleted or entity.named_by in erased:
            entity_ids.add(entity_id)
    return entity_ids


def _ends_of(
    network: Network, entity: Entity, deleted: Collection[NodeId], erased: Collection[NodeId]
) -> tuple[list[NodeId], list[NodeId], list[Link]]:
    """Return the living memories of an entity, its other loose ends, and its links to erased memories.

    A kept statement counts even if its links are broken.
    """
    table, slots = network.links.rows, network.slots
    slot = network.slot_of(entity.id)
    own, others = network.rows_from(slot), network.rows_to(slot)
    live = own[network.is_live(own)]
    joined = np.concatenate([table["target"][live], table["source"][others[network.is_live(others)]]])
    both = np.concatenate([table["target"][own], table["source"][others]])
    joined = np.concatenate([joined[slots["alive"][joined]], both[slots["is_kept"][both]]])
    living = sorted(set(slots["id"][joined].tolist()) - set(deleted))
    dangling = own[~slots["alive"][table["target"][own]]]
    targets = slots["id"][table["target"][dangling]].tolist()
    ended = [row for row, target in zip(dangling.tolist(), targets, strict=True) if target in erased]
    still_live = set(live.tolist()) - set(ended)
    loose = [target for row, target in zip(dangling.tolist(), targets, strict=True) if row in still_live]
    return living, loose, network.as_links(np.array(ended, dtype=np.int64))


def _renamed(entity: Entity, memories: Sequence[NodeId], keywords_of: KeywordsOf) -> Entity:
    """Return an entity with the name that its oldest memory left says; the key, if all were shortened since."""
    plain, relation = unqualified(entity.name)
    for node_id in memories:
        for keyword in keywords_of(node_id):
            if entity_key(keyword) == entity.key:
                return msgspec.structs.replace(entity, name=keyword, named_by=node_id)
            if relation and entity_key(keyword) == entity_key(plain):
                return msgspec.structs.replace(entity, name=qualified(keyword, relation), named_by=node_id)
    key = qualified(entity_key(plain), relation) if relation else entity.key
    return msgspec.structs.replace(entity, name=key, named_by=memories[0])


class _Wording(NamedTuple):
    """A corrected memory with its place, and the entities that it names now and no longer."""

    node: Node
    slot: int
    named: dict[str, str]
    """The names in its new keywords, by key."""
    kept: set[NodeId]
    """Known entities that it names."""
    left: set[NodeId]
    """Entities that it named and names no longer."""


def _wording(network: Network, node: Node) -> _Wording | None:
    """Return what a corrected memory names; None if the network does not contain it, or its words are the same."""
    slot = network.slot_of(node.id)
    if slot < 0 or network.texts.piece(slot) == piece_of(node.content, node.keywords):
        return None
    named = named_entities(node.keywords, network.parameters)
    kept = {network.entity_of_key[key] for key in named if key in network.entity_of_key}
    left = network.entities_of(slot) | {
        one.id for one in network.entities.values() if one.named_by == node.id
    }
    return _Wording(node, slot, named, kept, left - kept)


def _relink(network: Network, wording: _Wording, change: Change) -> None:
    """Link a corrected memory with the entities that it names, and with no others."""
    node, slot = wording.node, wording.slot
    live_count = Counter[NodeId]()
    for row, entity_id in _rows_with_entities(network, slot):
        live_count[entity_id] += bool(network.is_live(np.array([row]))[0])
    for row, entity_id in _rows_with_entities(network, slot):
        if entity_id not in wording.kept or live_count[entity_id] != BOTH_WAYS:
            change.removed_links += network.as_links(np.array([row]))
    locale = batch_locale([node.content], network.parameters.locale)
    first = entity_key(node.keywords[0]) if node.keywords else ""
    next_id = network.next_node_id
    for key, name in wording.named.items():
        known = network.entity_of_key.get(key)
        if known is not None and live_count[known] == BOTH_WAYS:
            continue
        entity_id = next_id if known is None else known
        if known is None:
            next_id += 1
            change.entities[entity_id] = Entity(entity_id, name, key, node.id)
        relation = entity_link_name(node.content, name, is_first=key == first, locale=locale)
        count = network.scan_count(entity_id) if entity_id in network else 0
        change.links.append(Link(node.id, entity_id, relation, 1.0, network.scan_count(node.id)))
        change.links.append(Link(entity_id, node.id, relation, 1.0, count))
    if next_id != network.next_node_id:
        change.next_node_id = next_id


BOTH_WAYS = 2
"""Live links between a memory and an entity that are whole."""


def _rows_with_entities(network: Network, slot: int) -> Iterator[tuple[int, NodeId]]:
    """Yield the rows of the links between a memory and entities, with the entity."""
    table, slots = network.links.rows, network.slots
    for rows, end in ((network.rows_from(slot), "target"), (network.rows_to(slot), "source")):
        others = table[end][rows]
        chosen = slots["is_entity"][others] & slots["alive"][others]
        yield from zip(rows[chosen].tolist(), slots["id"][others[chosen]].tolist(), strict=True)


def merged(change: Change, other: Change) -> None:
    """Add the consequences for entities to a change."""
    change.entities |= other.entities
    change.deleted_entities += other.deleted_entities
    change.removed_links += other.removed_links
    change.links += other.links
    change.next_node_id = other.next_node_id or change.next_node_id
    if other.entity_focus is not None:
        change.entity_focus = other.entity_focus
