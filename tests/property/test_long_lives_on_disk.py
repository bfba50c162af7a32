"""Long lives of a workspace on a real store, compared with the oracle and with a twin that is never restarted."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.errors import Exhausted
from ebbtide.fleet.compression import passes
from ebbtide.fleet.compression.passes import Shortened
from tests.property import histories
from tests.property.homes import Home, shortened, snapshot
from tests.property.lockstep import names_as_mapping, names_by_rule
from tests.property.lockstep_on_disk import HomePair


@histories.examples(90)
@given(
    defaults=histories.starting_changes(),
    events=st.lists(st.integers(0, 2**32), min_size=15, max_size=45),
    cue=histories.cues,
)
def test_long_lives_on_disk(defaults: dict, events: list[int], cue: dict) -> None:
    """A long life with restarts, also within a pass, ends like the oracle's."""
    pair = HomePair(defaults)
    try:
        for event_seed in events:
            dice = Random(event_seed)
            roll = dice.random()
            if roll < 0.5:
                pair.remember(
                    histories.batch_from(event_seed), [dice.choice(histories.NAMES) for _ in range(4)]
                )
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


def test_a_slow_fading_is_recorded_to_the_end() -> None:
    """A memory that is shortened many times keeps its first content and the latest 16 rewrites, like the oracle's."""
    pair = HomePair({"min_shrink": 0.0, "focus_limit": 1, "long_term_factor": 0.0, "delete_threshold": 1})
    try:
        for number in range(3):
            pair.remember([(f"{number}{i} " + "tea 茶馆 " * 11, []) for i in range(4)], [""])
        pair.patch({"max_owed_passes": 1000})
        pair.home.workspace.passes.owe(120)
        pair.oracle.owed += 120
        for number in range(120):
            pair.compress(number, [True] * 3, [2] if number % 9 == 0 else [])
            pair.compare()
        assert max(len(node.rewrites) for node in pair.oracle.memories.values()) == 16
        assert any(
            node.rewrites[0].pass_number > 20 for node in pair.oracle.memories.values() if node.rewrites
        )
    finally:
        pair.close()


def test_a_full_disk_in_the_middle_of_a_pass_costs_nothing() -> None:
    """If any commit of a pass fails, the pass resumes and ends as without the failure."""

    def run(fail_at: int) -> dict[str, object]:
        home = Home({"decay_rate": 0.4, "focus_limit": 1, "delete_threshold": 1})
        try:
            for number in range(3):
                home.remember([(f"{number}{i} " + "tea " * 12, []) for i in range(4)], {})
            finished: list[Shortened] = []
            count = 0
            while home.counters()[1]:
                count += 1
                if count == fail_at:
                    home.store.is_full = True
                    with pytest.raises(Exhausted):
                        home.step(finished, [True], 3)
                    home.store.is_full = False
                step = home.step(finished, [True], 3)
                finished = [shortened(task, lambda t, n: t[:n]) for task in step.tasks]
            return {**snapshot(home.workspace.network), "texts": home.nodes()}
        finally:
            home.close()

    undisturbed = run(0)
    assert any(node.rewrites for node in undisturbed["texts"].values())
    assert all(run(fail_at) == undisturbed for fail_at in range(1, 30))


SCAN = {"strategy": "scan", "max_nodes": 10_000}
"""Under `slots` a batch removes nodes from the current pass, so that equal steps are not equal visits."""


class Twin:
    """A home that may be restarted before every step of a pass."""

    def __init__(self, changes: dict, *, is_restless: bool) -> None:
        self.home = Home({"decay_rate": 0.7, "focus_limit": 2, "delete_threshold": 2, **changes, **SCAN})
        self.is_restless = is_restless
        self.finished: list[Shortened] = []

    def happen(self, event_seed: int) -> None:
        """Apply one event, determined by a number."""
        dice = Random(event_seed)
        roll = dice.random()
        if roll < 0.3:
            names = names_by_rule([dice.choice(histories.NAMES) for _ in range(4)])
            segments = histories.batch_from(event_seed)
            limit = self.home.workspace.parameters.focus_limit
            self.home.remember(segments, names_as_mapping(names, len(segments), limit))
        elif roll < 0.9:
            if self.is_restless:
                self.home.reopen()
            step = self.home.step(self.finished, [False] * dice.randrange(6) + [True])
            self.finished = [
                shortened(task, lambda text, n: histories.shorten(text, n, 5)) for task in step.tasks
            ]
        else:
            self.home.workspace.change_parameters({**histories.changes_from(dice), **SCAN})

    def seen(self) -> tuple:
        """Return everything that can be compared."""
        return snapshot(self.home.workspace.network), self.home.nodes(), self.home.counters()


@histories.examples(120)
@given(
    changes=histories.starting_changes(),
    events=st.lists(st.integers(0, 2**32), min_size=20, max_size=60),
)
def test_restarts_change_nothing(changes: dict, events: list[int]) -> None:
    """A resumed pass has the same result, also with batches and parameter changes in between."""
    # The group size of a step grows while it is undisturbed; here equal steps must be equal visits.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "MAX_VISITS_PER_GROUP", passes.MIN_VISITS_PER_GROUP)
        _live_as_twins(changes, events)


def _live_as_twins(changes: dict, events: list[int]) -> None:
    twins = [Twin(changes, is_restless=False), Twin(changes, is_restless=True)]
    try:
        for event_seed in events:
            for twin in twins:
                twin.happen(event_seed)
            assert twins[0].seen() == twins[1].seen()
    finally:
        for twin in reversed(twins):
            twin.home.close()
