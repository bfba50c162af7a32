"""Slots: which node of a cluster owns an agent. Pure.

An agent belongs to the slot that its directory name hashes to, and one table names the owner of each slot. A slot
should be owned by the live node with the highest hash of slot and node (rendezvous hashing, Thaler and Ravishankar
1998). So a node that joins takes its share from all others, the slots of a node that leaves are spread over the rest,
and no other slot moves.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache

import msgspec


class Table(msgspec.Struct, frozen=True):
    """The owner of each slot, by node name; empty if no node has owned it."""

    owners: tuple[str, ...]
    drained: tuple[str, ...] = ()
    """Nodes that should own no slot, in order of their names, while another node lives."""

    @classmethod
    def empty(cls, slot_count: int) -> Table:
        """Return a table without owners."""
        return cls(("",) * slot_count)

    def with_owner(self, slots: Collection[int], owner: str) -> Table:
        """Return the table with another owner of these slots."""
        changed = set(slots)
        owners = tuple(owner if slot in changed else old for slot, old in enumerate(self.owners))
        return Table(owners, self.drained)

    def with_drained(self, node: str, *, is_drained: bool) -> Table:
        """Return the table in which a node should own no slot, or its share again."""
        others = {one for one in self.drained if one != node}
        return Table(self.owners, tuple(sorted(others | {node} if is_drained else others)))

    def slots_of(self, node: str) -> frozenset[int]:
        """Return the slots that a node owns."""
        return frozenset(slot for slot, owner in enumerate(self.owners) if owner == node)


@dataclass(frozen=True, slots=True)
class Plan:
    """The moves that one node has to make."""

    claimed: frozenset[int] = frozenset()
    """Slots without a live owner that this node should own."""
    given: dict[str, frozenset[int]] = field(default_factory=dict)
    """Slots of this node that other live nodes should own, by node."""


def slot_of(directory: str, slot_count: int) -> int:
    """Return the slot of the agent in a directory."""
    return zlib.crc32(directory.encode()) % slot_count


def best_node(slot: int, nodes: Collection[str]) -> str:
    """Return the node that should own a slot; empty without nodes."""
    return max(nodes, key=lambda node: _weight(slot, node), default="")


def plan_for(node: str, table: Table, live: Collection[str], leaving: Collection[str] = ()) -> Plan:
    """Return the moves of one node. Live nodes that are leaving keep their slots until they have given them away."""
    present = [one for one in live if one not in leaving]
    staying = [one for one in present if one not in table.drained] or present
    claimed, given = set(), dict[str, set[int]]()
    for slot, owner in enumerate(table.owners):
        best = best_node(slot, staying)
        if owner not in live and best == node:
            claimed.add(slot)
        elif owner == node and best and best != node:
            given.setdefault(best, set()).add(slot)
    return Plan(frozenset(claimed), {name: frozenset(slots) for name, slots in given.items()})


@lru_cache(1 << 16)
def _weight(slot: int, node: str) -> bytes:
    return hashlib.blake2b(f"{slot}/{node}".encode(), digest_size=8).digest()
