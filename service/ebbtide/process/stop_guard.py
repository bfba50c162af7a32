"""The stop signals of the daemon, and the child process that enforces them.

Python's C signal handler writes the number of each signal to a pipe (`signal.set_wakeup_fd`), without the interpreter
lock. The event loop reads the pipe and stops in order. The guardian watches the same pipe, so it learns of the signal
even if the loop never reads it: see `guardian.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from ebbtide.process import guardian
from ebbtide.process.guardian import DUMP_SIGNAL, EXIT, KILLED, STACKS, STOPPING, Stacks
from ebbtide.telemetry import get_log

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

NOT_FOR_THE_GUARDIAN = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
"""Signals that terminals and supervisors send to every process of a group. The guardian ignores them."""

MIN_GRACE_S = 1.0

MIN_CLOSING_S = 5.0
"""Minimum time for closing agents after the grace period; otherwise it is half of that period."""

RESTART_S = 60.0
"""Shortest time between two starts of the guardian."""


def closing_time_s(grace_s: float) -> float:
    """Return how long closing may take after the grace period for requests."""
    return max(MIN_CLOSING_S, grace_s / 2)


class StopGuard:
    """Handles the stop signals of this process, and keeps a guardian that ends it in time.

    The pipes stay open until the process ends, because their end of file ends the guardian.
    """

    def __init__(self, grace_s: float, log_format: str) -> None:
        grace_s = max(MIN_GRACE_S, grace_s)
        self._terms = [str(grace_s), str(closing_time_s(grace_s)), log_format]
        self._signals, self._signals_in = _pipe()
        self._reports_out, self._reports = _pipe()
        self._requests, self._requests_in = _pipe()
        self._child: subprocess.Popen[bytes] | None = None
        self._started_s = 0.0

    def install(self, loop: asyncio.AbstractEventLoop, on_stop: Callable[[], None]) -> None:
        """Call `on_stop` in the loop for each stop signal, and start the guardian. Main thread only."""

        def signalled() -> None:
            with contextlib.suppress(BlockingIOError):
                os.read(self._signals, 4096)
            self.stopping()
            on_stop()

        for number in STOP_SIGNALS:
            # A handler in Python makes the C handler write to the pipe; it needs to do nothing else.
            signal.signal(number, lambda *_: None)
        loop.add_reader(self._signals, signalled)
        signal.set_wakeup_fd(self._signals_in, warn_on_full_buffer=False)
        signal.signal(DUMP_SIGNAL, signal.SIG_IGN)
        faulthandler.register(DUMP_SIGNAL, file=self._reports, all_threads=True)
        self._start()

    def stopping(self) -> None:
        """Report to the guardian that the event loop stops, for any reason."""
        self._report(STOPPING)

    def answer(self, timeout_s: float, stacks: Callable[[], Stacks]) -> None:
        """Wait for a request of the guardian and answer it."""
        if not select.select([self._requests], [], [], timeout_s)[0]:
            return
        request = os.read(self._requests, 4096)
        if STACKS in request:
            self._report(json.dumps(stacks()).encode() + b"\n")
        if EXIT in request:
            os._exit(KILLED)

    def keep_guardian(self) -> None:
        """Start the guardian again if it has ended."""
        if (
            self._child is None
            or self._child.poll() is None
            or time.monotonic() < self._started_s + RESTART_S
        ):
            return
        get_log("daemon").warning("guardian ended and is restarted", exit_code=self._child.returncode)
        self._start()

    def _report(self, report: bytes) -> None:
        # Without a guardian the pipe may be full.
        with contextlib.suppress(OSError):
            os.write(self._reports, report)

    def _start(self) -> None:
        self._started_s = time.monotonic()
        pipes = (self._signals, self._reports_out, self._requests_in)
        command = [sys.executable, "-I", "-S", guardian.__file__, str(os.getpid()), *map(str, pipes)]
        options: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.DEVNULL,
            "pass_fds": pipes,
        }
        # A child inherits the blocked signals of the thread that starts it.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, NOT_FOR_THE_GUARDIAN)
        try:
            self._child = subprocess.Popen([*command, *self._terms], **options)
        except (OSError, ValueError) as error:
            get_log("daemon").warning(
                "guardian not started; a blocked daemon will not stop on SIGTERM", exc_info=error
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _pipe() -> tuple[int, int]:
    """Return the ends of a pipe that never block this process."""
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends
