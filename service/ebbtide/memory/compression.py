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

from dataclasses import dataclass
from enum import Enum
from math import floor
from random import Random

from ebbtide.memory.digestion import make_room
from ebbtide.memory.focus import trim_focus
from ebbtide.memory.network import WHOLE, Draft, Network, round_strength, target_length
from ebbtide.parameters import AgentParameters
from ebbtide.vocabulary import Change, NodeId, PassState, ScanState


class Verdict(Enum):
    """How a visit ends."""

    SKIP = "skip"
    FORGET = "forget"
    KEEP = "keep"
    SHORTEN = "shorten"


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
    candidates = sorted(n for n in draft.network.nodes if n in draft and n not in draft.focus)
    drawn = dice.sample(candidates, min(parameters.compression_batch_size, len(candidates)))
    return tuple(sorted(drawn, key=lambda n: (round_strength(draft.importance(n)), n)))


def is_due(scan: ScanState, pass_number: int, long_term_factor: float) -> bool:
    """Whether a node is due in this pass (5.1)."""
    if scan.count == 0:
        return True
    return pass_number > scan.last_pass + floor(scan.count * long_term_factor)


def nodes_to_visit(network: Network, state: PassState) -> list[NodeId]:
    """The nodes a pass still has to visit, in order. Derived: made anew when a pass resumes."""
    factor, after = network.parameters.long_term_factor, state.after
    if state.strategy == "slots":
        visited = 0 if after is None else state.drawn.index(after[1]) + 1
        return [n for n in state.drawn[visited:] if n in network.nodes]
    due = [
        (node.scan.count, node_id)
        for node_id, node in network.nodes.items()
        if node_id < state.start_id
        and node.scan.last_pass != state.number
        and is_due(node.scan, state.number, factor)
    ]
    return [key[1] for key in sorted(due) if after is None or key > after]


def judge(draft: Draft, node_id: NodeId) -> tuple[Verdict, Shortening | None]:
    """Steps 1 to 4 for one node: what is to become of it, given everything visited before."""
    if node_id in draft.focus:
        return Verdict.SKIP, None
    importance = draft.importance(node_id)
    if importance == 0:
        return Verdict.FORGET, None
    if importance >= WHOLE:
        return Verdict.KEEP, None
    parameters = draft.network.parameters
    node = draft.network.nodes[node_id]
    target = target_length(node.original_length, importance)
    if target < parameters.delete_threshold:
        return Verdict.FORGET, None
    if target <= (1 - parameters.min_shrink) * node.content_length:
        return Verdict.SHORTEN, Shortening(node_id, importance, target)
    return Verdict.KEEP, None


def visit(draft: Draft, node_id: NodeId, state: PassState) -> Shortening | None:
    """Visit one node. A node to be shortened is left untouched and handed back (`finish_visit` ends it)."""
    if node_id not in draft:
        return None
    verdict, shortening = judge(draft, node_id)
    if verdict is Verdict.SHORTEN:
        return shortening
    if verdict is Verdict.KEEP:
        finish_visit(draft, node_id, state)
        return None
    # Skipping moves the pass on too: whoever resumes it must not come by the same foci again.
    draft.change.pass_state = passed(state, node_id, draft.scan_state(node_id).count)
    if verdict is Verdict.FORGET:
        draft.forget(node_id)
    return None


def finish_visit(draft: Draft, node_id: NodeId, state: PassState) -> None:
    """Step 5: count the scan and move the pass on."""
    before = draft.scan_state(node_id).count
    draft.scan(node_id, state.number)
    draft.change.pass_state = passed(state, node_id, before)


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
