"""Causal paths: from a memory or a statement to what caused or supports it, along stored links.

A link leads from an effect to its cause in either stored direction: `X causes Y`, and `Y caused_by X`. The strength of
a path is the product of the strengths of its links. The walk takes the strongest path first, so the paths that it
returns are the strongest ones. Links of entities are no causes. The module is pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from ebbtide.ids import NodeId
from ebbtide.memory.network import Network
from ebbtide.memory.strength import round_strength

INFERRED: Final = "inferred "
"""Begins the relation of a link that consolidation has concluded, such as `inferred causes`."""

MAX_DEPTH: Final = 4
"""Most links of a path."""
MAX_PATHS: Final = 16
"""Most paths of an answer, the strongest ones."""
MAX_STEPS: Final = 256
"""Most nodes that a walk leaves, counted once for each path."""
MAX_CAUSES: Final = 16
"""Most causes of one node that are followed, the strongest ones."""

_FROM_CAUSE: Final = frozenset(["causes", "supports", "leads to", "导致", "所以", "支持"])
"""Relations whose source is the cause."""
_TO_CAUSE: Final = frozenset(
    ["caused by", "based on", "because", "because of", "due to", "因为", "由于", "基于"]
)
"""Relations whose target is the cause."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of a node, and the link between them."""

    node_id: NodeId
    relation: str
    strength: float
    is_inferred: bool


@dataclass(frozen=True, slots=True)
class CausalPath:
    """A path from an effect to its farthest known cause. No node occurs twice."""

    start: NodeId
    causes: tuple[Cause, ...]

    @property
    def strength(self) -> float:
        """The product of the strengths of its links."""
        product = 1.0
        for one in self.causes:
            product *= one.strength
        return product

    @property
    def is_inferred(self) -> bool:
        """Whether a link of it was inferred."""
        return any(one.is_inferred for one in self.causes)


def causal_paths(network: Network, start: NodeId, depth: int) -> tuple[list[CausalPath], bool]:
    """Return the paths from a node to its causes, the strongest first, and whether a bound has left some out.

    A path ends at a node without another cause, or at the depth. A forgotten cause ends its path.
    """
    waiting: list[tuple[float, int, tuple[NodeId, ...], CausalPath]] = []
    heappush(waiting, (-1.0, 0, (start,), CausalPath(start, ())))
    found: list[CausalPath] = []
    is_cut = False
    for _ in range(MAX_STEPS):
        if not waiting or len(found) == MAX_PATHS:
            break
        _, length, nodes, path = heappop(waiting)
        causes = [one for one in _causes(network, nodes[-1]) if one.node_id not in nodes]
        if path.causes and (length == depth or not causes):
            found.append(path)
            continue
        is_cut = is_cut or len(causes) > MAX_CAUSES
        for one in causes[:MAX_CAUSES]:
            longer = CausalPath(start, (*path.causes, one))
            heappush(waiting, (-longer.strength, length + 1, (*nodes, one.node_id), longer))
    return found, is_cut or bool(waiting)


def asserted(relation: str) -> tuple[str, bool]:
    """Return the name of a relation without the mark of an inferred one, and whether it has the mark."""
    return relation.removeprefix(INFERRED), relation.startswith(INFERRED)


def _causes(network: Network, node_id: NodeId) -> list[Cause]:
    """Return the causes of a node by strength, each once; a declared link comes before an inferred one."""
    if node_id not in network:
        return []
    best: dict[NodeId, Cause] = {}
    for one in sorted(
        _linked(network, node_id), key=lambda one: (-one.strength, one.is_inferred, one.relation)
    ):
        best.setdefault(one.node_id, one)
    return sorted(best.values(), key=lambda one: (-one.strength, one.node_id))


def _linked(network: Network, node_id: NodeId) -> Iterator[Cause]:
    sides = (network.links_from(node_id), _TO_CAUSE), (network.links_to(node_id), _FROM_CAUSE)
    for links, relations in sides:
        for other, relation, strength in links:
            name, is_inferred = asserted(relation)
            if name.casefold().replace("_", " ") in relations and other not in network.entities:
                yield Cause(other, name, round_strength(strength), is_inferred)
