"""P6: one full compression pass over a large memory in which nothing has to be rewritten.

The pass visits every node, weighs its importance and counts its scan. It shortens and forgets none: `min_shrink` and
`delete_threshold` rule that out, and every node has a live link that points at it. The baseline is the cost of a pass
if current strengths were stored: it rewrites every link in LMDB, in one transaction, by deleting each and inserting
it weaker. A second baseline is the fastest possible way: with numpy, on an emptied table that is filled again in
order.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import lmdb
import numpy as np

from benchmarks.measuring import Spread, in_turns, settle_garbage, timed
from benchmarks.plan import Plan
from benchmarks.report import Figure, at_least, at_most
from benchmarks.stores import MAP_BYTES, copied, open_store
from benchmarks.synthetic import DECAY_RATE
from ebbtide.fleet.runtime.shared import STEP_BUDGET_S
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.parameters import AgentParameters
from ebbtide.store import layout

NOTHING_TO_REWRITE = AgentParameters(min_shrink=1.0, delete_threshold=0, long_term_factor=0.0)
"""`long_term_factor`: every node is due in every pass."""

MOST_MS = 300.0
TIMES = 10.0


def full_pass(plan: Plan) -> list[Figure]:
    """P6: one pass over everything."""
    scale = plan.scale_for("L")
    kept = plan.store(scale)
    store = open_store(copied(kept, plan.work))
    workspace = Workspace(store, NOTHING_TO_REWRITE)
    before = workspace.counts()
    settle_garbage()
    plan.tell("P6")
    rewritten, refilled = copied(kept, plan.work), copied(kept, plan.work)
    tasks = {
        "ours": lambda: pass_ms(workspace),
        "every link rewritten": lambda: timed(lambda: rewrite_links(rewritten))[1],
        "table filled anew": lambda: timed(lambda: refill_links(refilled))[1],
    }
    took = {name: Spread.of(found) for name, found in in_turns(plan.times(7, 2), tasks).items()}
    after = workspace.counts()
    store.close()
    assert (before.node_count, before.link_count) == (after.node_count, after.link_count), "nothing was lost"
    ours, plain, fast = took.values()
    figure = Figure("P6", f"full pass, nothing to rewrite, {scale.name}", "ms", ours)
    figure.baselines = {name: spread for name, spread in took.items() if name != "ours"}
    figure.ratio = f"{plain.p50 / ours.p50:.1f} times faster ({fast.p50 / ours.p50:.1f} than filling anew)"
    counts = scale.name == "L"
    figure.claims = [
        at_most(ours.p50, MOST_MS, "ms", counts=counts),
        at_least(plain.p50 / ours.p50, TIMES, "× rewriting", counts=counts),
    ]
    figure.beside = {"nodes": after.node_count, "links": after.link_count}
    return [figure]


def pass_ms(workspace: Workspace) -> float:
    """Return the duration of one pass, with its commits."""
    workspace.passes.owe(1)
    passes = workspace.store.read(lambda txn: txn.meta.finished_passes)

    def run() -> None:
        while not (step := workspace.passes.compress((), _time_of_a_step())).is_idle:
            assert not step.tasks, "nothing has to be shortened"

    _, took_ms = timed(run)
    assert workspace.store.read(lambda txn: txn.meta.finished_passes) == passes + 1
    return took_ms


def _time_of_a_step() -> Callable[[], bool]:
    """Report when a step has used the time that the daemon grants it."""
    end_s = perf_counter() + STEP_BUDGET_S
    return lambda: perf_counter() >= end_s


def _opened(path: Path) -> tuple[Any, Any]:
    environment = lmdb.open(str(path), map_size=MAP_BYTES, max_dbs=len(layout.TABLES) + 16)
    return environment, environment.open_db(layout.LINKS.name, create=False)


def rewrite_links(path: Path) -> None:
    """Weaken each link at its place."""
    environment, table = _opened(path)
    count = 0
    with environment.begin(write=True) as txn:
        cursor = txn.cursor(db=table)
        # Read beforehand: a cursor that writes loses its position.
        for key in list(cursor.iternext_nodup()):
            cursor.set_key(key)
            for value in list(cursor.iternext_dup()):
                target, relation, strength, anchor = layout.from_link_value(value)
                cursor.set_key_dup(key, value)
                cursor.delete()
                cursor.put(key, layout.link_value(target, relation, strength * DECAY_RATE, anchor))
                count += 1
        assert count == txn.stat(table)["entries"], "every link was rewritten"
    environment.close()


def refill_links(path: Path) -> None:
    """Weaken all links at once and write the whole table in order."""
    environment, table = _opened(path)
    with environment.begin(write=True) as txn:
        cursor = txn.cursor(db=table)
        keys, values = [], []
        for key, value in cursor:
            keys.append(key)
            values.append(value)
        fields = [("end", "V12"), ("strength", ">f8"), ("anchor", ">u4")]
        links = np.frombuffer(b"".join(values), fields).copy()
        links["strength"] *= DECAY_RATE
        txn.drop(table, delete=False)
        weaker = links.view(f"V{layout.LINK_SIZE}").tolist()
        txn.cursor(db=table).putmulti(zip(keys, weaker, strict=True), append=True)
    environment.close()
