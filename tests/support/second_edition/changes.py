"""Focus and pins by hand, deletion, correction, changed parameters (3, 4, 8)."""

from __future__ import annotations

import dataclasses

from tests.support.second_edition.network import Network
from tests.support.second_edition.records import TooManyPinnedError

# ---- 4. By hand -----------------------------------------------------------------------------------


def focus_by_hand(network: Network, node_id: int) -> None:
    """Move a memory or an entity to the front of its list, as if just mentioned (4)."""
    network.node(node_id)
    network.move_to_front(node_id)


def unfocus_by_hand(network: Network, node_id: int) -> None:
    """Let a node leave focus; its content stays as it is (4). A node out of focus stays as it is."""
    network.node(node_id)
    if node_id in network.focus_of(node_id):
        network.leave_focus(node_id)


def pinned_memories(network: Network, *kinds: str) -> list[int]:
    """Return the memories with one of these pins, oldest first."""
    return [memory_id for memory_id, memory in sorted(network.memories.items()) if memory.pinned in kinds]


def set_pin(network: Network, memory_id: int, kind: str) -> None:
    """Mark a memory as pinned; its links with entities are held from now on (3)."""
    # CHOICE 30 (3): "every link" includes a broken one that is still stored: a pin brings it back. Only entering focus
    # deletes broken links. Where that deleted the link from an entity to which the memory's own link is live, the pin
    # writes it again: section 10 promises that a pinned memory is never out of reach of its entities' names.
    for _, entity_id, relation in network.links_from(memory_id):
        is_own = entity_id in network.entities and network.is_live((memory_id, entity_id, relation))
        if is_own and (entity_id, memory_id, relation) not in network.links:
            network.put_link((entity_id, memory_id, relation), 1.0)
    network.memories[memory_id].pinned = kind


def pin_by_hand(network: Network, memory_id: int) -> None:
    """Pin a memory by hand (4). Raise TooManyPinnedError at the limit."""
    memory = network.memory(memory_id)
    # CHOICE 31 (4): a memory pinned by request becomes pinned by hand, also at the limit: the number stays.
    count = len(pinned_memories(network, "by_hand", "by_request"))
    if not memory.pinned and count >= network.parameters.max_pinned:
        raise TooManyPinnedError
    set_pin(network, memory_id, "by_hand")


def unpin(network: Network, memory_id: int) -> None:
    """Unpin a memory: its links with entities, both ways, are written 1.0 (4)."""
    memory = network.memory(memory_id)
    if not memory.pinned:
        return
    held = [
        key
        for key in [*network.links_from(memory_id), *network.links_to(memory_id)]
        if network.is_pinned_link(key)
    ]
    memory.pinned = ""
    for key in held:
        network.put_link(key, 1.0)


def make_room_for_pin(network: Network) -> bool:
    """Unpin the oldest pinned by request until one more pin fits; return whether it does (4.3c)."""
    # CHOICE 32 (4.3c): "oldest" is the lowest id. Where unpinning all of them would not make room (max_pinned lowered,
    # the rest by hand), none is unpinned. A lowered max_pinned unpins nothing by itself.
    by_request = pinned_memories(network, "by_request")
    total = len(by_request) + len(pinned_memories(network, "by_hand"))
    excess = max(0, total + 1 - network.parameters.max_pinned)
    if excess > len(by_request):
        return False
    for memory_id in by_request[:excess]:
        unpin(network, memory_id)
    return True


# ---- 8. Deletion and correction -------------------------------------------------------------------


def delete(network: Network, memory_id: int) -> None:
    """Delete or erase a memory: it leaves no loose end (8)."""
    network.memory(memory_id)
    touched = set(network.entities_of(memory_id))
    touched |= {entity_id for entity_id, entity in network.entities.items() if entity.named_by == memory_id}
    network.remove(memory_id)
    network.erased.add(memory_id)
    settle_entities(network, touched, memory_id)


def settle_entities(network: Network, touched: set[int], memory_id: int) -> None:
    """Delete the entities that a memory leaves alone, and give new names to those that it named (8)."""
    for entity_id in sorted(touched):
        entity = network.entities[entity_id]
        memories = network.memories_of(entity_id)
        memories = sorted({*memories, *network.kept_about(entity_id)})
        if entity.named_by == memory_id:
            if memories:
                rename(network, entity_id, memories)
            else:
                network.remove(entity_id)
        elif not memories and not network.loose_ends(entity_id):
            network.remove(entity_id)


def rename(network: Network, entity_id: int, memories: list[int]) -> None:
    """Take an entity's name from the oldest memory left (8)."""
    # CHOICE 33 (8): the oldest whose present keywords have the key; where shortening dropped it from all of them, the
    # name is the key.
    entity = network.entities[entity_id]
    for memory_id in memories:
        keyword = network.keyword_of(memory_id, entity.key)
        if keyword is not None:
            entity.name, entity.named_by = keyword, memory_id
            return
    entity.name, entity.named_by = entity.key, memories[0]


def detach(network: Network, memory_id: int, named: set[int]) -> None:
    """Delete the links of a corrected memory with entities that it no longer names (8)."""
    network.settle_focus()
    dropped = set(network.entities_of(memory_id)) - named
    for key in [*network.links_from(memory_id), *network.links_to(memory_id)]:
        other = key[1] if key[0] == memory_id else key[0]
        if other in network.entities and other not in named:
            network.delete_link(key)
    # CHOICE 34 (8): an entity whose name came from the corrected memory, or that it leaves alone, is treated as at a
    # deletion.
    dropped |= {
        i for i, entity in network.entities.items() if entity.named_by == memory_id and i not in named
    }
    settle_entities(network, dropped, memory_id)


# ---- 3, 5.2, 8. Parameters ------------------------------------------------------------------------


def change_parameters(network: Network, changes: dict[str, object]) -> None:
    """Change parameters.

    Lowered limits, `focus_policy` and `entity_memories` take effect at the next pass or batch (5.2, 8).
    """
    network.settle_focus()
    # CHOICE 35 (3): a change to the present value re-anchors nothing. A held link is re-anchored at its stored
    # strength, which is what it fades by when it falls out of the window.
    if changes.get("decay_rate", network.parameters.decay_rate) != network.parameters.decay_rate:
        for key in list(network.links):
            network.put_link(key, network.stored_strength(key))
    network.parameters = dataclasses.replace(network.parameters, **changes)
