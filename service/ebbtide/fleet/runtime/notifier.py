"""A pulse: wakes everyone who waits for something to have happened, however many they are."""

from __future__ import annotations

import asyncio


class Notification:
    """One beat to come."""

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    @property
    def has_occurred(self) -> bool:
        """Whether it is over."""
        return self._event.is_set()

    async def wait(self, timeout_s: float | None = None) -> None:
        """Wait for it, at most `timeout_s` seconds."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            return


class Notifier:
    """`notify` wakes all who wait for it.

    Whoever must not miss a beat takes `next_notification` first, then looks at the state, then waits.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def notify(self) -> None:
        """Wake everyone who waits now."""
        self._event.set()
        self._event = asyncio.Event()

    def next_notification(self) -> Notification:
        """The next beat, to be waited for later."""
        return Notification(self._event)

    async def wait(self, timeout_s: float | None = None) -> None:
        """Wait for the next beat, at most `timeout_s` seconds."""
        await self.next_notification().wait(timeout_s)
