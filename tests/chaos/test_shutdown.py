"""A stop is in time and in order and loses nothing, whatever the daemon does."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from ebbtide.v1 import events_pb2, memory_service_pb2_grpc
from tests.support.process import Daemon, running_daemon
from tests.support.stubborn_daemon import MODULE, hang_file
from tests.support.waiting import Stopwatch, wait_until

pytestmark = pytest.mark.chaos

GRACE_S = 4


class Background:
    """A call in a thread of its own, with its result and duration."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.result: Any = None
        self.error: Exception | None = None
        self._watch = Stopwatch()
        self._thread = threading.Thread(target=self._run, args=(call,))
        self._thread.start()

    def _run(self, call: Callable[[], Any]) -> None:
        try:
            self.result = call()
        except Exception as error:
            self.error = error
        self.took_s = self._watch.s

    def join(self) -> Background:
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self


@contextlib.contextmanager
def stubborn(data_dir: Path, **settings: Any) -> Iterator[Daemon]:
    """Run a daemon with a model that hangs at the word `hang` until `hang_file` is removed."""
    hang_file(data_dir).touch()
    settings = {"SERVER__SHUTDOWN_GRACE_S": GRACE_S, **settings}
    with running_daemon(data_dir, settings, module=MODULE) as daemon:
        yield daemon


def says_goodbye(daemon: Daemon) -> bool:
    """Return whether the log shows that the last stop was in order."""
    events = [json.loads(line)["event"] for line in daemon.log.splitlines() if line.startswith("{")]
    return events[-1:] == ["stopped"] and "stopping" in events


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stop_under_load_keeps_what_was_acknowledged(tmp_path: Path, number: signal.Signals) -> None:
    """Under load a stop exits with 0 within its grace period, and every acknowledged batch is stored once."""
    acknowledged: dict[str, list[str]] = {agent: [] for agent in ("ann", "ben", "cat", "dan")}
    refusals: list[str] = []

    def talk(agent: str, url: str) -> None:
        with httpx.Client(base_url=url, timeout=30) as client:
            for turn in range(100_000):
                text = f"Word {agent}{turn}x stands here."
                body = {"messages": [{"role": "user", "content": text}]}
                try:
                    response = client.post(f"/v1/agents/{agent}/remember", json=body)
                except httpx.TransportError:
                    return
                if response.status_code == 202:
                    acknowledged[agent].append(text)
                else:
                    refusals.append(response.json()["error"]["reason"])

    with running_daemon(tmp_path / "data", {"SERVER__SHUTDOWN_GRACE_S": GRACE_S}) as daemon:
        talkers = [Background(lambda a=agent: talk(a, daemon.url)) for agent in acknowledged]  # type: ignore[misc]
        wait_until(lambda: all(len(texts) > 5 for texts in acknowledged.values()), 30)
        watch = Stopwatch()
        daemon.process.send_signal(number)
        assert daemon.process.wait(GRACE_S + 5) == 0
        assert watch.s < GRACE_S + 4
        for talker in talkers:
            assert talker.join().error is None
        assert says_goodbye(daemon)
        assert set(refusals) <= {"SHUTTING_DOWN", "AGENT_CLOSING"}
        daemon.start()
        for agent, texts in acknowledged.items():
            daemon.flush(agent)
            found: list[str] = []
            token = ""
            while True:
                page = daemon.get(f"{agent}/nodes", params={"page_size": 1000, "page_token": token}).json()
                found += [node["content"] for node in page["nodes"]]
                token = page["next_page_token"]
                if not token:
                    break
            # Unacknowledged is at most what was in flight at the end.
            assert found[: len(texts)] == texts
            assert len(found) <= len(texts) + 1
        assert daemon.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stop_does_not_wait_for_a_model_that_hangs(tmp_path: Path, number: signal.Signals) -> None:
    """A hanging model does not delay a stop; pending flush and recall requests get responses at once.

    The current batch stays at the head of the inbox and is digested after the next start, without any request.
    """
    with stubborn(tmp_path / "data", SERVER__SHUTDOWN_GRACE_S=30) as daemon:
        daemon.remember("ann", "This will hang for long.")
        daemon.remember("ann", "The kettle is blue.")
        url = daemon.url

        def post(verb: str, body: dict[str, Any]) -> httpx.Response:
            return httpx.post(f"{url}/v1/agents/ann/{verb}", json=body, timeout=60)

        flush = Background(lambda: post("flush", {"timeout_ms": 60_000, "passes": True}))
        recall = Background(lambda: post("recall", {"patience_ms": 30_000}))
        time.sleep(0.5)
        watch = Stopwatch()
        daemon.process.send_signal(number)
        assert daemon.process.wait(35) == 0
        assert watch.s < 15, "a stop does not wait for the model until the end of its grace period"
        for waiting in (flush.join(), recall.join()):
            assert waiting.error is None
            assert waiting.result.status_code == 200
            assert waiting.result.json()["pending_batches"] == 2
        assert flush.result.json()["digested"] is False
        assert says_goodbye(daemon)
        hang_file(tmp_path / "data").unlink()
        daemon.start()
        wait_until(lambda: not any((tmp_path / "data/work").iterdir()))
        batches = daemon.get("ann/batches").json()["batches"]
        assert [(b["state"], b["node_ids"]) for b in batches] == [("digested", ["n1"]), ("digested", ["n2"])]
        assert daemon.stop() == 0


