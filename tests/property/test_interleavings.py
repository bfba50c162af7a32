"""A pass with batches, parameter changes and restarts between its steps.

The oracle knows only whole passes, so these tests check invariants: nothing is scanned twice in a pass, nothing grows,
links have living sources, and the pass ends. A text may be in the middle of its shortening meanwhile. One job runs at a
time, as the mailbox guarantees.
"""

from __future__ import annotations

from random import Random

from hypothesis import event, given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ebbtide.fleet.compression.passes import Shortened
from ebbtide.records import PassState, ScanState
from tests.property import histories
from tests.property.homes import Home, shortened, snapshot
from tests.property.lockstep import names_as_mapping, names_by_rule
from tests.support.networks import all_links

BRISK = {"decay_rate": 0.7, "focus_limit": 2, "delete_threshold": 2, "max_nodes": 12}


class Interleaved(RuleBasedStateMachine):
    """The invariants of the memory model hold after each step of a pass, whatever happens in between."""

    def __init__(self) -> None:
        super().__init__()
        self.home: Home | None = None
        self.finished: list[Shortened] = []
        self.salt = 0
        self.focus_bound = 0
        """Largest focus: the highest limit since a batch or the start of a pass applied one."""
        self.lengths: dict[int, int] = {}
        self.scans: dict[int, ScanState] = {}
        self.newest = 0
        self.counters = (0, 0)
        self.protected: set[int] = set()
        """Nodes seen in focus throughout the current pass."""
        self.pass_number = 0

    def teardown(self) -> None:
        if self.home is None:
            return
        try:
            self.run_to_the_end()
            self.holds()
            assert self.home.faults() == []
        finally:
            self.home.close()

    @initialize(
        changes=histories.starting_changes(),
        brisk=st.booleans(),
        batches=histories.many_batches,
    )
    def start(self, changes: dict, brisk: bool, batches: list) -> None:
        self.home = Home({**BRISK, **changes} if brisk else changes)
        self.focus_bound = self.home.workspace.parameters.focus_limit
        for segments in batches:
            self.digest(segments, ["", "friend of"])

    @rule(segments=histories.segments, names=histories.relation_names)
    def digest(self, segments: list, names: list[str]) -> None:
        limit = self.home.workspace.parameters.focus_limit
        if self.pass_state() is not None:
            event("a digest in the middle of a pass")
        self.home.remember(segments, names_as_mapping(names_by_rule(names), len(segments), limit))
        if segments:
            self.focus_bound = limit

    @rule(changes=histories.changes())
    def patch(self, changes: dict) -> None:
        if self.pass_state() is not None:
            event("a patch in the middle of a pass")
        parameters = self.home.workspace.change_parameters(changes)
        self.focus_bound = max(self.focus_bound, parameters.focus_limit)

    @rule(
        visits=st.integers(1, 12),
        keep_waiting=st.booleans(),
        salt=st.integers(0, 50),
    )
    def step(self, visits: int, keep_waiting: bool, salt: int) -> None:
        """Run one step of this many visits; a text may stay in the middle of its shortening."""
        begins = self.pass_state() is None and self.home.counters()[1] > 0
        before = self.home.counters()
        step = self.home.step(self.finished, [False] * (visits - 1) + [True], most_tasks=1 + salt % 4)
        if begins:
            self.focus_bound = self.home.workspace.parameters.focus_limit
        if self.home.counters() != before:
            assert self.home.counters() == (before[0] + 1, max(0, before[1] - 1))
        self.salt = salt
        self.finished = [
            shortened(task, lambda text, n: histories.shorten(text, n, salt)) for task in step.tasks
        ]
        if self.finished and not keep_waiting:
            self.step(1, True, salt)

    @rule(is_lost=st.booleans())
    def reopen(self, is_lost: bool) -> None:
        """Restart. A shortening in progress is lost, or not (a slice that outlived the restart)."""
        before = snapshot(self.home.workspace.network)
        if self.pass_state() is not None:
            event("a restart in the middle of a pass")
        self.home.reopen()
        assert snapshot(self.home.workspace.network) == before
        self.finished = [] if is_lost else self.finished

    @rule()
    def cut_off(self) -> None:
        """End a slice during a shortening: the node is first next time."""
        self.finished = []

    @rule()
    def run_to_the_end(self) -> None:
        """A disturbed pass ends within one step and one shortening per node."""
        if self.pass_state() is None:
            return
        done = self.home.counters()[0]
        for _ in range(2 * self.home.workspace.network.node_count + 2):
            step = self.home.step(self.finished)
            self.finished = [shortened(task, lambda text, n: text[:n]) for task in step.tasks]
            if self.home.counters()[0] == done + 1:
                assert self.pass_state() is None
                return
            assert self.home.counters()[0] == done
        raise AssertionError("the pass does not end")

    def pass_state(self) -> PassState | None:
        """The current pass."""
        state: PassState | None = self.home.store.read(lambda txn: txn.meta.pass_state)
        return state

    @invariant()
    def holds(self) -> None:
        if self.home is None:
            return
        self.network_is_sound()
        self.contents_only_shrink()
        self.passes_count_up()

    def network_is_sound(self) -> None:
        """Links have living sources and strengths in [0, 1]; the focus contains living nodes once each, within its
        limit.
        """
        network = self.home.workspace.network
        assert set(self.home.nodes()) == set(network.node_ids())
        living = set(network.node_ids(with_entities=True))
        on_disk = self.home.store.read(lambda txn: list(txn.links.all()))
        assert {link.source for link in on_disk} <= living
        for link, strength in all_links(network):
            assert link.source in living
            assert 0.0 <= strength <= 1.0
        for focus in (network.focus, network.entity_focus):
            assert set(focus) <= living
            assert len(set(focus)) == len(focus) <= self.focus_bound

    def contents_only_shrink(self) -> None:
        """No content grows or exceeds its original length, and ids are not reused."""
        nodes = self.home.nodes()
        for node_id, node in nodes.items():
            assert len(node.content) <= self.lengths.get(node_id, node.original_length)
            assert node_id in self.lengths or node_id > self.newest
            assert self.home.workspace.network.node(node_id).content_length == len(node.content)
        self.lengths = {node_id: len(node.content) for node_id, node in nodes.items()}
        self.newest = max(self.newest, self.home.workspace.network.next_node_id - 1)

    def passes_count_up(self) -> None:
        """At most one scan per pass, none of nodes that stay in focus, none of
        newer nodes; pass numbers rise by one.
        """
        network, state = self.home.workspace.network, self.pass_state()
        done = self.home.counters()[0]
        assert done - self.counters[0] in (0, 1)
        if state is not None:
            assert state.number == done + 1
            made_since = network.node_ids(state.start_id)
            assert all(network.node(n).scan.last_pass < state.number for n in made_since)
        number = done if state is None else state.number
        if number != self.pass_number:
            self.protected, self.pass_number = set(network.focus), number
        self.protected &= set(network.focus)
        scans = {node_id: network.node(node_id).scan for node_id in network.node_ids()}
        for node_id, scan in scans.items():
            before = self.scans.get(node_id, ScanState())
            if scan != before:
                assert scan.count == before.count + 1 and before.last_pass < scan.last_pass <= number
            assert node_id not in self.protected or scan.last_pass < number or number == 0
        self.scans, self.counters = scans, self.home.counters()


