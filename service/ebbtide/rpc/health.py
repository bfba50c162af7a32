"""Health v1: SERVING while requests are accepted, which means that `/readyz` is ready or degraded.

A check returns the current state. A watch polls it, and reports NOT_SERVING and ends when the daemon begins to stop, so
that watches do not delay the stop.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ebbtide.rpc.stalls import Stalls
from ebbtide.verbs import service as verbs
from ebbtide.verbs.service import Service

WATCH_INTERVAL_S = 2.0
"""How often a watch polls the state."""

Status = health_pb2.HealthCheckResponse


class Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """The health of the server as a whole, with an empty name, and of each service."""

    def __init__(self, service: Service, names: tuple[str, ...], stalls: Stalls) -> None:
        self._service = service
        self._stalls = stalls
        self._names = ("", *names)
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """End every watch."""
        self._stopping.set()

    async def Check(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Return the state of one service. Fail with NOT_FOUND for an unknown one."""
        if request.service not in self._names:
            await context.abort(grpc.StatusCode.NOT_FOUND, "there is no such service")
        status = await self._status()
        self._stalls.finishing(context, 0)
        return Status(status=status)

    async def List(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Return the state of every service."""
        status = await self._status()
        self._stalls.finishing(context, 0)
        return health_pb2.HealthListResponse(statuses={name: Status(status=status) for name in self._names})

    async def Watch(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        """Stream the state of one service now and after each change, until the daemon stops."""
        reported = None
        while True:
            is_over = self._stopping.is_set()
            status = Status.SERVICE_UNKNOWN
            if request.service in self._names:
                status = await self._status()
            if status != reported:
                with self._stalls.sending(context, 0):
                    yield Status(status=status)
                reported = status
            if is_over:
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), WATCH_INTERVAL_S)

    async def _status(self) -> Any:
        if self._stopping.is_set():
            return Status.NOT_SERVING
        readiness = await verbs.get_readiness(self._service)
        return Status.NOT_SERVING if readiness.status == "unavailable" else Status.SERVING
