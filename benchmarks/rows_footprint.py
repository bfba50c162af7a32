"""P9, P10 and P11: how fast agents and daemons open, and how much memory and disk they use.

Memory is the system's resident size (VmRSS). It includes pages of LMDB files that were read, although the system may
reclaim them at any time; the anonymous part is shown separately. Sizes on disk are pages in use. A store written in
bulk has fuller pages than one that has grown, so a store created by digests is measured too.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import lmdb

from benchmarks.clients import KeepAlive
from benchmarks.cold_open import cold_open_ms
from benchmarks.conversations import talk
from benchmarks.measuring import MB, Resident, Spread, in_turns, resident
from benchmarks.plan import AGENT, Plan
from benchmarks.processes import connected, running
from benchmarks.report import Figure, at_most
from benchmarks.rows_digest import digested_s
from benchmarks.stores import agent_name, copied, install, kept_fleet
from benchmarks.synthetic import SCALES
from ebbtide.store import layout

OPEN_MS = {"M": 50.0, "L": 500.0}
START_MS = 2000.0
FLEET = 10_000
OPEN_AGENTS = 1000

IDLE_MB = 120.0
AGENT_MB = {"M": 40.0, "XL": 1200.0}
DISK_BYTES = 2500.0

CALM_S = 0.5
"""Seconds without requests before a daemon is measured."""


# --- P9 ------------------------------------------------------------------------------------------------------


def opening(plan: Plan) -> list[Figure]:
    """P9: opening an agent, and starting a daemon that has many."""
    stores = {
        name: copied(plan.store(SCALES[name]), plan.work)
        for name in plan.scales
        if name != "S" or plan.is_quick
    }
    plan.tell("P9: cold")
    opens = {name: partial(cold_open_ms, path, "closed") for name, path in stores.items()}
    opens |= {
        f"{name}, after a kill": partial(cold_open_ms, stores[name], "killed")
        for name in ("M", "L")
        if name in stores
    }
    # The largest takes many seconds: it is no part of the turns, and not repeated as often.
    largest = {name: opens.pop(name) for name in ("XL",) if name in opens}
    found = in_turns(plan.times(9, 2), opens) | in_turns(2, largest)
    figures = []
    for name, took in found.items():
        figure = Figure("P9", f"agent opened cold, {name}", "ms", Spread.of(took))
        if name in OPEN_MS:
            figure.claims = [at_most(figure.ours.p50, OPEN_MS[name], "ms")]
        figure.note = "a new process each time, imports not counted, file in the page cache"
        figures.append(figure)
    return [*figures, _start(plan)]


def _start(plan: Plan) -> Figure:
    count = plan.times(FLEET, 50)
    plan.tell(f"P9: a fleet of {count} agents")
    fleet, nobody = kept_fleet(count, plan.store(SCALES["S"]), plan.kept), plan.fresh("nobody")
    starts = {"ours": lambda: _start_ms(fleet), "no agents": lambda: _start_ms(nobody)}
    took = {name: Spread.of(found) for name, found in in_turns(plan.times(7, 1), starts).items()}
    figure = Figure("P9", f"daemon start, {count} agents on disk", "ms", took["ours"])
    figure.baselines = {"no agents": took["no agents"]}
    figure.claims = [at_most(took["ours"].p50, START_MS, "ms", counts=count == FLEET)]
    figure.note = "from the start of the process to the first answer, imports included"
    return figure


def _start_ms(data_dir: Path) -> float:
    begun_s = time.perf_counter()
    with running(data_dir) as daemon, connected(daemon) as client:
        client.ask("GET", "/healthz")
        return (time.perf_counter() - begun_s) * 1000


# --- P10 -----------------------------------------------------------------------------------------------------


def memory(plan: Plan) -> list[Figure]:
    """P10: memory of the daemon, idle and with agents open."""
    plan.tell("P10")
    idle: list[Resident] = []
    figures = []
    for name in plan.scales if plan.is_quick else [name for name in plan.scales if name != "S"]:
        added: list[Resident] = []
        for _ in range(plan.times(3, 1) if name != "XL" else 1):
            before, after = _with_agent(plan, name)
            idle.append(before)
            added.append(_difference(after, before))
        figures.append(_memory_figure(f"daemon, + {name} agent open", added, AGENT_MB.get(name)))
    figures.insert(0, _memory_figure("daemon, idle", idle, IDLE_MB))
    return [*figures, _with_questions(plan), _many_open(plan)]


def _memory_figure(what: str, found: list[Resident], bound: float | None) -> Figure:
    figure = Figure("P10", what, "MB", Spread.of(each.whole for each in found))
    figure.beside["of this no pages of files"] = Spread.of(each.anonymous for each in found).p50
    if bound is not None:
        figure.claims = [at_most(figure.ours.p50, bound, "MB")]
    return figure


def _difference(after: Resident, before: Resident) -> Resident:
    return Resident(after.whole - before.whole, after.anonymous - before.anonymous)


def _with_agent(plan: Plan, name: str) -> tuple[Resident, Resident]:
    """Measure a daemon before and after it opened and queried one agent, without the shared embedder."""
    data_dir = plan.fresh("memory")
    install(plan.store(SCALES[name]), data_dir, AGENT)
    with running(data_dir, {"EMBEDDING__MODEL": "off"}) as daemon, connected(daemon) as client:
        client.ask("GET", "/healthz")
        before = _calm(daemon.process.pid)
        _open(client, AGENT)
        return before, _calm(daemon.process.pid)


def _with_questions(plan: Plan) -> Figure:
    """Measure the memory of the same daemon after it computed all vectors and answered a query with them."""
    scale = plan.scale_for("M")
    data_dir = plan.fresh("memory")
    install(plan.store(scale), data_dir, AGENT)
    with running(data_dir, {"EMBEDDING__MODEL": "builtin"}) as daemon, connected(daemon) as client:
        client.ask("GET", "/healthz")
        before = _calm(daemon.process.pid)
        while client.told("GET", f"/v1/agents/{AGENT}")["unembedded_messages"]:
            time.sleep(CALM_S)
        client.ask("POST", f"/v1/agents/{AGENT}/recall", {"query": "Who told me about the harbour?"})
        added = _difference(_calm(daemon.process.pid), before)
    return _memory_figure(
        f"daemon, + {scale.name} agent asked a question, with embedder and vectors", [added], None
    )


def _open(client: KeepAlive, agent_id: str) -> None:
    client.ask("POST", f"/v1/agents/{agent_id}/recall", {"depth": 1})


def _calm(process_id: int) -> Resident:
    time.sleep(CALM_S)
    return resident(process_id)


def _many_open(plan: Plan) -> Figure:
    """Measure many agents opened one after the other; every tenth has memories."""
    fleet = kept_fleet(plan.times(FLEET, 50), plan.store(SCALES["S"]), plan.kept)
    count = plan.times(OPEN_AGENTS, 20)
    plan.tell(f"P10: {count} agents open")
    with running(fleet, {"FLEET__MAX_OPEN_AGENTS": count}) as daemon, connected(daemon) as client:
        client.ask("GET", "/healthz")
        before = _calm(daemon.process.pid)
        # A tenth more than may be open: the cap must hold.
        for number in range(count + count // 10):
            _open(client, agent_name(number))
        told = client.told("GET", "/v1/scheduler")
        added = _difference(_calm(daemon.process.pid), before)
    each = Resident(added.whole / count, added.anonymous / count)
    figure = _memory_figure(f"each of {count} open agents, one in ten of 1 000 memories", [each], None)
    figure.claims = [at_most(told["open_agents"], told["max_open_agents"], "agents open")]
    figure.beside["MB for all"] = added.whole
    return figure


# --- P11 -----------------------------------------------------------------------------------------------------


def disk(plan: Plan) -> list[Figure]:
    """P11: bytes on disk for each memory."""
    plan.tell("P11")
    scale = plan.scale_for("M")
    bulk = _disk_figure(f"{scale.name}, written in bulk", plan.store(scale), scale.name == "M")
    data_dir = plan.fresh("grown")
    said = talk("English", plan.times(3000, 60), plan.seed)
    digested_s(data_dir, said)
    return [bulk, _disk_figure(f"grown by digests, {said.name}", data_dir / "agents" / AGENT, True)]


def _disk_figure(what: str, store: Path, counts: bool) -> Figure:
    used, count = _used_bytes(store)
    each = sum(used.values()) / count
    figure = Figure("P11", f"disk a memory, {what}", "bytes", Spread.of([each]))
    figure.claims = [at_most(each, DISK_BYTES, "bytes", counts=counts)]
    figure.beside = {
        f"{name}": size / count for name, size in sorted(used.items(), key=lambda item: -item[1])[:6]
    }
    figure.beside["whole file"] = (store / "data.mdb").stat().st_size / count
    figure.note = f"{count} memories, file of {(store / 'data.mdb').stat().st_size / MB:.1f} MB"
    return figure


def _used_bytes(path: Path) -> tuple[dict[str, int], int]:
    """Return the bytes of pages in use by table, and the number of nodes."""
    environment: Any = lmdb.open(str(path), max_dbs=len(layout.TABLES) + 16, readonly=True)
    try:
        used: dict[str, int] = {}
        with environment.begin() as txn:
            for name in [bytes(key) for key, _ in txn.cursor()]:
                stat = txn.stat(environment.open_db(name, txn=txn, create=False))
                pages = stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
                used[name.decode()] = pages * stat["psize"]
                if name == layout.NODES.name:
                    count = stat["entries"]
        return used, count
    finally:
        environment.close()
