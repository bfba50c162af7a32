"""The form of the steps of a consolidation: each looks at something and proposes changes.

A step works in parts of a few milliseconds. A part reads one moment of the agent and returns a change; the caller
commits it, or leaves it for a dry run. The rule guarded here: no step retires a statement or merges entities, unless a
parameter of the agent says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

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
    vectors: NDArray[np.float32] | None = None
    """A vector for each of the texts of the part before; None if there are none."""

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
    texts: Sequence[str] = ()
    """Texts of which the next part can use the vectors."""


class Step(Protocol):
    """A step of one run. It may keep what it has computed between two parts."""

    def part(self, view: View, position: int, is_time_up: Callable[[], bool]) -> Part:
        """Look at something from a position on, at least one item, and more while there is time."""
