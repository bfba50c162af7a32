"""A workspace on a real store against the oracle: what is committed is what the page says, also after restarts.

The store is closed and opened again at any point, in the middle of passes too; commits fail at any point and
are tried again. After every history the store passes its own consistency check.

Deliberately not here: erasure of single nodes (the workspace has none yet), changes in the middle of a pass
(test_interleavings.py).
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ebbtide.errors import Exhausted, InvalidRequest
from ebbtide.parameters import AgentParameters
from ebbtide.vocabulary import Cue
from tests.property import histories
from tests.property.homes import SEED, Home, shortened, snapshot, told
from tests.property.lockstep import (
    assert_same_memory,
    assert_same_recall,
    names_as_mapping,
    names_by_rule,
    oracle_for,
    oracle_remembers,
    recorded,
    rewrites_of,
)

flags = st.lists(st.booleans(), max_size=12)
places = st.lists(st.integers(0, 12), max_size=3)


class HomePair:
    """A home and an oracle, told the same. `close` it."""

    def __init__(self, defaults: dict) -> None:
        self.home = Home(defaults)
        self.oracle = oracle_for(AgentParameters(**defaults))
        self.overrides: dict[str, object] = {}

    def close(self) -> None:
        try:
            assert self.home.faults() == []
        finally:
            self.home.close()

    def remember(self, segments: list, names: list[str]) -> None:
        named = names_by_rule(names)
        mapping = names_as_mapping(named, len(segments), self.home.workspace.parameters.focus_limit)
        batch = self.home.remember(segments, mapping)
        dice = Random(f"{SEED}/digest/{batch.number}")
        oracle_remembers(self.oracle, segments, named, dice)

    def compress(self, salt: int, times_up: list[bool], reopen_at: list[int]) -> None:
        if self.oracle.owed == 0:
            assert self.home.step(None).is_idle
            return

        def shorten(text: str, target: int) -> str | None:
            return histories.shorten(text, target, salt)

        self.home.compress(shorten, times_up, reopen_at)
        dice = Random(f"{SEED}/pass/{self.oracle.pass_number + 1}")
        self.oracle.compress(shorten=shorten, rng=dice, keywords_of=histories.keywords_for)

    def patch(self, changes: dict) -> None:
        self.overrides = {k: v for k, v in {**self.overrides, **changes}.items() if v is not None}
        self.home.workspace.change_parameters(changes)
        self.resolve()

    def reopen(self, defaults: dict | None = None) -> None:
        before = snapshot(self.home.workspace.network)
        self.home.reopen(defaults)
        if defaults is None:
            assert snapshot(self.home.workspace.network) == before
        self.resolve()

    def resolve(self) -> None:
        """Tell the oracle the parameters now in force: the agent's own before the daemon's."""
        own = {name: value for name, value in self.overrides.items() if name in histories.ORACLE_FIELDS}
        defaults = {k: v for k, v in self.home.defaults.items() if k in histories.ORACLE_FIELDS}
        fresh = histories.for_oracle(AgentParameters())
        self.oracle.patch(**{**vars(fresh), **defaults, **own})

    def recall(self, cue: dict) -> None:
        workspace = self.home.workspace
        before = snapshot(workspace.network)

        def answer(asked: Cue):
            return workspace.recall(asked)[0]

        assert_same_recall(answer, workspace.parameters.locale, cue, self.oracle)
        assert snapshot(workspace.network) == before

    def compare(self) -> None:
        nodes = self.home.nodes()
        assert_same_memory(self.home.workspace.network, nodes, self.home.counters(), self.oracle)
        for node_id, node in nodes.items():
            assert recorded(node.rewrites) == rewrites_of(self.oracle, node_id)
            first = self.home.store.read(lambda txn, node=node: txn.first_content(node))
            assert first == self.oracle.nodes[node_id].first_content


class WorkspaceLockstep(RuleBasedStateMachine):
    """After any sequence of batches, passes, recalls, parameter changes, restarts and full disks both agree."""

    def __init__(self) -> None:
        super().__init__()
        self.pair: HomePair | None = None

    def teardown(self) -> None:
        if self.pair is not None:
            self.pair.close()

    @initialize(defaults=histories.starting_changes())
    def start(self, defaults: dict) -> None:
        self.pair = HomePair(defaults)

    @rule(segments=histories.segments, names=histories.relation_names)
    def remember(self, segments: list, names: list[str]) -> None:
        self.pair.remember(segments, names)

    @rule(batches=histories.many_batches, names=histories.relation_names, passes=st.integers(0, 2))
    def converse(self, batches: list, names: list[str], passes: int) -> None:
        for salt, segments in enumerate(batches):
            self.pair.remember(segments, names)
            for _ in range(passes):
                self.pair.compress(salt, [], [])

    @rule(salt=st.integers(0, 100), times_up=flags, reopen_at=places)
    def compress(self, salt: int, times_up: list[bool], reopen_at: list[int]) -> None:
        self.pair.compress(salt, times_up, reopen_at)

    @rule(count=st.integers(1, 6))
    def owe(self, count: int) -> None:
        oracle = self.pair.oracle
        if oracle.owed + count > oracle.parameters.max_owed_passes:
            with pytest.raises(InvalidRequest):
                self.pair.home.workspace.owe_passes(count)
        else:
            assert self.pair.home.workspace.owe_passes(count).owed_passes == oracle.owed + count
            oracle.owed += count

    @rule(cue=histories.cues)
    def recall(self, cue: dict) -> None:
        self.pair.recall(cue)

    @rule(changes=histories.changes(), back=st.lists(st.sampled_from(sorted(histories.VALUES)), max_size=2))
    def patch(self, changes: dict, back: list[str]) -> None:
        self.pair.patch({**changes, **dict.fromkeys(back)})

    @rule(defaults=st.one_of(st.none(), histories.starting_changes()))
    def reopen(self, defaults: dict | None) -> None:
        self.pair.reopen(defaults)

    @rule(what=st.sampled_from(["accept", "compress", "patch"]))
    def the_disk_is_full(self, what: str) -> None:
        """A commit that fails leaves nothing behind, on disk or in memory."""
        home = self.pair.home
        attempts: dict[str, Callable[[], object]] = {
            "accept": lambda: home.accept(["lost words"]),
            "compress": lambda: home.step(None),
            "patch": lambda: home.workspace.change_parameters({"decay_rate": 0.123}),
        }
        if what != "compress" or self.pair.oracle.owed:
            self.refused(attempts[what])
        assert home.workspace.next_task(10) is None

    @rule(segments=histories.segments, names=histories.relation_names)
    def the_disk_is_full_at_a_digest(self, segments: list, names: list[str]) -> None:
        """A digest that cannot be committed leaves its batch at the head; tried again it is digested as usual."""
        home = self.pair.home
        texts, placed = told(segments)
        home.accept(texts)
        task = home.task()
        drafts = home.drafts(task, placed, [own for _, own in segments])
        named = names_by_rule(names)
        mapping = names_as_mapping(named, len(segments), home.workspace.parameters.focus_limit)
        self.refused(lambda: home.digest(task, drafts, mapping))
        assert home.task() == task
        home.digest(task, drafts, mapping)
        oracle_remembers(self.pair.oracle, segments, named, Random(f"{SEED}/digest/{task.batch.number}"))

    def refused(self, attempt: Callable[[], object]) -> None:
        home = self.pair.home
        before, counters = snapshot(home.workspace.network), home.counters()
        home.store.is_full = True
        with pytest.raises(Exhausted):
            attempt()
        home.store.is_full = False
        assert (snapshot(home.workspace.network), home.counters()) == (before, counters)

    @invariant()
    def same(self) -> None:
        if self.pair is not None:
            self.pair.compare()


TestWorkspaceLockstep = WorkspaceLockstep.TestCase
TestWorkspaceLockstep.settings = histories.examples(150, steps=14)


@histories.examples(90)
@given(
    defaults=histories.starting_changes(),
    events=st.lists(st.integers(0, 2**32), min_size=15, max_size=45),
    cue=histories.cues,
)
def test_long_lives_on_disk(defaults: dict, events: list[int], cue: dict) -> None:
    """A long life with restarts, also between two steps of a pass, ends as the oracle's."""
    pair = HomePair(defaults)
    try:
        for event_seed in events:
            dice = Random(event_seed)
            roll = dice.random()
            if roll < 0.5:
                pair.remember(histories.batch_from(event_seed), [dice.choice(histories.NAMES) for _ in range(4)])
            elif roll < 0.85:
                times_up = [dice.random() < 0.3 for _ in range(dice.choice([0, 10, 60]))]
                reopen_at = dice.sample(range(15), dice.choice([0, 1, 4]))
                pair.compress(event_seed % 1000, times_up, reopen_at)
            elif roll < 0.93:
                pair.patch(histories.changes_from(dice))
            else:
                pair.reopen()
            pair.compare()
        pair.recall(cue)
    finally:
        pair.close()


def test_a_full_disk_in_the_middle_of_a_pass_costs_nothing() -> None:
    """Whichever commit of a pass fails, the pass goes on where it stood and ends as without the failure."""

    def run(fail_at: int) -> dict[str, object]:
        home = Home({"decay_rate": 0.4, "focus_limit": 1, "delete_threshold": 1})
        try:
            for number in range(3):
                home.remember([(f"{number}{i} " + "tea " * 12, []) for i in range(4)], {})
            finished, count = None, 0
            while home.counters()[1]:
                count += 1
                if count == fail_at:
                    home.store.is_full = True
                    with pytest.raises(Exhausted):
                        home.step(finished, [True])
                    home.store.is_full = False
                step = home.step(finished, [True])
                finished = None if step.task is None else shortened(step.task, lambda t, n: t[:n])
            return {**snapshot(home.workspace.network), "texts": home.nodes()}
        finally:
            home.close()

    undisturbed = run(0)
    assert any(node.rewrites for node in undisturbed["texts"].values())
    assert all(run(fail_at) == undisturbed for fail_at in range(1, 30))
