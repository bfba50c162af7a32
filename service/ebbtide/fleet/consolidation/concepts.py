"""The step of a consolidation that finds concepts: groups of statements and entities that belong together.

Groups are found by label propagation. A concept has the best keywords that its members share, and keeps its id while
its members hardly change. The rule guarded here: words are read, and members are checked, in the part that writes them,
so nothing that was deleted since the step began comes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from ebbtide.changes import Change
from ebbtide.entity_names import entity_key
from ebbtide.fleet.consolidation.steps import Finding, Part, View
from ebbtide.ids import NodeId
from ebbtide.memory.communities import (
    MIN_CLUSTER,
    Propagation,
    best_words,
    graph_of,
    matched,
    shared_words,
)
from ebbtide.memory.subjects import ASSISTANT, USER
from ebbtide.records import Concept

MAX_CONCEPTS = 1000
"""Most concepts of an agent: the largest groups."""
MAX_MEMBERS = 1000
"""A larger group is no concept: it says nothing about its members."""
CONCEPTS_PER_COMMIT = 50
MAX_SHOWN = 16
"""Most members that a finding names."""

_SPEAKERS = frozenset(map(entity_key, (USER, ASSISTANT)))
_MORE = Part(position=1)
"""There is more to do. An interrupted step begins again, so the position means nothing else."""


class Concepts:
    """Finds the concepts of an agent, and replaces those that are outdated."""

    def __init__(self) -> None:
        self._ids: Sequence[NodeId] = ()
        self._propagation: Propagation | None = None
        self._groups: list[list[NodeId]] | None = None
        self._counted = 0
        self._groups_with: Counter[str] = Counter()
        """The number of groups that share each word."""
        self._continued: list[NodeId | None] | None = None
        """The concept that each group continues."""
        self._stale: set[NodeId] = set()
        self._written = 0

    def part(self, view: View, position: int, is_time_up: Callable[[], bool]) -> Part:
        """Link, group, count words, or write some concepts."""
        if self._propagation is None:
            return self._begin(view)
        if self._groups is None:
            if self._propagation.advance(is_time_up):
                groups = sorted(self._propagation.groups(MIN_CLUSTER), key=len, reverse=True)
                small = [group for group in groups if len(group) <= MAX_MEMBERS][:MAX_CONCEPTS]
                self._groups = [[self._ids[place] for place in group.tolist()] for group in small]
            return _MORE
        if self._counted < len(self._groups):
            return self._count(view, self._groups, is_time_up)
        if self._continued is None:
            known = {one.id: frozenset(one.members) for one in view.txn.concepts.all()}
            self._continued = matched(known, [frozenset(group) for group in self._groups])
            self._stale = set(known)
        return self._write(view, self._groups, self._continued, is_time_up)

    def _begin(self, view: View) -> Part:
        network, replay = view.network, view.ledger.known()
        keys = network.entity_of_key
        merged = [(one.target, one.other) for one in replay.rulings if one.kind == "merge"]
        graph = graph_of(network, merged, [keys[key] for key in _SPEAKERS if key in keys])
        self._ids = graph.ids.tolist()
        self._propagation = Propagation(len(self._ids), graph.sources, graph.targets, graph.strengths)
        return Part(looked=len(self._ids), position=1)

    def _count(self, view: View, groups: list[list[NodeId]], is_time_up: Callable[[], bool]) -> Part:
        """Count in how many groups each word is shared."""
        while self._counted < len(groups):
            self._groups_with.update(_words(view, groups[self._counted]).keys())
            self._counted += 1
            if is_time_up():
                break
        return _MORE

    def _write(
        self,
        view: View,
        groups: list[list[NodeId]],
        continued: list[NodeId | None],
        is_time_up: Callable[[], bool],
    ) -> Part:
        """Write the concepts of some groups; with the last ones, delete the outdated ones."""
        change, findings = Change(), []
        next_id = view.network.next_node_id
        while self._written < len(groups) and len(change.concepts) < CONCEPTS_PER_COMMIT:
            members = tuple(one for one in groups[self._written] if one in view.network)
            earlier = continued[self._written]
            self._written += 1
            known = None if earlier is None else view.txn.concepts.get(earlier)
            words = self._best(view, members, len(groups))
            if words:
                found = Concept(
                    next_id if known is None else known.id,
                    tuple(words),
                    members,
                    view.now_ms if known is None else known.created_at_ms,
                )
                self._stale.discard(found.id)
                if found != known:
                    next_id += known is None
                    change.concepts.append(found)
                    findings.append(Finding(members[:MAX_SHOWN], "belong together"))
            if is_time_up():
                break
        if next_id != view.network.next_node_id:
            change.next_node_id = next_id
        is_done = self._written == len(groups)
        if is_done:
            change.deleted_concepts = sorted(one for one in self._stale if view.txn.concepts.get(one))
        changed = len(change.concepts) + len(change.deleted_concepts)
        return Part(
            changed=changed,
            change=change if changed else None,
            findings=findings,
            position=None if is_done else 1,
        )

    def _best(self, view: View, members: Sequence[NodeId], group_count: int) -> list[str]:
        """Return the best words of a group as it is now; none if it became too small."""
        if len(members) < MIN_CLUSTER:
            return []
        words = _words(view, members)
        groups_with = {word: max(1, self._groups_with[word]) for word in words}
        return best_words(words, groups_with, group_count)


def _words(view: View, members: Sequence[NodeId]) -> dict[str, int]:
    """Return the keywords that members share, without the names of the speakers."""
    said: list[Sequence[str]] = []
    for one in members:
        node = view.txn.nodes.get(one)
        if node is not None:
            said.append([word for word in node.keywords if entity_key(word) not in _SPEAKERS])
        elif (entity := view.txn.entities.get(one)) is not None:
            said.append([entity.name])
    return shared_words(said)
