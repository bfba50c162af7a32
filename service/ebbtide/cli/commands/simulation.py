"""Simulate the forgetting curve with the memory model of the daemon (`memory/simulation.py`).

Each batch has five memories of sixty characters and is followed by one complete pass, as in section 5.2 of the memory
model. The simulation follows one batch and records the share of its content that is left after each pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from ebbtide.memory.network import Network
from ebbtide.memory.simulation import Simulation
from ebbtide.parameters import AgentParameters

SEGMENTS = 5
CHARACTERS = 60
WARM_UP_BATCHES = 20
"""Batches before the followed one. Memories of earlier batches would have no links to it."""

DECAY_RATES = (0.95, 0.97, 0.99)
LONG_TERM_FACTORS = (0.0, 0.02, 0.05)


@dataclass(frozen=True, slots=True)
class Case:
    """The parameters of one curve."""

    decay_rate: float
    long_term_factor: float


@dataclass(frozen=True, slots=True)
class Curve:
    """The simulated life of one batch.

    `kept` is the share of its content that is left after each pass. Pass 0 is that of the batch itself and changes
    nothing, because the batch is in focus.

    `cuts` and `ends` contain the pass in which each memory was first shortened and forgotten. Memories that were not
    shortened or forgotten within the simulated passes are missing.
    """

    case: Case
    kept: list[float]
    cuts: list[int]
    ends: list[int]

    @property
    def first_cut(self) -> int | None:
        """Return the median pass of the first shortening; None if it is beyond the simulated passes."""
        return _median(self.cuts)

    @property
    def gone(self) -> int | None:
        """Return the median pass of the forgetting; None if it is beyond the simulated passes."""
        return _median(self.ends)


def _median(passes: list[int]) -> int | None:
    middle = SEGMENTS // 2
    return sorted(passes)[middle] if len(passes) > middle else None


def cases() -> list[Case]:
    """Return every combination of decay rate and long-term factor."""
    return [Case(rate, factor) for rate in DECAY_RATES for factor in LONG_TERM_FACTORS]


def simulate(case: Case, max_passes: int) -> Curve:
    """Simulate one case for at most `max_passes` passes."""
    parameters = AgentParameters(decay_rate=case.decay_rate, long_term_factor=case.long_term_factor)
    network = Network(parameters)
    simulation = Simulation(network, lambda purpose, number: Random(number))
    for number in range(1, WARM_UP_BATCHES + 1):
        simulation.remember(number, SEGMENTS, CHARACTERS)
        simulation.compress(number)
    watched = range(network.next_node_id, network.next_node_id + SEGMENTS)
    kept: list[float] = []
    cuts: dict[int, int] = {}
    ends: dict[int, int] = {}
    for passes in range(max_passes + 1):
        simulation.remember(WARM_UP_BATCHES + 1 + passes, SEGMENTS, CHARACTERS)
        simulation.compress(WARM_UP_BATCHES + 1 + passes)
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
