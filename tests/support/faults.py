"""Faults of the disk under a running daemon: system calls that fail or are slow for some time.

`strace` attaches to the daemon, answers the chosen calls with an error or delays them, and detaches at the end of the
block. The daemon itself is unchanged.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.support.process import Daemon
from tests.support.waiting import wait_until


@contextlib.contextmanager
def failing(daemon: Daemon, calls: str, fault: str) -> Iterator[None]:
    """Make `calls` (names separated by commas) of the daemon end in a `fault` such as `error=EIO` during the block."""
    strace = shutil.which("strace")
    if strace is None:
        if os.environ.get("CI"):
            pytest.fail("strace is needed here")
        pytest.skip("strace is not installed")
    log_path = daemon.data_dir.with_name("strace.log")
    command = [strace, "-f", "-o", os.devnull, "-e", f"trace={calls}", "-e", f"inject={calls}:{fault}"]
    with log_path.open("wb") as log:
        process = subprocess.Popen([*command, "-p", str(daemon.process.pid)], stderr=log)
        try:
            wait_until(lambda: process.poll() is not None or b"attached" in log_path.read_bytes(), 20)
            if process.poll() is not None:
                pytest.skip(f"strace may not attach here: {log_path.read_text(errors='replace')[:200]}")
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(20)
