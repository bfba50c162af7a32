"""A disk that fails or is slow under a running daemon: a clear error, no loss, and recovery without help."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx
import pytest

from tests.support.faults import failing
from tests.support.process import Daemon, running_daemon
from tests.support.waiting import Stopwatch

pytestmark = pytest.mark.chaos

QUICK = {"LANGUAGE__RETRY_CAP_MS": 500, "LANGUAGE__RETRY_BASE_MS": 100, "EMBEDDING__MODEL": "off"}

WRITES = "pwrite64,pwritev,writev"


def told(daemon: Daemon, agent: str, text: str) -> httpx.Response:
    return daemon.post(f"{agent}/remember", {"messages": [{"role": "user", "content": text}]})


def contents(daemon: Daemon, agent: str) -> list[str]:
    listed = daemon.get(f"{agent}/nodes", params={"page_size": 1000}).json()["nodes"]
    return [node["content"] for node in listed]


@pytest.mark.parametrize(
    ("calls", "fault", "status", "reason"),
    [
        ("fdatasync,fsync,msync", "error=EIO", 503, "STORE_UNAVAILABLE"),
        ("fdatasync", "error=EIO:when=1+3", 503, "STORE_UNAVAILABLE"),
        (WRITES, "error=EIO", 503, "STORE_UNAVAILABLE"),
        # The meta page that completes a commit: afterwards LMDB refuses writes until it is opened again.
        ("pwrite64", "error=EIO:when=1+2", 503, "STORE_UNAVAILABLE"),
        ("pwrite64", "error=EIO:when=2+3", 503, "STORE_UNAVAILABLE"),
        (WRITES, "error=ENOSPC", 507, "STORE_FULL"),
        (WRITES, "error=ENOSPC:when=2+2", 507, "STORE_FULL"),
    ],
)
def test_failed_writes_are_refused_and_no_acknowledged_batch_is_lost(
    tmp_path: Path, calls: str, fault: str, status: int, reason: str
) -> None:
    """While the disk fails a remember is stored or refused with a reason, and reads work; then everything works.

    No restart is needed. No refused batch is stored, no acknowledged one is missing, and the checker finds nothing.
    """
    accepted = ["The kettle is blue."]
    refusals = []
    with running_daemon(tmp_path / "data", QUICK) as daemon:
        daemon.remember("ann", *accepted)
        daemon.flush("ann")
        refused = []
        with failing(daemon, calls, fault):
            for number in range(8):
                text = f"Fact number {number}."
                response = told(daemon, "ann", text)
                if response.status_code == 202:
                    accepted.append(text)
                else:
                    error = response.json()["error"]
                    refusals.append((response.status_code, error["reason"]))
                    refused.append(text)
            assert daemon.recall("ann", "kettle", patience_ms=0) == "[Memory] The kettle is blue."
            assert daemon.client.get("/healthz").status_code == 200
        assert refusals
        assert set(refusals) == {(status, reason)}
        answer = daemon.flush("ann", timeout_ms=30_000)
        assert (answer["digested"], answer["parked_batches"]) == (True, 0)
        daemon.remember("ann", "The cup is red.")
        daemon.remember("bob", "The spoon is green.")
        assert daemon.flush("ann")["digested"]
        assert daemon.flush("bob")["digested"]
        assert contents(daemon, "ann") == [*accepted, "The cup is red."]
        assert not set(refused) & set(contents(daemon, "ann"))
        assert daemon.stop() == 0
        if calls == "pwrite64":
            # The disk contains what the responses acknowledged, even if a failed write left its outcome unknown.
            daemon.start()
            assert contents(daemon, "ann") == [*accepted, "The cup is red."]


def test_digest_and_compression_resume_after_a_disk_failure(tmp_path: Path) -> None:
    """Background work that the disk interrupted is done later, exactly once, without a request."""
    with running_daemon(tmp_path / "data", {**QUICK, "MEMORY__DECAY_RATE": "1.0"}) as daemon:
        texts = [f"Fact number {number} about the harbour." for number in range(30)]
        for text in texts:
            daemon.remember("ann", text)
        with failing(daemon, "fdatasync,pwrite64,pwritev,writev", "error=EIO:when=3+2"):
            daemon.post("ann/compress", {"passes": 3})
            answer = daemon.flush("ann", timeout_ms=3000)
            assert answer["parked_batches"] == 0
        answer = daemon.flush("ann", timeout_ms=60_000)
        assert (answer["digested"], answer["passes_done"], answer["parked_batches"]) == (True, True, 0)
        assert contents(daemon, "ann") == texts
        assert daemon.stop() == 0


def test_slow_disk_delays_only_acknowledgements(tmp_path: Path) -> None:
    """When each fsync takes half a second, only acknowledgements wait for it."""
    with running_daemon(tmp_path / "data", QUICK) as daemon:
        for agent in ("ann", "bob"):
            daemon.remember(agent, "The kettle is blue.")
            daemon.flush(agent)
        taken: list[str] = []

        def write() -> None:
            with httpx.Client(base_url=daemon.url, timeout=60) as client:
                for number in range(4):
                    body = {"messages": [{"role": "user", "content": f"Fact number {number}."}]}
                    answer = client.post("/v1/agents/ann/remember", json=body)
                    assert answer.status_code == 202, answer.text
                    taken.append(f"Fact number {number}.")

        with failing(daemon, "fdatasync", "delay_exit=500000"):
            watch = Stopwatch()
            writer = threading.Thread(target=write)
            writer.start()
            read = 0
            while writer.is_alive():
                assert daemon.recall("bob", "kettle", patience_ms=0) == "[Memory] The kettle is blue."
                assert daemon.client.get("/healthz").status_code == 200
                read += 1
            writer.join()
            assert watch.s >= 2, "each was acknowledged after its sync"
        assert len(taken) == 4
        assert read > 8, "reads did not stand in line behind writes"
        assert daemon.flush("ann", timeout_ms=30_000)["digested"]
        assert contents(daemon, "ann") == ["The kettle is blue.", *taken]
        assert daemon.stop() == 0
