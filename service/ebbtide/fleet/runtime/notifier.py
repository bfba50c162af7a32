"""A pulse: wakes everyone who waits for something to have happened, however many they are."""

from __future__ import annotations

import asyncio


class Beat:
    """One beat to come."""

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    @property
    def has_come(self) -> bool:
        """Whether it is over."""
        return self._event.is_set()

    async def wait(self, timeout_s: float | None = None) -> None:
        """Wait for it, at most `timeout_s` seconds."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            return


class Pulse:
    """`beat` wakes all who wait for it.

    Whoever must not miss a beat takes `next_beat` first, then looks at the state, then waits.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def beat(self) -> None:
        """Wake everyone who waits now."""
        self._event.set()
        self._event = asyncio.Event()

    def next_beat(self) -> Beat:
        """The next beat, to be waited for later."""
        return Beat(self._event)

    async def wait(self, timeout_s: float | None = None) -> None:
        """Wait for the next beat, at most `timeout_s` seconds."""
        await self.next_beat().wait(timeout_s)
