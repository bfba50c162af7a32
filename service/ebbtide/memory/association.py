"""Association: from the focus outward along the strongest paths (memory model, section 6).

A path is worth the product of its links' strengths; a node is worth its strongest path **of at most `depth`
hops**. So this is not Dijkstra: a stronger but longer path must not hide what a weaker, shorter one could
still reach. Bellman-Ford by hops (R. Bellman, "On a routing problem", 1958): hop h extends only what became
better with exactly h - 1 hops; anything else is dominated by a path that is no weaker and no longer.

Of equally strong paths the one from the newest focus counts, so a path is compared by (strength rounded to
12 significant digits, newness of its focus). Both stand in one integer, a node's *label*: 0 = not reached,
greater = better. Of paths with equal labels the one of fewest hops counts, then the one of greatest unrounded
worth.

A hop is a handful of operations on arrays over the links that leave the frontier. Nothing here is changed, and
no more is looked at than what is reached: texts are matched in the order of worth until enough are found, and
only where that takes too long in one look through everything the agent knows.
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
"""Names that mean the same in both languages, folded to one."""

POSITION_BITS = 6
"""Bits of a label for the newness of the focus: `focus_limit` is at most 64."""

NEWEST = (1 << POSITION_BITS) - 1

NEARLY = 1 - 2e-11
"""Worths further apart than this cannot be equal in 12 significant digits."""

FIRST_TRY = 4
"""How many times the results wanted are matched at first: common words are found there."""

GROWTH = 4
"""How many times as many are matched when these did not do."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A node within reach: the worth of its strongest path, and the newest focus such a path starts from."""

    node_id: NodeId
    strength: float
    position: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What a recall found: memories in order, and sentences about what was forgotten."""

    memories: tuple[tuple[Reached, str], ...] = ()
    once_known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reach:
    """Slots within reach, each with its label and the unrounded worth of its path."""

    slots: Array
    labels: Array
    worths: Array

    def in_order(self, chosen: Array) -> Array:
        """Places chosen from the reach, by label and then id descending."""
        newest_first = chosen[np.argsort(-self.slots[chosen], kind="stable")]
        ordered: Array = newest_first[np.argsort(-self.labels[newest_first], kind="stable")]
        return ordered

    def first(self, chosen: Array, most: int) -> Array:
        """The first `most` of the places chosen, in order."""
        if len(chosen) > 2 * most > 0:
            labels = self.labels[chosen]
            chosen = chosen[labels >= np.partition(labels, len(labels) - most)[len(labels) - most]]
        return self.in_order(chosen)[:most]


def fold_relation(name: str) -> str:
    """A relation name as it is compared."""
    name = name.casefold()
    return NEIGHBOUR_SYNONYMS.get(name, name)


def reach(network: Network, relations: Sequence[str], depth: int) -> list[Reached]:
    """Every node within `depth` hops of the focus, strongest path first.

    Order: path strength (12 significant digits) descending, position of the newest focus among its strongest
    paths, id descending. With `relations`, only links of these names are followed.
    """
    found = _walk(network, _followed(network, relations), depth)
    return [_reached(network, found, place) for place in found.in_order(np.arange(len(found.slots))).tolist()]


@dataclass(frozen=True, slots=True)
class Association:
    """Nodes within reach as arrays, in no order: ids, and the worth of the strongest path to each."""

    node_ids: Array
    worths: Array


def associate(network: Network, depth: int, start: Sequence[NodeId] | None = None) -> Association:
    """What is within `depth` hops of the focus, or of other nodes to start from, by any link."""
    slots = None if start is None else network.slots_of([n for n in start if n in network])
    found = _walk(network, None, depth, slots)
    return Association(network.slots["id"][found.slots], found.worths)


def recall(network: Network, cue: Cue, content_of: Callable[[NodeId], str], locale: str) -> Answer:
    """The memories that match a cue, and what is told of forgotten ones.

    `content_of` gives a node's content. Empty keywords match everything; with relations, focus nodes are where
    the walk starts but no results themselves.
    """
    followed = _followed(network, cue.relations)
    found = _walk(network, followed, cue.depth)
    matcher = _Matcher(network, found, cue.keywords)
    left_out = network.focus_slots() if cue.relations else np.zeros(0, dtype=np.int64)
    results = matcher.first(cue.max_results, left_out)
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
    """Which relations are followed, by number; None for all."""
    if not relations:
        return None
    wanted = {fold_relation(name) for name in relations}
    return np.array([fold_relation(name) in wanted for name in network.relations], dtype=np.bool_)


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
    """One hop from the frontier; the nodes that became better by it, new ones added to `reached`."""
    sources, targets, worths = _steps(network, scratch, frontier, followed)
    best, top = scratch.best, scratch.top
    # 1. Only what comes within rounding of the greatest worth of its target can win or tie.
    np.maximum.at(top, targets, worths)
    near = np.flatnonzero(worths >= top[targets] * NEARLY)
    top[targets] = 0.0
    sources, targets, worths = sources[near], targets[near], worths[near]
    # 2. The greatest label of each target, where it beats the one it has.
    labels = _labels(worths, scratch.label[sources] & NEWEST)
    np.maximum.at(best, targets, labels)
    won = np.flatnonzero((labels == best[targets]) & (labels > scratch.label[targets]))
    best[targets] = 0
    targets, worths, labels = targets[won], worths[won], labels[won]
    # 3. Of equal labels the greatest worth.
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
    """(source, target, worth) of every step out of the frontier that may better its target."""
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
    may = strengths >= network.parameters.link_break_threshold
    may &= network.slots["alive"][targets]
    may &= worths >= scratch.worth[targets] * NEARLY
    if followed is not None:
        may &= followed[table["relation"][rows]]
    kept = np.flatnonzero(may)
    return sources[kept], targets[kept], worths[kept]


def _once_each(scratch: Scratch, slots: Array) -> Array:
    """The slots, each once: the last writer of a slot's rank is the one that stays."""
    places = np.arange(len(slots), dtype=np.int32)
    scratch.rank[slots] = places
    kept: Array = slots[scratch.rank[slots] == places]
    scratch.rank[slots] = 0
    return kept


