"""The guardian: a child process that kills the daemon when a stop takes too long.

A C call (a regular expression, a parser) can hold Python's interpreter lock for minutes. No thread and no signal
handler of the daemon runs in that time, so only another process can end it. A kill loses nothing that was acknowledged.

`stop_guard.py` starts this file as a script with `-I -S`. It imports nothing of the package and little of the standard
library, so it starts in 25 ms and uses 4 MB. Three pipes connect it to the daemon:

* `signals` contains bytes from the moment a stop signal arrives until the event loop reads them. The guardian never
  reads them. Python's C signal handler writes them without the interpreter lock.
* `reports`: the daemon writes STOPPING when its event loop begins to stop, and stacks on request. End of file means
  that the daemon has ended, so the guardian ends too.
* `requests`: the guardian writes STACKS or EXIT; a thread of the daemon answers if it gets the interpreter lock.

A stop begins with the first byte in `signals` or with STOPPING. Without STOPPING the event loop is blocked, and the
daemon has the grace period. With STOPPING it has the grace period for requests and the closing time for agents.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time

STOPPING = b"stopping\n"
STACKS = b"s"
EXIT = b"x"

DUMP_SIGNAL = signal.SIGUSR2
"""Makes the daemon write the stacks of all threads to `reports`, from C. Sent only to a daemon about to be killed."""

KILLED = 137
"""Exit code of a process killed by SIGKILL, as shells and containers report it."""

REPLY_S = 0.5
"""How long the guardian waits for stacks from a thread, and at most for those from the C handler."""

RESERVE_S = 0.7
"""How long before the end of the grace period the guardian requests stacks, so that the kill is in time."""

PARENT_CHECK_S = 5.0
"""How often the guardian checks that its parent is still the daemon."""

MAX_THREADS = 8
MAX_FRAMES = 12
"""Most threads, and innermost frames of each, in a log line."""

START_OF_THREADS = "threading.py:"
"""The outermost frame of every thread; a thread that waits for an event is idle, too."""

Stacks = dict[str, list[str]]


def parse_dump(dump: str) -> Stacks:
    """Return the stacks that faulthandler wrote, innermost frame first."""
    stacks: Stacks = {}
    frames: list[str] = []
    for line in dump.splitlines():
        if line.endswith("(most recent call first):"):
            name = line.partition(" (")[0]
            # The current thread is the one that received the signal: always the main thread.
            frames = stacks.setdefault(name.lower() if name.startswith("Thread") else "MainThread", [])
        elif line.startswith('  File "'):
            file, _, rest = line.removeprefix('  File "').partition('", line ')
            number, _, function = rest.partition(" in ")
            frames.append(f"{file.rpartition('/')[2]}:{number} {function}")
    return bounded(stacks)


def bounded(stacks: Stacks) -> Stacks:
    """Return the stacks for a log line: the main thread first, without idle threads, of limited length."""
    shown: Stacks = {}
    for name in sorted(stacks, key=lambda name: name != "MainThread"):
        frames = [frame for frame in stacks[name] if not frame.startswith(START_OF_THREADS)]
        is_idle = not frames or (frames[0].startswith("thread.py:") and frames[0].endswith(" _worker"))
        if not is_idle and len(shown) < MAX_THREADS:
            shown[name] = frames[:MAX_FRAMES]
    return shown


class Guardian:
    """Waits for a stop of one daemon and for its end."""

    def __init__(
        self, daemon: int, pipes: tuple[int, int, int], grace_s: float, closing_s: float, log_format: str
    ) -> None:
        self._daemon = daemon
        self._signals, self._reports, self._requests = pipes
        self._grace_s = grace_s
        self._closing_s = closing_s
        self._log_format = log_format
        self._begun_s: float | None = None
        self._is_acknowledged = False
        self._poll = select.poll()
        for pipe in (self._signals, self._reports):
            self._poll.register(pipe, select.POLLIN)

    def run(self) -> None:
        """Wait until the daemon has ended. Kill it when its time is over."""
        while os.getppid() == self._daemon:
            left_s = self._left_s()
            if left_s <= 0:
                self._end_daemon()
                return
            for pipe, _ in self._poll.poll(1000 * min(left_s, PARENT_CHECK_S)):
                if pipe == self._signals:
                    # The bytes stay there while the loop is blocked; one event is enough.
                    self._poll.unregister(self._signals)
                else:
                    report = os.read(self._reports, 1 << 16)
                    if not report:
                        return
                    if STOPPING not in report:
                        continue
                    self._is_acknowledged = True
                if self._begun_s is None:
                    self._begun_s = time.monotonic()

    def _left_s(self) -> float:
        if self._begun_s is None:
            return PARENT_CHECK_S
        allowed_s = self._grace_s - RESERVE_S
        if self._is_acknowledged:
            allowed_s = self._grace_s + self._closing_s
        return self._begun_s + allowed_s - time.monotonic()

    def _end_daemon(self) -> None:
        stacks = self._stacks()
        if os.getppid() != self._daemon:
            return
        reason = (
            "closing took longer than it may" if self._is_acknowledged else "the event loop did not respond"
        )
        after_s = round(time.monotonic() - (self._begun_s or 0), 2)
        self._log(reason, after_s, stacks)
        if self._daemon == 1:
            # Inside its own PID namespace the kernel ignores SIGKILL for process 1, but not for its CPU time limit.
            import resource

            with contextlib.suppress(OSError):
                os.write(self._requests, EXIT)
            with contextlib.suppress(OSError, ValueError):
                resource.prlimit(self._daemon, resource.RLIMIT_CPU, (1, 1))
        elif os.getppid() == self._daemon:
            os.kill(self._daemon, signal.SIGKILL)

    def _stacks(self) -> Stacks:
        """Return the daemon's stacks: from its thread, or from its C signal handler if the thread does not answer."""
        with contextlib.suppress(OSError, ValueError):
            os.write(self._requests, STACKS)
            stacks: Stacks = json.loads(self._read_report(REPLY_S))
            return stacks
        if os.getppid() != self._daemon:
            return {}
        os.kill(self._daemon, DUMP_SIGNAL)
        return parse_dump(self._read_report(REPLY_S / 5))

    def _read_report(self, quiet_s: float) -> str:
        """Read one line of JSON, or everything until `quiet_s` seconds without data; at most half a second."""
        report = b""
        ends_s = time.monotonic() + REPLY_S
        while not (report.startswith(b"{") and report.endswith(b"\n")) and time.monotonic() < ends_s:
            ready, _, _ = select.select([self._reports], [], [], quiet_s)
            piece = os.read(self._reports, 1 << 16) if ready else b""
            if not piece:
                break
            report += piece
        return report.decode(errors="replace")

    def _log(self, reason: str, after_s: float, stacks: Stacks) -> None:
        now_s = time.time()
        fields = {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now_s))
            + f".{int(now_s % 1 * 1e6):06}Z",
            "level": "error",
            "event": "stop forced",
            "part": "guardian",
            "reason": reason,
            "after_s": after_s,
            "stacks": stacks,
        }
        if self._log_format == "json":
            line = json.dumps(fields)
        else:
            line = " ".join(f"{name}={value!r}" for name, value in fields.items())
        # A blocked standard error must not delay the kill.
        signal.signal(signal.SIGALRM, _give_up)
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        with contextlib.suppress(OSError):
            os.write(2, line.encode("ascii", "backslashreplace") + b"\n")
        signal.setitimer(signal.ITIMER_REAL, 0)


def _give_up(*_: object) -> None:
    raise TimeoutError


if __name__ == "__main__":
    daemon, signals, reports, requests = map(int, sys.argv[1:5])
    Guardian(daemon, (signals, reports, requests), float(sys.argv[5]), float(sys.argv[6]), sys.argv[7]).run()
