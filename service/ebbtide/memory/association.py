"""Association: search from the focus outward along the strongest paths (memory model, section 6).

The strength of a path is the product of its links' strengths. A node's strength is that of its strongest path **of at
most `depth` hops**. This is not Dijkstra's problem: a stronger but longer path must not hide nodes that only a weaker,
shorter path can still reach. The search is Bellman-Ford by hops (R. Bellman, "On a routing problem", 1958): hop h
extends only nodes that improved with exactly h - 1 hops. Any other path is dominated by one that is no weaker and no
longer.

Among equally strong paths the one from the newest focus counts. Paths are compared by (strength rounded to 12
significant digits, newness of the focus), packed into one integer, the node's *label*: 0 = not reached, greater =
better. Among equal labels, fewer hops and then the greater unrounded strength count.

A hop is a few array operations on the links that leave the frontier. Nothing is changed. Only reached nodes are
examined: texts are matched in order of strength until enough match; if that would take too long, all texts are searched
at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ebbtide.ids import NodeId
from ebbtide.memory.columns import Array, Scratch
from ebbtide.memory.network import Network
from ebbtide.memory.strength import ranks_of, round_strength
from ebbtide.memory.texts import folded
from ebbtide.memory.wording import MEMORIES_OF_LOSS, word_dangling
from ebbtide.records import Cue

NEIGHBOUR_SYNONYMS = {"previous": "上文", "next": "下文"}
"""Names with the same meaning in both languages."""

POSITION_BITS = 6
"""Bits of a label for the newness of the focus: `focus_limit` is at most 64."""

NEWEST = (1 << POSITION_BITS) - 1

NEARLY = 1 - 2e-11
"""Strengths further apart than this factor differ within 12 significant digits."""

FIRST_TRY = 4
"""How many times the requested results are matched first; that suffices for common words."""

GROWTH = 4
"""Growth of that number when too few match."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A reached node: the strength of its strongest path, and the newest focus at which such a path starts."""

    node_id: NodeId
    strength: float
    position: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a recall: memories in order, and sentences about forgotten nodes."""

    memories: tuple[tuple[Reached, str], ...] = ()
    once_known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reach:
    """The reached slots with their labels and unrounded strengths."""

    slots: Array
    labels: Array
    worths: Array

    def in_order(self, chosen: Array) -> Array:
        """Return the chosen positions sorted by label and then id, both descending."""
        newest_first = chosen[np.argsort(-self.slots[chosen], kind="stable")]
        ordered: Array = newest_first[np.argsort(-self.labels[newest_first], kind="stable")]
        return ordered

    def first(self, chosen: Array, most: int) -> Array:
        """Return the first `most` of the chosen positions in order."""
        if len(chosen) > 2 * most > 0:
            labels = self.labels[chosen]
            chosen = chosen[labels >= np.partition(labels, len(labels) - most)[len(labels) - most]]
        return self.in_order(chosen)[:most]


def fold_relation(name: str) -> str:
    """Return a relation name in the form in which names are compared."""
    name = name.casefold()
    return NEIGHBOUR_SYNONYMS.get(name, name)


@dataclass(frozen=True, slots=True)
class Association:
    """Reached nodes as unordered arrays: ids and the strength of the strongest path to each."""

    node_ids: Array
    worths: Array


def associate(network: Network, depth: int, start: Sequence[NodeId] | None = None) -> Association:
    """Return the nodes within `depth` hops of the focus, or of the `start` nodes, by any link."""
    slots = None if start is None else network.slots_of([n for n in start if n in network])
    found = _walk(network, None, depth, slots)
    return Association(network.slots["id"][found.slots], found.worths)


def recall(network: Network, cue: Cue, content_of: Callable[[NodeId], str], locale: str) -> Answer:
    """Return the memories that match a cue, and sentences about forgotten ones.

    `content_of` returns a node's content. Empty keywords match every node. With relations, focus nodes are only
    starting points and no results.
    """
    followed = _followed(network, cue.relations)
    found = _walk(network, followed, cue.depth)
    matcher = _Matcher(network, found, cue.keywords)
    excluded = network.focus_slots() if cue.relations else np.zeros(0, dtype=np.int64)
    results = matcher.first(cue.max_results, excluded)
    memories = tuple(
        (reached, content_of(reached.node_id))
        for reached in (_reached(network, found, place) for place in results.tolist())
    )
    return Answer(memories, _once_known(network, found, matcher, followed, locale))


def _reached(network: Network, found: Reach, place: int) -> Reached:
    node_id = int(network.slots["id"][found.slots[place]])
    position = NEWEST - (int(found.labels[place]) & NEWEST)
    return Reached(node_id, round_strength(float(found.worths[place])), position)


# --- the walk ----------------------------------------------------------------------------------------------


def _followed(network: Network, relations: Sequence[str]) -> Array | None:
    """Return which relation numbers are followed; None for all."""
    if not relations:
        return None
    names = {fold_relation(name) for name in relations}
    return np.array([fold_relation(name) in names for name in network.relations], dtype=np.bool_)


def _walk(network: Network, followed: Array | None, depth: int, start: Array | None = None) -> Reach:
    scratch = network.scratch()
    try:
        frontier = network.focus_slots() if start is None else start[:NEWEST]
        scratch.worth[frontier] = 1.0
        scratch.label[frontier] = _labels(np.ones(len(frontier)), NEWEST - np.arange(len(frontier)))
        reached = [frontier]
        for _ in range(depth):
            if not len(frontier):
                break
            frontier = _hop(network, scratch, frontier, followed, reached)
        slots = np.concatenate(reached)
        found = Reach(slots, scratch.label[slots], scratch.worth[slots])
        scratch.label[slots] = 0
        scratch.worth[slots] = 0.0
    except BaseException:
        network.spoil_scratch()
        raise
    return found


def _labels(worths: Array, newness: Array) -> Array:
    labels: Array = (ranks_of(worths) << POSITION_BITS) | newness
    return labels


def _hop(
    network: Network, scratch: Scratch, frontier: Array, followed: Array | None, reached: list[Array]
) -> Array:
    """Run one hop from the frontier. Return the nodes that it improved; append new ones to `reached`."""
    sources, targets, worths = _steps(network, scratch, frontier, followed)
    best, top = scratch.best, scratch.top
    # 1. Only paths within rounding of the greatest strength at their target can win or tie.
    np.maximum.at(top, targets, worths)
    near = np.flatnonzero(worths >= top[targets] * NEARLY)
    top[targets] = 0.0
    sources, targets, worths = sources[near], targets[near], worths[near]
    # 2. Take the greatest label of each target if it improves the target.
    labels = _labels(worths, scratch.label[sources] & NEWEST)
    np.maximum.at(best, targets, labels)
    improved = np.flatnonzero((labels == best[targets]) & (labels > scratch.label[targets]))
    best[targets] = 0
    targets, worths, labels = targets[improved], worths[improved], labels[improved]
    # 3. Among equal labels, take the greatest strength.
    np.maximum.at(top, targets, worths)
    new = targets[scratch.label[targets] == 0]
    scratch.label[targets] = labels
    scratch.worth[targets] = top[targets]
    top[targets] = 0.0
    reached.append(_once_each(scratch, new))
    return _once_each(scratch, targets)


def _steps(
    network: Network, scratch: Scratch, frontier: Array, followed: Array | None
) -> tuple[Array, Array, Array]:
    """Return (source, target, strength) of every step from the frontier that may improve its target."""
    table = network.links.rows
    member = scratch.member
    member[frontier] = True
    rows = network.links.of_sources(frontier, member[: network.slots.count])
    sources, targets, strengths = table["source"], table["target"], table["now"]
    if rows is None:
        rows = np.flatnonzero(member[sources])
    member[frontier] = False
    sources, targets, strengths = sources[rows], targets[rows], strengths[rows]
    worths = scratch.worth[sources] * strengths
    is_step = strengths >= network.parameters.link_break_threshold
    is_step &= network.slots["alive"][targets]
    is_step &= worths >= scratch.worth[targets] * NEARLY
    if followed is not None:
        is_step &= followed[table["relation"][rows]]
    kept = np.flatnonzero(is_step)
    return sources[kept], targets[kept], worths[kept]


def _once_each(scratch: Scratch, slots: Array) -> Array:
    """Return the distinct slots. For duplicates, the last writer of a slot's rank stays."""
    places = np.arange(len(slots), dtype=np.int32)
    scratch.rank[slots] = places
    kept: Array = slots[scratch.rank[slots] == places]
    scratch.rank[slots] = 0
    return kept


