"""Another agent of a daemon under attack: the time of its recalls, and the memory and disk that the daemon uses."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.support.process import Daemon
from tests.support.tier import IS_ALL

IS_LONG = IS_ALL
"""Whether the long forms of the tests run."""

LONGEST_RECALL_S = 1.0
"""The limit for a recall of another agent, in CPU time of the daemon, which a busy machine does not change."""

LONGEST_WAIT_S = 10.0
"""The limit by the clock."""


@dataclass
class Onlooker:
    """The observations during the attack."""

    pid: int
    recalls: list[tuple[float, float, str]] = field(default_factory=list)
    """Of each recall: CPU time of the daemon, time by the clock, and the attack at that moment."""
    under_way: str = ""
    failures: list[str] = field(default_factory=list)
    most_disk_bytes: int = 0

    @property
    def peak_bytes(self) -> int:
        """The peak memory of the daemon since its start."""
        return status_of(self.pid, "VmHWM")

    @property
    def cpu_s(self) -> float:
        """CPU time that the daemon has used."""
        return cpu_s_of(self.pid)


def cpu_s_of(pid: int) -> float:
    """Return the CPU time of all threads of a process."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def status_of(pid: int, name: str) -> int:
    """Return a size from the status of a process, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


@contextlib.contextmanager
def looking_on(daemon: Daemon, agent: str = "bystander", *, is_known: bool = False) -> Iterator[Onlooker]:
    """Recall from another agent during the block, then assert that no recall failed or was slow.

    An agent that `is_known` remembers already that the kettle is blue.
    """
    if not is_known:
        daemon.remember(agent, "The kettle is blue.")
        assert daemon.flush(agent)["digested"]
    seen, is_over = Onlooker(daemon.process.pid), threading.Event()

    def look() -> None:
        with httpx.Client(base_url=daemon.url, timeout=30.0) as client:
            while True:
                begin_s, cpu_s = time.monotonic(), seen.cpu_s
                try:
                    body = {"keywords": ["kettle"], "patience_ms": 0}
                    answer = client.post(f"/v1/agents/{agent}/recall", json=body)
                    if answer.status_code != 200 or "blue" not in answer.text:
                        seen.failures.append(answer.text[:200])
                except httpx.HTTPError as error:
                    seen.failures.append(repr(error))
                seen.recalls.append((seen.cpu_s - cpu_s, time.monotonic() - begin_s, seen.under_way))
                seen.most_disk_bytes = max(seen.most_disk_bytes, transfer_bytes(daemon.data_dir))
                if is_over.wait(0.02):
                    return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        is_over.set()
        thread.join(60)
    assert not seen.failures, seen.failures[:3]
    slowest, longest = max(seen.recalls), max(seen.recalls, key=lambda recall: recall[1])
    assert slowest[0] < LONGEST_RECALL_S, slowest
    assert longest[1] < LONGEST_WAIT_S, longest
    print(
        f"slowest recall: {longest[1]:.3f} s, most CPU time during one: {slowest[0]:.2f} s of {len(seen.recalls)}"
    )


def transfer_bytes(data_dir: Path) -> int:
    """Return the bytes on disk of transfers in progress."""
    total = 0
    # os.walk skips folders that are removed meanwhile.
    for folder, _, names in os.walk(data_dir / "transfers"):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += (Path(folder) / name).stat().st_blocks * 512
    return total
