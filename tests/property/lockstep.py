"""The pure engine and the oracle, driven in lockstep and compared after every step.

`PureEngine` is the engine with plain dictionaries (`Ground`) in place of a store. A change is applied to them first and
then to the network, which can be rebuilt from them at any time. It does not know the oracle. `assert_same_memory` and
`assert_same_recall` compare anything that has a network with the oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from math import isclose
from random import Random

import msgspec
import numpy as np
from hypothesis import event

from ebbtide.changes import Change
from ebbtide.memory import association, compression, digestion
from ebbtide.memory.association import Answer
from ebbtide.memory.digestion import NewMemory
from ebbtide.memory.draft import Draft
from ebbtide.memory.loading import load_network
from ebbtide.memory.network import Network
from ebbtide.memory.wording import word_answer
from ebbtide.parameters import AgentParameters
from ebbtide.records import Cue, Link, LinkColumns, Node, PassState, Rewrite, ScanColumns, ScanState
from tests.property.histories import for_oracle, keywords_for
from tests.support.networks import all_links
from tests.support.oracle import Oracle, has_han, round12

Segments = Sequence[tuple[str, list[str]]]
Shorten = Callable[[str, int], str | None]


class Ground:
    """The stored data of one agent, as plain dictionaries."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self.first: dict[int, str] = {}
        self.links: dict[tuple[int, int, str], Link] = {}
        self.scans: dict[int, ScanState] = {}
        self.focus: tuple[int, ...] = ()
        self.next_node_id = 1
        self.owed = 0
        self.finished = 0
        self.pass_state: PassState | None = None

    def apply(self, change: Change) -> None:
        """Apply a change in the documented order."""
        for node in change.nodes:
            self.first.setdefault(node.id, node.content)
            self.nodes[node.id] = node
        for node_id in change.forgotten:
            del self.nodes[node_id]
            self.scans.pop(node_id, None)
            self.links = {key: link for key, link in self.links.items() if key[0] != node_id}
        for link in change.links:
            self.links[link.source, link.target, link.relation] = link
        for node_id in change.scanned.tolist():
            before = self.scans.get(node_id, ScanState())
            self.scans[node_id] = ScanState(before.count + 1, change.scanned_in)
        self.focus = self.focus if change.focus is None else change.focus
        self.next_node_id = change.next_node_id or self.next_node_id
        self.owed = self.owed if change.owed_passes is None else change.owed_passes
        self.finished = change.finished_passes or self.finished
        self.pass_state = None if change.pass_ended else change.pass_state or self.pass_state

    def network(self, parameters: AgentParameters) -> Network:
        """Return the network as it is built when an agent opens."""
        nodes = [self.nodes[node_id] for node_id in sorted(self.nodes)]
        links = link_columns(self.links.values())
        return load_network(parameters, nodes, scan_columns(self.scans), links, self.focus, self.next_node_id)


def scan_columns(scans: Mapping[int, ScanState]) -> ScanColumns:
    """Return scan states in the form in which the store returns them."""
    states = [(node_id, scan.count, scan.last_pass) for node_id, scan in sorted(scans.items())]
    return ScanColumns(*np.array(states, dtype=np.int64).reshape(-1, 3).T)


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

    def commit(self, change: Change) -> None:
        """Write a change, then apply it."""
        self.ground.apply(change)
        self.network.apply(change)

    def reopen(self) -> None:
        """Discard the derived data and rebuild it."""
        self.network = self.ground.network(self.network.parameters)

    def patch(self, changes: Mapping[str, object]) -> None:
        """Change parameters, re-anchoring links first if the decay rate changes."""
        parameters = self.network.parameters.model_copy(update=dict(changes))
        if parameters.decay_rate != self.network.parameters.decay_rate:
            self.commit(Change(links=self.network.reanchored()))
        self.network.parameters = parameters

    def remember(self, segments: Segments, names: Mapping[tuple[int, int], str], dice: Random) -> None:
        """Digest one batch."""
        memories = [NewMemory(content, "", tuple(keywords), 0) for content, keywords in segments]
        self.commit(
            digestion.digest(self.network, memories, names, batch=1, owed_passes=self.ground.owed, rng=dice)
        )

    def compress(self, shorten: Shorten, dice: Random, stops: Collection[int] = ()) -> None:
        """Run one pass. After the visits in `stops` (counted from 1) all derived data is lost."""
        self.commit(compression.begin_pass(self.network, self.ground.finished + 1, dice))
        visited = 0
        stops = set(stops)
        while True:
            if visited in stops:
                self.reopen()
                stops.discard(visited)
            state = self.ground.pass_state
            assert state is not None
            draft = Draft(self.network)
            order = compression.nodes_to_visit(self.network, state)
            while len(order) and visited not in stops:
                most = min([len(order), 1 + visited * 7 % 9, *(s - visited for s in stops if s > visited)])
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
        content = shorten(self.ground.first[node.id], shortening.target)
        if content is not None:
            draft.change.nodes.append(
                msgspec.structs.replace(node, content=content, keywords=tuple(keywords_for(content)))
            )
        return True

    def erase(self, node_id: int) -> None:
        """Erase a node for good."""
        draft = Draft(self.network)
        draft.forget(node_id)
        if node_id in draft.focus:
            draft.set_focus(tuple(n for n in draft.focus if n != node_id))
        self.commit(draft.change)

    def recall(self, cue: Cue) -> Answer:
        """Return the result of a recall."""

        def content_of(node_id: int) -> str:
            return self.ground.nodes[node_id].content

        return association.recall(self.network, cue, content_of, self.network.parameters.locale)


