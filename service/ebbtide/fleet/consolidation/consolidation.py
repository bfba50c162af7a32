"""Consolidation: background work on the statements of one agent, in short steps (knowledge model, section 8).

A run goes through the steps in order. A part of a step reads, computes and commits in one job, and its commit notes how
far the run is. After a kill the run continues there. A statement is staged until a run that has seen it ends.

The rule guarded here: **an agent without statements is not touched**, and a run changes no value that is true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ebbtide.bounds import MAX_COUNT
from ebbtide.changes import Change
from ebbtide.events import EventKind, EventRun, run_of
from ebbtide.fleet.consolidation.causes import Causes
from ebbtide.fleet.consolidation.concepts import Concepts
from ebbtide.fleet.consolidation.conflicts import Conflicts
from ebbtide.fleet.consolidation.habits import Habits
from ebbtide.fleet.consolidation.merges import Staged
from ebbtide.fleet.consolidation.steps import Finding, Part, Step, View
from ebbtide.fleet.consolidation.tiers import Tiers
from ebbtide.fleet.state.agent_state import State
from ebbtide.statements import CONSOLIDATION_STEPS, ConsolidationState
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction

MAX_STAGED = 500
"""So many new statements start a run."""

MAX_FINDINGS = 100
"""Most findings of a step that a run remembers."""

RETRY_MS = 600_000
"""Pause after a failure."""

HOUR_MS = 3_600_000

STEPS: Mapping[str, Callable[[], Step]] = {
    "staged": Staged,
    "conflicts": Conflicts,
    "causes": Causes,
    "concepts": Concepts,
    "habits": Habits,
    "tiers": Tiers,
}
"""The steps by name, in the order of `CONSOLIDATION_STEPS`."""

NUMBERS = tuple(number for number, name in enumerate(CONSOLIDATION_STEPS, 1) if name in STEPS)
"""The numbers of the steps, from 1."""


@dataclass(slots=True)
class Run:
    """A run in progress."""

    state: ConsolidationState
    step: Step
    findings: dict[str, list[Finding]] = field(default_factory=dict)
    events: list[EventRun] = field(default_factory=list)
    """The events of completed steps that no commit has stored yet."""
    texts: Sequence[str] = ()
    """Texts of which the next part can use the vectors."""
    vectors: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The items that a run looked at, changed and found, by step."""

    looked: dict[str, int]
    changed: dict[str, int]
    findings: dict[str, list[Finding]]


NOTHING = Outcome(dict.fromkeys(STEPS, 0), dict.fromkeys(STEPS, 0), {})
"""The outcome for an agent without statements."""


