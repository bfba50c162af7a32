"""A draft: a change that is being computed, viewed as if it were applied.

A compression pass needs this: links of nodes visited earlier count decayed, and forgotten nodes do not count. The
network itself stays untouched until the change is committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

import numpy as np

from ebbtide.changes import Change
from ebbtide.ids import NodeId
from ebbtide.memory.columns import Array
from ebbtide.memory.network import Network


class Draft:
    """A network and the `change` in preparation."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.change = Change()
        self._gone: set[int] = set()
        self._absent: Array | None = None
        self._scans: Array | None = None

    def __contains__(self, node_id: NodeId) -> bool:
        return node_id in self.network and self.network.slot_of(node_id) not in self._gone

    @property
    def node_count(self) -> int:
        """Number of living nodes, including new ones."""
        return self.network.node_count - len(self._gone) + len(self.change.nodes)

    @property
    def focus(self) -> tuple[NodeId, ...]:
        """The new focus, newest first."""
        return self.network.focus if self.change.focus is None else self.change.focus

    def living(self, *, outside_focus: bool = False) -> list[NodeId]:
        """Return the nodes of the network that the change leaves alive, ascending."""
        left_out = {int(self.network.slots["id"][slot]) for slot in self._gone}
        if outside_focus:
            left_out.update(self.focus)
        return [node_id for node_id in self.network.node_ids() if node_id not in left_out]

    def places_of_living(self, node_ids: Sequence[NodeId] | Array) -> Array:
        """Return the positions of the living nodes in the list."""
        alive = self.network.are_alive(node_ids)
        if self._gone:
            alive &= ~np.isin(node_ids, self.network.slots["id"][list(self._gone)])
        return np.flatnonzero(alive)

    def scan_count(self, node_id: NodeId) -> int:
        """Return how often the node was scanned, including this change."""
        slot = self.network.slot_of(node_id)
        extra_scans = 0 if self._scans is None else int(self._scans[slot])
        return int(self.network.slots["scan_count"][slot]) + extra_scans

    # --- importance --------------------------------------------------------------------------------

    def importance(self, node_id: NodeId) -> float:
        """Return the support of a node: the sum of the live links that point at it (section 2)."""
        rows = self.network.links.of_target(self.network.slot_of(node_id))
        sources = self.network.links.rows["source"][rows]
        return fsum(self._support(rows, sources, self._scans_of(sources)).tolist())

    def importances(self, slots: Array, rank: Array) -> Array:
        """Return the importance of many nodes, each at the moment of its visit.

        `rank` contains, by slot, the position in this pass of nodes still to be visited, from 1; 0 for all others. A
        link whose source is visited before its target counts decayed by one more scan, unless it is locked.
        """
        network = self.network
        member = network.scratch().member
        member[slots] = True
        rows = network.links.of_targets(slots, member[: network.slots.count])
        member[slots] = False
        table = network.links.rows
        sources, targets = table["source"][rows], table["target"][rows]
        ranks, turns = rank[sources], rank[targets]
        support = self._support(rows, sources, self._scans_of(sources) + ((ranks > 0) & (ranks < turns)))
        by_rank = np.bincount(turns, weights=support, minlength=int(rank[slots].max()) + 1)
        importances: Array = by_rank[rank[slots]]
        return importances

    def _scans_of(self, sources: Array) -> Array:
        """Return the scans of these slots in this change."""
        if self._scans is None:
            return np.zeros(len(sources), dtype=np.int32)
        extra_scans: Array = self._scans[sources]
        return extra_scans

    def _support(self, rows: Array, sources: Array, more_scans: Array) -> Array:
        """Return what each link contributes to its target: its strength if it is live, else 0."""
        network = self.network
        strengths = network.links.rows["now"][rows]
        scanned = np.flatnonzero(more_scans)
        strengths[scanned] = network.decayed(rows[scanned], more_scans[scanned])
        alive = network.slots["alive"][sources]
        if self._absent is not None:
            alive = alive & ~self._absent[sources]
        support: Array = np.where(
            alive & (strengths >= network.parameters.link_break_threshold), strengths, 0.0
        )
        # A source that leaves focus in this change was locked until now and is written as 1.0.
        focus = self._locked()
        if len(focus):
            support[np.isin(sources, focus) & alive] = 1.0
        return support

    def _locked(self) -> Array:
        """Return the slots of nodes in focus before or after this change. New nodes have no slot yet."""
        if self.change.focus is None:
            return self.network.focus_slots()
        made = {node.id for node in self.change.nodes}
        return self.network.slots_of(list({*self.network.focus, *self.change.focus} - made))

    # --- what changes ------------------------------------------------------------------------------

    def forget(self, node_id: NodeId) -> None:
        """Forget a node and its outgoing links. Links that point at it stay and dangle."""
        assert node_id in self
        slot = self.network.slot_of(node_id)
        self._gone.add(slot)
        if self._absent is None:
            self._absent = np.zeros(self.network.slots.count, dtype=np.bool_)
        self._absent[slot] = True
        self.change.forgotten.append(node_id)
        if self.change.links:
            self.change.links = [link for link in self.change.links if link.source != node_id]

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

    def set_focus(self, focus: tuple[NodeId, ...]) -> None:
        """Replace the focus. Links of living nodes that leave it are written as 1.0."""
        leaving = [n for n in self.network.focus if n not in focus and n in self]
        self.change.links.extend(self.network.unlocked(leaving))
        self.change.focus = focus
