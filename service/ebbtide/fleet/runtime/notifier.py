"""A notifier wakes every task that waits for something to happen."""

from __future__ import annotations

import asyncio


class Notification:
    """One future notification."""

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    @property
    def has_occurred(self) -> bool:
        """Whether `notify` was called since this notification was taken."""
        return self._event.is_set()

    async def wait(self, timeout_s: float | None = None) -> None:
        """Wait for the notification, for at most `timeout_s` seconds."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            return


class Notifier:
    """Wakes all waiting tasks. To miss nothing: take `next_notification`, read the state, then wait."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def notify(self) -> None:
        """Wake all tasks that wait now."""
        self._event.set()
        self._event = asyncio.Event()

    def next_notification(self) -> Notification:
        """Return the next notification, to wait for later."""
        return Notification(self._event)

    async def wait(self, timeout_s: float | None = None) -> None:
        """Wait for the next notification, for at most `timeout_s` seconds."""
        await self.next_notification().wait(timeout_s)
