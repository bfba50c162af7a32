"""The network of one agent: nodes, links, importance, decay. Pure; no clock, no dice, no disk.

**What protects a memory** is here and nowhere else: `importance` is the sum of the strengths of the live
links that point *at* a node (memory model, section 2). What a node points at does not help it; who points at
it does. A node in focus lends 1.0 along each of its links while it stays there, so whatever is being talked
about holds up what it is linked to. At importance 1 and above a memory is kept whole, below 1 it keeps that
share of its original length, at 0 it is forgotten.

**How links decay** (section 3): each scan of its *source* multiplies a link by `decay_rate`. Strength is
therefore not rewritten at scans; a link holds the strength it was written with and the source's scan count
at that moment (its anchor), and

    strength_now = strength_written * decay_rate ** (scan_count(source) - anchor)

**Forgetting leaves a trace.** A forgotten node takes its outgoing links with it. Links that pointed at it
stay in their sources and dangle: no part in importance or search, but `dangling` tells them.

A `Network` is derived state: built from the store when an agent opens, changed only by `apply` after the
change was committed. A `Draft` is a change in the making: it answers the same questions as if the change had
been applied already, which is what a compression pass needs, where nodes visited earlier count decayed and
nodes forgotten earlier count nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import floor, fsum

from ebbtide.parameters import AgentParameters
from ebbtide.vocabulary import NEVER_SCANNED, Change, Link, Node, NodeId, ScanState

WHOLE = 1 - 1e-9
"""Importance from which a memory counts as fully supported (section 2: "≥ 1" means ≥ 1 - 1e-9)."""


def target_length(original_length: int, importance: float) -> int:
    """Characters a memory of this importance may keep (section 2)."""
    return floor(original_length * min(importance, 1.0) + 1e-9)


def round_strength(value: float) -> float:
    """Rounded to 12 significant digits: two paths of equal worth must compare equal (section 6)."""
    return float(f"{value:.11e}")


class NodeState:
    """What the network knows of a node without its text. Lengths in code points."""

    __slots__ = ("content_length", "original_length", "scan")

    def __init__(self, original_length: int, content_length: int, scan: ScanState) -> None:
        self.original_length = original_length
        self.content_length = content_length
        self.scan = scan


class LinkState:
    """A link's strength as written, and the scan count of its source at that moment."""

    __slots__ = ("anchor", "strength")

    def __init__(self, strength: float, anchor: int) -> None:
        self.strength = strength
        self.anchor = anchor


