"""Compression: what a pass does to a node (memory model, section 5).

A pass visits every due node once. The importance at the moment of the visit decides: links of sources visited earlier
in the pass count decayed, and those of forgotten nodes do not count (`Draft`). The visit of a memory ends in one of
four ways: it is skipped (in focus), forgotten, kept, or must be shortened. Shortening needs a language model, so the
caller gets a `Shortening` and continues the visit with the result. A statement is kept or forgotten, never shortened;
one that is true in a lasting slot is skipped.
An entity is scanned, or deleted if no live link is left at either end.

**Every visit that does not forget the node counts as a scan**, also for protected nodes. Protection preserves the
content, not the links; otherwise a densely linked batch would live for ever.

**Long-term memory**: under `scan`, a node is due again `1 + floor(k * long_term_factor)` passes after its k-th scan, an
entity after at most `entity_wait_max` passes.
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
from ebbtide.records import PassState


class Verdict(Enum):
    """How a visit ends."""

    SKIP = "skip"
    FORGET = "forget"
    KEEP = "keep"
    DROP = "drop"
    SHORTEN = "shorten"


_BY_CODE = (Verdict.SKIP, Verdict.KEEP, Verdict.DROP, Verdict.FORGET, Verdict.SHORTEN)
_CODES = {verdict: code for code, verdict in enumerate(_BY_CODE)}
"""Verdicts as numbers. From FORGET on, a visit can change what happens to others."""


@dataclass(frozen=True, slots=True)
class Shortening:
    """A node whose content must be shortened to `target` characters."""

    node_id: NodeId
    importance: float
    target: int


def begin_pass(network: Network, number: int, rng: Random) -> Change:
    """Begin pass `number`: apply limits that were lowered and, under `slots`, draw the nodes to visit."""
    parameters = network.parameters
    draft = Draft(network)
    trim_focus(draft)
    if network.entity_memories != parameters.entity_memories:
        draft.settle_focus()
        draft.change.entity_memories = parameters.entity_memories
    drawn: tuple[NodeId, ...] = ()
    if parameters.strategy == "slots":
        make_room(draft, parameters, parameters.max_nodes, rng)
        drawn = _draw(draft, parameters, rng)
    draft.change.pass_state = PassState(number, parameters.strategy, network.next_node_id, drawn=drawn)
    return draft.change


def has_effect(begun: Change) -> bool:
    """Return whether the beginning of a pass changes more than the state of the pass."""
    moved = begun.focus is not None or begun.entity_focus is not None or begun.entity_memories is not None
    return bool(begun.forgotten or begun.links or begun.removed_links or moved)


def _draw(draft: Draft, parameters: AgentParameters, rng: Random) -> tuple[NodeId, ...]:
    candidates = draft.candidates(with_pinned=True)
    drawn = rng.sample(candidates, min(parameters.compression_batch_size, len(candidates)))
    return tuple(sorted(drawn, key=lambda n: (round_strength(draft.importance(n)), n)))


def nodes_to_visit(network: Network, state: PassState) -> Array:
    """Return the ids of the nodes that a pass still has to visit, in order. Computed again when a pass resumes."""
    if state.strategy == "scan":
        return _due_nodes(network, state, np.ones(network.slots.count, dtype=np.bool_), state.after)
    entities = network.slots["is_entity"]
    if state.after is not None and state.after[1] not in state.drawn:
        return _due_nodes(network, state, entities, state.after)
    visited = 0 if state.after is None else state.drawn.index(state.after[1]) + 1
    left = np.array(state.drawn[visited:], dtype=np.int64)
    order: Array = np.concatenate([left[network.are_alive(left)], _due_nodes(network, state, entities, None)])
    return order


def _due_nodes(network: Network, state: PassState, chosen: Array, after: tuple[int, NodeId] | None) -> Array:
    """Return the chosen nodes that are due, by scan count and id, from the position `after`."""
    slots, parameters = network.slots, network.parameters
    ids, counts, last_passes = slots["id"], slots["scan_count"], slots["last_pass"]
    waits = np.floor(counts * parameters.long_term_factor)
    waits = np.where(slots["is_entity"], np.minimum(waits, parameters.entity_wait_max - 1), waits)
    due = chosen & slots["alive"] & (ids < state.start_id) & (last_passes != state.number)
    due &= (counts == 0) | (state.number > last_passes + waits)
    if after is not None:
        count, node_id = after
        due &= (counts > count) | ((counts == count) & (ids > node_id))
    places = np.flatnonzero(due)
    # Slots ascend with ids, so a stable sort by count yields the order (count, id).
    order: Array = ids[places[np.argsort(counts[places], kind="stable")]]
    return order


def visit(
    draft: Draft,
    order: Sequence[NodeId] | Array,
    state: PassState,
    is_settled: Callable[[Shortening], bool] = lambda shortening: False,
) -> tuple[int, Shortening | None]:
    """Visit nodes in order up to one that must be shortened. Return the number of visits and that shortening.

    `is_settled` returns whether a node's new text is already in the draft, or its old text is to stay. Nodes that no
    longer live are skipped.
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
        _end_visits(draft, living[begun:event], visits.are_dropped(begun, event), state)
        if verdict is Verdict.SHORTEN:
            return int(places[event]), visits.shortening(event)
        begun = event
        if verdict is Verdict.FORGET:
            node_id = int(living[event])
            draft.change.pass_state = passed(state, node_id, draft.scan_count(node_id))
            visits.forget(event)
            begun += 1
    return len(order), None


