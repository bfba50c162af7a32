"""The pure engine compared with the oracle of plain dictionaries: both remember the same after any history.

The oracle was written from the memory model page without knowledge of the engine. Both get equal random generators and
the same deterministic shortener. `Lockstep` allows max_nodes below the daemon's minimum; `test_with_real_bounds` does
not. Changes within a pass are in test_interleavings.py, the store in test_workspace_against_oracle.py.
"""

from __future__ import annotations

from random import Random
from unicodedata import category

from hypothesis import currently_in_test_context, event, given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ebbtide.han import contains_han
from ebbtide.parameters import AgentParameters
from tests.property import histories
from tests.property.lockstep import (
    PureEngine,
    assert_same_memory,
    assert_same_recall,
    names_as_mapping,
    names_by_rule,
    oracle_for,
    oracle_remembers,
)
from tests.support.oracle import has_han

seeds = st.integers(0, 1000)


class Pair:
    """Engine and oracle with the same history."""

    def __init__(self, changes: dict) -> None:
        parameters = histories.unbounded(AgentParameters(), **changes)
        self.engine = PureEngine(parameters)
        self.oracle = oracle_for(parameters)

    def remember(self, segments: list, names: list[str], seed: int) -> None:
        named = names_by_rule(names)
        mapping = names_as_mapping(named, len(segments), self.engine.network.parameters.focus_limit)
        self.engine.remember(segments, mapping, Random(seed))
        oracle_remembers(self.oracle, segments, named, Random(seed))

    def compress(self, seed: int, stops: frozenset[int] = frozenset()) -> None:
        def shorten(text: str, target: int) -> str | None:
            return histories.shorten(text, target, seed)

        nodes_before = len(self.oracle.nodes)
        self.engine.compress(shorten, Random(seed), stops)
        self.oracle.compress(shorten=shorten, rng=Random(seed), keywords_of=histories.keywords_for)
        if len(self.oracle.nodes) < nodes_before and currently_in_test_context():
            event("a pass forgot something")

    def compare(self) -> None:
        ground = self.engine.ground
        assert ground.pass_state is None
        assert_same_memory(self.engine.network, ground.nodes, (ground.finished, ground.owed), self.oracle)

    def recall(self, cue: dict) -> None:
        locale = self.engine.network.parameters.locale
        assert_same_recall(self.engine.recall, locale, cue, self.oracle)


class Lockstep(RuleBasedStateMachine):
    """After any sequence of batches, passes, recalls, erasures and parameter changes, engine and oracle agree."""

    @initialize(changes=histories.starting_changes())
    def start(self, changes: dict) -> None:
        self.pair = Pair(changes)

    @rule(batches=histories.many_batches, names=histories.relation_names, passes=st.integers(0, 3))
    def converse(self, batches: list, names: list[str], passes: int) -> None:
        for number, segments in enumerate(batches):
            self.pair.remember(segments, names, number)
            for step in range(passes):
                self.pair.compress(number + step)

    @rule(segments=histories.segments, names=histories.relation_names, seed=seeds)
    def remember(self, segments: list, names: list[str], seed: int) -> None:
        self.pair.remember(segments, names, seed)

    @rule(seed=seeds, count=st.integers(1, 6))
    def compress(self, seed: int, count: int) -> None:
        for number in range(count):
            self.pair.compress(seed + number)
            self.pair.compare()

    @rule(seed=seeds, stops=st.frozensets(st.integers(0, 12), min_size=1, max_size=6))
    def compress_interrupted(self, seed: int, stops: frozenset[int]) -> None:
        self.pair.compress(seed, stops)

    @rule(cue=histories.cues)
    def recall(self, cue: dict) -> None:
        self.pair.recall(cue)

    @rule(place=st.integers(0, 200))
    def erase(self, place: int) -> None:
        living = sorted(self.pair.oracle.nodes)
        if not living:
            return
        node_id = living[place % len(living)]
        self.pair.engine.erase(node_id)
        self.pair.oracle.erase(node_id)

    @rule(changes=histories.changes())
    def patch(self, changes: dict) -> None:
        self.pair.engine.patch(changes)
        self.pair.oracle.patch(**changes)

    @rule()
    def reopen(self) -> None:
        self.pair.engine.reopen()

    @invariant()
    def same(self) -> None:
        if hasattr(self, "pair"):
            self.pair.compare()


