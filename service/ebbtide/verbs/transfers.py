"""Transfers: agents that are backed up, exported or restored, a bounded number at a time, on threads of their own.

The rule guarded here: work that takes as long as an agent is large delays no other request. It runs beside the event
loop and beside the threads of agents' jobs, a bounded number at a time. A client that takes or sends pieces too slowly
is disconnected, and every transfer has a deadline. A stop cancels what is under way. Threads learn of both in
`Transfer.rest`, which all long work on a store calls now and then: it raises, and what was made so far is removed.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any, BinaryIO, TypeVar

from ebbtide.access.grants import CALLER
from ebbtide.errors import Deadline, Exhausted, Unavailable
from ebbtide.fleet.runtime.event_streams import max_places_per_key
from ebbtide.telemetry import in_background

T = TypeVar("T")

MOST_TRANSFERS = 4
"""Agents on their way at once. Each may use a core while it is packed or checked, and memory to check it."""

STALLED_S = 60.0
"""Longest a caller takes for one piece."""

PIECE_BYTES = 256 << 10
"""What is handed over at once: far below what gRPC clients take, large enough to be quick."""

GivenUp = Callable[[], bool]


class Transfer:
    """One transfer under way: its deadline, and whether a stop has cancelled it."""

    def __init__(self, timeout_s: float, yield_to_requests: Callable[[], None]) -> None:
        self._timeout_s = timeout_s
        self._deadline_s = time.monotonic() + timeout_s
        self._give_way = yield_to_requests
        self._is_cancelled = False
        self._wait: asyncio.Timeout | None = None
        self.is_sending = False
        """Whether its file is being sent: a response in flight, which a stop gives its grace."""

    def rest(self) -> None:
        """Let requests pass; called by the thread that works for this transfer. Raises what `check` raises."""
        self.check()
        self._give_way()

    def check(self) -> None:
        """REQUEST_TIMED_OUT after the deadline, SHUTTING_DOWN once it was cancelled."""
        if self._is_cancelled:
            raise Unavailable("the daemon is stopping", reason="SHUTTING_DOWN", retry_after_s=5.0)
        if time.monotonic() > self._deadline_s:
            raise Deadline(
                f"the transfer took longer than limits.transfer_timeout_s = {self._timeout_s:g}; "
                "nothing was changed",
                reason="REQUEST_TIMED_OUT",
            )

    def cancel(self) -> None:
        """Cancel it: whatever it does next raises. On the event loop."""
        self._is_cancelled = True
        if self._wait is not None:
            self._wait.reschedule(0)

    @asynccontextmanager
    async def piece(self) -> AsyncIterator[None]:
        """Wait for the client in the block. Raises REQUEST_TIMED_OUT when one piece takes too long, or `check`."""
        self.check()
        left_s = self._deadline_s - time.monotonic()
        try:
            async with asyncio.timeout(min(STALLED_S, left_s)) as self._wait:
                yield
        except TimeoutError:
            self.check()
            raise _stalled() from None
        finally:
            self._wait = None


class Transfers:
    """The transfers of one daemon."""

    def __init__(self, timeout_s: float, yield_to_requests: Callable[[], None]) -> None:
        self._timeout_s = timeout_s
        self._give_way = yield_to_requests
        self._pool = ThreadPoolExecutor(MOST_TRANSFERS, "transfer")
        self._under_way: set[Transfer] = set()
        self._by_key: Counter[str] = Counter()
        self._to_be_ended: set[asyncio.Task[Any]] = set()

    @contextmanager
    def place(self) -> Iterator[Transfer]:
        """One of the places, for the block.

        TOO_MANY_TRANSFERS when all are taken, or where keys are asked for the caller's has its share of them.
        """
        key, share = CALLER.get().key_id, max_places_per_key(MOST_TRANSFERS)
        if key and self._by_key[key] >= share:
            told = f"the key has {share} agents on their way in or out already, of {MOST_TRANSFERS}"
            raise _too_many(told, "key", share)
        if len(self._under_way) >= MOST_TRANSFERS:
            told = f"{MOST_TRANSFERS} agents are on their way in or out already"
            raise _too_many(told, "daemon", MOST_TRANSFERS)
        transfer = Transfer(self._timeout_s, self._give_way)
        self._under_way.add(transfer)
        self._by_key[key] += 1
        try:
            yield transfer
        finally:
            self._under_way.discard(transfer)
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
        """Do work that goes on when the client disconnects. A stop cancels it, unless it is past its last `rest`."""
        task = in_background(work)
        self._to_be_ended.add(task)
        task.add_done_callback(self._to_be_ended.discard)
        return await asyncio.shield(task)

    def stop(self) -> None:
        """Cancel every transfer whose file is not being sent yet: what is in flight keeps the grace of a stop."""
        for transfer in self._under_way:
            if not transfer.is_sending:
                transfer.cancel()

    async def finish(self) -> None:
        """Cancel every transfer, and wait for what cannot be cancelled any more."""
        for transfer in self._under_way:
            transfer.cancel()
        await asyncio.gather(*self._to_be_ended, return_exceptions=True)

    def soon(self, work: Callable[[], object]) -> None:
        """Do what nobody waits for."""
        self._pool.submit(work)

    def shutdown(self) -> None:
        """End the threads once their work is done."""
        self._pool.shutdown()


async def handed_over(
    transfer: Transfer,
    file: BinaryIO,
    run: Callable[[Callable[[], bytes]], Awaitable[bytes]],
    take: Callable[[bytes], Awaitable[object]],
) -> None:
    """Hand a file over piece by piece. REQUEST_TIMED_OUT when one is not taken in time."""
    transfer.is_sending = True
    while piece := await run(lambda: file.read(PIECE_BYTES)):
        async with transfer.piece():
            await take(piece)


async def in_time(transfer: Transfer, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces as they come. REQUEST_TIMED_OUT when one does not in time."""
    while True:
        async with transfer.piece():
            piece = await anext(pieces, None)
        if piece is None:
            return
        yield piece


def _too_many(told: str, whose: str, most: int) -> Exhausted:
    metadata = {"limit": whose, "most": str(most)}
    return Exhausted(told, reason="TOO_MANY_TRANSFERS", metadata=metadata, retry_after_s=5.0)


def _stalled() -> Deadline:
    return Deadline(f"nothing moved for {STALLED_S:g} s", reason="REQUEST_TIMED_OUT")
