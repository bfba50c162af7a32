"""The pure engine and the oracle, driven in lockstep and compared after every step.

`PureEngine` is the engine with plain dictionaries (`Ground`) in place of a store. A change is applied to them first and
then to the network, which can be rebuilt from them at any time. It does not know the oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import isclose, prod
from random import Random
from typing import Any

import msgspec
import numpy as np
from hypothesis import event

from ebbtide.changes import Change
from ebbtide.memory import amendment, association, compression, digestion, focus
from ebbtide.memory.association import Answer
from ebbtide.memory.digestion import DigestItem, LinkNames, Mention, NewMemory
from ebbtide.memory.draft import Draft
from ebbtide.memory.loading import load_network
from ebbtide.memory.network import Network
from ebbtide.parameters import AgentParameters
from ebbtide.records import (
    Cue,
    Entity,
    Link,
    LinkColumns,
    Node,
    PassState,
    Rewrite,
    ScanColumns,
    ScanState,
    local_date,
)
from tests.property.histories import for_oracle, keywords_for
from tests.support.networks import all_links
from tests.support.oracle import round12
from tests.support.second_edition.network import Network as OracleNetwork
from tests.support.second_edition.oracle import SecondEdition
from tests.support.second_edition.recall import Answer as OracleAnswer
from tests.support.second_edition.records import Memory, Message, Segment, Shortened

Segments = Sequence[tuple[str, list[str]]]
Shorten = Callable[[str, int], str | None]


class Ground:
    """The stored data of one agent, as plain dictionaries."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self.entities: dict[int, Entity] = {}
        self.links: dict[tuple[int, int, str], Link] = {}
        self.scans: dict[int, ScanState] = {}
        self.focus: tuple[int, ...] = ()
        self.entity_focus: tuple[int, ...] = ()
        self.entity_memories: int | None = None
        self.next_node_id = 1
        self.owed = 0
        self.finished = 0
        self.pass_state: PassState | None = None

    def apply(self, change: Change) -> None:
        """Apply a change in the documented order."""
        self.nodes |= {node.id: node for node in change.nodes}
        self.entities |= change.entities
        gone = {*change.forgotten, *change.deleted, *change.deleted_entities}
        ended = {*change.deleted, *change.deleted_entities}
        for node_id in gone:
            self.nodes.pop(node_id, None)
            self.entities.pop(node_id, None)
            self.scans.pop(node_id, None)
        self.links = {
            key: link for key, link in self.links.items() if key[0] not in gone and key[1] not in ended
        }
        for link in change.removed_links:
            del self.links[link.source, link.target, link.relation]
        for link in change.links:
            assert link.source in self.nodes or link.source in self.entities
            self.links[link.source, link.target, link.relation] = link
        for node_id, pin in change.pins.items():
            self.nodes[node_id] = msgspec.structs.replace(self.nodes[node_id], pinned=pin.value)
        for node_id in change.scanned.tolist():
            before = self.scans.get(node_id, ScanState())
            self.scans[node_id] = ScanState(before.count + 1, change.scanned_in, before.is_kept)
        for node_id, is_kept in change.kept.items():
            before = self.scans.get(node_id, ScanState())
            self.scans[node_id] = msgspec.structs.replace(before, is_kept=is_kept)
        for name in ("focus", "entity_focus", "entity_memories"):
            if getattr(change, name) is not None:
                setattr(self, name, getattr(change, name))
        self.next_node_id = change.next_node_id or self.next_node_id
        self.owed = self.owed if change.owed_passes is None else change.owed_passes
        self.finished = change.finished_passes or self.finished
        self.pass_state = None if change.pass_ended else change.pass_state or self.pass_state

    def _sorted_nodes(self) -> list[Node]:
        return [self.nodes[node_id] for node_id in sorted(self.nodes)]

    def network(self, parameters: AgentParameters) -> Network:
        """Return the network as it is built when an agent opens."""
        return load_network(
            parameters,
            self._sorted_nodes(),
            lambda fold: fold(self._sorted_nodes()),
            scan_columns(self.scans),
            link_columns(self.links.values()),
            self.focus,
            self.next_node_id,
            [self.entities[node_id] for node_id in sorted(self.entities)],
            self.entity_focus,
            self.entity_memories,
        )


