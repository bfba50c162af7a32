"""A reference implementation of recall without the engine: best-first search with `heapq` over dictionaries.

It follows the rules of docs/memory-model.md and keeps the whole memory in dictionaries, with strengths already
decayed. It returns the same memories in the same order, and the same sentences about forgotten memories; a benchmark
that uses it compares every answer. Its own correctness is tested against the oracle of the property tests, which is
simpler still, and too slow for large memories.

A path is labelled (strength rounded to 12 significant digits, position of its focus, hops, exact strength). Labels
never improve along a path, so nodes leave the heap in the order of their best labels. A node that leaves it again
with fewer hops is expanded again, because a weaker path may reach further.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from ebbtide.han import contains_han
from ebbtide.parameters import AgentParameters
from ebbtide.records import Cue
from ebbtide.store.lmdb.transaction import ReadTransaction

SAME_NAMES = {"previous": "上文", "next": "下文"}
ORDERS = {
    "上文": (
        "[记忆] 在它之前还有一件事，但我想不起来了",
        "[Memory] Something came before it, but I can't recall what",
    ),
    "下文": (
        "[记忆] 在它之后还有一件事，但我想不起来了",
        "[Memory] Something came after it, but I can't recall what",
    ),
}
"""The sentences about links that state only an order. They are left out where a memory matches."""
MOST_SENTENCES = 3
NEARLY = 1 - 1e-11
"""Strengths further apart than this cannot be equal in 12 digits; saves rounding most of them."""

Links = dict[int, list[tuple[int, str, float]]]
"""Source to (target, folded relation, strength)."""


@dataclass(frozen=True, slots=True)
class PlainAnswer:
    """The result of a recall."""

    memories: list[tuple[int, str]]
    once_known: list[str]
    reached_count: int


@dataclass(slots=True)
class PlainMemory:
    """A memory in dictionaries. Links carry their strength while the source is not in focus."""

    threshold: float
    contents: dict[int, str] = field(default_factory=dict)
    keywords: dict[int, tuple[str, ...]] = field(default_factory=dict)
    links: Links = field(default_factory=dict)
    lost: dict[int, list[tuple[int, str, float]]] = field(default_factory=dict)
    """Links whose target was forgotten, with the relation as it is written."""

    @classmethod
    def read(cls, txn: ReadTransaction, parameters: AgentParameters) -> PlainMemory:
        """Read the contents of a store into dictionaries."""
        memory = cls(parameters.link_break_threshold)
        for node in txn.nodes.all():
            memory.add_node(node.id, node.content, node.keywords)
        scan_counts = {node_id: scan.count for node_id, scan in txn.scans.all()}
        rate = parameters.decay_rate
        for link in txn.links.all():
            age = scan_counts.get(link.source, 0) - link.anchor
            memory.add_link(link.source, link.target, link.relation, link.strength * rate**age)
        return memory

    def add_node(self, node_id: int, content: str, keywords: tuple[str, ...]) -> None:
        """Add a node; all nodes come before the first link."""
        self.contents[node_id], self.keywords[node_id] = content, keywords
        self.links[node_id] = []

    def add_link(self, source: int, target: int, relation: str, strength: float) -> None:
        """Add a link with its strength as of now."""
        if target in self.contents:
            self.links[source].append((target, _folded(relation), strength))
        else:
            self.lost.setdefault(source, []).append((target, relation, strength))

    # --- the walk ------------------------------------------------------------------------------------

    def reach(
        self, focus: tuple[int, ...], relations: frozenset[str], depth: int
    ) -> dict[int, tuple[float, int]]:
        """Return (negative rounded strength, position of the focus) of every node within reach."""
        reached: dict[int, tuple[float, int]] = {}
        fewest_hops: dict[int, int] = {}
        heap = [(-1.0, position, 0, -1.0, node_id) for position, node_id in enumerate(focus)]
        heapify(heap)
        best = {entry[4]: entry for entry in heap}
        while heap:
            rounded, position, hops, exact, node_id = heappop(heap)
            if node_id not in reached:
                reached[node_id] = (rounded, position)
            elif hops >= fewest_hops[node_id]:
                continue
            fewest_hops[node_id] = hops
            if hops == depth:
                continue
            hops += 1
            is_locked = node_id in focus
            for target, relation, strength in self.links[node_id]:
                if is_locked:
                    strength = 1.0
                elif strength < self.threshold:
                    continue
                if relations and relation not in relations:
                    continue
                # The path that left the heap earlier was stronger; this one can only help by having fewer hops.
                if fewest_hops.get(target, depth + 1) <= hops:
                    continue
                worth = exact * strength
                known = best.get(target)
                if known is not None and hops >= known[2] and worth > known[3] * NEARLY:
                    continue
                label = (float(f"{worth:.12g}"), position, hops, worth, target)
                if known is None or label < known:
                    best[target] = label
                elif hops >= known[2]:
                    continue
                heappush(heap, label)
        return reached

    # --- the answer ----------------------------------------------------------------------------------

    def recall(self, focus: tuple[int, ...], cue: Cue) -> PlainAnswer:
        """Return the memories that a cue recalls."""
        relations = frozenset(map(_folded, cue.relations))
        reached = self.reach(focus, relations, cue.depth)
        order = sorted(reached, key=lambda node_id: (*reached[node_id], -node_id))
        wanted = [keyword.casefold() for keyword in cue.keywords]
        memories: list[tuple[int, str]] = []
        sentences: list[str] = []
        is_any = False
        for node_id in order:
            if not self._matches(node_id, wanted):
                continue
            is_any = True
            if len(memories) < cue.max_results and not (relations and node_id in focus):
                memories.append((node_id, self.contents[node_id]))
            self._tell_lost(node_id, focus, relations, sentences, matches=True)
            if len(memories) == cue.max_results and len(sentences) == MOST_SENTENCES:
                break
        if not is_any:
            for node_id in order:
                self._tell_lost(node_id, focus, relations, sentences)
                if len(sentences) == MOST_SENTENCES:
                    break
        return PlainAnswer(memories, sentences, len(reached))

    def _matches(self, node_id: int, wanted: list[str]) -> bool:
        if not wanted:
            return True
        content = self.contents[node_id].casefold()
        if any(keyword in content for keyword in wanted):
            return True
        return any(keyword in own.casefold() for own in self.keywords[node_id] for keyword in wanted)

    def _tell_lost(
        self,
        node_id: int,
        focus: tuple[int, ...],
        relations: frozenset[str],
        sentences: list[str],
        *,
        matches: bool = False,
    ) -> None:
        """Append the sentences about the forgotten neighbours of a node, strongest first, without duplicates."""
        links = []
        for target, relation, strength in self.lost.get(node_id, ()):
            strength = 1.0 if node_id in focus else strength
            if strength >= self.threshold and (not relations or _folded(relation) in relations):
                links.append((-float(f"{strength:.12g}"), -target, relation))
        for _, _, relation in sorted(links):
            if matches and (not relation or _folded(relation) in ORDERS):
                continue
            sentence = _sentence(relation, is_chinese=contains_han(self.contents[node_id]))
            if len(sentences) < MOST_SENTENCES and sentence not in sentences:
                sentences.append(sentence)


def _folded(relation: str) -> str:
    folded = relation.casefold()
    return SAME_NAMES.get(folded, folded)


def _sentence(relation: str, *, is_chinese: bool) -> str:
    name = re.sub(r"\s+", " ", relation)
    if _folded(name) in ORDERS:
        return ORDERS[_folded(name)][0 if is_chinese else 1]
    if is_chinese:
        return f"[记忆] 它有个{name}，但我想不起来了" if name else "[记忆] 与某个已遗忘的事物有关联"
    if name:
        return f'[Memory] It had to do with "{name}", but I can\'t recall how'
    return "[Memory] It was linked to something now forgotten"
