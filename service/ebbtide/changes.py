"""How an agent's memory changes, as one value.

`memory/` computes a Change, `store/` writes it in one transaction, and only then is it applied to the network in
memory.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from ebbtide.ids import NodeId
from ebbtide.records import Link, Node, PassState


class Change(msgspec.Struct):
    """How an agent's memory changes: written in one transaction, then applied to the network in memory.

    Order within a change: nodes are put, forgotten and deleted, then links in `unnamed` go, then links are put, then
    focus, scans and passes. Forgetting a node removes its outgoing links; links that point at it stay. Deleting one
    removes both. The nodes in `scanned` count one scan more, in the pass `scanned_in`.
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
