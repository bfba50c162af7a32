"""Long texts are processed in worker processes: results, errors, deadlines, memory, crashes, shutdown."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbtide.errors import InvalidRequest, Unavailable
from ebbtide.offload import pool, worker_pool
from ebbtide.offload.pool import INLINE, MAX_INLINE_CHARS, TextWorkers
from tests.support import worker_tasks

SHORT = "a" * MAX_INLINE_CHARS
LONG = "a" * (MAX_INLINE_CHARS + 1) + "b"


@pytest.fixture
def workers() -> Iterator[TextWorkers]:
    """A pool whose time limit suits a busy machine."""
    made = TextWorkers(time_limit_s=60.0)
    yield made
    made.close()


@pytest.fixture
def hurried() -> Iterator[TextWorkers]:
    """A pool with a time limit of two seconds."""
    made = TextWorkers(time_limit_s=2.0)
    yield made
    made.close()


def is_running(pid: int) -> bool:
    """Whether a process with this id exists and has not ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_long_text_leaves_the_process_and_a_short_one_does_not(workers: TextWorkers) -> None:
    """A text of MAX_INLINE_CHARS is processed here, a longer one in a worker, which is reused."""
    assert workers.call(len(SHORT), worker_tasks.whose, SHORT) == os.getpid()
    first = workers.call(len(LONG), worker_tasks.whose, LONG)
    assert first != os.getpid()
    assert workers.call(len(LONG), worker_tasks.whose, LONG) == first


def test_a_worker_keeps_no_text_in_a_cache(workers: TextWorkers) -> None:
    """The caches of a worker are empty after each call: the daemon cannot clear them when a text is deleted."""
    first = workers.call(len(LONG), worker_tasks.whose, LONG)
    cached = [workers.call(len(LONG), worker_tasks.first_read, LONG) for _ in range(2)]
    assert cached[0] < cached[1]
    assert workers.call(len(LONG), worker_tasks.whose, LONG) == first


async def test_event_loop_awaits_a_worker(workers: TextWorkers) -> None:
    """On the event loop the call is awaited, and other tasks run meanwhile."""
    waiting = asyncio.create_task(workers.run(len(LONG), worker_tasks.sleep, LONG, 0.5))
    await asyncio.sleep(0)
    assert not waiting.done()
    await waiting
    assert await workers.run(len(SHORT), worker_tasks.whose, SHORT) == os.getpid()


def test_call_that_holds_the_interpreter_is_ended_at_its_deadline(hurried: TextWorkers) -> None:
    """A C call without end becomes TEXT_TOO_COMPLEX; other threads run meanwhile, and the next call succeeds."""
    ticks = []
    done = threading.Event()

    def tick() -> None:
        while not done.wait(0.02):
            ticks.append(time.monotonic())

    ticking = threading.Thread(target=tick)
    ticking.start()
    with pytest.raises(InvalidRequest) as caught:
        hurried.call(len(LONG), worker_tasks.backtrack, LONG)
    done.set()
    ticking.join()
    assert caught.value.reason == "TEXT_TOO_COMPLEX"
    assert len(ticks) > 10
    assert hurried.call(len(LONG), worker_tasks.whose, LONG) != os.getpid()


def test_deadline_grows_with_the_text() -> None:
    """Each CHARS_PER_DEADLINE characters of a text add the time limit once more."""
    workers = TextWorkers(time_limit_s=0.3)
    try:
        with pytest.raises(InvalidRequest):
            workers.call(len(LONG), worker_tasks.sleep, LONG, 1.0)
        workers.call(50 * pool.CHARS_PER_DEADLINE, worker_tasks.sleep, LONG, 1.0)
    finally:
        workers.close()


def test_waiting_and_working_end_in_the_same_way(hurried: TextWorkers) -> None:
    """A call that hangs without using the processor is ended at the deadline too."""
    with pytest.raises(InvalidRequest, match="too long to process"):
        hurried.call(len(LONG), worker_tasks.sleep, LONG, 60.0)


def test_memory_of_a_worker_is_bounded(workers: TextWorkers) -> None:
    """A call that allocates more than a worker may is refused; one that allocates less is made."""
    with pytest.raises(InvalidRequest) as caught:
        workers.call(len(LONG), worker_tasks.allocate, LONG, 2 << 30)
    assert caught.value.reason == "TEXT_TOO_COMPLEX"
    assert workers.call(len(LONG), worker_tasks.allocate, LONG, 64 << 20) == 64 << 20


def test_worker_that_has_grown_is_replaced(workers: TextWorkers) -> None:
    """A worker whose memory has grown beyond LARGE_BYTES ends after its call, and the next call gets a new one."""
    first = workers.call(len(LONG), worker_tasks.keep, LONG, 512 << 20)
    assert workers.call(len(LONG), worker_tasks.whose, LONG) != first
    assert not is_running(first)


