"""Ten minutes of all operations at once: `make soak`, or `python -m benchmarks.soak --seconds 60`.

A daemon runs in a process of its own, with the built-in model and room for fewer agents than there are. Talkers use
every operation over REST and gRPC. Then everything is digested, the daemon stops, every store is checked, and the
ledger is compared with the daemon's report on each batch. Exits with 1 if any check fails.

**Lost nothing** means: every acknowledged batch, and no other, is listed as digested; the number of messages equals
the number sent; and the nodes of all batches of an agent follow one another, so that no
batch became memories twice or in part.

**Memory is flat** means: the median of the last quarter is that of the second quarter, plus the size of the memories
that were added in between. The agents forget fast, so that after the first quarter they forget as much as they take
in. The comparison covers memory that only the process can release, since pages of files grow with the files. A run of
less than four minutes does not reach a steady state, so its memory is shown but not judged.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import resident
from benchmarks.soak_load import Call, GrpcCalls, Ledger, RestCalls, Talker, Texts
from ebbtide.fleet.runtime.memory_budget import GAPS
from ebbtide.store.integrity.check import check_store
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from tests.support.process import Daemon

MIB = 1 << 20

REST_TALKERS = 8
GRPC_TALKERS = 4
AGENTS = 50
SETTLE_S = 300.0
SHORTEST_JUDGED_S = 240.0

NODE_BYTES = 350
LINK_BYTES = 60
"""Approximate size of a memory and a link in arrays. It serves the expectation, not the measurement."""

GROWTH_SHARE = 0.03
"""Share by which memory may grow beyond that: gaps in the heap."""

DESCRIPTORS_OPEN_AGENT = 3

SETTINGS = {
    "MEMORY__MAX_QUEUE_SIZE": 20,
    "MEMORY__DECAY_RATE": 0.75,
    "STORE__BATCH_STATUS_KEEP": 1_000_000,
}


@dataclass(frozen=True, slots=True)
class Sample:
    """The daemon's process at a moment."""

    at_s: float
    resident_mib: float
    anonymous_mib: float
    descriptors: int
    threads: int
    nodes: int
    links: int
    open: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One check of a run; `is_met` is None if it is only shown."""

    what: str
    wanted: str
    reached: str
    is_met: bool | None


@dataclass(slots=True)
class Outcome:
    """The result of a soak."""

    seconds: float
    requests: dict[str, int]
    back_pressure: dict[str, int]
    batches: int
    messages: int
    sent_again: int
    findings: list[Finding] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    @property
    def failures(self) -> list[Finding]:
        """Return the findings that failed."""
        return [finding for finding in self.findings if finding.is_met is False]


class Soak:
    """One run against a daemon."""

    def __init__(self, daemon: Daemon, agents: int, seconds: float, seed: int) -> None:
        self.daemon = daemon
        self.agents = [f"agent-{number}" if number % 2 else f"代理-{number}" for number in range(agents)]
        self.ledger = Ledger()
        self.samples: list[Sample] = []
        self._seconds = seconds
        self._seed = seed

    async def run(self) -> Outcome:
        """Run the load, wait, and compare the ledger with the daemon."""
        descriptors = self._descriptors()
        async with self._callers() as (rest, grpc):
            await self._talk(rest, grpc)
            findings = [self._no_errors()]
            findings += await self._everything_is_there(rest)
            findings += self._is_flat()
            for agent in self.agents:
                await rest("POST", f"/v1/agents/{agent}/close")
        findings.append(await self._descriptors_are_back(descriptors))
        ledger = self.ledger
        messages = sum(sum(batches.values()) for batches in ledger.acknowledged.values())
        return Outcome(
            self._seconds,
            dict(ledger.requests),
            dict(ledger.back_pressure),
            ledger.batch_count,
            messages,
            ledger.sent_again,
            findings,
            self.samples,
        )

    @contextlib.asynccontextmanager
    async def _callers(self) -> AsyncIterator[tuple[RestCalls, GrpcCalls]]:
        rest, grpc = RestCalls(self.daemon.url), GrpcCalls(self.daemon.grpc_target)
        try:
            yield rest, grpc
        finally:
            await rest.close()
            await grpc.close()

    async def _talk(self, rest: Call, grpc: Call) -> None:
        texts = Texts(self._seed)
        callers = [rest] * REST_TALKERS + [grpc] * GRPC_TALKERS
        for agent in self.agents:
            response = await rest("PUT", f"/v1/agents/{agent}")
            assert response.status_code == 201, response.text
        watching = asyncio.create_task(self._watch(rest))
        until_s = time.monotonic() + self._seconds
        talkers = [
            Talker(number, call, self.ledger, texts, self.agents, self._seed)
            for number, call in enumerate(callers)
        ]
        await asyncio.gather(*(talker.talk(until_s) for talker in talkers))
        watching.cancel()

    # --- what is looked at -------------------------------------------------------------------------

    def _descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.daemon.process.pid}/fd"))

    async def _watch(self, call: Call) -> None:
        """Take a sample every second."""
        begun_s = time.monotonic()
        while True:
            listed = (await call("GET", "/v1/agents?page_size=1000")).json()["agents"]
            process_id = self.daemon.process.pid
            held = resident(process_id)
            self.samples.append(
                Sample(
                    round(time.monotonic() - begun_s, 1),
                    round(held.whole, 1),
                    round(held.anonymous, 1),
                    self._descriptors(),
                    len(os.listdir(f"/proc/{process_id}/task")),
                    sum(agent["counts"]["nodes"] for agent in listed),
                    sum(agent["counts"]["links"] for agent in listed),
                    sum(agent["open"] for agent in listed),
                )
            )
            await asyncio.sleep(1)

    def _no_errors(self) -> Finding:
        errors = self.ledger.errors
        told = ", ".join(f"{count} x {what}" for what, count in errors.most_common(5))
        return Finding("unexpected errors", "none", told or "none", not errors)

    async def _everything_is_there(self, call: Call) -> list[Finding]:
        """Wait until everything is digested, then check each batch of each agent."""
        behind = await self._agents_behind(call)
        lost, odd, messages = 0, [], 0
        for agent in self.agents:
            acknowledged = self.ledger.acknowledged.get(agent, {})
            batches = await self._batches(call, agent)
            digested = {batch["batch_id"] for batch in batches if batch["state"] == "digested"}
            lost += len(acknowledged.keys() - digested)
            info = (await call("GET", f"/v1/agents/{agent}")).json()
            messages += info["counts"]["messages"] - sum(acknowledged.values())
            messages += sum(batch.get("dropped_recalled", 0) for batch in batches)
            odd += faults_of(agent, acknowledged, batches)
        return [
            Finding(
                "digested and passes done",
                "every agent",
                f"all but {behind}" if behind else "yes",
                not behind,
            ),
            Finding("batches lost", "0", f"{lost} of {self.ledger.batch_count}", lost == 0),
            Finding("messages kept beyond those sent", "0", str(messages), messages == 0),
            Finding("batches digested otherwise than once", "none", "; ".join(odd[:3]) or "none", not odd),
        ]

    async def _agents_behind(self, call: Call) -> int:
        deadline_s = time.monotonic() + SETTLE_S
        behind = list(self.agents)
        while behind and time.monotonic() < deadline_s:
            agent = behind.pop(0)
            body = {"timeout_ms": 5000, "passes": True}
            response = await call("POST", f"/v1/agents/{agent}/flush", body)
            told = response.json()
            if response.status_code != 200 or not (told["digested"] and told["passes_done"]):
                behind.append(agent)
        return len(behind)

    async def _batches(self, call: Call, agent: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        token = ""
        while True:
            page = (await call("GET", f"/v1/agents/{agent}/batches?page_size=1000&page_token={token}")).json()
            found += page["batches"]
            token = page["next_page_token"]
            if not token:
                return found

    def _is_flat(self) -> list[Finding]:
        quarter = len(self.samples) // 4
        if quarter < 2:
            return []
        early, late = self.samples[quarter : 2 * quarter], self.samples[-quarter:]
        is_judged = self._seconds >= SHORTEST_JUDGED_S

        def medians(name: str) -> tuple[float, float]:
            first, last = ([float(getattr(sample, name)) for sample in part] for part in (early, late))
            return statistics.median(first), statistics.median(last)

        nodes, links = medians("nodes"), medians("links")
        expected = GAPS * ((nodes[1] - nodes[0]) * NODE_BYTES + (links[1] - links[0]) * LINK_BYTES) / MIB
        before, after = medians("anonymous_mib")
        bound = before * (1 + GROWTH_SHARE) + max(0.0, expected)
        opened = max(0.0, medians("open")[1] - medians("open")[0])
        fds = medians("descriptors")
        fds_bound = fds[0] + DESCRIPTORS_OPEN_AGENT * (opened + 2)
        shown = [
            Finding(what, "-", f"{medians(name)[0]:.0f} → {medians(name)[1]:.0f}", None)
            for what, name in (
                ("memories living", "nodes"),
                ("links", "links"),
                ("agents open", "open"),
                ("resident, pages of files included, MiB", "resident_mib"),
                ("threads", "threads"),
            )
        ]
        memory = Finding(
            "memory, second quarter → last, MiB",
            f"≤ {bound:.1f} ({expected:+.1f} for memories)",
            f"{before:.1f} → {after:.1f}",
            after <= bound if is_judged else None,
        )
        descriptors = Finding(
            "descriptors, second quarter → last",
            f"≤ {fds_bound:.0f}",
            f"{fds[0]:.0f} → {fds[1]:.0f}",
            fds[1] <= fds_bound if is_judged else None,
        )
        return [memory, descriptors, *shown]

    async def _descriptors_are_back(self, before: int) -> Finding:
        """With every agent and every connection closed, as many descriptors are open as at the start."""
        for _ in range(100):
            if self._descriptors() <= before:
                break
            await asyncio.sleep(0.1)
        after = self._descriptors()
        return Finding("descriptors with all agents closed", f"≤ {before}", str(after), after <= before)


def faults_of(agent: str, acknowledged: dict[str, int], batches: Sequence[dict[str, Any]]) -> list[str]:
    """Return signs that a batch was digested twice, in part, under another name or not at all."""
    faults = [f"{agent}: {b['batch_id']} is {b['state']}" for b in batches if b["state"] != "digested"]
    # The digest drops what an answer had just recalled, and the batch says so. Each text here is one line.
    told = {one["batch_id"]: one["message_count"] + one.get("dropped_recalled", 0) for one in batches}
    if told.keys() - acknowledged.keys():
        faults.append(f"{agent}: {len(told.keys() - acknowledged.keys())} batches nobody sent")
    faults += [f"{agent}: {b} has other messages" for b, n in acknowledged.items() if told.get(b, n) != n]
    # The ids of a batch follow each other; those of its entities come after them.
    seen: set[int] = set()
    for batch in batches:
        nodes = [int(node_id[1:]) for node_id in batch["node_ids"]]
        if nodes and nodes != list(range(nodes[0], nodes[0] + len(nodes))):
            last = nodes[0] + len(nodes) - 1
            faults.append(f"{agent}: nodes of {batch['batch_id']} are not n{nodes[0]} to n{last}")
        if seen.intersection(nodes):
            faults.append(f"{agent}: nodes of {batch['batch_id']} are of another batch too")
        seen.update(nodes)
    return faults


def inconsistencies(data_dir: Path) -> list[str]:
    """Return the findings of the consistency checker for the stores of a directory without a running daemon."""
    found = []
    for path in sorted((data_dir / "agents").glob("*/data.mdb")):
        store = LmdbStore.open(path.parent, map_bytes=1 << 20, max_map_bytes=1 << 34)
        try:
            found += [f"{path.parent.name}: {finding}" for finding in check_store(store)]
        finally:
            store.close()
    return found


def soak(data_dir: Path, seconds: float, agents: int = AGENTS, seed: int = 1) -> Outcome:
    """Start a daemon, soak it, stop it, and check its stores."""
    # Room for fewer agents than there are, so the daemon keeps closing some to open others.
    settings = {**SETTINGS, "FLEET__MAX_OPEN_AGENTS": max(2, agents * 4 // 5)}
    daemon = Daemon(data_dir, settings, executed=True)
    try:
        daemon.start()
        assert daemon.client.get("/healthz").status_code == 200
        outcome = asyncio.run(Soak(daemon, agents, seconds, seed).run())
        code = daemon.stop()
    finally:
        daemon.close()
    failed = [line for line in daemon.log.splitlines() if '"level": "error"' in line]
    found = inconsistencies(data_dir)
    outcome.findings += [
        Finding("exit code after SIGTERM", "0", str(code), code == 0),
        Finding("errors in the log", "none", failed[0][:200] if failed else "none", not failed),
        Finding("inconsistencies in stores", "none", "; ".join(found[:3]) or "none", not found),
    ]
    return outcome


def show(outcome: Outcome, console: Console) -> None:
    """Print a table on the terminal."""
    asked = ", ".join(f"{count} {name}" for name, count in sorted(outcome.requests.items()))
    waited = ", ".join(f"{count} {name}" for name, count in sorted(outcome.back_pressure.items())) or "never"
    table = Table(title=f"Ebbtide: {outcome.seconds:g} s of everything at once", title_justify="left")
    for name in ("what", "to hold", "seen", ""):
        table.add_column(name)
    table.add_row("requests", "", asked, "")
    table.add_row("acknowledged", "", f"{outcome.batches} batches of {outcome.messages} messages", "")
    table.add_row("sent once more under the same key", "", str(outcome.sent_again), "")
    table.add_row("told to wait", "", waited, "")
    for finding in outcome.findings:
        mark = {True: "[green]yes[/]", False: "[red]NO[/]", None: ""}[finding.is_met]
        table.add_row(finding.what, finding.wanted, finding.reached, mark)
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--agents", type=int, default=AGENTS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write everything that was seen to this file")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="ebbtide-soak-") as place:
        outcome = soak(Path(place) / "data", chosen.seconds, chosen.agents, chosen.seed)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(asdict(outcome), indent=1), encoding="utf-8")
    show(outcome, Console())
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
