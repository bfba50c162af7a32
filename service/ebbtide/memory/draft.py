"""A draft: a change that is being computed, viewed as if it were applied.

A compression pass needs this: links of nodes visited earlier count decayed, and forgotten nodes do not count. The
network itself stays untouched until the change is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum

import msgspec
import numpy as np

from ebbtide.changes import Change
from ebbtide.ids import NodeId
from ebbtide.memory.columns import Array
from ebbtide.memory.network import Network
from ebbtide.records import Link, Pin


class Draft:
    """A network and the `change` in preparation."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.change = Change()
        self._gone: set[int] = set()
        self._absent: Array | None = None
        self._scans: Array | None = None
        self._settled: dict[NodeId, int] = {}
        """The scan count at which the broken links of an entity in focus were last deleted."""
        self._wrote_broken: set[Ends] = set()
        """Broken links that this change writes."""
        self._also_held: list[int] = []
        """Rows that are held since this change forgot a newer memory of an entity in focus."""

    def __contains__(self, node_id: NodeId) -> bool:
        return node_id in self.network and self.network.slot_of(node_id) not in self._gone

    @property
    def node_count(self) -> int:
        """Number of living memories, including new ones."""
        return self.network.node_count - len(self.change.forgotten) + len(self.change.nodes)

    @property
    def focus(self) -> tuple[NodeId, ...]:
        """The new list of memories in focus, newest first."""
        return self.network.focus if self.change.focus is None else self.change.focus

    @property
    def entity_focus(self) -> tuple[NodeId, ...]:
        """The new list of entities in focus, newest first."""
        return self.network.entity_focus if self.change.entity_focus is None else self.change.entity_focus

    def candidates(self, *, with_pinned: bool) -> list[NodeId]:
        """Return the memories of the network that the change leaves alive, outside focus, ascending."""
        slots = self.network.slots
        chosen = slots["alive"] & ~slots["is_entity"] & ~slots["is_kept"]
        if not with_pinned:
            chosen &= ~slots["is_pinned"]
        chosen[list(self._gone)] = False
        chosen[[slot for slot in map(self.network.slot_of, self.focus) if slot >= 0]] = False
        found: list[NodeId] = slots["id"][chosen].tolist()
        return found

    def places_of_living(self, node_ids: Sequence[NodeId] | Array) -> Array:
        """Return the positions of the living nodes in the list."""
        alive = self.network.are_alive(node_ids)
        if self._gone:
            alive &= ~np.isin(node_ids, self.network.slots["id"][list(self._gone)])
        return np.flatnonzero(alive)

    def scan_count(self, node_id: NodeId) -> int:
        """Return how often the node was scanned, including this change; 0 for a new node."""
        if node_id >= self.network.next_node_id:
            return 0
        slot = self.network.slot_of(node_id)
        if slot < 0:
            return 0
        extra_scans = 0 if self._scans is None else int(self._scans[slot])
        return int(self.network.slots["scan_count"][slot]) + extra_scans

    # --- importance --------------------------------------------------------------------------------

    def importance(self, node_id: NodeId) -> float:
        """Return the support of a node: the sum of the live links that point at it (section 2)."""
        rows = self.network.rows_to(self.network.slot_of(node_id))
        sources = self.network.links.rows["source"][rows]
        return fsum(self._support(rows, sources, self._scans_of(sources)).tolist())

    def importances(self, slots: Array, rank: Array) -> Array:
        """Return the importance of many nodes, each at the moment of its visit.

        `rank` contains, by slot, the position in this pass of nodes still to be visited, from 1; 0 for all others. A
        link whose source is visited before its target counts decayed by one more scan, unless it is held or its source
        is kept: a pass skips kept statements.
        """
        network = self.network
        rows, sources, targets = self._links_to(slots)
        ranks, turns = rank[sources], rank[targets]
        scanned = (ranks > 0) & (ranks < turns) & ~network.slots["is_kept"][sources]
        support = self._support(rows, sources, self._scans_of(sources) + scanned)
        by_rank = np.bincount(turns, weights=support, minlength=int(rank[slots].max()) + 1)
        importances: Array = by_rank[rank[slots]]
        return importances

    def importances_now(self, slots: Array) -> Array:
        """Return the importance of many nodes."""
        rows, sources, targets = self._links_to(slots)
        support = self._support(rows, sources, self._scans_of(sources))
        importances: Array = np.bincount(targets, weights=support, minlength=self.network.slots.count)[slots]
        return importances

    def _links_to(self, slots: Array) -> tuple[Array, Array, Array]:
        """Return the rows, the sources and the targets of the links that point at these nodes."""
        network = self.network
        member = network.scratch().member
        member[slots] = True
        rows = network.links.of_targets(slots, member[: network.slots.count])
        member[slots] = False
        return rows, network.links.rows["source"][rows], network.links.rows["target"][rows]

    def _scans_of(self, sources: Array) -> Array:
        """Return the scans of these slots in this change."""
        if self._scans is None:
            return np.zeros(len(sources), dtype=np.int32)
        extra_scans: Array = self._scans[sources]
        return extra_scans

    def _support(self, rows: Array, sources: Array, more_scans: Array) -> Array:
        """Return what each link contributes to its target: its strength if it is live, else 0."""
        strengths = self._strengths(rows, more_scans)
        alive = self.network.slots["alive"][sources]
        if self._absent is not None:
            alive = alive & ~self._absent[sources]
        alive = alive & self.network.supports_importance(rows)
        support: Array = np.where(
            alive & (strengths >= self.network.parameters.link_break_threshold), strengths, 0.0
        )
        return support

    def _strengths(self, rows: Array, more_scans: Array) -> Array:
        """Return the strengths of links after additional scans of their sources; below 0 for removed ones."""
        strengths: Array = self.network.links.rows["now"][rows]
        scanned = np.flatnonzero(more_scans)
        if len(scanned):
            strengths[scanned] = self.network.decayed(rows[scanned], more_scans[scanned])
        if self._also_held:
            strengths[np.isin(rows, self._also_held)] = 1.0
        return strengths

    def without_live_links(self, slots: Array) -> Array:
        """Return which of these entities have no live link of their own, and no kept statement about them."""
        network = self.network
        rows = network.rows_from_each(slots)
        sources = network.links.rows["source"][rows]
        live = self._strengths(rows, self._scans_of(sources)) >= network.parameters.link_break_threshold
        needed = network.have_kept_statements()
        needed[sources[live]] = True
        without: Array = ~needed[slots]
        return without

    # --- what changes ------------------------------------------------------------------------------

    def forget(self, node_id: NodeId) -> None:
        """Forget a memory and its outgoing links. Links that point at it stay and dangle.

        The live links of entities to it are written as 1.0: forgetting is felt most when it happens (section 3).
        """
        assert node_id in self
        self.settle_focus()
        slot = self.network.slot_of(node_id)
        rows = self._rows_of_entities_to(slot)
        if len(rows):
            self.change.links += self._last_links(rows)
            self._hold_next(slot, rows)
        self._gone.add(slot)
        if self._absent is None:
            self._absent = np.zeros(self.network.slots.count, dtype=np.bool_)
        self._absent[slot] = True
        self.change.forgotten.append(node_id)
        if node_id in self.network.focus:
            self.change.links = [link for link in self.change.links if link.source != node_id]

    def _rows_of_entities_to(self, slot: int) -> Array:
        network, rows = self.network, self.network.rows_to(slot)
        sources = network.links.rows["source"][rows]
        chosen = network.slots["is_entity"][sources] & network.slots["alive"][sources]
        if self._gone:  # an entity that this change deleted
            chosen &= ~np.isin(sources, list(self._gone))
        kept: Array = rows[chosen]
        return kept

    def _last_links(self, rows: Array) -> list[Link]:
        """Return the links of entities to a memory that is being forgotten, as they are to be written."""
        network = self.network
        strengths = self._strengths(rows, self._scans_of(network.links.rows["source"][rows]))
        live = strengths >= network.parameters.link_break_threshold
        removed = {ends_of(link) for link in self.change.removed_links}
        # A broken link is written too, because the record of its entity does not cover a forgotten target.
        broken = [link for link in network.as_links(rows[~live]) if ends_of(link) not in removed]
        self._wrote_broken.update(map(ends_of, broken))
        return [*map(self._as_whole, network.as_links(rows[live])), *broken]

    def _hold_next(self, slot: int, rows: Array) -> None:
        """Hold the link to the next memory of each entity in focus to which the forgotten memory was held."""
        network, table = self.network, self.network.links.rows
        held = table["held"][rows] | np.isin(rows, self._also_held)
        in_focus = [network.slot_of(node_id) for node_id in self.entity_focus if node_id in network]
        for entity_slot in set(table["source"][rows[held]].tolist()).intersection(in_focus):
            own = network.rows_from(entity_slot)
            targets = table["target"][own]
            living = network.are_memories(targets) & (targets != slot)
            if self._absent is not None:
                living &= ~self._absent[targets]
            newest = np.unique(targets[living])[-network.entity_memories :]
            self._also_held += own[np.isin(targets, newest)].tolist()

    def drop_entities(self, node_ids: Sequence[NodeId] | Array) -> None:
        """Delete entities without live links. Nothing dangles."""
        if not len(node_ids):
            return
        self.settle_focus()
        slots = self.network.slots_of(node_ids)
        self._gone.update(slots.tolist())
        dropped = set(np.asarray(node_ids).tolist())
        self.change.deleted_entities += sorted(dropped)
        if not dropped.isdisjoint(source for source, _, _ in self._wrote_broken):
            self.change.links = [link for link in self.change.links if link.source not in dropped]

    def scan(self, node_ids: Sequence[NodeId] | Array, pass_number: int) -> None:
        """Count one scan of each node: all links of these nodes decay by one step."""
        assert self.change.scanned_in in (0, pass_number), "a change belongs to one pass"
        if not len(node_ids):
            return
        if self._scans is None:
            self._scans = np.zeros(self.network.slots.count, dtype=np.int32)
        self._scans[self.network.slots_of(node_ids)] += 1
        self.change.scanned = np.concatenate([self.change.scanned, np.asarray(node_ids, dtype=np.int64)])
        self.change.scanned_in = pass_number

    # --- pins --------------------------------------------------------------------------------------

    def pin(self, node_id: NodeId) -> None:
        """Pin a memory by hand. Where it has a live link to an entity, a missing link back is written as 1.0."""
        network, slot = self.network, self.network.slot_of(node_id)
        table, slots = network.links.rows, network.slots
        own, others = network.rows_from(slot), network.rows_to(slot)
        own = own[network.is_live(own) & slots["is_entity"][table["target"][own]]]
        present = {(link.source, link.relation) for link in network.as_links(others)}
        self.change.pins[node_id] = Pin.BY_HAND
        self.change.links += [
            Link(link.target, node_id, link.relation, 1.0, self.scan_count(link.target))
            for link in network.as_links(own)
            if (link.target, link.relation) not in present
        ]

    def unpin(self, node_id: NodeId) -> None:
        """Unpin a memory of the network. Its links with entities are written as 1.0."""
        self.change.pins[node_id] = Pin.NONE
        self.change.links += self._links_with_entities(node_id)

    def _links_with_entities(self, node_id: NodeId) -> list[Link]:
        network, slot = self.network, self.network.slot_of(node_id)
        table, is_entity = network.links.rows, network.slots["is_entity"]
        own, others = network.rows_from(slot), network.rows_to(slot)
        own = own[is_entity[table["target"][own]]]
        others = others[is_entity[table["source"][others]] & network.slots["alive"][table["source"][others]]]
        links = network.as_links(np.concatenate([own, others]))
        return [self._as_whole(link) for link in links]

    def _as_whole(self, link: Link) -> Link:
        return Link(link.source, link.target, link.relation, 1.0, self.scan_count(link.source))

    # --- focus -------------------------------------------------------------------------------------

    def set_focus(self, focus: tuple[NodeId, ...]) -> None:
        """Replace the list of memories. Links of living memories that leave it are written as 1.0."""
        for node_id in self.focus:
            slot = self.network.slot_of(node_id)
            if node_id not in focus and slot >= 0 and slot not in self._gone:
                count = self.scan_count(node_id)
                self.change.links += [
                    Link(link.source, link.target, link.relation, 1.0, count)
                    for link in self.network.as_links(self.network.rows_from(slot))
                ]
        self.change.focus = focus

    def set_entity_focus(self, focus: tuple[NodeId, ...]) -> None:
        """Replace the list of entities. The held links of those that leave it are written as 1.0."""
        left = [node_id for node_id in self.entity_focus if node_id not in focus]
        self.change.entity_focus = focus
        self._leave(left)

    def mention(self, entities: Iterable[NodeId]) -> None:
        """Move entities to the front of their list one by one. Those that fall off its end leave (section 4, 5b)."""
        focus, limit = list(self.entity_focus), self.network.parameters.focus_limit
        left: dict[NodeId, None] = {}
        for node_id in entities:
            if node_id in focus:
                focus.remove(node_id)
            else:
                # An entity that fell off before it is mentioned again has a new window by now.
                windows = self._windows([node_id]) if node_id in left else {}
                self.drop_broken_links(node_id, windows.get(node_id))
            focus.insert(0, node_id)
            for fallen in focus[limit:]:
                left[fallen] = None
            del focus[limit:]
        if tuple(focus) != self.entity_focus:
            self.change.entity_focus = tuple(focus)
        self._leave(list(left))

    def settle_focus(self) -> None:
        """Delete the broken links of the entities in focus before they may hold more links."""
        for node_id in self.entity_focus:
            if node_id in self.network:
                count = self.scan_count(node_id)
                if self._settled.get(node_id) != count:
                    self._settled[node_id] = count
                    self.drop_broken_links(node_id)

    def drop_broken_links(self, node_id: NodeId, window_from: NodeId | None = None) -> None:
        """Delete the broken links of a node that enters focus: nothing broken comes back (section 3).

        `window_from` is the first memory to which the links were written as 1.0 in this change, if there is one.
        """
        network, slot = self.network, self.network.slot_of(node_id)
        if slot < 0:
            return
        table, rows = network.links.rows, network.rows_from(slot)
        scans = self._scans_of(table["source"][rows])
        if window_from is None:
            strengths = self._strengths(rows, scans)
        else:
            targets = table["target"][rows]
            held = network.are_memories(targets) & (network.slots["id"][targets] >= window_from)
            held |= network.slots["is_pinned"][targets]
            strengths = np.where(held, 1.0, network.faded(rows, scans))
        rows = rows[strengths < network.parameters.link_break_threshold]
        if not len(rows):
            return
        broken = network.as_links(rows)
        # A broken link to a memory that this change forgets may have been written already.
        ended = {ends_of(link) for link in broken} & self._wrote_broken
        if ended:
            self.change.links = [link for link in self.change.links if ends_of(link) not in ended]
        known = {ends_of(link) for link in (*self.change.links, *self.change.removed_links)}
        self.change.removed_links += [link for link in broken if ends_of(link) not in known]

    def _leave(self, entities: Sequence[NodeId]) -> None:
        """Write the held links of entities that leave focus as 1.0, as one number for each entity (see `Entity`)."""
        if not entities:
            return
        written = {ends_of(link) for link in (*self.change.links, *self.change.removed_links)}
        for node_id, window_from in self._windows(entities).items():
            entity = self.change.entities.get(node_id) or self.network.entities[node_id]
            self.change.links += self._links_left_behind(node_id, window_from, written)
            self.change.entities[node_id] = msgspec.structs.replace(
                entity, left_from=window_from, left_at=self.scan_count(node_id)
            )

    def _windows(self, entities: Sequence[NodeId]) -> dict[NodeId, NodeId]:
        """Return the oldest of the newest living memories of each entity that has some, including this change."""
        forgotten = set(self.change.forgotten)
        removed = {ends_of(link) for link in self.change.removed_links}
        targets_of = {node_id: self._known_targets(node_id, forgotten, removed) for node_id in entities}
        for link in self.change.links:
            is_counted = link.target not in forgotten and not self.network.is_statement(link.target)
            if link.source in targets_of and is_counted:
                targets_of[link.source].add(link.target)
        return {
            node_id: sorted(targets)[-self.network.entity_memories :][0]
            for node_id, targets in targets_of.items()
            if targets
        }

    def _known_targets(self, node_id: NodeId, forgotten: set[NodeId], removed: set[Ends]) -> set[NodeId]:
        """Return the living memories that the stored links of an entity point at."""
        slot, slots = self.network.slot_of(node_id), self.network.slots
        if slot < 0:
            return set()
        rows = self.network.rows_from(slot)
        targets = self.network.links.rows["target"][rows]
        rows = rows[self.network.are_memories(targets)]
        if removed:
            return {
                link.target
                for link in self.network.as_links(rows)
                if link.target not in forgotten and ends_of(link) not in removed
            }
        return set(slots["id"][self.network.links.rows["target"][rows]].tolist()) - forgotten

    def _links_left_behind(self, node_id: NodeId, window_from: NodeId, written: set[Ends]) -> list[Link]:
        """Return the links that the record of an entity has covered so far and that it no longer will."""
        network = self.network
        stored, left = network.entities.get(node_id), self.change.entities.get(node_id)
        found: list[Link] = []
        if stored is not None and 0 < stored.left_from < window_from:
            found = network.as_links(self._older(network.covered_rows(stored), window_from))
        if stored is not None and left is not None and 0 < left.left_from < window_from:
            # It left focus earlier in this change, with links to older memories.
            rows = self._older(network.rows_from(network.slot_of(node_id)), window_from)
            table, slots = network.links.rows, network.slots
            targets = table["target"][rows]
            was_held = network.are_memories(targets) & (slots["id"][targets] >= left.left_from)
            found += map(self._as_whole, network.as_links(rows[was_held]))
        return [link for link in found if ends_of(link) not in written]

    def _older(self, rows: Array, window_from: NodeId) -> Array:
        older: Array = rows[self.network.slots["id"][self.network.links.rows["target"][rows]] < window_from]
        return older


Ends = tuple[NodeId, NodeId, str]


def ends_of(link: Link) -> Ends:
    """Return what identifies a link."""
    return link.source, link.target, link.relation