def test_worker_is_kept_however_large_the_daemon_is(workers: TextWorkers) -> None:
    """A worker is measured by its own memory, not by the peak that it inherits from the daemon."""
    script = (
        "from tests.support import worker_tasks\n"
        "from ebbtide.offload.pool import TextWorkers\n"
        f"held = bytearray(b'x') * {512 << 20}\n"
        "workers = TextWorkers(60.0)\n"
        f"text = 'a' * {len(LONG)}\n"
        "print(len({workers.call(len(text), worker_tasks.whose, text) for _ in range(5)}))\n"
        "workers.close()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_error_arrives_with_all_its_fields(workers: TextWorkers) -> None:
    """An error arrives with its reason, metadata, violations and retry time."""
    with pytest.raises(InvalidRequest) as here:
        worker_tasks.refuse(LONG)
    with pytest.raises(InvalidRequest) as there:
        workers.call(len(LONG), worker_tasks.refuse, LONG)
    assert vars(there.value) == vars(here.value)
    assert str(there.value) == str(here.value)


def test_strange_error_does_not_carry_the_text(workers: TextWorkers) -> None:
    """An exception that cannot be pickled arrives as an error that names its type, without its message."""
    with pytest.raises(RuntimeError, match=re.escape("Local")) as caught:
        workers.call(len(LONG), worker_tasks.fail_strangely, LONG)
    assert "aaa" not in str(caught.value)


def test_crash_is_tried_once_more(workers: TextWorkers, tmp_path: Path) -> None:
    """A worker killed from outside costs one retry; after a second kill the caller may repeat the request."""
    marker = str(tmp_path / "crashed")
    assert workers.call(len(LONG), worker_tasks.crash_once, LONG, marker) == "done"
    with pytest.raises(Unavailable) as caught:
        workers.call(len(LONG), worker_tasks.crash, LONG, signal.SIGKILL)
    assert (caught.value.reason, caught.value.retry_after_s) == ("WORKER_KILLED", 1.0)


def test_text_that_crashes_its_worker_is_refused(workers: TextWorkers) -> None:
    """A worker that crashes twice by itself is blamed on the text."""
    with pytest.raises(InvalidRequest) as caught:
        workers.call(len(LONG), worker_tasks.crash, LONG, signal.SIGSEGV)
    assert caught.value.reason == "TEXT_TOO_COMPLEX"


def test_output_of_a_function_does_not_corrupt_the_protocol(workers: TextWorkers) -> None:
    """A worker's standard output belongs to the protocol; prints go to standard error."""
    assert workers.call(len(LONG), worker_tasks.print_something, LONG) == LONG


def test_calls_share_a_bounded_number_of_processes(workers: TextWorkers) -> None:
    """At most MAX_WORKERS processes run, whatever the number of calling threads."""
    pids: list[int] = []
    threads = [
        threading.Thread(target=lambda: pids.append(workers.call(len(LONG), worker_tasks.whose, LONG)))
        for _ in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pids) == 12
    assert 1 <= len(set(pids)) <= pool.MAX_WORKERS


def test_idle_worker_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker without work for IDLE_S ends, and its process is reaped."""
    monkeypatch.setattr(worker_pool, "IDLE_S", 0.2)
    workers = TextWorkers(time_limit_s=2.0)
    try:
        first = workers.call(len(LONG), worker_tasks.whose, LONG)
        deadline = time.monotonic() + 20
        while Path(f"/proc/{first}").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not Path(f"/proc/{first}").exists()
        assert workers.call(len(LONG), worker_tasks.whose, LONG) != first
    finally:
        workers.close()


def test_closing_ends_calls_under_way(workers: TextWorkers) -> None:
    """`close` does not wait for deadlines: unfinished calls fail, no process stays, later calls are refused."""
    first = workers.call(len(LONG), worker_tasks.whose, LONG)
    failures: list[BaseException] = []

    def call() -> None:
        try:
            workers.call(100 * pool.CHARS_PER_DEADLINE, worker_tasks.sleep, LONG, 60.0)
        except BaseException as error:
            failures.append(error)

    calling = threading.Thread(target=call)
    calling.start()
    time.sleep(0.3)
    begun = time.monotonic()
    workers.close()
    calling.join()
    assert time.monotonic() - begun < 20
    assert [failure.reason for failure in failures if isinstance(failure, Unavailable)] == ["SHUTTING_DOWN"]
    assert not is_running(first)
    with pytest.raises(Unavailable):
        workers.call(len(LONG), worker_tasks.whose, LONG)


def test_without_a_daemon_every_text_is_processed_here() -> None:
    """Work on agents without a daemon starts no process."""
    assert INLINE.call(len(LONG), worker_tasks.whose, LONG) == os.getpid()
    with pytest.raises(InvalidRequest):
        INLINE.call(len(LONG), worker_tasks.refuse, LONG)


def test_text_is_processed_here_where_no_process_can_be_started(
    workers: TextWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a worker process the call is made here, and the log says so."""

    def fail() -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(worker_pool, "_Worker", fail)
    assert workers.call(len(LONG), worker_tasks.whose, LONG) == os.getpid()
