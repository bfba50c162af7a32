"""P14: associative recall in a large memory with many entities, some of them named nearly everywhere.

The memory is the synthetic one of P1 with 30 000 entities. Their links follow Zipf's law: the most frequent entity has
16 000 memories. The common keywords name the most frequent entities, and thousands of texts contain them. Every query
starts from a different focus of five memories and five entities. The network is built in memory.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.measuring import Spread, settle_garbage, timed
from benchmarks.plan import Plan
from benchmarks.report import Figure, at_most
from benchmarks.synthetic import RELATIONS, Array, Graph, Topology, make_graph
from benchmarks.texts import NOWHERE, Writer, common_words, rare_words
from ebbtide.changes import Change
from ebbtide.entity_names import entity_key
from ebbtide.memory.association import recall
from ebbtide.memory.loading import load_network
from ebbtide.memory.network import Network
from ebbtide.parameters import AgentParameters
from ebbtide.records import Cue, Entity, LinkColumns, Node, ScanColumns

ENTITY_SHARE = 0.3
"""Entities per memory."""

TOP_SHARE = 0.16
"""Share of the memories that the most frequent entity has."""

FOCUS_SIZE = 5
FREQUENT = 100
"""One entity in focus is among this many most frequent ones."""

MOST_RESULTS = 100
WARM_UPS = 3

Keywords = tuple[str, ...]

CUES: dict[str, tuple[Sequence[Keywords], float | None]] = {
    "no keyword": (((),), 5.0),
    "a common keyword": ([(word,) for word in common_words()], 8.0),
    "two common keywords": (list(zip(common_words(), common_words()[1:], strict=False)), None),
    "a rare keyword": ([(word,) for word in rare_words()], None),
    "a keyword that matches nothing": (((NOWHERE,),), None),
}
"""Kinds of cue: the keywords that take turns, and the limit of p95 in ms."""


def recall_with_entities(plan: Plan) -> list[Figure]:
    """P14: two hops, by kind of cue."""
    scale = plan.scale_for("L")
    plan.tell(f"P14: {scale.name} with entities")
    graph = make_graph(scale, plan.seed)
    network, nodes = memory_with_entities(graph, plan.seed)
    queries = plan.times(150, 8)
    foci = list(_foci(network, graph, queries + WARM_UPS, plan.seed))
    settle_garbage()
    figures = []
    for kind, (cues, bound) in CUES.items():
        plan.tell(f"P14: {kind}")
        took: list[float] = []
        busy: list[float] = []
        for number, (memories, entities) in enumerate(foci):
            network.apply(Change(focus=memories, entity_focus=entities))
            cue = Cue(keywords=cues[number % len(cues)], depth=2, max_results=MOST_RESULTS)
            begun_s = time.process_time()
            _, took_ms = timed(lambda asked=cue: recall(network, asked, nodes.__getitem__, "auto"))  # type: ignore[misc]
            busy.append((time.process_time() - begun_s) * 1000)
            took.append(took_ms)
        figure = Figure(
            "P14", f"recall, {scale.name}, depth 2, entities, {kind}", "ms", Spread.of(took[WARM_UPS:])
        )
        processor = Spread.of(busy[WARM_UPS:])
        figure.beside = {
            "entities": len(network.entities),
            "processor time p50, ms": processor.p50,
            "processor time p95, ms": processor.p95,
        }
        if bound is not None:
            figure.claims = [at_most(figure.ours.p95, bound, "ms", what="p95", counts=scale.name == "L")]
        figures.append(figure)
    return figures


def memory_with_entities(graph: Graph, seed: int) -> tuple[Network, dict[int, Node]]:
    """Return the network of a graph with entities, and its memories by id."""
    dice = np.random.default_rng([seed, 14])
    texts = Writer(seed).texts(len(graph.ids))
    nodes = {
        node_id: Node(node_id, text.content, text.phrase, text.keywords, 0, len(text.content))
        for node_id, text in zip(graph.ids.tolist(), texts, strict=True)
    }
    first = graph.next_node_id
    names = _names(int(len(graph.ids) * ENTITY_SHARE))
    entities = [Entity(first + place, name, entity_key(name), 1) for place, name in enumerate(names)]
    own, memories = _mentions(dice, graph.ids, len(entities))
    ids = first + own
    counts = np.zeros(first + len(entities), dtype=np.int64)
    counts[graph.ids] = graph.scan_counts
    counts[first:] = dice.integers(0, 60, len(entities))
    both = dice.integers(1, len(RELATIONS), len(ids))
    sources = np.concatenate([graph.sources, ids, memories])
    anchors = counts[sources]
    anchors[: len(graph.sources)] = graph.anchors
    anchors[len(graph.sources) :] -= dice.integers(
        0, 1 + np.minimum(counts[sources[len(graph.sources) :]], 40)
    )
    columns = LinkColumns(
        sources,
        np.concatenate([graph.targets, memories, ids]),
        np.concatenate([graph.relations, both, both]),
        np.concatenate([graph.strengths, np.ones(2 * len(ids))]),
        anchors,
        list(RELATIONS),
    )
    known = np.flatnonzero(counts)
    scans = ScanColumns(known, counts[known], np.ones(len(known), dtype=np.int64), known < 0)
    network = load_network(
        AgentParameters(),
        nodes.values(),
        lambda fold: fold(nodes.values()),
        scans,
        columns,
        (),
        first + len(entities),
        entities,
    )
    return network, nodes


def _names(count: int) -> list[str]:
    """Return different names: the common words first, then rare names, then names that contain other words."""
    found = dict.fromkeys([*common_words(), *rare_words()])
    plain = Writer(0)
    words = [*dict.fromkeys([*plain.english.plain, *plain.chinese.plain])]
    for number in range(count):
        if len(found) >= count:
            break
        word = words[number % len(words)]
        found.setdefault(word if number < len(words) else f"{word} {number // len(words)}")
    return list(found)[:count]


def _mentions(dice: np.random.Generator, ids: Array, count: int) -> tuple[Array, Array]:
    """Return (place of the entity, memory) of each mention: by Zipf's law, each pair once."""
    top = int(len(ids) * TOP_SHARE)
    own, memories = [], []
    for place in range(count):
        degree = max(1, top // (place + 1))
        own.append(np.full(degree, place))
        memories.append(dice.choice(ids, degree, replace=False) if degree > 1 else dice.choice(ids, 1))
    return np.concatenate(own), np.concatenate(memories)


def _foci(
    network: Network, graph: Graph, count: int, seed: int
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield foci of typical memories and of entities, one of them frequent."""
    dice = random.Random(seed)
    entities = list(network.entities)
    for memories in Topology(graph).focus_sets(count, seed + 1):
        yield memories, (dice.choice(entities[:FREQUENT]), *dice.sample(entities[FREQUENT:], FOCUS_SIZE - 1))
