"""SIGKILL at any moment: an acknowledged batch is digested exactly once, any other at most once."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from google.protobuf.message_factory import GetMessageClass
from grpc_status import rpc_status

from tests.support.callers import SERVICE, GrpcCaller, Reply, as_json
from tests.support.process import Daemon, check_data_directory, running_daemon
from tests.support.tier import amount
from tests.support.waiting import wait_until

pytestmark = pytest.mark.chaos

ROUNDS = amount("EBBTIDE_KILL_ROUNDS", 3, 20)
SEED = int(os.environ.get("EBBTIDE_KILL_SEED", str(random.SystemRandom().randrange(1 << 32))))
AGENTS = ("ann", "Böb", "记忆", "dora")
"""Agents with one client each."""
CROWDED, CROWD = "eve", 6
"""An agent with several clients at once, whose batches share commits."""
NOTHING_FORGOTTEN = {
    "MEMORY__DECAY_RATE": "1.0",
    "MEMORY__MAX_OWED_PASSES": "100000",
    # Lives are short: over two hundred of them more is accepted than there is time to digest.
    "MEMORY__MAX_QUEUE_SIZE": "100000",
    "LOG__LEVEL": "info",
}
TOLERATED = {"AGENT_CLOSING", "AGENT_NOT_FOUND", "TOO_MANY_PASSES"}
TOKEN = re.compile(r"zq[0-9]+x[0-9]+zq")


@dataclass
class Said:
    """A batch that was sent, with its acknowledgement."""

    body: dict[str, Any]
    tokens: list[str]
    batch_id: str | None = None


class OverGrpc(GrpcCaller):
    """The same requests over gRPC, one at a time."""

    def __init__(self, target: str) -> None:
        self._unknown = {}
        self._calls = grpc.insecure_channel(target)

    def __enter__(self) -> OverGrpc:
        return self

    def __exit__(self, *_: object) -> None:
        self._calls.close()

    def post(self, path: str, *, json: Any) -> Reply:
        """Send a request. Raise TransportError if the connection to the daemon is lost, as over HTTP."""
        name, request = self._request("POST", path, json)
        answer_kind = GetMessageClass(SERVICE.methods_by_name[name].output_type)
        call: Any = self._calls.unary_unary(
            f"/{SERVICE.full_name}/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer_kind.FromString,
        )
        try:
            return Reply(200, as_json(call(request, timeout=30)), {})
        except grpc.RpcError as error:
            told: Any = error
            if rpc_status.from_call(told) is None:
                raise httpx.TransportError(str(told.code())) from error
            return self._refusal(told)


@dataclass
class Talker:
    """A client of one agent, which sends unique texts and records the acknowledged batches.

    Every other one speaks gRPC.
    """

    number: int
    agent: str
    dice: random.Random
    said: list[Said] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    replays: int = 0

    def connected(self, daemon: Daemon) -> Any:
        """Connect to the daemon, for use in a `with`."""
        if self.number % 2:
            return OverGrpc(daemon.grpc_target)
        return httpx.Client(base_url=daemon.url, timeout=30)

    def talk(self, daemon: Daemon, is_over: threading.Event) -> None:
        """Send batches until the connection to the daemon is lost."""
        with self.connected(daemon) as client:
            while not is_over.is_set():
                try:
                    self._act(client)
                except httpx.TransportError:
                    return

    def _act(self, client: Any) -> None:
        acts = {"say": 50, "repeat": 8, "recall": 18, "flush": 8, "compress": 8, "close": 8}
        match self.dice.choices(list(acts), list(acts.values()))[0]:
            case "say":
                self._say(client)
            case "repeat":
                keyed = [said for said in self.said if "idempotency_key" in said.body]
                if keyed:
                    self.replays += 1
                    self._send(client, self.dice.choice(keyed))
            case "recall":
                self._post(client, "recall", {"patience_ms": self.dice.choice((0, 50)), "depth": 3})
            case "flush":
                self._post(client, "flush", {"timeout_ms": self.dice.choice((0, 60)), "passes": True})
            case "compress":
                self._post(client, "compress", {"passes": self.dice.randint(1, 4)})
            case "close":
                self._post(client, "close", {})

    def _say(self, client: Any) -> None:
        first = sum(len(said.tokens) for said in self.said)
        tokens = [f"zq{self.number}x{first + i}zq" for i in range(self.dice.choice((1, 1, 2, 5)))]
        body: dict[str, Any] = {
            "messages": [{"role": "user", "content": f"The word {token} stands here."} for token in tokens]
        }
        if self.dice.random() < 0.5:
            body["idempotency_key"] = f"key {tokens[0]}"
        said = Said(body, tokens)
        self.said.append(said)
        self._send(client, said)

    def _send(self, client: Any, said: Said) -> None:
        answer = self._post(client, "remember", said.body)
        if answer is None:
            return
        if said.batch_id is None:
            said.batch_id = answer["batch_id"]
        elif said.batch_id != answer["batch_id"]:
            self.faults.append(f"replayed {said.batch_id}, got {answer['batch_id']}")

    def _post(self, client: Any, verb: str, body: dict[str, Any]) -> dict[str, Any] | None:
        response = client.post(f"/v1/agents/{self.agent}/{verb}", json=body)
        told: dict[str, Any] = response.json()
        if response.status_code < 300:
            return told
        if told["error"]["reason"] not in TOLERATED:
            self.faults.append(f"{verb}: {response.status_code} {response.text}")
        return None


def acknowledged_by(talkers: list[Talker]) -> list[Said]:
    """Return the acknowledged batches of all clients."""
    return [said for talker in talkers for said in talker.said if said.batch_id]


def load_until_killed(daemon: Daemon, talkers: list[Talker], lifetime_s: float, least: int) -> None:
    """Run all clients, then kill the daemon after this time, once it has accepted at least this many more batches."""
    is_over = threading.Event()
    before = len(acknowledged_by(talkers))
    threads = [threading.Thread(target=talker.talk, args=(daemon, is_over)) for talker in talkers]
    for thread in threads:
        thread.start()
    try:
        time.sleep(lifetime_s)
        wait_until(lambda: len(acknowledged_by(talkers)) >= before + least, 30)
        assert daemon.process.poll() is None, "it was not we who ended it"
    finally:
        daemon.kill()
        is_over.set()
        for thread in threads:
            thread.join()


def pages(daemon: Daemon, path: str, listing: str) -> list[dict[str, Any]]:
    """Return a complete listing."""
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        response = daemon.get(path, params={"page_size": 1000, "page_token": token})
        assert response.status_code == 200, response.text
        page = response.json()
        found += page[listing]
        token = page["next_page_token"]
        if not token:
            return found


@pytest.mark.timeout(120 + 10 * ROUNDS)
def test_acknowledged_batches_are_digested_exactly_once_after_any_kill(tmp_path: Path) -> None:
    """An accepted batch is neither lost nor digested twice; a digest is complete or absent.

    The daemon is killed at random moments under mixed load; one agent has many concurrent clients. After each kill
    every store is consistent. At the end each acknowledged message is in exactly one memory, in order, and each
    unacknowledged one in at most one. An idempotency key returns its first batch, also across restarts.
    """
    print(f"EBBTIDE_KILL_SEED={SEED} EBBTIDE_KILL_ROUNDS={ROUNDS}")
    dice = random.Random(SEED)
    talkers = [
        Talker(i, agent, random.Random(dice.random()))
        for i, agent in enumerate([*AGENTS, *[CROWDED] * CROWD])
    ]
    data_dir = tmp_path / "data"
    daemon = Daemon(data_dir, NOTHING_FORGOTTEN)
    try:
        for number in range(ROUNDS):
            # However slow the machine is, most lives are long enough for something to be acknowledged.
            least = 0 if number % 4 == 3 else 4
            load_until_killed(daemon.start(), talkers, dice.uniform(0.01, 0.6), least)
            check_data_directory(data_dir)
    finally:
        daemon.close()
    acknowledged = acknowledged_by(talkers)
    over_grpc = sum(1 for talker in talkers if talker.number % 2 for said in talker.said if said.batch_id)
    print(
        f"{ROUNDS} kills, {sum(len(t.said) for t in talkers)} batches sent, {len(acknowledged)} acknowledged"
        f" ({over_grpc} over gRPC), {sum(t.replays for t in talkers)} keys sent again"
    )
    assert len(acknowledged) > 2 * ROUNDS
    with running_daemon(data_dir, NOTHING_FORGOTTEN) as daemon:
        for talker in talkers:
            with talker.connected(daemon) as client:
                for said in talker.said:
                    # Replays of what is known to be there; the unknown stays unknown.
                    if said.batch_id and "idempotency_key" in said.body:
                        talker._send(client, said)
            assert talker.faults == []
        for agent in (*AGENTS, CROWDED):
            said = [said for talker in talkers if talker.agent == agent for said in talker.said]
            if daemon.get(agent).status_code == 404:
                # Every kill came before this agent's first acknowledged write, so nothing of it may be required.
                assert not acknowledged_by([talker for talker in talkers if talker.agent == agent])
                continue
            verify(daemon, agent, said)
            assert daemon.post(f"{agent}/close").status_code == 200


def verify(daemon: Daemon, agent: str, everything: list[Said]) -> None:
    """Compare an agent of the daemon with the records of its clients."""
    answer = daemon.flush(agent)
    assert (answer["digested"], answer["passes_done"], answer["parked_batches"]) == (True, True, 0)
    nodes = pages(daemon, f"{agent}/nodes", "nodes")
    words = {node["id"]: TOKEN.findall(node["content"]) for node in nodes}
    assert all(len(found) == 1 for found in words.values()), "one memory a message"
    times = Counter(found[0] for found in words.values())
    assert max(times.values(), default=0) <= 1, "nothing is digested twice"
    known = {token for said in everything for token in said.tokens}
    assert times.keys() <= known
    batches = {b["batch_id"]: b for b in pages(daemon, f"{agent}/batches", "batches")}
    ids = [said.batch_id for said in everything if said.batch_id]
    assert len(set(ids)) == len(ids), "each acknowledged batch has an id of its own"
    for said in everything:
        if said.batch_id is None:
            assert len({times[token] for token in said.tokens}) == 1, "whole or absent"
            continue
        batch = batches[said.batch_id]
        assert (batch["state"], batch["attempts"]) == ("digested", 0)
        assert [words[node_id][0] for node_id in batch["node_ids"]] == said.tokens
    for found in list(words.values())[:: max(1, len(words) // 10)]:
        told = daemon.recall(agent, found[0], query=f"Where does {found[0]} stand?")
        assert found[0] in told, "what is there is recalled"
    by_number = sorted(batches.values(), key=lambda b: int(b["batch_id"][1:]))
    order = [int(node_id[1:]) for b in by_number for node_id in b["node_ids"]]
    assert order == sorted(order) == [int(node["id"][1:]) for node in nodes], "in the order of acceptance"


# --- the order of system calls -------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A finished system call, with its begin and end as line numbers."""

    name: str
    text: str
    begun: int
    ended: int


