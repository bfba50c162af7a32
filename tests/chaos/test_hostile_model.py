"""A model server that attacks the daemon: no accepted batch is lost, no other agent waits, no text is logged."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fake_ollama import FakeOllama
from tests.support.hostile_model_server import (
    Attack,
    HostileServer,
    chat,
    fast_attacks,
    replies,
    slow_attacks,
    whole,
)
from tests.support.onlooker import IS_LONG, looking_on
from tests.support.process import Daemon, running_daemon
from tests.support.waiting import wait_until

pytestmark = pytest.mark.chaos

MIB = 1 << 20
SECRET = "The kettle of the lighthouse keeper is violet."
SECONDS_EACH = 2.0 if IS_LONG else 0.3
TIMEOUT_MS = 2000 if IS_LONG else 500
SETTINGS = {
    "EMBEDDING__NAME": "bge-m3",
    "LANGUAGE__MODEL_TIMEOUT_MS": TIMEOUT_MS,
    "EMBEDDING__TIMEOUT_MS": TIMEOUT_MS,
    "EMBEDDING__QUERY_TIMEOUT_MS": 200,
    "LANGUAGE__MAX_RETRIES": 1000,
    "LANGUAGE__RETRY_BASE_MS": 20,
    "LANGUAGE__RETRY_CAP_MS": 50,
    "LANGUAGE__BREAKER_OPEN_MS": 20,
    "LANGUAGE__BREAKER_CAP_MS": 50,
    "LANGUAGE__PARK_AFTER_ATTEMPTS": 2,
}


def attacks() -> dict[str, Attack]:
    """Return all attacks, or a few of each kind."""
    made = {
        **fast_attacks(),
        **slow_attacks(),
        **{f"reply: {name}": whole(chat(content)) for name, content in replies(SECRET).items()},
    }
    if IS_LONG:
        return made
    chosen = {"ten gigabytes in chunks", "chunks of one byte", "100 as fast as can be", "a byte at a time"}
    chosen |= {"reply: segments beside the text"}
    return {name: attack for name, attack in made.items() if name in chosen}


@pytest.fixture
def server() -> Iterator[HostileServer]:
    """A server with useless responses."""
    with HostileServer(whole(b"{}")).running_beside() as running:
        yield running


def settings(url: str) -> dict[str, object]:
    """Return settings with the model and the embedder on one server."""
    places = {"LANGUAGE__BASE_URL": url, "EMBEDDING__BASE_URL": url}
    return {**SETTINGS, **places, "LANGUAGE__MODEL": "ollama", "EMBEDDING__MODEL": "ollama"}


def states(daemon: Daemon) -> list[str]:
    """Return the state of each batch of the agent under attack."""
    return [
        batch["state"] for batch in daemon.get("ann/batches", params={"page_size": 1000}).json()["batches"]
    ]


@pytest.mark.timeout(600)
def test_hostile_model_server_loses_no_batch_and_delays_no_agent(
    server: HostileServer, tmp_path: Path
) -> None:
    """Batches wait or are parked and are digested later; others recall in time; memory stays flat; the daemon stops."""
    order = list(attacks().items())
    random.Random(15).shuffle(order)
    data_dir = tmp_path / "data"
    with FakeOllama(("qwen2.5:7b", "bge-m3")).running_beside() as sensible:
        with running_daemon(data_dir, settings(sensible.url)) as daemon:
            daemon.remember("bystander", "The kettle is blue.")
            assert daemon.flush("bystander", vectors=True)["digested"] and daemon.stop() == 0
        with running_daemon(data_dir, settings(server.url)) as daemon:
            with looking_on(daemon, is_known=True) as seen:
                before = seen.peak_bytes
                for number, (name, attack) in enumerate(order):
                    seen.under_way = name
                    server.attack, asked = attack, len(server.requests)
                    daemon.remember("ann", f"{SECRET} It has number {number}.")
                    wait_until(lambda: len(server.requests) > asked, 20)  # noqa: B023
                    time.sleep(SECONDS_EACH)
                    assert len(states(daemon)) == number + 1, name
                assert seen.peak_bytes - before < 150 * MIB
            begin_s = time.monotonic()
            assert daemon.stop() == 0
            assert time.monotonic() - begin_s < 10.0
        assert "violet" not in daemon.log and "kettle" not in daemon.log
        with running_daemon(data_dir, settings(sensible.url)) as daemon:
            for batch in daemon.get("ann/batches", params={"state": "parked"}).json()["batches"]:
                assert daemon.post(f"ann/batches/{batch['batch_id']}/retry").status_code == 200
            assert daemon.flush("ann", vectors=True)["digested"]
            assert set(states(daemon)) == {"digested"}
            kept = daemon.get("ann/export").text
            assert [n for n in range(len(order)) if f"{SECRET} It has number {n}." not in kept] == []
            assert daemon.stop() == 0
