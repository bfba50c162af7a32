"""Limit concurrent calls of the model: foreground, then background, then extraction.

A small language model is the scarcest resource of the daemon. Digesting new messages takes precedence over compression,
and compression over the extraction of statements.
Calls of equal priority are served in order.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import IntEnum
from itertools import count


class Priority(IntEnum):
    """Priority of a call; lower values go first."""

    FOREGROUND = 0
    BACKGROUND = 1
    EXTRACTION = 2


class PriorityLimiter:
    """Allow at most `concurrency` concurrent calls."""

    def __init__(self, concurrency: int) -> None:
        self._free = concurrency
        self._order = count()
        self._waiting: list[tuple[Priority, int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def passing(self, priority: Priority) -> AsyncIterator[None]:
        """Wait for a slot and hold it for the block."""
        await self._enter(priority)
        try:
            yield
        finally:
            self._leave()

    async def _enter(self, priority: Priority) -> None:
        if self._free > 0:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (priority, next(self._order), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()
            raise

    def _leave(self) -> None:
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
