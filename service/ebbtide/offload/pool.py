"""Worker processes handle long texts, so that these do not hold the daemon's interpreter lock.

Most texts are short: a text of at most MAX_INLINE_CHARS characters is processed by the caller. A longer one goes to a
worker process. While one C function (a regular expression, a JSON parser, Unicode normalisation) works on it, the
threads of the daemon continue. This is a second line of defence, as every function takes linear time: if one takes much
longer than it should, its worker is killed at the deadline, and the caller gets TEXT_TOO_COMPLEX.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar, cast

from ebbtide.errors import InvalidRequest, Unavailable
from ebbtide.offload.worker_pool import Call, WorkerEnded, WorkerPool

T = TypeVar("T")

MAX_INLINE_CHARS: Final = 4096
"""Longest text that the caller processes itself."""

MAX_WORKERS: Final = 2
"""Most worker processes at a time."""

CHARS_PER_DEADLINE: Final = 100_000
"""The time limit is increased by its full value for every so many characters."""


class TextWorkers(WorkerPool):
    """The worker processes for the texts of one daemon."""

    max_tries = 2
    """A call is made again once, because its worker may have been killed from outside."""

    def __init__(self, time_limit_s: float = 10.0, max_workers: int = MAX_WORKERS) -> None:
        """Start no process yet. `time_limit_s` is the time limit for CHARS_PER_DEADLINE characters."""
        super().__init__("text", max_workers)
        self._time_limit_s = time_limit_s

    async def run(self, size: int, function: Callable[..., T], *arguments: Any) -> T:
        """Like `call`, for the event loop."""
        if size <= MAX_INLINE_CHARS:
            return function(*arguments)
        return cast(T, await asyncio.wrap_future(self._submit(size, function, arguments)))

    def call(self, size: int, function: Callable[..., T], *arguments: Any) -> T:
        """Return the function's result for a text of `size` characters. Blocks; not for the event loop.

        Raise what the function raises, or InvalidRequest with TEXT_TOO_COMPLEX when it exceeds its time limit or
        MAX_MEMORY_BYTES.
        """
        if size <= MAX_INLINE_CHARS:
            return function(*arguments)
        return cast(T, self._submit(size, function, arguments).result())

    def _submit(self, size: int, function: Callable[..., T], arguments: tuple[Any, ...]) -> Future[Any]:
        return self.submit(function, arguments, self._time_limit_s * (1 + size // CHARS_PER_DEADLINE))

    def failure_of(self, ended: WorkerEnded) -> Exception:
        """Return WORKER_KILLED for a worker that was killed from outside; otherwise the text is the reason."""
        return worker_killed() if ended.was_killed else text_too_complex()

    def translated(self, error: Exception) -> Exception:
        """Return TEXT_TOO_COMPLEX instead of MemoryError."""
        return text_too_complex() if isinstance(error, MemoryError) else error

    def without_process(self, call: Call, error: OSError) -> Callable[[], object]:
        """Process the text in the daemon: blocking others is the lesser harm."""
        return call.make_here


def worker_killed() -> Unavailable:
    """Return the error of a text whose worker was killed from outside twice."""
    return Unavailable(
        "the worker process for the text was killed, perhaps for lack of memory; retry the request",
        reason="WORKER_KILLED",
        retry_after_s=1.0,
    )


def text_too_complex() -> InvalidRequest:
    """Return the error of a text that exceeds the time limit or the memory limit of a worker."""
    return InvalidRequest(
        "the text takes too long to process; split it into shorter texts, or leave out long runs of repeated "
        "characters",
        reason="TEXT_TOO_COMPLEX",
    )


class _Inline(TextWorkers):
    def _submit(self, size: int, function: Callable[..., T], arguments: tuple[Any, ...]) -> Future[Any]:
        outcome: Future[Any] = Future()
        try:
            outcome.set_result(function(*arguments))
        except Exception as error:
            outcome.set_exception(error)
        return outcome


INLINE: Final = _Inline()
"""No worker processes: the caller processes every text. For work on agents without a daemon."""
