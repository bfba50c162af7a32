"""A daemon that cannot stop is killed in time, and the log names the blocked function."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ebbtide.process.stop_guard import closing_time_s
from tests.support.process import Daemon, check_data_directory
from tests.support.stalling_daemon import MODULE, stall_file
from tests.support.waiting import Stopwatch, wait_until

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="processes are read from /proc"),
]

GRACE_S = 2
SLACK_S = 4
"""Extra time for a loaded machine."""

EACH_WAY = ["backtrack", pytest.param("nap", marks=pytest.mark.full)]
"""Ways to block as process 1 of a container."""

UNSHARE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


@contextlib.contextmanager
def stalling(
    data_dir: Path, prefix: tuple[str, ...] = (), flags: tuple[str, ...] = (), **settings: Any
) -> Iterator[Daemon]:
    """Run a daemon that stalls on request."""
    stall_file(data_dir).touch()
    settings = {"SERVER__SHUTDOWN_GRACE_S": GRACE_S, **settings}
    daemon = Daemon(data_dir, settings, prefix, MODULE)
    daemon.flags = flags or daemon.flags
    try:
        daemon.start()
        daemon.remember("ann", "The kettle is blue.")
        daemon.flush("ann")
        yield daemon
    finally:
        daemon.close()
    check_data_directory(data_dir)


def lines(daemon: Daemon, event: str) -> list[dict[str, Any]]:
    """Return the log lines of an event."""
    found = [json.loads(line) for line in daemon.log.splitlines() if line.startswith("{")]
    return [line for line in found if line["event"] == event]


def children(process_id: int) -> list[int]:
    """Return the children of a process."""
    with contextlib.suppress(FileNotFoundError):
        return [
            int(child) for child in Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()
        ]
    return []


def guardian_of(daemon: Daemon) -> int:
    """Return the process id of the guardian."""
    (child,) = children(daemon.process.pid)
    assert "guardian.py" in Path(f"/proc/{child}/cmdline").read_text()
    return child


def is_running(process_id: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def stall_loop(daemon: Daemon, how: str) -> None:
    """Block the event loop, and wait until it is blocked."""
    daemon.remember("ben", f"stall {how} 1000")
    with contextlib.suppress(httpx.TransportError):
        while True:
            daemon.client.get("/healthz", timeout=0.3)


def stall_job(daemon: Daemon, how: str) -> threading.Thread:
    """Block a job thread by a request that gets no response."""

    def ask() -> None:
        with contextlib.suppress(httpx.TransportError):
            body = {"keywords": [f"stall {how} 1000"]}
            httpx.post(f"{daemon.url}/v1/agents/ann/recall", json=body, timeout=60)

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(0.5)
    return asking


def assert_forced(daemon: Daemon, limit_s: float, culprit: str) -> None:
    """Stop the daemon: it is killed in time, no process remains, and one log line names the function."""
    guardian = guardian_of(daemon)
    watch = Stopwatch()
    for _ in range(3):
        # Repeated signals from an impatient supervisor change nothing.
        daemon.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
    assert daemon.process.wait(limit_s + 20) == -signal.SIGKILL
    assert watch.s < limit_s + SLACK_S
    wait_until(lambda: not is_running(guardian))
    (line,) = lines(daemon, "stop forced")
    assert culprit in json.dumps(line["stacks"])
    assert line["level"] == "error"
    assert "kettle" not in json.dumps(line)


@pytest.mark.parametrize("how", ["backtrack", "spin"])
def test_blocked_event_loop_does_not_outlast_the_grace(tmp_path: Path, how: str) -> None:
    """SIGTERM ends a daemon whose event loop is blocked within the grace, with or without the interpreter lock.

    The log names the function, and what was acknowledged is there after the next start.
    """
    data_dir = tmp_path / "data"
    with stalling(data_dir) as daemon:
        stall_loop(daemon, how)
        assert_forced(daemon, GRACE_S, how)
        if how == "spin":
            (stall,) = lines(daemon, "event loop stalled")
            assert how in json.dumps(stall["stacks"]["MainThread"]) and not stall["interpreter_held"]
        stall_file(data_dir).unlink()
        daemon.start()
        assert daemon.recall("ann", "kettle") == "[Memory] The kettle is blue."
        assert daemon.flush("ben")["digested"]
        assert len(daemon.get("ben/nodes").json()["nodes"]) == 1
        assert daemon.stop() == 0


def test_forced_stop_is_logged_in_the_format_of_the_log(tmp_path: Path) -> None:
    """A loop that blocks in a system call is killed too; the guardian writes its line in the format of the log."""
    with stalling(tmp_path / "data", flags=("--log-format", "console")) as daemon:
        stall_loop(daemon, "nap")
        watch = Stopwatch()
        assert daemon.stop() == -signal.SIGKILL
        assert watch.s < GRACE_S + SLACK_S
        (line,) = [line for line in daemon.log.splitlines() if "event='stop forced'" in line]
        assert line.startswith("timestamp='") and "nap" in line


@pytest.mark.parametrize(("how", "grace_s"), [("nap", 1), ("backtrack", GRACE_S)])
def test_job_that_never_ends_does_not_keep_the_daemon(tmp_path: Path, how: str, grace_s: int) -> None:
    """SIGTERM ends a daemon with a job that never returns.

    It has the grace and the time for closing agents; the grace alone if the job holds the interpreter lock.
    """
    limit_s = grace_s + (closing_time_s(grace_s) if how == "nap" else 0)
    with stalling(tmp_path / "data", SERVER__SHUTDOWN_GRACE_S=grace_s) as daemon:
        asking = stall_job(daemon, how)
        assert_forced(daemon, limit_s, how)
        asking.join()


def test_ordinary_life_logs_nothing_of_it(tmp_path: Path) -> None:
    """Under load and at a normal stop no stall is logged, and the guardian ends with the daemon."""
    with stalling(tmp_path / "data") as daemon:
        guardian = guardian_of(daemon)
        ends_s = time.monotonic() + 3

        def talk(agent: str, url: str) -> None:
            with httpx.Client(base_url=url, timeout=30) as client:
                while time.monotonic() < ends_s:
                    body = {"messages": [{"role": "user", "content": "The kettle is blue."}]}
                    client.post(f"/v1/agents/{agent}/remember", json=body)
                    client.post(f"/v1/agents/{agent}/recall", json={"keywords": ["kettle"]})

        talkers = [threading.Thread(target=talk, args=(agent, daemon.url)) for agent in ("ben", "cat", "dan")]
        for talker in talkers:
            talker.start()
        for talker in talkers:
            talker.join()
        assert daemon.stop() == 0
        wait_until(lambda: not is_running(guardian))
        levels = {json.loads(line)["level"] for line in daemon.log.splitlines() if line.startswith("{")}
        assert levels == {"info"}
        assert "Traceback" not in daemon.log


def test_guardian_ends_with_a_killed_daemon(tmp_path: Path) -> None:
    """The guardian ends with the daemon, also after SIGKILL; signals from a terminal do not end it."""
    with stalling(tmp_path / "data") as daemon:
        guardian = guardian_of(daemon)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(guardian, number)
        time.sleep(0.3)
        assert is_running(guardian), "what a terminal sends to a whole group does not end the guardian"
        daemon.kill()
        wait_until(lambda: not is_running(guardian))
        assert lines(daemon, "stop forced") == []


def test_daemon_does_not_need_its_guardian(tmp_path: Path) -> None:
    """A daemon without its guardian serves requests and stops normally."""
    with stalling(tmp_path / "data") as daemon:
        os.kill(guardian_of(daemon), signal.SIGKILL)
        time.sleep(0.5)
        assert daemon.recall("ann", "kettle") == "[Memory] The kettle is blue."
        assert daemon.stop() == 0
        assert lines(daemon, "stopped")


@pytest.mark.alone
def test_stall_is_logged_once_with_its_place(tmp_path: Path) -> None:
    """A stall of two seconds is logged once, with its function, also while a C call holds the interpreter lock.

    A process that was stopped and continued has not stalled.
    """
    # An embedder that loads in the background keeps other threads waiting, which is a stall of its own.
    with stalling(tmp_path / "data", EMBEDDING__MODEL="off") as daemon:
        time.sleep(0.5)
        daemon.process.send_signal(signal.SIGSTOP)
        time.sleep(1.6)
        daemon.process.send_signal(signal.SIGCONT)
        time.sleep(0.8)
        assert lines(daemon, "event loop stalled") == []
        daemon.remember("ben", "stall hold 2.2")
        daemon.flush("ben")
        time.sleep(0.6)
        (line,) = lines(daemon, "event loop stalled")
        assert "hold" in json.dumps(line["stacks"]["MainThread"])
        assert line["interpreter_held"]
        assert 1 < line["late_s"] < 20
        assert daemon.stop() == 0


def may_unshare() -> bool:
    """Return whether this system allows a new PID namespace."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not may_unshare(), reason="needs the right to make a PID namespace")
@pytest.mark.parametrize("how", EACH_WAY)
def test_first_process_of_a_container_is_ended_too(tmp_path: Path, how: str) -> None:
    """As process 1 of a PID namespace, where SIGKILL from inside has no effect, a blocked daemon ends as well."""
    with stalling(tmp_path / "data", UNSHARE) as daemon:
        (inside,) = children(daemon.process.pid)
        stall_loop(daemon, how)
        os.kill(inside, signal.SIGTERM)
        assert daemon.process.wait(GRACE_S + 20) != 0
        assert not is_running(inside)
        (line,) = lines(daemon, "stop forced")
        assert how in json.dumps(line["stacks"])
