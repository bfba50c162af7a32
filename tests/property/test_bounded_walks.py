"""Bounded walks in networks of some hundred nodes: they find the same as walks through everything in reach."""

from __future__ import annotations

import numpy as np
import pytest

from ebbtide.memory import association, texts
from ebbtide.memory import walk as walks
from ebbtide.memory.association import Answer, recall
from ebbtide.memory.loading import load_network
from ebbtide.memory.network import Network
from ebbtide.memory.walk import Follow, strengths, walk
from ebbtide.parameters import AgentParameters
from ebbtide.records import Cue, Entity, LinkColumns, Node, ScanColumns

WORDS = ("tea", "house", "猫", "boat", "rain", "rainy", "lamp", "苹果")
KEYWORDS = ((), ("tea",), ("lamp",), ("rain", "boat"), ("tea", "tea house"), ("zebra",), ("", "苹果"))
RELATIONS = ["", "next", "friend", "同事", "about", "belongs to"]
MEMORIES, LOST = 400, 12
FREQUENCIES = (0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.03, 0.02)
STRENGTHS = (1.0, 0.5, 0.25, 0.7, 0.3)
NEARLY_EQUAL = (1.0, 1.0, 1 - 3e-13, 1 - 4e-12, 1 - 9e-12, 1 - 1.6e-11)
"""Factors that leave 12 significant digits equal, or nearly so."""


def _network(seed: int) -> tuple[Network, dict[int, Node]]:
    """Return a network with equal and nearly equal strengths, a wide entity, and loose ends; and its memories."""
    dice = np.random.default_rng(seed)
    nodes = {}
    for node_id in range(1, MEMORIES + 1):
        content = " ".join(dice.choice(WORDS, dice.integers(1, 4), p=FREQUENCIES).tolist())
        nodes[node_id] = Node(node_id, content, "", (content.split()[0],), 0, len(content))
    first = MEMORIES + LOST + 1
    entities = [Entity(first + place, word, word, 1) for place, word in enumerate(WORDS[:5])]
    last = first + len(entities)
    between = np.stack([dice.integers(1, MEMORIES + 1, 2000), dice.integers(1, MEMORIES + LOST + 1, 2000)])
    own = first + np.minimum(dice.geometric(0.4, 900) - 1, len(entities) - 1)
    members = dice.integers(1, MEMORIES + LOST + 1, 900)
    living = members <= MEMORIES
    sources = np.concatenate([between[0], own, members[living]])
    targets = np.concatenate([between[1], members, own[living]])
    relations = dice.integers(0, len(RELATIONS), len(sources))
    _, kept = np.unique(np.stack([sources, targets, relations]), axis=1, return_index=True)
    kept = kept[sources[kept] != targets[kept]]
    strengths = dice.choice(STRENGTHS, len(sources)) * dice.choice(NEARLY_EQUAL, len(sources))
    counts = dice.integers(0, 4, last)
    anchors = np.maximum(counts[sources] - dice.integers(0, 3, len(sources)), 0)
    columns = LinkColumns(
        sources[kept], targets[kept], relations[kept], strengths[kept], anchors[kept], RELATIONS
    )
    scanned = np.flatnonzero(counts)
    scans = ScanColumns(scanned, counts[scanned], np.ones(len(scanned), dtype=np.int64), scanned < 0)
    focus = tuple(dice.choice(np.arange(1, MEMORIES + 1), 3, replace=False).tolist())
    parameters = AgentParameters(cue_memories=4)
    network = load_network(
        parameters,
        nodes.values(),
        lambda fold: fold(nodes.values()),
        scans,
        columns,
        focus,
        last,
        entities,
        (first + 1, first + 4),
    )
    return network, nodes


@pytest.mark.parametrize("seed", range(12))
def test_a_bounded_walk_finds_the_first_of_all(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bounded walk returns at least the first memories, each as a whole walk does, and all nodes as strong."""
    monkeypatch.setattr(walks, "STEPS_PER_MEMORY", 1)
    network, _ = _network(seed)
    starts = network.slots_of([*network.focus, *network.entity_focus])
    for depth in (1, 2, 4):
        whole = walk(network, starts, np.arange(len(starts)), depth, Follow())
        for most in (1, 5, 40, 150):
            found = walk(network, starts, np.arange(len(starts)), depth, Follow(), most=most)
            places = found.in_order(np.arange(len(found.slots)))
            expected = whole.in_order(np.arange(len(whole.slots)))[: len(places)]
            assert found.slots[places].tolist() == whole.slots[expected].tolist()
            assert found.labels[places].tolist() == whole.labels[expected].tolist()
            assert found.worths[places].tolist() == whole.worths[expected].tolist()
            memories = np.count_nonzero(~network.slots["is_entity"][found.slots])
            assert memories >= most or len(found.slots) == len(whole.slots)
            assert not found.is_whole or len(found.slots) == len(whole.slots)


@pytest.mark.parametrize("skips_entities", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_strengths_without_labels_are_those_of_a_walk(seed: int, skips_entities: bool) -> None:
    """The search without labels reaches the same nodes with the same strengths, twice in a row."""
    network, _ = _network(seed)
    starts = network.slots_of(list(network.focus))
    follow = Follow(skips_entities=skips_entities)
    for depth in (0, 1, 2, 4, 4):
        whole = walk(network, starts, np.arange(len(starts)), depth, follow)
        slots, found = strengths(network, starts, depth, follow)
        assert sorted(slots.tolist()) == sorted(whole.slots.tolist())
        expected = whole.worths[np.argsort(whole.slots)]
        assert found[np.argsort(slots)] == pytest.approx(expected, rel=1e-10 * depth, abs=0)


@pytest.mark.parametrize("seed", range(12))
def test_a_recall_by_bounded_walks_answers_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memories, their order and the sentences about forgotten ones do not depend on whether walks are bounded."""
    network, nodes = _network(seed)
    cues = [
        Cue(keywords=keywords, depth=depth, max_results=most, explains=explains)
        for keywords in KEYWORDS
        for depth, most, explains in ((1, 3, False), (2, 10, False), (2, 40, True), (4, 5, False))
    ]

    def answers(share: int) -> list[Answer]:
        monkeypatch.setattr(association, "SHARE_OF_BOUNDED", share)
        return [recall(network, cue, nodes.__getitem__, "auto") for cue in cues]

    monkeypatch.setattr(texts, "BYTES_PER_NODE", 0)
    assert answers(0) == answers(MEMORIES)
