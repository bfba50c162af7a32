"""A worker that owns no agent, in this process: every request for an agent is passed on to the owner and back.

So the cases of one daemon run through `rest/forwarding.py` and `rpc/forwarding.py`, over the sockets of real workers.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from ebbtide.forwarding.peers import Inbox, WorkerPeers
from ebbtide.rest.app import create_app
from ebbtide.rpc.forwarding import ForwardingServicer
from ebbtide.rpc.stalls import Stalls
from ebbtide.shard import Shard
from ebbtide.verbs.service import Service
from tests.support.callers import CALLERS, CallerIn, GrpcCaller, RestCaller, grpc_served
from tests.support.in_process import service_in

OWNER = 1


class _Peers(WorkerPeers):
    """Two workers with the same agents, so that lists are not merged."""

    @property
    def others(self) -> list[int]:
        """None."""
        return []


@contextlib.asynccontextmanager
async def forwarding(service: Service) -> AsyncIterator[None]:
    """Let apps and servers that are created within the block pass on every request for an agent."""
    inboxes = [Inbox(), Inbox()]
    entry, owner = (_Peers(Shard(index, 2), inboxes, str) for index in range(2))
    entry.owner_of = owner.owner_of = lambda _: OWNER
    service.peers = owner
    create_app(service)
    ForwardingServicer(service, Stalls(service.settings.server, service.metrics, 0), owner)
    owner.listen()
    service.peers = entry
    try:
        yield
    finally:
        service.peers = None
        await owner.close()
        for inbox in inboxes:
            inbox.close()


@contextlib.asynccontextmanager
async def forwarded_rest_in(
    path: Path, model: Any = None, **sections: dict[str, Any]
) -> AsyncIterator[RestCaller]:
    """Run a daemon without servers, called over REST through a worker that owns no agent."""
    async with service_in(path, model, **sections) as service, forwarding(service):
        yield RestCaller(service)


@contextlib.asynccontextmanager
async def forwarded_grpc_in(
    path: Path, model: Any = None, **sections: dict[str, Any]
) -> AsyncIterator[GrpcCaller]:
    """Run a daemon with its gRPC server, called over gRPC through a worker that owns no agent."""
    async with (
        service_in(path, model, **sections) as service,
        forwarding(service),
        grpc_served(service) as server,
        grpc.aio.insecure_channel(server.target) as channel,
    ):
        yield GrpcCaller(service, channel)


FORWARDED: dict[str, CallerIn] = {"forwarded-rest": forwarded_rest_in, "forwarded-grpc": forwarded_grpc_in}
"""Every transport, through a worker that owns no agent."""

ALL_CALLERS = CALLERS | FORWARDED
"""Every transport, directly and through a worker that owns no agent."""

FORWARDED_IN_FULL = [pytest.param(name, marks=pytest.mark.full) for name in FORWARDED]
"""The forwarded transports, only in `make test-all`."""
