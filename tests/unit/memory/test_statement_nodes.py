"""Compression passes keep or forget statements, and never shorten them. Those that are kept are skipped."""

from __future__ import annotations

from random import Random

import msgspec
import numpy as np
import pytest

from ebbtide.changes import Change
from ebbtide.memory.amendment import settle_entities
from ebbtide.memory.draft import Draft
from ebbtide.memory.loading import load_network
from ebbtide.parameters import AgentParameters
from ebbtide.records import Entity, Link, Node, NodeFacts
from ebbtide.statements import STATEMENT_KINDS
from tests.property.lockstep import PureEngine, link_columns, scan_columns

TEXT = "x" * 100


def made(node_id: int, kind: str, pinned: str = "none") -> Node:
    """Return a node of a kind."""
    return Node(node_id, TEXT, "", (), 0, len(TEXT), kind=kind, pinned=pinned)  # type: ignore[arg-type]


@pytest.mark.parametrize("strategy", ["scan", "slots"])
@pytest.mark.parametrize("is_reopened", [False, True])
def test_a_pass_keeps_or_forgets_a_statement(strategy: str, is_reopened: bool) -> None:
    """With equal support a memory is shortened and a statement stays whole; without support it is forgotten."""
    engine = PureEngine(AgentParameters(strategy=strategy, decay_rate=1.0))  # type: ignore[arg-type]
    nodes = [
        made(1, "episode", "by_hand"),
        made(2, "episode"),
        *(made(node_id, kind) for node_id, kind in enumerate(sorted(STATEMENT_KINDS), start=3)),
        made(20, "fact"),
    ]
    links = [Link(1, node.id, "", 0.3, 0) for node in nodes[1:-1]]
    links.append(Link(1, 3, "barely", 0.02, 0))
    engine.commit(Change(nodes=nodes, links=links, next_node_id=21))
    if is_reopened:
        engine.reopen()
    engine.compress(lambda content, target: content[:target], Random(1))
    lengths = {node_id: len(node.content) for node_id, node in engine.ground.nodes.items()}
    assert lengths == {1: 100, 2: 30} | {node.id: 100 for node in nodes[2:-1]}
    assert {engine.network.scan_count(node_id) for node_id in lengths} == {1}


def test_a_statement_shorter_than_the_threshold_is_kept() -> None:
    """The support of a statement decides whether it is kept, not the length that a memory would have."""
    engine = PureEngine(AgentParameters(decay_rate=1.0))
    nodes = [made(1, "episode", "by_hand"), made(2, "episode"), made(3, "task")]
    links = [Link(1, node_id, "", 0.02, 0) for node_id in (2, 3)]
    engine.commit(Change(nodes=nodes, links=links, next_node_id=4))
    engine.compress(lambda content, target: content[:target], Random(1))
    assert sorted(engine.ground.nodes) == [1, 3]


def test_statements_are_known_when_an_agent_opens() -> None:
    """The kind of a node is read from its stored record."""
    kinds = ["episode", *sorted(STATEMENT_KINDS), "entity", ""]
    stored = [msgspec.msgpack.encode(made(number, kind)) for number, kind in enumerate(kinds, start=1)]
    facts = [msgspec.msgpack.decode(one, type=NodeFacts) for one in stored]
    network = load_network(
        AgentParameters(),
        facts,
        lambda fold: fold([]),
        scan_columns({}),
        link_columns([]),
        (),
        len(kinds) + 1,
    )
    assert network.slots["is_statement"].tolist() == [kind in STATEMENT_KINDS for kind in kinds]


def kept_fact(strength: float, *, is_reopened: bool = False, **parameters: object) -> PureEngine:
    """Return an engine with an entity (1), a kept fact about it (2), and a memory that only the entity supports (3)."""
    engine = PureEngine(AgentParameters(**parameters))  # type: ignore[arg-type]
    links = [
        *(Link(2, 1, "residence", strength, 0), Link(1, 2, "residence", strength, 0)),
        *(Link(3, 1, "mentions", 1.0, 0), Link(1, 3, "mentions", 1.0, 0)),
    ]
    engine.commit(Change(entities={1: Entity(1, "Ann", "ann", 3)}, next_node_id=2))
    engine.commit(Change(nodes=[made(2, "fact"), made(3, "episode")], links=links, next_node_id=4))
    engine.keep([2])
    if is_reopened:
        engine.reopen()
    return engine


