"""P4: how soon a batch is acknowledged over REST, compared with the unavoidable costs.

An acknowledgement means that the batch is on disk. The unavoidable costs are one LMDB commit with fsync on the same
disk, and one request that does nothing; each round measures all three. Two cases are measured separately: an agent
that is already busy (its digest waits for an unreachable model server, so that nothing else is measured), and one
that changes from idle to busy, which first makes a marker durable.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.clients import KeepAlive
from benchmarks.measuring import BareStore, Spread, file_system, in_turns
from benchmarks.plan import AGENT, Plan
from benchmarks.processes import WITH_KEYS, connected, key_for, running
from benchmarks.report import Figure, at_most
from benchmarks.texts import Writer

NOBODY = {"LANGUAGE__MODEL": "ollama", "LANGUAGE__BASE_URL": "http://127.0.0.1:1"}
"""An unreachable model server, so that accepted batches wait."""

TIMES = 3.0
"""The largest allowed ratio of an acknowledgement to the bare commit and request."""

WARM_UPS = 5
IDLE_TIMEOUT_S = 60.0


def acknowledgement(plan: Plan) -> list[Figure]:
    """P4: one message, acknowledged."""
    return [_busy(plan), _busy(plan, with_keys=True), _from_idle(plan)]


def _busy(plan: Plan, *, with_keys: bool = False) -> Figure:
    data_dir = plan.fresh("busy")
    plan.tell("P4: busy")
    key = key_for(data_dir) if with_keys else ""
    settings = NOBODY | WITH_KEYS if with_keys else NOBODY
    with running(data_dir, settings) as daemon, connected(daemon, key) as client:
        rounds = plan.times(600, 30)
        client.ask("PUT", f"/v1/agents/{AGENT}", {"max_queue_size": rounds + 2 * WARM_UPS})
        what = "agent busy already" + (", with API keys" if with_keys else "")
        return _measure(plan, client, data_dir, rounds, what, lambda: None)


def _from_idle(plan: Plan) -> Figure:
    data_dir = plan.fresh("idle")
    plan.tell("P4: from idle")
    with running(data_dir) as daemon, connected(daemon) as client:

        def rest() -> None:
            _await_idle(client, data_dir)

        return _measure(plan, client, data_dir, plan.times(150, 10), "agent idle before (marker)", rest)


def _await_idle(client: KeepAlive, data_dir: Path) -> None:
    """Wait until the agent is idle and its marker is removed."""
    client.ask("POST", f"/v1/agents/{AGENT}/flush", {"passes": True, "timeout_ms": 60_000})
    deadline = time.monotonic() + IDLE_TIMEOUT_S
    while (data_dir / "work" / AGENT).exists():
        if time.monotonic() > deadline:
            raise RuntimeError("the agent does not come to rest")
        time.sleep(0.001)


def _measure(
    plan: Plan, client: KeepAlive, data_dir: Path, rounds: int, what: str, rest: Callable[[], None]
) -> Figure:
    said = iter(Writer(plan.seed).texts(rounds + WARM_UPS))
    path = f"/v1/agents/{AGENT}/remember"

    def remember() -> float:
        body = {"messages": [{"role": "user", "content": next(said).content}]}
        took_ms = client.ms("POST", path, body)
        rest()
        return took_ms

    with BareStore(plan.fresh("bare")) as bare:
        tasks = {
            "ours": remember,
            "bare commit": lambda: bare.commit_ms(bytes(300)),
            "request that does nothing": lambda: client.ms("GET", "/healthz"),
        }
        in_turns(WARM_UPS, tasks)
        took = in_turns(rounds, tasks)
    spreads = {name: Spread.of(samples) for name, samples in took.items()}
    bare_name, empty_name = list(tasks)[1:]
    both = Spread.of(map(sum, zip(took[bare_name], took[empty_name], strict=True)))
    times = spreads["ours"].p95 / both.p95
    figure = Figure("P4", f"remember acknowledged, REST, 1 message, {what}", "ms", spreads["ours"])
    figure.baselines = {name: spreads[name] for name in (bare_name, empty_name)} | {"both": both}
    figure.ratio = f"{times:.2f} × both at p95, {spreads['ours'].p50 / both.p50:.2f} × at p50"
    figure.claims = [at_most(times, TIMES, "× commit + request, p95")]
    figure.note = f"file system {file_system(data_dir)}"
    return figure
