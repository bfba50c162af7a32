"""Transfers: agents on their way in and out, so many at a time, on threads of their own.

The rule guarded here: what takes as long as an agent is large holds up nobody else. It runs beside the event loop and
beside the threads of agents' jobs; there is a bound on how many are under way; and whoever takes or sends pieces too
slowly is cut off, so that nobody keeps a place for ever.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, BinaryIO, TypeVar

from ebbtide.access.grants import CALLER
from ebbtide.errors import Deadline, Exhausted
from ebbtide.fleet.watching import share_of
from ebbtide.telemetry import in_background

T = TypeVar("T")

MOST_TRANSFERS = 4
"""Agents on their way at once. Each may use a core while it is packed or checked, and memory to check it."""

STALLED_S = 60.0
"""Longest a caller takes for one piece."""

PIECE_BYTES = 256 << 10
"""What is handed over at once: far below what gRPC clients take, large enough to be quick."""

GivenUp = Callable[[], bool]


class Transfers:
    """The transfers of one daemon."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(MOST_TRANSFERS, "transfer")
        self._under_way = 0
        self._by_key: Counter[str] = Counter()
        self._to_be_ended: set[asyncio.Task[Any]] = set()

    @contextmanager
    def place(self) -> Iterator[None]:
        """One of the places, for the block.

        TOO_MANY_TRANSFERS when all are taken, or where keys are asked for the caller's has its share of them.
        """
        key, share = CALLER.get().key_id, share_of(MOST_TRANSFERS)
        if key and self._by_key[key] >= share:
            told = f"the key has {share} agents on their way in or out already, of {MOST_TRANSFERS}"
            raise _too_many(told, "key", share)
        if self._under_way >= MOST_TRANSFERS:
            told = f"{MOST_TRANSFERS} agents are on their way in or out already"
            raise _too_many(told, "daemon", MOST_TRANSFERS)
        self._under_way += 1
        self._by_key[key] += 1
        try:
            yield
        finally:
            self._under_way -= 1
            self._by_key[key] -= 1
            if not self._by_key[key]:
                del self._by_key[key]

    async def run(self, work: Callable[[], T]) -> T:
        """Do what blocks, to its end."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def make(self, work: Callable[[GivenUp], BinaryIO]) -> BinaryIO:
        """Make a file; whoever gives up meanwhile waits until the work has noticed, and nothing stays open."""
        given_up = threading.Event()
        making = asyncio.get_running_loop().run_in_executor(self._pool, work, given_up.is_set)
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            given_up.set()
            await asyncio.wait([making])
            if not making.cancelled() and making.exception() is None:
                making.result().close()
            raise

    async def to_its_end(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work that is seen to its end, also when whoever asked for it goes away, or the daemon stops."""
        task = in_background(work)
        self._to_be_ended.add(task)
        task.add_done_callback(self._to_be_ended.discard)
        return await asyncio.shield(task)

    async def finish(self) -> None:
        """Wait for what has to be seen to its end."""
        await asyncio.gather(*self._to_be_ended, return_exceptions=True)

    def soon(self, work: Callable[[], object]) -> None:
        """Do what nobody waits for."""
        self._pool.submit(work)

    def shutdown(self) -> None:
        """End the threads once their work is done."""
        self._pool.shutdown()


async def handed_over(
    file: BinaryIO,
    run: Callable[[Callable[[], bytes]], Awaitable[bytes]],
    take: Callable[[bytes], Awaitable[object]],
) -> None:
    """Hand a file over piece by piece. REQUEST_TIMED_OUT when one is not taken in time."""
    while piece := await run(lambda: file.read(PIECE_BYTES)):
        try:
            async with asyncio.timeout(STALLED_S):
                await take(piece)
        except TimeoutError:
            raise _stalled() from None


async def in_time(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces as they come. REQUEST_TIMED_OUT when one does not in time."""
    while True:
        try:
            async with asyncio.timeout(STALLED_S):
                piece = await anext(pieces, None)
        except TimeoutError:
            raise _stalled() from None
        if piece is None:
            return
        yield piece


def _too_many(told: str, whose: str, most: int) -> Exhausted:
    metadata = {"limit": whose, "most": str(most)}
    return Exhausted(told, reason="TOO_MANY_TRANSFERS", metadata=metadata, retry_after_s=5.0)


def _stalled() -> Deadline:
    return Deadline(f"nothing moved for {STALLED_S:g} s", reason="REQUEST_TIMED_OUT")
