"""Keep an agent's inbox filled until terminated: `python -m benchmarks.feeder URL AGENT SEED`.

Runs in a process of its own, so that generating texts takes no time from the process that measures.
"""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.clients import KeepAlive
from benchmarks.texts import Writer

BODIES = 200
MESSAGES = 4
AHEAD = 20
"""The number of waiting batches above which the feeder pauses."""

PAUSE_S = 0.05


@contextlib.contextmanager
def feeding(url: str, agent_id: str, seed: int) -> Iterator[None]:
    """Keep the inbox of an agent filled for the length of the block."""
    command = [sys.executable, "-m", "benchmarks.feeder", url, agent_id, str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()  # the first batch is accepted
            yield
        finally:
            process.kill()


def _main(url: str, agent_id: str, seed: int) -> None:
    texts = Writer(seed).texts(BODIES * MESSAGES)
    bodies = [
        {"messages": [{"role": "user", "content": next(texts).content} for _ in range(MESSAGES)]}
        for _ in range(BODIES)
    ]
    with KeepAlive(url) as client:
        for number, body in enumerate(itertools.cycle(bodies)):
            told = client.told("POST", f"/v1/agents/{agent_id}/remember", body)
            if number == 0:
                print("fed", flush=True)
            if told["pending_batches"] > AHEAD:
                time.sleep(PAUSE_S)


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
