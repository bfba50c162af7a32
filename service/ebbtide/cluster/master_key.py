"""Another master key for a cluster whose nodes are stopped.

    1. The shared fingerprint names both keys.               No node starts from here on.
    2. The leases of nodes that were not stopped are ended.  A paused process finds that it has lost its name.
    3. The data keys of each agent are wrapped again.        Each document is readable with one of the two keys.
    4. The shared fingerprint names the new key.             The nodes start with it.

After an interruption it is run again with the same two keys, in the same order or exchanged. No agent is rewritten.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from ebbtide.cluster.draining import RUNNING
from ebbtide.cluster.jetstream import Servers
from ebbtide.cluster.key_documents import read_keys, replace_keys
from ebbtide.cluster.log import Timing
from ebbtide.cluster.membership import NodeInfo
from ebbtide.cluster.names import Names
from ebbtide.cluster.ownership import answered
from ebbtide.cluster.status import read_nodes, used_names
from ebbtide.errors import EbbtideError, Precondition
from ebbtide.settings import ClusterSettings
from ebbtide.store.encryption.keys import wrapped_again

if TYPE_CHECKING:
    from ebbtide.store.encryption.seal import MasterKey


@dataclass(slots=True)
class Rotated:
    """The agents whose keys were wrapped again, and the directories of those that were left out, with the reason."""

    rotated: int = 0
    left_out: dict[str, str] = field(default_factory=dict)


def rotate_master_key(
    servers: Servers,
    settings: ClusterSettings,
    old: MasterKey,
    new: MasterKey,
    *,
    track: Callable[[Sequence[str]], Iterable[str]] = lambda directories: directories,
    sleep: Callable[[float], None] = time.sleep,
) -> Rotated:
    """Wrap the data keys of all agents with another master key. `track` gets their directories and returns them.

    Raise CLUSTER_UNUSABLE while a node runs, MASTER_KEY_REFUSED for other keys than those of the cluster, and
    NOT_ENOUGH_LOG_SERVERS. May raise NoAnswer.
    """
    names, timing = used_names(servers, settings), Timing(settings.append_timeout_s)
    _refuse_running(servers, names, settings.lease_s)
    sequence = answered(lambda: _begin(servers, names, old, new), timing)
    if answered(lambda: _end_leases(servers, names), timing):
        # Their processes may rely on them for as long.
        sleep(settings.lease_s)
    done = _wrap_all(servers, names, old, new, track, timing)
    servers.write(names.master_key, new.fingerprint.encode(), sequence)
    return done


def _refuse_running(servers: Servers, names: Names, lease_s: float) -> None:
    nodes = answered(lambda: read_nodes(servers, names, lease_s, ()))
    running = [node["name"] for node in nodes if node["state"] in (*RUNNING, "leaving")]
    if running:
        raise Precondition(
            f"Stop all nodes of the cluster first. These run, or did a moment ago: {', '.join(running)}.",
            reason="CLUSTER_UNUSABLE",
        )


def _begin(servers: Servers, names: Names, old: MasterKey, new: MasterKey) -> int:
    """Let no node start. Return the sequence of the document that says so."""
    found = servers.read(names.master_key)
    known = [] if found is None else found[0].decode().split()
    if found is None or not known or not {old.fingerprint, new.fingerprint}.issuperset(known):
        raise Precondition(
            f"The data keys of this cluster are wrapped with the master key {' or '.join(known) or '(none)'}, not with "
            f"{old.fingerprint} or {new.fingerprint}.",
            reason="MASTER_KEY_REFUSED",
        )
    both = f"{old.fingerprint} {new.fingerprint}".encode()
    return found[1] if found[0] == both else servers.write(names.master_key, both, found[1])


def _end_leases(servers: Servers, names: Names) -> bool:
    """End the leases of nodes that were not stopped. Return whether there are any."""
    has_any = False
    for subject in servers.subjects(names.nodes):
        found = servers.read(subject)
        info = None if found is None else msgspec.msgpack.decode(found[0], type=NodeInfo)
        if found is not None and info is not None and info.renewals >= 0:
            # Of no life: the process that had it does not take it for its own.
            ended = msgspec.structs.replace(info, life="", renewals=-1)
            servers.write(subject, msgspec.msgpack.encode(ended), found[1])
            has_any = True
    return has_any


def _wrap_all(
    servers: Servers,
    names: Names,
    old: MasterKey,
    new: MasterKey,
    track: Callable[[Sequence[str]], Iterable[str]],
    timing: Timing,
) -> Rotated:
    done = Rotated()
    subjects = answered(lambda: servers.subjects(names.all_data_keys), timing)

    def wrap(directory: str) -> bool:
        content = read_keys(servers, names, directory)
        if content is None:
            return False
        wrapped = wrapped_again(content, directory, old, new)
        replace_keys(servers, names, directory, wrapped)
        return wrapped != content

    for directory in track(sorted({names.data_keys_in(subject) for subject in subjects})):
        try:
            done.rotated += answered(lambda directory=directory: wrap(directory), timing)  # type: ignore[misc]
        except EbbtideError as error:
            if error.reason == "NOT_ENOUGH_LOG_SERVERS":
                raise
            # No node can read it either.
            done.left_out[directory] = error.message
    return done
