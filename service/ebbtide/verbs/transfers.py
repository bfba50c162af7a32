"""Transfers: backups, exports, restores and forecasts, a bounded number at a time, on threads of their own.

Work that takes as long as an agent is large must not delay other requests. It runs apart from the event loop and from
the threads of agents' jobs. A client that sends or receives too slowly is disconnected, and every transfer has a
deadline. A stop cancels running transfers. Threads learn of both in `Transfer.rest`, which all long work on a store
calls regularly: it raises, and partial results are removed.
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
from ebbtide.ids import AgentId
from ebbtide.telemetry import in_background

T = TypeVar("T")

MAX_TRANSFERS = 4
"""Most concurrent transfers. Each may use a core to compress or check, and memory to check."""

MAX_FORECASTS = 2
"""Most concurrent forecasts, one of each agent."""

FORECAST_WAIT_S = 5.0
"""Longest wait for the end of another forecast."""

STALLED_S = 60.0
"""Longest time for a client to send or receive one piece."""

PIECE_BYTES = 256 << 10
"""Bytes sent at once: far below the limit of gRPC clients, large enough to be fast."""

GivenUp = Callable[[], bool]


class Transfer:
    """A running transfer: its deadline, and whether a stop has cancelled it."""

    def __init__(self, timeout_s: float, yield_to_requests: Callable[[], None]) -> None:
        self._timeout_s = timeout_s
        self._deadline_s = time.monotonic() + timeout_s
        self._yield_to_requests = yield_to_requests
        self._is_cancelled = False
        self._wait: asyncio.Timeout | None = None
        self.is_sending = False
        """Whether its file is being sent: a stop gives such a response its grace period."""

    def rest(self) -> None:
        """Yield to requests; called by the thread of this transfer. Raise what `check` raises."""
        self.check()
        self._yield_to_requests()

    def check(self) -> None:
        """Raise REQUEST_TIMED_OUT after the deadline, SHUTTING_DOWN once cancelled."""
        if self._is_cancelled:
            raise Unavailable(
                "The daemon is stopping. Retry when it is running again.",
                reason="SHUTTING_DOWN",
                retry_after_s=5.0,
            )
        if time.monotonic() > self._deadline_s:
            raise Deadline(
                f"the transfer took longer than limits.transfer_timeout_s = {self._timeout_s:g}; "
                "nothing was changed",
                reason="REQUEST_TIMED_OUT",
            )

    def cancel(self) -> None:
        """Cancel it: its next step raises. Called on the event loop."""
        self._is_cancelled = True
        if self._wait is not None:
            self._wait.reschedule(0)

    @asynccontextmanager
    async def piece(self) -> AsyncIterator[None]:
        """Wait for the client in the block. Raise REQUEST_TIMED_OUT for a slow piece, or what `check` raises."""
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
        self._yield_to_requests = yield_to_requests
        self._pool = ThreadPoolExecutor(MAX_TRANSFERS, "transfer")
        self._under_way: set[Transfer] = set()
        self._by_key: Counter[str] = Counter()
        self._to_be_ended: set[asyncio.Task[Any]] = set()
        self._forecasts: set[AgentId] = set()
        self._forecast_ended = asyncio.Condition()

    @contextmanager
    def place(self) -> Iterator[Transfer]:
        """Take one of the places for the block.

        TOO_MANY_TRANSFERS if all are in use, or the caller's key has its share of them.
        """
        key, share = CALLER.get().key_id, max_places_per_key(MAX_TRANSFERS)
        if key and self._by_key[key] >= share:
            message = (
                f"Too many concurrent transfers for this key (limit {share} of {MAX_TRANSFERS}). Retry later."
            )
            raise _too_many(message, "key", share)
        if len(self._under_way) >= MAX_TRANSFERS:
            message = f"Too many concurrent transfers (limit {MAX_TRANSFERS}). Retry later."
            raise _too_many(message, "daemon", MAX_TRANSFERS)
        transfer = Transfer(self._timeout_s, self._yield_to_requests)
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
        """Run blocking work to its end."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    @asynccontextmanager
    async def place_for_forecast(self, agent_id: AgentId) -> AsyncIterator[Transfer]:
        """Take a place for the forecast of an agent, if necessary after waiting for other forecasts.

        TOO_MANY_TRANSFERS if after FORECAST_WAIT_S another one of this agent, or MAX_FORECASTS of others, still run.
        """
        async with self._forecast_ended:
            try:
                async with asyncio.timeout(FORECAST_WAIT_S):
                    await self._forecast_ended.wait_for(
                        lambda: agent_id not in self._forecasts and len(self._forecasts) < MAX_FORECASTS
                    )
            except TimeoutError:
                raise _too_many_forecasts(agent_id in self._forecasts) from None
            self._forecasts.add(agent_id)
        try:
            with self.place() as transfer:
                yield transfer
        finally:
            async with self._forecast_ended:
                self._forecasts.discard(agent_id)
                self._forecast_ended.notify_all()

    async def make(
        self, work: Callable[[GivenUp], T], discard: Callable[[T], object] = lambda made: None
    ) -> T:
        """Run work. If the caller is cancelled, notify the work, wait for its end, and discard its result."""
        given_up = threading.Event()
        making = asyncio.get_running_loop().run_in_executor(self._pool, work, given_up.is_set)
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            given_up.set()
            await asyncio.wait([making])
            if not making.cancelled() and making.exception() is None:
                discard(making.result())
            raise

    async def to_its_end(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work that continues if the client disconnects. A stop cancels it unless it is past its last `rest`."""
        task = in_background(work)
        self._to_be_ended.add(task)
        task.add_done_callback(self._to_be_ended.discard)
        return await asyncio.shield(task)

    def stop(self) -> None:
        """Cancel every transfer whose file is not being sent yet; the others keep the grace period."""
        for transfer in self._under_way:
            if not transfer.is_sending:
                transfer.cancel()

    async def finish(self) -> None:
        """Cancel every transfer, and wait for those that can no longer be cancelled."""
        for transfer in self._under_way:
            transfer.cancel()
        await asyncio.gather(*self._to_be_ended, return_exceptions=True)

    def soon(self, work: Callable[[], object]) -> None:
        """Run work in the background."""
        self._pool.submit(work)

    def shutdown(self) -> None:
        """End the threads after their work."""
        self._pool.shutdown()


async def handed_over(
    transfer: Transfer,
    file: BinaryIO,
    run: Callable[[Callable[[], bytes]], Awaitable[bytes]],
    take: Callable[[bytes], Awaitable[object]],
) -> None:
    """Send a file piece by piece. REQUEST_TIMED_OUT if the client does not receive one in time."""
    transfer.is_sending = True
    while piece := await run(lambda: file.read(PIECE_BYTES)):
        async with transfer.piece():
            await take(piece)


async def in_time(transfer: Transfer, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the pieces as they arrive. REQUEST_TIMED_OUT if one does not arrive in time."""
    while True:
        async with transfer.piece():
            piece = await anext(pieces, None)
        if piece is None:
            return
        yield piece


def _too_many(message: str, whose: str, most: int) -> Exhausted:
    metadata = {"limit": whose, "most": str(most)}
    return Exhausted(message, reason="TOO_MANY_TRANSFERS", metadata=metadata, retry_after_s=5.0)


def _too_many_forecasts(is_same_agent: bool) -> Exhausted:
    if is_same_agent:
        metadata = {"limit": "agent", "most": "1"}
        message = "Another forecast of this agent is being computed. Retry later."
    else:
        metadata = {"limit": "daemon", "most": str(MAX_FORECASTS)}
        message = f"Too many concurrent forecasts (limit {MAX_FORECASTS}). Retry later."
    return Exhausted(message, reason="TOO_MANY_TRANSFERS", metadata=metadata, retry_after_s=5.0)


def _stalled() -> Deadline:
    return Deadline(f"The transfer made no progress for {STALLED_S:g} s.", reason="REQUEST_TIMED_OUT")