def test_stop_does_not_wait_for_event_streams(tmp_path: Path) -> None:
    """Idle event streams over both ports end with SHUTTING_DOWN, and the stop does not wait for them."""
    with running_daemon(tmp_path / "data", {"SERVER__SHUTDOWN_GRACE_S": 60}) as daemon:
        daemon.remember("ann", "The kettle is blue.")
        daemon.flush("ann")
        watch = Stopwatch()
        assert daemon.stop() == 0
        alone_s = watch.s
        daemon.start()
        url, target = daemon.url, daemon.grpc_target
        lines: list[str] = []
        received: list[object] = []

        def over_rest() -> None:
            with httpx.stream("GET", f"{url}/v1/agents/ann/events", timeout=60) as answer:
                lines.extend(answer.iter_lines())

        def over_grpc() -> str:
            with grpc.insecure_channel(target) as channel:
                events = memory_service_pb2_grpc.MemoryServiceStub(channel).WatchEvents(
                    events_pb2.WatchEventsRequest(agent_id="ann")
                )
                try:
                    for event in events:
                        received.append(event)
                except grpc.RpcError as error:
                    return f"{error.code().name} {error.details()}"  # type: ignore[attr-defined]
                return "ended"

        watchers = [Background(over_rest), Background(over_grpc)]
        wait_until(lambda: "ebbtide_event_streams 2.0" in daemon.client.get("/metrics").text, 30)
        wait_until(lambda: received, 30)
        watch = Stopwatch()
        assert daemon.stop() == 0
        assert watch.s < alone_s + 5, "15 s is how long an idle stream sleeps, 60 s the grace"
        for watcher in watchers:
            assert watcher.join().error is None
        assert "event: StreamEnded" in lines and "SHUTTING_DOWN" in lines[-2]
        assert watchers[1].result.startswith("UNAVAILABLE The daemon is stopping.")
        assert says_goodbye(daemon)


def test_second_signal_changes_nothing(tmp_path: Path) -> None:
    """A second SIGTERM or SIGINT does not change a stop: it continues in order and exits with 0."""
    with stubborn(tmp_path / "data") as daemon:
        for pause_s in (0.0, 0.02, 0.1):
            daemon.remember("ann", "This will hang for long.")
            for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
                with contextlib.suppress(ProcessLookupError):
                    daemon.process.send_signal(number)
                time.sleep(pause_s)
            assert daemon.process.wait(GRACE_S + 5) == 0
            assert says_goodbye(daemon)
            assert "Traceback" not in daemon.log
            daemon.start()
        hang_file(tmp_path / "data").unlink()
        assert daemon.flush("ann")["digested"]
        assert len(daemon.get("ann/nodes").json()["nodes"]) == 3


def lets_in(place: tuple[str, int]) -> bool:
    """Return whether a new connection is served."""
    try:
        with socket.create_connection(place, timeout=1) as late:
            late.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return bool(late.recv(100))
    except OSError:
        return False


