"""Truncated or damaged files of one agent are reported as damage, and the daemon serves all others."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx
import pytest

from tests.support.process import Daemon
from tests.support.tier import IS_ALL

pytestmark = pytest.mark.chaos

PLAIN = {"EMBEDDING__MODEL": "off"}
TOLD = [f"Fact number {number} about the harbour and its lighthouse." for number in range(60)]
PAGE = 4096


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with two agents, and a backup of one of them."""
    data_dir = tmp_path_factory.mktemp("made") / "data"
    with started(data_dir) as daemon:
        for agent in ("ann", "bob"):
            daemon.post(f"{agent}/remember", {"messages": [{"role": "user", "content": one} for one in TOLD]})
            assert daemon.flush(agent)["digested"]
        (data_dir.parent / "ann.ebb").write_bytes(daemon.get("ann/backup").content)
        assert daemon.stop() == 0
    return data_dir


@contextlib.contextmanager
def started(data_dir: Path) -> Iterator[Daemon]:
    """Run a daemon for the length of a block, without a check of the stores afterwards."""
    daemon = Daemon(data_dir, PLAIN)
    try:
        yield daemon.start()
    finally:
        daemon.close()


def restored(daemon: Daemon, agent: str, content: bytes, option: str) -> int:
    """Restore a backup as an agent. Return the HTTP status."""
    kind = {"content-type": "application/octet-stream"}
    place = f"/v1/agents/{agent}/restore"
    return daemon.client.post(place, params={option: "true"}, content=content, headers=kind).status_code


def outcome(daemon: Daemon, agent: str) -> str:
    """Recall everything. Return `whole`, `less`, or the reason of the error."""
    answer = daemon.post(f"{agent}/recall", {"max_results": 100, "depth": 8})
    if answer.status_code == 200:
        return "whole" if "Fact number 59" in answer.json()["text"] else "less"
    reason: str = answer.json()["error"]["reason"]
    return reason


def lengths(size: int) -> Sequence[int]:
    """Return the lengths to truncate a file to: after its first two pages, in the middle, before its end."""
    return (2 * PAGE + 904, size // 2, *((2 * PAGE, size // 4, size - PAGE) if IS_ALL else ()))


@pytest.mark.timeout(240)
def test_a_truncated_file_is_reported_as_damage(made: Path, tmp_path: Path) -> None:
    """Other agents are served, the next start succeeds, and the agent can be deleted or replaced by its backup."""
    for number, length in enumerate(lengths((made / "agents/ann/data.mdb").stat().st_size)):
        data_dir = tmp_path / str(number)
        shutil.copytree(made, data_dir)
        os.truncate(data_dir / "agents/ann/data.mdb", length)
        # The marker of unfinished work: the start opens the agent by itself.
        (data_dir / "work").mkdir(exist_ok=True)
        (data_dir / "work/ann").touch()
        with started(data_dir) as daemon:
            assert outcome(daemon, "ann") in ("STORE_CORRUPTED", "whole"), length
            assert outcome(daemon, "bob") == "whole"
            if number % 2:
                assert daemon.client.delete("/v1/agents/ann").status_code == 200
                assert daemon.get("ann").json()["error"]["reason"] == "AGENT_NOT_FOUND"
            else:
                content = (made.parent / "ann.ebb").read_bytes()
                assert restored(daemon, "ann", content, "replace") == 200
                assert outcome(daemon, "ann") == "whole"
            assert daemon.stop() == 0
        with started(data_dir) as daemon:
            assert outcome(daemon, "bob") == "whole"
            assert daemon.stop() == 0


@pytest.mark.timeout(240)
def test_damaged_pages_are_reported_as_damage(made: Path, tmp_path: Path) -> None:
    """With one garbage page per agent a response is right or STORE_CORRUPTED; the daemon counts and survives them."""
    data_dir, pages = tmp_path / "data", range(2, 22, 1 if IS_ALL else 3)
    content = (made.parent / "ann.ebb").read_bytes()
    with started(data_dir) as daemon:
        for page in pages:
            assert restored(daemon, f"a{page}", content, "rename") == 200
        assert daemon.stop() == 0
    garbage = random.Random(1)
    for page in pages:
        with (data_dir / f"agents/a{page}/data.mdb").open("r+b") as file:
            file.seek(page * PAGE)
            file.write(garbage.randbytes(PAGE))
    # LMDB itself ends the process over some garbage: each agent may do that once, and is not trusted again.
    endings: list[int] = []
    reasons: list[str] = []
    while True:
        with started(data_dir) as daemon:
            outcomes: dict[int, str] = {}
            for page in pages:
                try:
                    outcomes[page] = outcome(daemon, f"a{page}")
                except httpx.TransportError:
                    endings.append(page)
                    break
            else:
                reasons = daemon.client.get("/readyz").json()["reasons"]
                assert daemon.stop() == 0
                break
        assert len(endings) < len(pages), endings
    assert set(outcomes.values()) <= {"whole", "STORE_CORRUPTED"}, outcomes
    damaged = sum(one == "STORE_CORRUPTED" for one in outcomes.values())
    assert damaged
    # The start found the damaged agents with a marker, and requests found the others.
    counted = [int(count) for count in re.findall(r": (\d+) \(STORE_CORRUPTED\)", " ".join(reasons))]
    assert sum(counted) == damaged, reasons
