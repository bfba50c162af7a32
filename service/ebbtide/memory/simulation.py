"""Simulation: batches and passes on a network, without a store, a language model or a clock.

Batches of memories that are linked with no other topic arrive, and passes shorten and forget, with the code of real
batches and passes. Only the language model is left out: a shortening cuts a memory to exactly the target length.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple

from ebbtide.ids import NodeId
from ebbtide.memory.compression import Shortening, begin_pass, end_pass, nodes_to_visit, visit
from ebbtide.memory.digestion import LinkNames, NewMemory, digest
from ebbtide.memory.draft import Draft
from ebbtide.memory.network import Network
from ebbtide.records import Node, PassState

VISITS_PER_PAUSE: Final = 2000
"""Nodes visited together: some milliseconds."""

LINK_NAME: Final = "about"
"""The name of all new links. Rules would read the texts of other memories, and no pass depends on names."""


class Effects(NamedTuple):
    """The memories and statements that a pass changed."""

    shortened: list[tuple[NodeId, int]]
    """Memories, and the characters that each had then."""
    forgotten: list[NodeId]


class Simulation:
    """A network that only the simulation changes.

    `rng` returns the random generator of a purpose and a number: `digest` or `pass`. `pause` is called every few
    milliseconds, and may raise to end the simulation.
    """

    def __init__(
        self, network: Network, rng: Callable[[str, int], Random], pause: Callable[[], None] = lambda: None
    ) -> None:
        self.network = network
        self._rng = rng
        self._pause = pause

    def remember(self, batch: int, count: int, characters: int, *, are_named: bool = False) -> list[NodeId]:
        """Digest a batch of `count` memories of equal length, and return the memories that made room for them.

        `are_named`: each memory names an entity of its own, so that those in focus leave it too.
        """
        names = [f"Subject {batch}-{index}" if are_named else "" for index in range(count)]
        memories = [NewMemory("x" * characters, "", (name,) if name else (), 0) for name in names]
        partners = range(max(count, self.network.parameters.focus_limit))
        link_names = {(index, position): LINK_NAME for index in range(count) for position in partners}
        change = digest(
            self.network,
            memories,
            LinkNames(link_names),
            batch=batch,
            owed_passes=0,
            rng=self._rng("digest", batch),
        )
        self.network.apply(change)
        self._pause()
        return list(change.forgotten)

    def compress(self, number: int, begun: PassState | None = None) -> Effects:
        """Complete pass `number`, or the rest of one that has begun, and return what it did."""
        network, forgotten = self.network, []
        if begun is None:
            beginning = begin_pass(network, number, self._rng("pass", number))
            network.apply(beginning)
            begun = beginning.pass_state
            forgotten += beginning.forgotten
        assert begun is not None, "a pass has a state"
        draft = Draft(network)
        shortened: list[tuple[NodeId, int]] = []

        def shorten(shortening: Shortening) -> bool:
            shortened.append((shortening.node_id, shortening.target))
            return True

        order = nodes_to_visit(network, begun)
        for first in range(0, len(order), VISITS_PER_PAUSE):
            visit(draft, order[first : first + VISITS_PER_PAUSE], begun, shorten)
            self._pause()
        end_pass(draft, begun, 1)
        draft.change.nodes = [self._cut(node_id, length) for node_id, length in shortened]
        network.apply(draft.change)
        return Effects(shortened, forgotten + list(draft.change.forgotten))

    def _cut(self, node_id: NodeId, length: int) -> Node:
        return Node(node_id, "x" * length, "", (), 0, self.network.node(node_id).original_length)
