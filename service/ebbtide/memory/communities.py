"""Communities: groups of nodes that are linked with each other more than with the rest, and what they share.

Label propagation: every node begins with a label of its own and takes the label that most of its links' strength
favours, until no label changes. Only nodes with a neighbour that changed are looked at again. The nodes are divided at
random into parts that take turns, so the work runs in steps of a few milliseconds.

The vote of a neighbour with many links counts less, so a node that is linked with everything does not join everything.
At the end, a group that is too small joins the group with which it has the strongest links, if there is a larger one.
The result depends on the graph and the seed alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ebbtide.entity_names import entity_key
from ebbtide.ids import NodeId
from ebbtide.memory.network import Network

Array = NDArray[Any]

MIN_CLUSTER: Final = 5
"""Fewest members of a community, unless the caller says otherwise."""
MIN_OVERLAP: Final = 0.8
"""Jaccard similarity of members from which a community is the one that it was before."""
CONCEPT_WORDS: Final = 3
"""Most keywords that describe a community."""
MERGED_STRENGTH: Final = 8.0
"""Strength of the link between two entities that a ruling has merged."""
HUB_STRENGTH: Final = 16.0
"""Total strength of the links of a node from which its vote counts less."""
ABSORBING_ROUNDS: Final = 3
MAX_ROUNDS: Final = 24
SETTLING_ROUND: Final = 8
"""From this round on, labels only decrease, so that no two nodes exchange theirs for ever."""
_ENDS_AT_ONCE: Final = 16_384
"""Ends of links in a part, and links that are read at once: a few milliseconds of work."""
_MIN_PARTS: Final = 16


class Propagation:
    """Label propagation over nodes 0 … node_count - 1, in steps."""

    def __init__(
        self,
        node_count: int,
        sources: Array,
        targets: Array,
        strengths: Array,
        *,
        seed: int = 0,
        min_size: int = MIN_CLUSTER,
    ) -> None:
        """Prepare the propagation. A link counts in both directions; `sources` and `targets` are numbers of nodes.

        Groups of fewer than `min_size` nodes join larger ones.
        """
        self._count = node_count
        self._min_size = min_size
        self._links = (sources, targets, strengths)
        self._random = np.random.default_rng(seed)
        self._labels: NDArray[np.int32] = self._random.permutation(node_count).astype(np.int32)
        self._steps = self._run()

    def advance(self, is_time_up: Callable[[], bool]) -> bool:
        """Propagate until the time is up. Return whether the labels are final."""
        return all(not is_time_up() for _ in self._steps)

    def groups(self, min_size: int = MIN_CLUSTER) -> list[Array]:
        """Return the members of each community of at least `min_size`, in ascending order."""
        order = np.argsort(self._labels, kind="stable")
        begins = np.flatnonzero(np.diff(self._labels[order], prepend=-1))
        found = [group for group in np.split(order, begins[1:]) if len(group) >= max(1, min_size)]
        return sorted(found, key=lambda group: int(group[0]))

    def _run(self) -> Iterator[None]:
        """Yield between pieces of work."""
        ends = 2 * len(self._links[0])
        part_count = min(max(_MIN_PARTS, -(-ends // _ENDS_AT_ONCE)), max(1, self._count), 1 << 15)
        part_of = self._random.integers(0, part_count, self._count, dtype=np.uint16)
        parts = _Parts(part_count, self._count)
        yield from parts.read(part_of, *self._links)
        degrees = parts.degrees
        is_active = degrees > 0
        votes = np.sqrt(HUB_STRENGTH / np.maximum(degrees, HUB_STRENGTH))
        for round_number in range(MAX_ROUNDS):
            for part in self._random.permutation(part_count).tolist():
                self._update(parts, part, is_active, votes, round_number >= SETTLING_ROUND)
                yield
            if not is_active.any():
                break
        for _ in range(ABSORBING_ROUNDS):
            yield from self._absorb(parts, part_count, votes)

    def _absorb(self, parts: _Parts, part_count: int, votes: Array) -> Iterator[None]:
        """Let each group that is too small join the one that most of its links favour, if that is larger."""
        sizes = np.bincount(self._labels, minlength=self._count)
        ends: list[tuple[Array, Array, Array]] = []
        for part in range(part_count):
            owners, others, strengths = parts.ends_of(part)
            own, other = self._labels[owners], self._labels[others]
            leads_out = (sizes[own] < self._min_size) & (own != other)
            ends.append((own[leads_out], other[leads_out], (strengths * votes[others])[leads_out]))
            yield
        own, other, weights = (np.concatenate([end[place] for end in ends]) for place in range(3))
        if not len(own):
            return
        groups, favoured = _favourites(own, other, weights, np.arange(self._count, dtype=np.int32))
        is_larger = (sizes[favoured] > sizes[groups]) | (
            (sizes[favoured] == sizes[groups]) & (favoured < groups)
        )
        joined = np.arange(self._count, dtype=np.int32)
        joined[groups[is_larger]] = favoured[is_larger]
        self._labels = joined[self._labels]
        yield

    def _update(self, parts: _Parts, part: int, is_active: Array, votes: Array, is_settling: bool) -> None:
        """Give the active nodes of a part the label with the most votes of their neighbours."""
        owners, others, strengths = parts.ends_of(part)
        is_due = is_active[owners]
        due, near, weights = owners[is_due], others[is_due], strengths[is_due]
        is_active[due] = False
        if not len(due):
            return
        nodes, labels = _favourites(due, self._labels[near], weights * votes[near], self._labels)
        is_changed = labels != self._labels[nodes]
        if is_settling:
            is_changed &= labels < self._labels[nodes]
        changed = nodes[is_changed]
        self._labels[changed] = labels[is_changed]
        has_changed = np.zeros(self._count, dtype=np.bool_)
        has_changed[changed] = True
        is_active[others[has_changed[owners]]] = True


def _favourites(owners: Array, labels: Array, weights: Array, present: Array) -> tuple[Array, Array]:
    """Return the nodes, and the label of each with the most votes: of equal ones its own, else the least."""
    pairs = owners.astype(np.int64) << 32 | labels
    order = np.argsort(pairs, kind="stable")
    pairs = pairs[order]
    begins = np.flatnonzero(np.diff(pairs, prepend=-1))
    sums = np.round(np.add.reduceat(weights[order], begins), 9)
    nodes, choices = pairs[begins] >> 32, pairs[begins] & 0xFFFFFFFF
    firsts = np.flatnonzero(np.diff(nodes, prepend=-1))
    best = np.repeat(np.maximum.reduceat(sums, firsts), np.diff(firsts, append=len(nodes)))
    rank = np.where(sums < best, 2 << 32, np.where(choices == present[nodes], -1, choices))
    least = np.minimum.reduceat(rank, firsts)
    chosen = nodes[firsts]
    return chosen, np.where(least < 0, present[chosen], least).astype(np.int32)


class _Parts:
    """The ends of all links by part: of each end its node, the node at the other end, and the strength."""

    def __init__(self, count: int, node_count: int) -> None:
        self._count = count
        self.degrees: NDArray[np.float64] = np.zeros(node_count)
        """The sum of the strengths of each node's links."""
        self._pieces: list[list[tuple[Array, Array, Array]]] = [[] for _ in range(count)]
        self._ready: list[tuple[Array, Array, Array] | None] = [None] * count

    def read(self, part_of: Array, sources: Array, targets: Array, strengths: Array) -> Iterator[None]:
        """Distribute links that are no loops over the parts, a piece at a time."""
        size = _ENDS_AT_ONCE * 4
        for begin in range(0, len(sources), size):
            piece = slice(begin, begin + size)
            one, other = sources[piece].astype(np.int32), targets[piece].astype(np.int32)
            is_link = one != other
            one, other = one[is_link], other[is_link]
            weight = strengths[piece][is_link].astype(np.float64)
            for owners, others in ((one, other), (other, one)):
                parts = part_of[owners]
                order = np.argsort(parts, kind="stable")
                bounds = np.searchsorted(parts[order], np.arange(self._count + 1))
                arrays = owners[order], others[order], weight[order]
                for part in range(self._count):
                    low, high = bounds[part], bounds[part + 1]
                    if low < high:
                        self._pieces[part].append(
                            (arrays[0][low:high], arrays[1][low:high], arrays[2][low:high])
                        )
                self.degrees += np.bincount(owners, weights=weight, minlength=len(self.degrees))
                yield

    def ends_of(self, part: int) -> tuple[Array, Array, Array]:
        """Return (nodes, other nodes, strengths) of the ends of links at the nodes of a part."""
        known = self._ready[part]
        if known is None:
            pieces = self._pieces[part]
            empty = np.zeros(0, dtype=np.int32)
            known = (
                np.concatenate([empty, *(piece[0] for piece in pieces)]),
                np.concatenate([empty, *(piece[1] for piece in pieces)]),
                np.concatenate([np.zeros(0), *(piece[2] for piece in pieces)]),
            )
            self._ready[part] = known
            pieces.clear()
        return known


