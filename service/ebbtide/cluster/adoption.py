"""The content of a file becomes the log of its agent.

`adopt_all` moves the agents of a single machine into a cluster; `repair` replaces a log that is damaged or lacks
records.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ebbtide.cluster.erased_log import ErasedLog
from ebbtide.cluster.jetstream import Servers
from ebbtide.cluster.log import AgentLog, Timing
from ebbtide.cluster.snapshot_setting import used_snapshots
from ebbtide.cluster.status import used_names
from ebbtide.errors import Corrupted, EbbtideError, NotFound, Precondition
from ebbtide.ids import AgentId
from ebbtide.settings import ClusterSettings
from ebbtide.store.chain import ChainHead
from ebbtide.store.directory.data_directory import DataDirectory, directory_name
from ebbtide.store.lmdb.replica import Replica

AUTHOR = "adopt"


@dataclass(slots=True)
class Adopted:
    """The agents that were moved, and those that were left out with the reason."""

    adopted: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


def adopt_all(data: DataDirectory, servers: Servers, settings: ClusterSettings) -> Adopted:
    """Append the content of every agent in a locked data directory to an empty log. The files stay, as copies.

    May raise NoAnswer, and Refused for keys that the cluster has. It can be repeated: agents with a log are left out.
    """
    names, done = used_names(servers, settings), Adopted()
    snapshots = used_snapshots(servers, names, settings)
    data.join_cluster(settings.name)
    data.erased.shared = ErasedLog(servers, names, Timing(settings.append_timeout_s))
    try:
        data.erased.follow()
    except Precondition as error:
        done.left_out["audit"] = error.message
    for directory in data.directories():
        meta = data.meta(directory)
        if meta is None:
            done.left_out[directory] = "its meta.json cannot be read"
        elif servers.last(names.subject_of(directory)) is not None:
            done.left_out[meta.agent_id] = "the cluster has an agent with this id"
        else:
            copy = Replica(data.agents / directory, map_bytes=1 << 20, max_map_bytes=data.max_map_bytes)
            subject, timing = names.subject_of(directory), Timing(settings.append_timeout_s)
            log = AgentLog(servers, subject, meta.agent_id, AUTHOR, timing=timing, snapshots=snapshots)
            try:
                keys = data.keys.content(directory)
                if keys is not None:
                    servers.write(names.data_keys(directory), keys, 0)
                rewritten = log.rewrite(log.placed(copy.content()))
                copy.apply([], rewritten.head, rewritten.start, [log.mark])
                done.adopted.append(meta.agent_id)
            except EbbtideError as error:
                done.left_out[meta.agent_id] = error.message
    return done


@dataclass(frozen=True, slots=True)
class Repaired:
    """How far the file and the log of a repaired agent went, as sequences of records."""

    file_head: int
    log_head: int


def repair(
    data: DataDirectory, servers: Servers, settings: ClusterSettings, agent_id: AgentId, *, discards: bool
) -> Repaired:
    """Replace the log of an agent by the content of its file in a locked data directory.

    Raise AGENT_NOT_FOUND without a file, and LOG_BEHIND if the log has later records than the file, unless `discards`.
    May raise NoAnswer.
    """
    names = used_names(servers, settings)
    directory = directory_name(agent_id)
    copy = Replica(data.agents / directory, map_bytes=1 << 20, max_map_bytes=data.max_map_bytes)
    if not copy.exists:
        raise NotFound(
            f"{data.root} has no file of {agent_id}. Repair it on the node that had the agent last.",
            reason="AGENT_NOT_FOUND",
        )
    subject = names.subject_of(directory)
    head, last = copy.head, servers.last(subject)
    log_head = 0 if last is None else last.sequence
    if log_head > head.number and not discards:
        raise Corrupted(
            f"The log has record {log_head}, the file only record {head.number}. The records between would be lost; "
            "pass --discard to replace the log all the same.",
            reason="LOG_BEHIND",
        )
    snapshots = used_snapshots(servers, names, settings)
    timing = Timing(settings.append_timeout_s)
    log = AgentLog(servers, subject, agent_id, AUTHOR, timing=timing, snapshots=snapshots)
    rewritten, mark = log.repaired_by(copy.content(), ChainHead() if last is None else last.head)
    copy.apply([], rewritten.head, rewritten.start, [mark])
    return Repaired(head.number, log_head)