def _end_visits(draft: Draft, node_ids: Array, dropped: Array, state: PassState) -> None:
    """Delete the dropped entities and scan the other nodes, except memories in focus and kept statements."""
    if not len(node_ids):
        return
    # Skipped nodes advance the pass too, so that a resumed pass does not visit them again.
    last = int(node_ids[-1])
    draft.change.pass_state = passed(state, last, draft.scan_count(last))
    kept = draft.network.slots["is_kept"][draft.network.slots_of(node_ids)]
    scanned = ~dropped & ~kept & ~np.isin(node_ids, draft.focus)
    if not dropped.any():
        draft.scan(node_ids[scanned], state.number)
        return
    # Deleting an entity settles the focus, so the scans of entities in focus must not be counted too early.
    begun = 0
    in_focus = np.flatnonzero(np.isin(node_ids, draft.entity_focus)) + 1
    for end in [*in_focus.tolist(), len(node_ids)]:
        some = slice(begun, end)
        draft.drop_entities(node_ids[some][dropped[some]])
        draft.scan(node_ids[some][scanned[some]], state.number)
        begun = end


class _Visits:
    """Verdicts for the next visits, computed together as if none of the nodes were forgotten.

    Importance counts at the moment of the visit, so each verdict includes the scans of earlier nodes in the order. When
    a node is forgotten, the verdicts of the nodes that it supported are computed again.
    """

    def __init__(self, draft: Draft, order: Sequence[NodeId] | Array) -> None:
        self._draft = draft
        network = draft.network
        self._slots = network.slots_of(order)
        self._rank = np.zeros(network.slots.count, dtype=np.int32)
        self._rank[self._slots] = np.arange(1, len(order) + 1)
        self._importances = np.zeros(len(order))
        self._verdicts = np.zeros(len(order), dtype=np.int8)
        self._visited_count = 0
        self._evaluate(np.arange(len(order)))

    def _evaluate(self, places: Array) -> None:
        if not len(places):
            return
        network, parameters = self._draft.network, self._draft.network.parameters
        slots = self._slots[places]
        importances = self._draft.importances(slots, self._rank)
        self._importances[places] = importances
        targets = target_lengths(network.slots["original_length"][slots], importances)
        shortened = targets <= (1 - parameters.min_shrink) * network.slots["content_length"][slots]
        in_focus = np.isin(network.slots["id"][slots], [*self._draft.focus, *self._draft.entity_focus])
        is_entity = network.slots["is_entity"][slots]
        unsupported = is_entity & ~in_focus & (importances == 0)
        unsupported[unsupported] = self._draft.without_live_links(slots[unsupported])
        conditions = (
            (unsupported, Verdict.DROP),
            (is_entity, Verdict.KEEP),
            (in_focus | network.slots["is_kept"][slots], Verdict.SKIP),
            (network.slots["is_pinned"][slots], Verdict.KEEP),
            (importances == 0, Verdict.FORGET),
            ((importances >= WHOLE) | network.slots["is_statement"][slots], Verdict.KEEP),
            (targets < parameters.delete_threshold, Verdict.FORGET),
            (shortened, Verdict.SHORTEN),
        )
        self._verdicts[places] = np.select(
            [condition for condition, _ in conditions],
            [_CODES[verdict] for _, verdict in conditions],
            default=_CODES[Verdict.KEEP],
        )

    def next_event(self, begin: int = 0) -> tuple[int, Verdict]:
        """Return the next position from `begin` on whose memory is to be forgotten or shortened, and its verdict.

        If there is none, return the end and KEEP.
        """
        events = self._verdicts[begin:] >= _CODES[Verdict.FORGET]
        place = begin + int(events.argmax()) if events.any() else len(self._verdicts)
        if place == len(self._verdicts):
            return place, Verdict.KEEP
        return place, _BY_CODE[int(self._verdicts[place])]

    def are_dropped(self, begin: int, end: int) -> Array:
        """Return which of these positions are entities to delete."""
        dropped: Array = self._verdicts[begin:end] == _CODES[Verdict.DROP]
        return dropped

    def shortening(self, place: int) -> Shortening:
        """Return how the node at this position is to be shortened."""
        network = self._draft.network
        slot = int(self._slots[place])
        importance = float(self._importances[place])
        length = int(network.slots["original_length"][slot])
        return Shortening(int(network.slots["id"][slot]), importance, target_length(length, importance))

    def keep(self, place: int) -> None:
        """Note that the node at this position has its new text, so that its visit ends with a scan."""
        self._verdicts[place] = _CODES[Verdict.KEEP]

    def forget(self, place: int) -> None:
        """Forget the memory at this position, and recompute the verdicts of the nodes that it supported."""
        network = self._draft.network
        slot = int(self._slots[place])
        supported = network.links.rows["target"][network.rows_from(slot)]
        self._draft.forget(int(network.slots["id"][slot]))
        # Earlier nodes were scanned in the draft already; their ranks would count those scans twice.
        self._rank[self._slots[self._visited_count : place + 1]] = 0
        self._visited_count = place + 1
        later = np.unique(self._rank[supported])
        self._evaluate(later[later > 0] - 1)


def passed(state: PassState, node_id: NodeId, scan_count: int) -> PassState:
    """Return the state of the pass after visiting a node that had been scanned `scan_count` times."""
    return PassState(
        state.number,
        state.strategy,
        state.start_id,
        after=(scan_count, node_id),
        drawn=state.drawn,
    )


def end_pass(draft: Draft, state: PassState, owed_passes: int) -> None:
    """Complete the pass: one fewer is owed."""
    draft.change.pass_state = None
    draft.change.pass_ended = True
    draft.change.finished_passes = state.number
    draft.change.owed_passes = max(0, owed_passes - 1)
