"""The content of a file becomes the log of its agent.

`adopt_all` moves the agents of a single machine into a cluster; `repair` replaces a log that is damaged or lacks
records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ebbtide.cluster.erased_log import ErasedLog
from ebbtide.cluster.jetstream import Servers
from ebbtide.cluster.log import AgentLog, Kind, Record, Refused, Timing
from ebbtide.cluster.names import Names
from ebbtide.cluster.ownership import answered
from ebbtide.cluster.snapshot_setting import used_snapshots
from ebbtide.cluster.status import used_names
from ebbtide.errors import Corrupted, EbbtideError, NotFound, Precondition
from ebbtide.ids import AgentId
from ebbtide.settings import ClusterSettings
from ebbtide.store.chain import ChainHead
from ebbtide.store.directory.data_directory import DataDirectory, directory_name
from ebbtide.store.lmdb.replica import Replica

AUTHOR = "adopt"

MAX_LISTED = 5
"""Agents that an error names."""


@dataclass(slots=True)
class Adopted:
    """The agents that were moved, and those that were left out with the reason."""

    adopted: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


class _Moving(NamedTuple):
    """An agent that is about to be moved into the cluster."""

    directory: str
    agent_id: str
    head: ChainHead
    """The end of its log, if an agent with this id was deleted in the cluster."""
    master: str
    """The fingerprint of the master key that its data keys are wrapped with; empty for an unencrypted agent."""


def adopt_all(data: DataDirectory, servers: Servers, settings: ClusterSettings) -> Adopted:
    """Append the content of every agent in a locked data directory to its log. The files stay, as copies.

    Raise CLUSTER_UNUSABLE before anything is written if the nodes could not decrypt an agent, or one is not encrypted
    although they require it. May raise NoAnswer. It can be repeated: agents that the cluster has are left out.
    """
    data.refuse_other_cluster(settings.name)
    names, done = used_names(servers, settings), Adopted()
    moving = list(_chosen(data, servers, names, done))
    _refuse_unencrypted(moving, data, settings)
    _agree_on_master(moving, data, servers, names)
    snapshots = used_snapshots(servers, names, settings)
    data.join_cluster(settings.name)
    data.erased.shared = ErasedLog(servers, names, Timing(settings.append_timeout_s))
    try:
        data.erased.follow()
    except Precondition as error:
        done.left_out["audit"] = error.message
    for one in moving:
        copy = _copy(data, one.directory)
        subject, timing = names.subject_of(one.directory), Timing(settings.append_timeout_s)
        log = AgentLog(servers, subject, one.agent_id, AUTHOR, timing=timing, snapshots=snapshots)
        log.head = one.head
        try:
            keys = data.keys.content(one.directory)
            if keys is not None:
                _put_keys(servers, names.data_keys(one.directory), keys)
            rewritten = log.rewrite(log.placed(copy.content()))
            copy.apply([], rewritten.head, rewritten.start, [log.mark])
            done.adopted.append(one.agent_id)
        except EbbtideError as error:
            done.left_out[one.agent_id] = error.message
    return done


def _copy(data: DataDirectory, directory: str) -> Replica:
    return Replica(data.agents / directory, map_bytes=1 << 20, max_map_bytes=data.max_map_bytes)


def _chosen(data: DataDirectory, servers: Servers, names: Names, done: Adopted) -> Iterator[_Moving]:
    """Yield the agents that can be moved. Note the others in `done`."""
    for directory in data.directories():
        meta = data.meta(directory)
        if meta is None:
            done.left_out[directory] = "its meta.json cannot be read"
            continue
        try:
            last = servers.last(names.subject_of(directory))
            why = _why_not(data, directory, last)
            master = data.master_of(directory)
        except EbbtideError as error:
            why = error.message
        if why:
            done.left_out[meta.agent_id] = why
        else:
            head = ChainHead() if last is None else last.head
            yield _Moving(directory, meta.agent_id, head, master)


def _why_not(data: DataDirectory, directory: str, last: Record | None) -> str:
    """Return why an agent cannot be moved; empty if it can. `last` is the last record of its log."""
    if not _copy(data, directory).exists:
        return "it has no file"
    if last is not None and last.kind != Kind.GONE:
        return "the cluster has an agent with this id"
    if last is not None and data.has_log(directory):
        # A repeated command must not restore what was deleted.
        return "it was moved into the cluster and deleted there"
    if data.is_encrypted(directory) and not data.keys.has_keys(directory):
        return "its data key is missing"
    return ""


def _refuse_unencrypted(moving: Sequence[_Moving], data: DataDirectory, settings: ClusterSettings) -> None:
    """Raise CLUSTER_UNUSABLE if an agent is not encrypted although the nodes require it."""
    found = [one.agent_id for one in moving if not one.master]
    if found and settings.require_encryption:
        raise Precondition(
            f"Not encrypted: {_listed(found)}. Every text would be readable on the log servers. Nothing was moved. "
            f"Run `ebbtide encryption encrypt --all --data-dir {data.root}` with the master key of the nodes first, or "
            "set EBBTIDE_CLUSTER__REQUIRE_ENCRYPTION=false.",
            reason="CLUSTER_UNUSABLE",
        )


def _agree_on_master(moving: Sequence[_Moving], data: DataDirectory, servers: Servers, names: Names) -> None:
    """Raise CLUSTER_UNUSABLE if the agents' data keys are wrapped with another master key than that of the nodes.

    In a cluster without a node so far, their master key becomes that of the nodes.
    """
    found = sorted({one.master for one in moving if one.master})
    if not found:
        return

    def common() -> str:
        known = servers.read(names.master_key)
        if known is None and len(found) == 1:
            servers.write(names.master_key, found[0].encode(), 0)
        return found[0] if known is None else known[0].decode()

    known = answered(common)
    if found == [known]:
        return
    others = [one.agent_id for one in moving if one.master not in ("", known)]
    if " " in known:
        what = f"the master keys {known}, of which one replaces the other"
        step = "Let `ebbtide cluster rotate-master-key` end"
    elif known:
        what = f"the master key {known}"
        step = f"Run `ebbtide encryption rotate-master --data-dir {data.root}` to change it"
    else:
        what = "no master key"
        step = f"Run `ebbtide encryption decrypt --all --data-dir {data.root}`"
    raise Precondition(
        f"The cluster has {what}, but the keys of these agents are wrapped with "
        f"{' and '.join(one for one in found if one != known)}: {_listed(others)}. Nothing was moved. {step} first.",
        reason="CLUSTER_UNUSABLE",
    )


def _put_keys(servers: Servers, subject: str, keys: bytes) -> None:
    """Write the wrapped data keys of an agent. Raise CLUSTER_UNUSABLE if the log servers have other ones."""
    try:
        servers.write(subject, keys, 0)
    except Refused:
        found = servers.read(subject)
        # An interrupted adoption may have written them.
        if found is None or found[0] != keys:
            raise Precondition(
                "the log servers have other data keys of an agent with this id", reason="CLUSTER_UNUSABLE"
            ) from None


def _listed(agent_ids: Sequence[str]) -> str:
    """Return some names of agents, and the number of the other ones."""
    more = len(agent_ids) - MAX_LISTED
    return ", ".join(agent_ids[:MAX_LISTED]) + (f" and {more} more" if more > 0 else "")


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
    copy = _copy(data, directory)
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