# --- what matches ------------------------------------------------------------------------------------------


class _Matcher:
    """Which of the nodes reached match the keywords, found out no further than needed."""

    def __init__(self, network: Network, found: Reach, keywords: Sequence[str]) -> None:
        self._network = network
        self._found = found
        self._wanted = [folded(keyword) for keyword in keywords]
        self._matching: Array | None = None
        """By slot, once everything was looked through."""
        self._any: bool | None = True if not keywords and len(found.slots) else None

    def first(self, most: int, left_out: Array) -> Array:
        """The first `most` matching places in order, but for the slots left out."""
        found = self._found
        places = np.arange(len(found.slots))
        if len(left_out):
            places = places[~np.isin(found.slots, left_out)]
        if not self._wanted:
            return found.first(places, most)
        matching, tries = places[:0], FIRST_TRY * most
        while len(matching) < most:
            tried = found.first(places, tries) if self._is_worth(tries, len(places)) else places
            matching = tried[self.says(tried)]
            if len(tried) == len(places):
                matching = found.first(matching, most)
                break
            tries *= GROWTH
        if len(matching):
            self._any = True
        return matching[:most]

    def _is_worth(self, tries: int, most: int) -> bool:
        """Whether the best so many may be tried before all: sorting and matching them must cost less."""
        return tries < most and self._network.texts.are_few(GROWTH * tries * len(self._wanted))

    def says(self, places: Array) -> Array:
        """Whether each of these places matches."""
        if not self._wanted:
            return np.ones(len(places), dtype=np.bool_)
        network = self._network
        slots = self._found.slots[places]
        if self._matching is None:
            if network.texts.are_few(len(places) * len(self._wanted)):
                return network.texts.each_saying(slots, self._wanted)
            self._matching = network.texts.saying(self._wanted, network.slots.count)
        matching: Array = self._matching[slots]
        return matching

    def matches_any(self) -> bool:
        """Whether any node reached matches."""
        if self._any is None:
            self._any = bool(self.says(np.arange(len(self._found.slots))).any())
        return self._any


# --- what was once known -----------------------------------------------------------------------------------


def _once_known(
    network: Network, found: Reach, matcher: _Matcher, followed: Array | None, locale: str
) -> tuple[str, ...]:
    """At most three different sentences about links to forgotten nodes, in the order of who has them.

    Told by matching nodes; by all others reached when nothing matches.
    """
    having = np.flatnonzero(network.slots["dangling_count"][found.slots] > 0)
    if not len(having):
        return ()
    all_tell = not matcher.matches_any()
    sentences: dict[str, None] = {}
    told: set[tuple[int, bool]] = set()
    for places in _stretches(found.in_order(having)):
        tellers = places if all_tell else places[matcher.says(places)]
        for relation, has_han in _first_of_each(network, found.slots[tellers], followed, told):
            sentences.setdefault(word_dangling(network.relations[relation], _LIKE[has_han], locale))
            if len(sentences) == MEMORIES_OF_LOSS:
                return tuple(sentences)
    return tuple(sentences)


_LIKE = {True: "忆", False: "a"}
"""Stands for a content of which only matters whether it holds a Han character."""


def _stretches(places: Array) -> Iterator[Array]:
    """Longer and longer stretches: mostly the first few tell all there is to tell."""
    begin, size = 0, 16
    while begin < len(places):
        yield places[begin : begin + size]
        begin, size = begin + size, size * 8


def _first_of_each(
    network: Network, slots: Array, followed: Array | None, told: set[tuple[int, bool]]
) -> Iterator[tuple[int, bool]]:
    """(relation, whether its teller holds Han) of the slots' dangling links, each once, in order; adds to `told`."""
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
    # Of each kind, who tells it first; only within one teller strength, newness and name decide.
    by_rank = np.argsort(ranks, kind="stable")
    tellers = np.unique(ranks[by_rank[np.unique(kinds[by_rank], return_index=True)[1]]]) - 1
    for slot in slots[tellers].tolist():
        has_han = bool(network.slots["has_han"][slot])
        for _, name in network.dangling(int(network.slots["id"][slot])):
            kind = (network.relation_number(name), has_han)
            if kind not in told and (followed is None or followed[kind[0]]):
                told.add(kind)
                yield kind
