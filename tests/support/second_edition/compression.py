"""One compression pass (5)."""

from __future__ import annotations

import math
import random

from tests.support.oracle import round12
from tests.support.second_edition.digestion import evict
from tests.support.second_edition.network import Network
from tests.support.second_edition.records import Entity, Memory, Rewrite, Shorten


def compress(network: Network, shorten: Shorten, rng: random.Random) -> None:
    """Run one complete pass."""
    # CHOICE 36 (5): a pass runs whether or not one is owed.
    for node_id in begin_pass(network, rng):
        visit(network, node_id, shorten)
    network.owed = max(network.owed - 1, 0)


def begin_pass(network: Network, rng: random.Random) -> list[int]:
    """Begin a pass; return the nodes that it visits, in order (5.2)."""
    network.pass_number += 1
    network.apply_limits()
    if network.entity_memories != network.parameters.entity_memories:
        network.settle_focus()
        network.entity_memories = network.parameters.entity_memories  # 8
    if network.parameters.strategy == "slots":
        evict(network, network.parameters.max_nodes, [], rng)
        return drawn_memories(network, rng) + due(network, list(network.entities))
    return due(network, [*network.memories, *network.entities])


def drawn_memories(network: Network, rng: random.Random) -> list[int]:
    """Draw the memories of a pass at random, least important first (5.2, slots)."""
    # CHOICE 37 (5.2): drawn among the memories out of focus, pinned ones too, for they are scanned.
    candidates = [
        memory_id
        for memory_id in sorted(network.memories)
        if memory_id not in network.memory_focus and memory_id not in network.kept
    ]
    drawn = rng.sample(candidates, min(network.parameters.compression_batch_size, len(candidates)))
    return sorted(drawn, key=lambda memory_id: (round12(network.importance(memory_id)), memory_id))


def due(network: Network, node_ids: list[int]) -> list[int]:
    """Return the nodes among these that are due in this pass, in order (5.2)."""
    found = [node_id for node_id in node_ids if is_due(network, node_id)]
    return sorted(found, key=lambda node_id: (network.node(node_id).scan_count, node_id))


def is_due(network: Network, node_id: int) -> bool:
    """Whether a node is due in the pass that runs (5.2)."""
    node = network.node(node_id)
    if node.scan_count == 0:
        return True
    # CHOICE 38 (5.2): the parameters of this moment count, not those of the last scan.
    wait = 1 + math.floor(node.scan_count * network.parameters.long_term_factor)
    if node_id in network.entities:
        wait = min(wait, network.parameters.entity_wait_max)
    return network.pass_number >= node.last_scan_pass + wait


def visit(network: Network, node_id: int, shorten: Shorten) -> None:
    """Visit one due node (5)."""
    if node_id in network.memories:
        visit_memory(network, node_id, shorten)
    elif node_id in network.entities:
        visit_entity(network, node_id)


def visit_memory(network: Network, memory_id: int, shorten: Shorten) -> None:
    """The five steps for a memory (5)."""
    memory = network.memories[memory_id]
    if memory_id in network.memory_focus or memory_id in network.kept:  # step 1
        return
    if not memory.pinned:
        importance = network.importance(memory_id)
        if importance == 0:  # step 2
            network.forget(memory_id)
            return
        if importance < 1 - 1e-9:
            target = math.floor(memory.original_length * min(importance, 1) + 1e-9)
            if target < network.parameters.delete_threshold:  # step 3
                network.forget(memory_id)
                return
            if target <= (1 - network.parameters.min_shrink) * len(memory.content):  # step 4
                rewrite(network, memory, target, importance, shorten)
    scan(network, memory)  # step 5


def rewrite(network: Network, memory: Memory, target: int, importance: float, shorten: Shorten) -> None:
    """Shorten a memory to at most `target` characters (5.1). On a server failure its content stays."""
    shorter = shorten(memory, target)
    if shorter is None:
        return
    assert len(shorter.content) <= target, "the model returned more than the target"
    change = Rewrite(network.pass_number, importance, len(memory.content), len(shorter.content))
    memory.rewrites = [*memory.rewrites, change][-16:]
    memory.content, memory.phrase, memory.keywords = shorter.content, shorter.phrase, list(shorter.keywords)


def visit_entity(network: Network, entity_id: int) -> None:
    """Scan an entity, or delete it when it supports nothing and nothing supports it (5)."""
    supports_nothing = not any(network.is_live(key) for key in network.links_from(entity_id))
    is_unsupported = network.importance(entity_id) == 0
    is_bare = is_unsupported and supports_nothing and not network.kept_about(entity_id)
    if entity_id not in network.entity_focus and is_bare:
        network.remove(entity_id)
    else:
        scan(network, network.entities[entity_id])


def scan(network: Network, node: Memory | Entity) -> None:
    """Count one scan (5, step 5)."""
    node.scan_count += 1
    node.last_scan_pass = network.pass_number
