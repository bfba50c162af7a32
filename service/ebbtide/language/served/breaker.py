"""The circuit breaker of a model server: after repeated failures it is not called for a while.

    closed ──N consecutive failures, or Retry-After──▶ open ──the pause is over──▶ half open
      ▲                                                 ▲                            │
      └──────────────────the probe succeeds─────────────┼────────────────────────────┤
                                                        └──the probe fails (doubled pause)

While it is open, calls are rejected immediately. Half open, exactly one call is admitted. An unusable reply counts as
success: the server is available.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ebbtide.language.port import ModelUnavailable

PROBE_RETRY_S = 1.0
"""Retry delay while another call is the probe."""


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """When to open, and for how long, in seconds."""

    failures: int = 5
    open_s: float = 5.0
    cap_s: float = 60.0


class Breaker:
    """Count the failures of one server, and admit or reject calls."""

    def __init__(self, policy: BreakerPolicy, now_s: Callable[[], float] = time.monotonic) -> None:
        self._policy = policy
        self._now_s = now_s
        self._failures = 0
        self._openings = 0
        self._open_until_s: float | None = None
        self._is_probing = False
        self.last_error = ""
        """The last failure; empty if there is none."""

    @property
    def is_closed(self) -> bool:
        """Return whether calls are admitted freely."""
        return self._open_until_s is None

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Make one call to the server. Raise ModelUnavailable immediately while the breaker is open."""
        is_probe = self._admit()
        try:
            yield
        except ModelUnavailable as error:
            self._failed(error, is_probe)
            raise
        except Exception:
            # Any other error means that the server has answered.
            self._answered()
            raise
        else:
            self._answered()
        finally:
            # A cancelled call has no result; the next one may be the probe.
            if is_probe:
                self._is_probing = False

    def _admit(self) -> bool:
        if self._open_until_s is None:
            return False
        left_s = self._open_until_s - self._now_s()
        if left_s > 0:
            raise ModelUnavailable(self.last_error, retry_after_s=left_s)
        if self._is_probing:
            raise ModelUnavailable(self.last_error, retry_after_s=PROBE_RETRY_S)
        self._is_probing = True
        return True

    def _answered(self) -> None:
        self._failures = self._openings = 0
        self._open_until_s = None
        self.last_error = ""

    def _failed(self, error: ModelUnavailable, is_probe: bool) -> None:
        self.last_error = str(error)
        self._failures += 1
        if self._open_until_s is not None and not is_probe:
            return
        must_open = is_probe or self._failures >= self._policy.failures
        if not must_open and error.retry_after_s is None:
            return
        pause_s = 0.0
        if must_open:
            pause_s = min(self._policy.cap_s, self._policy.open_s * 2.0 ** min(self._openings, 32))
            self._openings += 1
        self._open_until_s = self._now_s() + max(pause_s, error.retry_after_s or 0.0)
