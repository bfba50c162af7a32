"""Priority of requests: background work yields to requests.

Python's threads share one interpreter lock. A recall of a few milliseconds next to two busy threads gets a third of the
interpreter, however often threads are switched. Background work therefore checks between small pieces of work whether a
request's job is running, and pauses until none is. The pause is short, so that background work continues, slower, under
a permanent load of requests.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

MAX_YIELD_S = 0.002
"""Under a permanent load of requests, background work runs at about a fifth of its speed."""


class RequestPriority:
    """Knows whether jobs of requests are running. Used by threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running_count = 0
        self._no_requests = threading.Event()
        self._no_requests.set()
        self._own = threading.local()

    @contextmanager
    def for_a_request(self) -> Iterator[None]:
        """Count a request's job as running within the block."""
        with self._lock:
            self._running_count += 1
            self._no_requests.clear()
        is_within = getattr(self._own, "is_request", False)
        self._own.is_request = True
        try:
            yield
        finally:
            self._own.is_request = is_within
            with self._lock:
                self._running_count -= 1
                if self._running_count == 0:
                    self._no_requests.set()

    @property
    def is_request_running(self) -> bool:
        """Whether a request's job is running."""
        return not self._no_requests.is_set()

    def yield_to_requests(self) -> None:
        """Pause for at most 2 ms while jobs of requests run. Do nothing within such a job."""
        if self.is_request_running and not getattr(self._own, "is_request", False):
            self._no_requests.wait(MAX_YIELD_S)
