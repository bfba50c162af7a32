"""Pools of worker processes that make calls for the daemon, each with a time limit.

A pool has a bounded number of processes, started on demand, each led by a thread that waits for it. Calls are made in
order. A worker is killed when a call exceeds its time limit. A worker that was killed or crashed is replaced at the
next call; an idle worker is ended after IDLE_S. Functions are sent by name, arguments and results as pickles: a
function must be importable and independent of the daemon's state.
"""

from __future__ import annotations

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
from typing import Any, BinaryIO, Final, cast

from ebbtide.errors import Unavailable
from ebbtide.offload.worker import FAILURE, SECONDS, read_frame, write_frame
from ebbtide.telemetry import get_log

IDLE_S: Final = 300.0
"""A worker that is idle for this long is ended to free its memory."""

START_TIMEOUT_S: Final = 60.0
"""Time for starting a worker and importing a function: a second, unless the machine is very busy."""


class WorkerEnded(Exception):
    """A worker ended without a reply: at the time limit, killed from outside, or by itself."""

    def __init__(self, *, is_late: bool, was_killed: bool) -> None:
        super().__init__("at its time limit" if is_late else "killed" if was_killed else "crashed")
        self.is_late = is_late
        self.was_killed = was_killed
        """Whether it was killed from outside, perhaps because the system is out of memory."""


class _NoReply(Exception):
    """The worker closed its end."""


class _Worker:
    """One worker process, used by one thread."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ebbtide.offload.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._is_late = False

    def call(self, function: bytes, arguments: bytes, time_limit_s: float) -> bytes:
        """Make a call and return the reply: its status and the pickled outcome. Raise _NoReply."""
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
            raise _NoReply from None

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
        self._is_late = True
        self.kill()

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended, for example because it was killed while it was idle."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """Kill the process. Any thread may call this. Idempotent."""
        self._process.kill()

    def end(self) -> WorkerEnded:
        """Kill the process, release its resources and return how it ended. Idempotent."""
        self.kill()
        for file in (self._process.stdin, self._process.stdout):
            # Closing flushes the buffer to a process that has ended.
            with contextlib.suppress(OSError):
                cast(BinaryIO, file).close()
        was_killed = self._process.wait() == -signal.SIGKILL and not self._is_late
        return WorkerEnded(is_late=self._is_late, was_killed=was_killed)


@dataclass(frozen=True, slots=True)
class Call:
    """A call that waits for a worker, or is made by one."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    time_limit_s: float
    outcome: Future[Any]

    def make_here(self) -> None:
        """Make the call in this process."""
        try:
            self.outcome.set_result(self.function(*self.arguments))
        except BaseException as error:
            self.outcome.set_exception(error)


class WorkerPool:
    """Worker processes that make calls. Any thread may use a pool."""

    max_tries = 1
    """How often a call is made whose worker ends before the time limit."""

    def __init__(self, name: str, max_workers: int) -> None:
        """Start no process yet. `name` names the threads and appears in the log."""
        self._name = name
        self._max_workers = max_workers
        self._calls: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._workers: set[_Worker] = set()
        self._open_calls = 0
        self._closed = False
        self._lock = threading.Lock()
        self._log = get_log(name)

    def submit(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], time_limit_s: float
    ) -> Future[Any]:
        """Queue a call. Its outcome is what the function returns or raises, or `failure_of` a worker that ended.

        Raise SHUTTING_DOWN if the pool is closed; calls that are unfinished then fail with the same error.
        """
        call = Call(function, arguments, time_limit_s, Future())
        with self._lock:
            if self._closed:
                raise _stopping()
            self._open_calls += 1
            if len(self._threads) < min(self._open_calls, self._max_workers):
                name = f"{self._name}_{len(self._threads)}"
                thread = threading.Thread(target=self._lead, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()
            self._calls.put(call)
        return call.outcome

    def close(self) -> None:
        """End every worker. Idempotent."""
        with self._lock:
            self._closed = True
            workers, threads = list(self._workers), list(self._threads)
        for worker in workers:
            worker.kill()
        for _ in threads:
            self._calls.put(None)
        for thread in threads:
            thread.join()

    # --- what kinds of pools may change ------------------------------------------------------------

    def failure_of(self, ended: WorkerEnded) -> Exception:
        """Return the error of a call whose worker ended without a reply."""
        return ended

    def translated(self, error: Exception) -> Exception:
        """Return the error of a call whose function raised `error`."""
        return error

    def without_process(self, call: Call, error: OSError) -> Callable[[], object]:
        """Return a function that delivers the outcome of a call for which no process can be started."""
        return partial(call.outcome.set_exception, error)

    # --- on the threads ----------------------------------------------------------------------------

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

    def _made(self, call: Call, worker: _Worker | None) -> tuple[_Worker | None, Callable[[], object]]:
        """Make one call. Return the worker for the next one, and a function that delivers the outcome."""
        fail = call.outcome.set_exception
        try:
            function = pickle.dumps(call.function)
            arguments = pickle.dumps(call.arguments, pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            return worker, partial(fail, error)
        ended = WorkerEnded(is_late=False, was_killed=False)
        for _ in range(self.max_tries):
            if self._closed:
                return worker, partial(fail, _stopping())
            if worker is not None and worker.has_ended:
                self._end(worker)
                worker = None
            try:
                worker = worker or self._started()
            except OSError as error:
                self._log.warning("no worker process could be started", exc_info=error)
                return None, self.without_process(call, error)
            try:
                reply = worker.call(function, arguments, call.time_limit_s)
                return worker, partial(self._deliver, call, reply)
            except _NoReply:
                ended = self._end(worker)
                worker = None
                if ended.is_late:
                    break
        if self._closed:
            return None, partial(fail, _stopping())
        task = getattr(call.function, "__qualname__", "partial")
        self._log.warning(f"{self._name} worker ended without a result", task=task)
        return None, partial(fail, self.failure_of(ended))

    def _started(self) -> _Worker:
        worker = _Worker()
        with self._lock:
            self._workers.add(worker)
            if self._closed:
                worker.kill()
        return worker

    def _end(self, worker: _Worker) -> WorkerEnded:
        with self._lock:
            self._workers.discard(worker)
        return worker.end()

    def _deliver(self, call: Call, reply: bytes) -> None:
        try:
            outcome = pickle.loads(memoryview(reply)[1:])
        except Exception as error:
            call.outcome.set_exception(error)
            return
        if reply[:1] != FAILURE:
            call.outcome.set_result(outcome)
        else:
            call.outcome.set_exception(self.translated(outcome))


def _nothing() -> None:
    """Deliver nothing: the caller has cancelled."""


def _stopping() -> Unavailable:
    return Unavailable("the daemon is stopping", reason="SHUTTING_DOWN")
