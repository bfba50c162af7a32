"""Measure one memory, in its own virtual environment: `python -m benchmarks.peers.driver WORK PHASE BEGAN`.

`WORK` is a JSON file: the module of the memory, its folder, the turns and the questions. `PHASE` is `fill`, or `again`
for a second process that opens what the first one stored. `BEGAN` is the time at which the process was started. The
result is printed as the last line, as JSON.

This module needs only the standard library. A memory's own packages are imported by its module in `memories`.
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

CLIENTS = 8
WRITES = 30
"""Turns after which a question follows at once."""


class Client(Protocol):
    """One connection to a memory; a thread has its own."""

    def add(self, turn: dict[str, Any]) -> None:
        """Store a turn. Return when it is acknowledged."""

    def find(self, question: str, count: int) -> list[str]:
        """Return the ids of the best turns, best first."""


class Memory(Protocol):
    """A memory to measure."""

    def start(self) -> None:
        """Start it on its folder, which an earlier process may have filled. Return when it is ready."""

    def client(self) -> Client:
        """Return a new connection."""

    def settle(self) -> None:
        """Wait until it has processed all acknowledged turns."""

    def stop(self) -> None:
        """Stop it, and keep its stored data."""


def memory_of(work: dict[str, Any]) -> Memory:
    """Return the memory to measure."""
    module = importlib.import_module(f"benchmarks.peers.memories.{work['module']}")
    memory: Memory = module.Memory(Path(work["folder"]))
    return memory


def _ms(task: Callable[[], Any]) -> float:
    begun = time.perf_counter_ns()
    task()
    return (time.perf_counter_ns() - begun) / 1e6


def fill(memory: Memory, work: dict[str, Any]) -> dict[str, float]:
    """Store all turns one by one and send all questions. Return the figures."""
    turns, questions, count = work["turns"], work["questions"], work["count"]
    memory.start()
    client = memory.client()
    writes = min(WRITES, len(turns) // 4)
    burst, last = turns[:-writes], turns[-writes:]
    acknowledged = [_ms(lambda turn=turn: client.add(turn)) for turn in burst]  # type: ignore[misc]
    figures = {
        "first_after_burst_ms": _ms(lambda: client.find(questions[0]["text"], count)),
        "ack_first_ms": statistics.median(acknowledged[: len(burst) // 4]),
        "ack_last_ms": statistics.median(acknowledged[-(len(burst) // 4) :]),
    }
    memory.settle()
    after_write = []
    for place, turn in enumerate(last):
        client.add(turn)
        question = questions[place % len(questions)]["text"]
        after_write.append(_ms(lambda text=question: client.find(text, count)))  # type: ignore[misc]
    figures["after_write_p50_ms"] = statistics.median(after_write)
    memory.settle()
    client.find(questions[0]["text"], count)
    found: list[list[str]] = []
    took = [_ms(lambda one=one: found.append(client.find(one["text"], count))) for one in questions]  # type: ignore[misc]
    figures["p50_ms"] = statistics.median(took)
    figures["p95_ms"] = statistics.quantiles(took, n=20)[-1] if len(took) > 1 else took[0]
    figures["per_s_1"] = 1000 * len(took) / sum(took)
    figures["recall"] = 100 * statistics.fmean(map(share_found, found, (one["gold"] for one in questions)))
    figures["per_s_8"] = _together(memory, [one["text"] for one in questions], count)
    return figures


def share_found(found: Sequence[str], gold: Sequence[Sequence[str]]) -> float:
    """Return the share of gold groups of which any turn was found."""
    return sum(not set(group).isdisjoint(found) for group in gold) / len(gold)


def _together(memory: Memory, questions: Sequence[str], count: int) -> float:
    """Return the questions per second of concurrent clients. Each sends all questions, from a start of its own."""
    failures: list[BaseException] = []
    clients = [memory.client() for _ in range(CLIENTS)]

    def ask(number: int) -> None:
        try:
            begin = number * len(questions) // CLIENTS
            for text in (*questions[begin:], *questions[:begin]):
                clients[number].find(text, count)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(CLIENTS)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_s = time.perf_counter() - begun
    if failures:
        raise failures[0]
    return CLIENTS * len(questions) / took_s


def again(memory: Memory, work: dict[str, Any]) -> dict[str, float]:
    """Open the data of an earlier process. Times count from the start of this process and include imports."""
    memory.start()
    ready_s = time.time() - work["began_s"]
    memory.client().find(work["questions"][0]["text"], work["count"])
    return {"ready_s": ready_s, "first_answer_s": time.time() - work["began_s"]}


def main() -> int:
    """Run one phase and print its figures."""
    work = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    work["began_s"] = float(sys.argv[3])
    memory = memory_of(work)
    try:
        figures = fill(memory, work) if sys.argv[2] == "fill" else again(memory, work)
    finally:
        memory.stop()
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
