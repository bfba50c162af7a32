"""The topology of a synthetic memory, from a seed: the same numbers on every machine.

**Degrees are heavy-tailed.** Each node gets a weight from a Pareto distribution, so that the number of links of a
node falls off as k to the power of -`TAIL` (the exponent of most grown networks), cut off at `LARGEST_SHARE` of all
nodes. A pair of nodes is linked with a probability in proportion to both weights (F. Chung and L. Lu, "Connected
components in random graphs with given expected degree sequences", 2002). Every such pair is linked both ways, as a
digest does it, so in- and out-degrees have the same tail and hubs lead to hubs: two hops from five typical nodes
reach a tenth of a large memory, four hops nearly all of it. In addition, each memory is linked with the following
one, both ways, so every node has a live link that points at it.

**Strengths are realistic.** They are written as 1.0 (the source has left focus) or 0.5 (neighbours in a text), and a
few at random (re-anchored). They decay by the scans of the source since: older nodes were scanned more often. Some
links are below the threshold. Many strengths are equal, which tests the order among equals.

**Forgetting has left traces**: ids have gaps, and in addition to `link_count` links between living nodes,
`LOST_SHARE` more dangle.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

TAIL = 2.1
LARGEST_SHARE = 0.05
LOST_SHARE = 0.005
GONE_SHARE = 0.02
"""Share of ids whose node was forgotten."""

DECAY_RATE = 0.97
BREAK_THRESHOLD = 0.01
MOST_SCANS = 60
FINISHED_PASSES = 90

RELATIONS = (
    *(
        "",
        "next",
        "previous",
        "下文",
        "上文",
        "朋友",
        "friend",
        "同事",
        "colleague",
        "家人",
        "family",
        "工作",
        "work",
    ),
    *(
        "旅行",
        "travel",
        "时间",
        "住在",
        "lives in",
        "喜欢",
        "likes",
        "项目",
        "project",
        "same place",
        "同一天",
    ),
)
FORWARD = {1: 2, 3: 4}
"""Names of neighbours: next to previous. All other names are the same in both directions."""

FOCUS_SIZE = 5
TYPICAL_LINKS = (5, 9)
"""Links of a node that may be in focus: about the median, so that one hop from five nodes reaches at most 50."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How large a memory is."""

    name: str
    node_count: int
    link_count: int