# --- matching ----------------------------------------------------------------------------------------------


class _Matcher:
    """Matches reached nodes against keywords, no more of them than necessary."""

    def __init__(self, network: Network, found: Reach, keywords: Sequence[str]) -> None:
        self._network = network
        self._found = found
        self._keywords = [folded(keyword) for keyword in keywords]
        self._matching: Array | None = None
        """Matches by slot, after all texts were searched."""
        self._any: bool | None = True if not keywords and len(found.slots) else None

    def first(self, most: int, excluded: Array) -> Array:
        """Return the first `most` matching positions in order, without the slots in `excluded`."""
        found = self._found
        places = np.arange(len(found.slots))
        if len(excluded):
            places = places[~np.isin(found.slots, excluded)]
        if not self._keywords:
            return found.first(places, most)
        matching, tries = places[:0], FIRST_TRY * most
        while len(matching) < most:
            tried = found.first(places, tries) if self._is_worth(tries, len(places)) else places
            matching = tried[self.matches(tried)]
            if len(tried) == len(places):
                matching = found.first(matching, most)
                break
            tries *= GROWTH
        if len(matching):
            self._any = True
        return matching[:most]

    def _is_worth(self, tries: int, most: int) -> bool:
        """Whether matching the best `tries` nodes one by one costs less than searching all texts."""
        return tries < most and self._network.texts.are_few(GROWTH * tries * len(self._keywords))

    def matches(self, places: Array) -> Array:
        """Return which of these positions match."""
        if not self._keywords:
            return np.ones(len(places), dtype=np.bool_)
        network = self._network
        slots = self._found.slots[places]
        if self._matching is None:
            if network.texts.are_few(len(places) * len(self._keywords)):
                return network.texts.matches_each(slots, self._keywords)
            self._matching = network.texts.matches_all(self._keywords, network.slots.count)
        matching: Array = self._matching[slots]
        return matching

    def matches_any(self) -> bool:
        """Whether any reached node matches."""
        if self._any is None:
            self._any = bool(self.matches(np.arange(len(self._found.slots))).any())
        return self._any


