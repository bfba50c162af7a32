"""SIGKILL while a model extracts statements: no statement is lost, and none is stored twice."""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_model_server import Reaction, task_of
from tests.support.fake_ollama import FakeOllama
from tests.support.process import Daemon, running_daemon
from tests.support.tier import amount
from tests.support.waiting import wait_until

pytestmark = pytest.mark.chaos

ROUNDS = amount("EBBTIDE_KILL_ROUNDS", 3, 20)
SEED = int(os.environ.get("EBBTIDE_KILL_SEED", str(random.SystemRandom().randrange(1 << 32))))
MESSAGES = 8


def settings(ollama: FakeOllama) -> dict[str, Any]:
    """Return the settings of a daemon with this model server."""
    return {
        "LANGUAGE__MODEL": "ollama",
        "LANGUAGE__BASE_URL": ollama.url,
        "LANGUAGE__RETRY_BASE_MS": "20",
        "LANGUAGE__RETRY_CAP_MS": "50",
    }


def statements(daemon: Daemon) -> list[dict[str, Any]]:
    """Return all statements of the agent."""
    found: list[dict[str, Any]] = daemon.get("ann/statements?page_size=1000").json()["statements"]
    return found


def extractions(ollama: FakeOllama) -> int:
    """Return how many requests for statements the server has seen."""
    return sum(task_of(chat) == "extract" for chat in ollama.chats)


def test_kills_lose_no_statement_and_store_none_twice(tmp_path: Path) -> None:
    """After kills at random moments, each message has its statements once, with its own words."""
    print(f"EBBTIDE_KILL_SEED={SEED}")
    dice, never = random.Random(SEED), threading.Event()
    said: list[str] = []
    with (
        FakeOllama().running_beside() as ollama,
        running_daemon(tmp_path / "data", settings(ollama)) as daemon,
    ):
        ollama.for_task["extract"] = Reaction(delay_s=0.02)
        assert daemon.client.put("/v1/agents/ann", json={"extraction": "model"}).status_code == 201
        for _ in range(ROUNDS):
            seen = extractions(ollama)
            texts = [
                f"I'm allergic to nut{len(said) + number}. I love game{len(said) + number}."
                for number in range(MESSAGES)
            ]
            for begin in range(0, MESSAGES, 4):
                daemon.remember("ann", *texts[begin : begin + 4])
            said += texts
            wait_until(lambda seen=seen: extractions(ollama) > seen)  # type: ignore[misc]
            never.wait(dice.uniform(0, 0.08))
            daemon.kill()
            daemon.start()
        body = {"timeout_ms": 60_000, "extraction": True}
        assert daemon.post("ann/flush", body).json()["unextracted_messages"] == 0
        expected = {f"{kind}{number}" for number in range(len(said)) for kind in ("nut", "game")}
        found = statements(daemon)
        assert sorted(one["object"] for one in found) == sorted(expected)
        for one in found:
            [quote] = one["quotes"]
            assert quote["text"] in said[int(one["object"].strip("nutgame"))]
            assert one["author"] == "model:qwen2.5:7b"
