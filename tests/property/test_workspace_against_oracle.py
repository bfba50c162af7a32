"""A workspace on a real store compared with the oracle, also after restarts.

The store is reopened at any point, also within passes. Commits fail at any point and are retried. After every history
the consistency checker finds nothing. Changes within a pass are in test_interleavings.py, long lives in
test_long_lives_on_disk.py.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ebbtide.errors import Exhausted, InvalidRequest
from tests.property import histories
from tests.property.homes import SEED, snapshot, told
from tests.property.lockstep import names_as_mapping, names_by_rule, oracle_remembers
from tests.property.lockstep_on_disk import HomePair

flags = st.lists(st.booleans(), max_size=12)
places = st.lists(st.integers(0, 12), max_size=3)


class WorkspaceLockstep(RuleBasedStateMachine):
    """After any batches, passes, recalls, amendments, parameter changes, restarts and full disks, both agree."""

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
                self.pair.home.workspace.passes.owe(count)
        else:
            assert self.pair.home.workspace.passes.owe(count).owed_passes == oracle.owed + count
            oracle.owed += count

    @rule(keywords=histories.keywords)
    def mention(self, keywords: list[str]) -> None:
        self.pair.mention(keywords)

    @rule(action=st.sampled_from(["focus", "unfocus", "pin", "unpin"]), place=st.integers(0, 100))
    def by_hand(self, action: str, place: int) -> None:
        self.pair.by_hand(action, place)

    @rule(place=st.integers(0, 100))
    def delete(self, place: int) -> None:
        self.pair.delete(place)

    @rule(place=st.integers(0, 100), content=histories.contents.filter(bool), keywords=histories.keywords)
    def correct(self, place: int, content: str, keywords: list[str]) -> None:
        self.pair.correct(place, content, keywords)

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
        """A failed commit leaves nothing behind, on disk or in memory."""
        home = self.pair.home
        attempts: dict[str, Callable[[], object]] = {
            "accept": lambda: home.accept(["lost words"]),
            "compress": lambda: home.step(),
            "patch": lambda: home.workspace.change_parameters({"decay_rate": 0.123}),
        }
        if what != "compress" or self.pair.oracle.owed:
            self.refused(attempts[what])
        assert home.workspace.inbox.next_task(10) is None

    @rule(segments=histories.segments, names=histories.relation_names)
    def the_disk_is_full_at_a_digest(self, segments: list, names: list[str]) -> None:
        """A digest that cannot be committed leaves its batch at the head; the retry digests it as usual."""
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
        oracle_remembers(self.pair.oracle, segments, named, Random(f"{SEED}/digest/{task.batch.number}"), 5)

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
