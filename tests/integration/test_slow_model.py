"""A real daemon with a slow, broken, missing or replaced model server.

Every call to the model takes 30 s. Acknowledgements still take under 50 ms at p99, and a recall at most its patience
plus half a second.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.fading import KETTLE, QUICKLY
from tests.support.fake_model_server import FOR_EVER, FakeModelServer, Reaction, data_of, task_of
from tests.support.fake_ollama import FakeOllama
from tests.support.fake_openai import FakeOpenAI
from tests.support.process import Daemon, running_daemon
from tests.support.waiting import Stopwatch, wait_until

PATIENCE_MS = 500
SLOW = Reaction(delay_s=30.0)


@pytest.fixture
def ollama() -> Iterator[FakeOllama]:
    with FakeOllama().running_beside() as server:
        yield server


def beside(server: FakeModelServer, **language: Any) -> dict[str, Any]:
    """Return the settings of a daemon with this model server."""
    kind = "ollama" if isinstance(server, FakeOllama) else "openai"
    chosen = {"model": kind, "base_url": server.url, "retry_base_ms": 50, "retry_cap_ms": 200, **language}
    return {
        **{f"LANGUAGE__{name.upper()}": str(value) for name, value in chosen.items()},
        "FLEET__RECALL_PATIENCE_MS": str(PATIENCE_MS),
    }


def p99(times_s: list[float]) -> float:
    """Return the 99th percentile."""
    return sorted(times_s)[int(len(times_s) * 0.99) - 1]


def acknowledged_s(daemon: Daemon, agent: str, text: str) -> float:
    """Return the time until a remember was acknowledged."""
    watch = Stopwatch()
    daemon.remember(agent, text)
    return watch.s


def contents(daemon: Daemon, agent: str) -> list[str]:
    """Return the contents of an agent's memories, oldest first."""
    nodes = daemon.get(f"{agent}/nodes?page_size=1000").json()["nodes"]
    return [node["content"] for node in nodes]


def batches(daemon: Daemon, agent: str, state: str) -> list[dict[str, Any]]:
    """Return an agent's batches of one state."""
    listed: list[dict[str, Any]] = daemon.get(f"{agent}/batches?state={state}").json()["batches"]
    return listed


@pytest.mark.alone
def test_slow_model_delays_no_request(ollama: FakeOllama, tmp_path: Path) -> None:
    """With 30 s per call, remember is acknowledged within 50 ms at p99 and recall keeps its patience."""
    with running_daemon(tmp_path / "data", beside(ollama)) as daemon:
        for agent in ("ann", "ben", "eve"):
            daemon.remember(agent, "The kettle is blue.")
            assert daemon.flush(agent)["digested"]
        ollama.always = SLOW
        slowest = []
        for _ in range(3):
            # A busy machine may spoil one round of measurements, but not three.
            times_s = [
                acknowledged_s(daemon, ("ann", "ben")[number % 2], f"Fact number {number}.")
                for number in range(200)
            ]
            slowest.append(p99(times_s))
            if slowest[-1] < 0.05:
                break
        print(f"p99 of acknowledgements at 30 s a model call: {min(slowest) * 1000:.1f} ms")
        assert min(slowest) < 0.05
        wait_until(lambda: ollama.running > 0)
        for agent in ("ann", "ben"):
            watch = Stopwatch()
            answer = daemon.post(f"{agent}/recall", {"keywords": ["kettle"]}).json()
            assert watch.s < PATIENCE_MS / 1000 + 0.5
            assert "kettle" in answer["text"]
            assert answer["pending_batches"] >= 100
        watch = Stopwatch()
        assert "kettle" in daemon.recall("eve", "kettle")
        assert daemon.client.get("/healthz").status_code == 200
        assert daemon.client.get("/readyz").status_code == 200
        assert daemon.client.get("/v1/model").json()["available"] is True
        assert watch.s < 1.0, "who has nothing pending waits for nothing"
        watch = Stopwatch()
        assert daemon.stop() == 0
        assert watch.s < 10.0, "a stop does not wait for the model"


@pytest.mark.alone
def test_slow_shortening_leaves_recall_alone(ollama: FakeOllama, tmp_path: Path) -> None:
    """While compression waits for a slow model, remember and recall of the same agent do not."""
    ollama.for_task["shorten"] = SLOW
    with running_daemon(tmp_path / "data", beside(ollama)) as daemon:
        assert daemon.client.put("/v1/agents/ann", json=QUICKLY).status_code == 201
        daemon.remember("ann", KETTLE, "The garden is green.", "A lantern is in focus.")
        assert daemon.flush("ann")["digested"]
        daemon.remember("ann", "The postman looks elsewhere now.")
        wait_until(lambda: "shorten" in map(task_of, ollama.chats))
        watch = Stopwatch()
        assert "elsewhere" in daemon.recall("ann", "elsewhere")
        daemon.remember("ann", "The cup is red.")
        assert watch.s < 0.5