def test_stopping_daemon_takes_no_new_connections(tmp_path: Path) -> None:
    """After the signal new connections are refused, and requests in progress are completed."""
    with stubborn(tmp_path / "data") as daemon:
        daemon.remember("ann", "The kettle is blue.")
        daemon.flush("ann")
        place = ("127.0.0.1", int(daemon.url.rpartition(":")[2]))
        # A request that is half here keeps the daemon in its grace.
        with socket.create_connection(place) as slow:
            slow.sendall(
                b"POST /v1/agents/ann/recall HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{"
            )
            time.sleep(0.2)
            daemon.process.send_signal(signal.SIGTERM)
            wait_until(lambda: not lets_in(place), GRACE_S / 2)
            assert daemon.process.poll() is None
            for _ in range(5):
                assert not lets_in(place)
            slow.sendall(b"}")
            answer = slow.recv(10_000)
            assert answer.startswith(b"HTTP/1.1 200")
        assert daemon.process.wait(GRACE_S + 5) == 0
        assert says_goodbye(daemon)


def test_client_that_never_finishes_costs_no_more_than_the_grace(tmp_path: Path) -> None:
    """A half-sent request gets SHUTTING_DOWN at the end of the grace period, and the stop is in order."""
    with stubborn(tmp_path / "data", SERVER__SHUTDOWN_GRACE_S=1) as daemon:
        daemon.remember("ann", "The kettle is blue.")
        place = ("127.0.0.1", int(daemon.url.rpartition(":")[2]))
        with socket.create_connection(place) as slow, socket.create_connection(place) as idle:
            idle.sendall(b"GET /heal")
            slow.sendall(
                b"POST /v1/agents/ann/remember HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nContent-Length: 200\r\n\r\n{"
            )
            time.sleep(0.2)
            watch = Stopwatch()
            assert daemon.stop() == 0
            assert watch.s < 6
            answer = slow.recv(65_536).decode()
            assert answer.startswith("HTTP/1.1 503 ")
            assert '"reason":"SHUTTING_DOWN"' in answer
        assert says_goodbye(daemon)
        assert "Traceback" not in daemon.log


def test_stop_in_the_middle_of_passes_resumes_them(tmp_path: Path) -> None:
    """Owed passes at a stop run after the next start: none is lost, none runs twice."""
    with running_daemon(tmp_path / "data", {"MEMORY__LONG_TERM_FACTOR": 0}) as daemon:
        for turn in range(4):
            daemon.remember("ann", *(f"Fact {turn} {index} is kept here." for index in range(200)))
        daemon.flush("ann")
        before = daemon.get("ann").json()
        daemon.post("ann/compress", {"passes": 90})
        assert daemon.stop() == 0
        at_stop = json.loads((tmp_path / "data/agents/ann/meta.json").read_text())["counts"]
        assert at_stop["owed_passes"] > 0, "it was in the middle"
        daemon.start()
        wait_until(lambda: not any((tmp_path / "data/work").iterdir()), 60)
        after = daemon.get("ann").json()
        assert after["owed_passes"] == 0
        assert after["finished_passes"] == before["finished_passes"] + 90


def test_signal_during_the_start_stops_the_daemon(tmp_path: Path) -> None:
    """A stop signal during the start ends the daemon and does no harm."""
    with running_daemon(tmp_path / "data", executed=True) as daemon:
        daemon.remember("ann", "The kettle is blue.")
        assert daemon.stop() == 0
        for pause_s in (0.1, 0.3, 0.5, 0.7):
            daemon.launch()
            time.sleep(pause_s)
            daemon.process.send_signal(signal.SIGTERM)
            assert daemon.process.wait(10) in (0, -signal.SIGTERM)
        daemon.start()
        assert daemon.recall("ann", "kettle") == "[Memory] The kettle is blue."


def test_stop_cancels_a_restore_that_is_still_being_sent(tmp_path: Path) -> None:
    """A client that stops within an upload does not delay a stop: it gets a response at once, and no file is left."""
    hangs, daemon_ended = threading.Event(), threading.Event()

    def pieces() -> Iterator[bytes]:
        yield b'{"type":"header","format":"ebbtide-export",'
        hangs.set()
        daemon_ended.wait(60)

    with running_daemon(tmp_path, {"SERVER__SHUTDOWN_GRACE_S": 30}) as daemon:
        headers = {"content-type": "application/octet-stream"}
        url = f"{daemon.url}/v1/agents/ann/restore"
        restoring = Background(lambda: httpx.post(url, content=pieces(), headers=headers, timeout=60))
        assert hangs.wait(30)
        wait_until(lambda: any((tmp_path / "transfers").glob("*/arrived")))
        watch = Stopwatch()
        assert daemon.stop() == 0
        took_s = watch.s
        daemon_ended.set()
        restoring.join()
        assert took_s < 15, "half of the grace"
        assert says_goodbye(daemon)
    assert not list((tmp_path / "transfers").iterdir())
