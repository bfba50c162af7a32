"""Decide whether a call is sent again, and after which pause. Pure arithmetic: nothing sleeps here.

A call is retried only if it is safe to repeat and the failure may be temporary: no connection, a lost connection,
429, 502, 503 or 504. The number of attempts and the total time are limited.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ebbtide_client.calls import Call
from ebbtide_client.errors import ConnectionFailed, EbbtideError

TEMPORARY = frozenset({429, 502, 503, 504})
"""Statuses after which another attempt may succeed."""

PERMANENT = frozenset({"CERTIFICATE_NOT_TRUSTED", "TLS_NOT_SPOKEN"})
"""Reasons of a failed connection after which no attempt succeeds."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and how long to retry. `Retries(attempts=1)` never retries."""

    attempts: int = 4
    """Attempts in total, including the first one."""
    first_pause_s: float = 0.2
    """Pause before the second attempt; it doubles before each further one."""
    longest_pause_s: float = 10.0
    """Upper limit of a pause. If `Retry-After` asks for more, the call is not retried and the error is raised."""
    total_s: float = 60.0
    """No attempt starts later than this after the first one started."""

    def __post_init__(self) -> None:
        if self.attempts < 1 or min(self.first_pause_s, self.longest_pause_s, self.total_s) < 0:
            raise ValueError("attempts must be at least 1, and no time may be negative")


class Attempts:
    """The attempts of one call."""

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
        self._started_s = clock()
        self._failed_count = 0

    def pause_s(self, error: EbbtideError) -> float | None:
        """Return the pause before the next attempt, or None if there is none."""
        self._failed_count += 1
        if not (self._call.is_safe and may_pass(error)) or self._failed_count >= self._retries.attempts:
            return None
        backoff_s = self._retries.first_pause_s * 2.0 ** (self._failed_count - 1)
        # Jitter: otherwise many clients of one daemon would all return at the same time.
        pause_s = self._dice(0.5, 1.0) * min(backoff_s, self._retries.longest_pause_s)
        if error.retry_after_s is not None:
            if error.retry_after_s > self._retries.longest_pause_s:
                return None
            pause_s = max(pause_s, error.retry_after_s)
        is_late = self._clock() - self._started_s + pause_s > self._retries.total_s
        return None if is_late else pause_s


def may_pass(error: EbbtideError) -> bool:
    """Return whether the same request may succeed later."""
    is_lost = isinstance(error, ConnectionFailed) and error.reason not in PERMANENT
    return is_lost or error.http_status in TEMPORARY