class Consolidation:
    """The consolidation of one agent. Its methods are jobs, except `due_at_ms` and `failed`."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._run: Run | None = None
        self.last_findings: dict[str, list[Finding]] = {}
        self._retry_at_ms = 0
        self._stored, self._has_statements, self._first_ms, self._staged_count = state.store.read(_read)

    # --- when --------------------------------------------------------------------------------------

    def due_at_ms(self, now_ms: int) -> int | None:
        """Return the time from which a run should be in progress; None for no time."""
        interval_h = self._state.parameters.consolidation_interval_h
        if not self._has_statements:
            return None
        if self._run is not None or self._stored.step:
            return self._retry_at_ms
        if not interval_h:
            return None
        if self._staged_count >= MAX_STAGED:
            return self._retry_at_ms
        # A clock may have been ahead when the last run ended.
        begin_ms = min(self._stored.finished_at_ms or self._first_ms, now_ms)
        return max(self._retry_at_ms, begin_ms + interval_h * HOUR_MS)

    def failed(self, now_ms: int) -> None:
        """Try again later; the run continues from its last commit."""
        self._run, self._retry_at_ms = None, now_ms + RETRY_MS

    def note(self, change: Change, now_ms: int) -> None:
        """Count the statements of a change that was committed."""
        if change.assertions and not self._has_statements:
            self._has_statements, self._first_ms = True, now_ms
        made = {node.id for node in change.nodes}
        self._staged_count += sum(one.statement in made for one in change.assertions)

    # --- the run -----------------------------------------------------------------------------------

    def begin(self) -> int:
        """Begin a run, also if one is in progress. Return its number; 0 for an agent without statements."""
        self._run = self._new_run()
        return 0 if self._run is None else self._run.state.run

    def advance(self, now_ms: int, is_time_up: Callable[[], bool]) -> str:
        """Run a part of the run in progress, or of a new one. Return the step; empty if no run is left to do."""
        if self._run is None:
            self._run = self._continued() or self._new_run()
        run, self._run = self._run, None  # after a failure, the run continues from its last commit
        if run is None:
            return ""
        name, part = self._part(run, now_ms, is_time_up)
        after = self._after(run, part, now_ms)
        if part.position is None:
            run.events.append(_event(after, run.state.step))
        if part.change is not None or not after.step:
            self._commit(run, part.change or Change(), after)
        run.state = after
        if after.step:
            self._run = run
        else:
            self.last_findings, self._staged_count, self._retry_at_ms = run.findings, 0, 0
        return name

    @property
    def is_running(self) -> bool:
        """Whether a run is in progress."""
        return self._run is not None

    @property
    def current(self) -> Run | None:
        """The run in progress."""
        return self._run

    def is_done(self, number: int) -> bool:
        """Return whether the run of a number, or a later one, has ended."""
        return self._run is None and self._stored.run >= number and not self._stored.step

    def outcome(self) -> Outcome:
        """Return the outcome of the last run."""
        return _outcome(self._stored, self.last_findings)

    def rehearse(self, run: Run | None, now_ms: int, is_time_up: Callable[[], bool]) -> Run | Outcome:
        """Run a part without a commit. Return the run for the next part, or the outcome at its end."""
        run = run or self._new_run()
        if run is None:
            return NOTHING
        _, part = self._part(run, now_ms, is_time_up)
        run.state = self._after(run, part, now_ms)
        return run if run.state.step else _outcome(run.state, run.findings)

    def _new_run(self) -> Run | None:
        if not self._state.ledger.statement_count:
            self._has_statements = False
            return None
        last = self._state.store.read(lambda txn: txn.meta.ledger.next_entry) - 1
        none = (0,) * len(CONSOLIDATION_STEPS)
        number = min(self._stored.run + 1, MAX_COUNT)
        state = replace(
            self._stored, run=number, step=NUMBERS[0], position=0, up_to=last, looked=none, changed=none
        )
        return Run(state, _step(state))

    def _continued(self) -> Run | None:
        """Return the run that a kill or a failure has interrupted."""
        stored = self._stored
        sizes = {len(stored.looked), len(stored.changed)}
        is_known = stored.step in NUMBERS and sizes == {len(CONSOLIDATION_STEPS)}
        return Run(stored, _step(stored)) if is_known and self._state.ledger.statement_count else None

    def _part(self, run: Run, now_ms: int, is_time_up: Callable[[], bool]) -> tuple[str, Part]:
        state, known = self._state, run.state
        network, ledger = state.network, state.ledger
        is_time_up()  # the time begins

        def read(txn: ReadTransaction) -> Part:
            after, up_to = known.consolidated_up_to, known.up_to
            view = View(txn, network, ledger, state.parameters, now_ms, after, up_to, run.vectors)
            return run.step.part(view, known.position, is_time_up)

        part = state.store.read(read)
        run.texts, run.vectors = part.texts, None
        name = CONSOLIDATION_STEPS[known.step - 1]
        found = run.findings.setdefault(name, [])
        found += part.findings[: MAX_FINDINGS - len(found)]
        return name, part

    def _after(self, run: Run, part: Part, now_ms: int) -> ConsolidationState:
        """Return the state after a part. At the end of a step, the run has the next step."""
        state = run.state
        place = state.step - 1
        state = replace(
            state,
            looked=_added(state.looked, place, part.looked),
            changed=_added(state.changed, place, part.changed),
            position=part.position or 0,
        )
        if part.position is not None:
            return state
        later = [number for number in NUMBERS if number > state.step]
        if later:
            state = replace(state, step=later[0])
            run.step = _step(state)
            return state
        return replace(
            state,
            step=0,
            finished_at_ms=now_ms,
            consolidated_up_to=max(state.up_to, state.consolidated_up_to),
        )

    def _commit(self, run: Run, change: Change, after: ConsolidationState) -> None:
        def note(txn: WriteTransaction) -> None:
            txn.meta.set(consolidation=after)

        self._state.commit(change, note, run.events)
        self._stored = after
        run.events = []


def _read(txn: ReadTransaction) -> tuple[ConsolidationState, bool, int, int]:
    """Return the stored state, whether there are statements, the time of the first one, and how many are staged."""
    stored, last = txn.meta.consolidation, txn.meta.ledger.next_entry - 1
    first = next(txn.statements.assertions(), None) if last else None
    count = 0
    if last - stored.consolidated_up_to >= MAX_STAGED:
        staged = islice(txn.statements.assertions(stored.consolidated_up_to + 1), 2 * MAX_STAGED)
        count = len({one.statement for one in staged})
    return stored, first is not None, 0 if first is None else first.known_at_ms, count


def _step(state: ConsolidationState) -> Step:
    return STEPS[CONSOLIDATION_STEPS[state.step - 1]]()


def _added(counts: tuple[int, ...], place: int, more: int) -> tuple[int, ...]:
    return tuple(min(count + more * (number == place), MAX_COUNT) for number, count in enumerate(counts))


def _event(state: ConsolidationState, step: int) -> EventRun:
    return run_of(EventKind.CONSOLIDATED, [step], [state.looked[step - 1]], [state.changed[step - 1]])


def _outcome(state: ConsolidationState, findings: dict[str, list[Finding]]) -> Outcome:
    def by_name(counts: tuple[int, ...]) -> dict[str, int]:
        known = dict(zip(CONSOLIDATION_STEPS, counts, strict=False))
        return {name: known.get(name, 0) for name in STEPS}

    return Outcome(by_name(state.looked), by_name(state.changed), dict(findings))
