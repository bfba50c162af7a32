"""A lock among threads and processes."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

from ebbtide.store.process_lock import ProcessLock


def test_one_thread_of_one_process_has_the_lock(tmp_path: Path) -> None:
    """Read, change and write under the lock lose no change, by two processes with threads each."""
    counter = tmp_path / "counter"
    counter.write_text("0")
    lock_dir = tmp_path / "locked"
    lock_dir.mkdir()

    def count(lock: ProcessLock) -> None:
        for _ in range(50):
            with lock:
                number = int(counter.read_text())
                time.sleep(0.0002)
                counter.write_text(str(number + 1))

    def count_in_threads() -> None:
        lock = ProcessLock(lock_dir)
        threads = [threading.Thread(target=count, args=(lock,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    child = os.fork()
    if not child:
        count_in_threads()
        os._exit(0)
    count_in_threads()
    os.waitpid(child, 0)
    assert counter.read_text() == "300"


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    """The lock ends with the process that has it, and leaves no file."""
    child = os.fork()
    if not child:
        ProcessLock(tmp_path).__enter__()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    with ProcessLock(tmp_path):
        assert list(tmp_path.iterdir()) == []


def test_a_missing_directory_is_no_error(tmp_path: Path) -> None:
    """Without the directory the lock holds among threads; the work under it fails by itself."""
    lock = ProcessLock(tmp_path / "missing")
    for _ in range(2):
        with lock:
            pass