def test_useless_replies_park_a_batch_that_can_be_retried(ollama: FakeOllama, tmp_path: Path) -> None:
    """After park_after_attempts rounds a batch is parked and listed with its reason, and can be retried by hand.

    Other batches and agents are not affected.
    """
    settings = beside(ollama, park_after_attempts=2, max_bad_replies=2)
    with running_daemon(tmp_path / "data", settings) as daemon:
        ollama.always = Reaction(content="I would rather not.")
        poisoned = daemon.remember("ann", "The kettle is blue.")
        wait_until(lambda: batches(daemon, "ann", "parked"))
        [parked] = batches(daemon, "ann", "parked")
        assert (parked["batch_id"], parked["attempts"]) == (poisoned, 2)
        assert parked["last_error"] == "the reply is not JSON"
        assert len(ollama.chats) == 4
        assert daemon.client.get("/readyz").json()["status"] == "ready", "the server is there"
        ollama.always = Reaction()
        daemon.remember("ann", "The cup is red.")
        daemon.remember("ben", "The garden is green.")
        assert daemon.flush("ann")["parked_batches"] == 1
        assert daemon.flush("ben")["digested"]
        assert contents(daemon, "ann") == ["The cup is red."]
        assert daemon.post(f"ann/batches/{poisoned}/retry").status_code == 200
        assert daemon.flush("ann")["parked_batches"] == 0
        assert contents(daemon, "ann") == ["The cup is red.", "The kettle is blue."]
        tally = daemon.client.get("/v1/model").json()["tasks"]["segment"]
        assert tally["bad_replies"] == 4
        assert tally["parse_rate"] == pytest.approx(tally["parsed"] / (tally["parsed"] + 4))


def test_missing_model_degrades_and_resumes_by_itself(tmp_path: Path) -> None:
    """Without the model the daemon starts, accepts batches and names the remedy. It resumes once the model exists."""
    with FakeOllama(models=("other:1b",)).running_beside() as server:
        settings = beside(server, breaker_open_ms=200, breaker_cap_ms=400)
        with running_daemon(tmp_path / "data", settings) as daemon:
            daemon.remember("ann", "The kettle is blue.")
            expected = (
                f"model qwen2.5:7b is not on the server {server.url}; pull it with: ollama pull qwen2.5:7b"
            )
            for _ in range(20):
                ready = daemon.client.get("/readyz")
                assert ready.status_code == 200
                assert (ready.json()["status"], ready.json()["reasons"]) == ("degraded", [expected])
                time.sleep(0.05)
            model = daemon.client.get("/v1/model").json()
            assert (model["kind"], model["name"], model["available"]) == ("ollama", "qwen2.5:7b", False)
            assert model["detail"] == expected
            server.models.append("qwen2.5:7b")
            assert daemon.flush("ann")["digested"]
            wait_until(lambda: daemon.client.get("/readyz").json()["status"] == "ready")


def test_outage_keeps_the_order_and_ends_by_itself(tmp_path: Path) -> None:
    """A server that is down, hangs or fails delays memories; none is lost or parked, and the order stays."""
    with FakeOpenAI().running_beside() as server:
        settings = beside(server, breaker_open_ms=100, breaker_cap_ms=200, model_timeout_ms=300)
        with running_daemon(tmp_path / "data", settings) as daemon:
            for number, fault in enumerate(
                [
                    Reaction(delay_s=FOR_EVER),
                    Reaction(status=503, body=b"<html>"),
                    Reaction(body=b"<html>"),
                    Reaction(cut_at=10),
                ]
            ):
                server.always = fault
                daemon.remember("ann", f"Fact number {number}.")
                time.sleep(0.4)
            assert daemon.client.get("/readyz").json()["status"] == "degraded"
            watch = Stopwatch()
            daemon.recall("ann")
            assert watch.s < 1.5, "a recall does not wait two seconds for a server that does not respond"
            server.always = Reaction()
            assert daemon.flush("ann")["digested"]
            assert contents(daemon, "ann") == [f"Fact number {number}." for number in range(4)]
            assert {batch["attempts"] for batch in batches(daemon, "ann", "digested")} == {0}


def test_model_is_exchanged_in_the_middle_of_a_backlog(ollama: FakeOllama, tmp_path: Path) -> None:
    """After a restart with another model the backlog is digested in order, each batch once."""
    data = tmp_path / "data"
    facts = [f"Fact number {number}." for number in range(9)]
    with running_daemon(data, beside(ollama)) as daemon:
        for fact in facts[:3]:
            daemon.remember("ann", fact)
        assert daemon.flush("ann")["digested"]
        ollama.always = SLOW
        for fact in facts[3:6]:
            daemon.remember("ann", fact)
        wait_until(lambda: ollama.running > 0)
        assert daemon.stop() == 0
    with contextlib.ExitStack() as life:
        openai = life.enter_context(FakeOpenAI(("another",)).running_beside())
        with running_daemon(data, beside(openai, model_name="another")) as daemon:
            assert daemon.flush("ann")["digested"]
            assert contents(daemon, "ann") == facts[:6]
            assert daemon.client.get("/v1/model").json()["kind"] == "openai"
            asked = [
                line["says"] for chat in openai.chats if task_of(chat) == "segment" for line in data_of(chat)
            ]
            assert asked == facts[3:6]
            openai.always = SLOW
            for fact in facts[6:]:
                daemon.remember("ann", fact)
            wait_until(lambda: openai.running > 0)
            daemon.kill()
    with running_daemon(data) as daemon:
        assert daemon.flush("ann")["digested"]
        assert contents(daemon, "ann") == facts
        assert daemon.client.get("/v1/model").json()["kind"] == "builtin"


def test_key_of_the_server_is_not_in_the_log(tmp_path: Path) -> None:
    """The log contains the settings and failures without the key."""
    with FakeOpenAI().running_beside() as server:
        server.api_key = "sk-right"
        with running_daemon(tmp_path / "data", beside(server, api_key="sk-very-secret")) as daemon:
            daemon.remember("ann", "The kettle is blue.")
            wait_until(
                lambda: "digest paused" in daemon.log or daemon.client.get("/readyz").json()["reasons"]
            )
            assert "rejected the API key" in daemon.client.get("/readyz").json()["reasons"][0]
            daemon.stop()
            assert "settings in force" in daemon.log
            assert "very-secret" not in daemon.log
