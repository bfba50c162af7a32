"""Compression: what a pass does to a node (memory model, section 5).

A pass visits every due node once. What decides is the importance at the moment the node is reached: sources
already visited in this pass count decayed, nodes forgotten in it count nothing (`Draft`). A visit ends in one
of four ways: skipped (in focus), forgotten, kept, or to be shortened. Only the last one needs a text and a
language model, so it is handed back to the caller as a `Shortening`, and the visit ends when the caller
says how it went.

**Every visit that does not forget counts a scan**, also of protected nodes: protection saves the content, not
the links; otherwise a dense batch would live for ever.

**Long-term memory**: under `scan`, after its k-th scan a node is due again `1 + floor(k * long_term_factor)`
passes later. What was scanned often is scanned rarely.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random

import numpy as np

from ebbtide.changes import Change
from ebbtide.ids import NodeId
from ebbtide.memory.columns import Array
from ebbtide.memory.digestion import make_room
from ebbtide.memory.draft import Draft
from ebbtide.memory.focus import trim_focus
from ebbtide.memory.network import Network
from ebbtide.memory.strength import WHOLE, round_strength, target_length, target_lengths
from ebbtide.parameters import AgentParameters
from ebbtide.records import PassState, ScanState


class Verdict(Enum):
    """How a visit ends."""

    SKIP = "skip"
    FORGET = "forget"
    KEEP = "keep"
    SHORTEN = "shorten"


_BY_CODE = (Verdict.SKIP, Verdict.KEEP, Verdict.FORGET, Verdict.SHORTEN)
_CODES = {verdict: code for code, verdict in enumerate(_BY_CODE)}
"""Verdicts as numbers; those from FORGET on are more than a scan."""


@dataclass(frozen=True, slots=True)
class Shortening:
    """A node whose content must be brought down to `target` characters."""

    node_id: NodeId
    importance: float
    target: int


def begin_pass(network: Network, number: int, dice: Random) -> Change:
    """Start pass `number`: apply limits lowered meanwhile and, under `slots`, draw the nodes to visit."""
    parameters = network.parameters
    draft = Draft(network)
    trim_focus(draft, parameters.focus_limit)
    drawn: tuple[NodeId, ...] = ()
    if parameters.strategy == "slots":
        make_room(draft, parameters, parameters.max_nodes, dice)
        drawn = _draw(draft, parameters, dice)
    draft.change.pass_state = PassState(number, parameters.strategy, network.next_node_id, drawn=drawn)
    return draft.change


def _draw(draft: Draft, parameters: AgentParameters, dice: Random) -> tuple[NodeId, ...]:
    candidates = draft.living(outside_focus=True)
    drawn = dice.sample(candidates, min(parameters.compression_batch_size, len(candidates)))
    return tuple(sorted(drawn, key=lambda n: (round_strength(draft.importance(n)), n)))


def is_due(scan: ScanState, pass_number: int, long_term_factor: float) -> bool:
    """Whether a node is due in this pass (5.1)."""
    return bool(_are_due(np.array([scan.count]), np.array([scan.last_pass]), pass_number, long_term_factor))


def _are_due(counts: Array, last_passes: Array, pass_number: int, long_term_factor: float) -> Array:
    waits = np.floor(counts * long_term_factor)
    due: Array = (counts == 0) | (pass_number > last_passes + waits)
    return due


def nodes_to_visit(network: Network, state: PassState) -> Array:
    """Ids of the nodes a pass still has to visit, in order. Derived: made anew when a pass resumes."""
    if state.strategy == "slots":
        visited = 0 if state.after is None else state.drawn.index(state.after[1]) + 1
        left = np.array(state.drawn[visited:], dtype=np.int64)
        return left[network.are_alive(left)]
    slots = network.slots
    ids, counts, last_passes = slots["id"], slots["scan_count"], slots["last_pass"]
    due = slots["alive"] & (ids < state.start_id) & (last_passes != state.number)
    due &= _are_due(counts, last_passes, state.number, network.parameters.long_term_factor)
    if state.after is not None:
        count, node_id = state.after
        due &= (counts > count) | ((counts == count) & (ids > node_id))
    places = np.flatnonzero(due)
    # Slots ascend with ids, so a stable sort by count alone gives the order by (count, id).
    order: Array = ids[places[np.argsort(counts[places], kind="stable")]]
    return order


def judge(draft: Draft, node_id: NodeId) -> tuple[Verdict, Shortening | None]:
    """Steps 1 to 4 for one node: what is to become of it, given everything visited before."""
    visits = _Visits(draft, [node_id])
    verdict = visits.verdict(0)
    return verdict, visits.shortening(0) if verdict is Verdict.SHORTEN else None


def visit(
    draft: Draft,
    order: Sequence[NodeId] | Array,
    state: PassState,
    is_settled: Callable[[Shortening], bool] = lambda shortening: False,
) -> tuple[int, Shortening | None]:
    """Visit nodes in this order up to one that must be shortened; how many were visited, and what to shorten.

    A node to be shortened is left untouched and handed back, unless `is_settled` says that its new text is in
    the draft, or that the old one is to stay. Nodes that are gone meanwhile are passed over.
    """
    places = draft.places_of_living(order)
    living = np.asarray(order, dtype=np.int64)[places]
    visits = _Visits(draft, living)
    begun = 0
    while begun < len(living):
        event, verdict = visits.next_event(begun)
        if verdict is Verdict.SHORTEN and is_settled(visits.shortening(event)):
            visits.keep(event)
            continue
        _end_visits(draft, living[begun:event], state)
        if verdict is Verdict.SHORTEN:
            return int(places[event]), visits.shortening(event)
        begun = event
        if verdict is Verdict.FORGET:
            node_id = int(living[event])
            draft.change.pass_state = passed(state, node_id, draft.scan_count(node_id))
            visits.forget(event)
            begun += 1
    return len(order), None


def _end_visits(draft: Draft, node_ids: Array, state: PassState) -> None:
    """Step 5 for nodes that keep what they say, and step 1 for those in focus among them."""
    if not len(node_ids):
        return
    # Skipping moves the pass on too: whoever resumes it must not come by the same foci again.
    last = int(node_ids[-1])
    draft.change.pass_state = passed(state, last, draft.scan_count(last))
    draft.scan(node_ids[~np.isin(node_ids, draft.focus)], state.number)


class _Visits:
    """Verdicts for nodes about to be visited, worked out at once as if none of them were forgotten.

    Importance is taken when a node is reached, so each verdict counts the scans of those before it in this
    order. When one is forgotten, the verdicts of the nodes it supported are worked out again.
    """

    def __init__(self, draft: Draft, order: Sequence[NodeId] | Array) -> None:
        self._draft = draft
        network = draft.network
        self._slots = network.slots_of(order)
        self._rank = np.zeros(network.slots.count, dtype=np.int32)
        self._rank[self._slots] = np.arange(1, len(order) + 1)
        self._importances = np.zeros(len(order))
        self._verdicts = np.zeros(len(order), dtype=np.int8)
        self._behind = 0
        self._judge(np.arange(len(order)))

    def _judge(self, places: Array) -> None:
        if not len(places):
            return
        network, parameters = self._draft.network, self._draft.network.parameters
        slots = self._slots[places]
        importances = self._draft.importances(slots, self._rank)
        self._importances[places] = importances
        targets = target_lengths(network.slots["original_length"][slots], importances)
        shortened = targets <= (1 - parameters.min_shrink) * network.slots["content_length"][slots]
        in_focus = np.isin(network.slots["id"][slots], self._draft.focus)
        conditions = (
            (in_focus, Verdict.SKIP),
            (importances == 0, Verdict.FORGET),
            (importances >= WHOLE, Verdict.KEEP),
            (targets < parameters.delete_threshold, Verdict.FORGET),
            (shortened, Verdict.SHORTEN),
        )
        self._verdicts[places] = np.select(
            [condition for condition, _ in conditions],
            [_CODES[verdict] for _, verdict in conditions],
            default=_CODES[Verdict.KEEP],
        )

    def next_event(self, begin: int = 0) -> tuple[int, Verdict]:
        """The next place from `begin` on whose visit is more than a scan, and its verdict; else the end, KEEP."""
        events = self._verdicts[begin:] >= _CODES[Verdict.FORGET]
        place = begin + int(events.argmax()) if events.any() else len(self._verdicts)
        if place == len(self._verdicts):
            return place, Verdict.KEEP
        return place, _BY_CODE[int(self._verdicts[place])]

    def verdict(self, place: int) -> Verdict:
        """What is to become of the node at this place."""
        return _BY_CODE[int(self._verdicts[place])]

    def shortening(self, place: int) -> Shortening:
        """What the node at this place is to be shortened to."""
        network = self._draft.network
        slot = int(self._slots[place])
        importance = float(self._importances[place])
        length = int(network.slots["original_length"][slot])
        return Shortening(int(network.slots["id"][slot]), importance, target_length(length, importance))

    def keep(self, place: int) -> None:
        """The node at this place has its new text: what is left of its visit is the scan."""
        self._verdicts[place] = _CODES[Verdict.KEEP]

    def forget(self, place: int) -> None:
        """Forget the node at this place; whom it supported is judged again."""
        network = self._draft.network
        slot = int(self._slots[place])
        supported = network.links.rows["target"][network.links.of_source(slot)]
        self._draft.forget(int(network.slots["id"][slot]))
        # Those before this place were scanned in the draft by now; their ranks would count them twice.
        self._rank[self._slots[self._behind : place + 1]] = 0
        self._behind = place + 1
        later = np.unique(self._rank[supported])
        self._judge(later[later > 0] - 1)


def passed(state: PassState, node_id: NodeId, scan_count: int) -> PassState:
    """The pass once `node_id`, scanned `scan_count` times before this visit, lies behind it."""
    return PassState(
        state.number,
        state.strategy,
        state.start_id,
        after=(scan_count, node_id),
        drawn=state.drawn,
    )


def end_pass(draft: Draft, state: PassState, owed_passes: int) -> None:
    """The pass is through: one fewer is owed."""
    draft.change.pass_state = None
    draft.change.pass_ended = True
    draft.change.finished_passes = state.number
    draft.change.owed_passes = max(0, owed_passes - 1)


def erase(network: Network, node_id: NodeId) -> Change:
    """The change that erases one node for good, in focus or not; links that point at it dangle."""
    draft = Draft(network)
    draft.forget(node_id)
    if node_id in draft.focus:
        draft.set_focus(tuple(n for n in draft.focus if n != node_id))
    return draft.change
