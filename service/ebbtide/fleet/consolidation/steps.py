"""The steps of a consolidation: what each looks at, and the changes that it proposes.

A step works in parts of a few milliseconds. A part reads one moment of the agent and returns a change; the caller
commits it, or leaves it for a dry run. The rule guarded here: no step retires a statement or merges entities, unless a
parameter of the agent says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ebbtide.changes import Change
from ebbtide.ids import NodeId
from ebbtide.memory.network import Network
from ebbtide.memory.statements import Ledger
from ebbtide.parameters import AgentParameters
from ebbtide.statements import Assertion
from ebbtide.store.lmdb.transaction import ReadTransaction


@dataclass(frozen=True, slots=True)
class View:
    """An agent at a moment, as a step reads it."""

    txn: ReadTransaction
    network: Network
    ledger: Ledger
    parameters: AgentParameters
    now_ms: int
    after: int
    """Entries up to this number are consolidated."""
    up_to: int
    """The last entry number that the run looks at."""

    def staged(self) -> list[Assertion]:
        """Return the assertions since the last run, in order of arrival."""
        found = (one for one in self.ledger.all_assertions(self.after) if one.entry <= self.up_to)
        return sorted(found, key=lambda one: one.entry)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a step found: the nodes concerned, and what it is."""

    nodes: tuple[NodeId, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The result of a part of a step."""

    looked: int = 0
    changed: int = 0
    change: Change | None = None
    findings: Sequence[Finding] = field(default=())
    position: int | None = None
    """Where the next part begins; None if the step is complete."""


class Step(Protocol):
    """A step of one run. It may keep what it has computed between two parts."""

    def part(self, view: View, position: int, is_time_up: Callable[[], bool]) -> Part:
        """Look at something from a position on, at least one item, and more while there is time."""


class Staged:
    """Counts the statements that are new since the last run; at the end of the run they are consolidated."""

    def part(self, view: View, position: int, is_time_up: Callable[[], bool]) -> Part:
        """Return the number of new statements."""
        count = len({one.statement for one in view.staged() if is_first(view.ledger, one)})
        return Part(looked=count, changed=count)


def is_first(ledger: Ledger, assertion: Assertion) -> bool:
    """Return whether an assertion is the first of its statement."""
    return ledger.assertions_of(assertion.statement)[0].entry == assertion.entry


class Conflicts:
    """Lists the statements that contradict each other. The replay has settled those that it may settle."""

    def part(self, view: View, position: int, is_time_up: Callable[[], bool]) -> Part:
        """Look at the topics of some entities."""
        replay = view.ledger.known()
        roots = sorted({root for root in map(replay.root, view.ledger.subjects()) if root >= position})
        looked = 0
        findings: list[Finding] = []
        for number, root in enumerate(roots):
            if number and is_time_up():
                return Part(looked=looked, findings=findings, position=root)
            looked += len(view.ledger.slots_of(replay.merged_with(root)))
            for pair in replay.conflicts_of(root, view.now_ms, view.now_ms):
                nodes = (pair.first.statement, pair.second.statement)
                findings.append(Finding(nodes, "contradict each other"))
        return Part(looked=looked, findings=findings)
