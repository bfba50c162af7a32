"""Events of a change, computed from the change and the network before it.

The rule guarded here: events match what was committed. Every change to memories is a `Change`, so its events are
computed in one place and no job can forget them. Events of batches and parameters are added by the jobs that commit
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ebbtide.changes import Change
from ebbtide.clock import SystemClock
from ebbtide.events import EventKind, EventRun, focus_run, run_of
from ebbtide.memory.network import Network
from ebbtide.memory.statement_effects import effects_of
from ebbtide.memory.statements import Entry, Ledger
from ebbtide.records import Batch, Node, Pin
from ebbtide.store.lmdb.transaction import WriteTransaction

EVENTS_KEEP = 100_000
"""Events kept per agent unless the settings say otherwise."""

ROUNDING = 1.000001
"""Rounding tolerance of a product. Candidates within it are computed exactly."""


@dataclass(frozen=True, slots=True)
class EventLog:
    """Writes the events of one agent within its transactions and reports them after the commit."""

    now_ms: Callable[[], int] = SystemClock().now_ms
    keep: int = EVENTS_KEEP
    on_committed: Callable[[Sequence[EventRun]], None] = lambda _: None
    """Called after the commit, on the thread that committed."""

    def write(self, txn: WriteTransaction, runs: Sequence[EventRun]) -> None:
        """Store events in the transaction that causes them. Their time is that of the commit."""
        if runs:
            txn.events.put(self.now_ms(), runs, self.keep)

    def notify(self, runs: Sequence[EventRun]) -> None:
        """Report committed events to streams and metrics."""
        if runs:
            self.on_committed(runs)


def build_events(network: Network, change: Change, erased_messages: Sequence[int] = ()) -> list[EventRun]:
    """Return the events of a change that is not yet applied to the network, in the order of writing."""
    number = _pass_number(change)
    old = [node for node in change.nodes if node.id < network.next_node_id]
    new = [node for node in change.nodes if node.id >= network.next_node_id]
    runs = [
        run_of(
            EventKind.NODE_CREATED,
            [node.id for node in new],
            [node.batch for node in new],
            [len(node.content) for node in new],
        ),
        _rewritten(old, number),
        *_pins(network, change),
        run_of(
            EventKind.ENTITY_MADE, [node_id for node_id in change.entities if node_id not in network.entities]
        ),
        run_of(EventKind.NODE_FORGOTTEN, change.forgotten, [number] * len(change.forgotten)),
        run_of(
            EventKind.MEMORY_ERASED,
            [*change.deleted, *(0 for _ in erased_messages)],
            [*(0 for _ in change.deleted), *erased_messages],
        ),
        run_of(EventKind.ENTITY_GONE, change.deleted_entities),
        _broken(network, change, number),
    ]
    memories = network.focus if change.focus is None else change.focus
    entities = network.entity_focus if change.entity_focus is None else change.entity_focus
    if (memories, entities) != (network.focus, network.entity_focus):
        runs.append(focus_run(memories, entities))
    if change.finished_passes is not None:
        runs.append(run_of(EventKind.PASS_COMPLETED, [change.finished_passes]))
    return [run for run in runs if run.count]


def statement_events(ledger: Ledger, change: Change, now_ms: int) -> list[EventRun]:
    """Return the events of the assertions and rulings of a change that is not yet applied to the ledger."""
    entries: list[Entry] = [*change.assertions, *change.rulings]
    if not (entries or change.removed_entries):
        return []
    found = effects_of(ledger, entries, change.removed_entries, now_ms)
    runs = [
        _pairs(EventKind.ENTITIES_MERGED, found.merged),
        _pairs(EventKind.ENTITIES_SEPARATED, found.separated),
        _pairs(EventKind.STATEMENT_CLOSED, found.closed),
        _pairs(EventKind.CONFLICT_FOUND, found.found),
        _pairs(EventKind.CONFLICT_SETTLED, found.settled),
        run_of(EventKind.FACT_PROMOTED, found.promoted),
        run_of(EventKind.FACT_DEMOTED, found.demoted),
    ]
    return [run for run in runs if run.count]


def _pairs(kind: EventKind, pairs: Sequence[tuple[int, int]]) -> EventRun:
    return run_of(kind, [one for one, _ in pairs], [other for _, other in pairs])


def batch_run(kind: EventKind, batch: Batch, *numbers: int) -> EventRun:
    """Return the event of a batch whose state changed."""
    return run_of(kind, [batch.number], *([number] for number in numbers))


def _pass_number(change: Change) -> int:
    """Return the pass to which a change belongs; 0 if none."""
    if change.finished_passes is not None:
        return change.finished_passes
    return 0 if change.pass_state is None else change.pass_state.number


def _rewritten(nodes: Sequence[Node], pass_number: int) -> EventRun:
    """Return the events of existing nodes that a pass shortened or the owner corrected."""
    if not pass_number:
        return run_of(EventKind.NODE_CORRECTED, [node.id for node in nodes])
    return run_of(
        EventKind.NODE_COMPRESSED,
        [node.id for node in nodes],
        [node.rewrites[-1].length_before for node in nodes],
        [node.rewrites[-1].length_after for node in nodes],
        [pass_number] * len(nodes),
    )


def _pins(network: Network, change: Change) -> list[EventRun]:
    """Return the events of memories that were pinned or unpinned."""
    new = [
        node.id for node in change.nodes if node.id >= network.next_node_id and node.pinned != Pin.NONE.value
    ]
    pinned = [node_id for node_id, pin in change.pins.items() if pin is not Pin.NONE]
    unpinned = [node_id for node_id, pin in change.pins.items() if pin is Pin.NONE]
    return [run_of(EventKind.NODE_PINNED, [*new, *pinned]), run_of(EventKind.NODE_UNPINNED, unpinned)]


def _broken(network: Network, change: Change, pass_number: int) -> EventRun:
    """Return the links that these scans weaken below the threshold.

    One comparison over all strengths finds the links that one more scan can break, usually none. Only these are
    computed exactly.
    """
    nothing = run_of(EventKind.LINK_BROKEN, [], [], [])
    if not len(change.scanned):
        return nothing
    parameters, rows = network.parameters, network.links.rows
    least, now = parameters.link_break_threshold, rows["now"]
    near = np.flatnonzero((now >= least) & (now < least / parameters.decay_rate * ROUNDING))
    if not len(near):
        return nothing
    sources = rows["source"][near]
    is_scanned = np.isin(sources, network.slots_of(change.scanned)) & network.slots["alive"][sources]
    gone = network.slots_of(change.forgotten) if change.forgotten else np.zeros(0, dtype=np.int64)
    near = near[is_scanned & ~rows["held"][near] & ~np.isin(sources, gone)]
    broken = near[network.decayed(near, np.ones(len(near), dtype=np.int32)) < least]
    ids = network.slots["id"]
    sources, targets = ids[rows["source"][broken]].tolist(), ids[rows["target"][broken]].tolist()
    return run_of(EventKind.LINK_BROKEN, sources, targets, [pass_number] * len(sources))