class Network:
    """Nodes, links and focus of one agent, without texts."""

    def __init__(self, parameters: AgentParameters) -> None:
        self.parameters = parameters
        self.nodes: dict[NodeId, NodeState] = {}
        self.outgoing: dict[NodeId, dict[tuple[NodeId, str], LinkState]] = {}
        self.incoming: dict[NodeId, dict[tuple[NodeId, str], LinkState]] = {}
        self.focus: tuple[NodeId, ...] = ()
        self.next_node_id: NodeId = 1
        self.link_count = 0

    # --- questions ---------------------------------------------------------------------------------

    def strength(self, source: NodeId, link: LinkState) -> float:
        """A link's strength now: 1.0 while its source is in focus, else decayed by the source's scans."""
        if source in self.focus:
            return 1.0
        age = self.nodes[source].scan.count - link.anchor
        return link.strength * self.parameters.decay_rate**age

    def is_live(self, strength: float) -> bool:
        """Whether a link of this strength still plays a part."""
        return strength >= self.parameters.link_break_threshold

    def importance(self, node_id: NodeId) -> float:
        """The support a node receives: the sum of the live links that point at it."""
        return Draft(self).importance(node_id)

    def links_from(self, node_id: NodeId) -> Iterator[tuple[NodeId, str, float]]:
        """(target, relation, strength now) of every live link of the node, dangling ones included."""
        for (target, relation), link in self.outgoing.get(node_id, {}).items():
            strength = self.strength(node_id, link)
            if self.is_live(strength):
                yield target, relation, strength

    def links_to(self, node_id: NodeId) -> Iterator[tuple[NodeId, str, float]]:
        """(source, relation, strength now) of every live link that points at the node."""
        for (source, relation), link in self.incoming.get(node_id, {}).items():
            strength = self.strength(source, link)
            if self.is_live(strength):
                yield source, relation, strength

    def dangling(self, node_id: NodeId) -> list[tuple[NodeId, str]]:
        """(target, relation) of the node's live links to forgotten nodes: strongest, newest, then by name."""
        found = [
            (-round_strength(strength), -target, relation)
            for target, relation, strength in self.links_from(node_id)
            if target not in self.nodes
        ]
        return [(-target, relation) for _, target, relation in sorted(found)]

    # --- links written anew ------------------------------------------------------------------------

    def unlocked(self, leaving: Iterable[NodeId]) -> list[Link]:
        """The links of nodes that leave focus: written as 1.0 now, to decay from the next scan on."""
        return [
            Link(source, target, relation, 1.0, self.nodes[source].scan.count)
            for source in leaving
            for target, relation in self.outgoing.get(source, {})
        ]

    def reanchored(self) -> list[Link]:
        """Every link at its present strength: what must be written before `decay_rate` changes.

        Links locked by focus keep what was written; they are written as 1.0 when their source leaves.
        """
        return [
            Link(source, target, relation, self.strength(source, link), self.nodes[source].scan.count)
            for source, links in self.outgoing.items()
            if source not in self.focus
            for (target, relation), link in links.items()
            if link.anchor != self.nodes[source].scan.count
        ]

    # --- changes, after their commit ---------------------------------------------------------------

    def apply(self, change: Change) -> None:
        """Follow a committed change."""
        for node in change.nodes:
            self.put_node(node)
        for node_id in change.forgotten:
            self._forget(node_id)
        for link in change.links:
            self.put_link(link)
        for node_id, scan in change.scans.items():
            self.nodes[node_id].scan = scan
        if change.focus is not None:
            self.focus = change.focus
        if change.next_node_id is not None:
            self.next_node_id = change.next_node_id

    def put_node(self, node: Node) -> None:
        """Add a node, or take the new length of one that was rewritten."""
        known = self.nodes.get(node.id)
        if known is None:
            state = NodeState(node.original_length, len(node.content), NEVER_SCANNED)
            self.nodes[node.id] = state
        else:
            known.content_length = len(node.content)

    def put_link(self, link: Link) -> None:
        """Add a link, or give an existing one a new strength and anchor."""
        assert link.source in self.nodes, "a link must have a living source"
        links = self.outgoing.setdefault(link.source, {})
        known = links.get((link.target, link.relation))
        if known is not None:
            known.strength, known.anchor = link.strength, link.anchor
            return
        state = LinkState(link.strength, link.anchor)
        links[link.target, link.relation] = state
        self.incoming.setdefault(link.target, {})[link.source, link.relation] = state
        self.link_count += 1

    def _forget(self, node_id: NodeId) -> None:
        del self.nodes[node_id]
        for target, relation in self.outgoing.pop(node_id, {}):
            arriving = self.incoming[target]
            del arriving[node_id, relation]
            self.link_count -= 1
            if not arriving:
                del self.incoming[target]


class Draft:
    """A change in the making, seen as if it had been applied."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.change = Change()
        self._gone: set[NodeId] = set()

    def __contains__(self, node_id: NodeId) -> bool:
        return node_id in self.network.nodes and node_id not in self._gone

    @property
    def node_count(self) -> int:
        """Living nodes, those of the change included."""
        return len(self.network.nodes) - len(self._gone) + len(self.change.nodes)

    @property
    def focus(self) -> tuple[NodeId, ...]:
        """The focus as it will be, newest first."""
        return self.network.focus if self.change.focus is None else self.change.focus

    def scan_state(self, node_id: NodeId) -> ScanState:
        """How often the node was scanned, this change included."""
        return self.change.scans.get(node_id) or self.network.nodes[node_id].scan

    def importance(self, node_id: NodeId) -> float:
        """The support a node receives: the sum of the live links that point at it (section 2)."""
        network = self.network
        # A source that leaves focus in this very change was locked until now and is written as 1.0.
        focus = {*network.focus, *self.focus}
        parameters, scans, gone = network.parameters, self.change.scans, self._gone
        rate, threshold = parameters.decay_rate, parameters.link_break_threshold
        support = []
        for (source, _), link in network.incoming.get(node_id, {}).items():
            if source in gone:
                continue
            if source in focus:
                support.append(1.0)
                continue
            scan = scans.get(source) or network.nodes[source].scan
            strength = link.strength * rate ** (scan.count - link.anchor)
            if strength >= threshold:
                support.append(strength)
        return fsum(support)

    def forget(self, node_id: NodeId) -> None:
        """The node goes, and its outgoing links with it; links that point at it stay and dangle."""
        assert node_id in self
        self._gone.add(node_id)
        self.change.forgotten.append(node_id)
        self.change.scans.pop(node_id, None)
        if self.change.links:
            self.change.links = [link for link in self.change.links if link.source != node_id]

    def scan(self, node_id: NodeId, pass_number: int) -> None:
        """Count one scan: every link of the node decays by one step."""
        self.change.scans[node_id] = ScanState(self.scan_state(node_id).count + 1, pass_number)

    def set_focus(self, focus: tuple[NodeId, ...]) -> None:
        """Replace the focus; the links of living nodes that leave it are written as 1.0."""
        leaving = [n for n in self.network.focus if n not in focus and n in self]
        self.change.links.extend(self.network.unlocked(leaving))
        self.change.focus = focus
