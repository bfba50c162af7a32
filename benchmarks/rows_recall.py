"""P1, P2 and P13: associative recall in the engine, compared with a best-first search over dictionaries.

Each query starts from a different focus of five typical nodes. Engine and baseline answer the same query one after
the other. Their answers must be the same, memory for memory and sentence for sentence (contest.py).
"""

from __future__ import annotations

import math
from itertools import cycle

from benchmarks.baselines import PlainMemory
from benchmarks.contest import Contest, attend, opened, oracle_ms
from benchmarks.measuring import Spread, settle_garbage, timed
from benchmarks.plan import Plan
from benchmarks.report import Figure, at_least, at_most
from benchmarks.stores import kept_graph
from benchmarks.synthetic import SCALES, Topology
from benchmarks.texts import NOWHERE, common_words, rare_words
from ebbtide.records import Cue

MOST_RESULTS = 100
EVERY_LARGE = 5
"""Every this many queries, also compare the answers with `LARGE_RESULTS`. Those queries are not timed."""

LARGE_RESULTS = 10_000
WARM_UPS = 2
HEAPQ_QUERIES = 30
"""The number of P13 queries that also run on the dictionaries."""

CUES: dict[str, tuple[str, ...]] = {
    "no keyword": (),
    "a common keyword": common_words(),
    "a keyword that matches nothing": (NOWHERE,),
    "a rare keyword": rare_words(),
}
"""Kinds of cue, and the words they take in turn."""


def recall_two_hops(plan: Plan) -> list[Figure]:
    """P1: two hops."""
    bounds = dict.fromkeys(("no keyword", "a common keyword"), 5.0)
    figures = _recall(plan, "P1", depth=2, bounds=bounds, faster=4.0, queries=plan.times(150, 8))
    small = plan.store(SCALES["S"])
    plan.tell("P1: the oracle")
    took_ms = oracle_ms(small, plan, Cue(depth=2, max_results=MOST_RESULTS))
    figures[0].note = f"the oracle of the property tests takes {took_ms:.0f} ms at S"
    return figures


def recall_four_hops(plan: Plan) -> list[Figure]:
    """P2: four hops, which reach nearly everything."""
    bounds = dict.fromkeys(CUES, 120.0) | {"a keyword that matches nothing": 150.0}
    queries, times = plan.times(20, 4), 3
    return _recall(plan, "P2", depth=4, bounds=bounds, faster=5.0, queries=queries, times=times)


def _recall(
    plan: Plan,
    row: str,
    *,
    depth: int,
    bounds: dict[str, float],
    faster: float,
    queries: int,
    times: int = 1,
) -> list[Figure]:
    """Return a figure for each kind of cue in `bounds` (ms at p95)."""
    scale = plan.scale_for("L")
    store = plan.store(scale)
    foci = Topology(kept_graph(store)).focus_sets(queries + WARM_UPS, plan.seed + 1)
    figures = []
    with opened(store, plan) as workspace:
        plan.tell(f"{row}: dictionaries")
        contest = Contest.on(workspace)
        for kind, bound in bounds.items():
            plan.tell(f"{row}: {kind}")
            contest.points = {"ours": [], "heapq": []}
            for number, (focus, word) in enumerate(zip(foci, cycle(CUES[kind] or ("",)), strict=False)):
                words = (word,) if word else ()
                cue = Cue(keywords=words, depth=depth, max_results=MOST_RESULTS)
                contest.ask(focus, cue, times=times, counts=number >= WARM_UPS)
                if number % EVERY_LARGE == 0:
                    contest.compare(focus, Cue(keywords=words, depth=depth, max_results=LARGE_RESULTS))
            figure = _figure(row, f"recall, {scale.name}, depth {depth}, {kind}", contest)
            if CUES[kind]:
                figure.points = {}  # drawn is what depends on reach alone
            ratio = figure.baselines["heapq"].p50 / figure.ours.p50
            figure.ratio = f"{ratio:.1f} times faster"
            counts = scale.name == "L"
            figure.claims = [
                at_most(figure.ours.p95, bound, "ms", what="p95", counts=counts),
                at_least(ratio, faster, "× heapq", counts=counts),
            ]
            figures.append(figure)
    return figures


def _figure(row: str, what: str, contest: Contest) -> Figure:
    """Return the figure of a contest, without heapq if it did not take part."""
    points = {name: found for name, found in contest.points.items() if found}
    spreads = {name: Spread.of(took_ms for _, took_ms in found) for name, found in points.items()}
    figure = Figure(row, what, "ms", spreads.pop("ours"), spreads, points=points)
    for name, found in points.items():
        reached = sum(count for count, _ in found)
        if name == "ours":
            figure.beside["nodes reached"] = reached / len(found)
        figure.beside[f"µs a node, {name}"] = sum(took_ms for _, took_ms in found) * 1000 / reached
    return figure


# --- growth --------------------------------------------------------------------------------------------------


def growth(plan: Plan) -> list[Figure]:
    """P13: how the latency of a recall grows with the number of nodes it reaches."""
    figures = [_at_scale(plan, name) for name in plan.scales]
    return [*figures, _slope(figures)] if len(figures) > 1 else figures


def _at_scale(plan: Plan, name: str) -> Figure:
    """Measure two hops at one scale. Then heapq answers some of the queries, if dictionaries fit in memory."""
    store = plan.store(SCALES[name])
    topology = Topology(kept_graph(store))
    foci = topology.focus_sets(plan.times(200, 20) + WARM_UPS, plan.seed + 2)
    cue = Cue(depth=2, max_results=MOST_RESULTS)
    ours: list[tuple[float, float]] = []
    plan.tell(f"P13: {name}")
    with opened(store, plan) as workspace:
        settle_garbage()
        for focus in foci:
            attend(workspace, focus)
            _, took_ms = timed(lambda: workspace.recall(cue))
            ours.append((topology.reach_count(focus, 2), took_ms))
        if name == "XL":
            contest = Contest(workspace, PlainMemory(0.0))
        else:
            contest = Contest.on(workspace)
            for number, focus in enumerate(foci[: HEAPQ_QUERIES + WARM_UPS]):
                contest.ask(focus, cue, counts=number >= WARM_UPS)
    contest.points["ours"] = ours[WARM_UPS:]
    figure = _figure("P13", f"recall, {name}, depth 2", contest)
    figure.beside["nodes in memory"] = SCALES[name].node_count
    return figure


def _slope(figures: list[Figure]) -> Figure:
    """Return the exponent by which p95 grows with the nodes reached; 1 is in proportion."""
    logs = [(math.log(f.beside["nodes reached"]), math.log(f.ours.p95)) for f in figures]
    middle_x, middle_y = (sum(values) / len(logs) for values in zip(*logs, strict=True))
    covered = sum((x - middle_x) ** 2 for x, _ in logs)
    slope = sum((x - middle_x) * (y - middle_y) for x, y in logs) / covered
    span = f"{figures[0].what.split(', ')[1]} to {figures[-1].what.split(', ')[1]}"
    figure = Figure("P13", f"growth of p95 with nodes reached, {span}", "exponent", Spread.of([slope]))
    figure.claims = [at_most(slope, 1.0, "")]
    return figure