def read_trace(path: Path) -> list[Call]:
    """Parse the system calls of all threads and join those that another thread's line interrupted."""
    calls: list[Call] = []
    unfinished: dict[tuple[str, str], tuple[int, str]] = {}
    for number, line in enumerate(path.read_text(errors="replace").splitlines()):
        if found := re.match(r"(\d+) +<\.\.\. (\w+) resumed>(.*)", line):
            begun, text = unfinished.pop((found[1], found[2]), (number, ""))
            calls.append(Call(found[2], text + found[3], begun, number))
        elif found := re.match(r"(\d+) +(\w+)\((.*)", line):
            if found[3].endswith("<unfinished ...>"):
                unfinished[found[1], found[2]] = (number, found[3])
            else:
                calls.append(Call(found[2], found[3], number, number))
    return calls


@pytest.fixture
def traced() -> tuple[str, ...]:
    """Return the prefix of a command that traces its system calls into a file."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    watched = "fdatasync,fsync,msync,sendto,write,writev,pwrite64,pwritev,read,recvfrom,recvmsg"
    # -D: strace is the child's child, so that signals and exit codes are the daemon's own.
    return ("strace", "-D", "-f", "-y", "-s", "5000", "-e", f"trace={watched}", "-o")


def finished_calls(trace: Path) -> list[Call]:
    """Return the system calls of a daemon that has ended."""
    if "ptrace" in trace.read_text(errors="replace")[:400]:
        pytest.skip("strace may not trace here")
    return read_trace(trace)


def test_commit_is_on_disk_before_it_is_acknowledged(tmp_path: Path, traced: tuple[str, ...]) -> None:
    """The data of a request are synced before its 202. A kill cannot show that, because caches survive it."""
    trace = tmp_path / "trace"
    with running_daemon(tmp_path / "data", prefix=(*traced, str(trace))) as daemon:
        for number in range(4):
            response = daemon.post(
                "ann/remember",
                {"messages": [{"role": "user", "content": f"Fact number {number}."}]},
                headers={"X-Request-Id": f"traced-{number}"},
            )
            assert response.status_code == 202
            wait_until(lambda: not any((tmp_path / "data/work").iterdir()))
        assert daemon.stop() == 0
    calls = finished_calls(trace)
    for number in range(4):
        mine = [c for c in calls if f"traced-{number}" in c.text]
        arrived = [c for c in mine if "POST /v1/agents/ann/remember" in c.text]
        answered = [c for c in mine if "HTTP/1.1 202" in c.text]
        assert len(arrived) == len(answered) == 1
        between = [c for c in calls if arrived[0].ended < c.begun and c.ended < answered[0].begun]
        synced = [c for c in between if c.name in ("fdatasync", "fsync", "msync") and "= 0" in c.text]
        data = [c for c in synced if "/agents/ann/data.mdb>" in c.text]
        assert data, f"request {number} was answered without a sync of its data"
        # LMDB: pages, sync, then the meta page that makes them count, through a descriptor that syncs itself.
        meta = [c for c in between if c.name.startswith("pwrite") and "/agents/ann/data.mdb>" in c.text]
        assert meta[-1].begun > data[0].ended
        # Idle before: the marker that a start looks for is durable before the data it leads to.
        marker = [c for c in synced if "/data/work>" in c.text]
        assert marker
        assert marker[0].ended < meta[-1].begun
    first = next(c for c in calls if "traced-0" in c.text and "HTTP/1.1 202" in c.text)
    for path in ("/agents/ann/meta.json.new>", "/agents/ann>", "/data/agents>"):
        assert any(c.name == "fsync" and path in c.text and c.ended < first.begun for c in calls), path


def test_shared_commit_is_on_disk_before_any_acknowledgement(tmp_path: Path, traced: tuple[str, ...]) -> None:
    """Each of many concurrent requests is answered after its pages, a sync, and the meta page, in this order."""
    trace = tmp_path / "trace"
    ids = [f"traced-{number:02}" for number in range(24)]

    def tell(request_id: str) -> None:
        # The batch record contains the conversation id in plain text, which identifies its page.
        body = {"messages": [{"role": "system", "content": "Hm."}], "conversation_id": f"of-{request_id}"}
        response = daemon.post("ann/remember", body, headers={"X-Request-Id": request_id})
        assert response.status_code == 202

    with running_daemon(tmp_path / "data", prefix=(*traced, str(trace))) as daemon:
        daemon.remember("ann", "Fact number 0.")
        with ThreadPoolExecutor(len(ids)) as callers:
            list(callers.map(tell, ids))
        assert daemon.stop() == 0
    calls = finished_calls(trace)
    store = [c for c in calls if "/agents/ann/data.mdb>" in c.text]
    commits = set()
    for request_id in ids:
        answered = next(c for c in calls if "HTTP/1.1 202" in c.text and f"id: {request_id}" in c.text)
        page = next(c for c in store if "write" in c.name and f"of-{request_id}" in c.text)
        synced = next(c for c in store if c.name == "fdatasync" and c.begun > page.ended)
        meta = next(c for c in store if c.name == "pwrite64" and c.begun > synced.ended)
        assert meta.ended < answered.begun, request_id
        commits.add(meta.ended)
    assert len(commits) < len(ids), "some of them shared a commit"


def test_killed_while_starting_and_stopping(tmp_path: Path) -> None:
    """After kills during the start and the stop the directory opens and contains everything."""
    dice = random.Random(SEED)
    data_dir = tmp_path / "data"
    with running_daemon(data_dir, NOTHING_FORGOTTEN) as daemon:
        for number in range(20):
            daemon.remember("ann", f"Fact number {number}.")
        daemon.kill()
        for number in range(3):
            daemon.launch()
            time.sleep(dice.uniform(0.2, 0.9))
            daemon.kill()
            check_data_directory(data_dir)
            daemon.start()
            daemon.remember("ann", f"Fact number {20 + number}.")
            daemon.process.terminate()
            time.sleep(dice.uniform(0.0, 0.15))
            with contextlib.suppress(ProcessLookupError):
                daemon.kill()
            check_data_directory(data_dir)
        daemon.start()
        daemon.flush("ann")
        contents = [node["content"] for node in pages(daemon, "ann/nodes", "nodes")]
        assert contents == [f"Fact number {number}." for number in range(23)]
