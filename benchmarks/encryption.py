"""The cost of encryption at rest: `python -m benchmarks.encryption [--turns N]`.

Two daemons in this process digest the same conversation and answer the same requests, one with a master key and one
without. They take turns in rounds of alternating order, and only figures of the same run are compared. Encryption
costs CPU time, so its ratio is taken from CPU time, which excludes waits for the disk and for other processes.
Recalls and queries read a few values each. Opening an agent reads all of them, so the cost shows there.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.conversations import Talk, talk
from ebbtide.daemon import opened
from ebbtide.ids import AgentId
from ebbtide.settings import load_settings
from ebbtide.telemetry import configure_log
from ebbtide.verbs.batches import FlushRequest, flush
from ebbtide.verbs.recall import RecallRequest, recall
from ebbtide.verbs.remember import Message, RememberRequest, remember
from ebbtide.verbs.service import Service

KINDS = {"plain": "", "encrypted": "5a" * 32}
ROUNDS = 11
ASKED_PER_ROUND = 40
WAIT_MS = 600_000

Sample = tuple[float, float]
"""Milliseconds that passed, and milliseconds of processor time."""

Timed = dict[str, list[Sample]]


async def _digest(service: Service, said: Talk, name: str) -> None:
    """Remember the whole conversation as the memory of one agent, and wait until it is digested."""
    for batch in said.batches:
        messages = [Message(role="user", content=turn.text, speaker=turn.speaker) for turn in batch]
        await remember(service, RememberRequest(agent_id=name, messages=messages))
    await flush(service, FlushRequest(agent_id=name, passes=True, timeout_ms=WAIT_MS))


async def _took(work: Awaitable[object], times: int = 1) -> Sample:
    passed, worked = time.perf_counter(), time.process_time()
    await work
    scale = 1000 / times
    return (time.perf_counter() - passed) * scale, (time.process_time() - worked) * scale


async def _ask(service: Service, command: RecallRequest, times: int) -> None:
    for _ in range(times):
        await recall(service, command)


async def _asked(service: Service, command: RecallRequest) -> Sample:
    return await _took(_ask(service, command, ASKED_PER_ROUND), ASKED_PER_ROUND)


async def _opened(service: Service, command: RecallRequest) -> Sample:
    await service.fleet.close(AgentId("agent-0"))
    return await _took(_ask(service, command, 1))


async def measure(folder: Path, turns: int) -> tuple[dict[str, Timed], dict[str, int]]:
    """Return the samples of each row by kind, and the bytes on disk by kind."""
    said = talk("English", turns, 1)
    word = said.batches[0][0].text.split()[0]
    walk, question = (
        RecallRequest(agent_id="agent-0", keywords=[word], depth=2),
        RecallRequest(agent_id="agent-0", query=f"What about {word}?"),
    )
    took: dict[str, Timed] = {}

    def note(row: str, kind: str, value: Sample) -> None:
        took.setdefault(row, {}).setdefault(kind, []).append(value)

    async with AsyncExitStack() as life:
        services = {}
        for kind, key in KINDS.items():
            sections = {"store": {"data_dir": folder / kind}, "encryption": {"master_key": key}}
            services[kind] = await life.enter_async_context(
                opened(load_settings({**sections, "embedding": {"model": "off"}}))
            )
        for number in range(ROUNDS):
            in_turn = list(services.items())[:: 1 if number % 2 else -1]
            for kind, service in in_turn:
                note("digest", kind, await _took(_digest(service, said, f"agent-{number}")))
            for kind, service in in_turn:
                note("recall", kind, await _asked(service, walk))
                note("question", kind, await _asked(service, question))
            for kind, service in in_turn:
                note("open, first recall", kind, await _opened(service, walk))
            for kind, service in in_turn:
                note("open, first question", kind, await _opened(service, question))
    sizes = {kind: (folder / kind / "agents" / "agent-0" / "data.mdb").stat().st_size for kind in KINDS}
    return took, sizes


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=1000, help="turns of the conversation")
    turns = parser.parse_args().turns
    configure_log("error", "console", log_content=False)
    with tempfile.TemporaryDirectory(prefix="ebbtide-encryption-") as folder:
        took, sizes = asyncio.run(measure(Path(folder), turns))
    table = Table(title=f"{turns} turns, {ROUNDS} rounds; medians", title_justify="left")
    for name in ("what", "plain", "encrypted", "ratio of processor time", "least to most"):
        table.add_column(name)
    for row, kinds in took.items():
        passed = [statistics.median(sample[0] for sample in kinds[kind]) for kind in KINDS]
        ratios = sorted(b[1] / a[1] for a, b in zip(kinds["plain"], kinds["encrypted"], strict=True))
        middle, spread = statistics.median(ratios), f"{ratios[0]:.2f}–{ratios[-1]:.2f}"
        table.add_row(f"{row} (ms)", *(f"{one:.2f}" for one in passed), f"{middle:.2f}", spread)
    plain, encrypted = (sizes[kind] for kind in KINDS)
    table.add_row("disk (bytes)", f"{plain}", f"{encrypted}", f"{encrypted / plain:.2f}", "")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
