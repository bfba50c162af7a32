"""A change of an agent's memory as one value.

`memory/` computes a Change, `store/` writes it in one transaction, and then it is applied to the network in memory.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from ebbtide.ids import NodeId
from ebbtide.records import Concept, Entity, Link, Node, PassState, Pin
from ebbtide.statements import Assertion, LedgerState, Ruling


class Change(msgspec.Struct):
    """A change of an agent's memory.

    The order within a change: nodes and entities are written, then forgotten and deleted; `removed_links` are removed;
    links are written; then pins, focus, scan counters and passes. Forgetting a memory removes its outgoing links; links
    that point to it stay. Deleting a node or an entity removes both. Each node in `scanned` counts one more scan, in
    the pass `scanned_in`. `kept` takes effect before links are written.
    """

    nodes: list[Node] = msgspec.field(default_factory=list)
    entities: dict[NodeId, Entity] = msgspec.field(default_factory=dict)
    """New entities by ascending id, and changed ones. `left_from` states which links are written as 1.0."""
    forgotten: list[NodeId] = msgspec.field(default_factory=list)
    deleted: list[NodeId] = msgspec.field(default_factory=list)
    deleted_entities: list[NodeId] = msgspec.field(default_factory=list)
    removed_links: list[Link] = msgspec.field(default_factory=list)
    links: list[Link] = msgspec.field(default_factory=list)
    pins: dict[NodeId, Pin] = msgspec.field(default_factory=dict)
    """The new state of existing memories that were pinned or unpinned."""
    kept: dict[NodeId, bool] = msgspec.field(default_factory=dict)
    """Whether passes skip a statement from now on, for existing statements for which that has changed."""
    assertions: list[Assertion] = msgspec.field(default_factory=list)
    """New assertions, and those that a deletion has changed."""
    rulings: list[Ruling] = msgspec.field(default_factory=list)
    """New rulings, and those that a deletion has changed."""
    removed_entries: list[int] = msgspec.field(default_factory=list)
    """The entry numbers of assertions and rulings that are deleted, before new ones are written."""
    concepts: list[Concept] = msgspec.field(default_factory=list)
    """New concepts, and changed ones."""
    deleted_concepts: list[NodeId] = msgspec.field(default_factory=list)
    ledger: LedgerState | None = None
    scanned: NDArray[np.int64] = msgspec.field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    scanned_in: int = 0
    focus: tuple[NodeId, ...] | None = None
    entity_focus: tuple[NodeId, ...] | None = None
    entity_memories: int | None = None
    """The value of the parameter that takes effect."""
    next_node_id: NodeId | None = None
    owed_passes: int | None = None
    uncounted_tokens: int | None = None
    """Tokens of new memories for which no pass is owed yet, under `pass_every_tokens`."""
    finished_passes: int | None = None
    pass_state: PassState | None = None
    pass_ended: bool = False
