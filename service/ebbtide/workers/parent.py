"""The parent process of the workers: it binds the ports, locks the data directory, and starts and stops the workers.

It imports all code before it forks, so the workers share the memory of the code, and a worker that ends is replaced in
a fraction of a second. The parent serves no requests and starts no threads.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any, NoReturn

from ebbtide.access.key_file import KeyFile
from ebbtide.access.keyring import Keyring
from ebbtide.access.shared_rates import SharedLimits
from ebbtide.daemon import admitted_bind, import_deferred_modules, locked_directory, log_listening
from ebbtide.errors import EbbtideError, Internal
from ebbtide.forwarding.peers import Inbox
from ebbtide.process.stop_guard import STOP_SIGNALS
from ebbtide.rest import server as rest_server
from ebbtide.rpc import server as rpc_server
from ebbtide.settings import Settings
from ebbtide.shard import Shard
from ebbtide.telemetry import get_log, name_worker
from ebbtide.workers.worker import CLOSE, DRAINED, READY, Inherited, serve_worker, settings_of_worker

POLL_S = 0.25
"""Longest wait for a message, a signal or the end of a worker."""

MAX_PAUSE_S = 30.0
"""Longest pause before the restart of a worker that keeps ending."""

STEADY_S = 10.0
"""A worker that ran for at least this long is restarted without a pause."""


RunLoop = Callable[[Coroutine[Any, Any, None]], None]
"""Runs a coroutine in a new event loop."""


@dataclass(slots=True)
class _Child:
    """One of the workers, and its current process."""

    shard: Shard
    pid: int = 0
    """0 while no process runs."""
    connection: socket.socket | None = None
    started_s: float = 0.0
    start_at_s: float = 0.0
    pause_s: float = 0.0
    is_ready: bool = False
    is_drained: bool = False
    starts: int = 0
    error: EbbtideError | None = None
    """The error of a failed start."""


class Parent:
    """The parent of the workers of one daemon."""

    def __init__(self, settings: Settings, run_loop: RunLoop) -> None:
        self._settings = settings
        self._run_loop = run_loop
        count = settings.server.workers
        self._settings_of_worker = settings_of_worker(settings, count)
        self._children = [_Child(Shard(index, count)) for index in range(count)]
        self._is_stopping = self._was_forced = False
        self._log = get_log("daemon")

    def serve(self, on_ready: Callable[[str], None]) -> None:
        """Serve until SIGTERM or SIGINT. Raise what `ebbtide.daemon.serve` raises, and INTERNAL for a forced stop."""
        settings = self._settings
        with contextlib.ExitStack() as life:
            renewal = admitted_bind(settings)
            rest = life.enter_context(rest_server.bind(settings.server))
            grpc = life.enter_context(rpc_server.reserve(settings.server))
            data = locked_directory(settings)
            life.callback(data.release)
            if settings.access.authentication != "off":
                # An unusable key file fails the start.
                Keyring(KeyFile(settings.store.data_dir)).load()
            inboxes = [Inbox() for _ in self._children]
            for inbox in inboxes:
                life.callback(inbox.close)
            limits = SharedLimits(settings.access.burst_s)
            grpc_port = grpc.getsockname()[1]
            inherited = Inherited(data, limits, inboxes, rest, grpc_port, renewal)
            import_deferred_modules()
            gc.collect()
            gc.freeze()
            life.enter_context(self._signals())
            for child in self._children:
                self._start(child, inherited)
            try:
                if self._await_ready():
                    url = rest_server.url_of(settings.server, rest, is_secure=renewal is not None)
                    on_ready(url)
                    log_listening(settings, url, rpc_server.target_of(settings.server.host, grpc_port))
                while not self._is_stopping:
                    self._wait()
                    self._restart_ended(inherited)
            finally:
                # Later connections are refused instead of waiting for a worker.
                rest.close()
                self._stop()
        if self._was_forced:
            raise Internal("a worker did not stop in time and was killed; no acknowledged data is lost")
        self._log.info("stopped")

    # --- signals -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Handle stop signals, and wake `_wait` when a worker ends."""

        def stop(_: int, __: FrameType | None) -> None:
            self._is_stopping = True

        for number in STOP_SIGNALS:
            signal.signal(number, stop)
        self._wakeup, sending = os.pipe()
        for end in (self._wakeup, sending):
            os.set_blocking(end, False)
        # `select` is resumed after a signal handler. A byte in this pipe makes it return.
        signal.set_wakeup_fd(sending, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        try:
            yield
        finally:
            signal.set_wakeup_fd(-1)
            for end in (self._wakeup, sending):
                os.close(end)

    # --- workers -----------------------------------------------------------------------------------

    def _start(self, child: _Child, inherited: Inherited) -> None:
        """Fork a worker."""
        own_end, its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # A signal to the child must not call a handler of the parent.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        child.pid = os.fork()
        if not child.pid:
            own_end.close()
            self._run_child(child, inherited, its_end)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        its_end.close()
        own_end.setblocking(False)
        child.connection, child.is_ready, child.is_drained = own_end, False, False
        child.started_s = time.monotonic()
        child.starts += 1
        self._log.info("worker started", worker=child.shard.index, pid=child.pid)

    def _run_child(self, child: _Child, inherited: Inherited, parent: socket.socket) -> NoReturn:
        """Run a worker in this forked process, then end the process."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            os.close(self._wakeup)
            for number in (*STOP_SIGNALS, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
            for other in self._children:
                if other.connection is not None:
                    other.connection.close()
            name_worker(child.shard.index)
            settings, is_successor = self._settings_of_worker, child.starts > 0
            self._run_loop(serve_worker(settings, child.shard, inherited, parent, is_successor=is_successor))
            code = 0
        except BaseException as error:
            first = _first(error)
            self._log.error("worker failed", exc_info=first)
            if isinstance(first, EbbtideError):
                with contextlib.suppress(OSError):
                    parent.send(pickle.dumps(first))
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _await_ready(self) -> bool:
        """Wait until every worker listens. Return False if a stop comes first.

        Raise the error of a worker that cannot start, or INTERNAL.
        """
        while not self._is_stopping:
            self._wait()
            if all(child.is_ready for child in self._children):
                return True
            failed = next((child for child in self._children if not child.pid), None)
            if failed is not None:
                raise failed.error or Internal("a worker ended during the start; the log says why")
        return False

    def _wait(self) -> None:
        """Wait at most POLL_S for messages, signals or the end of a worker, and handle them."""
        connections = [child.connection for child in self._children if child.connection is not None]
        watched: list[Any] = [self._wakeup, *connections]
        ready, _, _ = select.select(watched, [], [], POLL_S)
        if self._wakeup in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wakeup, 4096)
        for child in self._children:
            if child.connection in ready:
                self._receive(child)
        self._reap()

    def _receive(self, child: _Child) -> None:
        """Receive a message of a worker."""
        assert child.connection is not None
        try:
            message = child.connection.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        child.is_ready |= message == READY
        child.is_drained |= message == DRAINED
        if child.is_drained and not self._is_stopping:
            # The stop signal was sent to this worker alone.
            self._close(child)
        if not message:
            child.connection.close()
            child.connection = None
        elif message not in (READY, DRAINED):
            child.error = pickle.loads(message)

    def _reap(self) -> None:
        """Reap ended workers, and orphans if this is the init process of a container."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            child = next((one for one in self._children if one.pid == pid), None)
            if child is not None:
                self._ended(child, os.waitstatus_to_exitcode(status))

    def _ended(self, child: _Child, code: int) -> None:
        child.pid = 0
        if child.connection is not None and not child.is_ready:
            self._receive(child)
        if child.connection is not None:
            child.connection.close()
            child.connection = None
        if self._is_stopping:
            self._was_forced |= child.is_ready and code != 0
            return
        now_s = time.monotonic()
        is_steady = child.is_ready and now_s - child.started_s >= STEADY_S
        child.pause_s = 0.0 if is_steady or child.starts == 1 else min(MAX_PAUSE_S, 2 * child.pause_s + 0.5)
        child.start_at_s = now_s + child.pause_s
        self._log.error(
            "worker ended and is restarted",
            worker=child.shard.index,
            exit_code=code,
            pause_s=child.pause_s,
        )

    def _restart_ended(self, inherited: Inherited) -> None:
        """Start a successor for each worker that has ended."""
        for child in self._children:
            if not (child.pid or self._is_stopping) and time.monotonic() >= child.start_at_s:
                self._start(child, inherited)

    def _stop(self) -> None:
        """Stop the workers: all complete their requests before any closes its agents. Guardians limit the time."""
        self._is_stopping = True
        running = [child for child in self._children if child.pid]
        for child in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGTERM)
        while any(child.pid and not child.is_drained and child.connection for child in running):
            self._wait()
        for child in running:
            self._close(child)
        while any(child.pid for child in running):
            self._wait()

    def _close(self, child: _Child) -> None:
        """Allow a worker to close its agents."""
        if child.connection is not None:
            with contextlib.suppress(OSError):
                child.connection.send(CLOSE)


def _first(error: BaseException) -> BaseException:
    """Return the first error of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
