"""The state of a cluster, as its log servers have it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from ebbtide.cluster.jetstream import Servers
from ebbtide.cluster.membership import NodeInfo
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


def read_status(servers: Servers, settings: ClusterSettings) -> dict[str, Any]:
    """Return the nodes with their slots, and the number of agents that have a log. May raise NoAnswer."""
    names = used_names(servers, settings)
    found = servers.read(names.table)
    table = Table.empty(names.slot_count) if found is None else msgspec.msgpack.decode(found[0], type=Table)
    nodes = []
    for subject in servers.subjects(names.nodes):
        lease = servers.read(subject)
        if lease is not None:
            info = msgspec.msgpack.decode(lease[0], type=NodeInfo)
            age_s = servers.age_s(subject)
            state = "stopped" if info.renewals < 0 else "leaving" if info.is_leaving else "running"
            if state != "stopped" and age_s > settings.lease_s:
                state = "silent"
            nodes.append(
                {
                    "name": info.name,
                    "address": info.address,
                    "version": info.version,
                    "slots": len(table.slots_of(info.name)),
                    "renewed_s_ago": round(age_s, 1),
                    "state": state,
                }
            )
    agents = sum(servers.subject_count(names.log_stream(number)) for number in range(names.log_streams))
    return {
        "cluster": settings.name,
        "nodes": nodes,
        "slots": names.slot_count,
        "unowned_slots": len(table.slots_of("")),
        "agents": agents,
    }


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
