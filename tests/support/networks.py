"""Views of a network that only tests need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ebbtide.memory.association import Reached, recall
from ebbtide.memory.network import LinkState, Network
from ebbtide.records import Cue


def all_links(network: Network) -> Iterator[LinkState]:
    """Yield every link, including broken and dangling ones."""
    yield from network.link_states(
        np.flatnonzero(
            network.slots["alive"][network.links.rows["source"]] & (network.links.rows["written"] >= 0)
        )
    )


def reach(network: Network, relations: Sequence[str], depth: int) -> list[Reached]:
    """Return every node that a recall without keywords finds within `depth` hops, in order."""
    cue = Cue(relations=tuple(relations), depth=depth, max_results=10_000)
    return [reached for reached, _ in recall(network, cue, lambda _: "", "auto").memories]
