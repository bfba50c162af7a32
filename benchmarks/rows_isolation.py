"""P12 and P16: how much the load on one agent slows down another.

Agent B receives requests over REST, a few milliseconds apart, while agent A is idle, and while A digests and
compresses continuously: its inbox is never empty, and it always owes passes. Quiet and busy periods take turns in one
daemon process, whose event loop is watched from within. The report shows A's work next to B's latencies.

P16 is the same while the history of A is read and forecasts of it are computed, one after the other each.

In a third kind of period A is idle, and a process unrelated to the daemon works as hard, next to the feeder's share
of it. The effect on B then comes from the machine, and no daemon can do better.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.clients import KeepAlive
from benchmarks.feeder import feeding
from benchmarks.measuring import Spread, in_turns
from benchmarks.plan import Plan
from benchmarks.processes import connected, running
from benchmarks.report import Figure, at_most
from benchmarks.stores import install
from benchmarks.texts import common_words
from benchmarks.watched_daemon import MODULE, read_lags

BUSY, QUIET = "agent-a", "agent-b"
PAUSE_S = 0.004
TIMES, LEAST_MS = 2.0, 10.0
"""The busy p99 may be this many times the quiet one, or this many ms, whichever is larger."""


@dataclass(slots=True)
class Spells:
    """The measurements of all periods of one kind."""

    took_ms: list[float] = field(default_factory=list)
    moments_s: list[tuple[float, float]] = field(default_factory=list)


def isolation(plan: Plan) -> list[Figure]:
    """P12: recall of one agent during another agent's work."""
    name, data_dir = _installed(plan, "isolation")
    plan.tell("P12")
    with running(data_dir, module=MODULE) as daemon, connected(daemon) as asker, connected(daemon) as control:
        # Batches bring passes faster than these can be done; none of them is to be merged or refused.
        control.ask("PATCH", f"/v1/agents/{BUSY}", {"max_owed_passes": 100_000})
        before = _work_done(control)
        spells = _spells(plan, asker, lambda: _flat_out(daemon.url, control, plan.seed))
        done = {what: count - before[what] for what, count in _work_done(control).items()}
    took = _took(spells)
    lags = {
        what: Spread.of(lag for begin, end in spell.moments_s for lag in read_lags(data_dir, begin, end))
        for what, spell in spells.items()
    }
    bound = max(TIMES * took["quiet"].p99, LEAST_MS)
    figure = Figure("P12", f"recall of B while A digests and compresses, {name}", "ms", took["busy"])
    figure.baselines = {"A rests": took["quiet"], "A rests, another process works": took["elsewhere"]}
    figure.ratio = (
        f"{took['busy'].p99 / took['quiet'].p99:.2f} × at p99 (p99 quiet {took['quiet'].p99:.2f} ms, "
        f"beside another process {took['elsewhere'].p99:.2f} ms)"
    )
    figure.claims = [at_most(took["busy"].p99, round(bound, 2), "ms", what="p99")]
    figure.beside = {f"A: {what}": count for what, count in done.items()}
    loop = Figure("P12", "lag of the event loop meanwhile", "ms", lags["busy"], {"A rests": lags["quiet"]})
    loop.note = f"p99 quiet {lags['quiet'].p99:.2f} ms, longest busy {lags['busy'].most:.1f} ms"
    return [figure, loop]


def long_reads(plan: Plan) -> list[Figure]:
    """P16: recall of one agent while the history of another is read and its future is computed."""
    name, data_dir = _installed(plan, "long-reads")
    plan.tell("P16")
    reads = {
        "histories": ("GET", f"/v1/agents/{BUSY}/history?page_size=200000"),
        "forecasts": ("POST", f"/v1/agents/{BUSY}/forecast"),
    }
    took, counts = spells_while(plan, data_dir, reads)
    bound = max(TIMES * took["quiet"].p95, LEAST_MS)
    figure = Figure("P16", f"recall of B while A's history is read and forecast, {name}", "ms", took["busy"])
    figure.baselines = {"A rests": took["quiet"], "A rests, another process works": took["elsewhere"]}
    quiet, busy = took["quiet"], took["busy"]
    figure.ratio = f"{busy.p95 / quiet.p95:.2f} × at p95, {busy.p50 / quiet.p50:.2f} × at p50"
    figure.claims = [at_most(took["busy"].p95, round(bound, 2), "ms", what="p95")]
    figure.beside = {f"A: {what}": count for what, count in counts.items()}
    return [figure]


