"""P1, P2 and P13: associative recall in the engine, beside a best-first search over dictionaries.

Each query starts from another focus of five typical nodes. Engine and baseline answer the same query one after
the other, and what they answer must be the same, memory for memory and sentence for sentence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

from benchmarks.baselines import PlainAnswer, PlainMemory
from benchmarks.measuring import Spread, in_turns, settle_garbage, timed
from benchmarks.plan import Plan
from benchmarks.report import Figure, at_least, at_most
from benchmarks.stores import copied, kept_graph, open_store
from benchmarks.synthetic import SCALES, Topology
from benchmarks.texts import NOWHERE, common_words, rare_words
from ebbtide.fleet.workspace import Workspace
from ebbtide.memory.association import Answer
from ebbtide.parameters import AgentParameters
from ebbtide.store.port import ReadTransaction
from ebbtide.vocabulary import Change, Cue
from tests.support.oracle import Oracle, OracleLink, OracleNode, OracleParameters

MOST_RESULTS = 100
EVERY_LARGE = 5
"""Every so many queries are compared with `LARGE_RESULTS` too; those are not timed."""

LARGE_RESULTS = 10_000
WARM_UPS = 2
HEAPQ_QUERIES = 30
"""How many queries of P13 are asked of the dictionaries too."""


CUES: dict[str, tuple[str, ...]] = {
    "no keyword": (),
    "a common keyword": common_words(),
    "a keyword that matches nothing": (NOWHERE,),
    "a rare keyword": rare_words(),
}
"""Kinds of cue, and the words they take in turn."""


Points = dict[str, list[tuple[float, float]]]
"""(nodes reached, ms) of each query, by who answered."""


class Disagreement(Exception):
    """Engine and baseline answered the same query differently: no figure means anything then."""


@contextmanager
def opened(store: Path, plan: Plan) -> Iterator[Workspace]:
    """The workspace of an agent that holds a copy of a kept store."""
    place = open_store(copied(store, plan.work))
    try:
        yield Workspace(place, AgentParameters())
    finally:
        place.close()


def attend(workspace: Workspace, focus: tuple[int, ...]) -> None:
    """Put nodes in focus, in memory only: what recall starts from."""
    workspace.network.apply(Change(focus=focus))


def recall_two_hops(plan: Plan) -> list[Figure]:
    """P1: two hops."""
    kinds = ("no keyword", "a common keyword")
    bounds = dict.fromkeys(kinds, 5.0)
    figures = _recall(plan, "P1", depth=2, bounds=bounds, faster=4.0, queries=plan.times(150, 8))
    figures[0].note = f"the oracle of the property tests takes {_oracle_ms(plan):.0f} ms at S"
    return figures


def recall_four_hops(plan: Plan) -> list[Figure]:
    """P2: four hops, which reach nearly everything."""
    bounds = dict.fromkeys(CUES, 120.0) | {"a keyword that matches nothing": 150.0}
    return _recall(plan, "P2", depth=4, bounds=bounds, faster=5.0, queries=plan.times(30, 4))


def _recall(
    plan: Plan, row: str, *, depth: int, bounds: dict[str, float], faster: float, queries: int
) -> list[Figure]:
    scale = plan.scale_for("L")
    store = plan.store(scale)
    foci = Topology(kept_graph(store)).focus_sets(queries + WARM_UPS, plan.seed + 1)
    figures = []
    with opened(store, plan) as workspace:
        plan.tell(f"{row}: dictionaries")
        plain = workspace.store.read(lambda txn: PlainMemory.read(txn, workspace.parameters))
        settle_garbage()
        for kind, bound in bounds.items():
            plan.tell(f"{row}: {kind}")
            points = _compare(workspace, plain, foci, depth, CUES[kind])
            figure = _figure(points)
            # Drawn is what depends on reach alone.
            figure.points = {} if CUES[kind] else points
            figure.row, figure.what = row, f"recall, {scale.name}, depth {depth}, {kind}"
            counts = scale.name == "L"
            ratio = figure.baselines["heapq"].p50 / figure.ours.p50
            figure.ratio = f"{ratio:.1f} times faster"
            figure.claims = [
                at_most(figure.ours.p95, bound, "ms", what="p95", counts=counts),
                at_least(ratio, faster, "× heapq", counts=counts),
            ]
            figures.append(figure)
    return figures


def _compare(
    workspace: Workspace, plain: PlainMemory, foci: list[tuple[int, ...]], depth: int, words: tuple[str, ...]
) -> Points:
    """Both answer the same queries: for each how many nodes were reached, and how long it took."""
    points: Points = {"ours": [], "heapq": []}
    for number, (focus, word) in enumerate(zip(foci, cycle(words or ("",)), strict=False)):
        attend(workspace, focus)
        cue = Cue(keywords=(word,) if word else (), depth=depth, max_results=MOST_RESULTS)
        told: dict[str, Answer | PlainAnswer] = {}

        def ours(cue: Cue = cue, told: dict[str, Answer | PlainAnswer] = told) -> float:
            (told["ours"], _), took_ms = timed(lambda: workspace.recall(cue))
            return took_ms

        def heapq(
            cue: Cue = cue, focus: tuple[int, ...] = focus, told: dict[str, Answer | PlainAnswer] = told
        ) -> float:
            told["heapq"], took_ms = timed(lambda: plain.recall(focus, cue))
            return took_ms

        took = in_turns(1, {"ours": ours, "heapq": heapq} if number % 2 else {"heapq": heapq, "ours": ours})
        check_same(told["ours"], told["heapq"], focus, cue)
        if number % EVERY_LARGE == 0:
            large = Cue(keywords=cue.keywords, depth=depth, max_results=LARGE_RESULTS)
            check_same(workspace.recall(large)[0], plain.recall(focus, large), focus, large)
        if number >= WARM_UPS:
            reached_count = told["heapq"].reached_count
            for name, [took_ms] in took.items():
                points[name].append((reached_count, took_ms))
    return points


def _figure(points: Points) -> Figure:
    reached = sum(count for count, _ in points["ours"])
    spreads = {name: Spread.of(took for _, took in of) for name, of in points.items()}
    figure = Figure("", "", "ms", spreads["ours"], {"heapq": spreads["heapq"]})
    figure.beside["nodes reached"] = reached / len(points["ours"])
    for name, of in points.items():
        figure.beside[f"µs a node, {name}"] = sum(took for _, took in of) * 1000 / reached
    return figure


def _oracle_ms(plan: Plan) -> float:
    """How long the oracle of the property tests takes for one recall of a small memory; its answer is compared too."""
    store = plan.store(SCALES["S"])
    plan.tell("P1: the oracle")
    with opened(store, plan) as workspace:
        oracle = workspace.store.read(oracle_of)
        answer, _ = workspace.recall(Cue(depth=2, max_results=MOST_RESULTS))
    told, took_ms = timed(lambda: oracle.recall([], [], 2, MOST_RESULTS))
    ours = [content for _, content in answer.memories]
    if ours != [oracle.nodes[node_id].content for node_id, _ in told.results]:
        raise Disagreement("the engine and the oracle recall different memories")
    if not told.text.endswith("\n---\n".join(answer.once_known)):
        raise Disagreement("the engine and the oracle tell different things of what was forgotten")
    return took_ms


def oracle_of(txn: ReadTransaction) -> Oracle:
    """What a store holds as the oracle of the property tests."""
    oracle = Oracle(OracleParameters())
    for node in txn.nodes():
        oracle.nodes[node.id] = OracleNode(
            node.content, node.content, list(node.keywords), node.original_length
        )
    for node_id, scan in txn.scans():
        oracle.nodes[node_id].scan_count, oracle.nodes[node_id].last_scan_pass = scan.count, scan.last_pass
    for link in txn.links():
        key = (link.source, link.target, link.relation)
        oracle.link_records[key] = OracleLink(link.strength, link.anchor)
    oracle.focus = list(txn.focus())
    return oracle


def check_same(answer: Answer, plain: PlainAnswer, focus: tuple[int, ...], cue: Cue) -> None:
    """Disagreement unless both answers hold the same memories in the same order, and the same sentences."""
    ours, theirs = [content for _, content in answer.memories], [content for _, content in plain.memories]
    for place, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
        if mine != other:
            raise Disagreement(f"focus {focus}, {cue}: memory {place} is {mine!r}, by heapq {other!r}")
    if len(ours) != len(theirs):
        raise Disagreement(f"focus {focus}, {cue}: {len(ours)} memories, by heapq {len(theirs)}")
    if list(answer.once_known) != plain.once_known:
        raise Disagreement(f"focus {focus}, {cue}: {answer.once_known}, by heapq {plain.once_known}")


# --- growth --------------------------------------------------------------------------------------------------


def growth(plan: Plan) -> list[Figure]:
    """P13: how the time of a recall grows with what it reaches."""
    figures = [_at_scale(plan, name) for name in plan.scales]
    return [*figures, _slope(figures)] if len(figures) > 1 else figures


def _at_scale(plan: Plan, name: str) -> Figure:
    """Two hops at one scale; heapq answers some of the same queries afterwards, where dictionaries can hold it."""
    store = plan.store(SCALES[name])
    topology = Topology(kept_graph(store))
    foci = topology.focus_sets(plan.times(200, 20) + WARM_UPS, plan.seed + 2)
    cue = Cue(depth=2, max_results=MOST_RESULTS)
    points: Points = {"ours": []}
    plan.tell(f"P13: {name}")
    with opened(store, plan) as workspace:
        settle_garbage()
        for focus in foci:
            attend(workspace, focus)
            _, took_ms = timed(lambda: workspace.recall(cue))
            points["ours"].append((topology.reach_count(focus, 2), took_ms))
        if name != "XL":
            plain = workspace.store.read(lambda txn: PlainMemory.read(txn, workspace.parameters))
            settle_garbage()
            points["heapq"] = []
            for focus in foci[: HEAPQ_QUERIES + WARM_UPS]:
                told, took_ms = timed(lambda focus=focus: plain.recall(focus, cue))
                points["heapq"].append((told.reached_count, took_ms))
    points = {who: found[WARM_UPS:] for who, found in points.items()}
    spreads = {who: Spread.of(took_ms for _, took_ms in found) for who, found in points.items()}
    figure = Figure("P13", f"recall, {name}, depth 2", "ms", spreads.pop("ours"), spreads)
    figure.beside["nodes in memory"] = SCALES[name].node_count
    figure.beside["nodes reached"] = sum(count for count, _ in points["ours"]) / len(points["ours"])
    figure.points = points
    return figure


def _slope(figures: list[Figure]) -> Figure:
    """The exponent by which p95 grows with the nodes reached: 1 is in proportion."""
    logs = [(math.log(f.beside["nodes reached"]), math.log(f.ours.p95)) for f in figures]
    middle_x, middle_y = (sum(values) / len(logs) for values in zip(*logs, strict=True))
    covered = sum((x - middle_x) ** 2 for x, _ in logs)
    slope = sum((x - middle_x) * (y - middle_y) for x, y in logs) / covered
    span = f"{figures[0].what.split(', ')[1]} to {figures[-1].what.split(', ')[1]}"
    figure = Figure("P13", f"growth of p95 with nodes reached, {span}", "exponent", Spread.of([slope]))
    figure.claims = [at_most(slope, 1.0, "")]
    return figure
