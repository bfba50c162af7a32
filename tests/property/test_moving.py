"""An agent that was exported and imported is the same agent, after every history.

Other tests cover the file format and refusals (tests/unit/store), and daemons.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.parameters import AgentParameters
from ebbtide.records import Cue
from tests.property import histories
from tests.property.homes import Home, shortened, snapshot, told
from tests.property.lockstep import names_as_mapping, names_by_rule
from tests.support.moving import content_of, directory, received, sent, staged_store


def live(home: Home, seed: int) -> None:
    """Apply one event to a home: remember, digest, continue a pass, or change a parameter."""
    dice = Random(seed)
    roll = dice.random()
    if roll < 0.5:
        segments = histories.batch_from(seed)
        named = names_by_rule([dice.choice(histories.NAMES) for _ in range(4)])
        focus_limit = home.workspace.parameters.focus_limit
        if home.workspace.inbox.next_task(10) is None:
            home.remember(segments, names_as_mapping(named, len(segments), focus_limit))
    elif roll < 0.6:
        home.accept(told(histories.batch_from(seed))[0])
    elif roll < 0.9:
        step = home.step(times_up=[False] * dice.randrange(6) + [True])
        if step.tasks and dice.random() < 0.5:
            home.step([shortened(task, histories.shorten) for task in step.tasks])
    else:
        home.workspace.change_parameters({"decay_rate": dice.choice([0.3, 0.9, 1.0]), "focus_limit": 2})


@pytest.mark.parametrize("form", ["backup", "export"])
@histories.examples(25)
@given(
    defaults=histories.starting_changes(),
    events=st.lists(st.integers(0, 2**32), max_size=30),
    cues=st.lists(histories.cues, min_size=1, max_size=3),
)
def test_a_moved_agent_is_equal(
    form: str, defaults: dict[str, object], events: list[int], cues: list[dict[str, object]]
) -> None:
    """Every table of the store is equal byte for byte, every recall is equal, and the current pass continues."""
    home = Home(defaults)
    try:
        for seed in events:
            live(home, seed)
        with directory() as data:
            staged = received(data, sent(data, home.store.store, form))
            with staged_store(staged) as store:
                before = content_of(home.store)
                if form == "export":
                    # Events and the audit log stay with the original.
                    before |= {"events": [], "audit": []}
                assert content_of(store) == before
                twin = Workspace(store, AgentParameters(**home.defaults))
                assert snapshot(twin.network) == snapshot(home.workspace.network)
                for cue in cues:
                    asked = Cue(**{name: value for name, value in cue.items() if value is not None})  # type: ignore[arg-type]
                    assert twin.recall(asked) == home.workspace.recall(asked)
                assert twin.passes.compress([], lambda: False, 1) == home.step()
    finally:
        home.close()
