"""The forgetting curve by simulation: the engine itself, without store, model or clock.

Batches of five memories of sixty characters, one complete pass after each, as in section 5.2 of the memory
model. One batch in the middle of the stream is watched from its creation on: what share of its content is left
after each pass. "Shortening" cuts to the target length, so lengths are exact and no language model plays a part.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from ebbtide.ids import NodeId
from ebbtide.memory.compression import Shortening, begin_pass, end_pass, nodes_to_visit, visit
from ebbtide.memory.digestion import LinkNames, NewMemory, digest
from ebbtide.memory.draft import Draft
from ebbtide.memory.network import Network
from ebbtide.parameters import AgentParameters
from ebbtide.records import Node

SEGMENTS = 5
CHARACTERS = 60
WARM_UP_BATCHES = 20
"""Batches before the one that is watched: what comes before those has no link to it any more."""

DECAY_RATES = (0.95, 0.97, 0.99)
LONG_TERM_FACTORS = (0.0, 0.02, 0.05)


@dataclass(frozen=True, slots=True)
class Case:
    """One curve to draw."""

    decay_rate: float
    long_term_factor: float


@dataclass(frozen=True, slots=True)
class Curve:
    """How one batch faded. `kept` is the share of its content after each pass.

    Passes are counted from 0, the pass of the batch itself, which leaves it alone: it is in focus.

    `cuts` and `ends` are, for each of its memories, the passes until it was first shortened and until it was
    forgotten; shorter lists mean that it had not come to that within the passes simulated.
    """

    case: Case
    kept: list[float]
    cuts: list[int]
    ends: list[int]

    @property
    def first_cut(self) -> int | None:
        """Passes until the middle one of the batch's memories is first shortened; None when it was not."""
        return _middle(self.cuts)

    @property
    def gone(self) -> int | None:
        """Passes until the middle one of the batch's memories is forgotten; None when it was not."""
        return _middle(self.ends)


def _middle(passes: list[int]) -> int | None:
    middle = SEGMENTS // 2
    return sorted(passes)[middle] if len(passes) > middle else None


def cases() -> list[Case]:
    """Every curve, by decay rate and long-term factor."""
    return [Case(rate, factor) for rate in DECAY_RATES for factor in LONG_TERM_FACTORS]


def simulate(case: Case, most_passes: int) -> Curve:
    """The curve of one case over at most `most_passes` passes."""
    parameters = AgentParameters(decay_rate=case.decay_rate, long_term_factor=case.long_term_factor)
    network = Network(parameters)
    for number in range(1, WARM_UP_BATCHES + 1):
        _remember(network, number)
        _compress(network, number)
    watched = range(network.next_node_id, network.next_node_id + SEGMENTS)
    kept: list[float] = []
    cuts: dict[int, int] = {}
    ends: dict[int, int] = {}
    for passes in range(most_passes + 1):
        _remember(network, WARM_UP_BATCHES + 1 + passes)
        _compress(network, WARM_UP_BATCHES + 1 + passes)
        left = {n: network.node(n).content_length if n in network else 0 for n in watched}
        kept.append(sum(left.values()) / (SEGMENTS * CHARACTERS))
        for node_id, length in left.items():
            if length < CHARACTERS:
                cuts.setdefault(node_id, passes)
            if length == 0:
                ends.setdefault(node_id, passes)
        if kept[-1] == 0:
            break
    return Curve(case, kept, list(cuts.values()), list(ends.values()))


def _remember(network: Network, number: int) -> None:
    content = "x" * CHARACTERS
    memories = [NewMemory(content, "", (), 0) for _ in range(SEGMENTS)]
    change = digest(network, memories, LinkNames(), batch=number, owed_passes=0, rng=Random(number))
    network.apply(change)


def _compress(network: Network, number: int) -> None:
    begun = begin_pass(network, number, Random(number))
    network.apply(begun)
    state = begun.pass_state
    assert state is not None
    draft = Draft(network)
    shortened: list[tuple[NodeId, int]] = []

    def shorten(shortening: Shortening) -> bool:
        shortened.append((shortening.node_id, shortening.target))
        return True

    visit(draft, nodes_to_visit(network, state), state, shorten)
    end_pass(draft, state, 1)
    draft.change.nodes = [_memory(node_id, length) for node_id, length in shortened]
    network.apply(draft.change)


def _memory(node_id: NodeId, length: int) -> Node:
    return Node(node_id, "x" * length, "", (), 0, CHARACTERS)
