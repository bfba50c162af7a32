"""The engine and a search over dictionaries answer the same queries in turns, and must give the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.baselines import PlainAnswer, PlainMemory
from benchmarks.measuring import settle_garbage, timed
from benchmarks.plan import Plan
from benchmarks.stores import copied, open_store
from ebbtide.changes import Change
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.memory.association import Answer
from ebbtide.parameters import AgentParameters
from ebbtide.records import Cue
from ebbtide.store.lmdb.transaction import ReadTransaction
from tests.support.oracle import Oracle, OracleLink, OracleNode, OracleParameters

Focus = tuple[int, ...]


class Disagreement(Exception):
    """Engine and baseline answered the same query differently: no figure means anything then."""


@contextmanager
def opened(store: Path, plan: Plan) -> Iterator[Workspace]:
    """Open the workspace of an agent that contains a copy of a kept store, without entities and cue starts."""
    place = open_store(copied(store, plan.work))
    try:
        yield Workspace(place, AgentParameters(focus_policy="nodes"))
    finally:
        place.close()


def attend(workspace: Workspace, focus: Focus) -> None:
    """Put nodes in focus, in memory only: what recall starts from."""
    workspace.network.apply(Change(focus=focus))


@dataclass(slots=True)
class Contest:
    """A comparison of both, with (nodes reached, ms) of each query for each of them."""

    workspace: Workspace
    plain: PlainMemory
    points: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: {"ours": [], "heapq": []})
    _asked_count: int = 0

    @classmethod
    def on(cls, workspace: Workspace) -> Contest:
        """Create a contest over the memory of an agent."""
        plain = workspace.store.read(lambda txn: PlainMemory.read(txn, workspace.parameters))
        settle_garbage()
        return cls(workspace, plain)

    def ask(self, focus: Focus, cue: Cue, *, times: int = 1, counts: bool = True) -> None:
        """Query both, the engine several times. The order alternates."""
        attend(self.workspace, focus)
        self._asked_count += 1
        took: dict[str, list[float]] = {"ours": [], "heapq": []}
        told: PlainAnswer | None = None
        for turn in ("heapq", "ours") if self._asked_count % 2 else ("ours", "heapq"):
            if turn == "heapq":
                told, took_ms = timed(lambda: self.plain.recall(focus, cue))
                took[turn].append(took_ms)
                continue
            for _ in range(times):
                (answer, _), took_ms = timed(lambda: self.workspace.recall(cue))
                took[turn].append(took_ms)
        assert told is not None, "both were asked"
        check_same(answer, told, focus, cue)
        if counts:
            for name, found in took.items():
                self.points[name] += [(told.reached_count, took_ms) for took_ms in found]

    def compare(self, focus: Focus, cue: Cue) -> None:
        """Query both without timing them."""
        attend(self.workspace, focus)
        check_same(self.workspace.recall(cue)[0], self.plain.recall(focus, cue), focus, cue)


def check_same(answer: Answer, plain: PlainAnswer, focus: Focus, cue: Cue) -> None:
    """Raise Disagreement unless both answers contain the same memories in the same order, and the same sentences."""
    ours = [node.content for _, node in answer.memories]
    theirs = [content for _, content in plain.memories]
    for place, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
        if mine != other:
            raise Disagreement(f"focus {focus}, {cue}: memory {place} is {mine!r}, by heapq {other!r}")
    if len(ours) != len(theirs):
        raise Disagreement(f"focus {focus}, {cue}: {len(ours)} memories, by heapq {len(theirs)}")
    if list(answer.loose_ends) != plain.once_known:
        raise Disagreement(f"focus {focus}, {cue}: {answer.loose_ends}, by heapq {plain.once_known}")


# --- the oracle ----------------------------------------------------------------------------------------------


def oracle_ms(store: Path, plan: Plan, cue: Cue) -> float:
    """Return the duration of one recall by the oracle. Raise Disagreement if the engine recalls other memories.

    It is the oracle of the first edition, which words links to forgotten memories differently.
    """
    with opened(store, plan) as workspace:
        oracle = workspace.store.read(oracle_of)
        answer, _ = workspace.recall(cue)
    told, took_ms = timed(lambda: oracle.recall([], [], cue.depth, cue.max_results))
    ours = [node.content for _, node in answer.memories]
    if ours != [oracle.nodes[node_id].content for node_id, _ in told.results]:
        raise Disagreement("the engine and the oracle recall different memories")
    return took_ms


def oracle_of(txn: ReadTransaction) -> Oracle:
    """Return the contents of a store as the oracle of the property tests."""
    oracle = Oracle(OracleParameters())
    for node in txn.nodes.all():
        oracle.nodes[node.id] = OracleNode(
            node.content, node.content, list(node.keywords), node.original_length
        )
    for node_id, scan in txn.scans.all():
        oracle.nodes[node_id].scan_count, oracle.nodes[node_id].last_scan_pass = scan.count, scan.last_pass
    for link in txn.links.all():
        key = (link.source, link.target, link.relation)
        oracle.link_records[key] = OracleLink(link.strength, link.anchor)
    oracle.focus = list(txn.meta.focus)
    return oracle