def spells_while(
    plan: Plan, data_dir: Path, requests: Mapping[str, tuple[str, str]]
) -> tuple[dict[str, Spread], dict[str, int]]:
    """Measure recalls of B while each of these requests about A is repeated. Return the latencies, and the requests."""
    counts = dict.fromkeys(requests, 0)

    @contextmanager
    def at_work() -> Iterator[None]:
        with ExitStack() as stack:
            for what, request in requests.items():
                stack.enter_context(_repeating(connected(daemon), *request, partial(_count, counts, what)))
            yield

    with running(data_dir, module=MODULE) as daemon, connected(daemon) as asker:
        asker.ask("GET", f"/v1/agents/{BUSY}/history")  # opens A
        return _took(_spells(plan, asker, at_work)), counts


def _count(counts: dict[str, int], what: str) -> None:
    counts[what] += 1


def _installed(plan: Plan, folder: str) -> tuple[str, Path]:
    """Return the name of the scale, and a data directory with both agents."""
    scale = plan.scale_for("M")
    store = plan.store(scale)
    data_dir = plan.fresh(folder)
    for agent_id in (BUSY, QUIET):
        install(store, data_dir, agent_id)
    return scale.name, data_dir


def _spells(
    plan: Plan, asker: KeepAlive, at_work: Callable[[], AbstractContextManager[None]]
) -> dict[str, Spells]:
    """Measure B in turns: while A rests, while it is at work, and while another process works."""
    meanwhile: dict[str, Callable[[], AbstractContextManager[None]]] = {
        "quiet": nullcontext,
        "busy": at_work,
        "elsewhere": _working_elsewhere,
    }
    spells = {name: Spells() for name in meanwhile}
    seconds = plan.times(8, 1)

    def spell(name: str) -> float:
        with meanwhile[name]():
            _ask_for(asker, seconds, spells[name])
        return 0.0

    _ask_for(asker, 0.5, Spells())
    in_turns(plan.times(4, 1), {name: partial(spell, name) for name in spells})
    return spells


def _took(spells: dict[str, Spells]) -> dict[str, Spread]:
    return {name: Spread.of(spell.took_ms) for name, spell in spells.items()}


@contextmanager
def _repeating(
    connection: AbstractContextManager[KeepAlive], method: str, path: str, note: Callable[[], None]
) -> Iterator[None]:
    """Send a request again and again for the length of the block, and note each response."""
    is_over = threading.Event()

    def repeat() -> None:
        with connection as client:
            while not is_over.is_set():
                client.ask(method, path, {} if method == "POST" else None)
                note()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _ask_for(client: KeepAlive, seconds: float, spells: Spells) -> None:
    """Send requests to B for some time, and note each latency."""
    words = itertools.cycle(common_words())
    begun_s = time.monotonic()
    while (now_s := time.monotonic()) < begun_s + seconds:
        body = {"keywords": [next(words)], "depth": 2}
        spells.took_ms.append(client.ms("POST", f"/v1/agents/{QUIET}/recall", body))
        time.sleep(PAUSE_S)
    spells.moments_s.append((begun_s, now_s))


@contextmanager
def _working_elsewhere() -> Iterator[None]:
    """Keep one core busy with a process of its own for the length of the block."""
    work = subprocess.Popen([sys.executable, "-c", "while True: sum(range(10_000))"])
    try:
        yield
    finally:
        work.kill()
        work.wait()


def _work_done(client: KeepAlive) -> dict[str, float]:
    """Return A's totals since its creation, and its number of memories."""
    told = client.told("GET", f"/v1/agents/{BUSY}")
    return {
        "messages accepted": told["counts"]["messages"],
        "passes finished": told["finished_passes"],
        "memories more": told["counts"]["nodes"],
    }


@contextmanager
def _flat_out(url: str, control: KeepAlive, seed: int) -> Iterator[None]:
    """Keep A busy for the length of the block, then close it."""
    # Opens A beforehand: this benchmark does not measure the effect of opening.
    control.ask("POST", f"/v1/agents/{BUSY}/compress", {"passes": 1})
    try:
        with feeding(url, BUSY, seed):
            yield
    finally:
        control.ask("POST", f"/v1/agents/{BUSY}/close", {})
