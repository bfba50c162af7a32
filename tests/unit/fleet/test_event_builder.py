"""Events describe every change of a memory and nothing else, compared with the memory before and after each step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import pytest

from ebbtide.errors import Exhausted
from ebbtide.events import Event, EventRun
from ebbtide.fleet.deletion.removal import Memory, Removal
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.fleet.state.event_builder import EventLog
from ebbtide.memory.network import Network
from ebbtide.parameters import AgentParameters
from tests.property.homes import Home
from tests.support.networks import all_links

PARAMETERS: list[dict[str, object]] = [
    {"decay_rate": 0.6, "link_break_threshold": 0.2, "long_term_factor": 0.0, "focus_limit": 2},
    {"decay_rate": 0.8, "link_break_threshold": 0.3, "long_term_factor": 0.5, "focus_limit": 1},
    {"strategy": "slots", "max_nodes": 9, "focus_limit": 2, "decay_rate": 0.7, "link_break_threshold": 0.1},
    # A link in focus has strength 1.0, so that its first scan would break it.
    {"decay_rate": 0.5, "link_break_threshold": 0.99, "long_term_factor": 0.0, "focus_limit": 3},
]

Live = set[tuple[int, int, str]]


@pytest.fixture(params=PARAMETERS)
def home(request: pytest.FixtureRequest) -> Iterator[Home]:
    """A workspace with these parameters, checked afterwards."""
    made = Home(request.param)
    yield made
    assert made.faults() == []
    made.close()


def live_links(network: Network) -> Live:
    """Return the links that are at least as strong as the threshold."""
    least = network.parameters.link_break_threshold
    return {
        (link.source, link.target, link.relation)
        for link, strength in all_links(network)
        if strength >= least
    }


class Follower:
    """Follows the events as a client would, and derives living memories and focus from them alone."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.seen = 0
        self.lengths: dict[int, int] = {}
        self.focus: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
        self.entities: set[int] = set()

    def news(self) -> list[Event]:
        """Return the new events after applying them."""
        events = self.home.store.read(lambda txn: list(txn.events.since(self.seen + 1)))
        assert [event.sequence for event in events] == list(range(self.seen + 1, self.seen + 1 + len(events)))
        self.seen += len(events)
        for event in events:
            self._follow(event)
        return list(events)

    def _follow(self, event: Event) -> None:
        node = event.numbers.get("node", 0)
        if event.kind == "NodeCreated":
            assert node not in self.lengths
            self.lengths[node] = event.numbers["length"]
        elif event.kind == "NodeCompressed":
            assert self.lengths[node] == event.numbers["length_before"]
            self.lengths[node] = event.numbers["length"]
        elif event.kind in ("NodeForgotten", "MemoryErased") and node:
            del self.lengths[node]
        elif event.kind == "FocusMoved":
            self.focus = event.focus, event.entity_focus
        elif event.kind == "EntityMade":
            self.entities.add(node)
        elif event.kind == "EntityGone":
            self.entities.remove(node)

    def agrees(self) -> None:
        """Its knowledge equals the memory."""
        assert self.lengths == {node.id: len(node.content) for node in self.home.nodes().values()}
        network = self.home.workspace.network
        assert self.focus == (network.focus, network.entity_focus)
        assert self.entities == set(network.entities)


def remember(home: Home, dice: Random, number: int) -> None:
    words = [f"word{dice.randrange(30)}" for _ in range(12)]
    segments = [(f"{number}-{index} " + " ".join(words), ["key"]) for index in range(dice.randrange(1, 4))]
    home.remember(segments, {})


def halved(text: str, target: int) -> str | None:
    return text[:target] or None


def test_a_follower_knows_what_lives(home: Home) -> None:
    """Events alone yield every memory with its length, and the focus, after any history and across openings."""
    dice, follower = Random(5), Follower(home)
    for number in range(25):
        remember(home, dice, number)
        while home.counters()[1]:
            home.compress(halved, [dice.random() < 0.3 for _ in range(4)])
        if number % 5 == 4:
            living = sorted(home.nodes())
            home.workspace.remove(Removal([Memory(living[0])], "deleted"), lambda: False, 10, "-")
            home.reopen()
        follower.news()
        follower.agrees()


def test_broken_links_are_those_that_were_live_before(home: Home) -> None:
    """Each link that a pass breaks is reported in the same step, and no other link is."""
    dice, follower, broken_count = Random(11), Follower(home), 0
    for number in range(12):
        remember(home, dice, number)
        home.workspace.passes.owe(2)
        while home.counters()[1]:
            follower.news()
            before = live_links(home.workspace.network)
            step = home.step(times_up=[dice.random() < 0.5 for _ in range(3)])
            for _ in range(len(step.tasks)):
                # Texts that are not shortened stay, and the scan counts.
                home.step([_unanswered(task) for task in step.tasks], most_tasks=1)
                break
            after = live_links(home.workspace.network)
            events = follower.news()
            alive = set(home.workspace.network.node_ids(with_entities=True))
            gone = sorted((source, target) for source, target, _ in before - after if source in alive)
            told = [e for e in events if e.kind == "LinkBroken"]
            assert sorted((e.numbers["node"], e.numbers["target"]) for e in told) == gone
            assert all(event.numbers["pass_number"] for event in told)
            broken_count += len(told)
    if home.workspace.parameters.strategy == "scan":
        assert broken_count > 0


def _unanswered(task: object) -> object:
    from ebbtide.fleet.compression.passes import Shortened

    return Shortened(task, None, "test")  # type: ignore[arg-type]


def test_uncommitted_changes_cause_no_event(home: Home) -> None:
    """When the commit of a digest, a deletion or a pass fails, no event is stored and no stream is woken."""
    told: list[Sequence[EventRun]] = []
    remember(home, Random(1), 0)
    log = EventLog(lambda: 5, 1000, told.append)
    home.workspace = Workspace(home.store, AgentParameters(**home.defaults), log)
    follower = Follower(home)
    follower.news()
    told.clear()
    home.store.is_full = True
    with pytest.raises(Exhausted):
        home.workspace.remove(Removal([Memory(1)], "deleted"), lambda: False, 10, "-")
    with pytest.raises(Exhausted):
        home.step()
    with pytest.raises(Exhausted):
        home.workspace.change_parameters({"locale": "en"})
    assert (follower.news(), told) == ([], [])
    home.store.is_full = False
    home.workspace.change_parameters({"locale": "en"})
    assert [event.names for event in follower.news()] == [("locale",)]
    assert len(told) == 1
