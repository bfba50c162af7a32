"""Forget and restart with an old `vectors.index` next to the store: nothing returns, and no byte is left."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from ebbtide.store.directory.index_file import INDEX_FILE
from tests.support.fake_ollama import FakeOllama, vector_of
from tests.support.forks import run_command
from tests.support.indexed_daemon import MODULE
from tests.support.process import Daemon, check_data_directory
from tests.support.tier import IS_ALL

pytestmark = pytest.mark.chaos
pytest.importorskip("usearch", reason="an extra")

ROUNDS = int(os.environ.get("EBBTIDE_INDEX_ROUNDS", "1"))
KILLS = IS_ALL or "EBBTIDE_INDEX_ROUNDS" in os.environ
KEY = "6d" * 32
SIZE, COUNT, SECRET = 8, 120, "The violet ledger lies under the stairs."
MINUTE_MS = 60_000
BEGIN_MS = 1_700_000_000_000
AT = 77
"""The number of the message that contains the secret."""

Forget = Callable[[Daemon], httpx.Response]

WAYS: dict[str, Forget] = {
    "topic": lambda daemon: daemon.post("ann/forget", {"topic": "violet ledger"}),
    "message": lambda daemon: daemon.post("ann/forget", {"messages": [f"m{AT + 1}"]}),
    "node": lambda daemon: daemon.post("ann/forget", {"nodes": [node_of_secret(daemon)]}),
    "time": lambda daemon: daemon.post("ann/forget", {"time_range": window(AT)}),
    "deleted": lambda daemon: daemon.client.delete(f"/v1/agents/ann/nodes/{node_of_secret(daemon)}"),
}


def texts() -> list[str]:
    return [SECRET if n == AT else f"note {n} about {n % 7}" for n in range(COUNT)]


def window(n: int) -> dict[str, int]:
    """Return the time range of exactly one message."""
    return {"begin": BEGIN_MS + n * MINUTE_MS, "end": BEGIN_MS + n * MINUTE_MS + 1}


def nearest(daemon: Daemon) -> dict[str, Any]:
    """Return the memory that is nearest to the vector of the secret."""
    answer = daemon.post("ann/search", {"vector": vector_of(SECRET, SIZE), "max_results": 1})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["memories"][0]
    return found


def node_of_secret(daemon: Daemon) -> str:
    node: str = nearest(daemon)["node_ids"][0]
    return node


def is_found(daemon: Daemon) -> bool:
    """Return whether a query by vector or by words finds the secret."""
    told = [str(nearest(daemon)), daemon.recall("ann", "violet"), daemon.recall("ann", query="violet ledger")]
    return any("violet" in text for text in told)


@pytest.fixture(scope="module")
def model() -> Iterator[FakeOllama]:
    """A server with an embedding model."""
    with FakeOllama(("bge-m3",)).running_beside() as server:
        yield server


def started(data_dir: Path, model: FakeOllama, **settings: str) -> Daemon:
    """Start a daemon that uses an embedding model."""
    server = {"EMBEDDING__MODEL": "ollama", "EMBEDDING__BASE_URL": model.url, "EMBEDDING__NAME": "bge-m3"}
    return Daemon(data_dir, {**server, **settings}, module=MODULE).start()


def index_of(data_dir: Path) -> Path:
    return data_dir / "agents" / "ann" / INDEX_FILE


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, model: FakeOllama) -> Path:
    """A data directory after a normal stop, with an index over 120 vectors."""
    data_dir = tmp_path_factory.mktemp("made") / "data"
    daemon = started(data_dir, model)
    try:
        said = [
            {"role": "user", "content": text, "id": f"m{n}", "timestamp": BEGIN_MS + n * MINUTE_MS}
            for n, text in enumerate(texts())
        ]
        assert daemon.post("ann/remember", {"messages": said}).status_code == 202
        assert daemon.flush("ann", vectors=True)["digested"]
        assert is_found(daemon)
        # The index is built between requests: closing keeps it once it is whole.
        for _ in range(20):
            time.sleep(0.2)
            nearest(daemon)
        assert daemon.stop() == 0
    finally:
        daemon.close()
    assert index_of(data_dir).exists()
    return data_dir


def secret_bytes(made: Path) -> list[bytes]:
    """Return the traces of the secret in files: its words, its vector in the store, and its vector in the index."""
    vectors = np.array([vector_of(text, SIZE) for text in texts()])
    stored = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32).astype("<f2")
    mean = stored.sum(axis=0, dtype=np.float64) / COUNT
    centred = (stored[AT].astype(np.float32) - mean).astype(np.float32).astype("<f2")
    traces = [b"violet ledger", stored[AT].tobytes(), centred.tobytes()]
    assert traces[2] in index_of(made).read_bytes(), "the scan can find what it looks for"
    return traces


def left_in(data_dir: Path, traces: list[bytes], pattern: str = "*") -> list[str]:
    """Return the files of the agent that contain a trace."""
    files = [path for path in (data_dir / "agents" / "ann").glob(pattern) if path.is_file()]
    return [path.name for path in files if any(trace in path.read_bytes() for trace in traces)]


def forgotten_and_ended(data_dir: Path, model: FakeOllama, way: Forget, kill_after_s: float | None) -> bool:
    """Forget in a daemon that is then stopped, or killed meanwhile. Return whether the request was answered."""
    daemon = started(data_dir, model)
    try:
        assert is_found(daemon)
        if kill_after_s is None:
            assert way(daemon).status_code == 200
            assert not is_found(daemon)
            assert daemon.stop() == 0
            return True
        with ThreadPoolExecutor(1) as pool:
            answering = pool.submit(way, daemon)
            time.sleep(kill_after_s)
            daemon.kill()
            return answering.exception() is None and answering.result().status_code == 200
    finally:
        daemon.close()


@pytest.mark.timeout(120 + 60 * ROUNDS)
@pytest.mark.parametrize("name", WAYS if KILLS else ["deleted"])
def test_forgotten_text_is_not_found_through_a_stale_index(
    made: Path, model: FakeOllama, tmp_path: Path, name: str
) -> None:
    """After a stop or a kill and with the old file copied back, no query finds the secret, and no byte is left."""
    traces, dice = secret_bytes(made), random.Random(name)
    for number in range(ROUNDS):
        data_dir = tmp_path / str(number)
        shutil.copytree(made, data_dir)
        kill_after_s = dice.uniform(0.0, 0.4) if KILLS and number else None
        was_answered = forgotten_and_ended(data_dir, model, WAYS[name], kill_after_s)
        if was_answered:
            # Deletion leaves free pages of the store to the next `forget`; the index is no part of that.
            assert left_in(data_dir, traces, f"{INDEX_FILE}*" if name == "deleted" else "*") == []
        shutil.copy(index_of(made), index_of(data_dir))
        daemon = started(data_dir, model)
        try:
            if was_answered:
                assert not is_found(daemon), kill_after_s
                assert left_in(data_dir, traces, f"{INDEX_FILE}*") == []
            assert daemon.post("ann/forget", {"topic": "violet ledger"}).json()["compacted"] or was_answered
            assert not is_found(daemon)
            assert daemon.stop() == 0
        finally:
            daemon.close()
        check_data_directory(data_dir)
        assert left_in(data_dir, traces) == [], kill_after_s


def test_an_encrypted_agent_uses_no_index(made: Path, model: FakeOllama, tmp_path: Path) -> None:
    """An index from before the encryption is removed at the first query, and no new one is written."""
    data_dir = tmp_path / "data"
    shutil.copytree(made, data_dir)
    key = {"EBBTIDE_ENCRYPTION__MASTER_KEY": KEY}
    done = run_command("encryption", "encrypt", "ann", "--data-dir", str(data_dir), env={**os.environ, **key})
    assert done.returncode == 0, done.stderr
    assert not index_of(data_dir).exists()
    shutil.copy(index_of(made), index_of(data_dir))
    daemon = started(data_dir, model, ENCRYPTION__MASTER_KEY=KEY)
    try:
        assert is_found(daemon) and not index_of(data_dir).exists()
        assert daemon.stop() == 0
    finally:
        daemon.close()
    assert left_in(data_dir, secret_bytes(made)) == []