def scan_columns(scans: Mapping[int, ScanState]) -> ScanColumns:
    """Return scan states in the form in which the store returns them."""
    states = [(node_id, scan.count, scan.last_pass) for node_id, scan in sorted(scans.items())]
    is_kept = np.array([scan.is_kept for _, scan in sorted(scans.items())], dtype=np.bool_)
    return ScanColumns(*np.array(states, dtype=np.int64).reshape(-1, 3).T, is_kept)


def link_columns(links: Collection[Link]) -> LinkColumns:
    """Return links in the form in which the store returns them."""
    ordered = sorted(links, key=lambda link: (link.source, link.target, link.relation))
    names = sorted({link.relation for link in ordered})
    return LinkColumns(
        np.array([link.source for link in ordered], dtype=np.int64),
        np.array([link.target for link in ordered], dtype=np.int64),
        np.array([names.index(link.relation) for link in ordered], dtype=np.int64),
        np.array([link.strength for link in ordered], dtype=np.float64),
        np.array([link.anchor for link in ordered], dtype=np.int64),
        names,
    )


class PureEngine:
    """The engine without store, model and threads."""

    def __init__(self, parameters: AgentParameters) -> None:
        self.ground = Ground()
        self.network = Network(parameters)
        self.patch({})

    def commit(self, change: Change) -> None:
        """Write a change, then apply it."""
        self.ground.apply(change)
        self.network.apply(change)

    def reopen(self) -> None:
        """Discard the derived data and rebuild it."""
        self.network = self.ground.network(self.network.parameters)

    def patch(self, changes: Mapping[str, object]) -> None:
        """Change parameters as the state of an agent does."""
        parameters = self.network.parameters.model_copy(update=dict(changes))
        self.commit(focus.reparametrised(self.network, parameters))
        self.ground.entity_memories = self.network.entity_memories
        self.network.parameters = parameters

    def digest(self, items: Sequence[DigestItem], names: LinkNames, dice: Random) -> None:
        """Digest one batch."""
        owed = self.ground.owed
        self.commit(digestion.digest(self.network, items, names, batch=1, owed_passes=owed, rng=dice))

    def compress(self, shorten: Shorten, dice: Random, stops: Collection[int] = ()) -> None:
        """Run one pass. After the visits in `stops` (counted from 1) all derived data is lost."""
        self.commit(compression.begin_pass(self.network, self.ground.finished + 1, dice))
        visited, left = 0, set(stops)
        while True:
            if visited in left:
                self.reopen()
                left.discard(visited)
            state = self.ground.pass_state
            assert state is not None
            draft = Draft(self.network)
            order = compression.nodes_to_visit(self.network, state)
            while len(order) and visited not in left:
                most = min([len(order), 1 + visited * 7 % 9, *(s - visited for s in left if s > visited)])
                rewrite = partial(self._rewrite, draft, shorten)
                done, missing = compression.visit(draft, order[:most], state, rewrite)
                assert missing is None
                order, visited = order[done:], visited + done
            if not len(order):
                compression.end_pass(draft, state, self.ground.owed)
                self.commit(draft.change)
                return
            self.commit(draft.change)

    def _rewrite(self, draft: Draft, shorten: Shorten, shortening: compression.Shortening) -> bool:
        node = self.ground.nodes[shortening.node_id]
        content = shorten(node.content, shortening.target)
        if content is not None:
            keywords = tuple(keywords_for(content))
            draft.change.nodes.append(msgspec.structs.replace(node, content=content, keywords=keywords))
        return True

    def _keywords_of(self, node_id: int) -> tuple[str, ...]:
        return self.ground.nodes[node_id].keywords

    def delete(self, node_id: int) -> None:
        """Delete a memory without a loose end."""
        change = amendment.settle_entities(self.network, [node_id], self._keywords_of)
        change.deleted = [node_id]
        change.focus = tuple(one for one in self.network.focus if one != node_id)
        self.commit(change)

    def correct(self, node_id: int, content: str, keywords: tuple[str, ...]) -> None:
        """Correct a memory."""
        before = self.ground.nodes[node_id]
        node = msgspec.structs.replace(
            before, content=content, keywords=keywords, original_length=len(content)
        )
        change = amendment.settle_entities(self.network, [], self._keywords_of, corrected=node)
        change.nodes = [node]
        self.commit(change)

    def by_hand(self, action: str, node_id: int) -> None:
        """Focus, unfocus, pin or unpin a node."""
        change = {
            "focus": focus.focus_by_hand,
            "unfocus": focus.unfocus_by_hand,
            "pin": focus.pin_by_hand,
            "unpin": focus.unpin_by_hand,
        }
        self.commit(change[action](self.network, node_id))

    def keep(self, node_ids: Collection[int]) -> None:
        """Keep exactly these memories."""
        self.commit(self.network.keeping(node_ids))

    def recall(self, cue: Cue) -> Answer:
        """Return the result of a recall."""
        return association.recall(
            self.network, cue, self.ground.nodes.__getitem__, self.network.parameters.locale
        )