TestInterleaved = Interleaved.TestCase
TestInterleaved.settings = histories.examples(150, steps=25)


@histories.examples(250)
@given(
    changes=histories.starting_changes(),
    brisk=st.booleans(),
    events=st.lists(st.integers(0, 2**32), min_size=20, max_size=60),
)
def test_long_disturbed_lives(changes: dict, brisk: bool, events: list[int]) -> None:
    """A long life with few undisturbed passes keeps every invariant at every moment."""
    machine = Interleaved()
    machine.start(changes=changes, brisk=brisk, batches=[histories.batch_from(1)])
    machine.holds()
    try:
        for event_seed in events:
            dice = Random(event_seed)
            roll = dice.random()
            if roll < 0.25:
                names = [dice.choice(histories.NAMES) for _ in range(4)]
                machine.digest(segments=histories.batch_from(event_seed), names=names)
            elif roll < 0.75:
                visits, waits = dice.randint(1, 9), dice.random() < 0.5
                machine.step(visits=visits, keep_waiting=waits, salt=event_seed % 50)
            elif roll < 0.83:
                machine.patch(changes=histories.changes_from(dice))
            elif roll < 0.90:
                machine.reopen(is_lost=dice.random() < 0.5)
            elif roll < 0.95:
                machine.cut_off()
            else:
                machine.run_to_the_end()
            machine.holds()
    finally:
        machine.teardown()
