"""The watchdog logs where every thread is when the event loop is late by more than a second.

The event loop reports each beat. A thread checks the age of the last beat four times a second:

* The thread runs and the beat is old: a callback of the loop computes or blocks. The thread takes the stacks itself.
* The thread does not run: a C call holds the interpreter lock. A kernel timer, which the thread resets at every check,
  then sends SIGALRM, and a C handler of faulthandler writes the stack of the main thread to a pipe. The thread logs it
  once it runs again, with the current stacks of the other threads.
* The thread does not run and the process used no processor time: the process was stopped. That is not a stall.

faulthandler must not write the stacks of other threads while they run: the process would crash (ADR 0025).
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
import time
from types import FrameType

from ebbtide.process.guardian import Stacks, bounded, parse_dump
from ebbtide.telemetry import get_log

BEAT_S = 0.25
"""How often the event loop beats, and how often the thread checks."""

LATE_S = 1.0
"""Longest lag of the event loop that is not logged."""

QUIET_S = 10.0
"""Shortest time between two log lines."""

MIN_CPU_SHARE = 0.1
"""Minimum share of processor time for a stall; below it the process was stopped."""


class Watchdog:
    """Measures the lag of the event loop. The loop calls `beat`, the thread calls `look`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_on = False
        self._beat_s = self._judged_from_s = self._looked_s = 0.0
        self._late_s = 0.0
        self._cpu_s = 0.0
        self._logged_beat_s = 0.0
        self._logged_s = -QUIET_S
        self._unlogged_count = 0
        self._dumps, self._dumps_in = os.pipe()
        for end in (self._dumps, self._dumps_in):
            os.set_blocking(end, False)

    def begin(self) -> None:
        """Start watching. Main thread only."""
        self._beat_s = self._judged_from_s = self._looked_s = time.monotonic()
        self._cpu_s = time.process_time()
        # faulthandler restores this when the interpreter ends.
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        faulthandler.register(signal.SIGALRM, file=self._dumps_in, all_threads=False)
        self._is_on = True
        signal.setitimer(signal.ITIMER_REAL, LATE_S)

    def end(self) -> None:
        """Stop watching. Idempotent."""
        with self._lock:
            self._is_on = False
            signal.setitimer(signal.ITIMER_REAL, 0)

    def beat(self, late_s: float) -> None:
        """Note a beat of the event loop and its lag."""
        self._late_s = max(self._late_s, late_s)
        self._beat_s = time.monotonic()

    def look(self) -> None:
        """Log the stacks if the event loop is late, or was late while this thread did not run."""
        with self._lock:
            if not self._is_on:
                return
            signal.setitimer(signal.ITIMER_REAL, LATE_S)
        now_s, cpu_s = time.monotonic(), time.process_time()
        away_s, worked_s = now_s - self._looked_s, cpu_s - self._cpu_s
        self._looked_s, self._cpu_s = now_s, cpu_s
        beat_s = self._beat_s
        late_before_s, self._late_s = self._late_s, 0.0
        late_s = now_s - max(beat_s, self._judged_from_s) - BEAT_S
        dump = self._read_dump()
        if away_s > 2 * BEAT_S:
            # This thread was blocked too. The loop gets time for a beat before the next check.
            self._judged_from_s = now_s
            late_s = max(late_before_s, late_s)
            if dump and late_s > LATE_S and worked_s > MIN_CPU_SHARE * away_s:
                self._log(late_s, stacks_of_threads() | dump, held=True)
        elif late_s > LATE_S and beat_s != self._logged_beat_s:
            self._logged_beat_s = beat_s
            self._log(late_s, stacks_of_threads(), held=False)

    def _read_dump(self) -> Stacks:
        with contextlib.suppress(BlockingIOError):
            return parse_dump(os.read(self._dumps, 1 << 16).decode(errors="replace"))
        return {}

    def _log(self, late_s: float, stacks: Stacks, *, held: bool) -> None:
        now_s = time.monotonic()
        if now_s < self._logged_s + QUIET_S:
            self._unlogged_count += 1
            return
        get_log("daemon").warning(
            "event loop stalled",
            late_s=round(late_s, 2),
            interpreter_held=held,
            stacks=stacks,
            not_logged=self._unlogged_count,
        )
        self._logged_s, self._unlogged_count = now_s, 0


def stacks_of_threads() -> Stacks:
    """Return the position of each thread but this one: file, line and function, innermost frame first."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    stacks: Stacks = {}
    for ident, innermost in sys._current_frames().items():
        if ident == threading.get_ident():
            continue
        frame: FrameType | None = innermost
        frames: list[str] = []
        while frame is not None:
            code = frame.f_code
            frames.append(f"{code.co_filename.rpartition('/')[2]}:{frame.f_lineno} {code.co_name}")
            frame = frame.f_back
        stacks[names.get(ident, f"thread {ident:#x}")] = frames
    return bounded(stacks)
