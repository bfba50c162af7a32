"""A worker: one of several processes of a daemon, each of which opens its own part of the agents.

A worker shares the ports and the lock of the data directory with the other workers, and answers requests that they pass
on. It stops in two steps, because a request in flight may need the agent of another worker: it accepts no more
connections and completes its own requests; after all workers have done so, it closes its agents.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass

from ebbtide.access.renewal import Renewal
from ebbtide.access.shared_rates import SharedLimits
from ebbtide.daemon import Share, bound_servers, opened, renewing, run_servers
from ebbtide.forwarding.peers import Inbox, WorkerPeers
from ebbtide.ids import AgentId
from ebbtide.process.stop_guard import MIN_GRACE_S
from ebbtide.process.supervision import Supervision
from ebbtide.settings import Settings
from ebbtide.shard import Shard
from ebbtide.store.directory.data_directory import DataDirectory, directory_name
from ebbtide.telemetry import get_log
from ebbtide.verbs.merging import answer_others

READY = b"ready"
DRAINED = b"drained"
CLOSE = b"close"
"""The messages between a worker and its parent. A worker that cannot start sends its pickled error instead of READY. If
one of the two ends, the other one reads the end of the connection."""


@dataclass(frozen=True, slots=True)
class Inherited:
    """The parts that a worker inherits from its parent."""

    data: DataDirectory
    limits: SharedLimits
    inboxes: list[Inbox]
    rest_socket: socket.socket
    grpc_port: int
    renewal: Renewal | None


def settings_of_worker(settings: Settings, count: int) -> Settings:
    """Return the settings of each worker, with its part of the limits on memory and open agents."""
    server, fleet = settings.server, settings.fleet
    return settings.model_copy(
        update={
            "server": server.model_copy(update={"max_buffered_bytes": server.max_buffered_bytes // count}),
            "fleet": fleet.model_copy(
                update={
                    "max_resident_bytes": fleet.max_resident_bytes // count,
                    "max_open_agents": -(-fleet.max_open_agents // count),
                }
            ),
        }
    )


async def serve_worker(
    settings: Settings, shard: Shard, inherited: Inherited, parent: socket.socket, *, is_successor: bool
) -> None:
    """Serve until SIGTERM or SIGINT, or until the parent ends. `parent` is the connection to it.

    A successor replaces a worker that has ended, and completes the work that this interrupted.
    """
    gc.freeze()
    inherited.data.share(shard, cleans_up=is_successor)
    peers = WorkerPeers(shard, inherited.inboxes, lambda agent_id: directory_name(AgentId(agent_id)))
    share = Share(inherited.data, inherited.limits, peers)
    renewal = inherited.renewal
    if renewal is not None:
        # The files may be newer than the certificates that the parent has read.
        renewal.look()
    supervision = Supervision(settings.server.shutdown_grace_s, settings.log.format)
    async with (
        bound_servers(settings, renewal, inherited.rest_socket, inherited.grpc_port) as (rest, rpc),
        opened(settings, on_beat=supervision.beat, worker=share) as service,
        renewing(renewal, service),
        supervision.until_stopped() as stop,
        _parent_messages(parent, stop) as closing,
    ):
        answer_others(service, peers)

        def report(message: bytes) -> None:
            # If the parent has ended, `stop` is set.
            with contextlib.suppress(OSError):
                parent.send(message)

        def on_listening() -> None:
            peers.listen()
            report(READY)

        begun_s = await run_servers(service, rest, rpc, stop, on_listening)
        report(DRAINED)
        # If another worker hangs, its guardian kills it. That of this worker would kill this one at the same time.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(begun_s + max(MIN_GRACE_S, settings.server.shutdown_grace_s)):
                await closing.wait()
        await peers.close()
    get_log("daemon").info("stopped")


@contextlib.asynccontextmanager
async def _parent_messages(parent: socket.socket, stop: asyncio.Event) -> AsyncIterator[asyncio.Event]:
    """Yield an event that is set when the parent sends CLOSE. If the parent ends, set this event and `stop`."""
    loop, closing = asyncio.get_running_loop(), asyncio.Event()
    parent.setblocking(False)

    def receive() -> None:
        try:
            message = parent.recv(64)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        closing.set()
        if not message:
            loop.remove_reader(parent)
            stop.set()

    loop.add_reader(parent, receive)
    try:
        yield closing
    finally:
        loop.remove_reader(parent)
