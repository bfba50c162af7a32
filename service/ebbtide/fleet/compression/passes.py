"""The jobs of compression: owed passes, and the current pass in steps.

The rule guarded here: a step ends with a commit, and the rest of the pass can be computed from the store. The order of
the remaining nodes is reused only while nothing else has changed the state. `memory/compression.py` defines what a
visit does; `runtime/slice.py` runs the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec
import numpy as np
from numpy.typing import NDArray

from ebbtide.changes import Change
from ebbtide.errors import InvalidRequest
from ebbtide.fleet.state.agent_state import State
from ebbtide.ids import NodeId
from ebbtide.language.port import Processed
from ebbtide.memory import compression
from ebbtide.memory.compression import Shortening
from ebbtide.memory.draft import Draft
from ebbtide.records import REWRITES_KEPT, AgentCounts, PassState, Rewrite, Source
from ebbtide.store.chain import AuditEntry
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction

SCANS_PER_COMMIT = 20_000
"""Most visits in one commit. Usually the time budget ends the step earlier."""

MAX_VISITS_PER_GROUP = 5000
"""Most nodes evaluated together, about 10 ms; the time is checked in between."""

MIN_VISITS_PER_GROUP = 64
"""Nodes evaluated together at first. The number grows fourfold while none is shortened or forgotten."""

SEEN_AHEAD = 256
"""Most visits examined ahead for texts that will be needed soon."""


@dataclass(frozen=True, slots=True)
class ShorteningTask:
    """The input to shorten a node, and the state that must still match when the result is applied."""

    shortening: Shortening
    first: str
    """The first content; the present one if the first was erased or is not retained."""
    content: str
    """The present content, from which the shortened one takes its words."""
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True)
class Shortened:
    """The result of a shortening. `processed` is None if no server answered and the content stays."""

    task: ShorteningTask
    processed: Processed | None
    model: str


@dataclass(frozen=True, slots=True)
class PassStep:
    """The result of a step: idle, more visits, or texts to shorten.

    The pass waits for the first of `tasks`. The others will probably be needed soon.
    """

    is_idle: bool
    tasks: tuple[ShorteningTask, ...] = ()


@dataclass(slots=True)
class VisitOrder:
    """The order of a pass and its progress."""

    order: NDArray[np.int64]
    begin: int = 0
    size: int = field(default_factory=lambda: MIN_VISITS_PER_GROUP)
    """Number of nodes to evaluate together next."""

    @property
    def left(self) -> int:
        """Number of nodes still to visit."""
        return len(self.order) - self.begin

    def next(self, count: int) -> NDArray[np.int64]:
        """Return the next nodes to visit, at most `count`."""
        return self.order[self.begin : self.begin + count]

    def advance(self, visited: int, *, undisturbed: bool) -> None:
        """Advance by `visited` nodes and adapt the group size."""
        self.begin += visited
        self.size = min(self.size * 4, MAX_VISITS_PER_GROUP) if undisturbed else MIN_VISITS_PER_GROUP


class Passes:
    """The compression passes of one agent."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._visits: VisitOrder | None = None
        self._epoch = -1
        """The state epoch for which the order was computed."""

    @property
    def resident_bytes(self) -> int:
        """Size of the order in memory."""
        return 0 if self._visits is None else self._visits.order.nbytes

    def owe(self, count: int, entry: AuditEntry | None = None) -> AgentCounts:
        """Owe `count` more passes and log `entry`. Raise TOO_MANY_PASSES above `max_owed_passes`."""

        def write(txn: WriteTransaction) -> AgentCounts:
            owed, most = txn.meta.owed_passes, self._state.parameters.max_owed_passes
            if owed + count > most:
                raise InvalidRequest(
                    f"passes = {count}: the agent owes {owed} passes and may owe at most {most}",
                    reason="TOO_MANY_PASSES",
                )
            txn.apply(Change(owed_passes=owed + count))
            if entry is not None:
                txn.audit.append(entry, self._state.identity.agent_id)
            return txn.counts()

        return self._state.store.write(write)

    def compress(
        self,
        finished: Collection[Shortened],
        is_time_up: Callable[[], bool],
        most_tasks: int = 1,
    ) -> PassStep:
        """Continue the current pass, or begin an owed one, until a text must be shortened.

        `finished` are the texts that earlier steps requested. Visits are committed in groups. A step ends when the
        group is full, when `is_time_up` returns True, or when a text is missing; then it requests up to `most_tasks`
        texts.
        """
        state, owed, done = self._state.store.read(
            lambda txn: (txn.meta.pass_state, txn.meta.owed_passes, txn.meta.finished_passes)
        )
        if state is None:
            if owed == 0:
                return PassStep(is_idle=True)
            self._state.keep_statements(is_new_pass=True)
            state = self._begin_pass(done + 1)
        network = self._state.network  # rebuilding it starts a new epoch
        self._state.keep_statements(is_new_pass=False)
        if self._visits is None or self._epoch != self._state.epoch:
            self._visits = VisitOrder(compression.nodes_to_visit(network, state))
            self._epoch = self._state.epoch
        draft = Draft(network)
        # From here on, a failed commit must not leave a partly consumed order.
        visits, self._visits = self._visits, None
        waiting = {shortened.task.shortening.node_id: shortened for shortened in finished}
        settle = partial(self._settle, draft, waiting, state.number)
        missing = None
        left = SCANS_PER_COMMIT
        # Called before the first visits too, because that starts the time; the first visits always run.
        while visits.left and left > 0 and not missing and not (is_time_up() and left < SCANS_PER_COMMIT):
            forgotten_before = len(draft.change.forgotten)
            visited, missing = compression.visit(draft, visits.next(min(visits.size, left)), state, settle)
            # Forgetting one node costs as much as a hundred other visits, so the time must be checked.
            visits.advance(
                visited, undisturbed=not missing and len(draft.change.forgotten) == forgotten_before
            )
            left -= visited
        if not visits.left:
            compression.end_pass(draft, state, owed)
        elif draft.change.pass_state is None:
            draft.change.pass_state = state
        self._state.commit(draft.change)
        self._visits = visits if visits.left else None
        if missing is None:
            return PassStep(is_idle=False)
        needed = [missing] if most_tasks == 1 else self._texts_needed_soon(visits, state, most_tasks)
        return PassStep(is_idle=False, tasks=self._shortening_tasks(needed))

    def _texts_needed_soon(self, visits: VisitOrder, state: PassState, most: int) -> list[Shortening]:
        """Return the texts that the pass will probably need next, found with a draft that is not committed."""
        needed: list[Shortening] = []

        def note(shortening: Shortening) -> bool:
            needed.append(shortening)
            return len(needed) < most

        compression.visit(Draft(self._state.network), visits.next(SEEN_AHEAD), state, note)
        return needed

    def _begin_pass(self, number: int) -> PassState:
        """Begin a pass. It is committed with its first visits unless limits were lowered."""
        begun = compression.begin_pass(self._state.network, number, self._state.rng("pass", number))
        assert begun.pass_state is not None
        if compression.has_effect(begun):
            self._state.commit(begun)
        self._visits = None
        return begun.pass_state

    def _shortening_tasks(self, shortenings: Sequence[Shortening]) -> tuple[ShorteningTask, ...]:
        def task(txn: ReadTransaction, shortening: Shortening) -> ShorteningTask:
            node = txn.nodes.get(shortening.node_id)
            assert node is not None
            first = txn.nodes.first_content(node)
            return ShorteningTask(
                shortening, node.content if first is None else first, node.content, node.sources
            )

        return self._state.store.read(lambda txn: tuple(task(txn, shortening) for shortening in shortenings))

    def _settle(
        self, draft: Draft, finished: Mapping[NodeId, Shortened], number: int, shortening: Shortening
    ) -> bool:
        """Put the new text of a node into the draft. Return False if it does not match the node any more."""
        shortened = finished.get(shortening.node_id)
        if shortened is None:
            return False
        node = self._state.store.read(lambda txn: txn.nodes.get(shortening.node_id))
        assert node is not None
        if (node.content, node.sources) != (shortened.task.content, shortened.task.sources):
            return False
        processed = shortened.processed
        if processed is None:
            return True
        if shortening.target != shortened.task.shortening.target:
            return False
        if processed.content == node.content and len(node.content) > shortening.target:
            # The model has nothing shorter that says something.
            return True
        before, after = len(node.content), len(processed.content)
        rewrite = Rewrite(number, shortening.importance, before, after, shortened.model)
        draft.change.nodes.append(
            msgspec.structs.replace(
                node,
                content=processed.content,
                phrase=processed.phrase,
                keywords=processed.keywords,
                rewrites=(*node.rewrites, rewrite)[-REWRITES_KEPT:],
            )
        )
        return True