def memory_or_mention(content: str, keywords: Sequence[str], kind: str, **fields: object) -> DigestItem:
    """Return a segment as the engine gets it."""
    if kind != "statement":
        return Mention(tuple(keywords))
    return NewMemory(content, "", tuple(keywords), **{"created_at_ms": 0, **fields})


def assert_same_memory(
    network: Network, nodes: Mapping[int, Node], counters: tuple[int, int], oracle: SecondEdition
) -> None:
    """Memories, entities, focus, scans, pins, live links with strengths, importance and passes are equal."""
    assert sorted(network.node_ids()) == sorted(nodes) == sorted(oracle.memories)
    assert sorted(network.entities) == sorted(oracle.entities)
    assert network.node_count == len(oracle.memories)
    assert list(network.focus) == oracle.memory_focus
    assert list(network.entity_focus) == oracle.entity_focus
    assert network.next_node_id == oracle.next_id
    assert counters == (oracle.pass_number, oracle.owed), "(passes finished, passes owed)"
    pins = {node_id: pin.value for node_id, pin in network.pinned()}
    for node_id, memory in oracle.memories.items():
        node = nodes[node_id]
        assert (node.content, list(node.keywords)) == (memory.content, memory.keywords), node_id
        assert (node.label, node.speaker, node.created_at_ms) == (
            memory.label,
            memory.speaker,
            memory.created_at,
        )
        assert node.original_length == memory.original_length
        assert pins.get(node_id, "") == memory.pinned, node_id
        assert node.pinned == (memory.pinned or "none")
    for node_id, entity in oracle.entities.items():
        own = network.entities[node_id]
        assert (own.name, own.key, own.named_by) == (entity.name, entity.key, entity.named_by)
    for node_id in [*oracle.memories, *oracle.entities]:
        known = oracle.node(node_id)
        scan = ScanState(known.scan_count, known.last_scan_pass, node_id in oracle.kept)
        assert network.node(node_id).scan == scan, node_id
        ours, theirs = Draft(network).importance(node_id), oracle.importance(node_id)
        assert isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-300), node_id
    assert_same_links(network, oracle)


def assert_same_links(network: Network, oracle: OracleNetwork) -> None:
    """The links have equal strengths, are found from both ends, and dangle alike."""
    ours = {(link.source, link.target, link.relation): strength for link, strength in all_links(network)}
    theirs = {key: oracle.strength(key) for key in oracle.links}
    assert set(ours) == set(theirs), [(k, k in theirs and oracle.is_live(k)) for k in set(ours) ^ set(theirs)]
    for key, strength in theirs.items():
        assert isclose(ours[key], strength, rel_tol=1e-9, abs_tol=1e-300), key
    assert network.link_count == len(theirs)
    live = {key for key in theirs if oracle.is_live(key)}
    ids = network.node_ids(with_entities=True)
    assert live == {(n, target, name) for n in ids for target, name, _ in network.links_from(n)}
    assert {key for key in live if oracle.lives(key[1])} == {
        (source, n, name) for n in ids for source, name, _ in network.links_to(n)
    }
    for node_id in ids:
        dangling = sorted((target, name) for target, name in network.dangling(node_id))
        assert dangling == sorted(key[1:] for key in oracle.loose_ends(node_id))


# --- the same history for both -----------------------------------------------------------------------------


def names_by_rule(names: Sequence[str]) -> Callable[[int, int], str]:
    """Return a language model's answer for every (new memory, position in focus)."""
    return lambda i, j: names[(i * 5 + j * 3) % len(names)]


def names_as_mapping(rule: Callable[[int, int], str], count: int, focus_limit: int) -> LinkNames:
    """Return the same answers as the digest provides them."""
    return LinkNames({(i, j): rule(i, j) for i in range(count) for j in range(focus_limit)})


