"""Engine and oracle on arbitrary graphs, including ones that histories almost never reach.

Nodes, links of any strength, focus and scan counts are put directly into both. Then both recall, compress and recall
again. Sums are at the edge of 1, paths tie, and links dangle in every order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from hypothesis import example, given
from hypothesis import strategies as st

from ebbtide.parameters import AgentParameters
from ebbtide.records import Entity, Link, Node, ScanState
from tests.property import histories
from tests.property.lockstep import (
    PureEngine,
    assert_same_memory,
    assert_same_recall,
    memory_or_mention,
    names_as_mapping,
    names_by_rule,
    oracle_compresses,
    oracle_for,
    oracle_remembers,
)
from tests.support.second_edition.oracle import SecondEdition
from tests.support.second_edition.records import Entity as OracleEntity
from tests.support.second_edition.records import Link as OracleLink
from tests.support.second_edition.records import Memory

STRENGTHS = [
    1.0,
    0.5,
    0.25,
    0.7,
    0.1,
    0.2,
    1 / 3,
    2 / 3,
    0.01,
    0.0099,
    0.0,
    1 - 5e-10,
    1 - 2e-9,
    0.9,
    0.3,
    0.6,
]
PASSES_BEFORE = 9
MOST_NODES = 8


@dataclass(frozen=True)
class Graph:
    """A memory as plain values. Entities follow the memories; higher ids are forgotten memories."""

    contents: list[str]
    scans: list[tuple[int, int]]
    links: dict[tuple[int, int, str], tuple[float, int]]
    focus: list[int]
    entities: tuple[str, ...] = ()
    entity_focus: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """The number of living nodes."""
        return len(self.contents) + len(self.entities)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    count = draw(st.integers(1, MOST_NODES))
    texts = st.one_of(histories.contents, st.sampled_from(["tea " * 10, "猫" * 20, "abc"]))
    contents = draw(st.lists(texts, min_size=count, max_size=count))
    scanned = st.integers(0, PASSES_BEFORE).flatmap(
        lambda k: st.tuples(st.just(k), st.integers(k, PASSES_BEFORE) if k else st.just(0))
    )
    entities = draw(st.lists(st.sampled_from(["tea", "猫猫", "tea house"]), max_size=3, unique=True))
    memories, count = count, count + len(entities)
    scans = draw(st.lists(scanned, min_size=count, max_size=count))
    ends = st.tuples(st.integers(1, count), st.integers(1, count + 3), st.sampled_from(histories.NAMES))
    strengths = st.one_of(st.sampled_from(STRENGTHS), st.floats(0, 1, allow_subnormal=False))
    drawn = draw(
        st.dictionaries(
            ends.filter(
                lambda end: end[0] != end[1] and not memories < min(end[:2]) <= max(end[:2]) <= count
            ),
            st.tuples(strengths, st.integers(0, 3)),
            max_size=24,
        )
    )
    links = {key: (strength, max(0, scans[key[0] - 1][0] - age)) for key, (strength, age) in drawn.items()}
    focus = draw(st.lists(st.integers(1, memories), max_size=3, unique=True))
    entity_ids = list(range(memories + 1, count + 1))
    entity_focus = draw(st.lists(st.sampled_from(entity_ids), max_size=2, unique=True)) if entity_ids else []
    return Graph(contents, scans, links, focus, tuple(entities), tuple(entity_focus))


def engine_of(graph: Graph, parameters: AgentParameters) -> PureEngine:
    """Return an engine with this graph."""
    engine = PureEngine(parameters)
    ground = engine.ground
    for node_id, content in enumerate(graph.contents, start=1):
        ground.nodes[node_id] = Node(node_id, content, "", (content[:3],), 0, len(content))
    for node_id, name in enumerate(graph.entities, start=len(graph.contents) + 1):
        ground.entities[node_id] = Entity(node_id, name, name, 1)
    ground.scans = {node_id: ScanState(*scan) for node_id, scan in enumerate(graph.scans, start=1)}
    for (source, target, relation), (strength, anchor) in graph.links.items():
        ground.links[source, target, relation] = Link(source, target, relation, strength, anchor)
    ground.focus, ground.finished = tuple(graph.focus), PASSES_BEFORE
    ground.entity_focus, ground.next_node_id = graph.entity_focus, graph.count + 4
    engine.reopen()
    return engine


def oracle_of(graph: Graph, parameters: AgentParameters) -> SecondEdition:
    """Return an oracle with this graph."""
    oracle = oracle_for(parameters)
    for node_id, content in enumerate(graph.contents, start=1):
        count, last_pass = graph.scans[node_id - 1]
        oracle.memories[node_id] = Memory(
            content, content, [content[:3]], len(content), scan_count=count, last_scan_pass=last_pass
        )
    for node_id, name in enumerate(graph.entities, start=len(graph.contents) + 1):
        oracle.entities[node_id] = OracleEntity(name, name, 1, *graph.scans[node_id - 1])
    for key, written in graph.links.items():
        oracle.put_link(key, 0.0)
        oracle.links[key] = OracleLink(*written)
    oracle.memory_focus, oracle.pass_number = list(graph.focus), PASSES_BEFORE
    oracle.entity_focus, oracle.next_id = list(graph.entity_focus), graph.count + 4
    return oracle


NEVER = (0, 0)


@histories.examples(500)
@given(
    graph=graphs(),
    changes=histories.starting_changes(),
    cues=st.lists(histories.cues, min_size=1, max_size=3),
    passes=st.integers(1, 4),
    batch=histories.segments,
)
@example(  # 0.1 + 0.2 + 0.7 is a hair below 1, and counts as 1: the short memory lives.
    graph=Graph(
        ["abc"] * 4,
        [NEVER] * 4,
        {(2, 1, ""): (0.1, 0), (3, 1, ""): (0.2, 0), (4, 1, ""): (0.7 - 2e-10, 0)},
        [],
    ),
    changes={},
    cues=[],
    passes=1,
    batch=[],
)
@example(  # 0.29 x 100 characters is 28.999999999999996 in binary, and counts as 29.
    graph=Graph(["x" * 100, "y" * 9], [NEVER] * 2, {(2, 1, ""): (0.29, 0), (1, 2, ""): (1.0, 0)}, []),
    changes={},
    cues=[],
    passes=1,
    batch=[],
)
def test_any_graph_is_recalled_and_compressed_alike(
    graph: Graph, changes: dict, cues: list[dict], passes: int, batch: list
) -> None:
    """On any graph, both recall the same; a pass and a batch have the same result."""
    parameters = histories.unbounded(AgentParameters(), **changes)
    engine, oracle = engine_of(graph, parameters), oracle_of(graph, parameters)

    def compare() -> None:
        ground = engine.ground
        assert_same_memory(engine.network, ground.nodes, (ground.finished, ground.owed), oracle)
        for cue in cues:
            assert_same_recall(engine.recall, parameters.locale, cue, oracle)

    compare()
    for number in range(passes):
        engine.compress(histories.shorten, Random(number), frozenset({number}))
        oracle_compresses(oracle, histories.shorten, Random(number))
        compare()
    names = names_by_rule(["", "friend of", "next"])
    limit = parameters.focus_limit
    told = [memory_or_mention(content, keywords, "statement") for content, keywords in batch]
    engine.digest(told, names_as_mapping(names, len(batch), limit), Random(9))
    oracle_remembers(oracle, batch, names, Random(9))
    compare()


@histories.examples(300)
@given(graph=graphs(), cues=st.lists(histories.cues, min_size=1, max_size=4), limit=st.floats(0, 1))
def test_ties_on_any_graph(graph: Graph, cues: list[dict], limit: float) -> None:
    """Among equally strong paths, the newest focus and the newest node come first in both."""
    flat = {
        key: (1.0 if strength > limit else 0.5, anchor) for key, (strength, anchor) in graph.links.items()
    }
    graph = replace(
        graph, scans=[(0, 0)] * graph.count, links={key: (strength, 0) for key, (strength, _) in flat.items()}
    )
    parameters = AgentParameters()
    engine, oracle = engine_of(graph, parameters), oracle_of(graph, parameters)
    for cue in cues:
        assert_same_recall(engine.recall, "auto", cue, oracle)
        assert_same_recall(engine.recall, "auto", {**cue, "keywords": [], "max_results": 0}, oracle)