SCALES = {
    scale.name: scale
    for scale in (
        Scale("S", 1_000, 10_000),
        Scale("M", 10_000, 100_000),
        Scale("L", 100_000, 1_000_000),
        Scale("XL", 1_000_000, 10_000_000),
    )
}


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes and links as columns: one row a node, or a link ordered by source, target, relation."""

    ids: Array
    scan_counts: Array
    last_passes: Array
    sources: Array
    targets: Array
    relations: Array
    strengths: Array
    anchors: Array

    @property
    def next_node_id(self) -> int:
        """The id that the next node will get. The ids of forgotten nodes are below it too."""
        return int(max(self.ids[-1], self.targets.max())) + 1

    def save(self, path: Path) -> None:
        """Write the columns to a file."""
        np.savez(path, **{field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def load(cls, path: Path) -> Graph:
        """Read what `save` wrote."""
        with np.load(path) as columns:
            return cls(**{field.name: columns[field.name] for field in fields(cls)})


def make_graph(scale: Scale, seed: int) -> Graph:
    """Return a memory of this scale."""
    dice = np.random.default_rng(seed)
    count = scale.node_count
    every_id = np.arange(1, int(count * (1 + GONE_SHARE)) + 1)
    ids = np.sort(dice.choice(every_id, count, replace=False))
    gone = np.setdiff1d(every_id, ids)
    # The oldest memories were scanned often; the newest, not at all.
    youth = 1 - np.arange(count) / count
    scan_counts = np.floor(MOST_SCANS * youth * dice.uniform(0.7, 1.0, count)).astype(np.int64)
    last_passes = np.where(scan_counts > 0, FINISHED_PASSES - dice.integers(0, 2, count), 0)

    first, second, names = _pairs(dice, count, scale.link_count // 2)
    back = np.arange(len(RELATIONS))
    for name, reverse in FORWARD.items():
        back[name] = reverse
    rows = np.concatenate([first, second])
    targets = ids[np.concatenate([second, first])]
    relations = np.concatenate([names, back[names]])
    rows, targets, relations = _with_lost(dice, rows, targets, relations, gone)
    order = np.argsort(_packed(rows, targets, relations))
    rows, targets, relations = rows[order], targets[order], relations[order]
    strengths, ages = _strengths(dice, relations, scan_counts[rows])
    return Graph(
        ids,
        scan_counts,
        last_passes,
        ids[rows],
        targets,
        relations,
        strengths,
        scan_counts[rows] - ages,
    )


def _packed(first: Array, second: Array, names: Array) -> Array:
    """Pack each link into one number, ordered by source, target and relation."""
    packed: Array = (first.astype(np.int64) << 38) | (second.astype(np.int64) << 8) | names
    return packed


def _pairs(dice: np.random.Generator, count: int, wanted: int) -> tuple[Array, Array, Array]:
    """Return `wanted` different (row, higher row, relation), including neighbours."""
    rows = np.arange(count - 1)
    neighbours = _packed(rows, rows + 1, dice.choice(list(FORWARD), count - 1))
    weights = dice.random(count) ** (-1 / (TAIL - 1))
    mean_links = 2 * wanted / count
    weights = np.minimum(weights, weights.mean() * count * LARGEST_SHARE / mean_links)
    steps = np.cumsum(weights) / weights.sum()
    popularity = 1 / np.arange(1, len(RELATIONS) + 1)
    popularity[[*FORWARD, *FORWARD.values()]] = 0
    drawn = np.zeros(0, np.int64)
    missing = wanted - len(neighbours)
    while len(drawn) < missing:
        ends = np.searchsorted(steps, dice.random((2, missing)))
        low, high = ends.min(axis=0), ends.max(axis=0)
        names = dice.choice(len(RELATIONS), missing, p=popularity / popularity.sum())
        drawn = np.unique(np.concatenate([drawn, _packed(low, high, names)[low < high]]))
    kept = np.concatenate([neighbours, dice.choice(drawn, missing, replace=False)])
    return kept >> 38, (kept >> 8) & ((1 << 30) - 1), kept & 255


def _with_lost(
    dice: np.random.Generator, rows: Array, targets: Array, relations: Array, gone: Array
) -> tuple[Array, Array, Array]:
    """Return the links, and some more whose target was forgotten."""
    count = int(len(rows) * LOST_SHARE)
    lost_relations = dice.integers(0, len(RELATIONS), count)
    lost = np.unique(_packed(dice.choice(rows, count), dice.choice(gone, count), lost_relations))
    return (
        np.concatenate([rows, lost >> 38]),
        np.concatenate([targets, (lost >> 8) & ((1 << 30) - 1)]),
        np.concatenate([relations, lost & 255]),
    )


def _strengths(dice: np.random.Generator, relations: Array, scan_counts: Array) -> tuple[Array, Array]:
    """Return (strength as written, scans of the source since) of every link."""
    count = len(relations)
    kind = dice.random(count)
    is_neighbour = (relations > 0) & (relations <= max(FORWARD.values()))
    others = np.where(kind < 0.75, 1.0, np.where(kind < 0.85, 0.5, dice.uniform(0.02, 1.0, count)))
    strengths = np.where(is_neighbour, np.where(kind < 0.5, 0.5, 1.0), others)
    is_old = dice.random(count) < 0.7
    ages = np.where(is_old, scan_counts, dice.integers(0, scan_counts + 1))
    return strengths, ages


class Topology:
    """The graph as rows, to count reachable nodes: breadth first, regardless of the strength of paths."""

    def __init__(self, graph: Graph) -> None:
        self._ids = graph.ids
        rows = np.searchsorted(graph.ids, graph.sources)
        targets = np.searchsorted(graph.ids, graph.targets)
        is_living = graph.ids[np.minimum(targets, len(graph.ids) - 1)] == graph.targets
        rows, self._targets = rows[is_living], targets[is_living]
        worth = graph.strengths * DECAY_RATE ** (
            graph.scan_counts[np.searchsorted(graph.ids, graph.sources)] - graph.anchors
        )
        self._is_live = worth[is_living] >= BREAK_THRESHOLD
        self._starts = np.searchsorted(rows, np.arange(len(graph.ids) + 1))
        self.link_counts = np.bincount(rows, minlength=len(graph.ids))

    def focus_sets(self, count: int, seed: int) -> list[tuple[int, ...]]:
        """Return different foci of typical nodes."""
        dice = np.random.default_rng(seed)
        least, most = TYPICAL_LINKS
        typical = self._ids[(self.link_counts >= least) & (self.link_counts <= most)]
        return [tuple(dice.choice(typical, FOCUS_SIZE, replace=False).tolist()) for _ in range(count)]

    def reach_count(self, focus: tuple[int, ...], depth: int) -> int:
        """Return the number of nodes within `depth` hops of a focus, itself included."""
        frontier = np.searchsorted(self._ids, np.array(focus))
        is_seen = np.zeros(len(self._ids), bool)
        is_seen[frontier] = True
        for hop in range(depth):
            starts, lengths = self._starts[frontier], self.link_counts[frontier]
            places = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
            # Links of nodes in focus count 1.0, dead or alive.
            found = self._targets[places if hop == 0 else places[self._is_live[places]]]
            frontier = np.unique(found[~is_seen[found]])
            is_seen[frontier] = True
        return int(is_seen.sum())
