"""Server reflection: the schema of the services. If keys are required, callers need a valid one.

The responses are those of gRPC's own reflection. This module adds the authentication.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from grpc_reflection.v1alpha import reflection

from ebbtide.errors import EbbtideError
from ebbtide.rpc.servicer import Servicer, metadata_of

_ReflectionServicer: Any = reflection.aio.ReflectionServicer  # type: ignore[attr-defined]


class Reflection(_ReflectionServicer):  # type: ignore[misc]
    """Returns the schema of the named services."""

    def __init__(self, servicer: Servicer, names: tuple[str, ...]) -> None:
        super().__init__(names)
        self._servicer = servicer

    async def ServerReflectionInfo(self, request_iterator: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        """Respond to requests about the schema, one after the other."""
        try:
            self._servicer.admit(context, metadata_of(context))
        except EbbtideError as error:
            await self._servicer.refuse(context, error)
        async for answer in super().ServerReflectionInfo(request_iterator, context):
            with self._servicer.stalls.sending(context, answer.ByteSize()):
                yield answer