def oracle_for(parameters: AgentParameters) -> SecondEdition:
    """Return an oracle with the same parameters."""
    return SecondEdition(for_oracle(parameters))


def oracle_remembers(
    oracle: SecondEdition,
    segments: Segments,
    names: Callable[[int, int], str],
    dice: Random,
    time_ms: int = 0,
) -> list[int]:
    """Let the oracle digest a batch of statements in one user message."""
    first, limit = oracle.next_id, oracle.parameters.focus_limit
    focus = oracle.memory_focus[:limit] or list(range(first, first + len(segments)))[::-1][:limit]

    def relate(memory_id: int, other: int) -> str:
        return "" if other in oracle.entities else names(memory_id - first, focus.index(other))

    items = [Segment(content, list(keywords)) for content, keywords in segments]
    return oracle.digest([Message("user", "")], items, accepted_at=time_ms, relate=relate, rng=dice)


def oracle_compresses(oracle: SecondEdition, shorten: Shorten, dice: Random) -> None:
    """Let the oracle run one pass with the shortener of the engine."""

    def shorten_memory(memory: Memory, target: int) -> Shortened | None:
        text = shorten(memory.content, target)
        return None if text is None else Shortened(text, "", keywords_for(text))

    oracle.compress(shorten_memory, dice)


def expected_recall(oracle: SecondEdition, cue: Mapping[str, Any], **changed: object) -> OracleAnswer:
    """Return the oracle's answer to a cue."""
    options = {**cue, **changed}
    return oracle.recall(options.pop("keywords"), options.pop("relations"), options.pop("depth"), **options)


def is_ambiguous(oracle: SecondEdition, cue: Mapping[str, Any]) -> bool:
    """Whether a path strength is so close to the edge of its 12th digit that rounding decides the order."""
    reached = expected_recall(oracle, cue, max_results=0).results
    return any(round12(v * (1 - 4e-15)) != round12(v * (1 + 4e-15)) for _, v in reached if v)


def assert_same_recall(
    recall: Callable[[Cue], Answer], locale: str, cue: Mapping[str, Any], oracle: SecondEdition
) -> None:
    """The memories are the same in the same order, with equal strengths, explanation and text."""
    if is_ambiguous(oracle, cue):
        event("a path strength on the edge of its 12th digit: order not compared")
        return
    most = oracle.parameters.max_search_results if cue["max_results"] is None else cue["max_results"]
    time_range = cue.get("time_range", (None, None))
    asked = Cue(cue["keywords"], cue["relations"], cue["depth"], most or 10_000, time_range, explains=True)
    expected, answer = expected_recall(oracle, cue), recall(asked)
    assert [one.node_id for one, _ in answer.memories] == [node_id for node_id, _ in expected.results]
    for (one, _), (_, strength) in zip(answer.memories, expected.results, strict=True):
        assert isclose(one.strength, strength, rel_tol=1e-9, abs_tol=1e-300), one
        assert sorted(one.keywords) == sorted(expected.matched_keywords[one.node_id])
        assert one.matched == len(one.keywords)
        assert isclose(path_strength(oracle, one.path), strength, rel_tol=1e-9, abs_tol=1e-300)
    assert list(answer.relations_unknown) == list(dict.fromkeys(expected.relations_unknown))
    date_of = partial(local_date, offset=lambda _: 0) if cue.get("dates") else None
    assert answer.text(locale, date_of) == expected.text
    places: dict[int, int] = {}
    for place, nodes in enumerate(expected.starts):
        for node_id in nodes:
            places.setdefault(node_id, place)
    assert {start.node_id: start.position for start in answer.starts} == places


def path_strength(oracle: SecondEdition, path: Sequence[tuple[int, str]]) -> float:
    """Return the product of the strengths of the links of a path."""
    steps = [(source, target, name) for (source, _), (target, name) in pairwise(path)]
    return prod(oracle.strength(step) for step in steps)


def rewrites_of(oracle: SecondEdition, node_id: int) -> list[tuple[int, int, int]]:
    """Return (pass, length before, length after) of the oracle's rewrites."""
    return [(r.pass_number, r.length_before, r.length_after) for r in oracle.memories[node_id].rewrites]


def recorded(rewrites: Sequence[Rewrite]) -> list[tuple[int, int, int]]:
    """Return the same of a stored node."""
    return [(r.pass_number, r.length_before, r.length_after) for r in rewrites]
