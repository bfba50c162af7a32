"""The network of one agent: nodes, links, importance, decay. Pure: no clock, no randomness, no disk.

**Importance protects a memory.** It is the sum of the strengths of the live links that point *at* a node (memory model,
section 2). Outgoing links do not help a node. While a node is in focus its links count 1.0, so the current topic
supports everything it is linked to. At importance 1 and above, a memory is kept whole. Below 1 it keeps that share of
its original length. At 0 it is forgotten.

**Links decay** (section 3): each scan of its *source* multiplies a link by `decay_rate`. The strength is not rewritten;
a link stores the strength it was written with and the source's scan count at that moment (its anchor), and

    strength_now = strength_written * decay_rate ** (scan_count(source) - anchor)

**Forgetting leaves a trace.** A forgotten node loses its outgoing links. Links that point at it stay in their sources
and dangle: they do not count for importance or search, but `dangling` returns them. Deleting leaves no trace.

**Arrays.** A node has a slot, its index in parallel arrays (`Columns`), ascending with ids. A forgotten node keeps its
slot while links may point at it. Links are rows of a `LinkTable`, whose column `now` contains current strengths; it is
updated whenever scan counts, focus or links change, so that a recall computes none. Texts are in `FoldedTexts`.

A `Network` is derived from the store when an agent opens, and only `apply` changes it, after the commit. A `Draft`
represents a change in preparation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ebbtide.changes import Change
from ebbtide.han import contains_han
from ebbtide.ids import NodeId
from ebbtide.memory.columns import Array, Columns, Scratch, places_in
from ebbtide.memory.link_table import LinkTable
from ebbtide.memory.strength import DecayTable, round_strength
from ebbtide.memory.texts import FoldedTexts, piece_of
from ebbtide.parameters import AgentParameters
from ebbtide.records import Link, Node, ScanState

MIN_DEAD = 1024
"""Fewer forgotten slots than this are not worth dropping."""


class NodeState(NamedTuple):
    """A node of the network, without its text. Lengths are in code points."""

    original_length: int
    content_length: int
    scan: ScanState


class LinkState(NamedTuple):
    """A link as written, and its current strength."""

    link: Link
    strength: float


class Network:
    """Nodes, links and focus of one agent."""

    def __init__(self, parameters: AgentParameters) -> None:
        self._parameters = parameters
        self.decay = DecayTable(parameters.decay_rate)
        self.slots = Columns(
            id=np.int64,
            alive=np.bool_,
            original_length=np.int32,
            content_length=np.int32,
            scan_count=np.int32,
            last_pass=np.int32,
            has_han=np.bool_,
            dangling_count=np.int32,
        )
        self.links = LinkTable()
        self.texts = FoldedTexts()
        self.focus: tuple[NodeId, ...] = ()
        self.next_node_id: NodeId = 1
        self.node_count = 0
        self.link_count = 0
        self.dead_kept = 0
        """Forgotten slots that stayed at the last clean-up because links pointed at them."""
        self.relations: list[str] = []
        self._relation_numbers: dict[str, int] = {}
        self._scratch: Scratch | None = None

    # --- slots and names ---------------------------------------------------------------------------

    def slot_of(self, node_id: NodeId) -> int:
        """Return the slot of a node, living or forgotten; -1 if it has none."""
        ids = self.slots["id"]
        count = len(ids)
        if count and 0 <= (guess := node_id - int(ids[0])) < count and ids[guess] == node_id:
            return guess  # nothing was dropped between the first node and this one
        slot = int(np.searchsorted(ids, node_id))
        return slot if slot < count and ids[slot] == node_id else -1

    def _slots_of(self, node_ids: Array) -> tuple[Array, Array]:
        """Return the slots of many nodes, and which of them have one."""
        return places_in(self.slots["id"], node_ids)

    def slots_of(self, node_ids: Sequence[NodeId] | Array) -> Array:
        """Return the slots of nodes that all have one."""
        slots, known = self._slots_of(np.asarray(node_ids, dtype=np.int64))
        assert bool(known.all()), "the node has a slot"
        return slots

    def relation_number(self, name: str) -> int:
        """Return the number of a relation name, assigning one if necessary."""
        number = self._relation_numbers.setdefault(name, len(self.relations))
        if number == len(self.relations):
            self.relations.append(name)
        return number

    def scratch(self) -> Scratch:
        """Return zeroed arrays by slot. The caller zeroes them again, or calls `spoil_scratch`."""
        if self._scratch is None or len(self._scratch.label) < self.slots.count:
            self._scratch = Scratch.of(self.slots.capacity)
        return self._scratch

    def spoil_scratch(self) -> None:
        """Discard the scratch arrays, because they were not zeroed."""
        self._scratch = None

    @property
    def resident_bytes(self) -> int:
        """Size of the arrays in bytes."""
        scratch = 0 if self._scratch is None else 37 * len(self._scratch.label)
        return self.slots.nbytes + self.links.nbytes + self.texts.nbytes + scratch

    # --- queries -----------------------------------------------------------------------------------

    @property
    def parameters(self) -> AgentParameters:
        """The agent's parameters. Before a new `decay_rate`, links must be `reanchored`."""
        return self._parameters

    @parameters.setter
    def parameters(self, parameters: AgentParameters) -> None:
        """Set the parameters."""
        if parameters.decay_rate != self._parameters.decay_rate:
            self.decay = DecayTable(parameters.decay_rate)
            self._refresh(np.arange(self.links.rows.count))
        self._parameters = parameters

    def __contains__(self, node_id: NodeId) -> bool:
        slot = self.slot_of(node_id)
        return slot >= 0 and bool(self.slots["alive"][slot])

    def are_alive(self, node_ids: Sequence[NodeId] | Array) -> Array:
        """Return which of these nodes live."""
        slots, known = self._slots_of(np.asarray(node_ids, dtype=np.int64))
        alive: Array = known.copy()
        alive[known] = self.slots["alive"][slots[known]]
        return alive

    def kept_shares(self, node_ids: Array) -> Array:
        """Return the share of the original length that each node still has, from 0 (forgotten or unknown) to 1."""
        slots, known = self._slots_of(np.asarray(node_ids, dtype=np.int64))
        shares = np.zeros(len(node_ids))
        slots = slots[known]
        original = np.maximum(self.slots["original_length"][slots], 1)
        shares[known] = self.slots["alive"][slots] * np.minimum(
            self.slots["content_length"][slots] / original, 1
        )
        return shares

    def node_ids(self, start: NodeId = 0) -> list[NodeId]:
        """Return the living nodes from `start` on, ascending."""
        first = int(np.searchsorted(self.slots["id"], start))
        found: list[int] = self.slots["id"][first:][self.slots["alive"][first:]].tolist()
        return found

    def node(self, node_id: NodeId) -> NodeState:
        """Return what is known of a living node."""
        assert node_id in self, "the node lives"
        slot, slots = self.slot_of(node_id), self.slots
        scan = ScanState(int(slots["scan_count"][slot]), int(slots["last_pass"][slot]))
        return NodeState(int(slots["original_length"][slot]), int(slots["content_length"][slot]), scan)

    def scan_count(self, node_id: NodeId) -> int:
        """Return how often a living node was scanned."""
        return int(self.slots["scan_count"][self.slot_of(node_id)])

    def focus_slots(self) -> Array:
        """Return the slots of the focus, newest first."""
        return self.slots_of(self.focus)

    def is_live(self, rows: Array) -> Array:
        """Return which links count: strong enough, with a living source."""
        table = self.links.rows
        alive = self.slots["alive"][table["source"][rows]]
        live: Array = alive & (table["now"][rows] >= self._parameters.link_break_threshold)
        return live

    def links_from(self, node_id: NodeId) -> Iterator[tuple[NodeId, str, float]]:
        """Return (target, relation, strength now) of every live link of the node, including dangling ones."""
        yield from self._ends(self.links.of_source(self.slot_of(node_id)), "target")

    def links_to(self, node_id: NodeId) -> Iterator[tuple[NodeId, str, float]]:
        """Return (source, relation, strength now) of every live link that points at the node."""
        yield from self._ends(self.links.of_target(self.slot_of(node_id)), "source")

    def _ends(self, rows: Array, end: str) -> Iterator[tuple[NodeId, str, float]]:
        rows = rows[self.is_live(rows)]
        table = self.links.rows
        ids = self.slots["id"][table[end][rows]].tolist()
        names = [self.relations[number] for number in table["relation"][rows].tolist()]
        return zip(ids, names, table["now"][rows].tolist(), strict=True)

    def dangling(self, node_id: NodeId) -> list[tuple[NodeId, str]]:
        """Return (target, relation) of the node's live links to forgotten nodes, by strength, newness and name."""
        slot = self.slot_of(node_id)
        if not self.slots["dangling_count"][slot]:
            return []
        rows = self.links.of_source(slot)
        rows = rows[~self.slots["alive"][self.links.rows["target"][rows]]]
        found = [
            (-round_strength(strength), -target, relation)
            for target, relation, strength in self._ends(rows, "target")
        ]
        return [(-target, relation) for _, target, relation in sorted(found)]

    def link_states(self, rows: Array) -> list[LinkState]:
        """Return the links of these rows, including broken and dangling ones."""
        found = zip(self._as_links(rows), self.links.rows["now"][rows].tolist(), strict=True)
        return [LinkState(link, now) for link, now in found]

    def _row_of(self, link: Link) -> int:
        rows, table = self.links.of_source(self.slot_of(link.source)), self.links.rows
        number = self._relation_numbers[link.relation]
        same = (table["target"][rows] == self.slot_of(link.target)) & (table["relation"][rows] == number)
        return int(rows[same][0])

    def _as_links(self, rows: Array) -> list[Link]:
        table, ids = self.links.rows, self.slots["id"]
        columns = (
            ids[table["source"][rows]],
            ids[table["target"][rows]],
            table["relation"][rows],
            table["written"][rows],
            table["anchor"][rows],
        )
        return [
            Link(source, target, self.relations[relation], written, anchor)
            for source, target, relation, written, anchor in zip(*(c.tolist() for c in columns), strict=True)
        ]

    # --- rewritten links ---------------------------------------------------------------------------

    def unlocked(self, leaving: Iterable[NodeId]) -> list[Link]:
        """Return the links of nodes that leave focus, written as 1.0 now; they decay from the next scan on."""
        return [
            Link(link.source, link.target, link.relation, 1.0, self.scan_count(link.source))
            for node_id in leaving
            for link in self._as_links(self.links.of_source(self.slot_of(node_id)))
        ]

    def reanchored(self) -> list[Link]:
        """Return every link at its present strength, to be written before `decay_rate` changes.

        Links locked by focus keep what was written; they are written as 1.0 when their source leaves focus.
        """
        table, slots = self.links.rows, self.slots
        counts = slots["scan_count"][table["source"]]
        stale = slots["alive"][table["source"]] & (table["anchor"] != counts)
        stale &= ~np.isin(table["source"], self.focus_slots())
        rows = np.flatnonzero(stale)
        return [
            Link(link.source, link.target, link.relation, strength, count)
            for link, strength, count in zip(
                self._as_links(rows), table["now"][rows].tolist(), counts[rows].tolist(), strict=True
            )
        ]

    # --- changes, after their commit ---------------------------------------------------------------

    def apply(self, change: Change) -> None:
        """Apply a committed change."""
        for node in change.nodes:
            self.put_node(node)
        for node_id in change.forgotten:
            self._forget(node_id)
        if change.deleted:
            self._delete(self.slots_of(change.deleted))
        if change.unnamed:
            self._drop_links(change.unnamed)
        self.put_links(change.links)
        if len(change.scanned):
            self._scan(self.slots_of(change.scanned), change.scanned_in)
        if change.focus is not None:
            self.set_focus(change.focus)
        if change.next_node_id is not None:
            self.next_node_id = change.next_node_id
        self._tidy()

    def put_node(self, node: Node) -> None:
        """Add a node or replace its text. New ids are higher than all others."""
        slot = self.slot_of(node.id)
        if slot < 0:
            ids = self.slots["id"]
            assert not len(ids) or node.id > ids[-1], "ids are given in ascending order"
            slot = self.slots.append(1, id=node.id, alive=True)
            self.node_count += 1
        self.slots["original_length"][slot] = node.original_length
        self.slots["content_length"][slot] = len(node.content)
        self.slots["has_han"][slot] = contains_han(node.content)
        self.texts.put(slot, piece_of(node.content, node.keywords))

    def put_links(self, links: Sequence[Link]) -> None:
        """Add links, or update strength and anchor of existing ones. The last of equal links counts."""
        if not links:
            return
        sources = self.slots_of([link.source for link in links])
        targets = self.slots_of([link.target for link in links])
        assert self.slots["alive"][sources].all(), "a link has a living source"
        numbers = [self.relation_number(link.relation) for link in links]
        ends = zip(sources.tolist(), targets.tolist(), numbers, strict=True)
        last = {key: place for place, key in enumerate(ends)}
        rows = np.array(self._rows_of_ends(list(last)), dtype=np.int64)
        places = np.array(list(last.values()), dtype=np.int64)
        new = np.flatnonzero(rows < 0)
        added = places[new]
        table = self.links.rows
        first = table.append(
            len(new), source=sources[added], target=targets[added], relation=np.array(numbers)[added]
        )
        rows[new] = np.arange(first, table.count)
        table["written"][rows] = np.array([link.strength for link in links])[places]
        table["anchor"][rows] = np.array([link.anchor for link in links])[places]
        self.link_count += len(new)
        dangling = sources[added][~self.slots["alive"][targets[added]]]
        np.add.at(self.slots["dangling_count"], dangling, 1)
        self._refresh(rows)

    def _rows_of_ends(self, ends: Sequence[tuple[int, int, int]]) -> list[int]:
        """Return the row of each (source slot, target slot, relation number); -1 if there is no such link."""
        known: dict[int, dict[tuple[int, int], int]] = {}
        table = self.links.rows
        found = []
        for source, target, relation in ends:
            own = known.get(source)
            if own is None:
                rows = self.links.of_source(source)
                others = zip(table["target"][rows].tolist(), table["relation"][rows].tolist(), strict=True)
                own = known[source] = dict(zip(others, rows.tolist(), strict=True))
            found.append(own.get((target, relation), -1))
        return found

    def _forget(self, node_id: NodeId) -> None:
        slot = self.slot_of(node_id)
        self.slots["alive"][slot] = False
        self.texts.drop(slot)
        self.node_count -= 1
        self.link_count -= len(self.links.of_source(slot))
        sources = self.links.rows["source"][self.links.of_target(slot)]
        np.add.at(self.slots["dangling_count"], sources, 1)

    def _delete(self, slots: Array) -> None:
        """Remove nodes with the links at both ends; nothing dangles."""
        gone, table = np.isin(self.slots["id"], self.slots["id"][slots]), self.links.rows
        kept = self.slots["alive"][table["source"]] & ~gone[table["source"]] & ~gone[table["target"]]
        self.slots["alive"][slots] = False
        for slot in slots.tolist():
            self.texts.drop(slot)
        self.node_count -= len(slots)
        self.links.merge(np.flatnonzero(kept), None, self.slots.count)
        self.link_count = self.links.rows.count

    def _drop_links(self, links: Sequence[Link]) -> None:
        kept = np.ones(self.links.rows.count, dtype=np.bool_)
        kept[[self._row_of(link) for link in links]] = False
        dropped = self.links.rows["source"][~kept]
        dangling = dropped[~self.slots["alive"][self.links.rows["target"][~kept]]]
        np.subtract.at(self.slots["dangling_count"], dangling, 1)
        kept &= self.slots["alive"][self.links.rows["source"]]
        self.links.merge(np.flatnonzero(kept), None, self.slots.count)
        self.link_count = self.links.rows.count

    def _scan(self, slots: Array, pass_number: int) -> None:
        self.slots["scan_count"][slots] += 1
        self.slots["last_pass"][slots] = pass_number
        scratch = self.scratch()
        scratch.member[slots] = True
        member = scratch.member[: self.slots.count]
        rows = self.links.of_sources(slots, member)
        self._refresh(np.flatnonzero(member[self.links.rows["source"]]) if rows is None else rows)
        scratch.member[slots] = False

    def set_focus(self, focus: tuple[NodeId, ...]) -> None:
        """Set the focus. Its links are locked at 1.0; those of other nodes are unlocked."""
        before, self.focus = self.focus, focus
        for slot in map(self.slot_of, {*before, *focus}):
            if slot >= 0:
                self._refresh(self.links.of_source(slot))

    def _refresh(self, rows: Array) -> None:
        """Recompute `now`. Links of a source in focus are locked at 1.0 (section 3)."""
        table = self.links.rows
        sources = table["source"][rows]
        ages = self.slots["scan_count"][sources] - table["anchor"][rows]
        now = table["written"][rows] * self.decay.factors(ages)
        now[np.isin(sources, self.focus_slots())] = 1.0
        table["now"][rows] = now

    def decayed(self, rows: Array, more_scans: Array) -> Array:
        """Return the strength of links after additional scans of their sources."""
        table = self.links.rows
        ages = self.slots["scan_count"][table["source"][rows]] - table["anchor"][rows] + more_scans
        strengths: Array = table["written"][rows] * self.decay.factors(ages)
        return strengths

    # --- clean-up of the arrays --------------------------------------------------------------------

    def _tidy(self) -> None:
        # Slots that a link points at stay, so only nodes forgotten since the last time can be dropped.
        newly_dead = self.slots.count - self.node_count - self.dead_kept
        if newly_dead > max(MIN_DEAD, self.slots.count // 4):
            self._drop_dead()
        elif self.links.wants_merge:
            alive = self.slots["alive"][self.links.rows["source"]]
            keep = None if alive.all() else np.flatnonzero(alive)
            self.links.merge(keep, None, self.slots.count)

    def _drop_dead(self) -> None:
        """Drop forgotten slots that no link points at, and links of forgotten nodes."""
        table = self.links.rows
        keep = np.flatnonzero(self.slots["alive"][table["source"]])
        needed = self.slots["alive"].copy()
        needed[table["target"][keep]] = True
        kept = np.flatnonzero(needed)
        slot_of = np.zeros(self.slots.count, dtype=np.int32)
        slot_of[kept] = np.arange(len(kept))
        self.slots.keep(kept)
        self.links.merge(keep, slot_of, len(kept))
        self.texts.renumber(kept)
        self.dead_kept = len(kept) - self.node_count
        self._scratch = None
