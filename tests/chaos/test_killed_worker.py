"""SIGKILL of one worker under load: no acknowledged batch is lost, and the agents of the other worker never stop."""

from __future__ import annotations

import os
import signal
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_status import rpc_status

from ebbtide.shard import Shard
from ebbtide.v1 import memory_service_pb2_grpc, remember_pb2
from ebbtide.workers.parent import MAX_PAUSE_S
from tests.support.process import Daemon, running_daemon
from tests.support.tier import amount
from tests.support.waiting import wait_until

pytestmark = pytest.mark.chaos

KILLS = amount("EBBTIDE_WORKER_KILLS", 2, 5)
AGENTS = [f"agent-{number}" for number in range(6)]
OWNERS = {agent: Shard(0, 2).owner_of(agent) for agent in AGENTS}
VICTIM = 0
SETTINGS = {
    "SERVER__WORKERS": 2,
    "MEMORY__DECAY_RATE": "1.0",
    "MEMORY__MAX_QUEUE_SIZE": "100000",
    "ENCRYPTION__MASTER_KEY": "6d" * 32,
}


class Lost(Exception):
    """The connection was to the killed worker."""


class OverRest:
    """Requests over HTTP."""

    def __init__(self, daemon: Daemon) -> None:
        self._client = httpx.Client(base_url=daemon.url, timeout=30)

    def remember(self, agent: str, text: str, key: str) -> str:
        """Send a batch. Return the reason of a refusal; empty if it was accepted. Raise Lost."""
        body = {"messages": [{"role": "user", "content": text}], "idempotency_key": key}
        try:
            answer = self._client.post(f"/v1/agents/{agent}/remember", json=body)
        except httpx.TransportError:
            raise Lost from None
        reason: str = "" if answer.status_code == 202 else answer.json()["error"]["reason"]
        return reason

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


class OverGrpc:
    """Requests over gRPC, each client with a connection of its own."""

    def __init__(self, daemon: Daemon) -> None:
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.initial_reconnect_backoff_ms", 100)]
        self._channel = grpc.insecure_channel(daemon.grpc_target, options)
        self._stub: Any = memory_service_pb2_grpc.MemoryServiceStub(self._channel)  # type: ignore[no-untyped-call]

    def remember(self, agent: str, text: str, key: str) -> str:
        """Send a batch. Return the reason of a refusal; empty if it was accepted. Raise Lost."""
        request = remember_pb2.RememberRequest(agent_id=agent, idempotency_key=key)
        request.messages.add(role="ROLE_USER", content=text)
        try:
            self._stub.Remember(request, timeout=30)
        except grpc.RpcError as error:
            status = rpc_status.from_call(error)  # type: ignore[arg-type]
            if status is None:
                raise Lost from None
            info = ErrorInfo()
            status.details[0].Unpack(info)
            return info.reason
        return ""

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()


CLIENTS = {"rest": OverRest, "grpc": OverGrpc}


class Writer(threading.Thread):
    """Sends batches to one agent, each with a key of its own, until `is_over`. A failed request is repeated."""

    def __init__(self, client: OverRest | OverGrpc, agent: str) -> None:
        super().__init__()
        self._client = client
        self.agent = agent
        self.acknowledged: list[str] = []
        self.refusals: set[str] = set()
        self.is_over = False

    def run(self) -> None:
        """Send."""
        while not self.is_over:
            number = len(self.acknowledged)
            token = f"zq{number}zq"
            try:
                reason = self._client.remember(
                    self.agent, f"Boat {number} of {self.agent} is {token}.", str(number)
                )
            except Lost:
                continue
            if reason:
                self.refusals.add(reason)
                time.sleep(0.05)
            else:
                self.acknowledged.append(token)
        self._client.close()


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


def is_digested(daemon: Daemon, agent: str) -> bool:
    """Wait some seconds for the digestion of an agent's batches. Return whether it is complete."""
    done: bool = daemon.flush(agent, passes=False, timeout_ms=10_000)["digested"]
    return done


@pytest.mark.parametrize("transport", CLIENTS)
def test_a_killed_worker_loses_nothing_and_stops_no_other(tmp_path: Path, transport: str) -> None:
    """Every acknowledged batch is stored once after the kills; no write to the other worker's agents is refused."""
    with running_daemon(tmp_path / "data", SETTINGS) as daemon:
        writers = [Writer(CLIENTS[transport](daemon), agent) for agent in AGENTS]
        for writer in writers:
            writer.start()
        try:
            for _ in range(KILLS):
                seen = {writer: len(writer.acknowledged) for writer in writers}
                wait_until(lambda seen=seen: all(len(w.acknowledged) > n + 2 for w, n in seen.items()))  # type: ignore[misc]
                pid = daemon.workers[VICTIM]
                os.kill(pid, signal.SIGKILL)
                # A worker that keeps ending is restarted after a pause that doubles, up to 30 s.
                wait_until(lambda pid=pid: daemon.workers[VICTIM] != pid, MAX_PAUSE_S + 30)  # type: ignore[misc]
        finally:
            for writer in writers:
                writer.is_over = True
            for writer in writers:
                writer.join()
        for writer in writers:
            assert writer.refusals <= ({"WORKER_RESTARTING"} if OWNERS[writer.agent] == VICTIM else set())
        for writer in writers:
            # Each further pause doubles, and the backlog of the other worker grows with them.
            wait_until(partial(is_digested, daemon, writer.agent), 300)
            assert daemon.get(writer.agent).json()["counts"]["messages"] >= len(writer.acknowledged)
            texts = stored_texts(daemon, writer.agent)
            for token in writer.acknowledged:
                assert sum(token in text for text in texts) == 1, (writer.agent, token)
        assert daemon.stop() == 0
