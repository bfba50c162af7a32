"""Courtesy: whoever works in the background lets a request pass.

Python's threads share one interpreter lock. A recall of a few milliseconds beside two threads at work gets a
third of the interpreter, however soon they are switched. So background work asks between two small pieces of
it whether a request's job is running anywhere in the daemon, and then rests until none is; not for long, so
that it goes on, slower, under a load of requests that never ends.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

MAX_YIELD_S = 0.002
"""At worst, under requests without end, the background does about a fifth of what it would do alone."""


class RequestPriority:
    """Knows whether jobs of requests are running. For threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running_count = 0
        self._nobody = threading.Event()
        self._nobody.set()
        self._own = threading.local()

    @contextmanager
    def for_a_request(self) -> Iterator[None]:
        """A job of a request runs for the length of the block."""
        with self._lock:
            self._running_count += 1
            self._nobody.clear()
        is_within = getattr(self._own, "is_request", False)
        self._own.is_request = True
        try:
            yield
        finally:
            self._own.is_request = is_within
            with self._lock:
                self._running_count -= 1
                if self._running_count == 0:
                    self._nobody.set()

    @property
    def is_request_running(self) -> bool:
        """Whether a job of a request is running."""
        return not self._nobody.is_set()

    def yield_to_requests(self) -> None:
        """Rest while jobs of requests are running, 2 ms at most; in such a job, which would wait for itself, do not."""
        if self.is_request_running and not getattr(self._own, "is_request", False):
            self._nobody.wait(MAX_YIELD_S)
