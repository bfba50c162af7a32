"""A change of an agent's memory as one value.

`memory/` computes a Change, `store/` writes it in one transaction, and then it is applied to the network in memory.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from ebbtide.ids import NodeId
from ebbtide.records import Link, Node, PassState


class Change(msgspec.Struct):
    """A change of an agent's memory.

    The order within a change: nodes are written, forgotten and deleted; links in `unnamed` are removed; links are
    written; then focus, scan counters and passes. Forgetting a node removes its outgoing links; links that point to it
    stay. Deleting a node removes both. Each node in `scanned` counts one more scan, in the pass `scanned_in`.
    """

    nodes: list[Node] = msgspec.field(default_factory=list)
    forgotten: list[NodeId] = msgspec.field(default_factory=list)
    deleted: list[NodeId] = msgspec.field(default_factory=list)
    unnamed: list[Link] = msgspec.field(default_factory=list)
    links: list[Link] = msgspec.field(default_factory=list)
    scanned: NDArray[np.int64] = msgspec.field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    scanned_in: int = 0
    focus: tuple[NodeId, ...] | None = None
    next_node_id: NodeId | None = None
    owed_passes: int | None = None
    finished_passes: int | None = None
    pass_state: PassState | None = None
    pass_ended: bool = False
