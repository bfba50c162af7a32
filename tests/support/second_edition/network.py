"""Nodes, links and focus; strength, importance and forgetting (1, 2, 3)."""

from __future__ import annotations

import dataclasses
import math

from tests.support.second_edition.names import normalise
from tests.support.second_edition.records import Entity, Link, LinkKey, Memory, NotFoundError, Parameters


class Network:
    """The state of one agent. It starts empty (1)."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = dataclasses.replace(parameters)
        self.entity_memories = parameters.entity_memories  # 8: a change takes effect at the next pass
        self.next_id = 1
        self.pass_number = 0
        self.owed = 0
        self.memories: dict[int, Memory] = {}
        self.entities: dict[int, Entity] = {}
        self.memory_focus: list[int] = []  # newest first
        self.entity_focus: list[int] = []  # newest first
        self.links: dict[LinkKey, Link] = {}
        self.outgoing: dict[int, set[LinkKey]] = {}  # the keys of `links` by source
        self.incoming: dict[int, set[LinkKey]] = {}  # the keys of `links` by target
        self.kept: set[int] = set()  # knowledge page, 1: statements that passes skip
        self.forgotten: set[int] = set()  # memories, for the properties of 10
        self.erased: set[int] = set()

    # ---- 1. Nodes ---------------------------------------------------------------------------------

    def lives(self, node_id: int) -> bool:
        """Whether a memory or an entity with this id exists."""
        return node_id in self.memories or node_id in self.entities

    def node(self, node_id: int) -> Memory | Entity:
        """Return the living node. Raise NotFoundError if there is none."""
        if not self.lives(node_id):
            raise NotFoundError(node_id)
        return self.memories[node_id] if node_id in self.memories else self.entities[node_id]

    def memory(self, node_id: int) -> Memory:
        """Return the living memory. Raise NotFoundError if there is none."""
        if node_id not in self.memories:
            raise NotFoundError(node_id)
        return self.memories[node_id]

    def new_id(self) -> int:
        """Return the next id; one counter counts memories and entities (1)."""
        self.next_id += 1
        return self.next_id - 1

    def entity_of(self, key: str) -> int | None:
        """Return the living entity of a key (1: at most one)."""
        for entity_id, entity in self.entities.items():
            if entity.key == key:
                return entity_id
        return None

    # ---- 3. Links ---------------------------------------------------------------------------------

    def put_link(self, key: LinkKey, strength: float) -> None:
        """Write a link at this strength now; an existing one gets the new strength (1)."""
        self.links[key] = Link(strength, self.node(key[0]).scan_count)
        self.outgoing.setdefault(key[0], set()).add(key)
        self.incoming.setdefault(key[1], set()).add(key)

    def link_both_ways(self, one: int, other: int, relation: str, strength: float) -> None:
        """Write a pair of links that share a name."""
        self.put_link((one, other, relation), strength)
        self.put_link((other, one, relation), strength)

    def delete_link(self, key: LinkKey) -> None:
        """Delete a link."""
        del self.links[key]
        self.outgoing[key[0]].discard(key)
        self.incoming[key[1]].discard(key)

    def links_from(self, node_id: int) -> list[LinkKey]:
        """Return the links whose source is the node, in order."""
        return sorted(self.outgoing.get(node_id, ()))

    def links_to(self, node_id: int) -> list[LinkKey]:
        """Return the links that point at the node, in order."""
        return sorted(self.incoming.get(node_id, ()))

    def stored_strength(self, key: LinkKey) -> float:
        """Return the strength by decay alone (3)."""
        link = self.links[key]
        if key[1] in self.kept:
            # Knowledge page, 1: "Links into a kept node keep the strength that was written."
            return link.strength_written
        scans = self.node(key[0]).scan_count - link.scan_count_when_written
        return link.strength_written * self.parameters.decay_rate**scans

    def window(self, entity_id: int) -> list[int]:
        """Return the newest living memories of an entity, to which its links are held in focus (3)."""
        # CHOICE 13 (3): "its" memories are here those to which it has a link that is not broken. A broken link is
        # never in the window, because settle_focus deletes it before the window can widen.
        linked = {target for _, target, _ in self.outgoing.get(entity_id, ()) if target in self.memories}
        return sorted(linked, reverse=True)[: self.entity_memories]

    def is_pinned_link(self, key: LinkKey) -> bool:
        """Whether the link joins a pinned memory and an entity, either way (3)."""
        for one, other in [(key[0], key[1]), (key[1], key[0])]:
            if one in self.memories and self.memories[one].pinned and other in self.entities:
                return True
        return False

    def is_held(self, key: LinkKey) -> bool:
        """Whether the link counts 1.0 whatever is stored (3)."""
        source, target, _ = key
        if source in self.memory_focus:
            return True
        if source in self.entity_focus and target in self.window(source):
            return True
        return self.is_pinned_link(key)

    def strength(self, key: LinkKey) -> float:
        """Return the strength that counts in importance and in paths (3)."""
        return 1.0 if self.is_held(key) else self.stored_strength(key)

    def is_live(self, key: LinkKey) -> bool:
        """Whether the link's source lives and its strength is at least the threshold (2)."""
        # CHOICE 14 (3): a broken link is kept, so a lowered threshold makes it live again, as in the first edition.
        if not self.lives(key[0]):
            return False
        return self.stored_strength(key) >= self.parameters.link_break_threshold or self.is_held(key)

    def drop_broken(self, node_id: int) -> None:
        """Delete the broken links of a node (3)."""
        for key in self.links_from(node_id):
            if not self.is_live(key):
                self.delete_link(key)

    def settle_focus(self) -> None:
        """Delete the broken links of the entities in focus, so that none can come back (3).

        Runs before anything that may widen what an entity in focus holds.
        """
        # CHOICE 15 (3): "nothing broken comes back" holds for links that fell out of the window too.
        for entity_id in self.entity_focus:
            self.drop_broken(entity_id)

    # ---- 2. Importance ----------------------------------------------------------------------------

    def importance(self, node_id: int) -> float:
        """Return the sum of the strengths of the live links that point at the node (2)."""
        # Knowledge page, 1: the links of a kept statement to its entity are not counted in the entity's importance.
        counted = [
            key for key in self.links_to(node_id) if not (key[0] in self.kept and node_id in self.entities)
        ]
        return math.fsum(self.strength(key) for key in counted if self.is_live(key))

    # ---- Kept statements (knowledge page, 1) --------------------------------------------------------

    def keep(self, node_ids: set[int]) -> None:
        """Keep exactly these nodes. Links into a node that is no longer kept decay from now on."""
        ended = self.kept - node_ids
        self.kept = set(node_ids)
        for node_id in ended:
            for key in self.links_to(node_id):
                self.put_link(key, self.links[key].strength_written)

    def kept_about(self, entity_id: int) -> set[int]:
        """Return the kept statements that are linked with an entity, either way. It is not deleted before them."""
        ends = {end for key in [*self.links_from(entity_id), *self.links_to(entity_id)] for end in key[:2]}
        return self.kept & ends

    # ---- Who has which entities -------------------------------------------------------------------

    def memories_of(self, entity_id: int) -> list[int]:
        """Return an entity's living memories, oldest first: a live link joins them, either way (6)."""
        found = {
            key[1] for key in self.links_from(entity_id) if key[1] in self.memories and self.is_live(key)
        }
        found |= {key[0] for key in self.links_to(entity_id) if key[0] in self.memories and self.is_live(key)}
        return sorted(found)

    def entities_of(self, memory_id: int) -> list[int]:
        """Return a memory's entities, oldest first: a live link joins them, either way (6)."""
        found = {
            key[1] for key in self.links_from(memory_id) if key[1] in self.entities and self.is_live(key)
        }
        found |= {key[0] for key in self.links_to(memory_id) if key[0] in self.entities and self.is_live(key)}
        return sorted(found)

    def loose_ends(self, node_id: int) -> list[LinkKey]:
        """Return the live links of a node whose target is forgotten (3)."""
        return [key for key in self.links_from(node_id) if not self.lives(key[1]) and self.is_live(key)]

    # ---- 3. Focus ---------------------------------------------------------------------------------

    def focus_of(self, node_id: int) -> list[int]:
        """Return the focus list of a node's kind."""
        return self.memory_focus if node_id in self.memories else self.entity_focus

    def leave_focus(self, node_id: int) -> None:
        """Take a node out of focus; its held links are written as 1.0 at that moment (3)."""
        held = [key for key in self.links_from(node_id) if self.is_held(key)]
        self.focus_of(node_id).remove(node_id)
        for key in held:
            self.put_link(key, 1.0)

    def move_to_front(self, node_id: int) -> None:
        """Move a node to the front of its list; the last ones leave (4.5b, by hand)."""
        focus = self.focus_of(node_id)
        if node_id in focus:
            focus.remove(node_id)
        else:
            self.drop_broken(node_id)  # 3: nothing broken comes back
        focus.insert(0, node_id)
        self.cut_focus(focus)

    def cut_focus(self, focus: list[int]) -> None:
        """Let the oldest leave until at most focus_limit are in this list."""
        while len(focus) > self.parameters.focus_limit:
            self.leave_focus(focus[-1])

    def apply_limits(self) -> None:
        """Apply what a pass or a batch applies: lowered focus_limit (5.2), focus_policy `nodes` (8)."""
        self.cut_focus(self.memory_focus)
        self.cut_focus(self.entity_focus)
        if self.parameters.focus_policy == "nodes":
            while self.entity_focus:
                self.leave_focus(self.entity_focus[-1])

    # ---- 3. Forgetting ----------------------------------------------------------------------------

    def forget(self, memory_id: int) -> None:
        """Forget a memory: its links go, links that point at it dangle (3)."""
        self.settle_focus()
        kept = [key for key in self.links_to(memory_id) if key[0] in self.entities and self.is_live(key)]
        for key in self.links_from(memory_id):
            self.delete_link(key)
        del self.memories[memory_id]
        self.forgotten.add(memory_id)
        for key in kept:  # 3: an entity's live link is written as 1.0 at that moment
            self.put_link(key, 1.0)

    def remove(self, node_id: int) -> None:
        """Delete a node with its links at both ends; nothing dangles (5, 8)."""
        self.settle_focus()
        focus = self.focus_of(node_id)
        if node_id in focus:
            focus.remove(node_id)
        for key in {*self.links_from(node_id), *self.links_to(node_id)}:
            self.delete_link(key)
        self.kept.discard(node_id)
        if self.memories.pop(node_id, None) is None:
            del self.entities[node_id]

    def keyword_of(self, memory_id: int, key: str) -> str | None:
        """Return the memory's first keyword of this key."""
        for keyword in self.memories[memory_id].keywords:
            if normalise(keyword) == key:
                return keyword
        return None
