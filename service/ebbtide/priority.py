"""Priority of requests: background work yields to requests.

Python's threads share one interpreter lock. A query of a few milliseconds next to a busy thread takes twice as long,
however often threads are switched. Background work therefore checks between small pieces of work whether a request
waits or runs, and pauses until none does. A pause takes at most four times the processor time that the thread used
before it. So background work continues under a permanent load of requests, at no less than a fifth of its speed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

PAUSE_RATIO = 4
"""Longest pause, as a multiple of the processor time used since the last one."""

MIN_PAUSE_S = 0.002
"""A pause may take this long in any case: a shorter one would not let a request finish."""

MAX_PAUSE_S = 0.02
"""Longest pause, also after a long time without requests."""

_is_request = ContextVar("is_request", default=False)
"""Whether the code runs for a request, which does not wait for itself. The jobs of a mailbox inherit it."""


class RequestPriority:
    """Counts the requests that wait or run, and pauses background work. Used by threads and by the event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running_count = 0
        self._no_requests = threading.Event()
        self._no_requests.set()
        self._own = threading.local()

    @contextmanager
    def for_a_request(self) -> Iterator[None]:
        """Count a request as running within the block, its wait for the agent's turn included."""
        with self._lock:
            self._running_count += 1
            self._no_requests.clear()
        before = _is_request.set(True)
        try:
            yield
        finally:
            _is_request.reset(before)
            with self._lock:
                self._running_count -= 1
                if self._running_count == 0:
                    self._no_requests.set()

    @property
    def is_request_running(self) -> bool:
        """Whether a request waits or runs."""
        return not self._no_requests.is_set()

    def yield_to_requests(self, max_s: float = MAX_PAUSE_S) -> None:
        """Pause for at most `max_s` while a request waits or runs. Do nothing in a request's own job."""
        if not self.is_request_running or _is_request.get():
            return
        ran_s = time.thread_time() - getattr(self._own, "resumed_at_s", 0.0)
        self._no_requests.wait(min(max(PAUSE_RATIO * ran_s, MIN_PAUSE_S), max_s))
        self._own.resumed_at_s = time.thread_time()
