"""The jobs of compression: passes owed, the one under way gone on with, step by step.

The rule guarded here: a step ends with a commit, and what is left of the pass can be worked out from the store. The
order of the nodes still to visit is kept between two steps only as long as nothing else has changed what it was made
of. What a visit does to a node is in `memory/compression.py`; who makes steps is in `slice.py`.
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
from ebbtide.store.port import ReadTransaction, WriteTransaction

SCANS_PER_COMMIT = 20_000
"""Most visits of a pass in one commit; mostly its time ends it sooner, and the mailbox is looked at."""

MAX_VISITS_PER_GROUP = 5000
"""Most nodes judged together, about 10 ms: the time is looked at in between."""

MIN_VISITS_PER_GROUP = 64
"""Visits judged together at first; four times as many as long as none needs a text or is forgotten."""

SEEN_AHEAD = 256
"""Most visits looked at ahead for texts that will be needed soon."""


@dataclass(frozen=True, slots=True)
class ShorteningTask:
    """What a language model needs to shorten a node, and what must still hold when it has."""

    shortening: Shortening
    text: str
    prefix: str
    content: str
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True)
class Shortened:
    """How a shortening went: `processed` is None when no server answered and the content stays."""

    task: ShorteningTask
    processed: Processed | None
    model: str


@dataclass(frozen=True, slots=True)
class PassStep:
    """Where compression stands after a step: nothing owed, more to visit, or a text to shorten.

    The first of `tasks` is what the pass waits for; those behind it will be needed soon, as things stand.
    """

    is_idle: bool
    tasks: tuple[ShorteningTask, ...] = ()


@dataclass(slots=True)
class Visits:
    """The order of a pass, and how far it has come."""

    order: NDArray[np.int64]
    begin: int = 0
    size: int = field(default_factory=lambda: MIN_VISITS_PER_GROUP)
    """How many are judged together next."""

    @property
    def left(self) -> int:
        """Nodes still to be visited."""
        return len(self.order) - self.begin

    def next(self, count: int) -> NDArray[np.int64]:
        """The next nodes to visit, at most `count`."""
        return self.order[self.begin : self.begin + count]

    def advance(self, visited: int, *, undisturbed: bool) -> None:
        """So many are done: judge more together as long as none needs a text or is forgotten."""
        self.begin += visited
        self.size = min(self.size * 4, MAX_VISITS_PER_GROUP) if undisturbed else MIN_VISITS_PER_GROUP


class Passes:
    """The passes of one agent."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._visits: Visits | None = None
        self._epoch = -1
        """Of the state that the visits were made of."""

    @property
    def resident_bytes(self) -> int:
        """Bytes of memory that the order of a pass holds."""
        return 0 if self._visits is None else self._visits.order.nbytes

    def owe(self, count: int, entry: AuditEntry | None = None) -> AgentCounts:
        """Owe that many passes more; TOO_MANY_PASSES beyond `max_owed_passes`. `entry` goes into the audit log."""

        def write(txn: WriteTransaction) -> AgentCounts:
            owed, most = txn.owed_passes(), self._state.parameters.max_owed_passes
            if owed + count > most:
                raise InvalidRequest(
                    f"passes = {count}: the agent owes {owed} passes and may owe at most {most}",
                    reason="TOO_MANY_PASSES",
                )
            txn.apply(Change(owed_passes=owed + count))
            if entry is not None:
                txn.record(entry, self._state.identity.agent_id)
            return txn.counts()

        return self._state.store.write(write)

    def compress(
        self,
        finished: Collection[Shortened],
        is_time_up: Callable[[], bool],
        most_tasks: int = 1,
    ) -> PassStep:
        """Go on with the pass under way, or begin one that is owed, until a text must be shortened.

        `finished` are texts that earlier steps asked for. Visits are committed in groups; a step ends when
        the group is full, `is_time_up` says so, or a text is missing: then up to `most_tasks` are asked for.
        """
        state, owed, done = self._state.store.read(
            lambda txn: (txn.pass_state(), txn.owed_passes(), txn.finished_passes())
        )
        if state is None:
            if owed == 0:
                return PassStep(is_idle=True)
            state = self._begin_pass(done + 1)
        network = self._state.network  # building it anew begins another epoch
        if self._visits is None or self._epoch != self._state.epoch:
            self._visits = Visits(compression.nodes_to_visit(network, state))
            self._epoch = self._state.epoch
        draft = Draft(network)
        # From here on a failed commit must not leave the order half consumed.
        visits, self._visits = self._visits, None
        waiting = {shortened.task.shortening.node_id: shortened for shortened in finished}
        settle = partial(self._settle, draft, waiting, state.number)
        missing = None
        left = SCANS_PER_COMMIT
        # Asked before the first visits too, since that begins the time; these are made in any case.
        while visits.left and left > 0 and not missing and not (is_time_up() and left < SCANS_PER_COMMIT):
            gone_before = len(draft.change.forgotten)
            visited, missing = compression.visit(draft, visits.next(min(visits.size, left)), state, settle)
            # One that is forgotten costs as much as a hundred that are not: the time must be looked at.
            visits.advance(visited, undisturbed=not missing and len(draft.change.forgotten) == gone_before)
            left -= visited
        if not visits.left:
            compression.end_pass(draft, state, owed)
        elif draft.change.pass_state is None:
            draft.change.pass_state = state
        self._state.commit(draft.change)
        self._visits = visits if visits.left else None
        if missing is None:
            return PassStep(is_idle=False)
        wanted = [missing] if most_tasks == 1 else self._wanted_soon(visits, state, most_tasks)
        return PassStep(is_idle=False, tasks=self._shortening_tasks(wanted))

    def _wanted_soon(self, visits: Visits, state: PassState, most: int) -> list[Shortening]:
        """The next texts that the pass will need, as things stand: visits made in a draft that nobody commits."""
        wanted: list[Shortening] = []

        def note(shortening: Shortening) -> bool:
            wanted.append(shortening)
            return len(wanted) < most

        compression.visit(Draft(self._state.network), visits.next(SEEN_AHEAD), state, note)
        return wanted

    def _begin_pass(self, number: int) -> PassState:
        """Begin a pass. Unless limits were lowered it is written along with its first visits."""
        begun = compression.begin_pass(self._state.network, number, self._state.dice("pass", number))
        assert begun.pass_state is not None
        if begun.forgotten or begun.links or begun.focus is not None:
            self._state.commit(begun)
        self._visits = None
        return begun.pass_state

    def _shortening_tasks(self, shortenings: Sequence[Shortening]) -> tuple[ShorteningTask, ...]:
        def task(txn: ReadTransaction, shortening: Shortening) -> ShorteningTask:
            node = txn.node(shortening.node_id)
            assert node is not None
            first = txn.first_content(node)
            text = node.content if first is None else first
            prefix = node.prefix if text.startswith(node.prefix) else ""
            return ShorteningTask(shortening, text, prefix, node.content, node.sources)

        return self._state.store.read(lambda txn: tuple(task(txn, shortening) for shortening in shortenings))

    def _settle(
        self, draft: Draft, finished: Mapping[NodeId, Shortened], number: int, shortening: Shortening
    ) -> bool:
        """Put the new text of a node into the draft; False where none fits the node as it is now."""
        shortened = finished.get(shortening.node_id)
        if shortened is None:
            return False
        node = self._state.store.read(lambda txn: txn.node(shortening.node_id))
        assert node is not None
        if (node.content, node.sources) != (shortened.task.content, shortened.task.sources):
            return False
        processed = shortened.processed
        if processed is None:
            return True
        if shortening.target != shortened.task.shortening.target:
            return False
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
