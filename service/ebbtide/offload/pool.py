"""Worker processes handle long texts, so that these do not hold the daemon's interpreter lock.

Most texts are short: a text of at most MAX_INLINE_CHARS characters is processed by the caller. A longer one goes to a
worker process. While one C function (a regular expression, a JSON parser, Unicode normalisation) works on it, the
threads of the daemon continue. This is a second line of defence, as every function takes linear time: if one takes much
longer than it should, its worker is killed at the deadline, and the caller gets TEXT_TOO_COMPLEX.

There are at most MAX_WORKERS processes, started on demand, each led by a thread that waits for it. Calls are made in
order. A worker that was killed or crashed is replaced at the next call; an idle worker is ended after IDLE_S. Functions
are sent by name, arguments and results as pickles: a function must be importable and independent of the daemon's state.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, Final, TypeVar, cast

from ebbtide.errors import EbbtideError, InvalidRequest, Unavailable
from ebbtide.offload.worker import FAILURE, SECONDS, read_frame, write_frame
from ebbtide.telemetry import get_log

T = TypeVar("T")

MAX_INLINE_CHARS: Final = 4096
"""Longest text that the caller processes itself."""

MAX_WORKERS: Final = 2
"""Most worker processes at a time."""

IDLE_S: Final = 300.0
"""A worker that is idle for this long is ended to free its memory."""

START_TIMEOUT_S: Final = 60.0
"""Time for starting a worker and importing a function: a second, unless the machine is very busy."""

CHARS_PER_DEADLINE: Final = 100_000
"""The time limit is increased by its full value for every so many characters."""

MAX_TRIES: Final = 2
"""A call whose worker ended before the deadline is retried once, because the
worker may have been killed from outside.
"""


class _WorkerEnded(Exception):
    """The worker ended without a reply."""


class _Worker:
    """One worker process, used by one thread."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ebbtide.offload.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.is_late = False
        """Whether it was killed at a deadline."""

    def call(self, function: bytes, arguments: bytes, time_limit_s: float) -> bytes:
        """Make a call and return the reply: its status and the pickled outcome. Raise _WorkerEnded."""
        requests, replies = cast(BinaryIO, self._process.stdin), cast(BinaryIO, self._process.stdout)
        try:
            with self._alarm(START_TIMEOUT_S):
                write_frame(requests, function)
                read_frame(replies)
            with self._alarm(time_limit_s):
                write_frame(requests, SECONDS.pack(time_limit_s))
                write_frame(requests, arguments)
                return read_frame(replies)
        except (EOFError, OSError):
            raise _WorkerEnded from None

    @contextlib.contextmanager
    def _alarm(self, seconds: float) -> Iterator[None]:
        alarm = threading.Timer(seconds, self._too_late)
        alarm.daemon = True
        alarm.start()
        try:
            yield
        finally:
            alarm.cancel()

    def _too_late(self) -> None:
        self.is_late = True
        self.kill()

    def kill(self) -> None:
        """Kill the process. Any thread may call this. Idempotent."""
        self._process.kill()

    def end(self) -> int:
        """Kill the process, release its resources and return its exit code. Idempotent."""
        self.kill()
        for file in (self._process.stdin, self._process.stdout):
            # Closing flushes the buffer to a process that has ended.
            with contextlib.suppress(OSError):
                cast(BinaryIO, file).close()
        return self._process.wait()


@dataclass(frozen=True, slots=True)
class _Call:
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    time_limit_s: float
    outcome: Future[Any]