def run_passes(engine: PureEngine, count: int) -> None:
    """Run compression passes."""
    for number in range(count):
        engine.compress(lambda content, target: content[:target], Random(number))


def test_importances_without_a_pass_are_those_of_single_visits() -> None:
    """With focus, pins, entities, kept and faded statements, the present importance of each node is that of a visit."""
    engine = kept_fact(0.5, focus_limit=2)
    links = [Link(5, node_id, "next", 0.7, 0) for node_id in (2, 3, 4, 6)] + [Link(6, 1, "about", 1.0, 0)]
    engine.commit(
        Change(
            nodes=[made(4, "task"), made(5, "episode", "by_hand"), made(6, "episode")],
            links=links,
            focus=(6,),
            entity_focus=(1,),
            next_node_id=7,
        )
    )
    run_passes(engine, 3)
    draft, slots = Draft(engine.network), np.flatnonzero(engine.network.slots["alive"])
    found = draft.importances_now(slots).tolist()
    assert found == pytest.approx(
        [draft.importance(one) for one in engine.network.slots["id"][slots].tolist()]
    )
    assert len(set(found)) > 3
    for slot, importance in zip(slots.tolist(), found, strict=True):
        rank = np.zeros(engine.network.slots.count, dtype=np.int32)
        rank[slot] = 1
        assert draft.importances(np.array([slot]), rank).tolist() == [importance]


def strength_of(engine: PureEngine, source: int, target: int) -> float:
    """Return the present strength of a link."""
    [found] = [now for other, _, now in engine.network.links_from(source) if other == target]
    return found


@pytest.mark.parametrize("is_reopened", [False, True])
def test_links_into_a_kept_statement_do_not_decay(is_reopened: bool) -> None:
    """They keep the strength with which they were written, while other links of the same entity decay."""
    engine = kept_fact(0.5, is_reopened=is_reopened)
    run_passes(engine, 30)
    if is_reopened:
        engine.reopen()
    assert strength_of(engine, 1, 2) == 0.5
    assert strength_of(engine, 1, 3) < 0.8
    assert engine.network.node(2).scan.count == 0


@pytest.mark.parametrize("is_reopened", [False, True])
def test_links_into_a_statement_decay_once_it_is_no_longer_kept(is_reopened: bool) -> None:
    """The decay begins at the strength that was written, not at the scans since then."""
    engine = kept_fact(0.5)
    run_passes(engine, 30)
    engine.keep([])
    if is_reopened:
        engine.reopen()
    assert strength_of(engine, 1, 2) == 0.5
    before = engine.network.scan_count(1)
    run_passes(engine, 30)
    scans = engine.network.scan_count(1) - before
    assert scans > 0 and strength_of(engine, 1, 2) == pytest.approx(0.5 * 0.97**scans)


@pytest.mark.parametrize("is_kept", [True, False])
def test_the_visit_of_a_kept_statement_decays_none_of_its_links(is_kept: bool) -> None:
    """A pass skips it, so a memory that is visited after it has the importance that it had before."""
    engine = PureEngine(AgentParameters(decay_rate=0.5))
    nodes = [made(1, "episode", "by_hand"), made(2, "fact"), made(3, "episode")]
    # One that is not kept needs support, or the pass forgets it before the memory is visited.
    links = [Link(1, 2, "", 1.0, 0), Link(2, 3, "because", 0.6, 0)]
    engine.commit(Change(nodes=nodes, links=links, next_node_id=4))
    engine.keep([2] if is_kept else [])
    run_passes(engine, 1)
    assert len(engine.ground.nodes[3].content) == (60 if is_kept else 30)


def test_a_kept_statement_lends_its_entity_no_strength() -> None:
    """The importance of the entity is that of its memories alone, so they fade as without the statement."""
    engine = kept_fact(1.0)
    assert Draft(engine.network).importance(1) == 1.0, "the link of the memory alone"
    engine.keep([])
    assert Draft(engine.network).importance(1) == 2.0
    engine.keep([2])
    run_passes(engine, 400)
    assert sorted(engine.ground.nodes) == [2], "the memory is forgotten, the kept fact is not"


