"""How soon create_memory is acknowledged over REST, compared with the unavoidable costs.

Those are one LMDB commit with fsync on the same disk, and one request that does nothing. Each round measures all
three, so the ratio depends little on the load of the machine.
"""

from __future__ import annotations

import tempfile
from itertools import count
from pathlib import Path

from benchmarks.clients import KeepAlive
from benchmarks.knowledge.table import Row
from benchmarks.measuring import BareStore, Spread, in_turns
from benchmarks.processes import connected, running
from benchmarks.texts import Writer

TIMES = 3.0
WARM_UPS = 5
ROUNDS, QUICK_ROUNDS = 600, 60
SEED = 1
VALUE_CHARS = 200


def _measured(client: KeepAlive, folder: Path, rounds: int) -> tuple[Spread, Spread]:
    """Return the latencies of create_memory, and of a commit and a request together."""
    said, numbers = iter(Writer(SEED).texts(rounds + WARM_UPS)), count()

    def create() -> float:
        arguments = {
            "subject": "user",
            "topic": f"topic {next(numbers) % 40}",
            "object": next(said).content[:VALUE_CHARS],
        }
        return client.ms("POST", "/v1/agents/ann/tools/create_memory", {"arguments": arguments})

    with BareStore(folder) as bare:
        tasks = {
            "create": create,
            "commit": lambda: bare.commit_ms(bytes(300)),
            "request": lambda: client.ms("GET", "/healthz"),
        }
        in_turns(WARM_UPS, tasks)
        took = in_turns(rounds, tasks)
    both = Spread.of(map(sum, zip(took["commit"], took["request"], strict=True)))
    return Spread.of(took["create"]), both


def rows(is_quick: bool) -> list[Row]:
    """Return the row of create_memory."""
    with tempfile.TemporaryDirectory() as folder:
        data_dir, bare = Path(folder, "data"), Path(folder, "bare")
        bare.mkdir()
        with running(data_dir, {"EMBEDDING__MODEL": "off"}) as daemon, connected(daemon) as client:
            ours, both = _measured(client, bare, QUICK_ROUNDS if is_quick else ROUNDS)
    times = ours.p95 / both.p95
    measured = f"{times:.2f} × ({ours.p95:.2f} and {both.p95:.2f} ms; p50 {ours.p50 / both.p50:.2f} ×)"
    bar = f"≤ {TIMES:g} × (commit + request that does nothing)"
    return [Row("create_memory, p95", bar, measured, times <= TIMES)]
