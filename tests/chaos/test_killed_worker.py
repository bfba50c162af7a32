"""SIGKILL of one worker under load: no acknowledged batch is lost, and the agents of the other worker never stop."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from ebbtide.shard import Shard
from tests.support.process import Daemon, check_data_directory, running_daemon
from tests.support.tier import amount
from tests.support.waiting import wait_until

pytestmark = pytest.mark.chaos

KILLS = amount("EBBTIDE_WORKER_KILLS", 3, 20)
AGENTS = [f"agent-{number}" for number in range(6)]
OWNERS = {agent: Shard(0, 2).owner_of(agent) for agent in AGENTS}
VICTIM = 0
SETTINGS = {"SERVER__WORKERS": 2, "MEMORY__DECAY_RATE": "1.0", "MEMORY__MAX_QUEUE_SIZE": "100000"}


@dataclass
class Writer(threading.Thread):
    """Sends batches to one agent, each with a key of its own, until `is_over`. A failed request is repeated."""

    url: str
    agent: str
    acknowledged: list[str] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)
    is_over: bool = False
    longest_wait_s: float = 0.0

    def __post_init__(self) -> None:
        super().__init__()

    __hash__ = threading.Thread.__hash__

    def run(self) -> None:
        """Send."""
        client = httpx.Client(base_url=self.url, timeout=30)
        number = 0
        while not self.is_over:
            text = f"Boat {number} of {self.agent} is zq{number}zq."
            body = {"messages": [{"role": "user", "content": text}]}
            begun_s = time.monotonic()
            try:
                answer = client.post(
                    f"/v1/agents/{self.agent}/remember", json=body, headers={"idempotency-key": str(number)}
                )
            except httpx.TransportError:
                # The connection was to the killed worker.
                continue
            finally:
                self.longest_wait_s = max(self.longest_wait_s, time.monotonic() - begun_s)
            self.statuses.add(answer.status_code)
            if answer.status_code == 202:
                self.acknowledged.append(f"zq{number}zq")
                number += 1
            else:
                assert answer.json()["error"]["reason"] == "WORKER_RESTARTING", answer.text
                time.sleep(0.05)
        client.close()


def stored_texts(daemon: Daemon, agent: str) -> list[str]:
    """Return the contents of all memories of an agent."""
    found: list[str] = []
    token = ""
    while True:
        page = daemon.get(f"{agent}/nodes", params={"page_size": 1000, "page_token": token}).json()
        found += [node["content"] for node in page["nodes"] if not node.get("is_entity")]
        token = page["next_page_token"]
        if not token:
            return found


def test_a_killed_worker_loses_nothing_and_stops_no_other(tmp_path: Path) -> None:
    """Every acknowledged batch is stored once after the kills; a write to the other worker's agents never fails."""
    with running_daemon(tmp_path / "data", SETTINGS) as daemon:
        writers = [Writer(daemon.url, agent) for agent in AGENTS]
        for writer in writers:
            writer.start()
        try:
            for _ in range(KILLS):
                seen = {writer: len(writer.acknowledged) for writer in writers}
                wait_until(lambda seen=seen: all(len(w.acknowledged) > n + 2 for w, n in seen.items()))  # type: ignore[misc]
                pid = daemon.workers[VICTIM]
                os.kill(pid, signal.SIGKILL)
                wait_until(lambda pid=pid: daemon.workers[VICTIM] != pid)  # type: ignore[misc]
        finally:
            for writer in writers:
                writer.is_over = True
            for writer in writers:
                writer.join()
        for writer in writers:
            assert 202 in writer.statuses
            if OWNERS[writer.agent] != VICTIM:
                assert writer.statuses == {202}
        for writer in writers:
            daemon.flush(writer.agent)
            assert daemon.get(writer.agent).json()["counts"]["messages"] >= len(writer.acknowledged)
            texts = stored_texts(daemon, writer.agent)
            for token in writer.acknowledged:
                assert sum(token in text for text in texts) == 1, (writer.agent, token)
        assert daemon.stop() == 0
    check_data_directory(tmp_path / "data")