def test_an_entity_outlives_its_memories_while_a_statement_about_it_is_kept() -> None:
    """This holds for links of any strength. Without the statement, the entity is dropped."""
    engine = kept_fact(0.0, decay_rate=0.5)
    run_passes(engine, 60)
    assert sorted(engine.ground.entities) == [1] and sorted(engine.ground.nodes) == [2]
    engine.keep([])
    run_passes(engine, 20)
    assert not engine.ground.entities and not engine.ground.nodes


def test_a_deletion_leaves_an_entity_with_a_kept_statement() -> None:
    """An entity without memories is deleted, but not while a statement about it is kept, however weak its links."""
    for kept, left in (([2], [1]), ([], [])):
        engine = kept_fact(0.0)
        engine.keep(kept)
        engine.delete(3)
        assert sorted(engine.ground.entities) == left


@pytest.mark.parametrize("is_reopened", [False, True])
def test_the_window_of_an_entity_in_focus_has_memories_only(is_reopened: bool) -> None:
    """However many statements are newer, the focus protects the newest memories, and writes only their links as 1.0."""
    engine = PureEngine(AgentParameters(entity_memories=1))
    engine.commit(Change(entities={1: Entity(1, "Ann", "ann", 2)}, next_node_id=2))
    nodes = [made(2, "episode"), made(3, "episode"), made(4, "event"), made(5, "opinion")]
    links = [Link(*ends, "mentions", 0.8, 0) for node in nodes for ends in ((1, node.id), (node.id, 1))]
    engine.commit(Change(nodes=nodes, links=links, next_node_id=6))
    engine.by_hand("focus", 1)
    if is_reopened:
        engine.reopen()
    assert [strength_of(engine, 1, node.id) for node in nodes] == [0.8, 1.0, 0.8, 0.8]
    run_passes(engine, 5)
    scans = engine.network.scan_count(1)
    engine.by_hand("unfocus", 1)
    if is_reopened:
        engine.reopen()
    faded = pytest.approx(0.8 * 0.97**scans)
    assert [strength_of(engine, 1, node.id) for node in nodes] == [faded, 1.0, faded, faded]
    assert engine.network.entities[1].left_from == 3


def test_a_forgotten_memory_makes_room_for_a_memory() -> None:
    """When the memory that the focus protects is forgotten, the next memory takes its place, not a newer statement."""
    engine = PureEngine(AgentParameters(entity_memories=1))
    engine.commit(Change(entities={1: Entity(1, "Ann", "ann", 2)}, next_node_id=2))
    nodes = [made(2, "episode"), made(3, "event"), made(4, "episode")]
    links = [Link(1, node.id, "mentions", 0.8, 0) for node in nodes]
    engine.commit(Change(nodes=nodes, links=links, next_node_id=5))
    engine.by_hand("focus", 1)
    draft = Draft(engine.network)
    draft.forget(4)
    assert [draft.importance(node_id) for node_id in (2, 3)] == [1.0, 0.8]


@pytest.mark.parametrize("word", ["Brutus", "tea"])
def test_an_entity_after_a_correction_that_deletes_statements(word: str) -> None:
    """An entity that only a deleted statement names too is deleted, unless the corrected memory names it now."""
    engine = PureEngine(AgentParameters())
    links = [Link(source, target, "", 1.0, 0) for source, target in ((1, 2), (2, 1), (3, 2), (2, 3))]
    entity = Entity(2, "BRUTUS", "brutus", 3)
    nodes = [made(1, "episode"), made(3, "fact")]
    engine.commit(Change(nodes=nodes, entities={2: entity}, links=links, next_node_id=4))
    if word == "Brutus":
        # The memory lost its own links with the entity.
        engine.commit(Change(removed_links=links[:2]))
    engine.keep([3])
    node = msgspec.structs.replace(nodes[0], content=f"{word} again.", keywords=(word,))
    change = settle_entities(engine.network, [3], lambda _: node.keywords, corrected=node)
    names = {one.id: (one.name, one.named_by) for one in change.entities.values()}
    if word == "Brutus":
        assert (names, change.deleted_entities) == ({2: ("Brutus", 1)}, [])
        assert {(one.source, one.target) for one in change.links} == {(1, 2), (2, 1)}
    else:
        assert (names, change.deleted_entities) == ({4: ("tea", 1)}, [2])
        assert {(one.source, one.target) for one in change.links} == {(1, 4), (4, 1)}