TestLockstep = Lockstep.TestCase
TestLockstep.settings = histories.examples(250, steps=16)


def happen(pair: Pair, event_seed: int) -> None:
    """Apply one event of a long history, determined by a number."""
    dice = Random(event_seed)
    roll = dice.random()
    if roll < 0.45:
        names = [dice.choice(histories.NAMES) for _ in range(5)]
        pair.remember(histories.batch_from(event_seed), names, event_seed)
    elif roll < 0.75:
        stops = frozenset(dice.sample(range(20), dice.choice([0, 0, 1, 4])))
        for number in range(dice.choice([1, 1, 2, 6])):
            pair.compress(event_seed % 1000 + number, stops)
            pair.compare()
    elif roll < 0.85:
        pair.recall(histories.cue_from(dice))
    elif roll < 0.90:
        pair.engine.reopen()
    elif roll < 0.96:
        changes = histories.changes_from(dice)
        pair.engine.patch(changes)
        pair.oracle.patch(**changes)
    elif living := sorted(pair.oracle.nodes):
        node_id = dice.choice(living)
        pair.engine.erase(node_id)
        pair.oracle.erase(node_id)


@histories.examples(130)
@given(
    changes=histories.starting_changes(),
    events=st.lists(st.integers(0, 2**32), min_size=20, max_size=60),
    cues=st.lists(histories.cues, min_size=2, max_size=5),
)
def test_long_histories_are_remembered_and_fade_alike(
    changes: dict, events: list[int], cues: list[dict]
) -> None:
    """A long life of batches, passes, recalls, parameter changes and restarts ends the same in both."""
    pair = Pair(changes)
    for event_seed in events:
        happen(pair, event_seed)
        pair.compare()
    for cue in cues:
        pair.recall(cue)


@histories.examples(4)
@given(
    changes=histories.starting_changes(small=False),
    batches=st.lists(
        st.tuples(st.lists(st.tuples(histories.contents, st.just([])), min_size=5, max_size=8), seeds),
        min_size=24,
        max_size=30,
    ),
    cue=histories.cues,
)
def test_with_real_bounds(changes: dict, batches: list, cue: dict) -> None:
    """With the daemon's minimum of max_nodes, a full memory under slots matches the oracle."""
    largest = changes.get("focus_limit", 5) + 100
    bounds = {**changes, "strategy": "slots", "max_nodes": largest, "compression_batch_size": 40}
    AgentParameters.model_validate(bounds)
    pair = Pair(bounds)
    for number, (segments, seed) in enumerate(batches):
        pair.remember(segments, ["", "friend of", "朋友"], seed)
        if number % 3 == 0:
            pair.compress(seed, frozenset({7}))
        pair.compare()
    pair.recall(cue)


def test_long_life_with_defaults() -> None:
    """With default parameters and one pass per batch, contents shrink and end at the same pass in both."""
    pair = Pair({"decay_rate": 0.9})
    for number in range(75):
        words = [f"batch {number} says thing {i}, at some length, about tea" for i in range(3)]
        pair.remember([(text, ["tea", str(number)]) for text in words], ["", "因果", "next"], number)
        pair.compress(number * 11)
        if number % 5 == 0:
            pair.compare()
            pair.recall({"keywords": ["TEA"], "relations": [], "depth": 3, "max_results": None})
    assert 1 not in pair.oracle.nodes
    assert any(len(n.content) < n.original_length for n in pair.oracle.nodes.values())


def test_both_know_a_han_character() -> None:
    """Engine and oracle recognise the same Han characters among all assigned code points."""
    assigned = (chr(c) for c in range(0x110000) if category(chr(c)) not in ("Cn", "Cs"))
    assert [hex(ord(c)) for c in assigned if contains_han(c) != has_han(c)] == []