# The words and the identity of a community.


def shared_words(members: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return the keywords that at least two members have, each with their number. Case and plural do not count."""
    counts: Counter[str] = Counter()
    forms: dict[str, str] = {}
    for keywords in members:
        for key, word in {entity_key(word): word.strip() for word in keywords}.items():
            forms.setdefault(key, word)
            counts[key] += bool(key)
    return {forms[key]: count for key, count in counts.items() if count > 1}


def best_words(
    shared: Mapping[str, int], groups_with: Mapping[str, int], group_count: int, most: int = CONCEPT_WORDS
) -> list[str]:
    """Return the shared words of a community that say most: of many members, and of few other communities.

    `groups_with` counts the communities that share each word.
    """
    worth = {
        word: round(count * math.log((1 + group_count) / groups_with[word]), 9)
        for word, count in shared.items()
    }
    return sorted(shared, key=lambda word: (-worth[word], -shared[word], -len(word), word))[:most]


def matched(
    known: Mapping[NodeId, frozenset[NodeId]], groups: Sequence[frozenset[NodeId]]
) -> list[NodeId | None]:
    """Return the known community that each group continues, None for a new one.

    A group continues the community with which its Jaccard similarity is highest, if that is at least MIN_OVERLAP. No
    community is continued twice.
    """
    by_member: dict[NodeId, list[NodeId]] = {}
    for concept, members in known.items():
        for member in members:
            by_member.setdefault(member, []).append(concept)
    candidates: list[tuple[float, NodeId, int]] = []
    for index, group in enumerate(groups):
        for concept in {concept for member in group for concept in by_member.get(member, ())}:
            both = len(group & known[concept])
            overlap = both / (len(group) + len(known[concept]) - both)
            if overlap >= MIN_OVERLAP:
                candidates.append((-overlap, concept, index))
    found: list[NodeId | None] = [None] * len(groups)
    taken: set[NodeId] = set()
    for _, concept, index in sorted(candidates):
        if found[index] is None and concept not in taken:
            found[index] = concept
            taken.add(concept)
    return found


@dataclass(frozen=True, slots=True)
class Graph:
    """The statements and entities of a network, and the live links between them."""

    ids: NDArray[np.int64]
    sources: Array
    """The ends of the links are numbers of places in `ids`."""
    targets: Array
    strengths: Array


def graph_of(
    network: Network,
    merged: Iterable[tuple[NodeId, NodeId]] = (),
    left_out: Collection[NodeId] = (),
) -> Graph:
    """Return the graph of living statements and entities. Two entities that are merged have a strong link.

    `left_out` are the speakers: everything that the user says is linked with the user.
    """
    slots, rows = network.slots, network.links.rows
    is_member = slots["alive"] & (slots["is_entity"] | slots["is_statement"])
    is_member[network.slots_of([one for one in left_out if one in network])] = False
    members = np.flatnonzero(is_member)
    places = np.full(len(is_member), -1, dtype=np.int32)
    places[members] = np.arange(len(members), dtype=np.int32)
    is_inside = (places[rows["source"]] >= 0) & (places[rows["target"]] >= 0)
    inside = np.flatnonzero(is_inside & (rows["now"] >= network.parameters.link_break_threshold))
    ends = [one for pair in merged if all(end in network for end in pair) for one in pair]
    both = places[network.slots_of(ends)].reshape(-1, 2)
    both = both[(both >= 0).all(axis=1)]
    return Graph(
        slots["id"][members].astype(np.int64),
        np.concatenate([places[rows["source"][inside]], both[:, 0]]),
        np.concatenate([places[rows["target"][inside]], both[:, 1]]),
        np.concatenate([rows["now"][inside], np.full(len(both), MERGED_STRENGTH)]),
    )
