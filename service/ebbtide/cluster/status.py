"""The state of a cluster, as its log servers have it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from ebbtide.cluster.jetstream import Servers
from ebbtide.cluster.log import Kind
from ebbtide.cluster.membership import Documents, NodeInfo
from ebbtide.cluster.names import Names
from ebbtide.cluster.slots import Table
from ebbtide.errors import Precondition
from ebbtide.ids import AgentId
from ebbtide.settings import ClusterSettings
from ebbtide.store.directory.data_directory import agent_in


def used_names(servers: Servers, settings: ClusterSettings) -> Names:
    """Return the names of a cluster, and use them. Raise CLUSTER_UNUSABLE if it does not exist."""
    created = servers.created(settings.name)
    if created is None:
        raise Precondition(
            f"There is no cluster {settings.name} on the log servers. Run `ebbtide cluster init`.",
            reason="CLUSTER_UNUSABLE",
        )
    names = Names(settings.name, created.slot_count, created.log_streams)
    servers.use(names)
    return names


def read_table(documents: Documents, names: Names) -> tuple[Table, int]:
    """Return the table of slots and its sequence; an empty one with 0 before a node has started. May raise NoAnswer."""
    found = documents.read(names.table)
    if found is None:
        return Table.empty(names.slot_count), 0
    return msgspec.msgpack.decode(found[0], type=Table), found[1]


def read_nodes(
    servers: Servers, names: Names, lease_s: float, drained: Collection[str]
) -> list[dict[str, Any]]:
    """Return every node that the cluster has had, with its state, in order of the names. May raise NoAnswer."""
    nodes = []
    for subject in servers.subjects(names.nodes):
        lease = servers.read(subject)
        if lease is None:
            continue
        info, age_s = msgspec.msgpack.decode(lease[0], type=NodeInfo), servers.age_s(subject)
        nodes.append(
            {
                "name": info.name,
                "address": info.address,
                "version": info.version,
                "renewed_s_ago": round(age_s, 1),
                "state": _state(info, age_s > lease_s, info.name in drained),
            }
        )
    return nodes


def _state(info: NodeInfo, is_silent: bool, is_drained: bool) -> str:
    if info.renewals < 0:
        return "stopped"
    if is_silent:
        return "silent"
    if info.is_leaving:
        return "leaving"
    return "drained" if is_drained else "running"


def read_status(servers: Servers, settings: ClusterSettings) -> dict[str, Any]:
    """Return the nodes with their slots, and the number of agents. May raise NoAnswer."""
    names = used_names(servers, settings)
    table, _ = read_table(servers, names)
    nodes = read_nodes(servers, names, settings.lease_s, table.drained)
    for node in nodes:
        node["slots"] = len(table.slots_of(node["name"]))
    live = {node["name"] for node in nodes if node["state"] not in ("stopped", "silent")}
    copies = servers.copies()
    agents = sum(_agents_of(servers, names.log_prefix(number)) for number in range(names.log_streams))
    return {
        "cluster": settings.name,
        "nodes": nodes,
        "slots": names.slot_count,
        "unowned_slots": sum(owner not in live for owner in table.owners),
        "agents": agents,
        "log_copies": copies.configured,
        "current_log_copies": copies.current,
        "missing_log_servers": list(copies.missing),
    }


def _agents_of(servers: Servers, prefix: str) -> int:
    """Return how many agents have a log in a stream. That of a deleted agent only says that it was deleted."""
    counts = servers.counts(prefix)
    last = (servers.last(subject) for subject, count in counts.items() if count == 1)
    return len(counts) - sum(record is not None and record.kind == Kind.GONE for record in last)


def agents_in(servers: Servers, names: Names, slots: Collection[int]) -> list[AgentId]:
    """Return the agents that have a log in these slots. May raise NoAnswer."""
    found = []
    for slot in sorted(slots):
        for subject in servers.subjects(names.slot_prefix(slot)):
            agent_id = agent_in(subject.rpartition(".")[2])
            if agent_id is None:
                record = servers.last(subject)
                agent_id = None if record is None else AgentId(record.agent_id)
            if agent_id is not None:
                found.append(agent_id)
    return found
