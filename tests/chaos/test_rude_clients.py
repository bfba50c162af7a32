"""Clients that disconnect, send half a request, or come all at once: no other client is affected, nothing leaks."""

from __future__ import annotations

import os
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.process import Daemon, running_daemon
from tests.support.tier import amount
from tests.support.waiting import wait_until

pytestmark = pytest.mark.chaos

QUIET = {"EMBEDDING__MODEL": "off"}
RUDE = 48
BURST = amount("EBBTIDE_BURST", 80, 250)
CALLERS = 64
FEW_DESCRIPTORS = 120


def connection(daemon: Daemon) -> socket.socket:
    place = urlsplit(daemon.url)
    assert place.hostname is not None
    assert place.port is not None
    return socket.create_connection((place.hostname, place.port), timeout=30)


def cut_off(made: socket.socket) -> None:
    """Close a connection with a reset."""
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    made.close()


def descriptors(daemon: Daemon) -> int:
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def request(agent: str, text: str) -> bytes:
    body = f'{{"messages": [{{"role": "user", "content": "{text}"}}]}}'.encode()
    head = (
        f"POST /v1/agents/{agent}/remember HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def test_disconnecting_clients_leave_nothing_behind(tmp_path: Path) -> None:
    """Clients that disconnect within a head, a body, or before the response leave no half of a batch.

    A batch that arrived complete is stored whole or not at all, and the daemon has no more sockets open than before.
    """
    with running_daemon(tmp_path / "data", QUIET) as daemon:
        daemon.remember("ann", "The kettle is blue.")
        daemon.flush("ann")
        before = descriptors(daemon)
        for turn in range(3):
            made = [connection(daemon) for _ in range(RUDE)]
            for number, one in enumerate(made):
                whole = request("ann", f"Whole {turn} {number}.")
                if number % 3 == 0:
                    one.sendall(whole[:40])
                elif number % 3 == 1:
                    one.sendall(whole[:-15])
                else:
                    one.sendall(whole)
            for number, one in enumerate(made):
                if number % 2:
                    cut_off(one)
                else:
                    one.close()
            assert daemon.recall("ann", "kettle", patience_ms=0) == "[Memory] The kettle is blue."
        wait_until(lambda: descriptors(daemon) <= before + 8, 30)
        daemon.remember("ann", "The cup is red.")
        assert daemon.flush("ann", timeout_ms=60_000)["digested"]
        nodes = daemon.get("ann/nodes", params={"page_size": 1000}).json()["nodes"]
        contents = [node["content"] for node in nodes]
        whole_ones = {f"Whole {turn} {number}." for turn in range(3) for number in range(2, RUDE, 3)}
        assert {"The kettle is blue.", "The cup is red."} <= set(contents)
        assert set(contents) - {"The kettle is blue.", "The cup is red."} <= whole_ones, (
            "half of one is not there"
        )
        assert len(set(contents)) == len(contents), "and nothing is there twice"
        assert '"level": "error"' not in daemon.log
        assert daemon.stop() == 0


def test_agents_opened_in_a_burst_are_all_served(tmp_path: Path) -> None:
    """Many new agents at once, with room for half of them open: each is accepted, some after a retry."""
    with running_daemon(tmp_path / "data", {**QUIET, "FLEET__MAX_OPEN_AGENTS": BURST // 2}) as daemon:

        def speak(number: int) -> int:
            refusals = 0
            with httpx.Client(base_url=daemon.url, timeout=120) as client:
                body = {"messages": [{"role": "user", "content": f"I am number {number}."}]}
                while True:
                    answer = client.post(f"/v1/agents/agent-{number}/remember", json=body)
                    if answer.status_code == 202:
                        return refusals
                    assert answer.status_code == 429, answer.text
                    assert answer.json()["error"]["reason"] == "TOO_MANY_AGENTS"
                    assert int(answer.headers["retry-after"]) >= 1
                    refusals += 1
                    time.sleep(0.1)

        with ThreadPoolExecutor(CALLERS) as callers:
            list(callers.map(speak, range(BURST)))
        wait_until(lambda: not os.listdir(tmp_path / "data/work"), 110)
        for number in range(0, BURST, 37):
            listed = daemon.get(f"agent-{number}/nodes").json()["nodes"]
            assert [node["content"] for node in listed] == [f"I am number {number}."]
        assert daemon.client.get("/v1/scheduler").json()["open_agents"] <= BURST // 2
        assert '"level": "error"' not in daemon.log
        assert daemon.stop() == 0


def test_daemon_recovers_from_a_lack_of_descriptors(tmp_path: Path) -> None:
    """When connections use every descriptor the daemon waits or refuses; when they close it works as before."""
    limit = ("bash", "-c", f'ulimit -n {FEW_DESCRIPTORS}; exec "$@"', "limited")
    with running_daemon(tmp_path / "data", QUIET, prefix=limit) as daemon:
        daemon.remember("ann", "The kettle is blue.")
        daemon.flush("ann")
        held = [connection(daemon) for _ in range(FEW_DESCRIPTORS)]
        try:
            # One that was connected before is served, whatever else is refused.
            told = daemon.post("new/remember", {"messages": [{"role": "user", "content": "The cup is red."}]})
            assert told.status_code in (202, 429, 503), told.text
            assert daemon.recall("ann", "kettle", patience_ms=0) == "[Memory] The kettle is blue."
        finally:
            for one in held:
                one.close()
        is_stored = told.status_code == 202

        def is_served() -> bool:
            try:
                return httpx.get(f"{daemon.url}/healthz", timeout=5).status_code == 200
            except httpx.TransportError:
                return False

        wait_until(is_served, 30)
        daemon.remember("new", "The spoon is green.")
        assert daemon.flush("new", timeout_ms=30_000)["digested"]
        contents = [node["content"] for node in daemon.get("new/nodes").json()["nodes"]]
        assert contents == (["The cup is red."] if is_stored else []) + ["The spoon is green."]
        assert daemon.stop() == 0
