"""Where the contents of agents are: the setting `cluster.snapshots`, which is the same on all nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ebbtide.cluster.snapshots import Snapshots
from ebbtide.cluster.status import read_nodes
from ebbtide.errors import Precondition, Unavailable
from ebbtide.settings import NATS, ClusterSettings, s3_address
from ebbtide.telemetry import get_log

if TYPE_CHECKING:
    from ebbtide.cluster.jetstream import Servers
    from ebbtide.cluster.names import Names
    from ebbtide.cluster.s3 import S3Objects


def admit_setting(servers: Servers, names: Names, settings: ClusterSettings, node: str) -> None:
    """Raise CLUSTER_UNUSABLE if the other nodes have another setting. The only node that runs may replace it.

    May raise NoAnswer and Refused.
    """
    value, found = settings.snapshots, servers.read(names.snapshots)
    if found is None:
        servers.write(names.snapshots, value.encode(), 0)
        return
    common = found[0].decode()
    if common == value:
        return
    if value == NATS:
        raise Precondition(
            f"Contents of agents of this cluster are in {common}. Set cluster.snapshots to that; only another cluster "
            "can have them in its log.",
            reason="CLUSTER_UNUSABLE",
        )
    states = read_nodes(servers, names, settings.lease_s, ())
    running = [
        one["name"] for one in states if one["state"] not in ("stopped", "silent") and one["name"] != node
    ]
    if running:
        raise Precondition(
            f"The other nodes of this cluster ({', '.join(running)}) have cluster.snapshots = {common}, this one has "
            f"{value}. All nodes need the same one; stop all of them to change it.",
            reason="CLUSTER_UNUSABLE",
        )
    servers.write(names.snapshots, value.encode(), found[1])


def node_snapshots(settings: ClusterSettings) -> Snapshots | None:
    """Return the objects of a node that starts; None without S3. Raise CLUSTER_UNUSABLE or MISSING_EXTRA.

    A node starts also while S3 does not answer: many agents do not need it.
    """
    if settings.snapshots == NATS:
        return None
    objects = _objects(settings.snapshots, settings.append_timeout_s)
    try:
        objects.check()
    except Unavailable:
        get_log("cluster").warning("started without S3; logs are not shortened until it answers")
    return Snapshots(objects)


def used_snapshots(servers: Servers, names: Names, settings: ClusterSettings) -> Snapshots | None:
    """Return the objects of the nodes, for a process that is no node. May raise NoAnswer, and MISSING_EXTRA."""
    found = servers.read(names.snapshots)
    value = NATS if found is None else found[0].decode()
    return None if value == NATS else Snapshots(_objects(value, settings.append_timeout_s))


def _objects(value: str, timeout_s: float) -> S3Objects:
    # Imported here, so that only a cluster with S3 loads its client.
    try:
        from ebbtide.cluster.s3 import S3Objects
    except ModuleNotFoundError as error:
        raise Precondition(
            "cluster.snapshots requires the extra `cluster`: pip install 'ebbtide[cluster]'",
            reason="MISSING_EXTRA",
        ) from error
    return S3Objects(s3_address(value), timeout_s)