# --- forgotten memories ------------------------------------------------------------------------------------


def _once_known(
    network: Network, found: Reach, matcher: _Matcher, followed: Array | None, locale: str
) -> tuple[str, ...]:
    """Return at most three distinct sentences about links to forgotten nodes, in the order of their sources.

    The sources are the matching nodes, or all reached nodes if none matches.
    """
    with_dangling = np.flatnonzero(network.slots["dangling_count"][found.slots] > 0)
    if not len(with_dangling):
        return ()
    use_all = not matcher.matches_any()
    sentences: dict[str, None] = {}
    seen: set[tuple[int, bool]] = set()
    for places in _stretches(found.in_order(with_dangling)):
        sources_with_links = places if use_all else places[matcher.matches(places)]
        for relation, has_han in _first_of_each(network, found.slots[sources_with_links], followed, seen):
            sentences.setdefault(word_dangling(network.relations[relation], _LIKE[has_han], locale))
            if len(sentences) == MEMORIES_OF_LOSS:
                return tuple(sentences)
    return tuple(sentences)


_LIKE = {True: "忆", False: "a"}
"""Stand-ins for a content, of which only the script matters."""


def _stretches(places: Array) -> Iterator[Array]:
    """Yield growing ranges: usually the first few nodes suffice."""
    begin, size = 0, 16
    while begin < len(places):
        yield places[begin : begin + size]
        begin, size = begin + size, size * 8


def _first_of_each(
    network: Network, slots: Array, followed: Array | None, seen: set[tuple[int, bool]]
) -> Iterator[tuple[int, bool]]:
    """Yield each (relation, whether its source contains Han) of dangling links once, in order, and add it to `seen`."""
    rank = np.zeros(network.slots.count, dtype=np.int32)
    rank[slots] = np.arange(1, len(slots) + 1)
    rows = network.links.of_sources(slots, rank > 0)
    table = network.links.rows
    if rows is None:
        rows = np.flatnonzero(rank[table["source"]])
    gone = ~network.slots["alive"][table["target"][rows]]
    rows = rows[gone & (table["now"][rows] >= network.parameters.link_break_threshold)]
    if followed is not None:
        rows = rows[followed[table["relation"][rows]]]
    ranks = rank[table["source"][rows]]
    kinds = table["relation"][rows].astype(np.int64) * 2 + network.slots["has_han"][table["source"][rows]]
    # Find the first source of each kind. Within one source, strength, newness and name decide.
    by_rank = np.argsort(ranks, kind="stable")
    sources_with_links = np.unique(ranks[by_rank[np.unique(kinds[by_rank], return_index=True)[1]]]) - 1
    for slot in slots[sources_with_links].tolist():
        has_han = bool(network.slots["has_han"][slot])
        for _, name in network.dangling(int(network.slots["id"][slot])):
            kind = (network.relation_number(name), has_han)
            if kind not in seen and (followed is None or followed[kind[0]]):
                seen.add(kind)
                yield kind
