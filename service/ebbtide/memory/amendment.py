"""The consequences of deleted and corrected memories for entities (memory model, section 8).

A deleted memory leaves no loose end, and an entity that has neither a living memory nor a loose end is deleted with it:
its name is personal data. Where the source of a name is deleted, the oldest memory left gives the name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

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
    among: Collection[NodeId] | None = None,
) -> Change:
    """Return what follows for entities when memories of the network are deleted.

    `erased` are forgotten memories that leave no loose end either. `dropped` are entities to delete in any case. With
    `among`, other entities stay as they are.
    """
    change = Change(deleted_entities=sorted(dropped), removed_links=_broken_in_focus(network))
    affected = _affected(network, deleted, erased) - set(dropped)
    for entity_id in sorted(affected if among is None else affected.intersection(among)):
        entity = network.entities[entity_id]
        living, loose, ended = _ends_of(network, entity, deleted, erased)
        must_rename = entity.named_by in deleted or entity.named_by in erased
        if not living and (must_rename or not loose):
            change.deleted_entities.append(entity_id)
            continue
        change.removed_links += ended
        if must_rename:
            change.entities[entity_id] = _renamed(entity, living, keywords_of)
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


def link_corrected(network: Network, nodes: Iterable[Node], keywords_of: KeywordsOf) -> Change:
    """Return what follows for entities when the owner corrects memories of the network.

    Entities are found or created for the new keywords. Links with those no longer named are deleted, and an entity that
    is left alone is deleted as after the deletion of the memory.
    """
    change, next_id = Change(), network.next_node_id
    for node in nodes:
        slot = network.slot_of(node.id)
        if slot >= 0 and network.texts.piece(slot) != piece_of(node.content, node.keywords):
            next_id = _relink(network, node, slot, change, next_id, keywords_of)
    if next_id != network.next_node_id:
        change.next_node_id = next_id
    # The links of deleted entities are deleted with them.
    ended = set(change.deleted_entities)
    change.removed_links = [
        link for link in change.removed_links if ended.isdisjoint((link.source, link.target))
    ]
    return change


def _relink(
    network: Network, node: Node, slot: int, change: Change, next_id: NodeId, keywords_of: KeywordsOf
) -> NodeId:
    named = named_entities(node.keywords, network.parameters)
    kept = {network.entity_of_key[key] for key in named if key in network.entity_of_key}
    left = (network.entities_of(slot) - kept) | {
        one.id for one in network.entities.values() if one.named_by == node.id and one.id not in kept
    }
    live_count = Counter[NodeId]()
    for row, entity_id in _rows_with_entities(network, slot):
        live_count[entity_id] += bool(network.is_live(np.array([row]))[0])
    for row, entity_id in _rows_with_entities(network, slot):
        if entity_id not in kept or live_count[entity_id] != BOTH_WAYS:
            change.removed_links += network.as_links(np.array([row]))
    merged(change, settle_entities(network, [node.id], keywords_of, among=left))
    locale = batch_locale([node.content], network.parameters.locale)
    first = entity_key(node.keywords[0]) if node.keywords else ""
    for key, name in named.items():
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
    return next_id


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