def oracle_for(parameters: AgentParameters) -> Oracle:
    """Return an oracle with the same parameters."""
    return Oracle(for_oracle(parameters))


def oracle_remembers(
    oracle: Oracle, segments: Segments, names: Callable[[int, int], str], dice: Random
) -> list[int]:
    """Let the oracle digest a batch; neighbour names follow the batch's language (section 4, step 3)."""
    locale = oracle.parameters.locale
    chinese = locale == "zh" or (locale == "auto" and any(has_han(text) for text, _ in segments))
    neighbours = ("下文", "上文") if chinese else ("next", "previous")
    return oracle.remember(list(segments), neighbour_names=neighbours, relate=names, rng=dice)


def names_by_rule(names: Sequence[str]) -> Callable[[int, int], str]:
    """Return a relation name for every (new node, position in focus)."""
    return lambda i, j: names[(i * 5 + j * 3) % len(names)]


def names_as_mapping(
    rule: Callable[[int, int], str], count: int, focus_limit: int
) -> dict[tuple[int, int], str]:
    """Return the same names as the digest provides them; an empty one is absent."""
    pairs = ((i, j) for i in range(count) for j in range(focus_limit))
    return {pair: name for pair in pairs if (name := rule(*pair))}


def assert_same_memory(
    network: Network, nodes: Mapping[int, Node], counters: tuple[int, int], oracle: Oracle
) -> None:
    """Assert equal ids, focus, scans, contents, links with strengths, importance, pass number and owed passes."""
    assert set(network.node_ids()) == set(nodes) == set(oracle.nodes)
    assert network.node_count == len(nodes)
    assert list(network.focus) == oracle.focus
    assert network.next_node_id == oracle.next_id
    assert counters == (oracle.pass_number, oracle.owed), "(passes finished, passes owed)"
    for node_id, known in oracle.nodes.items():
        state, node = network.node(node_id), nodes[node_id]
        assert (node.content, list(node.keywords)) == (known.content, known.keywords), node_id
        assert (state.content_length, state.original_length) == (len(known.content), known.original_length)
        assert state.scan == ScanState(known.scan_count, known.last_scan_pass), node_id
        assert isclose(
            Draft(network).importance(node_id), oracle.importance(node_id), rel_tol=1e-9, abs_tol=1e-300
        )
    assert_same_links(network, oracle)


def assert_same_links(network: Network, oracle: Oracle) -> None:
    """Assert that links, including broken and dangling ones, have equal strengths and are found from both ends."""
    strengths = {(link.source, link.target, link.relation): strength for link, strength in all_links(network)}
    expected = oracle.links()
    assert set(strengths) == set(expected)
    assert network.link_count == len(expected)
    for key, strength in expected.items():
        assert isclose(strengths[key], strength, rel_tol=1e-9, abs_tol=1e-300), key
    live = {key for key in expected if oracle.is_live(key)}
    ids = network.node_ids()
    assert live == {(n, target, name) for n in ids for target, name, _ in network.links_from(n)}
    assert {key for key in live if key[1] in oracle.nodes} == {
        (source, n, name) for n in ids for source, name, _ in network.links_to(n)
    }
    for node_id in ids:
        assert network.dangling(node_id) == oracle.dangling(node_id)


def is_ambiguous(oracle: Oracle, relations: Sequence[str], depth: int) -> bool:
    """Whether a path strength is so close to the edge of its 12th digit that rounding decides the order."""
    reached = oracle.recall([], relations, depth, 0).results
    return any(round12(v * (1 - 4e-15)) != round12(v * (1 + 4e-15)) for _, v in reached if v)


def assert_same_recall(recall: Callable[[Cue], Answer], locale: str, cue: dict, oracle: Oracle) -> None:
    """Assert the same memories in the same order, with equal strengths and the same text."""
    most = oracle.parameters.max_search_results if cue["max_results"] is None else cue["max_results"]
    asked = Cue(cue["keywords"], cue["relations"], cue["depth"], most or 10_000)
    expected = oracle.recall(**cue)
    if is_ambiguous(oracle, cue["relations"], cue["depth"]):
        event("a path strength on the edge of its 12th digit: order not compared")
        return
    answer = recall(asked)
    found = [(reached.node_id, reached.strength) for reached, _ in answer.memories]
    assert [node_id for node_id, _ in found] == [node_id for node_id, _ in expected.results]
    for (node_id, ours), (_, theirs) in zip(found, expected.results, strict=True):
        assert isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-300), node_id
    text = word_answer([content for _, content in answer.memories], answer.once_known, locale)
    assert text.encode() == expected.text.encode()


def rewrites_of(oracle: Oracle, node_id: int) -> list[tuple[int, int, int]]:
    """Return (pass, length before, length after) of the oracle's rewrites."""
    return [(r.pass_number, r.length_before, r.length_after) for r in oracle.nodes[node_id].rewrites]


def recorded(rewrites: Sequence[Rewrite]) -> list[tuple[int, int, int]]:
    """Return the same of a stored node."""
    return [(r.pass_number, r.length_before, r.length_after) for r in rewrites]
