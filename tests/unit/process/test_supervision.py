"""Supervision of a daemon: the stacks in a log line, and a guardian that cannot be started or has ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest
from structlog.testing import capture_logs

from ebbtide.process import stop_guard
from ebbtide.process.guardian import MAX_FRAMES, MAX_THREADS, bounded, parse_dump
from ebbtide.process.stop_guard import StopGuard, closing_time_s
from ebbtide.process.watchdog import stacks_of_threads
from ebbtide.telemetry import configure_log

DUMP = """Thread 0x00007f4c1ffff6c0 (most recent call first):
  File "/usr/lib/python3.11/concurrent/futures/thread.py", line 81 in _worker
  File "/usr/lib/python3.11/threading.py", line 982 in run

Thread 0x00007f4c1eeee6c0 (most recent call first):
  File "/opt/ebbtide/retrieval/sentences.py", line 12 in split
  File "/usr/lib/python3.11/threading.py", line 982 in run

Current thread 0x00007f4c2aaaa6c0 (most recent call first):
  File "/opt/ebbtide/language/parsing.py", line 40 in parse
  File "/opt/ebbtide/daemon.py", line 9 in serve
"""


def test_dump_of_c_becomes_stacks_of_busy_threads() -> None:
    """A dump of faulthandler becomes file, line and function: the main thread first, without idle threads."""
    assert list(parse_dump(DUMP).items()) == [
        ("MainThread", ["parsing.py:40 parse", "daemon.py:9 serve"]),
        ("thread 0x00007f4c1eeee6c0", ["sentences.py:12 split"]),
    ]


def test_a_truncated_dump_is_parsed() -> None:
    """A truncated dump is parsed as far as possible: the process may be at its end."""
    for end in range(len(DUMP)):
        parse_dump(DUMP[:end])


def test_stacks_of_a_log_line_are_bounded() -> None:
    """A log line stays short whatever the number of threads and the depth of their stacks."""
    stacks = bounded({f"job_{n}": [f"deep.py:{line} f" for line in range(900)] for n in range(90)})
    assert len(stacks) == MAX_THREADS
    assert {len(frames) for frames in stacks.values()} == {MAX_FRAMES}


def test_stacks_of_this_process_name_threads_and_functions() -> None:
    """The stacks of other threads name their current functions."""
    goes_on = threading.Event()

    def culprit() -> None:
        goes_on.wait(10)

    thread = threading.Thread(target=culprit, name="job_7")
    thread.start()
    try:
        (frame,) = stacks_of_threads()["job_7"]
        assert frame.startswith("test_supervision.py:") and frame.endswith(" culprit")
    finally:
        goes_on.set()
        thread.join()


@pytest.mark.parametrize(("grace_s", "closing_s"), [(1, 5), (10, 5), (30, 15), (600, 300)])
def test_closing_time_follows_the_grace(grace_s: float, closing_s: float) -> None:
    """Closing may take half of the grace on top of it, and at least 5 s, as docs/operating.md says."""
    assert closing_time_s(grace_s) == closing_s


def test_daemon_continues_without_a_guardian(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no process can be started, the daemon warns and continues."""

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(subprocess, "Popen", refuse)
    configure_log("info", "json")
    with capture_logs() as log:
        guard = StopGuard(1, "json")
        guard._start()
        guard.keep_guardian()
        for _ in range(100_000):
            guard.stopping()
    assert [line["log_level"] for line in log] == ["warning"]


def test_guardian_that_ended_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed guardian is reaped and replaced, with a log line, but at a limited rate."""
    configure_log("info", "json")
    guard = StopGuard(1, "json")
    guard._start()
    first = guard._child
    assert first is not None
    try:
        first.kill()
        first.wait()
        with capture_logs() as log:
            guard.keep_guardian()
            assert log == [] and guard._child is first, "not at once"
            monkeypatch.setattr(stop_guard, "RESTART_S", 0)
            guard.keep_guardian()
        assert [line["exit_code"] for line in log] == [-9]
        second = guard._child
        assert second is not None and second.pid != first.pid and second.poll() is None
    finally:
        if guard._child is not None:
            guard._child.kill()
            guard._child.wait()


GUARDED = """
import os, signal, sys, time
from ebbtide.process.stop_guard import StopGuard

signal.signal(signal.SIGUSR2, signal.SIG_IGN)
guard = StopGuard(1, "json")
guard._start()
os.write(getattr(guard, sys.argv[1]), sys.argv[2].encode())
time.sleep(3)
"""


def guarded(pipe: str, report: str, stderr: int) -> int:
    """Run a process that writes to a pipe of its guardian and then sleeps. Return how it ended."""
    command = [sys.executable, "-c", GUARDED, pipe, report]
    return subprocess.run(command, stderr=stderr, check=False, timeout=60).returncode


def test_only_a_stop_begins_a_stop() -> None:
    """Late or unrequested data, such as stacks, makes the guardian kill nothing."""
    assert (
        guarded("_reports", "Current thread 0x00007f4c2aaaa6c0 (most recent call first):", subprocess.DEVNULL)
        == 0
    )


def test_full_standard_error_does_not_hold_up_the_kill() -> None:
    """A log that is not read cannot keep a blocked daemon alive."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    try:
        assert guarded("_signals_in", "\x0f", writer) == -signal.SIGKILL
    finally:
        os.close(reader)
        os.close(writer)
