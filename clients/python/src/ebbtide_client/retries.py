"""When a call is sent again, and how long to wait before it: arithmetic only, nobody sleeps here.

Only what may be sent twice is retried, and only after failures that may pass: no connection, a connection lost,
429, 502, 503, 504. Every other refusal would be the same the next time. Tries and time are bounded, so a caller
never waits for longer than `total_s` and the one try that began within it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ebbtide_client.calls import Call
from ebbtide_client.errors import ConnectionFailed, EbbtideError

PASSING = frozenset({429, 502, 503, 504})
"""Answers after which another try may go better."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and how long to try again; `Retries(attempts=1)` never does."""

    attempts: int = 4
    """Tries in all, the first one included."""
    first_pause_s: float = 0.2
    """Before the second try; doubled before each further one."""
    longest_pause_s: float = 10.0
    """No pause is longer. A daemon that asks for more by `Retry-After` is not asked again: the caller decides."""
    total_s: float = 60.0
    """No try begins later than this after the first one began."""

    def __post_init__(self) -> None:
        if self.attempts < 1 or min(self.first_pause_s, self.longest_pause_s, self.total_s) < 0:
            raise ValueError("attempts must be at least 1, and no time negative")


class Tries:
    """The tries of one call."""

    def __init__(
        self,
        call: Call[Any],
        retries: Retries,
        clock: Callable[[], float] = time.monotonic,
        dice: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._call = call
        self._retries = retries
        self._clock = clock
        self._dice = dice
        self._begun_s = clock()
        self._failed_count = 0

    def pause_s(self, error: EbbtideError) -> float | None:
        """How long to wait before the next try; None when there shall be none."""
        self._failed_count += 1
        if not (self._call.is_safe and may_pass(error)) or self._failed_count >= self._retries.attempts:
            return None
        backoff_s = self._retries.first_pause_s * 2.0 ** (self._failed_count - 1)
        # Half of it by chance, so that many clients of one daemon do not all come back at once.
        pause_s = self._dice(0.5, 1.0) * min(backoff_s, self._retries.longest_pause_s)
        if error.retry_after_s is not None:
            if error.retry_after_s > self._retries.longest_pause_s:
                return None
            pause_s = max(pause_s, error.retry_after_s)
        is_late = self._clock() - self._begun_s + pause_s > self._retries.total_s
        return None if is_late else pause_s


def may_pass(error: EbbtideError) -> bool:
    """Whether the same request may succeed later."""
    return isinstance(error, ConnectionFailed) or error.http_status in PASSING
