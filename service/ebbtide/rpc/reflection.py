"""Reflection: the schema of the service, told to any caller who shows a key where keys are asked for.

What is told is gRPC's own reflection; only who may hear it is decided here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from grpc_reflection.v1alpha import reflection

from ebbtide.errors import EbbtideError
from ebbtide.rpc.servicer import Servicer

_ReflectionServicer: Any = reflection.aio.ReflectionServicer  # type: ignore[attr-defined]


class Reflection(_ReflectionServicer):  # type: ignore[misc]
    """Tells the schema of the named services."""

    def __init__(self, servicer: Servicer, names: tuple[str, ...]) -> None:
        super().__init__(names)
        self._servicer = servicer

    async def ServerReflectionInfo(self, request_iterator: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        """Answer questions about the schema, one after the other."""
        try:
            self._servicer.admit(context)
        except EbbtideError as error:
            await self._servicer.refuse(context, error)
        async for answer in super().ServerReflectionInfo(request_iterator, context):
            with self._servicer.stalls.sending(context, answer.ByteSize()):
                yield answer