class TextWorkers:
    """The worker processes of one daemon. Any thread may use them."""

    def __init__(self, time_limit_s: float = 10.0, max_workers: int = MAX_WORKERS) -> None:
        """Start no process yet. `time_limit_s` is the time limit for CHARS_PER_DEADLINE characters."""
        self._time_limit_s = time_limit_s
        self._max_workers = max_workers
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._workers: set[_Worker] = set()
        self._open_calls = 0
        self._closed = False
        self._lock = threading.Lock()
        self._log = get_log("text")

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

    def close(self) -> None:
        """End every worker. Unfinished calls fail with SHUTTING_DOWN. Idempotent."""
        with self._lock:
            self._closed = True
            workers, threads = list(self._workers), list(self._threads)
        for worker in workers:
            worker.kill()
        for _ in threads:
            self._calls.put(None)
        for thread in threads:
            thread.join()

    def _submit(self, size: int, function: Callable[..., T], arguments: tuple[Any, ...]) -> Future[Any]:
        call = _Call(function, arguments, self._time_limit_s * (1 + size // CHARS_PER_DEADLINE), Future())
        with self._lock:
            if self._closed:
                raise _stopping()
            self._open_calls += 1
            if len(self._threads) < min(self._open_calls, self._max_workers):
                thread = threading.Thread(target=self._lead, name=f"text_{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._calls.put(call)
        return call.outcome

    # --- on the threads -----------------------------------------------------------------------------

    def _lead(self) -> None:
        """Make calls with a worker of this thread until the pool is closed."""
        worker: _Worker | None = None
        while True:
            try:
                call = self._calls.get(timeout=IDLE_S if worker is not None else None)
            except queue.Empty:
                assert worker is not None, "only a thread with a worker waits for a limited time"
                self._end(worker)
                worker = None
                continue
            if call is None:
                if worker is not None:
                    self._end(worker)
                return
            if call.outcome.set_running_or_notify_cancel():
                worker, deliver = self._made(call, worker)
            else:
                deliver = _nothing
            with self._lock:
                self._open_calls -= 1
            # Only now, so that a caller that calls again at once finds this thread free.
            deliver()

    def _made(self, call: _Call, worker: _Worker | None) -> tuple[_Worker | None, Callable[[], None]]:
        """Make one call. Return the worker for the next one, and a function that delivers the outcome."""
        fail = call.outcome.set_exception
        try:
            function = pickle.dumps(call.function)
            arguments = pickle.dumps(call.arguments, pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            return worker, partial(fail, error)
        error_of: Callable[[], EbbtideError] = text_too_complex
        for _ in range(MAX_TRIES):
            if self._closed:
                return worker, partial(fail, _stopping())
            try:
                worker = worker or self._started()
            except OSError as error:
                # Without a process, process the text here; blocking others is the lesser harm.
                self._log.warning("no worker process could be started", exc_info=error)
                return None, partial(_make_here, call)
            try:
                reply = worker.call(function, arguments, call.time_limit_s)
                return worker, partial(_deliver, call, reply)
            except _WorkerEnded:
                # A worker that is killed before its deadline is not the text's fault: the system is out of memory.
                is_late, was_killed = worker.is_late, self._end(worker) == -signal.SIGKILL
                worker = None
                error_of = worker_killed if was_killed and not is_late else text_too_complex
                if is_late:
                    break
        if self._closed:
            return None, partial(fail, _stopping())
        task = getattr(call.function, "__qualname__", "partial")
        self._log.warning("text worker ended without a result", task=task)
        return None, partial(fail, error_of())

    def _started(self) -> _Worker:
        worker = _Worker()
        with self._lock:
            self._workers.add(worker)
            if self._closed:
                worker.kill()
        return worker

    def _end(self, worker: _Worker) -> int:
        with self._lock:
            self._workers.discard(worker)
        return worker.end()


def _nothing() -> None:
    """Deliver nothing: the caller has cancelled."""


def _deliver(call: _Call, reply: bytes) -> None:
    try:
        outcome = pickle.loads(memoryview(reply)[1:])
    except Exception as error:
        call.outcome.set_exception(error)
        return
    if reply[:1] != FAILURE:
        call.outcome.set_result(outcome)
    else:
        call.outcome.set_exception(text_too_complex() if isinstance(outcome, MemoryError) else outcome)


def _make_here(call: _Call) -> None:
    try:
        call.outcome.set_result(call.function(*call.arguments))
    except BaseException as error:
        call.outcome.set_exception(error)


def _stopping() -> Unavailable:
    return Unavailable("the daemon is stopping", reason="SHUTTING_DOWN")


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
