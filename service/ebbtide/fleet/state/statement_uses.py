"""How often searches have returned each statement of an agent.

Counts are kept in memory. Each commit of the agent writes them if they have changed, and so does its close. They only
order results: a kill loses some, and an export leaves them out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import nlargest

from ebbtide.bounds import MAX_COUNT
from ebbtide.ids import NodeId
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction

MAX_STORED = 1000
"""Statements whose counts are stored, those returned most often."""


class StatementUses:
    """The counts of one agent."""

    def __init__(self, stored: Mapping[NodeId, int], is_alive: Callable[[NodeId], bool]) -> None:
        self._counts = dict(stored)
        self._is_alive = is_alive
        self._has_changed = False

    def of(self, statement: NodeId) -> int:
        """Return how often a statement was returned."""
        return self._counts.get(statement, 0)

    def note(self, statements: Iterable[NodeId]) -> None:
        """Count statements that a search returns."""
        for one in statements:
            self._counts[one] = min(MAX_COUNT, self._counts.get(one, 0) + 1)
            self._has_changed = True

    def differ(self, txn: ReadTransaction) -> bool:
        """Return whether the counts to store differ from the stored ones."""
        has_changed = self._has_changed or not all(map(self._is_alive, self._counts))
        return has_changed and self._kept() != txn.meta.statement_uses

    def write(self, txn: WriteTransaction) -> None:
        """Write the counts if they differ from the stored ones. The transaction may be repeated."""
        if self.differ(txn):
            txn.meta.set(statement_uses=self._kept())

    def _kept(self) -> dict[NodeId, int]:
        alive = [(count, -one) for one, count in self._counts.items() if self._is_alive(one)]
        return {-one: count for count, one in sorted(nlargest(MAX_STORED, alive), key=lambda pair: -pair[1])}
