"""Compression passes keep or forget statements, and never shorten them."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from ebbtide.changes import Change
from ebbtide.memory.loading import load_network
from ebbtide.parameters import AgentParameters
from ebbtide.records import Link, Node, NodeFacts
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
