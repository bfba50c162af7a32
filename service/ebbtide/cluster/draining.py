"""Drain a node: the other nodes own its slots until it is started again.

The names of drained nodes are in the table of slots, so all nodes make their plans from the same ones. The slots move
as they do when a node is stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from ebbtide.cluster.jetstream import Servers
from ebbtide.cluster.names import Names
from ebbtide.cluster.ownership import answered
from ebbtide.cluster.slots import Table
from ebbtide.cluster.status import read_nodes, read_table, used_names
from ebbtide.errors import Precondition
from ebbtide.settings import ClusterSettings

POLL_S = 0.2
"""Pause between two looks at the table."""

RUNNING = ("running", "drained")
"""States of nodes that keep their slots."""


@dataclass(frozen=True, slots=True)
class Drained:
    """The slots that a drained node still has, and how many others took, by name."""

    left: int
    taken: dict[str, int]


def drain(
    servers: Servers,
    settings: ClusterSettings,
    node: str,
    *,
    timeout_s: float,
    on_progress: Callable[[int], None] = lambda left: None,
) -> Drained:
    """Let the other nodes take every slot of a node, and wait until they have. `on_progress` gets the slots left.

    Raise CLUSTER_UNUSABLE for a node that does not run, and if no other node could take its slots. May raise NoAnswer.
    """
    names = used_names(servers, settings)
    _refuse_useless(servers, settings, names, node)
    before = _mark(servers, names, node, is_drained=True)
    deadline_s = time.monotonic() + timeout_s
    while True:
        table = answered(lambda: read_table(servers, names)[0])
        left = len(table.slots_of(node))
        on_progress(left)
        if not left or time.monotonic() > deadline_s:
            return Drained(left, _taken(before, table, node))
        time.sleep(POLL_S)


def end_drain(servers: Servers, settings: ClusterSettings, node: str) -> bool:
    """Give a node its share of the slots again. Return whether it was drained. May raise NoAnswer."""
    names = used_names(servers, settings)
    return node in _mark(servers, names, node, is_drained=False).drained


def _mark(servers: Servers, names: Names, node: str, *, is_drained: bool) -> Table:
    """Write into the table whether a node is drained. Return the table before."""

    def mark() -> Table:
        table, sequence = read_table(servers, names)
        changed = table.with_drained(node, is_drained=is_drained)
        if changed != table:
            servers.write(names.table, msgspec.msgpack.encode(changed), sequence)
        return table

    return answered(mark)


def _refuse_useless(servers: Servers, settings: ClusterSettings, names: Names, node: str) -> None:
    """Raise CLUSTER_UNUSABLE unless a node runs, and another one can take its slots."""
    table, _ = read_table(servers, names)
    states = {
        one["name"]: one["state"] for one in read_nodes(servers, names, settings.lease_s, table.drained)
    }
    known = ", ".join(f"{name} ({state})" for name, state in states.items()) or "none"
    if node not in states:
        raise Precondition(
            f"The cluster {settings.name} has no node {node}. Its nodes: {known}.", reason="CLUSTER_UNUSABLE"
        )
    if states[node] not in (*RUNNING, "leaving"):
        raise Precondition(
            f"The node {node} is {states[node]}, so the other nodes take its slots without a drain.",
            reason="CLUSTER_UNUSABLE",
        )
    if not any(state == "running" for name, state in states.items() if name != node):
        raise Precondition(
            f"No other node runs undrained that could take the slots of {node}. The nodes: {known}.",
            reason="CLUSTER_UNUSABLE",
        )


def _taken(before: Table, after: Table, node: str) -> dict[str, int]:
    """Return how many slots of a node others own now."""
    owners = sorted(after.owners[slot] for slot in before.slots_of(node))
    return {owner: owners.count(owner) for owner in dict.fromkeys(owners) if owner != node}
